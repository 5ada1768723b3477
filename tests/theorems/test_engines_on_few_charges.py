"""Contour, lattice and balls where the truth is known: few charges, whichever engine would be chosen for them."""

from __future__ import annotations

import math
from typing import Any

import flint
import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from farthing import compose
from farthing.accounting.algorithms.ball_line import BallProof
from farthing.accounting.algorithms.box_bounds import BoxBounds
from farthing.accounting.algorithms.contour import Proof, excess_constant, prove
from farthing.accounting.algorithms.line_integral import Aliases, saddle_for_loss
from farthing.accounting.inversion import Curve
from farthing.accounting.lattice import Lattice, recognise
from farthing.accounting.loss_transforms import Transform
from farthing.privacy import GaussianNoise, LaplaceNoise
from theorems.enumeration import Enumeration
from theorems.transcripts import many_digits

NONE = np.zeros(0)
Counts = dict[float, int]
WORK = 1e5  # far less than the engines may spend: what is proven must hold all the same


def transform_of(counts: Counts) -> Transform:
    values = sorted(counts)
    return Transform(np.array(values), np.array([float(counts[e]) for e in values]), NONE, NONE)


def listed(counts: Counts) -> list[float]:
    return [e for e, n in counts.items() for _ in range(n)]


def holds(curve: Curve, truth: Any) -> bool:
    """Whether log of the truth, a ball, lies between the two ends."""
    with many_digits(4000):
        return bool(curve.low <= truth.log() <= curve.high)


def proofs(counts: Counts, x: float, goal: float, lattice: Lattice | None) -> list[tuple[str, Proof | BallProof]]:
    """The proof in doubles, and those in balls where they are affordable."""
    transform = transform_of(counts)
    proof = prove(transform, saddle_for_loss(transform, x), lattice, goal, WORK)
    found: list[tuple[str, Proof | BallProof]] = [("doubles", proof)]
    if len(proof.line.t) * len(counts) <= 600:
        found += [(f"balls, exact={exact}", BallProof.of(proof, lattice, exact)) for exact in (True, False)]
    return found


def any_epsilon() -> st.SearchStrategy[float]:
    near = st.sampled_from([0.1, 0.1 * (1 + 1e-13), math.nextafter(0.1, 1), 0.2, 0.3])
    fine = st.integers(0, 9).map(lambda j: 0.1 + 1e-9 * j)
    sizes = st.sampled_from([1e-12, 3e-12, 1e-6, 30.0])
    return st.one_of(st.floats(0.001, 5.0), st.floats(0.001, 5.0), near, fine, sizes)


small_counts = st.dictionaries(any_epsilon(), st.integers(1, 4), min_size=1, max_size=4).filter(
    lambda counts: sum(counts.values()) <= 9
)
places = st.one_of(st.floats(0.0, 0.99), st.floats(-9.0, -1.0).map(lambda e: 1 - 10.0**e), st.just(0.0))


def check_sandwich(counts: Counts, place: float, goal: float) -> None:
    x = place * math.fsum(listed(counts))
    truth = Enumeration.of(listed(counts), (), 1e-60).curve_at(x)
    for name, proof in proofs(counts, x, goal, None):
        curve = proof.log_delta(x)
        assert holds(curve, truth), f"{name}: log {truth} is not within {curve}"


@pytest.mark.slow
@settings(max_examples=200)  # a fault in one case of 40 is missed by one run in 150
@given(small_counts, places, st.sampled_from([1e-2, 1e-4]))
@example({0.1: 4, 0.1 * (1 + 1e-13): 4}, 0.3, 1e-4)
@example({0.1 + 1e-9 * j: 1 for j in range(8)}, 0.3, 1e-4)
@example({5.0: 1, 0.001: 4}, 0.9, 1e-4)
@example({1e-12: 2, 1.0: 1}, 0.5, 1e-4)
@example({300.0: 2, 0.5: 1}, 0.9, 1e-4)
@example({0.19: 1, 0.28: 1, 0.26: 1}, 1 - 2e-8, 1e-7)
def test_the_sandwich_holds_the_curve_of_few_charges(counts: Counts, place: float, goal: float) -> None:
    """Few factors never decay by themselves: the hardest case for a contour, and the one that can be enumerated."""
    check_sandwich(counts, place, goal)


def lattices() -> st.SearchStrategy[Counts]:
    """Whole multiples of a step, as doubles: decimals, a third of something, tiny ones."""
    steps = st.sampled_from([0.1, 0.01, 0.001, 0.25, 1 / 3, 2.5, 1e-5, 1e-6, 1e-8, 1e-12])
    multiples = st.dictionaries(st.integers(1, 40), st.integers(1, 4), min_size=1, max_size=4)
    decimal = st.tuples(multiples, steps).map(lambda pair: {m * pair[1]: n for m, n in pair[0].items()})
    return decimal.filter(lambda counts: sum(counts.values()) <= 9)


def check_lattice(counts: Counts, place: float) -> None:
    lattice = recognise(np.array(sorted(counts)))
    assume(lattice is not None)
    x = place * math.fsum(listed(counts))
    truth = Enumeration.of(listed(counts), (), 1e-60).curve_at(x)
    for name, proof in proofs(counts, x, 1e-6, lattice):
        curve = proof.log_delta(x)
        assert holds(curve, truth), f"{name}: log {truth} is not within {curve}"


# Losses themselves are left to the tests of `compose`, which steps aside from them: x is off the lattice here.
between = st.floats(0.0, 0.999).map(lambda place: math.nextafter(place, 1) * (1 - 1e-7 * math.pi))


@pytest.mark.slow
@settings(max_examples=300)  # a fault in one case of 60 is missed by one run in 150
@given(lattices(), between)
@example({4e-6: 1, 2e-6: 1, 8e-6: 1}, 0.0283)  # a naive kernel is a small difference of large numbers here
@example({4e-10: 3, 6e-10: 1, 8e-10: 3, 9e-10: 1}, 0.9511)
@example({0.1: 9}, 0.0)
@example({1e-12: 3, 2e-12: 1}, 0.4)
def test_the_lattice_kernel_holds_the_curve_of_few_charges(counts: Counts, place: float) -> None:
    check_lattice(counts, place)


def test_the_lattice_needs_no_width_and_the_sandwich_little() -> None:
    counts = {0.1: 3, 0.25: 2, 0.3: 3}
    lattice = recognise(np.array(sorted(counts)))
    for place in (0.1, 0.55, 0.95):
        x = place * math.fsum(listed(counts))
        exact = proofs(counts, x, 1e-6, lattice)[0][1].log_delta(x)
        assert exact.high - exact.low < 1e-10
        saddle = saddle_for_loss(transform_of(counts), x)
        rough, fine = (prove(transform_of(counts), saddle, None, goal).log_delta(x) for goal in (1e-2, 1e-4))
        assert fine.high - fine.low < 4e-4 * saddle.c  # `goal` is in epsilon, c times that in log D
        assert fine.high - fine.low < (rough.high - rough.low) / 20


# --- noise beside responses --------------------------------------------------------------------------------------


def _of_laplace(epsilon: Any, y: Any) -> Any:
    """H_y of one Laplace noise, for any real y."""
    if y >= epsilon:
        return flint.arb(0)
    return 1 - y.exp() if y <= -epsilon else 1 - ((y - epsilon) / 2).exp()


def _of_gaussian(mu: Any, y: Any) -> Any:
    root = flint.arb(2).sqrt()
    return (((y / mu - mu / 2) / root).erfc() - y.exp() * ((y / mu + mu / 2) / root).erfc()) / 2


@pytest.mark.slow
@settings(max_examples=15)
@given(
    st.lists(st.floats(0.001, 3.0), max_size=5),
    st.sampled_from([LaplaceNoise, GaussianNoise]),
    st.floats(0.3, 30.0),
    st.floats(0.0, 0.95),
)
@example([], LaplaceNoise, 1.0, 0.5)
@example([0.5, 0.5, 0.25], GaussianNoise, 4.0, 0.5)
def test_one_noise_beside_few_responses_lies_within_the_bounds(
    values: list[float], kind: Any, multiplier: float, place: float
) -> None:
    """Conditioned on the responses the noise has a closed form: D(x) is the mean of H at x - loss."""
    x = place * (sum(values) + 1 / multiplier)
    bounds = compose([kind(multiplier), *values]).delta_at(x)
    form = _of_laplace if kind is LaplaceNoise else _of_gaussian
    with many_digits(300):
        terms = [(flint.arb(1), flint.arb(0))]
        for e in values:
            told = 1 / (1 + (-flint.arb(e)).exp())
            terms = [(p * told, loss + e) for p, loss in terms] + [(p * (1 - told), loss - e) for p, loss in terms]
        one = 1 / flint.arb(multiplier)
        truth = sum((p * form(one, flint.arb(x) - loss) for p, loss in terms), flint.arb(0))
        assert bounds.lower <= truth <= bounds.upper
    assert bounds.width <= 1e-6


# --- the Gaussian sandwich ---------------------------------------------------------------------------------------


def _excess(mu: Any) -> Any:
    """A(mu) = (2 Phi(mu / 2) - 1) / (mu phi(mu / 2))."""
    return (2 * mpmath.ncdf(mu / 2) - 1) / (mu * mpmath.npdf(mu / 2))


@pytest.mark.slow
@settings(max_examples=120)
@given(
    st.floats(math.log(1e-3), math.log(0.5)).map(math.exp),
    st.lists(st.tuples(st.floats(-3.0, 3.0), st.floats(0.01, 1.0)), min_size=1, max_size=4),
    st.one_of(st.just(0.0), st.floats(-6.0, 0.5).map(lambda e: 10.0**e), st.floats(-3.0, 3.0)),
)
@example(0.5, [(0.0, 1.0)], 0.0)
def test_smoothing_raises_the_curve_and_by_no_more_than_the_density_says(
    mu: float, atoms: list[tuple[float, float]], off: float
) -> None:
    """D_mu - A mu^2 g_mu <= D <= D_mu, at and around an atom, for any loss with few atoms."""
    with mpmath.workdps(60):
        x, m = mpmath.mpf(atoms[0][0]) + off, mpmath.mpf(mu)
        weight = mpmath.fsum(p for _, p in atoms)
        plain = smooth = density = mpmath.mpf(0)
        for loss, p in atoms:
            u = mpmath.mpf(loss) - x
            plain += p / weight * max(0, 1 - mpmath.exp(-u))
            smooth += p / weight * (mpmath.ncdf(u / m + m / 2) - mpmath.exp(-u) * mpmath.ncdf(u / m - m / 2))
            density += p / weight * mpmath.npdf(u / m + m / 2) / m
        assert plain <= smooth + mpmath.mpf(10) ** -50
        assert smooth - _excess(m) * m**2 * density <= plain + mpmath.mpf(10) ** -50
        assert smooth - excess_constant(mu) * m**2 * density <= plain


def test_the_sandwich_is_tight_at_an_atom() -> None:
    """At u = 0 the excess is exactly A mu^2 times the density, so no smaller constant would do."""
    with mpmath.workdps(60):
        for mu in (mpmath.mpf("0.001"), mpmath.mpf("0.5")):
            excess = mpmath.ncdf(mu / 2) - mpmath.ncdf(-mu / 2)
            assert abs(excess - _excess(mu) * mu**2 * mpmath.npdf(mu / 2) / mu) < mpmath.mpf(10) ** -55
            assert _excess(mu) < excess_constant(float(mu))


# --- boxes -------------------------------------------------------------------------------------------------------


@st.composite
def mixtures(draw: st.DrawFn) -> Transform:
    sizes = st.floats(-5.0, 1.0).map(lambda e: 10.0**e)
    repeats = st.one_of(st.just(1), st.integers(1, 500))
    responses = draw(st.dictionaries(sizes, repeats if draw(st.booleans()) else st.just(1), min_size=1, max_size=12))
    noises = draw(st.one_of(st.just({}), st.dictionaries(sizes, repeats, max_size=3)))
    return Transform(*_arrays(responses), *_arrays(noises), draw(st.sampled_from([0.0, 1e-6, 0.01])))


def _arrays(items: Counts) -> tuple[np.ndarray, np.ndarray]:
    return np.array(sorted(items), dtype=np.float64), np.array([float(items[e]) for e in sorted(items)])


@pytest.mark.slow
@settings(max_examples=120)
@given(mixtures(), st.floats(-3.0, 3.0).map(lambda e: 10.0**e), st.integers(0, 10**6), st.integers(1, 20))
def test_box_bounds_are_above_the_transform_everywhere_in_the_box(
    transform: Transform, c: float, seed: int, factors: int
) -> None:
    rng = np.random.default_rng(seed)
    boxes = BoxBounds(transform, c)
    # Around one radian of some factor, where the two kinds of bound take turns, and far beyond.
    start = float(rng.choice([0.6, 1.0, 3.0, 300.0]) / rng.choice(transform.epsilons))
    low = np.sort(start * rng.uniform(1, 2, 12))
    low[0] = start
    width = rng.choice([1e-9, 0.1, 1.0, 10.0]) * boxes.natural_width(start, factors)
    high = np.maximum(low, np.minimum(low + width * rng.uniform(0, 1, 12), 2 * start))
    bound = boxes.log_modulus(low, high, factors)
    for share in (0.0, 1.0, *rng.uniform(0, 1, 6)):
        phase = transform.phase(c, low + share * (high - low))
        assert np.all(bound >= phase.log_modulus - np.minimum(phase.error, 1) - 1e-12)


def test_box_bounds_are_worth_having() -> None:
    """On narrow boxes they come close to the truth, so that the far part can be proven small."""
    transform = Transform(np.linspace(0.5, 1.5, 40), np.ones(40), NONE, NONE)
    boxes = BoxBounds(transform, 1.0)
    low = np.linspace(50.0, 90.0, 200)
    exact = transform.phase(1.0, low).log_modulus
    assert np.all(boxes.log_modulus(low, low + 1e-6, 40) <= exact + 1e-3 * np.abs(exact))
    assert np.mean(boxes.log_modulus(low, low + 0.05, 40)) < 0.8 * np.mean(exact)


# --- aliases -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=50)
@given(
    st.dictionaries(st.floats(0.01, 3.0), st.integers(1, 3), min_size=1, max_size=3),
    st.floats(0.0, 0.95),
    st.floats(0.1, 3.0),
)
def test_aliases_are_bounded(counts: Counts, place: float, length: float) -> None:
    """Sampling returns sum over m of exp(c m P) D(x + m P); all terms but one are what `Aliases` bounds."""
    transform, twin = transform_of(counts), Enumeration.of(listed(counts))
    top = math.fsum(listed(counts))
    x = place * top
    saddle = saddle_for_loss(transform, x)
    aliases = Aliases.of(transform, saddle)
    for period in (length * top, aliases.period(x, 1e-3), aliases.period(x, 1e-17)):
        with many_digits(600):
            total, c = flint.arb(0), flint.arb(saddle.c)
            for m in range(1, 200):
                below, above = (twin.curve_at(x + sign * m * period) for sign in (-1, 1))
                extra = (-c * m * period).exp() * below + (c * m * period).exp() * above
                total += extra
                if not extra > total * 1e-20:
                    break
            relative = total / (flint.arb(saddle.at_c.value) - c * x).exp()
            assert relative <= aliases.bound(x, period) * (1 + 2 * saddle.at_c.error) + 1e-30
    assert aliases.bound(x, aliases.period(x, 1e-17)) < 1e-15

"""The contour engine against enumeration: the sandwich, the lattice kernel, boxes, aliases and balls.

The engines are called directly on few epsilons, where all transcripts can be listed, so that their own proofs are
tested and not the atoms engine that `compose` would choose there.
"""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.algorithms.ball_line import BallProof
from farthing.accounting.algorithms.box_bounds import BoxBounds, _square_of_sine
from farthing.accounting.algorithms.contour import excess_constant, prove
from farthing.accounting.algorithms.line_integral import Aliases, Saddle, saddle_for_delta, saddle_for_loss
from farthing.accounting.lattice import recognise
from farthing.accounting.loss_transforms import FUNCTION_ERROR, Transform

NONE = np.zeros(0)


def transform_of(epsilons: list[float], counts: list[int] | None = None) -> Transform:
    return Transform(np.array(epsilons), np.array(counts or [1] * len(epsilons), dtype=float), NONE, NONE)


def exact_log_delta(epsilons: list[float], counts: list[int], x: float) -> mpmath.mpf:
    """log D(x) by listing how many responses of each epsilon were untruthful."""
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for flips in product(*(range(n + 1) for n in counts)):
            mass, loss = mpmath.mpf(1), mpmath.mpf(0)
            for e, n, j in zip(epsilons, counts, flips, strict=True):
                p = 1 / (1 + mpmath.exp(-mpmath.mpf(e)))
                mass *= mpmath.binomial(n, j) * p ** (n - j) * (1 - p) ** j
                loss += (n - 2 * j) * mpmath.mpf(e)
            total += mass * max(mpmath.mpf(0), 1 - mpmath.exp(x - loss))
        return mpmath.log(total)


epsilon_lists = st.lists(st.floats(0.02, 2.0), min_size=2, max_size=6)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(epsilon_lists, st.floats(0.05, 0.9), st.sampled_from([1e-3, 1e-5]))
def test_sandwich_holds_the_enumeration(epsilons: list[float], place: float, goal: float) -> None:
    transform = transform_of(epsilons)
    x = place * sum(epsilons)
    truth = exact_log_delta(epsilons, [1] * len(epsilons), x)
    proof = prove(transform, saddle_for_loss(transform, x), None, goal, most=2e5)
    for engine in (proof, BallProof.of(proof, None, True) if len(proof.line.t) < 500 else proof):
        low, high = engine.log_delta(x)
        assert low <= truth <= high


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 4)), min_size=1, max_size=4), st.floats(0.02, 0.95))
def test_lattice_holds_the_enumeration(parts: list[tuple[int, int]], place: float) -> None:
    merged: dict[int, int] = {}
    for multiple, count in parts:
        merged[multiple] = merged.get(multiple, 0) + count
    epsilons, counts = [multiple / 20 for multiple in merged], list(merged.values())
    transform = transform_of(epsilons, counts)
    x = place * float(np.dot(epsilons, counts))
    truth = exact_log_delta(epsilons, counts, x)
    lattice = recognise(transform.epsilons)
    assert lattice is not None
    proof = prove(transform, saddle_for_loss(transform, x), lattice, 1e-7)
    for engine in (proof, BallProof.of(proof, lattice, False)):
        low, high = engine.log_delta(x)
        assert low <= truth <= high
        assert high - low < 1e-6


@pytest.mark.slow
def test_fine_lattice_counts_what_its_kernel_cancels() -> None:
    """Steps of 2^-30 make the two parts of a naive kernel nearly equal; the bounds must still hold the truth."""
    epsilons = [j * 2.0**-30 for j in range(1, 10)]
    transform = transform_of(epsilons)
    for place in (0.3, 0.8, 0.97):
        x = place * sum(epsilons)
        truth = exact_log_delta(epsilons, [1] * 9, x)
        low, high = prove(transform, saddle_for_loss(transform, x), recognise(transform.epsilons), 1e-7).log_delta(x)
        assert low <= truth <= high


@pytest.mark.parametrize("smoothing", [1e-4, 1e-2, 0.1, 0.3, 0.5])
def test_excess_constant_is_an_upper_bound_and_close(smoothing: float) -> None:
    with mpmath.workdps(40):
        half = mpmath.mpf(smoothing) / 2
        exact = (2 * mpmath.ncdf(half) - 1) / (smoothing * mpmath.npdf(half))
        assert exact <= excess_constant(smoothing) <= exact * (1 + smoothing**2 / 50 + 1e-11)


@pytest.mark.parametrize("smoothing", [0.01, 0.2, 0.5])
def test_smoothed_payoff_exceeds_the_payoff_by_at_most_the_bump(smoothing: float) -> None:
    """Pointwise in u: 0 <= E[(1 - e^(-u-g))_+] - (1 - e^-u)_+ <= A mu^2 n(u), the heart of the sandwich."""
    with mpmath.workdps(40):
        mu = mpmath.mpf(smoothing)
        for v in np.linspace(-6, 6, 49):
            u = mu * mpmath.mpf(float(v))
            reach = (mu * mu / 2 + u) / mu  # g > -u in standard units, under the distribution of g
            smoothed = mpmath.ncdf(reach) - mpmath.exp(-u) * mpmath.ncdf(reach - mu)
            excess = smoothed - max(mpmath.mpf(0), 1 - mpmath.exp(-u))
            bump = excess_constant(smoothing) * mu**2 * mpmath.npdf(u, -mu * mu / 2, mu)
            assert -(mpmath.mpf(10) ** -30) <= excess <= bump


@pytest.mark.slow
def test_box_bounds_hold_inside_every_box() -> None:
    generator = np.random.default_rng(20)
    for _ in range(60):
        size = int(generator.integers(1, 30))
        noises = int(generator.integers(0, 3))
        transform = Transform(
            10 ** generator.uniform(-3, 0.7, size),
            generator.integers(1, 9, size).astype(float),
            generator.uniform(0.05, 2, noises),
            np.ones(noises),
            float(generator.choice([0.0, 1e-4, 0.01])),
        )
        c = float(10 ** generator.uniform(-2, 1))
        boxes = BoxBounds(transform, c)
        start = float(10 ** generator.uniform(-1, 3))
        low = start * (1 + np.sort(generator.uniform(0, 0.9, 8)))
        high = low + start * generator.uniform(0, 0.1, 8)
        for factors in (3, 120):
            bound = boxes.log_modulus(low, high, factors)
            for a, b, value in zip(low, high, bound, strict=True):
                inside = transform.phase(c, np.linspace(a, b, 50)).log_modulus
                assert float(np.max(inside)) <= value + 1e-9


def test_square_of_sine_is_below_and_close() -> None:
    angle = np.linspace(0.0, math.pi / 2, 2001)
    found = _square_of_sine(angle.copy(), np.empty_like(angle))
    exact = np.sin(angle) ** 2
    assert np.all(found <= exact * (1 + 1e-15)) and np.all(found >= exact - 1e-4)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.5, 6.0), min_size=3, max_size=8), st.floats(0.3, 0.9))
def test_a_line_beside_the_saddle_holds_the_enumeration(epsilons: list[float], delta: float) -> None:
    """At a large delta the line is moved, to where fewer points do; what is dropped on the way is in the bounds."""
    transform = transform_of(epsilons)
    saddle = saddle_for_delta(transform, math.log(delta))
    if not saddle.x > 0:
        return
    proof = prove(transform, saddle, None, 1e-5)
    low, high = proof.log_delta(saddle.x)
    assert low <= exact_log_delta(epsilons, [1] * len(epsilons), saddle.x) <= high
    assert proof.line.c >= proof.rate == saddle.c


@pytest.mark.slow
def test_alias_bound_holds_the_enumerated_aliases() -> None:
    epsilons = [0.3, 0.5, 0.7, 1.1]
    transform = transform_of(epsilons)
    for x in (0.1, 1.0, 2.0):
        saddle = saddle_for_loss(transform, x)
        for period in (3.0, 6.0, 12.0):
            scale = math.exp(saddle.at_c.value - saddle.c * x)
            aliases = 0.0
            for m in range(-12, 13):
                if m and x + m * period < sum(epsilons):
                    value = float(mpmath.exp(exact_log_delta(epsilons, [1] * 4, x + m * period)))
                    aliases += math.exp(saddle.c * m * period) * value
            assert aliases <= Aliases.of(transform, saddle).bound(x, period) * scale


def test_an_undecided_sum_bounds_nothing_from_above() -> None:
    """Far from the saddle the samples cancel to noise: the upper bound must then be the plain one, not 0."""
    transform = transform_of([0.3, 0.41, 0.77, 0.9])
    saddle = saddle_for_loss(transform, 2.3)
    wrong = Saddle(saddle.c * 400, saddle.x, transform.cumulants(saddle.c * 400))
    proof = prove(transform, wrong, None, 1e-3, most=1e4)
    for x in (0.1, 1.0, 2.0):
        truth = exact_log_delta([0.3, 0.41, 0.77, 0.9], [1] * 4, x)
        low, high = proof.log_delta(x)
        assert low <= truth <= high


@pytest.mark.parametrize("function", ["sin", "cos", "tanh", "cosh", "sinh", "log1p", "expm1", "exp", "arctan", "sqrt"])
def test_floating_point_model_holds(function: str) -> None:
    generator = np.random.default_rng(4)
    values = np.concatenate([10 ** generator.uniform(-8, 1.3, 300), generator.uniform(0, 20, 300)])
    computed = getattr(np, function)(values)
    exact_function = {"arctan": mpmath.atan}.get(function) or getattr(mpmath, function)
    with mpmath.workdps(40):
        for value, got in zip(values.tolist(), computed.tolist(), strict=True):
            exact = exact_function(mpmath.mpf(value))
            assert abs(got - exact) <= FUNCTION_ERROR / 4 * abs(exact)


def test_phase_and_run_stay_within_their_errors() -> None:
    generator = np.random.default_rng(5)
    epsilons = generator.uniform(0.01, 1.0, 12)
    transform = Transform(epsilons, generator.integers(1, 4, 12).astype(float), np.array([0.4]), np.ones(1), 0.01)
    plain = Transform(epsilons, transform.weights, NONE, NONE, 0.01)
    for each in (transform, plain):
        step, c = 2.0**-6, 0.7
        few = range(0, 400, 37)
        cases = ((each.phase(c, np.array(few) * step), few), (each.run(c, step, np.array([0]), 400), range(400)))
        for phase, points in cases:
            for place, n in enumerate(points):
                if place % 29 and len(phase.error) > 50:
                    continue
                exact = exact_phi(each, c, n * step)
                got = mpmath.exp(mpmath.mpc(phase.log_modulus[place], phase.argument[place]))
                assert abs(got - exact) <= phase.error[place] * abs(got) * (1 + 1e-6)


def exact_phi(transform: Transform, c: float, t: float) -> mpmath.mpc:
    """M(c + it) / M(c), factor by factor."""
    with mpmath.workdps(40):
        z, real = mpmath.mpc(c, t), mpmath.mpf(c)
        value = mpmath.mpc(1)
        for e, n in zip(transform.epsilons.tolist(), transform.weights.tolist(), strict=True):
            value *= (mpmath.cosh((z + 0.5) * e) / mpmath.cosh((real + 0.5) * e)) ** int(n)
        for e, n in zip(transform.laplace.tolist(), transform.laplace_counts.tolist(), strict=True):

            def laplace(at: mpmath.mpc, e: float = e) -> mpmath.mpc:
                return ((at + 1) * mpmath.exp(at * e) + at * mpmath.exp(-(at + 1) * e)) / (2 * at + 1)

            value *= (laplace(z) / laplace(real)) ** int(n)
        spread = mpmath.mpf(transform.gaussian)
        return value * mpmath.exp((z * (z + 1) - real * (real + 1)) * spread / 2)

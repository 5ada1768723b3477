"""The floating-point model that proofs rest on, and the transform within its own error bounds, beside Arb."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.accounting.loss_transforms import FUNCTION_ERROR, Transform
from theorems.transcripts import many_digits

NONE = np.zeros(0)
BITS = 160


def _spread(low: float, high: float, size: int = 6000) -> np.ndarray:
    """Arguments spread over the exponents, in an order that leaves no two SIMD lanes alike."""
    rng = np.random.default_rng(7)
    return np.exp(rng.uniform(math.log(low), math.log(high), size))


def _angles() -> np.ndarray:
    """Angles as t * e makes them, and the doubles nearest to multiples of pi / 2, where a sine or cosine is hardest."""
    near = np.arange(1, 2000) * (np.pi / 2)
    return np.concatenate([_spread(1e-300, 1e-3), _spread(1e-3, 1e7, 12000), near, np.nextafter(near, 0), [0.0]])


REAL: dict[str, tuple[np.ndarray, Callable[[Any], Any]]] = {
    "sin": (_angles(), lambda x: x.sin()),
    "cos": (_angles(), lambda x: x.cos()),
    "tanh": (_spread(1e-300, 1e4, 10000), lambda x: x.tanh()),
    "cosh": (np.concatenate([_spread(1e-12, 1.0), np.linspace(0, 350, 4000)]), lambda x: x.cosh()),
    "sinh": (_spread(1e-300, 0.5, 10000), lambda x: x.sinh()),
    "exp": (np.concatenate([-_spread(1e-12, 700), _spread(1e-12, 700)]), lambda x: x.exp()),
    "expm1": (np.concatenate([-_spread(1e-300, 1e4), _spread(1e-12, 700)]), lambda x: x.expm1()),
    "log": (np.concatenate([_spread(1e-300, 1e300, 8000), 1 - _spread(1e-16, 0.5)]), lambda x: x.log()),
    "log1p": (
        np.concatenate([-_spread(1e-300, 0.5), _spread(1e-3, 1e300), -1 + _spread(1e-15, 0.5)]),
        lambda x: x.log1p(),
    ),
    "sqrt": (_spread(1e-300, 1e300, 10000), lambda x: x.sqrt()),
}


def _exceeds(found: complex, exact: Any) -> bool:
    """Whether a result is further off, relatively, than the model allows."""
    return not abs(flint.acb(complex(found)) - exact) <= FUNCTION_ERROR * abs(exact)


@pytest.mark.parametrize("name", REAL)
def test_numpy_functions_keep_the_relative_error_that_proofs_allow_them(name: str) -> None:
    arguments, exact = REAL[name]
    found = getattr(np, name)(arguments)
    apart = getattr(np, name)(np.repeat(arguments, 3)[::3])  # strided: another code path in NumPy
    with many_digits(BITS):
        for x, value, other in zip(arguments.tolist(), found.tolist(), apart.tolist(), strict=True):
            truth = flint.acb(exact(flint.arb(x)))
            assert not _exceeds(value, truth), f"{name}({x!r}) = {value!r}"
            assert value == other or not _exceeds(other, truth), f"{name}({x!r}) = {other!r} when strided"


def test_arctan2_keeps_the_relative_error_that_proofs_allow_it() -> None:
    angles = _angles()
    above, beside = _spread(1e-9, 1, len(angles)) * np.sin(angles), np.cos(angles)
    found = np.arctan2(above, beside)
    with many_digits(BITS):
        for y, x, value in zip(above.tolist(), beside.tolist(), found.tolist(), strict=True):
            assert not _exceeds(value, flint.acb(flint.arb.atan2(flint.arb(y), flint.arb(x))))


@pytest.mark.parametrize("name", ["exp", "log"])
def test_complex_functions_keep_their_error_relative_to_the_modulus(name: str) -> None:
    rng = np.random.default_rng(3)
    z = rng.uniform(-20, 2, 8000) + 1j * rng.uniform(-1e4, 1e4, 8000)
    if name == "log":  # as the Laplace transform takes it: away from 1, where a logarithm has no digits to keep
        z = z[np.abs(z - 1) > 0.1]
    found = getattr(np, name)(z)
    with many_digits(BITS):
        for point, value in zip(z.tolist(), found.tolist(), strict=True):
            assert not _exceeds(value, getattr(flint.acb(point), name)())


def test_the_model_is_not_so_loose_that_it_could_not_fail() -> None:
    """A function wrong in its fourteenth digit is found out."""
    with many_digits(BITS):
        truth = flint.acb(flint.arb(1.3).sin())
        assert not _exceeds(math.sin(1.3), truth)
        assert _exceeds(math.sin(1.3) * (1 + 1e-14), truth)


# --- the transform -----------------------------------------------------------------------------------------------


def transforms(counts: int = 1000) -> st.SearchStrategy[Transform]:
    """Any mix of responses, Laplace and Gaussian noises."""
    sizes = st.one_of(st.floats(1e-12, 1e-3), st.floats(1e-3, 5.0), st.floats(5.0, 400.0), st.sampled_from([0.1, 0.2]))
    repeats = st.one_of(st.just(1), st.integers(1, counts))
    items = st.dictionaries(sizes, repeats, max_size=6)
    return st.builds(
        lambda rr, laplace, gaussian: Transform(*_arrays(rr), *_arrays(laplace), gaussian),
        items,
        st.one_of(st.just({}), items),
        st.one_of(st.just(0.0), st.floats(1e-9, 10.0)),
    )


def _arrays(items: dict[float, int]) -> tuple[np.ndarray, np.ndarray]:
    values = sorted(items)
    return np.array(values, dtype=np.float64), np.array([float(items[v]) for v in values])


def log_transform(transform: Transform, z: Any) -> Any:
    """log M(z) as a sum of logarithms of balls; right up to multiples of 2 pi i."""
    total = flint.acb(0)
    for e, n in zip(transform.epsilons.tolist(), transform.weights.tolist(), strict=True):
        total += int(n) * (((z + 0.5) * e).cosh() / flint.acb(e / 2).cosh()).log()
    for e, n in zip(transform.laplace.tolist(), transform.laplace_counts.tolist(), strict=True):
        value = ((z + 1) * (z * e).exp() + z * (-(z + 1) * e).exp()) / (2 * z + 1)
        total += int(n) * value.log()
    return total + z * (z + 1) * transform.gaussian / 2


def _relative(transform: Transform, c: float, t: float) -> Any:
    """Phi(t) = M(c + i t) / M(c)."""
    return (log_transform(transform, flint.acb(c, t)) - log_transform(transform, flint.acb(c))).exp()


lines = st.one_of(st.floats(1e-6, 1.0), st.floats(1.0, 1e3))
heights = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1.0), st.floats(1.0, 1e5)), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=150)
@given(transforms(), lines, heights)
@example(Transform(np.array([0.1]), np.array([1000.0]), NONE, NONE), 1e-6, [math.pi * 5])  # cos vanishes
@example(Transform(NONE, NONE, np.array([1e-9]), np.array([5.0])), 0.5, [3.0, 1e9])
def test_phase_is_within_its_own_error_of_the_exact_transform(transform: Transform, c: float, t: list[float]) -> None:
    phase = transform.phase(c, np.array(t))
    with many_digits(400):
        for point, modulus, argument, error in zip(t, *(part.tolist() for part in phase), strict=True):
            if error > 1:
                continue  # says nothing, and claims nothing
            exact = _relative(transform, c, point)
            found = (flint.acb(modulus, argument)).exp()
            assert abs(found - exact) <= error * abs(exact) * (1 + 2.0**-20), (point, error)


@pytest.mark.slow
@settings(max_examples=60)
@given(transforms(counts=60), lines, st.floats(1e-4, 10.0), st.integers(0, 10**5))
def test_a_long_run_is_within_its_own_error_of_the_exact_transform(
    transform: Transform, c: float, step: float, first: int
) -> None:
    phase = transform.run(c, step, np.array([first]), 300)
    with many_digits(400):
        for n in (0, 1, 17, 255, 256, 299):
            modulus, argument, error = (float(part[n]) for part in phase)
            if error > 1:
                continue
            exact = _relative(transform, c, float((first + n) * np.float64(step)))
            found = (flint.acb(modulus, argument)).exp()
            assert abs(found - exact) <= error * abs(found), (n, error)


@pytest.mark.slow
@settings(max_examples=200)
@given(transforms(), st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.floats(1.0, 1e6)))
def test_cumulants_hold_the_exact_logarithm_and_its_derivatives(transform: Transform, c: float) -> None:
    found = transform.cumulants(c)
    with many_digits(600):
        exact = log_transform(transform, flint.acb(c)).real
        assert abs(exact - found.value) <= found.error
        if c > 1e-9:  # derivatives only steer, so a loose check by differences is enough
            h = flint.arb(c) / 2**60
            above, below = (log_transform(transform, flint.acb(c + s * h)).real for s in (1, -1))
            first, second = (above - below) / (2 * h), (above - 2 * exact + below) / h**2
            assert abs(first - found.first) <= 1e-9 * (1 + abs(first))
            assert abs(second - found.second) <= 1e-6 * (1 + abs(second) + found.first**2)


@pytest.mark.slow
@given(transforms())
@settings(max_examples=50)
def test_the_largest_loss_and_its_probability(transform: Transform) -> None:
    top, log_mass = transform.top()
    if transform.gaussian:
        assert (top, log_mass) == (math.inf, -math.inf)
        return
    pairs = [
        *zip(transform.epsilons, transform.weights, strict=True),
        *zip(transform.laplace, transform.laplace_counts, strict=True),
    ]
    assert top == pytest.approx(math.fsum(e * n for e, n in pairs), rel=1e-14)
    told = math.fsum(n * math.log1p(math.exp(-e)) for e, n in zip(transform.epsilons, transform.weights, strict=True))
    assert -log_mass == pytest.approx(told + math.log(2) * float(transform.laplace_counts.sum()), rel=1e-13)

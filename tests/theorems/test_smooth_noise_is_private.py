"""SmoothNoise and its two laws (beta_of_cauchy_noise, delta_of_laplace_noise) beside the definition of privacy."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from farthing.mechanisms.smooth_median import SmoothMedian, median_sensitivity_at
from farthing.mechanisms.smooth_noise import (
    SmoothNoise,
    beta_of_cauchy_noise,
    beta_of_laplace_noise,
    delta_of_laplace_noise,
)

WINDOW = 12_000
N = np.arange(-WINDOW, WINDOW + 1, dtype=np.float64)


def cauchy(centre: float, scale: float) -> np.ndarray:
    # Normalised by the closed form, so that what lies beyond the window is not missing from the constant.
    normaliser = math.pi * scale / math.tanh(math.pi * scale)
    return 1 / (1 + ((N - centre) / scale) ** 2) / normaliser


def laplace(centre: float, scale: float) -> np.ndarray:
    return np.exp(-np.abs(N - centre) / scale) * math.tanh(1 / (2 * scale))


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def pairs(beta: float) -> list[tuple[float, float, int]]:
    """Scales of neighbours and how far their centres may be apart: S, S', |f - f'| <= min(S, S')."""
    found = []
    for bound in (1.0, 1.3, 2.0, 7.5, 60.0):
        for ratio in (1.0, math.exp(beta / 2), math.exp(beta)):
            found += [(bound, bound * ratio, move) for move in (0, 1, math.floor(bound))]
            found += [(bound * ratio, bound, move) for move in (0, 1, math.floor(bound))]
    return found


def worst_cauchy_loss(beta: float, alpha: float) -> float:
    worst = 0.0
    for one, other, move in pairs(beta):
        loss = np.log(cauchy(0, one / alpha) / cauchy(move, other / alpha))
        worst = max(worst, float(np.abs(loss).max()))
    return worst


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
def test_cauchy_noise_stays_within_epsilon_and_comes_near(epsilon: float) -> None:
    beta = beta_of_cauchy_noise(epsilon)
    assert epsilon / 2 < beta <= epsilon
    worst = worst_cauchy_loss(beta, epsilon * 12 / 17)
    assert worst <= epsilon
    if epsilon <= 1:
        assert worst > 0.95 * epsilon


def test_the_distance_of_two_cauchy_laws_is_hyperbolic() -> None:
    """The closed form of the proof beside the largest ratio on a fine grid of reals."""
    n = np.linspace(-400, 400, 400_001)
    for s, other, move in ((1.0, 1.0, 0.7), (3.0, 2.0, 2.0), (5.0, 9.0, 4.0), (2.0, 2.5, 0.0)):
        ratio = s / (s**2 + n**2) * (other**2 + (n - move) ** 2) / other
        distance = math.acosh((s / other + other / s + move**2 / (s * other)) / 2)
        assert math.log(max(ratio.max(), 1 / ratio.min())) <= distance + 1e-12
        assert math.log(max(ratio.max(), 1 / ratio.min())) == pytest.approx(distance, rel=1e-3)


@pytest.mark.parametrize(("faster", "less"), [(1.1, 1.0), (1.0, 1 / 0.9)])
def test_too_fast_a_scale_or_too_little_cauchy_noise_is_caught(faster: float, less: float) -> None:
    """Power: ten percent on either side passes epsilon."""
    assert worst_cauchy_loss(faster * beta_of_cauchy_noise(1.0), less * 12 / 17) > 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-3), (4.0, 1e-9), (1.0, 0.05), (12.0, 1e-4)])
def test_laplace_noise_stays_within_delta_and_comes_near(epsilon: float, delta: float) -> None:
    beta = beta_of_laplace_noise(epsilon, delta)
    alpha = epsilon / 2
    assert delta * 0.999 < delta_of_laplace_noise(epsilon, beta) <= delta or math.expm1(beta) > 0.999 * alpha
    losses = []
    for one, other, move in pairs(beta):
        p, q = laplace(0, one / alpha), laplace(move, other / alpha)
        losses.append(hockey_stick(p, q, epsilon))
        losses.append(hockey_stick(p[::-1], q, epsilon))
    assert max(losses) <= delta * (1 + 1e-9)
    if delta <= 1e-3 and epsilon <= 4:
        assert max(losses) > 0.2 * delta


@pytest.mark.parametrize("wrong", [0.9, "fast"])
def test_less_laplace_noise_or_a_faster_scale_is_caught(wrong: object) -> None:
    """Power: a scale of 0.9, or a beta a tenth too large, passes delta."""
    epsilon, delta = 1.0, 1e-6
    beta = beta_of_laplace_noise(epsilon, delta) * (1.1 if wrong == "fast" else 1)
    alpha = epsilon / 2 / (wrong if isinstance(wrong, float) else 1)
    bound = 100.0
    p = laplace(0, bound / alpha)
    q = laplace(math.floor(bound * math.exp(-beta)), bound * math.exp(-beta) / alpha)
    assert hockey_stick(p, q, epsilon) > delta


def test_beta_of_laplace_noise_beats_the_textbook_and_is_monotone() -> None:
    for epsilon, delta in itertools.product((0.1, 1.0, 5.0), (1e-3, 1e-6, 1e-12)):
        assert beta_of_laplace_noise(epsilon, delta) > epsilon / (2 * math.log(2 / delta))
    betas = [beta_of_laplace_noise(1.0, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3)]
    assert betas == sorted(betas)
    assert [beta_of_cauchy_noise(e) for e in (0.1, 1, 10, 50)] == sorted(
        beta_of_cauchy_noise(e) for e in (0.1, 1, 10, 50)
    )
    assert delta_of_laplace_noise(1.0, 5.0) == 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("epsilon", "largest"), [(1.0, 10**6), (0.05, 1000), (30.0, 2**40), (0.002, 10)])
def test_the_ladder_rises_no_faster_than_beta(epsilon: float, largest: int, delta: float) -> None:
    noise = SmoothNoise(epsilon, delta, largest)
    ladder, step = noise._ladder, noise.rungs_per_step
    assert ladder[0] == 2**64 and ladder[-1] == largest * 2**64
    assert all(a < b for a, b in itertools.pairwise(ladder))
    limit = Fraction(math.exp(noise.beta)) * (1 + Fraction(1, 2**50))
    assert all(Fraction(b, a) <= limit for a, b in zip(ladder, ladder[step:], strict=False))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_bound_is_the_smooth_sensitivity_or_a_little_more(delta: float) -> None:
    noise = SmoothNoise(0.7, delta, 5000)
    rng, beta = random.Random(5), noise.beta
    for _ in range(60):
        rises = sorted(rng.choice([0, 1, 3, 50, 700, 5000]) for _ in range(400))
        at = rises.__getitem__
        smooth = max(math.exp(-beta * t) * at(t) for t in range(400))
        bound = float(noise.bound_at(noise.level(lambda t, rises=rises: rises[min(t, 399)])))  # type: ignore[misc]
        wanted = max(smooth, 1.0)
        assert wanted * (1 - 1e-12) <= bound <= min(5000.0, wanted * math.exp(beta / 8) * (1 + 1e-12))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (2.0, 0.0), (1.0, 0.01), (3.0, 1e-4)])
def test_no_neighbours_on_a_small_domain_tell_more_than_claimed(relation: str, epsilon: float, delta: float) -> None:
    """Every data set of up to four values in 0..5, every neighbour, the whole distribution before clamping."""
    top = 5
    mechanism = SmoothMedian(epsilon, 0, top, delta, relation)  # type: ignore[arg-type]
    noise = mechanism._noise
    distribution_of = cauchy if delta == 0 else laplace
    cut = slice(WINDOW - 600, WINDOW + 601)
    distributions = {}
    for size in range(5):
        for values in itertools.combinations_with_replacement(range(top + 1), size):
            if relation == "replace" and size != 3:
                continue
            at = median_sensitivity_at(np.array(values, dtype=np.int64), 0, top, mechanism.neighbours)
            scale = float(noise.scale_of(noise.bound_at(noise.level(at))))
            centre = values[(size + 1) // 2 - 1] if size else 0
            distributions[values] = distribution_of(centre, scale)[cut]
    scales = set()
    for values, p in distributions.items():
        for place in range(len(values)):
            rest = values[:place] + values[place + 1 :]
            others = [rest] if relation == "add-remove" else [tuple(sorted((*rest, v))) for v in range(top + 1)]
            for other in others:
                q = distributions[other]
                if delta == 0:
                    assert np.abs(np.log(p / q)).max() <= epsilon
                else:
                    assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= delta
        scales.add(round(float(p.max()), 12))
    assert len(scales) > 1  # the scale does follow the data

"""WeightedKeySelection beside the definition: every set of keys, every way in which one unit joins, both directions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from farthing.mechanisms.key_selection import KeySelection
from farthing.mechanisms.weighted_keys import WeightedKeySelection, _length, selection_for


def keep_probability(selection: WeightedKeySelection, total: int) -> float:
    """P(total + noise >= threshold), by adding up masses one by one."""
    if not total:
        return 0.0
    sigma = math.sqrt(selection._noise.variance)
    reach = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    masses = np.exp(-(reach.astype(float) ** 2) / (2 * sigma**2))
    return float(masses[reach >= selection.threshold - total].sum() / masses.sum())


def hockey_stick(p: list[float], q: list[float], epsilon: float) -> float:
    """Over all sets of keys, each decided by itself: sum of max(0, P - e^epsilon Q)."""
    total = 0.0
    for kept in itertools.product((False, True), repeat=len(p)):
        first = math.prod(a if k else 1 - a for a, k in zip(p, kept, strict=True))
        second = math.prod(b if k else 1 - b for b, k in zip(q, kept, strict=True))
        total += max(0.0, first - math.exp(epsilon) * second)
    return total


def worst_set(selection: WeightedKeySelection, priced: WeightedKeySelection, starts: list[int]) -> float:
    """The largest delta of the set of kept keys when one unit of `selection`'s weights joins up to k of three keys."""
    worst = 0.0
    for start in itertools.product(starts, repeat=3):
        before = [keep_probability(selection, total) for total in start]
        for joined in itertools.product((0, 1), repeat=3):
            t = sum(joined)
            if not 1 <= t <= len(selection.weights):
                continue
            weight = selection.weights[t - 1]
            after = [keep_probability(selection, a + more * weight) for a, more in zip(start, joined, strict=True)]
            for one, other in ((before, after), (after, before)):
                worst = max(worst, hockey_stick(one, other, priced.epsilon))
    return worst


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_no_unit_shows_in_the_set_of_keys(keys: int) -> None:
    selection = WeightedKeySelection(1.5, 0.02, keys)
    near = selection.threshold // 2
    assert worst_set(selection, selection, [0, near, selection.threshold, 2 * near + near]) <= 0.02


def test_a_selection_that_forgets_the_cap_fails_the_same_check() -> None:
    """Power: one unit in three keys with full weight in each, where one was priced."""

    class Careless(WeightedKeySelection):
        @property
        def weights(self) -> tuple[int, ...]:  # type: ignore[override]
            return (_length(1),) * 3

    careless = Careless(1.5, 0.02, 1)
    assert worst_set(careless, careless, [0, careless.threshold]) > 0.025


@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [(1.0, 1e-6, 1), (1.0, 1e-6, 4), (0.1, 1e-9, 7), (3.0, 0.05, 2), (8.0, 1e-4, 30)]
)
def test_noise_and_threshold_meet_what_the_proof_asks_for_and_hardly_more(
    epsilon: float, delta: float, keys: int
) -> None:
    """(a) by SciPy's normal distribution, (b) by adding up masses; ten percent less noise would be too little."""
    selection = WeightedKeySelection(epsilon, delta, keys)

    def stated(sigma: float, threshold: float) -> float:
        mu = _length(keys) / sigma
        apart = stats.norm.cdf(mu / 2 - epsilon / mu)
        gaussian = apart - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        crossing = max(
            t * stats.norm.sf((threshold - weight - 0.5) / sigma) for t, weight in enumerate(selection.weights, 1)
        )
        return float(gaussian + crossing / (1 - crossing))

    sigma = math.sqrt(selection._noise.variance)
    assert 0.9 * delta <= stated(sigma, selection.threshold) <= delta
    assert stated(0.9 * sigma, selection.threshold) > delta
    assert stated(sigma, 0.97 * selection.threshold) > delta


@pytest.mark.slow
def test_weights_of_one_unit_have_at_most_the_length_that_is_priced() -> None:
    for keys in (1, 2, 3, 10, 1000):
        selection = WeightedKeySelection(1.0, 1e-6, keys)
        assert all(t * weight**2 <= _length(keys) ** 2 for t, weight in enumerate(selection.weights, 1))
        assert all(t * (weight + 1) ** 2 > _length(keys) ** 2 for t, weight in enumerate(selection.weights, 1))


def test_keep_probabilities_are_those_of_the_noise() -> None:
    selection = WeightedKeySelection(1.0, 1e-3, 3)
    for units in (1, 5, 12, 17, 30, 60):
        for keys in (1, 3):
            exact = keep_probability(selection, units * selection.weights[keys - 1])
            assert selection.keep_probability(units, keys) == pytest.approx(exact, rel=1e-6, abs=1e-12)
    for probability in (0.01, 0.5, 0.95):
        least = selection.needed(probability)
        assert selection.keep_probability(least) >= probability > selection.keep_probability(least - 1)


def test_the_vector_of_coins_throws_every_coin_with_its_own_probability() -> None:
    """The words at both sides of p, and the one where further bits decide, are tried instead of drawn."""
    selection = KeySelection(1.0, 1e-3)
    table = selection._distribution
    assert isinstance(table, tuple)

    class Words:
        def __init__(self, *words: int) -> None:
            self.left = b"".join(word.to_bytes(8, "little") for word in words)

        def take(self, count: int, /) -> bytes:
            head, self.left = self.left[:count], self.left[count:]
            return head.ljust(count, b"\0")

    for units in range(1, len(table) - 1):
        limit = math.floor(table[units] * 2**64)
        assert selection._kept([units], Words(limit - 1)).tolist() == [True]
        assert selection._kept([units], Words(limit + 1)).tolist() == [False]
        rest = table[units] * 2**64 - limit
        assert selection._kept([units], Words(limit)).tolist() == [rest > 0]  # further bits that are all 0
    last = 2**64 - 1
    assert selection._kept([0, 10**9, len(table) - 1], Words(0, last, last)).tolist() == [False, True, True]


@pytest.mark.slow
def test_the_selection_in_use_needs_the_fewest_units() -> None:
    for keys in (1, 2, 4, 40):
        chosen = selection_for(1.0, 1e-6, keys).needed(0.95)
        both = KeySelection(1.0, 1e-6, keys).needed(0.95), WeightedKeySelection(1.0, 1e-6, keys).needed(0.95)
        assert chosen == min(both)
    assert selection_for(1e-3, 1e-9, 5).needed(0.95) > 0  # too small for a table of probabilities
    assert Fraction(selection_for(1.0, 1e-6, 5).epsilon) == 1

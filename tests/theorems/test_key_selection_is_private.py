"""KeySelection beside the definition: every pair of neighbouring counts, every outcome, both directions.

Covers optimal_keep_probabilities, truncated_geometric_threshold and laplace_threshold.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import flint
import pytest

from farthing.mechanisms import key_selection
from farthing.mechanisms.key_selection import (
    KeepDistribution,
    KeySelection,
    delta_per_key,
    laplace_threshold,
    optimal_keep_probabilities,
    truncated_geometric_threshold,
)
from farthing.numerics.bounds import precision

Distribution = dict[object, flint.arb]


def ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def hockey_stick(p: Distribution, q: Distribution, epsilon: Fraction) -> flint.arb:
    """sum over outcomes of max(0, P - e^epsilon Q): the definition of delta at epsilon."""
    growth = ball(epsilon).exp()
    total = flint.arb(0)
    for outcome in p.keys() | q.keys():
        difference = p.get(outcome, flint.arb(0)) - growth * q.get(outcome, flint.arb(0))
        if not difference <= 0:
            total += difference
    return total


def distribution_of_counts(distribution: KeepDistribution, units: int, window: int = 400) -> Distribution:
    """The noisy count or silence, by adding up masses e^(-rate |j|) one by one."""
    reach = window if distribution.reach is None else distribution.reach
    masses = {j: (-ball(distribution.rate) * abs(j)).exp() for j in range(-reach, reach + 1)}
    total = sum(masses.values(), flint.arb(0))
    found: Distribution = {}
    for noise, mass in masses.items():
        noisy = units + noise
        outcome = noisy if units and noisy >= distribution.threshold else "dropped"
        found[outcome] = found.get(outcome, flint.arb(0)) + mass / total
    return found


CASES = [
    (Fraction(1), Fraction(1, 1000)),
    (Fraction(1, 2), Fraction(1, 10**6)),
    (Fraction(3), Fraction(1, 5)),
    (Fraction(1, 10), Fraction(1, 50)),
    (Fraction(20), Fraction(1, 10**12)),
    (Fraction(1, 4), Fraction(3, 4)),
]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_optimal_keep_probabilities_are_private_and_reach_delta(epsilon: Fraction, delta: Fraction) -> None:
    kept = optimal_keep_probabilities(epsilon, delta)
    worst = flint.arb(0)
    with precision(300):
        for a, b in itertools.pairwise(kept):
            distributions: list[Distribution] = [{"kept": ball(p), "dropped": ball(1 - p)} for p in (a, b)]
            for p, q in (distributions, distributions[::-1]):
                found = hockey_stick(p, q, epsilon)
                assert found <= ball(delta)
                worst = worst.max(found)
        assert worst >= ball(delta) * (1 - flint.arb(2) ** -40)
    assert kept[0] == 0 and kept[-1] == 1
    assert all(a < b for a, b in itertools.pairwise(kept))


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_no_probability_can_be_raised(epsilon: Fraction, delta: Fraction) -> None:
    """Power: one part in 2^30 of delta more at any count, and a neighbour tells."""
    kept = optimal_keep_probabilities(epsilon, delta)
    with precision(300):
        for n in range(1, min(len(kept) - 1, 60)):
            raised = kept[n] + delta / 2**30
            pairs = [
                (
                    {"kept": ball(raised), "dropped": ball(1 - raised)},
                    {"kept": ball(p), "dropped": ball(1 - p)},
                )
                for p in (kept[n - 1],)
            ]
            assert any(
                hockey_stick(p, q, epsilon) > ball(delta) or hockey_stick(q, p, epsilon) > ball(delta) for p, q in pairs
            )


@pytest.mark.parametrize(("epsilon", "delta"), CASES[:5])
def test_the_recurrence_meets_the_closed_form(epsilon: Fraction, delta: Fraction) -> None:
    """Desfontaines et al., Theorem 2: a geometric rise up to a crossing, then its mirror image."""
    kept = optimal_keep_probabilities(epsilon, delta)
    with precision(300):
        e, d = ball(epsilon).exp(), ball(delta)
        crossing = ((e + 2 * d - 1) / ((e + 1) * d)).log() / ball(epsilon)
        first = 1 + math.floor(float(crossing))
        base = (e**first - 1) / (e - 1) * d
        for n, p in enumerate(kept):
            if n <= first:
                exact = (e**n - 1) / (e - 1) * d
            else:
                m = n - first
                exact = (1 - e**-m) * (1 + d / (e - 1)) + e**-m * base
            exact = exact.min(flint.arb(1))
            assert ball(p) <= exact + flint.arb(2) ** -200
            assert ball(p) >= exact * (1 - (n + 1) * flint.arb(2) ** -50)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_truncated_geometric_threshold_is_private_and_the_least(epsilon: Fraction, delta: Fraction) -> None:
    distribution = truncated_geometric_threshold(epsilon, delta)
    with precision(300):
        assert _worst(distribution, epsilon) <= ball(delta)
        if distribution.threshold > 1:
            off_by_one = KeepDistribution(
                epsilon, distribution.threshold - 1, distribution.reach - 1 if distribution.reach else None
            )
            assert _worst(off_by_one, epsilon) > ball(delta)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_laplace_threshold_is_private_and_the_least(epsilon: Fraction, delta: Fraction) -> None:
    distribution = laplace_threshold(epsilon, delta)
    with precision(300):
        assert _worst(distribution, epsilon) <= ball(delta)
        if distribution.threshold > 1:
            assert _worst(KeepDistribution(epsilon, distribution.threshold - 1), epsilon) > ball(delta)


def _worst(distribution: KeepDistribution, epsilon: Fraction) -> flint.arb:
    worst = flint.arb(0)
    for units in (0, 1, 2, distribution.threshold, distribution.threshold + 5):
        a, b = distribution_of_counts(distribution, units), distribution_of_counts(distribution, units + 1)
        # The window of an endless distribution cuts one value off each side; what it cuts is far below every delta
        # here.
        slack = flint.arb(0) if distribution.reach is not None else 2 * (-ball(epsilon) * 399).exp()
        worst = worst.max(hockey_stick(a, b, epsilon) - slack).max(hockey_stick(b, a, epsilon) - slack)
    return worst


@pytest.mark.parametrize("keys", [1, 2, 3, 7])
@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.75])
def test_delta_per_key_adds_up_to_delta_and_hardly_less(delta: float, keys: int) -> None:
    share = delta_per_key(delta, keys)
    total = 1 - (1 - share) ** keys
    assert Fraction(delta) * (1 - Fraction(1, 2**50)) <= total <= Fraction(delta)


def distribution_of_the_code(
    selection: KeySelection, counts: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> Distribution:
    """What KeySelection really returns, over all answers of the coins and noises it asks for."""
    distribution: Distribution = {}
    probabilities: list[Fraction] = []
    answers: tuple[bool, ...] = ()

    def coin(probability: Fraction, bits: object) -> bool:
        probabilities.append(probability)
        return answers[len(probabilities) - 1]

    monkeypatch.setattr(key_selection, "bernoulli", coin)
    present = sum(1 for count in counts.values() if count)
    for answers in itertools.product((False, True), repeat=present):
        probabilities.clear()
        kept = selection._answer(counts, _Silent())
        weight = math.prod(p if a else 1 - p for p, a in zip(probabilities, answers, strict=True))
        distribution[kept] = distribution.get(kept, flint.arb(0)) + ball(Fraction(weight))
    return distribution


class _Silent:
    def take(self, count: int, /) -> bytes:
        return bytes(count)


@pytest.mark.parametrize("keys_per_unit", [1, 2, 3])
def test_no_unit_shows_in_the_set_of_keys(keys_per_unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways in which one unit joins up to k of three keys; the claim is met, and nearly reached."""
    epsilon, delta = 1.5, 0.02
    selection = KeySelection(epsilon, delta, max_keys_per_unit=keys_per_unit)
    worst = flint.arb(0)
    with precision(200):
        for start in itertools.product(range(0, 5, 2), repeat=3):
            p = distribution_of_the_code(selection, dict(zip("abc", start, strict=True)), monkeypatch)
            for joined in itertools.product((0, 1), repeat=3):
                if not 1 <= sum(joined) <= keys_per_unit:
                    continue
                after = {key: n + more for key, n, more in zip("abc", start, joined, strict=True)}
                q = distribution_of_the_code(selection, after, monkeypatch)
                for one, other in ((p, q), (q, p)):
                    worst = worst.max(hockey_stick(one, other, Fraction(epsilon)))
        assert worst <= flint.arb(delta) + flint.arb(2) ** -150
        assert worst >= flint.arb(delta) * 0.999


def test_a_selection_that_forgets_k_fails_the_same_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: priced for one key per unit, a unit in three keys leaks three times as much."""
    careless = KeySelection(1.5, 0.02)
    with precision(200):
        p = distribution_of_the_code(careless, {"a": 0, "b": 0, "c": 0}, monkeypatch)
        q = distribution_of_the_code(careless, {"a": 1, "b": 1, "c": 1}, monkeypatch)
        assert hockey_stick(q, p, Fraction(3, 2)) > flint.arb(0.05)


def test_noisy_counts_of_the_code_have_the_law_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    selection = KeySelection(1.0, 0.01, with_counts=True)
    distribution = truncated_geometric_threshold(Fraction(1), Fraction(0.01))
    assert distribution.reach is not None
    for noise in range(-distribution.reach, distribution.reach + 1):
        # A draw beyond the reach comes first: it must be thrown away, not clamped.
        script = iter([distribution.reach + 1, -distribution.reach - 7, noise])
        monkeypatch.setattr(key_selection, "discrete_laplace", lambda scale, bits, s=script: next(s))
        expected = {"a": 3 + noise} if 3 + noise >= distribution.threshold else {}
        assert selection._answer({"a": 3}, _Silent()) == expected

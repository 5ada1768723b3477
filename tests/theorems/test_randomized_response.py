"""`RandomizedResponse`: its law, its epsilon, its estimate and the coverage of its `interval`, by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from farthing.accounting.hockey_stick import hockey_stick_divergence
from farthing.mechanisms.randomized_response import Estimate, RandomizedResponse, _coins, estimated_share
from theorems.selection_twins import Seeded, counted, number, rejected


def distribution(epsilon: mpmath.mpf, k: int, value: int) -> list[mpmath.mpf]:
    weights = [mpmath.exp(epsilon) if answer == value else mpmath.mpf(1) for answer in range(k)]
    return [weight / mpmath.fsum(weights) for weight in weights]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 2), (1.0, 2), (1.0, 3), (4.0, 3), (2.5, 10)])
def test_the_law_is_exact_and_the_check_would_notice_a_tenth(epsilon: float, k: int) -> None:
    mechanism = RandomizedResponse(epsilon, tuple(range(k)))
    draws = 5_000_000 if epsilon < 1 else 60_000
    answers = mechanism._answers(np.full(draws, k - 1), Seeded(1))
    observed = dict(enumerate(np.bincount(answers, minlength=k).tolist()))
    distributions = [dict(enumerate(distribution(number(epsilon) * tenths / 10, k, k - 1))) for tenths in (10, 9, 11)]
    assert [rejected(observed, each) for each in distributions] == [False, True, True]


@pytest.mark.slow
def test_one_answer_has_the_law_of_many() -> None:
    mechanism = RandomizedResponse(1.0, ("a", "b", "c"))
    source = Seeded(2)
    observed = counted(lambda: mechanism._answer("b", source), 8_000)
    a, b, c = distribution(mpmath.mpf(1), 3, 1)
    assert not rejected(observed, {"a": a, "b": b, "c": c})


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_loss_is_epsilon_and_the_event_lies_above_the_curve(k: int) -> None:
    mechanism = RandomizedResponse(1.5, tuple(range(k)))
    here, there = distribution(mpmath.mpf(1.5), k, 0), distribution(mpmath.mpf(1.5), k, 1)
    assert max(mpmath.log(p / q) for p, q in zip(here, there, strict=True)) <= 1.5 + 1e-30
    for x in (-2.0, -0.5, 0.0, 0.7, 1.4, 1.5):
        delta = mpmath.fsum(max(0, p - mpmath.exp(x) * q) for p, q in zip(here, there, strict=True))
        bound = hockey_stick_divergence(mechanism.event, x)
        assert delta <= bound.upper + 1e-12
        if k == 2:
            assert delta >= bound.lower - 1e-12


def test_more_categories_lose_their_stated_share() -> None:
    """The answer is one of the two values with probability (e^epsilon + 1) / (e^epsilon + k - 1)."""
    here, there = distribution(mpmath.mpf(2), 6, 0), distribution(mpmath.mpf(2), 6, 1)
    assert abs(here[0] + here[1] - (mpmath.exp(2) + 1) / (mpmath.exp(2) + 5)) < 1e-30
    assert abs(mpmath.log(here[0] / there[0]) - 2) < 1e-30
    assert all(here[j] == there[j] for j in range(2, 6))


@pytest.mark.parametrize("probability", ["3/4", "2/3", "999/1000"])
@pytest.mark.parametrize("k", [2, 3])
def test_warner_goes_both_ways(probability: str, k: int) -> None:
    mechanism = RandomizedResponse.warner(probability, tuple(range(k)))
    exact = Fraction(probability)
    odds = exact * (k - 1) / (1 - exact)
    with mpmath.workdps(60):
        true = mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
        assert true <= mpmath.mpf(mechanism.epsilon) <= true * (1 + mpmath.mpf(2) ** -51)
    assert mechanism.truth_probability == float(exact)
    assert RandomizedResponse(mechanism.epsilon, tuple(range(k))).truth_probability == pytest.approx(float(exact))
    answers = mechanism._answers(np.zeros(40_000, dtype=int), Seeded(3))
    assert not rejected(
        {True: int((answers == 0).sum()), False: int((answers != 0).sum())}, {True: exact, False: 1 - exact}
    )


class Scripted:
    def __init__(self, *words: int) -> None:
        self._bytes = b"".join(word.to_bytes(8, "little") for word in words)

    def take(self, count: int, /) -> bytes:
        taken, self._bytes = self._bytes[:count], self._bytes[count:]
        assert len(taken) == count
        return taken


def test_equal_first_bits_are_settled_by_the_next() -> None:
    """1/3 is 0.0101...: the first 64 bits of the draw agree with it, so the next 64 decide."""
    head = int(Fraction(1, 3) * 2**64)
    for following, answer in ((head - 1, True), (head + 1, False)):
        assert _coins(1, lambda _: Fraction(1, 3), Scripted(head, following)).tolist() == [answer]
    assert _coins(1, lambda _: Fraction(1, 3), Scripted(head, head, 0)).tolist() == [True]
    assert _coins(2, lambda _: Fraction(1, 3), Scripted(head - 1, head + 1)).tolist() == [True, False]
    # A half is 0.1000...: a draw that begins so is not below it.
    assert _coins(1, lambda _: Fraction(1, 2), Scripted(2**63, 0, 1)).tolist() == [False]


def test_the_bits_of_the_truth_are_those_of_the_exact_number() -> None:
    mechanism = RandomizedResponse(0.3, (0, 1, 2))
    with mpmath.workdps(120):
        exact = 1 / (1 + 2 * mpmath.exp(-number(0.3)))
        for width in (64, 128, 256):
            assert int(mechanism._truth(width) * 2**width) == int(mpmath.floor(exact * mpmath.mpf(2) ** width))


@pytest.mark.parametrize("k", [2, 4])
def test_the_estimate_is_unbiased_and_its_variance_is_the_one_stated(k: int) -> None:
    """Over all counts of n answers, weighted by their binomial chance; in rational numbers."""
    mechanism = RandomizedResponse.warner("7/10", tuple(range(k)))
    truth, lie, n, share = Fraction(7, 10), Fraction(3, 10) / (k - 1), 6, Fraction(1, 3)
    hit = lie + share * (truth - lie)
    chances = [math.comb(n, x) * hit**x * (1 - hit) ** (n - x) for x in range(n + 1)]
    values = [(Fraction(x, n) - lie) / (truth - lie) for x in range(n + 1)]
    mean = sum(p * v for p, v in zip(chances, values, strict=True))
    variance = sum(p * (v - mean) ** 2 for p, v in zip(chances, values, strict=True))
    assert mean == share
    assert mechanism.variance(1 / 3, n) == pytest.approx(float(variance), rel=1e-12)
    found = [estimated_share(x, n, truth, lie) for x in range(n + 1)]
    assert [e.value for e in found] == pytest.approx([float(v) for v in values])
    squared = sum(float(p) * e.standard_error**2 for p, e in zip(chances, found, strict=True))
    assert squared == pytest.approx(float(variance), rel=1e-12)  # the squared standard error is unbiased too


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_covers_in_the_population_and_among_those_asked(confidence: float) -> None:
    truth, lie = Fraction(3, 4), Fraction(1, 4)
    for n in (2, 7, 20):
        held = [estimated_share(x, n, truth, lie).interval(confidence) for x in range(n + 1)]
        for share in np.linspace(0, 1, 41):
            chance = stats.binom.pmf(range(n + 1), n, 0.25 + 0.5 * share)
            covered = sum(p for p, (low, high) in zip(chance, held, strict=True) if low <= share <= high)
            assert covered >= confidence - 1e-9
        for members in range(n + 1):
            chance = np.convolve(
                stats.binom.pmf(range(members + 1), members, 0.75),
                stats.binom.pmf(range(n - members + 1), n - members, 0.25),
            )
            covered = sum(p for p, (low, high) in zip(chance, held, strict=True) if low <= members / n <= high)
            assert covered >= confidence - 1e-9


def test_intervals_narrow_with_answers_and_widen_with_confidence() -> None:
    mechanism = RandomizedResponse(1.0)
    few, many = (mechanism.proportion([0, 1, 1, 1] * times, 1) for times in (10, 1000))
    assert isinstance(few, Estimate)
    assert few.value == pytest.approx(many.value)
    assert np.ptp(many.interval(0.95)) < np.ptp(few.interval(0.95)) < np.ptp(few.interval(0.999))
    assert few.standard_error == pytest.approx(10 * many.standard_error, rel=0.02)
    assert mechanism.proportion([1], 1).standard_error == math.inf
    assert mechanism.proportion([1], 1).interval(0.9)[1] == 1.0


def test_a_survey_is_recovered_within_its_interval() -> None:
    mechanism = RandomizedResponse(1.0, ("never", "once", "often"))
    truth = np.array(["never"] * 50_000 + ["once"] * 30_000 + ["often"] * 20_000)
    reports = mechanism._answers(truth, Seeded(4))
    for category, share in (("never", 0.5), ("once", 0.3), ("often", 0.2)):
        found = mechanism.proportion(reports, category)
        low, high = found.interval(0.999999)
        assert low <= share <= high
        assert abs(found.value - share) < 6 * found.standard_error < 0.05

"""`least_gap` and `steps_lost`: how far below the best a choice may be, against all score lists."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import pytest

from farthing.mechanisms.exponential import ExponentialMechanism, TopK
from farthing.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax, steps_lost
from farthing.mechanisms.selection_scores import least_gap
from theorems.selection_twins import (
    exponential_distribution,
    noisy_max_distribution,
    permute_and_flip_distribution,
    top_k_distribution,
)


def _worst(distribution, candidates: int, rate: Fraction, lost: int):  # type: ignore[no-untyped-def]
    """The largest chance, over all scores, of losing more than `lost` steps."""
    return max(
        mpmath.fsum(
            p for p, gap in zip(distribution([-g for g in gaps], rate), gaps, strict=True) if gap - min(gaps) > lost
        )
        for gaps in product(range(lost + 3), repeat=candidates)
        if min(gaps) == 0
    )


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    ("mechanism", "distribution"),
    [
        (ExponentialMechanism(2.0), exponential_distribution),
        (PermuteAndFlip(2.0), permute_and_flip_distribution),
    ],
)
def test_the_error_holds_for_all_scores_and_is_the_smallest(mechanism, distribution, confidence: float) -> None:  # type: ignore[no-untyped-def]
    error = int(mechanism.error(confidence, 3))
    assert _worst(distribution, 3, mechanism.rate, error) <= 1 - Fraction(confidence) + Fraction(1, 10**15)
    assert error == 0 or _worst(distribution, 3, mechanism.rate, error - 1) > 1 - confidence


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_the_error_of_noisy_max_holds_for_all_scores_and_is_at_most_two_above(confidence: float) -> None:
    mechanism = ReportNoisyMax(2.0)
    error = int(mechanism.error(confidence, 3))

    def distribution(scores: list[int], rate: Fraction) -> list[Fraction]:
        return noisy_max_distribution(scores, Fraction(float(mpmath.exp(-float(rate)))))

    def chance(lost: int) -> Fraction:
        return max(
            sum(p for p, gap in zip(distribution([-g for g in gaps], mechanism.rate), gaps, strict=True) if gap > lost)
            for gaps in product(range(lost + 3), repeat=3)
            if min(gaps) == 0
        )

    assert chance(error) <= 1 - confidence
    assert error < 2 or chance(error - 2) > 1 - confidence


def test_the_error_of_the_top_holds_for_all_scores() -> None:
    mechanism = TopK(2, 8.0)
    error = int(mechanism.error(0.8, 3))
    for scores in product(range(error + 3), repeat=3):
        bar = sorted(scores)[-2]
        lost = sum(
            p
            for picks, p in top_k_distribution(list(scores), mechanism.rate, 2).items()
            if any(scores[pick] < bar - error for pick in picks)
        )
        assert lost <= 0.2


def test_the_gap_is_sharper_than_the_usual_bound_and_rounded_up() -> None:
    rate, confidence = Fraction(1, 2), Fraction(19, 20)
    gap = least_gap(rate, 99, confidence)
    assert gap < mpmath.log(100 * 20) / 0.5
    with mpmath.workdps(60):
        exact = mpmath.log(99 * 19) * 2
        assert 0 <= mpmath.mpf(gap.numerator) / gap.denominator - exact < 1e-15


def test_the_edges_of_the_error() -> None:
    assert least_gap(Fraction(1), 0, Fraction(1, 2)) == 0
    assert least_gap(Fraction(1), 1, Fraction(1, 2)) == 0
    assert steps_lost(Fraction(1), 1, Fraction(99, 100)) == 0
    for make in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax):
        assert make(1.0).error(0.999, 1) == 0
        errors = [make(1.0).error(confidence, 1000) for confidence in (0.5, 0.9, 0.99, 1 - 1e-12)]
        assert errors == sorted(errors) and errors[0] < errors[-1]
        assert make(0.5).error(0.9, 1000) > make(1.0).error(0.9, 1000)
        assert make(1.0).error(0.9, 10**9) > make(1.0).error(0.9, 10**3)
        assert make(1.0, 0.5, grid=0.5).error(0.9, 100) == 0.5 * (make(1.0).error(0.9, 100) + 1)

"""`Quantile`: the sensitivity of its losses, its distribution and its epsilon, by enumeration of small columns."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations_with_replacement

import mpmath
import numpy as np
import pytest

from farthing.mechanisms.quantiles import Quantile, decimal
from theorems.selection_twins import (
    SLACK,
    Seeded,
    counted,
    exponential_distribution,
    log_ratios,
    number,
    rejected,
)

POINTS = range(4)


def loss(rows: Iterable[int], point: int, q: Fraction) -> Fraction:
    rows = list(rows)
    below, upto, wanted = sum(x < point for x in rows), sum(x <= point for x in rows), q * len(rows)
    return max(below - wanted, wanted - upto, Fraction(0))


def quantile_distribution(rows: Iterable[int], q: Fraction, rate: Fraction, points: Iterable[int]) -> list[mpmath.mpf]:
    rows, scale = list(rows), q.denominator
    return exponential_distribution([-int(loss(rows, y, q) * scale) for y in points], rate / scale)


def columns(most: int) -> list[tuple[int, ...]]:
    return [rows for n in range(most + 1) for rows in combinations_with_replacement(POINTS, n)]


def replaced(rows: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    for place in range(len(rows)):
        for other in POINTS:
            yield (*rows[:place], other, *rows[place + 1 :])


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.75, 1.0])
def test_no_neighbours_exceed_epsilon_and_the_range_is_epsilon(probability: float) -> None:
    q, mechanism = decimal(probability), Quantile(probability, 0.8, 0, 3, 1)
    most, widest = 0, 0
    for rows in columns(4):
        distribution = quantile_distribution(rows, q, mechanism.rate, POINTS)
        for joining in POINTS:
            losses = log_ratios(distribution, quantile_distribution((*rows, joining), q, mechanism.rate, POINTS))
            most = max(most, *map(abs, losses))
            widest = max(widest, max(losses) - min(losses))
    assert most <= number(0.8) + SLACK
    assert widest <= number(0.8) + SLACK
    if probability == 0.5:
        assert widest >= number(0.8) * 0.99


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_no_replaced_row_exceeds_epsilon(probability: float) -> None:
    q = decimal(probability)
    mechanism = Quantile(probability, 0.8, 0, 3, 1, neighbours="replace")
    widest = 0
    for rows in columns(4):
        distribution = quantile_distribution(rows, q, mechanism.rate, POINTS)
        for others in replaced(rows):
            losses = log_ratios(distribution, quantile_distribution(others, q, mechanism.rate, POINTS))
            assert max(map(abs, losses)) <= number(0.8) + SLACK
            widest = max(widest, max(losses) - min(losses))
    assert widest <= number(0.8) + SLACK
    if probability == 0.5:
        assert widest >= number(0.8) * 0.9


def test_two_rows_of_one_unit_do_not_exceed_epsilon() -> None:
    mechanism = Quantile(0.5, 0.8, 0, 3, 1, max_rows=2)
    q = Fraction(1, 2)
    for rows in columns(3):
        distribution = quantile_distribution(rows, q, mechanism.rate, POINTS)
        for joining in combinations_with_replacement(POINTS, 2):
            losses = log_ratios(distribution, quantile_distribution((*rows, *joining), q, mechanism.rate, POINTS))
            assert max(map(abs, losses)) <= number(0.8) + SLACK


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "probability"), [([], 0.5), ([3, 3, 9, 0, 3, 11], 0.5), ([5], 0.25), ([1, 2, 8] * 3, 0.9)]
)
def test_the_law_is_exact(rows: list[int], probability: float) -> None:
    mechanism = Quantile(probability, 1.5, 0, 11, 1)
    source = Seeded(1)
    observed = counted(lambda: int(mechanism._answer(np.array(rows, dtype=np.int64), source)), 1_500)
    assert not rejected(
        observed,
        dict(enumerate(quantile_distribution(rows, decimal(probability), mechanism.rate, range(12)))),
    )


@pytest.mark.slow
def test_a_rate_that_is_a_tenth_off_would_be_noticed() -> None:
    """All rows on one point of a thousand: the odds are even, and move as fast as they can."""
    mechanism = Quantile(0.5, 1.0, 0, 999, 1)
    rows, source = np.full(14, 321), Seeded(1)
    observed = counted(lambda: mechanism._answer(rows, source) == 321, 3_000)
    good = [
        quantile_distribution(rows, Fraction(1, 2), mechanism.rate * Fraction(tenths, 10), range(1000))[321]
        for tenths in (10, 9, 11)
    ]
    assert [rejected(observed, {True: p, False: 1 - p}) for p in good] == [False, True, True]


def test_the_error_in_rank_holds_for_all_small_columns() -> None:
    mechanism = Quantile(0.5, 4.0, 0, 3, 1)
    for confidence in (0.5, 0.9):
        error = mechanism.error(confidence)
        for rows in columns(6):
            distribution = quantile_distribution(rows, Fraction(1, 2), mechanism.rate, POINTS)
            missed = sum(p for y, p in zip(POINTS, distribution, strict=True) if loss(rows, y, Fraction(1, 2)) > error)
            assert missed <= 1 - confidence


def test_the_wanted_rank_is_always_held_by_some_point() -> None:
    for rows in columns(5):
        for q in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)):
            assert min(loss(rows, y, q) for y in POINTS) == 0


def test_rows_are_clamped_and_put_on_the_nearest_point() -> None:
    mechanism = Quantile(0.5, 50.0, -1.0, 1.0, 0.1)
    for row, answer in ((0.52, 0.5), (-7.0, -1.0), (1e308, 1.0), (5e-324, 0.0), (-0.28, -0.3)):
        assert mechanism._answer([row] * 40, Seeded(1)) == pytest.approx(answer)


def test_a_huge_grid_and_the_ends_of_it_do_not_wrap() -> None:
    wide = Quantile(0.5, 1.0, -(2.0**60), 2.0**60, 1)
    assert abs(wide._answer(np.full(1000, 2.0**60), Seeded(0))) <= 2.0**60
    fine = Quantile(0.5, 1.0, 0.0, 1.0, 2.0**-60)
    assert 0.2 < fine._answer(np.full(1000, 0.25), Seeded(0)) < 0.3
    assert Quantile(0.5, 1.0, 5, 5, 1).release([1, 2, 3]) == 5
    assert Quantile(0.5, 1e-6, 0, 10, 1).release([]) in range(11)

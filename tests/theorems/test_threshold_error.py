"""threshold_error beside the sum it stands for, term by term, and beside sampled sessions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from farthing.mechanisms.sparse_vector import AboveThreshold, SparseVector, threshold_error


def wrong(first: float, second: float, offset: int, queries: int, e: int) -> float:
    """The statement, summed with Python floats."""
    total = 0.0
    for r in range(int(50 / first)):
        mass = math.exp(-first * r) * -math.expm1(-first)
        at_least = e + 1 + r + offset
        above = 1.0 if at_least <= 0 else math.exp(-second * at_least)
        at_most = r + offset - e - 2
        below = 0.0 if at_most < 0 else 1 - math.exp(-second * (at_most + 1))
        total += mass * (1 - (1 - max(above, below)) ** queries)
    return total


CASES = [
    (1.0, 1.0, 0, 1),
    (0.3, 0.7, -2, 5),
    (0.05, 0.02, 20, 100),
    (5.0, 3.0, 0, 1000),
    (0.5, 0.1, 9, 10**6),
]


@pytest.mark.parametrize(("first", "second", "offset", "queries"), CASES)
@pytest.mark.parametrize("failure", [0.5, 0.05, 1e-6])
def test_threshold_error_is_the_least_that_the_sum_allows(
    first: float, second: float, offset: int, queries: int, failure: float
) -> None:
    found = threshold_error(Fraction(first), Fraction(second), offset, queries, failure)
    assert wrong(first, second, offset, queries, found) <= failure * (1 + 1e-6)
    if found:
        assert wrong(first, second, offset, queries, found - 1) > failure * (1 - 1e-6)


def test_blocks_move_the_error_up_and_hardly() -> None:
    wide = threshold_error(Fraction(1, 10**6), Fraction(1, 10**6), 0, 10, 0.05)
    narrow = threshold_error(Fraction(1, 60), Fraction(1, 60), 0, 10, 0.05)
    assert wide / 10**6 == pytest.approx(narrow / 60, rel=0.05)


def test_the_error_grows_with_questions_and_confidence_and_falls_with_epsilon() -> None:
    errors = [AboveThreshold(0.5).error(0.95, queries) for queries in (1, 10, 1000, 10**6)]
    assert errors == sorted(errors)
    assert AboveThreshold(0.5).error(0.5) < AboveThreshold(0.5).error(0.999)
    assert AboveThreshold(2.0).error() < AboveThreshold(0.5).error()
    fixed, fresh = (SparseVector(0.5, positives=4, fresh_threshold=f).error(0.9, 9) for f in (False, True))
    assert fixed < fresh


class _Scripted:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def take(self, count: int, /) -> bytes:
        return self._random.randbytes(count)


@pytest.mark.slow
@pytest.mark.parametrize("side", [-1, 1])
def test_sessions_keep_the_stated_confidence(side: int) -> None:
    """All values at the edge of what the error allows: wrong no oftener than stated, and not far less often."""
    mechanism, queries = AboveThreshold(0.5), 20
    e = int(mechanism.error(0.8, queries))
    source, runs, failures = _Scripted(7), 1500, 0
    for _ in range(runs):
        answers = mechanism._answer([side * (e + 1)] * queries, source)
        failures += any(bool(answer) == (side < 0) for answer in answers)
    # Mean at most 0.2 x 1500 = 300, five standard deviations are 78.
    assert failures <= 300 + 78

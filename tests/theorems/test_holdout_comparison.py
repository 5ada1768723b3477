"""How often comparisons with a noisy threshold miss or give a false alarm, beside the exact sums over the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farthing.adaptive.holdout.holdout_plan import Comparison
from farthing.adaptive.holdout.holdout_sums import STEPS
from farthing.mechanisms.sparse_vector import AboveThreshold

RATES = [0.02, 0.15, 1.0]


def exact(epsilon: float, distance: float, queries: int, *, above: bool) -> float:
    """P[some of `queries` values at T + distance gets the stated answer in one round], in rows, noise continuous.

    Noise in steps of a millionth of a row is as good as exponential; R is summed on a fine grid.
    """
    mechanism = AboveThreshold(epsilon, l1_sensitivity=STEPS)
    first, second = (float(rate) * STEPS for rate in mechanism._rates)
    offset = mechanism._offset / STEPS
    width = 0.002 / first
    r = np.arange(0, 40 / first, width) + width / 2
    mass = np.exp(-first * r) * first * width
    is_above = np.exp(-second * np.maximum(r + offset - distance, 0.0))
    with np.errstate(divide="ignore"):
        some = -np.expm1(queries * np.log1p(-(is_above if above else 1 - is_above)))
    return float(math.fsum(mass * some))


@pytest.mark.parametrize("epsilon", RATES)
@pytest.mark.parametrize("failure", [0.05, 1e-4])
def test_misses_are_as_rare_as_stated_however_many_questions_are_asked(epsilon: float, failure: float) -> None:
    distance = Comparison(epsilon).miss_steps(failure, rounds=1) / STEPS
    for queries in (1, 100, 10**6, 10**9):
        assert exact(epsilon, distance, queries, above=False) <= failure * 1.01
    assert exact(epsilon, distance * 0.9, 10**9, above=False) > failure  # and the bound has no room


@pytest.mark.parametrize("epsilon", RATES)
@pytest.mark.parametrize("failure", [0.05, 1e-4])
def test_false_alarms_are_as_rare_as_stated(epsilon: float, failure: float) -> None:
    for queries in (1, 100, 10**6):
        distance = Comparison(epsilon).alarm_steps(queries, failure) / STEPS
        assert exact(epsilon, -distance, queries, above=True) <= failure * 1.01
        assert exact(epsilon, -distance * 0.85, queries, above=True) > failure


def test_rounds_and_questions_cost_their_logarithm() -> None:
    round_ = Comparison(0.1)
    few, many = round_.miss_steps(0.05, rounds=1), round_.miss_steps(0.05, rounds=100)
    assert 0 < many - few == pytest.approx(round_.miss_steps(0.05 / 100, rounds=1) - few)
    assert round_.alarm_steps(10, 0.05) < round_.alarm_steps(1_000, 0.05)

"""Smooth sensitivity: the Cauchy sampler, hostile data, and what never gets out."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from farthing.accounting import compose
from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.smooth_median import SmoothMedian, SmoothSensitivity, SmoothStatistic
from farthing.mechanisms.smooth_noise import DiscreteCauchyDistribution, discrete_cauchy


class Scripted:
    """A repeatable stream of bytes, for tests only."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def take(self, count: int, /) -> bytes:
        return self._random.randbytes(count)


def p_value(draws: list[int], scale: Fraction) -> float:
    """Chi-square over twenty cells of about equal mass, edges from the data's own scale."""
    distribution = DiscreteCauchyDistribution(scale)
    edges = sorted({round(float(scale) * math.tan(math.pi * (k / 20 - 0.5))) for k in range(1, 20)})

    def at_most(n: int) -> float:
        """P[noise <= n] by symmetry from both tails."""
        return 1 - distribution.tail(n) / 2 if n >= 0 else distribution.tail(-n - 1) / 2

    below = [0.0, *(at_most(edge) for edge in edges), 1.0]
    seen = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    return float(stats.chisquare(seen, np.diff(below) * len(draws)).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(1), Fraction(7, 2), Fraction(100), Fraction(10**6)])
def test_cauchy_draws_have_the_exact_law(scale: Fraction) -> None:
    """alpha = 1e-6, with a scale ten percent off either way rejected."""
    bits = Bits(Scripted(11), 4096)
    draws = [discrete_cauchy(scale, bits) for _ in range(16_000)]
    assert p_value(draws, scale) > 1e-6
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert p_value(draws, scale * factor) < 1e-6


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(9, 2), Fraction(33)])
def test_the_cauchy_law_adds_up(scale: Fraction) -> None:
    distribution = DiscreteCauchyDistribution(scale)
    inside = distribution.mass(0) + 2 * math.fsum(distribution.mass(n) for n in range(1, 301))
    assert inside + distribution.tail(300) == pytest.approx(1, abs=1e-12)
    error = distribution.error(0.9)
    assert 1 - distribution.tail(error) >= 0.9 > 1 - distribution.tail(error - 1)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_crowded_data_get_little_noise_and_sparse_data_more(delta: float) -> None:
    mechanism = SmoothMedian(1.0, 0, 10**6, delta)
    source = Scripted(3)
    crowded = [500_000 + i for i in range(2000)]
    sparse = [0] * 1000 + [10**6] * 1000

    def typical(rows: list[int], centre: int) -> float:
        return float(np.quantile([abs(mechanism._answer(rows, source) - centre) for _ in range(60)], 0.8))

    assert typical(crowded, 501_000) < 500
    assert typical(sparse, 0) > 100_000


def test_answers_stay_in_the_bounds_and_on_the_grid() -> None:
    whole = SmoothMedian(0.5, -10, 10)
    assert all(-10 <= whole.release([0, 1]) <= 10 for _ in range(50))
    fine = SmoothMedian(0.5, -1.0, 1.0, delta=1e-6, grid=2.0**-8)
    answers = [fine.release(np.linspace(-3.0, 3.0, 500)) for _ in range(50)]
    assert all(-1 <= a <= 1 and (a * 256).is_integer() for a in answers)


def test_no_rows_are_data_too_unless_their_number_is_public() -> None:
    assert 0 <= SmoothMedian(1.0, 0, 9).release([]) <= 9
    with pytest.raises(InvalidData, match="at least one"):
        SmoothMedian(1.0, 0, 9, neighbours="replace").release([])


def test_rows_in_another_order_or_far_outside_are_the_same_data() -> None:
    mechanism = SmoothMedian(1.0, 0, 100, 1e-6)
    rows = [5, 80, 33, 10**30, -(10**30), 2**63, 50]
    first = [mechanism._answer(rows, Scripted(seed)) for seed in range(20)]
    moved = [mechanism._answer([0, 5, 33, 50, 80, 100, 100][::-1], Scripted(seed)) for seed in range(20)]
    assert first == moved


HOSTILE = [
    None,
    "12345",
    12345,
    [1.5, 2.5],
    [math.nan],
    [None],
    [[1, 2]],
    [True, False],
    {1: 2},
    [1, "x"],
    object(),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_rows_are_refused_unseen(hostile: object) -> None:
    with pytest.raises(InvalidData) as caught:
        SmoothMedian(1.0, 0, 9).release(hostile)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("hostile", [math.nan, [[math.nan]], None, ["a"], 1.0])
def test_hostile_reals_are_refused(hostile: object) -> None:
    with pytest.raises(InvalidData):
        SmoothMedian(1.0, 0.0, 9.0, grid=0.5).release(hostile)


def test_missing_and_infinite_reals_are_not_refused_which_would_tell_of_them() -> None:
    rows = [math.inf, 1.0, math.nan, -math.inf, 2.6]
    left_out = SmoothMedian(1.0, 1.0, 9.0, grid=0.5)
    assert left_out._steps(rows).tolist() == [2, 2, 5, 18]
    kept = SmoothMedian(1.0, 1.0, 9.0, grid=0.5, neighbours="replace")
    assert kept._steps(rows).tolist() == [2, 2, 2, 5, 18]  # their number is public: 0, clipped
    assert 1.0 <= left_out.release([math.nan]) <= 9.0 and 1.0 <= kept.release([math.nan]) <= 9.0


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.array])
def test_bounds_of_any_number_type_are_plain_numbers_inside(kind: type) -> None:
    mechanism = SmoothMedian(1.0, kind(0), kind(8), grid=kind(2))
    assert mechanism == SmoothMedian(1.0, 0, 8, grid=2.0) and hash(mechanism) == hash(SmoothMedian(1.0, 0, 8, grid=2))
    assert all(type(bound) is int for bound in (mechanism.lower, mechanism.upper))


def _raises(t: int) -> int:
    raise RuntimeError("row 12345 says so")


@pytest.mark.parametrize(
    "at", [_raises, lambda t: -1, lambda t: 1.5, lambda t: math.nan, lambda t: None, lambda t: True, 7]
)
def test_a_hostile_local_sensitivity_is_refused_unseen(at: object) -> None:
    with pytest.raises(InvalidData) as caught:
        SmoothSensitivity(1.0, 100).release(SmoothStatistic(12345, at))  # type: ignore[arg-type]
    assert "12345" not in str(caught.value)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.parametrize("value", [None, 1.5, math.nan, True, "1", [1, 2]])
def test_a_hostile_statistic_is_refused(value: object) -> None:
    with pytest.raises(InvalidData):
        SmoothSensitivity(1.0, 100).release(SmoothStatistic(value, lambda t: 1))  # type: ignore[arg-type]
    with pytest.raises(InvalidData):
        SmoothSensitivity(1.0, 100).release(value)


def test_a_local_sensitivity_above_the_global_one_is_read_as_that() -> None:
    """And one that falls with t is as good as its running maximum: only its first value counts."""
    mechanism = SmoothSensitivity(1.0, 100, 1e-6)
    draw = mechanism._answer(SmoothStatistic(0, lambda t: 10**9), Scripted(1))
    assert draw == mechanism._answer(SmoothStatistic(0, lambda t: 100), Scripted(1))
    falling = mechanism._answer(SmoothStatistic(0, lambda t: 100 if t == 0 else 0), Scripted(1))
    assert falling == draw


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 0}, "epsilon"), ({"epsilon": math.nan}, "epsilon"), ({"epsilon": 1e-9}, "epsilon"),
        ({"epsilon": 51}, "epsilon"), ({"delta": 1.0}, "delta"), ({"delta": -0.1}, "delta"),
        ({"upper": 0}, "upper"), ({"upper": math.inf}, "upper"), ({"upper": 9.5}, "upper"),
        ({"lower": math.nan}, "lower"), ({"upper": 2**60}, "upper"), ({"grid": 0.3}, "grid"),
        ({"neighbours": "swap"}, "neighbours"),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(parameters: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        SmoothMedian(**{"epsilon": 1.0, "lower": 0, "upper": 10**6, **parameters})  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize("largest", [0, -1, 1.5, True, 2**63])
def test_a_global_sensitivity_must_be_whole_and_in_reach(largest: object) -> None:
    with pytest.raises(InvalidValue, match="global_sensitivity="):
        SmoothSensitivity(1.0, largest)  # type: ignore[arg-type]


def test_errors_are_for_an_assumed_bound_and_grow_with_it() -> None:
    mechanism = SmoothMedian(1.0, 0, 10**6, 1e-6)
    errors = [mechanism.error(0.95, assumed_smooth_sensitivity=s) for s in (0, 1, 10, 1000, 10**9)]
    assert errors == sorted(errors) and errors[1] < errors[3]
    with pytest.raises(InvalidValue):
        mechanism.error(0.95, assumed_smooth_sensitivity=math.nan)
    fine = SmoothMedian(1.0, 0, 1000, 1e-6, grid=2.0**-10)
    assert fine.error(0.9, assumed_smooth_sensitivity=2.0) == pytest.approx(4 * math.log(10), rel=0.03)


def test_the_events_compose_and_the_values_are_frozen() -> None:
    pure, leaky = SmoothMedian(0.5, 0, 9), SmoothSensitivity(0.5, 9, 1e-7)
    assert compose([pure.event, leaky.event]).epsilon_at(1e-6).upper <= 1.0 + 1e-9
    for mechanism in (pure, leaky):
        assert eval(repr(mechanism)) == mechanism
        with pytest.raises(AttributeError):
            mechanism.epsilon = 9.0  # type: ignore[misc]
    assert "12345" not in repr(SmoothStatistic(12345, lambda t: 12345))

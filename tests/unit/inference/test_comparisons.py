"""Arithmetic on answers: the interval knows which noises two answers have in common."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference import Answer, Term, error_of_sum
from farthing.inference.comparisons import CORNERS, EXACT, FIRST_ORDER, Estimate, smooth
from farthing.inference.noisy_numbers import CellNoise, NoisyCells, NoisyNumber, Spread

BLOCKS = (("counts", "laplace", 10.0), ("sums", "laplace", 3000.0))


def counts(values: list[float], release: str = "one", members: tuple[int, ...] = (0, 1)) -> Answer:
    """Counts whose cells have noises of scale 10."""
    labels = ("F", "M") if len(values) == 2 else ()
    noise = CellNoise(BLOCKS[:1], NoisyCells(tuple(values), (Spread(0, 1.0, members),)), least=0.0, release=release)
    return with_noise(labels, values, noise)


def means(sums: list[float], rows: list[float], release: str = "one") -> Answer:
    """Sums over numbers of rows, each with noise."""
    top, bottom = (NoisyCells(tuple(each), (Spread(place, 1.0, (0, 1)),)) for each, place in ((sums, 1), (rows, 0)))
    noise = CellNoise(BLOCKS, top, bottom, 0.0, 0.0, 1000.0, release=release)
    return with_noise(("F", "M"), [a / b for a, b in zip(sums, rows, strict=True)], noise)


def with_noise(labels: tuple[str, ...], values: list[float], noise: CellNoise) -> Answer:
    answer = Answer.within("number", values if labels else values[0], 1.0, lambda level: box(values), labels)
    return replace(answer, noise=noise)


def box(values: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(values) - 100.0, np.array(values) + 100.0


def test_difference_of_two_counts_has_both_noises() -> None:
    answer = counts([500.0, 300.0])
    difference = answer["F"] - answer["M"]
    assert float(difference) == 200.0
    assert difference.error(0.95) == error_of_sum([Term("laplace", 10.0, count=2)])
    assert difference.error(0.99) == error_of_sum([Term("laplace", 10.0, count=2)], 0.99)
    assert difference.note == ""


def test_noise_that_both_have_cancels() -> None:
    answer, total = counts([500.0, 300.0]), counts([800.0], members=(0, 0))
    assert (total - answer["F"]).error(0.95) == error_of_sum([Term("laplace", 10.0)])
    nothing = answer["F"] - answer["F"]
    assert (float(nothing), nothing.lower, nothing.upper) == (0.0, 0.0, 0.0)
    assert float(sum([answer["F"], answer["M"]]) - total) == 0.0
    assert (sum([answer["F"], answer["M"]]) - total).error() == 0.0  # type: ignore[union-attr]


def test_noise_of_another_release_does_not_cancel() -> None:
    change = counts([500.0, 300.0], "later") - counts([480.0, 310.0], "earlier")
    assert change.values.tolist() == [20.0, -10.0]  # type: ignore[union-attr]
    assert change.error(0.95).tolist() == [error_of_sum([Term("laplace", 10.0, count=2)])] * 2  # type: ignore[union-attr]


def test_arithmetic_of_arithmetic_stays_exact() -> None:
    answer = counts([500.0, 300.0])
    back = (answer["F"] + answer["M"]) * 2 - 2 * answer["M"] - answer["F"]
    assert float(back) == 500.0
    assert back.error(0.95) == error_of_sum([Term("laplace", 10.0)])
    assert (100 - answer["F"]).error(0.95) == error_of_sum([Term("laplace", 10.0)])


def test_share_of_a_total_contains_the_same_noise_twice() -> None:
    """S / (S + T): where T is nearly nothing, the share is nearly exactly 1."""
    answer = counts([10_000.0, 0.0])
    share = answer["F"] / (answer["F"] + answer["M"])
    assert share.computed[0].way == EXACT
    assert share.upper - share.lower < 0.0065  # independent noises would give 0.0085 and more
    assert share.lower <= 1.0 <= share.upper + 0.004


def test_answers_without_known_noise_are_compared_by_their_intervals() -> None:
    one = Answer.within("median", 40.0, 1.0, lambda level: (np.array([38.0]), np.array([42.0])))
    two = Answer.within("median", 30.0, 1.0, lambda level: (np.array([29.0]), np.array([31.0])))
    difference = one - two
    assert difference.computed[0].way == CORNERS
    assert (difference.lower, difference.upper) == (7.0, 13.0)
    assert "holds more often than stated" in difference.note
    ratio = one / two
    assert (ratio.lower, ratio.upper) == (38.0 / 31.0, 42.0 / 29.0)
    nothing = one / (two - 30)
    assert (nothing.lower, nothing.upper) == (-math.inf, math.inf)


def test_several_intervals_hold_at_once_where_noise_is_not_known() -> None:
    asked: list[float] = []

    def interval(level: float) -> tuple[np.ndarray, np.ndarray]:
        asked.append(level)
        return np.array([0.0]), np.array([1.0])

    one, two = (Answer.within("median", 0.5, 1.0, interval) for _ in range(2))
    _ = one - two
    assert asked[-1] == pytest.approx(0.975)


def test_noises_without_a_release_are_not_taken_for_each_other() -> None:
    one, two = counts([500.0, 300.0], ""), counts([500.0, 300.0], "")
    assert (one["F"] - two["F"]).error() > 0


def test_divisor_that_is_mostly_noise_gives_no_first_order() -> None:
    answer = means([4000.0, 900_000.0], [60.0, 9000.0])
    difference = answer["F"] - answer["M"]
    assert difference.computed[0].way == CORNERS
    assert difference.upper - difference.lower >= 400.0
    sure = means([400_000.0, 900_000.0], [4000.0, 9000.0])
    assert (sure["F"] - sure["M"]).computed[0].way == FIRST_ORDER


def test_ratio_to_what_may_be_zero_is_unbounded() -> None:
    answer = counts([500.0, 3.0])
    ratio = answer["F"] / answer["M"]
    assert ratio.upper == math.inf
    assert ratio.lower >= 0.0


def test_answers_of_other_cells_are_refused() -> None:
    one = counts([500.0, 300.0])
    other = with_noise(("a", "b"), [1.0, 2.0], one.noise)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="has other cells than"):
        _ = one - other
    with pytest.raises(InvalidValue, match="has several numbers"):
        float(one)
    with pytest.raises(TypeError):
        _ = one - "F"  # type: ignore[operator]


def test_interval_of_a_smooth_function_stays_in_its_range() -> None:
    number = Estimate.of(0.99, lambda level: (0.0, 2.0), NoisyNumber(0.99, {("r", "s", 0, "normal", 0.1): 1.0}))
    whole = smooth(0.99, 0.99, [number], [1.0], 0.0, 1.0)
    low, high = whole.interval(0.95)
    assert low == pytest.approx(0.99 - 1.96 * 0.1, abs=1e-3)
    assert high == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("relative", [0.01, 0.13])
def test_intervals_hold_95_times_in_100(relative: float) -> None:
    """500 releases: below 88.5% or above 99.6% by chance less than once in 10^9 each."""
    draw, times = np.random.default_rng(5), 500
    rows = np.array([10.0 * math.sqrt(2) / relative, 30.0 * math.sqrt(2) / relative])
    sums = rows * np.array([300.0, 240.0])
    truth = {"difference": 60.0, "ratio": 1.25, "product": 72_000.0, "odds": (0.3 / 0.7) / (0.24 / 0.76)}
    hits = dict.fromkeys(truth, 0)
    for _ in range(times):
        noisy_rows, noisy_sums = (
            (each + laplace(draw, scale)).tolist() for each, scale in ((rows, 10.0), (sums, 3000.0))
        )
        one, two = (means(noisy_sums, noisy_rows).estimate(place) for place in (0, 1))
        odds = [each.times(1e-3).over(Estimate.known(1.0).plus(each, -1e-3)) for each in (one, two)]
        computed = {
            "difference": one.plus(two, -1.0),
            "ratio": one.over(two),
            "product": one.by(two),
            "odds": odds[0].over(odds[1]),
        }
        for name, estimate in computed.items():
            low, high = estimate.interval(0.95)
            hits[name] += low <= truth[name] <= high
    assert all(0.885 * times <= number <= 0.996 * times for number in hits.values()), hits


def laplace(draw: np.random.Generator, scale: float) -> np.ndarray:
    """Two discrete Laplace noises."""
    success = 1 - math.exp(-1 / scale)
    return draw.geometric(success, 2) - draw.geometric(success, 2)

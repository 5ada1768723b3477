"""Sums of bounded rows: what one row can do, at the edges of the number types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms import BoundedSum

ANY = st.floats(allow_nan=True, allow_infinity=True)
BOUNDS = st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)).map(sorted)
GRIDS = st.integers(-20, 20).map(lambda exponent: 2.0**exponent)


@pytest.mark.slow
@given(st.lists(ANY, max_size=20), ANY, BOUNDS, GRIDS)
def test_a_real_row_moves_the_sum_by_at_most_the_sensitivity(
    rows: list[float], row: float, bounds: list[float], grid: float
) -> None:
    total = BoundedSum(1.0, *bounds, grid=grid)
    with_row, without = total._exact([*rows, row]), total._exact(rows)
    assert abs(with_row - without) <= total._sensitivity_steps
    replaced = BoundedSum(1.0, *bounds, grid=grid, neighbours="replace")
    finite = [r for r in (*rows, row) if not math.isnan(r)]
    if len(finite) >= 2:
        swap = [finite[-1], *finite[1:]]
        assert abs(replaced._exact(swap) - replaced._exact(finite)) <= replaced._sensitivity_steps


@pytest.mark.slow
@given(st.lists(st.integers(-(2**70), 2**70), max_size=20), st.integers(-(2**70), 2**70))
def test_a_whole_row_moves_the_sum_by_at_most_the_sensitivity(rows: list[int], row: int) -> None:
    total = BoundedSum(1.0, -(2**53), 2**53 - 1)
    assert abs(total._exact([*rows, row]) - total._exact(rows)) <= 2**53


def test_rows_at_two_to_the_53_move_the_sum_by_their_clamped_size() -> None:
    """A sum in doubles on [2^53, 2^53 + 2] moves by 512 where 2 was claimed; here by what is claimed."""
    total = BoundedSum(1.0, 2**53, 2**53, neighbours="replace")
    rows = np.full(255, 2**53, dtype=np.int64)
    assert total._exact(np.append(rows, 2**53)) - total._exact(np.append(rows, 2**53 + 2)) == 0
    narrow = BoundedSum(1.0, 0, 2, neighbours="replace")
    assert narrow._exact(np.append(rows, 2)) - narrow._exact(np.append(rows, 0)) == 2


def test_no_wrap_around_at_the_ends_of_int64() -> None:
    total = BoundedSum(1.0, -(2**53), 2**53)
    most = np.full(400, np.iinfo(np.int64).max)
    assert total._exact(most) == 400 * 2**53 == -total._exact(np.full(400, np.iinfo(np.int64).min))
    assert total._exact(np.full(3, 2**64 - 1, dtype=np.uint64)) == 3 * 2**53
    assert total._exact(np.full(2**20, 2**60)) == 2**62  # saturates before noise


@pytest.mark.slow
@given(st.lists(ANY, max_size=50), st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[float], random: Any) -> None:
    total = BoundedSum(1.0, -1e6, 1e6, grid=2.0**-10)
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert total._exact(shuffled) == total._exact(rows)


def test_empty_subnormal_missing_and_infinite_rows() -> None:
    total = BoundedSum(1.0, 1.0, 10.0, grid=0.5)
    assert total._exact([]) == total._exact(np.array([])) == 0
    assert total._exact([math.nan, math.nan]) == 0  # missing adds nothing, though 0 is out of bounds
    assert total._exact([5e-324, -5e-324]) == 4  # both clamped to 1.0
    assert total._exact([math.inf, -math.inf]) == 22
    assert isinstance(total.release([1.0]), float) and isinstance(BoundedSum(1.0, 0, 1).release([1]), int)


@pytest.mark.parametrize(
    "rows", [None, "8731", ["8731"], [None], [1, None], {"a": 1}, [True], [1j], [[1], [2, 3]], object()]
)
def test_rows_of_the_wrong_kind_are_refused_without_being_shown(rows: Any) -> None:
    for mechanism in (BoundedSum(1.0, 0, 10), BoundedSum(1.0, 0.0, 10.0, grid=0.5)):
        with pytest.raises(InvalidData) as refusal:
            mechanism.release(rows)
        assert "8731" not in str(refusal.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0}, {"epsilon": -1}, {"epsilon": 50.1}, {"epsilon": math.nan}, {"lower": 11}, {"lower": math.nan},
        {"upper": math.inf}, {"upper": None}, {"upper": "9"}, {"lower": 0.5}, {"grid": 0.3}, {"neighbours": "swap"},
        {"grid": 2.0**-60}, {"upper": 2**60},
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        BoundedSum(**({"epsilon": 1.0, "lower": 0, "upper": 10} | arguments))


@pytest.mark.slow
@given(st.lists(ANY, min_size=1, max_size=20), ANY | st.just(math.nan), BOUNDS, GRIDS)
def test_a_replaced_row_moves_the_sum_by_at_most_the_sensitivity_also_if_it_was_missing(
    rows: list[float], row: float, bounds: list[float], grid: float
) -> None:
    total = BoundedSum(1.0, *bounds, grid=grid, neighbours="replace")
    assert abs(total._exact([row, *rows[1:]]) - total._exact(rows)) <= total._sensitivity_steps


def test_a_missing_row_under_replace_is_a_clamped_zero() -> None:
    total = BoundedSum(1.0, 100, 110, grid=1.0, neighbours="replace")
    assert total._exact([math.nan]) == 100 and total._sensitivity_steps == 10


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.float32, np.float64, np.array])
def test_bounds_of_any_number_type_are_plain_numbers_inside(kind: Any) -> None:
    """A fraction made of int64 keeps int64: its size in steps would wrap around, and its size be negative."""
    total = BoundedSum(1.0, kind(-100), kind(1), grid=2.0**-10)
    assert all(type(bound) in (int, float) for bound in (total.lower, total.upper, *total._bounds))
    assert total._sensitivity_steps == 102_400


def test_bounds_in_int64_do_not_wrap_around_in_steps() -> None:
    with pytest.raises(InvalidValue, match="2\\^53"):
        BoundedSum(1.0, np.int64(-(2**53)), np.int64(1), grid=2.0**-10)  # -2^63 steps, whose absolute value wraps


def test_noise_that_would_be_too_wide_is_refused_when_the_sum_is_made() -> None:
    with pytest.raises(InvalidValue, match="2\\^56"):
        BoundedSum(0.01, 0, 2**53)


def test_a_real_row_of_any_size_is_clamped_not_refused() -> None:
    total = BoundedSum(1.0, -3.0, 10.0, grid=0.5)
    assert total._exact([1, 2**64, -(10**400)]) == total._exact([1.0, math.inf, -math.inf]) == 16
    with pytest.raises(InvalidData):
        total.release([2**64, None])


@pytest.mark.parametrize("rows", [5, [[1, 2], [3, 4]], np.ones((2, 2), dtype=np.int64)], ids=str)
def test_rows_are_one_column(rows: Any) -> None:
    """Two columns of one person would be two rows, and a lone number is no table."""
    for mechanism in (BoundedSum(1.0, 0, 10), BoundedSum(1.0, 0.0, 10.0, grid=0.5)):
        with pytest.raises(InvalidData, match="one column"):
            mechanism.release(rows)

"""Types, grids and points that would fail in the middle of a query, or be left out in silence."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow
import pytest

import farthing as ft
from farthing.data import Count, OrderCounts, Sum
from farthing.data.aggregates import Aggregate
from farthing.errors import InvalidValue


@pytest.mark.parametrize(
    ("scale", "domain"),
    [(37, (0, 110)), (37, (-10.0, 0.5)), (38, [0, 1]), (30, (0, 10**8)), (30, (0.0, 2.0**52))],
)
def test_bounds_that_a_decimal_cannot_hold_are_refused(scale: int, domain: Any) -> None:
    cells = pyarrow.array([Decimal("0.5")], pyarrow.decimal128(38, scale))
    with pytest.raises(InvalidValue, match=r"must be numbers that fit decimal\(38"):
        ft.dataset(pyarrow.table({"x": cells}), schema={"x": domain})


@pytest.mark.parametrize(
    ("scale", "domain"), [(37, (-9, 9)), (37, (0.0, 9.0)), (38, [0]), (30, (0, 10**8 - 1)), (0, (0, 2**53))]
)
def test_the_widest_bounds_that_a_decimal_can_hold_are_used(scale: int, domain: Any) -> None:
    cells = pyarrow.array([Decimal(0), Decimal(0)], pyarrow.decimal128(38, scale))
    people = ft.dataset(pyarrow.table({"x": cells}), schema={"x": domain})
    assert people.exact({"known": Count("x")})["known"] == 2


PEOPLE = ft.dataset(
    pyarrow.table({"x": [1.0], "sex": ["F"]}), schema={"x": (0.0, 2.0**53), "sex": ["F", "M"]}
)


@pytest.mark.parametrize(
    ("aggregate", "rule"),
    [
        (Sum("x", grid=2.0**-1000), "too fine"),
        (OrderCounts("sex", grid=[1]), "must hold numbers or dates"),
        (OrderCounts("x", grid=[float("nan")]), "must be a value of the kind"),
        (OrderCounts("x", grid=["1"]), "must be a value of the kind"),
    ],
)
def test_grids_that_make_no_sense_are_refused(aggregate: Aggregate, rule: str) -> None:
    with pytest.raises(InvalidValue, match=rule):
        PEOPLE.sensitivity(aggregate)

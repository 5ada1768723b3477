"""A unit is data: no two of them are the same words, and every one comes back from its words and from its data."""

from __future__ import annotations

import json
from itertools import product

import pytest

from farthing.errors import InvalidValue
from farthing.privacy.units import Unit

NAMES = [
    "row",
    "person",
    "a + b",
    "a",
    "b",
    "x, replace",
    'q"u\\o',
    "1a",
    "é b",
    "",
    " row",
    "row, add-remove",
]
UNITS = [
    Unit(columns, neighbours, group, rate)
    for columns, neighbours, (group, rate) in product(
        [(), *((name,) for name in NAMES), ("a", "b"), ("a + b", "row"), ("a", "b + row")],
        ("add-remove", "replace"),
        ((1, None), (3, None), (1, 0.01)),
    )
]


def test_every_unit_has_words_and_data_of_its_own() -> None:
    assert len({str(unit) for unit in UNITS}) == len({json.dumps(u.to_dict()) for u in UNITS}) == len(UNITS)
    for unit in UNITS:
        assert Unit.read(str(unit)) == unit == Unit.from_dict(json.loads(json.dumps(unit.to_dict())))


def test_the_order_of_columns_says_nothing() -> None:
    assert Unit(("b", "a")) == Unit(("a", "b")) == Unit.read("b + a, add-remove")


@pytest.mark.parametrize(
    "words",
    ["", "row", "person", "row, sometimes", "row, replace, groups of 0", 'a" + b, replace', '"\\q", replace',
     "row, add-remove, secret sample of nan", "row, add-remove, secret sample of 2", "a +b, replace"],
)  # fmt: skip
def test_other_words_are_no_unit(words: str) -> None:
    assert Unit.read(words) is None


@pytest.mark.parametrize(
    "data",
    [{}, {"kind": "row"}, {"kind": "row", "neighbours": "both"}, {"kind": "columns", "neighbours": "replace"},
     {"kind": "columns", "columns": "row", "neighbours": "replace"},
     {"kind": "row", "columns": ["row"], "neighbours": "replace"}],
)  # fmt: skip
def test_other_data_are_no_unit(data: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match="must be a unit"):
        Unit.from_dict(data)

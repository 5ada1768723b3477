"""A budget for some people is not spent on answers that protect others, whatever their columns are called."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from farthing.curator import Curator, unit_of
from farthing.curator.payers import refuse_other_unit
from farthing.data import Dataset, dataset
from farthing.errors import InvalidValue
from farthing.ledger import Ledger, budget_policy, open_ledger
from farthing.ledger.ledger_change import Question
from farthing.privacy.units import Unit

TABLE = pa.table({"row": [1, 1], "a": [1, 2], "b": [1, 1], "a + b": [5, 5], "age": [30, 45]})


def by(*unit: str, table: pa.Table = TABLE, neighbours: str = "add-remove") -> Dataset:
    facts = {"unit": list(unit), "max_rows": 1} if unit else {}
    return dataset(table, **facts, schema={"age": (0, 110)}, neighbours=neighbours)  # type: ignore[arg-type]


def written_before(ledger: Ledger, name: str, words: str) -> None:
    """An account as older versions opened it: the unit is kept as words."""
    ledger._append(Question(name), lambda tx: budget_policy.register(tx, name, 1.0, 0.0, words))


@pytest.mark.parametrize(
    ("registered", "other"),
    [(("row",), ()), ((), ("row",)), (("a", "b"), ("a + b",)), (("a + b",), ("a", "b"))],
)
def test_units_whose_words_were_alike_are_two(
    ledger: Ledger, registered: tuple[str, ...], other: tuple[str, ...]
) -> None:
    Curator(ledger).register(by(*registered), "people", epsilon=1.0)
    refuse_other_unit(by(*registered), ledger.budget("people"))
    with pytest.raises(InvalidValue, match="for which the budget of 'people' was set"):
        refuse_other_unit(by(*other), ledger.budget("people"))


def test_columns_may_be_named_in_any_order(ledger: Ledger) -> None:
    Curator(ledger).register(by("a", "b"), "people", epsilon=1.0)
    refuse_other_unit(by("b", "a"), ledger.budget("people"))


def test_a_ledger_keeps_the_unit_as_data_and_reads_it_again(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        Curator(ledger).register(by("row"), "people", epsilon=1.0)
        assert next(ledger.entries("people")).body["unit"] == Unit(("row",)).to_dict()
    with open_ledger(tmp_path / "study.db") as again:
        budget = again.budget("people")
        assert (budget.protects, budget.unit) == (unit_of(by("row")), '"row", add-remove')


def test_words_of_a_curator_are_read_as_data_where_they_are_a_unit(ledger: Ledger) -> None:
    ledger.register("rows", 1.0, unit="row, add-remove")
    ledger.register("named", 1.0, unit='"row", add-remove')
    ledger.register("own words", 1.0, unit="the patients of the ward")
    refuse_other_unit(by(), ledger.budget("rows"))
    refuse_other_unit(by("row"), ledger.budget("named"))
    assert ledger.budget("own words").protects is None
    with pytest.raises(InvalidValue, match="must be 'the patients of the ward'"):
        refuse_other_unit(by(), ledger.budget("own words"))


PLAIN = pa.table({"person": [1], "a": [1], "b": [1], "age": [30]})


@pytest.mark.parametrize(
    ("words", "unit"),
    [("row, add-remove", ()), ("person, add-remove", ("person",)), ("a + b, add-remove", ("a", "b"))],
)
def test_the_words_of_an_older_version_are_understood(tmp_path: Path, words: str, unit: tuple[str, ...]) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        written_before(ledger, "people", words)
        assert ledger.verify().ok
    with open_ledger(tmp_path / "study.db") as again:
        refuse_other_unit(by(*unit, table=PLAIN), again.budget("people"))
        refuse_other_unit(by(*unit, table=PLAIN).group_privacy(2), again.budget("people"))
        for other in {(), ("person",), ("a", "b"), ("a",)} - {unit}:
            with pytest.raises(InvalidValue, match=f"must be '{re.escape(words)}'"):
                refuse_other_unit(by(*other, table=PLAIN), again.budget("people"))
        with pytest.raises(InvalidValue, match=f"must be '{re.escape(words)}'"):
            refuse_other_unit(by(*unit, table=PLAIN, neighbours="replace"), again.budget("people"))


@pytest.mark.parametrize(
    ("words", "either"),
    [("row, add-remove", [(), ("row",)]), ("a + b, add-remove", [("a", "b"), ("a + b",)])],
)
def test_words_of_an_older_version_that_mean_two_things_for_a_table_are_refused(
    ledger: Ledger, words: str, either: list[tuple[str, ...]]
) -> None:
    written_before(ledger, "people", words)
    for unit in either:
        with pytest.raises(InvalidValue, match="an older version wrote"):
            refuse_other_unit(by(*unit), ledger.budget("people"))

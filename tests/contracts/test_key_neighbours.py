"""One unit moves the weights of keys by no more than is priced, whatever it writes into its cells.

A loop over the rows in Python is the twin. Where a unit has more keys than it may keep, which ones it keeps is left to
chance, so that there only their number and their weights are compared.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.data.key_counts import LONGEST_KEY, each_key, key_query
from farthing.errors import InvalidValue

EXAMPLES = int(os.environ.get("FARTHING_CHAINS", "15"))
CELLS = [None, "", " ", "flu", "Flu", " FLU\t", "cold", "ÄPFEL", "äpfel", "ß", "İ", "x" * 100, "x" * 101, "é" * 51, "1"]
WEIGHTS = (30, 21, 17)
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(1, 4)), st.sampled_from(CELLS)), max_size=12)
KINDS = pa.schema([("person", pa.int64()), ("diagnosis", pa.string())])


def folded(cell: str | None, trim: bool, lower: bool) -> str | None:
    if cell is None:
        return None
    text = cell.strip(" \t\n\r\v\f") if trim else cell
    if lower:
        text = "".join(a.lower() if len(a.lower()) == 1 and a.lower().upper() == a else a for a in text)
    return text if len(text.encode()) <= LONGEST_KEY else None


def keys_of(rows: list[tuple[int | None, str | None]], trim: bool, lower: bool) -> dict[int, set[str]]:
    """The keys of every unit, by a loop over the rows."""
    found: dict[int, set[str]] = {}
    for person, cell in rows:
        key = folded(cell, trim, lower)
        if person is not None and key is not None:
            found.setdefault(person, set()).add(key)
    return found


def counted(rows: list[Any], weights: tuple[int, ...], trim: bool = False, lower: bool = False) -> dict[str, int]:
    columns = (
        dict(zip(KINDS.names, zip(*rows, strict=True), strict=True)) if rows else {name: [] for name in KINDS.names}
    )
    people = ft.dataset(pa.table(columns, schema=KINDS), unit="person", max_rows=2, schema={"diagnosis": ["flu"]})
    found: dict[str, int] = {}
    each_key(
        people,
        "diagnosis",
        weights,
        lambda keys, sums: found.update(zip(keys, sums.tolist(), strict=True)),
        trim=trim,
        lower=lower,
    )
    return found


@pytest.mark.slow
@given(ROWS, st.booleans(), st.booleans())
@settings(max_examples=EXAMPLES, deadline=None)
def test_units_add_their_weights_to_their_own_keys_and_no_others(rows: list[Any], trim: bool, lower: bool) -> None:
    own = keys_of(rows, trim, lower)
    few = {person: keys for person, keys in own.items() if len(keys) <= len(WEIGHTS)}
    kept = [row for row in rows if row[0] in few or row[0] is None]
    exact: Counter[str] = Counter()
    for keys in few.values():
        exact.update(dict.fromkeys(keys, WEIGHTS[len(keys) - 1]))
    if len(kept) == len(rows):
        assert counted(rows, WEIGHTS, trim, lower) == dict(exact)
        return
    # The rest keep as many keys as they may, of their own, and leave those of the others alone.
    more = Counter(counted(rows, WEIGHTS, trim, lower))
    more.subtract(exact)
    many = {person: keys for person, keys in own.items() if person not in few}
    assert sum(more.values()) == len(many) * len(WEIGHTS) * WEIGHTS[-1]
    for key, total in more.items():
        assert 0 <= total <= WEIGHTS[-1] * sum(key in keys for keys in many.values())


@pytest.mark.draws(false_alarm=1e-29, miss=1e-29)
def test_a_unit_of_many_keys_keeps_some_of_them_at_random_and_not_by_the_order_of_rows() -> None:
    """Of ten keys three are kept: no unit of 200 keeps the first of its rows with chance 0.7^200, all with 0.3^200."""
    rows = [(person, f"key {number}") for person in range(200) for number in range(10)]
    found = counted(rows, (1, 1, 1))
    assert sum(found.values()) == 600
    assert len(found) == 10 and max(found.values()) < 200


def test_where_a_unit_is_one_row_it_counts_once() -> None:
    table = pa.table({"diagnosis": ["flu", "flu", None, "cold"], "code": [1, 1, 2**62, None]})
    people = ft.dataset(table, schema={"diagnosis": ["flu"], "code": (0, 9)})
    for column, expected in (("diagnosis", {"flu": 2, "cold": 1}), ("code", {1: 2})):
        found: dict[Any, int] = {}
        take = found.update
        each_key(people, column, (1,), lambda keys, sums, take=take: take(zip(keys, sums.tolist(), strict=True)))
        assert found == expected


def test_a_column_without_keys_is_refused_by_its_type() -> None:
    people = ft.dataset(pa.table({"cost": [1.5]}), schema={"cost": (0.0, 9.0)})
    with pytest.raises(InvalidValue, match="must hold text or whole numbers to be discovered, not float64"):
        key_query(people, "cost", (1,))

"""Two units are the same only if their bytes are, on every engine, whatever a column's type thinks about equality."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from backends.engine_under_test import EngineUnderTest
from backends.hostile_columns import PLAIN, TEXT, hostile, quoted
from farthing.data import Count, Dataset, Sum, dataset
from farthing.data.stability import Run
from farthing.errors import InvalidValue

# Rows of a unit are alike, and how many stay is no matter of chance; keys of samples are given.
pytestmark = pytest.mark.draws(false_alarm=0, miss=0)

SPELLINGS = [
    "ab", "AB", "Ab", "aB", "ab ", "ab  ", "AB ", " ab", "äb", "Äb", "a\u0308b", "", " ", "b", "B", "0012", "12",
    "x" * 31, "X" * 31, "x" * 32, "X" * 32, "x" * 33,
]  # fmt: skip
SHORT = [spelling for spelling in SPELLINGS if len(spelling) <= 8]
EACH = 3


def spellings(kind: str) -> list[str]:
    return SHORT if "(8)" in kind else SPELLINGS


def canonical(spelling: str, padded: bool) -> bytes:
    return (spelling.rstrip(" ") if padded else spelling).encode()


def made(engine: EngineUnderTest, kind: str, column: str = "a", each: int = EACH) -> Any:
    """Every spelling as a unit of `each` rows that hold 1, and two rows of nobody."""
    cells = [quoted(spelling) for spelling in spellings(kind) for _ in range(each)]
    rows = [[cell, "1"] for cell in cells] + [["NULL", "1"]] * 2
    return hostile(engine, {"id": kind, column: "bigint"}, rows)


def people(table: Any, max_rows: int, column: str = "a") -> Dataset:
    return dataset(table, unit="id", max_rows=max_rows, schema={column: (0, 10)})


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_rows_are_bounded_sampled_joined_and_added_by_the_bytes_of_their_unit(
    engine: EngineUnderTest,
) -> None:
    """Grouped by a collation, 22 spellings were a few units; hashed, they were 22; joined, 'ab' met 'ab ' and 'AB'."""
    kinds, plain = TEXT[engine.name], PLAIN[engine.name]
    tables = {kind: made(engine, kind) for kind in kinds}
    second = {kind: made(engine, kind, "b", 1) for kind in kinds}
    for kind, padded in kinds.items():
        units = Counter(canonical(spelling, padded) for spelling in spellings(kind))
        rows = {unit: EACH * count for unit, count in units.items()}
        assert people(tables[kind], 2).exact({"n": Count()})["n"] == 2 * len(units), kind
        everybody = people(tables[kind], 100)
        assert sampled_rows(everybody) == sampled_twin(rows), kind
        both = people(tables[kind], 1).union(people(tables[plain], 2))
        assert both.exact({"n": Sum("a")})["n"] == len(units) + 2 * len(SPELLINGS), kind
    turned = [(kind, plain) for kind in kinds if kind != plain and engine.name != "spark"]  # which plans for seconds
    for left, right in [(plain, kind) for kind in kinds] + turned:
        other = {canonical(spelling, kinds[right]) for spelling in spellings(right)}
        mine = {canonical(spelling, kinds[left]) for spelling in spellings(left)}
        joined = people(tables[left], 1).join(people(second[right], 1, "b"))
        assert joined.exact({"n": Count()})["n"] == len(mine & other), (left, right)


KEY, SHARE = "5" * 64, Fraction(1, 2)


def sampled_rows(everybody: Dataset) -> int:
    half = everybody.sample(0.5)
    table = half.table(Run(KEY, SHARE, frozenset({"a"})))
    engine = half._base.source.engine
    ((kept,),) = engine.rows(engine.sql(table.aggregate(n=table.count())))
    return int(kept)


def sampled_twin(rows: dict[bytes, int]) -> int:
    """A unit's rows are in or out together, by the keyed hash of its bytes or, if it is long, of their digest."""
    return sum(count for unit, count in rows.items() if _is_kept(unit))


def _is_kept(unit: bytes) -> bool:
    digits = (unit if len(unit) < 32 else hashlib.sha256(unit).digest()).hex()
    digest = hashlib.sha256(f"{KEY}{len(digits)}:{digits}".encode()).digest()
    return int.from_bytes(digest) < SHARE * 2**256


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_a_person_who_leaves_takes_one_row_out_of_a_join(engine: EngineUnderTest) -> None:
    """VARCHAR x CHAR(8) met 512 strangers whose names end in blanks: 512 rows moved where 1 is claimed."""
    strangers = [[quoted("ab" + " " * number), "1"] for number in range(512)]
    left = people(hostile(engine, {"id": "varchar(600)", "a": "bigint"}, strangers), 1)
    found = []
    for rows in ([["'ab'", "1"]], []):
        right = people(hostile(engine, {"id": "char(8)", "b": "bigint"}, rows), 1, "b")
        joined = left.join(right)
        assert joined.stability().distance == 1
        found.append(int(joined.exact({"n": Count()})["n"]))
    assert found == [1, 0]


WRONG_UNITS = {
    "duckdb": ["double", "decimal(10, 2)", "timestamp", "timestamptz", "blob", "interval", "time", "json", "int[]"],
    "postgres": [
        "numeric", "double precision", "money", "timestamp", "timestamptz", "bytea", "interval", "json", "jsonb",
        "inet", "bit(3)", "int[]", "xid", "point",
    ],
    "spark": ["double", "decimal(10, 2)", "timestamp", "binary", "array<int>"],
}  # fmt: skip


def test_units_without_one_form_are_refused_by_their_type(engine: EngineUnderTest) -> None:
    """1.0 and 1.00, 0.0 and -0.0, one moment in two time zones: equal and not the same."""
    for kind in WRONG_UNITS[engine.name]:
        table = hostile(engine, {"id": kind, "a": "bigint"}, [])
        with pytest.raises(InvalidValue, match="must be a column of whole numbers, text, UUIDs or dates") as refusal:
            people(table, 1)
        assert "DataType" not in str(refusal.value)  # a type that Ibis does not know has a name, too

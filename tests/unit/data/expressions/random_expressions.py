"""Random expressions as text, random raw rows with every kind of bad cell, and both evaluations of one on the other."""

from __future__ import annotations

import datetime
import math
import random
from functools import cache
from typing import Any

import duckdb
import ibis
from hypothesis import strategies as st

from farthing.data.expressions import Expression, read_column
from farthing.data.schema import Schema

SCHEMA = Schema.read(
    {
        "x": (-5.0, 5.0), "y": (0.0, 1e6), "z": (0.5, 2.5), "w": (-1e15, -1.0),
        "i": (0, 110), "j": (-7, 7), "big": (-(2**45), 2**45), "code": [1, 2, 4],
        "sex": ["F", "M"], "town": ["Zürich", "日本", "it's", "", "north%", 'a"b\\'], "flag": bool, "only": [True],
        "born": (datetime.date(1990, 2, 28), datetime.date(2020, 3, 1)),
        "seen": (datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    }
)  # fmt: skip

TYPES = {
    "x": "DOUBLE", "y": "DOUBLE", "z": "FLOAT", "w": "DOUBLE", "i": "DOUBLE", "j": "BIGINT", "big": "HUGEINT",
    "code": "UBIGINT", "sex": "VARCHAR", "town": "VARCHAR", "flag": "BOOLEAN", "only": "BOOLEAN",
    "born": "DATE", "seen": "TIMESTAMP",
}  # fmt: skip

_TINY = [5e-324, -5e-324, 1e-300, -1e-300, 2.0**-60, -(2.0**-60), math.nextafter(2.0**-60, 0), 1e-18, -0.0]
_REALS = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    0.5,
    1.0,
    -1.5,
    2.5,
    1e308,
    -1e308,
    math.pi,
    1e15,
    -3.25,
    *_TINY,
]
_INTS = [0, 1, -1, 2, 3, 7, -7, 64, 110, 111, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]


def raw_cell(name: str, source: random.Random) -> Any:
    """One cell, often a bad one."""
    if source.random() < 0.1:
        return None
    kind = TYPES[name]
    if kind in {"DOUBLE", "FLOAT"}:
        value = source.choice([*_REALS, source.uniform(-6, 6), source.uniform(0, 120), float(source.randint(-9, 200))])
        return value if kind == "DOUBLE" or not abs(value) > 3e38 else math.copysign(3e38, value)
    if kind in {"BIGINT", "HUGEINT"}:
        return source.choice([*_INTS, source.randint(-9, 9), source.randint(-9, 9), source.randint(-(2**50), 2**50)])
    if kind == "UBIGINT":
        return source.choice([0, 1, 2, 3, 4, 2**64 - 1, 2**63])
    if kind == "BOOLEAN":
        return source.random() < 0.5
    if kind == "DATE":
        return datetime.date(1985, 1, 1) + datetime.timedelta(days=source.randint(0, 14000))
    if kind == "TIMESTAMP":
        return datetime.datetime(1, 1, 1) + datetime.timedelta(seconds=source.randint(0, 300_000_000_000))
    domain = SCHEMA[name]
    return source.choice([*domain.values, "X", "f", "F ", "日", "1", "😀", "'; drop table t; --"])  # type: ignore[union-attr]


def raw_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows whose cells are independent draws."""
    source = random.Random(seed)
    return [{name: raw_cell(name, source) for name in SCHEMA} for _ in range(count)]


class Engine:
    """DuckDB with one table of raw rows."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.connection = duckdb.connect(config={"threads": 1})
        columns = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
        self.connection.execute(f"create table t (n INTEGER, {columns})")
        marks = ", ".join("?" * (len(TYPES) + 1))
        self.connection.executemany(
            f"insert into t values ({marks})", [[n, *row.values()] for n, row in enumerate(rows)]
        )
        types = {"FLOAT": "float32", "DOUBLE": "float64", "BIGINT": "int64", "HUGEINT": "decimal(38, 0)",
                 "UBIGINT": "uint64", "VARCHAR": "string", "BOOLEAN": "boolean", "DATE": "date",
                 "TIMESTAMP": "timestamp"}  # fmt: skip
        self.table = ibis.table({"n": "int32"} | {name: types[kind] for name, kind in TYPES.items()}, name="t")
        if self.rows:  # what a float32 column holds is not what was written into it
            for row, (z,) in zip(rows, self.connection.execute("select z from t order by n").fetchall(), strict=True):
                row["z"] = z

        cells = {name: read_column(self.table[name], domain) for name, domain in SCHEMA.columns.items()}
        self.cleaned = self.table.select("n", **cells)
        self.connection.execute("create table cleaned as " + ibis.to_sql(self.cleaned, dialect="duckdb"))
        self.cleaned = ibis.table(self.cleaned.schema(), name="cleaned")

    def values(self, expression: Expression, *, raw: bool = False) -> list[Any]:
        """The expression on every row, in order; on raw cells the SQL is longer, and so is the time to plan it."""
        table = self.table if raw else self.cleaned
        query = table.select("n", v=expression.to_ibis(table, cells_read=not raw)).order_by("n")
        return [value for _, value in self.connection.execute(ibis.to_sql(query, dialect="duckdb")).fetchall()]


# Text of a given kind, by depth

_REAL_COLUMNS, _WHOLE_COLUMNS = ["x", "y", "z", "w"], ["i", "j", "code"]
_DATES = st.sampled_from(["born", "seen", "date '2000-02-29'", "date '1990-02-28'"])
_LABELS = st.sampled_from(["sex", "town", "lower(town)", "upper(sex)", "coalesce(sex, 'none')"])
_CONSTANTS = ["0", "1", "2", "-3", "7", "0.5", "2.5", "-0.25", "1e3", "1e-9", "0.1"]


@cache
def numbers(depth: int) -> st.SearchStrategy[str]:
    """An arithmetic expression without ln and exp of real numbers, whose last digits are the engine's own."""
    leaves = st.sampled_from([*_REAL_COLUMNS, *_WHOLE_COLUMNS, *_WHOLE_COLUMNS, *_CONSTANTS])
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/"]), inner),
        st.builds("(-{})".format, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "sign", "floor", "ceil", "round", "sqrt"]), inner),
        st.builds("round({}, {})".format, inner, st.integers(0, 4)),
        st.builds("power({}, {})".format, inner, st.integers(1, 4)),
        st.builds("{}({})".format, st.sampled_from(["ln", "exp", "log10", "sqrt"]), st.sampled_from(_WHOLE_COLUMNS)),
        st.builds("{}({}, {})".format, st.sampled_from(["least", "greatest", "coalesce", "nullif"]), inner, inner),
        st.builds("clip({}, -2, 3.5)".format, inner),
        st.builds("cast({} as {})".format, inner, st.sampled_from(["integer", "double"])),
        st.builds("cast({} as integer)".format, conditions(depth - 1)),
        st.builds("case when {} then {} else {} end".format, conditions(depth - 1), inner, inner),
        st.builds("case when {} then {} end".format, conditions(depth - 1), inner),
        st.builds("{}({})".format, st.sampled_from(["year", "month", "day"]), _DATES),
        st.builds("days_between({}, {})".format, _DATES, _DATES),
        st.builds("length({})".format, _LABELS),
    )


@cache
def conditions(depth: int) -> st.SearchStrategy[str]:
    """A predicate."""
    order = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    leaves = st.one_of(
        st.sampled_from(["flag", "only", "true", "sex = 'F'", "town in ('日本', 'it''s')", "town like '%r%'",
                         "sex > 'F'", "town <> ''", "'it''s' = town", "code in (1, 4)", "lower(sex) = 'm'"]),
        st.builds("{} {} {}".format, _DATES, order, _DATES),
        st.builds("{} between '1995-01-01' and '2005-06-30'".format, _DATES),
    )  # fmt: skip
    if depth == 0:
        return leaves
    inner, number = conditions(depth - 1), numbers(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or", "=", "<>"]), inner),
        st.builds("(not {})".format, inner),
        st.builds("({} {} {})".format, number, order, number),
        st.builds("({} between {} and {})".format, number, number, number),
        st.builds("({} {} (0, 1, 2.5, -3))".format, number, st.sampled_from(["in", "not in"])),
        st.builds("({} is {}null)".format, st.one_of(number, inner), st.sampled_from(["", "not "])),
    )

"""Expressions with their results on nine rows, for every engine: ordinary ones, and ones meant to do harm.

Every result is an integer, so that engines can be compared exactly: 1 and 0 for true and false, the number itself
for whole numbers, floor(1024 x) for real ones, the place in the list of categories, the day counted from 1970-01-01;
None is missing. The results were computed by hand or by the plain definition, looked through, and written down.

A hostile case has a row that would set it off in a careless system. It must behave the same without that row.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from farthing.data.expressions import Expression, read
from farthing.data.schema import Categories, Dates, Flags, Integers, Reals, Schema

DAY = datetime.date
SCHEMA = Schema.read(
    {
        "age": (0, 110), "balance": (-100, 100), "big": (-(2**61), 2**61), "order": (0, 9), "code": [1, 2, 4],
        "weight": (30.0, 250.0), "height": (0.0, 2.5), "score": (-10.0, 10.0),
        "sex": ["F", "M"], "town": ["Zürich", "日本", "it's", ""], "note": ["abc", "1", "x'y", "back\\slash"],
        "smoker": bool, "born": (DAY(1950, 1, 1), DAY(2020, 12, 31)),
    }
)  # fmt: skip

KINDS = {
    "n": pa.int64(), "age": pa.int64(), "balance": pa.int32(), "big": pa.int64(), "order": pa.int16(),
    "code": pa.int64(), "weight": pa.float64(), "height": pa.float64(), "score": pa.float64(),
    "sex": pa.string(), "town": pa.string(), "note": pa.string(), "smoker": pa.bool_(), "born": pa.date32(),
}  # fmt: skip

_NAN, _INF, _MOST = math.nan, math.inf, 2**63 - 1
_ROWS: list[tuple[Any, ...]] = [
    (0, 34, -7, 5, 3, 2, 80.0, 2.0, 2.5, "F", "Zürich", "abc", True, DAY(1990, 2, 28)),
    (1, 71, 3, -5, 0, 4, 61.5, 1.5, -2.5, "M", "日本", "1", False, DAY(2000, 2, 29)),
    (2, None, None, None, None, None, None, None, None, None, None, None, None, None),
    (3, 111, -101, _MOST, -1, 3, _NAN, _NAN, _NAN, "X", "Zurich", "private-cell", None, DAY(1, 1, 1)),
    (4, _MOST, 2**31 - 1, 2**61, 10, 1, _INF, _INF, _INF, "f", "zürich", "9e999", True, DAY(9999, 12, 31)),
    (
        5,
        -_MOST - 1,
        -(2**31),
        -_MOST - 1,
        -(2**15),
        -1,
        -_INF,
        -_INF,
        -_INF,
        "F ",
        "it's",
        "x'y",
        False,
        None,
    ),
    (6, 0, 0, 0, 0, 0, 5e-324, 5e-324, -5e-324, "M", "", "back\\slash", True, DAY(1970, 1, 1)),
    (7, 18, 100, 2**53 + 1, 9, 2, 99.9, 1e-300, -0.0, "F", "it's", "", None, DAY(1969, 12, 31)),
    (
        8,
        65,
        -100,
        -(2**53) - 1,
        5,
        1,
        70.25,
        0.1,
        0.30000000000000004,
        "M",
        "Zürich",
        "abc",
        False,
        DAY(2020, 12, 31),
    ),
]
ROWS: list[dict[str, Any]] = [dict(zip(KINDS, row, strict=True)) for row in _ROWS]


@dataclass(frozen=True)
class Case:
    """An expression and its integer on every row of ROWS."""

    name: str
    text: str
    expected: tuple[int | None, ...]


@dataclass(frozen=True)
class Hostile:
    """An expression meant to do harm, the row of ROWS that would set it off, and what must happen instead.

    Either `refused` is a part of the rule that refuses it, for any rows at all, or `expected` is its defined result.
    """

    name: str
    text: str
    trigger: int
    refused: str = ""
    expected: tuple[int | None, ...] = ()


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    """The raw rows, to be loaded into an engine."""
    return pa.Table.from_pylist(rows, schema=pa.schema(KINDS))


def expression(text: str) -> Expression:
    """The expression of a case."""
    return read(text, SCHEMA)


def integer_column(found: Expression, rows: Any) -> Any:
    """The expression on the Ibis table `rows` as the integers that cases expect; rows hold raw cells."""
    import ibis

    value = found.to_ibis(rows)
    if isinstance(found.domain, Flags):
        return ibis.cases((value, ibis.literal(1, "int64")), (~value, ibis.literal(0, "int64")))
    if isinstance(found.domain, Integers):
        return value
    if isinstance(found.domain, Reals):
        return (value * ibis.literal("1024").cast("float64")).floor()
    if isinstance(found.domain, Dates):
        return value.delta(ibis.date(1970, 1, 1), unit="day").cast("int64")
    places = ((choice, ibis.literal(place).cast("int64")) for place, choice in enumerate(found.domain.values))
    return value.cases(*places)


def integer(found: Expression, row: dict[str, Any]) -> int | None:
    """The same from the plain definition."""
    value: Any = found.value(row)
    if value is None or isinstance(found.domain, Integers | Flags):
        return None if value is None else int(value)
    if isinstance(found.domain, Categories):
        return found.domain.values.index(value)
    if isinstance(found.domain, Dates):
        return int((value - DAY(1970, 1, 1)).days)
    return math.floor(value * 1024.0)


def query(rows: Any, cases: list[Case]) -> Any:
    """One query with a column for every case, c0, c1 and so on, in the order of n."""
    columns = {f"c{place}": integer_column(expression(case.text), rows) for place, case in enumerate(cases)}
    return rows.select(n=rows["n"], **columns).order_by("n")


ORDINARY = [
    Case("whole column", "age", (34, 71, None, 110, 110, 0, 0, 18, 65)),
    Case("small whole column", "balance", (-7, 3, None, -100, 100, -100, 0, 100, -100)),
    Case("big whole column", "big",
          (5, -5, None, 2305843009213693952, 2305843009213693952, -2305843009213693952, 0, 9007199254740993,
         -9007199254740993)),
    Case("column with a keyword's name", '"order"', (3, 0, None, 0, 9, 0, 0, 9, 5)),
    Case("whole categories", "code", (1, 2, None, None, 0, None, None, 1, 0)),
    Case("real column", "weight", (81920, 62976, None, None, 256000, 30720, 30720, 102297, 71936)),
    Case("real column with zero", "height", (2048, 1536, None, None, 2560, 0, 0, 0, 102)),
    Case("signed real column", "score", (2560, -2560, None, None, 10240, -10240, 0, 0, 307)),
    Case("categories", "sex", (0, 1, None, None, None, None, 1, 0, 1)),
    Case("unicode categories", "town", (0, 1, None, None, None, 2, 3, 2, 0)),
    Case("awkward categories", "note", (0, 1, None, None, None, 2, 3, None, 0)),
    Case("flag", "smoker", (1, 0, None, None, 1, 0, 1, None, 0)),
    Case("date", "born", (7363, 11016, None, -7305, 18627, None, 0, -1, 18627)),
    Case("less", "age < 65", (1, 0, None, 0, 0, 1, 1, 1, 0)),
    Case("at most", "age <= 65", (1, 0, None, 0, 0, 1, 1, 1, 1)),
    Case("equal", "age = 34", (1, 0, None, 0, 0, 0, 0, 0, 0)),
    Case("not equal", "age <> 34", (0, 1, None, 1, 1, 1, 1, 1, 1)),
    Case("greater than a fraction", "age > 64.5", (0, 1, None, 1, 1, 0, 0, 0, 1)),
    Case("at least, reals", "score >= 0.3", (1, 0, None, None, 1, 0, 0, 0, 1)),
    Case("equal reals", "score = 2.5", (1, 0, None, None, 0, 0, 0, 0, 0)),
    Case("category equal", "sex = 'F'", (1, 0, None, None, None, None, 0, 1, 0)),
    Case("category not equal", "sex <> 'F'", (0, 1, None, None, None, None, 1, 0, 1)),
    Case("category in a list", "town in ('日本', 'it''s')", (0, 1, None, None, None, 1, 0, 1, 0)),
    Case("category not in a list", "town not in ('日本', '')", (1, 0, None, None, None, 1, 0, 1, 1)),
    Case("category order by code point", "town > 'a'", (0, 1, None, None, None, 1, 0, 1, 0)),
    Case("like", "town like '%r%'", (1, 0, None, None, None, 0, 0, 0, 1)),
    Case("like one character", "town like '__'", (0, 1, None, None, None, 0, 0, 0, 0)),
    Case("not like", "note not like '%b%'", (0, 1, None, None, None, 1, 0, None, 0)),
    Case("lower", "lower(sex)", (0, 1, None, None, None, None, 1, 0, 1)),
    Case("upper compared", "upper(town) = 'ZÜRICH'", (1, 0, None, None, None, 0, 0, 0, 1)),
    Case("length", "length(town)", (6, 2, None, None, None, 4, 0, 4, 6)),
    Case("whole in a list", "age in (34, 65, 110)", (1, 0, None, 1, 1, 0, 0, 0, 1)),
    Case("between", "age between 18 and 65", (1, 0, None, 0, 0, 0, 0, 1, 1)),
    Case("not between", "score not between -2.5 and 2.5", (0, 0, None, None, 1, 1, 0, 0, 0)),
    Case("date before", "born < date '1990-02-28'", (0, 0, None, 1, 0, None, 1, 1, 0)),
    Case("date beside text", "born >= '1970-01-01'", (1, 1, None, 0, 1, None, 1, 0, 1)),
    Case("dates between", "born between '1969-12-31' and '1990-02-28'", (1, 0, None, 0, 0, None, 1, 1, 0)),
    Case("year", "year(born)", (1990, 2000, None, 1950, 2020, None, 1970, 1969, 2020)),
    Case("month", "month(born)", (2, 2, None, 1, 12, None, 1, 12, 12)),
    Case("day", "day(born)", (28, 29, None, 1, 31, None, 1, 31, 31)),
    Case("days between", "days_between(born, date '2020-12-31')",
          (11264, 7611, None, 25932, 0, None, 18627, 18628, 0)),
    Case("leap day", "month(born) = 2 and day(born) = 29", (0, 1, None, 0, 0, None, 0, 0, 0)),
    Case("and", "sex = 'F' and age < 65", (1, 0, None, 0, 0, None, 0, 1, 0)),
    Case("or", "sex = 'F' or age < 65", (1, 0, None, None, None, 1, 1, 1, 0)),
    Case("not", "not (sex = 'F')", (0, 1, None, None, None, None, 1, 0, 1)),
    Case("three-valued or", "smoker or age < 65", (1, 0, None, None, 1, 1, 1, 1, 0)),
    Case("three-valued and", "smoker and age < 65", (1, 0, None, 0, 0, 0, 1, None, 0)),
    Case("is null", "weight is null", (0, 0, 1, 1, 0, 0, 0, 0, 0)),
    Case("is not null", "town is not null", (1, 1, 0, 0, 0, 1, 1, 1, 1)),
    Case("null of a condition", "(sex = 'F' or smoker) is null", (0, 0, 1, 1, 0, 1, 0, 0, 0)),
    Case("not in, asked for null", "(age not in (34, 65)) is null", (0, 0, 1, 0, 0, 0, 0, 0, 0)),
    Case("conditions compared", "(age < 65) = smoker", (1, 1, None, None, 0, 0, 1, None, 1)),
    Case("sum", "age + balance", (27, 74, None, 10, 210, -100, 0, 118, -35)),
    Case("difference", "age - balance * 2", (48, 65, None, 310, -90, 200, 0, -182, 265)),
    Case("product", "age * balance", (-238, 213, None, -11000, 11000, 0, 0, 1800, -6500)),
    Case("product of reals", "weight * height", (163840, 94464, None, None, 640000, 0, 0, 0, 7193)),
    Case("negative", "-balance", (7, -3, None, 100, -100, 100, 0, -100, 100)),
    Case("mixed", "age * 0.5 + score", (19968, 33792, None, None, 66560, -10240, 0, 9216, 33587)),
    Case("true division", "age / 7", (4973, 10386, None, 16091, 16091, 0, 0, 2633, 9508)),
    Case("division of negatives", "balance / 8", (-896, 384, None, -12800, 12800, -12800, 0, 12800, -12800)),
    Case("division by a column", "age / balance > 3", (0, 1, None, 0, 0, 0, None, 0, 0)),
    Case("division by a clipped column", "weight / greatest(height, 0.5)",
          (40960, 41984, None, None, 102400, 61440, 61440, 204595, 143872)),
    Case("body mass", "weight / (greatest(height, 1.0) * greatest(height, 1.0))",
          (20480, 27989, None, None, 40960, 30720, 30720, 102297, 71936)),
    Case("floor division", "balance // 7", (-1, 0, None, -15, 14, -15, 0, 14, -15)),
    Case("floor division by a negative", "balance // (-7)", (1, -1, None, 14, -15, 14, 0, -15, 14)),
    Case("floor division by a column", "age // balance", (-5, 23, None, -2, 1, 0, None, 0, -1)),
    Case("floor division of reals", "score // 0.75", (3, -4, None, None, 13, -14, 0, 0, 0)),
    Case("remainder", "balance % 7", (0, 3, None, 5, 2, 5, 0, 2, 5)),
    Case("remainder of a negative divisor", "balance % (-7)", (0, -4, None, -2, -5, -2, 0, -5, -2)),
    Case("remainder by a column", "age % balance", (-1, 2, None, -90, 10, 0, None, 18, -35)),
    Case("remainder of reals", "score % 0.75", (256, 512, None, None, 256, 512, 0, 0, 307)),
    Case("abs", "abs(balance)", (7, 3, None, 100, 100, 100, 0, 100, 100)),
    Case("abs of reals", "abs(score)", (2560, 2560, None, None, 10240, 10240, 0, 0, 307)),
    Case("sign", "sign(score)", (1, -1, None, None, 1, -1, 0, 0, 1)),
    Case("floor", "floor(score)", (2, -3, None, None, 10, -10, 0, 0, 0)),
    Case("ceil", "ceil(score)", (3, -2, None, None, 10, -10, 0, 0, 1)),
    Case("round half away", "round(score)", (3, -3, None, None, 10, -10, 0, 0, 0)),
    Case("round to digits", "round(score * 0.37, 2)", (952, -953, None, None, 3788, -3789, 0, 0, 112)),
    Case("round of wholes", "round(age)", (34, 71, None, 110, 110, 0, 0, 18, 65)),
    Case("sqrt", "sqrt(weight)", (9158, 8030, None, None, 16190, 5608, 5608, 10234, 8582)),
    Case("sqrt of whole numbers", "sqrt(age)", (5970, 8628, None, 10739, 10739, 0, 0, 4344, 8255)),
    Case("sqrt of negatives is missing", "sqrt(score)", (1619, None, None, None, 3238, None, 0, 0, 560)),
    Case("ln of whole numbers", "ln(age)", (3610, 4364, None, 4813, 4813, None, None, 2959, 4274)),
    Case("exp of whole numbers", 'exp("order")', (20567, 1024, None, 1024, 8297557, 1024, 1024, 8297557, 151975)),
    Case("log to a base", "log(2, code)", (1024, 2048, None, None, 0, None, None, 1024, 0)),
    Case("power", "power(balance, 3)", (-343, 27, None, -1000000, 1000000, -1000000, 0, 1000000, -1000000)),
    Case("even power", "power(score, 2)", (6400, 6400, None, None, 102400, 102400, 0, 0, 92)),
    Case("least", "least(age, balance)", (-7, 3, None, -100, 100, -100, 0, 18, -100)),
    Case("greatest", "greatest(score, height, -1)", (2560, 1536, None, None, 10240, 0, 0, 0, 307)),
    Case("clip", "clip(balance, -5, 5)", (-5, 3, None, -5, 5, -5, 0, 5, -5)),
    Case("clip of reals", "clip(score, -0.5, 0.25)", (256, -512, None, None, 256, -512, 0, 0, 256)),
    Case("coalesce", "coalesce(age, balance, -1)", (34, 71, -1, 110, 110, 0, 0, 18, 65)),
    Case("coalesce of categories", "coalesce(sex, 'none')", (0, 1, 2, 2, 2, 2, 1, 0, 1)),
    Case("nullif", "nullif(balance, 3)", (-7, None, None, -100, 100, -100, 0, 100, -100)),
    Case("case", "case when age < 18 then 'child' when age < 65 then 'adult' else 'old' end",
          (1, 2, 2, 2, 2, 0, 0, 1, 2)),
    Case("case with a subject", "case sex when 'F' then 1 when 'M' then 2 else 0 end", (1, 2, 0, 0, 0, 0, 2, 1, 2)),
    Case("case without else", "case when smoker then age end", (34, None, None, None, 110, None, 0, None, None)),
    Case("case of dates", "case when smoker then born else date '2000-01-01' end",
          (7363, 10957, 10957, 10957, 18627, 10957, 0, 10957, 10957)),
    Case("cast to integer", "cast(score as integer)", (3, -3, None, None, 10, -10, 0, 0, 0)),
    Case("cast to double", "cast(balance as double)",
          (-7168, 3072, None, -102400, 102400, -102400, 0, 102400, -102400)),
    Case("cast of a condition", "cast(smoker as integer) + cast(age > 30 as integer)",
          (2, 1, None, None, 2, 0, 1, None, 1)),
    Case("constants are folded", "age + 2 * 3 - 14 // (-4)", (44, 81, None, 120, 120, 10, 10, 28, 75)),
    Case("big is not null", "big is not null", (1, 1, 0, 1, 1, 1, 1, 1, 1)),
    Case("precedence", "1 + age * 2 % 5 - -3", (7, 6, None, 4, 4, 4, 4, 5, 4)),
    Case("not binds looser than comparison", "not age < 65 and sex = 'M'", (0, 1, None, None, None, 0, 0, 0, 1)),
    Case("many terms", " + ".join(["balance"] * 60), (-420, 180, None, -6000, 6000, -6000, 0, 6000, -6000)),
]  # fmt: skip

HOSTILE = [
    Hostile("cast of text", "cast(note as integer)", 3, refused="is not cast to a number"),
    Hostile("cast of text, double colon", "note::int", 3, refused="'::' and ':' are not understood"),
    Hostile("literal cast", "'x'::int", 3, refused="'::' and ':' are not understood"),
    Hostile("cast to text", "cast(age as varchar)", 3, refused="a cast makes an integer or a double"),
    Hostile("try_cast", "try_cast(note as int)", 3, refused="a function that can fail"),
    Hostile("cast of NaN", "cast('NaN' as double) > 1", 3, refused="is not cast to a number"),
    Hostile("text as a number", "note + 1 > 1", 3, refused="needs numbers, not text"),
    Hostile("flag as a number", "(age > 3) = 1", 3, refused="a condition and a number do not go together"),
    Hostile("text beside a number", "note < 5", 3, refused="do not go together"),
    Hostile("error()", "error(note)", 3, refused="a function that can fail"),
    Hostile("error() in a dead branch", "case when age > 200 then error('x') else 1 end", 3,
          refused="a function that can fail"),
    Hostile("raise_error", "raise_error(town) is null", 3, refused="a function that can fail"),
    Hostile("product beyond 64 bits", "big * big", 4, refused="could leave 64 bits"),
    Hostile("sum beyond 64 bits", "big + big", 4, refused="could leave 64 bits"),
    Hostile("hidden overflow", "age * 0 * 2000000000000000000 * 2000000000000000000", 0,
          refused="a factor is always zero"),
    Hostile("power beyond doubles", "power(exp(weight), 8) > 0", 4, refused="too large for a double"),
    Hostile("exp beyond doubles", "exp(weight * 10) > 1", 4, refused="from -600 to 600"),
    Hostile("exp below doubles", "exp(-weight * 100) > 0", 4, refused="from -600 to 600"),
    Hostile("product below doubles", "power(power(score, 8), 8) > 0", 6, refused="too small for a double"),
    Hostile("huge whole literal", "age < 99999999999999999999", 0, refused="could leave 64 bits"),
    Hostile("huge real literal", "score < 1e999", 0, refused="a number must be 0 or between"),
    Hostile("tiny literal", "score * 1e-320 > 0", 6, refused="a number must be 0 or between"),
    Hostile("literal without end", "age < " + "9" * 60, 0, refused="at most 40 characters"),
    Hostile("NaN literal", "score = NaN", 3, refused="not finite"),
    Hostile("Infinity literal", "score < Infinity", 4, refused="not finite"),
    Hostile("regular expression bomb", "regexp_matches(note, '(a+)+$')", 3, refused="matched by like only"),
    Hostile("similar to", "note similar to '(a|aa)+'", 3, refused="matched by like only"),
    Hostile("like with a column", "note like town", 3, refused="a pattern is a text between quotes"),
    Hostile("read_csv", "read_csv('/etc/passwd') is null", 0, refused="cannot read files"),
    Hostile("read_text", "length(read_text('/etc/passwd')) > 1", 0, refused="cannot read files"),
    Hostile("pg_read_file", "pg_read_file('/etc/passwd') = 'x'", 0, refused="cannot read files"),
    Hostile("sub-query", "age < (select max(age) from t)", 0, refused="sub-queries are not allowed"),
    Hostile("exists", "exists (select 1)", 0, refused="sub-queries are not allowed"),
    Hostile("several statements", "age < 3; drop table t", 0, refused="not a list of statements"),
    Hostile("attach", "attach 'x.db'", 0, refused="this is a statement"),
    Hostile("copy", "copy t to 'x.csv'", 0, refused="this is a statement"),
    Hostile("comment to the end", "age < 3 -- and sex = 'F'", 0, refused="comments are not allowed"),
    Hostile("comment inside", "age /* < 3 or true */ < 5", 0, refused="comments are not allowed"),
    Hostile("quotes that close early", "sex = 'F' or '1'='1", 0, refused="the text is not closed"),
    Hostile("nested quotes", "sex = 'F''; drop table t; --'", 0, refused="is not among the categories"),
    Hostile("dollar quotes", "sex = $$F$$", 0, refused="parameters are not understood"),
    Hostile("backquotes", "`age` < 3", 0, refused="backquotes are not understood"),
    Hostile("name with parts", "t.age < 3", 0, refused="a name has no parts"),
    Hostile("struct access", "born['year'] = 1990", 0, refused="lists and elements"),
    Hostile("lambda", "list_filter(age, lambda x: x > 1)", 0, refused="are not understood"),
    Hostile("arrow lambda", "age -> age", 0, refused="a column, a value"),
    Hostile("aggregate", "age > avg(age)", 0, refused="a statistic of many rows"),
    Hostile("count", "count(*) > 1", 0, refused="a statistic of many rows"),
    Hostile("window", "row_number() over () < 3", 0, refused="one row at a time"),
    Hostile("random", "random() < 0.5", 0, refused="must depend on the row alone"),
    Hostile("clock", "born < now()", 0, refused="must depend on the row alone"),
    Hostile("clock as a word", "born < current_date", 0, refused="must depend on the row alone"),
    Hostile("unknown column", "salary > 3", 0, refused="there is no column"),
    Hostile("unknown function", "frobnicate(age) > 3", 0, refused="not supported"),
    Hostile("quoted function", '"error"(note)', 3, refused="a quoted name is a column"),
    Hostile("keyword as a column", "order < and", 0, refused="a column or a value"),
    Hostile("cyrillic letter in a name", '\u0430ge < 3', 0, refused="there is no column"),
    Hostile("full-width digits", "age < ３", 0, refused="is not understood"),
    Hostile("no-break space", 'age\xa0< 3', 0, refused="is not understood"),
    Hostile("zero-width space", 'age\u200b < 3', 0, refused="is not understood"),
    Hostile("right-to-left override", "sex = \u202e'F'", 0, refused="is not understood"),
    Hostile("curly quotes", "sex = ‘F’", 0, refused="is not understood"),
    Hostile("NUL character", "sex = 'F\x00'", 0, refused="what no engine can store"),
    Hostile("half surrogate", "sex = '\ud800'", 0, refused="what no engine can store"),
    Hostile("deep parentheses", "(" * 200 + "age" + ")" * 200 + " < 3", 0, refused="nested more than"),
    Hostile("deep not", "not " * 200 + "smoker", 0, refused="nested more than"),
    Hostile("deep minus", "- " * 200 + "age < 3", 0, refused="nested more than"),
    Hostile("deep case", "case when smoker then " * 100 + "1" + " end" * 100, 0, refused="nested more than"),
    Hostile("deep sums", " + ".join(["age"] * 1500), 0, refused="more than 100 operations"),
    Hostile("doubling", "sign(" * 9 + "score" + ")" * 9 + " > 0", 0, refused="too long"),
    Hostile("very long", "age < 3 or " * 3000 + "smoker", 0, refused="characters long"),
    Hostile("chained comparison", "1 < age < 3", 0, refused="comparisons do not chain"),
    Hostile("comparison with null", "age = null", 2, refused="never true"),
    Hostile("unknown category", "sex = 'female'", 0, refused="is not among the categories"),
    Hostile("wrong date", "born < '2001-02-29'", 0, refused="there is no such date"),
    Hostile("arithmetic on conditions", "smoker + 1 > 1", 0, refused="needs numbers, not a condition"),
    Hostile("date difference", "born - born > 3", 0, refused="dates are not subtracted"),
    Hostile("one-argument log", "log(weight) > 1", 0, refused="a different base on each engine"),
    Hostile("empty", "", 0, refused="ends too early"),
    Hostile("only a blank", " ", 0, refused="ends too early"),
    Hostile("setting", "set threads = 1", 0, refused="this is a statement"),
    Hostile("trailing words", "age < 3 limit 1", 0, refused="an operator or the end"),
    Hostile("one by zero", "age + 1 / 0 > 3", 6, expected=(None, None, None, None, None, None, None, None, None)),
    Hostile("division by zero", "age / balance < 1e6", 6, expected=(1, 1, None, 1, 1, 1, None, 1, 1)),
    Hostile("floor division by zero", "age // balance", 6, expected=(-5, 23, None, -2, 1, 0, None, 0, -1)),
    Hostile("remainder by zero", "age % balance", 6, expected=(-1, 2, None, -90, 10, 0, None, 18, -35)),
    Hostile("division by a subnormal", "weight / height < 1e9", 6,
          expected=(1, 1, None, None, 1, None, None, None, 1)),
    Hostile("division by minus zero", "1 / score > 0", 7, expected=(1, 0, None, None, 1, 0, None, None, 1)),
    Hostile("division by what cancels", "1 / (score - score) is null", 0, expected=(1, 1, 1, 1, 1, 1, 1, 1, 1)),
    Hostile("ln of zero", "ln(height) < 0", 6, expected=(0, 0, None, None, 0, None, None, None, 1)),
    Hostile("ln of negatives", "ln(score) is null", 5, expected=(0, 1, 1, 1, 0, 1, 1, 1, 0)),
    Hostile("sqrt of negatives", "sqrt(score) >= 0", 5, expected=(1, None, None, None, 1, None, 1, 1, 1)),
    Hostile("product of subnormals", "score * height * height", 6,
          expected=(10240, -5760, None, None, 64000, 0, 0, 0, 3)),
    Hostile("quotient of subnormals", "(height / weight) * (height / weight) < 1", 6,
          expected=(1, 1, None, None, 1, 1, 1, 1, 1)),
    Hostile("infinite cells", "weight * weight * weight < 16000000", 4, expected=(1, 1, None, None, 1, 1, 1, 1, 1)),
    Hostile("NaN cells", "score > 9", 3, expected=(0, 0, None, None, 1, 0, 0, 0, 0)),
    Hostile("extreme whole cells", "age * age * age * age", 4,
          expected=(1336336, 25411681, None, 146410000, 146410000, 0, 0, 104976, 17850625)),
    Hostile("absolute value of the least whole number", "abs(big) >= 0", 5, expected=(1, 1, None, 1, 1, 1, 1, 1, 1)),
    Hostile("negation of the least whole number", "-big < 0", 5, expected=(1, 0, None, 1, 1, 0, 0, 1, 0)),
    Hostile("cast of an infinite cell", "cast(weight as integer)", 4,
          expected=(80, 62, None, None, 250, 30, 30, 100, 70)),
    Hostile("guard that an engine might skip", "case when balance <> 0 then age // balance else 0 end", 6,
          expected=(-5, 23, 0, -2, 1, 0, 0, 0, -1)),
    Hostile("guard by and", "balance <> 0 and age / balance > 1", 6, expected=(0, 1, None, 0, 1, 0, 0, 0, 0)),
    Hostile("text that looks like a number", "note = '1'", 3, expected=(0, 1, None, None, None, 0, 0, None, 0)),
    Hostile("text outside the list", "length(note) + 1", 3, expected=(4, 2, None, None, None, 4, 11, None, 4)),
    Hostile("dead branch of a division", "case when true then age else age // 0 end", 6,
          expected=(34, 71, None, 110, 110, 0, 0, 18, 65)),
    Hostile("whole numbers squared in 32 bits", "case when smoker then 100000 else 5 end * 100000", 0,
          expected=(10000000000, 500000, 500000, 500000, 10000000000, 500000, 10000000000, 500000, 500000)),
    Hostile("date far away", "year(born) * 10000 + month(born) * 100 + day(born)", 4,
          expected=(19900228, 20000229, None, 19500101, 20201231, None, 19700101, 19691231, 20201231)),
]  # fmt: skip

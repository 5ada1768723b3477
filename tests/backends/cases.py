"""The one table of cases: every engine must give these integers, and they are the twin's."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from backends import twin
from backends.asking import (
    Asked,
    cell_counts,
    count,
    count_where,
    cross_products,
    histogram,
    moments,
    order_counts,
    total,
)
from backends.tables import SCHEMA

DAY = datetime.date
Datasets = dict[str, Any]
_NUMBERS = itertools.count()  # columns of several cases may stand in one query


@dataclass(frozen=True)
class Case:
    """A chain of transformations, the same by loops, and what is asked at the end."""

    name: str
    asked: dict[str, Asked]
    chain: Callable[[Any, Datasets], Any] = lambda dataset, others: dataset
    loops: Callable[[twin.Rows, dict[str, twin.Rows]], twin.Rows] = lambda rows, others: rows
    table: str = "people"
    unit: tuple[str, ...] = ()
    max_rows: int | None = None
    filtered: tuple[Any, Callable[[twin.Row], bool | None]] | None = None


def _asked(*wanted: Asked) -> dict[str, Asked]:
    return {f"{place} {type(one.aggregate).__name__}": one for place, one in enumerate(wanted)}


def kept(name: str, predicate: Any, holds: Callable[[twin.Row], bool | None], **more: Any) -> Case:
    """A filter, seen by a count, a count in cells and a sum."""
    return Case(
        f"where {name}",
        _asked(count(), count("sex"), total("age")),
        lambda dataset, others: dataset.where(predicate),
        lambda rows, others: [row for row in rows if holds(row)],
        filtered=(predicate, holds),
        **more,
    )


def derived(text: Any, value: Callable[[twin.Row], Any], grid: float = 1.0, bounds: Any = None, **more: Any) -> Case:
    """A derived number, seen by a sum on a grid and by how often it is there."""
    wanted = (text, bounds) if bounds else text
    new = f"new{next(_NUMBERS)}"

    def loops(rows: twin.Rows, others: dict[str, twin.Rows]) -> twin.Rows:
        return [{**row, new: twin.cell(value(row), bounds) if bounds else value(row)} for row in rows]

    return Case(
        f"derive {text}",
        _asked(total(new, grid=grid), count(column=new), count("sex", column=new)),
        lambda dataset, others: dataset.derive(**{new: wanted}),
        loops,
        **more,
    )


def in_one_query(cases: Sequence[Case]) -> Case:
    """Cases of one table that leave no row out, asked together."""
    return Case(
        f"{cases[0].name} to {cases[-1].name}",
        {f"{at} {name}": asked for at, case in enumerate(cases) for name, asked in case.asked.items()},
        lambda dataset, others: reduce(lambda sofar, case: case.chain(sofar, others), cases, dataset),
        lambda rows, others: reduce(lambda sofar, case: case.loops(sofar, others), cases, rows),
    )


def filters_in_one_query(cases: Sequence[Case]) -> Case:
    """The conditions of filters of one table, as an aggregate's own, asked together."""
    conditions = {f"{at} {case.name}": case.filtered for at, case in enumerate(cases) if case.filtered is not None}
    return Case(
        f"counts {cases[0].name} to {cases[-1].name}",
        {f"{name} by {by}": count_where(*asked, *by) for name, asked in conditions.items() for by in ((), ("sex",))},
    )


def missing_if_any(*names: str) -> Callable[[Callable[..., Any]], Callable[[twin.Row], Any]]:
    """SQL's rule for an operator: missing arguments make the result missing."""

    def of(function: Callable[..., Any]) -> Callable[[twin.Row], Any]:
        def value(row: twin.Row) -> Any:
            arguments = [row[name] for name in names]
            return None if None in arguments else function(*arguments)

        return value

    return of


on = missing_if_any
YEARS = (*(DAY(year, 1, 1) for year in (1900, 1930, 1969, 1970, 1980, 2000)), DAY(2025, 12, 31))
MONTHS = (*(DAY(2024, month, 1) for month in range(1, 13)), DAY(2024, 12, 31))

EVERYTHING = _asked(
    count(), count("sex", "smokes"), count(column="score"), cell_counts("city"), total("score", grid=2**-10),
    total("big"), moments("age", (0, 1, 2), "sex"), cross_products(("age", "small")),
    histogram("born", YEARS), order_counts("score", (-2.5, 0.0, 0.1)),
)  # fmt: skip

AGGREGATES = [
    Case("everything in one plan", EVERYTHING),
    Case("everything of an empty table", EVERYTHING, table="empty"),
    Case("everything of an empty table with units", EVERYTHING, table="empty", unit=("person",), max_rows=5),
    Case("rows", _asked(count())),
    Case("rows with a value", _asked(*(count(column=n) for n in SCHEMA if n not in ("visits", "pains")))),
    Case("counts by categories, unknown ones left out", _asked(count("sex"), cell_counts("sex", "smokes"))),
    Case("counts by categories of other scripts and with quotes", _asked(count("city"), cell_counts("city", "sex"))),
    Case("counts by whole numbers", _asked(count("age"), count("small", "sex"))),
    Case("counts by flags", _asked(count("smokes"))),
    Case("counts by days", _asked(count("seen"))),
    Case("sums of whole numbers", _asked(total("age"), total("small"), total("age", "sex"))),
    Case("sums of negative numbers by city", _asked(total("small", "city"))),
    Case("sums near the limits of 64 bits", _asked(total("big"), total("big", "sex"))),
    Case("sums of whole numbers on a coarse grid", _asked(total("age", grid=4.0), total("small", grid=8.0))),
    Case("sums of reals on grids", _asked(*(total("score", grid=2.0**-k) for k in (0, 1, 10, 30)))),
    Case("sums of 32-bit reals", _asked(total("weight", grid=2.0**-20))),
    Case("sums of decimals", _asked(total("fee", grid=2.0**-20))),
    Case("sums of flags", _asked(total("smokes"), total("smokes", "sex"))),
    Case("moments of whole numbers", _asked(moments("small", (0, 1, 2, 3, 4)), moments("age", (1, 3)))),
    Case("moments of reals", _asked(moments("score", (0, 1, 2, 3), grid=2.0**-8))),
    Case("cross products", _asked(cross_products(("age", "small")), cross_products(("score", "age", "small")))),
    Case("histogram of whole numbers", _asked(histogram("age", (0, 18, 41, 110)), histogram("age", (0, 110), "sex"))),
    Case("histogram of reals with an edge on a value", _asked(histogram("score", (-10.0, -2.5, 0.0, 0.1, 2.5, 10.0)))),
    Case("histogram of days", _asked(histogram("born", YEARS), histogram("seen", MONTHS, "sex"))),
    Case("ranks of reals", _asked(order_counts("score", (-2.5, -1e-300, 0.0, 5e-324, 0.1, 2.5, 9.75)))),
    Case("ranks of whole numbers", _asked(order_counts("age", (1, 18, 41, 42, 109)))),
    Case("ranks of large whole numbers", _asked(order_counts("big", (-(2**61), 0, 2**53 + 1, 2**53 + 2, 2**61)))),
    Case("ranks of days", _asked(order_counts("born", YEARS[1:-1]))),
    Case("an aggregate's own filter", _asked(
        count_where("age >= 41", lambda r: r["age"] is not None and r["age"] >= 41, "sex"),
        count_where("smokes", lambda r: r["smokes"]), count(),
    )),
]  # fmt: skip

FILTERS = [
    kept("a category", "sex = 'F'", lambda r: r["sex"] == "F"),
    kept("not a category: missing is not kept", "sex <> 'F'", lambda r: r["sex"] == "M"),
    kept("not (unknown) is unknown", "not (age > 40)", lambda r: r["age"] is not None and r["age"] <= 40),
    kept("or with unknown", "age > 40 or sex = 'F'", lambda r: (r["age"] or 0) > 40 or r["sex"] == "F"),
    kept("missing", "age is null", lambda r: r["age"] is None),
    kept("not missing", "score is not null", lambda r: r["score"] is not None),
    kept("a list", "city in ('Zürich', '東京', 'O''Hare')", lambda r: r["city"] in ("Zürich", "東京", "O'Hare")),
    kept("quotes and backslashes", "city = 'back\\slash' or city = 'say \"x\"'",
         lambda r: r["city"] in ("back\\slash", 'say "x"')),
    kept("a pattern", "city like '%r%'", lambda r: r["city"] is not None and "r" in r["city"]),
    kept("empty text", "city = ''", lambda r: r["city"] == ""),
    kept("a range", "age between 18 and 65", lambda r: r["age"] is not None and 18 <= r["age"] <= 65),
    kept("reals beside an exact tie", "score <= 0.1", lambda r: r["score"] is not None and r["score"] <= 0.1),
    kept("reals and whole numbers", "score < age", on("score", "age")(lambda score, age: score < age)),
    kept("minus zero is zero", "score = 0", lambda r: r["score"] is not None and abs(r["score"]) < 1e-300),
    kept("clipped infinities", "score = 10 or score = -10", lambda r: r["score"] in (10.0, -10.0)),
    kept("large whole numbers", "big > 9007199254740992", lambda r: r["big"] is not None and r["big"] > 2**53),
    kept("negative", "small < -7 and small % 2 = 0", on("small")(lambda small: small < -7 and small % 2 == 0)),
    kept("a day", "born < date '1970-01-01'", lambda r: r["born"] is not None and r["born"] < DAY(1970, 1, 1)),
    kept("parts of a day", "month(born) = 2 and day(born) = 29",
         lambda r: r["born"] is not None and (r["born"].month, r["born"].day) == (2, 29)),
    kept("a time of day is dropped", "seen = date '2024-02-29'", lambda r: r["seen"] == DAY(2024, 2, 29)),
    kept("a flag", "smokes", lambda r: r["smokes"]),
    kept("not a flag", "not smokes", lambda r: r["smokes"] is False),
    kept("nobody", "age > 50 and age < 40", lambda r: False),
    kept("nobody in an empty table", "sex = 'F'", lambda r: r["sex"] == "F", table="empty"),
]  # fmt: skip

DERIVED = [
    derived("age + small", on("age", "small")(lambda a, b: a + b)),
    derived("age * small - 3", on("age", "small")(lambda a, b: a * b - 3)),
    derived("small // 7", on("small")(lambda a: a // 7)),
    derived("small % 7", on("small")(lambda a: a % 7)),
    derived("small // -7 + small % -7", on("small")(lambda a: a // -7 + a % -7)),
    derived("age / 3", on("age")(lambda a: a / 3), grid=2.0**-30),
    derived("age * 0.1", on("age")(lambda a: a * 0.1), grid=2.0**-30),
    derived("score * 0.1 + 0.2", on("score")(lambda a: a * 0.1 + 0.2), grid=2.0**-30),
    derived("case when age > 40 then 0.1 else 0.3 end", lambda r: 0.1 if (r["age"] or 0) > 40 else 0.3, grid=2.0**-30),
    derived("1 / (age - 41)", on("age")(lambda a: None if a == 41 else 1 / (a - 41)), grid=2.0**-20),
    derived("weight / (1 + score * score)", on("weight", "score")(lambda w, s: w / (1 + s * s)), grid=2.0**-20,
            bounds=(0.0, 100.0)),
    derived("abs(small) + coalesce(age, 0)",
            lambda r: None if r["small"] is None else abs(r["small"]) + (r["age"] or 0)),
    derived("round(score)", on("score")(lambda a: math.floor(a + 0.5) if a >= 0 else -math.floor(0.5 - a))),
    derived("floor(score) + ceil(score)", on("score")(lambda a: math.floor(a) + math.ceil(a))),
    derived("sqrt(age)", on("age")(math.sqrt), grid=2.0**-30),
    derived("least(age, small) - greatest(age, small)", on("age", "small")(lambda a, b: min(a, b) - max(a, b))),
    derived("case when sex = 'F' then 2 when sex = 'M' then 3 end", lambda r: {"F": 2, "M": 3}.get(r["sex"])),
    derived("year(born) * 10000 + month(born) * 100 + day(born)",
            on("born")(lambda d: d.year * 10_000 + d.month * 100 + d.day)),
    derived("length(city)", on("city")(len)),
    derived("case when smokes then age end", lambda r: r["age"] if r["smokes"] else None),
    derived("age", on("age")(lambda a: a), bounds=(18, 65)),
    derived("score", on("score")(lambda a: a), grid=2.0**-10, bounds=(-0.5, 0.25)),
]  # fmt: skip

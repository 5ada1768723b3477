"""Cases with several steps: units, lists, joins, unions, bins, parts; one giant unit."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from backends import twin
from backends.asking import cell_counts, count, histogram, order_counts, total
from backends.cases import DAY, Case, _asked
from backends.tables import SCHEMA

PARTS = {"age": ["0 to 17", "18 to 64", "65 to 110"]}
REGIONS = {"Zürich": ("EU", 1), "東京": ("AS", 2), "São Paulo": ("SA", 3), "": (None, 4)}
DECADES = (DAY(1950, 1, 1), DAY(1960, 1, 1), DAY(1980, 1, 1))
STEP = 2.0**-36  # on which scores from -10 to 10 are added: 40 bits of 16
WARDS = {"ward": ["A", "B", "Ω"]}


def _part(age: int | None) -> str | None:
    if age is None:
        return None
    return PARTS["age"][0 if age < 18 else 1 if age < 65 else 2]


def _exploded(rows: twin.Rows, name: str, limit: int) -> twin.Rows:
    return [{**row, name: element} for row in rows for element in (row[name] or [])[:limit]]


def _joined(rows: twin.Rows, others: dict[str, twin.Rows], keep: bool) -> twin.Rows:
    found = []
    for row in rows:
        partners = [other for other in others["stays"] if other["person"] == row["person"]]
        found += [{**row, **partner} for partner in partners]
        if keep and not partners:
            found.append({**row, "nights": None, "ward": None})
    return found


def _looked_up(rows: twin.Rows, keep: bool) -> twin.Rows:
    found = []
    for row in rows:
        if row["city"] in REGIONS:
            region, code = REGIONS[row["city"]]
            found.append({**row, "region": region, "code": code})
        elif keep:
            found.append({**row, "region": None, "code": None})
    return found


def _people(rows: twin.Rows, **columns: Callable[[twin.Rows], Any]) -> twin.Rows:
    persons: dict[Any, twin.Rows] = {}
    for row in rows:
        persons.setdefault(row["person"], []).append(row)
    return [{name: value(own) for name, value in columns.items()} for own in persons.values()]


def _there(rows: twin.Rows, name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def _mean(rows: twin.Rows, name: str, step: float = 1.0) -> float | None:
    steps = [twin.on_grid(value, step) for value in _there(rows, name)]
    return float(sum(steps) * Fraction(step)) / len(steps) if steps else None


def _public_table() -> list[dict[str, Any]]:
    return [{"city": city, "region": region, "code": code} for city, (region, code) in REGIONS.items()]


CHAINS = [
    Case("units with room for all their rows", _asked(count(), count("sex"), total("score", grid=2.0**-10)),
         unit=("person",), max_rows=100),
    Case("units of text", _asked(count(), total("age")), unit=("household",), max_rows=1000),
    Case("units of two columns", _asked(count(), total("age", "sex")), unit=("person", "household"), max_rows=100),
    Case("one giant unit with room for it", _asked(count(), total("score", grid=0.25), total("age")),
         table="giant", unit=("person",), max_rows=400),
    Case("units, then a filter", _asked(count(), total("age")),
         lambda d, o: d.where("age > 40"), lambda rows, o: [r for r in rows if (r["age"] or 0) > 40],
         unit=("person",), max_rows=100),
    Case("filter after filter", _asked(count("sex")),
         lambda d, o: d.where("age > 20").where("age < 60").where("sex = 'F' or smokes"),
         lambda rows, o: [r for r in rows if r["age"] and 20 < r["age"] < 60 and (r["sex"] == "F" or r["smokes"])]),
    Case("derive, filter by it, derive from it", _asked(count(), total("c")),
         lambda d, o: d.derive(b="age - small").where("b > 0").derive(c="b * b"),
         lambda rows, o: [
             {**r, "c": (r["age"] - r["small"]) ** 2}
             for r in rows if None not in (r["age"], r["small"]) and r["age"] - r["small"] > 0
         ]),
    Case("clip", _asked(total("age"), total("score", grid=2.0**-10), histogram("born", DECADES)),
         lambda d, o: d.clip(age=(18, 65), score=(-1.0, 1.0), born=(DAY(1950, 1, 1), DAY(1980, 1, 1))),
         lambda rows, o: [
             {**r, "age": twin.cell(r["age"], (18, 65)), "score": twin.cell(r["score"], (-1.0, 1.0)),
              "born": twin.cell(r["born"], (DAY(1950, 1, 1), DAY(1980, 1, 1)))} for r in rows
         ]),
    Case("bin", _asked(count("age", cells=PARTS), cell_counts("age", "sex", cells=PARTS)),
         lambda d, o: d.bin(age=[0, 18, 65]), lambda rows, o: [{**r, "age": _part(r["age"])} for r in rows]),
    Case("bin, then filter by the name of a cell", _asked(count()),
         lambda d, o: d.bin(age=[0, 18, 65]).where("age = '18 to 64'"),
         lambda rows, o: [r for r in rows if _part(r["age"]) == "18 to 64"]),
    Case("select", _asked(count("sex"), total("age")), lambda d, o: d.select("sex", "age")),
    Case("explode whole numbers", _asked(count(), count(column="visits"), total("visits"), total("visits", "sex")),
         lambda d, o: d.explode("visits", limit=100), lambda rows, o: _exploded(rows, "visits", 100)),
    Case("explode the first two", _asked(count(), total("visits"), order_counts("visits", (1, 9, 49))),
         lambda d, o: d.explode("visits", limit=2), lambda rows, o: _exploded(rows, "visits", 2)),
    Case("explode text of other scripts", _asked(count("pains", cells=SCHEMA), count("sex")),
         lambda d, o: d.explode("pains", limit=3), lambda rows, o: _exploded(rows, "pains", 3)),
    Case("explode, then filter, with units", _asked(count(), total("visits")),
         lambda d, o: d.explode("visits", limit=4).where("visits > 5"),
         lambda rows, o: [r for r in _exploded(rows, "visits", 4) if r["visits"] is not None and r["visits"] > 5],
         unit=("person",), max_rows=100),
    Case("explode an empty table", _asked(count(), total("visits")),
         lambda d, o: d.explode("visits", limit=4), lambda rows, o: [], table="empty"),
    Case("join on the unit", _asked(count(), total("nights"), count("ward", "sex", cells=WARDS)),
         lambda d, o: d.join(o["stays"]), lambda rows, o: _joined(rows, o, keep=False),
         unit=("person",), max_rows=100),
    Case("left join on the unit", _asked(count(), count(column="nights"), total("age")),
         lambda d, o: d.join(o["stays"], how="left"), lambda rows, o: _joined(rows, o, keep=True),
         unit=("person",), max_rows=100),
    Case("join, then compare columns of both", _asked(count(), total("age")),
         lambda d, o: d.join(o["stays"]).where("nights < small"),
         lambda rows, o: [
             r for r in _joined(rows, o, keep=False)
             if None not in (r["nights"], r["small"]) and r["nights"] < r["small"]
         ],
         unit=("person",), max_rows=100),
    Case("join an empty table", _asked(count(), total("nights")),
         lambda d, o: d.join(o["stays"]), lambda rows, o: [], table="empty", unit=("person",), max_rows=3),
    Case("join a public table", _asked(count("region", cells={"region": ["EU", "AS", "SA"]}), total("code"), count()),
         lambda d, o: d.join(_public_table(), on="city"), lambda rows, o: _looked_up(rows, keep=False)),
    Case("left join a public table", _asked(count(), total("code"), count(column="region")),
         lambda d, o: d.join(_public_table(), on="city", how="left"), lambda rows, o: _looked_up(rows, keep=True)),
    Case("union with itself", _asked(count(), count("sex"), total("big")),
         lambda d, o: d.union(d), lambda rows, o: rows + rows),
    Case("union of two filters that overlap", _asked(count(), total("age")),
         lambda d, o: d.where("age > 30").union(d.where("age > 50")),
         lambda rows, o: [r for r in rows if (r["age"] or 0) > 30] + [r for r in rows if (r["age"] or 0) > 50]),
    Case("a part of a split", _asked(count(), total("age")),
         lambda d, o: d.split(by="sex")["F"], lambda rows, o: [r for r in rows if r["sex"] == "F"]),
    Case("one row a unit", _asked(count(), total("many"), count("ever", "often", cells={"ever": bool, "often": bool}),
                                  total("years"), total("oldest"), histogram("first", DECADES), total("kinds")),
         lambda d, o: d.per_unit(many="count()", ever="any(smokes)", often="all(age > 30)", years="sum(age)",
                                 oldest="max(age)", kinds="distinct(sex)",
                                 first=("min(born)", (DECADES[0], DECADES[-1]))),
         lambda rows, o: _people(
             rows, many=len, ever=lambda own: any(r["smokes"] for r in own),
             often=lambda own: all(r["age"] is not None and r["age"] > 30 for r in own),
             years=lambda own: sum(_there(own, "age")) if _there(own, "age") else None,
             oldest=lambda own: max(_there(own, "age"), default=None),
             first=lambda own: twin.cell(min(_there(own, "born"), default=None), (DECADES[0], DECADES[-1])),
             kinds=lambda own: len(set(_there(own, "sex"))),
         ),
         unit=("person",), max_rows=100),
    Case("means of units, clipped and filtered by",
         _asked(count(), total("mean", grid=2.0**-10), total("age", grid=0.25)),
         lambda d, o: d.per_unit(mean="mean(score)", age=("mean(age)", (20.0, 60.0))).where("mean > 0 or age < 50"),
         lambda rows, o: [
             r for r in _people(rows, mean=lambda own: _mean(own, "score", STEP),
                                age=lambda own: twin.cell(_mean(own, "age"), (20.0, 60.0)))
             if (r["mean"] is not None and r["mean"] > 0) or (r["age"] is not None and r["age"] < 50)
         ],
         unit=("person",), max_rows=100),
    Case("one row a unit beside another table", _asked(count(), total("nights"), total("many")),
         lambda d, o: o["stays"].join(d.per_unit(many="count(age)", age="min(age)").where("age > 20").select("many")),
         lambda rows, o: [
             {**stay, **person} for person in _people(rows, person=lambda own: own[0]["person"],
                 many=lambda own: len(_there(own, "age")), age=lambda own: min(_there(own, "age"), default=None))
             if person["age"] is not None and person["age"] > 20
             for stay in o["stays"] if stay["person"] == person["person"]
         ],
         unit=("person",), max_rows=100),
    Case("a sample with probability one", _asked(count(), total("age")), lambda d, o: d.sample(1.0)),
]  # fmt: skip

"""Made-up tables for statements of SQL: people, their visits, and a hospital with three linked tables."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

import numpy as np
import pyarrow

import farthing as ft

SCHEMA = {
    "sex": ["F", "M"],
    "age": (0, 110),
    "income": (0.0, 250_000.0),
    "weight": (30.0, 250.0),
    "height": (1.0, 2.5),
    "smoker": bool,
    "region": ["north", "east", "south", "west"],
    "children": (0, 10),
    "born": (date(1920, 1, 1), date(2025, 12, 31)),
}


@cache
def people_table(rows: int = 3_000) -> pyarrow.Table:
    """People within the bounds that the schema declares; some incomes and weights are missing."""
    draw = np.random.default_rng(25)
    age = draw.integers(0, 100, rows)
    income = draw.gamma(4, 10_000, rows).clip(0, 250_000)
    weight = draw.normal(75, 12, rows).clip(30, 250)
    return pyarrow.table(
        {
            "sex": draw.choice(["F", "M"], rows),
            "age": age,
            "income": pyarrow.array(income, mask=draw.random(rows) < 0.1),
            "weight": pyarrow.array(weight, mask=draw.random(rows) < 0.05),
            "height": draw.normal(1.7, 0.1, rows).clip(1, 2.5),
            "smoker": draw.random(rows) < 0.3,
            "region": draw.choice(SCHEMA["region"], rows),
            "children": draw.integers(0, 6, rows),
            "born": [date(2025, 6, 1) - timedelta(days=int(365.25 * years)) for years in age],
        }
    )


@cache
def people() -> ft.Dataset:
    """The people, each of whom is one row; how many there are is public."""
    return ft.dataset(people_table(), schema=SCHEMA, name="people", rows=3_000)


@cache
def visits_table(rows: int = 3_000) -> pyarrow.Table:
    """Visits of 600 persons; nobody has more than 20."""
    draw = np.random.default_rng(26)
    return pyarrow.table(
        {
            "person": np.arange(rows) % 600,
            "ward": draw.choice(["A", "B", "C"], rows),
            "cost": draw.integers(0, 101, rows),
            "icu": draw.random(rows) < 0.2,
        }
    )


VISITS = {"ward": ["A", "B", "C"], "cost": (0, 100), "icu": bool}


@cache
def visits() -> ft.Dataset:
    """The visits, of which at most 20 of each person count: all of them."""
    return ft.dataset(visits_table(), unit="person", max_rows=20, schema=VISITS, name="visits")


@cache
def hospital_tables() -> dict[str, pyarrow.Table]:
    """Persons, their visits, and the drugs given at each."""
    draw = np.random.default_rng(27)
    visit = np.arange(900)
    return {
        "persons": pyarrow.table({"person_id": np.arange(300), "sex": draw.choice(["F", "M"], 300)}),
        "visits": pyarrow.table({"visit_id": visit, "person_id": visit % 300, "ward": draw.choice(["A", "B"], 900)}),
        "drugs": pyarrow.table(
            {"visit_id": draw.permutation(np.repeat(visit, 2)), "drug": draw.choice(["x", "y"], 1_800)}
        ),
    }


@cache
def hospital() -> ft.data.LinkedTables:
    """The same, linked by their keys."""
    tables = hospital_tables()
    return ft.linked(
        persons=ft.table(tables["persons"], schema={"sex": ["F", "M"]}),
        visits=ft.table(tables["visits"], schema={"ward": ["A", "B"]}),
        drugs=ft.table(tables["drugs"], schema={"drug": ["x", "y"]}),
        unit="persons.person_id",
        keys={"visits.person_id": "persons.person_id", "drugs.visit_id": "visits.visit_id"},
        max_rows={"visits": 3, "drugs": 6},
    )

"""The tables of the cases: small, fixed, and full of what engines disagree about."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal

import pyarrow as pa

INFINITY, NAN = math.inf, math.nan
DAY = datetime.date
CITIES = ["Zürich", "São Paulo", "東京", "Αθήνα", "O'Hare", 'say "x"', "back\\slash", "100%", ""]

_KINDS = {
    "person": pa.int64(),
    "household": pa.string(),
    "sex": pa.string(),
    "city": pa.string(),
    "age": pa.int64(),
    "score": pa.float64(),
    "weight": pa.float32(),
    "fee": pa.decimal128(12, 2),
    "small": pa.int16(),
    "big": pa.int64(),
    "born": pa.date32(),
    "seen": pa.timestamp("us"),
    "smokes": pa.bool_(),
    "visits": pa.list_(pa.int64()),
    "pains": pa.list_(pa.string()),
}

# One row for each thing that goes wrong somewhere: the first row is ordinary, the others differ from it in one cell.
_ORDINARY = {
    "person": 1, "household": "h1", "sex": "F", "city": "Zürich", "age": 41, "score": 2.5, "weight": 70.5,
    "fee": Decimal("12.34"), "small": 7, "big": 12, "born": DAY(1980, 2, 29),
    "seen": datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), "smokes": True, "visits": [1, 2, 3], "pains": ["knee"],
}  # fmt: skip
_ODD = [
    {"person": None},
    {"person": None, "age": 99},
    {"sex": None}, {"sex": "X"}, {"sex": "f"}, {"sex": "F "},
    *({"city": city} for city in CITIES), {"city": "Zu\u0308rich"}, {"city": "tokyo"}, {"city": None},
    {"age": None}, {"age": -1}, {"age": 0}, {"age": 110}, {"age": 111}, {"age": 2**63 - 1}, {"age": -(2**63)},
    {"score": None}, {"score": NAN}, {"score": INFINITY}, {"score": -INFINITY}, {"score": -0.0}, {"score": 5e-324},
    {"score": 1e308}, {"score": -1e308}, {"score": 0.1}, {"score": 0.30000000000000004}, {"score": -10.0},
    {"score": 10.0}, {"score": math.nextafter(10.0, 11.0)}, {"score": math.nextafter(-2.5, 0.0)}, {"score": 0.5},
    {"score": -0.5}, {"score": 1.5}, {"score": 2**53 + 0.0},
    {"weight": None}, {"weight": NAN}, {"weight": INFINITY}, {"weight": 0.1}, {"weight": 3.4e38},
    {"fee": None}, {"fee": Decimal("-0.01")}, {"fee": Decimal("9999999999.99")}, {"fee": Decimal("0.00")},
    {"small": None}, {"small": -32768}, {"small": 32767},
    {"big": None}, {"big": 2**62 - 1}, {"big": -(2**62) + 1}, {"big": 2**63 - 1}, {"big": -(2**63)},
    {"big": 2**53 + 1},
    {"born": None}, {"born": DAY(1, 1, 1)}, {"born": DAY(9999, 12, 31)}, {"born": DAY(1970, 1, 1)},
    {"born": DAY(1969, 12, 31)}, {"born": DAY(2000, 2, 29)}, {"born": DAY(1900, 3, 1)},
    {"seen": None}, {"seen": datetime.datetime(1969, 12, 31, 23, 59, 59)},
    {"seen": datetime.datetime(2024, 3, 1)},
    {"smokes": None}, {"smokes": False},
    {"visits": None}, {"visits": []}, {"visits": [None, 5]}, {"visits": [9] * 12}, {"visits": [-3, 400]},
    {"pains": None}, {"pains": []}, {"pains": ["knee", None, "back", "elbow"]}, {"pains": ["日本", "back"]},
]  # fmt: skip


def _people() -> pa.Table:
    dice = random.Random(20261116)
    rows = [{**_ORDINARY, **change} for change in ({}, *_ODD)]
    for place, row in enumerate(rows):
        if row["person"] is not None:
            row["person"] = 1 + place % 11
            row["household"] = f"h{place % 5}"
    for _ in range(60):
        rows.append(
            {
                "person": dice.choice([*range(1, 15), None]),
                "household": f"h{dice.randrange(5)}",
                "sex": dice.choice(["F", "M"]),
                "city": dice.choice(CITIES),
                "age": dice.randrange(-5, 120),
                "score": dice.choice([dice.uniform(-12, 12), dice.randrange(-48, 48) / 4]),
                "weight": dice.uniform(30, 150),
                "fee": Decimal(dice.randrange(-500, 100_000)) / 100,
                "small": dice.randrange(-200, 200),
                "big": dice.randrange(-(2**62), 2**62),
                "born": DAY(1900, 1, 1) + datetime.timedelta(days=dice.randrange(40_000)),
                "seen": datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=dice.randrange(500_000)),
                "smokes": dice.choice([True, False, None]),
                "visits": [dice.randrange(-10, 60) for _ in range(dice.randrange(5))],
                "pains": dice.sample(["knee", "back", "日本", "tooth"], dice.randrange(3)),
            }
        )
    return pa.Table.from_pylist(rows, schema=pa.schema(_KINDS))


def _giant() -> pa.Table:
    """One person with 400 rows beside three with one row each."""
    persons = [7] * 400 + [8, 9, 10]
    return pa.table(
        {
            "person": pa.array(persons, pa.int64()),
            "score": pa.array([(place % 17) / 4 for place in range(len(persons))], pa.float64()),
            "age": pa.array([place % 90 for place in range(len(persons))], pa.int64()),
        }
    )


def _stays() -> pa.Table:
    """A second table about the same people: some have none, some several; one belongs to nobody."""
    dice = random.Random(3)
    persons = [1, 1, 2, 3, 3, 3, 5, 8, 13, 21, 99, None]
    return pa.table(
        {
            "person": pa.array(persons, pa.int64()),
            "nights": pa.array([dice.randrange(0, 40) for _ in persons[:-2]] + [None, 4], pa.int64()),
            "ward": pa.array([dice.choice(["A", "B", "Ω"]) for _ in persons], pa.string()),
        }
    )


PEOPLE = _people()
TABLES = {"people": PEOPLE, "empty": PEOPLE.slice(0, 0), "giant": _giant(), "stays": _stays()}

SCHEMA = {
    "sex": ["F", "M"],
    "city": CITIES,
    "age": (0, 110),
    "score": (-10.0, 10.0),
    "weight": (0.0, 200.0),
    "fee": (0.0, 500.0),
    "small": (-100, 100),
    "big": (-(2**62) + 1, 2**62 - 1),
    "born": (DAY(1900, 1, 1), DAY(2025, 12, 31)),
    "seen": (DAY(2024, 1, 1), DAY(2024, 12, 31)),
    "smokes": bool,
    "visits": (0, 50),
    "pains": ["knee", "back", "日本"],
}
SCHEMAS = {
    "people": SCHEMA,
    "empty": SCHEMA,
    "giant": {"score": (0.0, 4.0), "age": (0, 110)},
    "stays": {"nights": (0, 30), "ward": ["A", "B", "Ω"]},
}

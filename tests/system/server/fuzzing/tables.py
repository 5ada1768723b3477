"""The data folder of a run: tables with a secret in every place where one can hide.

people.csv     text: outliers, categories that nobody declared, broken dates, columns that are not declared
visits.parquet the same in typed columns
broken.csv     lines that an engine cannot read, and would quote
torn.parquet   a table that can be opened and not read: whoever asks pays and gets no answer
sources.toml   a database that does not answer, with a password in its address

Public are only the bounds and categories of `DECLARED`.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from system.server.fuzzing.canaries import Canaries

ROWS = 300
SEXES, REGIONS, KINDS = ["F", "M"], ["north", "south", "east", "west"], ["planned", "urgent", "other"]
WARDS = [1, 2, 3, 7]
DAYS = ["2000-01-01", "2026-12-31"]
PEOPLE: dict[str, Any] = {
    "age": {"range": [0, 110]},
    "bmi": {"range": [10.0, 60.0]},
    "sex": {"categories": SEXES},
    "region": {"categories": REGIONS},
    "smoker": {"flags": True},
    "joined": {"range": DAYS},
}
VISITS: dict[str, Any] = {
    "cost": {"range": [0.0, 10_000.0]},
    "nights": {"range": [0, 60]},
    "ward": {"categories": WARDS},
    "kind": {"categories": KINDS},
    "urgent": {"flags": True},
    "day": {"range": DAYS},
}
BUDGET = {"epsilon": 1_000.0, "delta": 1e-4}
DECLARED: dict[str, dict[str, Any]] = {
    "people": {"source": "people.csv", "unit": "person", "max_rows": 3, "columns": PEOPLE, **BUDGET},
    "visits": {"source": "visits.parquet", "rows": ROWS, "columns": VISITS, **BUDGET},
    "broken": {"source": "broken.csv", "columns": {"age": PEOPLE["age"], "sex": PEOPLE["sex"]}, **BUDGET},
    "torn": {
        "source": "torn.parquet",
        "columns": {"nights": VISITS["nights"], "kind": VISITS["kind"]},
        **BUDGET,
    },
    "small": {"source": "small.csv", "columns": PEOPLE, "epsilon": 0.75, "delta": 1e-8},
    "spare": {"source": "spare.csv", "columns": PEOPLE, **BUDGET},
    "monthly": {
        "source": "monthly.csv",
        "unit": "person",
        "max_rows": 3,
        "columns": PEOPLE,
        "renews": {"every": "month", "date": "joined", "period": "2020-01"},
        "epsilon": 1.0,
        "delta": 1e-8,
    },
}


def write_tables(folder: Path, canaries: Canaries, draw: random.Random) -> None:
    """Fill the data folder."""
    folder.mkdir()
    for name in ("people.csv", "small.csv", "spare.csv", "monthly.csv"):  # a table has one account
        _write_people(folder / name, canaries, draw)
    _write_visits(folder / "visits.parquet", canaries, draw)
    _write_broken(folder / "broken.csv", canaries)
    _write_torn(folder / "torn.parquet", canaries)
    password = canaries.secret("password of a database", canaries.column()[::-1] + "pw")
    (folder / "sources.toml").write_text(
        f'[registry]\nurl = "postgresql://reader:{password}@127.0.0.1:9/registry"\ntable = "public.people"\n',
        encoding="utf-8",
    )


def _write_people(file: Path, canaries: Canaries, draw: random.Random) -> None:
    header = ["person", *PEOPLE, canaries.column(), canaries.column()]
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(header)
        for number in range(ROWS):
            row: dict[str, Any] = {
                "age": draw.randrange(0, 111),
                "bmi": canaries.inside(10.0, 60.0),
                "sex": draw.choice(SEXES),
                "region": draw.choice(REGIONS),
                "smoker": draw.choice(["true", "false"]),
                "joined": f"{draw.randrange(2000, 2027)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}",
            }
            if number % 3 == 0:  # one column of every third row holds what it should not
                column = list(PEOPLE)[number // 3 % len(PEOPLE)]
                row[column] = _outlier(column, canaries, draw)
            writer.writerow([canaries.key(), *row.values(), canaries.text(), canaries.whole()])


def _outlier(column: str, canaries: Canaries, draw: random.Random) -> Any:
    odd: dict[str, list[Any]] = {
        "age": [canaries.whole(), -canaries.whole(), canaries.text()],
        "bmi": [canaries.huge(), -canaries.huge(), canaries.text()],
        "joined": [canaries.date(), canaries.text()],
    }
    return draw.choice(odd.get(column, [canaries.text(), str(canaries.whole())]))


def _write_visits(file: Path, canaries: Canaries, draw: random.Random) -> None:
    def some(odd: Any, usual: Any) -> list[Any]:
        return [odd() if number % 15 == 0 else usual() for number in range(ROWS)]

    def day(text: str) -> datetime.date:
        return datetime.date.fromisoformat(text)

    columns = {
        "cost": pa.array(some(canaries.huge, lambda: canaries.inside(0.0, 10_000.0)), pa.float64()),
        "nights": pa.array(some(canaries.whole, lambda: draw.randrange(0, 61)), pa.int64()),
        "ward": pa.array(some(canaries.whole, lambda: draw.choice(WARDS)), pa.int64()),
        "kind": pa.array(some(canaries.text, lambda: draw.choice(KINDS)), pa.string()),
        "urgent": pa.array(some(lambda: None, lambda: draw.random() < 0.5), pa.bool_()),
        "day": pa.array(
            some(lambda: day(canaries.date()), lambda: day(f"{draw.randrange(2000, 2027)}-03-04")),
            pa.date32(),
        ),
        canaries.column(): pa.array([canaries.text() for _ in range(ROWS)], pa.string()),
        canaries.column(): pa.array([decimal.Decimal(canaries.whole()) for _ in range(ROWS)], pa.decimal128(20, 0)),
    }
    pq.write_table(pa.table(columns), file)


def _write_broken(file: Path, canaries: Canaries) -> None:
    lines = [
        "age,sex",
        "30,F",
        f"{canaries.text()},M,{canaries.text()},more",
        f'"{canaries.key()}',
        f"{canaries.whole()},x",
    ]
    file.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe" + canaries.key().encode() + b",F\n")


def _write_torn(file: Path, canaries: Canaries) -> None:
    columns = {
        "nights": [canaries.whole() for _ in range(ROWS)],
        "kind": [canaries.text() for _ in range(ROWS)],
    }
    pq.write_table(pa.table(columns), file, compression="none", use_dictionary=False)
    whole = file.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    torn = bytearray(whole)
    for place in range(4, len(whole) - footer, 2):  # the footer says what there is, the pages do not hold it
        torn[place] ^= 0xA5
    file.write_bytes(bytes(torn))

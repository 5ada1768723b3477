"""Chains over files of tens of megabytes: a unit that leaves moves no aggregate beyond its sensitivity.

The notes are prose with quotes and line breaks, and lines in them look like rows. Where a reader cuts such a file, and
what it then takes for a row, depends on every byte before; the claim of a chain must not.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.test_neighbours import SCHEMA, a_row, aggregates_for, refuse_beyond, run
from farthing.data import Count, Dataset, dataset

FACTS = {name: domain for name, domain in SCHEMA.items() if name != "codes"}
NAMES = ["person", *FACTS, "note"]
UNITS, MOST = 3_000, 3
PROSE = '"She said:", and so on, '
CHAIN: list[tuple[str, Any]] = [
    ("where", "not smoker or age > 0"),
    ("derive", {"new": "coalesce(bmi, 0.5) * age"}),
    ("clip", {"age": (0, 10)}),
    ("public", "left"),
    ("union", "sex = 'F'"),
    ("bin", {"bmi": [0.0, 1.0]}),
]


@cache
def rows_of_everybody(seed: int) -> list[list[Any]]:
    """What each unit wrote: short and long notes, some with lines that look like rows of others."""
    luck, found = random.Random(seed), []
    for unit in range(UNITS):
        for _ in range(luck.randint(1, MOST)):
            row = a_row(luck)
            note = luck.choice([None, "fine", '"', PROSE, "x\r\ny", "\n"])
            if note in (PROSE, "\n"):
                # Taken for rows, they would be those of people who are nowhere else: no bound would hold them back.
                note = note.join(f"{unit + UNITS}{line:03d},F,3,1.5,true,2020-01-02,x" for line in range(250))
            found.append([unit, *(row[name] for name in FACTS), note])
    return found


def written(file: Path, rows: list[list[Any]]) -> Path:
    if file.suffix == ".parquet":
        kinds = [pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.string()]
        columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
        pq.write_table(pa.table(columns, names=NAMES), file)
        return file
    text = io.StringIO(newline="")
    csv.writer(text).writerows([NAMES, *rows])
    content = text.getvalue().encode()
    assert len(content) > 20_000_000
    file.write_bytes(gzip.compress(content, 1) if file.suffix == ".gz" else content)
    return file


def opened(file: Path) -> Dataset:
    return run(CHAIN, dataset(file, unit="person", max_rows=MOST, schema=FACTS), None)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_unit_that_leaves_a_large_file_moves_nothing_beyond_its_sensitivity(tmp_path: Path, ending: str) -> None:
    rows = rows_of_everybody(16)
    full = opened(written(tmp_path / f"all{ending}", rows))
    wanted = {**dict(aggregates_for(full)), "rows": Count()}
    before = full.exact(wanted)
    rest = [row for row in rows if row[0] != 0]  # who is at the top moves every later byte
    after = opened(written(tmp_path / f"rest{ending}", rest)).exact(wanted)
    for name, aggregate in wanted.items():
        refuse_beyond(before[name], after[name], full.sensitivity(aggregate), f"{name} in {ending}")

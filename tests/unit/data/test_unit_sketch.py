"""Sketches of units: the same from every file of the same people, and right about what two tables share."""

from __future__ import annotations

import csv
import datetime
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.data import Count
from farthing.data.unit_sketch import BUCKETS, Share, UnitSketch
from farthing.errors import EngineError


def of(ids: Iterable[Any], each: int = 1) -> UnitSketch:
    column = [one for one in ids for _ in range(each)]
    table = pa.table({"who": column, "cost": [1.0] * len(column)})
    return UnitSketch.of(ft.dataset(table, unit="who", max_rows=1, schema={"cost": (0.0, 9.0)}))


def twin(texts: Iterable[str]) -> dict[int, str]:
    """The least hash of every bucket, by a plain loop over whole hashes."""
    least: dict[int, str] = {}
    for text in texts:
        digits = hashlib.sha256(f"{len(text)}:{text}".encode()).hexdigest()
        bucket = int(digits[:4], 16) * BUCKETS >> 16
        least[bucket] = min(least.get(bucket, "g"), digits)
    return least


@pytest.mark.slow
def test_a_sketch_is_that_of_the_plain_twin_and_doubles_do_not_matter() -> None:
    names = [f"person {number}" for number in range(3_000)]
    sketch, plain = of(names), twin(names)
    assert of(names[::-1], each=2) == sketch
    for bucket, least in enumerate(sketch.least):
        if bucket not in plain:
            assert least == 2**32 - 1
            continue
        bits = bin(int(plain[bucket], 16))[2:].zfill(256)
        assert least == int(bits[14:46], 2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000, 20_000])
@pytest.mark.parametrize("shared", [0.0, 0.5, 0.97, 1.0])
def test_shares_are_right_within_three_points(size: int, shared: float) -> None:
    offset = round(size * (1 - shared))
    a, b = of(range(size)), of(range(offset, size + offset))
    for share in (a.share_in(b), b.share_in(a)):
        assert abs(share.value - shared) < 0.03 and share.is_telling
    both = a.with_units_of(b)
    assert a.share_in(both).value == 1.0 and of(range(size + offset)) == both


@pytest.mark.slow
def test_part_of_a_table_is_whole_in_it_and_strangers_are_not() -> None:
    everybody, some = of(range(50_000)), of(range(0, 50_000, 10))
    assert some.share_in(everybody).value == 1.0
    assert abs(everybody.share_in(some).value - 0.1) < 0.03
    assert of(f"x{number}" for number in range(1_000)).share_in(everybody).both == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["who", None])
def test_copies_and_exports_of_the_same_people_have_one_sketch(tmp_path: Path, unit: str | None) -> None:
    """The identifiers are numbers in one file and text in another; the columns stand in another order."""
    rows = [(number, f"name, {number}", number / 8, number % 2 == 0) for number in range(500)]
    frame = {name: list(column) for name, column in zip(("who", "name", "cost", "odd"), zip(*rows))}  # noqa: B905
    pq.write_table(pa.table(frame), tmp_path / "people.parquet")
    pq.write_table(pa.table({name: frame[name] for name in ("odd", "cost", "name", "who")}), tmp_path / "again.parquet")
    pq.write_table(pa.table(frame | {"who": [float(who) for who in frame["who"]]}), tmp_path / "doubles.parquet")
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "who", "odd", "cost"))
        writer.writerows((name, f"{who:05d}", str(odd).lower(), cost) for who, name, cost, odd in rows)
    files = ["people.parquet", "again.parquet", "people.csv"] + ["doubles.parquet"] * (unit is None)
    arguments = {"unit": unit, "max_rows": 1} if unit else {}
    schema = {"cost": (0.0, 99.0), "name": ["x"], "who": (0.0, 9.0), "odd": bool}
    if unit:
        del schema["who"]
    sketches = [UnitSketch.of(ft.dataset(str(tmp_path / name), schema=schema, **arguments)) for name in files]
    assert all(sketch == sketches[0] for sketch in sketches)


@pytest.mark.slow
def test_odd_cells_neither_fail_nor_count_as_people() -> None:
    ids = ["", " ", "1e400", "9" * 40, "-0", "+7", "7", "0.10", "ünit", "x" * 50_000, "1_000", "NaN", None]
    sketch = of(ids)
    assert int(np.sum(sketch.least < 2**32 - 1)) == len({*ids} - {None, " ", "+7"})
    assert sketch.share_in(of([*ids, "one more"])).value == 1.0
    assert UnitSketch.of_bytes(sketch.to_bytes()) == sketch and len(sketch.to_bytes()) == len(of([1]).to_bytes())


def test_what_is_too_little_to_tell_says_so() -> None:
    assert not Share(0, 0).is_telling and Share(0, 0).interval == (0.0, 1.0)
    assert not Share(5, 10).is_telling and Share(1_000, 1_000).is_telling
    low, high = Share(500, 1_000).interval
    assert low == pytest.approx(0.469, abs=0.001) and high == pytest.approx(0.531, abs=0.001)


@pytest.mark.slow
def test_no_cell_of_a_sketch_breaks_the_database_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB cannot write the least timestamp as text, and took its database for invalid: so were all later studies."""
    monkeypatch.setattr("farthing.data.engines.duckdb._default", [])
    moments = pa.array([0, 10**15, 2 - 2**63, -(2**63)], pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"c": moments}), tmp_path / "a.parquet")
    days = (datetime.date(1960, 1, 1), datetime.date(2030, 12, 31))
    study = ft.Study(ft.dataset(tmp_path / "a.parquet", schema={"c": days}), epsilon=1.0, ledger=tmp_path / "l.db")
    assert study.plan(ft.count(), epsilon=0.5).release().receipt.epsilon == pytest.approx(0.5)
    assert len(set(UnitSketch.of(study.dataset).least)) == 4  # two moments, what is no moment, and empty buckets


def test_a_fatal_error_is_told_plainly_and_the_next_dataset_gets_another_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.data.engines.duckdb._default", [])  # the one that breaks is not that of other tests
    moments = pa.array([-(2**63)], pa.int64()).view(pa.timestamp("us"))
    days = (datetime.date(1960, 1, 1), datetime.date(2030, 12, 31))
    before = ft.dataset(pa.table({"c": moments}), schema={"c": days}, name="before")
    source = before.sources()[0]
    with pytest.raises(EngineError, match=r"duckdb failed \(closed by a fatal error\)") as failure:
        source.engine.rows(f"SELECT CAST(c AS VARCHAR) FROM ({source.engine.sql(source.table)}) t")
    assert failure.value.__context__ is None
    study = ft.Study(before, epsilon=1.0, ledger=tmp_path / "l.db")
    with pytest.raises(EngineError, match="make the connection and the dataset again"):
        study.plan(ft.count(), epsilon=0.5).release()
    assert study.left == 1.0
    after = ft.dataset(pa.table({"a": [1, 2]}), schema={"a": (0, 5)})
    assert after.exact({"n": Count()})["n"] == 2


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_moment_that_no_day_holds_is_missing(unit: str) -> None:
    moments = pa.array([10, 2**62, -(2**63)], pa.int64()).view(pa.timestamp(unit))
    days = (datetime.date(1960, 1, 1), datetime.date(2030, 12, 31))
    read = ft.dataset(pa.table({"c": moments}), schema={"c": days}).where("c is not null")
    assert read.exact({"n": Count()})["n"] == 1


def test_people_whose_key_became_text_have_the_sketch_of_their_table_alone() -> None:
    """Whole numbers that are compared with text by their digits are the same people as before."""
    ids = [*range(-40, 200), 2**63 - 1, -(2**63), 10**15, 10**16 + 1]
    rows = pa.table({"person_id": ids, "sex": ["F"] * len(ids)})
    visits = pa.table({"person_id": [str(each) for each in ids], "ward": ["A"] * len(ids)})
    alone = UnitSketch.of(ft.dataset(rows, unit="person_id", max_rows=1, schema={"sex": ["F"]}))
    both = ft.linked(
        persons=ft.table(rows, schema={"sex": ["F"]}),
        visits=ft.table(visits, schema={"ward": ["A"]}),
        unit="persons.person_id",
        keys={"visits.person_id": "persons.person_id"},
        max_rows={"visits": 1},
    )
    assert both["visits"]._base.unit_types == ["string"]
    assert UnitSketch.of(both["visits"].join("persons")) == UnitSketch.of(both["persons"]) == alone
    assert UnitSketch.of(ft.dataset(visits, unit="person_id", max_rows=1, schema={"ward": ["A"]})) == alone

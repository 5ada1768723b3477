"""Stored answers say that the table has changed since, to the steward and to nobody else."""

from __future__ import annotations

import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import Study, count, dataset, open_ledger
from farthing.data import Dataset
from farthing.data import table_identity as module
from farthing.data.table_identity import fingerprint_of
from farthing.errors import InvalidValue, TableChanged
from farthing.study import Plan, release_request

COLUMNS = {"age": [30, 41, 52], "sex": ["F", None, "M"]}
SCHEMA = {"age": (0, 110), "sex": ["F", "M"]}


def rows(source: Any) -> Dataset:
    return dataset(source, schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_the_same_script_on_another_frame_is_warned_and_free(tmp_path: Path, frame: Any) -> None:
    def script(columns: dict[str, Any], **options: Any) -> tuple[Any, float]:
        study = Study(rows(frame(columns)), epsilon=1.0, ledger=tmp_path / "study.db", account="people")
        try:
            answer = study.plan(count(), epsilon=0.25).release(**options)["count"].values
            return answer, round(study.budget.spent_upper, 3)
        finally:
            study.close()

    first = script(COLUMNS)
    assert script(COLUMNS) == first
    with pytest.warns(TableChanged, match=r"has changed since .* release\(fresh=True\) .* is charged again"):
        again = script({**COLUMNS, "age": [30, 41, 53]})
    assert again == first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert script({**COLUMNS, "age": [30, 41, 53]}, fresh=True)[1] == 0.5


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_file_is_known_by_its_rows_and_not_by_its_time_or_place(tmp_path: Path, ending: str) -> None:
    def write(name: str, last: int) -> Path:
        path = tmp_path / f"{name}.{ending}"
        text = f"age,sex\n30,F\n41,\n{last},M\n".encode()
        if ending == "parquet":
            pq.write_table(pa.table({**COLUMNS, "age": [30, 41, last]}), path)
        else:
            path.write_bytes(gzip.compress(text, mtime=0) if ending.endswith("gz") else text)
        return path

    path = write("people", 52)
    first, before = fingerprint_of(rows(path)), path.stat()
    os.utime(path, ns=(0, 0))
    assert fingerprint_of(rows(path)) == fingerprint_of(rows(write("copy", 52))) == first
    write("people", 53)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fingerprint_of(rows(path)) != first
    pair = [path, write("copy", 52)]
    assert fingerprint_of(rows(pair)) == fingerprint_of(rows(pair[::-1])) != fingerprint_of(rows(path))


def test_a_file_too_large_to_be_read_whole_is_known_by_size_time_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 4)
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n30,F\n")
    first = fingerprint_of(rows(path))
    assert fingerprint_of(rows(path)) == first
    os.utime(path, ns=(0, 0))
    assert fingerprint_of(rows(path)) != first


@pytest.mark.slow
def test_joined_tables_count_and_an_analyst_learns_nothing(tmp_path: Path) -> None:
    def made(age: int) -> Dataset:
        ages = pa.table({"person": [1, 2], "age": [30, age]})
        sexes = pa.table({"person": [1, 2], "sex": ["F", "M"]})
        left = dataset(sexes, unit="person", max_rows=1, schema={"sex": ["F", "M"]}, name="people")
        right = dataset(ages, unit="person", max_rows=1, schema={"age": (0, 110)}, name="people")
        return left.join(right)

    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
        ledger.grant("people", "bob", 1.0)
        bob = ledger.acting("bob", "analyst")
        study = Study(made(41), epsilon=1.0, ledger=bob, account="people")
        release = study.plan(count(), epsilon=0.25).release()
        curator = Study(made(42), epsilon=1.0, ledger=ledger, account="people")
        assert curator.table_changed(release.request_id) is True
        assert Study(made(41), epsilon=1.0, ledger=ledger, account="people").table_changed(release.request_id) is False
        again = Study(made(42), epsilon=1.0, ledger=bob, account="people")
        assert again.table_changed(release.request_id) is None
        assert again.plan(count(), epsilon=0.25).release().repeated  # without a warning


@pytest.mark.slow
def test_synthetic_tables_are_told_as_well(tmp_path: Path) -> None:
    def made(ages: list[int]) -> Study:
        frame = pa.table({**COLUMNS, "age": ages})
        return Study(rows(frame), 1.0, 1e-6, ledger=tmp_path / "study.db", account="people")

    for ages, changed in (([30, 41, 52], False), ([30, 41, 53], True)):
        study = made(ages)
        if changed:
            with pytest.warns(TableChanged, match="a new id"):
                study.synthesise(rows=5, epsilon=0.5, columns="sex")
        else:
            study.synthesise(rows=5, epsilon=0.5, columns="sex")
        study.close()


@pytest.mark.slow
def test_what_was_drawn_anew_for_a_changed_table_is_the_stored_answer_of_that_table(tmp_path: Path) -> None:
    def made(*ages: int) -> Plan:
        frame = pa.table({"age": list(ages)})
        rows = dataset(frame, schema={"age": (0, 110)})
        return Study(rows, 1.0, ledger=tmp_path / "study.db", account="people").plan(count(), epsilon=0.25)

    first = made(30).release()
    later = made(31).release(fresh=True)
    assert made(31).release().request_id == later.request_id  # without a warning
    assert made(30).release().request_id == first.request_id
    with pytest.warns(TableChanged):
        assert made(32).release().request_id == later.request_id
    assert made(30).study.budget.count == 2


def test_what_was_drawn_anew_after_a_crash_is_the_stored_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> Plan:
        rows = dataset(pa.table({"age": [30]}), schema={"age": (0, 110)})
        return Study(rows, 1.0, ledger=tmp_path / "study.db", account="people").plan(count(), epsilon=0.25)

    plan = made()
    plan.study.register()
    plan.study.ledger.charge("people", 0.25, request_id=plan.request_id)  # and its process is gone
    monkeypatch.setattr(release_request, "PATIENCE", 0.0)
    with pytest.raises(InvalidValue, match="has no answer yet"):
        made().release()
    fresh = made().release(fresh=True)
    again = made().release()
    assert again.request_id == fresh.request_id and again.repeated and made().study.budget.count == 2

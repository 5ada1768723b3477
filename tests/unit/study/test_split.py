"""Disjoint parts of a table: fixed once, reserved as one charge, each held to its own budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data.engines.duckdb import quiet
from farthing.errors import BudgetExceeded, InvalidValue, LedgerTampered
from farthing.ledger import Ledger, open_ledger
from farthing.ledger.ledger_replay import Replay

SCHEMA = {"region": ["north", "south"], "age": (0, 110)}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "people.csv"
    made.write_text("region,age,person\n" + "north,30,1\nsouth,41,2\n" * 40)
    return made


def study_of(ledger: Ledger, source: Any, **facts: Any) -> ft.Study:
    return ft.Study(ft.dataset(source, schema=SCHEMA, **facts), epsilon=1.0, ledger=ledger, account="people")


@pytest.mark.slow
def test_plans_of_disjoint_parts_cost_the_maximum_and_not_the_sum(ledger: Ledger, file: Path) -> None:
    study = study_of(ledger, file)
    parts = study.split("region", epsilon=0.75)
    assert list(parts) == ["north", "south"] and study.left == 0.25
    for part in parts.values():
        part.plan(ft.count(), epsilon=0.25).release()
        part.plan(ft.mean("age"), epsilon=0.5).release()  # another kind, in another plan
        with pytest.raises(BudgetExceeded, match="nothing is left of the budget of 'people / region = "):
            part.plan(ft.median("age"))
    assert study.left == 0.25
    again = study_of(ledger, file).split("region", epsilon=0.75)  # the same partition, free of charge
    assert again["north"].left == 0.0 and study.left == 0.25
    said = str(parts["north"].plan(ft.count(), epsilon=0.25))
    assert "what all parts by region may cost is charged to 'people' once" in " ".join(said.split())
    with pytest.raises(BudgetExceeded):
        study.split("region", epsilon=0.5)  # with other budgets it is another partition
    assert ledger.verify().ok and [each.dataset for each in ledger.accounts()][1:] == [
        "people / region = north",
        "people / region = south",
    ]


@pytest.mark.slow
def test_later_plans_of_a_part_have_what_its_own_clock_pays(ledger: Ledger, file: Path) -> None:
    """A part has a clock of its own: what is charged to one leaves the other, and the table, as they were."""
    study = ft.Study(ft.dataset(file, schema=SCHEMA), 1.0, 1e-6, ledger=ledger, account="people")
    parts = study.split("region", epsilon=0.9, delta=1e-7)
    whole, south = study.budget, parts["south"].budget
    north = parts["north"]
    for number in range(60):
        ledger.charge(north.account, 0.01, request_id=f"before {number}")
    assert north.left < 0.5 * north.room < north.room < 0.9
    plan = north.plan(*[ft.mean("age", where=f"age > {age}", name=f"over {age}") for age in range(10)])
    assert plan.allocation.problem.on_clock and north.left < plan.cost.upper <= north.room
    plan.release()
    assert study.budget == whole and parts["south"].budget == south and parts["south"].left == 0.9
    with pytest.raises(BudgetExceeded, match="nothing is left of the budget of 'people / region = north'"):
        north.plan(ft.count())
    assert ledger.verify().ok


def test_the_whole_table_and_other_rows_are_not_paid_for_by_a_part(ledger: Ledger, file: Path) -> None:
    study = study_of(ledger, file)
    north = study.split("region", epsilon=0.5)["north"]
    whole = study.dataset
    for made in (
        whole,
        whole.split("region")["south"],
        whole.split("region")["north"].union(whole),
        whole.split("region")["north"].union(ft.dataset(file, schema=SCHEMA)),
        whole.where("age > 10").where("region = 'north'"),
        whole.derive(region="'north'").where("region = 'north'"),
        ft.dataset(file, schema={**SCHEMA, "region": ["north", "South", "east"]}).where("region = 'north'"),
    ):
        with pytest.raises(InvalidValue, match="pays for rows with region = north only"):
            ft.Study(made, 0.5, ledger=ledger, account=north.account)
    with pytest.raises(InvalidValue, match="is a part; its budget was fixed"):
        ledger.set_budget(north.account, 9.0)
    adults = north.dataset.where("age >= 18")
    assert ft.Study(adults, 0.5, ledger=ledger, account=north.account).accounts == (north.account,)


@pytest.mark.slow
def test_a_table_that_has_changed_must_be_divided_again(ledger: Ledger, file: Path) -> None:
    study = study_of(ledger, file)
    north = study.split("region", epsilon=0.25)["north"]
    file.write_text("region,age,person\nsouth,30,1\n")  # somebody has moved
    plan = study_of(ledger, file).dataset.split("region")["north"]
    with pytest.raises(InvalidValue, match="has changed since it was divided by region"):
        ft.Study(plan, 0.25, ledger=ledger, account=north.account).plan(ft.count()).release()
    again = study_of(ledger, file).split("region", epsilon=0.25)["north"]
    assert again.account == "people / region = north (2)" and study.left == 0.5
    again.plan(ft.count(), epsilon=0.1).release()
    with pytest.raises(InvalidValue, match="pays for plans only"):
        again.monitor("age > 35", threshold=10, alerts=1, epsilon=0.1, steps=4)


@pytest.mark.slow
def test_units_that_may_be_in_two_parts_are_refused_or_pay_for_two(ledger: Ledger, file: Path) -> None:
    with pytest.raises(InvalidValue, match="rows of one person may be in several parts; make region a column of the"):
        study_of(ledger, file, unit="person", max_rows=1).split("region", epsilon=0.1)
    replaced = ft.dataset(file, schema=SCHEMA, neighbours="replace")
    study = ft.Study(replaced, epsilon=1.0, ledger=ledger, account="replaced people")
    assert study.is_registered is False
    study.split("region", epsilon=0.25)
    assert study.left == 0.5  # a replaced row leaves one part and enters another


@pytest.mark.slow
def test_a_person_with_one_region_by_construction_is_in_one_part(ledger: Ledger, file: Path) -> None:
    made = ft.dataset(file, schema=SCHEMA, unit=["person", "region"], max_rows=2)
    study = ft.Study(made, epsilon=1.0, ledger=ledger)
    study.split("region", epsilon=0.25)
    assert study.left == 0.75


@pytest.mark.slow
def test_no_part_is_opened_that_was_not_paid_for(ledger: Ledger, file: Path) -> None:
    study = study_of(ledger, file)
    study.split("region", epsilon=0.25)
    part = ledger.parts()["people / region = north"]
    unit = ledger.budget("people").protects
    assert unit is not None
    other = type(part)(part.account, part.by, "east", 1, 1, part.partition)
    for epsilon, made in ((0.5, other), (0.25, type(part)("people", "age", "x", 1, 1, part.partition))):
        with pytest.raises(InvalidValue, match="must be one of a partition that was charged, with its budget"):
            ledger.open_part(made, epsilon, 0.0, unit)
    replay, entries = Replay(), list(ledger.entries())
    charged = next(entry for entry in entries if entry.request_id == part.request_id)
    for entry in entries[: charged.sequence - 1]:
        replay.follow(entry)
    opened = next(entry for entry in entries if entry.dataset == part.name)
    early = opened._replace(sequence=charged.sequence, previous=replay.mac)
    with pytest.raises(LedgerTampered):  # a part before its partition
        replay.follow(early)


@pytest.mark.slow
def test_a_frame_is_divided_and_a_table_of_a_server_is_not(ledger: Ledger) -> None:
    frame = pa.table({"region": ["north", "south"] * 5, "age": [30, 41] * 5})
    study = study_of(ledger, frame)
    assert study.split("region", epsilon=0.5)["south"].plan(ft.count()).release().cost <= 0.5
    with quiet():
        connection = duckdb.connect()
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        table = ibis.duckdb.from_connection(connection).table("people")
        with pytest.raises(InvalidValue, match="must be a file or a frame, divided by its curator"):
            ft.Study(ft.dataset(table, schema=SCHEMA), 1.0, ledger=ledger, account="people").split("region", 0.1)

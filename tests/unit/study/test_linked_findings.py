"""What nobody knows about linked tables: found once, in the table that has it, and used wherever that is joined."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.errors import SamePeople
from farthing.study.key_count_plan import KeyCountPlan
from farthing.study.staged_plan import StagedPlan

PERSONS = {"person": list(range(400)), "sex": ["FM"[n % 2] for n in range(400)]}
VISITS = {"visit": list(range(800)), "person": [n % 400 for n in range(800)], "cost": [10 + n % 80 for n in range(800)]}
DRUGS = {"visit": [n % 800 for n in range(1_600)], "drug": [("aspirin", "codeine")[n % 2] for n in range(1_600)]}
ENOUGH = 400.0  # epsilon: no noise moves what is found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, columns in (("persons", PERSONS), ("visits", VISITS), ("drugs", DRUGS)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return tmp_path


def hospital(folder: Path) -> Any:
    return ft.linked(
        persons=ft.table(folder / "persons.parquet", schema={"sex": ["F", "M"]}),
        visits=ft.table(folder / "visits.parquet", schema={"cost": ft.unknown("whole number")}),
        drugs=ft.table(folder / "drugs.parquet", schema={"drug": ft.unknown("text")}),
        unit="persons.person",
        keys={"visits.person": "persons.person", "drugs.visit": "visits.visit"},
        max_rows={"visits": 2, "drugs": 4},
    )


def study_of(rows: Any, folder: Path, **more: Any) -> ft.Study:
    return ft.Study(rows, ENOUGH, 1e-6, ledger=folder / "study.db", **more)


def test_a_column_that_only_links_can_reach_is_found_and_counted_by(folder: Path) -> None:
    drugs = hospital(folder)["drugs"].join("visits").join("persons", how="left")
    with closing(study_of(drugs, folder)) as study:
        plan = study.plan(ft.count(by=["drug", "sex"], of="people", max_cells=4), epsilon=40.0)
        assert isinstance(plan, StagedPlan) and [search.name for search in plan.stage.open] == ["drug"]
        assert study.budget.count == 0
        release = plan.discover().release()
        (answer,) = release.answers.values()
        assert study.dataset.schema["drug"].values == ("aspirin", "codeine") and len(answer.values) == 4
        assert study.budget.count == 2


def test_people_by_an_unknown_key_of_a_linked_table_are_counted_in_one_step(folder: Path) -> None:
    """One noise and one charge, alone or beside other statistics; a table with joins takes two stages."""
    asked = ft.count(by="drug", of="people", max_cells=2)
    with closing(study_of(hospital(folder)["drugs"], folder)) as study:
        plan = study.plan(asked, epsilon=40.0)
        assert isinstance(plan, KeyCountPlan) and study.budget.count == 0
        release = plan.release()
        (answer,) = release.answers.values()
        assert dict(zip(answer.labels, answer.values, strict=True)) == {"aspirin": 200, "codeine": 200}
        assert study.budget.count == 1 and study.budget.spent_upper == pytest.approx(40.0)
        assert study.plan(asked, epsilon=40.0).release().repeated and study.budget.count == 1
        assert study.dataset.schema["drug"].values == ("aspirin", "codeine")
    again = Path(folder / "again")
    again.mkdir()
    with closing(study_of(hospital(folder)["drugs"], again)) as study:
        beside = study.plan(asked, ft.count(), epsilon=80.0)
        assert isinstance(beside, KeyCountPlan)
        both = beside.release()
        assert dict(zip(both[asked.name].labels, both[asked.name].values, strict=True))["aspirin"] == 200
        assert float(both["count"].values) == 1_600 and study.budget.count == 1
    again = Path(folder / "joined")
    again.mkdir()
    with closing(study_of(hospital(folder)["drugs"], again)) as study:
        joined = study_of(hospital(folder)["drugs"].join("visits"), again)
        assert isinstance(joined.plan(asked, epsilon=40.0), StagedPlan)
        joined.close()


def test_a_plan_and_a_release_say_whose_rows_an_inner_join_leaves_out(folder: Path) -> None:
    words = 'rows without a row in persons are left out: the join is inner, and how = "left" keeps them'
    visits = hospital(folder)["visits"]
    with closing(study_of(visits.join("persons"), folder)) as study:
        plan = study.plan(ft.count(by="sex"), epsilon=1.0)
        release = plan.release()
        assert words in str(plan.about) and release.about == plan.about
        assert words in " ".join(str(plan).split()) and words in " ".join(str(release).split())
    with closing(study_of(visits.join("persons", how="left"), folder)) as study:
        assert words not in str(study.plan(ft.count(by="sex"), epsilon=1.0).about)


def test_what_is_found_in_one_table_is_used_where_that_is_joined(folder: Path) -> None:
    tables = hospital(folder)
    with closing(study_of(tables["visits"], folder)) as study:
        assert study.discover("cost", epsilon=50.0).release()["cost"].is_usable
    with closing(study_of(tables["drugs"].join("visits"), folder)) as study:
        assert study.discover("cost").cost == 0
        assert study.dataset.schema["cost"].upper >= 80
        assert study.budget.count == 1  # of the one account
        plan = study.plan(ft.mean("cost"), epsilon=20.0)
        assert not isinstance(plan, StagedPlan)
        assert 40 < plan.release()["mean of cost"].values < 60
    with closing(study_of(tables["drugs"].join("visits"), folder)) as study:
        found = study.discover("drug", "cost", epsilon=50.0).release()
        assert sorted(found) == ["cost", "drug"] and study.budget.count == 3  # of drug alone


def test_every_account_of_the_tables_pays_for_a_search(folder: Path) -> None:
    alone = ft.dataset(
        folder / "visits.parquet", unit="person", max_rows=2, schema={"cost": ft.unknown("whole number")}
    )
    with closing(study_of(alone, folder)) as study:
        study.discover("cost", epsilon=50.0).release()
    drugs = hospital(folder)["drugs"].join("visits")
    with closing(study_of(drugs, folder, account="patients")) as study:
        assert study.accounts == ("patients", "visits.parquet")
        assert study.discover("cost").cost == 0  # found by the study of that table alone
        with pytest.warns(SamePeople):
            study.discover("cost", epsilon=30.0, fresh=True).release()
        study.discover("drug", epsilon=30.0).release()
        counts = [study.ledger.budget(name).count for name in study.accounts]
        assert counts == [2, 3]

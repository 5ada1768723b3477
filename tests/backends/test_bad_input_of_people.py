"""What a steward may get wrong about people, on every engine: refused in words before anything is spent, or answered.

`FARTHING_KEYS=1000000 pytest tests/backends/test_bad_input_of_people.py` is with as many different keys.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as ft
from backends.engine_under_test import EngineUnderTest
from farthing.errors import BudgetExceeded, InvalidValue

KEYS = int(os.environ.get("FARTHING_KEYS", "3000"))

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=1e-11, miss=0)]


def study(made: Any, folder: Path, **more: Any) -> contextlib.closing[ft.Study]:
    facts = {"epsilon": 20.0, "delta": 1e-6, "account": "people", **more}
    return contextlib.closing(ft.Study(made, ledger=str(folder / "study.db"), **facts))


@pytest.fixture(scope="module")
def texts(engine: EngineUnderTest) -> Iterator[Any]:
    """As many free texts as rows, and 200 people who wrote the same one."""
    notes = [f"a text of its own, {number}" for number in range(KEYS)] + ["none"] * 200
    table = pa.table(
        {"who": list(range(len(notes))), "note": notes, "cost": [10.0 + who % 80 for who in range(len(notes))]}
    )
    schema = {"note": ft.unknown("text"), "cost": ft.unknown("number")}
    yield ft.dataset(engine.load(table), unit="who", max_rows=1, schema=schema, name="notes")


def test_free_text_gives_what_people_share_and_no_text_of_one(texts: Any, tmp_path: Path) -> None:
    """A text of one person is shown with 1e-6 at most; four of 3,000 are, with less than 0.003^4 / 24 = 4e-12."""
    with study(texts, tmp_path) as own:
        plan = own.plan(ft.count(by="note", of="people", max_cells=1), ft.count_distinct("note"), epsilon=12.0)
        assert "in free text, where hardly any two cells are the same, nothing is found" in " ".join(str(plan).split())
        assert own.budget.spent.upper == 0
        release = plan.release()
        labels = release["count of people by note"].labels
        assert "none" in labels and len(labels) < 5
        assert abs(float(release["number of different values of note"].values) - KEYS - 1) < 90
        assert own.budget.count == 1


def test_a_first_stage_without_enough_budget_is_refused_before_anything_is_spent(texts: Any, tmp_path: Path) -> None:
    with study(texts, tmp_path, epsilon=0.5) as own:
        with pytest.raises(BudgetExceeded, match=r"a plan of epsilon=2 exceeds the 0\.5 left"):
            own.plan(ft.mean("cost"), epsilon=2.0)
        with pytest.raises(BudgetExceeded, match=r"exceeds the 0\.5 left"):
            own.discover("cost", epsilon=2.0).release()
        with pytest.raises(InvalidValue, match=re.escape("plan='cost': is not known yet, and decides how accurate")):
            own.plan(ft.mean("cost")).release()
        assert own.budget.count == 0 and own.budget.spent.upper == 0


def test_a_search_that_cannot_find_anything_is_refused_before_it_is_paid_for(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    table = pa.table({"who": [1, 2, 3], "note": ["a", "a", "b"], "cost": [1.0, 2.0, 3.0]})
    schema = {"note": ft.unknown("text"), "cost": ft.unknown("number")}
    small = ft.dataset(engine.load(table), unit="who", max_rows=1, people=3, schema=schema, name="notes")
    with study(small, tmp_path) as own:
        for name in schema:
            with pytest.raises(InvalidValue, match="raise epsilon"):
                own.discover(name, epsilon=1.0)
        assert own.budget.count == 0


def test_a_study_of_linked_tables_with_broken_keys_answers(engine: EngineUnderTest, tmp_path: Path) -> None:
    """A circle is refused before a row is read; orphans and people without rows are left out of the numbers."""
    persons = engine.load(pa.table({"who": list(range(300)), "sex": ["F", "M"] * 150}))
    visits = engine.load(pa.table({"visit": list(range(400)), "who": [number % 200 for number in range(400)]}))
    drugs = engine.load(pa.table({"visit": [number % 600 for number in range(1_200)], "drug": ["x"] * 1_200}))

    def linked(**keys: str) -> Any:
        return ft.linked(
            persons=ft.table(persons, schema={"sex": ["F", "M"]}),
            visits=ft.table(visits, schema={"visit": (0, 999)}),
            drugs=ft.table(drugs, schema={"drug": ["x", "y"]}),
            unit="persons.who",
            keys={key.replace("__", "."): leads for key, leads in keys.items()},
            max_rows={"persons": 1, "visits": 2, "drugs": 4},
        )

    with pytest.raises(InvalidValue, match=r"visits -> drugs -> visits.*must not form a cycle"):
        linked(visits__visit="drugs.visit", drugs__visit="visits.visit")
    with pytest.raises(InvalidValue, match="must lead from 'drugs' to 'persons'"):
        linked(visits__who="persons.who")
    hospital = linked(visits__who="persons.who", drugs__visit="visits.visit")
    with study(hospital["drugs"].join("visits").join("persons"), tmp_path, epsilon=40.0) as own:
        release = own.plan(
            ft.count(), ft.count(of="people"), ft.count(by="sex", of="people", max_cells=1), epsilon=40.0
        ).release()
        # 400 visits have two drugs each, of 200 people; the other drugs name visits that nobody made.
        assert abs(float(release["count"].values) - 800) < 60
        assert abs(float(release["count of people"].values) - 200) < 30
        assert own.budget.count == 1

"""A synthesis through the curator: charged once, recorded, and the same table ever after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pytest

from farthing.adaptive.synthesis import Synthesise, synthesis_plan
from farthing.curator import Curator
from farthing.data import Dataset, Sensitivity, dataset
from farthing.data.coded_rows import coded_axes
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger import open_ledger

SCHEMA = {"sex": ["F", "M"], "age": (20, 29), "smokes": bool}


def people(max_rows: int | None = None) -> Dataset:
    random = np.random.default_rng(1)
    smokes = random.random(600) < 0.4
    table = pyarrow.table(
        {
            "person": np.arange(600) // 2,
            "sex": np.where(smokes, "M", "F"),
            "age": random.integers(20, 30, 600),
            "smokes": smokes,
        }
    )
    if max_rows is None:
        return dataset(table, schema=SCHEMA)
    return dataset(table, unit="person", max_rows=max_rows, schema=SCHEMA)


def question(epsilon: float, rows: Dataset, sensitivity: Sensitivity | None = None) -> Synthesise:
    axes = coded_axes(rows.schema, missing=False)
    plan = synthesis_plan(
        [len(axis) for axis in axes], epsilon, names=[axis.column for axis in axes], sensitivity=sensitivity
    )
    return Synthesise(plan, axes)


@pytest.mark.slow
def test_a_synthesis_is_charged_once_and_can_be_made_again_from_the_ledger(tmp_path: Path) -> None:
    rows = people()
    asked = question(1.0, rows)
    with open_ledger(tmp_path / "study.db") as ledger:
        curator = Curator(ledger)
        curator.register(rows, "survey", epsilon=1.5)
        shares: list[float] = []
        first = curator.run(rows, asked, ledger_name="survey", request_id="s", progress=shares.append)
        again = curator.run(rows, asked, ledger_name="survey", request_id="s")
        assert again.repeated and not first.repeated
        assert 0.99 <= ledger.budget("survey").spent.upper <= 1.0
        with pytest.raises(BudgetExceeded):
            curator.run(rows, asked, ledger_name="survey", request_id="another")
    models = [asked.plan.fitted(one.answers) for one in (first, again)]
    assert np.array_equal(models[0].marginal((0, 1, 2)), models[1].marginal((0, 1, 2)))
    assert first.finished == again.finished
    assert first.finished["rounds"][0]["columns"]
    sex_and_smokes = models[0].marginal((0, 2)) / models[0].total
    assert sex_and_smokes[0, 1] + sex_and_smokes[1, 0] < 0.1


@pytest.mark.slow
def test_noise_made_for_closer_neighbours_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    rows = people(max_rows=2)
    with open_ledger(tmp_path / "study.db") as ledger:
        curator = Curator(ledger)
        curator.register(rows, "survey", epsilon=1.0)
        with pytest.raises(InvalidValue, match="sensitivity"):
            curator.run(rows, question(0.5, rows), ledger_name="survey")
        assert ledger.budget("survey").spent.upper == 0
        fair = question(0.5, rows, Sensitivity(2, 2, 4, 2))
        curator.run(rows, fair, ledger_name="survey")
        assert ledger.budget("survey").spent.upper > 0.49


def test_questions_differ_where_anything_public_differs() -> None:
    rows = people()
    assert question(1.0, rows).digest == question(1.0, rows).digest
    assert question(1.0, rows).digest != question(0.9, rows).digest
    with pytest.raises(InvalidValue, match="axes"):
        Synthesise(synthesis_plan((2, 2), 1.0), question(1.0, rows).axes)

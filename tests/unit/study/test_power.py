"""What a plan says about the power of a test is how often the test finds the difference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.inference.significance import equality
from farthing.statistics.answer_records import answers_from
from farthing.study.plan import Plan

KNOWN = {
    "rows": 3000,
    "ill": {True: 0.2, False: 0.8},
    "income": (400.0, 80.0),
    "sex": {"F": 1 / 3, "M": 2 / 3},
}


def dataset(draw: np.random.Generator, ill: float = 0.2, income: float = 400.0) -> Dataset:
    sex = np.array(["F"] * 1000 + ["M"] * 2000)
    women = sex == "F"
    table = pa.table(
        {
            "sex": sex,
            "ill": draw.random(3000) < np.where(women, 0.2, ill),
            "income": np.clip(draw.normal(0.0, 80.0, 3000) + np.where(women, 400.0, income), 0.0, 1000.0),
        }
    )
    return ft.dataset(table, schema={"sex": ["F", "M"], "ill": bool, "income": (0.0, 1000.0)})


@pytest.fixture
def study(tmp_path: Path) -> Iterator[ft.Study]:
    people = dataset(np.random.default_rng(1))
    with closing(ft.Study(people, epsilon=0.4, account="people", ledger=str(tmp_path / "study.db"))) as study:
        yield study


def found(plan: Plan, name: str, apart: dict[str, float], times: int) -> float:
    """How often the test finds the difference in new tables with new noise."""
    draw, noises, hits = np.random.default_rng(2), plan.allocation.noises, 0
    for _ in range(times):
        people = dataset(draw, **apart)
        measured = plan.design.measurements(noises).run(people)
        (answer,) = (
            each for each in answers_from(plan.design.outputs, noises, people.schema, measured) if each.name == name
        )
        assert answer.noise is not None
        tops, bottoms = zip(*map(answer.noise.numbers, range(2)), strict=True)
        variances = None if "ill" in apart else [6400.0, 6400.0]
        hits += equality(tops, bottoms, variances, name, 999).p_value <= 0.05  # type: ignore[arg-type]
    return hits / times


@pytest.mark.slow
@pytest.mark.parametrize(("name", "apart"), [("ill", 0.045), ("income", 9.0)])
def test_differences_are_found_as_often_as_predicted(study: ft.Study, name: str, apart: float) -> None:
    """150 tables: further than 0.25 from the prediction by chance less than once in 10^9."""
    plan = study.plan(ft.mean(name, by="sex"), expected=KNOWN)
    predicted = plan[f"mean of {name} by sex"].power("F", "M", apart)
    base = {"ill": 0.2, "income": 400.0}[name]
    assert 0.3 < predicted < 0.9
    assert found(plan, f"mean of {name} by sex", {name: base + apart}, 150) == pytest.approx(predicted, abs=0.25)


def test_power_rises_with_the_difference_from_the_level_to_one(study: ft.Study) -> None:
    planned = study.plan(ft.mean("ill", by="sex"), expected=KNOWN)["mean of ill by sex"]
    powers = [planned.power("F", "M", difference) for difference in (0.0, 0.02, 0.05, 0.1, 0.3)]
    assert powers[0] == pytest.approx(0.05, abs=0.002)
    assert powers == sorted(powers)
    assert powers[-1] > 0.999
    assert planned.power("F", "M", 0.05, level=0.01) < powers[2]


def test_detectable_difference_has_the_power(study: ft.Study) -> None:
    planned = study.plan(ft.mean("income", by="sex"), expected=KNOWN)["mean of income by sex"]
    least = planned.detectable("F", "M", 0.8)
    assert planned.power("F", "M", least) == pytest.approx(0.8, abs=0.005)
    assert planned.detectable("F", "M", 0.8, spread=300.0) > least


def test_groups_lost_in_noise_find_nothing(study: ft.Study) -> None:
    few = {**KNOWN, "rows": 30}
    planned = study.plan(ft.mean("ill", by="sex"), expected=few)["mean of ill by sex"]
    assert planned.power("F", "M", 0.5) == 0.0
    assert planned.detectable("F", "M") == math.inf


@pytest.mark.parametrize(
    ("asked", "arguments", "words"),
    [
        (ft.count(by="sex"), {"difference": 0.1}, "must be a mean by groups"),
        (ft.mean("ill"), {"difference": 0.1}, "must be a mean by groups"),
        (ft.mean("ill", by="sex"), {"other": "X", "difference": 0.1}, "must be a group"),
        (ft.mean("ill", by="sex"), {"difference": math.nan}, "difference"),
        (ft.mean("ill", by="sex"), {"difference": 0.1, "level": math.nan}, "must be between 0 and 1"),
        (ft.mean("income", by="sex"), {"difference": 0.1}, "must be the standard deviation within a group"),
        (ft.mean("income", by="sex"), {"difference": 0.1, "spread": -1.0}, "must be between 0 and half"),
    ],
)
def test_what_has_no_power_is_refused(study: ft.Study, asked: Any, arguments: dict[str, Any], words: str) -> None:
    planned = study.plan(asked, expected={"rows": 3000})[asked.name]
    with pytest.raises(InvalidValue, match=words):
        planned.power(**{"one": "F", "other": "M", **arguments})

"""Ranges, cdfs of many cells and marginals, released 200 times: as far from the truth as foretold, questions too.

The noise is drawn by the mechanisms themselves from an explicit source, so the outcome does not change from run to run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.release.noise import Noise
from farthing.release.statistics import cdf, marginals, ranges
from sources import TestSource

pytestmark = pytest.mark.slow

RELEASES = 200
ROWS = 20_000
SCHEMA = {"sex": ["F", "M"], "age": (0, 110), "region": ["n", "e", "s", "w"], "income": (0.0, 120_000.0)}
LISTED = [(0.0, 30_000.0), (10_000.0, 90_000.0), (0.0, 120_000.0)]
ASKED = [
    ranges("age"),
    ranges("age", by="sex", where="region <> 'n'", name="ages of groups"),
    ranges("income", ranges=LISTED),
    cdf("income", bins=150),
    marginals(["sex", "age", "region"], bins={"age": 11}),
]
QUESTIONS: dict[str, list[tuple[Any, Any]]] = {
    "ranges of age": [
        ("10 <= age < 25", lambda t: (t["age"] >= 10) & (t["age"] < 25)),
        ((40, 90), lambda t: (t["age"] >= 40) & (t["age"] < 90)),
        ("age = 50", lambda t: t["age"] == 50),
    ],
    "ages of groups": [
        (
            "sex = 'F' and age < 30",
            lambda t: (t["sex"] == "F") & (t["age"] < 30) & (t["region"] != "n"),
        ),
    ],
    "2-way marginals of sex, age and region": [
        ("sex = 'M' and age < 30", lambda t: (t["sex"] == "M") & (t["age"] < 30)),
        ({"region": ["e", "s"]}, lambda t: np.isin(t["region"], ["e", "s"])),
    ],
}


def columns() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(7)
    return {
        "sex": np.tile(["F", "M"], ROWS // 2),
        "age": np.clip(draw.normal(45, 18, ROWS), 0, 110).astype(int),
        "region": draw.choice(["n", "e", "s", "w"], ROWS),
        "income": np.clip(draw.normal(50_000, 20_000, ROWS), 0, 120_000),
    }


def truths(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    sex, age, region, income = (rows[name] for name in ("sex", "age", "region", "income"))
    south = region != "n"
    by_age = [np.bincount(age[south & (sex == one)], minlength=111) for one in "FM"]
    ten = np.minimum(age // 10, 10)
    tables = [
        np.histogram2d(one, other, (np.arange(a + 1) - 0.5, np.arange(b + 1) - 0.5))[0].ravel()
        for one, other, a, b in (
            (sex == "M", ten, 2, 11), (sex == "M", _coded(region), 2, 4), (ten, _coded(region), 11, 4),
        )
    ]  # fmt: skip
    return {
        "ranges of age": np.bincount(age, minlength=111),
        "ages of groups": np.concatenate(by_age),
        "ranges of income": np.array([((income >= low) & (income <= high)).sum() for low, high in LISTED]),
        "cdf of income": np.cumsum(np.histogram(income, 150, (0, 120_000))[0]) / ROWS,
        "2-way marginals of sex, age and region": np.concatenate(tables),
    }


def _coded(region: np.ndarray) -> np.ndarray:
    return np.searchsorted(["e", "n", "s", "w"], region)


@pytest.fixture(scope="module", params=[0.0, 1e-9], ids=["pure", "delta"])
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The plan, the errors of every statistic and question, and which intervals held the truth."""
    rows = columns()
    people = ft.dataset(pa.table(rows), schema={**SCHEMA, "region": ["e", "n", "s", "w"]}, rows=ROWS)
    study = ft.Study(
        people, 1.0, request.param, ledger=tmp_path_factory.mktemp("promise") / "study.db", name="people"
    )
    plan = study.plan(*ASKED, expected={"age": rows["age"].tolist(), "income": rows["income"].tolist()})
    if (
        request.param
    ):  # either kind of noise must keep its promise, whichever a plan of this size would choose
        noises = {slot.name: Noise("gaussian", 12.0) for slot in plan.design.slots}
    else:
        noises = dict(plan.allocation.noises)
    found: dict[str, list[Any]] = {}
    questions: dict[str, list[Any]] = {}
    wanted = {name: part for slot in plan.design.slots for name, part in slot.aggregates.items()}
    exact = people.exact(wanted)
    truth = truths(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farthing.mechanisms.base.SYSTEM", TestSource(200))
        for _ in range(RELEASES):
            drawn = {
                slot.name: slot.measure(slot.own(exact), noises[slot.name]) for slot in plan.design.slots
            }
            for output in plan.design.outputs:
                answer = output.answer(drawn, noises)
                inside = (answer.lower <= truth[output.name]) & (truth[output.name] <= answer.upper)
                found.setdefault(output.name, []).append((answer.values - truth[output.name], inside))
                for what, held in QUESTIONS.get(output.name, []):
                    told, right = answer.query(what), float(held(rows).sum())
                    questions.setdefault(f"{output.name}: {what}", []).append(
                        ((told.values - right) / told.standard_errors, told.lower <= right <= told.upper)
                    )
    return plan.design, noises, found, questions


@pytest.mark.parametrize("name", [statistic.name for statistic in ASKED])
def test_errors_are_as_foretold(name: str, released: Any) -> None:
    design, noises, found, _ = released
    errors, inside = (np.array(part) for part in zip(*found[name], strict=True))
    law = design.output(name).predicted(noises)
    sizes = law.standard_errors
    known = sizes > 1e-9  # the last share of a cdf is 1
    covered = float(np.mean(np.abs(errors)[:, known] <= law.errors(0.95)[known]))
    if name not in ("ranges of age", "ages of groups"):  # where cells are nearly empty, values stop at zero
        assert 0.93 <= covered <= 0.975, covered
        ratio = float(np.sqrt(np.mean((errors[:, known] / sizes[known]) ** 2)))
        assert 0.9 <= ratio <= 1.1, ratio
    assert 0.93 <= float(np.mean(inside[:, known])) <= 0.975


def test_questions_asked_afterwards_are_as_exact_as_they_say(released: Any) -> None:
    *_, questions = released
    for name, found in questions.items():
        errors, inside = (np.array(part, dtype=float) for part in zip(*found, strict=True))
        # 200 draws: three standard errors around what is promised.
        assert 0.9 <= inside.mean() <= 0.995, name
        assert 0.85 <= float(np.sqrt(np.mean(errors**2))) <= 1.15, name

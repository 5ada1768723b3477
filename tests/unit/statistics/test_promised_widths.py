"""What is required is what is released: the widths of intervals that depend on the noise, cell by cell.

The noise is drawn from seeded generators, so that nothing here changes from run to run.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.data import dataset
from farthing.statistics import constructors as st
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise
from farthing.statistics.moments import variance_outputs
from farthing.statistics.moments.variance_outputs import VarianceOutput
from sources import TestSource

SIZES = {"a": 4_000, "b": 1_500, "c": 600, "d": 300}
EXPECTED = {"rows": sum(SIZES.values()), "g": SIZES, "x": (40.0, 15.0)}
DRAWS = 1_000


def _people() -> Any:
    groups = np.repeat(list(SIZES), list(SIZES.values()))
    values = np.concatenate([_spread(size) for size in SIZES.values()])
    return dataset(pyarrow.table({"g": groups, "x": values}), schema={"g": list(SIZES), "x": (0.0, 100.0)})


def _spread(size: int) -> Any:
    """As many values with the mean and the standard deviation that are expected."""
    return 40.0 + 15.0 * np.where(np.arange(size) % 2, 1.0, -1.0)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (st.mean, "laplace"),
        pytest.param(st.mean, "gaussian", marks=pytest.mark.slow),
        pytest.param(st.variance, "laplace", marks=pytest.mark.slow),
        (st.std, "gaussian"),
    ],
)
def test_one_release_in_a_thousand_is_wider_than_promised(asked: Any, kind: Any) -> None:
    """Of 1,000 releases about one is; the promise of the error that is predicted was broken by every tenth."""
    people = dataset(pyarrow.table({"x": _spread(300)}), schema={"x": (0.0, 100.0)})
    design = design_of([asked("x")], people, {"rows": 300, "x": (40.0, 15.0)})
    (output,) = design.outputs
    noises = {slot.name: Noise(kind, 0.3 if kind == "laplace" else 6.0) for slot in design.slots}
    widths = _widths(people, design, kind, noises, seed=16)
    promised = output.promised(noises).worst(0.95)
    assert np.count_nonzero(widths > promised) <= 5
    assert widths.max() > 0.75 * promised  # no more is asked for than is needed
    assert np.mean(widths > output.predicted(noises).worst(0.95)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "parameter", "deviation"),
    [("laplace", 0.3, 3.0), ("laplace", 0.05, 15.0), ("gaussian", 40.0, 3.0)],
)
def test_spreads_of_very_noisy_counts_are_released_as_promised(kind: Any, parameter: float, deviation: float) -> None:
    """First orders do not rank such intervals: 11, 17 and 109 of 1,000 were wider than promised."""
    values = 40.0 + deviation * np.where(np.arange(300) % 2, 1.0, -1.0)
    people = dataset(pyarrow.table({"x": values}), schema={"x": (0.0, 100.0)})
    design = design_of([st.std("x")], people, {"rows": 300, "x": (40.0, deviation)})
    (output,) = design.outputs
    noises = {slot.name: Noise(kind, parameter) for slot in design.slots}
    widths = _widths(people, design, kind, noises, seed=3)
    promised = output.promised(noises).worst(0.95)
    assert np.count_nonzero(widths > promised) <= 3
    assert widths.max() > 0.75 * promised


def _widths(people: Any, design: Any, kind: str, noises: Any, seed: int) -> Any:
    """How far the intervals of many releases of the one output of a design reach."""
    (output,) = design.outputs
    exact = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    draw = np.random.default_rng(seed)
    noisy = [
        float(np.asarray(exact[part.slot.name]).reshape(-1)[part.place])
        + _noise(draw, kind, part.slot.scale(noises[part.slot.name]), DRAWS)
        for part in output.shared.parts
    ]
    values, _, interval = output._released(noisy, noises, np.array([300.0]), np.array([1]), (DRAWS,))
    low, high = interval(0.95)
    return np.maximum(values - low, high - values)


def _noise(draw: np.random.Generator, kind: str, scale: float, number: int) -> Any:
    return np.rint(draw.laplace(0, scale, number) if kind == "laplace" else draw.normal(0, scale, number))


@pytest.mark.slow
def test_every_released_mean_of_unequal_groups_is_within_what_was_required(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A required 1.5 came out as 1.1 to 1.9. Counts are always within; a cell of means once in 1,000 releases not."""
    monkeypatch.setattr("farthing.mechanisms.mechanism.SYSTEM", TestSource(16))
    with closing(ft.Study(_people(), epsilon=100.0, account="people", ledger=tmp_path / "study.db")) as study:
        plan = study.plan(st.mean("x", by="g"), st.count(by="g"), epsilon=2.0, expected=EXPECTED)
        plan = plan.require("mean of x by g", within=1.5).require("count by g", within=40)
        assert plan["mean of x by g"].worst_error() == pytest.approx(1.5, rel=2e-3)
        for number in range(8):
            found = plan.release(request_id=f"release {number}")
            means, counts = found["mean of x by g"], found["count by g"]
            assert np.all(np.maximum(means.values - means.lower, means.upper - means.values) <= 1.5)
            assert np.all((counts.upper - counts.lower) / 2 <= 40)


@pytest.mark.slow
def test_a_plan_says_in_one_line_what_a_required_error_rests_on(tmp_path: Any) -> None:
    with closing(ft.Study(_people(), epsilon=1.0, delta=1e-6, account="people", ledger=tmp_path / "study.db")) as study:
        told = study.plan(st.mean("x", by="g"), st.count(by="g"), st.median("x"), expected=EXPECTED)
        told = told.require("mean of x by g", within=9.0).require("count by g", within=60)
        told = told.require("median of x", within=20.0)
        assert told.opening is None and told.assumed_rows is None
        assert told["mean of x by g"].required == (
            "every cell within ±9 (95%) in 999 of 1,000 releases, if the table has as many rows as expected, groups "
            "have as many rows as expected and x is as expected"
        )
        assert told["count by g"].required == "every cell within ±60 (95%) in every release, whatever the data"
        stepped = told.require("count by g", within=60.4)["count by g"]
        assert stepped.worst_error() == 60 and stepped.required == (
            "every cell within ±60.4 (95%) in every release, whatever the data; it is ±60, because this error is a "
            "whole number"
        )
        assert told["median of x"].required == (
            "within ±20 (95%) on average over releases, if the table has as many rows as expected and x is "
            "distributed as expected"
        )
        for one in told.statistics:
            assert f"required: {one.name} {one.required}" in " ".join(str(told).split())
            assert f"    required: {one.required}" in told.explain()
        assert told.to_dict()["statistics"][1]["rests_on"] == []
        assumed = study.plan(st.mean("x")).require("mean of x", within=30.0)
        clause = "if the table has 10,000 rows (assumed) and at least 7,500 rows have x"
        assert assumed["mean of x"].required.endswith(clause)
        assert assumed.to_dict()["assumed_rows"] == assumed.assumed_rows == 10_000
        assert str(assumed).startswith("every error here is for an assumed size: the table is assumed to have 10,000")
        assert assumed.to_dict()["opening"] == assumed.opening


@pytest.mark.slow
@pytest.mark.parametrize(("bounds", "epsilon"), [((0, 1), 0.5), ((0.0, 1.0), 0.3)])
def test_promise_is_that_of_exact_intervals_alone(bounds: Any, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals that do not decide the width are only estimated: with all of them exact it is the same.

    To a thousandth: how closely an end is found depends a little on which others are found with it.
    """
    people = dataset(pyarrow.table({"x": [0, 1]}), schema={"x": bounds})
    design = design_of([st.variance("x")], people, {"rows": 400})
    (output,) = design.outputs
    noises = {slot.name: Noise("laplace", epsilon) for slot in design.slots}
    promised = output.promised(noises).worst(0.95)
    monkeypatch.setattr(VarianceOutput, "_roughly", lambda self, interval: interval)
    monkeypatch.setattr(variance_outputs, "_APART", 1e300)  # every interval is near
    assert promised == pytest.approx(output.promised(noises).worst(0.95), rel=1e-3)

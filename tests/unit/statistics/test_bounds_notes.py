"""What declared bounds do is said beside every number that they can change, from the declaration and the number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data.schema import Schema
from farthing.inference import Answer, StatedDistribution
from farthing.statistics.answer_records import BEYOND, CHECK, Limits, with_bounds
from farthing.statistics.design import design_of
from farthing.statistics.statistic import Statistic

ROWS = 4_000


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ft.Study]:
    """Heights in cm, declared in metres; hours of which the bounds cut off the upper half."""
    source = np.random.default_rng(7)
    table = pa.table(
        {
            "height": source.normal(170.0, 9.0, ROWS),
            "hours": source.integers(20, 61, ROWS),
            "sex": source.choice(["F", "M"], ROWS),
            "smoker": source.random(ROWS) < 0.3,
        }
    )
    schema = {"height": (1.0, 2.5), "hours": (0, 45), "sex": ["F", "M"], "smoker": bool}
    opened = ft.Study(
        ft.dataset(table, schema=schema, name="people"),
        epsilon=100.0,
        ledger=str(tmp_path_factory.mktemp("s") / "s.db"),
    )
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def release(study: ft.Study) -> ft.study.Release:
    asked = (
        ft.mean("height"), ft.sum("height"), ft.variance("height"), ft.std("height"), ft.median("height"),
        ft.mean("hours"), ft.sum("hours"), ft.cdf("hours", bins=3), ft.mean("hours", by="sex"),
        ft.linear_regression("hours", ["height", "smoker"]), ft.mean("smoker"), ft.count(by="sex"),
    )  # fmt: skip
    return study.plan(*asked, expected={"rows": ROWS}).release()


@pytest.mark.slow
def test_every_number_that_clipping_can_change_says_so(release: ft.study.Release) -> None:
    said = {name: answer.note for name, answer in release.items()}
    for name in (
        "mean of height",
        "sum of height",
        "variance of height",
        "std of height",
        "median of height",
    ):
        assert "values outside 1 to 2.5 count as the nearer bound" in said[name], name
    for name in ("mean of hours", "sum of hours", "cdf of hours", "mean of hours by sex"):
        assert said[name] == "values outside 0 to 45 count as the nearer bound; fractions are rounded down", name
    line = said["regression of hours on height and smoker"]
    assert line.startswith("values of hours outside 0 to 45 and of height outside 1 to 2.5 count as the nearer bound")
    assert "; fractions of hours are rounded down" in line
    assert said["mean of smoker"] == said["count by sex"] == ""  # a flag and a category have no bounds


SCHEMA = Schema.read({"height": (1.0, 2.5), "smoker": bool})


def noted(statistic: Statistic, values: list[float], half: float, limits: Limits | None, *found: str) -> str:
    """What is said of values whose intervals reach `half` to both sides, cut at the limits."""
    distribution = StatedDistribution(np.full(len(values), half), lambda _: np.full(len(values), half))
    least, most = (-np.inf, np.inf) if limits is None else map(float, map(np.min, limits))
    labels = () if len(values) == 1 else tuple(range(len(values)))
    answer = Answer.around(statistic.name, values, distribution, labels, least=least, most=most)
    return with_bounds(answer, statistic, SCHEMA, limits, found).note


@pytest.mark.parametrize("kind", [ft.mean, ft.median, ft.sum])
def test_an_interval_that_reaches_a_bound_says_so(kind: Callable[[str], Statistic]) -> None:
    scale = 100.0 if kind is ft.sum else 1.0
    limits = (1.0 * scale, 2.5 * scale)
    near, far = (noted(kind("height"), [value * scale], 0.01 * scale, limits) for value in (2.495, 1.8))
    assert near.endswith(f"the interval reaches the declared bound: {CHECK}") and CHECK not in far
    assert noted(kind("height"), [1.005 * scale], 0.01 * scale, limits) == near
    whole = noted(kind("height"), [1.8 * scale], 3.0 * scale, limits)
    assert CHECK not in whole  # as wide as the bounds: it is rows that are too few
    assert CHECK not in noted(kind("height"), [2.5 * scale], 0.01 * scale, None)


def test_spreads_have_limits_of_their_own_groups_are_counted_and_flags_are_left_alone() -> None:
    for kind, most in ((ft.variance, 0.75**2), (ft.std, 0.75)):
        flat, wide = (noted(kind("height"), [value], 0.01, (0.0, most)) for value in (0.0, most))
        assert flat.endswith(f"reaches 0, as if all values were the same, or beyond one bound: {CHECK}")
        assert wide.endswith(f"the interval reaches the most that the declared bounds allow: {CHECK}")
    several = noted(ft.mean("height", by="smoker"), [2.5, 1.8, 2.499], 0.01, (1.0, 2.5))
    assert several.endswith(f"2 of 3 intervals reach the declared bound: {CHECK}")
    one = noted(ft.mean("height", by="smoker"), [2.5, 1.8], 0.01, (1.0, 2.5))
    assert one.endswith(f"1 of 2 intervals reaches the declared bound: {CHECK}")
    assert noted(ft.mean("smoker"), [0.999], 0.01, (0.0, 1.0)) == ""


def test_a_range_that_was_found_is_not_called_declared() -> None:
    found = noted(ft.mean("height"), [2.495], 0.01, (1.0, 2.5), "height")
    assert found.endswith(f"the interval reaches the found bound: {BEYOND}") and "declared" not in found
    wide = noted(ft.std("height"), [0.75], 0.01, (0.0, 0.75), "height")
    assert wide.endswith(f"reaches the most that the found bounds allow: {BEYOND}")


def test_the_limits_of_a_sum_are_those_of_its_rows() -> None:
    table = pa.table({"height": [170.0] * 50})
    data = ft.dataset(table, schema={"height": (1.0, 2.5)})
    both, alone = design_of([ft.mean("height"), ft.sum("height")], data), design_of([ft.sum("height")], data)
    output = both.output("sum of height")
    (slot,) = output.slots
    measured = {slot.name: np.array([50, 0, 0]) * round(1 / slot.step)}
    limits = output.limits(measured)
    assert limits is not None and [float(np.max(limit)) for limit in limits] == [50.0, 125.0]
    assert alone.output("sum of height").limits({}) is None  # nobody counted


@pytest.mark.slow
def test_it_is_said_once_in_the_table_and_stands_in_the_csv_and_the_report(
    release: ft.study.Release, tmp_path: Path
) -> None:
    text = " ".join(str(release).split())
    assert text.count("values outside 0 to 45 count as the nearer bound") == 1
    hours = "note: mean of hours, sum of hours, cdf of hours and mean of hours by sex: values outside 0 to 45"
    assert hours in text
    notes = {record["statistic"]: record["note"] for record in release.records()}
    assert notes["mean of height"] == release["mean of height"].note
    assert "values outside 0 to 45 count" in release.report(str(tmp_path / "r.html")).read_text("utf-8")

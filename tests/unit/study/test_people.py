"""Counts of people, and bounds of one statistic: what is measured, what it says, and what is refused."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data import Bounded
from farthing.errors import InvalidExpression, InvalidValue
from farthing.server.services.release_status import _text
from farthing.statistics.design import design_of
from farthing.statistics.statistic import Statistic
from farthing.study.coverage_text import about_rows
from farthing.study.documents.study_document import entry_of, statistic_of

ORIGINS = ["EWR", "JFK", "LGA"]


def panel(planes: int = 300) -> tuple[pa.Table, dict[str, int], dict[str, int]]:
    """Flights of planes, a few of which have hundreds: the table, its rows and its planes by origin."""
    luck = random.Random(3)
    rows = [
        (plane, luck.choice(ORIGINS), luck.randint(0, 23))
        for plane in range(planes)
        for _ in range(600 if plane % 100 == 0 else luck.randint(1, 4))
    ]
    flights = {origin: sum(1 for _, own, _ in rows if own == origin) for origin in ORIGINS}
    people = {origin: len({plane for plane, own, _ in rows if own == origin}) for origin in ORIGINS}
    names = ("tailnum", "origin", "hour")
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)}), flights, people


def study_of(table: pa.Table, folder: Path, **facts: Any) -> ft.Study:
    schema = {"origin": ORIGINS, "hour": (0, 23)}
    return ft.Study(
        ft.dataset(table, unit="tailnum", schema=schema, name="flights", **facts),
        epsilon=8.0,
        delta=1e-6,
        ledger=str(folder / "study.db"),
    )


def test_people_are_those_of_the_file_and_a_capped_count_says_what_it_is_about(tmp_path: Path) -> None:
    table, flights, people = panel()
    with contextlib.closing(study_of(table, tmp_path, max_rows=20)) as study:
        plan = study.plan(ft.count(by="origin"), ft.count(by="origin", of="people", max_cells=3))
        release, shown = plan.release(), str(plan)
    rows, units = release["count by origin"], release["count of people by origin"]
    for origin, low, high in zip(ORIGINS, units.at(1 - 1e-9).lower, units.at(1 - 1e-9).upper, strict=True):
        assert low <= people[origin] <= high
    assert np.sum(rows.values) < 0.7 * sum(flights.values())  # most rows are those of three planes
    capped, exact = (plan[name] for name in ("count by origin", "count of people by origin"))
    assert capped.counts == "rows (at most 20 of each tailnum)" and exact.counts == "people (one per tailnum)"
    assert "true value" not in capped.sentence and "at most 20 rows of each tailnum" in capped.sentence
    assert exact.sentence.endswith("of its true number of people (one per tailnum)")
    for text in (shown, str(release), _text(release, "csv"), _text(release, "html")):
        assert "rows (at most 20 of each tailnum)" in text and "people (one per tailnum)" in text
    (first, *_) = csv.DictReader(io.StringIO(_text(release, "csv")))
    assert first["counts"] == "rows (at most 20 of each tailnum)"
    said = {one["name"]: one["counts"] for one in json.loads(release.to_json())["plan"]["statistics"]}
    assert said["count of people by origin"] == "people (one per tailnum)"


def test_people_are_linked_with_no_other_count(tmp_path: Path) -> None:
    """A total of people is not the sum of its cells, and neither is that of rows: no relation holds between them."""
    table, _, _ = panel(30)
    flights = ft.dataset(table, unit="tailnum", max_rows=2, schema={"origin": ORIGINS, "hour": (0, 23)})
    design = design_of(
        [
            ft.count(of="people"),
            ft.count(by="origin", of="people", max_cells=2),
            ft.count(by="origin", of="people", max_cells=3, name="all"),
            ft.count(by="origin"),
            ft.count(),
            ft.count(by="origin", rows_per_cell=2, max_cells=3, name="bounded"),
            ft.ranges("hour", of="people"),
        ],
        flights,
    )
    own = [slot for slot in design.slots if isinstance(slot.aggregate, Bounded)]
    assert len(own) == 5 and not any(slot.row_counts for slot in own)
    assert len({slot.name for slot in design.slots}) == len(design.slots)
    assert all(output.links is None for output in design.outputs if output.statistic.bound is not None)
    bounds = {slot.sensitivity.l2_squared for slot in own[:3]}
    assert bounds == {1, 2, 3} and own[3].sensitivity.l2_squared == 4 * 3


@pytest.mark.parametrize(
    "asked",
    [
        ft.histogram("hour", of="people", max_cells=2),
        ft.histogram("hour", of="people", max_cells=1),
        ft.histogram("hour", rows_per_cell=3, max_cells=2),
        ft.count(by=["hour", "origin"], max_rows=4),
    ],
)
def test_a_sparse_table_with_a_bound_of_its_own_keeps_the_sum_of_its_noisy_cells(asked: Statistic) -> None:
    """Set to 0 one by one, the negative cells of a sparse table made its sum three times the truth."""
    table, _, _ = panel(30)
    design = design_of([asked], ft.dataset(table, unit="tailnum", schema={"origin": ORIGINS, "hour": (0, 23)}))
    (slot,), (output,) = design.slots, design.outputs
    noises = {slot.name: ft.statistics.measurements.Noise("laplace", 20.0)}
    noisy = np.random.default_rng(16).integers(-60, 61, len(output.reference))
    noisy[0] = 300
    answer = output.answer({slot.name: noisy}, noises)
    values, raw = np.asarray(answer.values), np.asarray(answer.raw)
    assert np.array_equal(raw, noisy) and (raw < 0).any()
    assert (values >= 0).all() and values.sum() == raw.sum()
    assert np.array_equal(np.asarray(output.answer({slot.name: np.abs(noisy)}, noises).values), np.abs(noisy))


def test_a_mean_of_bounded_rows_is_of_one_choice_of_rows(tmp_path: Path) -> None:
    table, _, _ = panel(30)
    flights = ft.dataset(table, unit="tailnum", schema={"origin": ORIGINS, "hour": (0, 23)})
    asked = [
        ft.mean("hour", by="origin", rows_per_cell=2, max_cells=3),
        ft.sum("hour", max_rows=4),
        ft.mean("hour", max_rows=4, name="other"),
    ]
    design = design_of(asked, flights, expected={"hour": (12.0, 5.0), "rows": 300})
    assert [len(output.slots) for output in design.outputs] == [1, 1, 1]
    assert len(dict(design.derived)) == 3  # two partitions and a sum, under names of their own
    assert design.measurements({slot.name: ft.statistics.measurements.Noise("laplace", 1.0) for slot in design.slots})


@pytest.mark.parametrize(
    ("kind", "words", "rule"),
    [
        ("count", {"by": "origin", "of": "people"}, "max_cells=None: must be given for a count of people by origin,"),
        ("histogram", {"column": "hour", "of": "people"}, "max_cells=None: must be given"),
        ("count", {"of": "persons"}, "of='persons': must be rows or people"),
        ("count", {"of": "people", "max_rows": 3}, "max_rows=3: must be left out for people"),
        ("count", {"max_cells": 3, "by": "origin"}, "max_cells=3: must come with the number of rows"),
        ("count", {"max_rows": 3, "rows_per_cell": 1}, "max_rows=3: must be the only bound"),
        ("count", {"rows_per_cell": 1, "by": "origin"}, "max_cells=None: must be given"),
        ("cdf", {"column": "hour", "of": "people", "max_cells": 2}, "max_cells=2: must be left out for cdf"),
        ("sum", {"column": "hour", "max_rows": 0}, "max_rows=0: must be a whole number from 1"),
        ("count", {"of": "people", "max_cells": True}, "max_cells=True: must be a whole number"),
    ],
)
def test_a_bound_that_says_too_little_is_refused(kind: str, words: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        statistic_of({"kind": kind, **words})
    assert str(refusal.value).startswith(rule)


def test_cells_that_are_added_up_hold_a_unit_once_however_the_statistic_was_made() -> None:
    with pytest.raises(InvalidValue, match="rows_per_cell=2: must be left out for ranges"):
        _ = Statistic("ranges", ("hour",), rows_per_cell=2, max_cells=2).bound


def test_where_the_unit_is_one_row_people_are_refused_with_the_way_out() -> None:
    rows = ft.dataset(pa.table({"origin": ["EWR"]}), schema={"origin": ORIGINS})
    with pytest.raises(InvalidValue, match="rows are people, and each counts once; leave of out"):
        design_of([ft.count(of="people")], rows)


@pytest.mark.parametrize(
    "asked",
    [
        ft.count(of="people"),
        ft.count(by="origin", of="people", max_cells=2, where="hour > 3"),
        ft.contingency(["origin", "hour"], rows_per_cell=2, max_cells=5),
        ft.mean("hour", max_rows=4),
        ft.marginals(["origin", "hour"], of="people"),
    ],
)
def test_words_of_a_study_file_are_those_of_python(asked: Statistic) -> None:
    again, _ = statistic_of(entry_of(asked, {}))
    assert again == asked and eval(repr(asked), vars(ft)) == asked


def test_a_table_without_a_bound_answers_people_and_refuses_the_rest(tmp_path: Path) -> None:
    table, _, people = panel(40)
    with contextlib.closing(study_of(table, tmp_path, people=40)) as study:
        for refused in (ft.count(), ft.median("hour"), ft.linear_regression("hour", "origin")):
            with pytest.raises(InvalidValue, match="max_rows=None: must be given with a unit"):
                study.plan(refused)
        with pytest.raises(InvalidValue, match="max_rows=None: must be given with a unit"):
            study.count_rows()
        plan = study.plan(ft.count(of="people"), ft.cdf("hour", of="people"))
        assert plan["cdf of hour (people)"].counts.startswith("people (one per tailnum, in one cell")
        assert not any("people" in text and "assumed to have" in text for text in plan.assumptions)
        assert study.budget.spent_upper == 0
        release = plan.release()
    assert release["count of people"].at(1 - 1e-9).lower <= 40
    assert set(people) == set(ORIGINS)


def about(study: ft.Study, *asked: Statistic) -> str:
    said = about_rows(study.dataset, design_of(asked, study.dataset).outputs)
    assert said is not None
    return said


def test_what_bounds_of_single_statistics_leave_out_is_said_and_that_no_margin_speaks_of_it(tmp_path: Path) -> None:
    table, _, _ = panel(planes=4)
    whole = ft.count(by="origin", of="people", max_cells=3)
    with contextlib.closing(study_of(table, tmp_path)) as study:
        nothing = "numbers look at all rows of each tailnum; rows without tailnum are left out"
        assert about(study, whole) == nothing  # as many cells as there are
        said = about(study, whole, ft.count(by="origin", of="people", max_cells=2, name="few"))
        assert said == (
            f"{nothing}; in few, people in more than 2 cells count in 2 of them, chosen at random, and are missing "
            "from the others and from the margins of error"
        )
        few = ft.count(by="origin", rows_per_cell=2, max_cells=1), ft.mean("hour", max_rows=5)
        said = about(study, *few)
        end = "chosen at random; other rows are left out, and margins of error do not account for them"
        assert f"in count by origin, at most 2 rows of each tailnum count in each of at most 1 cell, {end}" in said
        assert f"in mean of hour, at most 5 rows of each tailnum count, {end}" in said
        values = about(study, ft.count_distinct("hour", max_cells=3))
        assert (
            "at most 3 values of each tailnum count, chosen at random; other values are left out, and margins" in values
        )


def test_an_answer_by_itself_says_what_its_cap_counts(tmp_path: Path) -> None:
    table, _, _ = panel(planes=4)
    with contextlib.closing(study_of(table, tmp_path, max_rows=5)) as study:
        release = study.plan(ft.count(), ft.count(by="origin"), epsilon=1.0).release()
        rows = study.count_rows()
    capped = "rows (at most 5 of each tailnum)"
    for answer in (release["count"], release["count by origin"], release["count by origin"]["JFK"], rows):
        assert f"(95%); counts {capped}" in str(answer) and f"(50%); counts {capped}" in str(answer.at(0.5))
        assert answer.to_dict()["counts"] == capped
    lines = str(release).splitlines()
    assert [line.endswith(capped) for line in lines[2:6]] == [True] * 4, "the cap stands beside every interval"
    assert [one["counts"] for one in release.to_dict()["answers"]] == [capped, capped]


def test_the_share_that_max_rows_leaves_out_is_not_said_of_counts_that_have_no_use_for_it(tmp_path: Path) -> None:
    table = pa.table({"who": [n // 4 for n in range(4_000)], "sex": ["F"] * 4_000})
    visits = ft.dataset(table, unit="who", max_rows=2, schema={"sex": ["F", "M"]}, name="visits")
    with contextlib.closing(ft.Study(visits, epsilon=400.0, ledger=str(tmp_path / "study.db"))) as study:
        study.discover(rows_per_unit=True, epsilon=50.0).release()
        people = ft.count(of="people")
        assert "left out by max_rows" not in about(study, people)
        both = about(study, people, ft.count())
        assert "; for count of people, all rows of each who are looked at instead; about 50% (" in both
        assert "are too few to be seen and not in this figure: 2 rows of each are kept" in both


@pytest.mark.parametrize("asked", [ft.count(where="cost > 100"), ft.mean("cost", where="cost > 100")])
def test_a_condition_on_an_unknown_column_is_refused_before_it_is_found(tmp_path: Path, asked: Statistic) -> None:
    visits = ft.dataset(pa.table({"cost": [130.0]}), schema={"cost": ft.unknown("number")}, name="visits")
    study = ft.Study(visits, epsilon=1.0, ledger=str(tmp_path / "study.db"))
    with pytest.raises(InvalidExpression, match=r"the column 'cost' is declared as unknown.*find it first"):
        study.plan(asked)
    study.close()


def test_no_more_rows_are_expected_than_are_kept_of_all_people(tmp_path: Path) -> None:
    """100,000 rows of 1,000 people of whom 3 rows each are used are 3,000 rows."""
    table = pa.table({"who": [1, 1, 2], "cost": [1.0, 2.0, 3.0]})
    visits = ft.dataset(table, unit="who", max_rows=3, schema={"cost": (0.0, 10.0)}, name="visits")
    study = ft.Study(visits, epsilon=1.0, ledger=str(tmp_path / "study.db"))

    def planned(**expected: int) -> tuple[float, str]:
        plan = study.plan(ft.mean("cost"), expected=expected)
        return plan["mean of cost"].error(), " ".join(plan.assumptions)

    capped, said = planned(rows=100_000, people=1_000)
    assert capped == planned(rows=3_000)[0] == planned(rows=3_000, people=100_000)[0] > planned(rows=100_000)[0]
    assert "of the 100,000 expected rows at most 3,000 are used: 3 of each unit" in said
    assert "the 3,000 expected rows are those that are used: at most 3 of each unit" in planned(rows=3_000)[1]
    assert "of each unit" not in planned(rows=3_000, people=100_000)[1]
    study.close()

"""Running series of a study: one charge, steps in the ledger, tables that grow, crashes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.errors import AnswerForfeited, BudgetExceeded, InvalidValue
from farthing.ledger import Ledger, open_ledger

BOUNDS = (date(2020, 1, 1), date(2029, 12, 31))
SCHEMA: dict[str, Any] = {"day": BOUNDS, "region": ["north", "south"], "age": (0, 110)}
ASKED: dict[str, Any] = {"date": "day", "first": "2025-01", "steps": 6, "append_only": True}
Rows = list[tuple[int, date, str]]


def write(path: Path, rows: Rows) -> None:
    person, day, region = zip(*rows, strict=True)
    ages = [30] * len(rows)
    pq.write_table(pa.table({"person": person, "day": day, "region": region, "age": ages}), path)


def visits(month: int, many: int, first: int = 0, region: str = "north") -> Rows:
    return [(first + place, date(2025, month, 1 + place % 28), region) for place in range(many)]


@pytest.fixture
def study(tmp_path: Path) -> ft.Study:
    write(tmp_path / "visits.parquet", visits(1, 3_000))
    data = ft.dataset(tmp_path / "visits.parquet", unit="person", max_rows=1, schema=SCHEMA)
    return ft.Study(data, 2.0, 1e-9, ledger=tmp_path / "study.db")


@pytest.mark.slow
def test_a_plan_spends_nothing_and_a_series_what_the_plan_said(study: ft.Study) -> None:
    plan = study.series_plan(ft.count(by="region"), **ASKED, epsilon=0.5)
    assert study.budget.count == 0
    assert plan.rows == 1 and len(plan.series) == 2
    series = study.series(ft.count(by="region"), **ASKED, epsilon=0.5)
    assert series.plan == plan
    assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-6)
    series.update()
    assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-6)
    assert study.series_plan(ft.count(by="region"), **ASKED, epsilon=0.5) == plan
    assert study.ledger.verify().entries > 0


@pytest.mark.slow
def test_months_that_arrive_are_counted_and_what_was_released_stays(study: ft.Study, tmp_path: Path) -> None:
    series = study.series(by="region", **ASKED)
    (january,) = series.update(until="2025-01")
    assert abs(january.total["north"].values - 3_000) < 100
    late = [(9_000 + place, date(2025, 1, 5), "north") for place in range(2_000)]
    write(tmp_path / "visits.parquet", visits(1, 3_000) + visits(2, 4_000, 3_000, "south") + late)
    (february,) = series.update(until="2025-02")
    assert abs(february.count["south"].values - 4_000) < 100
    assert abs(february.total["south"].values - 4_000) < 100
    assert series.steps[0].total.values.tolist() == january.total.values.tolist()
    assert series.update(until="2025-02") == ()


@pytest.mark.slow
def test_a_person_is_counted_with_the_earliest_rows_alone(study: ft.Study, tmp_path: Path) -> None:
    """Everybody is there in every month, and counts in January only."""
    write(tmp_path / "visits.parquet", [row for month in (3, 2, 1, 4) for row in visits(month, 3_000)])
    series = study.series(**ASKED)
    said = "of each person only the earliest 1 row counts in the whole series"
    assert said in series.plan.notes[0] and said in str(study.series_plan(**ASKED))
    assert series.plan.to_dict()["notes"] == list(series.plan.notes)
    steps = series.update()
    assert abs(steps[0].count.values - 3_000) < 100
    assert max(abs(step.count.values) for step in steps[1:]) < 100
    assert max(abs(step.total.values - 3_000) for step in steps) < 100


@pytest.mark.slow
def test_rows_before_the_first_period_use_nothing_up(study: ft.Study, tmp_path: Path) -> None:
    old = [(person, date(2024, 5, 1), "north") for person in range(3_000)]
    write(tmp_path / "visits.parquet", old + visits(2, 3_000))
    steps = study.series(**ASKED).update()
    assert abs(steps[1].count.values - 3_000) < 100 and abs(steps[0].count.values) < 100


@pytest.mark.slow
def test_counts_of_a_step_are_those_of_a_plain_count(study: ft.Study, tmp_path: Path) -> None:
    """Days at both ends of periods and bounds, people with many rows, conditions and cells."""
    from farthing.study.sessions.series_sessions import SeriesOptions, _counts

    rng = np.random.default_rng(3)
    days = [
        date(2025, 1, 1),
        date(2025, 1, 31),
        date(2025, 2, 1),
        date(2025, 3, 31),
        date(2025, 4, 1),
        date(2029, 12, 31),
    ]
    rows = [(int(rng.integers(60)), days[rng.integers(6)], ["north", "south"][rng.integers(2)]) for _ in range(200)]
    write(tmp_path / "visits.parquet", rows)
    for first, every, steps in (("2025-01", "month", 4), ("2025", "year", 5), (None, "quarter", 40)):
        asked = SeriesOptions(None, "day", every, steps, first, "region")
        periods = asked.periods(study.dataset)
        for many in (1, steps):
            found = _counts(study.dataset, asked, periods, many, None, None).sum(axis=0)
            earliest = {person: min(day for one, day, _ in rows if one == person) for person, _, _ in rows}
            twin = [
                sum(periods.edges[place] <= day < periods.edges[place + 1] for day in earliest.values())
                for place in range(many)
            ]
            assert found.tolist() == twin


@pytest.mark.slow
def test_the_same_words_resume_the_series_and_nothing_is_charged_again(study: ft.Study, tmp_path: Path) -> None:
    first = study.series(**ASKED, epsilon=1.0)
    first.update(until="2025-02")
    spent = study.budget.spent_upper
    with open_ledger(tmp_path / "study.db") as ledger:  # as another process would
        again = ft.Study(study.dataset, 2.0, 1e-9, ledger=ledger).series(**ASKED, epsilon=1.0)
        assert again.plan == first.plan and again.next == "2025-03"
        again.update(until="2025-03")
        assert [step.total.values for step in first.steps] == [step.total.values for step in again.steps]
        assert ledger.budget("visits.parquet").spent_upper == spent
        ledger.verify()


@pytest.mark.slow
@pytest.mark.parametrize("after", [True, False])
def test_a_process_that_dies_between_draw_and_record_loses_nothing_and_shows_nothing(
    study: ft.Study, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """Killed just before its record is durable, or just after: the next finds one record for each step, or makes it."""
    series = study.series(**ASKED)
    released: Callable[..., Any] = Ledger.release

    def dies(self: Ledger, charge: Any, answer: str) -> Any:
        if after:
            released(self, charge, answer)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "release", dies)
        with pytest.raises(KeyboardInterrupt):
            series.update(until="2025-02")
    resumed = study.series(**ASKED)
    seen = [step.total.values for step in resumed.steps]
    assert len(seen) == after
    resumed.update(until="2025-02")
    assert [step.total.values for step in series.steps][: len(seen)] == seen and len(resumed.steps) == 2
    study.ledger.verify()


@pytest.mark.slow
def test_of_two_that_draw_for_one_step_the_first_record_counts_for_both(
    study: ft.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = study.series(**ASKED), study.series(**ASKED)
    draw = slow._draw

    def overtaken(place: int, counts: Any) -> Any:
        record = draw(place, counts)
        quick.update(until="2025-01")
        return record

    monkeypatch.setattr(slow, "_draw", overtaken)
    (step,) = slow.update(until="2025-01")
    assert step.total.values == quick.steps[0].total.values
    assert len([entry for entry in study.ledger.entries() if entry.kind == "released"]) == 2  # opening and one step


@pytest.mark.slow
def test_a_step_that_somebody_gave_up_is_refused(study: ft.Study) -> None:
    series = study.series(**ASKED)
    series._journal.begin(1)
    (round_one,) = series._journal._mine.values()  # type: ignore[attr-defined]
    study.ledger.forfeit(round_one, "by hand")
    with pytest.raises(AnswerForfeited):
        series.update(until="2025-01")


@pytest.mark.slow
def test_a_table_in_memory_is_handed_over_and_must_be_alike(study: ft.Study) -> None:
    series = study.series(**ASKED)
    names = ("person", "day", "region")
    columns = dict(zip(names, map(list, zip(*visits(1, 500), strict=True)), strict=True)) | {"age": [30] * 500}
    more = ft.dataset(pa.table(columns), unit="person", max_rows=1, schema=SCHEMA, name="visits.parquet")
    assert abs(series.update(more, until="2025-01")[0].count.values - 500) < 100
    wider = ft.dataset(pa.table(columns), unit="person", max_rows=2, schema=SCHEMA, name="visits.parquet")
    with pytest.raises(InvalidValue, match="must be at least 2"):
        series.update(wider, until="2025-02")
    alone = ft.dataset(pa.table(columns), schema=SCHEMA, name="visits.parquet")
    with pytest.raises(InvalidValue, match="must protect"):
        series.update(alone, until="2025-02")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"date": "age"}, "must be a column of dates"),
        ({"date": "nothing"}, "must be a column of dates"),
        ({"first": "2029-12"}, "must lie within the bounds"),
        ({"every": "fortnight"}, "must be one of day"),
        ({"steps": 0}, "must be a whole number from 1"),
        ({"by": "day"}, "is the date column, which already makes the periods"),
        ({"count": ft.mean("age")}, "must be counts"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_spent(study: ft.Study, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        study.series(**{**ASKED, **changed})
    assert study.budget.count == 0


@pytest.mark.slow
def test_dates_that_a_step_has_changed_samples_and_unions_are_refused(study: ft.Study, tmp_path: Path) -> None:
    clipped = study.dataset.clip(day=(date(2024, 1, 1), date(2026, 12, 31)))
    for data in (clipped, study.dataset.sample(0.5), study.dataset.union(study.dataset)):
        other = ft.Study(data, 2.0, 1e-9, ledger=study.ledger)
        with pytest.raises(InvalidValue):
            other.series(**ASKED)
    with pytest.raises(BudgetExceeded):
        study.series(**ASKED, epsilon=3.0)
    study.monitor(threshold=10, alerts=1, epsilon=0.1, request_id="other")
    with pytest.raises(InvalidValue, match="session of another kind"):
        study.series(**ASKED, request_id="other")
    assert study.series(**ASKED, epsilon=0.5, request_id="mine").plan.epsilon == 0.5
    with pytest.raises(InvalidValue, match=r"epsilon=0.3: must be 0.5"):
        study.series(**ASKED, epsilon=0.3, request_id="mine")
    with pytest.raises(InvalidValue, match="charged before for something else"):
        study.series(**{**ASKED, "steps": 7}, request_id="mine")


@pytest.mark.slow
def test_every_step_reads_the_rows_that_the_series_was_opened_with(study: ft.Study) -> None:
    """Rows of one month alone would make others the earliest of a person, who then counts every month."""
    series = study.series(**ASKED)
    for other in (study.dataset.during("day", "month", "2025-01"), study.dataset.where("age < 99")):
        with pytest.raises(InvalidValue, match="must have the same filters and steps"):
            series.update(other, until="2025-01")
    assert len(series.update(study.dataset, until="2025-01")) == 1


@pytest.mark.slow
def test_a_link_that_leads_to_other_people_is_refused_in_the_same_process(tmp_path: Path) -> None:
    for first, name in enumerate(("ours", "theirs")):
        write(tmp_path / f"{name}.parquet", visits(1, 300, 1_000 * first))
    link = tmp_path / "latest.parquet"
    link.symlink_to(tmp_path / "ours.parquet")
    described: dict[str, Any] = {"unit": "person", "max_rows": 1, "schema": SCHEMA}
    ledger = open_ledger(tmp_path / "study.db")
    ft.Study(ft.dataset(tmp_path / "theirs.parquet", **described), 2.0, ledger=ledger, account="theirs").register()
    study = ft.Study(ft.dataset(link, **described), 2.0, ledger=ledger, account="ours")
    series = study.series(**ASKED, epsilon=0.5)
    monitor = study.monitor(ft.count(), threshold=10**6, alerts=1, steps=3, epsilon=0.5)
    monitor.look()
    link.unlink()
    link.symlink_to(tmp_path / "theirs.parquet")
    for read in (series.update, monitor.look):
        with pytest.raises(InvalidValue, match="'theirs'"):
            read()
    assert ledger.budget("theirs").count == 0


def test_an_approved_series_is_opened_once_with_exactly_the_words_that_were_asked(study: ft.Study) -> None:
    study.register()
    study.ledger.grant(study.name, "bob", 0.0)
    bob = ft.Study(study.dataset, 2.0, 1e-9, ledger=study.ledger.acting("bob", "analyst"))
    with pytest.raises(InvalidValue, match="must say what all steps together may cost"):
        bob.submit_series("beds", **ASKED, epsilon=None)  # type: ignore[arg-type]
    asked = bob.submit_series("beds", **ASKED, epsilon=0.5)
    assert asked.document["kind"] == "a running series" and study.budget.count == 0
    with pytest.raises(BudgetExceeded):
        bob.series(**ASKED, epsilon=0.5)
    study.ledger.requests.approve(asked.id)
    with pytest.raises(BudgetExceeded):
        bob.series(**ASKED, epsilon=0.25)
    bob.series(**ASKED, epsilon=0.5).update(until="2025-01")
    assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-6)
    assert len(bob.series(**ASKED, epsilon=0.5).steps) == 1  # resumed, and not charged again
    with pytest.raises(BudgetExceeded):
        bob.series(**ASKED, epsilon=0.5, request_id="again")
    assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-6)

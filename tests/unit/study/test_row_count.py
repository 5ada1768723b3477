"""Rows that nobody knows the number of: counted first, for a stated share, and then planned for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as ft
from farthing.errors import AnswerForfeited, BudgetExceeded, InvalidValue
from farthing.ledger import open_ledger
from farthing.study import study_account
from farthing.study.sessions.session_defaults import SessionOptions, session_offer
from study_people import SCHEMA, table

Make = Callable[..., ft.Study]
ASKED = ft.count(), ft.mean("income")


@pytest.mark.slow
def test_a_count_is_charged_once_for_its_share_and_asked_again_for_nothing(make_study: Make) -> None:
    study = make_study(epsilon=2.0, delta=1e-6)
    assert study.plan(*ASKED).counting == pytest.approx(0.04)
    rows = study.count_rows(share=0.02)
    assert (rows.name, rows.confidence, study.budget.count) == ("rows", 0.95, 1)
    assert study.budget.spent_upper == pytest.approx(0.04) and rows.lower < rows.values < rows.upper
    again = make_study(epsilon=2.0, delta=1e-6).count_rows(share=0.3)  # whatever the share
    assert (again.values, again.lower, again.upper) == (rows.values, rows.lower, rows.upper)
    assert study.budget.count == 1
    fresh = study.count_rows(share=0.05, fresh=True)  # and plans use the newer one
    assert study.budget.count == 2 and study.budget.spent_upper == pytest.approx(0.14)
    assert study.plan(*ASKED).rows == max(1, int(fresh.lower))


@pytest.mark.slow
def test_plans_use_the_low_end_of_the_count_and_what_is_left(make_study: Make) -> None:
    study = make_study(epsilon=10.0)
    before = study.plan(*ASKED)
    rows = study.count_rows()  # a scale of 5
    plan = study.plan(*ASKED)
    assert (before.assumed_rows, plan.assumed_rows, plan.opening) == (10_000, None, None)
    assert plan.rows == int(rows.lower) and plan.cost.upper <= 9.8 < before.cost.upper
    told = study.plan(*ASKED, expected={"rows": int(rows.lower)})
    error = plan["mean of income"].error()
    assert error == pytest.approx(told["mean of income"].error(), rel=1e-6)  # never smaller than for the low end
    assert error > study.plan(*ASKED, expected={"rows": int(rows.upper)})["mean of income"].error()
    assert f"{int(rows.lower):,} rows, the low end of what was counted" in str(plan)
    loose = plan.require("mean of income", within=100_000)["mean of income"]
    assert f"the table has at least {int(rows.lower):,} rows (counted" in loose.required
    # As one of a population, the error of a count grows with the rows: it is predicted for the high end.
    grows = study.plan(ft.count(for_population=True)), {"rows": int(rows.upper)}
    at_most = study.plan(ft.count(for_population=True), expected=grows[1])
    assert grows[0]["count"].error() == pytest.approx(at_most["count"].error(), rel=1e-6)
    released = plan.release()
    assert study.budget.spent_upper <= 10.0 and released.plan["counted"]["lower"] == int(rows.lower)
    study.count_rows(share=0.001, fresh=True) if study.left > 0.02 else None
    assert study.plan(*ASKED)["mean of income"].error() == pytest.approx(error)  # it is shown as it was


@pytest.mark.slow
def test_no_count_is_offered_for_a_plan_that_was_released_before(make_study: Make) -> None:
    study = make_study(epsilon=1.0)
    plan = study.plan(*ASKED, epsilon=0.5)
    assert plan.opening is not None and "have them counted first" in plan.opening
    plan.release()
    again = study.plan(*ASKED, epsilon=0.5)
    assert again.earlier is not None and again.opening is not None and again.counting is None
    assert "assumed to have 10,000 rows" in again.opening and "counted" not in again.opening


@pytest.mark.slow
def test_sessions_use_the_same_count_and_assume_the_same_size(make_study: Make) -> None:
    study = make_study(epsilon=10.0)
    wish = SessionOptions(alpha=0.5, columns=("sex",), queries=5)
    guess = session_offer(study, wish)
    assert (guess.guessed, guess.plan.rows) == (True, study.plan(*ASKED).assumed_rows)
    rows = study.count_rows()
    offer = session_offer(study, wish)
    assert (offer.guessed, offer.plan.rows) == (False, round(float(rows.values)))
    study.query_session(
        0.5, 5, columns=["sex"], epsilon=1.0, request_id="mine"
    )  # a name of its own needs no other count
    assert study.budget.count == 2


def test_a_count_that_was_lost_stays_charged_and_is_made_under_another_name(
    make_study: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study()

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(study_account._RowCountQuestion, "run", fails)
        with pytest.raises(AnswerForfeited):
            study.count_rows()
    assert study.budget.count == 1 and study.plan(*ASKED).assumed_rows == 10_000
    study.count_rows()
    assert study.budget.count == 2 and study.plan(*ASKED).assumed_rows is None


@pytest.mark.slow
def test_a_count_is_refused_where_it_tells_nothing_or_does_not_fit(make_study: Make, tmp_path: Path) -> None:
    for share in (0.0, 1.0, float("nan"), -0.1):
        with pytest.raises(InvalidValue, match=r"share="):
            make_study().count_rows(share=share)
    public = ft.dataset(table(), schema=SCHEMA, rows=400, neighbours="replace")
    with pytest.raises(InvalidValue, match="public already"):
        ft.Study(public, 1.0, ledger=tmp_path / "public.db", account="public").count_rows()
    sample = ft.dataset(table(), schema=SCHEMA)
    with pytest.raises(InvalidValue, match="sampling_rate"):
        ft.Study(sample, 1.0, ledger=tmp_path / "s.db", account="s", sampling_rate=0.1).count_rows()
    study = make_study()
    study.plan(ft.count()).release()
    with pytest.raises(BudgetExceeded):
        study.count_rows()


@pytest.mark.slow
def test_an_analyst_pays_from_a_grant_and_keeps_a_count_of_their_own(people: Any, tmp_path: Path) -> None:
    study = ft.Study(people, 5.0, ledger=tmp_path / "study.db", account="people")
    study.register()
    study.ledger.grant("people", "bob", 1.0)
    bob = ft.Study(people, 5.0, ledger=open_ledger(tmp_path / "study.db"), account="people", analyst="bob")
    bob.count_rows()
    assert bob.budget.spent_upper == pytest.approx(0.02)
    assert bob.plan(*ASKED).assumed_rows is None and study.plan(*ASKED).assumed_rows == 10_000


def test_a_count_is_of_the_rows_that_a_unit_keeps(tmp_path: Path) -> None:
    """One person with very many rows moves it by as many as are kept, and the noise is for that."""
    visits = pa.table({"person": [1] * 5_000 + list(range(2, 102)), "age": [30] * 5_100})
    data = ft.dataset(visits, unit="person", max_rows=3, schema={"age": (0, 110)})
    study = ft.Study(data, 100.0, ledger=tmp_path / "study.db", account="visits")
    rows = study.count_rows(share=0.5)
    assert abs(float(rows.values) - 103) < 10
    assert study_account.stored_count(study).scale == pytest.approx(3 / 50)

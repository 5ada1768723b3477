"""Accounts that renew: a budget for each period, of its rows alone, and a bound for somebody who is in all of them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.accounting import compose
from farthing.data import Count, Dataset
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger import open_ledger
from farthing.privacy import ApproxDP
from farthing.study import renewal
from farthing.study.reports.release_report import _protection

BOUNDS = (date(2020, 1, 1), date(2029, 12, 31))
TERMS: dict[str, Any] = {"renews": "month", "date": "day"}


def visits(folder: Path, *months: int, bounds: tuple[date, date] = BOUNDS) -> Dataset:
    """A folder of monthly files: 3,000 people, each there in every month."""
    for month in months:
        days = [date(2025, month, 1 + person % 28) for person in range(3_000)]
        table = pa.table({"person": list(range(3_000)), "day": days})
        pq.write_table(table, folder / f"visits-{month:02}.parquet")
    return ft.dataset(str(folder / "visits-*.parquet"), unit="person", max_rows=1, schema={"day": bounds})


def study(folder: Path, data: Dataset, period: str | None = None, **options: Any) -> ft.Study:
    given = {"account": "patients", **TERMS, "period": period, **options}
    return ft.Study(data, 0.5, 1e-9, ledger=folder / "study.db", **given)


@pytest.mark.slow
def test_each_month_has_its_budget_and_its_rows_and_a_year_has_the_accountants_bound(tmp_path: Path) -> None:
    for month in (1, 2):
        january = study(tmp_path, visits(tmp_path, month), f"2025-{month:02}")
        plan = january.plan(ft.count())
        assert "no bound holds for ever" in str(plan) and "all 12 months" in plan.to_dict()["account_news"]
        release = plan.release()
        assert abs(release["count"].values - 3_000) < 200
        assert "Each period has a budget of its own: somebody in all 12 months" in _protection(release)
        assert f"with all of its rows of 2025-{month:02}" in _protection(release)
        with pytest.raises(BudgetExceeded):
            january.plan(ft.count(where=f"day > date '2025-{month:02}-10'")).release()
        whole = january.ledger.budget("patients").lifetime(12)
        assert whole == january.budget.lifetime(12)
        assert whole is not None
        assert whole.epsilon == compose([ApproxDP(0.5, 1e-9)] * 12).epsilon_at(whole.delta).upper
        january.close()
    with open_ledger(tmp_path / "study.db") as ledger:
        assert ledger.verify().ok
        assert ledger.datasets() == ["patients", "patients, 2025-01", "patients, 2025-02"]


@pytest.mark.slow
def test_a_month_again_is_free_and_its_code_asks_for_the_same(tmp_path: Path) -> None:
    data = visits(tmp_path, 1, 2)
    first = study(tmp_path, data, "2025-01").plan(ft.count()).release()
    again = study(tmp_path, data, "2025-01").plan(ft.count())
    assert again.release()["count"].values == first["count"].values
    assert "renews='month', date='day', period='2025-01'" in "\n".join(again.code)
    assert "account='patients'" in "\n".join(again.code)


def test_a_month_that_is_not_over_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one to come nor, on its last day, the present one; on the day after, it is over."""
    data = visits(tmp_path, 2)
    monkeypatch.setattr(renewal, "_today", lambda: date(2025, 2, 28))
    for period in ("2025-02", "2025-03", "2029-01"):
        with pytest.raises(InvalidValue, match="is not over; its budget would be gone"):
            study(tmp_path, data, period)
    assert study(tmp_path, data).name == "patients, 2025-01"
    monkeypatch.setattr(renewal, "_today", lambda: date(2025, 3, 1))
    assert study(tmp_path, data, "2025-02").name == "patients, 2025-02"


@pytest.mark.slow
def test_rows_of_other_periods_move_nothing_and_bounds_move_no_row(tmp_path: Path) -> None:
    """The same rows whatever else is in the table, and however narrow the declared bounds are."""
    narrow = (date(2025, 2, 5), date(2025, 2, 20))
    alone = visits(tmp_path, 2).during("day", "month", "2025-02").exact({"n": Count()})["n"]
    more = visits(tmp_path, 1, 2, 3)
    for data in (more, visits(tmp_path, 2, bounds=narrow)):
        assert data.during("day", "month", "2025-02").exact({"n": Count()})["n"] == alone == 3_000
        assert data.during("day", "month", "2025-04").exact({"n": Count()})["n"] == 0
    assert more.during("day", "year", "2025").exact({"n": Count()})["n"] == 3_000  # one row of each


WAYS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"renews": None, "date": None, "period": None}, "has a budget for each month"),
    ({"renews": "week"}, "must be 'month' by 'day'"),
    ({"date": "person"}, "must be a declared column of dates"),
    ({"date": None}, "must be given with date="),
    ({"account": "others"}, "is registered there"),
    ({"sampling_rate": 0.1}, "must be left out"),
)


@pytest.mark.slow
def test_there_is_no_other_way_to_these_rows(tmp_path: Path) -> None:
    data = visits(tmp_path, 1)
    study(tmp_path, data, "2025-01").register()
    for changed, words in WAYS:
        with pytest.raises(InvalidValue, match=words):
            study(tmp_path, data, **{"period": "2025-01", **changed}).register()


def test_budgets_of_periods_cannot_be_changed_charged_past_or_opened_larger(tmp_path: Path) -> None:
    data = visits(tmp_path, 1)
    first = study(tmp_path, data, "2025-01")
    first.register()
    ledger = first.ledger
    for account in ("patients", "patients, 2025-01"):
        with pytest.raises(InvalidValue, match="is the same for every period"):
            ledger.set_budget(account, 5.0)
    with pytest.raises(InvalidValue, match="and none of its own"):
        ledger.charge("patients", 0.1, request_id="by hand")
    february = data.during("day", "month", "2025-02")
    with pytest.raises(InvalidValue, match="must be that of every month"):
        ft.Study(february, 5.0, 1e-9, account="patients, 2025-02", ledger=ledger).register()
    with pytest.raises(InvalidValue, match="no other rows may be read with it"):
        ft.Study(february, 0.5, 1e-9, account="patients, 2025-01", ledger=ledger)
    with pytest.raises(InvalidValue):
        ft.Study(data, 0.5, 1e-9, account="patients, 2025-01", ledger=ledger)


@pytest.mark.slow
def test_other_tables_cannot_bring_in_rows_of_other_periods(tmp_path: Path) -> None:
    """A union or join with the whole table would read what the month has not paid for."""
    data = visits(tmp_path, 1, 2)
    study(tmp_path, data, "2025-01").register()
    month = data.during("day", "month", "2025-01")
    assert month.period is not None and month.union(data).period is None
    with pytest.raises(InvalidValue):
        study(tmp_path, data.union(data), "2025-01")
    with pytest.raises(InvalidValue):
        ft.Study(month.union(data), 0.5, 1e-9, account="patients, 2025-01", ledger=tmp_path / "study.db")
    table = pa.table({"person": list(range(9)), "age": [3] * 9})
    people = ft.dataset(table, unit="person", max_rows=1, schema={"age": (0, 9)}, name="people")
    ft.Study(people, 1.0, ledger=tmp_path / "study.db").register()
    other = ft.dataset(tmp_path / "visits-01.parquet", unit="person", max_rows=1, schema={"day": BOUNDS})
    with pytest.raises(InvalidValue):  # engines differ, or the account of the visits renews: either way it is refused
        ft.Study(people.join(other), 1.0, account="people", ledger=tmp_path / "study.db")


def test_an_account_of_all_time_does_not_begin_to_renew(tmp_path: Path) -> None:
    data = visits(tmp_path, 1)
    ft.Study(data, 0.5, 1e-9, account="patients", ledger=tmp_path / "study.db").register()
    with pytest.raises(InvalidValue, match="has one budget for all time"):
        study(tmp_path, data, "2025-01")


def test_rows_are_no_public_number_within_a_period(tmp_path: Path) -> None:
    table = pa.table({"day": [date(2025, 1, 3)] * 5})
    fixed = ft.dataset(table, schema={"day": BOUNDS}, rows=5, neighbours="replace")
    assert fixed.rows == 5
    assert fixed.during("day", "month", "2025-01").rows is fixed.earliest("day", date(2025, 1, 1)).rows is None
    assert fixed.during("day", "month", "2025-01").sensitivity(Count()).l1 > 0


@pytest.mark.slow
def test_an_account_that_is_called_like_a_month_is_none(tmp_path: Path) -> None:
    """It was taken for that month, with whatever budget it was given afterwards."""
    data = visits(tmp_path, 1, 2)
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("patients, 2025-01", 0.5, 1e-9, unit="person, add-remove")
    study(tmp_path, data, "2025-02").register()
    with pytest.raises(InvalidValue, match="is an account of its own, and not that of 2025-01 of 'patients'"):
        study(tmp_path, data, "2025-01").register()
    with open_ledger(tmp_path / "study.db") as ledger:
        for name in ("patients, 2025-03", "Patients,  2025-03"):
            with pytest.raises(InvalidValue, match="must not sound like one month of the account 'patients'"):
                ledger.register(name, 50.0, 1e-9, unit="person, add-remove")
        assert ledger.datasets() == ["patients", "patients, 2025-01", "patients, 2025-02"]

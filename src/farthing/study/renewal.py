"""Accounts of a study are opened; of one that renews, a study is of one period, its rows and its budget."""

from __future__ import annotations

import datetime

from farthing.curator.payers import period_account, renewal_of
from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.privacy.periods import Periods
from farthing.privacy.units import Renewal
from farthing.study.study_account import StudyAccount


def studied_period(
    study: StudyAccount, renews: str | None, date: str | None, period: str | datetime.date | None
) -> tuple[Dataset, str]:
    """The rows of one period of a study's table, by default the last that is over (UTC), and the account of it.

    A period that is not over is refused: what is spent on the rows of its first days is missing at its end.
    """
    if renews is None or date is None:
        raise InvalidValue("renews", renews, "must be given with date=", 'such as renews="month", date="admitted"')
    if study.sampling_rate is not None:
        raise InvalidValue("sampling_rate", study.sampling_rate, "must be left out for an account that renews")
    if study.is_registered and renewal_of(study.ledger, study.name) is None:
        raise InvalidValue(
            "renews",
            renews,
            f"must be left out: the account {study.name!r} has one budget for all time",
            "an account that renews is opened as one, for tables that no other account has",
        )
    today = _today()
    now = Periods.of(renews, today, 1)
    last = now.start - datetime.timedelta(days=1)
    rows = study.dataset.during(date, renews, last if period is None else period)
    if rows.period is None:
        raise InvalidValue("dataset", rows.name, "must be one table for an account that renews", "join nothing to it")
    asked = rows.period[1]
    if not asked.over_by(today):
        raise InvalidValue(
            "period",
            asked.names[0],
            "is not over; its budget would be gone before it ends",
            f"study it from {asked.edges[-1].isoformat()} on (UTC), or leave it out for the last one that is over",
        )
    return rows, period_account(study.name, asked.names[0])


def period_of(dataset: Dataset) -> Renewal:
    """The period that the rows of a dataset are of, as units have it.

    >>> import pyarrow
    >>> from datetime import date
    >>> from farthing.data import dataset
    >>> days = (date(2020, 1, 1), date(2029, 12, 31))
    >>> visits = dataset(pyarrow.table({"day": [date(2026, 1, 5)]}), schema={"day": days})
    >>> print(period_of(visits.during("day", "quarter", "2026-Q1")))
    in 2026-Q1 by day
    """
    assert dataset.period is not None
    column, periods = dataset.period
    return Renewal(periods.every, column, periods.names[0])


def open_account(study: StudyAccount, account: str, renewal: Renewal | None = None) -> None:
    """Open an account with the budget of a study, unless it is open; with a renewal, what all periods share."""
    if account in study.ledger.datasets():
        return
    try:
        study.curator.register(study.dataset, account, study.epsilon, study.delta, study.sampling_rate, renewal)
    except InvalidValue:
        if account not in study.ledger.datasets():
            raise
        # Another process was quicker; its word counts like that of any earlier one.


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()

"""A year of monthly files for 20,000 people who come and go: a running series, and a budget for every month."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.accounting import compose
from farthing.privacy import ApproxDP

REGIONS = [f"r{place:02}" for place in range(50)]
SCHEMA = {"day": (date(2024, 1, 1), date(2026, 12, 31)), "region": REGIONS}
FAR = 1 - 1e-13  # of each interval: of 1,800 of them none misses by chance


class Year:
    """Who is there in which month: everybody joins in one month and stays for up to a year."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(19)
        self.folder = folder
        self.joins, self.stays = rng.integers(0, 12, 20_000), rng.integers(1, 13, 20_000)
        self.regions = rng.integers(0, len(REGIONS), 20_000)

    def present(self, month: int) -> np.ndarray:
        return np.flatnonzero((self.joins <= month) & (month < self.joins + self.stays))

    def arrives(self, month: int) -> None:
        """The file of a month, with a row for everybody who is there."""
        people = self.present(month)
        days = [date(2025, month + 1, 1 + person % 28) for person in people.tolist()]
        columns = {"person": people, "day": days, "region": [REGIONS[place] for place in self.regions[people]]}
        pq.write_table(pa.table(columns), self.folder / f"visits-{month + 1:02}.parquet")

    def dataset(self) -> ft.Dataset:
        return ft.dataset(str(self.folder / "visits-*.parquet"), unit="person", max_rows=1, schema=SCHEMA)

    def counted(self, people: np.ndarray) -> np.ndarray:
        return np.bincount(self.regions[people], minlength=len(REGIONS))


def holds(answer: ft.Answer, truth: np.ndarray) -> bool:
    far = answer.at(FAR)
    return bool(np.all((far.lower <= truth) & (truth <= far.upper)))


@pytest.mark.slow
def test_a_running_series_follows_the_months_at_the_price_of_one(tmp_path: Path) -> None:
    """Everybody counts in the month in which they joined: twelve counts of newcomers, and all of them so far."""
    year = Year(tmp_path)
    for month in range(12):
        year.arrives(month)
        study = ft.Study(year.dataset(), 1.0, 1e-6, ledger=tmp_path / "study.db", account="members")
        asked = {"date": "day", "first": "2025-01", "steps": 12, "by": "region", "append_only": True}
        (step,) = study.series(**asked).update(until=f"2025-{month + 1:02}")
        assert holds(step.count, year.counted(np.flatnonzero(year.joins == month)))
        assert holds(step.total, year.counted(np.flatnonzero(year.joins <= month)))
        study.close()
    study = ft.Study(year.dataset(), 1.0, 1e-6, ledger=tmp_path / "study.db", account="members")
    assert study.budget.spent_upper <= 1.0 and study.ledger.verify().ok
    assert len(study.series(**asked).steps) == 12


@pytest.mark.slow
def test_an_account_that_renews_releases_every_month_and_says_what_a_year_comes_to(tmp_path: Path) -> None:
    year = Year(tmp_path)
    terms = {"account": "members", "renews": "month", "date": "day"}
    for month in range(12):
        year.arrives(month)
        study = ft.Study(
            year.dataset(), 0.5, 1e-8, ledger=tmp_path / "study.db", **terms, period=f"2025-{month + 1:02}"
        )
        release = study.plan(ft.count(by="region")).release()
        assert holds(release["count by region"], year.counted(year.present(month)))
        whole = study.budget.lifetime(12)
        study.close()
    assert whole is not None
    assert whole.epsilon == compose([ApproxDP(0.5, 1e-8)] * 12).epsilon_at(whole.delta).upper

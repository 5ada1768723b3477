"""Tests of hypotheses on a release, by name; what they would not be right for is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.errors import InvalidValue

SCHEMA = {"person": (0, 10_000), "sex": ["F", "M"], "income": (0.0, 1000.0), "ill": bool}


def table(rows: int = 6000) -> pa.Table:
    draw = np.random.default_rng(7)
    sex = draw.choice(["F", "M"], rows)
    return pa.table(
        {
            "person": np.arange(rows) % 5000,
            "sex": sex,
            "income": np.clip(draw.normal(400.0, 80.0, rows) + 40.0 * (sex == "M"), 0, 1000),
            "ill": draw.random(rows) < np.where(sex == "F", 0.2, 0.3),
        }
    )


@pytest.mark.slow
def test_differences_are_found_for_nothing(tmp_path: Path) -> None:
    people = ft.dataset(table(), schema=SCHEMA)
    with closing(ft.Study(people, epsilon=4.0, delta=1e-9, account="people", ledger=str(tmp_path / "s.db"))) as study:
        asked = [
            ft.mean("income", by="sex"),
            ft.std("income", by="sex"),
            ft.mean("ill", by="sex"),
            ft.contingency(["sex", "ill"]),
            ft.count(by="sex"),
            ft.cdf("income", bins=10, by="sex"),
            ft.cdf("income", bins=10),
        ]
        release = study.plan(*asked).release()
        spent = study.budget.spent_upper
        tests = [
            release.equality("mean of income by sex"),
            release.equality("mean of ill by sex"),
            release.independence("contingency of sex and ill"),
            release.same_distribution("cdf of income by sex", "F", "M"),
            release.distribution_fit("cdf of income", np.linspace(0.1, 1.0, 10).tolist()),
            release.fit("count by sex", {"F": 0.3, "M": 0.7}),
        ]
        assert [test.p_value < 0.001 for test in tests] == [True] * 6
        assert release.fit("count by sex", {"F": 1, "M": 1}).p_value > 1e-3
        assert "without the variance" not in tests[0].note
        assert study.budget.spent_upper == spent
        again = study.released(release.request_id)
        assert again.equality("mean of income by sex") == tests[0]
        with pytest.raises(InvalidValue, match="must be a mean"):
            release.equality("count by sex")
        with pytest.raises(InvalidValue, match="must be a table of two columns"):
            release.independence("count by sex")
        with pytest.raises(InvalidValue, match="must have a number for every group"):
            release.fit("count by sex", {"F": 1})
        with pytest.raises(InvalidValue, match="must be numbers > 0"):
            release.fit("count by sex", {"F": 1, "M": float("nan")})
        with pytest.raises(InvalidValue, match="must be a group of the cdf"):
            release.same_distribution("cdf of income by sex", "F", "X")
        with pytest.raises(InvalidValue, match="must be 10 numbers that rise to 1"):
            release.distribution_fit("cdf of income", [0.5, 1.0])


@pytest.mark.slow
def test_means_without_a_variance_are_taken_to_vary_as_much_as_they_can(tmp_path: Path) -> None:
    people = ft.dataset(table(), schema=SCHEMA)
    with closing(ft.Study(people, epsilon=2.0, account="people", ledger=str(tmp_path / "s.db"))) as study:
        test = study.plan(ft.mean("income", by="sex")).release().equality("mean of income by sex")
        assert test.note.startswith("without the variance of the groups, values are taken to vary as much as")
        assert test.p_value < 0.05


def test_rows_of_one_person_are_not_independent(tmp_path: Path) -> None:
    people = ft.dataset(table(), schema=SCHEMA, unit="person", max_rows=2)
    with closing(ft.Study(people, epsilon=4.0, account="people", ledger=str(tmp_path / "s.db"))) as study:
        release = study.plan(ft.count(by="sex"), epsilon=1.0).release()
        with pytest.raises(InvalidValue, match="may count several rows of one unit"):
            release.fit("count by sex", {"F": 1, "M": 1})
        two = study.plan(ft.count(by="sex", of="people", max_cells=2), epsilon=1.0).release()
        with pytest.raises(InvalidValue, match="may count several rows of one unit"):
            two.fit("count of people by sex", {"F": 1, "M": 1})
        one = study.plan(ft.count(by="sex", max_rows=1, name="one row"), epsilon=1.0).release()
        assert one.fit("one row", {"F": 1, "M": 1}).p_value > 1e-3

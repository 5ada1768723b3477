"""What a release can compare: by name, for nothing, with the noise that its answers have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.client.remote_plan import release_from
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.inference.comparisons import EXACT, FIRST_ORDER
from farthing.inference.noisy_numbers import CellNoise, NoisyCells, Spread
from farthing.statistics.withheld_cells import _without


@pytest.fixture
def study(tmp_path: Path) -> Iterator[ft.Study]:
    draw, rows = np.random.default_rng(7), 20_000
    sex = draw.choice(["F", "M"], rows)
    table = pa.table(
        {
            "sex": sex,
            "income": draw.gamma(4.0, 10_000.0, rows),
            "ill": draw.random(rows) < np.where(sex == "F", 0.2, 0.3),
        }
    )
    schema = {"sex": ["F", "M"], "income": (0.0, 250_000.0), "ill": bool}
    people = ft.dataset(table, schema=schema, rows=rows)
    with closing(
        ft.Study(people, epsilon=5.0, delta=1e-9, account="people", ledger=str(tmp_path / "study.db"))
    ) as study:
        yield study


@pytest.mark.slow
def test_comparisons_of_groups_know_both_noises(study: ft.Study) -> None:
    release = study.plan(ft.mean("income", by="sex"), ft.mean("ill", by="sex"), epsilon=1.0).release()
    spent = study.budget.spent_upper
    income, ill = "mean of income by sex", "mean of ill by sex"
    difference = release.difference(income, "F", "M")
    assert difference.name == "mean of income by sex: F minus M"
    assert float(difference) == pytest.approx(float(release[income]["F"]) - float(release[income]["M"]))
    alone = np.asarray(release[income].error())
    assert max(alone) < difference.error() < sum(alone)
    assert difference.note.startswith("values outside 0 to 250000 count as the nearer bound")
    assert 0.6 < float(release.ratio(ill, "F", "M")) < 0.75
    odds = release.odds_ratio(ill, "F", "M")
    assert 0.5 < odds.lower < float(odds) < odds.upper < 0.68
    assert odds.computed[0].way == FIRST_ORDER
    weighted = release.weighted(income, {"F": 3, "M": 1})
    assert float(weighted) == pytest.approx(0.75 * release[income].values[0] + 0.25 * release[income].values[1])  # type: ignore[index]
    assert study.budget.spent_upper == spent
    with pytest.raises(InvalidValue, match="must be counts or sums"):
        release.shares(income)
    with pytest.raises(InvalidValue, match="must be a share"):
        release.odds_ratio(income, "F", "M")


@pytest.mark.slow
def test_number_without_groups_has_none_to_compare(study: ft.Study) -> None:
    release = study.plan(ft.mean("income"), epsilon=1.0).release()
    with pytest.raises(InvalidValue, match="must have groups; release it with by="):
        release.difference("mean of income", "F", "M")


@pytest.mark.slow
def test_shares_of_a_total_add_up_to_one(study: ft.Study) -> None:
    release = study.plan(ft.count(by="sex"), epsilon=1.0).release()
    shares = release.shares("count by sex")
    assert sum(shares.values) == pytest.approx(1.0)  # type: ignore[arg-type]
    assert [each.way for each in shares.computed] == [EXACT, EXACT]
    assert shares.name == "share of count by sex"


@pytest.mark.slow
def test_change_between_releases_adds_their_noises_and_a_repeated_release_has_none(study: ft.Study) -> None:
    plan = study.plan(ft.count(by="sex"), epsilon=1.0)
    first, again = plan.release(), plan.release()
    assert first.change("count by sex", again).error().tolist() == [0.0, 0.0]  # type: ignore[union-attr]
    fresh = study.plan(ft.count(by="sex"), epsilon=1.0).release(fresh=True)
    assert (np.asarray(fresh.change("count by sex", first).error()) > np.asarray(first["count by sex"].error())).all()
    stored = study.released(fresh.request_id)
    assert fresh.change("count by sex", stored).error().tolist() == [0.0, 0.0]  # type: ignore[union-attr]


@pytest.mark.slow
def test_gini_of_even_incomes_is_a_third(tmp_path: Path) -> None:
    table = pa.table({"income": np.linspace(0.0, 1000.0, 20_001)})
    people = ft.dataset(table, schema={"income": (0.0, 1000.0)})
    with closing(
        ft.Study(people, epsilon=2.0, delta=1e-9, account="people", ledger=str(tmp_path / "study.db"))
    ) as study:
        release = study.plan(ft.cdf("income", bins=20)).release()
        gini = release.gini("cdf of income")
        assert gini.lower < 1 / 3 < gini.upper
        assert gini.error() < 0.01
        with pytest.raises(InvalidValue, match="must be at least 0 and no more than the first edge"):
            release.gini("cdf of income", least=-1.0)


@pytest.mark.slow
def test_release_that_a_server_sent_compares_the_same(study: ft.Study) -> None:
    release = study.plan(ft.mean("ill", by="sex"), epsilon=1.0).release()
    sent, name = release_from(release.to_json()), "mean of ill by sex"
    one, two = (each.ratio(name, "F", "M") for each in (release, sent))
    assert (one.values, one.lower, one.upper) == (two.values, two.lower, two.upper)
    assert sent.equality(name) == release.equality(name)
    assert sent.change(name, release).error().tolist() == [0.0, 0.0]  # type: ignore[union-attr]


def test_withheld_cells_are_no_part_of_a_comparison() -> None:
    """What a policy hides must not come back through the noise that is kept with an answer."""
    cells = NoisyCells((500.0, 3.0), (Spread(0, 1.0, (0, 1)),))
    noise = CellNoise((("counts", "laplace", 2.0),), cells, least=0.0, release="r")
    distribution = ErrorDistribution([Term("laplace", 2.0)], 2)
    answer = replace(Answer.around("count by sex", [500, 3], distribution, ("F", "M")), noise=noise)
    assert _without(answer, np.array([True, False]), 5).noise is None

"""Studies of `dataset.sample(p)`: every release draws one new sample, and is charged for exactly that."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.accounting import sampled_approx_dp
from farthing.data import Count, Dataset
from farthing.data.aggregates import aggregate as queries
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger.account import Account
from farthing.privacy import ApproxDP, Event, Sampled
from farthing.statistics.design import design_of
from farthing.study.table_error import table_error

ROWS = 20_000


@pytest.fixture(scope="module")
def people() -> Dataset:
    table = pyarrow.table(
        {
            "person": list(range(ROWS)),
            "age": [30, 41] * (ROWS // 2),
            "sex": ["F", "M"] * (ROWS // 2),
            "ward": ["A", "B", "C", "D"] * (ROWS // 4),
        }
    )
    schema = {"age": (0, 110), "sex": ["F", "M"], "ward": ["A", "B", "C", "D"]}
    return ft.dataset(table, unit="person", max_rows=1, schema=schema, name="people")


def study_of(people: Dataset, folder: Path, rate: float = 0.1, epsilon: float = 1.0, delta: float = 0.0) -> ft.Study:
    return ft.Study(people.sample(rate), epsilon, delta, ledger=folder / "study.db", account="people")


def charges_of(study: ft.Study) -> list[Any]:
    return [entry.body["event"] for entry in study.ledger.entries() if entry.kind == "charge"]


@pytest.mark.slow
def test_a_plan_is_charged_what_the_whole_costs_on_one_sample(people: Dataset, tmp_path: Path) -> None:
    """Pure noise: ln(1 + p (e^epsilon - 1)) of the sum, rounded up; less would be the price of two samples."""
    study = study_of(people, tmp_path)
    plan = study.plan(ft.count(by="sex"), ft.mean("age"), epsilon=0.3, expected={"rows": 2000})
    inner = plan.allocation.inner_cost.upper
    assert inner == pytest.approx(math.log1p(math.expm1(0.3) / 0.1), rel=1e-5)  # about four times as much as 0.3
    plan.release()
    (event,) = charges_of(study)
    charged = Event.from_dict(event)
    assert charged == Sampled(ApproxDP(inner), 0.1) == plan.allocation.event
    amount = study.budget.spent_upper
    assert math.log1p(0.1 * math.expm1(inner)) <= amount <= sampled_approx_dp(inner, 0.0, 0.1).epsilon + 1e-9


def test_what_is_charged_bounds_both_orders_of_neighbours_and_the_price_of_two_samples_would_not() -> None:
    """Two randomized responses on one sample, by brute force: the table with a person against the one without."""
    rate, epsilon = 0.3, 0.8
    truth = 1 / (1 + math.exp(-epsilon))
    seen = {(a, b): (truth if a else 1 - truth) * (truth if b else 1 - truth) for a, b in product((0, 1), repeat=2)}
    out = {(a, b): (1 - truth if a else truth) * (1 - truth if b else truth) for a, b in seen}
    with_person = {answer: (1 - rate) * out[answer] + rate * seen[answer] for answer in seen}
    worst = max(abs(math.log(with_person[answer] / out[answer])) for answer in seen)
    assert sampled_approx_dp(2 * epsilon, 0.0, rate).epsilon == pytest.approx(worst, rel=1e-12)  # tight, up to doubles
    assert worst > 2 * sampled_approx_dp(epsilon, 0.0, rate).epsilon * 1.05


@pytest.mark.slow
def test_the_clock_pays_less_for_a_plan_of_a_sample_than_for_any_mechanism_of_its_epsilon(
    people: Dataset, tmp_path: Path
) -> None:
    """Plain sums add up the same; of the clock it takes less than half, with a little of delta for far tails."""
    study = study_of(people, tmp_path, 0.01, delta=1e-9)
    study.plan(ft.count(by="sex"), ft.mean("age"), epsilon=0.02, expected={"rows": ROWS}).release()
    (price,) = [entry.body["price"] for entry in study.ledger.entries() if entry.kind == "charge"]
    other = Account.of(1.0, 1e-9).priced(0.02)
    assert other.epsilon_nano is not None and other.clock_units is not None
    assert other.epsilon_nano - 100 <= price["epsilon_nano"] <= other.epsilon_nano
    assert price["clock_units"] < 0.5 * other.clock_units and price["leak_units"] < 10**31 // 320


@pytest.mark.slow
def test_several_plans_share_the_budget_of_the_table(people: Dataset, tmp_path: Path) -> None:
    study = study_of(people, tmp_path, delta=1e-9)
    first = study.plan(ft.count(by="sex"), epsilon=0.4).release()
    second = study.plan(ft.count(by="ward"), epsilon=0.4).release()
    whole = ft.Study(people, 1.0, 1e-9, ledger=study.ledger, account="people")
    assert whole.budget.count == 2 and study.budget == whole.budget
    assert first.cost + second.cost == pytest.approx(0.8, abs=1e-5)
    with pytest.raises(BudgetExceeded):
        study.plan(ft.count(), epsilon=0.3)
    assert str(whole.budget.protects) == "person, add-remove"  # of the table, not of a population it came from


@pytest.mark.slow
def test_the_same_request_is_answered_from_the_ledger_and_a_fresh_one_draws_again(
    people: Dataset, tmp_path: Path
) -> None:
    study = study_of(people, tmp_path, epsilon=20.0)
    plan = study.plan(ft.count(), epsilon=5.0)
    first, again = plan.release(), plan.release()
    assert first["count"].values == again["count"].values and study.budget.count == 1
    whole = ft.Study(people, 20.0, ledger=study.ledger, account="people").plan(ft.count(), epsilon=5.0)
    assert whole.request.name != plan.request.name  # the sample is a part of what is asked
    fresh = [study.plan(ft.count(), epsilon=5.0).release(fresh=True)["count"].values for _ in range(2)]
    assert len({first["count"].values, *fresh}) > 1 and study.budget.count == 3


def test_counts_are_those_of_a_sample_of_the_stated_size(people: Dataset, tmp_path: Path) -> None:
    """Binomial with a deviation of 71: within seven of them (false alarm 1e-11); a rate a tenth off is 14 away."""
    value = study_of(people, tmp_path, rate=0.5, epsilon=20.0).plan(ft.count()).release()["count"].values
    assert abs(value - ROWS / 2) < 7 * math.sqrt(ROWS / 4)


@pytest.mark.slow
def test_one_sample_serves_all_measurements_of_a_plan(people: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """In separate queries too: the parts of both tables add up to the same number of people."""
    aggregates = {"sex": Count(by="sex"), "ward": Count(by="ward")}
    sample = people.sample(0.3)
    apart = sample.exact(aggregates)
    assert apart["sex"].sum() != apart["ward"].sum()  # but for once in a hundred; the draws are seeded
    monkeypatch.setattr(queries, "MOST_CELLS", 4)
    assert len(sample.read_together(aggregates)) == 2
    together = sample.exact(aggregates, one_sample=True)
    assert together["sex"].sum() == together["ward"].sum() != ROWS


def test_rows_without_a_unit_are_sampled_in_one_query_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their tokens differ from query to query, so a second query would read a second sample."""
    table = pyarrow.table({"sex": ["F", "M"] * 500, "ward": ["A", "B"] * 500})
    rows = ft.dataset(table, schema={"sex": ["F", "M"], "ward": ["A", "B"]}, name="rows").sample(0.5)
    aggregates = {"sex": Count(by="sex"), "ward": Count(by="ward")}
    counts = rows.exact(aggregates, one_sample=True)
    assert counts["sex"].tolist() == counts["ward"].tolist() and counts["sex"].sum() < 1000
    study = ft.Study(rows, 10.0, ledger=tmp_path / "study.db", account="rows")
    plan = study.plan(ft.count(by="sex"), ft.count(by="ward"))
    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "_queries", lambda *_, **__: [None, None])
        with pytest.raises(InvalidValue, match="read from one sample"):
            rows.exact(aggregates, one_sample=True)
        with pytest.raises(InvalidValue, match="read from one sample"):
            plan.release()
    assert study.budget.count == 0  # refused before the charge
    assert plan.release()["count by sex"].values.sum() < 1000


def test_the_plan_says_that_numbers_are_about_a_sample(people: Dataset, tmp_path: Path) -> None:
    plan = study_of(people, tmp_path).plan(ft.count(), epsilon=0.5)
    release = plan.release()
    for text in (str(plan), str(release)):
        assert "about: numbers and their margins of error are about a secret sample" in text
        assert "with probability 0.1" in text
    assert "of the sample)" in str(release["count"])  # and each number alone


def test_less_noise_is_needed_for_the_same_epsilon(people: Dataset, tmp_path: Path) -> None:
    sampled = study_of(people, tmp_path).plan(ft.count(by="sex"), epsilon=0.1)
    whole = ft.Study(people, 1.0, ledger=tmp_path / "whole.db", account="people").plan(ft.count(by="sex"), epsilon=0.1)
    assert sampled["count by sex"].error() < whole["count by sex"].error() / 4


def test_what_reads_one_sample_many_times_is_refused_before_anything_is_charged(
    people: Dataset, tmp_path: Path
) -> None:
    study = study_of(people, tmp_path, delta=1e-9)
    for ask in (
        lambda: study.query_session(alpha=0.05, queries=100),
        lambda: study.count_rows(),
        lambda: study.synthesise(),
        lambda: study.holdout(people),
    ):
        with pytest.raises(InvalidValue, match="it is a sample"):
            ask()
    assert study.budget.count == 0
    with pytest.raises(InvalidValue, match="must be left out for a dataset that is a sample"):
        ft.Study(people.sample(0.5), 1.0, ledger=study.ledger, account="people", sampling_rate=0.5)


@pytest.mark.slow
def test_a_file_can_ask_for_a_sample(tmp_path: Path) -> None:
    from farthing.study.documents.study_file import read_study

    (tmp_path / "people.csv").write_text("person,age\n" + "".join(f"{n},40\n" for n in range(400)), encoding="utf-8")
    (tmp_path / "study.toml").write_text(
        """
[dataset]
source = "people.csv"
unit = "person"
max_rows = 1
sample = 0.5

[schema]
age = { range = [0, 110] }

[study]
epsilon = 10.0
ledger = "study.db"

[[statistics]]
kind = "count"
""",
        encoding="utf-8",
    )
    asked = read_study(tmp_path / "study.toml")
    study = asked.study()
    assert study.dataset.probability == 0.5
    value = asked.plan(study).release()["count"].values
    assert 100 < value < 300  # ten deviations of 10 around 200
    study.close()


def test_expected_rows_are_those_of_the_table() -> None:
    """Of which a sample keeps a share; people do not know how large a sample will be."""
    table = pyarrow.table({"sex": ["F", "M"]})
    people = ft.dataset(table, schema={"sex": ["F", "M"]}, name="people")
    for drawn, rows in ((people, 2_000), (people.sample(0.25), 500)):
        design = design_of([ft.count()], drawn, expected={"rows": 2_000})
        assert design.output("count").reference.tolist() == [rows]


@pytest.mark.slow
def test_a_plan_predicts_errors_against_the_whole_table_with_the_draw_in_them(tmp_path: Path) -> None:
    """Beside 400 draws of the table itself: what the plan says of the draw is what they vary by."""
    draw = np.random.default_rng(5)
    age = draw.normal(40, 15, ROWS).clip(0, 110).round()
    table = pyarrow.table({"age": age, "sex": ["F", "M"] * (ROWS // 2)})
    people = ft.dataset(table, schema={"age": (0, 110), "sex": ["F", "M"]}, name="people")
    expected = {"rows": ROWS, "age": (float(age.mean()), float(age.std()))}
    asked = ft.count(), ft.count(by="sex"), ft.sum("age"), ft.mean("age"), ft.std("age"), ft.ranges("age")
    study = study_of(people, tmp_path, 0.1, 50.0)
    plan = study.plan(*asked, expected=expected)
    kept = [age[draw.random(ROWS) < 0.1] for _ in range(400)]
    varies = {
        "count": 10 * np.std([len(each) for each in kept]),
        "count by sex": 10 * np.std([len(each) for each in kept]) / math.sqrt(2),
        "sum of age": 10 * np.std([each.sum() for each in kept]),
        "mean of age": np.std([each.mean() for each in kept]),
        "std of age": np.std([each.std() for each in kept]),
    }
    for name, deviation in varies.items():
        one, whole = plan[name], plan[name].of_table
        assert whole is not None and whole.times == (1 if name.startswith(("mean", "std")) else 10)
        assert whole == table_error(one.output, one._all, 0.1, one.size)
        noise = whole.times * one.standard_error
        # Sums and deviations are bounded by what they can be, others are as expected.
        drawn = math.sqrt(whole.standard_error**2 - noise**2)
        assert 0.9 * deviation < drawn < (3.5 if name in ("sum of age", "std of age") else 1.1) * deviation
        assert whole.error >= max(1.9 * drawn, whole.times * one.error())
        assert "if the table has as many rows as expected and" in whole.sentence
        assert one.to_dict()["of_table"] == whole.to_dict() and f"of the table: {name}" in str(plan)
    assert plan["ranges of age"].of_table is None  # the draw is not worked out for these
    whole_table = ft.Study(people, 1.0, ledger=tmp_path / "whole.db", account="people").plan(ft.count())
    assert whole_table["count"].of_table is None and "of the table" not in str(whole_table)
    study.close()

"""A study: its budget is the ledger's, and what is careless is refused before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, FarthingError, Infeasible, InvalidValue
from study_people import SCHEMA, table

Make = Callable[..., ft.Study]


@pytest.mark.slow
def test_planning_spends_nothing_and_reads_no_row(make_study: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study()

    def rows_are_read(*_: Any, **__: Any) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(type(study.dataset), "exact", rows_are_read)
    plan = study.plan(ft.count(by="sex"), ft.mean("income"), expected={"rows": 400})
    assert "nothing is spent yet" in str(plan) and plan.cost.upper <= 1.0
    assert plan.weight("count by sex", 2).require("count by sex", within=20).to_json()
    assert study.budget.count == 0 and study.budget.spent_upper == 0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.plan(ft.mean("aeg")), "did you mean age"),
        (lambda s: s.plan(ft.histogram("age", bins=[65, 18])), "sort them"),
        (lambda s: s.plan(ft.count(by=[])), "leave it out for one group"),
        (lambda s: s.plan(ft.histogram("income", bins=10**7)), "fewer, wider bins"),
        (lambda s: s.plan(ft.contingency(["age", "income"], bins={"income": 10_000})), "fewer"),
        (lambda s: s.plan(ft.quantile("age", 1.2)), "between 0 and 1"),
        (lambda s: s.plan(ft.count()).require("count", within=9, confidence=95), "write 0.95 for 95 percent"),
        (lambda s: s.plan(ft.count(), ft.count()), "give one of them name="),
        (lambda s: s.plan(ft.count(where="age > 200")), "is always 0: no row can meet the condition; compare"),
        (lambda s: s.plan(), "must hold at least one"),
        (lambda s: s.plan("count"), "must be statistics"),
        (lambda s: s.plan(ft.count(), epsilon=0), "leave it out for all that is left"),
        (lambda s: s.plan(ft.count(), epsilon=2), "exceeds the 1 left"),
        (lambda s: s.plan(ft.count(), epsilon=float("nan")), "epsilon"),
        (lambda s: s.plan(ft.count(), expected={"row": 3}), "did you mean rows"),
        (lambda s: s.fit(ft.count(), require={}), "must map statistics to their errors"),
        (lambda s: s.fit(ft.count(), require={"cuont": 3}), "did you mean: count"),
        (lambda s: s.fit(ft.count(), ft.mean("age"), require={"count": 9}), "must name 'mean of age' too"),
        (lambda s: s.fit(ft.count(), require={"count": 1}), "is left; allow a larger error, or raise"),
        (lambda s: s.fit(ft.count(), require={"count": 0.5}), "would cost epsilon=3.664, and 1 is left"),
    ],
)
def test_careless_input_says_what_to_do_and_charges_nothing(
    make_study: Make, ask: Callable[[ft.Study], Any], message: str
) -> None:
    study = make_study()
    with pytest.raises(FarthingError) as refusal:
        ask(study)
    assert message in str(refusal.value)
    assert study.budget.count == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "must be > 0; with nothing to spend"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"delta": 1.5}, "delta=1.5"),
        ({"ledger": None}, 'must be given: it records what is spent; pass ledger="study.db"'),
        ({"name": " "}, "must be a text that names an account"),
        ({"sampling_rate": 10}, "must be above 0 and at most 1"),
    ],
)
def test_a_study_that_cannot_be_is_refused(people: Any, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    given = {"epsilon": 1.0, "ledger": tmp_path / "study.db", **options}
    with pytest.raises(InvalidValue) as refusal:
        ft.Study(people, **given)
    assert message in str(refusal.value)
    assert not (tmp_path / "study.db").exists()


def test_a_table_is_not_a_dataset(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"make one with farthing\.dataset"):
        ft.Study([1, 2], 1.0, ledger=tmp_path / "study.db")  # type: ignore[arg-type]


def test_a_study_is_continued_and_another_budget_is_refused(make_study: Make) -> None:
    make_study().plan(ft.count(), epsilon=0.25).release()
    again = make_study()
    assert again.budget.remaining.epsilon == pytest.approx(0.75, abs=1e-6)
    with pytest.raises(InvalidValue) as refusal:
        make_study(2.0)
    told = str(refusal.value)
    assert f"farthing ledger budget set {again.ledger.place} people --epsilon 2 --delta 0" in told


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-9, marks=pytest.mark.slow)])
def test_plans_in_parts_use_up_the_budget_and_no_more(make_study: Make, delta: float) -> None:
    study = make_study(delta=delta)
    for _ in range(4):
        release = study.plan(ft.count(), ft.histogram("age", bins=5), epsilon=0.25).release(fresh=True)
        assert release.cost <= 0.25
    assert study.budget.count == 4 and 0.999 < study.budget.spent_upper <= 1.0
    with pytest.raises(BudgetExceeded, match=r"exceeds the|nothing is left"):
        study.plan(ft.count(), epsilon=0.25)
    assert study.budget.count == 4


@pytest.mark.slow
def test_the_crumb_that_a_whole_plan_leaves_is_not_planned_with(make_study: Make) -> None:
    study = make_study(delta=1e-9)
    study.plan(ft.count(), ft.mean("age")).release()
    with pytest.raises(BudgetExceeded, match=r"nothing is left of the budget of 'people' \(epsilon=1\)") as refusal:
        study.plan(ft.count())
    assert refusal.value.remaining is not None and study.budget.count == 1


def test_what_reserves_set_aside_is_named_where_nothing_else_is_left(make_study: Make) -> None:
    study = make_study()
    study.register()
    study.ledger.reserve("people", 0.75, name="census day")
    command = (
        "free what is set aside by reserves, epsilon=0.75 ('census day'): "
        f"farthing ledger reserve {study.ledger.place} people --name 'census day' --epsilon 0, or ask its curator"
    )
    with pytest.raises(BudgetExceeded) as refusal:
        study.plan(ft.count(), epsilon=0.5)
    assert "exceeds the 0.25 left" in str(refusal.value) and command in str(refusal.value)
    study.plan(ft.count()).release()
    with pytest.raises(BudgetExceeded) as refusal:
        study.plan(ft.mean("age"))
    assert "nothing is left" in str(refusal.value) and command in str(refusal.value)
    study.ledger.reserve("people", 0.0, name="census day")
    assert study.allowance().epsilon == pytest.approx(0.75, rel=1e-6)


def test_a_plan_of_nothing_but_a_public_count_says_that_it_is_public(tmp_path: Path) -> None:
    known = ft.dataset(table(), schema=SCHEMA, neighbours="replace", rows=400)
    with pytest.raises(InvalidValue, match="'count': is public already; it needs no study"):
        ft.Study(known, 1.0, ledger=tmp_path / "study.db").plan(ft.count())


def test_a_limited_plan_takes_its_share_of_delta(make_study: Make) -> None:
    study = make_study(delta=1e-9)
    whole, part = study.allowance(), study.allowance(0.25)
    assert (whole.epsilon, whole.delta) == (1.0, 1e-9)
    assert part.epsilon == 0.25
    assert part.delta == pytest.approx(1e-9 / 16 * 0.25)  # of the sixteenth that sums may use


@pytest.mark.slow
def test_parts_of_a_budget_get_equal_parts_of_delta(make_study: Make) -> None:
    """Noise that needs a delta: a first part must not use up what the later ones need."""
    study = make_study(delta=1e-9)
    asked = [ft.mean(name, where=f"age >= {age}") for name in ("age", "income") for age in range(0, 60, 5)]
    errors = []
    for _ in range(3):
        plan = study.plan(*asked, epsilon=0.3, expected={"rows": 400})
        assert 1.5e-11 < plan.delta < 2.5e-11
        errors.append(plan.statistics[0].error())
        plan.release()
    assert max(errors) < 1.05 * min(errors)


@pytest.mark.slow
def test_fit_finds_the_least_epsilon(make_study: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(delta=1e-9)
    wanted = {"count by sex": 20.0, "mean of age": 8.0}
    statistics = ft.count(by="sex"), ft.mean("age")
    plan = study.fit(*statistics, require=wanted, expected={"rows": 400})
    for name, within in wanted.items():
        assert plan[name].error() <= within and 0.99 * within <= plan[name].worst_error() <= within
    assert plan.cost.upper <= plan.problem.epsilon < 1.0
    assert 0 < plan.delta <= 1e-9 * plan.problem.epsilon * (1 + 1e-9)
    # A little less cannot be enough.
    less = study.plan(*statistics, epsilon=0.99 * plan.problem.epsilon, expected={"rows": 400})
    monkeypatch.setattr("farthing.planner.offers._accepted", lambda *_: None)  # no offers: each is a plan
    with pytest.raises(Infeasible):
        less.require("count by sex", within=20.0).require("mean of age", within=8.0)
    release = plan.release()
    assert release.cost == pytest.approx(plan.cost.upper)
    assert study.budget.remaining.epsilon > 0.9 * (1 - plan.problem.epsilon)


@pytest.mark.slow
def test_releases_are_found_again_in_another_session(make_study: Make) -> None:
    study = make_study()
    first = study.plan(ft.count(by="sex"), epsilon=0.5).release()
    second = study.plan(ft.count(), epsilon=0.25).release("by-hand")
    assert study.releases() == [first.request_id, "by-hand"]
    study.close()
    found = make_study().released("by-hand")
    assert found.repeated and found["count"].values == second["count"].values
    assert found.receipt == second.receipt
    with pytest.raises(InvalidValue, match="must be that of a release"):
        make_study().released("never")


def test_an_analyst_spends_from_a_grant(make_study: Make) -> None:
    study = make_study()
    study.register()
    study.ledger.grant("people", "ada", 0.25)
    hers = make_study(analyst="ada")
    assert hers.budget.total.epsilon == 0.25
    assert hers.plan(ft.count()).release().cost <= 0.25
    assert study.budget.remaining.epsilon == pytest.approx(0.75, abs=1e-6)
    with pytest.raises(FarthingError, match="grant"):
        make_study(analyst="eve").plan(ft.count())


@pytest.mark.slow
def test_a_grant_is_planned_with_what_the_dataset_has_left(make_study: Make) -> None:
    study = make_study(delta=1e-9)
    study.register()
    study.ledger.grant("people", "ada", 0.5, 5e-10)
    study.plan(ft.count(), ft.mean("age"), epsilon=0.75).release()
    hers = make_study(delta=1e-9, analyst="ada")
    plan = hers.plan(ft.count(), ft.mean("age"))
    assert plan.problem.epsilon == pytest.approx(0.25, abs=1e-5) and plan.delta < 2e-10
    assert plan.release().cost <= 0.2501


def test_a_study_shows_itself_by_public_facts(make_study: Make) -> None:
    assert repr(make_study(delta=1e-9)) == "Study('people', epsilon=1, delta=1e-09)"


def test_two_processes_that_meet_a_new_ledger_at_once_share_one_budget(
    make_study: Callable[..., ft.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has looked before the first registered: what it finds then is compared as always."""
    first, second, third = make_study(), make_study(), make_study(epsilon=2.0)
    first.register()
    looks = iter([[]])
    real = type(first.ledger).datasets
    monkeypatch.setattr(type(first.ledger), "datasets", lambda ledger: next(looks, None) or real(ledger))
    second.register()
    assert second.budget.total == first.budget.total
    looks = iter([[]])
    with pytest.raises(InvalidValue, match=r"must be that of the ledger.* write epsilon = 1\.0 under \[study\]"):
        third.register()


@pytest.mark.slow
def test_what_only_plans_writes_nothing(make_study: Make) -> None:
    """A budget that was mistyped for a plan is corrected and not refused."""
    study = make_study(20.0)
    study.plan(ft.count(), ft.mean("age"))
    study.fit(ft.count(), require={"count": 5})
    study.synthesis_plan(columns=["sex"])
    study.query_session_plan(alpha=0.2, queries=10, columns=["sex"], rows=400)
    study.monitor_plan(ft.count(), threshold=500, alerts=1)
    assert study.budget.remaining.epsilon == 20.0 and study.budget.untouched
    assert [entry.kind for entry in study.ledger.entries()] == ["created"]
    assert make_study(1.0).plan(ft.count(), epsilon=0.5).release().cost <= 0.5
    assert study.ledger.budget("people").total.epsilon == 1.0
    with pytest.raises(InvalidValue, match="must be that of the ledger"):  # for which this one was not made
        study.plan(ft.mean("age"), epsilon=0.25).release()


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon", [1 / 3, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.1 + 0.2, 2.2852337352500434))]
)
def test_a_budget_between_two_billionths_is_the_one_the_ledger_keeps(make_study: Make, epsilon: float) -> None:
    """It was rounded down when it was written: the same script must be able to go on with it."""
    make_study(epsilon).plan(ft.count(), epsilon=epsilon / 2).release()
    again = make_study(epsilon)
    assert again.plan(ft.count(), epsilon=epsilon / 2).release().cost <= epsilon / 2
    assert again.plan(ft.mean("age")).release() is not None
    with pytest.raises(InvalidValue, match="must be that of the ledger") as refused:
        make_study(epsilon + 2e-9)
    told = str(refused.value)
    asked, kept = (told.split(word)[1].split(",")[0].split(" ")[0] for word in ("budget='epsilon=", "ledger, epsilon="))
    assert asked != kept, "digits tell the two apart"


@pytest.mark.parametrize("options", [{"unit": "age", "max_rows": 2}, {"neighbours": "replace"}])
def test_the_wrong_unit_is_refused_before_anything_is_planned(
    make_study: Make, tmp_path: Path, options: dict[str, Any]
) -> None:
    make_study().register()
    other = ft.dataset(table(), schema={"sex": ["F", "M"]}, **options)
    rule = r"must be 'row, add-remove', for which the budget of 'people' was set"
    with pytest.raises(InvalidValue, match=rule) as refused:
        ft.Study(other, 1.0, ledger=tmp_path / "study.db", name="people")
    assert "ledger" not in str(refused.value), "another one would be a second budget for the same people"


def test_a_grant_that_is_spent_is_called_one_and_the_command_is_grant(make_study: Make) -> None:
    study = make_study()
    study.register()
    study.ledger.grant("people", "ada", 0.25)
    hers = make_study(analyst="ada")
    with pytest.raises(BudgetExceeded) as refusal:
        hers.plan(ft.count(), epsilon=0.5)
    told = "0.25 left of the grant of 'ada' in 'people'; plan with no more than that, or ask its curator for more, "
    place = study.ledger.place
    command = f"epsilon=0.5 in all: farthing ledger grant {place} people ada --epsilon 0.5."
    assert told + command in str(refusal.value)
    first, second = hers.plan(ft.count()), hers.plan(ft.mean("age"))
    first.release()
    for refused in (lambda: hers.plan(ft.mean("age")), second.release):
        with pytest.raises(
            BudgetExceeded,
            match=r"the grant of 'ada' in 'people'.*ledger grant \S+ people ada --epsilon 0\.5",
        ) as no:
            refused()
        assert no.value.budget_id == "people/ada" and "budget set" not in str(no.value)
    with pytest.raises(
        InvalidValue, match=r"must have a grant in 'people'.*ledger grant \S+ people eve --epsilon 0' is enough"
    ):
        make_study(analyst="eve").plan(ft.count())


def test_all_that_is_in_the_way_of_a_plan_is_told_at_once(make_study: Make) -> None:
    study = make_study()
    study.register()
    study.ledger.grant("people", "ada", 0.25)
    study.ledger.reserve("people", 0.6, name="later")
    hers, place = make_study(analyst="ada"), study.ledger.place
    with pytest.raises(BudgetExceeded) as refusal:
        hers.plan(ft.count(), epsilon=0.5)
    told = str(refusal.value)
    assert "the 0.25 left of the grant of 'ada' in 'people' and the 0.4 left of the budget of 'people'" in told
    assert "plan with no more than 0.25" in told
    for command in (
        f"grant {place} people ada --epsilon 0.5;",
        f"reserve {place} people --name later --epsilon 0, or",
        f"budget set {place} people --epsilon 1.1.",
    ):
        assert f"farthing ledger {command}" in told
    study.ledger.grant("people", "ada", 0.5)
    study.ledger.set_budget("people", 1.1)
    assert hers.allowance(0.5).epsilon == 0.5


def test_a_grant_in_a_budget_that_is_spent_names_the_budget(make_study: Make) -> None:
    study = make_study()
    study.register()
    study.ledger.grant("people", "ada", 0.5)
    study.plan(ft.count()).release()
    with pytest.raises(
        BudgetExceeded, match=r"the budget of 'people' .*ledger budget set \S+ people --epsilon 2"
    ) as refusal:
        make_study(analyst="ada").plan(ft.mean("age"))
    assert refusal.value.budget_id == "people"

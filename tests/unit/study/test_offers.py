"""What a refusal offers is accepted when it is followed to the letter: as the number, and as the text says it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import farthing as ft
from farthing.errors import Infeasible
from farthing.planner import Requirement

ASKED = (ft.count(by="sex"), ft.histogram("age", bins=11), ft.mean("income"), ft.mean("income", by="sex"))


def _followed(plan: Any, locks: dict[str, float], name: str, within: float) -> Infeasible:
    wanted = {**locks, name: within}
    with pytest.raises(Infeasible) as refused:
        _required(plan, wanted)
    refusal = refused.value
    text = str(refusal)
    pattern = r"closest that fits for '([^']+)' is within ([\d.e+]+) "
    said = {who: float(much) for who, much in re.findall(pattern, text)}
    only = re.search(r"ask for ([\d.e+]+\d)", text)
    if only is not None:
        said[name] = float(only[1])
    assert said == refusal.offers and refusal.offers
    assert refusal.closest == refusal.offers[refusal.hardest]  # type: ignore[index]
    for who, much in refusal.offers.items():
        assert much > wanted[who]
        met = _required(plan, {**wanted, who: much})
        assert all(met[one].worst_error() <= error for one, error in {**wanted, who: much}.items())
    return refusal


def _required(plan: Any, wanted: dict[str, float]) -> Any:
    return plan.controlled({}, {name: Requirement(within) for name, within in wanted.items()})


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "share"), [(0.0, 1e-4), (1e-6, 0.02)])
def test_beside_two_locks_every_offer_is_accepted(
    make_study: Callable[..., ft.Study], delta: float, share: float
) -> None:
    """Two errors locked, a third asked for: it offered 3, refused that, offered 15, and refused that too."""
    plan = make_study(1.0, delta).plan(*ASKED, expected={"rows": 1000})
    locks = {name: plan[name].worst_error() for name in ("histogram of age", "mean of income")}
    name = "count by sex"
    refusal = _followed(plan, locks, name, share * plan[name].worst_error())
    if refusal.epsilon < 45:
        needed = re.search(r"with epsilon=(\S+) \((\S+) would be enough", str(refusal))
        assert needed is not None and float(needed[2]) == refusal.epsilon > float(needed[1]) == 1.0


@pytest.mark.slow
def test_an_offer_says_in_how_many_releases_it_is_kept(make_study: Callable[..., ft.Study]) -> None:
    """Beside it a plan shows the error of one release, which is smaller: it read like a contradiction."""
    plan = make_study(1.0, 0.0).plan(ft.count(), ft.mean("income"), expected={"rows": 1000})
    refusal = _followed(plan, {}, "mean of income", 0.3 * plan["mean of income"].worst_error())
    assert refusal.holds == {"mean of income": "in 999 of 1,000 releases"}
    assert re.search(r"is within [\d.]+ in 999 of 1,000 releases \(95%, not", str(refusal))
    refusal = _followed(plan, {}, "count", 1.0)
    assert refusal.holds == {} and "releases" not in str(refusal)


@pytest.mark.slow
def test_errors_in_whole_numbers_have_the_widest_noise_that_keeps_them(make_study: Callable[..., ft.Study]) -> None:
    """The three were refused: noise that left an error of 6 was taken for the widest that does."""
    plan = make_study(1.0, 1e-6).plan(*ASKED[:3], ft.mean("age", by="sex"), expected={"rows": 1000})
    wanted = {name: plan[name].worst_error() for name in ("histogram of age", "mean of income")}
    wanted["count by sex"] = 0.52 * plan["count by sex"].worst_error()
    met = _required(plan, wanted)
    assert all(met[name].worst_error() <= error for name, error in wanted.items())


@pytest.mark.slow
def test_an_epsilon_that_is_offered_is_enough(people: Any, tmp_path: Any) -> None:
    def planned(epsilon: float) -> Any:
        study = ft.Study(people, epsilon, account="people", ledger=tmp_path / f"{epsilon}.db")
        return study.plan(ft.count(), ft.count(by="sex"))

    with pytest.raises(Infeasible) as refused:
        planned(1.0).require("count by sex", within=2.5)
    needed = refused.value.epsilon
    assert 1.0 < needed < 2.0
    assert planned(needed).require("count by sex", within=2.5)["count by sex"].worst_error() <= 2.5


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.9, 0.9997])
def test_an_epsilon_that_a_fit_would_cost_is_enough(people: Any, tmp_path: Any, share: float) -> None:
    """It was rounded to the nearest digit, and half of the time refused with the same digits on both sides."""

    def study(epsilon: float) -> ft.Study:
        return ft.Study(people, epsilon, account="people", ledger=tmp_path / f"{epsilon}.db")

    error = study(1.0).plan(ft.mean("income")).named("mean of income").worst_error()
    wanted = {"mean of income": share * error}
    with pytest.raises(Infeasible) as refused:
        study(1.0).fit(ft.mean("income"), require=wanted)
    said = re.search(r"would cost epsilon=(\S+), and (\S+) is left", str(refused.value))
    assert said is not None and float(said[1]) == refused.value.epsilon > float(said[2]) == 1.0
    assert study(float(said[1])).fit(ft.mean("income"), require=wanted).cost.upper <= float(said[1])


@pytest.mark.slow
def test_an_error_below_any_noise_names_what_it_rests_on_and_one_way_out_is_enough(
    make_study: Callable[..., ft.Study],
) -> None:
    plan = make_study(5.0).plan(ft.median("income"), expected={"rows": 100})
    refusal = _followed(plan, {}, "median of income", 1e-6)
    text = str(refusal)
    assert "cannot be met if income is distributed as assumed: the narrowest noise there is" in text
    # What the narrowest noise leaves and what is offered look like a contradiction without the reason.
    offer = r"; say what you expect of income, or ask for [\d.e+]+\d, the closest found that epsilon=5 pays for\."
    assert re.search(offer, text) and ", and " not in text
    told = make_study(5.0).plan(ft.median("income"), expected={"rows": 100, "income": {"mean": 40_000, "sd": 9_000}})
    assert "say what you expect of" not in str(_followed(told, {}, "median of income", 1e-6))


def test_the_error_that_the_narrowest_noise_leaves_is_offered_if_it_fits(
    make_study: Callable[..., ft.Study],
) -> None:
    with pytest.raises(Infeasible) as refused:
        make_study(5.0).fit(ft.median("income"), expected={"rows": 100}, require={"median of income": 1e-6})
    said = r"leaves an error of (\S+)(?: on average over releases| in 999 of 1,000 releases)?; .*ask for ([\d.e+]+\d)"
    left, offered = re.search(said, str(refused.value)).groups()  # type: ignore[union-attr]
    assert left == offered


@pytest.mark.slow
def test_the_offer_for_a_median_is_no_worse_than_what_the_plan_has(tmp_path: Path) -> None:
    """Of whole numbers the value is as good as certain: its error said nothing about how wide its interval is."""
    people = ft.dataset(pyarrow.table({"age": [30, 40]}), schema={"age": (0, 99)}, rows=3000)
    plan = ft.Study(people, 3.0, ledger=tmp_path / "study.db", account="people").plan(ft.median("age"), ft.count())
    own = plan["median of age"].worst_error()
    refusal = _followed(plan, {}, "median of age", own / 2)
    assert refusal.closest is not None and refusal.closest <= own * (1 + 4e-3)  # means are over fixed noises


@pytest.mark.slow
@pytest.mark.parametrize("more", [1.0, 1.3, 2.0])
def test_a_median_gets_the_error_that_is_required_and_no_less(make_study: Callable[..., ft.Study], more: float) -> None:
    """But for the steps of what is expected of it: a little less strength is too little."""
    plan = make_study(1.0, 0.0).plan(ft.median("age"), ft.count(), expected={"rows": 3000})
    within = more * plan["median of age"].worst_error()
    allocation = plan.require("median of age", within=within).allocation
    (output,) = [each for each in plan.problem.design.outputs if each.name == "median of age"]
    noise = allocation.noises[output.slot.name]
    weaker = {output.slot.name: replace(noise, parameter=noise.parameter * (1 - 1e-3))}
    error = output.promised(allocation.noises).worst(0.95)
    assert error <= within and (error >= 0.999 * within or within < output.promised(weaker).worst(0.95))


def test_what_is_not_left_is_no_reason_to_say_that_no_epsilon_would_do(tmp_path: Path) -> None:
    """A fresh ledger gives ±2 for 1.14: after what was spent it is too much, and not impossible."""
    people = ft.dataset(pyarrow.table({"age": [30] * 1000}), schema={"age": (0, 99)})
    study = ft.Study(people, epsilon=3.0, delta=1e-6, ledger=str(tmp_path / "study.db"), account="people")
    alone = study.plan(ft.count()).require("count", within=2).cost.upper
    for asked in (ft.mean("age"), ft.median("age")):
        study.plan(asked, epsilon=1.18125).release()
    with pytest.raises(Infeasible) as refused:
        study.plan(ft.count()).require("count", within=2)
    said = re.search(r": it takes (\S+), more than the ledger has left for it;", str(refused.value))
    assert said is not None and alone <= float(said[1]) <= 1.01 * alone
    assert "or raise the budget." in str(refused.value) and "protects anyone" not in str(refused.value)
    study.close()

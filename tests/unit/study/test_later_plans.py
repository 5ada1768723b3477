"""Plans that are made after others were charged: in plain sums, or with Gaussian noise that the clock pays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, Infeasible
from farthing.ledger.account import Account
from farthing.privacy import GaussianNoise

COLUMNS = [f"x{number}" for number in range(20)]
MEANS = [ft.mean(column) for column in COLUMNS]
EXPECTED = {"rows": 10_000, **dict.fromkeys(COLUMNS, (50.0, 10.0))}


def _study(folder: Path, charges: int, epsilon: float = 0.01, analyst: str | None = None) -> ft.Study:
    """A study of (1, 1e-9) from which so much was charged before."""
    table = pyarrow.table({column: np.zeros(100) for column in COLUMNS})
    people = ft.dataset(table, schema=dict.fromkeys(COLUMNS, (0, 100)))
    study = ft.Study(people, epsilon=1.0, delta=1e-9, ledger=str(folder / "study.db"), name="people")
    study.register()
    if analyst:
        study.ledger.grant("people", analyst, 0.9, 1e-9)
    for number in range(charges):
        study.ledger.charge("people", epsilon, request_id=f"before {number}", analyst=analyst)
    if analyst is None:
        return study
    return ft.Study(people, 1.0, 1e-9, ledger=study.ledger, name="people", analyst=analyst)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[ft.Study]:
    study = _study(tmp_path, 120)
    yield study
    study.close()


def _error(plan: Any) -> float:
    return max(float(one.standard_error) for one in plan.statistics)


@pytest.mark.slow
def test_a_later_plan_has_the_gaussian_noise_that_the_clock_pays(study: ft.Study) -> None:
    """One pure charge of 0.115 is left, which was all that a plan had: 12.25 for a count, 3.27 for 20 means."""
    assert study.left < 0.2 < 0.75 < study.room < 1
    count, means = study.plan(ft.count(where="x0 < 50"), expected=EXPECTED), study.plan(*MEANS, expected=EXPECTED)
    assert _error(count) < 7.1 and _error(means) < 0.42
    assert count.delta == means.delta == 1e-9 and 0.75 < means.cost.upper <= study.room
    assert {one.mechanism for one in means.statistics} == {"discrete Gaussian"}
    released = means.release()
    assert released.receipt.epsilon == pytest.approx(means.cost.upper, abs=2e-9)
    with pytest.raises(BudgetExceeded, match=r"^nothing is left of the budget of 'people'"):
        study.plan(ft.count(), expected=EXPECTED)
    assert study.released(released.request_id).receipt == released.receipt
    again = study.plan(*MEANS, expected=EXPECTED)
    assert again.earlier is not None and _error(again) == pytest.approx(_error(means), rel=1e-3)


MEDIANS = [ft.median("x0"), ft.median("x1")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistics", [(ft.count(where="x0 < 50"),), (ft.count(), *MEANS[:4]), MEDIANS, (ft.median("x0"), ft.mean("x1"))]
)
def test_more_epsilon_never_makes_a_later_plan_worse(study: ft.Study, statistics: Any) -> None:
    """Between 0.115 and 0.45 plain sums are better for one count: Gaussian noise of so little is wider.

    The clock pays two medians of up to 0.41. Who asks for more gets that: no less, because more was asked for.
    """
    parts = (0.1, 0.115, 0.2, 0.4, 0.5, 0.6, 0.75)
    plans = [study.plan(*statistics, expected=EXPECTED, epsilon=part) for part in parts]
    errors = [np.prod([one.standard_error for one in plan.statistics]) for plan in plans]
    assert all(later <= 1.02 * earlier for earlier, later in pairwise(errors))
    assert errors[-1] < errors[0]


@pytest.mark.slow
def test_what_plain_sums_can_pay_is_entered_there(tmp_path: Path) -> None:
    study = _study(tmp_path, 1, 0.3)  # so large that its clock has run out
    plan = study.plan(*MEANS, expected=EXPECTED)
    assert study.room == study.left == 0.7 and plan.delta < 1e-10 and not plan.allocation.problem.on_clock
    study.close()
    other = tmp_path / "other"
    other.mkdir()
    study = _study(other, 10)
    part = study.plan(*MEANS, expected=EXPECTED, epsilon=0.4)
    assert part.delta < 1e-10 and not part.allocation.problem.on_clock
    part.release()
    assert study.left > 0.49  # and they go on
    study.close()


@pytest.mark.slow
def test_a_plan_that_is_shown_is_admitted_and_what_is_said_to_be_left_can_be_planned_with(study: ft.Study) -> None:
    for number, epsilon in enumerate((0.3, 0.25, None)):
        plan = study.plan(*MEANS[: 3 + number], expected=EXPECTED, epsilon=epsilon)
        assert study.ledger.admits("people", plan.allocation.event, delta=plan.delta)
        if epsilon is not None:
            with pytest.raises(BudgetExceeded) as refused:
                study.plan(ft.count(), expected=EXPECTED, epsilon=0.99)
            left = refused.value.remaining
            assert left is not None and left.epsilon == study.room > study.left
            said = float(str(refused.value).split("exceeds the ")[1].split(" left of")[0])
            for much in (said, left.epsilon):
                assert study.plan(ft.count(), expected=EXPECTED, epsilon=much).cost.upper <= much
        plan.release()
    assert not study.ledger.admits("people", 0.01)


@pytest.mark.slow
def test_a_grant_and_the_budget_above_it_both_admit_a_later_plan(tmp_path: Path) -> None:
    study = _study(tmp_path, 100, analyst="bob")
    whole, own = study.ledger.budget("people"), study.budget
    assert own.clock_room < whole.clock_room and study.room == own.clock_room > 3 * study.left
    plan = study.plan(*MEANS, expected=EXPECTED)
    assert plan.allocation.problem.on_clock and plan.cost.upper <= study.room
    plan.release()
    assert study.ledger.budget("people").clock_room < whole.clock_room and study.left < 1e-3
    study.close()


@pytest.mark.slow
def test_required_errors_are_met_on_the_clock_and_refused_with_what_is_accepted(study: ft.Study) -> None:
    asked = study.plan(*MEANS[:3], expected=EXPECTED)
    within = 1.2 * asked["mean of x0"].worst_error()
    plan = asked.require("mean of x0", within=within)
    assert plan.allocation.problem.on_clock and plan["mean of x0"].worst_error() <= within
    with pytest.raises(Infeasible) as refused:
        asked.require("mean of x0", within=within / 100)
    closest = refused.value.closest
    assert closest is not None and closest < within  # plain sums could not do that
    assert asked.require("mean of x0", within=closest)["mean of x0"].worst_error() <= closest
    fitted = study.fit(*MEANS[:2], require={f"mean of x{number}": within for number in (0, 1)}, expected=EXPECTED)
    assert fitted.allocation.problem.on_clock and study.left < fitted.cost.upper < study.room
    assert study.ledger.admits("people", fitted.allocation.event, delta=fitted.delta)


@pytest.mark.slow
def test_what_a_plan_on_the_clock_reserves_is_left_for_the_next(study: ft.Study) -> None:
    plan = study.plan(*MEANS, expected=EXPECTED).reserve(0.4)
    assert plan.allocation.problem.on_clock and plan.cost.upper <= study.room - 0.4
    plan.release()
    assert study.room >= 0.4 and study.plan(ft.count(), expected=EXPECTED, epsilon=0.4).cost.upper <= 0.4


def test_usage_is_at_most_one_exactly_where_a_charge_is_admitted() -> None:
    account = Account.of(1.0, 1e-9)
    for _ in range(40):
        account = account.after(account.priced(0.02))
    events = [0.01, 0.15, 0.3, (0.01, 1e-10), (0.01, 1e-12), *(GaussianNoise(scale) for scale in (4.0, 9.0, 90.0))]
    seen = set()
    for event in events:
        for withheld in ((0, 0), (50_000_000, 0), (190_000_000, 0)):
            price = account.priced(event, withheld=withheld)
            admitted = account.admits(price, withheld)
            assert (account.usage(price, withheld) <= 1) == admitted
            seen.add(admitted)
    assert seen == {True, False}
    wide = account.usage(account.priced(GaussianNoise(4.0)))
    scale = 4.0 * wide**0.5
    assert [account.admits(account.priced(GaussianNoise(scale * part))) for part in (0.999, 1.001)] == [False, True]

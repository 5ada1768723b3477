"""Requests and policies: what an approval allows, once; what a policy allows, in its period; and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import BudgetExceeded, InvalidValue, NotAllowed
from farthing.ledger import Ledger, PlanRequest, charge_lifecycle, open_ledger, plan_requests
from farthing.ledger import entries as ledger_entries
from farthing.ledger.rights import MOST_OPEN, Contents, Rights, StandingPolicy, period_of
from farthing.privacy import GaussianNoise

COUNTS = Contents(("count",), ("sex",), 500)


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db", actor="ada") as ledger:
        ledger.register("people", 1.0, 1e-6)
        ledger.register("visits", 0.5)
        yield ledger
        assert ledger.verify().ok


@pytest.fixture
def bob(ada: Ledger) -> Ledger:
    return ada.acting("bob", "analyst")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = int(datetime(2026, 2, 10, tzinfo=UTC).timestamp()) * 10**9

    def __call__(self) -> int:
        return self.now

    def to(self, year: int, month: int, day: int) -> None:
        self.now = int(datetime(year, month, day, 12, tzinfo=UTC).timestamp()) * 10**9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (ledger_entries, charge_lifecycle, plan_requests):
        monkeypatch.setattr(module, "clock", made)
    return made


def asked(bob: Ledger, event: Any = 0.25, **words: Any) -> PlanRequest:
    return bob.requests.submit("people", event, **{"digest": "d", "purpose": "the yearbook", **words})


def released(bob: Ledger, request_id: str, event: Any = 0.25, digest: str = "d", **words: Any) -> None:
    bob.release(bob.charge("people", event, digest=digest, request_id=request_id, **words), "{}")


def test_an_approval_allows_its_charge_once_and_the_grant_stays_as_it_was(ada: Ledger, bob: Ledger) -> None:
    ada.grant("people", "bob", 0.1)
    request = asked(bob)
    ada.requests.approve(request.id)
    released(bob, "r-1")
    assert (ada.budget("people").spent_upper, ada.budget("people", "bob").count) == (0.25, 0)
    with pytest.raises(BudgetExceeded):
        released(bob, "r-2")
    assert bob.charge("people", 0.25, digest="d", request_id="r-1").repeated
    done = bob.requests.one(request.id)
    assert (done.state, done.request_id) == ("used", "r-1")
    assert [step.kind for step in done.steps] == ["request", "approved", "used"]
    assert ada.budget("people").spent_upper == 0.25


@pytest.mark.parametrize(
    "other",
    [
        {"event": 0.2500001},
        {"event": (0.25, 1e-9)},
        {"event": GaussianNoise(40.0), "delta": 1e-9},
        {"digest": "e"},
        {"delta": 1e-9},
        {"others": ["visits"]},
    ],
)
def test_another_charge_than_the_approved_one_is_refused(ada: Ledger, bob: Ledger, other: dict[str, Any]) -> None:
    ada.requests.approve(asked(bob).id)
    with pytest.raises(BudgetExceeded, match="approved, but for a different plan"):
        released(bob, "r-1", **other)
    assert ada.budget("people").count == 0
    released(bob, "r-1")


def test_an_approval_is_that_of_one_analyst_and_one_dataset(ada: Ledger, bob: Ledger) -> None:
    ada.requests.approve(asked(bob).id)
    with pytest.raises(BudgetExceeded):
        released(ada.acting("eve", "analyst"), "r-1")
    with pytest.raises(BudgetExceeded):
        bob.charge("visits", 0.25, digest="d", request_id="r-1")
    with pytest.raises(NotAllowed):
        bob.charge("people", 0.25, digest="d", request_id="r-1", analyst="eve")


def test_what_waits_or_was_declined_withdrawn_or_expired_allows_nothing(ada: Ledger, bob: Ledger, clock: Clock) -> None:
    request = asked(bob)
    with pytest.raises(BudgetExceeded, match=f"request {request.id} waits for a curator"):
        released(bob, "r-1")
    ada.requests.decline(request.id, "say which regions")
    assert bob.requests.one(request.id).reason == "say which regions"
    with pytest.raises(BudgetExceeded):
        released(bob, "r-1")
    second = asked(bob)
    ada.requests.approve(second.id)
    bob.requests.withdraw(second.id)
    with pytest.raises(BudgetExceeded):
        released(bob, "r-1")
    third = asked(bob)
    ada.requests.approve(third.id, expires="2026-02-12")
    clock.to(2026, 2, 13)
    with pytest.raises(BudgetExceeded, match=f"approval of request {third.id} has expired"):
        released(bob, "r-1")
    clock.to(2026, 2, 12)  # the refusal wrote no rights, so only the machine's clock says what day it is
    released(bob, "r-1")


def test_a_clock_that_is_set_back_revives_nothing(ada: Ledger, bob: Ledger, clock: Clock) -> None:
    first = asked(bob)
    ada.requests.approve(first.id, expires="2026-02-12")
    clock.to(2026, 2, 14)
    asked(bob, digest="e")  # an entry about bob's rights on the 14th
    clock.to(2026, 2, 11)
    with pytest.raises(BudgetExceeded):
        released(bob, "r-1")


def test_only_curators_decide_and_only_the_owner_withdraws(ada: Ledger, bob: Ledger) -> None:
    request, eve = asked(bob), ada.acting("eve", "analyst")
    for who in (bob, ada.acting("carol", "auditor")):
        for decide in (
            lambda r: r.approve(request.id),
            lambda r: r.decline(request.id, "no"),
            lambda r: r.change(request.id, 0.1, digest="d", reason="less"),
            lambda r: r.grant_policy("people", "bob", 1.0),
        ):
            with pytest.raises(NotAllowed):
                decide(who.requests)
    for refused in (lambda: eve.requests.withdraw(request.id), lambda: eve.requests.one(request.id)):
        with pytest.raises(InvalidValue, match="a request that you may see"):
            refused()
    with pytest.raises(NotAllowed):
        ada.requests.withdraw(request.id)
    with pytest.raises(NotAllowed):
        eve.requests.history("bob")
    assert eve.requests.all() == [] and [each.id for each in ada.requests.all("people", "open")] == [request.id]
    assert [each.id for each in ada.acting("carol", "auditor").requests.all()] == [request.id]


def test_a_request_comes_to_one_end(ada: Ledger, bob: Ledger) -> None:
    request = asked(bob)
    ada.requests.approve(request.id)
    with pytest.raises(InvalidValue, match="was approved already"):
        ada.requests.approve(request.id)
    ada.requests.decline(request.id, "on second thoughts")
    for late in (
        lambda: ada.requests.approve(request.id),
        lambda: ada.requests.decline(request.id, "again"),
        lambda: ada.requests.change(request.id, 0.1, digest="d", reason="less"),
        lambda: bob.requests.withdraw(request.id),
    ):
        with pytest.raises(InvalidValue, match="declined, withdrawn or used"):
            late()


def test_a_changed_request_allows_the_new_version_and_not_the_old(ada: Ledger, bob: Ledger) -> None:
    request = asked(bob, document={"plan": 1})
    changed = ada.requests.change(request.id, 0.1, digest="less", reason="half will do", document={"plan": 2})
    assert (changed.state, changed.version, changed.epsilon, changed.document) == ("approved", 2, 0.1, {"plan": 2})
    assert bob.requests.one(request.id).reason == "half will do"
    with pytest.raises(BudgetExceeded):
        released(bob, "r-1")
    released(bob, "r-1", event=0.1, digest="less")
    assert ada.budget("people").spent_upper == 0.1


def test_the_same_request_twice_is_one_and_too_many_are_refused(ada: Ledger, bob: Ledger) -> None:
    assert asked(bob).id == asked(bob).id
    for number in range(1, MOST_OPEN):
        asked(bob, digest=f"d{number}")
    with pytest.raises(InvalidValue, match=f"fewer than {MOST_OPEN}"):
        asked(bob, digest="one too many")


def test_the_budget_has_the_last_word_and_every_dataset_pays(ada: Ledger, bob: Ledger) -> None:
    both = asked(bob, event=0.4, others=["visits"])
    ada.requests.approve(both.id)
    ada.charge("visits", 0.2, request_id="ada")
    with pytest.raises(BudgetExceeded, match="left in budget 'visits'"):
        released(bob, "r-1", event=0.4, others=["visits"])
    assert ada.budget("people").count == 0 and bob.requests.one(both.id).state == "approved"
    ada.set_budget("visits", 1.0)
    released(bob, "r-1", event=0.4, others=["visits"])
    assert (ada.budget("people").spent_upper, ada.budget("visits").spent_upper) == (0.4, 0.6)


def test_of_many_who_race_for_one_approval_one_is_charged(ada: Ledger, bob: Ledger) -> None:
    ada.requests.approve(asked(bob).id)
    outcomes = _race([lambda n=n: released(bob, f"r-{n}") for n in range(8)])
    assert sorted(outcomes) == ["BudgetExceeded"] * 7 + ["done"]
    assert ada.budget("people").spent_upper == 0.25


def test_of_an_approval_and_a_withdrawal_that_race_the_entries_tell_one_story(ada: Ledger, bob: Ledger) -> None:
    request = asked(bob)
    _race([lambda: ada.requests.approve(request.id), lambda: bob.requests.withdraw(request.id)])
    assert bob.requests.one(request.id).state == "withdrawn"
    with pytest.raises(BudgetExceeded):
        released(bob, "r-1")


def _race(acts: list[Callable[[], Any]]) -> list[str]:
    """What each came to, all of them begun at once."""
    outcomes, start = [], threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> None:
        start.wait()
        try:
            act()
            outcomes.append("done")
        except (BudgetExceeded, InvalidValue) as problem:
            outcomes.append(type(problem).__name__)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_a_policy_allows_so_much_a_quarter_of_what_it_names(ada: Ledger, bob: Ledger, clock: Clock) -> None:
    ada.requests.grant_policy(
        "people", "bob", 0.1, per="quarter", expires="2026-12-31", statistics=["count"], columns=["sex"], cell=100
    )
    released(bob, "r-1", event=0.06, contents=COUNTS)
    with pytest.raises(BudgetExceeded, match=r"this quarter has epsilon=0\.04, delta=0 left"):
        released(bob, "r-2", event=0.06, contents=COUNTS)
    released(bob, "r-3", event=0.04, contents=COUNTS)
    clock.to(2026, 4, 1)
    assert bob.requests.policies()[0].left == 0.1
    released(bob, "r-4", event=0.06, contents=COUNTS)
    clock.to(2026, 3, 30)  # a clock that was set back opens no old quarter again
    with pytest.raises(BudgetExceeded):
        released(bob, "r-5", event=0.06, contents=COUNTS)
    clock.to(2027, 1, 1)
    with pytest.raises(BudgetExceeded, match="it has expired"):
        released(bob, "r-6", event=0.01, contents=COUNTS)
    assert ada.budget("people").count == 3 and ada.budget("people", "bob").count == 0
    assert ada.requests.history("bob").charges == {"policy": 3}


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (None, "covers plans of statistics only"),
        (Contents(("count", "mean"), ("sex",), 500), "mean is not one of the statistics"),
        (Contents(("count",), ("sex", "hiv"), 500), "'hiv' is not one of the columns"),
        (Contents(("count",), None, 500), "which columns are read cannot be told"),
        (Contents(("count",), ("sex",), 99), "cells of fewer than 100 people must be withheld"),
        (Contents(("count",), ("sex",), None), "add a count by the same columns"),
    ],
)
def test_a_plan_beyond_a_policy_is_refused(ada: Ledger, bob: Ledger, contents: Contents | None, reason: str) -> None:
    ada.requests.grant_policy("people", "bob", 0.5, statistics=["count"], columns=["sex"], cell=100)
    with pytest.raises(BudgetExceeded, match=reason):
        released(bob, "r-1", event=0.1, contents=contents)
    with pytest.raises(BudgetExceeded):  # a policy of one dataset is none of another
        released(bob, "r-1", event=0.1, contents=COUNTS, others=["visits"])
    assert ada.budget("people").count == 0


def test_a_second_policy_is_no_second_allowance(ada: Ledger, bob: Ledger) -> None:
    ada.requests.grant_policy("people", "bob", 0.1)
    released(bob, "r-1", event=0.08, contents=COUNTS)
    for _ in range(2):
        ada.requests.grant_policy("people", "bob", 0.1, per="year")
    ended = ada.requests.grant_policy("people", "bob", 0.0)
    assert ended.epsilon == 0 and bob.requests.policies() == []
    with pytest.raises(BudgetExceeded):
        released(bob, "r-2", event=0.01, contents=COUNTS)
    ada.requests.grant_policy("people", "bob", 0.1, per="year")
    assert bob.requests.policies()[0].left == pytest.approx(0.02, abs=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"per": "day"}, {"epsilon": float("nan")}, {"epsilon": -1.0}, {"cell": -1}, {"statistics": []},
        {"statistics": "count"}, {"expires": "2020-01-01"}, {"expires": "soon"}, {"columns": ["a\nb"]},
    ],
)  # fmt: skip
def test_a_policy_of_the_wrong_form_is_refused(ada: Ledger, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        ada.requests.grant_policy("people", "bob", **{"epsilon": 0.1, **wrong})


@pytest.mark.parametrize(
    "wrong",
    [{"purpose": ""}, {"purpose": "x" * 1001}, {"document": {"a": float("nan")}}, {"document": {"a": "x" * 600_000}},
     {"title": "a\nb"}, {"event": GaussianNoise(1e-3)}],
)  # fmt: skip
def test_a_request_of_the_wrong_form_is_refused(ada: Ledger, bob: Ledger, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        asked(bob, **{"delta": 0.0, **wrong} if "event" in wrong else wrong)


def test_periods_follow_the_calendar() -> None:
    day = datetime(2026, 12, 28, tzinfo=UTC)  # a Monday
    for per, days in (("week", 7), ("month", 4), ("quarter", 4), ("year", 4)):
        numbers = [period_of(int((day + timedelta(days=n)).timestamp()) * 10**9, per) for n in range(-1, days + 1)]
        assert numbers[days] == numbers[1] and numbers[days + 1] == numbers[1] + 1, per
        assert (numbers[0] == numbers[1]) == (per != "week")


def test_rights_are_read_as_they_were_written() -> None:
    policy = StandingPolicy(5, 7, "month", 9, ("count",), None, 3, 2, 1, 1)
    rights = Rights({3: plan_requests.Wish("approved", "m", 1, 2, 3, "n", 2)}, policy, 11)
    assert Rights.from_dict(rights.to_dict()) == rights


def test_a_charge_by_a_right_that_nobody_gave_does_not_replay() -> None:
    """A verification replays charges with `used`; what was not approved then, or not any more, is found out."""
    waits = Rights({3: plan_requests.Wish("open", "m", 1, 2)})
    for rights in (waits, Rights(), Rights(policy=None)):
        for right in ({"request": 3, "now": 0}, {"policy": COUNTS.to_dict(), "now": 0}):
            with pytest.raises(ValueError, match=r"not approved|no policy"):
                rights.used(right, 1, 0)


def test_history_says_what_somebody_asked_and_spent(ada: Ledger, bob: Ledger) -> None:
    ada.grant("people", "bob", 0.05)
    released(bob, "r-0", event=0.05, digest="")
    ada.requests.approve(asked(bob).id)
    released(bob, "r-1")
    with pytest.raises(BudgetExceeded):
        released(bob, "r-2", event=0.9)
    history = ada.requests.history("bob")
    assert (history.charges, history.refused) == ({"grant": 1, "request": 1}, 1)
    assert history.sentence == "bob: 1 request (1 used); 2 charges, epsilon 0.3 summed plainly; 1 charge refused."

"""What every store of a ledger must do: the same on a file and on a server."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import BudgetExceeded, InvalidValue, LedgerTampered, LedgerUnavailable, NotAllowed
from farthing.ledger import Ledger
from farthing.privacy import ApproxDP, Composed, GaussianNoise, LaplaceNoise
from system.ledger.places import Place, postgres_place


def _kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_a_charge_is_spent_before_it_is_answered_and_after(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        charge = ledger.charge("people", 0.25, request_id="r-1")
        before = ledger.budget("people")
        assert (before.spent_upper, before.reserved, before.remaining) == (0.25, 0.25, ApproxDP(0.75))
        receipt = ledger.release(charge, '{"count": 41}')
        after = ledger.budget("people")
        assert (after.spent_upper, after.reserved, after.remaining) == (0.25, 0.0, ApproxDP(0.75))
        assert (receipt.epsilon, receipt.state, receipt.charges) == (0.25, "released", 1)
    with place.open() as again:
        assert again.budget("people") == after
        found = again.stored("r-1")
        assert found is not None and (found.state, found.answer, found.receipt) == (
            "released",
            '{"count": 41}',
            receipt,
        )
        assert again.verify(receipt).ok


def test_a_request_id_is_charged_once_and_answered_once(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        first = ledger.charge("people", 0.25, request_id="r-1", digest="abc")
        second = ledger.charge("people", 0.25, request_id="r-1", digest="abc")
        assert (first.repeated, second.repeated, second.sequence) == (False, True, first.sequence)
        receipt = ledger.release(first, "first answer")
        assert ledger.release(second, "second answer") == receipt
        found = ledger.stored("r-1")
        assert found is not None and found.answer == "first answer"
        assert ledger.charge("people", 0.25, request_id="r-1", digest="abc").state == "released"
        for other in (
            {"event": 0.26, "digest": "abc"},
            {"event": 0.25, "digest": "abd"},
            {"event": 0.25, "digest": "abc", "analyst": "bob"},
        ):
            with pytest.raises(InvalidValue, match="was charged before for something else"):
                ledger.charge("people", request_id="r-1", **other)  # type: ignore[arg-type]
        assert ledger.budget("people").count == 1
        assert _kinds(ledger) == ["created", "dataset", "charge", "released"]


def test_a_forfeited_charge_stays_spent_and_is_never_released(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        charge = ledger.charge("people", 0.25, request_id="r-1")
        assert ledger.forfeit(charge, "the engine died").state == "forfeited"
        with pytest.raises(InvalidValue, match="was forfeited"):
            ledger.release(charge, "too late")
        found = ledger.stored("r-1")
        assert found is not None and (found.state, found.answer) == ("forfeited", None)
        budget = ledger.budget("people")
        assert (budget.spent_upper, budget.reserved) == (0.25, 0.0)
        released = ledger.charge("people", 0.25, request_id="r-2")
        receipt = ledger.release(released, "an answer")
        assert ledger.forfeit(released, "changed my mind") == receipt


def test_only_the_charge_that_was_made_is_settled(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        charge = ledger.charge("people", 0.25, request_id="r-1")
        for wrong in (
            replace(charge, sequence=charge.sequence + 1),
            replace(charge, mac="ab" * 32),  # a copy of the ledger may have charged the same request id
            replace(charge, request_id="r-2"),
        ):
            with pytest.raises(InvalidValue, match="must be a charge that this ledger made"):
                ledger.release(wrong, "x")
        with pytest.raises(InvalidValue, match="must be a Charge"):
            ledger.release("r-1", "x")  # type: ignore[arg-type]
        assert ledger.budget("people").reserved == 0.25


def test_a_refusal_changes_no_account_and_poisons_nothing(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        ledger.charge("people", 0.75, request_id="r-1")
        before = ledger.budget("people")
        with pytest.raises(BudgetExceeded, match=r"a charge of at most epsilon=0\.25 would fit") as refusal:
            ledger.charge("people", 0.5, request_id="r-2")
        assert refusal.value.requested == ApproxDP(0.5)
        assert refusal.value.remaining == ApproxDP(0.25)
        assert refusal.value.budget_id == "people"
        assert ledger.budget("people") == before
        assert ledger.stored("r-2") is None
        # The same request id may be tried again with what fits.
        assert not ledger.charge("people", 0.25, request_id="r-2").repeated
        assert _kinds(ledger) == ["created", "dataset", "charge", "refused", "charge"]
        assert ledger.verify().ok


@pytest.mark.slow
def test_a_charge_of_nothing_is_admitted_by_a_spent_budget_and_by_a_spent_grant(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0, 1e-9)
        ledger.grant("people", "bob", 1.0, 1e-9)
        plan = Composed(((ApproxDP(0.01), 336),))  # it fits by its own curve only
        ledger.charge("people", plan, request_id="all", analyst="bob")
        before = ledger.budget("people"), ledger.budget("people", "bob")
        for number in range(70):  # past the entry at which a replay compares whole states
            charge = ledger.charge("people", 0.0, request_id=f"r-{number}", analyst="bob")
            assert not charge.repeated
            ledger.release(charge, "x")
        assert ledger.charge("people", 0.0, request_id="r-0", analyst="bob").repeated
        after = ledger.budget("people"), ledger.budget("people", "bob")
        for was, now in zip(before, after, strict=True):
            assert (now.spent_upper, now.remaining, now.count) == (was.spent_upper, was.remaining, 71)
        assert ledger.verify().ok
        with pytest.raises(BudgetExceeded):
            ledger.charge("people", 0.0, request_id="no grant", analyst="eve")
        with pytest.raises(BudgetExceeded):
            ledger.charge("people", 1e-9, request_id="something")
        with pytest.raises(InvalidValue):
            ledger.charge("nobody", 0.0, request_id="unknown")
        assert ledger.verify().ok
    with place.open(create=False) as ledger:
        assert ledger.budget("people").count == 71 and ledger.verify().ok


def test_ten_tenths_fit_and_an_eleventh_does_not(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        for number in range(10):
            ledger.charge("people", 0.1, request_id=f"r-{number}")
        with pytest.raises(BudgetExceeded, match="ask its curator for more"):
            ledger.charge("people", 0.1, request_id="r-10")
        with pytest.raises(BudgetExceeded):
            ledger.charge("people", 1e-12, request_id="r-11")
        assert ledger.budget("people").spent_upper == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        math.nan, -0.1, math.inf, -math.inf, 1e308, 10**400, True, "0.1", None, (0.1, math.nan), (0.1, 1.0),
        (0.1, -1e-9), (0.1,), (0.1, 0.1, 0.1), (math.nan, 0.0), 0.1 + 0j, LaplaceNoise(1e-300), Composed(()),
        Composed(((ApproxDP(0.1), 0),)), Composed(((ApproxDP(1e300), 1),)),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_charge_never_reaches_the_store(sqlite_ledger: Ledger, wrong: object) -> None:
    with pytest.raises(InvalidValue):
        sqlite_ledger.charge("people", wrong, request_id="r-1")  # type: ignore[arg-type]
    assert _kinds(sqlite_ledger) == ["created", "dataset"]


@pytest.fixture(scope="module")
def sqlite_ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Only for calls that write nothing."""
    ledger = Place(str(tmp_path_factory.mktemp("ledger") / "study.db")).open()
    ledger.register("people", 1.0)
    return ledger


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (math.nan, 0.0),
        (-1.0, 0.0),
        (1e308, 0.0),
        (True, 0.0),
        ("1", 0.0),
        (1.0, 1.0),
        (1.0, math.nan),
        (1.0, True),
    ],
)
def test_what_is_no_budget_never_reaches_the_store(sqlite_ledger: Ledger, epsilon: float, delta: float) -> None:
    for act in (
        lambda: sqlite_ledger.register("other", epsilon, delta),
        lambda: sqlite_ledger.set_budget("people", epsilon, delta),
        lambda: sqlite_ledger.grant("people", "bob", epsilon, delta),
        lambda: sqlite_ledger.reserve("people", epsilon, delta),
    ):
        with pytest.raises(InvalidValue):
            act()
    assert _kinds(sqlite_ledger) == ["created", "dataset"]


@pytest.mark.parametrize("name", ["", " x", "a\nb", "\0", "x" * 201, "\ud800", 5, None, b"x", True])
def test_names_are_short_printable_text(sqlite_ledger: Ledger, name: str) -> None:
    with pytest.raises(InvalidValue):
        sqlite_ledger.charge("people", 0.1, request_id=name)
    with pytest.raises(InvalidValue):
        sqlite_ledger.charge(name, 0.1, request_id="r-1")
    with pytest.raises(InvalidValue):
        sqlite_ledger.register(name, 1.0)


def test_names_and_answers_may_be_in_any_script(place: Place) -> None:
    with place.open(actor="Zoë") as ledger:
        ledger.register("命帳 'quoted\" %s ? :x", 1.0, unit="människa")
        charge = ledger.charge("命帳 'quoted\" %s ? :x", 0.5, request_id="заявка %(x)s")
        ledger.release(charge, "réponse ✓ %s ?\n\t\U0001f600")
        found = ledger.stored("заявка %(x)s")
        assert found is not None and found.answer == "réponse ✓ %s ?\n\t\U0001f600"
        assert ledger.datasets() == ["命帳 'quoted\" %s ? :x"]
        assert ledger.verify().ok


def test_a_raised_budget_is_an_entry_that_says_so(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 0.5, unit="person")
        ledger.charge("people", 0.5, request_id="r-1")
        raised = ledger.set_budget("people", 1.0, 1e-9)
        lowered = ledger.set_budget("people", 0.75, 0.0)
        assert (raised.body["raised"], lowered.body["raised"]) == (True, False)
        budget = ledger.budget("people")
        assert (budget.total, budget.remaining, budget.unit) == (ApproxDP(0.75), ApproxDP(0.25), "person")
        ledger.set_budget("people", 0.25)
        with pytest.raises(BudgetExceeded):
            ledger.charge("people", 0.01, request_id="r-2")
        with pytest.raises(InvalidValue, match="must not be registered already"):
            ledger.register("people", 9.0)
        with pytest.raises(InvalidValue, match="must be registered"):
            ledger.set_budget("nobody", 1.0)
    with place.open() as again:
        assert again.budget("people").total == ApproxDP(0.25)


def test_an_analyst_spends_a_grant_under_the_whole_budget(place: Place) -> None:
    with place.open(actor="ada") as ledger:
        ledger.register("people", 1.0)
        ledger.grant("people", "bob", 0.3)
        ledger.grant("people", "eve", 0.9)
    with place.open(actor="bob", role="analyst") as bob:
        bob.release(bob.charge("people", 0.2, request_id="b-1"), "for bob")
        with pytest.raises(BudgetExceeded) as refusal:
            bob.charge("people", 0.2, request_id="b-2")
        assert refusal.value.budget_id == "people/bob"
        assert bob.budget("people", "bob").remaining == ApproxDP(0.1)
        assert {entry.kind for entry in bob.entries()} == {"grant", "charge", "released", "refused"}
    with place.open(actor="eve", role="analyst") as eve:
        with pytest.raises(BudgetExceeded) as refusal:  # the grant would allow it, the dataset does not
            eve.charge("people", 0.9, request_id="e-1")
        assert refusal.value.budget_id == "people"
        eve.charge("people", 0.7, request_id="e-1")
        with pytest.raises(NotAllowed):
            eve.stored("b-1")
        with pytest.raises(NotAllowed):
            eve.charge("people", 0.01, request_id="e-2", analyst="bob")
        with pytest.raises(InvalidValue, match="for something else"):
            eve.charge("people", 0.2, request_id="b-1")
    with place.open(actor="mallory", role="analyst") as mallory:
        with pytest.raises(BudgetExceeded, match="there is no grant"):
            mallory.charge("people", 0.01, request_id="m-1")
        assert mallory.verify().ok


def test_roles_allow_what_they_are_for(place: Place) -> None:
    with place.open(actor="ada") as ada:
        ada.register("people", 1.0)
        charge = ada.charge("people", 0.1, request_id="r-1")
    with place.open(actor="bob", role="analyst") as bob:
        for act in (
            lambda: bob.register("other", 1.0),
            lambda: bob.set_budget("people", 9.0),
            lambda: bob.grant("people", "bob", 9.0),
            lambda: bob.reserve("people", 0.1),
            lambda: bob.charge("people", 0.1, request_id="r-2", use_reserve="reserve"),
            lambda: bob.release(charge, "not mine"),
            lambda: bob.forfeit(charge, "not mine"),
        ):
            with pytest.raises(NotAllowed):
                act()
    with place.open(actor="eve", role="auditor") as eve:
        for act in (
            lambda: eve.register("other", 1.0),
            lambda: eve.charge("people", 0.1, request_id="r-2"),
            lambda: eve.release(charge, "x"),
        ):
            with pytest.raises(NotAllowed):
                act()
        assert (eve.datasets(), eve.verify().ok, len(list(eve.entries()))) == (["people"], True, 3)


def test_a_reserve_is_kept_for_those_who_name_it(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        ledger.reserve("people", 0.4, name="census day")
        with pytest.raises(BudgetExceeded, match=r"beside the 0\.4 set aside"):
            ledger.charge("people", 0.7, request_id="r-1")
        ledger.charge("people", 0.6, request_id="r-1")
        with pytest.raises(InvalidValue, match="census day"):
            ledger.charge("people", 0.3, request_id="r-2", use_reserve="christmas")
        ledger.charge("people", 0.3, request_id="r-2", use_reserve="census day")
        budget = ledger.budget("people")
        assert budget.withheld == {"census day": ApproxDP(0.1)}
        assert budget.remaining == ApproxDP(0.0)
        ledger.reserve("people", 0.0, name="census day")
        assert ledger.budget("people").withheld == {}
        ledger.charge("people", 0.1, request_id="r-3")
    with place.open() as again:
        assert again.verify().ok


def test_gaussian_noise_is_charged_and_read_back(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0, 1e-6)
        plan = Composed(((GaussianNoise(60.0), 2), (LaplaceNoise(100.0), 3)))
        charge = ledger.charge("people", plan, request_id="r-1", world="planned")
        assert 0 < charge.epsilon < 0.5 and 0 < charge.delta < 1e-6
        assert charge.event == plan
        budget = ledger.budget("people")
        assert 0 < budget.spent.lower <= budget.spent.upper < 1.0
    with place.open() as again:
        assert again.charge("people", plan, request_id="r-1").repeated


def test_a_ledger_that_is_not_there_is_not_made_unless_wanted(place: Place) -> None:
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        place.open(create=False)
    for role in ("analyst", "auditor"):
        with pytest.raises(NotAllowed, match="make a ledger"):
            place.open(role=role)
    place.open().close()
    place.open(create=False, role="auditor").close()


def test_a_closed_ledger_refuses_and_may_be_closed_again(place: Place) -> None:
    ledger = place.open()
    ledger.register("people", 1.0)
    ledger.close()
    ledger.close()
    for act in (ledger.datasets, ledger.verify, lambda: ledger.charge("people", 0.1, request_id="r-1")):
        with pytest.raises(LedgerUnavailable, match="closed"):
            act()


@pytest.mark.slow
def test_a_trigger_that_could_undo_a_charge_is_found_on_a_server(
    postgres_server: dict[str, Any], tmp_path: Path
) -> None:
    import psycopg

    place = postgres_place(postgres_server, tmp_path)
    with place.open() as ledger:
        ledger.register("people", 1.0)
    with psycopg.connect(place.url, autocommit=True) as owner:
        owner.execute("CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        for table, what in (("farthing_entries", "INSERT"), ("farthing_accounts", "UPDATE")):
            owner.execute(f"CREATE TRIGGER forget BEFORE {what} ON {table} FOR EACH ROW EXECUTE FUNCTION forget()")
            with pytest.raises(LedgerTampered, match=f"trigger {table} forget is not as it was made"):
                place.open()
            owner.execute(f"DROP TRIGGER forget ON {table}")
        owner.execute("CREATE RULE forget AS ON UPDATE TO farthing_accounts DO INSTEAD NOTHING")
        with pytest.raises(LedgerTampered, match="rule farthing_accounts forget is not as it was made"):
            place.open()
        owner.execute("DROP RULE forget ON farthing_accounts")
    place.open().close()


def test_no_more_is_set_aside_than_there_is(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0, 1e-9)
        ledger.reserve("people", 0.75, 1e-9, name="one")
        for epsilon, delta in ((0.5, 0.0), (0.25, 1e-10), (2.0, 0.0)):
            with pytest.raises(InvalidValue, match="all reserves together must be at most the budget"):
                ledger.reserve("people", epsilon, delta, name="two")
        ledger.reserve("people", 0.25, name="two")
        ledger.reserve("people", 0.0, name="one")
        assert _kinds(ledger) == ["created", "dataset", "reserve", "reserve", "reserve"]


def test_one_charge_is_paid_by_every_budget_or_by_none(place: Place) -> None:
    with place.open() as ledger:
        for name, epsilon in (("flights", 1.0), ("planes", 0.5), ("crews", 2.0)):
            ledger.register(name, epsilon)
        charge = ledger.charge("flights", 0.4, request_id="r-1", others=["planes", "crews", "flights"])
        assert charge.others == ("crews", "planes")
        assert [ledger.budget(name).spent_upper for name in ("flights", "planes", "crews")] == [0.4] * 3
        with pytest.raises(BudgetExceeded, match="left in budget 'planes'") as refusal:
            ledger.charge("flights", 0.2, request_id="r-2", others=["planes"])
        assert refusal.value.budget_id == "planes"
        with pytest.raises(InvalidValue, match="'gates': must be registered"):
            ledger.charge("flights", 0.1, request_id="r-3", others=["gates"])
        assert [ledger.budget(name).spent_upper for name in ("flights", "planes", "crews")] == [0.4] * 3
        receipt = ledger.release(charge, "an answer")
        assert ledger.forfeit(ledger.charge("planes", 0.1, request_id="r-4", others=["crews"]), "died")
        assert [ledger.budget(name).reserved for name in ("flights", "planes", "crews")] == [0.0] * 3
        assert [entry.kind for entry in ledger.entries("crews")] == [
            "dataset", "charge", "released", "charge", "forfeited",
        ]  # fmt: skip
        assert ledger.budget("crews").spent.upper == pytest.approx(0.5)
    with place.open() as again:
        assert [again.budget(name).count for name in ("flights", "planes", "crews")] == [1, 2, 2]
        repeated = again.charge("flights", 0.4, request_id="r-1")
        assert repeated.repeated and repeated.others == ("crews", "planes")
        assert again.verify(receipt).ok


def test_an_analyst_pays_from_a_grant_in_every_budget(place: Place) -> None:
    with place.open() as ledger:
        for name in ("flights", "planes"):
            ledger.register(name, 1.0)
        ledger.grant("flights", "bob", 0.5)
        bob = ledger.acting("bob", "analyst")
        with pytest.raises(BudgetExceeded, match="there is no grant") as refusal:
            bob.charge("flights", 0.25, request_id="r-1", others=["planes"])
        assert refusal.value.budget_id == "planes/bob"
        ledger.grant("planes", "bob", 0.3)
        bob.release(bob.charge("flights", 0.25, request_id="r-1", others=["planes"]), "an answer")
        left = [ledger.budget(name, "bob").remaining.epsilon for name in ("flights", "planes")]
        assert left == pytest.approx([0.25, 0.05])
        with pytest.raises(BudgetExceeded, match="left in the grant of 'bob' in 'planes'"):
            bob.charge("flights", 0.1, request_id="r-2", others=["planes"])
    with place.open() as again:
        assert again.budget("planes", "bob").count == 1


def test_a_budget_knows_its_tables_and_tells_nobody(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0, sources=["/data/people.csv"])
        before = ledger.budget("people")
        assert ledger.attach("people", ["/data/people.csv"]) is None
        added = ledger.attach("people", ["/data/more.csv", "/data/people.csv"])
        assert added is not None and added.kind == "source" and "csv" not in added.body_text
        assert ledger.budget("people") == before
        ledger.charge("people", 0.5, request_id="r-1")
    with place.open() as again:
        marks = frozenset(again.marks(["/data/people.csv", "/data/more.csv"]))
        assert again.sources() == {"people": marks} and again.budget("people").spent_upper == 0.5


def test_a_curator_learns_whether_a_table_has_changed_and_an_analyst_does_not(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("people", 1.0)
        ledger.grant("people", "bob", 1.0)
        bob = ledger.acting("bob", "analyst")
        for request_id in ("r-1", "r-2"):
            bob.charge("people", 0.1, request_id=request_id, table="rows of May")
        ledger.charge("people", 0.1, request_id="r-3")
        assert ledger.table_changed("r-1", "rows of May") is False
        assert ledger.table_changed("r-1", "rows of June") is True
        assert ledger.table_changed("r-3", "rows of May") is ledger.table_changed("r-1", "") is None
        with pytest.raises(NotAllowed):
            bob.table_changed("r-1", "rows of May")
        # The marks of one table under two requests cannot be compared by who lacks the key.
        marks = {entry.body["table"] for entry in bob.entries("people") if entry.kind == "charge"}
        assert len(marks) == 2


def test_a_request_is_approved_used_and_read_again(place: Place) -> None:
    with place.open() as ada:
        ada.register("people", 1.0)
        bob = ada.acting("bob", "analyst")
        asked = bob.requests.submit("people", 0.25, digest="d", purpose="the yearbook", document={"plan": "100 %"})
        ada.requests.approve(asked.id)
        bob.release(bob.charge("people", 0.25, digest="d", request_id="r-1"), "{}")
        with pytest.raises(BudgetExceeded):
            bob.charge("people", 0.25, digest="d", request_id="r-2")
        ada.requests.grant_policy("people", "bob", 0.1)
    with place.open() as again:
        (done,) = again.requests.all()
        assert (done.state, done.request_id, done.document) == ("used", "r-1", {"plan": "100 %"})
        assert again.budget("people").spent_upper == 0.25 and again.requests.policies()[0].left == 0.1
        assert again.verify().ok

"""What a client reads and asks at a server beyond plans and releases: grants, the ledger, sessions."""

from __future__ import annotations

import httpx
import pytest

import farthing as ft
from farthing import privacy
from farthing.errors import InvalidExpression, InvalidValue, NotAllowed, RequestRefused
from unit.client.conftest import Connect
from unit.server.conftest import DATASET, HERE, Served

SCOPES = ("read", "plan", "spend", "manage")


@pytest.mark.slow
def test_an_analyst_spends_a_grant_and_may_not_do_more(connect: Connect) -> None:
    bob = connect("bob")
    study = bob.study(DATASET)
    assert study.budget.analyst == "bob" and study.budget.total.epsilon == 1.0
    release = study.plan(ft.count(), epsilon=0.05).release(request_id="first")
    assert release.request_id == "bob:first"
    budget = study.budget
    assert budget.spent_upper == pytest.approx(0.05, abs=1e-6) == budget.odometer
    assert budget.would_fit[0.1] == 9 and budget.room.epsilon >= budget.remaining.epsilon > 0.9
    with pytest.raises((NotAllowed, RequestRefused)):
        bob.register("other", "people.csv", schema={"age": (0, 110)}, epsilon=1.0)
    with pytest.raises((NotAllowed, RequestRefused)):
        connect("bob", "read").study(DATASET).plan(ft.count(), epsilon=0.05)
    assert {entry.analyst for entry in bob.ledger.entries(DATASET)} <= {"bob"}


@pytest.mark.slow
def test_the_ledger_is_read_and_verified_from_afar(connect: Connect) -> None:
    ada = connect("ada", *SCOPES)
    release = ada.study(DATASET).plan(ft.count(), epsilon=0.05).release()
    assert ada.ledger.verify(release.receipt).ok
    entries = list(ada.ledger.entries(DATASET))
    assert [entry.sequence for entry in entries] == sorted(entry.sequence for entry in entries)
    assert any(entry.request_id == release.request_id and entry.kind == "charge" for entry in entries)
    assert ada.ledger.budget(DATASET).count >= 1 and ada.datasets() == ada.ledger.datasets() == [DATASET]


@pytest.mark.slow
def test_questions_are_asked_from_afar(connect: Connect) -> None:
    study = connect("ada", *SCOPES).study(DATASET)
    session = study.query_session(0.95, 20, columns=["sex"], rows=60, epsilon=1.0, request_id="asked")
    first = session.ask("sex = 'F'")
    assert first.error is None or first.error > 0
    assert session.ask("sex = 'F'").value == first.value
    assert study.query_session(0.95, 20, columns=["sex"], rows=60, epsilon=1.0, request_id="asked").ask(
        "sex = 'F'"
    ).value == pytest.approx(first.value)
    with pytest.raises(InvalidExpression) as wrong:
        session.ask("sex =")
    assert wrong.value.position is not None
    assert [one["question"] for one in session.history][:1] == ["sex = 'F'"]


@pytest.mark.slow
def test_the_same_words_take_up_the_same_session(connect: Connect) -> None:
    study = connect("ada", *SCOPES).study(DATASET)
    sure = study.query_session_plan("guaranteed", 3, columns="sex", rows=600, epsilon=1.0)
    assert sure.updates == 3 and sure.guarantee is not None and sure.guarantee in str(sure)
    quoted = study.query_session_plan(0.95, 15, columns="sex", rows=60, epsilon=1.0)
    assert quoted.guarantee is None
    first = study.query_session(0.95, 15, columns="sex", rows=60, epsilon=1.0)
    spent = study.budget.spent_upper
    again = study.query_session(0.95, 15, columns="sex", rows=60, epsilon=1.0)
    assert again.request_id == first.request_id and study.budget.spent_upper == spent
    assert (quoted.updates, quoted.error, quoted.epsilon) == (first.plan.updates, first.plan.error, 1.0)
    assert "once" in str(quoted) and quoted.as_dict()["rows"] == 60


@pytest.mark.slow
def test_noise_is_composed_from_afar(connect: Connect) -> None:
    eve = connect("eve", "read", "plan")
    noise = privacy.GaussianNoise(4.0)
    found = eve.compose([noise, (0.1, 1e-8), privacy.ApproxDP(0.2)], 1e-6, counts=[2, 1, 1])
    here = ft.compose([noise, noise, privacy.ApproxDP(0.1, 1e-8), privacy.ApproxDP(0.2)]).epsilon_at(1e-6)
    assert found.optimal.lower <= here.upper and here.lower <= found.optimal.upper
    for wrong in (privacy.RandomizedResponse(0.5), True, "0.1"):
        with pytest.raises(InvalidValue):
            eve.compose([wrong], 1e-6)  # type: ignore[list-item]
    with pytest.raises(InvalidValue):
        eve.compose([0.1], 1e-6, counts=[1, 2])


def test_what_is_no_farthing_is_told_and_gets_the_token_once() -> None:
    asked = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path.endswith("/me"):
            return httpx.Response(307, headers={"Location": "https://evil.example/"})
        return httpx.Response(200, text="<!doctype html>")

    client = ft.Client(HERE, "ft_word", transport=httpx.MockTransport(elsewhere))
    for ask in (client.me, client.datasets):
        with pytest.raises(RequestRefused, match="is there a farthing at this address"):
            ask()
    assert asked == ["/api/v1/me", "/api/v1/datasets"]


@pytest.mark.slow
def test_a_curator_grants_from_afar(connect: Connect) -> None:
    curator = connect("ada", *SCOPES)
    before = curator.ledger.budget(DATASET).total
    granted = curator.grant(DATASET, "bob", epsilon=0.75, delta=1e-8)
    assert (granted.dataset, granted.analyst, granted.total.epsilon) == (DATASET, "bob", 0.75)
    assert curator.grant(DATASET, "bob", epsilon=0.75).total.delta == 1e-8
    assert connect("bob").study(DATASET).budget.total.epsilon == 0.75
    assert curator.ledger.budget(DATASET).total == before
    with pytest.raises(RequestRefused, match="there is no user 'nobody'"):
        curator.grant(DATASET, "nobody", epsilon=0.1)
    with pytest.raises((NotAllowed, RequestRefused)):
        connect("bob").grant(DATASET, "bob", epsilon=3.0)


@pytest.mark.slow
def test_different_values_are_counted_from_afar(served: Served, connect: Connect) -> None:
    """Visits of 40 people, of which a step keeps two of three wards.

    At this epsilon, one number is wrong with less than one in 10^9.
    """
    lines = [f"{row // 2},{'NESW'[row % 3]}" for row in range(80)]
    (served.settings.data / "visits.csv").write_text("\n".join(["who,ward", *lines]) + "\n", encoding="utf-8")
    ada = connect("ada", *SCOPES)
    schema = {"ward": ["N", "E", "S", "W"]}
    steps = [{"where": "ward != 'S'"}]
    study = ada.register("visits", "visits.csv", schema=schema, unit="who", max_rows=1, epsilon=100.0, steps=steps)
    plan = study.plan(ft.count_distinct("ward", max_cells=2), epsilon=100.0)
    (planned,) = plan.statistics
    assert planned.counts == "different values (at most 2 of each who)"
    release = plan.release()
    assert float(release[planned.name].values) == 2.0
    assert "different values (at most 2 of each who)" in str(release)


def test_rows_are_not_declared_as_those_of_others_from_afar(served: Served, connect: Connect) -> None:
    """An account that was opened by hand has no unit of its own, but counts each row as one person's."""
    (served.settings.data / "payments.csv").write_text("sender,receiver,amount\n" + "1,2,30\n" * 9, encoding="utf-8")
    served.state.root.register("purse", 1.0)
    ada = connect("ada", *SCOPES)
    schema = {"amount": (0, 100)}
    sent = ada.register("sent", "payments.csv", schema=schema, unit="sender", max_rows=1, account="purse")
    sent.plan(ft.count(), epsilon=0.25).release()
    with pytest.raises(InvalidValue, match=r"must be 'by sender': the account 'purse' counts the rows of .* so, and"):
        ada.register("got", "payments.csv", schema=schema, unit="receiver", max_rows=1, account="purse")
    assert served.state.root.budget("purse").count == 1


@pytest.mark.slow
def test_rows_of_a_statement_are_shown_to_whoever_may_see_its_release(connect: Connect) -> None:
    ada, bob = connect("ada", *SCOPES), connect("bob")
    text = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    release = ada.study(DATASET).sql(text, epsilon=0.01).release()
    words = {"dataset": DATASET, "sql": text, "request_id": release.request_id}
    assert len(ada.study(DATASET).connection.post("/sql", words)["tables"][0]["rows"]) == 2
    with pytest.raises(RequestRefused) as hidden:
        bob.study(DATASET).connection.post("/sql", words)
    assert hidden.value.code == "not_found"
    with pytest.raises(InvalidValue, match="is a release of something else"):
        ada.study(DATASET).connection.post("/sql", {**words, "sql": "SELECT AVG(age) FROM people"})

"""Corrections over HTTP: by a curator, one entry each, and later plans read the table as it is declared then."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import InvalidValue, NotAllowed
from farthing.server.services import dataset_corrections
from farthing.server.services.dataset_service import declaration_of
from unit.server.conftest import HERE, once_a_module, people_csv

API = "/api/v1"
NEW: dict[str, Any] = {
    "name": "clinic",
    "source": "clinic.csv",
    "account": "patients",
    "unit": "age",
    "max_rows": 2,
    "columns": {"sex": {"categories": ["f", "m"], "lower": True}, "income": {"range": [0, 90_000], "real": True}},
    "epsilon": 1.0,
    "delta": 1e-6,
}


@pytest.fixture(scope=once_a_module)
def path(served: Any, curator: TestClient) -> str:
    (served.settings.data / "clinic.csv").write_text(people_csv(), encoding="utf-8")
    assert curator.post(f"{API}/datasets", json=NEW).status_code == 201
    served.state.ledger(served.caller("ada")).grant("patients", "bob", 0.5)
    return f"{API}/datasets/clinic/corrections"


def remote(served: Any, user: str, *scopes: str) -> ft.Client:
    tested = served.with_token(user, *scopes)
    return ft.Client(HERE, tested.headers["Authorization"].removeprefix("Bearer "), transport=tested._transport)


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def corrections(served: Any) -> list[Any]:
    return [entry for entry in served.state.root.entries("patients") if entry.kind == "correction"]


@pytest.mark.slow
def test_a_correction_is_looked_at_made_once_and_read_by_later_plans(
    served: Any, curator: TestClient, analyst: TestClient, path: str
) -> None:
    before = served.state.root.budget("patients")
    asked = {"draft": {"dataset": "clinic", "statistics": [{"kind": "count", "by": "sex"}], "epsilon": 0.1}}
    request = analyst.post(f"{API}/requests", json={**asked, "purpose": "a talk"}).json()
    words = {"columns": {"sex": {"categories": ["f", "m", "x"]}}, "max_rows": 3}
    seen = curator.post(f"{path}/check", json=words).json()
    assert seen["changes"] == [
        {"what": "sex", "before": "f, m", "after": "f, m, x"},
        {"what": "max_rows", "before": "2", "after": "3"},
    ]
    assert seen["entry"] is None and corrections(served) == []
    assert any("change a count by 3 instead of 2" in sentence for sentence in seen["later"])
    assert any(f"where they read clinic: {request['id']}." in sentence for sentence in seen["later"])
    made = curator.post(path, json={**words, "reason": "a third answer was allowed"})
    assert made.status_code == 201 and made.json()["changes"] == seen["changes"]
    (entry,) = corrections(served)
    assert (entry.sequence, entry.actor, entry.body["reason"]) == (
        made.json()["entry"],
        "ada",
        "a third answer was allowed",
    )
    declared = declaration_of(served.state.store, "clinic")
    assert declared is not None and declared.facts["columns"]["sex"] == {
        "categories": ["f", "m", "x"],
        "lower": True,  # how cells are read stays
    }
    assert (declared.facts["max_rows"], declared.account, declared.facts["unit"]) == (3, "patients", "age")
    after = served.state.root.budget("patients")
    assert (after.total, after.spent_upper, after.protects) == (before.total, before.spent_upper, before.protects)
    plan = analyst.post(f"{API}/plans/price", json=asked["draft"]).json()
    assert plan["statistics"][0]["cells"] == 3
    assert code(curator.post(path, json={**words, "reason": "again"})) == (422, "invalid_value")
    assert len(corrections(served)) == 1
    sentence = curator.get(f"{API}/ledger/entries", params={"dataset": "clinic"}).json()["entries"][-1]["sentence"]
    assert sentence.startswith("ada corrected the declaration of clinic: max_rows was 2 and is 3; sex was f, m")


@pytest.mark.slow
def test_only_a_curator_corrects_and_never_whom_it_protects(
    served: Any, curator: TestClient, analyst: TestClient, auditor: TestClient, path: str
) -> None:
    stands, entries = declaration_of(served.state.store, "clinic"), len(corrections(served))
    words = {"columns": {"income": {"range": [0, 99_000]}}, "reason": "prices rose"}
    for who in (analyst, auditor):
        for route in (path, f"{path}/check"):
            assert code(who.post(route, json=words)) == (403, "not_allowed")
    for forbidden in ({"unit": None}, {"neighbours": "replace"}, {"source": "people.csv"}, {"account": "others"}):
        assert code(curator.post(path, json={**words, **forbidden})) == (422, "invalid_request")
    wrong: dict[str, Any]
    for wrong in ({"columns": {}}, {"columns": {"ward": {"range": [0, 9]}}}, {"columns": {"sex": {"range": [3, 1]}}}):
        assert code(curator.post(path, json={**words, **wrong})) == (422, "invalid_value")
    assert code(curator.post(f"{API}/datasets/nowhere/corrections", json=words)) == (404, "not_found")
    assert code(curator.post(path, json={"columns": words["columns"]})) == (422, "invalid_request")
    assert declaration_of(served.state.store, "clinic") == stands and len(corrections(served)) == entries


def test_a_correction_of_what_was_changed_meanwhile_is_refused_and_leaves_no_entry(
    served: Any, curator: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands, entries = declaration_of(served.state.store, "clinic"), len(corrections(served))
    assert stands is not None
    older = type(stands)(stands.name, re.sub(r'"max_rows": \d+', '"max_rows": 1', stands.text), "ada", 0)
    monkeypatch.setattr(dataset_corrections, "declaration_of", lambda store, name: older)
    assert code(curator.post(path, json={"max_rows": 5, "reason": "late"})) == (409, "conflict")
    assert len(corrections(served)) == entries


def test_a_client_corrects_in_the_words_of_a_local_study(served: Any, path: str) -> None:
    ada, bob = remote(served, "ada", "read", "manage"), remote(served, "bob", "read", "plan", "spend")
    assert ada.correct("clinic", "prices rose", schema={"income": (0, 95_000)}) == {
        "income": ("0 to 90,000", "0 to 95,000")
    }
    with pytest.raises(InvalidValue, match="must change something"):
        ada.correct("clinic", "prices rose", schema={"income": (0, 95_000)})
    with pytest.raises(NotAllowed):
        bob.correct("clinic", "mine", max_rows=9)
    ada.close()
    bob.close()

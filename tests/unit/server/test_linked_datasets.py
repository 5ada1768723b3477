"""Linked tables on a server: declared with their keys, asked about one by one, paid for by everybody they hold."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import InvalidValue
from farthing.server.app import warm_up
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import HERE, Served, once_a_module, served_in, waited_for

TABLES: dict[str, Any] = {
    "persons": {"source": "persons.csv", "columns": {"sex": {"categories": ["F", "M"]}}},
    "visits": {"source": "visits.csv", "columns": {"ward": {"categories": ["heart", "bones"]}}, "max_rows": 3},
    "drugs": {
        "source": "drugs.csv",
        "columns": {"drug": {"unknown": "text"}, "dose": {"range": [0, 50]}},
        "max_rows": 4,
    },
}
LINKED: dict[str, Any] = {
    "name": "hospital",
    "table": "drugs",
    "unit": "persons.person_id",
    "tables": TABLES,
    "keys": {"visits.person_id": "persons.person_id", "drugs.visit_id": "visits.visit_id"},
    "steps": [{"join": "visits"}, {"join": {"table": "persons", "how": "left"}}],
    "epsilon": 200.0,
    "delta": 1e-6,
}
OTHER = {**LINKED, "name": "hospital visits", "table": "visits", "steps": [{"join": "persons"}], "epsilon": None}


def write(folder: Any) -> None:
    persons = [f"{n},{'FM'[n % 2]}" for n in range(300)]
    visits = [f"{n},{n % 300},{('heart', 'bones')[n % 2]}" for n in range(600)]
    drugs = [f"{n % 600},{('aspirin', 'codeine')[n % 2]},{n % 50}" for n in range(1_200)]
    for name, head, lines in (
        ("persons", "person_id,sex", persons),
        ("visits", "visit_id,person_id,ward", visits),
        ("drugs", "visit_id,drug,dose", drugs),
    ):
        (folder / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


@pytest.fixture(scope=once_a_module)
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = served_in(tmp_path_factory.mktemp("linked"))
    write(made.settings.data)
    worker = Worker(made.state, look=0.02)
    thread = threading.Thread(target=worker.run)
    thread.start()
    yield made
    worker.drain()
    thread.join(600)
    made.state.close()


@pytest.fixture(scope=once_a_module)
def ada(served: Served) -> TestClient:
    client = served.signed_in("ada")
    made = client.post("/api/v1/datasets", json=LINKED)
    assert made.status_code == 201, made.text
    served.state.ledger(served.caller("ada")).grant("hospital", "bob", 50.0, 1e-7)
    return client


def test_tables_are_declared_once_and_described_with_their_keys(served: Served, ada: TestClient) -> None:
    about = ada.get("/api/v1/datasets/hospital").json()
    assert (about["account"], about["unit"], about["source"]) == (
        "hospital", ["person_id"], "persons.csv, visits.csv, drugs.csv"
    )  # fmt: skip
    assert [(each["name"], each["max_rows"], each["leads_to"]) for each in about["tables"]] == [
        ("persons", 1, None),
        ("visits", 3, "persons.person_id"),
        ("drugs", 4, "visits.visit_id"),
    ]
    assert [column["name"] for column in about["schema"]] == ["dose", "ward", "sex"]
    assert "visit_id says whose they are, through visits" in about["stability"]
    assert ada.post("/api/v1/datasets", json=LINKED).status_code == 201  # the same again
    (line,) = [each for each in ada.get("/api/v1/datasets").json()["datasets"] if each["name"] == "hospital"]
    assert line["unit"] == "all rows that lead to one persons.person_id"
    bob = served.signed_in("bob").get("/api/v1/datasets/hospital").json()
    assert bob["source"] is None and {each["source"] for each in bob["tables"]} == {None}


def test_another_table_of_the_same_people_has_no_budget_of_its_own(served: Served, ada: TestClient) -> None:
    checked = ada.post("/api/v1/datasets/check", json=OTHER).json()
    assert checked["ok"] and checked["account"] == "hospital" and checked["account_open"]
    assert {each["name"] for each in checked["columns"]} == {"persons.sex", "visits.ward", "drugs.drug", "drugs.dose"}
    assert ada.post("/api/v1/datasets", json=OTHER).status_code == 201
    alone = {"name": "alone", "source": "visits.csv", "unit": "person_id", "max_rows": 3, "epsilon": 5.0}
    alone |= {"columns": TABLES["visits"]["columns"], "account": "second"}
    refused = ada.post("/api/v1/datasets", json=alone)
    assert refused.status_code == 422 and "must be 'hospital'" in refused.json()["error"]["message"]


def test_a_child_table_is_planned_discovered_and_released(served: Served, ada: TestClient) -> None:
    count = {"kind": "count", "by": "drug", "of": "people", "max_cells": 2}
    draft = {"dataset": "hospital", "statistics": [count], "epsilon": 50.0}
    refused = ada.post("/api/v1/plans/price", json=draft).json()
    assert refused["error"]["code"] == "undiscovered"
    stages = refused["error"]["fields"]["stages"]
    assert stages["epsilon"] + stages["rest"] == pytest.approx(50.0)
    assert [case["found"] for case in stages["cases"]] == ["drug: 10 values", "drug: 1,000 values"]
    assert all(case["errors"][0]["error"] < 10 for case in stages["cases"])
    assert served.state.root.budget("hospital").count == 0  # nothing is spent for that
    asked = {"columns": ["drug"], "rows_per_unit": False}
    path = "/api/v1/datasets/hospital/discoveries"
    price = ada.post(f"{path}/price", json=asked).json()["epsilon"]
    found = waited_for(ada, path, {**asked, "request_id": "find-drugs", "confirmed_epsilon": price, "wait": 5}).json()
    assert found["findings"][0]["facts"]["values"] == ["aspirin", "codeine"]
    spent = served.state.root.budget("hospital").count
    plan = ada.post("/api/v1/plans/price", json=draft)
    assert plan.status_code == 200, plan.text
    body = {"draft": draft, "request_id": "by-drug", "confirmed_epsilon": plan.json()["cost"]["upper"], "wait": 5}
    release = waited_for(ada, "/api/v1/releases", body).json()
    assert release["state"] == "released", release
    (answer,) = release["answers"]
    assert abs(answer["cells"][0]["value"] - 150) < 20
    assert served.state.root.budget("hospital").count == spent + 1


def test_an_analyst_without_a_grant_sees_nothing_of_it(served: Served, ada: TestClient) -> None:
    served.add("carl", "analyst")
    carl = served.signed_in("carl")
    assert carl.get("/api/v1/datasets/hospital").status_code == 404
    assert carl.get("/api/v1/datasets").json()["datasets"] == []
    assert served.signed_in("bob").post("/api/v1/datasets", json={**LINKED, "name": "mine"}).status_code == 403


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": {"visits.person_id": "persons.person_id"}}, "must lead from 'drugs'"),
        ({"table": "wards"}, "must be one of persons, visits, drugs"),
        ({"unit": None}, "must be a table and a column"),
        ({"source": "persons.csv"}, "must stand with each of the tables"),
        ({"max_rows": 3}, "must stand with each of the tables"),
        ({"renews": {"every": "month", "date": "day", "period": "2026-03"}}, "must stand with each of the tables"),
        ({"tables": {**TABLES, "drugs": {"source": "../drugs.csv"}}}, "must name a table of the data folder"),
        ({"steps": [{"join": "wards"}]}, "is not one of the linked tables"),
    ],
)
def test_what_cannot_be_linked_is_refused_in_words(ada: TestClient, change: dict[str, Any], message: str) -> None:
    refused = ada.post("/api/v1/datasets", json={**LINKED, "name": "wrong", **change})
    assert refused.status_code == 422 and message in refused.json()["error"]["message"], refused.text


def test_a_declaration_needs_a_source_or_tables(ada: TestClient) -> None:
    refused = ada.post("/api/v1/datasets", json={"name": "nothing", "epsilon": 1.0})
    assert refused.status_code == 422 and "source" in json.dumps(refused.json())


def test_a_column_of_a_linked_table_is_corrected_where_it_stands(served: Served, ada: TestClient) -> None:
    assert ada.post("/api/v1/datasets", json=OTHER).status_code == 201
    path = "/api/v1/datasets/hospital visits/corrections"
    wards = {"columns": {"sex": {"categories": ["F", "M", "X"]}}, "max_rows": 2}
    view = ada.post(path, json={**wards, "reason": "a third answer"}).json()
    assert {each["what"]: each["after"] for each in view["changes"]} == {"sex": "F, M, X", "max_rows": "2"}
    about = ada.get("/api/v1/datasets/hospital visits").json()
    assert [each["max_rows"] for each in about["tables"]] == [1, 2, 4]
    refused = ada.post(path, json={"rows": 5, "reason": "counted"})
    assert refused.status_code == 422 and "must be left out" in refused.json()["error"]["message"]


def test_a_column_of_a_table_that_is_not_joined_is_corrected_there(served: Served, ada: TestClient) -> None:
    assert ada.post("/api/v1/datasets", json={**OTHER, "name": "apart"}).status_code == 201
    path = "/api/v1/datasets/apart/corrections/check"
    for called in ("dose", "drugs.dose"):
        view = ada.post(path, json={"columns": {called: {"range": [0, 80]}}})
        assert view.status_code == 200, view.text
        assert [(each["what"], each["before"], each["after"]) for each in view.json()["changes"]] == [
            ("drugs.dose", "0 to 50", "0 to 80")
        ]
    same = ada.post(path, json={"columns": {"drugs.dose": {"range": [0, 50]}}})
    assert same.status_code == 422 and "like this already" in same.json()["error"]["message"]
    known = {"columns": {"drugs.drug": {"categories": ["aspirin", "codeine"]}}, "reason": "there is a list"}
    made = ada.post(path.removesuffix("/check"), json=known)
    assert made.status_code == 201 and made.json()["changes"][0]["after"] == "aspirin, codeine", made.text
    two = {**OTHER, "name": "twice", "tables": {**TABLES, "persons": {**TABLES["persons"]}}, "table": "visits"}
    two["tables"]["more"] = {**TABLES["drugs"]}
    two["keys"] = {**LINKED["keys"], "more.visit_id": "visits.visit_id"}
    assert ada.post("/api/v1/datasets", json=two).status_code == 201
    either = ada.post("/api/v1/datasets/twice/corrections/check", json={"columns": {"dose": {"range": [0, 80]}}})
    assert either.status_code == 422 and "drugs.dose or more.dose" in either.json()["error"]["message"]


def test_a_client_declares_them_in_the_words_of_linked(served: Served, ada: TestClient) -> None:
    tested = served.with_token("ada", "read", "plan", "spend", "manage")
    token = tested.headers["Authorization"].removeprefix("Bearer ")
    client = ft.Client(HERE, token, transport=tested._transport)
    tables = {
        "persons": ft.table("persons.csv", schema={"sex": ["F", "M"]}),
        "visits": ft.table("visits.csv", schema={"ward": ["heart", "bones"]}),
    }
    study = client.register_linked(
        "visits by ward",
        "visits",
        tables,
        unit="persons.person_id",
        keys={"visits.person_id": "persons.person_id"},
        max_rows={"visits": 2},
        steps=[{"join": "persons"}],
    )
    plan = study.plan(ft.count(by=["ward", "sex"]), epsilon=1.0)
    assert [statistic.name for statistic in plan.statistics] == ["count by ward and sex"]
    with pytest.raises(InvalidValue, match="must be one of the tables"):
        client.register_linked("x", "visits", tables, unit="persons.person_id", keys={}, max_rows={"drugs": 2})
    with pytest.raises(InvalidValue, match="with the name of a file"):
        client.register_linked("x", "visits", {"visits": ["ward"]}, unit="persons.person_id", keys={})
    warm_up(served.state)  # whatever is declared first


def test_a_table_that_is_linked_by_another_key_is_refused_before_anything_is_charged(
    served: Served, ada: TestClient
) -> None:
    """Its rows would be one person's in one answer, and another's in the next."""
    (served.settings.data / "pay.csv").write_text("sender,receiver,amount\n1,2,3\n2,1,4\n")
    persons = {"source": "persons.csv", "columns": {"sex": {"categories": ["F", "M"]}}}
    pay = {"source": "pay.csv", "columns": {"amount": {"range": [0, 9]}}, "max_rows": 2}
    facts = {
        "table": "pay", "unit": "persons.person_id", "tables": {"persons": persons, "pay": pay}, "account": "hospital",
    }  # fmt: skip
    sent = {**facts, "name": "sent", "keys": {"pay.sender": "persons.person_id"}}
    received = {**facts, "name": "received", "keys": {"pay.receiver": "persons.person_id"}}
    made = ada.post("/api/v1/datasets", json=sent)
    assert made.status_code == 201, made.text
    before = served.state.ledger(served.caller("ada")).last()
    refused = ada.post("/api/v1/datasets", json=received)
    assert refused.status_code == 422 and "must be 'by sender'" in refused.text, refused.text
    assert served.state.ledger(served.caller("ada")).last() == before


def test_a_request_about_a_linked_table_is_asked_approved_and_released_once(served: Served, ada: TestClient) -> None:
    """An approval is for one table of several: it pays for no other, though all are paid for by one account."""
    api = "/api/v1"
    assert ada.post(f"{api}/datasets", json={**OTHER, "name": "stays"}).status_code == 201
    persons = {name: value for name, value in OTHER.items() if name != "steps"} | {
        "name": "patients",
        "table": "persons",
    }
    made = ada.post(f"{api}/datasets", json=persons)
    assert made.status_code == 201, made.text
    served.add("zoe", "analyst")
    zoe = served.signed_in("zoe")
    assert ada.put(f"{api}/datasets/stays/grants/zoe", json={"epsilon": 0.0}).is_success
    budget = served.state.root.budget
    draft = {"dataset": "stays", "statistics": [{"kind": "count", "by": ["ward", "sex"]}], "epsilon": 0.5}

    def release(**body: Any) -> Any:
        return waited_for(zoe, f"{api}/releases", {"wait": 30, **body})

    before = budget("hospital").count
    assert release(draft=draft, request_id="early").status_code == 409
    asked = zoe.post(f"{api}/requests", json={"draft": draft, "purpose": "the yearbook"})
    assert asked.status_code == 201, asked.text
    seen = ada.get(f"{api}/requests/{asked.json()['id']}").json()
    assert (seen["dataset"], seen["draft"]["dataset"]) == ("stays", "stays")
    assert seen["statistics"][0]["name"] == "count by ward and sex"
    less = {"draft": {**seen["draft"], "epsilon": 0.25}, "reason": "less will do"}
    elsewhere = {"draft": {**seen["draft"], "dataset": "patients"}, "reason": "another table"}
    assert ada.post(f"{api}/requests/{seen['id']}/change", json=elsewhere).status_code == 409
    changed = ada.post(f"{api}/requests/{seen['id']}/change", json=less)
    assert changed.json()["state"] == "approved", changed.text
    other = {**draft, "dataset": "patients", "statistics": [{"kind": "count", "by": "sex"}], "epsilon": 0.25}
    refused = release(draft=other, request_id="another-table")
    assert refused.status_code == 409, refused.text
    assert budget("hospital").count == before
    done = release(request=seen["id"], request_id=changed.json()["name"])
    assert done.status_code == 200, done.text
    assert done.json()["charged"]["epsilon"] == pytest.approx(0.25, rel=1e-6)
    assert budget("hospital").count == before + 1 and budget("hospital", "zoe").spent_upper == 0.0
    again = release(request=seen["id"], request_id="again")
    assert again.json()["answers"] == done.json()["answers"] and budget("hospital").count == before + 1
    declined = zoe.post(f"{api}/requests", json={"draft": {**draft, "epsilon": 0.3}, "purpose": "more"}).json()
    assert ada.post(f"{api}/requests/{declined['id']}/decline", json={"reason": "enough"}).is_success
    assert release(request=declined["id"], request_id=declined["name"]).status_code == 409

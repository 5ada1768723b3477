"""Datasets over HTTP: declared once, never read, with budgets that only a curator moves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.data import Count
from farthing.server.services.dataset_service import dataset_of, declaration_of
from farthing.server.store.store_tables import declarations
from unit.server.conftest import people_csv

NEW: dict[str, Any] = {
    "name": "survey",
    "source": "people.csv",
    "columns": {"age": {"range": [0, 110]}, "income": {"range": [0, 90_000], "real": True}},
    "epsilon": 1.0,
    "delta": 1e-6,
}


def with_file(served: Any, name: str) -> dict[str, Any]:
    """The declaration of a table of its own, which has no account yet."""
    (served.settings.data / f"{name}.csv").write_text(people_csv(), encoding="utf-8")
    return {**NEW, "name": name, "source": f"{name}.csv"}


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_sources_are_names_of_files_and_columns_without_a_row(curator: TestClient, served: Any) -> None:
    (served.settings.data / "bare.csv").write_text("47,F,31337\n48,M,31338\n")
    found = curator.get("/api/v1/sources")
    assert found.json()["folder_shown"] == "data"
    files = {each["name"]: each for each in found.json()["files"]}
    assert [each["name"] for each in files["people.csv"]["columns"]] == ["age", "sex", "income"]
    assert files["bare.csv"]["columns"] == [] and files["bare.csv"]["problem"]
    assert "31337" not in found.text and str(served.settings.data) not in found.text
    only = curator.get("/api/v1/sources", params={"only": "people.csv"}).json()["files"]
    assert [each["name"] for each in only] == ["people.csv"]
    assert code_of(curator.get("/api/v1/sources", params={"only": "../study.db"})) == (422, "invalid_value")


def test_a_check_says_a_sentence_for_every_column_and_writes_nothing(curator: TestClient, served: Any) -> None:
    told = {**NEW, "name": "checked", "columns": {**NEW["columns"], "sex": {"range": [3, 1]}}}
    found = curator.post("/api/v1/datasets/check", json=told).json()
    assert not found["ok"]
    assert {each["name"] for each in found["columns"]} == {"age", "income"}
    assert [each["where"] for each in found["problems"]] == ["columns.sex"]
    right = curator.post("/api/v1/datasets/check", json={**NEW, "name": "checked"}).json()
    assert right["ok"] and right["unit_sentence"].startswith("Protects every row")
    assert "73.2% sure" in right["budget_sentence"]
    partial = curator.post("/api/v1/datasets/check", json={"source": "people.csv"}).json()
    assert not partial["ok"] and partial["problems"] == []
    assert declaration_of(served.state.store, "checked") is None
    assert "checked" not in served.state.root.datasets()


def test_a_check_refuses_a_name_that_stands_for_another_dataset(curator: TestClient, served: Any) -> None:
    first = with_file(served, "once")
    assert curator.post("/api/v1/datasets", json=first).status_code == 201
    assert curator.post("/api/v1/datasets/check", json=first).json()["problems"] == []
    other = curator.post("/api/v1/datasets/check", json={**first, "epsilon": 2.0}).json()
    assert not other["ok"] and [each["where"] for each in other["problems"]] == ["name"]


def test_a_budget_that_protects_little_is_cautioned_and_one_without_a_plan_refused(
    curator: TestClient, served: Any
) -> None:
    weak = with_file(served, "weak")

    def check(**told: Any) -> Any:
        return curator.post("/api/v1/datasets/check", json={**weak, **told}).json()

    assert not any("Epsilon" in note or "Delta" in note for note in check()["notes"])
    assert any(note.startswith("Epsilon 100 protects") for note in check(epsilon=100.0)["notes"])
    assert any("1 in 1,000 of the people" in note for note in check(delta=1e-3)["notes"])
    few = {"neighbours": "replace", "rows": 10**6}
    assert any(note.startswith("Delta") for note in check(delta=5e-6, **few)["notes"])
    useless = check(delta=0.5)
    assert not useless["ok"] and [each["where"] for each in useless["problems"]] == ["delta"]
    refused = curator.post("/api/v1/datasets", json={**weak, "delta": 0.5})
    assert code_of(refused) == (422, "invalid_value")
    raised = curator.put("/api/v1/datasets/people/budget", json={"epsilon": 1.0, "delta": 0.5})
    assert code_of(raised) == (422, "invalid_value")


@pytest.mark.slow
def test_a_table_has_one_account_under_whatever_names_it_is_declared(curator: TestClient, served: Any) -> None:
    def check(**told: Any) -> Any:
        return curator.post("/api/v1/datasets/check", json=told).json()

    new = with_file(served, "clinic")
    opens = "Opens the account 'patients' (protects row, add-remove; epsilon 1, delta 1e-06) for clinic.csv."
    assert check(**new, account="patients")["account_sentence"] == opens
    assert not check(**new, account="patients")["account_open"]
    assert curator.post("/api/v1/datasets", json={**new, "account": "patients"}).json()["account"] == "patients"
    twin = {key: value for key, value in new.items() if key not in ("epsilon", "delta")} | {"name": "twin"}
    seen = check(**twin)
    assert seen["account_sentence"] == "Pays from the account 'patients', to which the table belongs."
    assert (seen["account"], seen["account_open"]) == ("patients", True)
    assert code_of(curator.post("/api/v1/datasets", json={**twin, "epsilon": 2.0})) == (409, "conflict")
    assert curator.post("/api/v1/datasets", json=twin).json()["account"] == "patients"
    elsewhere = {**twin, "name": "third", "account": "others", "epsilon": 1.0}
    assert "must be 'patients': 'clinic.csv' is registered there" in str(check(**elsewhere)["problems"])
    assert code_of(curator.post("/api/v1/datasets", json=elsewhere)) == (422, "invalid_value")
    visits = {**with_file(served, "visits"), "account": "Patients"} | {"epsilon": None}
    note = "Registers visits.csv to the account 'patients', which pays for it from now on."
    assert check(**visits)["account_sentence"] == note
    assert curator.post("/api/v1/datasets", json=visits).json()["account"] == "patients"
    curator.put("/api/v1/datasets/twin/grants/bob", json={"epsilon": 0.5})
    for name in ("clinic", "twin", "visits"):
        seen = curator.get(f"/api/v1/datasets/{name}").json()
        assert (seen["budget"]["dataset"], seen["grants"][0]["analyst"]) == ("patients", "bob")
        path = f"/api/v1/ledger/entries?dataset={name}"
        assert curator.get(path).json()["entries"][0]["dataset"] == "patients"
    assert served.state.root.budget("patients").sources == ("clinic.csv", "visits.csv")


def test_the_same_declaration_again_is_the_same_dataset_and_another_is_refused(
    curator: TestClient, served: Any
) -> None:
    new = with_file(served, "survey")
    assert curator.post("/api/v1/datasets", json=new).status_code == 201
    entries = len(list(served.state.root.entries("survey")))
    again = curator.post("/api/v1/datasets", json=new)
    assert again.status_code == 201 and again.json()["name"] == "survey"
    assert len(list(served.state.root.entries("survey"))) == entries
    other = {**new, "columns": {"age": {"range": [0, 120]}}}
    assert code_of(curator.post("/api/v1/datasets", json=other)) == (409, "conflict")
    assert code_of(curator.post("/api/v1/datasets", json={**new, "epsilon": 2.0})) == (409, "conflict")


@pytest.mark.slow
def test_a_registration_that_stopped_half_way_is_finished_by_the_same_again(curator: TestClient, served: Any) -> None:
    told, quarter = with_file(served, "half"), with_file(served, "quarter")
    assert curator.post("/api/v1/datasets", json=told).status_code == 201
    with served.state.store.begin() as connection:  # as if it had stopped after the ledger
        row = connection.execute(declarations.select().where(declarations.c.name == "half")).one()
        connection.execute(declarations.delete().where(declarations.c.name == "half"))
    assert curator.post("/api/v1/datasets", json=told).status_code == 201
    assert declaration_of(served.state.store, "half") is not None
    with served.state.store.begin() as connection:  # as if it had stopped before the ledger
        connection.execute(
            declarations.insert().values(
                name="quarter",
                body=json.dumps({**json.loads(row.body), "name": "quarter", "source": "quarter.csv"}),
                created_by="ada",
                created=1,
            )
        )
    assert code_of(curator.get("/api/v1/datasets/quarter")) == (404, "not_found")
    assert "quarter" not in curator.get("/api/v1/datasets").text
    assert curator.post("/api/v1/datasets", json=quarter).status_code == 201
    assert curator.get("/api/v1/datasets/quarter/budget").json()["total"]["epsilon"] == 1.0


def test_a_budget_that_the_ledger_has_already_is_not_taken_over(curator: TestClient, served: Any) -> None:
    served.state.ledger(served.caller("ada")).register("elsewhere", 5.0, 1e-6, unit="person, add-remove")
    refused = curator.post("/api/v1/datasets", json={**NEW, "name": "elsewhere"})
    assert code_of(refused) == (409, "conflict")
    assert declaration_of(served.state.store, "elsewhere") is None


@pytest.mark.parametrize(
    "change",
    [
        {"source": "../data/people.csv"},
        {"source": "/etc/passwd"},
        {"source": "study.db"},
        {"name": "../x"},
        {"name": ""},
        {"epsilon": 0},
        {"epsilon": True},
        {"epsilon": "1"},
        {"delta": 1},
        {"columns": {}},
        {"columns": {"age": {}}},
        {"columns": {"age": {"range": [0, 110], "flags": True}}},
        {"columns": {"age": {"range": [0, 1e308]}}},
        {"columns": {"nope": {"flags": True}}},
        {"unit": "nope", "max_rows": 1},
        {"unit": "age", "max_rows": 0},
        {"extra": 1},
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    curator: TestClient, served: Any, change: dict[str, Any]
) -> None:
    refused = curator.post("/api/v1/datasets", json={**NEW, "name": "wrong", **change})
    assert refused.status_code == 422, refused.text
    assert str(served.settings.data.parent) not in refused.text
    assert declaration_of(served.state.store, "wrong") is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_never_reach_the_store(curator: TestClient, number: str) -> None:
    body = json.dumps({**NEW, "name": "wrong"}).replace("1.0", number)
    refused = curator.post("/api/v1/datasets", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 422


def test_a_dataset_tells_what_is_public_and_the_source_only_to_a_curator(
    curator: TestClient, analyst: TestClient, auditor: TestClient
) -> None:
    seen = curator.get("/api/v1/datasets/people").json()
    assert seen["source"] == "people.csv" and [each["name"] for each in seen["schema"]] == [
        "age",
        "sex",
        "income",
    ]
    assert seen["grants"][0]["analyst"] == "bob" and "neighbours differ in at most 1 row" in seen["stability"]
    assert auditor.get("/api/v1/datasets/people").json()["source"] is None
    assert auditor.get("/api/v1/datasets/people").json()["grants"]
    own = analyst.get("/api/v1/datasets/people")
    assert own.json()["source"] is None and own.json()["grants"] is None and "people.csv" not in own.text
    assert own.json()["budget"]["analyst"] == "bob" and own.json()["budget"]["total"]["epsilon"] == 1.0


@pytest.mark.slow
def test_an_analyst_sees_no_dataset_without_a_grant(curator: TestClient, analyst: TestClient, served: Any) -> None:
    curator.post("/api/v1/datasets", json=with_file(served, "closed"))
    assert "closed" in curator.get("/api/v1/datasets").text
    assert "closed" not in analyst.get("/api/v1/datasets").text
    for path in ("/api/v1/datasets/closed", "/api/v1/datasets/closed/budget", "/api/v1/datasets/nothing"):
        assert code_of(analyst.get(path)) == (404, "not_found")
    assert analyst.get("/api/v1/datasets/people/budget").json()["analyst"] == "bob"


def test_budgets_grants_and_reserves_are_entries_of_the_ledger(curator: TestClient, served: Any) -> None:
    told = with_file(served, "moved")
    curator.post("/api/v1/datasets", json=told)
    raised = curator.put("/api/v1/datasets/moved/budget", json={"epsilon": 2.0, "delta": 1e-6})
    assert raised.json()["total"]["epsilon"] == 2.0
    kept = curator.put("/api/v1/datasets/moved/reserves/census day", json={"epsilon": 0.5}).json()
    assert kept["withheld"] == {"census day": {"epsilon": 0.5, "delta": 0.0}} and kept["remaining"]["epsilon"] == 1.5
    given = curator.put("/api/v1/datasets/moved/grants/bob", json={"epsilon": 5.0000000001, "delta": 1e-7}).json()
    assert given["total"]["epsilon"] == 5.0
    assert given["remaining"]["epsilon"] == 1.5  # what is really left: the dataset's own budget rules above it
    assert "1.5 is free. The budget of moved, which is shared, has no more left." in given["sentence"]
    kinds = [entry.kind for entry in served.state.root.entries("moved")]
    assert kinds == ["dataset", "budget", "reserve", "grant"]
    assert {entry.actor for entry in served.state.root.entries("moved")} == {"ada"}
    curator.put("/api/v1/datasets/moved/grants/bob", json={"epsilon": 5.0000000001, "delta": 1e-7})
    assert len(list(served.state.root.entries("moved"))) == 4  # the same again changes nothing, as the ledger keeps it
    too_much = curator.put("/api/v1/datasets/moved/reserves/all", json={"epsilon": 3.0})
    assert code_of(too_much) == (422, "invalid_value")
    assert code_of(curator.put("/api/v1/datasets/moved/grants/nobody", json={"epsilon": 1.0})) == (
        404,
        "not_found",
    )
    # A declaration that was made stands, whatever the budget is by now.
    assert curator.post("/api/v1/datasets", json=told).status_code == 201


def test_a_table_that_is_gone_is_told_without_its_name(curator: TestClient, analyst: TestClient, served: Any) -> None:
    file = served.settings.data / "brief.csv"
    file.write_text("age,sex\n1,F\n")
    told = {**NEW, "name": "brief", "source": "brief.csv", "columns": {"age": {"range": [0, 9]}}}
    assert curator.post("/api/v1/datasets", json=told).status_code == 201
    curator.put("/api/v1/datasets/brief/grants/bob", json={"epsilon": 0.1})
    file.unlink()
    gone = analyst.get("/api/v1/datasets/brief")
    assert code_of(gone) == (424, "engine_error") and "brief.csv" not in gone.text


@pytest.mark.slow
def test_a_delta_that_is_left_out_stays_as_it_is(curator: TestClient, served: Any) -> None:
    curator.post("/api/v1/datasets", json=with_file(served, "longer"))
    path = "/api/v1/datasets/longer"
    served.state.root.charge("longer", (0.5, 1e-8), request_id="longer-1")
    told = curator.put(f"{path}/budget", json={"epsilon": 2.0}).json()
    assert (told["total"], told["spent"]) == ({"epsilon": 2.0, "delta": 1e-6}, {"epsilon": 0.5})
    refused = curator.put(f"{path}/budget", json={"epsilon": 2.0, "delta": 0})
    assert code_of(refused) == (422, "invalid_value") and "1.6e-07 or more" in refused.text
    curator.put(f"{path}/grants/bob", json={"epsilon": 0.5, "delta": 1e-7})
    assert curator.put(f"{path}/grants/bob", json={"epsilon": 0.75}).json()["total"]["delta"] == 1e-7
    curator.put(f"{path}/reserves/later", json={"epsilon": 0.5, "delta": 1e-7})
    kept = curator.put(f"{path}/reserves/later", json={"epsilon": 0.25}).json()["withheld"]
    assert kept == {"later": {"epsilon": 0.25, "delta": 1e-7}}
    assert curator.put(f"{path}/reserves/later", json={"epsilon": 0}).json()["withheld"] == {}


@pytest.mark.slow
def test_a_dataset_is_declared_as_a_secret_sample(curator: TestClient, served: Any) -> None:
    for share in (0.0, 1.0, 1.5):
        assert curator.post("/api/v1/datasets", json={**NEW, "name": "a tenth", "sample": share}).status_code == 422
    told = {**with_file(served, "a tenth"), "sample": 0.1}
    checked = curator.post("/api/v1/datasets/check", json={**told, "neighbours": "replace"}).json()
    assert [each["where"] for each in checked["problems"]] == ["neighbours"]
    made = curator.post("/api/v1/datasets", json=told)
    assert made.status_code == 201 and "is in it with probability 0.1." in made.json()["unit_sentence"]
    assert curator.post("/api/v1/datasets", json=told).status_code == 201
    assert curator.post("/api/v1/datasets", json={**told, "sample": None}).status_code == 409
    draft = {"dataset": "a tenth", "statistics": [{"kind": "count"}], "epsilon": 0.2, "expected": {"rows": 5_000}}
    view = curator.post("/api/v1/plans/price", json=draft).json()
    assert view["about"].startswith("numbers and their margins of error are about a secret sample")
    assert view["counting"] is None
    session = {"dataset": "a tenth", "alpha": 0.9, "queries": 5, "columns": ["age"], "rows": 60, "epsilon": 0.2}
    refused = curator.post("/api/v1/sessions/price", json=session)
    assert refused.status_code == 422 and "study the whole table" in refused.text


STEPS = [{"where": "age >= 30"}, {"derive": {"rich": "income > 40000"}}, {"select": ["age", "rich"]}]


@pytest.mark.slow
def test_a_dataset_can_have_the_steps_of_a_study_file(curator: TestClient, served: Any) -> None:
    told = {**with_file(served, "stepped"), "steps": STEPS}
    assert curator.post("/api/v1/datasets/check", json=told).json()["ok"]
    made = curator.post("/api/v1/datasets", json=told)
    assert made.status_code == 201, made.text
    assert [each["name"] for each in made.json()["schema"]] == ["age", "rich"]
    assert "where age >= 30" in made.json()["stability"]
    declaration = declaration_of(served.state.store, "stepped")
    assert declaration is not None and declaration.facts["steps"] == STEPS
    dataset = dataset_of(served.state, declaration)
    rows = [line.split(",") for line in people_csv().split()[1:]]
    kept = [float(income) > 40_000 for age, _, income in rows if int(age) >= 30]
    assert dataset.exact({"rich": Count(by="rich")})["rich"].tolist() == [kept.count(False), kept.count(True)]
    wider = {"columns": {"age": {"range": [0, 120]}}}
    changes = curator.post("/api/v1/datasets/stepped/corrections/check", json=wider)
    assert changes.status_code == 200 and changes.json()["changes"]
    plain = {**with_file(served, "unstepped")}
    assert curator.post("/api/v1/datasets", json=plain).status_code == 201
    written = declaration_of(served.state.store, "unstepped")
    assert written is not None and "steps" not in written.facts  # the same text as before there were steps


def test_dates_in_steps_are_texts_as_in_the_columns(curator: TestClient, served: Any) -> None:
    days = ["2024-01-31", "2024-06-30", "2025-02-01", ""]
    (served.settings.data / "days.csv").write_text("\n".join(["who,day", *(f"{n},{d}" for n, d in enumerate(days))]))
    told = {
        "name": "dated",
        "source": "days.csv",
        "unit": "who",
        "max_rows": 1,
        "columns": {"day": {"range": ["2020-01-01", "2025-12-31"]}},
        "steps": [
            {"where": "day >= date '2024-02-01' or day = '2024-01-31'"},
            {"derive": {"later": "day >= '2024-06-30'"}},
            {"clip": {"day": ["2024-01-01", "2024-12-31"]}},
            {"bin": {"day": ["2024-01-01", "2024-06-01", "2024-12-31"]}},
        ],
        "epsilon": 1.0,
    }
    made = curator.post("/api/v1/datasets", json=told)
    assert made.status_code == 201, made.text
    schema = {each["name"]: each for each in made.json()["schema"]}
    assert len(schema["day"]["categories"]) == 2
    declaration = declaration_of(served.state.store, "dated")
    assert declaration is not None
    exact = dataset_of(served.state, declaration).exact({"n": Count(by=["day", "later"])})["n"].tolist()
    assert exact == [[1, 0], [0, 2]]
    for wrong in ({"clip": {"day": ["2024-01-01", "then"]}}, {"bin": {"day": ["2024-13-01", "2024-12-31"]}}):
        refused = curator.post("/api/v1/datasets", json={**told, "name": "wrong", "steps": [wrong]})
        assert refused.status_code == 422 and refused.json()["error"]["message"].startswith("steps[1]"), refused.text


@pytest.mark.parametrize(
    "step",
    [
        {"join": {"public": "people.csv", "on": "age"}},
        {"join": {"public": "/etc/passwd", "on": "age"}},
        {"join": {"public": "../study.db", "on": "age"}},
        {"join": "persons"},
        {"join": {"public": [[1, 2]], "on": "age"}},
        {"per_unit": {"visits": "count()"}},  # of a table whose unit is one row
        {"derive": {"x": [[], {}]}},
        {"select": [{}, 3]},
        {"explode": {"column": {}, "limit": "x"}},
        {"clip": {"age": None}},
        {"bin": {"age": [{}]}},
        {"per_unit": {"n": {"of": 3, "range": ["a", None]}}},
        {"where": "age >="},
        {"where": ["age"]},
        {"open": "people.csv"},
        {"where": "age > 3", "select": ["age"]},
        {},
    ],
)
def test_steps_open_no_file_and_what_is_no_step_is_refused(curator: TestClient, served: Any, step: Any) -> None:
    told = {**NEW, "name": "steps", "steps": [step]}
    refused = curator.post("/api/v1/datasets", json=told)
    assert refused.status_code == 422 and str(served.settings.data) not in refused.text
    checked = curator.post("/api/v1/datasets/check", json=told)
    assert checked.status_code == 200 and not checked.json()["ok"]
    assert declaration_of(served.state.store, "steps") is None

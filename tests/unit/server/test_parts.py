"""Disjoint parts over HTTP: one charge for all of them, a dataset for each, and nothing that a second charge needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import InvalidValue, NotAllowed
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import DATASET, HERE, Served, once_a_module, people_csv, waited_for

API = "/api/v1"
PARTS = f"{API}/datasets/{DATASET}/parts"
WORDS = {"by": "sex", "epsilon": 0.5}


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served) -> Iterator[None]:
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield
    made.drain()
    thread.join(600)


def spent(served: Served) -> float:
    return round(served.state.root.budget(DATASET).spent_upper, 9)


def remote(served: Served, *scopes: str) -> ft.Client:
    tested = served.with_token("ada", *scopes)
    return ft.Client(HERE, tested.headers["Authorization"].removeprefix("Bearer "), transport=tested._transport)


def released(client: TestClient, dataset: str, name: str, epsilon: float) -> Any:
    draft = {"dataset": dataset, "statistics": [{"kind": "count"}], "epsilon": epsilon}
    return waited_for(client, f"{API}/releases", {"draft": draft, "request_id": name, "wait": 20.0})


@pytest.mark.slow
def test_parts_cost_the_maximum_and_are_datasets(served: Served, curator: TestClient) -> None:
    price = curator.post(f"{PARTS}/price", json=WORDS).json()
    assert "all of them together cost epsilon 0.5" in price["sentence"] and not price["paid"]
    assert price["cost"]["epsilon"] == 0.5 and spent(served) == 0.0
    assert curator.get(f"{API}/datasets/people sex F").status_code == 404  # a price declares nothing
    made = curator.post(PARTS, json=WORDS)
    assert made.status_code == 201 and spent(served) == 0.5
    names = {line["value"]: line["dataset"] for line in made.json()["parts"]}
    assert names == {"F": "people sex F", "M": "people sex M"}
    for value, name in names.items():
        assert released(curator, name, f"all-{value}", 0.5).status_code == 200
    assert spent(served) == 0.5  # the maximum, not the sum
    assert released(curator, names["F"], "more", 0.1).json()["error"]["code"] == "budget_exceeded"
    again = curator.post(PARTS, json=WORDS).json()
    assert again["paid"] and again["cost"]["epsilon"] == 0.0 and again["parts"] == made.json()["parts"]
    assert spent(served) == 0.5
    recorded = served.state.root.stored("partition 1 of people by sex")
    assert recorded is not None and recorded.answer == '{"partition": "sex", "parts": ["F", "M"]}'
    assert served.state.root.verify().ok


@pytest.mark.slow
def test_a_part_says_what_it_is_and_its_code_divides(served: Served, curator: TestClient) -> None:
    curator.post(PARTS, json=WORDS)
    part = curator.get(f"{API}/datasets/people sex M").json()
    assert (part["part"]["of"], part["part"]["by"], part["part"]["value"]) == (DATASET, "sex", "M")
    assert [line["value"] for line in part["part"]["parts"]] == ["F", "M"]
    lines = {line["name"]: line["part"] for line in curator.get(f"{API}/datasets").json()["datasets"]}
    assert (lines["people sex M"], lines[DATASET]) == ("sex = M of people", None)
    whole = curator.get(f"{API}/datasets/{DATASET}").json()
    assert [[line["value"] for line in parts] for parts in whole["divided"]] == [["F", "M"]]
    other = curator.post(PARTS, json={"by": "sex", "epsilon": 0.25}).json()["parts"][0]["dataset"]
    draft = {"dataset": other, "statistics": [{"kind": "count"}]}
    plan = curator.post(f"{API}/plans/price", json=draft).json()
    assert f'client.study("{other}")' in plan["code"] or f"client.study({other!r})" in plan["code"]
    assert "study.split(by='sex', epsilon=0.25, delta=0.0)['F']" in plan["code"]
    assert 'split = { by = "sex", epsilon = 0.25, delta = 0.0, part = "F" }' in plan["toml"]


@pytest.mark.slow
def test_only_a_curator_divides_and_spends_from_parts(served: Served, curator: TestClient) -> None:
    bob, eve = served.signed_in("bob"), served.signed_in("eve")
    for path in (PARTS, f"{PARTS}/price"):
        assert {bob.post(path, json=WORDS).status_code, eve.post(path, json=WORDS).status_code} == {403}
    curator.post(PARTS, json=WORDS)
    name = "people sex F"
    assert bob.get(f"{API}/datasets/{name}").status_code == 404
    assert bob.get(f"{API}/datasets/{DATASET}").json()["divided"] == []
    refused = curator.put(f"{API}/datasets/{name}/grants/bob", json={"epsilon": 0.1})
    assert refused.status_code == 422 and "only a curator" in refused.json()["error"]["message"]
    assert served.with_token("ada", "read", "plan", "manage").post(PARTS, json=WORDS).status_code == 403


@pytest.mark.slow
def test_what_cannot_be_divided_is_refused_before_a_charge(served: Served, curator: TestClient) -> None:
    curator.post(PARTS, json=WORDS)
    before = spent(served)
    for name, words in [
        (DATASET, {"by": "age", "epsilon": 0.1}),
        (DATASET, {"by": "nowhere", "epsilon": 0.1}),
        (DATASET, {"by": "sex", "epsilon": 100.0}),
        (DATASET, {"by": "sex", "epsilon": -1.0}),
        ("people sex F", WORDS),
        ("nobody", WORDS),
    ]:
        response = curator.post(f"{API}/datasets/{name}/parts", json=words)
        assert 400 <= response.status_code < 500, (name, words)
    assert spent(served) == before


@pytest.mark.slow
def test_a_changed_table_is_divided_again_only_when_somebody_says_so(served: Served, curator: TestClient) -> None:
    words = {"by": "sex", "epsilon": 0.125}
    first = curator.post(PARTS, json=words).json()["parts"][0]["dataset"]
    file = served.settings.data / "people.csv"
    file.write_text(people_csv(61), encoding="utf-8")
    try:
        before = spent(served)
        refused = released(curator, first, "too-late", 0.1)
        assert refused.status_code >= 400 and "has changed" in refused.json()["error"]["message"]
        response = curator.post(PARTS, json=words)
        assert response.status_code == 409 and "fresh" in response.json()["error"]["message"]
        assert spent(served) == before
        again = curator.post(PARTS, json={**words, "fresh": True}).json()
        assert spent(served) == pytest.approx(before + 0.125)
        assert first not in [line["dataset"] for line in again["parts"]]
        assert released(curator, again["parts"][0]["dataset"], "in-time", 0.1).status_code == 200
    finally:
        file.write_text(people_csv(), encoding="utf-8")


@pytest.mark.slow
def test_a_script_divides_as_with_a_local_study(served: Served) -> None:
    study = remote(served, "read", "plan", "spend", "manage").study(DATASET)
    plan = study.split_plan("sex", epsilon=0.2)
    assert (plan.values, plan.cost.epsilon, plan.is_paid) == (("F", "M"), 0.2, False)
    before = spent(served)
    parts = study.split("sex", epsilon=0.2)
    assert list(parts) == ["F", "M"] and spent(served) == pytest.approx(before + 0.2)
    release = parts["F"].plan(ft.count(), ft.mean("age")).release()
    assert list(release) == ["count", "mean of age"] and release.receipt.dataset.startswith("people / sex = F")
    assert study.split("sex", epsilon=0.2)["M"].name == parts["M"].name
    assert spent(served) == pytest.approx(before + 0.2)
    with pytest.raises(InvalidValue):
        study.split("income", epsilon=0.1)
    with pytest.raises(NotAllowed):
        remote(served, "read", "plan").study(DATASET).split("sex", epsilon=0.2)


@pytest.mark.slow
def test_parts_of_any_spelling_get_names_of_their_own(served: Served, curator: TestClient) -> None:
    rows = ["town,urban", *(f"{('Köln', 'a/b', 'a b')[n % 3]},{n % 2}" for n in range(30))]
    (served.settings.data / "towns.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    towns = {"categories": ["Köln", "a/b", "a b", "F 2"]}
    declared = {"name": "towns", "source": "towns.csv", "columns": {"town": towns, "urban": {"flags": True}}}
    assert curator.post(f"{API}/datasets", json={**declared, "epsilon": 1.0}).status_code == 201
    parts = curator.post(f"{API}/datasets/towns/parts", json={"by": "town", "epsilon": 0.1}).json()["parts"]
    names = [line["dataset"] for line in parts]
    assert len(set(names)) == 4 and names[2] == "towns town a b"
    assert [curator.get(f"{API}/datasets/{name}").json()["part"]["value"] for name in names] == towns["categories"]
    flags = curator.post(f"{API}/datasets/towns/parts", json={"by": "urban", "epsilon": 0.1}).json()["parts"]
    assert [line["value"] for line in flags] == [False, True]
    assert released(curator, flags[1]["dataset"], "urban", 0.1).status_code == 200

"""Plans over HTTP: numbers before anything is spent, a bar that never overflows, drafts that nobody else sees."""

from __future__ import annotations

import json
import tomllib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.server.schemas.plan_schema import PlanView
from farthing.server.services.app_state import RecentValues
from farthing.server.services.dataset_service import declare, study_of
from farthing.server.services.plan_prices import plan_of_draft
from farthing.study.reports.plan_summary import MOST_CELLS
from unit.server.conftest import DECLARATION, people_csv

PRICE = "/api/v1/plans/price"
DRAFT: dict[str, Any] = {
    "dataset": "people",
    "statistics": [
        {"kind": "count", "by": "sex", "weight": 2},
        {"kind": "mean", "column": "income"},
        {"kind": "histogram", "column": "age", "bins": 11},
    ],
    "expected": {"rows": 5000, "income": [40_000, 12_000]},
}


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def refuse_constants(name: str) -> Any:
    raise AssertionError(f"{name} in an answer")


def checked(answer: Any, status: int = 200) -> dict[str, Any]:
    """The view, after it was compared with what the schema promises."""
    assert answer.status_code == status, answer.text
    view: dict[str, Any] = json.loads(answer.text, parse_constant=refuse_constants)
    PlanView.model_validate(view)
    bar = view["bar"]
    if bar is not None:
        parts = [bar[name] for name in ("spent", "waiting", "withheld", "plan", "free")]
        assert min(parts) >= 0 and sum(parts) == pytest.approx(bar["total"], rel=1e-15)
    return view


@pytest.mark.slow
def test_a_lock_says_what_it_rests_on_and_an_assumed_size_comes_first(curator: TestClient) -> None:
    entries = [{"kind": "mean", "column": "income", "within": 90_000}, {"kind": "count", "within": 90}]
    view = checked(curator.post(PRICE, json={"dataset": "people", "statistics": entries}))
    mean, count = view["statistics"]
    assert view["assumed_rows"] == 10_000
    assert view["assumed"][0] == "the table is assumed to have 10,000 rows"
    assert all(full.startswith(fact) for full, fact in zip(view["assumptions"], view["assumed"], strict=True))
    assert view["opening"].startswith(
        "the error of mean of income is for an assumed size: the table is assumed to have 10,000"
    )
    assert (view["sized"], view["counting"], view["counted"]) == (["mean of income"], 0.06, None)
    assert "in 999 of 1,000 releases, if the table has 10,000 rows (assumed) and" in mean["required"]
    assert count["required"] == "within ±90 (95%) in every release, whatever the data"
    assert count["rests_on"] == [] and "the table has 10,000 rows (assumed)" in mean["rests_on"]
    told = checked(curator.post(PRICE, json=DRAFT))
    assert (told["assumed_rows"], told["opening"]) == (None, None)
    assert [one["required"] for one in told["statistics"]] == [None] * 3


@pytest.mark.slow
def test_a_price_is_an_error_in_the_datas_units_first(curator: TestClient, served: Any) -> None:
    view = checked(curator.post(PRICE, json=DRAFT))
    count, mean, histogram = view["statistics"]
    assert (count["unit_of_error"], mean["unit_of_error"]) == ("rows", "income")
    assert mean["error_percent"] == pytest.approx(100 * mean["error"] / 40_000)
    assert mean["error_at_once"] == mean["error"] and view["at_once"]["errors"]["mean of income"] >= mean["error"]
    assert mean["reference"] == 40_000 and mean["whisker"][0] == pytest.approx(40_000 - mean["error"])
    assert count["reference"] is None and count["labels"] == ["F", "M"] and len(count["errors"]) == 2
    assert histogram["cells"] == 11 and count["weight"] == 2 and "95 times in 100" in mean["sentence"]
    assert view["cost"]["proven"] and view["cost"]["lower"] <= view["cost"]["upper"] <= 3.0
    assert view["bar"]["plan"] == view["cost"]["upper"] and view["budget"]["charges"] == 0
    assert view["price"]["rows"][0]["theorem"] == "plain sum"
    assert [row["key"] for row in view["price"]["rows"]] == ["basic", "advanced", "kov", "optimal", "own"]
    assert view["risk"]["table"][2]["prior"] == 0.5 and "at most 95.3% sure" in view["risk"]["odds_sentence"]
    assert any("uniform" in text for text in view["assumptions"])
    assert served.state.root.budget("people").count == 0 and served.state.root.budget("people").spent_upper == 0


@pytest.mark.slow
def test_a_percentage_says_what_it_is_one_of_and_none_stands_where_nobody_said(curator: TestClient) -> None:
    entries = [{"kind": "mean", "column": "income"}, {"kind": "count", "by": ["sex"]}, {"kind": "count"}]
    view = checked(curator.post(PRICE, json={"dataset": "people", "statistics": entries}))
    assert [(one["error_percent"], one["percent_of"]) for one in view["statistics"]] == [(None, None)] * 3
    said = {"dataset": "people", "statistics": entries, "expected": {"rows": 400}}
    mean, by_sex, count = checked(curator.post(PRICE, json=said))["statistics"]
    assert mean["error_percent"] is None  # only the number of rows was said
    assert (by_sex["percent_of"], count["percent_of"]) == ("the assumed value", "the expected value")
    assert count["error_percent"] == pytest.approx(100 * count["error"] / 400)
    assert by_sex["error_percent"] == pytest.approx(100 * by_sex["error"] / 200)


@pytest.mark.slow
def test_code_and_file_ask_for_the_same_and_name_no_source(curator: TestClient) -> None:
    view = checked(curator.post(PRICE, json={**DRAFT, "epsilon": 0.5, "reserve": 0.1}))
    assert "ft.Client('http://127.0.0.1:8642'" in view["code"] and "plan.reserve(epsilon=0.1)" in view["code"]
    compile(view["code"], "code", "exec")
    read = tomllib.loads(view["toml"])
    assert read["study"]["plan_epsilon"] == 0.5 and read["study"]["plan_reserve"] == 0.1
    assert read["statistics"][0] == {"kind": "count", "by": "sex", "weight": 2.0}
    assert "people.csv" not in view["code"] + view["toml"]


def test_an_estimate_is_close_and_says_that_it_is_none_proven(curator: TestClient) -> None:
    proven = checked(curator.post(PRICE, json=DRAFT))
    quick = checked(curator.post(PRICE, params={"proof": False}, json=DRAFT))
    assert quick["cost"]["proven"] is False
    assert quick["cost"]["upper"] == pytest.approx(proven["cost"]["upper"], rel=1e-4)
    for one, other in zip(quick["statistics"], proven["statistics"], strict=True):
        assert one["error"] == pytest.approx(other["error"], rel=0.05, abs=1)
        assert one["epsilon"] == pytest.approx(other["epsilon"], rel=0.05)
        assert one["worst_error"] is None and other["worst_error"] > 0  # which a slider does not wait for
    assert quick["price"]["basic"] == pytest.approx(proven["price"]["basic"], rel=0.02)
    assert quick["price"]["adaptive"] is None and quick["price"]["adaptive_sentence"] == ""
    assert proven["cost"]["lower"] <= proven["price"]["adaptive"] < 1.2 * proven["cost"]["upper"]
    assert proven["price"]["adaptive_sentence"].startswith("Choosing each measurement after seeing the answers before")


@pytest.mark.slow
def test_a_slider_never_plans_more_than_is_free(curator: TestClient) -> None:
    for step in range(12):
        moved = json.loads(json.dumps(DRAFT))
        moved["statistics"][step % 3]["weight"] = 2.0 ** (step - 6)
        view = checked(curator.post(PRICE, params={"proof": False}, json=moved))
        assert view["bar"]["plan"] <= 3.0
    assert checked(curator.post(PRICE, json=moved))["cost"]["upper"] <= 3.0


@pytest.mark.slow
def test_many_sliders_at_once_do_not_mix(curator: TestClient) -> None:
    def asked(weight: float) -> float:
        draft = json.loads(json.dumps(DRAFT))
        draft["statistics"][0]["weight"] = weight
        for proof in (False, True):  # the first starts near whichever plan was the last, so only the second is compared
            view = checked(curator.post(PRICE, params={"proof": proof}, json=draft))
            assert view["statistics"][0]["weight"] == weight
        return float(view["statistics"][0]["epsilon"])

    weights = [0.01, 0.1, 1.0, 10.0, 100.0]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(asked, weights))
    assert found == sorted(found)


def test_what_is_kept_has_a_bound_and_is_shared_by_threads() -> None:
    recent: RecentValues[int] = RecentValues(10)
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda n: recent.value(n % 20) or recent.keep(n % 20, n % 20), range(2000)))
    assert values == [n % 20 for n in range(2000)]
    assert len(recent._values) == 10


@pytest.mark.slow
def test_an_analyst_plans_with_the_grant_and_an_auditor_with_nothing_saved(
    analyst: TestClient, auditor: TestClient
) -> None:
    own = checked(analyst.post(PRICE, json=DRAFT))
    assert own["epsilon"] == 1.0 and own["delta"] == 1e-7 and own["budget"]["analyst"] == "bob"
    assert own["bar"]["total"] == 1.0
    checked(auditor.post(PRICE, params={"proof": False}, json=DRAFT))
    refused = auditor.post("/api/v1/plans", json=DRAFT)
    assert code_of(refused) == (403, "not_allowed")
    assert refused.json()["error"]["message"].endswith("ask an analyst or a curator.")
    assert auditor.get("/api/v1/plans").json() == {"plans": []}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("plans/price", {"statistics": [{"kind": "count"}]}),
        ("plans", {"statistics": [{"kind": "count"}]}),
        ("studies", {"title": "mine"}),
        ("sessions/price", {}),
        ("sessions", {"request_id": "mine"}),
    ],
)
def test_a_table_that_is_broken_is_not_there_for_whoever_has_no_grant_in_it(
    analyst: TestClient, served: Any, path: str, words: dict[str, Any]
) -> None:
    name = f"secret of {path}".replace("/", "-")
    gone = {**DECLARATION, "name": name, "source": "gone.csv"}
    served.state.ledger(served.caller("ada")).register(name, 1.0)
    declare(served.state.store, name, gone, "ada")
    told = [analyst.post(f"/api/v1/{path}", json={"dataset": each, **words}) for each in (name, "never there")]
    assert [code_of(answer) for answer in told] == [(404, "not_found")] * 2
    assert told[0].text.replace(name, "") == told[1].text.replace("never there", "")


@pytest.mark.slow
def test_what_was_spent_and_set_aside_shows_in_the_bar(curator: TestClient, served: Any) -> None:
    (served.settings.data / "spent.csv").write_text(people_csv(), encoding="utf-8")
    told = {
        "name": "spent", "source": "spent.csv", "columns": {"age": {"range": [0, 110]}}, "epsilon": 1.0, "delta": 1e-6,
    }  # fmt: skip
    curator.post("/api/v1/datasets", json=told)
    curator.put("/api/v1/datasets/spent/reserves/later", json={"epsilon": 0.25})
    draft = {"dataset": "spent", "statistics": [{"kind": "mean", "column": "age"}], "epsilon": 0.3}
    assert checked(curator.post(PRICE, json=draft))["bar"]["withheld"] == 0.25
    ledger = served.state.ledger(served.caller("ada"))
    charge = ledger.charge("spent", 0.2, request_id="ada:one")
    bar = checked(curator.post(PRICE, json=draft))["bar"]
    assert (bar["spent"], bar["waiting"]) == (0.0, 0.2)
    ledger.release(charge, "{}")
    bar = checked(curator.post(PRICE, json=draft))["bar"]
    assert (bar["spent"], bar["waiting"]) == (0.2, 0.0) and bar["plan"] == pytest.approx(0.3, rel=1e-5)
    refused = curator.post(PRICE, json={**draft, "epsilon": 0.6})
    assert code_of(refused) == (409, "budget_exceeded")
    assert refused.json()["error"]["fields"]["remaining"]["epsilon"] == pytest.approx(0.55)
    saved = checked(curator.post("/api/v1/plans", json={**draft, "epsilon": 0.6}), 201)
    assert saved["error"]["code"] == "budget_exceeded" and saved["cost"] is None and saved["draft"]["epsilon"] == 0.6
    assert checked(curator.get(f"/api/v1/plans/{saved['id']}"))["error"]["code"] == "budget_exceeded"


@pytest.mark.slow
def test_a_lock_in_the_way_is_named_with_the_closest_that_fits(curator: TestClient) -> None:
    draft = json.loads(json.dumps(DRAFT))
    draft["statistics"][1]["within"] = 5.0
    refused = curator.post(PRICE, json=draft)
    assert code_of(refused) == (409, "infeasible")
    fields = refused.json()["error"]["fields"]
    assert fields["blocking"] == ["mean of income"] and fields["closest"] > 5.0
    assert curator.post(PRICE, params={"proof": False}, json=draft).json()["error"]["code"] == "infeasible"
    draft["statistics"][1]["within"] = 1.01 * fields["closest"]
    met = checked(curator.post(PRICE, json=draft))["statistics"][1]
    assert met["within"] == draft["statistics"][1]["within"] and met["error"] <= met["within"]


@pytest.mark.slow
def test_fit_takes_no_more_than_the_errors_need(curator: TestClient) -> None:
    draft = {"dataset": "people", "statistics": [{"kind": "count", "within": 50}], "fit": True}
    assert checked(curator.post(PRICE, json=draft))["epsilon"] < 0.1
    assert code_of(curator.post(PRICE, json={**DRAFT, "fit": True})) == (422, "invalid_value")


def test_only_the_first_cells_are_shown(curator: TestClient) -> None:
    draft = {"dataset": "people", "statistics": [{"kind": "histogram", "column": "income", "bins": 400}]}
    (one,) = checked(curator.post(PRICE, params={"proof": False}, json=draft))["statistics"]
    assert one["cells"] == 400 and len(one["labels"]) == len(one["errors"]) == MOST_CELLS


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"statistics": []}, "invalid_request"),
        ({"statistics": [{"kind": "count"}] * 201}, "invalid_request"),
        ({"statistics": [{"kind": "count"}] * 2}, "invalid_value"),
        ({"statistics": [{"kind": "guess"}]}, "invalid_request"),
        ({"statistics": [{"kind": "mean"}]}, "invalid_value"),
        ({"statistics": [{"kind": "mean", "column": "nope"}]}, "invalid_value"),
        ({"statistics": [{"kind": "count", "where": "age <"}]}, "invalid_expression"),
        ({"statistics": [{"kind": "count", "weight": True}]}, "invalid_request"),
        ({"statistics": [{"kind": "count", "weight": 1e308}]}, "invalid_request"),
        ({"statistics": [{"kind": "count", "within": 0}]}, "invalid_request"),
        ({"statistics": [{"kind": "count", "confidence": 0.9}]}, "invalid_value"),
        ({"statistics": [{"kind": "histogram", "column": "age", "bins": 10**9}]}, "invalid_request"),
        ({"statistics": [{"kind": "ranges", "column": "age", "strategy": "optimised"}]}, "invalid_value"),
        ({"epsilon": 0}, "invalid_request"),
        ({"epsilon": 1e308}, "invalid_request"),
        ({"reserve": 5}, "invalid_value"),
        ({"expected": {"rows": "many"}}, "invalid_request"),
        ({"expected": {"rows": -1}}, "invalid_value"),
        ({"more": 1}, "invalid_request"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_reason(
    curator: TestClient, change: dict[str, Any], code: str
) -> None:
    for path in (PRICE, "/api/v1/plans"):
        assert code_of(curator.post(path, json={**DRAFT, **change})) == (422, code)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"kind": "count", "wihtin": 5},
            "body.statistics.0.wihtin: is not known here; did you mean 'within'?",
        ),
        ({"kind": "count", "zebra": 5}, "body.statistics.0.zebra: is not known here."),
        (
            {"kind": "histogram", "column": "age", "bins": 100_000},
            "body.statistics.0.bins: must be less than",
        ),
        ({"kind": "histogram", "column": "age", "bins": 0}, "body.statistics.0.bins: must be greater than"),
        ({"column": "age"}, "body.statistics.0.kind: is required."),
    ],
)
def test_a_refused_body_says_the_key_the_number_and_the_rule(
    curator: TestClient, entry: dict[str, Any], said: str
) -> None:
    refused = curator.post(PRICE, json={"dataset": "people", "statistics": [entry]}).json()["error"]
    assert refused["message"].startswith(f"the request cannot be used: {said}")
    (problem,) = refused["fields"]["problems"]
    assert "constrained" not in str(refused)
    if "bins" in entry:
        assert problem["rule"].endswith(f", not {entry['bins']}")


def test_a_wrong_expression_says_where(curator: TestClient) -> None:
    draft = {"dataset": "people", "statistics": [{"kind": "count", "where": "age < 'x'"}]}
    fields = curator.post(PRICE, json=draft).json()["error"]["fields"]
    assert fields["text"] == "age < 'x'" and 4 <= fields["position"] <= 6


@pytest.mark.slow
def test_a_draft_is_kept_changed_and_forgotten_by_its_owner(analyst: TestClient) -> None:
    made = checked(analyst.post("/api/v1/plans", json={**DRAFT, "title": "first"}), 201)
    path = f"/api/v1/plans/{made['id']}"
    assert made["version"] == 1 and made["owner"] == "bob"
    assert checked(analyst.get(path))["draft"]["title"] == "first"
    changed = checked(analyst.put(path, json={**DRAFT, "epsilon": 0.5, "version": 1}))
    assert changed["version"] == 2 and changed["epsilon"] == 0.5 and "version" not in changed["draft"]
    stale = analyst.put(path, json={**DRAFT, "version": 1})
    assert code_of(stale) == (409, "conflict") and stale.json()["error"]["fields"]["version"] == 2
    assert [each["id"] for each in analyst.get("/api/v1/plans").json()["plans"]] == [made["id"]]
    assert analyst.delete(path).status_code == 204
    assert code_of(analyst.get(path)) == (404, "not_found")
    assert code_of(analyst.delete(path)) == (404, "not_found")


@pytest.mark.slow
def test_of_two_who_change_one_version_one_is_told(analyst: TestClient) -> None:
    made = analyst.post("/api/v1/plans", params={"proof": False}, json=DRAFT).json()

    def put(epsilon: float) -> int:
        told = {**DRAFT, "epsilon": epsilon, "version": 1}
        return analyst.put(f"/api/v1/plans/{made['id']}", params={"proof": False}, json=told).status_code

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(put, (0.1, 0.2, 0.3, 0.4))) == [200, 409, 409, 409]
    analyst.delete(f"/api/v1/plans/{made['id']}")


@pytest.mark.slow
def test_nobody_else_sees_a_draft_or_a_study_but_a_curator_reads_them(
    served: Any, curator: TestClient, analyst: TestClient, auditor: TestClient
) -> None:
    served.add("cy", "analyst")
    served.state.ledger(served.caller("ada")).grant("people", "cy", 0.5)
    other = served.signed_in("cy")
    folder = analyst.post("/api/v1/studies", json={"dataset": "people", "title": "mine"}).json()
    made = analyst.post("/api/v1/plans", json={**DRAFT, "study": folder["id"]}).json()
    for path in (f"/api/v1/plans/{made['id']}", f"/api/v1/studies/{folder['id']}"):
        for somebody in (other, auditor):
            assert code_of(somebody.get(path)) == (404, "not_found")
        assert code_of(other.delete(path)) == (404, "not_found")
        assert curator.get(path).status_code == 200
        assert code_of(curator.delete(path)) == (404, "not_found")  # reading is not owning
    changed = {**DRAFT, "version": 1}
    assert code_of(other.put(f"/api/v1/plans/{made['id']}", json=changed)) == (404, "not_found")
    assert code_of(curator.put(f"/api/v1/plans/{made['id']}", json=changed)) == (404, "not_found")
    assert other.get("/api/v1/plans").json()["plans"] == other.get("/api/v1/studies").json()["studies"] == []
    assert made["id"] in curator.get("/api/v1/plans").text
    assert code_of(other.post("/api/v1/plans", json={**DRAFT, "study": folder["id"]})) == (404, "not_found")


@pytest.mark.slow
def test_a_study_is_a_folder_and_its_drafts_outlive_it(analyst: TestClient) -> None:
    folder = analyst.post("/api/v1/studies", json={"dataset": "people", "title": "folder"}).json()
    made = analyst.post("/api/v1/plans", json={**DRAFT, "study": folder["id"]}).json()
    path = f"/api/v1/studies/{folder['id']}"
    assert analyst.get(path).json()["plans"] == [made["id"]]
    assert made["id"] in analyst.get("/api/v1/plans", params={"study": folder["id"]}).text
    assert analyst.delete(path).status_code == 204
    assert "study" not in analyst.get(f"/api/v1/plans/{made['id']}").json()["draft"]
    assert code_of(analyst.get(path)) == (404, "not_found")
    assert code_of(analyst.post("/api/v1/studies", json={"dataset": "nope", "title": "x"})) == (
        404,
        "not_found",
    )
    assert code_of(analyst.post("/api/v1/studies", json={"dataset": "people", "title": " "})) == (
        422,
        "invalid_request",
    )


@pytest.mark.slow
def test_a_worker_plans_the_same_from_the_draft_as_it_is_kept(curator: TestClient, served: Any) -> None:
    view = checked(curator.post(PRICE, json=DRAFT))
    plan = plan_of_draft(study_of(served.state, served.caller("ada"), "people"), view["draft"])
    assert plan.cost.upper == view["cost"]["upper"]
    assert [one.error() for one in plan.statistics] == [one["error"] for one in view["statistics"]]

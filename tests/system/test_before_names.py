"""What was written before modules were renamed still opens, verifies, answers the same for nothing, and can be read.

tests/fixtures/before_names holds the files; `make.py` there made them at the commit in ORIGIN, and is not run again.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from fixtures.before_names.definitions import (
    ANALYST,
    DRAFT,
    HOLDOUT,
    MONITOR,
    PASSWORD,
    QUESTIONS,
    QUESTIONS_TO_RELEASES,
    SESSION,
    STATISTICS,
    SYNTHESIS,
    adults,
    coins,
    controlled_plan,
    holdout_study,
    plan_of,
    study_of,
    transformed_plan,
)

pytestmark = pytest.mark.slow

STORED = Path(__file__).parents[1] / "fixtures" / "before_names"
ANSWERS: dict[str, Any] = json.loads((STORED / "answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since a ledger that is opened is written to; git keeps no private modes."""
    copy = tmp_path_factory.mktemp("stored") / "before"
    shutil.copytree(STORED, copy)
    for secret in (*copy.rglob("*.db*"),):
        secret.chmod(0o600)
    return copy


@pytest.fixture(scope="module")
def study(folder: Path) -> Iterator[ft.Study]:
    opened = study_of(folder)
    spent = opened.budget.spent_upper
    yield opened
    assert opened.budget.spent_upper == spent  # whatever the tests of this module asked was asked before
    opened.close()


def plain(value: Any) -> Any:
    """As JSON would give it back."""
    return json.loads(json.dumps(value, default=str))


def test_the_ledger_is_whole_and_holds_its_grants_and_reserves(folder: Path, study: ft.Study) -> None:
    ledger = ft.open_ledger(folder / "study.db")
    verification = ledger.verify()
    assert verification, str(verification)
    assert len(list(ledger.entries())) == ledger.last() >= ANSWERS["entries"] > 50
    assert ledger.analysts("people") == ["bob"]
    assert ledger.budget("people", "bob").total.epsilon == 2.0
    assert ledger.budget("people").withheld["publication"].epsilon == 1.0
    states = {name: ledger.stored(name).state for name in ("without an answer", "forfeited", "by its own name")}
    assert states == {
        "without an answer": "reserved",
        "forfeited": "forfeited",
        "by its own name": "released",
    }
    ledger.close()


@pytest.mark.parametrize("kind", STATISTICS)
def test_the_same_request_gets_the_same_release(kind: str, study: ft.Study) -> None:
    release = plan_of(study, kind).release()
    before = ANSWERS["releases"][kind]
    assert _without_new_keys(plain(release.to_dict()), before) == before
    if kind in QUESTIONS_TO_RELEASES:
        answer = release[STATISTICS[kind]().name].query(QUESTIONS_TO_RELEASES[kind])
        assert plain(answer.to_dict()) == ANSWERS["queries"][kind]


def as_before(release: Any, before: Any) -> bool:
    """Whether a release is what it was, but for keys that there were none of."""
    return bool(_without_new_keys(plain(release.to_dict()), before) == before)


def test_controls_steps_and_names_are_known_again(folder: Path, study: ft.Study) -> None:
    assert as_before(controlled_plan(study).release(), ANSWERS["controlled"])
    assert as_before(study.released("by its own name"), ANSWERS["named"])
    transformed = study_of(folder, adults(folder))
    assert as_before(transformed_plan(transformed).release(), ANSWERS["transformed"])
    transformed.close()


def test_the_study_file_finds_its_release_and_makes_its_report_again(folder: Path, study: ft.Study) -> None:
    from farthing.study.documents.study_file import read_study

    file = read_study(folder / "study.toml")
    again = file.study()
    release = again.released(file.request_id)
    assert _without_new_keys(plain(release.to_dict()), ANSWERS["file"]) == ANSWERS["file"]
    before = json.loads((STORED / "release.json").read_text(encoding="utf-8"))
    assert _without_new_keys(json.loads(release.to_json()), before) == before
    page = release.report(str(folder / "again.html")).read_text(encoding="utf-8")
    for record in release.records():
        assert str(record["statistic"]) in page
    again.close()


def test_the_query_session_is_resumed_with_what_it_measured(study: ft.Study) -> None:
    """What was answered for free is forgotten with the process; the weights, which were paid for, are not."""
    session = study.query_session(**SESSION, request_id="a session")
    assert [session.estimate(question).value for question in QUESTIONS] == ANSWERS["session"]


def test_the_monitor_knows_its_alerts_and_looks_again(study: ft.Study) -> None:
    monitor = study.monitor(**MONITOR, request_id="a monitor")
    assert [[alert.series, alert.step, alert.above_by] for alert in monitor.alerts] == ANSWERS["monitor"]
    # The round that was running when the ledger was stored was lost with its process.
    assert monitor.alerts_left == MONITOR["alerts"] - len(ANSWERS["monitor"]) - 1
    assert monitor.look().step > ANSWERS["monitor"][-1][1]  # looks were not kept in those days


def test_the_holdout_is_taken_up(folder: Path) -> None:
    opened = holdout_study(folder)
    before = opened.budget.spent_upper
    opened.holdout(coins(), **HOLDOUT, request_id="a holdout")
    assert opened.budget.spent_upper == before > 0
    opened.close()


def test_the_synthetic_table_is_the_same(folder: Path, study: ft.Study) -> None:
    synthetic = study.synthesise(**SYNTHESIS, request_id="a table")
    assert synthetic.table().to_pylist() == ANSWERS["synthesis"]["rows"]
    assert str(synthetic.quality) == ANSWERS["synthesis"]["quality"]
    assert "<table" in synthetic.report(str(folder / "quality.html")).read_text(encoding="utf-8")


def _without_new_keys(now: Any, before: Any) -> Any:
    """What is shown now, less the keys that were added since: a client that knows the old ones reads the same."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {key: _without_new_keys(value, before[key]) for key, value in now.items() if key in before}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_without_new_keys(one, other) for one, other in zip(now, before, strict=True)]
    return now


def test_the_server_opens_its_store_and_shows_what_it_showed(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient

    from farthing.server import Settings, create_app

    stored, here = ANSWERS["server"], "http://127.0.0.1:8642"
    app = create_app(Settings(ledger=str(folder / "server" / "farthing.db"), data=folder, log_requests=False))
    try:
        client = TestClient(app, base_url=f"{here}/api/v1", headers={"Origin": here})
        me = client.post("/login", json={"user": ANALYST, "password": PASSWORD})
        assert me.status_code == 200, me.text
        client.headers["X-CSRF-Token"] = me.json()["csrf"]

        def shown(path: str) -> Any:
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert [one["name"] for one in shown("/datasets")["datasets"]] == ["people"]
        assert shown(f"/studies/{stored['study']}")["title"] == "a year"
        assert shown(f"/plans/{stored['draft']}")["id"] == stored["draft"]
        release = shown(f"/releases/{stored['release']['request_id']}")
        assert _without_new_keys(release["answers"], stored["release"]["answers"]) == stored["release"]["answers"]
        assert shown(f"/releases/{stored['release']['request_id']}/table")
        assert shown(f"/sessions/{stored['session']}")["id"] == stored["session"]
        price = client.post("/plans/price", json=DRAFT)
        assert price.status_code == 200, price.text
    finally:
        app.state.farthing.close()

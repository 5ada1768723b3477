"""`farthing requests`: an analyst asks with a study.toml, a curator decides, and the release is charged once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.ledger import open_ledger

STUDY = """\
[dataset]
source = "people.csv"
[schema]
age = { range = [0, 110] }
sex = { categories = ["F", "M"] }
[study]
epsilon = 1.0
ledger = "study.db"
account = "people"
analyst = "bob"
plan_epsilon = 0.2
[[statistics]]
kind = "count"
by = "sex"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "\n".join(f"{20 + n % 60},{'FM'[n % 2]}" for n in range(200))
    (tmp_path / "people.csv").write_text(f"age,sex\n{rows}\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    less = STUDY.replace("plan_epsilon = 0.2", "plan_epsilon = 0.05")
    (tmp_path / "less.toml").write_text(less, encoding="utf-8")
    with open_ledger(tmp_path / "study.db", actor="ada") as ledger:
        ledger.register("people", 1.0, unit="row, add-remove")
        ledger.grant("people", "bob", 0.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, list(words))


def told(*words: str) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def spent(folder: Path) -> float:
    with open_ledger(folder / "study.db", role="auditor", actor="eve") as ledger:
        return ledger.budget("people").spent_upper


@pytest.mark.slow
def test_a_study_is_asked_for_approved_and_released_once(folder: Path) -> None:
    early = run("release", "study.toml", "--yes")
    assert early.exit_code == 2 and "the grant of 'bob'" in early.output
    for words in (run("plan", "study.toml").stdout, early.stderr):
        assert "To ask for it: farthing requests submit study.toml" in words and "To release it" not in words
    asked = told("requests", "submit", "study.toml", "--purpose", "the yearbook")
    number = str(asked["id"])
    assert (asked["state"], asked["steps"][0]["actor"]) == ("open", "bob")
    assert run("requests", "list", "study.db").stdout.startswith(f"request {number}: open; bob asks for epsilon 0")
    shown = run("requests", "show", "study.db", number).stdout
    for words in (
        "purpose: the yearbook",
        "count by sex: ±",
        "1 is left of people",
        "risk: Somebody",
        "history: bob: 1",
    ):
        assert words in shown
    assert told("requests", "show", "study.db", number)["left"]["epsilon"] == 1.0
    own = run("requests", "approve", "study.db", number, "--as", "bob")
    assert own.exit_code == 2 and "is your own; another curator must approve it" in own.output
    approved = run("requests", "approve", "study.db", number, "--as", "ada", "--expires", "2035-12-31")
    assert f"request {number}: approved until 2035-12-31" in approved.stdout
    assert run("requests", "approve", "study.db", number).exit_code == 2
    assert "To release it: farthing release study.toml" in run("plan", "study.toml").stdout
    for _ in range(2):  # the second finds the answers of the first
        released = run("release", "study.toml", "--yes")
        assert released.exit_code == 0, released.output
    assert spent(folder) == pytest.approx(0.2, abs=1e-6)
    assert told("requests", "list", "study.db", "people", "--state", "used")[0]["state"] == "used"


@pytest.mark.slow
def test_a_request_is_changed_declined_and_withdrawn(folder: Path) -> None:
    number = str(told("requests", "submit", "study.toml", "--purpose", "x", "--title", "sexes")["id"])
    changed = run("requests", "change", "less.toml", number, "--reason", "less will do", "--as", "ada")
    assert "approved, version 2" in changed.stdout and "(less will do)" in changed.stdout
    assert run("release", "study.toml", "--yes").exit_code == 2
    assert run("release", "less.toml", "--yes").exit_code == 0
    assert spent(folder) == pytest.approx(0.05, abs=1e-6)
    second = str(told("requests", "submit", "study.toml", "--purpose", "y")["id"])
    assert "declined" in run("requests", "decline", "study.db", second, "--reason", "say why").stdout
    assert f"request {second} for this was declined: say why" in run("release", "study.toml", "--yes").stderr
    third = str(told("requests", "submit", "study.toml", "--purpose", "z")["id"])
    assert run("requests", "withdraw", "study.db", third, "--as", "eve").exit_code == 2
    assert "withdrawn" in run("requests", "withdraw", "study.db", third, "--as", "bob").stdout


@pytest.mark.slow
def test_a_policy_is_granted_shown_used_and_ended(folder: Path) -> None:
    assert run("requests", "policies", "study.db").stdout == "no policies\n"
    words = ("--epsilon", "0.25", "--per", "month", "--statistics", "count, histogram", "--columns", "sex")
    assert "may spend epsilon 0.25 per month" in run("requests", "policy", "study.db", "people", "bob", *words).stdout
    assert run("release", "study.toml", "--yes").exit_code == 0
    assert told("requests", "policies", "study.db", "people")[0]["left"] == pytest.approx(0.05, abs=1e-6)
    assert "has ended" in run("requests", "policy", "study.db", "people", "bob", "--epsilon", "0").stdout


@pytest.mark.slow
def test_a_policy_without_a_delta_says_that_plans_need_one(folder: Path) -> None:
    place = str(folder / "other.db")
    with open_ledger(place) as ledger:
        ledger.register("people", 1.0, 1e-9, unit="row, add-remove")
        ledger.grant("people", "bob", 0.0)
    study = STUDY.replace('ledger = "study.db"', 'delta = 1e-9\nledger = "other.db"')
    (folder / "study.toml").write_text(study, encoding="utf-8")
    words = ("requests", "policy", place, "people", "bob", "--epsilon", "0.25")
    assert "plans of this account need a delta: add --delta 1e-10" in run(*words).stderr
    assert run("release", "study.toml", "--yes").exit_code == 2
    given = run(*words, "--delta", "1e-10")
    assert "note" not in given.stderr and "epsilon 0.25, delta 1e-10 per quarter" in given.stdout
    assert given.stdout == run("requests", "policies", place).stdout
    released = run("release", "study.toml", "--yes")
    assert released.exit_code == 0, released.output


@pytest.mark.parametrize(
    "words",
    [("show", "study.db", "x"), ("show", "study.db", "99"), ("approve", "study.db"), ("list", "study.db", "nobody"),
     ("list", "study.db", "--state", "lost"), ("submit", "study.toml"), ("decline", "study.db", "1"),
     ("policy", "study.db", "people", "bob", "--epsilon", "0.1", "--per", "day")],
)  # fmt: skip
def test_what_is_written_wrongly_is_refused(folder: Path, words: tuple[str, ...]) -> None:
    assert run("requests", *words).exit_code == 2


@pytest.mark.slow
def test_a_synthetic_table_and_a_session_are_asked_for_approved_and_opened_once(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex\n" + "F\nM\n" * 200)
    study = tmp_path / "study.toml"
    study.write_text(
        '[dataset]\nsource = "people.csv"\n[schema]\nsex = { categories = ["F", "M"] }\n[study]\nepsilon = 1.0\n'
        'delta = 1e-9\nledger = "study.db"\naccount = "people"\nanalyst = "bob"\n[expected]\nrows = 400\n'
    )
    place = str(tmp_path / "study.db")
    with open_ledger(place) as ledger:
        ledger.register("people", 1.0, 1e-9, unit="row, add-remove")
        ledger.grant("people", "bob", 0.0)

    def ran(*words: str) -> Result:
        return CliRunner(env={"COLUMNS": "140"}).invoke(main, list(words))

    rows = str(tmp_path / "rows.csv")
    for made, opened in (
        (("synth", str(study), "--epsilon", "0.2"), ("-o", rows)),
        (("ask", str(study), "--alpha", "0.7", "--queries", "5", "--epsilon", "0.2"), ("sex = 'F'",)),
    ):
        asked = ran(*made, "--purpose", "for a course", "--json")
        assert asked.exit_code == 0, asked.output
        number = str(json.loads(asked.stdout)["id"])
        assert "waits for a curator" in ran(*made, *opened, "--yes").output
        shown = ran("requests", "show", place, number).output
        assert "for a course" in shown and "cost: epsilon 0." in shown and "risk:" in shown
        with open_ledger(place) as ledger:  # what is left changes, and what was approved does not
            ledger.charge("people", 0.1, request_id=number)
        assert ran("requests", "approve", place, number).exit_code == 0
        done = ran(*made, *opened, "--yes")
        assert "exceeds" not in done.output and done.exit_code in (0, 2), done.output  # 2: an answer is an estimate
        assert json.loads(ran("requests", "show", place, number, "--json").stdout)["state"] == "used"
        assert "exceeds" not in ran(*made, *opened, "--yes").output  # the same again, free of charge
    with open_ledger(place) as ledger:
        assert ledger.budget("people").spent_upper <= 0.6 + 1e-6 and ledger.verify().ok
        assert ledger.budget("people", "bob").spent_upper == 0

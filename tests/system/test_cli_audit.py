"""`farthing audit`: its table, its JSON, its exit codes, and other people's code."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farthing.auditing import self_test
from farthing.auditing.self_test import all_checks
from farthing.cli import main
from farthing.cli.audit_command import _selection

SOURCE = """
import random

def fair(bit):
    return bit if random.random() < 0.7310585 else 1 - bit

def unfair(bit):
    return bit if random.random() < 0.9 else 1 - bit

class Teller:
    def release(self, value):
        return value

teller = Teller()
nothing = 3
"""


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(main, ["audit", *words])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "audited_here.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_planted_bugs_are_caught_and_the_code_is_0() -> None:
    result = run("--only", "scale", "--only", "naive")
    assert result.exit_code == 0, result.output
    assert "3 planted bugs: all caught" in result.stdout
    assert "private" not in result.stdout.lower()


def test_a_missed_bug_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [replace(check, samples=100) for check in all_checks() if check.name == "scale x 0.9"]
    monkeypatch.setattr(self_test, "all_checks", lambda: checks)
    result = run("--only", "scale x 0.9")
    assert result.exit_code == 1
    assert "1 planted bug: none caught; 1 MISSED." in result.stdout


def test_a_bug_that_a_cap_hides_is_not_called_missed() -> None:
    result = run("--only", "scale x 0.9", "--only", "wrap-around", "--samples", "100")
    assert result.exit_code == 0, result.output
    assert "needs 60,000 samples" in result.stdout and "MISSED" not in result.stdout
    summary = "2 planted bugs: 1 caught; 1 not judged, because --samples 100 is too few to see it (60,000 needed)."
    assert summary in " ".join(result.stdout.split())
    data = json.loads(run("--only", "scale x 0.9", "--samples", "100", "--json").stdout)
    [check] = data["checks"]
    assert (data["good"], check["good"], check["judged"], check["violation"]) == (True, True, False, False)


def test_a_confidence_that_hides_a_bug_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [replace(check, samples=1_000) for check in all_checks() if check.name == "scale x 0.9"]
    monkeypatch.setattr(self_test, "all_checks", lambda: checks)
    result = run("--confidence", "0.999999999999")
    assert result.exit_code == 0, result.output
    assert "needs less confidence" in result.stdout and "MISSED" not in result.stdout
    assert "none caught; 1 not judged, because --confidence asks for too much." in result.stdout


def test_only_takes_every_check_that_holds_the_word() -> None:
    checks = all_checks()
    names = [check.name for check in _selection(checks, ("randomized response",))]
    assert len(names) == 3 and all("randomized response" in name for name in names)
    assert [check.name for check in _selection(checks, ("=Randomized Response",))] == ["randomized response"]
    assert {check.kind for check in _selection(checks, ("planted",))} == {"planted bug"}
    assert len(_selection(checks, ("wrap", "=NaN in"))) == 2
    assert all(_selection(checks, (f"={check.name}",)) == [check] for check in checks)


def test_an_unknown_name_is_answered_with_the_names_one_on_a_line() -> None:
    result = run("--only", "zzz")
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert {f"  {check.name}" for check in all_checks()} <= set(lines)
    assert lines[0].endswith("; the names are") and lines[-1].startswith("and the kinds are")


@pytest.mark.slow
def test_mechanisms_and_bugs_are_told_apart_in_json() -> None:
    result = run("--only", "key", "--samples", "1500", "--json", "--no-progress")
    data = json.loads(result.stdout)
    kinds = {check["kind"] for check in data["checks"]}
    assert kinds == {"mechanism", "planted bug"}
    assert data["confidence"] == 0.999 and data["seconds"] > 0
    assert {"epsilon_lower", "event", "neighbours", "samples", "detectable", "verdict"} <= set(data["checks"][0])
    assert data["good"] == (result.exit_code == 0)


def test_a_claim_that_holds_passes_and_one_that_does_not_is_contradicted(place: Path) -> None:
    options = ("--claim", "1.0", "--neighbours", "[[0, 1]]", "--samples", "20000")
    fair = run("--target", "audited_here:fair", *options, "--confidence", "0.999999")
    assert fair.exit_code == 0, fair.output
    assert "No contradiction" in fair.stdout
    unfair = run("--target", "audited_here:unfair", *options)
    assert unfair.exit_code == 1
    assert unfair.stdout.startswith("The claim (epsilon = 1, delta = 0) is contradicted")


def test_an_object_with_release_is_a_target_and_json_has_its_report(place: Path) -> None:
    result = run(
        "--target", "audited_here:teller", "--claim", "1,1e-6", "--neighbours", "[[0, 1]]", "--samples", "2000",
        "--json",
    )  # fmt: skip
    data = json.loads(result.stdout)
    assert result.exit_code == 1 and data["violation"] is True
    assert data["target"] == "audited_here:teller"


@pytest.mark.slow
def test_a_mechanism_of_farthing_is_audited_against_its_own_event(place: Path) -> None:
    text = "from farthing.mechanisms import DiscreteLaplace\nmechanism = DiscreteLaplace(1.0)\n"
    (place / "with_event.py").write_text(text)
    result = run("--target", "with_event:mechanism", "--neighbours", "[[0, 1]]", "--samples", "1000")
    assert result.exit_code == 0, result.output
    assert "DiscreteLaplaceNoise" in result.stdout


@pytest.mark.slow
def test_the_picture_is_drawn(place: Path) -> None:
    result = run(
        "--target", "audited_here:teller", "--claim", "1", "--neighbours", "[[0, 1]]", "--samples", "1000",
        "--plot", "region.svg",
    )  # fmt: skip
    assert (place / "region.svg").stat().st_size > 1000
    assert "Picture: region.svg" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--samples", "0"), "samples='0': must be at least 100"),
        (("--samples", "many"), "samples='many'"),
        (("--confidence", "1"), "confidence='1': must be between 0 and 1"),
        (("--only", "no such check"), "must be part of a check's name"),
        (("--claim", "1"), "is for --target"),
        (("--neighbours", "[[0, 1]]"), "is for --target"),
        (("--plot", "x.svg"), "can show one audit"),
        (("--plot", "x.pdf"), "must end in .svg"),
        (("--target", "audited_here", "--neighbours", "[[0, 1]]", "--claim", "1"), "must be MODULE:NAME"),
        (("--target", "no_such_module:x", "--neighbours", "[[0, 1]]", "--claim", "1"), "cannot be found"),
        (("--target", "audited_here:missing", "--neighbours", "[[0, 1]]", "--claim", "1"), "cannot be found"),
        (
            ("--target", "audited_here:nothing", "--neighbours", "[[0, 1]]", "--claim", "1"),
            "must be callable",
        ),
        (("--target", "audited_here:fair", "--claim", "1"), "must be given with --target"),
        (
            ("--target", "audited_here:fair", "--neighbours", "[[0, 1]]"),
            "must be given for a mechanism without",
        ),
        (
            ("--target", "audited_here:fair", "--neighbours", "[0, 1]", "--claim", "1"),
            "must be a list of pairs",
        ),
        (("--target", "audited_here:fair", "--neighbours", "{", "--claim", "1"), "must be JSON"),
        (("--target", "audited_here:fair", "--neighbours", "[[0, 1]]", "--claim", "x"), "plain number"),
        (("--target", "audited_here:fair", "--only", "x"), "is not for --target"),
    ],
)
def test_bad_input_is_refused_with_code_2(place: Path, words: tuple[str, ...], message: str) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ndef f(:\n", "(broken.py, line 2: SyntaxError: invalid syntax)"),
        ("x = 1\ny = 1 / 0\n", "(broken.py, line 2: ZeroDivisionError)"),
        ("int('Alice')\n", "(broken.py, line 1: ValueError)"),
        (
            "import numppy\n",
            "(broken.py, line 1: ModuleNotFoundError: No module named 'numppy'); install numppy",
        ),
        ("import json.nowhere\n", "No module named 'json.nowhere'); install json.nowhere"),
        ("from math import roof\n", "ImportError: cannot import name 'roof' from 'math'"),
        ("import numpy\nnumpy.zeros(3).reshape(7)\n", "(broken.py, line 2: ValueError)"),
        ("import sys\n\nsys.exit(0)\n", "(broken.py, line 3: SystemExit)"),
        ("import beside\n", "(beside.py, line 2: KeyError)"),
        ("from farthing.privacy import ApproxDP\nApproxDP(-1)\n", "line 2: InvalidValue: epsilon=-1"),
    ],
)
def test_a_module_that_fails_on_import_is_refused_in_one_line(place: Path, source: str, message: str) -> None:
    """Code 1 would say that a claim was contradicted; the text of a ValueError may quote a row."""
    (place / "broken.py").write_text(source)
    (place / "beside.py").write_text("names = {}\nnames['Alice']\n")
    for module in ("broken", "beside"):
        sys.modules.pop(module, None)
    result = run("--target", "broken:f", "--claim", "1", "--neighbours", "[[0, 1]]")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1 and "Alice" not in result.stderr
    assert "run in the directory" not in result.stderr


def test_a_target_may_import_its_neighbours_when_it_is_called_and_may_not_exit(place: Path) -> None:
    (place / "called_later.py").write_text("constant = 0\n")
    source = "def f(value):\n    import called_later\n    return called_later.constant\n"
    (place / "late.py").write_text(source + "def leave(value):\n    raise SystemExit(1)\n")
    options = ("--claim", "1", "--neighbours", "[[0, 1]]", "--samples", "500")
    before = list(sys.path)
    assert run("--target", "late:f", *options).exit_code == 0
    result = run("--target", "late:leave", *options)
    assert result.exit_code == 2 and "must not end the process" in result.stderr
    assert sys.path == before


def test_help_and_reports_fit_into_80_columns(place: Path) -> None:
    options = ("--claim", "1", "--neighbours", "[[0, 1]]", "--samples", "1000")
    for words in (("--help",), ("--target", "audited_here:fair", *options)):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["audit", *words])
        assert result.exit_code == 0
        assert max(len(line.rstrip()) for line in result.stdout.splitlines()) <= 80

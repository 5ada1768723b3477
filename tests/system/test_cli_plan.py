"""`farthing plan`: errors before spending, and every mistake says what to do and charges nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.ledger import open_ledger
from farthing.study import release
from farthing.study.documents.study_file import read_study
from study_people import table

STUDY = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }
income = { range = [0, 250_000] }
[study]
epsilon = 1.0
ledger = "study.db"
[expected]
rows = 400
[[statistics]]
kind = "count"
by = "sex"
[[statistics]]
kind = "mean"
column = "age"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, list(words))


def charges(study: Path) -> int:
    """How many charges the ledger beside the study has; none where there is no ledger or no dataset."""
    if not (study.parent / "study.db").exists():
        return 0
    with open_ledger(study.parent / "study.db") as ledger:
        return sum(entry.kind in ("charge", "refused") for entry in ledger.entries())


def test_a_plan_is_printed_and_nothing_is_spent(study: Path) -> None:
    result = run("plan", str(study))
    assert result.exit_code == 0, result.output
    for part in ("count by sex", "mean of age", "discrete Laplace", "nothing is spent yet", "To release it"):
        assert part in result.stdout
    hint = f"what does not fit the rows (not private; for the steward): farthing check {study}\n"
    assert result.stdout.count(hint) == 1  # however many statistics they change
    assert charges(study) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["plan"],
        ["ask", "--alpha", "0.3", "--rows", "400", "--columns", "sex", "--plan"],
        ["monitor", "--threshold", "5", "--by", "sex", "--alerts", "1", "--plan"],
        ["synth", "--plan"],
    ],
)
def test_a_plan_leaves_nothing_behind(study: Path, words: list[str]) -> None:
    """Not even an empty ledger: its key would be made, and whoever looks would find a budget that is none."""
    before = sorted(path.name for path in study.parent.iterdir())
    result = run(words[0], str(study), *words[1:])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in study.parent.iterdir()) == before


@pytest.mark.slow
def test_a_plan_of_a_spent_ledger_says_that_an_older_version_released_it(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It kept no words with its answers; `farthing release` returns them by the text of the file."""
    asked = read_study(study)
    predicted = release.predicted

    def of_old(plan: Any) -> dict[str, Any]:
        return {key: value for key, value in predicted(plan).items() if key not in ("asked", "made")}

    with monkeypatch.context() as patch:
        patch.setattr(release, "predicted", of_old)
        opened = asked.study()
        asked.plan(opened).release(asked.request_id)
        opened.close()
    told = run("plan", str(study))
    assert told.exit_code == 0, told.output
    assert "was released before" in told.stdout and "farthing release returns those answers" in told.stdout
    assert json.loads(run("plan", str(study), "--json").stdout)["released"] is True
    assert "Answered from the ledger" in run("release", str(study)).stdout
    study.write_text(STUDY.replace('by = "sex"', ""), encoding="utf-8")  # which nobody released
    assert run("plan", str(study)).exit_code == 2


def test_the_file_is_study_toml_unless_named(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.parent)
    assert run("plan").exit_code == 0


def test_json_has_the_keys_programs_read(study: Path) -> None:
    result = run("plan", str(study), "--json")
    told = json.loads(result.stdout)
    assert [one["name"] for one in told["statistics"]] == ["count by sex", "mean of age"]
    for one in told["statistics"]:
        assert one["error"] > one["standard_error"] > 0 and one["mechanism"] and one["epsilon"] > 0
    assert told["cost"]["lower"] <= told["cost"]["upper"] <= 1
    assert {"basic", "advanced", "kov", "optimal"} <= set(told["price"])


@pytest.mark.slow
def test_what_is_assumed_is_answered_in_the_file_and_not_in_python(study: Path) -> None:
    study.write_text(STUDY.replace("rows = 400\n", ""), encoding="utf-8")
    told = run("plan", str(study), "--explain").stdout
    assert "write rows = ... under [expected]" in told and "write sex = ... under [expected]" in told
    assert "expected={" not in told
    study.write_text(STUDY.replace("rows = 400\n", "") + "within = 0.001\n", encoding="utf-8")
    refused = run("plan", str(study))
    assert refused.exit_code == 2 and "write rows = ... under [expected]" in refused.stderr


def test_explain_says_what_is_measured(study: Path) -> None:
    assert "What is measured" in run("plan", str(study), "--explain").stdout


@pytest.mark.slow
def test_a_picture_is_drawn(study: Path) -> None:
    result = run("plan", str(study), "--plot", str(study.parent / "plan.svg"))
    assert result.exit_code == 0, result.output
    assert (study.parent / "plan.svg").read_text().startswith("<svg")


MISTAKES = [
    ('column = "age"', 'column = "aeg"', "column='aeg': must be a column of the schema; did you mean age"),
    ("range = [0, 110]", "range = [110, 0]", "lower must not exceed upper"),
    ('by = "sex"', "by = []", "by=[]: must name at least one column; leave it out"),
    (
        'kind = "mean"',
        'kind = "histogram"\nbins = 10_000_000',
        "must be at most 10,000; use fewer, wider bins",
    ),
    ('kind = "mean"', 'kind = "quantile"\nprobability = 1.2', "must lie between 0 and 1"),
    ('kind = "mean"', 'kind = "mean"\nwithin = 3\nconfidence = 95', "write 0.95 for 95 percent"),
    ("epsilon = 1.0", "epsilon = 0.0", "epsilon=0.0: must be > 0"),
    ("epsilon = 1.0", "epsilon = nan", "epsilon=nan"),
    ("epsilon = 1.0", "epsilom = 1.0", "study.epsilom=1.0: is not known; did you mean epsilon"),
    ('ledger = "study.db"', "", 'study.ledger=None: must be given; write ledger = "study.db"'),
    ('ledger = "study.db"', 'ledger = "no/such/study.db"', "ledger unavailable"),
    ("people.parquet", "nobody.parquet", "does not exist"),
    ('kind = "mean"', 'kind = "mean"\nwithin = 0.001', "cannot be met"),
    ('kind = "mean"', 'kind = "mean"\nwhere = "agee > 3"', "agee"),
    ("rows = 400", "rows = -4", "must be a number of rows"),
]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize(("before", "after", "message"), MISTAKES, ids=[case[2][:30] for case in MISTAKES])
def test_a_mistake_says_what_to_do_and_nothing_is_charged(
    study: Path, command: str, before: str, after: str, message: str
) -> None:
    assert before in STUDY
    study.write_text(STUDY.replace(before, after), encoding="utf-8")
    result = run(command, str(study), *(["--yes"] if command == "release" else []))
    assert result.exit_code == 2, result.output
    assert message in result.stderr and "Traceback" not in result.output
    assert charges(study) == 0


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    result = run("plan", str(tmp_path / "nothing.toml"))
    assert result.exit_code == 2 and "cannot be read (No such file or directory); check the path" in result.stderr

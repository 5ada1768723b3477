"""`farthing plan` and `farthing release`: a table whose rows are other people's than recorded is refused in words."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.ledger import open_ledger

STUDY = """\
[dataset]
source = "payments.csv"
unit = "sender"
max_rows = 1
[schema]
amount = { range = [0, 100] }
[study]
epsilon = 1.0
plan_epsilon = 0.25
ledger = "study.db"
account = "people"
[[statistics]]
kind = "count"
"""
REFUSED = "unit='by receiver': must be 'by sender': the account 'people' counts the rows of payments.csv so"


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "400"}).invoke(main, list(words))


def test_a_study_by_another_owner_of_the_same_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "payments.csv").write_text("sender,receiver,amount\n" + "1,2,30\n" * 9)
    first, second = tmp_path / "senders.toml", tmp_path / "receivers.toml"
    first.write_text(STUDY)
    second.write_text(STUDY.replace('"sender"', '"receiver"'))
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
    assert run("release", str(first), "--yes").exit_code == 0
    for words in (("plan", str(second)), ("release", str(second), "--yes")):
        refused = run(*words)
        assert refused.exit_code == 2, refused.output
        assert REFUSED in " ".join(refused.output.split())
    with open_ledger(tmp_path / "study.db") as ledger:
        assert ledger.budget("people").count == 1

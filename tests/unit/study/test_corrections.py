"""A wrong declaration is corrected under the same account, with an entry; whom it protects is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import farthing as ft
from farthing.cli.commands import main
from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger import open_ledger


def test_a_correction_is_an_entry_and_no_second_budget(tmp_path: Path) -> None:
    file, place = tmp_path / "people.csv", str(tmp_path / "study.db")
    file.write_text("age,person\n30,1\n41,2\n")
    old, new = (ft.dataset(file, schema={"age": (0, top)}) for top in (110, 120))
    study = ft.Study(old, epsilon=1.0, ledger=place)
    study.plan(ft.count(), epsilon=0.25).release()
    study.close()
    again = ft.Study(new, epsilon=1.0, ledger=place)
    before = again.budget
    assert list(again.correct(old, "some are older")) == ["age"]
    assert (again.budget, again.ledger.datasets()) == (before, ["people.csv"])
    entry = list(again.ledger.entries())[-1]
    assert (entry.kind, entry.body["source"], entry.totals_text) == ("correction", "people.csv", "")
    assert again.ledger.verify().ok
    with pytest.raises(InvalidValue, match="nothing is to be corrected"):
        again.correct(new, "nothing")
    by_person = ft.dataset(file, schema={"age": (0, 110)}, unit="person", max_rows=1)
    replaced = ft.dataset(file, schema={"age": (0, 110)}, neighbours="replace")
    for other in (by_person, replaced):
        with pytest.raises(InvalidValue, match="whom an account protects is not corrected"):
            again.correct(other, "to spend more")
    for name in ("unit", "Neighbours"):
        with pytest.raises(InvalidValue, match="must not be corrected: it is whom the account protects"):
            again.ledger.correct("people.csv", {name: ("person", "row")}, "to spend more")
    again.close()
    with open_ledger(place, role="auditor") as auditor, pytest.raises(NotAllowed):
        auditor.correct("people.csv", {"age": ("0 to 110", "0 to 120")}, "not theirs")
    words = ["--what", "age", "--before", "0 to 120", "--after", "0 to 115", "--reason", "nobody is"]
    done = CliRunner().invoke(main, ["ledger", "correct", place, "people.csv", *words])
    assert done.exit_code == 0 and "age was 0 to 120 and is 0 to 115 in later releases (nobody is)" in done.output
    assert "change age in every study.toml" in done.output and "not checked" not in done.output
    unknown = CliRunner().invoke(main, ["ledger", "correct", place, "people.csv", "--what", "agee", *words[2:]])
    assert unknown.exit_code == 2 and "must be a column of people.csv" in " ".join(unknown.output.split())
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["ledger", "show", place]).output
    assert "correction" in shown and "in later releases (some are older)" in " ".join(shown.split())

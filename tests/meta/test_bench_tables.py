"""The bench of big tables measures the same answers, and judges by the numbers of the run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from benchmarks.tables import by_farthing, by_hand, in_fresh_process, make_table, show_runs, table_targets
from rich.console import Console


def test_everybody_gives_the_same_answer(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    make_table(path, 3_000, 100)
    for unit, kept in (("person", 300), ("name", 300), ("", 3_000)):
        counts = {
            by_farthing(str(path), unit)(),
            *(by_hand(str(path), unit, s)() for s in ("by hand", "window")),
        }
        assert counts == {kept}


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_run_in_a_fresh_process_comes_back_or_says_how_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    make_table(path, 100, 10)
    found = in_fresh_process(path, "name", "farthing", 120)
    assert found["rows"] == 30 and found["megabytes"] > 10 and found["seconds"] > 0
    assert in_fresh_process(path, "name", "farthing", 0.01)["failure"].startswith("stopped after")
    assert "failure" in in_fresh_process(tmp_path / "nothing.parquet", "", "by hand", 120)


def test_the_faster_of_the_queries_by_hand_is_the_measure() -> None:
    def run(who: str, cpu: float, megabytes: float = 100.0) -> dict[str, Any]:
        return {"unit": "person", "who": who, "cpu": cpu, "seconds": cpu, "megabytes": megabytes}

    found = [run("farthing", 2.0, 2_000.0), run("by hand", 1.0), run("window", 4.0)]
    ratio, memory, *others = table_targets(found, 10_000_000)
    assert (ratio.measured, ratio.met) == ("2.00×", False)
    assert memory.met is False
    assert [target.met for target in others] == [None] * 4
    assert table_targets([run("farthing", 1.2), run("by hand", 1.0)], 10_000_000)[0].met is True
    assert [target.met for target in table_targets(found, 1_000)] == [None] * 6
    console = Console(record=True, width=120, file=io.StringIO())
    show_runs(console, [*found, {"unit": "", "who": "by hand", "failure": "died"}], 10)
    assert "died" in console.export_text()

"""The bench of the ledger: a filled ledger is a real one, measurements come back, promises are judged by the run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from benchmarks.ledger import (
    BUDGET,
    EPSILON,
    Load,
    Opening,
    in_fresh_process,
    ledger_targets,
    loads,
    show_loads,
)
from benchmarks.ledger_filling import fill
from rich.console import Console

from farthing.ledger import open_ledger


def test_a_filled_ledger_verifies_and_counts_every_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        assert fill(ledger, 30, BUDGET, EPSILON) == 32
        assert fill(ledger, 50, BUDGET, EPSILON) == 52
        ledger.charge("people", EPSILON, request_id="one more")
    with open_ledger(path) as ledger:
        assert ledger.verify().ok and ledger.budget("people").count == 51
        assert 0 < ledger.budget("people").spent_upper <= 51 * EPSILON * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_four_clients_are_measured_on_sqlite() -> None:
    found = list(loads([20], 0.05, 120, lambda _: None, "sqlite"))
    assert [load.what for load in found if isinstance(load, Load)] == ["raw", "alone", "charge", "answer"]
    assert all(load.rate and load.p50 <= load.p99 for load in found if isinstance(load, Load))
    assert isinstance(found[-1], Opening) and found[-1].entries > 22


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_measurement_that_fails_says_how(tmp_path: Path) -> None:
    task = {"do": "opening", "url": str(tmp_path / "no" / "ledger.db"), "key": None}
    assert "LedgerUnavailable" in in_fresh_process(task, 60)["failure"]
    assert in_fresh_process(task, 0.01)["failure"].startswith("stopped after")


def test_promises_are_judged_by_the_slowest_size() -> None:
    found = [
        Load("sqlite", 2, "raw", 2_000.0, 0.5, 1.0, 0.1),
        Load("sqlite", 2, "alone", 900.0, 1.0, 2.0, 0.4),
        Load("sqlite", 2, "charge", 1_500.0, 2.0, 9.0, 0.4),
        Load("sqlite", 1_000_000, "raw", 2_000.0, 0.5, 1.0, 0.1),
        Load("sqlite", 1_000_000, "alone", 600.0, 1.5, 2.0, 0.4),
        Load("sqlite", 1_000_000, "charge", 900.0, 3.0, 11.0, 0.4),
        Load("postgres", 2, "raw", 900.0, 1.0, 2.0, 0.1),
        Load("postgres", 2, "alone", 400.0, 2.0, 3.0, 0.4),
        Load("postgres", 2, "charge", 600.0, 3.0, 8.0, 0.4),
        Load("postgres", 1_000_000, "alone", 400.0, 2.2, 3.0, 0.4),
        Load("postgres", 1_000_000, "charge", 600.0, 9.0, 8.0, 0.4),
        Opening("sqlite", 1_000_000, 100.0, 90.0),
    ]
    judged = [(target.measured, target.met) for target in ledger_targets(found)]
    assert judged == [
        ("900", False), ("11.00 ms", False), ("1.50×", False), ("600", True), ("8.00 ms", True), ("1.10×", True),
    ]  # fmt: skip
    nothing = ledger_targets([Load("sqlite", 0, "charge", failure="no server")])
    assert [target.met for target in nothing] == [None] * 6
    console = Console(record=True, width=140, file=io.StringIO())
    show_loads(console, [*found, Load("postgres", 0, "charge", failure="no server")])
    text = console.export_text()
    assert "6.00×" in text and "no server" in text and "90 µs" in text

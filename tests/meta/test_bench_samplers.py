"""The bench of samplers: every sampler draws what it says, tables hold every measurement, promises are judged."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from benchmarks import samplers
from benchmarks.race import ask
from benchmarks.report import save
from benchmarks.samplers import DISTRIBUTIONS, SAMPLERS, Speed, drawing, sampler_targets, show_speeds, speeds
from rich.console import Console


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_every_sampler_draws_as_many_cells_as_it_is_timed_for(distribution: str, sampler: str) -> None:
    drawn = drawing(distribution, 100, sampler, 200)()
    assert len(drawn) == 200
    assert 20 < max(abs(int(n)) for n in drawn) < 5_000  # of the order of the scale: missed once in 10^20 runs


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_worker_measures_a_vector() -> None:
    data = ask(60, what="sampling", distribution="Laplace", scale=10, sampler="vector", size=1_000)
    assert 0 < data["seconds"] <= data["first_seconds"]


def test_every_sampler_is_measured_on_every_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "ask", lambda *_, **__: {"seconds": 0.5, "first_seconds": 1.0})
    measured = list(speeds(True, 1.0, lambda _: None))
    for size in (1_000, 100_000):
        kinds = {(s.distribution, s.sampler) for s in measured if s.size == size}
        assert kinds == {(distribution, sampler) for distribution in DISTRIBUTIONS for sampler in SAMPLERS}


def test_tables_and_promises_hold_the_numbers_of_the_run(tmp_path: Path) -> None:
    measured = [
        Speed("Laplace", 100, "vector", 1_000_000, 0.2, 0.1),
        Speed("Laplace", 100, "opendp", 1_000_000, 7.0, 7.0),
        Speed("Gaussian", 100, "vector", 1_000_000, 0.2, 0.1),
        Speed("Gaussian", 100, "opendp", 1_000_000, 0.3, 0.3),
        Speed("Gaussian", 100, "scalar", 1_000_000, None, None, "stopped after 60 s"),
    ]
    console = Console(record=True, width=140, file=io.StringIO())
    show_speeds(console, measured)
    text = console.export_text()
    assert "10,000,000" in text and "failed" in text and "stopped after 60 s" in text
    promises = sampler_targets(measured)
    assert [(t.measured, t.met) for t in promises] == [("70×", True), ("3×", False)]
    assert [t.met for t in sampler_targets(measured[:1])] == [None, None]
    page = save(tmp_path, [], promises, measured).read_text(encoding="utf-8")
    assert "| Laplace, scale 100 | farthing, vector | 1,000,000 | 0.2 | 0.1 | 10,000,000 |" in page
    assert len(json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))["samplers"]) == 5

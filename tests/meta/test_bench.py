"""The bench measures what it says: its truths are true, its workers stop, its tables hold every result."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from benchmarks import race, targets
from benchmarks.cases import CASES, Case
from benchmarks.race import Result
from benchmarks.report import rows_of, save, show, show_targets
from benchmarks.truth import _of_transform, true_epsilon
from rich.console import Console

from farthing import compose


@pytest.mark.parametrize(("name", "published"), [("a", 4.774568), ("a15", 7.631074), ("a20", 8.664980)])
def test_the_binomial_truth_has_the_published_digits(name: str, published: float) -> None:
    assert true_epsilon(CASES[name]) == pytest.approx(published, abs=5e-7)


def test_the_three_routes_to_a_truth_agree() -> None:
    """The same ten charges as a binomial, as atoms and as an integral (a Gaussian factor would blur the last one)."""
    import math

    from benchmarks.truth import _of_atoms, _of_binomial

    binomial, atoms = _of_binomial(0.1, 10, 1e-3), _of_atoms([0.1] * 10, 1e-3)  # type: ignore[arg-type]
    assert binomial == pytest.approx(atoms, abs=1e-12)
    gaussian = _of_transform(lambda z: z * (z + 1) / 2, 1e-5)  # one Gaussian answer with noise multiplier 1

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    assert normal(0.5 - gaussian) - math.exp(gaussian) * normal(-0.5 - gaussian) == pytest.approx(1e-5, rel=1e-9)


@pytest.mark.parametrize("name", ["a", "a15", "a20", "c", "d100", "mix"])
def test_farthings_proof_holds_the_independent_truth(name: str) -> None:
    from benchmarks.contenders import farthing

    answer = farthing(CASES[name], proof=True)()
    assert answer.lower is not None and answer.upper is not None
    assert answer.lower - 1e-11 <= true_epsilon(CASES[name]) <= answer.upper + 1e-11


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_worker_that_takes_too_long_is_stopped_and_says_so() -> None:
    assert race.ask(0.01, what="truth", case="a") == {"failure": "stopped after 0 s"}


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_worker_that_fails_says_how() -> None:
    assert "KeyError" in race.ask(60, what="measure", case="a", contender="nobody", options={})["failure"]


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_measurement_comes_back_whole() -> None:
    data = race.ask(60, what="measure", case="a", contender="farthing", options={"proof": True})
    exact = compose([0.1] * 100).epsilon_at(1e-6)
    assert data["lower"] <= exact.upper and exact.lower <= data["upper"]
    assert data["seconds"] > 0
    assert data["peak_megabytes"] > 5


def test_tables_show_errors_wrong_sides_and_failures(tmp_path: Path) -> None:
    measured = {"seconds": 0.5, "peak_megabytes": 100.0}
    results = [
        Result("a", "truth", {"epsilon": 4.0}),
        Result("a", "farthing, proven", {"epsilon": 4.0, "lower": 3.9, "upper": 4.1, **measured}),
        Result("a", "peer", {"epsilon": 3.5, "lower": None, "upper": 3.5, **measured}),
        Result("a", "another", {"failure": "stopped after 60 s"}),
    ]
    rows = rows_of("a", results)
    assert [row[0] for row in rows] == ["farthing, proven", "peer", "another"]
    assert rows[0][3] == "< 1e-12"
    assert rows[1][3] == "-5.0e-01 WRONG SIDE"
    assert rows[2][1] == "stopped after 60 s"
    console = Console(record=True, width=120, file=io.StringIO())
    promise = targets.Target("x", "under 1 ms", "2 ms", False)
    show(console, "a", results)
    show_targets(console, [promise])
    assert "WRONG SIDE" in console.export_text(clear=False)
    assert "missed" in console.export_text()
    page = save(tmp_path, results, [promise]).read_text(encoding="utf-8")
    assert "| peer | 3.5 | one side only | -5.0e-01 WRONG SIDE |" in page
    assert json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))["targets"][0]["met"] is False


def test_promises_are_judged_by_the_numbers_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "ask", lambda *_, **__: {"seconds": 0.05})

    def d1000(name: str, epsilon: float, width: float, seconds: float) -> Result:
        sides = {"lower": epsilon - width / 2, "upper": epsilon + width / 2}
        return Result("d1000", name, {"epsilon": epsilon, "seconds": seconds, **sides})

    results = [
        Result("d1000", "truth", {"epsilon": 4.0}),
        d1000("farthing, proven", 4.0, 1e-8, 0.1),
        d1000("farthing, proof=False", 4.0 + 1e-13, 0.0, 0.01),
        d1000("dp-accounting, 1e-4", 4.05, 0.0, 10.0),
    ]
    verdicts = {t.what: t.met for t in targets.targets(results, True, 1.0, lambda _: None)}
    assert verdicts["k = 1,000: proof=False faster than dp-accounting"] is True
    assert verdicts["k = 1,000: proven interval tighter by"] is True
    assert verdicts["1,000 decimal charges, proven"] is True
    assert verdicts["1,000,000 × 0.001, proven"] is None  # that case was not run
    slower = [*results[:2], d1000("farthing, proof=False", 4.0, 0.0, 1.0), results[3]]
    verdicts = {t.what: t.met for t in targets.targets(slower, True, 1.0, lambda _: None)}
    assert verdicts["k = 1,000: proof=False faster than dp-accounting"] is False


def test_charges_of_a_case_are_the_same_in_every_process() -> None:
    case = Case("x", "x", 1e-6, "distinct", 3, 0.01, 0.03)
    assert case.epsilons().tolist() == case.epsilons().tolist()
    assert len(set(case.epsilons().tolist())) == 3

"""Answers of a session beside the population its rows were drawn from, with an analyst who looks for chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farthing.adaptive import MemoryJournal, QuerySession, plan_query_session, population_errors
from farthing.adaptive.query_session import Axis
from farthing.errors import InvalidValue

CELLS, ROWS = 256, 20_000


def overfitted(answer, rng: np.random.Generator, questions: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The cells that more than half of the questions count whose answers were above one half: made to fit the rows."""
    votes = np.zeros(CELLS)
    for _ in range(questions):
        half = np.zeros(CELLS, dtype=bool)
        half[rng.permutation(CELLS)[: CELLS // 2]] = True
        votes += (2 * half - 1.0) * math.copysign(1, answer(half) - 0.5)
    chosen = np.zeros(CELLS, dtype=bool)
    chosen[np.argsort(votes)[CELLS // 2 :]] = True
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_population_errors_hold_against_an_analyst_who_fits_chance_and_plain_answers_do_not(seed: int) -> None:
    """All cells are alike in the population: half of them is a half, and more is chance. Six deviations or more."""
    rng = np.random.default_rng(seed)
    cells = rng.multinomial(ROWS, np.full(CELLS, 1 / CELLS))
    exact = overfitted(lambda half: cells[half].sum() / ROWS, rng, 300)
    assert cells[exact].sum() / ROWS - 0.5 > 6 * 0.5 / math.sqrt(ROWS)

    plan = plan_query_session(CELLS, 1.0, 1e-9, alpha=0.05, queries=301, rows=ROWS, start="none", confidence=1 - 1e-10)
    session = QuerySession(plan, [Axis("cell", range(CELLS))], lambda: cells, MemoryJournal())
    fitted = overfitted(lambda half: session.ask(half.astype(int)).value / ROWS, rng, 300)
    last = session.ask(fitted.astype(int)).value / ROWS
    bound = population_errors(plan, failure=1e-10)
    assert abs(last - 0.5) <= bound.free
    assert bound.free < 0.25 and bound.confidence > 1 - 1e-9


def test_the_bound_narrows_with_rows_and_widens_with_questions_and_updates() -> None:
    def free(rows: int = 10**6, queries: int = 1000, updates: int = 4) -> float:
        plan = plan_query_session(256, 0.5, 0.0, 0.1, queries, rows, start="none", updates=updates)
        return population_errors(plan).sampling

    assert free() > free(rows=10**7) and free() < free(queries=10**5) and free() < free(updates=20)


def test_a_private_transcript_says_little_of_its_rows() -> None:
    """With noisy cells at the start only privacy bounds it; at epsilon 0.01 the shift is tanh(0.005)."""
    plan = plan_query_session(64, 0.01, 0.0, 0.05, 100, 10**6, start="cells", confidence=1 - 1e-9)
    found = population_errors(plan, failure=0.01)
    assert found.route == "privacy" and found.sampling == pytest.approx(math.tanh(0.005), rel=1e-6)
    assert found.free == pytest.approx(plan.error / plan.rows + found.sampling + 2e-9 / 0.01, rel=1e-6)
    assert population_errors(plan_query_session(64, 1.0, 0.0, 0.05, 100, 10**6, start="cells")).free == 1.0


@pytest.mark.parametrize("failure", [0, 1, -0.1, math.nan])
def test_a_failure_that_is_no_probability_is_refused(failure: float) -> None:
    plan = plan_query_session(16, 1.0, 0.0, 0.1, 10, 10**5)
    with pytest.raises(InvalidValue, match="failure"):
        population_errors(plan, failure)

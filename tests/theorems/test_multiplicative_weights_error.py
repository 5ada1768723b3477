"""How far the noises of a session go, beside the distribution of a maximum and beside whole sessions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.adaptive.query_session import QuerySession, plan_query_session
from farthing.adaptive.query_session.session_rounds import reach_of_noise
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import BudgetExceeded
from farthing.statistics.cells.cell_axes import Axis
from sources import TestSource


def above(rate: float, draws: int, t: int) -> float:
    """P[max > t], written out."""
    return 1 - (1 - math.exp(-rate * (t + 1))) ** draws


@pytest.mark.parametrize("rate", [5.0, 0.3, 0.01])
@pytest.mark.parametrize("draws", [1, 7, 20_000])
@pytest.mark.parametrize("failure", [0.5, 0.01, 1e-5])
def test_reach_is_the_least_that_the_law_allows(rate: float, draws: int, failure: float) -> None:
    found = reach_of_noise(Fraction(rate), draws, failure)
    assert above(rate, draws, found) <= failure * (1 + 1e-6)
    if found:
        assert above(rate, draws, found - 1) > failure * (1 - 1e-6)


def test_reach_grows_with_draws_and_falls_with_rate_and_failure() -> None:
    assert reach_of_noise(Fraction(1, 9), 1, 0.05) < reach_of_noise(Fraction(1, 9), 100, 0.05)
    assert reach_of_noise(Fraction(1, 9), 10, 0.05) > reach_of_noise(Fraction(1, 2), 10, 0.05)
    assert reach_of_noise(Fraction(1, 9), 10, 0.05) < reach_of_noise(Fraction(1, 9), 10, 1e-9)
    assert reach_of_noise(Fraction(60), 1, 0.5) == 0


def failures(scale: float, sessions: int) -> int:
    """Sessions in which some answer was farther off than promised; rounds with noise of another scale."""
    axes = [Axis("x", range(8))]
    plan = plan_query_session(axes, 1.0, 0.0, alpha=0.35, queries=40, rows=400, updates=2, start="none")
    counts, source, failed = np.array([200, 0, 0, 100, 100, 0, 0, 0]), TestSource(3), 0
    other = type(plan.round)(plan.round_epsilon / scale, plan.threshold, plan.sensitivity, plan.threshold_parts)
    for _ in range(sessions):
        session = QuerySession._with_source(plan, axes, lambda: counts, MemoryJournal(), source)
        try:
            for width in range(1, 9):
                for start in range(9 - width):
                    if session._asking is None:
                        session._current_round()
                        session._asking = other._start(source)
                    answer = session.ask({"x": (start, start + width)} if width < 8 else "all")
                    truth = counts[start : start + width].sum()
                    if answer.error is not None and abs(answer.value - truth) > answer.error:
                        raise AssertionError
        except AssertionError:
            failed += 1
        except BudgetExceeded:
            pass
    return failed


@pytest.mark.slow
def test_the_promise_for_all_answers_holds_and_ten_times_the_noise_breaks_it() -> None:
    """At confidence 0.95 fifteen of 40 sessions fail by chance less than once in 1e9."""
    assert failures(1.0, 40) < 15 <= failures(10.0, 40)

"""The clock in games against analysts who see every loss, and filters with planted faults in the same games.

`python -m benchmarks.clock_games` and `benchmarks.account_games` play ten thousand of them; here are the first few.
"""

from __future__ import annotations

import itertools
import math

import pytest
from benchmarks import account_games
from benchmarks.clock_games import FAULTS, Game, Question, drawn_games, played, questions_of, with_filter

from adaptive_adversary import Adversary
from farthing.accounting import compose
from farthing.accounting.filters import ClockFilter
from farthing.privacy import ApproxDP, GaussianNoise


@pytest.mark.slow
def test_no_game_is_lost() -> None:
    outcome = played(drawn_games(1), with_filter(ClockFilter), 30)
    assert outcome.games == 30
    assert outcome.holds and outcome.worst > 0.7, outcome  # and some come close


@pytest.mark.slow
def test_games_go_down_to_small_deltas_and_have_every_kind_of_question() -> None:
    games = list(itertools.islice(drawn_games(1), 300))
    assert min(game.delta for game in games) < 1e-11 and max(game.delta for game in games) > 0.1
    kinds = {type(question.charge).__name__ for game in games for question in game.menu}
    assert kinds == {"ApproxDP", "BoundedRange", "GaussianNoise", "Sampled"}
    assert any(question.leak for game in games for question in game.menu)
    assert any(question.up != question.down for game in games for question in game.menu)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught_in_the_same_games(fault: str) -> None:
    """Games are played one by one until one is lost, which takes at most a hundred."""
    games = (played([game], FAULTS[fault], 1) for game in itertools.islice(drawn_games(1), 100))
    assert any(not outcome.holds for outcome in games)


@pytest.mark.slow
def test_no_game_is_lost_by_an_account_whose_budget_is_raised() -> None:
    outcome = played(account_games.both(1), account_games.kept(account_games.Kept), 12)
    assert outcome.holds and outcome.worst > 0.7, outcome


@pytest.mark.parametrize("fault", [account_games.AllOfDelta, account_games.StandingClock], ids=repr)
def test_an_account_needs_shares_of_delta_and_a_clock_that_goes_on(fault: type[account_games.Kept]) -> None:
    game = account_games.LUCKY_PATHS
    assert game.reached(account_games.kept(account_games.Kept)(game)) <= game.delta
    assert game.reached(account_games.kept(fault)(game)) > 1.3 * game.delta


def test_the_game_finds_what_the_recursion_over_strategies_finds() -> None:
    menu = (Question(ApproxDP(0.3), 3, 3), Question(ApproxDP(0.7), 7, 7), Question(ApproxDP(0.2, 0.01), 2, 2, 0.01))
    game = Game(epsilon=1.0, delta=0.1, leak=0.02, step=0.1, menu=menu)
    budget = ClockFilter(1.0, 0.1, leak=0.02)
    slow = Adversary(((3, 0.0), (7, 0.0), (2, 0.01)), 1.0).delta(budget)
    assert 0 < game.reached(budget) == pytest.approx(slow, rel=1e-12)


@pytest.mark.parametrize(("size", "skew", "step"), [(4, 2, 0.1), (3, 0, 0.02), (6, 5, 0.3)])
def test_the_charge_of_a_question_dominates_it(size: int, skew: int, step: float) -> None:
    for kind in ("response", "range", "noise", "sample"):
        for question in questions_of(kind, size, skew, step, 0.0):
            curve = compose([question.charge])
            for epsilon in (0.0, 0.3 * size * step, 0.9 * size * step):
                p = question.chance(step)
                hockey_stick = p * max(0.0, -math.expm1(epsilon - question.up * step))
                assert hockey_stick <= curve.delta_at(epsilon).upper * (1 + 1e-7)


def test_a_charge_that_does_not_dominate_would_be_seen() -> None:
    question = questions_of("noise", 4, 2, 0.1, 0.0)[0]
    assert isinstance(question.charge, GaussianNoise)
    weaker = compose([GaussianNoise(question.charge.noise_multiplier * 1.01)])
    p = question.chance(0.1)
    assert any(p * -math.expm1(e - question.up * 0.1) > weaker.delta_at(e).upper for e in (0.0, 0.1, 0.2, 0.3))

"""The adaptive composition game: answers have the distributions they claim, and the filter holds against strategies."""

from __future__ import annotations

import math
from statistics import fmean, pstdev

import pytest

from farthing.accounting.compose import compose
from farthing.accounting.composition_game import CompositionGame, FixedCharges, Strategy, right_at_most
from farthing.accounting.filters import BasicFilter, ClockFilter, FullyAdaptiveFilter
from farthing.accounting.game_strategies import at_once, compete, planned, pressing, steady, tally
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.privacy import ApproxDP, BoundedRange, GaussianNoise, LaplaceNoise, RandomizedResponse

WIDE = BasicFilter(1e6, 0.9)


def answers(charge: object, games: int, secret: int) -> list[float]:
    """First answers of games whose secret is the given one."""
    found: list[float] = []
    budget = ClockFilter(20.0, 0.4)
    for seed in range(2 * games + 200):
        game = CompositionGame(budget, seed=seed)
        if game.finish().secret == secret:
            answer = game.ask(charge).answer  # type: ignore[arg-type]
            assert answer is not None
            found.append(answer)
    return found[:games]


def test_the_same_seed_is_the_same_game_and_later_charges_change_nothing_before() -> None:
    first, second = CompositionGame(WIDE, seed=5), CompositionGame(WIDE, seed=5)
    for game, last in ((first, 0.3), (second, 2.0)):
        game.ask(0.1)
        game.ask(LaplaceNoise(3.0))
        game.ask(last)
    assert first.rounds[:2] == second.rounds[:2]
    assert first.finish().secret == second.finish().secret == first.finish().secret


@pytest.mark.slow
def test_randomized_responses_tell_the_truth_as_often_as_epsilon_says() -> None:
    """4,000 draws, seeds fixed: 0.7311 within four standard errors, which 1.1 or 0.9 times epsilon would miss."""
    share = fmean(answers(1.0, 4000, 1))
    assert abs(share - 1 / (1 + math.exp(-1))) < 0.02
    assert fmean(answers(RandomizedResponse(1.0), 4000, 0)) == pytest.approx(1 - share, abs=0.03)


@pytest.mark.slow
def test_noise_has_the_deviation_that_its_event_claims() -> None:
    """Within 5 percent with 4,000 draws, so that noise a tenth off fails."""
    for charge, deviation in ((GaussianNoise(3.0), 3.0), (LaplaceNoise(3.0), 3.0 * math.sqrt(2))):
        for secret in (0, 1):
            drawn = answers(charge, 4000, secret)
            assert pstdev(drawn) == pytest.approx(deviation, rel=0.05)
            assert fmean(drawn) == pytest.approx(secret, abs=0.2)


def test_losses_are_log_likelihood_ratios() -> None:
    game = CompositionGame(ClockFilter(20.0, 0.4), seed=1)
    for charge in (GaussianNoise(2.0), LaplaceNoise(2.0), 0.7):
        played = game.ask(charge)
        x = played.answer
        assert x is not None
        if isinstance(charge, GaussianNoise):
            expected = (x**2 - (x - 1) ** 2) / (2 * 2.0**2)
        elif isinstance(charge, LaplaceNoise):
            expected = (abs(x) - abs(x - 1)) / 2.0
        else:
            expected = 0.7 if x == 1 else -0.7
        assert played.loss == pytest.approx(expected)
    assert game.total == pytest.approx(sum(played.loss for played in game.rounds))


def test_a_leak_tells_the_secret_as_often_as_delta_says() -> None:
    certain = 0
    for seed in range(2000):
        game = CompositionGame(BasicFilter(1.0, 0.5), seed=seed)
        if math.isinf(game.ask((0.1, 0.25)).loss):
            certain += 1
            assert game.finish().right and game.finish().loss == math.inf
    assert 0.2 < certain / 2000 < 0.3
    assert isinstance(game.rounds[0].event, ApproxDP)


def test_a_refusal_answers_nothing_and_leaves_the_filter_as_it_was() -> None:
    game = CompositionGame(ClockFilter(1.0, 0.01, leak=0), seed=1)
    before = game.budget
    played = game.ask(5.0)
    assert played.refused and played.answer is None and played.loss == 0 and game.total == 0
    assert game.budget == before and game.remaining == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [steady(0.2), steady(GaussianNoise(4.0)), pressing(0.1), pressing(0.05, 3.0)])
@pytest.mark.parametrize("make", [ClockFilter, FullyAdaptiveFilter])
def test_the_filter_holds_against_strategies(strategy: Strategy, make: type[ClockFilter]) -> None:
    """Delta reached is at most delta but for five standard errors; so is the share of right guesses."""
    result = tally(strategy, make(0.8, 0.1, leak=0), games=200, seed=11)
    assert result.delta_reached <= 0.1 + 5 * result.standard_error
    assert result.right <= result.right_at_most + 5 * 0.5 / math.sqrt(200)


@pytest.mark.slow
def test_without_a_filter_the_same_strategy_reaches_more_than_delta() -> None:
    """The check above can fail: a budget of 8 that is called 0.8 is caught."""

    def long(game: CompositionGame) -> float | None:
        return 0.4 if len(game.rounds) < 50 else None

    outcomes = [CompositionGame(BasicFilter(1e3), seed=seed).play(long) for seed in range(300)]
    reached = fmean(-math.expm1(min(0.0, 0.8 - outcome.loss)) for outcome in outcomes)
    assert reached > 0.5 and fmean(outcome.right for outcome in outcomes) > right_at_most(0.8, 0.1) + 0.125


def test_no_guess_beats_the_bound() -> None:
    assert right_at_most(math.log(3), 0.0) == pytest.approx(0.75)
    assert right_at_most(0.0, 0.2) == pytest.approx(0.6)


def test_what_is_not_played_is_refused() -> None:
    with pytest.raises(InvalidValue, match="not played here"):
        CompositionGame(seed=1).ask(BoundedRange(0.1))
    with pytest.raises(InvalidValue, match="games"):
        tally(steady(0.1), WIDE, games=0)


def test_fixed_charges_are_admitted_in_their_order_and_cost_the_optimum() -> None:
    budget = FixedCharges([0.3, (0.2, 0.01), GaussianNoise(4.0)], 0.05)
    assert budget.epsilon == compose([0.3, (0.2, 0.01), GaussianNoise(4.0)]).epsilon_at(0.05).upper
    assert budget.admits(0.3) and budget.admits(0.1) and not budget.admits(0.31) and not budget.admits((0.1, 1e-9))
    second = budget.charge(RandomizedResponse(0.25))
    assert second.admits((0.2, 0.01)) and not second.admits((0.2, 0.02)) and not second.admits(GaussianNoise(4.0))
    third = second.charge((0.1, 0.0))
    assert third.admits(GaussianNoise(4.0)) and not third.admits(GaussianNoise(3.9)) and not third.admits(0.0)
    last = third.charge(GaussianNoise(4.0))
    assert not last.admits(0.0) and last.remaining == ApproxDP(0.0) and last.epsilon == budget.epsilon
    with pytest.raises(BudgetExceeded, match="not what was fixed"):
        last.charge(0.1)
    assert budget.played == 0


def test_the_view_and_the_running_bound_of_fixed_charges() -> None:
    budget = FixedCharges([0.2] * 6, 0.01)
    game, bounds = CompositionGame(budget, seed=4), []
    for charge in budget.charges:
        game.ask(charge)
        bounds.append(game.spent)
    assert [event for event, _ in game.view] == list(budget.charges)
    assert bounds == sorted(bounds) and bounds[-1] == game.finish().epsilon == budget.epsilon
    assert bounds == [compose([0.2] * k).epsilon_at(0.01).upper for k in range(1, 7)]


@pytest.mark.slow
def test_no_strategy_of_a_competition_beats_the_bound_and_luck_is_shared() -> None:
    strategies = {"at once": at_once, "steady": steady(0.1), "pressing": pressing(0.1)}
    table = compete(strategies, FullyAdaptiveFilter(0.8, 0.1, leak=0), 60, seed=3)
    assert set(table) == set(strategies)
    reached = [one.delta_reached for one in table.values()]
    assert reached == sorted(reached, reverse=True)
    for one in table.values():
        assert one.delta_reached <= 0.1 + 5 * one.standard_error
        assert one.right <= one.right_at_most + 5 * 0.5 / math.sqrt(60)
    again = compete(dict(reversed(strategies.items())), FullyAdaptiveFilter(0.8, 0.1, leak=0), 60, seed=3)
    assert again == table


@pytest.mark.slow
def test_fixed_charges_reach_their_delta_where_a_smaller_epsilon_is_claimed() -> None:
    """At the optimum, delta reached is delta but for chance; a fifth less epsilon would be seen."""
    budget = FixedCharges([0.5] * 8, 0.1)
    result = tally(planned(budget), budget, 1000, seed=2)
    assert abs(result.delta_reached - 0.1) <= 5 * result.standard_error
    outcomes = [CompositionGame(budget, seed=seed).play(planned(budget)) for seed in range(1000)]
    claimed = [-math.expm1(min(0.0, 0.8 * budget.epsilon - outcome.loss)) for outcome in outcomes]
    assert fmean(claimed) > 0.1 + 5 * pstdev(claimed) / math.sqrt(1000)

"""What a holdout promises about the population: each bound beside the exact probability it stands for."""

from __future__ import annotations

import math
from itertools import product

import pytest
from scipy.stats import binom

from farthing.adaptive.holdout.population_guarantee import (
    log_histories,
    posterior_error,
    posterior_shift,
    sampling_deviation,
)


def questions_of_every_session(queries: int, corrections: int, levels: int) -> int:
    """All prefixes of answers after which a further question is asked: None is free, a number is a correction."""
    found = set()
    for answers in product([None, *range(levels)], repeat=queries):
        for asked in range(queries):
            before = answers[:asked]
            if sum(answer is not None for answer in before) < corrections:
                found.add(before)
    return len(found)


@pytest.mark.parametrize("case", [(1, 1, 2), (3, 2, 2), (4, 2, 3), (5, 3, 2), (4, 9, 2), (6, 1, 3)])
def test_histories_are_as_many_as_can_be_listed(case: tuple[int, int, int]) -> None:
    assert math.exp(log_histories(*case)) == pytest.approx(questions_of_every_session(*case), rel=1e-6)


def test_histories_grow_with_every_parameter_and_stay_exact_for_very_long_streams() -> None:
    base = log_histories(1_000, 10, 257)
    for other in (
        log_histories(2_000, 10, 257),
        log_histories(1_000, 11, 257),
        log_histories(1_000, 10, 258),
    ):
        assert other > base
    assert log_histories(10**15, 1, 257) == pytest.approx(math.log(10**15), rel=1e-8)


@pytest.mark.parametrize(("questions", "rows", "failure"), [(1, 100, 0.05), (10**4, 1_000, 0.05), (10**9, 5_000, 1e-3)])
def test_coins_deviate_as_rarely_as_stated_and_not_much_more_rarely(questions: int, rows: int, failure: float) -> None:
    """Independent coins as questions: the exact chance that some mean is further off than the bound."""

    def chance(deviation: float) -> float:
        one = 2 * binom.sf(math.ceil(rows * (0.5 + deviation)) - 1, rows, 0.5)
        return float(-math.expm1(questions * math.log1p(-one)))

    bound = sampling_deviation(math.log(questions), rows, failure)
    assert chance(bound) <= failure
    assert chance(0.7 * bound) > failure


def leaky_response(prior: float, epsilon: float, delta: float) -> list[tuple[float, float]]:
    """One row that is 1 with probability `prior`, told by leaky randomized response: (mass, posterior mean)."""
    right = (1 - delta) / (1 + math.exp(-epsilon))
    wrong = (1 - delta) - right
    outcomes = []
    for if_one, if_zero in ((right, wrong), (wrong, right), (delta, 0.0), (0.0, delta)):
        mass = prior * if_one + (1 - prior) * if_zero
        if mass > 0:
            outcomes.append((mass, prior * if_one / mass))
    return outcomes


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_no_prior_is_shifted_more_often_than_stated(epsilon: float, delta: float) -> None:
    for failure in (0.01, 0.1, 0.5):
        bound = posterior_shift(epsilon, delta, failure)
        for prior in (step / 400 for step in range(1, 400)):
            told = leaky_response(prior, epsilon, delta)
            beyond = math.fsum(mass for mass, mean in told if abs(mean - prior) > bound)
            assert beyond <= failure + 1e-12


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 1.0, 3.0])
def test_randomized_response_reaches_the_shift(epsilon: float) -> None:
    prior = 1 / (1 + math.exp(epsilon / 2))
    reached = max(abs(mean - prior) for _, mean in leaky_response(prior, epsilon, 0.0))
    assert posterior_shift(epsilon, 0.0, 0.05) == pytest.approx(reached, rel=1e-8)


def test_the_shift_is_monotone_and_its_ends_are_plain() -> None:
    assert posterior_shift(0.0, 0.0, 0.05) == 0.0
    assert posterior_shift(0.5, 0.2, 0.05) == 1.0
    assert posterior_shift(10_000.0, 1e-9, 0.05) == 1.0
    shifts = [posterior_shift(0.5, delta, 0.05) for delta in (0.0, 1e-9, 1e-4, 1e-3)]
    assert shifts == sorted(shifts)
    assert posterior_shift(0.4, 1e-4, 0.05) < posterior_shift(0.5, 1e-4, 0.05) < posterior_shift(0.5, 1e-4, 0.01)


def test_answers_are_as_close_to_the_posterior_as_a_transcript_that_gives_nothing_else_away() -> None:
    """Z exponential of scale s: the bound is at least the tail itself, and at most half of s above the best y."""
    scale, failure = 0.01, 0.05
    bound = posterior_error(lambda b: scale * math.log(1 / b), failure)
    assert scale * math.log(1 / failure) <= bound <= scale * (math.log(1 / failure) + 1 + 0.5)
    # The transcript that tells Z itself: E[Z | transcript] = Z exceeds the bound with the stated probability at most.
    assert math.exp(-bound / scale) <= failure


def test_answers_may_be_as_wrong_as_a_hidden_coin_makes_them() -> None:
    """Z = 1 with probability b, else 0, and the transcript tells a suspicion: the mean of Z given it may be 1/2."""
    chance = 1e-3

    def error_at(b: float) -> float:
        return 0.0 if b >= chance else 1.0

    # A transcript that raises the alarm with probability 2 b is right half of the time.
    assert posterior_error(error_at, 2 * chance * (1 - 1e-9)) >= 0.5
    assert posterior_error(error_at, 0.5) <= 0.01

"""The bound on what somebody can come to believe: never below the truth of any mechanism, and reached by one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import FarthingError
from farthing.study.attacker_odds import chance_words, odds_sentence, posterior_upper


def belief(prior: float, if_in: float, if_out: float) -> float:
    """Bayes' rule for one signal."""
    both = prior * if_in + (1 - prior) * if_out
    return prior * if_in / both if both else prior


def leaky_response(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Likelihoods (person in, person out) of each signal of the worst (epsilon, delta)-DP release."""
    yes = math.exp(epsilon) / (1 + math.exp(epsilon))
    keep = 1 - delta
    return [(delta, 0.0), (keep * yes, keep * (1 - yes)), (keep * (1 - yes), keep * yes), (0.0, delta)]


@pytest.mark.slow
@given(st.floats(0, 1), st.floats(0, 5), st.sampled_from([0.0, 1e-6, 0.01, 0.3]))
def test_sound_average_belief_of_the_worst_release_is_within(prior: float, epsilon: float, delta: float) -> None:
    signals = leaky_response(epsilon, delta)
    average = sum(if_in * belief(prior, if_in, if_out) for if_in, if_out in signals)
    assert average <= posterior_upper(prior, epsilon, delta) + 1e-12


def test_tight_without_delta_one_signal_reaches_it() -> None:
    reached = max(belief(0.3, *signal) for signal in leaky_response(1.2, 0.0) if any(signal))
    assert reached <= posterior_upper(0.3, 1.2) <= reached * (1 + 1e-12)


@pytest.mark.slow
@given(st.floats(0.01, 0.99), st.floats(0, 5), st.floats(0, 0.5))
def test_monotone_in_everything(prior: float, epsilon: float, delta: float) -> None:
    bound = posterior_upper(prior, epsilon, delta)
    slack = 1e-12
    assert prior <= bound <= 1
    assert posterior_upper(min(1.0, prior + 0.01), epsilon, delta) >= bound - slack
    assert posterior_upper(prior, epsilon + 0.1, delta) >= bound - slack
    assert posterior_upper(prior, epsilon, min(0.99, delta + 0.01)) >= bound - slack


def test_degenerate_beliefs_stay_what_they_are() -> None:
    assert posterior_upper(0.0, 3.0, 0.1) == 0.0
    assert posterior_upper(1.0, 3.0) == 1.0
    assert posterior_upper(0.2, 0.0) == 0.2
    assert posterior_upper(0.2, math.inf) == 1.0
    assert posterior_upper(0.2, 1e6) == 1.0


@pytest.mark.parametrize(
    "wrong", [(-0.1, 1.0, 0.0), (1.1, 1.0, 0.0), (math.nan, 1.0, 0.0), (0.5, -1.0, 0.0), (0.5, 1.0, 1.5)]
)
def test_what_is_no_probability_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(FarthingError):
        posterior_upper(*wrong)


def test_percentages_are_rounded_up() -> None:
    assert "at most 73.2% sure" in odds_sentence(1.0)  # 73.105...
    assert "at most 50% sure" in odds_sentence(0.0)
    assert "at most 100% sure" in odds_sentence(50.0)
    assert "(delta)" in odds_sentence(1.0, 1e-9) and "(delta)" not in odds_sentence(1.0)


@pytest.mark.parametrize("chance", [1e-12, 3e-7, 1e-6, 1 / 3e6, 2.5e-5, 0.0099, 0.01])
def test_a_chance_in_words_is_never_less_than_it_is(chance: float) -> None:
    one, _, many = chance_words(chance).partition(" in ")
    assert one == "1" and chance <= 1 / int(many.replace(",", "")) <= chance * 1.01

"""most_guessed and chance_of_guessing beside the best attacker of small mechanisms, written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from farthing.auditing.attacks import chance_of_guessing, most_guessed
from farthing.errors import InvalidValue


def responses(rows: int, epsilon: float) -> np.ndarray:
    """Randomized response on every row: one line for each secret, one column for each output."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    one = np.array([[p, 1 - p], [1 - p, p]])
    distribution = np.ones((1, 1))
    for _ in range(rows):
        distribution = np.kron(distribution, one)
    return distribution


def noisy_count(rows: int, epsilon: float) -> np.ndarray:
    """The number of ones with geometric noise of the same epsilon."""
    values = np.arange(-80, 81)
    p = math.exp(-epsilon)
    ones = np.array([sum(bits) for bits in itertools.product((0, 1), repeat=rows)])
    distribution: np.ndarray = (1 - p) / (1 + p) * p ** np.abs(values[None, :] - ones[:, None])
    return distribution


def best_shares(distribution: np.ndarray, rows: int) -> tuple[float, list[float]]:
    """The expected share of the best guesses, row by row, and the tail of the number guessed right."""
    secrets = np.array(list(itertools.product((0, 1), repeat=rows)))
    weight = distribution / len(secrets)
    guess = np.array(
        [
            [weight[secrets[:, i] == 1, o].sum() > weight[secrets[:, i] == 0, o].sum() for i in range(rows)]
            for o in range(distribution.shape[1])
        ]
    )
    right = (secrets[:, None, :] == guess[None, :, :]).sum(axis=2)
    share = float((weight * right).sum() / rows)
    return share, [float(weight[right >= k].sum()) for k in range(rows + 1)]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("mechanism", [responses, noisy_count])
def test_the_best_attacker_stays_below_the_bound_on_average_and_in_the_tail(mechanism, epsilon) -> None:  # type: ignore[no-untyped-def]
    if epsilon == 0 and mechanism is noisy_count:
        return
    for rows in (1, 2, 4):
        share, tail = best_shares(mechanism(rows, epsilon), rows)
        assert share <= most_guessed(epsilon) + 1e-9
        for k, chance in enumerate(tail):
            assert chance <= chance_of_guessing(k, rows, epsilon) + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomized_response_reaches_both(epsilon: float) -> None:
    share, tail = best_shares(responses(4, epsilon), 4)
    assert share == pytest.approx(most_guessed(epsilon), rel=1e-9)
    for k, chance in enumerate(tail):
        assert chance == pytest.approx(chance_of_guessing(k, 4, epsilon), rel=1e-8)


def test_delta_adds_what_a_leaky_mechanism_reaches() -> None:
    """With probability delta the bit is shown, else randomized response at epsilon: (epsilon, delta)-DP."""
    epsilon, delta = 0.5, 0.1
    p = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    assert p + delta == pytest.approx(most_guessed(epsilon, delta), rel=1e-9)


def test_both_grow_with_epsilon_and_end_where_they_must() -> None:
    bounds = [most_guessed(epsilon) for epsilon in (0.0, 0.01, 1.0, 5.0, 50.0, 1000.0)]
    assert bounds == sorted(bounds) and bounds[0] == 0.5 and bounds[-1] == 1.0
    assert chance_of_guessing(90, 100, 0.0) < 1e-15 < chance_of_guessing(90, 100, 2.0)
    assert chance_of_guessing(60, 100, 1.0) == pytest.approx(binom.sf(59, 100, 1 / (1 + math.exp(-1))), rel=1e-6)
    assert chance_of_guessing(10, 10, 1000.0) == 1.0
    for wrong in (-0.1, math.nan, math.inf):
        with pytest.raises(InvalidValue):
            most_guessed(wrong)
    with pytest.raises(InvalidValue, match="at most 5"):
        chance_of_guessing(6, 5, 1.0)

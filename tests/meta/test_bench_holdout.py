"""The demonstration of the reusable holdout: what the page says is what its script finds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.holdout import agrees, coins, repeat, right

from farthing.adaptive import Holdout


@pytest.mark.slow
def test_naive_reuse_finds_structure_in_noise_and_the_reusable_holdout_does_not() -> None:
    """Ten of the two hundred repetitions; the mean of ours has a standard error of 0.003."""
    claims = repeat(10, rows=5_000, features=1_000)
    assert claims.naive.mean() > 0.1
    assert abs(claims.reusable.mean()) < 0.02
    assert claims.corrections.max() <= 2


def test_every_answer_keeps_its_promise_on_coins() -> None:
    """The population's mean of every question is 1/2; the analyst chases what it was told."""
    generator = np.random.default_rng(3)
    training, holdout = coins(generator, 4_000, 300), coins(generator, 4_000, 300)
    session = Holdout(training, holdout, epsilon=2.0, queries=400, corrections=5)
    answers = [session.ask(agrees(feature)) for feature in range(300)]
    weights = np.array([answer.value - 0.5 for answer in answers], dtype=np.float32)
    answers += [session.ask(right(weights)), session.ask(right(np.sign(weights)))]
    assert all(abs(answer.value - 0.5) <= answer.error for answer in answers)
    assert answers[-2].training > 0.55  # the training set was fitted

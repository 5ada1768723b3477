"""Multiplicative weights without privacy: every answer is close, and corrections stay within the theorem."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farthing.adaptive import PublicSession
from farthing.errors import InvalidValue


def divergence(shares: np.ndarray, guess: np.ndarray) -> float:
    """Kullback and Leibler's, one cell after the other."""
    return sum(x * math.log(x / h) for x, h in zip(shares.tolist(), guess.tolist(), strict=True) if x > 0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_PublicSession_against_an_analyst_who_knows_everything(seed: int, alpha: float) -> None:
    """The worst question, again and again: each correction gains what the proof says, and there are few."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(32, 0.1))
    session = PublicSession(shares, alpha)
    before = divergence(shares, session.guess)
    assert before <= math.log(32)
    for _ in range(5000):
        question = shares > session.guess
        if seed % 2:
            question = ~question
        done, guess = session.corrections, session.guess
        assert abs(session.ask(question) - float(shares @ question)) <= alpha
        if session.corrections == done:
            assert np.array_equal(session.guess, guess)
            break
        after = divergence(shares, session.guess)
        assert after <= before - alpha**2 / 4 + 1e-12
        before = after
    assert 1 <= session.corrections <= session.most_corrections
    assert 0.5 * np.abs(shares - session.guess).sum() <= alpha  # no question at all is further off


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_streams_of_random_questions(alpha: float) -> None:
    rng = np.random.default_rng(5)
    shares = np.zeros(64)
    shares[3] = 1.0
    session = PublicSession(7 * shares, alpha)  # counts are divided by their sum
    for _ in range(2000):
        question = rng.random(64)
        assert abs(session.ask(question) - question[3]) <= alpha
    assert session.corrections <= session.most_corrections == math.floor(4 * math.log(64) / alpha**2)


def test_one_cell_and_even_shares_need_no_correction() -> None:
    for shares in ([3.0], [1.0] * 8):
        session = PublicSession(shares, 0.01)
        assert session.ask(np.ones(len(shares))) == pytest.approx(1) and session.corrections == 0
    assert PublicSession([2], 0.5).most_corrections == 0


@pytest.mark.parametrize("shares", [[], [0, 0], [-1, 2], [math.nan], [math.inf, 1], "x", None])
def test_bad_shares_are_refused(shares: object) -> None:
    with pytest.raises(InvalidValue, match="shares"):
        PublicSession(shares, 0.1)


def test_shares_of_any_size_are_divided_by_their_sum() -> None:
    assert PublicSession([1e308, 1e308, 0], 0.1).ask([1, 0, 0]) == pytest.approx(0.5)


def test_bad_questions_and_alphas_are_refused() -> None:
    for alpha in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InvalidValue, match="alpha"):
            PublicSession([1, 2], alpha)
    for question in ([1], [1, 2], [math.nan, 0], [-0.1, 0], "x"):
        with pytest.raises(InvalidValue, match="question"):
            PublicSession([1, 2], 0.1).ask(question)

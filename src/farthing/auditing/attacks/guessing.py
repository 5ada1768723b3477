"""How well anybody can guess a secret from private answers: the bound that epsilon sets, and its tail."""

from __future__ import annotations

import math

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

_UP = 1 + 1e-12  # more than a handful of roundings can take away


def most_guessed(epsilon: float, delta: float = 0.0) -> float:
    """The largest expected share of secret bits that anybody can guess right, if half of them are 1.

    Statement:
        Let every row hold a bit, each 0 or 1 with probability 1/2 independently of everything else, and let M be
        (epsilon, delta)-DP for tables that differ in one row's bit. Whatever an attacker knows besides, and however
        the guesses are made from M's output, each bit is guessed right with probability at most
            (e^epsilon + delta) / (e^epsilon + 1),
        and so is the expected share of all bits.
        Proof: fix all other rows. Let x be the probability of the guess 1 if the bit is 1, and y that of the guess 0
        if it is 0. Then x <= e^epsilon (1 - y) + delta and y <= e^epsilon (1 - x) + delta; add both:
        (x + y) (1 + e^epsilon) <= 2 e^epsilon + 2 delta, and the bit is guessed right with probability (x + y) / 2.
        Average over the other rows; the share is linear in the rows.
    Source: Wasserman & Zhou, JASA 105 (2010), Theorem 2.4, as a test; the sum above is all of it.
    Assumes: neighbours replace one row's bit. Where neighbours add or remove a row, a bit that moves every answer
        the way a row does is covered by epsilon, and any other by 2 epsilon.
    Direction: upward; reached by randomized response, and by one count about one person.
    Checked by: tests/theorems/test_guessing.py

    >>> round(most_guessed(1.0), 4), most_guessed(0.0), round(most_guessed(0.1, 1e-6), 4)
    (0.7311, 0.5, 0.525)
    """
    small = math.exp(-checked_epsilon(epsilon))
    share = (1 + checked_delta(delta) * small) / (1 + small)
    return share if small == 1 and delta == 0 else min(1.0, share * _UP)


def chance_of_guessing(correct: int, rows: int, epsilon: float) -> float:
    """The chance that some attacker guesses at least `correct` of `rows` bits from an epsilon-DP answer.

    Statement:
        In the setting of `most_guessed` with delta = 0, the number of right guesses is at most that of a binomial
        variable with `rows` trials and success probability p = e^epsilon / (e^epsilon + 1), in the sense that
            P[right guesses >= correct] <= P[Binomial(rows, p) >= correct].
        So one run is evidence, however the rows depend on each other through the output.
        Proof: fix the output o and the bits before row i. By Bayes' rule the odds of the i-th bit are
        P[o | bits before, bit i = 1] / P[o | bits before, bit i = 0], averages over the later bits of probabilities
        that are within e^epsilon of each other, pair by pair. So each value has probability at most p, given o and
        whether the guesses before were right: the guess, a function of o and of other randomness, is right with
        probability at most p. Coupled row by row, the sum is at most binomial.
    Source: Steinke, Nasr & Jagielski, "Privacy auditing with one (1) training run", arXiv:2305.08846,
        Section 5, the pure case with every row guessed; the proof above stands by itself.
    Assumes: 0 <= correct <= rows; the bits are independent and fair, and everything told about them is epsilon-DP.
    Direction: upward, by more than the incomplete beta function can be wrong.
    Checked by: tests/theorems/test_guessing.py

    >>> round(chance_of_guessing(8, 10, 1.0), 4), chance_of_guessing(0, 10, 1.0)
    (0.4696, 1.0)
    """
    from scipy.special import betainc

    right, trials = checked_count(correct, "correct"), checked_count(rows, "rows")
    if not right <= trials:
        raise InvalidValue("correct", correct, f"must be at most {trials}, the number of rows")
    if right == 0:
        return 1.0
    tail = float(betainc(right, trials - right + 1, most_guessed(epsilon)))
    return min(1.0, tail * (1 + 1e-9)) if tail >= 0 else 1.0

"""The differencing attack: two counts that differ by one person."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteLaplace
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

_UP = 1 + 1e-12  # more than a handful of roundings can take away


def most_guessed(epsilon: float, delta: float = 0.0) -> float:
    """The largest expected share of secret bits that anybody can guess right, if half of them are 1.

    Args:
        epsilon: The epsilon of the answer.
        delta: The delta of the answer.

    Returns:
        The share, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

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

    Args:
        correct: How many guesses are right, at most `rows`.
        rows: How many bits there are.
        epsilon: The epsilon of the answer.

    Returns:
        The chance, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

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
    Assumes: 0 <= correct <= rows; the bits are independent and fair, and everything released about them is epsilon-DP.
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


Counts = NDArray[np.int64]
Answer = Callable[[Counts], Any]


@dataclass(frozen=True)
class Differenced:
    """How often the secret of one person was guessed right.

    Attributes:
        answers: What the attacker was given.
        guessed: How often the guess was right.
        repetitions: How often the attack was tried.
        most: The largest share that any attacker can reach; None where nothing bounds it.

    >>> Differenced("exact counts", 1000, 1000, None).share
    1.0
    """

    answers: str
    guessed: int
    repetitions: int
    most: float | None
    """The largest share that the answers' epsilon permits; None where there is none."""

    @property
    def share(self) -> float:
        """Guessed right, of all repetitions."""
        return self.guessed / self.repetitions

    @property
    def standard_error(self) -> float:
        """How far the share, as measured, tends to be from its expectation."""
        return math.sqrt(self.share * (1 - self.share) / self.repetitions)


def guessed_by_difference(everybody: Any, everybody_else: Any) -> NDArray[np.bool_]:
    """Whether a person has the property, from a noisy count of all who have it and one of all others who have it.

    Args:
        everybody: The count of all who have the property.
        everybody_else: The count without that person.

    Returns:
        Whether the difference says that the person has it.

    >>> guessed_by_difference(132, 131), guessed_by_difference(132, 132)
    (True, False)
    """
    guess: NDArray[np.bool_] = np.asarray(everybody) - np.asarray(everybody_else) > 0.5
    return guess if guess.shape else bool(guess)  # type: ignore[return-value]


def difference(
    answer: Answer,
    *,
    people: int = 1000,
    repetitions: int = 10_000,
    seed: int = 0,
    name: str = "answers",
    most: float | None = None,
) -> Differenced:
    """Attack one person of a made-up table, many times: the secret is a fair coin each time.

    Args:
        answer: Maps an array of pairs of exact counts to what the attacker is given instead.
        people: How many people the table has.
        repetitions: How often to attack.
        seed: The seed of the made-up tables.
        name: What to call the answers.
        most: The largest share that any attacker can reach, where it is known.

    Returns:
        How often the guess was right.

    Raises:
        InvalidValue: If `people` or `repetitions` is not a whole number.

    >>> difference(lambda counts: counts, repetitions=100).share
    1.0
    """
    trials, others = checked_count(repetitions, "repetitions"), checked_count(people, "people") - 1
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, trials)
    rest = rng.binomial(others, 0.3, trials)
    answers = np.asarray(answer(np.stack([rest + secret, rest], axis=1)))
    right = guessed_by_difference(answers[:, 0], answers[:, 1]) == (secret == 1)
    return Differenced(name, int(right.sum()), trials, most)


def differences(epsilon: float, *, people: int = 1000, repetitions: int = 10_000, seed: int = 0) -> list[Differenced]:
    """The attack on exact counts, on counts rounded to tens, and on private ones at `epsilon`.

    Rounding hides most single pairs of counts. It is no protection: an attacker who asks for ten pairs, with 0 to 9
    people more in both, finds the pair where the rounding tips. The last row asks for less: one count about that person
    alone, with the whole epsilon; it reaches the bound.

    Args:
        epsilon: The epsilon of the private counts.
        people: How many people the table has.
        repetitions: How often to attack.
        seed: The seed of the made-up tables.

    Returns:
        One result for each kind of answer.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> for one in differences(1.0, repetitions=10):
    ...     print(one.answers)
    exact counts
    rounded to tens
    rounded to tens, ten pairs
    farthing, two counts
    farthing, one person alone
    """
    most = most_guessed(epsilon)
    whole: dict[str, Any] = {"people": people, "repetitions": repetitions, "seed": seed}
    # Somebody else may be counted in both, so that two counts share epsilon.
    two = DiscreteLaplace(epsilon, l1_sensitivity=2, cells=2 * repetitions)
    one = DiscreteLaplace(epsilon, cells=repetitions)

    def alone(counts: Counts) -> Any:
        return np.stack([one.release(counts[:, 0] - counts[:, 1]), np.zeros(len(counts), np.int64)], axis=1)

    return [
        difference(lambda counts: counts, name="exact counts", **whole),
        difference(_tens, name="rounded to tens", **whole),
        difference(
            lambda counts: sum(_tens(counts + more) for more in range(10)) / 10,
            name="rounded to tens, ten pairs",
            **whole,
        ),
        difference(
            lambda counts: np.asarray(two.release(counts.reshape(-1))).reshape(counts.shape),
            name="farthing, two counts",
            most=most,
            **whole,
        ),
        difference(alone, name="farthing, one person alone", most=most, **whole),
    ]


def _tens(counts: Counts) -> Counts:
    """To the nearest ten, halves upward."""
    return (counts + 5) // 10 * 10

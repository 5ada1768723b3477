"""The differencing attack: two counts that differ by one person."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.attacks.guessing import most_guessed
from farthing.mechanisms import DiscreteLaplace
from farthing.privacy.events import checked_count

Counts = NDArray[np.int64]
Answer = Callable[[Counts], Any]


@dataclass(frozen=True)
class Differenced:
    """How often the secret of one person was guessed right.

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

    `answer` maps an array of pairs of exact counts to what an attacker is told instead.

    >>> difference(lambda counts: counts, repetitions=100).share
    1.0
    """
    trials, others = checked_count(repetitions, "repetitions"), checked_count(people, "people") - 1
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, trials)
    rest = rng.binomial(others, 0.3, trials)
    told = np.asarray(answer(np.stack([rest + secret, rest], axis=1)))
    right = guessed_by_difference(told[:, 0], told[:, 1]) == (secret == 1)
    return Differenced(name, int(right.sum()), trials, most)


def differences(
    epsilon: float, *, people: int = 1000, repetitions: int = 10_000, seed: int = 0
) -> list[Differenced]:
    """The attack on exact counts, on counts rounded to tens, and on private ones at `epsilon`.

    Rounding hides most single pairs of counts. It is no protection: an attacker who asks for ten pairs, with 0 to 9
    people more in both, finds the pair where the rounding tips. The last row asks for less: one count about that person
    alone, with the whole epsilon; it reaches the bound.

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

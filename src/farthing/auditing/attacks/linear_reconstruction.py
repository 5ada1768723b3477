"""The reconstruction attack: a secret column, from counts over random subsets of the rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.calibration import calibrate
from farthing.auditing.attacks.difference_attack import most_guessed
from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.privacy.events import checked_count

Bits = NDArray[np.bool_]
Answer = Callable[[NDArray[np.int64]], Any]
Decoder = Literal["least squares", "linear programme"]


@dataclass(frozen=True)
class Reconstructed:
    """How much of a secret column came back: the share of rows guessed right, for each repetition.

    Attributes:
        answers: What the attacker was given.
        noise: The standard deviation of the noise in the answers.
        shares: The share of rows guessed right in each repetition.
        most: The largest share that any attacker can expect; None where nothing bounds it.

    >>> Reconstructed("exact counts", 0.0, (1.0, 0.98), None).share
    0.99
    """

    answers: str
    noise: float
    """The standard deviation of the error of an answer."""
    shares: tuple[float, ...]
    most: float | None
    """The largest expected share that the answers' epsilon permits; None where there is none."""

    @property
    def share(self) -> float:
        """The mean over all repetitions; 0.5 is blind guessing."""
        return math.fsum(self.shares) / len(self.shares)

    @property
    def standard_error(self) -> float | None:
        """How far the mean, as measured, tends to be from its expectation; None after a single repetition."""
        return statistics.stdev(self.shares) / math.sqrt(len(self.shares)) if len(self.shares) > 1 else None


def random_subsets(queries: int, rows: int, seed: int = 0) -> Bits:
    """Questions: each row is in each of them with probability 1/2.

    Args:
        queries: How many questions.
        rows: How many rows there are.
        seed: The seed of the draw.

    Returns:
        Truth values, one row for each question.

    Raises:
        InvalidValue: If an argument is not a whole number.

    >>> random_subsets(40, 10).shape
    (40, 10)
    """
    shape = checked_count(queries, "queries"), checked_count(rows, "rows")
    return np.random.default_rng(seed).random(shape) < 0.5


def reconstructed(subsets: Bits, answers: Any, *, noise: float = 0.0, decoder: Decoder = "least squares") -> Bits:
    """The secret bits that fit best: `answers[j]` is about how many rows of `subsets[j]` have bit 1.

    With s = (1 + t) / 2 the answers are linear in t, whose entries are -1 and 1: least squares find t, ridged by what
    `noise` (a standard deviation) and the size of t say, and its signs are the guess. The linear programme takes the
    s between 0 and 1 with the least sum of absolute errors, and rounds it.

    Args:
        subsets: Truth values, one row for each question: which rows it counts.
        answers: `answers[j]` is about how many rows of `subsets[j]` have bit 1.
        noise: The standard deviation of the noise in the answers.
        decoder: "least squares" or "linear programme".

    Returns:
        One guess for each row.

    Raises:
        InvalidValue: If there is not one answer for each subset, or the decoder has another name.

    >>> secret = np.random.default_rng(1).random(50) < 0.5
    >>> subsets = random_subsets(200, 50)
    >>> bool((reconstructed(subsets, subsets @ secret.astype(int)) == secret).all())
    True
    """
    questions, counts = np.asarray(subsets, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    if questions.ndim != 2 or counts.shape != questions.shape[:1]:
        raise InvalidValue("answers", counts.shape, f"must be one number for each of the {len(questions)} subsets")
    if decoder == "linear programme":
        return _least_absolute(questions, counts)
    if decoder != "least squares":
        raise InvalidValue("decoder", decoder, 'must be "least squares" or "linear programme"')
    ridge = max(4 * noise**2, 1e-6)
    gram = questions.T @ questions + ridge * np.eye(questions.shape[1])
    signs = np.linalg.solve(gram, questions.T @ (2 * counts - questions.sum(axis=1)))
    return np.asarray(signs > 0)


def reconstruct(
    answer: Answer,
    *,
    rows: int = 200,
    queries: int = 800,
    repetitions: int = 20,
    noise: float = 0.0,
    decoder: Decoder = "least squares",
    seed: int = 0,
    name: str = "answers",
    most: float | None = None,
) -> Reconstructed:
    """Attack made-up tables whose secret bits are fair coins.

    Args:
        answer: Maps exact counts to what the attacker is given instead.
        rows: How many secret bits there are.
        queries: How many random subsets are counted.
        repetitions: How often to attack.
        noise: The standard deviation that the attacker assumes.
        decoder: "least squares" or "linear programme".
        seed: The seed of the made-up tables.
        name: What to call the answers.
        most: The largest share that any attacker can expect, where it is known.

    Returns:
        The share of bits guessed right in each repetition.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> reconstruct(lambda counts: counts, rows=30, queries=120, repetitions=2).share
    1.0
    """
    shares = []
    for number in range(checked_count(repetitions, "repetitions")):
        secret = np.random.default_rng([seed, number]).random(rows) < 0.5
        subsets = random_subsets(queries, rows, seed + number)
        answers = answer(subsets.astype(np.int64) @ secret.astype(np.int64))
        guess = reconstructed(subsets, answers, noise=noise, decoder=decoder)
        shares.append(float(np.mean(guess == secret)))
    return Reconstructed(name, noise, tuple(shares), most)


def noisy_reconstructions(
    noises: Iterable[float], *, rows: int = 200, queries: int = 800, repetitions: int = 20, seed: int = 0
) -> list[Reconstructed]:
    """The attack on counts with normal noise of these standard deviations, whatever they protect.

    Args:
        noises: The standard deviations of the noise.
        rows: How many secret bits there are.
        queries: How many random subsets are counted.
        repetitions: How often to attack.
        seed: The seed of the made-up tables.

    Returns:
        One result for each standard deviation.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> [round(one.share, 1) for one in noisy_reconstructions([0.1, 1.0], rows=30, queries=120, repetitions=2)]
    [1.0, 1.0]
    """
    rng = np.random.default_rng(seed)  # of those who do it wrong

    def blurred(width: float) -> Answer:
        return lambda counts: counts + rng.normal(0, width, len(counts))

    size: dict[str, Any] = {"rows": rows, "queries": queries, "repetitions": repetitions, "seed": seed}
    return [reconstruct(blurred(noise), noise=noise, name="normal noise", **size) for noise in noises]


def private_counts(queries: int, epsilon: float, delta: float = 0.0) -> DiscreteLaplace | DiscreteGaussian:
    """The mechanism of least noise for so many counts at once, all of which one row may move.

    Args:
        queries: How many counts there are.
        epsilon: The epsilon of all of them.
        delta: The delta of all of them.

    Returns:
        The mechanism.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> private_counts(800, 1.0).standard_error > private_counts(800, 1.0, 1e-9).standard_error
    True
    """
    laplace = DiscreteLaplace(epsilon, l1_sensitivity=queries, cells=queries)
    if not delta > 0:
        return laplace
    reach = math.nextafter(math.sqrt(queries), math.inf)

    def gaussian(multiplier: float) -> DiscreteGaussian:
        return DiscreteGaussian(multiplier, l2_sensitivity=reach, cells=queries)

    try:
        mechanism = gaussian(calibrate(lambda m: [gaussian(m).event], epsilon, delta).parameter)
    except InvalidValue:  # so little noise that whole numbers are too coarse for a Gaussian
        return laplace
    return mechanism if mechanism.standard_error < laplace.standard_error else laplace


def reconstructions(
    epsilon: float,
    delta: float = 0.0,
    *,
    rows: int = 200,
    queries: int = 800,
    repetitions: int = 20,
    seed: int = 0,
) -> list[Reconstructed]:
    """The attack on exact counts, on counts that are too accurate, and on private ones at (epsilon, delta).

    Args:
        epsilon: The epsilon of the private counts.
        delta: Their delta.
        rows: How many secret bits there are.
        queries: How many random subsets are counted.
        repetitions: How often to attack.
        seed: The seed of the made-up tables.

    Returns:
        One result for each kind of answer.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> [one.answers for one in reconstructions(1.0, 1e-9, rows=20, queries=80, repetitions=1)]
    ['exact counts', 'rounded to tens', 'noise of sqrt(rows) / 4', '50 times too little noise', 'farthing']
    """
    size: dict[str, Any] = {"rows": rows, "queries": queries, "repetitions": repetitions, "seed": seed}
    mechanism = private_counts(queries, epsilon, delta)
    honest, short = mechanism.standard_error, mechanism.standard_error / 50
    accurate, little = noisy_reconstructions((math.sqrt(rows) / 4, short), **size)
    return [
        reconstruct(lambda counts: counts, name="exact counts", **size),
        reconstruct(lambda counts: np.round(counts, -1), noise=10 / math.sqrt(12), name="rounded to tens", **size),
        replace(accurate, answers="noise of sqrt(rows) / 4"),
        replace(little, answers="50 times too little noise"),
        reconstruct(mechanism.release, noise=honest, name="farthing", most=most_guessed(epsilon, delta), **size),
    ]


def _least_absolute(questions: NDArray[np.float64], answers: NDArray[np.float64]) -> Bits:
    from scipy.optimize import linprog

    count, rows = questions.shape
    # Variables: the bits, and by how much each answer is missed; both signs of the miss are constraints.
    misses = np.eye(count)
    solution = linprog(
        np.concatenate([np.zeros(rows), np.ones(count)]),
        A_ub=np.block([[questions, -misses], [-questions, -misses]]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * rows + [(0, None)] * count,
        method="highs",
    )
    return np.asarray(solution.x[:rows] > 0.5)

"""Selections by brute force: every distribution as a list of probabilities, written from its definition alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import prod
from random import Random

import mpmath
from scipy import stats

mpmath.mp.dps = 40
SLACK = mpmath.mpf(10) ** -30
"""Above the rounding of 40 digits, far below anything a fault would move."""

ALPHA = 1e-6


class Seeded:
    """A repeatable source of bytes, for tests only."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def take(self, count: int, /) -> bytes:
        return self._random.randbytes(count)


def number(value: Fraction | float) -> mpmath.mpf:
    exact = Fraction(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


def exponential_distribution(scores: Iterable[int], rate: Fraction) -> list[mpmath.mpf]:
    weights = [mpmath.exp(number(rate * score)) for score in scores]
    return [weight / mpmath.fsum(weights) for weight in weights]


def permute_and_flip_distribution(scores: list[int], rate: Fraction) -> list[mpmath.mpf]:
    coins = [mpmath.exp(-number(rate * (max(scores) - score))) for score in scores]
    distribution = [mpmath.mpf(0)] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = mpmath.mpf(1)
        for candidate in order:
            distribution[candidate] += left * coins[candidate] / len(orders)
            left *= 1 - coins[candidate]
    return distribution


def top_k_distribution(scores: list[int], rate: Fraction, k: int) -> dict[tuple[int, ...], mpmath.mpf]:
    weights = [mpmath.exp(number(rate * score)) for score in scores]
    distribution: dict[tuple[int, ...], mpmath.mpf] = {}
    for picks in permutations(range(len(scores)), k):
        chance, left = mpmath.mpf(1), mpmath.fsum(weights)
        for pick in picks:
            chance *= weights[pick] / left
            left -= weights[pick]
        distribution[picks] = chance
    return distribution


def margin_at_least(scores: list[int], q: Fraction, winner: int, margin: int) -> Fraction:
    """P(s_w + N_w >= M + margin), a rational number for rational q = P(N >= 1), by inclusion and exclusion.

    With N_w = n given, every rival j fails to spoil it with probability 1 - q^(n + 1 + slack_j), or surely not at all.
    """
    slack = [
        scores[winner] - margin - score - (1 if j < winner else 0) for j, score in enumerate(scores) if j != winner
    ]
    return _never_spoiled(tuple(sorted(slack)), q)


@cache
def _never_spoiled(slack: tuple[int, ...], q: Fraction) -> Fraction:
    start = max([0, *(-s - 1 for s in slack)])  # below this some rival spoils it surely
    total = Fraction(0)
    for size in range(len(slack) + 1):
        for chosen in combinations(slack, size):
            # sum over n >= start of (1 - q) q^n prod(-q^(n + 1 + s))
            term = (1 - q) * prod((-(q ** (1 + s)) for s in chosen), start=Fraction(1))
            ratio = q ** (size + 1)
            total += term * ratio**start / (1 - ratio)
    return total


def noisy_max_distribution(scores: list[int], q: Fraction) -> list[Fraction]:
    return [margin_at_least(scores, q, winner, 0) for winner in range(len(scores))]


def margin_distribution(scores: list[int], q: Fraction, winner: int, margin: int) -> Fraction:
    return margin_at_least(scores, q, winner, margin) - margin_at_least(scores, q, winner, margin + 1)


def neighbours_of(scores: Iterable[int], sensitivity: int, monotone: bool) -> Iterable[list[int]]:
    """All score lists that may belong to a neighbour."""
    scores = list(scores)
    for move in product(range(-sensitivity, sensitivity + 1), repeat=len(scores)):
        if monotone and min(move) < 0 < max(move):
            continue
        yield [score + step for score, step in zip(scores, move, strict=True)]


def log_ratios(distribution: Iterable[mpmath.mpf], other: Iterable[mpmath.mpf]) -> list[mpmath.mpf]:
    return [mpmath.log(p / q) for p, q in zip(distribution, other, strict=True)]


def rejected(observed: Mapping[Hashable, int], distribution: Mapping[Hashable, object], alpha: float = ALPHA) -> bool:
    """Chi-square: whether `observed` counts do not look like draws from `distribution`; rare outcomes are pooled."""
    draws = sum(observed.values())
    assert set(observed) <= set(distribution)
    common = [outcome for outcome in distribution if draws * float(distribution[outcome]) >= 10]  # type: ignore[arg-type]
    seen = [observed.get(outcome, 0) for outcome in common]
    expected = [draws * float(distribution[outcome]) for outcome in common]  # type: ignore[arg-type]
    rest = draws - sum(expected)
    if rest > 1e-9 * draws:
        seen.append(draws - sum(seen))
        expected.append(rest)
    statistic = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True))
    return bool(stats.chi2.sf(statistic, len(seen) - 1) < alpha)


def counted(draw: Callable[[], Hashable], draws: int) -> dict[Hashable, int]:
    found: dict[Hashable, int] = {}
    for _ in range(draws):
        outcome = draw()
        found[outcome] = found.get(outcome, 0) + 1
    return found

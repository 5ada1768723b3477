"""The slow twin of every composition theorem: add up all 2^k transcripts of k leaky randomized responses.

A composition is (epsilon_g, delta_g)-DP for all mechanisms of its class exactly if it is for these, so the twin can
judge any claim by itself: it needs no theorem, only the definition of differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import flint

BITS = 1400  # enough for delta = 1e-300 with a hundred digits to spare


@contextmanager
def many_digits(bits: int = BITS) -> Iterator[None]:
    before, flint.ctx.prec = flint.ctx.prec, bits
    try:
        yield
    finally:
        flint.ctx.prec = before


@lru_cache(maxsize=4)
def distributions_of_transcripts(epsilons: tuple[float, ...], bits: int) -> list[tuple[Any, Any]]:
    """The probabilities of every transcript if the bit is one and if it is zero: every answer told or lied about."""
    with many_digits(bits):
        distributions = [(flint.arb(1), flint.arb(1))]
        for e in epsilons:
            told = flint.arb(e).exp() / (1 + flint.arb(e).exp())
            lied = 1 - told
            distributions = [(p * told, q * lied) for p, q in distributions] + [
                (p * lied, q * told) for p, q in distributions
            ]
        return distributions


def delta_of_transcripts(epsilons: Sequence[float], deltas: Sequence[float], epsilon_g: float) -> Any:
    """The least delta at `epsilon_g`, as a ball: sum over transcripts of max(0, P - exp(epsilon_g) Q)."""
    bits = BITS + int(2 * sum(epsilons))
    distributions = distributions_of_transcripts(
        tuple(map(float, epsilons)), bits
    )  # a table asks of the same charges ten times
    with many_digits(bits):
        threshold = flint.arb(epsilon_g).exp()
        tail = flint.arb(0)
        for p, q in distributions:
            tail += (p - threshold * q).max(flint.arb(0))
        kept = 1 - tail
        for delta in deltas:
            kept *= 1 - flint.arb(delta)
        return 1 - kept


def holds(epsilons: Sequence[float], deltas: Sequence[float], epsilon_g: float, delta_g: float) -> bool:
    """Whether the composition is (epsilon_g, delta_g)-DP; an undecided tie counts as yes."""
    if epsilon_g == math.inf:
        return True
    assert epsilon_g >= 0, "a bound must be a number >= 0"
    with many_digits():
        return not delta_of_transcripts(epsilons, deltas, epsilon_g) > flint.arb(delta_g)


def fails(epsilons: Sequence[float], deltas: Sequence[float], epsilon_g: float, delta_g: float) -> bool:
    """Whether the composition is surely not (epsilon_g, delta_g)-DP."""
    return epsilon_g < math.inf and not holds(epsilons, deltas, epsilon_g, delta_g)


def leak_exceeds(deltas: Sequence[float], delta_g: float) -> bool:
    """Whether the leaks alone are above delta_g, so that no epsilon exists."""
    with many_digits():
        return bool(delta_of_transcripts([], deltas, 0.0) > flint.arb(delta_g))

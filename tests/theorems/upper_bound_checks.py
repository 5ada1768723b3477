"""Checks that every upper bound with the signature bound(epsilons, delta_g, deltas) has to pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from theorems.transcripts import holds, leak_exceeds

Bound = Callable[[Sequence[float], float, Sequence[float]], float]


def check_sound(bound: Bound, charges: Sequence[tuple[float, float]], delta_g: float) -> None:
    """The claimed epsilon holds for the worst mechanisms of the class, by the definition of privacy."""
    epsilons, deltas = [e for e, _ in charges], [d for _, d in charges]
    claim = bound(epsilons, delta_g, deltas)
    assert holds(epsilons, deltas, claim, delta_g), f"{claim} does not hold at {delta_g}"
    if leak_exceeds(deltas, delta_g):
        assert claim == math.inf


def check_monotone(
    bound: Bound, charges: Sequence[tuple[float, float]], more: tuple[float, float], delta_g: float
) -> None:
    """More charges, larger charges and a smaller delta_g never lower the bound."""
    epsilons, deltas = [e for e, _ in charges], [d for _, d in charges]
    base = bound(epsilons, delta_g, deltas)
    for other in (
        bound([*epsilons, more[0]], delta_g, [*deltas, more[1]]),
        bound([e + more[0] for e in epsilons], delta_g, deltas),
        bound(epsilons, delta_g, [d + more[1] / 2 for d in deltas]),
        bound(epsilons, delta_g / 2, deltas),
    ):
        assert other >= base - 1e-9 * min(base, 1e9)


def check_degenerate(bound: Bound, *, at_delta_zero: float) -> None:
    """No charges, free charges, delta 0, and leaks above delta_g; `at_delta_zero` is the answer for [0.25, 0.5]."""
    assert bound([], 0.0, []) == 0
    assert bound([], 1e-300, []) == 0
    assert bound([0.0, 0.0], 1e-9, [0.0, 0.0]) == 0
    assert bound([0.25, 0.5], 0.0, [0.0, 0.0]) == at_delta_zero
    assert bound([0.25, 0.5], 1e-9, [0.0, 1e-8]) == math.inf
    assert bound([], 0.0, []) == bound([0.0], 0.1, [0.1]) == 0
    assert bound([1e300, 1e300], 1e-9, [0.0, 0.0]) >= 2e300  # overflow goes up, never down
    assert 0 <= bound([1e-200], 1e-250, [0.0]) < 1e-100  # underflow does not go down: the optimum is 1e-200
    assert holds([1e-200], [0.0], bound([1e-200], 1e-250, [0.0]), 1e-250)

"""From counts to bounds: rates by Clopper and Pearson, epsilon and delta from two rates."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farthing.accounting import Composition, compose
from farthing.errors import InvalidValue
from farthing.privacy import Event

# Where a curve is compared, beside delta = 0 and epsilon = 0. Smaller deltas would need more samples than anyone draws.
_VISIBLE = 1e-2
DELTAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Claim:
    """The points of a claimed curve, from its proven upper side; `main` is the one that is reported."""

    words: str
    points: tuple[tuple[float, float], ...]
    main: tuple[float, float]


def read_claim(claim: Any, mechanism: Any = None) -> Claim:
    """An event, several events, an epsilon, an (epsilon, delta) pair or a Composition, as points.

    A claim of None is what the mechanism itself says: its `event`.

    >>> claim = read_claim((1.0, 1e-3))
    >>> claim.main, (1.0, 1e-3) in claim.points
    ((1.0, 0.001), True)
    >>> read_claim(0.5).words
    'epsilon = 0.5'
    """
    if claim is None:
        claim = getattr(mechanism, "event", None)
        if not isinstance(claim, Event):
            raise InvalidValue(
                "claim",
                None,
                "must be given for a mechanism without an event",
                "write epsilon, or (epsilon, delta)",
            )
    if isinstance(claim, Composition):
        return _of_composition(claim, f"{claim!r}", None)
    if isinstance(claim, Event):
        return _of_composition(compose([claim]), f"{claim!r}", None)
    if _is_number(claim):
        return _of_composition(compose([claim]), f"epsilon = {float(claim):g}", None)
    if isinstance(claim, tuple) and len(claim) == 2 and all(_is_number(part) for part in claim):
        epsilon, delta = float(claim[0]), float(claim[1])
        words = f"epsilon = {epsilon:g}, delta = {delta:g}"
        return _of_composition(compose([claim]), words, (epsilon, delta))
    if isinstance(claim, Sequence) and not isinstance(claim, str | bytes):
        return _of_composition(compose(claim), f"{len(claim)} charges composed", None)
    way_out = "write epsilon, (epsilon, delta), an event of farthing.privacy, a list of events, or a Composition"
    raise InvalidValue("claim", claim, "must say what is claimed", way_out)


def _of_composition(composition: Composition, words: str, main: tuple[float, float] | None) -> Claim:
    pure = composition.epsilon_at(0.0).upper
    farthest = composition.delta_at(0.0).upper
    points = [(0.0, farthest)]
    points += [(composition.epsilon_at(delta).upper, delta) for delta in DELTAS if delta < farthest]
    points += [(pure, 0.0), *([] if main is None else [main])]
    # An epsilon that is infinite, or above what samples can show, claims nothing that could be contradicted.
    usable = tuple(dict.fromkeys(point for point in points if point[0] < 600 and point[1] < 1))
    if not usable:
        raise InvalidValue("claim", composition, "must be finite somewhere", "it allows everything")
    # Delta 0 where it is claimed, else a delta that samples have something to say about.
    if main not in usable:
        pure_points = [point for point in usable if point[1] == 0]
        main = pure_points[0] if pure_points else min(usable, key=lambda point: abs(point[1] - _VISIBLE))
    return Claim(words, usable, main)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


# The inverse beta function is good to about 1e-12; the bounds give that much away, and more.
_SLACK = 1e-9


def rate_bounds(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Bounds of a probability, each of which fails with probability at most `error`.

    Statement:
        If `hits` is binomial with `trials` trials and success probability p, then P[lower > p] <= error and
        P[upper < p] <= error, with lower the error-quantile of Beta(hits, trials - hits + 1) and upper the
        (1 - error)-quantile of Beta(hits + 1, trials - hits); lower = 0 at no hits, upper = 1 at no misses.
    Source: Clopper & Pearson, Biometrika 26(4), 1934, pages 404-413.
    Assumes: independent trials with the same p; trials fixed in advance; 0 < error < 1.
    Direction: an auditor needs a lower bound of one rate and an upper bound of the other; both are moved outward by
        1e-9 of themselves, which is more than the quantile can be wrong by.
    Checked by: tests/unit/auditing/test_epsilon_bounds.py

    >>> low, high = rate_bounds(50, 100, 0.025)
    >>> round(low, 4), round(high, 4)
    (0.3983, 0.6017)
    """
    from scipy.special import betaincinv

    lower = float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0
    upper = float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0
    # A quantile that is not a number would make every comparison false: give the bound away instead.
    low = lower * (1 - _SLACK) if lower >= 0 else 0.0
    high = min(1.0, upper * (1 + _SLACK)) if upper <= 1 else 1.0
    return low, high


def epsilon_from_rates(rate_lower: float, other_upper: float, delta: float) -> float:
    """The least epsilon >= 0 that rates p >= rate_lower and q <= other_upper of one event leave possible.

    Statement:
        If M is (epsilon, delta)-DP then p = P[M(D) in S] and q = P[M(D') in S] obey p <= e^epsilon q + delta, so that
        epsilon >= log((p - delta) / q), which is at least log((rate_lower - delta) / other_upper).
    Source: the definition; as a test, Wasserman & Zhou, JASA 105 (2010), and Kairouz, Oh & Viswanath,
        arXiv:1311.0776v4, Theorem 2.1.
    Assumes: rate_lower <= p, q <= other_upper; 0 <= delta < 1.
    Direction: a lower bound; it is never below 0, and it is infinite when q is known to be 0.
    Checked by: tests/unit/auditing/test_epsilon_bounds.py

    >>> round(epsilon_from_rates(0.5, 0.25, 0.0), 4), epsilon_from_rates(0.1, 0.3, 0.0)
    (0.6931, 0.0)
    """
    gap = rate_lower - delta
    if not gap > 0:
        return 0.0
    if not other_upper > 0:
        return math.inf
    return max(0.0, math.log(gap / other_upper))


def detectable_epsilon(rate: float, trials: int, error: float, epsilon: float, delta: float) -> float:
    """The least true epsilon that an event of this rate would have shown to exceed (epsilon, delta), 19 times in 20.

    The event has probability `rate` on one side and (rate - delta) e^(-x) on the other. Both counts are put where they
    fall no worse with probability 0.975 each (normal approximation), and the answer is the least x whose bound exceeds
    epsilon. Infinite when no x would do: the event is too rare for this many samples.

    >>> 1.0 < detectable_epsilon(0.5, 100_000, 0.001, 1.0, 0.0) < 1.1
    True
    >>> detectable_epsilon(1e-5, 1_000, 0.001, 1.0, 0.0)
    inf
    """

    def is_detectable(x: float) -> bool:
        other = max(0.0, rate - delta) * math.exp(-x)
        hits = math.floor(trials * rate - 1.96 * math.sqrt(trials * rate * (1 - rate)))
        misses = math.ceil(trials * other + 1.96 * math.sqrt(trials * other * (1 - other)))
        if hits <= 0:
            return False
        low, _ = rate_bounds(hits, trials, error)
        _, high = rate_bounds(min(misses, trials), trials, error)
        return epsilon_from_rates(low, high, delta) > epsilon

    least, most = epsilon, epsilon + 40.0  # beyond, the other rate is 0 for all that samples can say
    if not is_detectable(most):
        return math.inf
    for _ in range(40):
        middle = (least + most) / 2
        least, most = (least, middle) if is_detectable(middle) else (middle, most)
    return most

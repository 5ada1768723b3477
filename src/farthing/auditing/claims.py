"""What is claimed, as points of a curve: (epsilon, delta) pairs that all have to hold."""

from __future__ import annotations

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
    way_out = (
        "write epsilon, (epsilon, delta), an event of farthing.privacy, a list of events, or a Composition"
    )
    raise InvalidValue("claim", claim, "must say what is claimed", way_out)


def _of_composition(composition: Composition, words: str, main: tuple[float, float] | None) -> Claim:
    pure = composition.epsilon_at(0.0).upper
    farthest = composition.delta_at(0.0).upper
    points = [(0.0, farthest)]
    points += [(composition.epsilon_at(delta).upper, delta) for delta in DELTAS if delta < farthest]
    points += [(pure, 0.0), *([] if main is None else [main])]
    # An epsilon that is infinite, or above what samples can show, claims nothing that could be contradicted.
    kept = tuple(dict.fromkeys(point for point in points if point[0] < 600 and point[1] < 1))
    if not kept:
        raise InvalidValue("claim", composition, "must be finite somewhere", "it allows everything")
    if main not in kept:  # delta 0 where it is claimed, else a delta that samples have something to say about
        pure_points = [point for point in kept if point[1] == 0]
        main = pure_points[0] if pure_points else min(kept, key=lambda point: abs(point[1] - _VISIBLE))
    return Claim(words, kept, main)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)

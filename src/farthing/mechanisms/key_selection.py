"""Which groups exist: releasing keys that nobody named in advance, without pointing at a single unit.

A key that only one unit has may appear with probability at most delta. Three rules decide which keys are kept:

- "optimal": each key by a coin of the largest probability that privacy allows; keys only;
- "truncated_geometric": noise that never goes beyond its threshold; the noisy counts come free;
- "laplace": the classical threshold on a count with discrete Laplace noise; the noisy counts come free.

Counts are of *distinct units* per key, so one unit moves each of at most `max_keys_per_unit` counts by one.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, Literal

import numpy as np

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms._keep_laws import (
    KeepLaw,
    delta_per_key,
    laplace_threshold,
    optimal_keep_probabilities,
    truncated_geometric_threshold,
)
from farthing.mechanisms.base import Mechanism, checked_mechanism_epsilon
from farthing.mechanisms.exact import Bits, bernoulli, discrete_laplace
from farthing.mechanisms.randomness import Source
from farthing.privacy.events import ApproxDP, checked_count, checked_delta, checked_real

Rule = Literal["optimal", "truncated_geometric", "laplace"]
_RULES: Final = ("optimal", "truncated_geometric", "laplace")


@dataclass(frozen=True, slots=True)
class KeySelection(Mechanism):
    """The keys that enough units share, out of a mapping from key to its count of distinct units.

    Statement:
        Let one unit be counted under at most k = max_keys_per_unit keys, once each. Every key is decided by itself by
        a rule that is (epsilon / k, d)-DP for counts n and n + 1, n >= 0, and drops a count of 0 always, with
        1 - (1 - d)^k <= delta. Then the set of kept keys (with its noisy counts, if released) is (epsilon, delta)-DP
        for adding or removing a unit. The rule is one of those proven at `optimal_keep_probabilities`,
        `truncated_geometric_threshold` and `laplace_threshold`.
    Source: Desfontaines, Voss, Gipson & Mandayam, "Differentially private partition selection", arXiv:2006.03684,
        Theorem 1 and, for k keys, its last section; Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009, for "laplace".
        The delta of k independent decisions: Murtagh & Vadhan, arXiv:1507.03113, Theorem 1.5 at the sum of the
        epsilons. Keys without a unit are dropped surely, so a key that is absent and a count of 0 are the same.
    Assumes: neighbours add or remove one unit; counts are of distinct units, after each unit was brought down to
        at most k keys by a rule that looks at that unit alone.
    Direction: epsilon and delta are upper bounds; keep probabilities are rounded down, thresholds up.
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> selection = KeySelection(epsilon=1.0, delta=1e-6)
    >>> selection.event
    ApproxDP(epsilon=1.0, delta=1e-06)
    >>> selection.release({"flu": 5000, "measles": 4000, "a rarity": 0})
    ('flu', 'measles')
    >>> selection.keep_probability(1)
    1e-06
    >>> selection.needed(0.5), selection.needed(1.0)
    (14, 28)
    >>> KeySelection(epsilon=1.0, delta=1e-6, rule="laplace").needed(0.5)
    15
    """

    epsilon: float
    delta: float
    max_keys_per_unit: int = 1
    with_counts: bool = False
    rule: Rule | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        delta = checked_delta(self.delta)
        if not delta > 0:
            raise InvalidValue(
                "delta", self.delta, "must be > 0", "without a delta, keys must be named in advance"
            )
        object.__setattr__(self, "delta", delta)
        keys = checked_count(self.max_keys_per_unit, "max_keys_per_unit")
        if not 1 <= keys <= 2**20:
            raise InvalidValue("max_keys_per_unit", self.max_keys_per_unit, "must be from 1 to 2^20")
        object.__setattr__(self, "max_keys_per_unit", keys)
        if not isinstance(self.with_counts, bool):
            raise InvalidValue("with_counts", self.with_counts, "must be True or False")
        if self.rule is None:
            object.__setattr__(self, "rule", "truncated_geometric" if self.with_counts else "optimal")
        if self.rule not in _RULES:
            raise InvalidValue("rule", self.rule, f"must be one of {', '.join(_RULES)}")
        if self.rule == "optimal" and self.with_counts:
            raise InvalidValue(
                "rule",
                self.rule,
                "has no counts to release",
                "use rule='truncated_geometric' for noisy counts",
            )
        _ = self._law  # parameters out of reach are refused here, not at the first release

    @property
    def event(self) -> ApproxDP:
        """What one selection costs: (epsilon, delta), however many keys there are."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def threshold(self) -> int | None:
        """The least noisy count that is kept; None for the optimal rule, which has no threshold."""
        law = self._law
        return None if isinstance(law, tuple) else law.threshold

    def keep_probability(self, units: int) -> float:
        """The probability that a key with this many distinct units appears.

        >>> KeySelection(1.0, 1e-6).keep_probability(10)
        0.012818...
        """
        count = checked_count(units, "units")
        law = self._law
        if isinstance(law, tuple):
            return float(law[min(count, len(law) - 1)])
        return law.keep_probability(count)

    def needed(self, probability: float) -> int:
        """How many distinct units a key needs to appear with at least this probability.

        >>> KeySelection(1.0, 1e-6, max_keys_per_unit=4).needed(0.95)
        63
        """
        wanted = checked_real(probability, "probability")
        if not 0 < wanted <= 1:
            raise InvalidValue("probability", probability, "must be > 0 and <= 1")
        law = self._law
        if isinstance(law, tuple):
            return bisect_left(law, Fraction(wanted))
        if wanted == 1 and law.reach is None:
            raise InvalidValue(
                "probability", probability, "must be < 1 for rule='laplace', whose noise has no end"
            )
        low, high = 0, 1  # not enough, perhaps enough
        while not law.keep_probability(high) >= wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if law.keep_probability(middle) >= wanted else (middle, high)
        return high

    @property
    def _law(self) -> tuple[Fraction, ...] | KeepLaw:
        rate = Fraction(self.epsilon) / self.max_keys_per_unit
        share = delta_per_key(self.delta, self.max_keys_per_unit)
        if self.rule == "optimal":
            return optimal_keep_probabilities(rate, share)
        if self.rule == "truncated_geometric":
            return truncated_geometric_threshold(rate, share)
        return laplace_threshold(rate, share)

    def _answer(self, value: object, source: Source) -> tuple[Hashable, ...] | dict[Hashable, int]:
        counts = _checked_counts(value)
        bits = Bits(source)
        law = self._law
        kept: dict[Hashable, int] = {}
        for key, count in counts.items():
            if isinstance(law, tuple):
                if bernoulli(law[min(count, len(law) - 1)], bits):
                    kept[key] = count
            else:
                noisy = count + _noise(law, bits)
                if noisy >= law.threshold:
                    kept[key] = noisy
        order = _in_public_order(list(kept), bits)
        return {key: kept[key] for key in order} if self.with_counts else tuple(order)


def _noise(law: KeepLaw, bits: Bits) -> int:
    """Discrete Laplace noise, drawn again while it lies beyond the reach of the law."""
    while True:
        noise = discrete_laplace(1 / law.rate, bits)
        if law.reach is None or abs(noise) <= law.reach:
            return noise


def _checked_counts(value: object) -> dict[Hashable, int]:
    """The counts as Python integers without the zeros; neither a key nor a count is ever shown."""
    if not isinstance(value, Mapping):
        raise InvalidData("counts", f"must be a mapping from key to units, not {type(value).__name__}")
    counts = {}
    for key, count in value.items():
        number = _whole_count(count)
        if number is None:  # raised here, not where it was noticed: no exception may carry the count along
            raise InvalidData(
                "counts",
                "must hold whole numbers >= 0",
                "count the distinct units of each key, and drop missing counts by a public rule",
            )
        if number:
            counts[key] = number
    return counts


def _whole_count(count: object) -> int | None:
    try:
        return checked_count(count)
    except Exception:
        return None


def _in_public_order(keys: list[Hashable], bits: Bits) -> list[Hashable]:
    """The keys in an order that depends on the set of keys alone, or on nothing at all.

    A mapping remembers which row came first. Strings, numbers, dates and tuples of them are sorted; keys of any other
    kind have no order that is surely public (a repr may hold an address, subsets are ordered in part), so one such
    key makes the whole order random. So do two different keys of the same rank, which sorting would leave as they came.
    """
    try:
        ranked = sorted(((_rank(key), key) for key in keys), key=itemgetter(0))
        if all(before < after for (before, _), (after, _) in pairwise(ranked)):
            return [key for _, key in ranked]
    except TypeError:
        pass
    for last in range(len(keys) - 1, 0, -1):
        other = bits.below(last + 1)
        keys[last], keys[other] = keys[other], keys[last]
    return keys


def _rank(key: Any) -> tuple[Any, ...]:
    """A total order over plain keys: numbers, then the other kinds by name; TypeError for what has none."""
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, tuple):
        return ("tuple", tuple(_rank(part) for part in key))
    if key is None:
        return ("none",)
    if isinstance(key, float) and math.isnan(key):
        raise TypeError("not a number has no place in an order")
    if isinstance(key, int | float):
        return ("", key)
    if type(key) in (str, bytes, datetime.date):
        return (type(key).__name__, key)
    if type(key) in (datetime.datetime, datetime.time):
        return (type(key).__name__, key.tzinfo is not None, key)
    raise TypeError("a key without a public order")

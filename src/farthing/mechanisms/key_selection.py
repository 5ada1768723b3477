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
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, Literal

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import Mechanism, checked_integers
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.samplers.single_draws import Bits, bernoulli, discrete_laplace
from farthing.numerics.bounds import down, precision
from farthing.privacy.events import (
    ApproxDP,
    checked_count,
    checked_delta,
    checked_mechanism_epsilon,
    checked_real,
)

_LONGEST = 2**18  # a key that needs more units than this is never seen in practice


@dataclass(frozen=True, slots=True)
class KeepDistribution:
    """A count plus discrete Laplace noise of `rate` (no further from 0 than `reach`), kept from `threshold` on."""

    rate: Fraction
    threshold: int
    reach: int | None = None

    def keep_probability(self, units: int) -> float:
        """P(units + noise >= threshold), by the exact distribution, rounded down; exactly 0 and 1 where it is."""
        if units == 0:
            return 0.0  # keys without a unit are dropped before any noise
        least = self.threshold - units
        with precision(192):
            if self.reach is None:
                return max(0.0, down(_laplace_tail(self.rate, least)))
            if least > self.reach:
                return 0.0
            if least <= -self.reach:
                return 1.0
            q = _power(self.rate, 1)
            inside = 1 - 2 * _power(self.rate, self.reach + 1) / (1 + q)
            beyond = _power(self.rate, self.reach + 1) / (1 + q)
            return max(0.0, down((_laplace_tail(self.rate, least) - beyond) / inside))


@lru_cache(maxsize=256)
def delta_per_key(delta: float, keys: int) -> Fraction:
    """The largest d, up to rounding down, with 1 - (1 - d)^keys <= delta.

    >>> delta_per_key(0.75, 2)
    Fraction(1, 2)
    >>> 1 - (1 - delta_per_key(1e-6, 3)) ** 3 <= Fraction(1e-6)
    True
    """
    if keys == 1:
        return Fraction(delta)
    width = 64 + _bits_of(Fraction(delta) / keys)
    with precision(width + 64):
        exact = -((1 - flint.arb(delta)).log() / keys).expm1()
        per_key = Fraction(_floor_scaled(exact, width), 1 << width)
        # An exact power of so many digits would take minutes; the ball is good enough.
        if keys * width > _LONGEST:
            return per_key
        # A root that is a short fraction itself must not be lost to the ball around it.
        above = per_key + Fraction(1, 1 << width)
        return above if 1 - (1 - above) ** keys <= Fraction(delta) else per_key


@lru_cache(maxsize=8)
def optimal_keep_probabilities(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """The largest keep probability for n = 0, 1, 2, ... units, up to the first n where it is 1.

    Statement:
        A rule that keeps a key of n units with probability p(n), p(0) = 0, is (epsilon, delta)-DP for n and n + 1 if
        and only if, for both outcomes and both directions, P <= e^epsilon Q + delta. The largest such p is
            p(n) = min(e^epsilon p(n-1) + delta, 1 - e^-epsilon (1 - p(n-1) - delta), 1).
        Here e^epsilon is replaced by a rational just below and each p(n) is rounded down to a multiple of a power of
        two far below delta. Lowering p(n) after the minimum was taken keeps both constraints between n - 1 and n, and
        the next step starts from the lowered value; p still rises by nearly delta or more a step, so the other two
        constraints (which ask that p does not fall by much) hold as well. The rounded sequence is therefore private
        as it stands, not up to an error.
    Source: Desfontaines, Voss, Gipson & Mandayam, arXiv:2006.03684, Theorem 1 (recurrence) and Theorem 2 (closed
        form, used in the test).
    Assumes: 0 < delta < 1, epsilon > 0; one unit moves the count by one.
    Direction: at or below the optimum, by a relative 2^-50 for each unit at most.
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> [float(p) for p in optimal_keep_probabilities(Fraction(1), Fraction(1, 4))]
    [0.0, 0.25, 0.8160602794142788, 1.0]
    """
    width = 64 + _bits_of(delta)
    unit = 1 << width
    with precision(width + 64):
        # e^epsilon as a multiple of 2^-width, rounded down.
        growth = _floor_scaled(_ball(epsilon).exp(), width)
    leak = delta.numerator * unit // delta.denominator
    probabilities = [0]
    while probabilities[-1] < unit:
        if len(probabilities) > _LONGEST:
            raise InvalidValue(
                "epsilon",
                float(epsilon),
                f"is too small: a key would need more than {_LONGEST:,} units",
                "raise epsilon or delta, or lower max_keys_per_unit",
            )
        before = probabilities[-1]
        rising = growth * before // unit + leak
        # 1 - (1 - p - delta) / E rounded down: the subtracted part is rounded up.
        missing = max(0, unit - before - leak)
        falling = unit - -(-missing * unit // growth)
        probabilities.append(min(rising, falling, unit))
    return tuple(Fraction(p, unit) for p in probabilities)


@lru_cache(maxsize=256)
def truncated_geometric_threshold(epsilon: Fraction, delta: Fraction) -> KeepDistribution:
    """Noise of mass proportional to e^(-epsilon |j|), |j| <= K, with the least K whose edge has mass <= delta.

    Statement:
        With P(noise = K) <= delta, releasing n + noise if it is at least K + 1, and nothing otherwise, is
        (epsilon, delta)-DP for n and n + 1, n >= 0, and drops n = 0 always.
        Proof: at every value that both can reach, the two masses differ by a factor e^epsilon at most; each of the
        two can reach one value that the other cannot, its edge, of mass P(noise = K) <= delta. Thresholding is
        post-processing, and 0 + noise never reaches K + 1.
    Source: Desfontaines, Voss, Gipson & Mandayam, arXiv:2006.03684, on truncated geometric thresholding; the
        proof above is complete for the K used here.
    Assumes: 0 < delta < 1, epsilon > 0.
    Direction: K is the smallest that surely meets delta (comparisons by balls; doubt makes K larger).
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> truncated_geometric_threshold(Fraction(1), Fraction(1, 10**6)).threshold
    15
    """

    def meets(reach: int) -> bool:
        q = _power(epsilon, 1)
        mass = (1 - q) * _power(epsilon, reach) / (1 + q - 2 * _power(epsilon, reach + 1))
        return bool(mass <= _ball(delta))

    reach = _least(meets, delta)
    return KeepDistribution(epsilon, reach + 1, reach)


@lru_cache(maxsize=256)
def laplace_threshold(epsilon: Fraction, delta: Fraction) -> KeepDistribution:
    """Discrete Laplace noise of rate epsilon, with the least threshold that one unit passes with at most delta.

    Statement:
        With P(1 + noise >= t) <= delta, releasing n + noise if it is at least t, and nothing otherwise (and nothing
        for n = 0), is (epsilon, delta)-DP for n and n + 1, n >= 0.
        Proof: for n >= 1 it is post-processing of an epsilon-DP count. For n = 0 against 1 the distributions differ
            only on
        "something is released", of probability at most delta under one and 0 under the other.
    Source: Korolova, Kenthapadi, Mishra & Ntoulas, "Releasing search queries and clicks privately", WWW 2009,
        Theorem 1, for the continuous distribution; P(noise >= m) = e^(-epsilon m) / (1 + e^-epsilon), m >= 1, for the
        discrete one.
    Assumes: 0 < delta < 1, epsilon > 0.
    Direction: the smallest threshold that surely meets delta (comparisons by balls; doubt makes it larger).
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> laplace_threshold(Fraction(1), Fraction(1, 10**6)).threshold
    15
    """
    return KeepDistribution(epsilon, 1 + _least(lambda m: bool(_laplace_tail(epsilon, m) <= _ball(delta)), delta))


def _least(meets: Any, delta: Fraction) -> int:
    """The least m >= 0 that surely meets a condition which, once met, stays met."""
    with precision(128 + 2 * _bits_of(delta)):
        low, high = -1, 1
        while not meets(high):
            low, high = high, 2 * high
            if high > 2**80:
                raise InvalidValue("epsilon", high, "is too small for any threshold", "raise epsilon")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(middle) else (middle, high)
        return high


def _laplace_tail(rate: Fraction, least: int) -> Any:
    """P(noise >= least) for mass proportional to e^(-rate |j|)."""
    q = _power(rate, 1)
    if least > 0:
        return _power(rate, least) / (1 + q)
    return 1 - _power(rate, 1 - least) / (1 + q)


def _power(rate: Fraction, times: int) -> Any:
    return (-_ball(rate) * times).exp()


def _ball(value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _floor_scaled(ball: Any, width: int) -> int:
    """A whole number at or below ball * 2^width, and within two of it."""
    mantissa, exponent = (ball * flint.arb(2) ** width).lower().man_exp()
    scaled = int(mantissa) << int(exponent) if int(exponent) >= 0 else int(mantissa) >> -int(exponent)
    return max(0, scaled)


def _bits_of(value: Fraction) -> int:
    """About log2(1 / value), at least 0."""
    return max(0, value.denominator.bit_length() - value.numerator.bit_length() + 1)


Rule = Literal["optimal", "truncated_geometric", "laplace"]
_RULES: Final = ("optimal", "truncated_geometric", "laplace")


@dataclass(frozen=True, slots=True)
class KeySelection(Mechanism):
    """The keys that enough units share, out of a mapping from key to its count of distinct units.

    Args:
        epsilon: The epsilon of the whole selection, > 0.
        delta: Its delta, > 0: without one, keys must be named in advance.
        max_keys_per_unit: Under how many keys one unit is counted at most.
        with_counts: Whether to release a noisy count with each key.
        rule: "optimal" (the default without counts), "truncated_geometric" (the default with counts) or "laplace".

    Raises:
        InvalidValue: If a parameter is out of its range, or the rule has no counts and they are asked for.

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
            raise InvalidValue("delta", self.delta, "must be > 0", "without a delta, keys must be named in advance")
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
        _ = self._distribution  # parameters out of reach are refused here, not at the first release

    @property
    def event(self) -> ApproxDP:
        """What one selection costs: (epsilon, delta), however many keys there are."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def threshold(self) -> int | None:
        """The least noisy count that is kept; None for the optimal rule, which has no threshold."""
        distribution = self._distribution
        return None if isinstance(distribution, tuple) else distribution.threshold

    def keep_probability(self, units: int) -> float:
        """The probability that a key with this many distinct units appears.

        Args:
            units: How many distinct units have the key.

        Returns:
            The probability, to the nearest double.

        Raises:
            InvalidValue: If `units` is not a whole number >= 0.

        >>> KeySelection(1.0, 1e-6).keep_probability(10)
        0.012818...
        """
        count = checked_count(units, "units")
        distribution = self._distribution
        if isinstance(distribution, tuple):
            return float(distribution[min(count, len(distribution) - 1)])
        return distribution.keep_probability(count)

    def needed(self, probability: float) -> int:
        """How many distinct units a key needs to appear with at least this probability.

        Args:
            probability: The probability with which the key must appear, > 0 and at most 1.

        Returns:
            The least number of units.

        Raises:
            InvalidValue: If `probability` is out of range; "laplace" reaches no probability of 1.

        >>> KeySelection(1.0, 1e-6, max_keys_per_unit=4).needed(0.95)
        63
        """
        wanted = checked_real(probability, "probability")
        if not 0 < wanted <= 1:
            raise InvalidValue("probability", probability, "must be > 0 and <= 1")
        distribution = self._distribution
        if isinstance(distribution, tuple):
            return bisect_left(distribution, Fraction(wanted))
        if wanted == 1 and distribution.reach is None:
            raise InvalidValue("probability", probability, "must be < 1 for rule='laplace', whose noise is unbounded")
        low, high = 0, 1  # not enough, perhaps enough
        while not distribution.keep_probability(high) >= wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if distribution.keep_probability(middle) >= wanted else (middle, high)
        return high

    @property
    def weights(self) -> tuple[int, ...]:
        """What a unit adds to each of its keys: 1, however many they are."""
        return (1,) * self.max_keys_per_unit

    def kept(self, counts: Any) -> NDArray[np.bool_]:
        """Which of many keys are kept: private counts in, decisions out, as `release` makes them.

        Args:
            counts: The number of distinct units of each key.

        Returns:
            A flag for each key.

        Raises:
            InvalidValue: If the rule is another than "optimal".
            InvalidData: If the counts are not whole numbers.

        >>> KeySelection(1.0, 1e-6).kept([0, 5000]).tolist()
        [False, True]
        """
        return self._kept(counts, SYSTEM)

    def _kept(self, counts: Any, source: Source) -> NDArray[np.bool_]:
        table = self._distribution
        if not isinstance(table, tuple):
            raise InvalidValue("rule", self.rule, "must be optimal to decide many keys at once")
        places = np.clip(checked_integers(counts, "counts"), 0, len(table) - 1)
        # A coin is a word of 64 random bits below p 2^64; where they are equal, the rest of p decides by further bits.
        limits = np.array([min((p * 2**64).__floor__(), 2**64 - 1) for p in table], dtype=np.uint64)[places]
        words = np.frombuffer(source.take(8 * places.size), dtype="<u8").reshape(places.shape)
        kept: NDArray[np.bool_] = (words < limits) | (places == len(table) - 1)
        for place in np.flatnonzero(words == limits):
            rest = table[places.flat[place]] * 2**64
            kept.flat[place] = bernoulli(min(rest - int(limits.flat[place]), Fraction(1)), Bits(source))
        return kept

    @property
    def _distribution(self) -> tuple[Fraction, ...] | KeepDistribution:
        rate = Fraction(self.epsilon) / self.max_keys_per_unit
        share = delta_per_key(self.delta, self.max_keys_per_unit)
        if self.rule == "optimal":
            return optimal_keep_probabilities(rate, share)
        if self.rule == "truncated_geometric":
            return truncated_geometric_threshold(rate, share)
        return laplace_threshold(rate, share)

    def _answer(self, value: object, source: Source) -> tuple[Hashable, ...] | dict[Hashable, int]:
        counts = checked_counts(value)
        bits = Bits(source)
        distribution = self._distribution
        selected: dict[Hashable, int] = {}
        for key, count in counts.items():
            if isinstance(distribution, tuple):
                if bernoulli(distribution[min(count, len(distribution) - 1)], bits):
                    selected[key] = count
            else:
                noisy = count + _noise(distribution, bits)
                if noisy >= distribution.threshold:
                    selected[key] = noisy
        order = in_public_order(list(selected), bits)
        return {key: selected[key] for key in order} if self.with_counts else tuple(order)


def _noise(distribution: KeepDistribution, bits: Bits) -> int:
    """Discrete Laplace noise, drawn again while it lies beyond the reach of the distribution."""
    while True:
        noise = discrete_laplace(1 / distribution.rate, bits)
        if distribution.reach is None or abs(noise) <= distribution.reach:
            return noise


def checked_counts(value: object) -> dict[Hashable, int]:
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


def in_public_order(keys: list[Hashable], bits: Bits) -> list[Hashable]:
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

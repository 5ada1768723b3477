"""Which groups exist, where one unit may be in several: less weight for units in many groups, and Gaussian noise.

Divided evenly, epsilon / k for each of k keys makes thresholds grow like k. Gaussian noise is charged for the length of
the vector that one unit adds, so they grow like sqrt(k); and a unit that is in one group only counts there in full.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms.additive import vector_event, with_noise
from farthing.mechanisms.key_selection import KeySelection, checked_counts, in_public_order
from farthing.mechanisms.mechanism import Mechanism, checked_integers
from farthing.mechanisms.noise_distributions import DiscreteGaussianDistribution
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.samplers.vector_draws import discrete_gaussian_noise
from farthing.numerics.bounds import down, precision
from farthing.privacy.events import (
    ApproxDP,
    Composed,
    Event,
    GaussianNoise,
    checked_count,
    checked_delta,
    checked_mechanism_epsilon,
    checked_real,
)

MOST_KEYS = 1_000
"""Under how many keys one unit may be counted."""

_STEPS = 1_024  # of the weight of a unit in one key, for each key that it may be in: the root of them
_BITS = 160
_SHARES = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(3, 4))  # of delta, for the threshold
_LARGEST = 2**80  # squared steps of noise; more is no use to anybody


class _Noise(NamedTuple):
    """Variance of the noise, and the least weight that is kept, in steps."""

    variance: int
    threshold: int


@dataclass(frozen=True, slots=True)
class WeightedKeySelection(Mechanism):
    """The keys that enough units share, out of a mapping from key to the weights of its units, added up.

    Args:
        epsilon: The epsilon of the whole selection, > 0.
        delta: Its delta, > 0: without one, keys must be named in advance.
        max_keys_per_unit: Under how many keys one unit is counted at most.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        A unit in t <= k = max_keys_per_unit keys adds w_t = floor(G / sqrt(t)) to each of them, and nothing to any
        other. Every key with a unit gets discrete Gaussian noise of variance S, and is kept from the threshold T on.
        If (a) a release of integers of l2 sensitivity G, of which k change at most, with this noise is
        (epsilon, d)-DP, (b) t P(noise >= T - w_t) <= c for t = 1, ..., k and (c) d + c / (1 - c) <= delta, then the set
        of kept keys is (epsilon, delta)-DP for adding or removing a unit.
        Proof: let D' be D and a unit of t keys, j of them new. Let A be "no new key is kept": P'(A) >= 1 - c by (b),
        independently of the noise on the other keys. Write Q and Q' for the distributions of the kept keys among those
        of D, without and with the unit: they are the same function of two releases as in (a), because
        t w_t^2 <= G^2. With D' first: P'(E) - e^epsilon P(E) <= P'(not A) + Q'(E) - e^epsilon Q(E) <= c + d. With D
        first, where E needs no new key: Q(E) - e^epsilon P'(E) <= Q(E) - e^epsilon (1 - c) Q'(E), which is largest
        where Q > e^epsilon (1 - c) Q'; there e^epsilon Q'(E) <= 1 / (1 - c), so it is at most d + c / (1 - c).
    Source: weights: Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin, "Differentially private set union",
        arXiv:2002.09745, on the weighted Gaussian; the proof above is complete for the integers used here. (a) is
        `vector_event`, read at epsilon by the formula of Balle & Wang, arXiv:1805.06530, Theorem 8. For (b), noise at
        least m >= 1 has at most the probability that a Gaussian is at least m - 1: each mass is below the integral
        over the step before it, and the sum of all masses is at least sqrt(2 pi S) by Poisson summation.
    Assumes: neighbours add or remove one unit; a unit was brought down to at most k keys by a rule that looks at that
        unit alone; weights are those of `weights`.
    Direction: epsilon and delta are upper bounds; comparisons by balls, where doubt makes the noise and the threshold
        larger.
    Checked by: tests/theorems/test_weighted_keys_are_private.py

    >>> selection = WeightedKeySelection(epsilon=1.0, delta=1e-6, max_keys_per_unit=10)
    >>> selection.event
    ApproxDP(epsilon=1.0, delta=1e-06)
    >>> one, *_, ten = selection.weights
    >>> selection.release({"flu": 5_000 * one, "measles": 4_000 * ten, "a rarity": 0})
    ('flu', 'measles')
    >>> selection.needed(0.95), selection.needed(0.95, keys=1)  # its units in ten keys each, or in this one alone
    (98, 31)
    """

    epsilon: float
    delta: float
    max_keys_per_unit: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        delta = checked_delta(self.delta)
        if not delta > 0:
            raise InvalidValue("delta", self.delta, "must be > 0", "without a delta, keys must be named in advance")
        object.__setattr__(self, "delta", delta)
        keys = checked_count(self.max_keys_per_unit, "max_keys_per_unit")
        if not 1 <= keys <= MOST_KEYS:
            raise InvalidValue("max_keys_per_unit", self.max_keys_per_unit, f"must be from 1 to {MOST_KEYS:,}")
        object.__setattr__(self, "max_keys_per_unit", keys)
        _ = self._noise  # parameters out of reach are refused here, not at the first release

    @property
    def event(self) -> ApproxDP:
        """What one selection costs: (epsilon, delta), however many keys there are."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def weights(self) -> tuple[int, ...]:
        """What a unit adds to each of its keys, in steps, if it is in 1, 2, ... of them."""
        return _weights(self.max_keys_per_unit)

    @property
    def threshold(self) -> int:
        """The least noisy weight that is kept, in steps."""
        return self._noise.threshold

    def keep_probability(self, units: int, keys: int | None = None) -> float:
        """The probability that a key with this many distinct units appears.

        Args:
            units: How many distinct units have the key.
            keys: How many keys each of them has; as many as there may be by default, which is the worst case.

        Returns:
            The probability, rounded down.

        Raises:
            InvalidValue: If `units` is not a whole number >= 0, or `keys` is more than there may be.

        >>> WeightedKeySelection(1.0, 1e-6, 4).keep_probability(60)
        0.945...
        """
        count, weight = checked_count(units, "units"), self._weight_of(keys)
        if count == 0:
            return 0.0  # keys without a unit are dropped before any noise
        least, distribution = self.threshold - count * weight, DiscreteGaussianDistribution(self._variance)
        with precision(_BITS):
            # noise >= least: for least <= 0 all but noise > -least.
            tail = distribution._tail(abs(least - 1) if least > 0 else -least) / 2
            return max(0.0, down(tail if least > 0 else 1 - tail))

    def needed(self, probability: float, keys: int | None = None) -> int:
        """How many distinct units a key needs to appear with at least this probability.

        Args:
            probability: The probability with which the key must appear, > 0 and < 1.
            keys: How many keys each of the units has; as many as there may be by default, which is the worst case.

        Returns:
            The least number of units.

        Raises:
            InvalidValue: If `probability` is out of range, or `keys` is more than there may be.

        >>> WeightedKeySelection(1.0, 1e-6, 4).needed(0.95)
        61
        """
        wanted = checked_real(probability, "probability")
        if not 0 < wanted < 1:
            raise InvalidValue("probability", probability, "must be > 0 and < 1")
        low, high = 0, 1  # not enough, perhaps enough
        while not self.keep_probability(high, keys) >= wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.keep_probability(middle, keys) >= wanted else (middle, high)
        return high

    def kept(self, weights: Any) -> NDArray[np.bool_]:
        """Which of many keys are kept: private weights in, decisions out, as `release` makes them.

        Args:
            weights: The weights of the units of each key, added up.

        Returns:
            A flag for each key.

        Raises:
            InvalidData: If the weights are not whole numbers.

        >>> WeightedKeySelection(1.0, 1e-6).kept([0, 10**6]).tolist()
        [False, True]
        """
        return self._kept(weights, SYSTEM)

    def _kept(self, weights: Any, source: Source) -> NDArray[np.bool_]:
        array = checked_integers(weights, "weights")
        noise = discrete_gaussian_noise(self._variance, array.size, source)
        return (with_noise(array, noise) >= self.threshold) & (array > 0)

    @property
    def _noise(self) -> _Noise:
        return _noise_of(self.epsilon, self.delta, self.max_keys_per_unit)

    @property
    def _variance(self) -> Fraction:
        return Fraction(self._noise.variance)

    def _weight_of(self, keys: int | None) -> int:
        number = self.max_keys_per_unit if keys is None else checked_count(keys, "keys")
        if not 1 <= number <= self.max_keys_per_unit:
            raise InvalidValue("keys", keys, f"must be from 1 to {self.max_keys_per_unit}")
        return self.weights[number - 1]

    def _answer(self, value: object, source: Source) -> tuple[Hashable, ...]:
        counts = checked_counts(value)
        if not counts:
            return ()
        mask = self._kept(list(counts.values()), source)
        keys = [key for key, kept in zip(counts, mask.tolist(), strict=True) if kept]
        return tuple(in_public_order(keys, Bits(source)))


def selection_for(epsilon: float, delta: float, keys: int) -> KeySelection | WeightedKeySelection:
    """The selection that finds the smaller keys, whatever the units: decided by public parameters alone.

    Args:
        epsilon: The epsilon of the whole selection, > 0.
        delta: Its delta, > 0.
        keys: Under how many keys one unit is counted at most.

    Returns:
        Whichever needs fewer units for a probability of 95%.

    Raises:
        InvalidValue: If a parameter is out of its range, or epsilon is too small for any selection.

    >>> selection_for(1.0, 1e-6, 1).needed(0.95), selection_for(1.0, 1e-6, 100).needed(0.95)
    (16, 322)
    """
    weighted = WeightedKeySelection(epsilon, delta, keys)
    try:
        even = KeySelection(epsilon, delta, keys)
    except InvalidValue:  # it would need a longer table of probabilities than anybody has keys
        return weighted
    return even if even.needed(0.95) < weighted.needed(0.95) else weighted


@lru_cache(maxsize=64)
def _weights(keys: int) -> tuple[int, ...]:
    length = _length(keys)
    return tuple(math.isqrt(length * length // t) for t in range(1, keys + 1))


def _length(keys: int) -> int:
    """G: the l2 norm, in steps, of what one unit adds."""
    return _STEPS * (math.isqrt(keys - 1) + 1)


@lru_cache(maxsize=64)
def _noise_of(epsilon: float, delta: float, keys: int) -> _Noise:
    """Of a few divisions of delta, the one whose keys need the least weight to appear with 95%."""
    candidates = []
    with precision(_BITS):
        for share in _SHARES:
            part = share * Fraction(delta)
            crossing = part / (1 + part)  # c / (1 - c) is the part
            variance = _variance_for(epsilon, Fraction(delta) - part, keys)
            threshold = _threshold_for(variance, crossing, keys)
            candidates.append((threshold + 1.645 * math.sqrt(variance), _Noise(variance, threshold)))
    return min(candidates)[1]


def _variance_for(epsilon: float, delta: Fraction, keys: int) -> int:
    """The least variance, in squared steps, that is surely (epsilon, delta)-DP for what one unit adds."""
    length = _length(keys)

    def meets(variance: int) -> bool:
        try:
            event = vector_event(Fraction(variance), float(length), keys)
        except InvalidValue:
            return False
        return bool(leak_of(event, epsilon) <= _ball(delta))

    low, high = 0, length * length
    while not meets(high):
        low, high = high, 4 * high
        if high > _LARGEST:
            raise InvalidValue("epsilon", epsilon, "is too small for any threshold", "raise epsilon or delta")
    while high - low > max(1, high >> 20):
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def leak_of(event: Event, epsilon: float) -> Any:
    """The delta, as a ball, of noise on a vector (`vector_event`) at epsilon."""
    assert isinstance(event, Composed)
    gaussian, leak = (part for part, _ in event.parts)
    assert isinstance(gaussian, GaussianNoise) and isinstance(leak, ApproxDP)
    lost = flint.arb(leak.delta)
    return lost + (1 - lost) * _hockey_stick(epsilon, gaussian.noise_multiplier)


def _hockey_stick(epsilon: float, multiplier: float) -> Any:
    """The delta of Gaussian noise at epsilon: Phi(1/(2m) - epsilon m) - e^epsilon Phi(-1/(2m) - epsilon m)."""
    half, shift = 1 / (2 * flint.arb(multiplier)), flint.arb(epsilon) * flint.arb(multiplier)
    return _above(shift - half) - flint.arb(epsilon).exp() * _above(shift + half)


def _above(place: Any) -> Any:
    """P(a standard Gaussian >= place)."""
    return (place / flint.arb(2).sqrt()).erfc() / 2


def _threshold_for(variance: int, crossing: Fraction, keys: int) -> int:
    """The least threshold that, whatever t is, the new keys of one unit pass with at most `crossing`."""
    sigma, threshold = flint.arb(variance).sqrt(), 1
    for t, weight in enumerate(_weights(keys), start=1):
        allowed = _ball(crossing / t)

        def meets(threshold: int, weight: int = weight, allowed: Any = allowed) -> bool:
            over = threshold - weight
            return over >= 1 and bool(_above((over - 1) / sigma) <= allowed)

        if meets(threshold):
            continue  # for fewer keys it had to be higher
        low, high = threshold, 2 * (threshold + weight)
        while not meets(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(middle) else (middle, high)
        threshold = high
    return threshold


def _ball(value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))

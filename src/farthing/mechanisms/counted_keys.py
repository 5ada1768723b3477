"""Which groups exist, each with its noisy count: one noise decides and is released, so that counts cost nothing more.

A key is seen only if its noisy count reaches a threshold, and the noise of those that are seen near it was mostly up.
`estimates` takes that back on average, and `intervals` hold for every key that is seen, however many units it has.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms.additive import vector_event, with_noise
from farthing.mechanisms.key_selection import (
    checked_counts,
    delta_per_key,
    in_public_order,
    truncated_geometric_threshold,
)
from farthing.mechanisms.mechanism import Mechanism, checked_integers
from farthing.mechanisms.noise_distributions import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.samplers.vector_draws import discrete_gaussian_noise, discrete_laplace_noise
from farthing.mechanisms.weighted_keys import MOST_KEYS, leak_of
from farthing.numerics.bounds import precision
from farthing.privacy.events import (
    ApproxDP,
    checked_count,
    checked_delta,
    checked_mechanism_epsilon,
    checked_real,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NoiseKind = Literal["laplace", "gaussian"]

_BITS = 160
_STEPS = 1_024  # of a variance: finer ones would not be noticed
_SHARES = (
    Fraction(1, 2),
    Fraction(1, 4),
    Fraction(1, 8),
    Fraction(1, 16),
)  # of delta, for the threshold of Gaussian noise
_LARGEST = 2**60  # of a variance, in these steps
_MOST_SCANNED = 100_000  # counts that a promise looks at one by one
_DOUBT = 1e-9  # relative: tails are doubles, and an interval is rather too wide


class KeyNoise(NamedTuple):
    """The noise on every count, and the least noisy count that is seen."""

    kind: NoiseKind
    spread: Fraction  # 1 / rate of Laplace noise, which is no further from 0 than `threshold` - 1; or the variance
    threshold: int

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise; cutting Laplace noise off makes it a little smaller than this."""
        if self.kind == "gaussian":
            return math.sqrt(self.spread)
        return math.sqrt(DiscreteLaplaceDistribution(self.spread).variance)


@dataclass(frozen=True)
class CountedKeys(Mechanism):
    """The keys that enough units share, each with a noisy count, from a mapping from key to its distinct units.

    Args:
        epsilon: The epsilon of the whole, > 0.
        delta: Its delta, > 0: without one, keys must be named in advance.
        max_keys_per_unit: Under how many keys one unit is counted at most.
        kind: "laplace" or "gaussian"; by default the one whose counts have the smaller error.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        Let one unit be counted under at most k = max_keys_per_unit keys, once each. Every key with a unit gets
        independent noise, and is released with its noisy count if that reaches the threshold T.
        Laplace: each key by itself is (epsilon / k, d)-DP by `truncated_geometric_threshold`, 1 - (1 - d)^k <= delta;
        see `KeySelection`, whose releases with counts have this very distribution.
        Gaussian: if (a) integers of l2 sensitivity sqrt(k), of which k change at most, with discrete Gaussian noise of
        this variance are (epsilon, d)-DP, (b) k P(noise >= T - 1) <= c and (c) d + c / (1 - c) <= delta, then the
        release is (epsilon, delta)-DP. This is the statement of `WeightedKeySelection` for weights of 1: its proof
        compares functions of the noisy weights of the keys that both neighbours have, and here the function is "those
        that reach T, with their noisy counts" in place of "which reach T".
    Source: Desfontaines, Voss, Gipson & Mandayam, arXiv:2006.03684; Gopi et al., arXiv:2002.09745, with the proof at
        `WeightedKeySelection`.
    Assumes: neighbours add or remove one unit; counts are of distinct units, after each unit was brought down to at
        most k keys by a rule that looks at that unit alone.
    Direction: epsilon and delta are upper bounds; comparisons by balls, where doubt makes noise and threshold larger.
    Checked by: tests/theorems/test_counted_keys.py

    >>> selection = CountedKeys(1.0, 1e-6)
    >>> selection.event, selection.threshold, selection.kind
    (ApproxDP(epsilon=1.0, delta=1e-06), 15, 'laplace')
    >>> list(selection.release({"flu": 5_000, "a rarity": 0}))
    ['flu']
    >>> CountedKeys(1.0, 1e-6, 30).kind
    'gaussian'
    """

    epsilon: float
    delta: float
    max_keys_per_unit: int = 1
    kind: NoiseKind | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        delta = checked_delta(self.delta)
        if not delta > 0:
            raise InvalidValue("delta", self.delta, "must be > 0", "without a delta, keys must be named in advance")
        object.__setattr__(self, "delta", delta)
        keys = checked_count(self.max_keys_per_unit, "max_keys_per_unit")
        if not 1 <= keys <= 2 * MOST_KEYS:
            raise InvalidValue("max_keys_per_unit", self.max_keys_per_unit, f"must be from 1 to {2 * MOST_KEYS:,}")
        object.__setattr__(self, "max_keys_per_unit", keys)
        if self.kind not in (None, "laplace", "gaussian"):
            raise InvalidValue("kind", self.kind, "must be laplace or gaussian", "leave it out for the smaller error")
        object.__setattr__(self, "kind", self.noise.kind)

    @cached_property
    def noise(self) -> KeyNoise:
        """Which noise every count gets."""
        return _noise_of(self.epsilon, self.delta, self.max_keys_per_unit, self.kind)

    @property
    def event(self) -> ApproxDP:
        """What one release costs: (epsilon, delta), however many keys there are."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def threshold(self) -> int:
        """The least noisy count that is seen."""
        return self.noise.threshold

    @property
    def weights(self) -> tuple[int, ...]:
        """What a unit adds to each of its keys: 1, however many they are."""
        return (1,) * self.max_keys_per_unit

    def keep_probability(self, units: int) -> float:
        """The probability that a key with this many distinct units appears.

        Args:
            units: How many distinct units have the key.

        Returns:
            The probability, rounded down.

        Raises:
            InvalidValue: If `units` is not a whole number >= 0.

        >>> CountedKeys(1.0, 1e-6).keep_probability(15)
        0.73...
        """
        count = checked_count(units, "units")
        return float(self._tail(np.array([self.threshold - count]))[0][0]) if count else 0.0

    def needed(self, probability: float) -> int:
        """How many distinct units a key needs to appear with at least this probability.

        Args:
            probability: The probability with which the key must appear, > 0 and < 1.

        Returns:
            The least number of units.

        Raises:
            InvalidValue: If `probability` is out of range.

        >>> CountedKeys(1.0, 1e-6).needed(0.95)
        17
        """
        wanted = checked_real(probability, "probability")
        if not 0 < wanted < 1:
            raise InvalidValue("probability", probability, "must be > 0 and < 1")
        low, high = 0, 1  # not enough, perhaps enough
        while not self.keep_probability(high) >= wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.keep_probability(middle) >= wanted else (middle, high)
        return high

    def noisy(self, counts: Any) -> tuple[NDArray[np.bool_], Integers]:
        """Which of many keys are seen, and the noisy counts of all: publish those of the seen ones alone.

        Args:
            counts: The number of distinct units of each key.

        Returns:
            A flag and a noisy count for each key.

        Raises:
            InvalidData: If the counts are not whole numbers.

        >>> CountedKeys(1.0, 1e-6).noisy([0, 5_000])[0].tolist()
        [False, True]
        """
        return self._noisy(counts, SYSTEM)

    def _noisy(self, counts: Any, source: Source) -> tuple[NDArray[np.bool_], Integers]:
        array = checked_integers(counts, "counts")
        drawn = with_noise(array, self._drawn(array.size, source).reshape(array.shape))
        return (drawn >= self.threshold) & (array > 0), drawn

    def _drawn(self, size: int, source: Source) -> Integers:
        if self.noise.kind == "gaussian":
            return discrete_gaussian_noise(self.noise.spread, size, source)
        noise = discrete_laplace_noise(self.noise.spread, size, source)
        while (beyond := np.flatnonzero(np.abs(noise) >= self.threshold)).size:  # drawn again, never clamped
            noise[beyond] = discrete_laplace_noise(self.noise.spread, beyond.size, source)
        return noise

    def estimates(self, noisy: Any) -> Floats:
        """What seen counts are expected to come from: the noisy count, less what being seen has added on average.

        Statement:
            Let X = n + noise, seen if X >= T, and S(j) = P(noise >= j). The estimate is
                g(x) = x - E|noise| (S(x - T) + S(x - T + 1)) / (2 S(0)^2).
            Of a key with n = T units, E[g(X) | seen] = n: E[noise | noise >= 0] = E|noise| / (2 S(0)), and the sum of
            (S(j) - S(j + 1)) (S(j) + S(j + 1)) over j >= 0 is S(0)^2. For n > T the bias stays within a quarter of the
            standard error and falls as fast as the tail; the noisy count itself is too high by up to E|noise|. Of a key
            with n < T units, which is seen by luck, it is at most about T on average: for Laplace noise nothing that is
            seen tells n.
        Source: own derivation.
        Assumes: noise symmetric.
        Direction: both; it is an estimate. No guarantee rests on it.
        Checked by: tests/theorems/test_counted_keys.py

        Args:
            noisy: Released counts, each at least the threshold.

        Returns:
            An estimate for each of them, at least 1: a key that is seen has a unit.

        >>> CountedKeys(1.0, 1e-6).estimates([15, 18, 40]).round(2).tolist()
        [14.2, 17.96, 40.0]
        """
        array = np.asarray(noisy, dtype=np.int64)
        estimates: Floats = np.maximum(array - self._excess * self._two_tails(array - self.threshold), 1.0)
        return estimates

    def intervals(self, noisy: Any, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """For each key that is seen, an interval that holds its count of units with this probability, being seen given.

        Statement:
            For every n >= 1, P(lower(X) <= n <= upper(X) | X >= T) >= confidence, where lower(x) is the least n with
            P(X >= x | X >= T) > a, upper(x) the largest with P(X <= x | X >= T) > a, and a = (1 - confidence) / 2.
        Source: Neyman's construction for the distribution of a count that is seen; both probabilities are monotone in
            n because the noise is log-concave, so that ends can be found by halving.
        Assumes: units of the key after each was brought down to its keys: what that leaves out is in no interval.
        Direction: tails are rounded so that intervals are rather too wide; of Gaussian noise by a step at most.
        Checked by: tests/theorems/test_counted_keys.py

        Args:
            noisy: Released counts, each at least the threshold.
            confidence: How often the interval of a key that is seen holds its count.

        Returns:
            The lower and the upper ends.

        Raises:
            InvalidValue: If the confidence is not between 0 and 1.

        >>> low, high = CountedKeys(1.0, 1e-6).intervals([15, 18, 40])
        >>> low.tolist(), high.tolist()
        ([1.0, 4.0, 37.0], [17.0, 21.0, 43.0])
        """
        level = checked_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidValue("confidence", confidence, "must be above 0 and below 1", "0.95 is a common choice")
        array = np.asarray(noisy, dtype=np.int64)
        allowed = (1 - level) / 2 * (1 - _DOUBT)
        # Far beyond any noise that leaves `allowed` in its tail: both ends of the search surely lie outside.
        far = self._far(allowed)

        def passes(n: Integers) -> NDArray[np.bool_]:  # as many or more, given that it is seen
            most, least = self._tail(array - n)[1], self._tail(self.threshold - n)[0]
            return np.asarray(most > allowed * least)

        def fails(n: Integers) -> NDArray[np.bool_]:  # as many or fewer are too unlikely
            least, most = self._tail(array + 1 - n)[0], self._tail(self.threshold - n)[1]
            return np.asarray(~(most - least > allowed * most))

        lower = _first(passes, np.zeros_like(array), array)  # n = x itself passes: no more than half is below
        upper = _first(fails, array - 1, array + far) - 1
        return lower.astype(np.float64), upper.astype(np.float64)

    def promise(self, confidence: float = 0.95) -> tuple[int, int]:
        """(units, error): a key of so many units or more is seen with an estimate within the error, so often.

        Args:
            confidence: How often.

        Returns:
            The least number of units from which on that holds, and the error.

        Raises:
            InvalidValue: If the confidence is not between 0 and 1.

        >>> CountedKeys(1.0, 1e-6).promise()
        (17, 4)
        """
        spread = self.noise.spread
        gaussian = self.noise.kind == "gaussian"
        exact = DiscreteGaussianDistribution(spread) if gaussian else DiscreteLaplaceDistribution(spread)
        error = exact.error(confidence)
        error = (error if gaussian else min(error, self.threshold - 1)) + 1  # a step for what is taken back
        far = self._far((1 - confidence) / 2)
        if self.threshold + far > _MOST_SCANNED:  # so far past the threshold that less than a step is taken back
            past = np.array([0])
            past = _first(lambda m: self._excess * self._two_tails(m) <= 0.99, past, past + 2 * self.threshold + far)
            return self.threshold + int(past[0]) + error, error
        noisy = np.arange(self.threshold, self.threshold + 2 * far + error + 2)
        units = np.arange(1, self.threshold + far)
        estimates = self.estimates(noisy)  # which rise with the noisy count
        first = noisy[np.searchsorted(estimates, units - error, "left").clip(0, noisy.size - 1)]
        last = noisy[(np.searchsorted(estimates, units + error, "right") - 1).clip(0)]
        often = self._tail(first - units)[0] - self._tail(last + 1 - units)[1]
        too_seldom = np.flatnonzero(~(often >= confidence))
        return int(units[too_seldom[-1]]) + 1 if too_seldom.size else 1, error

    def _far(self, allowed: float) -> int:
        far = math.ceil(self.noise.standard_error * (8 - 2 * math.log(allowed))) + 2
        return far if self.noise.kind == "gaussian" else min(far, 2 * self.threshold)  # beyond where it is cut off

    @cached_property
    def _excess(self) -> float:
        """E|noise| / (2 S(0)^2), where 2 S(0) is 1 and the mass at 0."""
        if self.noise.kind == "gaussian":
            sigma = math.sqrt(self.noise.spread)
            return 2 * sigma * math.sqrt(2 / math.pi) / (1 + 1 / (sigma * math.sqrt(2 * math.pi))) ** 2
        with precision(_BITS):  # of the noise as it is cut off: sums of q^i and i q^i for i from 1 to `reach`
            rate, reach = flint.arb(flint.fmpq(*(1 / self.noise.spread).as_integer_ratio())), self.threshold - 1
            q, least = (-rate).exp(), (-rate * reach).exp()
            powers = q * (1 - least) / (1 - q)
            weighted = q * (1 - (reach + 1) * least + reach * least * q) / (1 - q) ** 2
            return float((2 * weighted * 2 * (1 + 2 * powers) / (2 + 2 * powers) ** 2).mid())

    def _two_tails(self, least: Integers) -> Floats:
        """S(least) + S(least + 1), near enough for an estimate: of a Gaussian, twice the continuous tail between."""
        if self.noise.kind == "gaussian":
            return np.asarray(self._tail(least)[0] + self._tail(least + 1)[1])
        return np.asarray(self._tail(least)[0] + self._tail(least + 1)[0])

    def _tail(self, least: Integers) -> tuple[Floats, Floats]:
        """P(noise >= least), from below and from above.

        The tail of a discrete Gaussian lies between those of the continuous one at `least` and a step before, for
        least >= 1: masses fall, and their sum is sqrt(2 pi variance) but for less than a part in 10^30.
        """
        if self.noise.kind == "gaussian":
            return self._gaussian_tail(least, 0.0), self._gaussian_tail(least, 1.0)
        rate, reach = float(1 / self.noise.spread), self.threshold - 1
        # q^i - q^(reach + 1) by expm1: where noise is cut off early, what is left of these differences is small.
        size = np.where(least > 0, least, 1 - least).astype(float)
        whole = -math.expm1(-rate * (reach + 1)) - math.exp(-rate) * math.expm1(-rate * reach)
        beyond = np.exp(-rate * size) * -np.expm1(-rate * np.maximum(reach + 1 - size, 0.0)) / whole
        tail = np.where(least > 0, beyond, 1 - beyond)
        tail = np.where(least > reach, 0.0, np.where(least <= -reach, 1.0, np.clip(tail, 0.0, 1.0)))
        return tail * (1 - _DOUBT), np.minimum(tail * (1 + _DOUBT), 1.0)

    def _gaussian_tail(self, least: Integers, above: float) -> Floats:
        from scipy.special import ndtr

        sigma = math.sqrt(self.noise.spread)
        start = np.where(least >= 1, least - above, 0.0)
        mirrored = np.where(least >= 1, 0.0, 1 - least - (1 - above))  # P(noise >= m) = 1 - P(noise >= 1 - m)
        tail: Floats = np.where(least >= 1, ndtr(-start / sigma), 1 - ndtr(-mirrored / sigma))
        return tail * (1 - _DOUBT) if above == 0 else np.minimum(tail * (1 + _DOUBT), 1.0)

    def _answer(self, value: object, source: Source) -> dict[Hashable, int]:
        counts = checked_counts(value)
        if not counts:
            return {}
        seen, noisy = self._noisy(list(counts.values()), source)
        released = {key: int(n) for key, n, is_seen in zip(counts, noisy, seen, strict=True) if is_seen}
        return {key: released[key] for key in in_public_order(list(released), Bits(source))}


def _first(holds: Any, low: Integers, high: Integers) -> Integers:
    """For each place, the least n in (low, high] where a condition holds that, once it holds, goes on to hold."""
    low, high = low.copy(), high.copy()
    while np.any(is_open := high - low > 1):
        middle = (low + high) // 2
        fits = holds(middle)
        low, high = np.where(is_open & ~fits, middle, low), np.where(is_open & fits, middle, high)
    return high


@lru_cache(maxsize=64)
def _noise_of(epsilon: float, delta: float, keys: int, kind: NoiseKind | None) -> KeyNoise:
    """The noise of the smaller error, by public parameters alone."""
    noises = []
    if kind != "gaussian":
        distribution = truncated_geometric_threshold(Fraction(epsilon) / keys, delta_per_key(delta, keys))
        noises.append(KeyNoise("laplace", 1 / distribution.rate, distribution.threshold))
    if kind == "gaussian" or (kind is None and keys > 1):
        noises.append(_gaussian(epsilon, Fraction(delta), keys))
    return min(noises, key=lambda noise: noise.standard_error)


def _gaussian(epsilon: float, delta: Fraction, keys: int) -> KeyNoise:
    candidates = []
    with precision(_BITS):
        for share in _SHARES:
            part = share * delta
            crossing = part / (1 + part)  # c / (1 - c) is the part
            variance = _variance_for(epsilon, delta - part, keys)
            threshold = _threshold_for(variance, crossing / keys)
            candidates.append((threshold + 1.645 * math.sqrt(variance), variance, threshold))
    _, variance, threshold = min(candidates)
    return KeyNoise("gaussian", variance, threshold)


def _variance_for(epsilon: float, delta: Fraction, keys: int) -> Fraction:
    """The least variance, in steps of 1/1024, that is surely (epsilon, delta)-DP for what one unit adds."""
    length = math.nextafter(math.sqrt(keys), math.inf)

    def meets(steps: int) -> bool:
        try:
            event = vector_event(Fraction(steps, _STEPS), length, keys)
        except InvalidValue:
            return False
        return bool(leak_of(event, epsilon) <= flint.arb(flint.fmpq(delta.numerator, delta.denominator)))

    low, high = 0, 8 * _STEPS
    while not meets(high):
        low, high = high, 4 * high
        if high > _LARGEST:
            raise InvalidValue("epsilon", epsilon, "is too small for any threshold", "raise epsilon or delta")
    while high - low > max(1, high >> 20):
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return Fraction(high, _STEPS)


def _threshold_for(variance: Fraction, crossing: Fraction) -> int:
    """The least threshold that a key of one unit passes with at most `crossing`, by the exact distribution."""
    distribution = DiscreteGaussianDistribution(variance)
    allowed = flint.arb(flint.fmpq(crossing.numerator, crossing.denominator))

    def meets(threshold: int) -> bool:  # P(noise >= threshold - 1)
        return threshold >= 2 and bool(distribution._tail(threshold - 2) / 2 <= allowed)

    low, high = 1, 2
    while not meets(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high

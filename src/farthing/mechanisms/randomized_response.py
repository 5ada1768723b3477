"""Randomized response: everyone answers for themselves, truthfully with a known probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import Mechanism, read_array
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.numerics.bounds import precision, rounded_up, up
from farthing.privacy import Event, events
from farthing.privacy.events import checked_mechanism_epsilon, checked_real


@dataclass(frozen=True, slots=True)
class Estimate:
    """An unbiased estimate with its standard error; `interval` needs no normal approximation.

    Attributes:
        value: The estimated share. It may lie a little outside 0 .. 1: that keeps averages of it right.
        standard_error: The root of its unbiased variance; infinite for a single report.
        count: How many reports named the category.
        reports: How many reports there were.
        truth_probability: The probability that a report is true.
        lie_probability: The probability of one given false report.

    >>> from farthing.mechanisms.randomized_response import RandomizedResponse
    >>> survey = RandomizedResponse.warner("3/4")
    >>> estimate = survey.proportion([1] * 55 + [0] * 45, category=1)
    >>> round(estimate.value, 6), round(estimate.standard_error, 6)
    (0.6, 0.1)
    >>> low, high = estimate.interval(0.95)
    >>> round(low, 3), round(high, 3)
    (0.395, 0.799)
    """

    value: float
    standard_error: float
    count: int
    reports: int
    truth_probability: float
    lie_probability: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold the share with at least this probability, from the binomial distribution itself.

        Args:
            confidence: The probability that the interval holds the share, between 0 and 1.

        Returns:
            The lower and the upper end, both inside 0 .. 1.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.

        Statement:
            The number of answers of one category among n people drawn from a population is binomial, with chance
            r = q + share (p - q) each. The interval of all r for which the count seen lies in neither tail of
            (1 - confidence) / 2, read back through that line, holds the share with at least `confidence`.
        Source: Clopper & Pearson (1934).
        Assumes: people are drawn independently, or are few among many. For the share among those asked, rather than in
            the population, the interval is wider than needed.
        Direction: covers with at least `confidence`; rounded outward by 2^-40.
        Checked by: tests/theorems/test_randomized_response.py
        """
        from scipy.special import betaincinv

        level = checked_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidValue("confidence", confidence, "must be > 0 and < 1", "0.95 is a common choice")
        tail = (1 - level) / 2
        x, n = self.count, self.reports
        low = float(betaincinv(x, n - x + 1, tail)) if x > 0 else 0.0
        high = float(betaincinv(x + 1, n - x, 1 - tail)) if x < n else 1.0
        p, q = self.truth_probability, self.lie_probability
        slack = 2.0**-40
        return (
            min(max((low * (1 - slack) - q) / (p - q) - slack, 0.0), 1.0),
            min(max((high * (1 + slack) - q) / (p - q) + slack, 0.0), 1.0),
        )


def estimated_share(count: int, reports: int, truth: Fraction, lie: Fraction) -> Estimate:
    """(count / reports - lie) / (truth - lie), and the root of its unbiased variance (inf for a single report)."""
    share = Fraction(count, reports)
    variance = share * (1 - share) / max(1, reports - 1) / (truth - lie) ** 2
    error = math.sqrt(variance) if reports > 1 else math.inf
    return Estimate(float((share - lie) / (truth - lie)), error, count, reports, float(truth), float(lie))


_WORD = 64
_MOST_CATEGORIES = 2**16


@dataclass(frozen=True, slots=True, repr=False)
class RandomizedResponse(Mechanism):
    """One of k categories: the true one with probability e^epsilon / (e^epsilon + k - 1), else any other, all alike.

    Args:
        epsilon: The epsilon of one answer, > 0.
        categories: The possible answers, public: different bools, ints or strings, all of one type.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        The answer is epsilon-DP for the one who gives it. For two categories its privacy loss is that of the event
        `RandomizedResponse(epsilon)`, exactly. For k > 2 the loss of a pair of values is epsilon, 0 or -epsilon: with
        probability (e^epsilon + 1) / (e^epsilon + k - 1) the answer is one of the two values, distinguished by a
        randomized response of epsilon, else it says nothing about which of them was meant.
    Source: Warner (1965); k categories: Kairouz, Oh & Viswanath, arXiv:1407.1338. That the event of two categories is
        an upper bound for k: it dominates every epsilon-DP mechanism (Kairouz, Oh & Viswanath, arXiv:1311.0776v4).
    Assumes: each answer is about one person, who is the unit of privacy; the categories are public.
    Direction: exact sampling. For k > 2 the event is an upper bound, attained alone and at delta = 0; in long
        compositions a loss that is often 0 costs less, by up to the factor above in the squared epsilons.
    Checked by: tests/theorems/test_randomized_response.py

    >>> survey = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
    >>> survey.release("yes") in ("no", "yes")
    True
    >>> round(survey.truth_probability, 4)
    0.7311
    >>> survey.event
    RandomizedResponse(epsilon=1.0)
    >>> RandomizedResponse.warner("3/4").epsilon
    1.0986122886681...
    """

    epsilon: float
    categories: tuple[Hashable, ...] = (0, 1)
    _warner: Fraction | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given: Any = self.categories
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise InvalidValue("categories", given, "must be a list of at least two different values")
        if not 2 <= len(given) <= _MOST_CATEGORIES or len({type(item) for item in given}) != 1:
            raise InvalidValue("categories", given, f"must be 2 to {_MOST_CATEGORIES} different values of one type")
        if not isinstance(given[0], bool | int | str) or len(set(given)) != len(given):
            raise InvalidValue("categories", given, "must be different bools, ints or strings")
        object.__setattr__(self, "categories", tuple(given))
        epsilon: object = self.epsilon
        if self._warner is not None:
            epsilon = _epsilon_of(self._warner, len(given))
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(epsilon))

    @classmethod
    def warner(cls, probability: Fraction | float | str, categories: Sequence[Hashable] = (0, 1)) -> RandomizedResponse:
        """Warner's own parameter: the truth with exactly this probability, above 1 / k and below 1.

        Epsilon is log(p (k - 1) / (1 - p)), rounded up; the coin is p itself. A fraction may be written "3/4".

        Args:
            probability: The probability of a true answer, above 1 / k and below 1; "3/4" is read as the fraction.
            categories: The possible answers.

        Returns:
            The mechanism.

        Raises:
            InvalidValue: If `probability` is not a number in that range.

        >>> RandomizedResponse.warner("2/3", categories=("no", "yes")).truth_probability
        0.666...
        """
        return cls(1.0, tuple(categories), _warner=_read_probability(probability))  # epsilon follows from it

    def __repr__(self) -> str:
        if self._warner is not None:
            return f"RandomizedResponse.warner({str(self._warner)!r}, categories={self.categories!r})"
        return f"RandomizedResponse(epsilon={self.epsilon!r}, categories={self.categories!r})"

    @property
    def event(self) -> Event:
        """The event of two categories, which bounds that of more."""
        return events.RandomizedResponse(self.epsilon)

    @property
    def truth_probability(self) -> float:
        """How often an answer is the true one, as the nearest double; the coin itself is exact."""
        return float(self._truth(128))

    def _truth(self, width: int) -> Fraction:
        """The probability of the truth, cut down to a multiple of 2^-width; Warner's as it is."""
        if self._warner is not None:
            return self._warner
        bits = width + 64
        while True:
            with precision(bits):
                ratio = 1 / (1 + (len(self.categories) - 1) * (-flint.arb(self.epsilon)).exp())
                scaled = (ratio * flint.arb(2) ** width).floor().unique_fmpz()
            # e^epsilon is irrational, so the probability is no multiple of 2^-width and enough bits settle it.
            if scaled is not None:
                return Fraction(int(scaled), 2**width)
            bits *= 2

    def release_many(self, values: Any) -> NDArray[Any]:
        """Answers for a whole column, each person's drawn for itself; each costs its giver one `event`.

        Args:
            values: The true answers, one for each person.

        Returns:
            The reported answers, in the same order.

        Raises:
            InvalidData: If a value is not one of the categories. The message does not show it.

        >>> RandomizedResponse(epsilon=1.0).release_many([0, 1, 1, 0]).shape
        (4,)
        """
        return self._answers(values, SYSTEM)

    def proportion(self, reports: Any, category: Hashable) -> Estimate:
        """The unbiased estimate of how large a share of the population is in `category`, from released answers.

        Args:
            reports: Released answers.
            category: The category whose share is estimated.

        Returns:
            The estimate with its standard error.

        Raises:
            InvalidData: If there is no report, or one of them is not a category.
            InvalidValue: If `category` is not one of the categories.

        >>> RandomizedResponse.warner("3/4").proportion([1, 1, 0, 1], category=1).value
        1.0
        """
        place = self._place_of(category)
        codes = self._codes(reports, "reports")
        count, total = int(np.count_nonzero(codes == place)), len(codes)
        if not total >= 1:
            raise InvalidData("reports", "must hold at least one answer")
        truth = self._truth(128)
        lie = (1 - truth) / (len(self.categories) - 1)
        return estimated_share(count, total, truth, lie)

    def variance(self, proportion: float, reports: int) -> float:
        """The exact variance of `proportion`'s estimate from so many answers of people drawn from a population.

        With p the probability of the truth and q of one given lie, an answer is this category with probability
        r = q + proportion (p - q); the estimate is (share of answers - q) / (p - q), so its variance is
        r (1 - r) / (reports (p - q)^2): the sampling of people and the coins together.

        Args:
            proportion: The share of the population in the category, from 0 to 1.
            reports: How many answers there are, at least 1.

        Returns:
            The variance of the estimated share.

        Raises:
            InvalidValue: If an argument is out of range.

        >>> RandomizedResponse.warner("3/4").variance(0.6, reports=100)
        0.0099
        """
        share = checked_real(proportion, "proportion")
        if not 0 <= share <= 1:
            raise InvalidValue("proportion", proportion, "must be between 0 and 1")
        if not (isinstance(reports, int | np.integer) and reports >= 1):
            raise InvalidValue("reports", reports, "must be a whole number >= 1")
        truth = self._truth(128)
        lie = (1 - truth) / (len(self.categories) - 1)
        hit = lie + Fraction(share) * (truth - lie)
        return rounded_up(hit * (1 - hit) / (int(reports) * (truth - lie) ** 2))

    def standard_deviations(self, proportion: float, reports: int) -> tuple[float, float]:
        """Two errors of the estimate: about the people who answered, and about the population they were drawn from.

        Args:
            proportion: The share in the category, from 0 to 1.
            reports: How many answers there are, at least 1.

        Returns:
            Two standard deviations: for a fixed dataset, where only the coins are random, and for a sample, where the
            people are drawn too. Both are rounded up.

        Raises:
            InvalidValue: If an argument is out of range.

        Statement:
            With p the probability of the truth and q of one given lie, a person of the category reports it with
            probability p, any other with probability q. For n fixed people, a share s of them in the category, the
            estimate has the variance (s p (1 - p) + (1 - s) q (1 - q)) / (n (p - q)^2). For n people drawn from a
            population of share s it is r (1 - r) / (n (p - q)^2) with r = q + s (p - q), which is larger by exactly
            s (1 - s) / n, the variance of the draw.
        Source: Warner, JASA 60, 1965, for the sample; the other is the sum of n coins.
        Assumes: independent coins; for a sample, people drawn independently.
        Direction: rounded up.
        Checked by: tests/unit/mechanisms/test_randomized_response.py

        >>> fixed, sample = RandomizedResponse.warner("3/4").standard_deviations(0.6, reports=100)
        >>> round(fixed, 5), round(sample, 5)
        (0.0866, 0.0995)
        """
        variance = Fraction(self.variance(proportion, reports))
        share = Fraction(proportion)
        fixed = variance - share * (1 - share) / int(reports)
        return (math.nextafter(math.sqrt(fixed), math.inf), math.nextafter(math.sqrt(variance), math.inf))

    def _place_of(self, category: Hashable) -> int:
        for place, known in enumerate(self.categories):
            if type(known) is type(category) and known == category:
                return place
        raise InvalidValue("category", category, "must be one of the categories")

    def _answer(self, value: Any, source: Source) -> Any:
        # A scalar of NumPy, a bool among ints: the same rules as for a column.
        return self.categories[int(self._drawn(self._codes([value], "value"), source)[0])]

    def _answers(self, values: Any, source: Source) -> NDArray[Any]:
        codes = self._codes(values, "values")
        return np.array(self.categories)[self._drawn(codes, source)]

    def _drawn(self, codes: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """Each code kept with the probability of the truth, else moved to another, all alike."""
        lies = ~_coins(len(codes), self._truth, source)
        # 1 .. k - 1 places onward, around the circle: every other category once. Drawn for all, used for the liars, so
        # that how long it takes tells nothing about how many lied.
        shift = 1 + _below(len(self.categories) - 1, len(codes), source)
        return np.where(lies, (codes + shift) % len(self.categories), codes)

    def _codes(self, values: Any, name: str) -> NDArray[np.int64]:
        """Each value's place among the categories; anything else is refused without being shown."""
        rule = "must be one of the categories" if name == "value" else "must be a list of the categories"
        kind = type(self.categories[0])
        if not isinstance(values, list | tuple | np.ndarray):
            values = _column(values, name, rule)
        if isinstance(values, np.ndarray):
            wanted = {bool: "b", int: "iu", str: "U"}[kind]
            masked = isinstance(values, np.ma.MaskedArray)
            if masked or values.ndim != 1 or values.dtype.kind not in wanted:
                raise InvalidData(name, rule, f"pass an array of {kind.__name__}")
            distinct, inverse = np.unique(values, return_inverse=True)
        else:
            items = [item.item() if isinstance(item, np.generic) else item for item in values]
            if not all(type(item) is kind for item in items):
                raise InvalidData(name, rule, f"each must be of type {kind.__name__}")
            order = {item: place for place, item in enumerate(dict.fromkeys(items))}
            distinct = np.array(list(order), dtype=object)
            inverse = np.array([order[item] for item in items], dtype=np.int64)
        places = {category: place for place, category in enumerate(self.categories)}
        known = [places.get(item, -1) for item in distinct.tolist()]
        if -1 in known:
            raise InvalidData(name, rule, "give every possible answer, also 'other' and 'missing', a category")
        return np.array(known, dtype=np.int64)[inverse] if known else np.zeros(0, np.int64)


def _epsilon_of(probability: Fraction, k: int) -> float:
    """log(p (k - 1) / (1 - p)), rounded up."""
    if not Fraction(1, k) < probability < 1:
        raise InvalidValue("probability", str(probability), f"must be above 1/{k} and below 1", 'for example "3/4"')
    odds = probability * (k - 1) / (1 - probability)
    with precision(192):
        return up(flint.arb(flint.fmpq(odds.numerator, odds.denominator)).log())


def _read_probability(value: object) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise InvalidValue("probability", value, 'must be a number or a fraction such as "3/4"') from None
    number = checked_real(value, "probability")
    if not 0 <= number <= 1:
        raise InvalidValue("probability", value, "must be between 0 and 1")
    return Fraction(number)


def _column(values: object, name: str, rule: str) -> NDArray[Any]:
    """A column of another library, as an array; whatever it raises may quote its content."""
    if not hasattr(values, "__array__") or isinstance(values, np.generic):
        raise InvalidData(name, rule)
    array = read_array(values)
    if array is None:
        raise InvalidData(name, rule)
    return np.array(array.tolist()) if array.dtype.kind == "O" and array.ndim == 1 else array


def _coins(count: int, truth: Callable[[int], Fraction], source: Source) -> NDArray[np.bool_]:
    """Independent coins, each true with exactly the probability whose first `width` bits `truth(width)` has.

    A uniform number below the probability means true. Its first 64 bits decide unless they equal those of the
    probability, which happens once in 2^64; then the next 64 do.
    """
    head = int(truth(_WORD) * 2**_WORD)  # the first 64 bits
    words = np.frombuffer(source.take(8 * count), dtype="<u8")
    result = words < np.uint64(head)
    for place in np.flatnonzero(words == np.uint64(head)).tolist():
        result[place] = _is_below(truth, source)
    return result


def _is_below(truth: Callable[[int], Fraction], source: Source) -> bool:
    """Whether a uniform number is below the probability, when both begin with the same 64 bits."""
    width = _WORD
    while True:
        width += _WORD
        word = int.from_bytes(source.take(8), "little")
        wanted = int(truth(width) * 2**width) & (2**_WORD - 1)
        if word != wanted:
            return bool(word < wanted)


def _below(limit: int, count: int, source: Source) -> NDArray[np.int64]:
    """Uniform integers in [0, limit), limit <= 2^16: 32-bit words, drawn again above the last whole multiple."""
    if limit == 1:
        return np.zeros(count, np.int64)
    most = 2**32 // limit * limit
    words = np.frombuffer(source.take(4 * count), dtype="<u4").astype(np.int64)
    while len(high := np.flatnonzero(words >= most)):
        words[high] = np.frombuffer(source.take(4 * len(high)), dtype="<u4")
    return words % limit

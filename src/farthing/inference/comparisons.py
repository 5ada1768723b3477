"""Arithmetic on released numbers: differences, ratios and smooth functions, with the error that the noise gives them.

Three ways to an interval, in this order:

exact        what is computed is a sum of noises, or a ratio of two: its distribution is known, or Fieller's interval
first order  the noise of a smooth function is the sum of its noises times the slopes, if each number that is divided by
             is at least five standard deviations of its own noise away from 0
corners      the least and the most of the function while every answer stays within its own interval, each at so high a
             confidence that all hold together (Boole's inequality); always holds, and is wider
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from farthing.inference.noise_terms import Floats
from farthing.inference.noisy_numbers import NoisyNumber, Source, added, error_in, variance_in

Ends = tuple[float, float]
Box = Callable[[float], Ends]

CLOSE = 0.2
"""The noise of a divisor, relative to it, up to which the first order is enough."""

EXACT, FIRST_ORDER, CORNERS = "exact", "first order", "corners"


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number computed from released ones.

    Args:
        value: The number, from the values as they were released.
        centre: The same from the unbiased numbers.
        box: Where it lies while every answer that it is made of is within its own interval at a confidence.
        answers: How many intervals that are.
        top: With `bottom`, what it is exactly: `top / bottom`, or `top` alone; None where it is neither.
        bottom: What is divided by.
        slope: To first order, the noises in it; None where they are not known.
        relative: The noise of what was divided by, relative to it; the largest of them.
        is_factor: Whether its error is a factor: its logarithm is nearer to a sum of noises than itself.
        least: The least that the truth can be.
        most: The most that the truth can be.
    """

    value: float
    centre: float
    box: Box
    answers: int = 1
    top: NoisyNumber | None = None
    bottom: NoisyNumber | None = None
    slope: Mapping[Source, float] | None = None
    relative: float = 0.0
    is_factor: bool = False
    least: float = -math.inf
    most: float = math.inf

    @classmethod
    def known(cls, number: float) -> Estimate:
        """A number without an error."""
        return cls(number, number, lambda level: (number, number), 0, NoisyNumber(number), slope={})

    @classmethod
    def of(
        cls,
        value: float,
        box: Box,
        top: NoisyNumber,
        bottom: NoisyNumber | None = None,
        least: float = -math.inf,
        most: float = math.inf,
    ) -> Estimate:
        """`top / bottom`, or `top`, with the slopes of its noises."""
        if bottom is None:
            return cls(value, top.value, box, 1, top, slope=top.noise, least=least, most=most)
        if bottom.value == 0:
            return cls(value, value, box, 1, top, bottom, None, math.inf, least=least, most=most)
        ratio = top.value / bottom.value
        slope = added([(1 / bottom.value, top.noise), (-ratio / bottom.value, bottom.noise)])
        relative = bottom.deviation / abs(bottom.value)
        return cls(value, ratio, box, 1, top, bottom, slope, relative, least=least, most=most)

    @property
    def way(self) -> str:
        """How its interval is found."""
        if self.top is not None:
            return EXACT
        return FIRST_ORDER if self.slope is not None and self.relative <= CLOSE else CORNERS

    @cached_property
    def standard_error(self) -> float:
        """To first order; where the noises are not known, from the interval."""
        if self.slope is not None and self.relative < 1:
            return min(math.sqrt(variance_in(self.slope)), self.most - self.least)
        low, high = self.interval(0.95)
        return (high - low) / (2 * 1.96)

    def interval(self, confidence: float) -> Ends:
        """Lower and upper ends at a confidence."""
        low, high = self._interval(confidence)
        if high < self.least or low > self.most:  # the noise was unusual: the truth is not known for that
            border = self.least if high < self.least else self.most
            low, high = border - (high - low) / 2, border + (high - low) / 2
        return max(low, self.least), min(high, self.most)

    def _interval(self, confidence: float) -> Ends:
        if self.way == EXACT:
            assert self.top is not None
            if self.bottom is not None and self.bottom.noise:
                low, high = self.top.over(self.bottom, self.least, self.most)(confidence)
                return float(low[0]), float(high[0])
            divisor = 1.0 if self.bottom is None else abs(self.bottom.value)
            error = error_in(self.top.noise, confidence) / divisor if divisor else math.inf
            return self.centre - error, self.centre + error
        if self.way == FIRST_ORDER:
            assert self.slope is not None
            error = error_in(self.slope, confidence)
            if self.is_factor and self.centre:
                factor = math.exp(min(error / abs(self.centre), 700.0))
                ends = (self.centre / factor, self.centre * factor)
                return min(ends), max(ends)
            return self.centre - error, self.centre + error
        return self.box(1 - (1 - confidence) / max(self.answers, 1))

    def plus(self, other: Estimate, factor: float = 1.0) -> Estimate:
        """This number and so many times the other."""

        def box(level: float) -> Ends:
            ends = sorted(factor * end for end in other.box(level))
            low, high = self.box(level)
            return low + ends[0], high + ends[1]

        ends = sorted((factor * other.least, factor * other.most))
        plain = Estimate(
            self.value + factor * other.value,
            self.centre + factor * other.centre,
            box,
            self.answers + other.answers,
            slope=_slopes([(1.0, self.slope), (factor, other.slope)]),
            relative=max(self.relative, other.relative),
            least=self.least + ends[0],
            most=self.most + ends[1],
        )
        for bottom in (self.bottom, other.bottom):
            one, two = self._above(bottom), other._above(bottom)
            if one is not None and two is not None:
                return replace(plain, top=one.plus(two, factor), bottom=bottom)
        return plain

    def _above(self, bottom: NoisyNumber | None) -> NoisyNumber | None:
        """What stands above this divisor; None where it is no ratio over it."""
        if self.top is None or _alike(self.bottom, bottom):
            return self.top
        exact = self.bottom is None and not self.top.noise
        return bottom.times(self.top.value) if exact and bottom is not None else None

    def times(self, factor: float) -> Estimate:
        """So many times this number."""
        ends = sorted((factor * self.least, factor * self.most)) if factor else [0.0, 0.0]

        def box(level: float) -> Ends:
            low, high = sorted(factor * end for end in self.box(level)) if factor else (0.0, 0.0)
            return low, high

        return replace(
            self,
            value=factor * self.value,
            centre=factor * self.centre,
            box=box,
            top=None if self.top is None else self.top.times(factor),
            slope=_slopes([(factor, self.slope)]),
            least=ends[0],
            most=ends[1],
        )

    def by(self, other: Estimate) -> Estimate:
        """This number times the other."""
        if not other.answers:
            return self.times(other.value)
        if not self.answers:
            return other.times(self.value)
        slope = _slopes([(other.centre, self.slope), (self.centre, other.slope)])
        factors = self.centre > 0 and other.centre > 0
        relative = max(self.relative, other.relative, *(each.own_relative for each in (self, other) if factors))
        least, most = _corners(lambda a, b: a * b, (self.least, self.most), (other.least, other.most))
        return Estimate(
            self.value * other.value,
            self.centre * other.centre,
            lambda level: _corners(lambda a, b: a * b, self.box(level), other.box(level)),
            self.answers + other.answers,
            slope=slope,
            relative=relative,
            is_factor=factors,
            least=least,
            most=most,
        )

    def over(self, other: Estimate) -> Estimate:
        """This number divided by the other."""
        if not other.answers:
            return self.times(1 / other.value) if other.value else self._unknown(other)
        signed = self.least >= 0 and other.least >= 0
        least = 0.0 if signed else -math.inf
        value = self.value / other.value if other.value else _over_zero(self.value)
        box = _quotient_box(self, other)
        answers = self.answers + other.answers
        if self.top is not None and other.top is not None and _alike(self.bottom, other.bottom):
            return replace(Estimate.of(value, box, self.top, other.top, least=least), answers=answers)
        if not other.centre:
            return self._unknown(other)
        centre = self.centre / other.centre
        slope = _slopes([(1 / other.centre, self.slope), (-centre / other.centre, other.slope)])
        factors = centre > 0
        own = [self.own_relative, other.own_relative] if factors else [other.own_relative]
        relative = max(self.relative, other.relative, *own)
        return Estimate(value, centre, box, answers, slope=slope, relative=relative, is_factor=factors, least=least)

    @property
    def own_relative(self) -> float:
        """Its noise relative to itself."""
        if self.slope is None or not self.centre:
            return math.inf
        return math.sqrt(variance_in(self.slope)) / abs(self.centre)

    def _unknown(self, other: Estimate) -> Estimate:
        value = _over_zero(self.value)
        return Estimate(value, value, lambda level: (-math.inf, math.inf), self.answers + other.answers)


def smooth(
    value: float,
    centre: float,
    inputs: Sequence[Estimate],
    slopes: Sequence[float],
    least: float,
    most: float,
) -> Estimate:
    """A smooth function of several numbers, with its slope in each of them; it lies in `least` .. `most`.

    >>> one, two = Estimate.known(3.0), Estimate.known(4.0)
    >>> smooth(5.0, 5.0, [one, two], [0.6, 0.8], 0.0, 10.0).value
    5.0
    """
    return Estimate(
        value,
        centre,
        lambda level: (least, most),
        max(1, sum(each.answers for each in inputs)),
        slope=_slopes([(slope, each.slope) for slope, each in zip(slopes, inputs, strict=True)]),
        relative=max((each.relative for each in inputs), default=0.0),
        least=least,
        most=most,
    )


def _slopes(parts: Sequence[tuple[float, Mapping[Source, float] | None]]) -> dict[Source, float] | None:
    """The noises of a linear combination to first order; None where those of a part are not known."""
    known = [(factor, slope) for factor, slope in parts if slope is not None]
    return added(known) if len(known) == len(parts) else None


def _alike(one: NoisyNumber | None, other: NoisyNumber | None) -> bool:
    """Whether two numbers are the same number, with the same noise."""
    if one is None or other is None:
        return one is other
    return one is other or (one.value == other.value and one.noise == other.noise)


def _over_zero(value: float) -> float:
    return math.copysign(math.inf, value) if value else 0.0


def _corners(function: Callable[[float, float], float], one: Ends, other: Ends) -> Ends:
    values = [function(a, b) for a, b in product(one, other)]
    values = [0.0 if math.isnan(value) else value for value in values]  # 0 times infinity
    return min(values), max(values)


def _quotient_box(one: Estimate, other: Estimate) -> Box:
    def box(level: float) -> Ends:
        low, high = other.box(level)
        if low <= 0 <= high:
            positive = one.box(level)[0] >= 0 and low >= 0
            return (one.box(level)[0] / high, math.inf) if positive and high > 0 else (-math.inf, math.inf)
        return _corners(lambda a, b: a / b, one.box(level), (low, high))

    return box


def intervals_of(estimates: Sequence[Estimate], confidence: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of several numbers."""
    ends = np.array([each.interval(confidence) for each in estimates], dtype=float).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def way_note(estimates: Sequence[Estimate]) -> str:
    """What the intervals of computed numbers rest on, in words; nothing where they are exact."""
    ways = {each.way for each in estimates}
    said = []
    if FIRST_ORDER in ways:
        said.append("the interval holds to first order in the noise")
    if CORNERS in ways:
        said.append(
            "the interval is made of the intervals of the answers, all of which hold at once: it holds more often than "
            "stated"
        )
    return "; ".join(said)

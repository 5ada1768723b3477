"""The public side of a selection: whose scores move by how much, and how they become whole numbers.

A candidate's score is a private number; the number of candidates and their order are public. All arithmetic is on whole
steps: integer scores are their own steps, real ones are rounded down to a public grid first.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import SATURATION, Mechanism, checked_integers, checked_reals
from farthing.numerics.bounds import precision, rounded_up
from farthing.privacy.events import checked_count, checked_mechanism_epsilon, checked_real


class Selection(Mechanism):
    """A mechanism that picks candidates by private scores; what all of them share.

    `sensitivity` is the most that any one score moves between neighbours; `monotone` says that scores of neighbours
    never move in opposite directions (counts when a row is added), which halves the noise. Without a `grid` scores are
    whole numbers; with one (a power of two) they are real.
    """

    __slots__ = ()
    epsilon: float
    sensitivity: float
    monotone: bool
    grid: float | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        if not isinstance(self.monotone, bool | np.bool_):
            raise InvalidValue("monotone", self.monotone, "must be True or False")
        if self.grid is None:
            steps = checked_count(self.sensitivity, "sensitivity")
            if not steps >= 1:
                raise InvalidValue("sensitivity", self.sensitivity, "must be a whole number >= 1")
            object.__setattr__(self, "sensitivity", steps)
            return
        grid = checked_real(self.grid, "grid")
        if not (0 < grid < math.inf and math.frexp(grid)[0] == 0.5):
            raise InvalidValue("grid", self.grid, "must be a power of two", "for example 2**-10")
        reach = checked_real(self.sensitivity, "sensitivity")
        if not 0 < reach < math.inf:
            raise InvalidValue("sensitivity", self.sensitivity, "must be a finite number > 0")
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "sensitivity", reach)

    @property
    def steps(self) -> int:
        """The sensitivity in whole steps: two reals at most d apart, rounded down, are at most ceil(d / grid) apart."""
        if self.grid is None:
            return int(self.sensitivity)
        return math.ceil(Fraction(self.sensitivity) / Fraction(self.grid))

    @property
    def rate(self) -> Fraction:
        """Epsilon for each step of score: what one step less costs a candidate, in the exponent."""
        return Fraction(self.epsilon) / (self._pieces * (1 if self.monotone else 2) * self.steps)

    @property
    def _pieces(self) -> int:
        """Over how many choices epsilon is spread."""
        return 1

    def _gaps(self, value: Any, least: int = 1) -> NDArray[np.uint64]:
        """How many steps each score lies below the best."""
        return gaps_below_best(score_steps(value, self.grid, least))

    def _in_units(self, steps: int) -> float:
        """A number of steps as a difference of scores; on a grid, one more for the rounding."""
        if self.grid is None:
            return steps
        return rounded_up((steps + 1) * Fraction(self.grid))


def score_steps(value: Any, grid: float | None, least: int) -> NDArray[np.int64]:
    """Private scores as whole steps, clamped to +-2^62: clamping moves no two scores further apart."""
    array = checked_integers(value, "scores") if grid is None else checked_reals(value, "scores")
    if array.ndim != 1 or len(array) < least:
        raise InvalidData("scores", f"must be a list with a score for each candidate, at least {least}")
    return np.asarray(array if grid is None else _floors(array.astype(np.float64), grid), np.int64)


def gaps_below_best(steps: NDArray[np.int64]) -> NDArray[np.uint64]:
    """max - step, exactly: a difference may be 2^63, so it is formed modulo 2^64."""
    with np.errstate(over="ignore"):
        return np.asarray(steps.max().astype(np.uint64) - steps.astype(np.uint64), np.uint64)


def _floors(reals: NDArray[np.float64], grid: float) -> NDArray[np.int64]:
    """floor(x / grid): division by a power of two is exact unless it overflows (clamped below) or underflows."""
    with np.errstate(over="ignore", under="ignore"):
        quotients = np.floor(reals / grid)
    quotients[(reals < 0) & (quotients == 0)] = -1.0  # a negative quotient that underflowed to zero
    clamped = np.clip(quotients, float(-SATURATION), float(SATURATION))
    return clamped.astype(np.int64)


def checked_confidence(value: object, name: str = "confidence") -> Fraction:
    """A probability strictly between 0 and 1, exactly as given."""
    number = value if isinstance(value, Fraction) else checked_real(value, name)
    if not 0 < number < 1:
        raise InvalidValue(name, value, "must be > 0 and < 1", "0.95 is a common choice")
    return Fraction(number)


def checked_candidates(value: object) -> int:
    """A number of candidates, at least one."""
    number = checked_count(value, "candidates")
    if not number >= 1:
        raise InvalidValue("candidates", value, "must be a whole number >= 1")
    return number


def least_gap(rate: Fraction, others: int, confidence: Fraction) -> Fraction:
    """A gap g (rounded up) at which `others` candidates weigh at most 1 - confidence together.

    Statement:
        If at least one candidate has the best score and at most `others` lie g or more below it, exponential weights of
        the given rate choose one of those with probability at most w / (1 + w), w = others * exp(-rate g), and exactly
        that when all the others lie g below. It is at most 1 - confidence when
            g >= log(others * confidence / (1 - confidence)) / rate.
    Source: direct: candidates at gap g or more weigh at most w, the best ones at least 1, and w / (1 + w) grows with
        w. Sharper than the usual log(candidates / beta) / rate of McSherry & Talwar (2007), and attained.
    Assumes: rate > 0, others >= 0, 0 < confidence < 1.
    Direction: an upper bound on the error: rounded up by less than 2^-60, relatively.
    Checked by: tests/theorems/test_selection_error.py
    """
    if others == 0:
        return Fraction(0)
    odds = others * confidence / (1 - confidence)
    if odds <= 1:
        return Fraction(0)
    with precision(192):
        exact = flint.arb(flint.fmpq(odds.numerator, odds.denominator)).log()
        exact /= flint.arb(flint.fmpq(rate.numerator, rate.denominator))
        mantissa, exponent = exact.upper().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)

"""What choices of bounded range cost in Gaussian noise: the price of their symmetric pair, checked for all others.

One choice takes so much of a Gaussian clock (`middle_cost`); several, fixed in advance, are dominated by one Gaussian
release (`noise_of_ranges`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from flint import arb

from farthing.accounting.gaussian_curves import cost_of, envelope_distance, response_distance
from farthing.numerics.bounds import ball, precision, upper_fraction

MARGIN = Fraction(1, 128)
"""The share that is added to the price of the symmetric pair, so that the check has room."""

_LEVELS = tuple(Fraction(2) ** n for n in range(3, -5, -1))
"""Levels at which prices are checked, in squares of half the range; more is not much cheaper."""

_UNITS = 10**40  # of a clock in 1
_BITS = 64
_ROOT_2 = math.sqrt(2)
_MOST_STEPS = 3000
_LONGEST = 20  # tangents are sought in doubles


def checked_level(epsilon: Fraction, level: Fraction) -> Fraction | None:
    """The largest level at or below `level` at which bounded range is checked; None if `level` is too low.

    >>> checked_level(Fraction(1, 5), Fraction(1, 30)), checked_level(Fraction(1), Fraction(1, 100))
    (Fraction(1, 50), None)
    """
    square = (epsilon / 2) ** 2
    return next((square * n for n in _LEVELS if square * n <= level), None)


def covers_bounded_range(epsilon: Fraction, level: Fraction, cost: Fraction) -> bool:
    """Whether it is proven that a clock which pays `cost` and keeps `level` dominates every pair of this range.

    >>> covers_bounded_range(Fraction(1, 5), Fraction(1, 50), Fraction(11, 1000))
    True
    >>> covers_bounded_range(Fraction(1, 5), Fraction(1, 50), Fraction(10, 1000))
    False

    Statement:
        A pair of range epsilon = 2a moves the log odds from x to one end of an interval [y - a, y + a] around x. Write
            H_s(z) = e^(z/2) F((z + s/2) / sqrt(s)) - e^(-z/2) F((z - s/2) / sqrt(s)),   S = level + cost,
        F the normal distribution function, and for a real t let L_t be the combination of e^(z/2) and e^(-z/2) that
        touches H_S at t. Suppose that intervals [y_j, y_(j+1)] cover [0, Y], and that for each there is a t with
            H_level(y_j - a) <= L_t(y_j - a)   and   H_level(y_(j+1) + a) <= L_t(y_(j+1) + a),
        and that for all x >= Y - a
            e^(-cost/8) N(0, S)(x) >= N(0, level)(x - epsilon),   densities.
        Then every pair of this range beside G_level is dominated by G_S.
    Source: the proof is on the page docs/clock.md ("Bounded range"); it was written for farthing.
    Assumes: nothing beyond the range.
    Direction: inequalities are tested in balls; False says that nothing is proven.
    Checked by: tests/theorems/test_clock_bounded_range.py
    """
    if not (level > 0 and cost > 0 and epsilon <= _LONGEST):
        return False
    with precision(_BITS):
        last = _tail(epsilon, level, cost)
        if last is None:
            return False
        pair = _Pair.of(level, level + cost, epsilon / 2)
        y, step, growth = 0.0, float(epsilon) / 256, 1.1
        touch, ahead = _touching(float(level), float(level + cost), float(epsilon) / 2), 0.0
        for _ in range(_MOST_STEPS):
            if y >= last:
                return True
            there = touch(y + step / 2, y + step / 2 + ahead)
            if pair.covers(y, y + step, there):
                ahead, y, step = there - (y + step / 2), y + step, step * growth
            else:
                step, growth = step * 0.9, 1.03  # the right length is known now, and grows slowly
        return False


@lru_cache(maxsize=4096)
def middle_cost(epsilon: Fraction, level: Fraction) -> Fraction | None:
    """The price of the pair in the middle of the range, with `MARGIN`, in whole units of a clock, rounded up.

    It holds for all pairs of the range where `middle_covers` says so.

    >>> float(middle_cost(Fraction(1, 5), Fraction(1, 50)))
    0.0108...
    """
    cost = cost_of(response_distance(epsilon / 2), level)
    return None if cost is None else Fraction(math.ceil(math.ceil(cost * _UNITS) * (1 + MARGIN)), _UNITS)


@lru_cache(maxsize=4096)
def middle_covers(epsilon: Fraction, level: Fraction) -> bool:
    """Whether `middle_cost` is proven for every pair of the range.

    >>> middle_covers(Fraction(1, 5), Fraction(1, 50))
    True
    """
    cost = middle_cost(epsilon, level)
    return cost is not None and covers_bounded_range(epsilon, level, cost)


@lru_cache(maxsize=4096)
def noise_of_ranges(epsilon: Fraction, count: int, most: int = 8, proof: bool = True) -> Fraction | None:
    """A mu^2 such that one Gaussian release of it dominates `count` choices, each of range epsilon.

    >>> float(noise_of_ranges(Fraction(1, 5), 100))  # 1.037 times 100 squares of 0.1
    1.036...

    Args:
        epsilon: The range of every choice.
        count: How many choices.
        most: The largest level that is used, in squares of half the range. A lower one is proven sooner, but dearer.
        proof: Whether prices must be proven; without, the answer is an estimate.

    Returns:
        mu^2; None where nothing is known.

    Statement:
        Let c(s) be such that every pair of this range beside G_s is dominated by G_(s + c(s)), and what is enough at s
        be enough above it. Put s_0 = 0 and s_(j+1) = s_j + c(s_j). Then `count` mechanisms of this range, each chosen
        from the answers before it, are dominated by G_(s_count): alone, beside mechanisms with dominating pairs of
        their own, and beside other ranges that are replaced in the same way, in every order.
    Source: the proof is on the page docs/clock.md ("Fixed in advance"); it was written for farthing. That dominating
        pairs compose: Zhu, Dong & Wang, arXiv:2106.08567, Theorem 10.
    Assumes: the ranges, their number and the parameters of all mechanisms beside them are fixed in advance.
    Direction: upper: c comes from balls and is rounded up.
    Checked by: tests/theorems/test_range_composition.py
    """
    top, spent = most * (epsilon / 2) ** 2, Fraction(0)
    for done in range(count):
        level = min(spent, top)
        checked, cost = checked_level(epsilon, level), None
        if checked is not None and (not proof or middle_covers(epsilon, checked)):
            cost = middle_cost(epsilon, checked)
        cost = cost_of(envelope_distance(epsilon), level) if cost is None else cost
        if cost is None:
            return None
        if level == top:  # the price of all that are left
            return spent + (count - done) * cost
        spent += cost
    return spent


class _Pair(NamedTuple):
    """The clock after and before the charge, each as its scale 1 / sqrt(2s) and shift sqrt(s / 8); half the range."""

    level: tuple[Any, Any]
    start: tuple[Any, Any]
    half: Any

    @classmethod
    def of(cls, level: Fraction, start: Fraction, half: Fraction) -> _Pair:
        after, before = ((1 / (2 * ball(s)).sqrt(), (ball(s) / 8).sqrt()) for s in (level, start))
        return cls(after, before, ball(half))

    def covers(self, first: float, last: float, touch: float) -> bool:
        """Whether the tangent at `touch` lies above at both ends of all intervals around first..last."""
        scale, shift = self.start
        at = arb(touch) * scale
        above, below = (at + shift).erfc(), (at - shift).erfc()
        scale, shift = self.level
        for z in (arb(first) - self.half, arb(last) + self.half):
            at = z * scale
            # Both sides times 2 e^(z/2).
            if not z.exp() * ((at + shift).erfc() - above) >= (at - shift).erfc() - below:
                return False
        return True


def _touching(level: float, start: float, half: float) -> Callable[[float, float], float]:
    """Where a tangent is nearest to the chord over y - half..y + half, by Newton's method. Any point is sound."""
    width = 2 * math.sinh(half)

    def touch(y: float, guess: float) -> float:
        left, right = _rest(y - half, level)[0], _rest(y + half, level)[0]
        t = min(max(guess, y - 0.9 * half), y + 0.9 * half)
        for _ in range(6):
            value, slope, bend = _rest(t, start)
            to_left, to_right = (t - y + half) / 2, (y + half - t) / 2
            gap = value - 2 * (left * math.sinh(to_right) + right * math.sinh(to_left)) / width
            rise = slope - (right * math.cosh(to_left) - left * math.cosh(to_right)) / width
            if not abs(gap) / 4 + bend > 0:  # far out, where nothing is left of either
                break
            move = rise / (abs(gap) / 4 + bend)
            t = min(max(t - move, y - 0.99 * half), y + 0.99 * half)
            if abs(move) < 1e-3 * half:
                break
        return t

    return touch


def _rest(z: float, s: float) -> tuple[float, float, float]:
    """H_s(-z) = H_s(z) - 2 sinh(z/2), its slope, and by how much its second derivative exceeds a quarter of it."""
    root = math.sqrt(s)
    falling = math.exp(-z / 2) * math.erfc((z / root - root / 2) / _ROOT_2) / 2
    rising = math.exp(z / 2) * math.erfc((z / root + root / 2) / _ROOT_2) / 2
    bend = math.exp(-z * z / (2 * s) - s / 8) / math.sqrt(2 * math.pi * s)
    return falling - rising, -(falling + rising) / 2, bend


def _tail(epsilon: Fraction, level: Fraction, cost: Fraction) -> float | None:
    """A Y from which on densities are ordered: the larger root of a quadratic function of x, and half the range."""
    s, c, e = ball(level), ball(cost), ball(epsilon)
    # (x - e)^2 / (2 s) - x^2 / (2 (s + c)) - c/8 - log(1 + c/s) / 2 >= 0; it is below 0 at x = e.
    square, constant = c / (2 * s * (s + c)), e * e / (2 * s) - c / 8 - (c / s).log1p() / 2
    root = e / s + (e * e / (s * s) - 4 * square * constant).sqrt()
    upper = upper_fraction(root / (2 * square) + e / 2)
    return None if upper is None else float(upper) * (1 + 1e-12)

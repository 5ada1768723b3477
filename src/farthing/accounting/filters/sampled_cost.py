"""What an event on a secret sample takes of a Gaussian clock, when a little of delta pays for its far tails."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from flint import arb

from farthing.accounting.event_price import DELTA_UNITS, price_of
from farthing.accounting.gaussian_curves import tilted_curve, tilted_with_slope
from farthing.accounting.hockey_stick import upper_curve
from farthing.numerics.bounds import ball, exact, float_up, lower_fraction, precision
from farthing.privacy import ApproxDP, DiscreteGaussianNoise, Event, GaussianNoise, RandomizedResponse, Sampled

_BITS = 160
_READING = 1 + 2.0**-30  # curves read a parameter as a double, prices as the decimal that was typed
_WITHIN = 24  # chords of the curve of a pure event
_MOST_NODES = 96
_CELLS = (4, 24)  # on each side of 0, at least and at most
_HALVINGS = 11
_TERMS = 40  # of Taylor sums; where x is large, what is left of them is below 1e-30
_NEAR, _CIRCLE = 0.4375, 3.0  # how near losses of a group are to its middle, and R; in deviations of the level
_INSIDE = 1 - 2.0**-20
_MOST_OF_LEVEL = 4  # what takes more than four times what it leaves is not worth a check
_WORTH_A_GROUP = 4  # losses; fewer are taken one by one
_STRIDE = 1.02
_SPARE = 1e-7  # of what doubles are asked for beyond what is checked


class Spare(NamedTuple):
    """What a budget can give away for far tails: its delta for own deltas, its whole clock, and what is left of the
    former; in units."""

    own: int = 0
    clock: int = 0
    left: int = 0

    def leak(self, event: Event) -> int:
        """What one charge of `event` may use: if the whole clock went to such charges, at most half in all.

        >>> Spare(10**30, 10**38, 10**30).leak(Sampled(GaussianNoise(5.0), 0.01)) / 10**30
        0.00015...
        >>> Spare(10**30, 10**38, 10**30).leak(GaussianNoise(5.0)), Spare().leak(Sampled(GaussianNoise(5.0), 0.01))
        (0, 0)
        """
        if not isinstance(event, Sampled) or not 0 < self.left <= self.own:
            return 0
        share = _share(event, self.own, self.clock)
        return share if share <= self.left else 0

    def without(self, leak: int) -> Spare:
        """What is left when so much was used."""
        return self._replace(left=self.left - leak)


@lru_cache(maxsize=4096)
def _share(event: Sampled, own: int, clock: int) -> int:
    size = _rough_size(event) * DELTA_UNITS
    share = int(own * min(1.0, size / clock) / 2) if clock > 0 and math.isfinite(size) else 0
    return 1 << (share.bit_length() - 1) if share else 0


def _rough_size(event: Sampled) -> float:
    """About what it takes of a long clock: its chi-squared divergence. Nothing rests on it."""
    inner = event.event
    if isinstance(inner, GaussianNoise | DiscreteGaussianNoise):
        square = inner.noise_multiplier**-2 if inner.noise_multiplier > 0.05 else math.inf
        return event.probability**2 * math.expm1(square) if square < 300 else math.inf
    epsilon = price_of(inner).epsilon
    assert epsilon is not None  # only Gaussian noise has none
    return event.probability**2 * 4 * math.sinh(float(epsilon) / 2) ** 2 if epsilon < 300 else math.inf


def sampled_cost(event: Sampled, level: Fraction, leak: Fraction) -> Fraction | None:
    """A cost that is proven for a clock that keeps at least `level` if `leak` of delta is paid beside it, or None.

    >>> event = Sampled(GaussianNoise(5.0), 0.01)
    >>> float(sampled_cost(event, Fraction(1, 32), Fraction(1, 10**14)) * 25)        # of what the whole would take
    0.0001...
    >>> sampled_cost(event, Fraction(1, 10**6), Fraction(1, 10**14)) is None
    True

    Statement:
        Let d(e) and d'(e), e >= 0, be the curves of a pair in its two orders, and k(u) = exp(-|u|/2) times d(-u) for
        u < 0, d'(u) for u > 0. For s = level + cost and F the normal distribution function put
            H_t(x) = e^(x/2) F((x + t/2) / sqrt(t)) - e^(-x/2) F((x - t/2) / sqrt(t)),
            a(x) = e^(-level/8) (k * phi_level)(x) / phi_level(x),    b(x) = (H_s(x) - H_level(x)) / phi_level(x).
        If a <= b on [-X, X] and V(-X, s) - V(-X, level) + max(d(e), d'(e)) <= leak at e = X - level/2 >= 0, then
            E[V(x + l, level)] <= V(x, s) + leak   for every x, in both orders.
        And log a and log b are convex. So a <= b on an interval if, at both of its ends, log a is at most some tangent
        of log b.
        Here k is replaced by a larger function: d and d' by their chords, as functions of e^e, between finitely many
        points, and by a constant after the last. The curve of a sample follows from that of the event, point by point.
        The mean of H_t(x + l) over losses l that are small beside r = sqrt(t) is a Taylor sum of moments. H_t is a
        mixture of normal densities, so |H_t(x + z)| <= e^(R^2/2t) H_t(x + R) for |z| = R, and by Cauchy's estimate the
        terms from n on sum up to at most e^(R^2/2t) H_t(x + R) E[|l/R|^n] / (1 - r/R) for losses up to r < R.
    Source: Theorem 5 on the page docs/clock.md, written for farthing. Curves of samples: `hockey_stick_divergence`.
        Chords: Doroshenko et al., arXiv:2207.04380 ("connect the dots").
    Assumes: neighbours add or remove one unit.
    Direction: inequalities are tested in balls; None says that nothing is proven.
    Checked by: tests/theorems/test_clock_sampled.py
    """
    if not (0 < leak < 1 and 0 < event.probability < 1):
        return None
    if isinstance(event.event, ApproxDP):  # its leak is paid apart
        return sampled_cost(Sampled(RandomizedResponse(event.event.epsilon), event.probability), level, leak)
    coarse = _two_bits(level)
    # Where less is kept than about the event takes, losses are not small beside the clock, and no chord is good enough.
    return _checked_cost(event, coarse, leak) if coarse > _rough_size(event) else None


def _two_bits(level: Fraction) -> Fraction:
    """Costs are checked at levels of two significant bits; what is enough at a level is enough above it."""
    if level < Fraction(1, 2**120):
        return Fraction(0)
    step = Fraction(2) ** (math.frexp(float(level))[1] - 2)
    return math.floor(level / step) * step


@lru_cache(maxsize=4096)
def _checked_cost(event: Sampled, level: Fraction, leak: Fraction) -> Fraction | None:
    """The least cost that passes the check, nearly."""
    with precision(_BITS):
        pair = _pair_of(event, leak)
        if pair is None:
            return None
        beside = _Beside.of(pair, level)
        least = beside.least_cost(level)
        if least is None:
            return None
        for growth in (2, 8):
            if growth * least > _MOST_OF_LEVEL * level:
                return None
            check = _Check.of(pair, beside, level, growth * least, leak)
            if check is not None and check.holds(growth * least):
                break
        else:
            return None
        guess = least * Fraction(_least_factor(lambda factor: check.seems_to_hold(float(least) * factor), growth))
        if guess < growth * least and check.holds(guess):
            return guess
        return least * Fraction(_least_factor(lambda factor: check.holds(least * Fraction(factor)), growth))


def _least_factor(holds: Callable[[float], bool], growth: int) -> float:
    """The least factor between 1 and `growth`, nearly, with which something holds; it does with `growth`."""
    low, high = 1.0, float(growth)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class _Pair(NamedTuple):
    """Losses and e^(-loss/2) times their probabilities under P; and the probability of an infinite loss."""

    atoms: tuple[tuple[Any, Any], ...]
    infinite: Any

    def beyond(self) -> Callable[[float], Any]:
        """A bound of both curves at an epsilon: all that has a larger loss, in either direction.

        Chords of rounded points may bend the wrong way in the last digit, and have a mass below 0 there. What it takes
        away from a curve is not counted on.
        """
        parts = [(float(abs(loss).upper()) * (1 + 2.0**-50), mass * (abs(loss) / 2).exp()) for loss, mass in self.atoms]
        parts.sort(key=lambda part: part[0])
        sizes, sums = [size for size, _ in parts], [self.infinite]
        for _, mass in reversed(parts):
            sums.append(sums[-1] if mass < 0 else sums[-1] + mass)
        return lambda epsilon: sums[len(sizes) - bisect_right(sizes, epsilon)]


class _Group(NamedTuple):
    """Losses that are near to each other beside a clock, as moments about the middle of them."""

    middle: Any
    moments: tuple[Any, ...]
    rest: Any  # E[|l/R|^n] / (1 - r/R) of the first n that is left out, losses l from the middle

    @classmethod
    def of(cls, middle: Any, atoms: list[tuple[Any, Any]], near: Any, circle: Any) -> _Group:
        moments, powers, losses = [], [mass for _, mass in atoms], [loss - middle for loss, _ in atoms]
        for _ in range(_TERMS):
            moments.append(sum(powers, arb(0)))
            powers = [power * loss for power, loss in zip(powers, losses, strict=True)]
        rest = sum((abs(power) for power in powers), arb(0)) / circle**_TERMS / (1 - near / circle)
        return cls(middle, tuple(moments), rest)

    def mean(self, x: Any, s: Any, circle: Any) -> Any:
        """The sum of H_s(x + l) over its losses, each with its mass."""
        x = x + self.middle
        value, slope = tilted_with_slope(x, s)
        wide = (circle**2 / (2 * s)).exp() * tilted_curve(x + circle, s) * self.rest
        total = self.moments[0] * value + self.moments[1] * slope + wide.union(-wide)
        # H'' = H/4 + g with g = e^(-level/8) times the normal density; the coefficients of both, one after the other.
        density, before = (-s / 8 - x**2 / (2 * s)).exp() / (2 * arb.pi() * s).sqrt(), arb(0)
        for n, moment in enumerate(self.moments[2:]):
            value, slope = slope, (value / 4 + density) / ((n + 1) * (n + 2))
            total += moment * slope
            density, before = -(x * density + before) / (s * (n + 1)), density
        return total


class _Beside(NamedTuple):
    """A pair beside Gaussian noise of a level: groups of near losses by their moments, and other losses one by one."""

    level: Any
    circle: Any  # the radius R of the Taylor sums
    groups: tuple[_Group, ...]
    far: tuple[tuple[Any, Any], ...]
    infinite: Any

    @classmethod
    def of(cls, pair: _Pair, level: Fraction) -> _Beside:
        s = ball(level)
        near, circle = s.sqrt() * _NEAR, s.sqrt() * _CIRCLE
        small = [(loss, mass) for loss, mass in pair.atoms if abs(loss) <= near]
        others = sorted((atom for atom in pair.atoms if not abs(atom[0]) <= near), key=lambda atom: float(atom[0]))
        centre = _Group.of(arb(0), small, near, circle)
        groups = [centre._replace(moments=(centre.moments[0] - 1, *centre.moments[1:]))]  # less what H itself is
        far: list[tuple[Any, Any]] = []
        while others:
            middle = arb(float(others[0][0] + near * _INSIDE))
            many = next((n for n, (loss, _) in enumerate(others) if not abs(loss - middle) <= near), len(others))
            if many >= _WORTH_A_GROUP:
                groups.append(_Group.of(middle, others[:many], near, circle))
            else:
                many = 1
                far.append(others[0])
            others = others[many:]
        return cls(s, circle, tuple(groups), tuple(far), pair.infinite)

    def raised(self, x: Any) -> Any:
        """e^(x/2) (E[V(x + l, level)] - V(x, level))."""
        total = sum((group.mean(x, self.level, self.circle) for group in self.groups), arb(0))
        total += sum((mass * tilted_curve(x + loss, self.level) for loss, mass in self.far), arb(0))
        return total + (x / 2).exp() * self.infinite

    def least_cost(self, level: Fraction) -> Fraction | None:
        """What it costs at x = 0: the least that any check could find."""
        far = tilted_curve(arb(0), self.level) + self.raised(arb(0))
        cost = lower_fraction(8 * far.erfinv() ** 2 - self.level) if far < 1 else None
        return cost if cost is not None and cost > 0 else None


@lru_cache(maxsize=256)
def _pair_of(event: Sampled, leak: Fraction) -> _Pair | None:
    """Chords of both curves of a sample. With y = e^e of the whole, they are at 1 - p + p y and y / (p + (1-p) y)."""
    known = _curve_points(event.event, math.frexp(float(leak))[1])
    if known is None:
        return None
    p = ball(exact(event.probability))
    ratios, values = [arb(e).exp() for e in known[0]], [p * arb(d) for d in known[1]]
    mixed = [p + (1 - p) * y for y in ratios]
    removed = [1 + p * (y - 1) for y in ratios]
    added = [y / m for y, m in zip(ratios, mixed, strict=True)]
    milder = [d / m for d, m in zip(values, mixed, strict=True)]
    # Where slopes change, the denominator of the likelihood ratio has an atom: Q in one order, P in the other.
    upper = [(r.log(), q * r.sqrt(), q * r) for r, q in zip(removed[1:], _bends(removed, values), strict=True)]
    lower = [(-r.log(), m * r.sqrt(), m) for r, m in zip(added[1:], _bends(added, milder), strict=True)]
    centre = 1 - values[-1] - sum((m for _, _, m in (*upper, *lower)), arb(0))
    return _Pair((*((loss, half) for loss, half, _ in (*upper, *lower)), (arb(0), centre)), values[-1])


def _bends(points: list[Any], values: list[Any]) -> list[Any]:
    slopes = [(values[i + 1] - values[i]) / (points[i + 1] - points[i]) for i in range(len(points) - 1)]
    return [after - before for before, after in zip(slopes, [*slopes[1:], arb(0)], strict=True)]


@lru_cache(maxsize=256)
def _curve_points(event: Event, exponent: int) -> tuple[list[float], list[float]] | None:
    """Epsilons from 0 on, and the event's curve there, rounded up; out to where it is 2^-40 of a leak below 2^exponent.

    Points lie a tenth of a standard deviation apart at first, further out less densely.
    """
    epsilon = price_of(event).epsilon
    if epsilon is None:
        assert isinstance(event, GaussianNoise | DiscreteGaussianNoise)
        deviation, points = 1 / event.noise_multiplier, [0.0]
        reach = deviation / 2 + math.sqrt(2 * math.log(2) * (60 - exponent))  # in deviations; e^(-z^2 / 2) is enough
        while points[-1] < reach * deviation and len(points) < _MOST_NODES:
            points.append(points[-1] + deviation / 10 + points[-1] / 40)
    else:
        last = float_up(epsilon) * (1 + 2.0**-40)
        chords = 1 if isinstance(event, RandomizedResponse) else _WITHIN
        points = [last * n / chords for n in range(chords + 1)]
    if not 0 < points[-1] < 600:
        return None
    return points, [min(1.0, value * _READING) for value in upper_curve(event, points)]


class _Check(NamedTuple):
    """Cells that cover [-X, X], their ends and middles. What fails does so far out, so cells are tried from there."""

    level: Any
    beside: _Beside
    ends: list[float]
    logs: dict[int, Any]  # log a at the ends that were asked for
    middles: list[Any]

    @classmethod
    def of(cls, pair: _Pair, beside: _Beside, level: Fraction, most: Fraction, leak: Fraction) -> _Check | None:
        """For costs up to `most`: the larger the cost, the larger X must be."""
        s, longest, beyond = ball(level), ball(level + most), pair.beyond()
        half, least = float_up(level) / 2, float(leak)
        last = math.sqrt(float(level + most)) + float(level)
        # What doubles find is only where to begin.
        sizes = float(level + most), float(level)
        while (_rise(-last, *sizes)[0] * math.exp(last / 2) + float(beyond(last - half))) > least and last < 1e3:
            last *= _STRIDE
        while not (
            (tilted_curve(-arb(last), longest) - tilted_curve(-arb(last), s)) * arb(last / 2).exp()
            + beyond(last - half)
        ) <= ball(leak):
            last *= _STRIDE
            if not last < 100 * (1 + float(level)):
                return None
        cells = math.ceil(4 * last * math.sqrt(float(most)) / float(level))
        cells = min(max(cells, _CELLS[0]), _CELLS[1])
        ends = [last * n / cells for n in range(-cells, cells + 1)]
        middles = [(arb(left) + arb(right)) / 2 for left, right in pairwise(ends)]
        return cls(s, beside, ends, {}, middles)

    def log(self, n: int) -> Any:
        """log a at one end."""
        if n not in self.logs:
            x = arb(self.ends[n])
            self.logs[n] = self.beside.raised(x).log() + x**2 / (2 * self.level)
        return self.logs[n]

    @property
    def cells(self) -> list[int]:
        """From both ends to the middle."""
        return sorted(range(len(self.middles)), key=lambda n: min(n, len(self.middles) - 1 - n))

    def seems_to_hold(self, cost: float) -> bool:
        """The same as `holds` in doubles, with a little to spare: to find a cost that is worth a check."""
        level = float(self.level)
        for n in self.cells:
            x = float(self.middles[n])
            rise, rise_slope = _rise(x, level + cost, level)
            if not rise > 0:
                return False
            slope = rise_slope / rise + x / level
            height = math.log(rise) + x**2 / (2 * level)
            ends = ((self.ends[m], float(self.log(m))) for m in (n, n + 1))
            if not all(value + _SPARE <= height + slope * (end - x) for end, value in ends):
                return False
        return True

    def holds(self, cost: Fraction) -> bool:
        """Whether log a lies below tangents of log b, cell by cell. (A ball that says nothing is not below.)"""
        start = self.level + ball(cost)
        for n in self.cells:
            middle = self.middles[n]
            before, before_slope = tilted_with_slope(middle, self.level)
            after, after_slope = tilted_with_slope(middle, start)
            rise = after - before
            slope = (after_slope - before_slope) / rise + middle / self.level
            height = rise.log() + middle**2 / (2 * self.level)
            ends = ((arb(self.ends[m]), self.log(m)) for m in (n, n + 1))
            if not all(bool(value <= height + slope * (x - middle)) for x, value in ends):
                return False
        return True


def _rise(x: float, longer: float, shorter: float) -> tuple[float, float]:
    """H_longer - H_shorter and its slope, in doubles; it is even, and to the left of 0 it keeps its digits."""
    (after, after_slope), (before, before_slope) = (_tilted_in_doubles(-abs(x), s) for s in (longer, shorter))
    rise_slope = after_slope - before_slope
    return after - before, rise_slope if x < 0 else -rise_slope


def _tilted_in_doubles(x: float, s: float) -> tuple[float, float]:
    root = math.sqrt(s)
    rising = math.exp(x / 2) * math.erfc(-(x / root + root / 2) / math.sqrt(2)) / 2
    falling = math.exp(-x / 2) * math.erfc(-(x / root - root / 2) / math.sqrt(2)) / 2
    return rising - falling, (rising + falling) / 2

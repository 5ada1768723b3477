"""What charges of different sizes may add up to: a table of the worst that an analyst can do within it.

A potential V_k(x), k = 0..K, for k units of a clock that are left and a privacy loss that stands at epsilon + x. It is
the most that can be reached from there by Gaussian noise, at its clock, and by mechanisms of any epsilon from a menu,
at prices that know how far their losses reach. A bonus for Gaussian noise and small charges stands beside the units
until the first charge on a menu.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb
from numpy.typing import NDArray

from farthing.accounting.filters.clock_costs import CLOCK_UNITS, clock_of
from farthing.numerics.bounds import ball, float_up, precision

Floats = NDArray[np.float64]

UNITS = 1500
"""Units that a whole Gaussian clock is cut into."""

_WHOLE = Fraction(975, 1000)  # units and bonus together, of a whole Gaussian clock
_KEPT = Fraction(995, 1000)  # about what the bonus leaves of the units that there would be without one
_CELLS = 90  # of the lattice, in a standard deviation of the whole clock
_SMALLEST, _LARGEST = 0.07, 1.0  # sizes on the menu, in the same measure
_FINE = 64  # prices differ by at most this part
_MARGIN = 1e-6  # far above the error of so many sums of positive doubles, about 1e-10
_UP = 1 + 2.0**-40  # weights are rounded up by this, which is far above their error
_SHARE_OF_TAILS = 2.0**-20  # of slack: what is beyond the cells of Gaussian noise, in all steps together
_LARGEST_EPSILON, _LEAST_SLACK = 300, Fraction(1, 10**250)  # what doubles can hold


class Menu(NamedTuple):
    """Prices in units, rising, and the largest epsilon that each of them pays for."""

    prices: tuple[int, ...]
    sizes: tuple[float, ...]

    def price(self, epsilon: Fraction) -> int | None:
        """What a charge of this epsilon takes, or None if it is too large for the menu."""
        place = bisect_left(self.sizes, float_up(epsilon))
        return self.prices[place] if place < len(self.prices) else None


@dataclass(frozen=True)
class StreamTable:
    """How many units a budget has, what a unit is of a clock, the bonus, and the menu at every number of units left."""

    count: int = 0
    unit: int = 0
    bonus: int = 0
    smallest: Fraction = Fraction(0)
    step: int = 1
    menus: tuple[Menu, ...] = ()

    def price(self, epsilon: Fraction, left: int) -> int | None:
        """What a charge of this epsilon takes of so many units; None where the menu does not have it.

        >>> table = stream_table(Fraction(1), Fraction(1, 10**9), 0.05, units=500)
        >>> table.price(Fraction(5, 100), table.count), table.price(Fraction(5, 100), 4)
        (26, None)
        """
        if left < self.step or epsilon <= self.smallest:
            return None
        price = self.menus[left // self.step - 1].price(epsilon)
        return price if price is not None and price <= left else None

    def largest(self, left: int) -> float:
        """The largest epsilon that so many units pay for, or 0."""
        if left < self.step:
            return 0.0
        menu = self.menus[left // self.step - 1]
        place = bisect_right(menu.prices, left)
        return menu.sizes[place - 1] if place else 0.0


@lru_cache(maxsize=64)
def stream_table(epsilon: Fraction, slack: Fraction, largest: float, units: int = UNITS) -> StreamTable:
    """The table of a budget, computed in a little more than half a second.

    Args:
        epsilon: The epsilon of the budget.
        slack: The delta of the budget that is not set aside.
        largest: The largest epsilon on the menus. They have none above a standard deviation of the whole clock.
        units: How many units a whole Gaussian clock would have.

    Returns:
        The units that are proven, the bonus beside them and their menus; no units if the menus would be empty.

    >>> table = stream_table(Fraction(1), Fraction(1, 10**9), 0.05, units=500)
    >>> round(table.count / 500, 2)      # of a Gaussian clock
    0.93
    >>> round((table.count + table.bonus / table.unit) / 500, 2)     # with the bonus
    0.97

    Statement:
        Let u > 0 be a unit of a clock, m >= 1, and for k = m, m + 1, .. let a menu M_k say which epsilons e cost how
        many units n, m <= n <= k. For a function f of x that falls and is convex in y = e^-x let T_e f(x) = E[f(x + l)]
        with l the loss of randomized response of e, and G f the same for Gaussian noise with mu^2 = m u. Let C f be
        the chords of f, in y, between the points of a lattice; below the lowest point f as it is there, above the
        highest the chord to the value 1 at y = 0. With V_k = C (1 - e^-x)_+ for k < m and
            V_k = C max(G V_(k-m), T_e V_(k-n) for all (e, n) in M_k),   k >= m,
        let the state (k, g), k units and a Gaussian clock g, have the potential W(x; k, g) = E[V_k(x + Z_g)]. Then
        W(L - epsilon; k, g) is a supermartingale, L being the loss so far, whatever is charged, if
            (a) a mechanism of an epsilon of at most e, (e, n) in M_k, takes n units;
            (b) any other charge takes of g what it takes of a Gaussian clock of which it keeps the rest (`clock_cost`);
            (c) m units may be exchanged for m u more of g at any time. (Fewer than m are worth nothing.)
        So if V_K(-epsilon) <= slack, a filter that starts at (K, 0) guarantees what Theorem 1 says of a clock, with
        leaks and plain sums beside it as there. With a bonus r it starts at (K, r, 0), where V'_K(-epsilon) <= slack:
            V'_k = the curve of Gaussian noise with mu^2 = r, at the points,         k < m,
            V'_k = C max(G V'_(k-m), T_e V_(k-n) for all (e, n) in M_k),            k >= m.
        A charge of (a) takes the bonus as well; less than m units may be exchanged, with the bonus, for r more of g.
    Source: Theorem 6 on the page docs/clock.md, written for farthing. Chords: Doroshenko et al., arXiv:2207.04380.
    Assumes: as ClockFilter.
    Direction: V is a sum of positive doubles with weights rounded up, mass beyond the cells of Gaussian noise counts as
        the value 1, and a millionth is added at the end. Which sizes and prices are on the menus is a choice, and so
        is the bonus: V is computed for what they are.
    Checked by: tests/theorems/test_stream_filter.py
    """
    unit = clock_of(epsilon, slack) // units
    prices = _Prices.of(float(epsilon), unit / CLOCK_UNITS, units, largest)
    if prices is None or epsilon > _LARGEST_EPSILON or slack < _LEAST_SLACK:
        return StreamTable()
    step = prices.step
    menus = [prices.menu(n * step) for n in range(1, units // step + 1)]
    lattice = _Lattice.of(float(epsilon), Fraction(unit, CLOCK_UNITS), prices, float(slack))
    most = float(slack) * (1 - _MARGIN)
    count, rows = lattice.layer(menus, step, most)
    bonus = math.floor(_WHOLE * unit * units) - math.floor(_KEPT * count) * unit
    if bonus > 0:
        beside, _ = lattice.layer(menus, step, most, rows, Fraction(bonus, CLOCK_UNITS))
    if bonus <= 0 or beside * unit + bonus <= count * unit:
        beside, bonus = count, 0
    return StreamTable(beside, unit, bonus, Fraction(prices.smallest), step, tuple(menus))


class _Prices(NamedTuple):
    """Prices at which nobody gains much. Any others would be as valid: the table says what they amount to.

    With k units left the price of e is that at slope z = z(k) of log V: what a Gaussian clock would have to be, so that
    E[e^(z l)] is the same. Near the end V is less steep where it matters, so z falls with k.
    """

    unit: float
    deviation: float
    slope: float
    end: float
    sizes: Floats

    @classmethod
    def of(cls, epsilon: float, unit: float, units: int, largest: float) -> _Prices | None:
        """None where all sizes are too small for a menu."""
        deviation = math.sqrt(units * unit)
        ends = _SMALLEST * deviation, min(largest * _UP, _LARGEST * deviation)
        if not 0 < ends[0] < ends[1]:
            return None
        ratio = (epsilon / deviation) ** 2  # about twice ln(1/delta)
        factor = min(max(1.1 + 0.019 * (ratio - 18), 0.5), 2.0)
        return cls(unit, deviation, factor * epsilon / deviation**2, 0.07 * units, np.geomspace(*ends, 400))

    @property
    def smallest(self) -> float:
        return float(self.sizes[0])

    @property
    def step(self) -> int:
        """The least price of all."""
        return max(1, math.floor(float(self._costs(math.inf)[0])))

    def menu(self, left: int) -> Menu:
        costs = self._costs(left)
        prices, price, most = [], max(1, math.ceil(costs[0])), max(1, math.ceil(costs[-1]))
        while price < most:
            prices.append(price)
            price += max(1, price // _FINE)
        sizes = np.interp(prices, costs, self.sizes)
        return Menu((*prices, most), (*(float(size) for size in sizes), float(self.sizes[-1])))

    def _costs(self, left: float) -> Floats:
        """2 log(cosh((z + 1/2) e) / cosh(e / 2)) / (z (z + 1)), in units."""
        z = self.slope if left == math.inf else self.slope * left / (left + self.end)
        grown, own = (z + 0.5) * self.sizes, self.sizes / 2
        log_mean = grown - own + np.log1p(np.exp(-2 * grown)) - np.log1p(np.exp(-2 * own))
        return np.asarray(2 * log_mean / (z * (z + 1) * self.unit))


class _Lattice(NamedTuple):
    """Points x of V, from `low` to `high` steps, with -epsilon among them, and the weights of Gaussian noise."""

    h: float
    start: int
    low: int
    high: int
    margin: int  # of points on both sides, for the chords
    noise: Floats
    tail: float

    @classmethod
    def of(cls, epsilon: float, unit: Fraction, prices: _Prices, slack: float) -> _Lattice:
        deviation, clock = prices.deviation, prices.step * unit
        start = math.ceil(epsilon * _CELLS / deviation)
        h = epsilon / start
        most_steps = math.ceil((deviation**2) / float(clock))
        far = math.sqrt(2 * math.log(most_steps / (slack * _SHARE_OF_TAILS))) + 1
        reach = math.ceil(far * math.sqrt(clock) / h)
        noise, tail = _noise_weights(h, clock, reach)
        margin = max(math.ceil(prices.sizes[-1] / h), reach) + 2
        low, high = -start - math.ceil(1.2 * deviation / h), math.ceil(1.5 * deviation / h)
        return cls(h, start, low, high, margin, noise, tail)

    def layer(
        self, menus: list[Menu], step: int, slack: float, without: Floats | None = None, bonus: Fraction = Fraction(0)
    ) -> tuple[int, Floats]:
        """The largest k, of those before the first that fails, with V_k(-epsilon) <= slack, and the V below it."""
        rows = self.blank(menus, step)
        for k, values in self.values(menus, step, rows, without, bonus):
            if not values[-self.start - self.low] <= slack:
                return k - 1, rows[: k - k % step]
        return k, rows[: k + 1]

    def blank(self, menus: list[Menu], step: int) -> Floats:
        """Rows for V with nothing in them."""
        return np.empty(((len(menus) + 1) * step, self.high - self.low + 1 + 2 * self.margin))

    def values(
        self,
        menus: list[Menu],
        step: int,
        rows: Floats,
        without: Floats | None = None,
        bonus: Fraction = Fraction(0),
    ) -> Iterator[tuple[int, Floats]]:
        """V_k at the points, for k = 0, 1, ..; `step` of them are prepared at a time, because no price is less.

        With a bonus they are V', as far as the rows reach that a charge on the menu leads to: those without it.
        """
        inner = slice(self.margin, self.margin + self.high - self.low + 1)
        ends = self._curve(bonus)
        for k in range(step):  # too few for anything
            self._extend(rows[k], ends)
            yield k, rows[k, inner]
        near = slice(inner.start - len(self.noise) // 2, inner.stop + len(self.noise) // 2)
        after = rows if without is None else without
        for first, menu in zip(range(step, len(after), step), menus, strict=False):
            responses = self._responses(after, first, step, menu)
            for k in range(first, first + step):
                noisy = np.convolve(rows[k - step, near], self.noise[::-1], "valid") + self.tail
                self._extend(rows[k], np.maximum(noisy, responses[k - first]))
                yield k, rows[k, inner]

    def _curve(self, clock: Fraction) -> Floats:
        """What can be reached with nothing but Gaussian noise of this clock, at the points."""
        points = range(self.low, self.high + 1)
        if not clock:
            return np.maximum(0.0, -np.expm1(-self.h * np.asarray(points, dtype=np.float64)))
        with precision(256):
            s, h = ball(clock), arb(self.h)
            above, beyond = ([_normal((n * h + sign * s / 2) / s.sqrt()) for n in points] for sign in (1, -1))
            exact = [p - (-n * h).exp() * q for n, p, q in zip(points, above, beyond, strict=True)]
            return np.array([float(value.upper()) * _UP for value in exact], dtype=np.float64)

    def _extend(self, row: Floats, values: Floats) -> None:
        """Below the lowest point the value there, above the highest the chord to 1."""
        row[: self.margin] = values[0]
        row[self.margin : -self.margin] = values
        rise = -np.expm1(-self.h * np.arange(1, self.margin + 1))
        row[-self.margin :] = values[-1] + (1 - min(1.0, values[-1])) * rise

    def _responses(self, rows: Floats, first: int, step: int, menu: Menu) -> Floats:
        """The most of T_e V_(k-n) over the menu, for `step` numbers k from `first` on; 0 where there is nothing."""
        width = self.high - self.low + 1
        best, sums, part = (np.zeros((step, width)) for _ in range(3))
        for price, size in zip(menu.prices, menu.sizes, strict=True):
            at = max(0, price - first)  # where so many units are left at all
            if at >= step:
                break
            before = rows[first + at - price : first + step - price]
            sums[at:] = 0.0
            for place, weight in self._weights(size):
                offset = self.margin + place
                np.multiply(before[:, offset : offset + width], weight, out=part[at:])
                sums[at:] += part[at:]
            np.maximum(best[at:], sums[at:], out=best[at:])
        return best

    def _weights(self, size: float) -> list[tuple[int, float]]:
        """Randomized response with each of its two losses on the points around it; what is rounded moves up."""
        truth, cell = 1 / (1 + math.exp(-size)), math.floor(size / self.h)
        beyond = min(max(size - cell * self.h, 0.0), self.h)
        up = min(1.0, math.expm1(-beyond) / math.expm1(-self.h) + 1e-12)
        down = min(1.0, math.expm1(beyond - self.h) / math.expm1(-self.h) + 1e-12)
        places = ((cell, 1 - up), (cell + 1, up)), ((-cell - 1, 1 - down), (-cell, down))
        both = zip((truth, 1 - truth), places, strict=True)
        return [(place, chance * share * _UP) for chance, pair in both for place, share in pair]


def _noise_weights(h: float, clock: Fraction, reach: int) -> tuple[Floats, float]:
    """Gaussian noise on a lattice: what is in a cell goes to its two ends so that P and Q keep their mass.

    With P and Q the mass of a cell [a, a + h], (P - e^a Q) / (1 - e^-h) goes to its upper end.
    """
    with precision(256):
        s, step = ball(clock), arb(h)
        ends = [step * n for n in range(-reach, reach + 1)]
        below = [[_normal((a + sign * s / 2) / s.sqrt()) for a in ends] for sign in (-1, 1)]
        weights = [arb(0) for _ in ends]
        weights[0] += below[0][0]  # all that is below the lowest cell moves up to it
        for n, a in enumerate(ends[:-1]):
            p, q = (side[n + 1] - side[n] for side in below)
            upper = (p - a.exp() * q) / (1 - (-step).exp())
            weights[n] += p - upper
            weights[n + 1] += upper
        doubles = [float(weight.upper()) * _UP for weight in weights]
        tail: Any = _normal(-(ends[-1] - s / 2) / s.sqrt())
        return np.array(doubles), float(tail.upper()) * _UP


def _normal(x: Any) -> Any:
    return (-x / arb(2).sqrt()).erfc() / 2

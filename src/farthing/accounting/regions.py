"""Regions: the error rates that a test of one table against another can reach, as exact polygons.

A test that guesses which of two neighbouring tables was used has a false-alarm rate P_FA and a missed-detection rate
P_MD. All pairs that tests can reach fill a convex polygon between a lower boundary and its mirror image through
(1/2, 1/2). A region inside another one is privacy that is at least as good, and everything that can be done with the
answers of the first can be imitated from those of the second (`farthing.accounting.simulate`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from farthing.accounting.finite_distributions import (
    Number,
    Pair,
    checked_distribution,
    checked_number,
    checked_pair,
    leaky_response,
    odds_above,
)
from farthing.accounting.loss_transforms import Array
from farthing.accounting.tradeoff_functions import TradeoffFunction
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import ball, down, exact, precise_balls, rounded_down, up
from farthing.numerics.notebook_tables import html_polygon
from farthing.privacy.events import checked_delta, checked_epsilon

if TYPE_CHECKING:
    from farthing.accounting.algorithm_choice import Pricing

Corner = tuple[Fraction, Fraction]

_LINES = 64
_FAINTEST = 1e-12
_STEEPEST = 700.0
_BLIND: tuple[Corner, Corner] = ((Fraction(0), Fraction(1)), (Fraction(1), Fraction(0)))


@dataclass(frozen=True, init=False, repr=False)
class Region:
    """The smallest region that contains the given pairs (P_FA, P_MD): what tests can reach, as an exact polygon.

    Every region contains the blind guesses, P_FA + P_MD = 1, and with a test its opposite, (1 - P_FA, 1 - P_MD). Two
    regions are equal if they are the same polygon. A double such as 0.1 is read as the short decimal 1/10.

    Args:
        points: Pairs of error rates between 0 and 1.

    Raises:
        InvalidValue: If a rate is not between 0 and 1.

    Attributes:
        corners: The corners (P_FA, P_MD) of the lower boundary, from P_FA = 0 to (1, 0).

    >>> from farthing import compose
    >>> region = compose([(0.4, 0.1)]).region()
    >>> (0.5, 0.5) in region, (0.01, 0.01) in region
    (True, False)
    >>> Region([(0.1, 0.2)])
    Region of 3 corners: (0, 1), (0.1, 0.2), (1, 0)
    """

    corners: tuple[Corner, ...]

    def __init__(self, points: Iterable[tuple[Number, Number]] = ()) -> None:
        given = [(_rate(a, "P_FA"), _rate(b, "P_MD")) for a, b in points]
        given += [(1 - a, 1 - b) for a, b in given]
        object.__setattr__(self, "corners", _lower_hull([*given, *_BLIND]))

    @classmethod
    def from_guarantee(cls, epsilon: float, delta: float = 0.0) -> Region:
        """Everything that (epsilon, delta)-DP allows: the region of randomized response with a leak.

        Args:
            epsilon: The epsilon, at most 5000.
            delta: The delta.

        Returns:
            The region; e^epsilon is rounded up by at most one part in 2^50, so it is never too small.

        Raises:
            InvalidValue: If epsilon or delta is out of its range.

        Statement:
            A mechanism is (epsilon, delta)-DP if and only if for neighbours every test has P_FA + e^epsilon P_MD >=
            1 - delta and e^epsilon P_FA + P_MD >= 1 - delta. The corners are (0, 1 - delta), (c, c) and
            (1 - delta, 0), with c = (1 - delta) / (1 + e^epsilon).
        Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, section 2.
        Assumes: neighbours in both orders.
        Direction: the region returned holds the true one; by equality where e^epsilon is a multiple of its grid.
        Checked by: tests/theorems/test_regions.py

        >>> import math
        >>> Region.from_guarantee(math.log(3), 0.2)
        Region of 4 corners: (0, 0.8), (0.2, 0.2), (0.8, 0), (1, 0)
        """
        checked_delta(delta)
        return cls.from_distributions(*leaky_response(odds_above(epsilon), delta))

    @classmethod
    def from_distributions(cls, P: Iterable[Number], Q: Iterable[Number]) -> Region:
        """What tests between two finite distributions can reach.

        Args:
            P: The probabilities of the outcomes for one table; a false alarm is a rejection under P.
            Q: The probabilities of the same outcomes for its neighbour.

        Returns:
            The region, exactly.

        Raises:
            InvalidValue: If P or Q is not a distribution, or they have different numbers of outcomes.

        Statement:
            The tests on the lower boundary reject for the outcomes of the largest Q / P first: its corners are the
            sums (P(S), 1 - Q(S)) over the first outcomes S in this order.
        Source: Neyman & Pearson, Phil. Trans. A 231, 1933; Kairouz, Oh & Viswanath, arXiv:1311.0776v4, section 2.
        Assumes: sums within 1e-9 of 1, which are made exactly 1.
        Direction: exact, in fractions.
        Checked by: tests/theorems/test_regions.py

        >>> Region.from_distributions([0.5, 0.4, 0.1], [0.1, 0.4, 0.5])
        Region of 4 corners: (0, 1), (0.1, 0.5), (0.5, 0.1), (1, 0)
        """
        pair = checked_pair(P, Q)
        region = object.__new__(cls)
        object.__setattr__(region, "corners", _lower_hull(best_tests(pair)))
        return region

    @classmethod
    def from_tradeoff(cls, curve: TradeoffFunction) -> Region:
        """The region above a trade-off function.

        Args:
            curve: The function; its points are read as exactly the doubles they are.

        Returns:
            The smallest region that contains its points.

        >>> from farthing import compose
        >>> composition = compose([0.3] * 10)
        >>> Region.from_tradeoff(composition.tradeoff()) >= composition.region()
        True
        """
        points = zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True)
        return cls((Fraction(a), Fraction(b)) for a, b in points)

    @classmethod
    def mixture(cls, regions: Iterable[Region], weights: Iterable[Number]) -> Region:
        """The region of a mechanism chosen by a public coin: its answer says which one was used.

        Args:
            regions: The regions of the mechanisms.
            weights: The probability of each.

        Returns:
            The region, exactly.

        Raises:
            InvalidValue: If the weights are not probabilities, one for each region.

        Statement:
            A test may differ for every side of the coin, and its error rates are the mean of theirs: the
            region is the Minkowski sum of the regions, each multiplied by its weight. Its lower boundary has the edges
            of all boundaries, shortened by their weights, in the order of their slopes.
        Source: elementary; Kairouz, Oh & Viswanath, arXiv:1311.0776v4, section 2, for the region of one side.
        Assumes: a coin that does not depend on the data.
        Direction: exact, in fractions.
        Checked by: tests/theorems/test_regions.py

        >>> half = Region.mixture([Region(), Region([(0, 0)])], [0.5, 0.5])       # all or nothing, by a fair coin
        >>> half
        Region of 3 corners: (0, 0.5), (0.5, 0), (1, 0)
        """
        parts, shares = list(regions), checked_distribution(weights, "weights")
        if len(parts) != len(shares):
            raise InvalidValue("weights", list(map(float, shares)), f"must be one for each of {len(parts)} regions")
        a, b = Fraction(0), Fraction(0)
        edges: list[tuple[Fraction, Fraction]] = []
        for part, share in zip(parts, shares, strict=True):
            b += share * part.corners[0][1]
            edges += [(share * (x - u), share * (y - v)) for (u, v), (x, y) in pairwise(part.corners) if share]
        corners = [(a, b)]
        for across, fall in sorted(edges, key=lambda edge: edge[1] / edge[0]):
            a, b = a + across, b + fall
            corners.append((a, b))
        return cls(corners)

    @property
    def vertices(self) -> Array:
        """All corners in order around the polygon, as doubles: one row (P_FA, P_MD) for each, for pictures."""
        lower = np.array([[float(a), float(b)] for a, b in self.corners])
        return np.concatenate([lower, 1 - lower])

    def missed_at(self, false_alarm: Number) -> Fraction:
        """The least missed-detection rate of any test with this false-alarm rate.

        Args:
            false_alarm: A rate between 0 and 1.

        Returns:
            The height of the lower boundary, exactly.

        Raises:
            InvalidValue: If `false_alarm` is not a rate.

        >>> Region.from_distributions([0.75, 0.25], [0.25, 0.75]).missed_at(0.1)
        Fraction(7, 10)
        """
        a = _rate(false_alarm, "false_alarm")
        place = bisect_left(self.corners, a, key=lambda corner: corner[0])
        if self.corners[place][0] == a:
            return self.corners[place][1]
        (u, v), (x, y) = self.corners[place - 1], self.corners[place]
        return v + (y - v) * (a - u) / (x - u)

    def tradeoff(self) -> TradeoffFunction:
        """The lower boundary in doubles, each rounded down: nowhere above the exact one.

        Returns:
            The trade-off function.

        >>> Region.from_distributions([0.75, 0.25], [0.25, 0.75]).tradeoff()(0.25)
        0.25
        """
        # A point moved left and down on a falling curve lies below it, and so does what joins two of them.
        return TradeoffFunction(
            np.array([rounded_down(a) for a, _ in self.corners]), np.array([rounded_down(b) for _, b in self.corners])
        )

    def delta_at(self, epsilon: float) -> Bounds:
        """The least delta at which every test in the region obeys (epsilon, delta)-DP.

        Args:
            epsilon: A finite number >= 0.

        Returns:
            Bounds on it, rounded outward.

        Raises:
            InvalidValue: If epsilon is not such a number.

        Statement: the largest of 1 - P_MD - e^epsilon P_FA and 1 - P_FA - e^epsilon P_MD over the corners, or 0.
        Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, section 2.
        Assumes: nothing; for a region that holds more than a mechanism reaches, what it says holds a fortiori.
        Direction: charge `upper`.
        Checked by: tests/theorems/test_regions.py

        >>> Region.from_distributions([0.75, 0.25], [0.25, 0.75]).delta_at(0.0).estimate
        0.5
        """
        number = exact(checked_epsilon(epsilon))
        with precise_balls():
            odds = ball(number).exp()
            values = [1 - ball(b) - odds * ball(a) for a, b in self._both_sides()]
            return Bounds(max(0.0, *map(down, values)), min(1.0, max(0.0, *map(up, values))))

    def epsilon_at(self, delta: float = 0.0) -> Bounds:
        """The least epsilon >= 0 at which every test in the region obeys (epsilon, delta)-DP.

        Args:
            delta: A number >= 0 and < 1.

        Returns:
            Bounds on it, rounded outward; infinite if no epsilon will do.

        Raises:
            InvalidValue: If delta is not such a number.

        Statement: log of the largest (1 - delta - P_MD) / P_FA and (1 - delta - P_FA) / P_MD over the corners, or 0.
        Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, section 2.
        Assumes: nothing; for a region that holds more than a mechanism reaches, what it says holds a fortiori.
        Direction: charge `upper`.
        Checked by: tests/theorems/test_regions.py

        >>> round(Region.from_distributions([0.75, 0.25], [0.25, 0.75]).epsilon_at().upper, 9)   # log 3
        1.098612289
        """
        slack = 1 - exact(checked_delta(delta))
        odds = Fraction(1)
        for a, b in self._both_sides():
            if a == 0 and b < slack:
                return Bounds(math.inf, math.inf)
            odds = max(odds, (slack - b) / a) if a else odds
        if odds == 1:
            return Bounds(0.0, 0.0)
        with precise_balls():
            value = ball(odds).log()
            return Bounds(max(0.0, down(value)), up(value))

    def distance(self, other: Region) -> Fraction:
        """How far two regions are apart: the least t such that both rates of a test may have to move by t.

        Args:
            other: The other region.

        Returns:
            The distance, exactly; 0 only for equal regions.

        Statement:
            The larger of two deficiencies. That of A from B is the least t such that every (a, b) in B has
            (a + t, b + t) on or above the lower boundary of A. It is also the least t such that the answers of a
            mechanism of region A can be processed into those of one of region B with both distributions at most t off
            in total variation: Le Cam's distance of two experiments.
        Source: Torgersen, Z. Wahrscheinlichkeitstheorie 16, 1970, on dichotomies; Le Cam, Ann. Math. Stat. 35, 1964
            (whose norm is twice the total variation).
        Assumes: nothing.
        Direction: exact, in fractions.
        Checked by: tests/theorems/test_regions.py

        >>> Region.from_distributions([0.75, 0.25], [0.25, 0.75]).distance(Region())
        Fraction(1, 4)
        """
        return max(shortfall(a, corner) for a, b in ((self, other), (other, self)) for corner in b.corners)

    def distributions(self) -> Pair:
        """Two finite distributions whose region this is, one outcome for each edge of the lower boundary.

        Returns:
            P and Q, as fractions.

        >>> Region([(0.25, 0.25)]).distributions()
        ((Fraction(1, 4), Fraction(3, 4)), (Fraction(3, 4), Fraction(1, 4)))
        """
        edges = [(x - u, v - y) for (u, v), (x, y) in pairwise([_BLIND[0], *self.corners])]
        edges = [edge for edge in edges if any(edge)]
        return tuple(p for p, _ in edges), tuple(q for _, q in edges)

    def __contains__(self, point: tuple[Number, Number]) -> bool:
        a, b = (checked_number(rate, "rate") if rate == rate else Fraction(-1) for rate in point)
        return bool(0 <= a <= 1 and self.missed_at(a) <= b <= 1 - self.missed_at(1 - a))

    def __le__(self, other: Region) -> bool:
        """Whether this region lies inside the other: privacy that is at least as good."""
        return all(other.missed_at(a) <= b for a, b in self.corners)

    def __ge__(self, other: Region) -> bool:
        return other <= self

    def __lt__(self, other: Region) -> bool:
        return self <= other and self != other

    def __gt__(self, other: Region) -> bool:
        return other < self

    def __and__(self, other: Region) -> Region:
        """What both guarantees allow together: the intersection.

        >>> import math
        >>> Region.from_guarantee(math.log(4)) & Region.from_guarantee(0, 0.5)
        Region of 4 corners: (0, 1), (0.166667, 0.333333), (0.333333, 0.166667), (1, 0)
        """
        rates = sorted({a for a, _ in self.corners + other.corners})
        points = [(a, self.missed_at(a), other.missed_at(a)) for a in rates]
        highest = [(a, max(f, g)) for a, f, g in points]
        for (a, f, g), (c, h, i) in pairwise(points):
            if (f - g) * (h - i) < 0:  # the boundaries cross in between
                share = (f - g) / ((f - g) - (h - i))
                highest.append((a + share * (c - a), f + share * (h - f)))
        return Region(highest)

    def __or__(self, other: Region) -> Region:
        """The smallest region that contains both: the convex hull of their union, which also contains all mixtures.

        >>> import math
        >>> Region.from_guarantee(math.log(4)) | Region.from_guarantee(0, 0.5)
        Region of 4 corners: (0, 0.5), (0.2, 0.2), (0.5, 0), (1, 0)
        """
        return Region(self.corners + other.corners)

    def _repr_html_(self) -> str:
        lower = [(float(a), float(b)) for a, b in self.corners]
        upper = [(1 - a, 1 - b) for a, b in lower]  # the opposite of each test
        axes = "false alarms to the right, missed detections upwards: what tests can reach"
        return html_polygon([*lower, *upper], title=repr(self), notes=[axes])

    def __repr__(self) -> str:
        corners = [f"({float(a):.6g}, {float(b):.6g})" for a, b in self.corners]
        listed = corners if len(corners) <= 4 else [*corners[:3], "..."]
        return f"Region of {len(corners)} corners: {', '.join(listed)}"

    def _both_sides(self) -> list[Corner]:
        return [*self.corners, *((b, a) for a, b in self.corners)]


def shortfall(region: Region, point: Corner) -> Fraction:
    """The least t >= 0 such that the point, moved by (t, t), is not below the region."""
    a, b = point
    least = Fraction(0)
    for (u, v), (x, y) in pairwise(region.corners):
        slope = (v - y) / (x - u)  # the boundary is the largest of its lines P_MD = v - slope (P_FA - u)
        least = max(least, (v - b - slope * (a - u)) / (1 + slope))
    return least


def best_tests(pair: Pair) -> list[Corner]:
    """(P_FA, P_MD) after each outcome is added to the rejections, the largest Q / P first; (0, 1) comes first."""
    a, b = _BLIND[0]
    corners = [(a, b)]
    for place in rejection_order(pair):
        a, b = a + pair[0][place], b - pair[1][place]
        corners.append((a, b))
    return corners


def rejection_order(pair: Pair) -> list[int]:
    """The outcomes that can occur, the largest Q / P first."""
    P, Q = pair
    places = [place for place in range(len(P)) if P[place] or Q[place]]
    return sorted(places, key=lambda place: P[place] / (P[place] + Q[place]))


def _rate(value: object, name: str) -> Fraction:
    rate = checked_number(value, name)
    if not 0 <= rate <= 1:
        raise InvalidValue(name, value, "must be a rate between 0 and 1")
    return rate


def _lower_hull(points: Iterable[Corner]) -> tuple[Corner, ...]:
    """The lower boundary of the convex hull, from the least point at P_FA = 0 to (1, 0)."""
    hull: list[Corner] = []
    for a, b in sorted(set(points)):
        if hull and hull[-1][0] == a:
            continue  # above the last one
        while len(hull) >= 2 and _turns_down(hull[-2], hull[-1], (a, b)):
            hull.pop()
        hull.append((a, b))
    return tuple(hull)


def _turns_down(first: Corner, second: Corner, third: Corner) -> bool:
    """Whether the second lies on or above the line from the first to the third."""
    (a, b), (c, d), (e, f) = first, second, third
    return (d - b) * (e - a) >= (f - b) * (c - a)


def region_of(pricing: Pricing) -> Region:
    """What a composition guarantees: for every epsilon >= 0 of its curve, with delta = delta(epsilon),

        P_MD >= 1 - delta - e^epsilon P_FA    and    P_FA >= 1 - delta - e^epsilon P_MD.

    Finitely many proven lines: the region is at least as large as the composition's own.
    """
    lines: list[tuple[Fraction, Fraction]] = [(Fraction(0), Fraction(0))]
    for epsilon in sorted({min(epsilon, _STEEPEST) for epsilon in _epsilons(pricing)}, reverse=True):
        delta = pricing.delta_at(epsilon, True).upper
        if delta > 1 - _FAINTEST:
            break  # at every smaller epsilon too: such lines are not above 0 anywhere to be seen
        odds, kept = odds_above(epsilon), 1 - Fraction(delta)
        lines += [(odds, kept), (1 / odds, kept / odds)]
    return Region(_upper_envelope(lines))


def _epsilons(pricing: Pricing) -> list[float]:
    """Where the curve has its corners, if they are few; else evenly up to where it no longer moves visibly."""
    corners = pricing.loss.losses(most=_LINES)
    if corners is not None:
        return corners
    leak = pricing.leak().upper
    visible = leak + 1e-9 * (1 - leak)
    if not visible < 1:
        return [0.0]
    reach = min(pricing.epsilon_at(visible, False).upper, 600.0)
    # Below, delta is 1 for all that can be seen.
    start = pricing.epsilon_at(max(visible, 1 - 1e-6), False).lower
    return [*np.linspace(min(start, reach), reach, _LINES).tolist(), *pricing.loss.largest_loss(600.0)]


def _upper_envelope(lines: list[tuple[Fraction, Fraction]]) -> list[Corner]:
    """The corners, from a = 0 to a = 1, of the largest of finitely many falling lines b = intercept - slope a."""
    hull: list[tuple[Fraction, Fraction]] = []
    for slope, intercept in sorted(set(lines), key=lambda line: (-line[0], line[1])):
        while hull and hull[-1][1] <= intercept:
            hull.pop()  # flatter and higher at 0: higher everywhere
        while len(hull) >= 2 and _meet(hull[-2], (slope, intercept)) <= _meet(hull[-2], hull[-1]):
            hull.pop()
        hull.append((slope, intercept))
    corners = [(Fraction(0), hull[0][1])]
    for left, right in pairwise(hull):
        a = _meet(left, right)
        if 0 < a < 1:
            corners.append((a, right[1] - right[0] * a))
    slope, intercept = hull[-1]
    return [*corners, (Fraction(1), max(Fraction(0), intercept - slope))]


def _meet(steep: tuple[Fraction, Fraction], flat: tuple[Fraction, Fraction]) -> Fraction:
    return (steep[1] - flat[1]) / (steep[0] - flat[0])

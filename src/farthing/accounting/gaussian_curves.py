"""The hockey-stick curve of one Gaussian release in balls: what a clock of length s still has at x."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from farthing.numerics.bounds import ball, precision, upper_fraction

_BITS = 320  # the cost of an epsilon of 1e-12 still has 50 digits

Distance = Callable[[Any], Any]
"""The total variation distance of an event beside a Gaussian pair, from that pair's s."""


def gaussian_curve(x: Any, s: Any) -> Any:
    """V(x, s) = F((x + s/2) / sqrt(s)) - e^-x F((x - s/2) / sqrt(s)), F the normal distribution function.

    >>> float(gaussian_curve(arb(0), arb(1)))
    0.3829...
    """
    if s == 0:
        return arb(0) if not x > 0 else -(-x).expm1()
    root = s.sqrt()
    return normal((x + s / 2) / root) - (-x).exp() * normal((x - s / 2) / root)


def tilted_curve(x: Any, s: Any) -> Any:
    """H_s(x) = e^(x/2) V(x, s), s > 0.

    >>> float(tilted_curve(arb(0), arb(1)))
    0.3829...
    """
    return tilted_with_slope(x, s)[0]


def tilted_with_slope(x: Any, s: Any) -> tuple[Any, Any]:
    """H_s(x) and its derivative.

    >>> round(float(tilted_with_slope(arb(0), arb(1))[1]), 9)
    0.5
    """
    root = s.sqrt()
    rising = (x / 2).exp() * normal(x / root + root / 2)
    falling = (-x / 2).exp() * normal(x / root - root / 2)
    return rising - falling, (rising + falling) / 2


def normal(x: Any) -> Any:
    """The normal distribution function, by erfc, so that far tails keep their digits.

    >>> float(normal(arb(0)))
    0.5
    """
    return (-x / arb(2).sqrt()).erfc() / 2


def even_density(reach: Any, s: Any) -> Any:
    """The integral of e^(l/2) V(l, s) over l from -reach to reach.

    >>> float(even_density(arb(1), arb(0)))  # of 2 sinh(l/2), where l > 0
    0.510...
    """
    if s == 0:
        return 4 * ((reach / 2).cosh() - 1)

    def primitive(end: Any) -> Any:
        root = s.sqrt()
        rising = (end / 2).exp() * normal((end + s / 2) / root)
        falling = (-end / 2).exp() * normal((end - s / 2) / root)
        return 2 * rising + 2 * falling - 4 * (-s / 8).exp() * normal(end / root)

    return primitive(reach) - primitive(-reach)


def response_distance(epsilon: Fraction) -> Distance:
    """That of randomized response.

    >>> float(response_distance(Fraction(1))(arb(0)))  # tanh(1/2)
    0.462...
    """

    def distance(s: Any) -> Any:
        a = ball(epsilon)
        truth = 1 / (1 + (-a).exp())
        return truth * gaussian_curve(a, s) + (1 - truth) * gaussian_curve(-a, s)

    return distance


def envelope_distance(epsilon: Fraction) -> Distance:
    """That of the upper envelope of all pairs of this range.

    >>> float(envelope_distance(Fraction(1))(arb(0)))  # tanh(1/4)
    0.244...
    """

    def distance(s: Any) -> Any:
        a = ball(epsilon)
        return even_density(a, s) / (4 * (a / 2).sinh())

    return distance


def cost_of(distance: Distance, level: Fraction) -> Fraction | None:
    """8 erfinv(TV)^2 - level, rounded up and at least 0: what Theorem 2 of docs/clock.md charges; None if TV may be 1.

    >>> float(cost_of(response_distance(Fraction(1, 100)), Fraction(1)))
    0.0001...
    """
    with precision(_BITS):
        far = distance(ball(level))
        upper = upper_fraction(8 * far.erfinv() ** 2 - ball(level)) if far < 1 else None
    return None if upper is None else max(Fraction(0), upper)

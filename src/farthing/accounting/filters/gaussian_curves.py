"""The hockey-stick curve of one Gaussian release in balls: what a clock of length s still has at x."""

from __future__ import annotations

from typing import Any

from flint import arb


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

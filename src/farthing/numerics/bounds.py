"""An enclosure of a number that cannot be computed exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from farthing.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Bounds:
    """`lower <= truth <= upper`, floating-point error included when `proven`.

    `float(bounds)` is `upper`, because that is what gets charged. `estimate` is the best single value inside;
    it is for pictures and comparisons, never for charging.

    >>> b = Bounds(1.0, 1.5)
    >>> float(b), b.width, b.estimate, b.proven
    (1.5, 0.5, 1.25, True)
    >>> 1.2 in b
    True
    >>> Bounds(2.0, 1.0)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: upper=1.0: must be at least lower=2.0.
    """

    lower: float
    upper: float
    estimate: float = math.nan
    proven: bool = True

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # written so that NaN fails
            raise InvalidValue("upper", self.upper, f"must be at least lower={self.lower!r}")
        value = self.estimate
        if math.isnan(value):
            # The difference, not the sum, so that two large bounds cannot overflow on the way to their middle.
            value = self.upper if math.isinf(self.upper) else self.lower + (self.upper - self.lower) / 2
        object.__setattr__(self, "estimate", min(max(value, self.lower), self.upper))

    def __float__(self) -> float:
        return float(self.upper)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """`upper - lower`; 0 when both are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __str__(self) -> str:
        """The value to charge, rounded up, and the interval, rounded outward: what is printed holds as well.

        >>> print(Bounds(4.7745675881079, 4.774567588108015))
        4.77456759 (proven in [4.7745675881079, 4.774567588108015])
        """
        if not self.proven:
            low, high = _rounded(self.lower, 9, ROUND_FLOOR), _rounded(self.upper, 9, ROUND_CEILING)
            return f"{self.estimate:.9g} (estimated in [{low}, {high}])"
        # Enough digits that rounding outward does not blow the interval up.
        size = max(abs(self.lower), abs(self.upper))
        digits = (
            9 if not 0 < self.width < size else min(17, max(9, 2 - math.floor(math.log10(self.width / size))))
        )
        lower, upper = _rounded(self.lower, digits, ROUND_FLOOR), _rounded(self.upper, digits, ROUND_CEILING)
        return f"{_rounded(self.upper, 9, ROUND_CEILING)} (proven in [{lower}, {upper}])"


def _rounded(value: float, digits: int, rounding: str) -> str:
    """`value` to so many significant digits, rounded the given way, written as short as it goes."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    short = exact.normalize()
    return f"{short:f}" if 1e-5 <= abs(value) < 1e15 else f"{short:e}"

"""What values a part of an expression can take, by interval arithmetic.

Three facts about doubles carry the proofs. Rounding is monotone, so the result of an operation on two intervals
lies between the results at the corners, computed in the same arithmetic. Every value of a `Real` is a whole
multiple of 2^grain, so a nonzero one is at least that large and a product cannot vanish unnoticed (Postgres raises
when it does). And no end may exceed 2^960, so nothing becomes infinite.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import TypeAlias

from farthing.data.schema import (
    LARGEST_INTEGER,
    LARGEST_REAL,
    SMALLEST_REAL,
    Categories,
    Dates,
    Domain,
    Flags,
    Integers,
    Reals,
)


def half_away(value: float) -> int:
    """To the nearest whole number, halves away from zero, as floor(|x| + 0.5) in doubles.

    >>> half_away(2.5), half_away(-2.5), half_away(2.4)
    (3, -3, 2)
    """
    return math.floor(value + 0.5) if value >= 0 else -math.floor(0.5 - value)


_CELL_GRAIN = -60 - 52
_FINEST_GRAIN = -960
_LARGEST = 2.0**960
EXACT_WHOLE = 2**53
LOWEST_EXPONENT, HIGHEST_EXPONENT = -600.0, 600.0


class OutOfRange(Exception):
    """The result of an operation could leave what every engine can hold; `args` are rule and way out."""


@dataclass(frozen=True, slots=True)
class Flag:
    """The range of a condition: true or false."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole numbers from lower to upper."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if not max(abs(self.lower), abs(self.upper)) <= LARGEST_INTEGER:
            raise OutOfRange("whole numbers could leave 64 bits", "clip an operand with least and greatest")


@dataclass(frozen=True, slots=True)
class Real:
    """Doubles from lower to upper, all of them multiples of 2^grain."""

    lower: float
    upper: float
    grain: int

    def __post_init__(self) -> None:
        if not max(abs(self.lower), abs(self.upper)) <= _LARGEST:
            raise OutOfRange("numbers could become too large for a double", "clip an operand with least and greatest")
        if self.grain < _FINEST_GRAIN:
            raise OutOfRange(
                "numbers could become too small for a double",
                "round the factors, or derive them as a column first",
            )


@dataclass(frozen=True, slots=True)
class Day:
    """Days from lower to upper."""

    lower: datetime.date
    upper: datetime.date


@dataclass(frozen=True, slots=True)
class Label:
    """One text out of a public list."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """The range of what is missing on every row."""


Range: TypeAlias = Flag | Whole | Real | Day | Label | Nothing
Number: TypeAlias = Whole | Real


def range_of_domain(domain: Domain) -> Range:
    """The values of a column, once its cells have been read by the rules of `cells`."""
    if isinstance(domain, Integers):
        return Whole(domain.lower, domain.upper)
    if isinstance(domain, Reals):
        return Real(domain.lower, domain.upper, _CELL_GRAIN)
    if isinstance(domain, Dates):
        return Day(domain.lower, domain.upper)
    if isinstance(domain, Flags) or isinstance(domain.values[0], bool):
        return Flag()
    if isinstance(domain.values[0], int):
        numbers = [int(value) for value in domain.values]
        return Whole(min(numbers), max(numbers))
    return Label(tuple(str(value) for value in domain.values))


def domain_of_range(values: Range) -> Domain:
    """The domain that a finished expression declares for its result."""
    if isinstance(values, Flag):
        return Flags()
    if isinstance(values, Whole):
        return Integers(values.lower, values.upper)
    if isinstance(values, Day):
        return Dates(values.lower, values.upper)
    if isinstance(values, Label):
        return Categories(values.values)
    if isinstance(values, Nothing):
        raise OutOfRange("the result is always missing", "give at least one branch a value")
    if not max(abs(values.lower), abs(values.upper)) <= LARGEST_REAL:
        raise OutOfRange(
            f"the result could be as large as {max(abs(values.lower), abs(values.upper)):.3g}",
            "declare bounds for it, or keep a divisor away from zero as in x / greatest(y, 0.5)",
        )
    return Reals(_outward(values.lower, -1.0), _outward(values.upper, 1.0))


def _outward(bound: float, direction: float) -> float:
    """The nearest bound that a domain may have, not further inside."""
    if bound == 0 or abs(bound) >= SMALLEST_REAL:
        return bound
    return direction * SMALLEST_REAL if bound * direction > 0 else 0.0


def range_of_constant(value: object) -> Range:
    """The one value of a constant."""
    if value is None:
        return Nothing()
    if isinstance(value, bool):
        return Flag()
    if isinstance(value, int):
        return Whole(value, value)
    if isinstance(value, float):
        if not (value == 0 or SMALLEST_REAL <= abs(value) <= LARGEST_INTEGER):
            raise OutOfRange("a number must be 0 or between 2^-60 and 2^62 in size", "measure in other units")
        return Real(value, value, _grain(value))
    if isinstance(value, datetime.date):
        return Day(value, value)
    return Label((str(value),))


def as_real(values: Number) -> Real:
    """The same numbers as doubles."""
    if isinstance(values, Real):
        return values
    return Real(float(values.lower), float(values.upper), 0)


def added(a: Number, b: Number) -> Number:
    """a + b, both whole or both real."""
    if isinstance(a, Whole) and isinstance(b, Whole):
        return Whole(a.lower + b.lower, a.upper + b.upper)
    a, b = as_real(a), as_real(b)
    return Real(a.lower + b.lower, a.upper + b.upper, min(a.grain, b.grain))


def negated(a: Number) -> Number:
    """The range of -a for values in the range of a."""
    if isinstance(a, Whole):
        return Whole(-a.upper, -a.lower)
    return Real(-a.upper, -a.lower, a.grain)


def multiplied(a: Number, b: Number) -> Number:
    """a * b, both whole or both real."""
    if isinstance(a, Whole) and isinstance(b, Whole):
        # Spark may multiply the constants of a chain first, so a factor of 0 must not hide how large the others are.
        if a.lower == a.upper == 0 or b.lower == b.upper == 0:
            raise OutOfRange("a factor is always zero", "leave the product out")
        corners = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
        return Whole(min(corners), max(corners))
    a, b = as_real(a), as_real(b)
    products = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Real(min(products), max(products), a.grain + b.grain)


def divided(a: Number, b: Number) -> Real:
    """a / b as doubles; b is never 0 when this is computed."""
    a, b = as_real(a), as_real(b)
    grain = a.grain - _ceiling_exponent(max(abs(b.lower), abs(b.upper))) - 53
    if b.lower > 0 or b.upper < 0:
        corners = [x / y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
        return Real(min(corners), max(corners), grain)
    # Nonzero divisors are at least 2^grain in size.
    sign_of_b = {1} if b.lower == 0 else {-1} if b.upper == 0 else {-1, 1}
    corners = [sign * end * 2.0**-b.grain for sign in sign_of_b for end in (a.lower, a.upper)]
    return Real(min(0.0, *corners), max(0.0, *corners), grain)


def floored(a: Real) -> Whole:
    """Whole numbers next to `a`, one more on either side than floor alone needs; exact in a double."""
    if not max(abs(a.lower), abs(a.upper)) < EXACT_WHOLE - 1:
        raise OutOfRange("a whole number must stay below 2^53 here", "clip the operand with least and greatest")
    return Whole(math.floor(a.lower), math.floor(a.upper))


def floor_divided(a: Whole, b: Whole) -> Whole:
    """a // b, rounded down."""
    if not max(abs(a.lower), abs(a.upper), abs(b.lower), abs(b.upper)) <= EXACT_WHOLE // 4:
        raise OutOfRange("whole numbers must stay below 2^51 in // and %", "clip the operand with least and greatest")
    divisors = [y for y in {b.lower, b.upper, -1, 1} if y != 0 and b.lower <= y <= b.upper]
    corners = [x // y for x in (a.lower, a.upper) for y in divisors] or [0]
    return Whole(min(corners), max(corners))


def remainder(a: Whole, b: Whole) -> Whole:
    """a % b with the sign of b."""
    floor_divided(a, b)
    upper = max(0, b.upper - 1)
    if a.lower >= 0 and b.lower >= 0:
        upper = min(upper, a.upper)
    return Whole(min(0, b.lower + 1), upper)


def absolute(a: Number) -> Number:
    """The range of |a| for values in the range of a."""
    ends = (abs(a.lower), abs(a.upper))
    least = 0 if a.lower <= 0 <= a.upper else min(ends)
    if isinstance(a, Whole):
        return Whole(int(least), int(max(ends)))
    return Real(float(least), max(ends), a.grain)


def square_root(a: Real) -> Real:
    """The square root, correctly rounded on every engine."""
    return Real(math.sqrt(max(0.0, a.lower)), math.sqrt(max(0.0, a.upper)), a.grain // 2 - 54)


def logarithm(a: Real) -> Real:
    """ln, with room for engines that differ in the last digits."""
    smallest = max(a.lower, 2.0**a.grain)
    if not a.upper > 0:
        return Real(0.0, 0.0, 0)
    # A double near 1 is 1 +- k 2^-53, so a nonzero logarithm exceeds 2^-54.
    return Real(*_widened(math.log(smallest), math.log(max(a.upper, smallest))), -54 - 54)


def exponential(a: Real) -> Real:
    """exp, with room for engines that differ in the last digits."""
    if not (a.lower >= LOWEST_EXPONENT and a.upper <= HIGHEST_EXPONENT):
        raise OutOfRange("exp takes numbers from -600 to 600", "write exp(greatest(-600, least(x, 600)))")
    lower, upper = _widened(math.exp(a.lower), math.exp(a.upper))
    return Real(max(0.0, lower), upper, math.floor(a.lower / math.log(2)) - 56)


def hull(parts: list[Range]) -> Range:
    """The smallest range of one kind that holds all `parts`, which are of one kind or Nothing."""
    known = [part for part in parts if not isinstance(part, Nothing)]
    if not known:
        return Nothing()
    first = known[0]
    if isinstance(first, Flag):
        return first
    if isinstance(first, Label):
        return Label(tuple(dict.fromkeys(value for part in known for value in part.values)))  # type: ignore[union-attr]
    lower = min(part.lower for part in known)  # type: ignore[union-attr]
    upper = max(part.upper for part in known)  # type: ignore[union-attr]
    if isinstance(first, Real):
        return Real(lower, upper, min(part.grain for part in known))  # type: ignore[arg-type,union-attr]
    return type(first)(lower, upper)  # type: ignore[arg-type]


def _grain(value: float) -> int:
    """The largest g (at most 0) such that `value` is a multiple of 2^g."""
    return 1 - value.as_integer_ratio()[1].bit_length()


def _ceiling_exponent(size: float) -> int:
    return math.frexp(size)[1] if size else 0


def _widened(lower: float, upper: float) -> tuple[float, float]:
    return lower - abs(lower) * 2.0**-40 - 2.0**-60, upper + abs(upper) * 2.0**-40 + 2.0**-60

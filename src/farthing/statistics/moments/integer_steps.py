"""A bounded column in whole steps: itself, centred, and its square; the smaller the bound, the smaller the noise.

A sum is private through noise in proportion to the largest term. Around the middle of its bounds a column is at most
half as large as their distance, and its square, moved down by half of its largest value, half of that again. The
middle is public, so it is put back afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.data import Integers, Reals
from farthing.data.schema import Domain, Flags
from farthing.errors import InvalidValue

STEPS = 20
"""Reals are rounded to about a millionth of the largest term; sums of 10^12 rows then stay within 64 bits."""

_LARGEST_EXACT = 2**22


@dataclass(frozen=True)
class Stepped:
    """An expression whose values are whole numbers in -bound .. bound, each worth `step` in the units of the data."""

    text: str
    bound: int
    step: float

    @property
    def derived(self) -> tuple[str, tuple[int, int]]:
        """What `Dataset.derive` takes; the declared bounds clip, so that they hold for every row."""
        return self.text, (-self.bound, self.bound)


@dataclass(frozen=True)
class Centred:
    """A numeric column seen from the middle of its bounds.

    >>> age = Centred.of("age", Integers(0, 99))
    >>> age.middle, age.half_width
    (49.5, 49.5)
    >>> age.first
    Stepped(text='2 * "age" - 99', bound=99, step=0.5)
    >>> Centred.of("bmi", Reals(10.0, 60.0)).first.bound
    819200
    """

    column: str
    lower: float
    upper: float
    first: Stepped  # x - middle
    second: Stepped  # (x - middle)^2 - half_width^2 / 2
    plain: Stepped  # x

    @property
    def whole(self) -> bool:
        """Whether sums are made of whole numbers."""
        return self.plain.step == 1.0 and not self.plain.text.startswith("round(")

    @property
    def middle(self) -> float:
        """The middle of the bounds."""
        return self.lower + (self.upper - self.lower) / 2

    @property
    def half_width(self) -> float:
        """How far a value can lie from the middle."""
        return (self.upper - self.lower) / 2

    @classmethod
    def of(cls, column: str, domain: Domain) -> Centred:
        """The column as sums need it; a flag is 0 or 1."""
        if isinstance(domain, Integers | Reals) and domain.lower == domain.upper:
            raise InvalidValue(
                "column", column, "must have bounds that differ", "its values are known already: count rows"
            )
        if isinstance(domain, Flags):
            name = quoted(column)
            number = f"case when {name} then 1 when not {name} then 0 end"
            return cls._of_integers(column, f"({number})", 0, 1)
        if isinstance(domain, Integers):
            if max(abs(domain.lower), abs(domain.upper)) <= 2**51:
                return cls._of_integers(column, quoted(column), domain.lower, domain.upper)
            raise InvalidValue(
                "column", column, "must stay within 2^51 for sums of whole numbers", "measure in larger units"
            )
        if isinstance(domain, Reals):
            return cls._of_reals(column, domain.lower, domain.upper)
        raise InvalidValue("column", column, "must hold numbers", "count it, or derive a number from it")

    @classmethod
    def _of_integers(cls, column: str, x: str, lower: int, upper: int) -> Centred:
        width, total = upper - lower, lower + upper
        largest = max(abs(lower), abs(upper))
        plain = Stepped(x, largest, 1.0)
        if width > _LARGEST_EXACT or largest > _LARGEST_EXACT:
            rounded = cls._of_reals(column, float(lower), float(upper), f"cast({x} as double)")
            return rounded if largest > _LARGEST_EXACT else rounded._with(plain)
        if total % 2 == 0:
            first = Stepped(f"{x} - {_whole(total // 2)}", width // 2, 1.0)
        else:
            first = Stepped(f"2 * {x} - {_whole(total)}", width, 0.5)
        if width**2 <= _LARGEST_EXACT:  # exact: rounding whole numbers is not an accident that averages out
            z = f"(2 * {x} - {_whole(total)})"
            second = Stepped(f"2 * {z} * {z} - {width**2}", width**2, 0.125)
        else:
            second = cls._of_reals(column, float(lower), float(upper), f"cast({x} as double)").second
        return cls(column, float(lower), float(upper), first, second, plain)

    @classmethod
    def _of_reals(cls, column: str, lower: float, upper: float, x: str = "") -> Centred:
        x = x or quoted(column)
        middle, half = lower + (upper - lower) / 2, (upper - lower) / 2
        away = f"({x} - {_real(middle)})"
        return cls(
            column,
            lower,
            upper,
            _rounded(away, max(middle - lower, upper - middle)),
            _squared(f"({away} / {_real(half)})", half),
            _rounded(x, max(abs(lower), abs(upper))),
        )

    def _with(self, plain: Stepped) -> Centred:
        return Centred(self.column, self.lower, self.upper, self.first, self.second, plain)


def quoted(column: str) -> str:
    """A column's name as expressions read it."""
    return '"' + column.replace('"', '""') + '"'


def _rounded(text: str, size: float) -> Stepped:
    """To the nearest multiple of a power of two, so that what is lost averages out over the rows."""
    step = 2.0 ** (math.frexp(size)[1] - STEPS) if size else 1.0
    return Stepped(f"round({text} / {_real(step)})", math.ceil(size / step), step)


def _squared(share: str, half: float) -> Stepped:
    """The square is taken of shares of the half width, so that it cannot leave the numbers that expressions allow."""
    finest = 2.0**-STEPS
    return Stepped(f"round(({share} * {share} - 0.5) / {_real(finest)})", 2 ** (STEPS - 1), half**2 * finest)


def _real(number: float) -> str:
    return f"({number!r})" if number < 0 else repr(number)


def _whole(number: int) -> str:
    return f"({number})" if number < 0 else str(number)

"""Privacy numbers as text: significant digits, never fixed decimals, and bounds rounded outward."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal


def shown(value: float, digits: int = 6) -> str:
    """`value` to the nearest `digits` significant digits.

    >>> shown(1e-6), shown(4.7745680811), shown(float("inf")), shown(3.0)
    ('1e-06', '4.77457', 'inf', '3')
    """
    return _rounded(value, digits, ROUND_HALF_EVEN)


def shown_up(value: float, digits: int = 6) -> str:
    """`value` rounded up, so that the text is still an upper bound.

    An excess of a few units in the last place of the double is dropped: 100 x 0.1 reads 10, not 10.0001.

    >>> shown_up(4.77456808), shown_up(1e-6), shown_up(10.000000000000002)
    ('4.77457', '1e-06', '10')
    """
    nearest = float(shown(value, digits))
    close = math.isfinite(value) and abs(value - nearest) <= _UNREADABLE * abs(value)
    return shown(value, digits) if close else ceiling(value, digits)


def ceiling(value: float, digits: int = 6) -> str:
    """`value` rounded up without exception: typed back, it is at least `value`.

    >>> ceiling(10.000000000000002), ceiling(0.1)
    ('10.0001', '0.1')
    """
    return _rounded(value, digits, ROUND_CEILING)


def shown_down(value: float, digits: int = 6) -> str:
    """`value` rounded down, so that the text is still a lower bound.

    >>> shown_down(4.77456808), shown_down(0.3)
    ('4.77456', '0.3')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def interval(lower: float, upper: float) -> str:
    """Both ends rounded outward, with just the digits that tell them apart.

    >>> interval(4.77456758810789, 4.77456758810809), interval(0.5, 0.75)
    ('[4.77456758810789, 4.77456758810809]', '[0.5, 0.75]')
    """
    width = upper - lower
    digits = math.ceil(math.log10(upper / width)) + 1 if 0 < width < upper else 15
    digits = min(max(digits, 7), 15)
    return f"[{shown_down(lower, digits)}, {ceiling(upper, digits)}]"


def as_typed(value: float) -> str:
    """The shortest text that reads back as the same double.

    >>> as_typed(1e-6), as_typed(3.0), as_typed(0.1)
    ('1e-06', '3', '0.1')
    """
    return repr(value).removesuffix(".0")


_UNREADABLE = 1e-14  # relative; far below the last digit that is ever shown rounded up


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value + 0.0:g}"
    # repr first: the decimal a person typed (0.3) is what they expect to read back, although the double lies
    # a fraction of an ulp beside it.
    number = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(value)))
    return f"{float(number):.{digits}g}"

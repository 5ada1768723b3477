"""Privacy in whole numbers: billionths of epsilon and 1e-40ths of delta, and how doubles become them.

An account must add up the same on every machine, in every database and after any number of charges, so it holds no
doubles. A budget is rounded down and a charge up; a number that a short decimal names is read as that decimal, so ten
charges of 0.1 fill a budget of 1.0 exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction

from farthing.accounting.filters.exact_amounts import exact, float_down, float_up
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_delta, checked_epsilon

NANO = 10**9
"""Units of epsilon, and of Renyi divergence, in 1."""

DELTA_UNITS = 10**40
"""Units of delta in 1."""

LARGEST_EPSILON = 10**6
"""Beyond, nothing is private; `compose` draws the same line."""


def budget_in_nano(epsilon: float) -> int:
    """The epsilon of a budget in billionths, rounded down.

    >>> budget_in_nano(0.1), budget_in_nano(1 / 3)
    (100000000, 333333333)
    """
    number = checked_epsilon(epsilon)
    if not (number == 0 or 1 / NANO <= number <= LARGEST_EPSILON):
        raise InvalidValue("epsilon", epsilon, "a budget must be 0, or at least 1e-9 and at most 1e6")
    return math.floor(exact(number) * NANO)


def budget_in_units(delta: float) -> int:
    """The delta of a budget in units of 1e-40, rounded down.

    >>> budget_in_units(1e-9) == 10**31
    True
    """
    number = checked_delta(delta)
    if not (number == 0 or number >= 1e-40):
        raise InvalidValue("delta", delta, "a budget must be 0 or at least 1e-40", "use a delta such as 1e-9")
    return math.floor(exact(number) * DELTA_UNITS)


def nano_up(epsilon: Fraction) -> int:
    """An epsilon in billionths, rounded up: nothing above 0 is free.

    >>> nano_up(Fraction(1, 10)), nano_up(Fraction(1, 10**12))
    (100000000, 1)
    """
    return math.ceil(epsilon * NANO)


def units_up(delta: Fraction) -> int:
    """A delta in units of 1e-40, rounded up.

    >>> units_up(Fraction(1, 10**60))
    1
    """
    return math.ceil(delta * DELTA_UNITS)


def epsilon_down(nano: int) -> float:
    """Billionths as a double that is read as no more than they are.

    >>> epsilon_down(300_000_000)
    0.3
    """
    return float_down(Fraction(nano, NANO))


def epsilon_up(nano: int) -> float:
    """Billionths as a double that is read as no less than they are."""
    return float_up(Fraction(nano, NANO))


def delta_down(units: int) -> float:
    """Units of 1e-40 as a double that is read as no more than they are.

    >>> delta_down(5 * 10**30)
    5e-10
    """
    return float_down(Fraction(units, DELTA_UNITS))


def delta_up(units: int) -> float:
    """Units of 1e-40 as a double that is read as no less than they are."""
    return float_up(Fraction(units, DELTA_UNITS))


def double_below(amount: Fraction) -> float:
    """The largest double <= `amount` >= 0, as the number it is: where no decimal may be read into it.

    >>> Fraction(double_below(Fraction(1, 10))) <= Fraction(1, 10)
    True
    """
    number = float(amount)
    return number if Fraction(number) <= amount else math.nextafter(number, 0.0)

"""Numbers as people write them: as many digits as the error leaves meaningful, no more."""

from __future__ import annotations

import math


def decimals_for(error: float) -> int:
    """How many decimals leave two digits of the error (three when they begin with 1); negative: round to tens.

    >>> decimals_for(480.2), decimals_for(0.0123), decimals_for(3.0)
    (-1, 4, 1)
    """
    if not 0 < error < math.inf:
        return 0
    exponent = math.floor(math.log10(error))
    first = error / 10.0**exponent
    return (2 if first < 2 else 1) - exponent


def plain(value: float, decimals: int) -> str:
    """The value rounded to `decimals`, with commas between thousands and no zeros hanging on.

    >>> plain(41230.4, -1), plain(0.125, 2), plain(3.0, 1), plain(-0.0, 0), plain(2.5e19, 0)
    ('41,230', '0.12', '3', '0', '2.5e+19')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    rounded = round(value, decimals)
    if rounded == 0:
        return "0"
    if not 1e-6 <= abs(rounded) < 1e15:
        return f"{rounded:.4g}"
    text = f"{rounded:,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_error(value: float, error: float) -> str:
    """`value ± error`.

    >>> with_error(41230.4, 480.19), with_error(12, 0), with_error(0.51234, 0.0123)
    ('41,230 ± 480', '12', '0.5123 ± 0.0123')
    """
    if error == 0:
        return plain(value, 12 if abs(value) < 1e3 else 6)
    decimals = decimals_for(error)
    return f"{plain(value, decimals)} ± {plain(error, decimals)}"


def with_interval(value: float, lower: float, upper: float) -> str:
    """`value (lower to upper)`, where the interval is not even-sided; `value ± error` where it is.

    >>> with_interval(3.0, 0.0, 9.0), with_interval(5.0, 4.0, 6.0)
    ('3 (0 to 9)', '5 ± 1')

    An interval without ends leaves no digit meaningful, and none is to be read off a rounding: the first four stand.

    >>> with_interval(0.29764, -math.inf, math.inf), with_interval(-15_903.2, -math.inf, math.inf)
    ('0.2976 (-∞ to ∞)', '-15,903 (-∞ to ∞)')
    """
    below, above = value - lower, upper - value
    widest = max(below, above)
    if math.isfinite(widest) and abs(above - below) <= 1e-6 * widest:
        return with_error(value, widest)
    nearer = min(below, above)
    if math.isinf(nearer) and value:
        decimals = max(0, 3 - math.floor(math.log10(abs(value)))) if math.isfinite(value) else 0
    else:
        decimals = decimals_for(widest if math.isfinite(widest) else nearer)
    return f"{plain(value, decimals)} ({plain(lower, decimals)} to {plain(upper, decimals)})"

"""Public edges cut a column into cells: cell i holds edges[i] <= value < edges[i + 1], the last one its end too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import Dates, Domain, Integers, Reals
from farthing.errors import InvalidValue

MOST_EDGES = 10_001
FEW_CELLS = 8  # up to here comparisons alone are as fast


def equal_edges(name: str, domain: Domain, count: int) -> tuple[Any, ...]:
    """Edges of `count` parts of equal width (whole numbers and days: as equal as they can be).

    >>> equal_edges("age", Integers(0, 110), 4)
    (0, 27, 55, 82, 110)
    """
    lower, upper = bounds_of(name, domain)
    if isinstance(count, bool) or not 1 <= count <= MOST_EDGES - 1:
        raise InvalidValue("cells", count, f"must be a whole number from 1 to {MOST_EDGES - 1:,}")
    if isinstance(domain, Dates):
        days = (domain.upper - domain.lower).days
        inner = [domain.lower + timedelta(days=days * part // count) for part in range(1, count)]
    elif isinstance(domain, Integers):
        inner = [lower + (upper - lower) * part // count for part in range(1, count)]
    else:
        inner = [_real_edge(lower, upper - lower, part, count) for part in range(1, count)]
    return checked_edges(name, domain, (lower, *inner, upper))


def checked_edges(name: str, domain: Domain, edges: Sequence[Any]) -> tuple[Any, ...]:
    """Edges that rise and reach from bound to bound; a bound that is not among them is added."""
    lower, upper = bounds_of(name, domain)
    values = list(edges)
    fits = int if isinstance(domain, Integers) else type(lower) if isinstance(domain, Dates) else int | float
    if any(isinstance(edge, bool) or not isinstance(edge, fits) for edge in values):
        raise InvalidValue("edges", edges, f"must be values of the kind of column {name!r}")
    if any(not lower <= edge <= upper for edge in values):
        raise InvalidValue("edges", edges, f"must lie within the bounds of {name!r}, {lower} to {upper}")
    if not values or values[0] != lower:
        values.insert(0, lower)
    if values[-1] != upper or len(values) == 1:
        values.append(upper)
    rising = all(a < b for a, b in pairwise(values))
    if not rising and not (len(values) == 2 and lower == upper):
        raise InvalidValue("edges", edges, "must increase, without repeats", "use fewer cells")
    if len(values) > MOST_EDGES:
        raise InvalidValue("number of edges", len(values), f"must be at most {MOST_EDGES:,}", "use fewer cells")
    if isinstance(domain, Reals):
        values = [float(edge) for edge in values]
    return tuple(values)


def place_of(value: Any, edges: Sequence[Any], domain: Domain) -> Any:
    """The number of the cell of an Ibis value: exact, and the same on every engine; missing stays missing.

    Whole numbers in cells of equal width are divided: exact below 2^53. Reals in cells of equal width are divided for a
    first guess, then compared with the two edges beside it. In both cases the upper bound itself may get the number
    after the last, which `places` folds back. Otherwise comparisons decide, in a balanced tree of CASE whose depth is
    the logarithm of the number of cells.
    """
    width = equal_width(edges, domain)
    if width:
        return ((value - edges[0]).cast("float64") / literal(float(width))).floor().cast("int64")
    if isinstance(domain, Reals) and are_equal_reals(edges, domain):
        return _place_among_equal_reals(value, len(edges) - 1, domain)

    return interval_of(value, [(edge, False) for edge in edges[1:-1]])


def interval_of(value: Any, cuts: Sequence[tuple[Any, bool]]) -> Any:
    """How many of the rising cuts lie below an Ibis value, by a balanced tree of comparisons; missing stays missing.

    A cut (v, False) lies below v itself, a cut (v, True) only below what is larger.
    """
    import ibis

    def between(first: int, last: int) -> Any:
        if first == last:
            return ibis.literal(first, "int64")
        middle = (first + last + 1) // 2
        edge, after = cuts[middle - 1]
        below = value <= literal(edge) if after else value < literal(edge)
        return below.ifelse(between(first, middle - 1), between(middle, last))

    return value.notnull().ifelse(between(0, len(cuts)), ibis.null("int64"))


def _real_edge(lower: Any, span: Any, part: Any, count: Any) -> Any:
    """Where a cell begins; for numbers here and for columns in an engine, by the same correctly rounded operations."""
    return lower + span * (part / count)


def are_equal_reals(edges: Sequence[Any], domain: Reals) -> bool:
    """Whether edges are those of `equal_edges`, with cells so wide that rounding cannot miss by more than one cell."""
    span, count = domain.upper - domain.lower, len(edges) - 1
    wide = span / count >= max(abs(domain.lower), abs(domain.upper)) * 2.0**-40
    inner = (_real_edge(domain.lower, span, part, count) for part in range(1, count))
    return count > FEW_CELLS and wide and (domain.lower, *inner, domain.upper) == tuple(edges)


def _place_among_equal_reals(value: Any, count: int, domain: Reals) -> Any:
    import ibis

    span = domain.upper - domain.lower
    lower, width, one = literal(domain.lower), literal(span / count), literal(1.0)
    guess = ((value - lower) / width).floor()
    begin, end = (_real_edge(lower, literal(span), place, literal(float(count))) for place in (guess, guess + one))
    exact = ibis.cases((value < begin, guess - one), (value >= end, guess + one), else_=guess)
    return exact.cast("int64")


def places(edges: Sequence[Any]) -> dict[int, int]:
    """Which cell a number of `place_of` stands for."""
    last = len(edges) - 2
    return {**{place: place for place in range(last + 1)}, last + 1: last}


def equal_width(edges: Sequence[Any], domain: Domain) -> int | None:
    """The width of cells of whole numbers, if it is one and the division by it is exact.

    >>> equal_width((0, 5, 10), Integers(0, 10)), equal_width((0, 4, 10), Integers(0, 10))
    (5, None)
    """
    if not isinstance(domain, Integers) or max(abs(domain.lower), abs(domain.upper)) > 2**51:
        return None
    widths = {b - a for a, b in pairwise(edges)}
    width: int = widths.pop()
    return None if widths or width == 0 else width


def labels_of(edges: Sequence[Any], domain: Domain) -> tuple[str, ...]:
    """What the cells are called.

    >>> labels_of((0, 18, 65, 110), Integers(0, 110))
    ('0 to 17', '18 to 64', '65 to 110')
    >>> labels_of((10.0, 25.0, 60.0), Reals(10.0, 60.0))
    ('[10, 25)', '[25, 60]')
    """
    last = len(edges) - 2
    if isinstance(domain, Reals):
        closing = [")"] * last + ["]"]
        return tuple(f"[{_short(a)}, {_short(b)}{end}" for a, b, end in zip(edges, edges[1:], closing, strict=False))
    step: Any = timedelta(days=1) if isinstance(domain, Dates) else 1
    ends = [b if place == last else b - step for place, b in enumerate(edges[1:])]
    return tuple(f"{a}" if a == b else f"{a} to {b}" for a, b in zip(edges, ends, strict=False))


def _short(number: float) -> str:
    """The shortest text that reads back as the same number, without a trailing .0."""
    text = repr(number)
    return text.removesuffix(".0")


def bounds_of(name: str, domain: Domain) -> tuple[Any, Any]:
    """The two ends of a domain that has them."""
    if not isinstance(domain, Integers | Reals | Dates):
        raise InvalidValue("column", name, "must hold numbers or dates to be cut into cells", "it has categories")
    return domain.lower, domain.upper

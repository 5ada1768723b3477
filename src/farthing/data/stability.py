"""How far one unit's rows reach: the chain of transformations, each with its factor and the reason for it.

A `Step` turns a table into a table and a schema into a schema, and knows its stability. It looks at rows one at a
time, or at the rows of one unit, never further: that is what makes its stability a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from farthing.data.expressions import Expression
from farthing.data.schema import Schema
from farthing.errors import InvalidValue
from farthing.numerics.bounds import rounded_up

ADD_REMOVE = "add-remove"
REPLACE = "replace"
NEIGHBOURS = (ADD_REMOVE, REPLACE)

UNBOUNDED = 10**30
"""How many rows a unit may have where nothing bounds them: whoever adds this up by mistake adds noise for it."""


def refuse_unbounded(rows: int, linked: str | None = None) -> int:
    """The rows of one unit, where something bounds them; a refusal with both ways out where nothing does.

    `linked` is the name of a table among several, which `max_rows="auto"` is not for.

    >>> refuse_unbounded(3)
    3
    """
    if rows < UNBOUNDED:
        return rows
    own = "give the dataset max_rows=, such as 3, or 'auto' to have it found"
    if linked is not None:
        own = f"give that table max_rows, such as 3: max_rows={{{linked!r}: 3}}, in study.toml under [tables.{linked}]"
    raise InvalidValue(
        "max_rows" if linked is None else f"max_rows[{linked!r}]",
        None,
        "must be given with a unit where a statistic has no bound of its own",
        f"{own}; or give every statistic a bound: "
        "of='people' with max_cells=, rows_per_cell= with max_cells=, or max_rows=",
    )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The most that neighbouring tables differ by, in integer grid units.

    Args:
        l0: How many entries change at most.
        l1: The sum of the changes.
        l2_squared: The sum of their squares (whole, where its root seldom is).
        linf: The largest single change.

    >>> Sensitivity(l0=2, l1=2, l2_squared=2, linf=1).l2
    1.4142135623730951
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int

    @property
    def l2(self) -> float:
        """The root of `l2_squared`, rounded up."""
        whole = math.isqrt(self.l2_squared)
        if whole * whole == self.l2_squared and whole <= 2**53:
            return float(whole)
        root = math.sqrt(self.l2_squared)
        while not _at_least(root, self.l2_squared):
            root = math.nextafter(root, math.inf)
        return root


def sensitivity_of_rows(
    cells: int, ranges: Sequence[tuple[int, int]], rows: int, neighbours: str = ADD_REMOVE
) -> Sensitivity:
    """Sensitivity of a table of sums to which every row adds one vector, in one of several cells.

    Statement:
        Let V hold 0 and all vectors that are zero but for one of `cells` blocks, where the j-th entry lies in
        ranges[j] = [a_j, b_j], a_j <= 0 <= b_j; put m_j = max(-a_j, b_j) and w_j = b_j - a_j. If the sums of
        neighbouring tables differ by at most `rows` vectors of V added or removed, they differ by at most
            linf = rows max m,  l1 = rows sum m,  l2^2 = rows^2 sum m^2.
        If instead at most `rows` vectors are taken away and as many put in, by at most
            linf = rows max w,  l1 = rows max(sum w, 2 sum m),  l2^2 = rows^2 max(sum w^2, 2 sum m^2),
        without the second terms where there is only one cell. In both cases l0 is the number of entries that `rows`
        (or twice as many) vectors can touch.
    Source: triangle inequality; for replacement, the difference lies in rows (C - C) with C the convex hull of V, and a
        norm is largest at extreme points: two vectors in the same block (entries differ by at most w_j) or in different
        blocks (the norms add up, squared for l2).
    Assumes: every vector a row can add lies in V, missing values included (they add 0).
    Direction: upper bounds; tight when all m_j (or w_j) are attained by one row, as for counts, sums and moments.
    Checked by: tests/contracts/test_neighbours.py

    >>> sensitivity_of_rows(10, [(0, 1)], 3)
    Sensitivity(l0=3, l1=3, l2_squared=9, linf=3)
    >>> sensitivity_of_rows(10, [(0, 1)], 1, "replace")
    Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    """
    lowest = [min(a, 0) for a, _ in ranges]
    highest = [max(b, 0) for _, b in ranges]
    sizes = [max(-a, b) for a, b in zip(lowest, highest, strict=True)]
    moving = sum(1 for size in sizes if size)
    if neighbours == ADD_REMOVE:
        return Sensitivity(
            l0=moving * min(cells, rows),
            l1=rows * sum(sizes),
            l2_squared=rows**2 * sum(size**2 for size in sizes),
            linf=rows * max(sizes, default=0),
        )
    widths = [b - a for a, b in zip(lowest, highest, strict=True)]
    apart = 2 if cells > 1 else 0
    return Sensitivity(
        l0=moving * min(cells, 2 * rows),
        l1=rows * max(sum(widths), apart * sum(sizes)),
        l2_squared=rows**2 * max(sum(w**2 for w in widths), apart * sum(size**2 for size in sizes)),
        linf=rows * max(widths, default=0),
    )


def _at_least(root: float, square: int) -> bool:
    numerator, denominator = root.as_integer_ratio()
    return numerator**2 >= square * denominator**2


@dataclass(frozen=True, slots=True)
class Link:
    """One transformation: what it does, its own stability, and how many rows of one unit there are after it.

    Args:
        title: What the transformation does.
        own: Its own factor, as text.
        rows: How many rows of one unit there are at most after it.
        why: The reason for the factor.

    >>> Link("explode codes, at most 4 a row", "x 4", 12, "a row becomes 4 rows at most").rows
    12
    """

    title: str
    own: str
    rows: int
    why: str


@dataclass(frozen=True)
class Stability:
    """How many rows of a dataset one unit can move, link by link; printing it shows the chain.

    Args:
        links: The transformations in order, the source first.
        unit: The columns that name a unit; none when the unit is one row.
        neighbours: "add-remove" or "replace".
        rows_per_unit: How many rows belong to one unit at most.
        group: How many units change together.
        exact_probability: The chance that a unit is in the sample; 1 without one.
        table: What the table is called among linked ones; None where it is alone.

    >>> print(Stability((Link("people.csv", "1", 1, "a unit is one row"),), (), "replace", 1))
    unit: one row; neighbours replace one unit
    V0  people.csv  1  1 row      a unit is one row
    neighbours differ in at most 2 rows (1 a unit x out and in again)
    """

    links: tuple[Link, ...]
    unit: tuple[str, ...]
    neighbours: str
    rows_per_unit: int
    group: int = 1
    exact_probability: Fraction = Fraction(1)
    table: str | None = None

    @property
    def rows(self) -> int:
        """How many rows come or go between neighbours; under replacement as many again come in their place."""
        return refuse_unbounded(self.rows_per_unit, self.table) * self.group

    @property
    def probability(self) -> float:
        """The probability to price with `Sampled`: never below the one that is drawn with."""
        return rounded_up(self.exact_probability)

    @property
    def distance(self) -> int:
        """The most rows that must be added or removed to turn a table into its neighbour."""
        return self.rows * (2 if self.neighbours == REPLACE else 1)

    def __str__(self) -> str:
        whose = "one row" if not self.unit else "all rows with one " + ", ".join(self.unit)
        change = "replace" if self.neighbours == REPLACE else "add or remove"
        many = f" {self.group} units" if self.group > 1 else " one unit"
        lines = [f"unit: {whose}; neighbours {change}{many}"]
        wide = max(len(link.title) for link in self.links)
        owns = max(len(link.own) for link in self.links)
        for number, link in enumerate(self.links):
            rows = "any rows" if link.rows >= UNBOUNDED else f"{link.rows:,} row{'s' if link.rows != 1 else ''}"
            lines.append(f"V{number}  {link.title:<{wide}}  {link.own:<{owns}}  {rows:<9}  {link.why}")
        lines.append(self._total())
        return "\n".join(lines)

    def _total(self) -> str:
        if self.rows_per_unit >= UNBOUNDED:
            return "neighbours differ in any number of rows: every statistic must have a bound of its own"
        parts = [f"{self.rows_per_unit:,} a unit"]
        if self.group > 1:
            parts.append(f"{self.group} units")
        if self.neighbours == REPLACE:
            parts.append("out and in again")
        text = f"neighbours differ in at most {self.distance:,} row{'s' if self.distance != 1 else ''}"
        if len(parts) > 1:
            text += f" ({' x '.join(parts)})"
        if self.exact_probability < 1:
            text += f", if the unit is in the sample (probability {self.probability:.6g})"
        return text


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The share of a table's rows that a bound on the rows of a unit leaves out: an estimate that was paid for.

    Args:
        share: The estimate, between 0 and 1.
        lower: The low end of its interval.
        upper: The high end.
        max_rows: The bound that it is about.
        confidence: How often the interval holds the share.
        most: Only units with at most so many rows are in the estimate: of others there are too few to be seen.
        rows: The number of rows of the whole table, where that is public.
        of_all: The share of all rows that is left out, those of units that are not seen included, and its high end.

    >>> print(LeftOut(0.12, 0.081, 0.16, 20, most=500))
    about 12% (8.1 to 16%) of the rows of units with at most 500 rows are left out by max_rows=20
    """

    share: float
    lower: float
    upper: float
    max_rows: int
    confidence: float = 0.95
    most: int | None = None
    rows: int | None = None
    of_all: tuple[float, float] | None = None

    @property
    def unseen(self) -> str:
        """Whose rows are not in the estimate, and how to have them in the numbers; nothing where all are in it.

        >>> print(LeftOut(0.024, 0.018, 0.031, 20, most=500).unseen)
        units with more than 500 rows are too few to be seen and not in this figure: 20 rows of each are kept, and they
        may have most of the table; a larger max_rows keeps more of them, and of="people" looks at all of their rows
        >>> print(LeftOut(0.024, 0.018, 0.031, 20, most=500, rows=336_776, of_all=(0.823, 0.832)).unseen)
        units with more than 500 rows are too few to be seen and not in this figure; with them, about 82% of all
        336,776 rows are left out, and at most 84% (95% sure): a larger max_rows keeps more of them, and of="people"
        looks at all of their rows
        """
        if self.most is None:
            return ""
        if self.rows is not None and self.of_all is not None:
            share, most = _percent(self.of_all[0]), math.ceil(100 * self.of_all[1] * (1 - 1e-12))
            return (
                f"units with more than {self.most:,} rows are too few to be seen and not in this figure; with them, "
                f"about {share}% of all {self.rows:,} rows are left out, and at most {most}% ({self.confidence:.0%} "
                'sure): a larger max_rows keeps more of them, and of="people" looks at all of their rows'
            )
        kept = f"{self.max_rows:,} row{'s' * (self.max_rows != 1)} of each are kept"
        return (
            f"units with more than {self.most:,} rows are too few to be seen and not in this figure: {kept}, and they "
            'may have most of the table; a larger max_rows keeps more of them, and of="people" looks at all of '
            "their rows"
        )

    def __str__(self) -> str:
        share, lower, upper = map(_percent, (self.share, self.lower, self.upper))
        whose = "" if self.most is None else f" of units with at most {self.most:,} rows"
        return f"about {share}% ({lower} to {upper}%) of the rows{whose} are left out by max_rows={self.max_rows:,}"


class UnitSizes(Protocol):
    """How many rows units have, as far as a study has found that for a part of its budget."""

    @property
    def most(self) -> int:
        """Units with more rows than this are too few to be seen, and not in any number here."""

    def units_above(self, rows: int, people: int | None = None) -> tuple[int, int, bool]:
        """About how many units have more than so many rows, the most that there may be, and whether all are in that."""


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.995 else "100"


@dataclass(frozen=True)
class Run:
    """What holds for one query, in every table it opens: the sample, its secret key, and the columns still wanted."""

    key: str
    probability: Fraction
    columns: frozenset[str]
    all_rows: bool = False  # of each unit: what is computed from them has a bound of its own

    def with_columns(self, columns: Iterable[str]) -> Run:
        """The same query, of which other columns are wanted."""
        return replace(self, columns=frozenset(columns))


class Step(Protocol):
    """One transformation of a table, with its stability."""

    drops: ClassVar[bool]
    """Whether rows may leave: then the number of rows is not public, even if that of the source is."""

    def schema(self, before: Schema) -> Schema:
        """The columns and domains after the step."""
        ...

    def link(self, rows: int) -> Link:
        """The stability, given how many rows a unit has before."""
        ...

    def needs(self, after: Set[str]) -> set[str]:
        """The columns it takes to have those of `after`: the others are not read."""
        ...

    def apply(self, table: Any, run: Run) -> Any:
        """The Ibis table after the step, for one query."""
        ...


def definition_of(step: Any) -> list[Any]:
    """All that a step does as plain data: of an expression text and bounds, of a second dataset name and definition."""

    def plain(value: Any) -> Any:
        if isinstance(value, Expression):
            return [value.text, repr(value.domain)]  # bounds may have been declared
        if hasattr(value, "definition"):
            return [value.name, value.definition]
        return [plain(each) for each in value] if isinstance(value, tuple) else repr(value)

    return [type(step).__name__, *(plain(getattr(step, one.name)) for one in fields(step))]

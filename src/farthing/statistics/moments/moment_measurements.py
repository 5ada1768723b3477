"""The measurements that sums, means, variances and standard deviations of one column share.

Statistics of the same column, condition and groups are all functions of three sums: the number of rows N that have the
column, S1 of the centred column, S2 of its centred square. They are measured together, however many statistics look at
them, and once for all conditions of which a row meets at most one, in one of several ways (`WAYS`):

halves  sums of x and 1 - x, for the column scaled to x in 0 .. 1: N and S1 for the price of one count
thirds  sums of x^2, (1 - x)^2 and 2 x (1 - x): N, S1 and S2 for the price of one count
apart   N, S1 and S2 each by itself, S1 and S2 around the middle of the bounds; best for means that are expected there,
        and where N is known
plain   the sum of the column as it is, where nothing else is asked

The functions of `halves` and `thirds` are never below 0 and add up to 1 for every row, with a further one that is 1
where the column is missing: see `farthing.data.aggregates.soft_partitions`. The noise of a mean m in 0 .. 1 then has
(1 - m)^2 + m^2 times the variance of that of a count, over N^2 (Kulesza, Suresh & Wang 2023, arXiv:2312.06658).

A sum by itself is private through noise in proportion to the largest term. Around the middle of its bounds a column is
at most half as large as their distance, and its square, moved down by half of its largest value, half of that again.
The middle is public, so it is put back afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.data import Count, Integers, Reals, Sum
from farthing.data.aggregates.aggregate import MOST_CELLS, Aggregate, domain_of
from farthing.data.aggregates.soft_partitions import SoftPartition, completed_shape
from farthing.data.schema import Domain, Flags
from farthing.errors import InvalidValue
from farthing.statistics.counts.count_queries import group_axes, labels_of
from farthing.statistics.counts.expected_shares import category_shares, expected_rows, sizes_expected
from farthing.statistics.measurements import Cells, Noise, Slot
from farthing.statistics.measurements import Integers as WholeNumbers
from farthing.statistics.public_facts import DerivedColumns, Facts, without_missing
from farthing.statistics.statistic import Statistic, column_text

Way = Literal["halves", "thirds", "apart", "plain"]
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
class Shares:
    """Expressions whose values are whole numbers in 0 .. total: what a row adds to the cells of a soft partition.

    What they leave of the total goes to a further cell.
    """

    texts: tuple[str, ...]
    total: int

    @property
    def derived(self) -> tuple[tuple[str, tuple[int, int]], ...]:
        """What `Dataset.derive` takes; the declared bounds clip, so that they hold for every row."""
        return tuple((text, (0, self.total)) for text in self.texts)


@dataclass(frozen=True)
class Centred:
    """A numeric column seen from the middle of its bounds.

    >>> age = Centred.of("age", Integers(0, 99))
    >>> age.middle, age.half_width
    (49.5, 49.5)
    >>> age.first
    Stepped(text='2 * "age" - 99', bound=99, step=0.5)
    >>> age.thirds
    Shares(texts=('("age" - 0) * ("age" - 0)', '(99 - "age") * (99 - "age")'), total=9801)
    >>> Centred.of("bmi", Reals(10.0, 60.0)).first.bound
    819200
    """

    column: str
    lower: float
    upper: float
    first: Stepped  # x - middle
    second: Stepped  # (x - middle)^2 - half_width^2 / 2
    plain: Stepped  # x
    halves: Shares  # x, for x scaled to 0 .. 1
    thirds: Shares  # x^2 and (1 - x)^2; of a flag x is its own square, and x is enough

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
        low, high = f"{x} - {_whole(lower)}", f"{_whole(upper)} - {x}"
        halves = Shares((low,), width)
        if width == 1:
            thirds = halves
        elif width**2 <= _LARGEST_EXACT:
            thirds = Shares((f"({low}) * ({low})", f"({high}) * ({high})"), width**2)
        else:
            thirds = cls._of_reals(column, float(lower), float(upper), f"cast({x} as double)").thirds
        return cls(column, float(lower), float(upper), first, second, plain, halves, thirds)

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
            _halved(f"({away} / {_real(half)})"),
            _thirded(f"({away} / {_real(half)})"),
        )

    def _with(self, plain: Stepped) -> Centred:
        return replace(self, plain=plain)


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


def _halved(share: str) -> Shares:
    """Of a share of the half width, z in -1 .. 1: (1 + z) / 2."""
    return Shares((f"round(({share} + 1.0) * {_real(2.0 ** (STEPS - 1))})",), 2**STEPS)


def _thirded(share: str) -> Shares:
    """The squares of (1 + z) / 2 and of (1 - z) / 2."""
    low, high, steps = f"({share} + 1.0)", f"(1.0 - {share})", _real(2.0 ** (STEPS - 2))
    return Shares((f"round({low} * {low} * {steps})", f"round({high} * {high} * {steps})"), 2**STEPS)


def _real(number: float) -> str:
    return f"({number!r})" if number < 0 else repr(number)


def _whole(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class PartitionSlot(Slot):
    """The cells of a soft partition: for each of `groups` its `parts`, the last of which holds missing values.

    All numbers of one group add up to `total` times the rows of that group, present or missing.
    """

    groups: int = 1
    parts: int = 3
    total: int = 1

    @property
    def numbers_of_groups(self) -> Places:
        """For each group the slot's numbers whose sum, over `total`, is the number of its rows.

        A row that meets the condition is in one group: all numbers together count the rows that do, each once. The
        last number of a group alone counts its rows without a value.
        """
        return np.arange(self.groups * self.parts).reshape(self.groups, self.parts)


@dataclass(frozen=True, eq=False)
class Part:
    """One of the noisy numbers of every cell: the number at `place` among the `width` of each group of a slot.

    `number`, `first` and `second` say how much one step of it adds to N, S1 and S2, in the units of the data.
    """

    slot: Slot
    number: float = 0.0
    first: float = 0.0
    second: float = 0.0
    place: int = 0
    width: int = 1

    @property
    def source(self) -> str:
        """A name for its noise."""
        return f"{self.slot.name} {self.place}"


@dataclass(frozen=True)
class Shared:
    """What is measured for one column, condition and groups, in one way.

    `known_rows` is the number of rows where it is public and N is therefore not measured. `rows` are the expected rows
    of every cell, which are a guess where no `sizes_expected`. `mean` and `variance` are what is expected of the
    column, or a guess unless `is_expected`. `by` are the groups of the slots, and `members` is the cell that each of
    them belongs to: -1 for those of other conditions, and for rows without a group.
    """

    centred: Centred
    way: Way
    parts: tuple[Part, ...]
    by: tuple[str, ...]
    labels: tuple[Any, ...]
    rows: Floats
    members: Places
    mean: float
    variance: float
    known_rows: float | None = None
    rows_per_unit: int = 1
    is_expected: bool = True
    sizes_expected: bool = True

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots that are measured for these sums."""
        return tuple({part.slot.name: part.slot for part in self.parts}.values())

    @cached_property
    def number(self) -> Floats:
        """What one step of each part adds to N."""
        return np.array([part.number for part in self.parts])

    @cached_property
    def first(self) -> Floats:
        """What one step of each part adds to S1."""
        return np.array([part.first for part in self.parts])

    @cached_property
    def second(self) -> Floats:
        """What one step of each part adds to S2."""
        return np.array([part.second for part in self.parts])

    @property
    def has_squares(self) -> bool:
        """Whether S2 follows from the parts, and a variance with it."""
        return bool(np.any(self.second != 0))

    @cached_property
    def counts(self) -> Places:
        """How many groups of the slots each cell consists of."""
        return np.bincount(self.members[self.members >= 0], minlength=len(self.rows)).astype(np.int64)

    def own(self, measured: Mapping[str, WholeNumbers]) -> list[Floats]:
        """What was measured of every part in the cells of this condition, in steps."""
        inside = self.members >= 0
        numbers = []
        for part in self.parts:
            every = np.asarray(measured[part.slot.name], dtype=np.float64).reshape(-1, part.width)[:, part.place]
            total = np.bincount(self.members[inside], every[inside], minlength=len(self.rows))
            numbers.append(np.asarray(total, dtype=np.float64))
        return numbers

    def truths(self, rows: Floats, away: Floats, squares: Floats) -> list[Floats]:
        """What every part would be with these rows, this mean from the middle, and this mean of S2."""
        sums = np.array([rows, rows * away, rows * squares])
        matrix = np.array([self.number, self.first, self.second])
        independent = np.flatnonzero(np.any(matrix != 0, axis=1))[: len(self.parts)]  # of a flag, S1 says what S2 is
        return list(np.linalg.solve(matrix[independent], sums[independent]))

    def for_groups(self, statistic: Statistic, facts: Facts) -> Shared:
        """The same for a statistic whose groups are unions of those that are measured; rows without one included."""
        if statistic.by == self.by:
            return self
        sizes = [len(axis) for axis in group_axes(self.by, facts.schema)]
        places = np.indices(completed_shape(sizes)).reshape(len(sizes), -1)
        cells, inside = np.zeros(places.shape[1], dtype=np.int64), np.ones(places.shape[1], dtype=bool)
        for name in statistic.by:
            axis = self.by.index(name)
            cells = cells * sizes[axis] + places[axis]
            inside &= places[axis] < sizes[axis]
        labels = labels_of(group_axes(statistic.by, facts.schema)) if statistic.by else ()
        own = _sizes(facts, statistic, self.known_rows)
        return replace(self, labels=labels, members=np.where(inside, cells, -1), **own)

    def variances(self, noises: Mapping[str, Noise]) -> Floats:
        """The variance of the noise in one step of each part, in one group."""
        return np.array([part.slot.variance(noises[part.slot.name]) for part in self.parts])


def shared_slots(
    conditions: Sequence[Sequence[Statistic]], facts: Facts, derived: DerivedColumns, way: Way
) -> list[Shared]:
    """What statistics of one column measure together in their finest groups, for each of disjoint conditions."""
    finest = [max(statistics, key=lambda statistic: len(statistic.by)) for statistics in conditions]
    first = finest[0]
    column, by = first.column, first.by
    centred = Centred.of(column, domain_of(column, facts.schema))
    axes = group_axes(by, facts.schema) if by else ()
    labels = labels_of(axes) if by else ()
    kinds = {statistic.kind for statistics in conditions for statistic in statistics}
    known = known_rows_of(facts, first.where, by)
    cells = Cells.of(finest, facts.schema, derived)
    maker = _Maker(facts, derived, centred, cells, tuple(len(axis) for axis in axes))
    parts, members = maker.made(way, known is None, bool(kinds & {"variance", "std"}))
    whole = Shared(
        centred=centred,
        way=way,
        parts=parts,
        by=by,
        labels=labels,
        rows=np.ones(1),
        members=members[0],
        mean=expected_mean(facts, column),
        variance=expected_variance(facts, column),
        known_rows=known,
        rows_per_unit=facts.rows_per_unit,
        is_expected=column in facts.expected,
    )
    return [
        replace(whole, members=own, **_sizes(facts, statistic, known))
        for own, statistic in zip(members, finest, strict=True)
    ]


def _sizes(facts: Facts, statistic: Statistic, known: float | None) -> dict[str, Any]:
    """The rows that are expected to have the column in every cell, and whether anybody told how many there are."""
    if statistic.where is None and not statistic.by:
        whole = np.array([facts.whole_table])
        return {"rows": np.maximum(whole * facts.present(statistic.column), 1.0), "sizes_expected": True}
    asked = np.atleast_1d(expected_rows(facts, statistic.where, statistic.by))
    rows = np.maximum(asked * facts.present(statistic.column), 1.0)
    sizes = known is not None or sizes_expected(facts, statistic.where, statistic.by)
    return {"rows": rows, "sizes_expected": sizes}


@dataclass
class _Maker:
    facts: Facts
    derived: DerivedColumns
    centred: Centred
    cells: Cells
    shape: tuple[int, ...]

    def made(self, way: Way, counted: bool, squared: bool) -> tuple[tuple[Part, ...], list[Places]]:
        """The parts of what is measured, and for each condition the cell of every group of their slots."""
        if way in ("halves", "thirds"):
            return self._partition(self.centred.halves if way == "halves" else self.centred.thirds)
        places = np.arange(self.cells.conditions * math.prod(self.shape)).reshape(self.cells.conditions, -1)
        members = []
        for own in places:
            cell_of = np.full(places.size, -1, dtype=np.int64)
            cell_of[own] = np.arange(len(own))
            members.append(cell_of)
        if way == "plain":
            slot = self._sum("sum", self.centred.plain)
            return (Part(slot, first=slot.step),), members
        parts = [Part(self._count(), number=1.0)] if counted else []
        slot = self._sum("centred sum", self.centred.first)
        parts.append(Part(slot, first=slot.step))
        if squared:
            slot = self._sum("centred squares", self.centred.second)
            parts.append(Part(slot, second=slot.step))
        return tuple(parts), members

    def _partition(self, shares: Shares) -> tuple[tuple[Part, ...], list[Places]]:
        """Of z in -1 .. 1, counted from the middle in half widths: S1 is h z, and S2 is h^2 (z^2 - 1 / 2).

        With x = (1 + z) / 2: z = x - (1 - x) = x^2 - (1 - x)^2, and z^2 = x^2 + (1 - x)^2 - 2 x (1 - x).
        """
        groups = ((self.cells.conditions,) if self.cells.conditions > 1 else ()) + self.shape
        whole = completed_shape(groups)
        # Rows without a group have no cells of their own where a unit may reach some only.
        complete = math.prod(whole) <= MOST_CELLS and self.facts.bound is None
        names = tuple(self.derived.named(derived) for derived in shares.derived)
        plain = SoftPartition(names, shares.total, by=self.cells.by, where=self.cells.where, complete=complete)
        aggregate = self.facts.bounded(plain)
        width, step, half = plain.parts, 1 / shares.total, self.centred.half_width
        slot = PartitionSlot(
            name=self.facts.slot_name(f"{'halves' if width == 3 else 'thirds'} of {self._subject}"),
            aggregate=aggregate,
            sensitivity=self.facts.sensitivity(
                aggregate, {**dict(zip(names, shares.derived, strict=True)), **self.cells.derived}
            ),
            cells=math.prod(whole if complete else groups) * width,
            step=step,
            kinds=self._kinds,
            groups=math.prod(whole if complete else groups),
            parts=width,
            total=shares.total,
        )
        flag = self.centred.thirds is self.centred.halves  # z^2 is 1
        signs = (
            [(1, 0.5 if flag else 0.0), (-1, 0.5 if flag else 0.0)] if width == 3 else [(1, 0.5), (-1, 0.5), (0, -1.5)]
        )
        parts = tuple(
            Part(slot, step, sign * half * step, square * half**2 * step, place, width)
            for place, (sign, square) in enumerate(signs)
        )
        return parts, self._members(groups, whole if complete else groups)

    def _members(self, groups: tuple[int, ...], whole: tuple[int, ...]) -> list[Places]:
        """For each condition, the cell of every group of a slot whose axes have as many places as `whole` says."""
        cells = np.full(whole, -1, dtype=np.int64)
        size = math.prod(self.shape)
        numbers = np.arange(math.prod(groups)).reshape(groups)
        cells[tuple(slice(size) for size in groups)] = numbers
        flat = cells.reshape(-1)
        return [np.where(flat // size == number, flat % size, -1) for number in range(self.cells.conditions)]

    @property
    def _subject(self) -> str:
        return f"{column_text(self.centred.column)}{self.cells.subject}"

    @property
    def _kinds(self) -> Any:
        return ("laplace",) if self.facts.pure else ("laplace", "gaussian")

    def _count(self) -> Slot:
        return self._slot("number", Count(self.centred.column, by=self.cells.by, where=self.cells.where), 1.0, {})

    def _sum(self, word: str, stepped: Stepped) -> Slot:
        name = self.derived.named(stepped.derived)
        aggregate = self.facts.bounded(Sum(name, grid=1.0, by=self.cells.by, where=self.cells.where))
        return self._slot(word, aggregate, stepped.step, {name: stepped.derived})

    def _slot(self, word: str, aggregate: Aggregate, step: float, derived: dict[str, Any]) -> Slot:
        return Slot(
            name=self.facts.slot_name(f"{word} of {self._subject}"),
            aggregate=aggregate,
            sensitivity=self.facts.sensitivity(aggregate, {**derived, **self.cells.derived}),
            cells=self.cells.conditions * math.prod(self.shape),
            step=step,
            kinds=self._kinds,
        )


def expected_mean(facts: Facts, column: str) -> float:
    """What is expected of a column's mean: as the steward said it, where they did.

    Where nothing is known this is only what relative errors are relative to (errors are predicted for the worst mean):
    as far from the middle of the bounds as a mean anywhere between them is on average (its root mean square).
    """
    if isinstance(facts.schema[column], Flags):
        return float(category_shares(facts, column, (False, True))[1])
    model, moments = facts.column(column), _expected_moments(facts, column)
    if moments:
        return moments[0]
    lower, upper = model.points[0], model.points[-1]
    return (lower + upper) / 2 - (upper - lower) / math.sqrt(12) if model.assumed else model.mean


def expected_variance(facts: Facts, column: str) -> float:
    """What is expected of a column's variance; never nothing, so that errors relative to it stay finite."""
    if isinstance(facts.schema[column], Flags):
        share = expected_mean(facts, column)
        return max(share * (1 - share), 1e-6)
    model, moments = facts.column(column), _expected_moments(facts, column)
    width = model.points[-1] - model.points[0]
    return max(moments[1] if moments else model.variance, (width * 1e-6) ** 2)


def _expected_moments(facts: Facts, column: str) -> tuple[float, float] | None:
    """The mean and the variance of an expected pair or list; a model of them is cut off at the bounds, and smoothed."""
    given, domain = without_missing(column, facts.expected.get(column)), facts.schema[column]
    assert isinstance(domain, Integers | Reals)
    if isinstance(given, tuple):
        half = (domain.upper - domain.lower) / 2
        return float(given[0]), min(float(given[1]) ** 2, half**2)
    if isinstance(given, list | np.ndarray):
        values = np.clip(np.asarray(given, dtype=float), domain.lower, domain.upper)
        return float(values.mean()), float(values.var())
    return None


def known_rows_of(facts: Facts, where: Any, by: tuple[str, ...]) -> float | None:
    """The number of rows, where replacing rows keeps it and it is public."""
    if where is not None or by or facts.dataset.rows is None or facts.bound is not None:
        return None
    return float(facts.dataset.rows) if facts.sensitivity(Count()).l1 == 0 else None

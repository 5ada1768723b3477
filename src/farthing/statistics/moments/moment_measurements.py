"""The measurements that sums, means, variances and standard deviations of one column share.

Statistics of the same column, condition and groups are all functions of three sums: the number of rows N that have the
column, S1 of the centred column, S2 of its centred square. Each is measured once, however many statistics look at it,
and once for all conditions of which a row meets at most one.

A bounded column in whole steps: itself, centred, and its square; the smaller the bound, the smaller the noise.

A sum is private through noise in proportion to the largest term. Around the middle of its bounds a column is at most
half as large as their distance, and its square, moved down by half of its largest value, half of that again. The
middle is public, so it is put back afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Count, Integers, Reals, Sum
from farthing.data.aggregates.aggregate import Aggregate, domain_of
from farthing.data.schema import Domain, Flags
from farthing.errors import InvalidValue
from farthing.statistics.counts.count_queries import group_axes, labels_of
from farthing.statistics.counts.expected_shares import category_shares, expected_rows, sizes_expected
from farthing.statistics.measurements import Cells, Slot
from farthing.statistics.measurements import Integers as WholeNumbers
from farthing.statistics.public_facts import DerivedColumns, Facts, without_missing
from farthing.statistics.statistic import Statistic, column_text

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


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shared:
    """The slots of one column, condition and groups; those that nobody needs are None.

    `known_rows` is the number of rows where it is public and `number` is therefore not measured. `rows` are the
    expected rows of every cell, which are a guess where no `sizes_expected`.
    `mean` and `variance` are what is expected of the column, or a guess unless `is_expected`. The slots may have the
    cells of other conditions too: those of this one begin at `start`.
    """

    centred: Centred
    labels: tuple[Any, ...]
    rows: Floats
    mean: float
    variance: float
    number: Slot | None = None
    first: Slot | None = None
    second: Slot | None = None
    plain: Slot | None = None
    known_rows: float | None = None
    rows_per_unit: int = 1
    start: int = 0
    is_expected: bool = True
    sizes_expected: bool = True

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots that are measured for these sums."""
        return tuple(slot for slot in (self.number, self.first, self.second, self.plain) if slot)

    def own(self, slot: Slot, measured: Mapping[str, WholeNumbers]) -> Floats:
        """What was measured in the cells of this condition, in steps."""
        every = np.asarray(measured[slot.name], dtype=np.float64).reshape(-1)
        return every[self.start : self.start + len(self.rows)]


def shared_slots(conditions: Sequence[Sequence[Statistic]], facts: Facts, derived: DerivedColumns) -> list[Shared]:
    """What statistics of one column and the same groups measure together, for each of disjoint conditions."""
    first = conditions[0][0]
    column, by = first.column, first.by
    centred = Centred.of(column, domain_of(column, facts.schema))
    labels = labels_of(group_axes(by, facts.schema)) if by else ()
    kinds = {statistic.kind for statistics in conditions for statistic in statistics}
    known = _known_rows(facts, first.where, by)
    cells = Cells.of([statistics[0] for statistics in conditions], facts.schema, derived)
    maker = _Maker(facts, derived, column, cells, max(1, len(labels)))
    whole = Shared(
        centred=centred,
        labels=labels,
        rows=np.ones(1),
        mean=expected_mean(facts, column),
        variance=expected_variance(facts, column),
        # A sum by itself is measured as it is: that costs no more than its two parts, and less in most cases.
        plain=maker.sum("sum", centred.plain) if kinds == {"sum"} and known is None else None,
        number=None if kinds == {"sum"} or known is not None else maker.count(),
        first=None if kinds == {"sum"} and known is None else maker.sum("centred sum", centred.first),
        second=maker.sum("centred squares", centred.second) if kinds & {"variance", "std"} else None,
        known_rows=known,
        rows_per_unit=facts.dataset.rows_per_unit,
        is_expected=column in facts.expected,
    )
    return [
        replace(whole, start=number * maker.groups, **_sizes(facts, statistics[0], known))
        for number, statistics in enumerate(conditions)
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
    column: str
    cells: Cells
    groups: int

    def count(self) -> Slot:
        return self._slot("number", Count(self.column, by=self.cells.by, where=self.cells.where), 1.0, {})

    def sum(self, word: str, stepped: Stepped) -> Slot:
        name = self.derived.named(stepped.derived)
        aggregate = Sum(name, grid=1.0, by=self.cells.by, where=self.cells.where)
        return self._slot(word, aggregate, stepped.step, {name: stepped.derived})

    def _slot(self, word: str, aggregate: Aggregate, step: float, derived: dict[str, Any]) -> Slot:
        return Slot(
            name=f"{word} of {column_text(self.column)}{self.cells.subject}",
            aggregate=aggregate,
            sensitivity=self.facts.sensitivity(aggregate, {**derived, **self.cells.derived}),
            cells=self.cells.conditions * self.groups,
            step=step,
            kinds=("laplace",) if self.facts.pure else ("laplace", "gaussian"),
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


def _known_rows(facts: Facts, where: Any, by: tuple[str, ...]) -> float | None:
    """The number of rows, where replacing rows keeps it and it is public."""
    if where is not None or by or facts.dataset.rows is None:
        return None
    return float(facts.dataset.rows) if facts.sensitivity(Count()).l1 == 0 else None

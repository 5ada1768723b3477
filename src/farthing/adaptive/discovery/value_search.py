"""The range of a column of numbers or dates that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from farthing.adaptive.discovery.search import (
    Finding,
    Progress,
    checked_confidence,
    checked_price,
    digest_of,
    refuse_beyond_table,
    units_word,
)
from farthing.adaptive.discovery.search_cells import cells_of
from farthing.adaptive.discovery.unit_counts import UnitCounts
from farthing.data import Dataset, Histogram
from farthing.data.schema import Dates, Domain, Integers, Reals, Unknown
from farthing.data.unknown_columns import one_row_a_unit
from farthing.errors import InvalidValue
from farthing.privacy import Event

_SCALES = {
    "number": "the scale 1, 2, 5, 10, 20, ...",
    "whole number": "the scale 1, 2, 5, 10, 20, ...",
    "date": "the calendar, by year since 1900",
}


@dataclass(frozen=True)
class ValueSearch:
    """A search for the range of a column: counts of units in cells of a public scale, with noise.

    Each unit adds one of its rows that have a value, chosen at random. Made by `value_search`.

    Args:
        name: The column.
        unknown: What was declared about it.
        counts: The noise, and the rule that makes a range of noisy counts.
        units: What units are called.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"income": [30.0]}), schema={"income": ft.unknown("number")})
    >>> print(value_search(people, "income", epsilon=0.05).prediction)
    a range of income whose ends are on the scale 1, 2, 5, 10, 20, ...: 95 times in 100 a step of it with 370 rows or
    more is inside; 99 times in 100 no end is more than one step too far
    """

    name: str
    unknown: Unknown
    counts: UnitCounts
    units: str = "rows"

    @property
    def epsilon(self) -> float:
        """What all counts together cost."""
        return self.counts.epsilon

    @property
    def delta(self) -> float:
        """Its noise is Laplace noise: 0."""
        return 0.0

    @property
    def prediction(self) -> str:
        """From which number of units on a value cannot be missed, whatever the rows are."""
        times = f"{100 * self.counts.confidence:g} times in 100"
        return (
            f"a range of {self.name} whose ends are on {_SCALES[self.unknown.kind]}: {times} a step of it with "
            f"{_units(self.counts.sure, self.units)} is inside; 99 times in 100 no end is more than one step too far"
        )

    @property
    def event(self) -> Event:
        """One release of all counts."""
        return self.counts.mechanism.event

    @cached_property
    def digest(self) -> str:
        """Of the column, its kind, the noise and the confidence."""
        noise = [self.counts.epsilon.hex(), self.counts.l1, self.counts.confidence.hex()]
        return digest_of(["range", self.name, repr(self.unknown), [str(edge) for edge in self._edges], *noise])

    @property
    def _edges(self) -> tuple[Any, ...]:
        return self.counts.cells.edges

    @property
    def _histogram(self) -> Histogram:
        return Histogram(self.name, self._edges)

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset whose neighbours differ in more cells than the noise is made for, or that is too small."""
        moved = one_row_a_unit(dataset, self.name).sensitivity(self._histogram).l1
        if not self.counts.l1 >= moved:
            raise InvalidValue("l1 sensitivity", self.counts.l1, f"must be at least {moved} for this dataset")
        refuse_beyond_table(dataset, self.epsilon, self.counts.sure, "raise epsilon, or declare the range")

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """One pass over the rows, then the noise."""
        rows = one_row_a_unit(dataset, self.name)
        return {self.name: self.counts.mechanism.release(rows.exact({self.name: self._histogram}, progress)[self.name])}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The range of the cells that are not empty, as far as the noisy counts can tell."""
        ends = self.counts.range_of(answers[self.name])
        facts: dict[str, Any] = {"name": self.name, "kind": self.unknown.kind, "found": ends is not None}
        facts |= {"decimal": self.unknown.decimal, "units": self.units, "confidence": self.counts.confidence}
        facts |= {"sure": self.counts.sure, "epsilon": self.counts.epsilon}
        if ends is not None:
            lower, upper = self.counts.cells.lows[ends[0]], self.counts.cells.highs[ends[1]]
            facts |= {"lower": _written(lower), "upper": _written(upper)}
        return {"finding": facts}


def value_search(dataset: Dataset, name: str, epsilon: float, confidence: float = 0.95) -> ValueSearch:
    """The search for the range of a column, at a price.

    Args:
        dataset: The table, in which the column is declared as unknown.
        name: The column.
        epsilon: What the search may cost.
        confidence: How often each of its two promises holds.

    Returns:
        The search.

    Raises:
        InvalidValue: If there is no such unknown column of numbers or dates, or a number is wrong.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"income": [30.0]}), schema={"income": ft.unknown("number")})
    >>> value_search(people, "income", epsilon=0.5).counts.sure
    38
    """
    rows = one_row_a_unit(dataset, name)
    cells = cells_of(rows.schema[name])
    moved = rows.sensitivity(Histogram(name, cells.edges)).l1
    counts = UnitCounts(cells, checked_price(epsilon, 0.0)[0], moved, checked_confidence(confidence))
    return ValueSearch(name, dataset.unknown[name], counts, units_word(dataset))


def value_finding(facts: Mapping[str, Any]) -> Finding:
    """What a search for a range has found, from what was recorded.

    >>> facts = {"name": "age", "kind": "whole number", "found": True, "lower": 0, "upper": 100, "confidence": 0.95}
    >>> print(value_finding({**facts, "sure": 90, "units": "rows"}))
    age: 0 to 100 (95 times in 100 a step of the scale with 90 rows or more is inside; values outside are clipped)
    """
    name, kind = str(facts["name"]), str(facts["kind"])
    units, times = _units(facts["sure"], facts["units"]), f"{100 * facts['confidence']:g} times in 100"
    if not facts["found"]:
        text = (
            f"{name}: no range was found; there may be too few values: {times} a step of the scale with {units} is seen"
        )
        return Finding(name, kind, False, text, None, facts)
    domain = _domain(facts)
    ends = " to ".join(_bound_text(facts[end]) for end in ("lower", "upper"))
    text = f"{name}: {ends} ({times} a step of the scale with {units} is inside; values outside are clipped)"
    note = (
        f"the range of {name} was found in the data, not declared: {times} a step of the scale with {units} is inside"
    )
    return Finding(name, kind, True, text, domain, facts, note)


def _units(sure: int, units: str) -> str:
    """How many units a step needs: one with several rows counts with one of them."""
    return f"{sure:,} {units} or more" + ("" if units == "rows" else " (one value of each, chosen at random)")


def _domain(facts: Mapping[str, Any]) -> Domain:
    lower, upper = facts["lower"], facts["upper"]
    if facts["kind"] == "date":
        return Dates(date.fromisoformat(lower), date.fromisoformat(upper))
    if facts["kind"] == "whole number":
        return Integers(int(lower), int(upper))
    return Reals(float(lower), float(upper), str(facts.get("decimal", "")))


def _written(bound: Any) -> Any:
    return bound.isoformat() if isinstance(bound, date) else bound


def _bound_text(bound: Any) -> str:
    return bound if isinstance(bound, str) else f"{bound:,.12g}" if isinstance(bound, float) else f"{bound:,}"

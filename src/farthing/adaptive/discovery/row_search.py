"""How many rows the units of a table have: a bound that fits, and the share of rows that a bound leaves out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farthing.adaptive.discovery.search import (
    ROWS,
    Finding,
    Progress,
    checked_confidence,
    checked_price,
    digest_of,
    refuse_beyond_table,
    units_word,
)
from farthing.adaptive.discovery.search_cells import row_cells
from farthing.adaptive.discovery.unit_counts import UnitCounts
from farthing.data import Dataset, Histogram, LeftOut
from farthing.data.unit_rows import MOST_ROWS_A_UNIT
from farthing.data.unknown_columns import rows_a_unit
from farthing.errors import InvalidValue
from farthing.privacy import Event

_COLUMN = "rows"  # of `rows_a_unit`
_BESIDE = 2  # cells after the last that is seen: about one and a half times as many rows
_TAIL = 2.12  # standard deviations that 95% of one Laplace noise lie within; of sums of several it is less
_TAIL_OF_ALL = 5.0  # the same for all ends of cells at once, of which there are 60: one that was chosen by the counts


@dataclass(frozen=True)
class RowSearch:
    """A search for how many rows units have: counts of units by their number of rows, with noise.

    Made by `row_search`.

    Args:
        counts: The noise, and the rule that says up to where there are units.
        max_rows: The bound that was declared; None where one is to be chosen.
        rest: The epsilon that is there for what is asked afterwards: a bound is chosen for it.
        units: What units are called.
        rows: The number of rows of the whole table, where that is public; no noise depends on it.

    >>> import pyarrow, farthing as ft
    >>> flights = pyarrow.table({"plane": ["a", "a", "b"], "late": [1, 2, 3]})
    >>> flights = ft.dataset(flights, unit="plane", max_rows="auto", schema={"late": (0, 60)})
    >>> print(row_search(flights, epsilon=0.05, rest=1.0).prediction)
    how many rows units have: counts of units (plane), each within ±60 (95 times in 100); from these it chooses a
    max_rows that balances the rows left out against noise, for a count of all rows at epsilon 1
    """

    counts: UnitCounts
    max_rows: int | None
    rest: float
    units: str
    rows: int | None = None

    @property
    def name(self) -> str:
        """It is about no column."""
        return ROWS

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
        """How accurate the counts are that everything else is made of."""
        times = f"{100 * self.counts.confidence:g} times in 100"
        within = math.floor(self.counts.mechanism.error(self.counts.confidence))
        text = f"how many rows units have: counts of {self.units}, each within ±{within:,} ({times}); "
        if self.max_rows is not None:
            return text + f"from these it finds the share of rows that max_rows={self.max_rows:,} leaves out"
        return text + (
            "from these it chooses a max_rows that balances the rows left out against noise, for a count of all rows "
            f"at epsilon {self.rest:g}"
        )

    @property
    def event(self) -> Event:
        """One release of all counts."""
        return self.counts.mechanism.event

    @cached_property
    def digest(self) -> str:
        """Of the noise, the bound that was declared, and what it is chosen for."""
        noise = [self.counts.epsilon.hex(), self.counts.l1, self.counts.confidence.hex()]
        return digest_of([ROWS, list(self.counts.cells.edges), self.max_rows, self.rest.hex(), *noise])

    @property
    def _histogram(self) -> Histogram:
        return Histogram(_COLUMN, self.counts.cells.edges)

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset whose neighbours differ in more units than the noise is made for, or that is too small."""
        moved = rows_a_unit(dataset).sensitivity(self._histogram).l1
        if not self.counts.l1 >= moved:
            raise InvalidValue("l1 sensitivity", self.counts.l1, f"must be at least {moved} for this dataset")
        refuse_beyond_table(dataset, self.epsilon, self.counts.sure, "raise epsilon, or declare max_rows")

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """One pass over the rows, then the noise."""
        rows = rows_a_unit(dataset)
        return {ROWS: self.counts.mechanism.release(rows.exact({ROWS: self._histogram}, progress)[ROWS])}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The bound, and the share of rows that it leaves out; both from the counts of cells that are not empty."""
        ends = self.counts.range_of(answers[ROWS])
        facts: dict[str, Any] = {"name": ROWS, "kind": "rows", "found": ends is not None, "units": self.units}
        facts |= {"confidence": self.counts.confidence, "epsilon": self.counts.epsilon, "sure": self.counts.sure}
        facts |= {"rest": self.rest, "declared": self.max_rows}
        if ends is None:
            return {"finding": facts}
        # Beside the range there may be units, too few to be seen: their cells, and their noise, are in the estimate.
        noisy = [int(count) for count in answers[ROWS][: ends[1] + 1 + _BESIDE]]
        tally = RowTally(noisy, self.counts.scale, self.counts.l1)
        chosen = tally.best(self.rest, ends[1] + 1)
        part = tally.left_out(self.max_rows or chosen, is_chosen=self.max_rows is None, rows=self.rows)
        facts |= {"most": tally.highs[-1], "counts": noisy, "scale": self.counts.scale}
        said = {name: value for name, value in asdict(part).items() if value is not None}
        facts |= {"max_rows": chosen, "left_out": said}
        return {"finding": facts}


@dataclass(frozen=True)
class RowTally:
    """Noisy counts of units by how many rows they have, as far as there are any.

    Args:
        counts: The noisy counts, from one row a unit on.
        scale: The scale of the noise on each.
        l1: How many units neighbours differ in.

    >>> tally = RowTally([400, 300, 200, 100], scale=1.0)
    >>> print(tally.left_out(2), tally.best(1.0))
    about 20% (20 to 20%) of the rows of units with at most 4 rows are left out by max_rows=2 4
    """

    counts: Sequence[int]
    scale: float
    l1: int = 1

    @property
    def lows(self) -> tuple[int, ...]:
        """The least number of rows in each cell."""
        return row_cells(MOST_ROWS_A_UNIT).lows[: len(self.counts)]

    @property
    def highs(self) -> tuple[int, ...]:
        """The greatest number of rows in each cell."""
        return row_cells(MOST_ROWS_A_UNIT).highs[: len(self.counts)]

    def left_out(self, max_rows: int, *, is_chosen: bool = False, rows: int | None = None) -> LeftOut:
        """The share of the rows that a bound leaves out.

        The interval has two parts: noise, and that a cell does not say where in it its units lie.

        Args:
            max_rows: The bound.
            is_chosen: Whether these counts have chosen it: then the interval must hold for all that could have been.
            rows: The number of rows of the whole table, where that is public.

        Returns:
            The estimate with its interval.
        """
        counts = np.asarray(self.counts, dtype=float)
        lows, highs = (np.asarray(ends, dtype=float) for ends in (self.lows, self.highs))
        middles = (lows + highs) / 2

        def share(above: Any, below: Any) -> float:
            """Where units with more rows than the bound have `above`, and the others `below`."""
            rows = np.where(highs > max_rows, above, below)
            whole = float(counts @ rows)
            return float(counts @ np.maximum(rows - max_rows, 0)) / whole if whole > 0 else 0.0

        estimate = min(1.0, max(0.0, share(middles, middles)))
        whole = max(1.0, float(counts @ middles))
        weights = (np.maximum(middles - max_rows, 0) - estimate * middles) / whole
        spread = (_TAIL_OF_ALL if is_chosen else _TAIL) * math.sqrt(2) * self.scale * float(np.linalg.norm(weights))
        lower, upper = share(lows, highs) - spread, share(highs, lows) + spread
        ends = max(0.0, min(lower, estimate)), min(1.0, max(upper, estimate))
        of_all = None if rows is None else self._left_out_of(rows, max_rows, is_chosen=is_chosen)
        return LeftOut(estimate, *ends, max_rows, most=self.highs[-1], rows=rows, of_all=of_all)

    def _left_out_of(self, rows: int, max_rows: int, *, is_chosen: bool) -> tuple[float, float]:
        """The share of all rows of a table that a bound leaves out, and the most that it may be.

        Units with more rows than any cell that is counted here are in the number of rows. What is kept of them is not
        counted, so that the second number holds however many they are; the first one is the higher for it, too.
        """
        counts = np.asarray(self.counts, dtype=float)
        kept, least = (np.minimum((np.asarray(self.lows) + ends) / 2, max_rows) for ends in (self.highs, self.lows))
        spread = (_TAIL_OF_ALL if is_chosen else _TAIL) * math.sqrt(2) * self.scale * float(np.linalg.norm(least))
        share, most = 1 - float(counts @ kept) / rows, 1 - (float(counts @ least) - spread) / rows
        return min(1.0, max(0.0, share)), min(1.0, max(0.0, share, most))

    @property
    def most(self) -> int:
        """Units with more rows than this are too few to be seen, and not counted."""
        return self.highs[-1]

    def units_above(self, rows: int, people: int | None = None) -> tuple[int, int, bool]:
        """How many units have more than so many rows.

        Args:
            rows: The number of rows.
            people: How many units there are, where that is public: then those that are not seen are counted, too.

        Returns:
            About how many, the most that there may be 95 times in 100, and whether units that are not seen are in it.

        >>> tally = RowTally([400, 300, 200, 100], scale=1.0)
        >>> tally.units_above(2), tally.units_above(2, people=1_010), tally.units_above(4)
        ((300, 305, False), (300, 315, True), (0, 0, False))
        """
        counts = np.asarray(self.counts, dtype=float)
        lows, highs = (np.asarray(ends, dtype=float) for ends in (self.lows, self.highs))
        parts = np.clip((highs - rows) / (highs - lows + 1), 0.0, 1.0)  # of each cell, as if its units were spread out

        def spread(cells: Any) -> float:
            return _TAIL * math.sqrt(2) * self.scale * math.sqrt(float(np.count_nonzero(cells)))

        about, seen = float(counts @ parts), float(counts[parts > 0].sum()) + spread(parts > 0)
        most = seen
        if people is not None:
            most = people - (float(counts[parts == 0].sum()) - spread(parts == 0))
        whole = max(0, math.ceil(most))
        return min(max(0, round(about)), whole), whole, people is not None

    def best(self, epsilon: float, seen: int | None = None) -> int:
        """The bound with the least squared error of a count of all rows at this epsilon: rows left out, and noise.

        Args:
            epsilon: What the count may cost.
            seen: How many cells are seen to hold units; the bound is the end of one of them.

        Returns:
            The bound, one of the ends of the cells.
        """
        counts = np.asarray(self.counts, dtype=float)
        middles = (np.asarray(self.lows) + np.asarray(self.highs)) / 2

        def error(bound: int) -> float:
            bias = max(0.0, float(counts @ np.maximum(middles - bound, 0)))
            return bias**2 + 2 * (bound * self.l1 / epsilon) ** 2

        return min(self.highs[:seen], key=error)


def row_search(dataset: Dataset, epsilon: float, rest: float, confidence: float = 0.95) -> RowSearch:
    """The search for how many rows units have, at a price.

    Args:
        dataset: The table; a bound is chosen where its `max_rows` is "auto".
        epsilon: What the search may cost.
        rest: The epsilon that is there for what is asked afterwards.
        confidence: How often each of its counts is within its error.

    Returns:
        The search.

    Raises:
        InvalidValue: If the unit is one row, or a number is wrong.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"age": [1]}), schema={"age": (0, 9)})
    >>> row_search(people, 0.1, rest=1.0)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: unit=None: must be a column ...
    """
    cells = row_cells(MOST_ROWS_A_UNIT)
    moved = rows_a_unit(dataset).sensitivity(Histogram(_COLUMN, cells.edges)).l1
    counts = UnitCounts(cells, checked_price(epsilon, 0.0)[0], moved, checked_confidence(confidence))
    declared = None if dataset.is_auto or not dataset.bounds_rows else dataset.bound
    if not (isinstance(rest, int | float) and rest > 0):
        raise InvalidValue("rest", rest, "must be an epsilon > 0")
    return RowSearch(counts, declared, float(rest), units_word(dataset), dataset.table_rows)


def row_finding(facts: Mapping[str, Any]) -> Finding:
    """What a search for the rows of units has found, from what was recorded.

    >>> part = asdict(LeftOut(0.1, 0.08, 0.12, 20, most=50))
    >>> facts = {"found": True, "units": "units (plane)", "sure": 90, "most": 50, "left_out": part, "max_rows": 20}
    >>> print(row_finding({**facts, "declared": None}))
    rows per unit: max_rows=20 was chosen; about 10% (8 to 12%) of the rows of units with at most 50 rows are left out
    by max_rows=20; units with more than 50 rows are too few to be seen and not in this figure: 20 rows of each are
    kept, and they may have most of the table; a larger max_rows keeps more of them, and of="people" looks at all...
    """
    if not facts["found"]:
        text = f"rows per unit: too few {facts['units']} to tell; it takes {facts['sure']:,} with like numbers of rows"
        return Finding(ROWS, "rows", False, text, None, facts)
    part, chosen = LeftOut(**facts["left_out"]), int(facts["max_rows"])
    fits = f"max_rows={chosen:,} was chosen; " if facts["declared"] is None else ""
    better = "" if facts["declared"] in (None, chosen) else f"max_rows={chosen:,} would fit a count of all rows"
    text = "; ".join(filter(None, (f"rows per unit: {fits}{part}", better, part.unseen)))
    return Finding(ROWS, "rows", True, text, None, facts)


def tally_of(finding: Finding) -> RowTally:
    """The noisy counts of units by how many rows they have, from a finding.

    >>> tally_of(Finding("rows per unit", "rows", True, "", None, {"counts": [4, 3], "scale": 1.0})).highs
    (1, 2)
    """
    return RowTally(finding.facts["counts"], float(finding.facts["scale"]))


def bound_of(finding: Finding, declared: int | None, rows: int | None = None) -> tuple[int, LeftOut]:
    """The bound that a table keeps, the declared one or that of a finding, and the share of rows that it leaves out.

    `rows` is the number of rows of the whole table, where that is public.

    >>> facts = {"counts": [400, 300, 200, 100], "scale": 1.0, "max_rows": 4}
    >>> print(*bound_of(Finding("rows per unit", "rows", True, "", None, facts), 2))
    2 about 20% (20 to 20%) of the rows of units with at most 4 rows are left out by max_rows=2
    """
    tally = tally_of(finding)
    bound = int(finding.facts["max_rows"]) if declared is None else declared
    return bound, tally.left_out(bound, is_chosen=declared is None, rows=rows)

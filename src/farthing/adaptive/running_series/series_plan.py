"""What a running series will cost and how far off every step will be, before anything is spent."""

from __future__ import annotations

import hashlib
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.calibration import calibrate
from farthing.adaptive.monitor.count_series import Series
from farthing.adaptive.running_series.stream_strategy import (
    SQUARE_ROOT,
    TOTALS,
    StreamStrategy,
    branching_of,
    stream_strategy,
)
from farthing.data.stability import ADD_REMOVE, NEIGHBOURS, REPLACE
from farthing.errors import InvalidValue
from farthing.inference import ErrorDistribution, Term
from farthing.inference.answers import with_error
from farthing.inference.noise_terms import variance_of
from farthing.mechanisms import DiscreteLaplace
from farthing.mechanisms.additive import vector_event
from farthing.privacy import Event
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon, checked_real
from farthing.privacy.periods import Periods

Floats = NDArray[np.float64]
Kind = Literal["laplace", "gaussian"]

MOST_NUMBERS = 2**17
_MOST_LISTED = 8  # series that a plan names one by one
_ROUNDING = 2e-9  # of epsilon: a ledger rounds up to billionths


@dataclass(frozen=True)
class RunningSeriesPlan:
    """A running series before it is opened: its periods, its price, and the error of every step.

    Attributes:
        series: The counts, one for each cell.
        periods: The periods, one step for each.
        epsilon: The epsilon of all steps together, fixed in advance.
        delta: Their delta.
        strategy: What is measured: "square root", "totals" or "tree of b" (see `StreamStrategy`).
        kind: The noise: "laplace" or "gaussian".
        parameter: Of Laplace noise its epsilon, of Gaussian noise its multiplier.
        rows: The most rows of one unit that are counted, in all steps together.
        neighbours: "add-remove" or "replace" one unit.
        append_only: Whether rows are only ever added to the table, which the price then rests on.
        confidence: The probability with which each error holds.
        warnings: What to think about before opening it.
        notes: Which rows are in none of its numbers, and what is not checked; it is said with the answers too.

    >>> months = Periods.of("month", "2020-01", 60)
    >>> plan = plan_running_series([Series("all", "all")], months, epsilon=1.0, delta=1e-9, append_only=True)
    >>> plan.strategy, plan.total_errors[[0, 11, 59]].round(1)
    ('tree of 8', array([ 6. , 12.4, 17.7]))
    >>> print(f"{plan.total_errors[-1] / plan.repeated_errors[-1]:.2f}")  # of sixty separate releases
    0.21
    """

    series: tuple[Series, ...]
    periods: Periods
    epsilon: float
    delta: float
    strategy: str
    kind: Kind
    parameter: float
    rows: int = 1
    neighbours: str = ADD_REMOVE
    append_only: bool = False
    confidence: float = 0.95
    warnings: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def stream(self) -> StreamStrategy:
        """The rows that are measured, and the weights that make totals and counts of them."""
        return stream_strategy(self.strategy, self.periods.count, fine=self.kind == "gaussian")

    @cached_property
    def sensitivity_squared(self) -> int:
        """The square of how far neighbours move all measured numbers together: in l1 for Laplace noise, in l2 else.

        Statement:
            Let S be the bound of `StreamStrategy.moved` and m the rows of a unit. If units are added or removed, all
            measured numbers move by at most m S in l1 and m sqrt(S) in l2. If a unit is replaced by another, by at most
            2 m S and m sqrt(2 S).
        Source: `StreamStrategy.moved`; for replacement, what the one unit takes away and what the other brings are
            vectors of numbers >= 0, so that the squared norm of their difference is at most the sum of both.
        Assumes: as `StreamStrategy.moved`; a group of g units counts g m rows.
        Direction: exact, in whole numbers.
        Checked by: tests/theorems/test_running_series.py
        """
        both = 2 if self.neighbours == REPLACE else 1
        if self.kind == "laplace":
            return (both * self.rows * self.stream.moved("l1", append_only=self.append_only)) ** 2
        return both * self.rows**2 * self.stream.moved("l2", append_only=self.append_only)

    @cached_property
    def event(self) -> Event:
        """All steps at once: their number, the rows that are measured and the noise are fixed, the tables are not.

        Statement:
            The event of the noise on the whole vector also bounds its release step by step, where each table may
            depend on what was released before.
        Source: for Gaussian noise Denisov, McMahan, Rush, Smith & Thakurta, arXiv:2202.08312v2; the leak
            of `vector_event` bounds a ratio of each single number, whatever was released before it. For Laplace noise
            the proof at `DiscreteLaplace.event` takes cells one by one, and a later shift that depends on earlier
            answers has at most what is left of the l1 distance.
        Assumes: what is recorded of each measured number was drawn once, independently of everything before.
        Direction: as the events themselves.
        Checked by: tests/theorems/test_running_series.py
        """
        if self.kind == "laplace":
            reach = math.isqrt(self.sensitivity_squared)
            return DiscreteLaplace(self.parameter, l1_sensitivity=reach, cells=self._numbers).event
        return vector_event(self.width**2, root_up(self.sensitivity_squared), self._numbers)

    @cached_property
    def width(self) -> Fraction:
        """The scale of the noise of each measured number, in its whole steps: exact."""
        reach = Fraction(root_up(self.sensitivity_squared))
        return reach / Fraction(self.parameter) if self.kind == "laplace" else reach * Fraction(self.parameter)

    @property
    def _numbers(self) -> int:
        return len(self.stream.at) * len(self.series)

    def distribution(self, weights: Floats) -> ErrorDistribution:
        """The distribution of the error of a weighted sum of measured numbers, from the noise alone.

        Laplace noise is summed exactly. Gaussian noise lies on steps of less than a millionth of its width, so the sum
        is told as a normal one that is wider by as much.

        Args:
            weights: One for each measured number of one series.

        Returns:
            The distribution; it is the same for every series.
        """
        if self.kind == "gaussian":
            return ErrorDistribution([Term("normal", float(self.width) * float(np.linalg.norm(weights)) * (1 + 1e-6))])
        sizes, counts = np.unique(np.abs(weights[weights != 0]), return_counts=True)
        return ErrorDistribution(
            Term("laplace", float(self.width), coefficient=float(size), count=int(count))
            for size, count in zip(sizes, counts, strict=True)
        )

    @cached_property
    def total_errors(self) -> Floats:
        """How far off the running total of each step may be, at the confidence, for each series by itself."""
        return self._errors(self.stream.totals)

    @cached_property
    def count_errors(self) -> Floats:
        """How far off the count of each period may be, at the confidence."""
        return self._errors(self.stream.counts)

    @cached_property
    def repeated_errors(self) -> Floats:
        """What the totals would be off by if each were a release of its own, and all of them cost as much together."""
        return self._least(TOTALS, TOTALS).total_errors

    @cached_property
    def summed_errors(self) -> Floats | None:
        """What they would be off by as sums of separate releases, one of each period's rows, at the same price.

        None where rows may change: a unit could then be in all of them.
        """
        alone = f"tree of {self.periods.count + 1}"  # without a block
        return self._least(alone, alone).total_errors if self.append_only else None

    def _least(self, of_laplace: str, of_gaussian: str) -> RunningSeriesPlan:
        """The one of two strategies, each with its noise, whose worst total has the least error at this price."""
        room = max(self.epsilon - _ROUNDING, self.epsilon / 2)
        pure = replace(self, strategy=of_laplace, kind="laplace", parameter=room)
        if not self.delta > 0:
            return pure
        fine = replace(self, strategy=of_gaussian, kind="gaussian")
        noise = calibrate(lambda m: [replace(fine, parameter=m).event], room, self.delta, tolerance=1e-7)
        return min((pure, replace(fine, parameter=noise.parameter)), key=lambda one: one._worst)

    @property
    def _worst(self) -> float:
        """The largest standard error of a total."""
        each = math.sqrt(variance_of(self.kind, float(self.width)))
        return each * float(np.linalg.norm(self.stream.totals, axis=1).max())

    def _errors(self, weights: Floats) -> Floats:
        return np.array([float(self.distribution(row).errors(self.confidence)[0]) for row in weights])

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything public about it."""
        return hashlib.sha256(json.dumps(self.to_dict(errors=False)).encode()).hexdigest()

    def to_dict(self, *, errors: bool = True) -> dict[str, Any]:
        """The plan as plain data.

        Args:
            errors: Whether the errors of all steps are in it; they follow from the rest.

        Returns:
            JSON-ready data.
        """
        facts = {
            "series": [one.name for one in self.series],
            "every": self.periods.every,
            "first": self.periods.names[0],
            "steps": self.periods.count,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "strategy": self.strategy,
            "noise": self.kind,
            "parameter": self.parameter,
            "rows_of_a_unit": self.rows,
            "neighbours": self.neighbours,
            "append_only": self.append_only,
            "confidence": self.confidence,
        }
        if not errors:
            return facts
        return facts | {
            "periods": list(self.periods.names),
            "count_errors": self.count_errors.tolist(),
            "total_errors": self.total_errors.tolist(),
            "repeated_errors": self.repeated_errors.tolist(),
            "summed_errors": None if self.summed_errors is None else self.summed_errors.tolist(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        many = len(self.series)
        lines = [f"running series of {many:,} count{'s' * (many > 1)}, {self.periods}"]
        lines += [f"  {one.name}" for one in self.series[:_MOST_LISTED]]
        if many > _MOST_LISTED:
            lines.append(f"  and {many - _MOST_LISTED:,} more")
        lines.append(
            f"epsilon {self.epsilon:.6g} at delta {self.delta:g} for all steps together; "
            f"{'Gaussian' if self.kind == 'gaussian' else 'Laplace'} noise, {self.strategy}"
        )
        lines.append(f"error, {100 * self.confidence:g} times in 100 for each number:")
        some = sorted({0, min(11, self.periods.count - 1), self.periods.count - 1})
        lines += [
            f"  {self.periods.names[step]}  count {with_error(0, float(self.count_errors[step]))[2:]}, "
            f"total {with_error(0, float(self.total_errors[step]))[2:]}"
            for step in some
        ]
        lines.append(f"  separate releases at this price: {self._alternatives()}")
        lines += self._assumptions()
        for words in self.notes:
            lines += textwrap.wrap(f"note: {words}", 110, subsequent_indent="  ")
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])

    def _alternatives(self) -> str:
        words = f"of the total each time {with_error(0, float(self.repeated_errors[-1]))[2:]}"
        if self.summed_errors is None:
            return words
        return f"{words}; of each period's rows, added up, {with_error(0, float(self.summed_errors[-1]))[2:]}"

    def _assumptions(self) -> list[str]:
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        if self.append_only:
            return [
                f"a unit counts with at most {rows} in all steps together, as long as rows are only added to the table",
                "  and keep their unit and date; a row that comes after its period was answered counts in part",
            ]
        return [
            f"a unit counts with at most {rows} at each step, whatever is added, changed or removed in between;",
            "  with append_only=True, for tables to which rows are only added, errors are smaller",
        ]


def plan_running_series(
    series: Sequence[Series],
    periods: Periods,
    *,
    epsilon: float,
    delta: float = 0.0,
    rows: int = 1,
    neighbours: str = ADD_REMOVE,
    append_only: bool = False,
    confidence: float = 0.95,
) -> RunningSeriesPlan:
    """The running series whose worst total has the least error, at a price of at most (epsilon, delta).

    Args:
        series: The counts, one for each cell; a row lies in one of them at most.
        periods: The periods, one step for each.
        epsilon: The epsilon of all steps together, > 0.
        delta: Their delta; with it, Gaussian noise is tried too.
        rows: The most rows of one unit (or group) that are counted.
        neighbours: "add-remove" or "replace" one unit.
        append_only: States that rows are only added to the table, and keep their unit and date.
        confidence: The probability with which each error holds.

    Returns:
        The plan.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> year = Periods.of("month", "2026-01", 12)
    >>> plan = plan_running_series([Series("all", "all")], year, epsilon=1.0, append_only=True)
    >>> plan.kind, plan.strategy, float(plan.total_errors[-1])
    ('laplace', 'tree of 13', 9.0)
    """
    reach, level = checked_count(rows, "rows"), checked_real(confidence, "confidence")
    if not reach >= 1:
        raise InvalidValue("rows", rows, "must be at least 1")
    if neighbours not in NEIGHBOURS:
        raise InvalidValue("neighbours", neighbours, f"must be one of {', '.join(NEIGHBOURS)}")
    if not isinstance(append_only, bool):
        raise InvalidValue("append_only", append_only, "must be True or False")
    if not 0 < level < 1:
        raise InvalidValue("confidence", confidence, "must be above 0 and below 1", "0.95 for 95 in 100")
    if not 1 <= len(series) * periods.count <= MOST_NUMBERS:
        rule = f"must be from 1 to {MOST_NUMBERS:,}, one for each series and step"
        raise InvalidValue("numbers", len(series) * periods.count, rule, "use fewer cells or steps")
    whole, leak = checked_epsilon(epsilon), checked_delta(delta)
    if not whole > 0:
        raise InvalidValue("epsilon", epsilon, "must be > 0", "with nothing to spend nothing can be released")
    plan = RunningSeriesPlan(
        tuple(series), periods, whole, leak, TOTALS, "laplace", whole, reach, neighbours, append_only, level
    )
    if not append_only:  # no other has less error: the last total has to be measured by itself
        return plan._least(TOTALS, TOTALS)
    return plan._least(f"tree of {branching_of(periods.count)}", SQUARE_ROOT)


def root_up(square: int) -> float:
    """The square root of a whole number as a double, rounded up.

    >>> root_up(9), root_up(2) ** 2 >= 2
    (3.0, True)
    """
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root

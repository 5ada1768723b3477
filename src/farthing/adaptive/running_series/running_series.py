"""A running series: counts and running totals, period by period, from a table that grows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.running_series.series_plan import Floats, RunningSeriesPlan
from farthing.adaptive.session_journal import Journal, Record
from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.mechanisms.additive import with_noise
from farthing.mechanisms.mechanism import SATURATION
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.samplers import discrete_gaussian_noise, discrete_laplace_noise

Integers = NDArray[np.int64]
Read = Callable[..., Integers]


@dataclass(frozen=True)
class SeriesStep:
    """What one step of a running series released.

    Attributes:
        period: The name of the period, such as "2026-03".
        count: The rows of the period itself, one number for each series.
        total: The rows of all periods so far.

    >>> from farthing.inference import ErrorDistribution, Term
    >>> noise = ErrorDistribution([Term("normal", 3.0)])
    >>> step = SeriesStep("2026-03", Answer.around("count", 9, noise), Answer.around("total", 40, noise))
    >>> print(step.period, step.total)
    2026-03 40 ± 5.9 (95%)
    """

    period: str
    count: Answer
    total: Answer


class RunningSeries:
    """Counts of a table that grows, released period by period; `update()` answers every period that is over.

    Made by `Study.series`. Its price is charged when it is opened. Each step measures whole numbers with fresh noise,
    records them, and only then shows what follows from them and from those before: no noise and no count is kept. A
    step that has a record keeps it, whoever asks again and whatever the table holds by then.

    Args:
        plan: The periods, the strategy and the noise.
        read: Counts the rows of the first n periods, one row for each series; called with `table` and `periods`.
        journal: Keeps the steps.

    >>> from farthing.adaptive.monitor.count_series import Series
    >>> from farthing.adaptive.running_series import plan_running_series
    >>> from farthing.adaptive.session_journal import MemoryJournal
    >>> from farthing.privacy.periods import Periods
    >>> year = Periods.of("month", "2025-01", 12)
    >>> plan = plan_running_series([Series("all", "all")], year, epsilon=1.0, append_only=True)
    >>> months = np.array([[900, 1100, 1000, 950, 870, 990, 1020, 1080, 940, 960, 1010, 930]])
    >>> series = RunningSeries(plan, lambda table, periods: months[:, :periods], MemoryJournal())
    >>> [step.period for step in series.update(until="2025-02")]
    ['2025-01', '2025-02']
    >>> len(series.update()), series.next, abs(series.steps[-1].total.values - 11_750) < 100
    (10, None, True)
    """

    _source: Source = SYSTEM

    def __init__(self, plan: RunningSeriesPlan, read: Read, journal: Journal) -> None:
        self.plan = plan
        self._read = read
        self._journal = journal
        self._lock = threading.Lock()
        journal.opening(dict)

    @property
    def steps(self) -> tuple[SeriesStep, ...]:
        """Every step that was released, by whichever process of this session, the first period first."""
        measured = self._measured()
        done = self._done(measured)
        return tuple(self._step(place, measured) for place in range(done))

    @property
    def next(self) -> str | None:
        """The first period that was not released yet; None after the last."""
        done = self._done(self._measured())
        return self.plan.periods.names[done] if done < self.plan.periods.count else None

    def update(self, table: Any = None, *, until: str | date | None = None) -> tuple[SeriesStep, ...]:
        """Release every period that is over and was not released yet.

        Called again, it does nothing until the next period is over (at midnight UTC). What is in the table after a
        period was released does not change what was released.

        Args:
            table: The dataset as it is now, where it is not the source itself that grows.
            until: The last period to release, by default the last that is over.

        Returns:
            The new steps.

        Raises:
            InvalidValue: If `until` is none of the periods, or is not over yet.
        """
        periods = self.plan.periods
        over = periods.over_by(_today())
        last = over if until is None else periods.place(until) + 1
        if last > over:
            end = periods.edges[last].isoformat()
            rule = f"is not over before {end}: rows that come until then would not be counted"
            raise InvalidValue("until", str(until), rule, "leave it out to release what is over")
        with self._lock:
            done = self._done(self._measured())
            if not last > done:
                return ()
            counts = np.asarray(self._read(table=table, periods=last), dtype=np.int64)
            assert counts.shape == (len(self.plan.series), last)
            for place in range(done, last):
                self._journal.record_once(place + 1, lambda place=place: self._draw(place, counts))  # type: ignore[misc]
        return self.steps[done:last]

    def sum(self, first: str | date, last: str | date) -> Answer:
        """The rows of some periods in a row, from what was released; it costs nothing.

        Args:
            first: The first of them, such as "2026-04".
            last: The last, which must have been released.

        Returns:
            One number for each series, with its error.

        Raises:
            InvalidValue: If the last was not released yet, or comes before the first.
        """
        begin, end = self.plan.periods.place(first), self.plan.periods.place(last)
        measured = self._measured()
        if not begin <= end < self._done(measured):
            raise InvalidValue("last", str(last), "must be a period that was released, and not before the first")
        weights = self.plan.stream.totals[end] - (self.plan.stream.totals[begin - 1] if begin else 0)
        return self._answer(f"{first} to {last}", np.asarray(weights), measured)

    def _draw(self, place: int, counts: Integers) -> Record:
        """The private step: the rows that are measured at it, for every series, each with fresh noise."""
        plan, stream = self.plan, self.plan.stream
        rows = stream.matrix[stream.at == place, : place + 1]
        # Clamped so that no sum overflows, which moves no two neighbours further apart.
        most = SATURATION // int(stream.matrix.sum(axis=1).max())
        exact = np.clip(counts[:, : place + 1], 0, most) @ rows.T
        if plan.kind == "laplace":
            noise = discrete_laplace_noise(plan.width, exact.size, self._source)
        else:
            noise = discrete_gaussian_noise(plan.width**2, exact.size, self._source)
        return {"measured": with_noise(exact, noise.reshape(exact.shape)).tolist()}

    def _measured(self) -> dict[int, Any]:
        return {number - 1: record["measured"] for number, record in self._journal.history()}

    def _done(self, measured: dict[int, Any]) -> int:
        """How many steps are recorded without a gap."""
        return next(place for place in range(len(measured) + 1) if place not in measured)

    def _step(self, place: int, measured: dict[int, Any]) -> SeriesStep:
        stream, period = self.plan.stream, self.plan.periods.names[place]
        name = self.plan.series[0].statistic
        return SeriesStep(
            period,
            self._answer(f"{name}, {period}", stream.counts[place], measured),
            self._answer(f"{name}, until {period}", stream.totals[place], measured),
        )

    def _answer(self, name: str, weights: Floats, measured: dict[int, Any]) -> Answer:
        """A weighted sum of what was measured, with the exact distribution of its error."""
        used = np.flatnonzero(weights)
        places = sorted(set(self.plan.stream.at[used].tolist()))
        rows = np.flatnonzero(np.isin(self.plan.stream.at, places))
        numbers = np.concatenate([np.array(measured[place], dtype=float) for place in places], axis=1)
        values = numbers @ weights[rows]
        labels = tuple(
            ", ".join(map(str, one.labels)) if len(one.labels) > 1 else one.labels[0]
            for one in self.plan.series
            if one.labels
        )
        distribution = self.plan.distribution(weights)
        single_or_all = values if labels else float(values[0])
        return Answer.around(name, single_or_all, distribution, labels, confidence=self.plan.confidence)

    def __repr__(self) -> str:
        return f"RunningSeries({self.plan.periods}, next {self.next})"


def _today() -> date:
    return datetime.now(UTC).date()

"""The plan of a synthesis: public facts in, prices out, before anything is spent."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.synthesis.layered_model import OneWay, SyntheticModel, fitted, one_way
from farthing.adaptive.synthesis.select_measure_fit import Growth, Loop, PrivateRows, Schedule
from farthing.adaptive.synthesis.synthesis_prices import MOST_CELLS, SHARES, Prices, prices_within
from farthing.adaptive.synthesis.synthesis_transcript import Transcript, Whole, rounds_of
from farthing.adaptive.synthesis.value_groups import Known, known_columns, known_of_groups
from farthing.data import Dataset, Sensitivity
from farthing.data.coded_rows import CodedAxis, coded_rows, sensitivity_of_coded_rows
from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.privacy import Event
from farthing.privacy.events import checked_count

MOST_COLUMNS = 400
GROUPS = 16
LARGEST_MODEL = 2**16
_MOST_CHOICES, _MOST_FITS = 64, 24
_FOR_COLUMNS, _FOR_ROUNDS = 0.30, 0.35  # parts of the shares; the rest goes where it helps most in the end


@dataclass(frozen=True)
class SynthesisPlan:
    """What a synthesis will do and cost: made of public facts, printed before anything is spent.

    Attributes:
        sizes: How many values each column has.
        names: The columns.
        epsilon: The epsilon of the whole synthesis.
        delta: Its delta.
        prices: What every noise and every choice costs.
        schedule: How many of them there are.
        known: Tables of earlier releases, which cost nothing.

    >>> plan = synthesis_plan((85, 9, 16, 2), epsilon=1.0, delta=1e-9)
    >>> print(plan)
    synthesis of 4 columns, 24,480 cells, for epsilon=1, delta=1e-09
      columns alone, noise of 13 to 47 rows in a cell
      7 choices of epsilon=0.034 among tables of 2 or 3 columns, each measured with a noise of 26 rows in a cell
      the rest of the budget measures the same tables again, where that helps most
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...]
    epsilon: float
    delta: float
    prices: Prices
    schedule: Schedule
    known: tuple[KnownTable, ...] = field(default=(), repr=False)

    @property
    def event(self) -> Event:
        """What the synthesis costs: the event of its prices."""
        return self.prices.event

    @cached_property
    def digest(self) -> str:
        """A fingerprint of all of it."""
        facts: list[Any] = [self.sizes, self.names, self.epsilon.hex(), self.delta.hex(), repr(self.prices)]
        facts += [repr(self.schedule)]
        for table in self.known:
            groups = [part.tolist() for part in table.groups]
            facts.append([table.columns, table.values.tolist(), table.standard_error, groups])
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def draw(
        self,
        codes: ArrayLike,
        counts: ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
        source: Source = SYSTEM,
    ) -> dict[str, Whole]:
        """Noisy whole numbers by name, from private rows: charge `event` first, each call is another release.

        Args:
            codes: A row of codes for each private row, or for each distinct one with its `counts`.
            counts: How often each row occurs; once by default.
            progress: Called with the share that is done.
            source: Where random bits come from.

        Returns:
            Noisy whole numbers by name.

        Raises:
            InvalidData: If a code is not one of its column's values.
        """
        rows = _checked_rows(codes, counts, self.sizes)
        loop = Loop(self.prices, self.schedule, rows, source, self.alone, self._known_of)
        return loop.run(self.sizes, progress or (lambda share: None)).written()

    def fitted(self, answers: Mapping[str, Any]) -> SyntheticModel:
        """The model that the drawn numbers stand for: post-processing, the same every time.

        Args:
            answers: What `draw` returned.

        Returns:
            The model.
        """
        transcript = Transcript.read(answers)
        return fitted(transcript, self.prices.standard_error, self._known_of(transcript))

    def model(self, codes: ArrayLike, counts: ArrayLike | None = None) -> SyntheticModel:
        """`draw` and `fitted` in one: charge `event` first.

        Args:
            codes: A row of codes for each private row, or for each distinct one with its `counts`.
            counts: How often each row occurs; once by default.

        Returns:
            The model.

        Raises:
            InvalidData: If a code is not one of its column's values.
        """
        return self.fitted(self.draw(codes, counts))

    def rounds(self, answers: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What each round chose, and how wrong the model was there before: for people and plots.

        Args:
            answers: What `draw` returned.

        Returns:
            One mapping for each round, of noisy numbers only.
        """
        transcript = Transcript.read(answers)
        total = self.alone(transcript).total
        return rounds_of(transcript, self.names, self.prices.standard_error, total)

    def __str__(self) -> str:
        cells, prices = math.prod(self.sizes), self.prices
        shares = [shares for shares in self.schedule.columns if shares]
        least, most = prices.standard_error(max(shares)), prices.standard_error(min(shares))
        size = f"{cells:,}" if cells < 10**7 else f"about 10^{math.log10(cells):.0f}"
        lines = [
            f"synthesis of {len(self.sizes)} columns, {size} cells, for epsilon={self.epsilon:.3g}, "
            f"delta={self.delta:.3g}",
            f"columns alone, noise of {_rows(least)} to {_rows(most)} rows in a cell",
        ]
        if prices.choices:
            noise = prices.standard_error(self.schedule.each)
            choices = "1 choice" if prices.choices == 1 else f"{prices.choices} choices"
            lines.append(
                f"{choices} of epsilon={prices.choice_epsilon:.2g} among tables of 2 or 3 columns, "
                f"each measured with a noise of {_rows(noise)} rows in a cell"
            )
            lines.append("the rest of the budget measures the same tables again, where that helps most")
        if self.known:
            left = len(self.known) - len(self._joined)
            apart = f"; {left} of them do not fit, and only their single columns are used" if left else ""
            lines.append(f"{len(self.known)} tables of earlier releases, free of charge{apart}")
        return "\n  ".join(lines)

    def alone(self, transcript: Transcript) -> OneWay:
        """The columns one by one, as they were measured and known.

        Args:
            transcript: The drawn numbers, read back.

        Returns:
            The counts of every column, and their total.
        """
        return one_way(self.sizes, transcript.tables, self.prices.standard_error, self._known_columns)

    @cached_property
    def _known_columns(self) -> Known:
        return known_columns(self.known, self.names)

    @cached_property
    def _joined(self) -> tuple[KnownTable, ...]:
        """The known tables that one model has room for, small ones first; of others only columns alone are used.

        They take half of the room at most: tables of all pairs would need a model of all columns at once.
        """
        sizes = [min(size, self.schedule.groups) for size in self.sizes]
        growth = Growth(sizes, [], self.schedule.largest_model // 2)
        tables = []
        for table in sorted(self.known, key=lambda table: table.values.size):
            columns = [self.names.index(name) for name in table.columns]
            if growth.has_room_for(columns):
                growth.add(columns)
                tables.append(table)
        return tuple(tables)

    def _known_of(self, transcript: Transcript) -> Known:
        counts = self.alone(transcript).counts
        return replace(
            self._known_columns, measured=known_of_groups(self._joined, self.names, transcript.groups, counts)
        )


def synthesis_plan(
    sizes: Sequence[int],
    epsilon: float,
    delta: float = 0.0,
    *,
    names: Sequence[str] | None = None,
    sensitivity: Sensitivity | None = None,
    known: Sequence[KnownTable] = (),
) -> SynthesisPlan:
    """A plan for columns with these numbers of values that costs at most (epsilon, delta), proven.

    Args:
        sizes: How many values each column has.
        epsilon: The epsilon of the whole synthesis.
        delta: Its delta.
        names: The columns; numbered by default.
        sensitivity: How far neighbours move the counts of whole rows; by default, by one row.
        known: Tables of earlier releases, which cost nothing.

    Returns:
        The plan.

    Raises:
        InvalidValue: If an argument is out of its range, or a known table does not fit the columns.

    >>> synthesis_plan((2, 3), epsilon=1.0).prices.choices
    1
    """
    lengths = tuple(checked_count(size, "sizes") for size in sizes)
    if not 1 <= len(lengths) <= MOST_COLUMNS:
        raise InvalidValue("columns", len(lengths), f"must be 1 to {MOST_COLUMNS}", "choose fewer of them")
    if not all(1 <= size <= MOST_CELLS for size in lengths):
        raise InvalidValue("sizes", sizes, f"must be numbers from 1 to {MOST_CELLS}")
    titles = tuple(f"column {place}" for place in range(len(lengths))) if names is None else tuple(names)
    if len(titles) != len(lengths) or len(set(titles)) != len(titles):
        raise InvalidValue("names", titles, "must be different, one for each column")
    for table in known:
        if not set(table.columns) <= set(titles):
            raise InvalidValue("known", table.columns, "must be tables of the columns", ", ".join(titles))
        if [len(part) for part in table.groups] != [lengths[titles.index(name)] for name in table.columns]:
            raise InvalidValue("known", table.columns, "must place every value of its columns")
    useful = sum(size > 1 for size in lengths)
    sets = math.comb(useful, 2) + math.comb(useful, 3)
    wanted = min(_MOST_CHOICES, math.ceil(1.7 * useful), sets)
    picks = max(1, math.ceil(wanted / _MOST_FITS))
    rounds = math.ceil(wanted / picks)
    counted = sensitivity or Sensitivity(1, 1, 1, 1)
    tables = 2 * (len(lengths) + rounds * picks)
    prices = prices_within(epsilon, delta, rounds * picks, tables, counted)
    schedule = Schedule(
        columns=_shares_of_columns(lengths, prices),
        rounds=rounds,
        picks=picks,
        each=int(_FOR_ROUNDS * SHARES / (rounds * picks)) if rounds else 0,
        groups=GROUPS,
        largest_model=LARGEST_MODEL,
    )
    return SynthesisPlan(lengths, titles, float(epsilon), float(delta), prices, schedule, tuple(known))


def _rows(number: float) -> str:
    """A number of rows for people.

    >>> _rows(171.3), _rows(70_660.2), _rows(4.23)
    ('171', '70,660', '4.2')
    """
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.2g}"


def _shares_of_columns(sizes: tuple[int, ...], prices: Prices) -> tuple[int, ...]:
    """A column of one value needs none, unless there is no other."""
    fair = np.array([prices.fair_shares(size) if size > 1 else 0.0 for size in sizes])
    if not fair.any():
        fair[0] = 1.0
    whole = SHARES * (_FOR_COLUMNS if prices.choices else 1.0)
    shares = np.floor(fair / fair.sum() * whole).astype(int)
    return tuple(int(share) if weight == 0 else max(int(share), 1) for share, weight in zip(shares, fair, strict=True))


def _checked_rows(codes: ArrayLike, counts: ArrayLike | None, sizes: tuple[int, ...]) -> PrivateRows:
    rows = np.asarray(codes)
    if rows.ndim != 2 or rows.shape[1] != len(sizes) or rows.dtype.kind not in "iu":
        raise InvalidData("codes", f"must be whole numbers, {len(sizes)} for each row")
    weights = np.ones(len(rows), dtype=np.int64) if counts is None else np.asarray(counts)
    if weights.shape != (len(rows),) or weights.dtype.kind not in "iu" or not np.all(weights >= 0):
        raise InvalidData("counts", "must be whole numbers >= 0, one for each row")
    if not np.all((rows >= 0) & (rows < np.array(sizes))):
        raise InvalidData("codes", "must be at least 0 and below the number of values of their columns")
    return PrivateRows(rows, weights.astype(np.int64), sizes)


_READING = 0.2  # of the progress


@dataclass(frozen=True)
class Synthesise:
    """The rows of a dataset, coded by `axes`, through the mechanisms of `plan`.

    The drawn numbers that a curator records are enough to make the model again: `plan.fitted(answers)`.

    Args:
        plan: What is drawn, and at which price.
        axes: The columns, and how their values are coded.

    Raises:
        InvalidValue: If the axes have other sizes than the plan.

    >>> import pyarrow
    >>> from farthing.adaptive.synthesis import synthesis_plan
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_rows import coded_axes
    >>> table = pyarrow.table({"sex": ["F", "M"] * 50, "smokes": [True, False] * 50})
    >>> people = dataset(table, schema={"sex": ["F", "M"], "smokes": bool})
    >>> axes = coded_axes(people.schema, missing=False)
    >>> question = Synthesise(synthesis_plan([len(axis) for axis in axes], 1.0, names=["sex", "smokes"]), axes)
    >>> question.check(people)
    >>> question.plan.fitted(question.run(people, lambda share: None)).sizes
    (2, 2)
    """

    plan: SynthesisPlan
    axes: tuple[CodedAxis, ...]

    def __post_init__(self) -> None:
        if self.plan.sizes != tuple(len(axis) for axis in self.axes):
            raise InvalidValue("axes", [len(axis) for axis in self.axes], f"must have the sizes {self.plan.sizes}")

    @property
    def event(self) -> Event:
        return self.plan.event

    @property
    def digest(self) -> str:
        """A fingerprint of the plan and the axes."""
        return hashlib.sha256(f"{self.plan.digest} {self.axes!r}".encode()).hexdigest()

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset whose neighbours are further apart than the noise was made for.

        Args:
            dataset: The table.

        Raises:
            InvalidValue: If they are.
        """
        sensitivity, planned = sensitivity_of_coded_rows(dataset, self.axes), self.plan.prices.sensitivity
        if not (planned.l1 >= sensitivity.l1 and planned.l2_squared >= sensitivity.l2_squared):
            raise InvalidValue(
                "sensitivity",
                planned,
                f"must be at least {sensitivity} for this dataset",
                "make the plan for the dataset that it is run on",
            )

    def run(self, dataset: Dataset, progress: Callable[[float], None]) -> Mapping[str, Any]:
        """One pass over the rows, then all choices and noises.

        Args:
            dataset: The table.
            progress: Called with the share that is done.

        Returns:
            The drawn numbers by name.
        """
        codes, counts = coded_rows(dataset, self.axes, lambda share: progress(_READING * share))
        return self.plan.draw(codes, counts, progress=lambda share: progress(_READING + (1 - _READING) * share))

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """How each round went, from the drawn numbers alone.

        Args:
            answers: What `run` returned.

        Returns:
            The rounds, for people and plots.
        """
        return {"rounds": self.plan.rounds(answers)}

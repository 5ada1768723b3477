"""A synthesis that is checked by its own rows: how far the synthetic table is from the private one, with noise.

The distance of two tables of counts moves by no more than the counts do. So one more release, of one whole number for
each column and each pair of columns, says how good the synthetic table is there, and takes a small part of the budget.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.accounting import calibrate, compose
from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.synthesis import Synthesise, SynthesisPlan, SyntheticModel, synthesis_plan
from farthing.adaptive.synthesis.synthesis_transcript import Transcript
from farthing.data import Dataset, Sensitivity
from farthing.data.coded_rows import CodedAxis, coded_rows
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.privacy import Composed, Event, GaussianNoise
from farthing.privacy.events import checked_epsilon
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.ranges.strategy_codec import restored_axis, stored_axis

Codes = NDArray[np.int64]
Columns = tuple[int, ...]

MOST_SETS = 300
"""More columns and pairs than this are not checked one by one."""

MOST_VALUES = 2**28
"""No table is made of more rows times columns than this: two gibibytes, several times over."""

_PART, _PURE_PART, _LARGEST_PART = 0.02, 0.05, 0.05  # of the budget
_FEW_SETS = 120  # more of them than this need more than the least part
_SMALLEST_DELTA = 1e-18  # below it the noise is pure, as that of the synthesis
_READING, _DRAWING = 0.1, 0.85  # of the progress
_CLEARLY = 5.0  # standard errors that missing values must stand out by, or they are taken for noise
_DENSE = 2**22


@dataclass(frozen=True)
class CheckedSynthesis:
    """A synthesis, and the check of its table, as one question for the curator.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_rows import coded_axes
    >>> table = pyarrow.table({"sex": ["F", "M"] * 500, "smokes": [True, False] * 500})
    >>> people = dataset(table, schema={"sex": ["F", "M"], "smokes": bool})
    >>> question = checked_synthesis(coded_axes(people.schema), Sensitivity(1, 1, 1, 1), epsilon=20.0)
    >>> question.check(people)
    >>> answers = question.run(people, lambda share: None)
    >>> question.sets(answers), answers["distances"].shape
    ([(0,), (1,), (0, 1)], (3,))
    """

    synthesis: Synthesise
    noise: DiscreteGaussian | DiscreteLaplace
    epsilon: float
    delta: float

    @property
    def plan(self) -> SynthesisPlan:
        """The plan of the synthesis that is checked."""
        return self.synthesis.plan

    @property
    def axes(self) -> tuple[CodedAxis, ...]:
        """The cells of every column."""
        return self.synthesis.axes

    @cached_property
    def event(self) -> Event:
        """Both as one event.

        Statement:
            Let T be a table of whole counts over some columns, fixed before, and d(x) = sum |x - T| over its cells,
            where x are the counts of the private rows. If neighbours move the counts of whole rows by at most s in l1,
            they move d by at most s, and k such distances by at most s sqrt(k) in l2 and s k in l1. Noise of that
            sensitivity, composed with the synthesis that made T, is the price of both.
        Source: triangle inequality; adding up cells moves counts no further apart. T is made of earlier answers, so
            this is adaptive composition of two mechanisms whose prices were fixed in advance.
        Assumes: `k` and the noise do not depend on answers; which columns are checked may.
        Direction: upper bounds; the sensitivities are rounded up.
        Checked by: tests/theorems/test_checked_synthesis.py
        """
        return Composed(((self.synthesis.event, 1), (self.noise.event, 1)))

    @cached_property
    def cost(self) -> float:
        """The epsilon of both at delta, proven."""
        return float(compose([self.event]).epsilon_at(self.delta).upper)

    @property
    def digest(self) -> str:
        """A fingerprint of the synthesis and its check."""
        return hashlib.sha256(f"{self.synthesis.digest} {self.noise!r}".encode()).hexdigest()

    def check(self, dataset: Dataset) -> None:
        """The noise was made for neighbours at least as far apart as those of this dataset."""
        self.synthesis.check(dataset)

    def run(self, dataset: Dataset, progress: Callable[[float], None]) -> Mapping[str, Any]:
        """One pass over the rows, the synthesis, and the noisy distances of its table."""
        codes, counts = coded_rows(dataset, self.axes, lambda share: progress(_READING * share))
        answers = self.plan.draw(codes, counts, progress=lambda share: progress(_READING + _DRAWING * share))
        synthetic = self.codes(answers)
        exact = distances(codes, counts, synthetic, self.sets(answers), self.plan.sizes)
        progress(1.0)
        noisy = np.atleast_1d(np.asarray(self.noise.release(exact if len(exact) > 1 else int(exact[0]))))
        return {**answers, "distances": noisy.astype(np.int64)}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """How each round of the synthesis went, and what it takes to read the numbers again."""
        return {**self.synthesis.finish(drawn(answers)), "question": self.stored()}

    def stored(self) -> dict[str, Any]:
        """Everything that it was made of, as JSON-ready data."""
        sensitivity = self.plan.prices.sensitivity
        return {
            "axes": [
                {**stored_axis(CellAxis(axis.column, axis.domain, axis.edges)), "missing": axis.missing}
                for axis in self.axes
            ],
            "sensitivity": [sensitivity.l0, sensitivity.l1, sensitivity.l2_squared, sensitivity.linf],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "known": stored_known(self.plan.known),
        }

    def sets(self, answers: Mapping[str, Any]) -> list[Columns]:
        """The columns and pairs of columns that are checked; where there are too many, measured ones come first."""
        transcript = Transcript.read(drawn(answers))
        alone: list[Columns] = [(place,) for place in range(len(self.axes))]
        together = dict.fromkeys(pair for table in transcript.chosen for pair in combinations(sorted(table.columns), 2))
        pairs = {**together, **dict.fromkeys(combinations(range(len(self.axes)), 2))}
        if len(alone) + len(pairs) <= MOST_SETS:
            return [*alone, *combinations(range(len(self.axes)), 2)]
        return [*alone, *pairs][:MOST_SETS]

    @property
    def most_rows(self) -> int:
        """The largest number of rows that a table is made of."""
        return MOST_VALUES // len(self.axes)

    def rows(self, model: SyntheticModel) -> int:
        """As many rows as were measured, and no more than can be held: noise of a tiny budget may count any number."""
        return min(max(round(model.total), 0), self.most_rows)

    def codes(self, answers: Mapping[str, Any], count: int | None = None, model: SyntheticModel | None = None) -> Codes:
        """The synthetic rows that the drawn numbers stand for, always the same; `count` of them.

        Missing values that the noise alone may have brought into a column are replaced by other values of the column.
        """
        recorded = drawn(answers)
        random = np.random.default_rng(seed_of(recorded))
        whole = self.plan.fitted(recorded) if model is None else model
        codes = whole.rows(self.rows(whole) if count is None else count, random)
        alone = self.plan.alone(Transcript.read(recorded))
        for place, axis in enumerate(self.axes):
            if axis.missing and alone.counts[place][-1] < _CLEARLY * alone.deviations[place]:
                _fill(codes[:, place], axis.present, alone.counts[place], random)
        return codes


def checked_synthesis(
    axes: Sequence[CodedAxis],
    sensitivity: Sensitivity,
    epsilon: float,
    delta: float = 0.0,
    known: Sequence[KnownTable] = (),
) -> CheckedSynthesis:
    """A synthesis with its check for at most (epsilon, delta), proven: a small part of it pays for the check."""
    budget, names = checked_epsilon(epsilon), [axis.column for axis in axes]
    count = min(len(names) + math.comb(len(names), 2), MOST_SETS)
    part = min(_PART * max(1.0, count / _FEW_SETS), _LARGEST_PART)
    pure = delta < _SMALLEST_DELTA
    noise: DiscreteGaussian | DiscreteLaplace
    if pure:
        noise = DiscreteLaplace(_PURE_PART * budget, sensitivity.l1 * count, cells=count)
        rest = (1 - _PURE_PART) * budget
    else:
        whole = calibrate(lambda multiplier: [GaussianNoise(multiplier)], budget, delta).parameter
        reach = math.nextafter(sensitivity.l1 * math.sqrt(count), math.inf) if count > 1 else sensitivity.l1
        noise = DiscreteGaussian(max(whole / math.sqrt(part), 4.0), reach, cells=count)
        left = whole / math.sqrt(1 - part)  # the multiplier of a Gaussian that costs what is left
        rest = compose([GaussianNoise(left)]).epsilon_at(delta).upper
    while True:
        plan = synthesis_plan(
            [len(axis) for axis in axes], rest, delta, names=names, sensitivity=sensitivity, known=known
        )
        synthesis = CheckedSynthesis(Synthesise(plan, tuple(axes)), noise, budget, float(delta))
        if synthesis.cost <= budget:
            return synthesis
        rest *= 0.999


def stored_known(tables: Sequence[KnownTable]) -> list[list[Any]]:
    """Known tables as JSON-ready data.

    >>> stored_known([KnownTable(("sex",), [510.0, 490.0], 3.0)])
    [[['sex'], [510.0, 490.0], 3.0, [[0, 1]]]]
    """
    return [
        [
            list(table.columns),
            table.values.tolist(),
            table.standard_error,
            [part.tolist() for part in table.groups],
        ]
        for table in tables
    ]


def restored_synthesis(form: Mapping[str, Any]) -> CheckedSynthesis:
    """The question of `CheckedSynthesis.stored`: with it, recorded numbers become the same rows again."""
    axes = []
    for one in form["axes"]:
        axis = restored_axis(one)
        axes.append(CodedAxis(axis.column, axis.domain, axis.edges, one["missing"]))
    known = [
        KnownTable(tuple(columns), np.array(values), error, tuple(map(np.array, groups)))
        for columns, values, error, groups in form["known"]
    ]
    return checked_synthesis(axes, Sensitivity(*form["sensitivity"]), form["epsilon"], form["delta"], known)


def drawn(answers: Mapping[str, Any]) -> dict[str, Any]:
    """What the synthesis drew, without the distances."""
    return {name: value for name, value in answers.items() if name != "distances"}


def seed_of(answers: Mapping[str, Any]) -> int:
    """A seed made of recorded numbers: they are public, so the rows that follow from it are post-processing.

    >>> seed_of({"a": np.array([1, 2])}) == seed_of({"a": [1, 2]}) != seed_of({"a": [2, 1]})
    True
    """
    whole = hashlib.sha256()
    for name in sorted(answers):
        numbers = np.asarray(answers[name], dtype=np.int64)
        whole.update(f"{name} {numbers.shape}".encode() + numbers.astype("<i8").tobytes())
    return int.from_bytes(whole.digest()[:16], "little")


def distances(
    codes: NDArray[np.integer[Any]],
    counts: NDArray[np.int64],
    synthetic: Codes,
    sets: Sequence[Columns],
    sizes: Sequence[int],
) -> NDArray[np.int64]:
    """For each set of columns, the sum of |private count - synthetic count| over all of its cells.

    >>> distances(np.array([[0], [1]]), np.array([5, 2]), np.array([[0], [0], [0]]), [(0,)], [2])
    array([4])
    """
    return np.array([_distance(codes, counts, synthetic, columns, sizes) for columns in sets], dtype=np.int64)


def _distance(codes: Any, counts: Any, synthetic: Codes, columns: Columns, sizes: Sequence[int]) -> int:
    cells = [np.zeros(len(part), dtype=np.int64) for part in (codes, synthetic)]
    for column in columns:
        cells = [cell * sizes[column] + part[:, column] for cell, part in zip(cells, (codes, synthetic), strict=True)]
    size = math.prod(sizes[column] for column in columns)
    if size > _DENSE:  # only cells that one of the two has can differ
        _, places = np.unique(np.concatenate(cells), return_inverse=True)
        cells, size = np.split(places, [len(codes)]), int(places.max(initial=-1)) + 1
    difference = np.zeros(size, dtype=np.int64)
    np.add.at(difference, cells[0], counts)
    np.subtract.at(difference, cells[1], 1)
    return int(np.abs(difference).sum())


def _fill(codes: Codes, missing: int, counts: NDArray[np.float64], random: np.random.Generator) -> None:
    """Replace missing values, in place, by values as frequent as they are in the column."""
    absent = codes == missing
    present = np.maximum(counts[:missing], 0.0)
    shares = present / present.sum() if present.sum() > 0 else np.full(missing, 1 / missing)
    codes[absent] = random.choice(missing, size=int(absent.sum()), p=shares)

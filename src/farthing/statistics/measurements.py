"""Measurements: a design whose noises are chosen. What a curator charges for and runs, in one pass.

A slot: one private measurement of a design, whose noise is chosen later by the planner.

An output: one statistic as a function of what is measured, with its error before and after.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from farthing.accounting import compose
from farthing.data import Dataset, Schema
from farthing.data.aggregates.aggregate import Aggregate
from farthing.data.expressions import read
from farthing.data.stability import Sensitivity
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorDistribution
from farthing.inference.linked_counts import Covariance
from farthing.inference.noisy_numbers import CellNoise
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.additive import vector_event
from farthing.mechanisms.mechanism import Mechanism
from farthing.mechanisms.noise_distributions import NoiseDistribution
from farthing.mechanisms.quantile_surroundings import CHOICE_SHARE, GROWTH, QuantileSurroundings
from farthing.mechanisms.quantiles import NeighboringRelation
from farthing.privacy import ApproxDP, Composed, Event, Sampled
from farthing.privacy.events import checked_delta, checked_real
from farthing.statistics.cells.common_cells import Partition
from farthing.statistics.public_facts import DerivedColumns
from farthing.statistics.statistic import Statistic, column_text, text_of

Kind = Literal["laplace", "gaussian", "exponential"]
KINDS: tuple[Kind, ...] = ("laplace", "gaussian", "exponential")


@dataclass(frozen=True, slots=True)
class Noise:
    """A kind of noise and its parameter.

    Args:
        kind: "laplace", "gaussian" or another of `KINDS`.
        parameter: Epsilon, or for the Gaussian sigma over the l2 sensitivity; finite and > 0.

    Raises:
        InvalidValue: If there is no such kind, or the parameter is out of range.

    >>> Noise("laplace", 0.5)
    Noise(kind='laplace', parameter=0.5)
    """

    kind: Kind
    parameter: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        number = checked_real(self.parameter, "parameter")
        if not 0 < number < math.inf:
            raise InvalidValue("parameter", self.parameter, "must be a finite number > 0")
        object.__setattr__(self, "parameter", number)


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

WIDE_SIGMA = 30.0
"""From so many steps on, Gaussian noise on one number is priced by continuous noise."""


@dataclass(frozen=True, eq=False)
class RowCounts:
    """How the numbers of a slot count all rows: `cells` is the cell of `partition` that every number belongs to, or -1.

    The numbers of one cell add up to the rows in it over `unit`, whatever the data. Slots that say so are linked with
    each other: sums that two partitions have in common are estimated from both. A slot that counts all rows in several
    ways, as marginals do by each of their columns, says so for each.
    """

    partition: Partition
    cells: Integers
    unit: float = 1.0


@dataclass(frozen=True)
class Slot:
    """A vector of whole numbers that an engine adds up, and how far one unit moves it.

    `step` is the size of one whole number in the units of the data. `merge` gives, for every cell of the aggregate,
    the cell of the slot it is added to before any noise (-1: left out); a row lies in one cell either way, so the
    sensitivity stays that of the aggregate.
    """

    name: str
    aggregate: Aggregate
    sensitivity: Sensitivity
    cells: int
    step: float = 1.0
    kinds: tuple[Kind, ...] = ("laplace", "gaussian")
    merge: tuple[int, ...] | None = None
    row_counts: tuple[RowCounts, ...] = field(default=(), compare=False, repr=False, kw_only=True)

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """What the engine adds up for it, by names that no other slot has."""
        return {self.name: self.aggregate}

    @property
    def counted(self) -> Sensitivity:
        """How far one unit moves each of its aggregates, before anything is made of them."""
        return self.sensitivity

    @property
    def facts(self) -> list[Any]:
        """Everything public about it that decides what is measured, for a fingerprint."""
        return [
            self.name,
            repr(self.aggregate),
            repr(self.sensitivity),
            self.cells,
            self.step,
            None if self.merge is None else list(self.merge),
        ]

    def covariance(self, kind: Kind) -> Covariance | None:
        """Of its `numbers` at noise of variance 1; None where they have independent noises."""
        return None

    def numbers(self, measured: Integers, kind: Kind) -> Floats:
        """The numbers that `row_counts` is about, from what was measured with this kind of noise."""
        return np.asarray(measured, dtype=np.float64).reshape(-1)

    def mixing(self, kind: Kind) -> Floats | None:
        """The weight of every measured number in each of its `numbers`; None where they are the same, or too many."""
        return None

    @property
    def numbers_count(self) -> int:
        """How many numbers `row_counts` is about."""
        return self.cells

    def concentration(self, functions: Floats, kind: Kind) -> float:
        """The largest share sum c^4 / (sum c^2)^2 that a single measured number has in linear functions of its numbers.

        The more there is in one number, the less the noise of a function is a sum of many; 1 is no help to anybody.
        """
        return 1.0

    def cells_text(self, noise: Noise) -> str:
        """How many numbers get the noise, in words."""
        return f"{self.cells:,} cell{'s' if self.cells > 1 else ''}"

    def mechanism(self, noise: Noise) -> Mechanism:
        """The mechanism that adds this noise to the slot's numbers."""
        self._check(noise)
        if noise.kind == "laplace":
            return DiscreteLaplace(noise.parameter, l1_sensitivity=self.sensitivity.l1, cells=self.cells)
        return DiscreteGaussian(noise.parameter, l2_sensitivity=self.sensitivity.l2, cells=self.cells)

    def event(self, noise: Noise) -> Event:
        """What the accountant prices.

        Where a unit moves one number only, wide Gaussian noise is priced as a vector's is, by continuous noise that
        dominates it: from a sigma of 30 steps on that costs a quarter of a percent or less, and the accountant answers
        in milliseconds, where exact lattices of many widths would take it minutes.
        """
        mechanism = self.mechanism(noise)
        if not (noise.kind == "gaussian" and self.moves_one_number and self.scale(noise) >= WIDE_SIGMA):
            return mechanism.event
        l2 = math.floor(self.sensitivity.l2)  # whole numbers move by whole steps
        return vector_event((Fraction(noise.parameter) * l2) ** 2, l2, 1)

    @property
    def moves_one_number(self) -> bool:
        """Whether a unit moves one of the slot's numbers only, in l2: whole vectors of norm 1 have one entry."""
        return self.cells == 1 or self.sensitivity.l2_squared == 1

    def distribution(self, noise: Noise) -> NoiseDistribution:
        """The exact distribution of the noise in one cell, in whole steps."""
        distribution: NoiseDistribution = self.mechanism(noise).distribution  # type: ignore[attr-defined]
        return distribution

    def scale(self, noise: Noise) -> float:
        """The scale t of exp(-|n| / t) for Laplace noise, sigma for Gaussian noise; in steps."""
        self._check(noise)
        if noise.kind == "laplace":
            return self.sensitivity.l1 / noise.parameter
        return self.sensitivity.l2 * noise.parameter

    def variance(self, noise: Noise) -> float:
        """The variance of the noise in one cell, in squared steps."""
        scale = self.scale(noise)
        if noise.kind == "laplace":
            return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > 1e-2 else 0.0
        # From sigma = 2 on the discrete Gaussian's variance is sigma^2 to 1e-30.
        return scale**2 if scale >= 2 else self.distribution(noise).variance

    def measure(self, exact: NDArray[Any], noise: Noise) -> Integers:
        """The slot's numbers with noise, drawn from the operating system's randomness."""
        released = self.mechanism(noise).release(self.merged(exact))
        return np.asarray(released).reshape(-1)

    def own(self, exact: Mapping[str, NDArray[Any]]) -> Any:
        """Its part of what the engine added up for everybody; private."""
        return exact[self.name]

    def merged(self, exact: NDArray[Any]) -> NDArray[Any]:
        """The aggregate's cells added up into those of the slot; still private."""
        flat = np.asarray(exact).reshape(-1)
        if self.merge is None:
            return flat
        places = np.asarray(self.merge)
        totals = np.zeros(self.cells, dtype=flat.dtype)
        inside = places >= 0
        np.add.at(totals, places[inside], flat[inside])
        return totals

    def _check(self, noise: Noise) -> None:
        if noise.kind not in self.kinds:
            raise InvalidValue("noise", noise.kind, f"must be {' or '.join(self.kinds)} for {self.name!r}")


__all__ = ["CHOICE_SHARE", "QuantileSlot"]


@dataclass(frozen=True)
class QuantileSlot(Slot):
    """Counts of rows at the points of a grid: points are chosen, and the rows around them counted with noise."""

    probabilities: tuple[float, ...] = (0.5,)
    points: int = 1
    groups: int = 1
    max_rows: int = 1
    neighbours: str = "add-remove"
    weights: tuple[int, ...] = ()  # of the levels that are chosen

    @property
    def facts(self) -> list[Any]:
        """Also how points are chosen and the rows around them counted: earlier versions did so in other ways."""
        return [*super().facts, "tree", list(self.weights), str(CHOICE_SHARE), str(GROWTH)]

    def mechanism(self, noise: Noise) -> QuantileSurroundings:
        """The choice among the points and the counts around it, with this epsilon for everything together."""
        self._check(noise)
        return QuantileSurroundings(
            self.probabilities,
            noise.parameter,
            self.points,
            self.groups,
            self.max_rows,
            cast(NeighboringRelation, self.neighbours),
            self.sensitivity.l1,
            self.weights,
        )

    def event(self, noise: Noise) -> Event:
        """One choice for each level of probabilities and one noise, however many groups there are."""
        return self.mechanism(noise).event

    def scale(self, noise: Noise) -> float:
        """There is none: the value of a quantile is chosen."""
        raise AssertionError(f"{self.name!r} is a choice, not a number with noise")

    def measure(self, exact: NDArray[Any], noise: Noise) -> Integers:
        """For each group and probability the number of a point of the grid, then the noisy counts around them."""
        return np.asarray(self.mechanism(noise).release(exact)).reshape(-1)


_TRIVIAL_DELTA = 0.1  # as for plans: an inner delta above this would promise next to nothing


def amplified(event: Event, sampling_rate: float, delta: float) -> Event:
    """The guarantee of `event` at (at most) `delta` for the population that the table is a secret sample of.

    It is that of the whole on one sample. Plain sums add up what that amounts to, (ln(1 + p (e^epsilon - 1)), p delta);
    a clock pays less for it than for any other mechanism of this epsilon, because losses fall less far than they rise.

    It holds once: everything that is ever computed on one sample is one mechanism, and only the whole is amplified. Two
    releases from the same sample cost more than the sum of what this says of each.

    >>> from farthing.privacy import Composed, LaplaceNoise
    >>> plan = Composed(((LaplaceNoise(2.0), 2),))
    >>> amplified(plan, 0.01, 0.0)
    Sampled(event=ApproxDP(epsilon=1.000000000000000..., delta=0.0), probability=0.01)
    """
    rate, whole = checked_rate(sampling_rate), checked_delta(delta)
    inner = min(whole / rate * (1 - 2.0**-50), _TRIVIAL_DELTA) if whole else 0.0
    return Sampled(ApproxDP(compose([event]).epsilon_at(inner).upper, inner), rate)


def checked_rate(sampling_rate: object) -> float:
    """The probability with which a unit came into the sample.

    >>> checked_rate(0.01)
    0.01
    """
    rate = checked_real(sampling_rate, "sampling_rate")
    if not 0 < rate <= 1:
        raise InvalidValue("sampling_rate", sampling_rate, "must be above 0 and at most 1", "0.01 for one in a hundred")
    return rate


@dataclass(frozen=True)
class Measurements:
    """Slots with their noises, and the columns to derive before the engine adds them up.

    The parameters of all of them are fixed before the first is run: one plan.
    """

    derived: tuple[tuple[str, Any], ...]
    slots: tuple[Slot, ...]
    noises: Mapping[str, Noise]

    def __post_init__(self) -> None:
        names = [slot.name for slot in self.slots]
        if len(set(names)) != len(names) or set(names) != set(self.noises):
            raise InvalidValue("noises", sorted(self.noises), "must name every slot once", f"slots: {names}")

    @cached_property
    def event(self) -> Event:
        """Everything together, as one fixed plan."""
        return Composed(tuple((slot.event(self.noises[slot.name]), 1) for slot in self.slots))

    @cached_property
    def digest(self) -> str:
        """A stable fingerprint of what is measured and how: public facts only."""
        facts = {
            "derived": [[name, repr(what)] for name, what in self.derived],
            "slots": [[*slot.facts, *_noise_facts(self.noises[slot.name])] for slot in self.slots],
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def run(self, dataset: Dataset, progress: Callable[[float], None] | None = None) -> dict[str, Integers]:
        """The private numbers of every slot, with its noise: call only after the charge."""
        return self.measure(self.exact(dataset, progress))

    def exact(self, dataset: Dataset, progress: Callable[[float], None] | None = None) -> dict[str, NDArray[Any]]:
        """What the engine adds up, without noise: private, for `measure` alone."""
        # A plan is one mechanism: it is amplified whole.
        return self._prepared(dataset).exact(self._aggregates, progress, one_sample=True)

    def explain(self, dataset: Dataset) -> str:
        """The SQL that `exact` would run; nothing is run."""
        return self._prepared(dataset).explain(self._aggregates)

    def _prepared(self, dataset: Dataset) -> Dataset:
        return dataset.derive(**dict(self.derived)) if self.derived else dataset

    @property
    def _aggregates(self) -> dict[str, Aggregate]:
        return {name: part for slot in self.slots for name, part in slot.aggregates.items()}

    def measure(self, exact: Mapping[str, NDArray[Any]]) -> dict[str, Integers]:
        """The numbers of every slot with fresh noise: each call is one release, to be charged for."""
        return {slot.name: slot.measure(slot.own(exact), self.noises[slot.name]) for slot in self.slots}


def _noise_facts(noise: Noise) -> tuple[str, str]:
    return noise.kind, noise.parameter.hex()


EVERY_RELEASE = "in every release"
"""How often a required error is kept where the noise alone decides it."""


@dataclass(frozen=True)
class Output(ABC):
    """What a design promises and computes for one statistic.

    `labels` names the cells, empty for one number; `slots` are the measurements it reads; `reference` is what relative
    error is relative to, one positive number for each cell.
    """

    statistic: Statistic
    labels: tuple[Any, ...]
    slots: tuple[Slot, ...]
    reference: Floats

    @property
    def name(self) -> str:
        """The name of the statistic in plans and releases."""
        return self.statistic.name

    @property
    @abstractmethod
    def coefficients(self) -> Mapping[str, Floats]:
        """For each slot, the variance of every cell of the output per squared step of noise variance.

        Empty for an output that is not (close to) linear in its measurements; then `variance_curve` is used.
        """

    @property
    def alone(self) -> Mapping[str, Floats]:
        """`coefficients` as they would be if the output shared its measurements with no other: for an even share."""
        return self.coefficients

    @property
    def links(self) -> Any:
        """The combination of slots that it is estimated from, beyond its own; None where it reads its own alone."""
        return None

    def linked(self, combination: Any) -> Output:
        """The same output, reading what other slots say about its numbers, too; itself where they say nothing."""
        return self

    @property
    def most(self) -> float:
        """The largest error there can be, where bounds limit it."""
        return math.inf

    @property
    def clause(self) -> str:
        """What its predicted error rests on, as a clause after "if"; empty where it follows from the noise alone."""
        return ""

    @property
    def is_assumed(self) -> bool:
        """Whether a part of `clause` is assumed, rather than expected by the steward."""
        return False

    @property
    def assumed_column(self) -> str:
        """The column whose distribution is assumed, if that decides its error."""
        return ""

    @property
    def rows_needed(self) -> Floats | None:
        """How many rows each cell must have for its error to be as predicted; None where nothing is said of that."""
        return None

    @property
    def condition(self) -> str:
        """The clause as "if ..."."""
        return f"if {self.clause}" if self.clause else ""

    @property
    def short_condition(self) -> str:
        """The same in few words, for a table."""
        if not self.clause:
            return ""
        return f"if as {'assumed' if self.is_assumed else 'expected'}"

    def variance_curve(self, epsilon: float) -> Floats:
        """The variance of every cell when the output's one slot is measured with this epsilon."""
        raise AssertionError(f"{self.name!r} is linear in its measurements")

    def alone_curve(self, epsilon: float) -> Floats:
        """The same, if the slot were measured for this output alone."""
        return self.variance_curve(epsilon)

    @property
    def choices(self) -> tuple[int, float]:
        """How many choices it is if each is made by itself, from all rows and without an interval.

        Also how many times the epsilon of all of them its own slot needs to be as good as they are.
        """
        raise AssertionError(f"{self.name!r} is linear in its measurements")

    @property
    def depends_on(self) -> str:
        """What its error depends on that nobody said, in words; then `predicted` is for the worst case of it."""
        return ""

    def predicted_at_best(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution of the error before anything is spent, where all that nobody said is at its best."""
        return self.predicted(noises)

    @property
    def limitless(self) -> str:
        """What to say where its error has no limit, whatever the noise, because nothing is expected; mostly empty."""
        return ""

    @property
    def sized(self) -> bool:
        """Whether its error depends on how many rows the table has."""
        return self.statistic.for_population

    @property
    def rests_on(self) -> tuple[str, ...]:
        """What `promised` rests on beyond the number of rows, as clauses after "if"; nothing where it always holds."""
        if self.clause:
            return (self.clause,)
        return ("its numbers are as expected",) if self.statistic.for_population else ()

    @property
    def holds(self) -> str:
        """How often a release is no wider than `promised`, in words: on average, where what comes out decides it."""
        return "on average over releases" if self.sized else EVERY_RELEASE

    @property
    def independent(self) -> bool:
        """Whether the errors of its cells are independent of each other: each cell has noise of its own."""
        return False

    def remarks(self, noises: Mapping[str, Noise]) -> tuple[str, ...]:
        """What there is to know beyond the errors of its cells, in words; mostly nothing."""
        return ()

    def caution(self, noises: Mapping[str, Noise]) -> str:
        """A warning that belongs beside its predicted error, in words; mostly none."""
        return ""

    def sample_variance(self, noises: Mapping[str, Noise]) -> float:
        """The variance over random samples of units, as an average over cells: what `for_population` adds."""
        alone, drawn = (
            replace(self, statistic=replace(self.statistic, for_population=said)).predicted(noises).standard_error
            for said in (False, True)
        )
        return max(0.0, float(drawn) ** 2 - float(alone) ** 2)

    @abstractmethod
    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution of the error before anything is spent; for the worst case of what nobody said."""

    def promised(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution that a required error is held to: as wide as intervals come out, as often as `holds` says.

        The same as `predicted` where intervals do not depend on what comes out, or where only their mean is known.
        """
        return self.predicted(noises)

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        """The least and the most that declared bounds allow each cell, as far as these determine them."""
        return None

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """Which noises the cells of its answer are made of; None where it is no sum or ratio of noisy numbers."""
        return None

    @abstractmethod
    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The statistic from noisy numbers: post-processing only."""


@dataclass(frozen=True)
class Cells:
    """The cells that the conditions of one measurement make: condition by condition, in each the groups of `by`.

    `by` are the columns that engines group by and `where` is what remains to be asked of a row. `derived` is the
    column that distinguishes the conditions, with its name; empty where there is one condition.
    """

    subject: str
    by: tuple[str, ...]
    where: Any
    derived: dict[str, Any]
    conditions: int

    @classmethod
    def of(cls, statistics: Sequence[Statistic], schema: Schema, columns: DerivedColumns) -> Cells:
        """The cells of one statistic for each of several disjoint conditions; they agree in `by`."""
        first = statistics[0]
        where = "" if first.where is None else f" where {text_of(first.where)}"
        groups = f" by {' and '.join(map(column_text, first.by))}" if first.by else ""
        if len(statistics) == 1:
            return cls(where + groups, first.by, first.where, {}, 1)
        texts = [read(statistic.where, schema).text for statistic in statistics]
        cases = " ".join(f"when {text} then {number}" for number, text in enumerate(texts, start=1))
        derived = f"case {cases} end", (1, len(texts))
        name = columns.named(derived)
        more = f" or {len(texts) - 1} more, all disjoint"
        return cls(where + more + groups, (name, *first.by), None, {name: derived}, len(texts))

"""What is to be planned: a design, a budget, and what the steward asked of it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.event_price import NANO as NANO
from farthing.errors import InvalidValue
from farthing.numerics.bounds import exact, float_up
from farthing.privacy.events import checked_delta, checked_epsilon, checked_real
from farthing.statistics.measurements import Kind, Noise, Slot

_TRIVIAL_DELTA = 0.1  # above this a guarantee promises next to nothing, so it is not used


class Distribution(Protocol):
    """The distribution of an output's error, as `farthing.inference` makes it."""

    def error(self, confidence: float) -> float:
        """The least e that the error stays within with this probability, on average over cells."""
        ...

    def worst(self, confidence: float) -> float:
        """The least e that the error of every cell stays within with this probability, each by itself."""
        ...


class Links(Protocol):
    """Slots that say something about each other's numbers: outputs weigh all of them by how much noise they have."""

    def slopes(
        self, outputs: Sequence[Any], variances: Mapping[str, float], kinds: Mapping[str, Kind]
    ) -> tuple[Sequence[str], NDArray[np.float64]]:
        """The slots that are weighed, and for each output its mean squared relative error per variance of each."""
        ...


class PlannedOutput(Protocol):
    """What the planner asks of an output (`farthing.statistics.measurements.Output`)."""

    @property
    def name(self) -> str:
        """The name of the statistic that it answers."""
        ...

    @property
    def slots(self) -> Sequence[Slot]:
        """The measurements it is made from."""
        ...

    @property
    def reference(self) -> NDArray[np.float64]:
        """What relative error is relative to, for each cell."""
        ...

    @property
    def coefficients(self) -> Mapping[str, NDArray[np.float64]]:
        """Variance of each cell per squared step of a slot's noise variance; empty when it is not linear."""
        ...

    @property
    def alone(self) -> Mapping[str, NDArray[np.float64]]:
        """The same if it shared its measurements with no other output."""
        ...

    @property
    def links(self) -> Links | None:
        """What it is estimated from beyond its own slots; None where it reads these alone."""
        ...

    def variance_curve(self, epsilon: float) -> NDArray[np.float64]:
        """Variance of each cell when the one slot is measured with this epsilon."""
        ...

    def alone_curve(self, epsilon: float) -> NDArray[np.float64]:
        """The same if the slot were measured for it alone."""
        ...

    @property
    def choices(self) -> tuple[int, float]:
        """How many choices it is if each is made by itself, and how much of their epsilon is enough for it."""
        ...

    @property
    def condition(self) -> str:
        """What its predicted error rests on, as "if ..."; empty where it follows from the noise alone."""
        ...

    @property
    def holds(self) -> str:
        """In how many releases a required error is kept, in words."""
        ...

    @property
    def depends_on(self) -> str:
        """What its error depends on that nobody said, in words."""
        ...

    @property
    def assumed_column(self) -> str:
        """The column whose distribution is assumed, if that decides its error; empty otherwise."""
        ...

    @property
    def limitless(self) -> str:
        """What to say where its error has no limit, whatever the noise; empty where it has one."""
        ...

    def predicted(self, noises: Mapping[str, Noise]) -> Distribution:
        """The distribution of the error under these noises."""
        ...

    def promised(self, noises: Mapping[str, Noise]) -> Distribution:
        """The distribution that a required error is held to: what a release shows, if everything is as expected."""
        ...


class Design(Protocol):
    """Slots and the outputs made from them."""

    @property
    def slots(self) -> Sequence[Slot]:
        """The measurements that the outputs are computed from."""
        ...

    @property
    def outputs(self) -> Sequence[Any]:
        """Everything that is answered (each a `PlannedOutput`)."""
        ...


@dataclass(frozen=True, slots=True)
class Requirement:
    """An error that no cell of a statistic may exceed, with this confidence.

    Args:
        within: The error, > 0.
        confidence: The probability that it is not exceeded, between 0 and 1.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> Requirement(within=500.0)
    Requirement(within=500.0, confidence=0.95)
    >>> Requirement(500.0, confidence=95)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: confidence=95: must be a number between 0 and 1; write 0.95 for 95 percent.
    """

    within: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        within = checked_real(self.within, "within")
        if not 0 < within < math.inf:
            raise InvalidValue(
                "within", self.within, "must be a finite number > 0", "it is the largest error you accept"
            )
        confidence = checked_real(self.confidence, "confidence")
        if not 0 < confidence < 1:
            way_out = f"write {confidence / 100:g} for {confidence:g} percent" if 1 < confidence < 100 else ""
            raise InvalidValue("confidence", self.confidence, "must be a number between 0 and 1", way_out)
        object.__setattr__(self, "within", within)
        object.__setattr__(self, "confidence", confidence)


@dataclass(frozen=True, eq=False)
class Problem:
    """A budget to be divided over the slots of a design.

    Args:
        design: What is measured, and what is read from it.
        epsilon: The epsilon of the whole.
        delta: The delta of the whole.
        weights: How much a statistic matters; 1 where nothing is said. With 8 it gets about twice the share of the
            budget that it has with 1, and so about half the error.
        requirements: What error a statistic must not exceed.
        held: Slots whose noise stays as it is, or becomes less for the sake of what is `kept`.
        kept: Statistics whose error is not to grow beyond what it is under these noises of all slots: those whose own
            slots are held, where other slots say something about them, too.
        reserved: The part of epsilon that is left unspent.
        sampling_rate: The probability with which each unit of the population came into the table, if the rows are a
            secret Poisson sample; (epsilon, delta) is then the cost for the population.
        clock: Another epsilon and delta that the plan may cost instead, if a ledger's clock pays for it: what it pays
            for Gaussian noise is the exact price, so that slots which may have it have no other. And the largest
            epsilon that the clock has room for.
        on_clock: Whether (epsilon, delta) are these.
        most: An epsilon above which nothing is offered, because it is not left.

    Raises:
        InvalidValue: If a parameter is out of its range, or names no statistic of the design.
    """

    design: Design
    epsilon: float
    delta: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    requirements: Mapping[str, Requirement] = field(default_factory=dict)
    held: Mapping[str, Noise] = field(default_factory=dict)
    kept: Mapping[str, Mapping[str, Noise]] = field(default_factory=dict, kw_only=True)
    reserved: float = 0.0
    sampling_rate: float | None = None
    clock: tuple[float, float, float] | None = field(default=None, kw_only=True)
    on_clock: bool = field(default=False, kw_only=True)
    most: float = field(default=math.inf, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))
        self._check_budget()
        outputs = [output.name for output in self.design.outputs]
        slots = [slot.name for slot in self.design.slots]
        if not slots:
            raise InvalidValue("statistics", outputs, "must hold at least one that needs a measurement")
        for name, weight in self.weights.items():
            known_name(name, outputs)
            number = checked_real(weight, "weight")
            if not 1e-9 <= number <= 1e9:
                raise InvalidValue(
                    "weight",
                    weight,
                    "must be between 1e-9 and 1e9",
                    "leave out a statistic that does not matter",
                )
        for name in self.requirements:
            known_name(name, outputs)
        for name in self.held:
            known_name(name, slots, "slot")
        if len(self.held) == len(slots):
            raise InvalidValue(
                "hold",
                outputs,
                "must leave at least one statistic free",
                "with everything held there is nothing to divide: release the plan as it is, or hold fewer",
            )

    def _check_budget(self) -> None:
        reserved = checked_epsilon(self.reserved, "reserve")
        if not self.epsilon > 0:
            raise InvalidValue(
                "epsilon",
                self.epsilon,
                "must be > 0 to plan with",
                "every measurement costs something; ask the owner of the data for a budget",
            )
        if not self.delta <= _TRIVIAL_DELTA:
            raise InvalidValue(
                "delta",
                self.delta,
                f"must be at most {_TRIVIAL_DELTA} to plan with",
                "it is the chance that nothing is protected; 1e-9 is a common choice",
            )
        if not reserved < self.most_epsilon:
            raise InvalidValue(
                "reserve",
                self.reserved,
                f"must be below the epsilon of the plan, {self.most_epsilon:.3g}",
                "reserve less, or nothing is left to plan with",
            )
        if self.sampling_rate is not None:
            rate = checked_real(self.sampling_rate, "sampling_rate")
            if not 0 < rate <= 1:
                raise InvalidValue(
                    "sampling_rate",
                    self.sampling_rate,
                    "must be > 0 and at most 1",
                    "it is the share of the population that was sampled",
                )

    @property
    def most_epsilon(self) -> float:
        """The epsilon of the whole, or the one on the clock where that is larger."""
        return self.epsilon if self.clock is None else max(self.epsilon, self.clock[0])

    @property
    def ways(self) -> tuple[Problem, ...]:
        """The problems that this one is: in plain sums, and on the clock; one of them where it has one part only."""
        if self.clock is None:
            return (self,)
        epsilon, delta, most = self.clock
        ways = []
        if self.reserved < self.epsilon:  # there is a part on the clock where this is all that is left besides
            ways.append(replace(self, clock=None, most=self.epsilon))
        if self.reserved < epsilon:
            ways.append(replace(self, epsilon=epsilon, delta=delta, clock=None, on_clock=True, most=most))
        return tuple(ways)

    @property
    def target(self) -> float:
        """The epsilon that the slots may cost together, before any amplification by sampling."""
        left = self.epsilon - self.reserved
        rate = self.sampling_rate
        return left if rate is None else math.log1p(math.expm1(left) / rate)

    @property
    def limit_nano(self) -> int:
        """What the plan may cost, in whole billionths."""
        return math.floor((exact(self.epsilon) - exact(self.reserved)) * NANO)

    def epsilon_of(self, cost: float) -> float:
        """The least epsilon of a problem like this one whose `limit_nano` holds this cost.

        Args:
            cost: What the noises cost.

        Returns:
            The epsilon.
        """
        return float_up(Fraction(math.ceil(Fraction(cost) * NANO), NANO) + exact(self.reserved))

    @property
    def inner_delta(self) -> float:
        """The delta that goes with `target`, rounded down so that sampling brings it back to at most delta."""
        if self.sampling_rate is None or self.delta == 0:
            return self.delta
        return min(self.delta / self.sampling_rate * (1 - 2.0**-50), _TRIVIAL_DELTA)

    def weight_of(self, name: str) -> float:
        """The weight of an output; 1 when none was given.

        Args:
            name: The name of a statistic.

        Returns:
            Its weight.
        """
        return float(self.weights.get(name, 1.0))


def known_name(name: object, names: Iterable[str], what: str = "statistic") -> str:
    """`name` if it is one of `names`; else an error that shows the nearest ones.

    >>> known_name("mean of incme", ["mean of income", "count"])
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: statistic='mean of incme': must be one of the plan; nearest: 'mean of income'.
    """
    known = list(names)
    if isinstance(name, str) and name in known:
        return name
    nearest = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
    suggestions = ", ".join(map(repr, nearest or known[:5]))
    raise InvalidValue(what, name, "must be one of the plan", f"nearest: {suggestions}")


def outer_epsilon(problem: Problem, epsilon: float) -> float:
    """What the problem's epsilon must be for the slots to cost `epsilon`."""
    rate = problem.sampling_rate
    return problem.reserved + (epsilon if rate is None else math.log1p(rate * math.expm1(epsilon)))

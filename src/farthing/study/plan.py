"""`Plan`: what each statistic will be like and what it will cost, before anything is spent."""

from __future__ import annotations

import difflib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from farthing.errors import Infeasible, InvalidValue
from farthing.inference.noise_sums import checked_confidence
from farthing.numerics import Bounds
from farthing.planner import Allocation, Price, Problem, Requirement, allocate, fit
from farthing.privacy.events import checked_epsilon, checked_real
from farthing.release import Statistic
from farthing.release.designs import Design
from farthing.release.measurements import Measurements
from farthing.study.about import about_rows
from farthing.study.code import asking_lines, control_line, study_lines
from farthing.study.planned import PlannedStatistic, planned
from farthing.study.simultaneous import AtOnce
from farthing.study.stored import plain
from farthing.study.tables import plan_table
from farthing.study.words import explained, in_toml, shown

if TYPE_CHECKING:
    from farthing.study.released import Release
    from farthing.study.study import Study


@dataclass(frozen=True, eq=False)
class Plan:
    """A frozen value: every control returns a new plan, and none of them spends anything.

    `statistics` foretells each error; `cost` is a proven interval for the epsilon of everything together; `price`
    shows the same plan under the older theorems. `release()` charges, runs and answers, once: a second call returns the
    same answers.

    >>> import pyarrow, tempfile, farthing as ft
    >>> table = pyarrow.table({"age": [30, 41, 52]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = ft.Study(
    ...     ft.dataset(table, schema={"age": (0, 110)}), epsilon=1.0, ledger=folder.name + "/study.db"
    ... )
    >>> plan = study.plan(ft.count(), ft.mean("age"))
    >>> closer = plan.weight("mean of age", 10.0)
    >>> closer["mean of age"].standard_error < plan["mean of age"].standard_error
    True
    >>> plan.reserve(epsilon=0.25).cost.upper <= 0.75
    True
    >>> study.budget.remaining.epsilon
    1.0
    >>> study.ledger.close(); folder.cleanup()
    """

    study: Study
    asked: tuple[Statistic, ...]
    problem: Problem
    expected: Mapping[str, Any]
    request_id: str = field(default_factory=lambda: _fresh())
    code: tuple[str, ...] = ()  # the lines, or the file, that made it: for the report
    from_file: bool = False  # then what it says about `expected` is said as a study.toml writes it
    _given: Allocation | None = None

    @classmethod
    def made(
        cls,
        study: Study,
        asked: tuple[Statistic, ...],
        problem: Problem,
        expected: Mapping[str, Any] | None,
        epsilon: float | None,
    ) -> Plan:
        """A plan whose budget is divided now, so that what cannot be planned is said at once."""
        plan = cls.asked_for(study, asked, problem, expected, epsilon)
        _ = plan.allocation
        return plan

    @classmethod
    def asked_for(
        cls,
        study: Study,
        asked: tuple[Statistic, ...],
        problem: Problem,
        expected: Mapping[str, Any] | None,
        epsilon: float | None,
    ) -> Plan:
        """A plan whose budget is divided when somebody looks at it, or when its controls are set."""
        lines = (*study_lines(study), *asking_lines("plan", asked, {"epsilon": epsilon}, expected))
        return cls(study, asked, problem, dict(expected or {}), code=lines)

    # What is foretold

    @property
    def design(self) -> Design:
        """What is measured, and how each statistic comes out of it."""
        design = self.problem.design
        assert isinstance(design, Design)
        return design

    @cached_property
    def allocation(self) -> Allocation:
        """The noise of every measurement."""
        return self._given if self._given is not None else allocate(self.problem)

    @cached_property
    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """Each statistic with its mechanism, its epsilon and its error, in the order they were asked for."""
        return tuple(planned(output, self.allocation) for output in self.design.outputs)

    def named(self, name: str) -> PlannedStatistic:
        """The statistic of this name."""
        for statistic in self.statistics:
            if statistic.name == name:
                return statistic
        names = [statistic.name for statistic in self.statistics]
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4) or names[:5]
        raise InvalidValue(
            "name", name, "must be a statistic of the plan", f"did you mean: {', '.join(near)}"
        )

    __getitem__ = named

    @property
    def cost(self) -> Bounds:
        """The epsilon of the whole plan at its delta, as a proven interval; `upper` is what will be charged."""
        return self.allocation.cost

    @property
    def delta(self) -> float:
        """The delta at which the cost is stated."""
        return self.problem.delta

    @property
    def price(self) -> Price:
        """The same plan under summing, advanced, KOV and optimal composition, and by its own curves."""
        return self.allocation.price

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the foretold errors take for granted because nobody said otherwise."""
        told = self.design.assumptions
        return tuple(map(in_toml, told)) if self.from_file else told

    @property
    def about(self) -> str | None:
        """Which rows the numbers are about, where that is not every row of the table."""
        return about_rows(self.study.dataset)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which statistics would be mostly noise."""
        return tuple(statistic.note for statistic in self.statistics if statistic.note)

    def at_once(self, confidence: float = 0.95) -> AtOnce:
        """The errors within which all numbers of the plan are together, not only one by one; `errors` has them by name.

        >>> import pyarrow, tempfile, farthing as ft
        >>> folder = tempfile.TemporaryDirectory()
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41]}), schema={"age": (0, 9)})
        >>> study = ft.Study(people, epsilon=1.0, ledger=folder.name + "/study.db")
        >>> plan = study.plan(ft.histogram("age"))
        >>> plan["histogram of age"].error(0.95), plan.at_once().errors
        (3.0, {'histogram of age': 5.0})
        >>> plan.at_once().sentence
        'all 10 numbers are within these errors together, 95 times in 100: histogram of age ± 5'
        >>> study.close(); folder.cleanup()
        """
        if confidence not in self._together:
            self._together[confidence] = AtOnce.of(self.statistics, checked_confidence(confidence))
        return self._together[confidence]

    @cached_property
    def _together(self) -> dict[float, AtOnce]:
        return {}

    # Controls

    def weight(self, name: str, weight: float) -> Plan:
        """The statistic counts `weight` times as much as one that was not given a weight."""
        self.named(name)
        number = checked_weight(weight)
        line = control_line("weight", name, weight)
        return self._with(line, weights={**self.problem.weights, name: number})

    def require(self, name: str, within: float, confidence: float = 0.95) -> Plan:
        """The statistic is within `within` of the truth in `confidence` of all cases; the others share the rest.

        Neither more nor less: what it does not need goes to the others. Of a statistic of several cells, and of ranges,
        it is the error of a cell; `explain()` tells that of a range.
        """
        self.named(name)
        requirement = Requirement(within, confidence)
        line = control_line("require", name, within=within, confidence=confidence)
        return self._with(line, requirements={**self.problem.requirements, name: requirement})

    def hold(self, name: str) -> Plan:
        """The statistic keeps its present noise, whatever happens to the others."""
        slots = self.named(name).output.slots
        kept = {slot.name: self.allocation.noises[slot.name] for slot in slots}
        return self._with(control_line("hold", name), held={**self.problem.held, **kept})

    def reserve(self, epsilon: float) -> Plan:
        """This much of the plan's epsilon is left unspent, and with it the share of delta that later plans need."""
        return self._with(control_line("reserve", epsilon=epsilon), **self._reserving(epsilon))

    def _reserving(self, epsilon: float) -> dict[str, float]:
        number = checked_epsilon(epsilon)
        if not number < self.problem.epsilon:
            raise InvalidValue(
                "epsilon", epsilon, f"must be less than the plan's {self.problem.epsilon:g}", "reserve less"
            )
        # With all of delta spent, later plans would find only what plain sums of epsilon leave them.
        part = self.study.allowance(self.problem.epsilon - number)
        return {"reserved": number, "delta": part.delta}

    def controlled(
        self,
        weights: Mapping[str, float],
        requirements: Mapping[str, Requirement],
        reserve: float | None = None,
        start: Plan | None = None,
        *,
        quick: bool = False,
    ) -> Plan:
        """`weight`, `require` and `reserve` at once: one division of the budget instead of one for each.

        `start` is a plan of the same design whose division is at hand; with `quick` the answer stays near it.
        """
        lines = [control_line("weight", name, weight) for name, weight in weights.items()]
        lines += [
            control_line("require", name, within=asked.within, confidence=asked.confidence)
            for name, asked in requirements.items()
        ]
        changes: dict[str, Any] = {"weights": dict(weights), "requirements": dict(requirements)}
        if reserve:
            lines.append(control_line("reserve", epsilon=reserve))
            changes.update(self._reserving(reserve))
        problem = replace(self.problem, **changes)
        with self._hinted():
            found = allocate(problem, None if start is None else start.allocation, quick=quick)
        return replace(self, problem=problem, code=(*self.code, *lines), _given=found)

    def fitted(self, requirements: Mapping[str, Requirement], start: Plan | None = None) -> Plan:
        """The least epsilon that meets these requirements; see `Study.fit`."""
        problem = replace(self.problem, requirements=dict(requirements))
        with self._hinted():
            found = fit(problem, (start or self).allocation)
            share = found.problem.epsilon / problem.epsilon
            if problem.delta > 0 and share < 1:
                # Less delta needs no less epsilon, so the share of delta stays at most that of epsilon.
                found = fit(replace(problem, delta=problem.delta * share), found)
            _refuse_over(found.problem.epsilon, problem.epsilon, tuple(requirements))
        required = {name: requirement.within for name, requirement in requirements.items()}
        options = {"require": required, "confidence": next(iter(requirements.values())).confidence}
        lines = (*study_lines(self.study), *asking_lines("fit", self.asked, options, self.expected))
        return replace(self, problem=found.problem, code=lines, request_id=_fresh(), _given=found)

    def _with(self, line: str, **changes: Any) -> Plan:
        problem = replace(self.problem, **changes)
        with self._hinted():
            found = allocate(problem, self.allocation)
        return replace(self, problem=problem, code=(*self.code, line), request_id=_fresh(), _given=found)

    @contextmanager
    def _hinted(self) -> Iterator[None]:
        """What cannot be met under an assumption may be met in truth, and the refusal says so."""
        try:
            yield
        except Infeasible as refusal:
            if not self.assumptions:
                raise
            told = f"{refusal} The errors rest on assumptions: {'; '.join(self.assumptions)}."
            raise Infeasible(
                told, blocking=refusal.blocking, closest=refusal.closest, epsilon=refusal.epsilon,
                hardest=refusal.hardest,
            ) from None  # fmt: skip

    # Release

    @property
    def measurements(self) -> Measurements:
        """What would be run: slots with their noises."""
        return self.design.measurements(self.allocation.noises)

    def release(
        self, request_id: str | None = None, progress: Callable[[float], None] | None = None
    ) -> Release:
        """Charge the ledger, run once on the engine, add the noise, record, answer.

        A plan is answered once: asking again with the same plan or the same `request_id` returns the stored answers.
        """
        from farthing.study.released import released

        return released(self, request_id or self.request_id, progress)

    # For people and programs

    def __str__(self) -> str:
        return plan_table(self)

    def __repr__(self) -> str:
        return (
            f"Plan({len(self.statistics)} statistics, epsilon={shown(self.problem.epsilon)}, nothing spent)"
        )

    def explain(self) -> str:
        """In words: what is measured, what each statistic is made of, and why it costs what it does."""
        return explained(self)

    def plot(self) -> Any:
        """Errors, shares of the budget and prices, as an Altair chart (needs the extra `plots`)."""
        from farthing.plots import plan_chart

        return plan_chart(self.to_dict())

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The plan as plain data."""
        price = self.price
        return {
            "dataset": self.study.name,
            "epsilon": self.problem.epsilon,
            "delta": self.problem.delta,
            "confidence": confidence,
            "statistics": [statistic.to_dict(confidence) for statistic in self.statistics],
            "at_once": self.at_once(confidence).to_dict(),
            "cost": {"lower": self.cost.lower, "upper": self.cost.upper},
            "price": {
                "basic": price.basic,
                "advanced": price.advanced,
                "kov": price.kov,
                "optimal": price.optimal,
                "own": price.own,
                "sentence": price.sentence,
            },
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "about": self.about,
        }

    def to_json(self, confidence: float = 0.95) -> str:
        """The plan as JSON; what is infinite is null."""
        return json.dumps(plain(self.to_dict(confidence)), indent=2)


def _refuse_over(needed: float, limit: float, names: tuple[str, ...]) -> None:
    if needed > limit:
        raise Infeasible(
            f"{' and '.join(map(repr, names))} so exactly would cost epsilon={needed:.4g}, and {limit:.4g} is left; "
            "ask for less exactness, or raise the budget.",
            blocking=names, closest=None, epsilon=needed,
        )  # fmt: skip


def checked_weight(weight: Any) -> float:
    """A weight that a statistic may have."""
    number = checked_real(weight, "weight")
    if not 1e-6 <= number <= 1e6:
        raise InvalidValue("weight", weight, "must be between 1e-6 and 1e6", "1 is the usual weight")
    return number


def _fresh() -> str:
    """A plan that was changed is another plan, and is answered anew."""
    return f"plan-{secrets.token_hex(12)}"

"""`Plan`: how accurate each statistic will be and what it will cost, before anything is spent."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

from farthing.errors import BudgetExceeded, Infeasible, InvalidValue
from farthing.inference.noise_sums import checked_confidence
from farthing.ledger import PlanRequest
from farthing.numerics import Bounds
from farthing.numerics.bounds import number_text
from farthing.planner import Allocation, Problem, Requirement, TheoremPrices, allocate, fit
from farthing.privacy.events import checked_epsilon
from farthing.statistics import Statistic
from farthing.statistics.answer_records import plain
from farthing.statistics.design import Design
from farthing.statistics.measurements import Measurements, Noise
from farthing.statistics.public_facts import Counted
from farthing.study.attacker_odds import budget_cautions
from farthing.study.coverage_text import about_rows, bounds_of_unknown_reach
from farthing.study.plan_contents import withheld_cells
from farthing.study.plan_statistic import (
    AtOnce,
    PlannedStatistic,
    errors_rest_on,
    planned_statistic,
    rows_known,
)
from farthing.study.plan_submission import changed, submitted
from farthing.study.plan_text import (
    call_lines,
    control_line,
    opening_of,
    plan_data,
    plan_explanation,
    plan_html,
    plan_table,
    study_lines,
)
from farthing.study.release import Release, release_of_plan
from farthing.study.release_request import (
    Control,
    Earlier,
    Request,
    changes_of,
    checked_weight,
    earlier_or_raise,
    earlier_release,
    fit_control,
    own_name,
    refuse_over,
    required_by,
    with_controls,
)
from farthing.study.study_account import Allowance, StudyAccount, can_be_counted, price_of_counting, usage_of


@dataclass(frozen=True, eq=False)
class Plan:
    """A frozen value: every control returns a new plan, and none of them spends anything. Made by `Study.plan`.

    `statistics` predicts each error; `cost` is a proven interval for the epsilon of everything together; `price`
    shows the same plan under the older theorems. `release()` charges, runs and answers, once: the same request, made by
    this plan again or by the same script tomorrow, return the same answers. Such a plan says that it was released.

    Args:
        study: The study that made it.
        asked: The statistics.
        problem: What is divided: the design of the statistics, the budget and the controls.
        expected: What is known, as for `Study.plan`.
        request: The request that names its release in the ledger.
        allowance: What the budget had for it, before controls.
        epsilon: The part of the budget that was asked for.
        lines: The lines that made it, or the file, where they are not those of `study.plan` alone.
        from_file: Whether a study.toml made it; then `expected` is written as there.
        earlier: The earlier release of the same request.

    >>> import pyarrow, tempfile, farthing as ft
    >>> table = pyarrow.table({"age": [30, 41, 52]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = ft.Study(
    ...     ft.dataset(table, schema={"age": (0, 110)}, name="people"), epsilon=1.0, ledger=folder.name + "/study.db"
    ... )
    >>> plan = study.plan(ft.count(), ft.mean("age"))
    >>> closer = plan.weight("mean of age", 10.0)
    >>> closer["mean of age"].standard_error < plan["mean of age"].standard_error
    True
    >>> study.ledger.close(); folder.cleanup()
    """

    study: StudyAccount
    asked: tuple[Statistic, ...]
    problem: Problem
    expected: Mapping[str, Any]
    request: Request
    allowance: Allowance  # what the budget had for it, before controls
    epsilon: float | None = None  # as it was asked for
    lines: tuple[str, ...] = ()  # that made it, or the file: where they are not those of `study.plan` alone
    from_file: bool = False  # then what it says about `expected` is said as a study.toml writes it
    earlier: Earlier | None = None  # the release that these words have asked for before
    _given: Allocation | None = None

    @classmethod
    def of(
        cls,
        study: StudyAccount,
        asked: tuple[Statistic, ...],
        expected: Mapping[str, Any] | None,
        epsilon: float | None,
    ) -> Plan:
        """A plan whose budget is divided now, so that what cannot be planned is said at once.

        What the ledger has for the same request needs no budget any more: that plan is shown as it was.

        Args:
            study: The study.
            asked: The statistics.
            expected: What is known, as for `Study.plan`.
            epsilon: The part of the budget that is asked for.

        Returns:
            The plan.

        Raises:
            InvalidValue: If a statistic does not fit the schema.
            BudgetExceeded: If the budget does not have what is asked for.
            Infeasible: If no noise meets what is required.
        """
        request = Request.of(study, asked, epsilon, expected)
        earlier = earlier_release(study, request)
        if earlier is not None:
            return cls.again(study, asked, expected, epsilon, request, earlier)
        try:
            plan = cls.draft(study, asked, study.problem(asked, epsilon, expected), expected, epsilon)
            _ = plan.allocation
            return plan
        except (BudgetExceeded, Infeasible, InvalidValue) as refusal:
            return cls.again(study, asked, expected, epsilon, request, earlier_or_raise(study, request, refusal))

    @classmethod
    def draft(
        cls,
        study: StudyAccount,
        asked: tuple[Statistic, ...],
        problem: Problem,
        expected: Mapping[str, Any] | None,
        epsilon: float | None,
    ) -> Plan:
        """A plan whose budget is divided when somebody looks at it, or when its controls are set.

        Args:
            study: The study.
            asked: The statistics.
            problem: What is divided: the design of the statistics and the budget.
            expected: What is known, as for `Study.plan`.
            epsilon: The part of the budget that is asked for.

        Returns:
            The plan.
        """
        request = Request.of(study, asked, epsilon, expected)
        allowance = Allowance(problem.epsilon, problem.delta, clock=problem.clock)
        return cls(study, asked, problem, dict(expected or {}), request, allowance, epsilon)

    @classmethod
    def again(
        cls,
        study: StudyAccount,
        asked: tuple[Statistic, ...],
        expected: Mapping[str, Any] | None,
        epsilon: float | None,
        request: Request,
        earlier: Earlier,
    ) -> Plan:
        """The plan of an earlier release as it was then; it is divided again only if somebody looks at it.

        Args:
            study: The study.
            asked: The statistics.
            expected: What is known, as for `Study.plan`.
            epsilon: The part of the budget that is asked for.
            request: The words that name the release.
            earlier: The release.

        Returns:
            The plan, which says that it was released.
        """
        stored = earlier.plan["made"]
        asked = earlier.in_order(asked)
        allowance = Allowance(*map(float, stored["allowance"]))
        if stored.get("clock"):
            on_clock, delta, most = map(float, stored["clock"])
            allowance = replace(allowance, clock=(on_clock, delta, most))
        counted = stored.get("counted")
        problem = study.problem(
            asked,
            epsilon,
            expected,
            allowance=allowance,
            counted=None if counted is None else Counted(*counted),
        )
        problem = replace(problem, **changes_of(request, problem))
        if earlier.exact:
            held = {slot: Noise(*noise) for slot, noise in stored["held"].items()}
            facts: dict[str, Any] = {name: float(stored[name]) for name in ("epsilon", "delta", "reserved")}
            problem = replace(problem, **facts, held=held, clock=None, on_clock=bool(stored.get("on_clock")))
        plan = cls.draft(study, asked, problem, expected, epsilon)
        return replace(plan, request=request, allowance=allowance, earlier=earlier)

    @classmethod
    def requested(
        cls,
        study: StudyAccount,
        asked: tuple[Statistic, ...],
        expected: Mapping[str, Any] | None,
        epsilon: float | None,
        request: Request,
        kept: Mapping[str, Any],
    ) -> Plan:
        """The plan of a request as it was shown, with the very noise of then, whatever is left by now.

        Args:
            study: The study.
            asked: The statistics.
            expected: What is known, as for `Study.plan`.
            epsilon: The part of the budget that was asked for.
            request: The words that name the release.
            kept: The plan as the request keeps it.

        Returns:
            The plan, not released yet.
        """
        plan = cls.again(study, asked, expected, epsilon, request, Earlier("", kept, True))
        noises = {slot: Noise(*noise) for slot, noise in kept["noises"].items()}
        return replace(plan, earlier=None, _given=replace(plan.allocation, noises=noises))

    @property
    def code(self) -> tuple[str, ...]:
        """The lines of Python, or the file, that made it: for the report."""
        if self.lines:
            return self.lines
        call = call_lines("plan", self.asked, {"epsilon": self.epsilon}, self.expected)
        return (*study_lines(self.study), *call)

    # What is predicted

    @property
    def design(self) -> Design:
        """What is measured, and how each statistic comes out of it."""
        design = self.problem.design
        assert isinstance(design, Design)
        return design

    @cached_property
    def allocation(self) -> Allocation:
        """The noise of every measurement."""
        return self._given if self._given is not None else self._allocated(self.problem)

    @cached_property
    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """Each statistic with its mechanism, its epsilon and its error, in the order they were asked for."""
        dataset = self.study.dataset
        return tuple(planned_statistic(output, self.allocation, dataset) for output in self.design.outputs)

    def named(self, name: str) -> PlannedStatistic:
        """The statistic of this name; `plan[name]` is the same.

        Args:
            name: What it is called.

        Returns:
            What is predicted of it.

        Raises:
            InvalidValue: If the plan has no such statistic.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count()).named("count").error(0.95))
        ...     study.close()
        3.0
        """
        self.refuse_unknown(name)
        return next(statistic for statistic in self.statistics if statistic.name == name)

    def refuse_unknown(self, name: str) -> None:
        """Refuse a name that no statistic of the plan has.

        Args:
            name: The name.

        Raises:
            InvalidValue: If the plan has no such statistic; the message has the nearest names.
        """
        names = [output.name for output in self.design.outputs]
        if name in names:
            return
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4) or names[:5]
        raise InvalidValue("name", name, "must be a statistic of the plan", f"did you mean: {', '.join(near)}")

    __getitem__ = named

    @property
    def cost(self) -> Bounds:
        """The epsilon of the whole plan at its delta, as a proven interval; `upper` is what will be charged."""
        return self.allocation.cost

    @property
    def delta(self) -> float:
        """The delta at which the cost is stated."""
        return self.allocation.problem.delta

    @property
    def price(self) -> TheoremPrices:
        """The same plan under summing, advanced, KOV and optimal composition, and by its exact curves."""
        return self.allocation.price

    @property
    def adaptive_cost(self) -> float:
        """What the same noises would cost if each measurement were chosen after seeing the answers before it.

        An upper bound by the clock; infinite where there are too many kinds of noise to work it out.
        """
        return self.allocation.adaptive_cost

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the predicted errors assume because nobody said otherwise."""
        return tuple(one.in_toml if self.from_file else str(one) for one in self.design.assumptions)

    @property
    def assumed_rows(self) -> int | None:
        """The number of rows that errors are for, where it is neither public, expected nor counted; else None.

        None as well where no error depends on it: those of counts and sums do not.
        """
        return self.design.assumed_rows

    @property
    def counting(self) -> float | None:
        """The epsilon for which the rows can be counted first; None where no error is for an assumed number of rows.

        Nor where the plan was released before: a count would come too late for it.
        """
        if self.assumed_rows is None or self.earlier is not None or not can_be_counted(self.study):
            return None
        if not self.study.budget.total.epsilon > 0:  # a grant of nothing: only what is approved can be spent
            return None
        return price_of_counting(self.study)

    @property
    def opening(self) -> str | None:
        """What the plan says first: which of its errors are for an assumed size, where some are."""
        return opening_of(self)

    @property
    def about(self) -> str | None:
        """Which rows the numbers are about, where that is not every row of the table."""
        return about_rows(self.study.dataset, self.design.outputs)

    @property
    def withheld(self) -> str | None:
        """Which numbers a release may withhold, where an analyst's policy asks for so many people in a cell."""
        return withheld_cells(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which statistics would be mostly noise, and which bounds leave out nobody knows how many people."""
        reach = bounds_of_unknown_reach(self.study.dataset, self.design.outputs)
        return (*(statistic.note for statistic in self.statistics if statistic.note), *reach)

    def at_once(self, confidence: float = 0.95) -> AtOnce:
        """Errors that hold for all numbers of the plan together, not only one by one.

        Args:
            confidence: How often they hold.

        Returns:
            The errors by name, and a sentence.

        Raises:
            InvalidValue: If the confidence is not between 0 and 1.

        >>> import pyarrow, tempfile, farthing as ft
        >>> folder = tempfile.TemporaryDirectory()
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41]}), schema={"age": (0, 9)})
        >>> study = ft.Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
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

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the budget protects little: epsilon above 10, or delta above 1 in 10,000 or 1 in the number of rows."""
        return tuple(budget_cautions(self.study.epsilon, self.study.delta, self.rows))

    @property
    def rows(self) -> int | None:
        """The number of rows where it is public, expected or counted."""
        known, counted = rows_known(self.study.dataset, self.expected), self.design.counted
        return counted.lower if known is None and counted is not None else known

    @property
    def request_id(self) -> str:
        """The name of its release in the ledger: a digest of what it asks for."""
        if self.earlier is not None and self.earlier.exact:
            return self.earlier.request_id
        return own_name(self.study, self.request.name)

    def weight(self, name: str, weight: float) -> Plan:
        """The statistic matters more, or less; with 8 it gets about twice the share of the budget that it has with 1.

        Args:
            name: The statistic.
            weight: From 1e-6 to 1e6.

        Returns:
            A new plan; nothing is spent.

        Raises:
            InvalidValue: If there is no such statistic, or the weight is out of range.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.plan(ft.count(), ft.mean("age"))
        ...     print(plan.weight("count", 10)["count"].error() < plan["count"].error())
        ...     study.close()
        True
        """
        self.refuse_unknown(name)
        return self._with(control_line("weight", name, weight), "weight", name, checked_weight(weight))

    def require(self, name: str, within: float, confidence: float = 0.95) -> Plan:
        """The statistic is within `within` of the truth in `confidence` of all cases; the others share the rest.

        Neither more nor less: what it does not need goes to the others. Of a statistic of several cells it holds for
        every cell by itself; of ranges it is that of a cell, and `explain()` shows that of a range.
        The plan says in one line how often a release meets it, and on which expectations that rests.

        Args:
            name: The statistic.
            within: Its largest error, in the units of the data.
            confidence: How often the error is kept.

        Returns:
            A new plan; nothing is spent.

        Raises:
            InvalidValue: If there is no such statistic, or an argument is out of range.
            Infeasible: If it cannot be met; the error names what can.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.plan(ft.count(), ft.mean("age")).require("count", within=10)
        ...     print(plan["count"].error())
        ...     study.close()
        10.0
        """
        self.refuse_unknown(name)
        required = Requirement(within, confidence)
        line = control_line("require", name, within=within, confidence=confidence)
        return self._with(line, "require", name, required.within, required.confidence)

    def hold(self, name: str) -> Plan:
        """The statistic keeps its present noise, whatever happens to the others.

        Args:
            name: The statistic.

        Returns:
            A new plan; nothing is spent.

        Raises:
            InvalidValue: If there is no such statistic.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.plan(ft.count(), ft.mean("age"))
        ...     print(plan.hold("count").weight("mean of age", 10)["count"].error() == plan["count"].error())
        ...     study.close()
        True
        """
        self.refuse_unknown(name)
        return self._with(control_line("hold", name), "hold", name)

    def reserve(self, epsilon: float) -> Plan:
        """This much of the plan's epsilon is left unspent, and with it the share of delta that later plans need.

        Args:
            epsilon: Less than the plan's own.

        Returns:
            A new plan; nothing is spent.

        Raises:
            InvalidValue: If it is not less than the plan's epsilon.
            Infeasible: If what remains cannot meet the requirements.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(round(study.plan(ft.count()).reserve(0.25).cost.upper, 6))
        ...     study.close()
        0.75
        """
        return self._with(control_line("reserve", epsilon=epsilon), "reserve", checked_epsilon(epsilon))

    def _reserving(self, epsilon: float) -> dict[str, float]:
        most = self.problem.most_epsilon
        if not checked_epsilon(epsilon) < most:
            raise InvalidValue("epsilon", epsilon, f"must be less than the plan's {most:g}", "reserve less")
        if not epsilon < self.problem.epsilon:  # only the clock has so much
            return {"reserved": epsilon}
        # With all of delta spent, later plans would find only what plain sums of epsilon leave them.
        part = self.study.allowance(self.problem.epsilon - epsilon)
        return {"reserved": epsilon, "delta": part.delta}

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

        Args:
            weights: Weights by the name of the statistic.
            requirements: Requirements by the name of the statistic.
            reserve: What is left unspent.
            start: A plan of the same design whose division is at hand.
            quick: Whether the answer stays near `start` and the ledger is not asked: for a plan that is only shown.

        Returns:
            A new plan; nothing is spent.

        Raises:
            InvalidValue: If an argument is out of range.
            Infeasible: If the requirements cannot be met.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.plan(ft.count(), ft.mean("age"))
        ...     print(round(plan.controlled({"count": 2.0}, {}, reserve=0.25).cost.upper, 6))
        ...     study.close()
        0.75
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
        with self._with_hints():
            allocation = self._allocated(problem, None if start is None else start.allocation, quick=quick)
        request = with_controls(self.request, weights, requirements, reserve)
        return replace(self, problem=problem, request=request, lines=(*self.code, *lines), _given=allocation)

    def fitted(self, requirements: Mapping[str, Requirement], start: Plan | None = None) -> Plan:
        """The least epsilon that meets these requirements; see `Study.fit`.

        Args:
            requirements: Requirements by the name of the statistic.
            start: A plan of the same design whose division is at hand.

        Returns:
            A new plan; nothing is spent.

        Raises:
            Infeasible: If the budget, or any noise at all, cannot meet them.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     from farthing.planner import Requirement
        ...     plan = study.plan(ft.count()).fitted({"count": Requirement(12, 0.95)})
        ...     print(plan.cost.upper < 0.3)
        ...     study.close()
        True
        """
        required = {name: requirement.within for name, requirement in requirements.items()}
        options = {"require": required, "confidence": next(iter(requirements.values())).confidence}
        lines = (*study_lines(self.study), *call_lines("fit", self.asked, options, self.expected))
        control = fit_control(requirements)
        return replace(self._controlled(control, start), lines=lines)

    def _with(self, line: str, *control: Any) -> Plan:
        return replace(self._controlled(control), lines=(*self.code, line))

    def _controlled(self, control: Control, start: Plan | None = None) -> Plan:
        """With one more control: as it was released before, or as the budget allows it now."""
        self._refuse_ranked(control)
        request = self.request.then(*control)
        earlier = earlier_release(self.study, request)
        if earlier is None and self._leads_to_earlier(request):
            earlier = self.earlier
        if earlier is not None:
            return self._again(request, earlier, control)
        plan = self if self.earlier is None else self._anew()
        try:
            return plan._divided(control, start)
        except (BudgetExceeded, Infeasible, InvalidValue) as refusal:
            return self._again(request, earlier_or_raise(self.study, request, refusal), control)

    def _refuse_ranked(self, control: Control) -> None:
        """Refuse an error that is required of the most frequent values: theirs hold for all values together."""
        word, *details = control
        names = details[:1] if word == "require" else [each[0] for each in details] if word == "fit" else []
        for statistic in self.asked:
            if statistic.kind == "top" and statistic.name in names:
                way_out = f"require it of histogram({statistic.column!r}), or give it a weight"
                raise InvalidValue("require", statistic.name, "must not be the most frequent values", way_out)

    def _leads_to_earlier(self, request: Request) -> bool:
        """Whether the budget was refused to this plan already, and further controls make of it what was released."""
        earlier = self.earlier
        return earlier is not None and not earlier.exact and request.is_part_of(earlier.plan["asked"])

    def _again(self, request: Request, earlier: Earlier, control: Control) -> Plan:
        plan = Plan.again(self.study, self.asked, self.expected, self.epsilon, request, earlier)
        if not earlier.exact and "hold" in [one for one, *_ in request.controls]:
            kept = self._held_noises(control[1]) if control[0] == "hold" else {}
            plan = replace(plan, problem=replace(plan.problem, held={**self.problem.held, **kept}))
        return replace(plan, from_file=self.from_file)

    def _anew(self) -> Plan:
        """The same words under the budget as it is now."""
        problem = self.study.problem(self.asked, self.epsilon, self.expected)
        plan = Plan.draft(self.study, self.asked, problem, self.expected, self.epsilon)
        for control in self.request.controls:
            plan = plan._divided(control)
        return replace(plan, lines=self.lines, from_file=self.from_file)

    def _divided(self, control: Control, start: Plan | None = None) -> Plan:
        """The budget divided with one more control."""
        word, *details = control
        with self._with_hints():
            if word == "fit":
                allocation = self._fit(required_by(control), start)
                problem = allocation.problem
            else:
                problem = replace(self.problem, **self._changes(word, *details))
                allocation = self._allocated(problem, self.allocation)
        return replace(self, problem=problem, request=self.request.then(*control), _given=allocation)

    def _allocated(self, problem: Problem, start: Allocation | None = None, *, quick: bool = False) -> Allocation:
        """The noises that the ledger would admit now; it is not asked about what was released, or is only looked at."""
        # What is only looked at has no ledger's word, but for what may be too much of a clock by far.
        new = self.earlier is None and (not quick or problem.clock is not None)
        usage = usage_of(self.study) if new else None
        try:
            return allocate(problem, start, quick=quick, usage=usage)
        except Infeasible:
            if usage is not None:  # where others have spent meanwhile, that is the reason
                self.study.allowance(self.epsilon, plan=True)
            raise

    def _changes(self, word: str, *details: Any) -> dict[str, Any]:
        """What a control changes in the problem."""
        if word == "reserve":
            return self._reserving(*details)
        name, *numbers = details
        if word == "weight":
            return {"weights": {**self.problem.weights, name: numbers[0]}}
        if word == "require":
            return {"requirements": {**self.problem.requirements, name: Requirement(*numbers)}}
        held = {**self.problem.held, **self._held_noises(name)}
        return {"held": held, "kept": {**self.problem.kept, **self.allocation.kept_with(name)}}

    def _held_noises(self, name: str) -> dict[str, Noise]:
        slots = self.named(name).output.slots
        return {slot.name: self.allocation.noises[slot.name] for slot in slots}

    def _fit(self, requirements: Mapping[str, Requirement], start: Plan | None) -> Allocation:
        problem = replace(self.problem, requirements=dict(requirements))
        refusal: Infeasible | None = None
        for way in problem.ways:
            try:
                return self._fit_one_way(way, start)
            except Infeasible as refused:  # the last, and largest, way has the last word
                refusal = refused
        assert refusal is not None
        raise refusal

    def _fit_one_way(self, problem: Problem, start: Plan | None) -> Allocation:
        allocation = fit(problem, (start or self).allocation)
        share = allocation.problem.epsilon / problem.epsilon
        if problem.delta > 0 and share < 1 and not problem.on_clock:
            # Less delta needs no less epsilon, so the share of delta stays at most that of epsilon.
            allocation = fit(replace(problem, delta=problem.delta * share), allocation)
        refuse_over(allocation.problem.epsilon, problem.epsilon, tuple(problem.requirements))
        usage = usage_of(self.study)
        if usage is not None and not usage(allocation.event, allocation.problem.delta) <= 1:
            refuse_over(allocation.problem.epsilon, 0.0, tuple(problem.requirements))
        return allocation

    @contextmanager
    def _with_hints(self) -> Iterator[None]:
        """What cannot be met under an assumption may be met in truth, and the refusal says so."""
        try:
            yield
        except Infeasible as refusal:
            own = errors_rest_on(self.asked, refusal.blocking, self.study.dataset, self.expected, self.design.counted)
            assumed = tuple(one.in_toml if self.from_file else str(one) for one in own)
            if not assumed:
                raise
            message = f"{refusal} The errors rest on assumptions: {'; '.join(assumed)}."
            raise Infeasible(
                message,
                blocking=refusal.blocking,
                closest=refusal.closest,
                epsilon=refusal.epsilon,
                hardest=refusal.hardest,
                offers=refusal.offers,
                holds=refusal.holds,
            ) from None

    @property
    def measurements(self) -> Measurements:
        """What would be run: slots with their noises."""
        return self.design.measurements(self.allocation.noises)

    def release(
        self,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        fresh: bool = False,
        title: str = "",
    ) -> Release:
        """Charge the ledger, run once on the engine, add the noise, record, answer.

        The same request is answered once: asking again, in another process or next year, returns the stored answers and
        spends nothing.

        Args:
            request_id: Names a release of your own, which is answered once too.
            progress: Called with a share between 0 and 1 while the engine runs.
            fresh: Draw new noise, which is charged again.
            title: What people will find it by, such as "table 4 of the yearbook"; the statistics' names by default.

        Returns:
            The answers with their errors, and the receipt of the charge.

        Raises:
            BudgetExceeded: If the ledger does not admit the charge; nothing is spent.
            AnswerForfeited: If the run failed after the charge, which stays.
            InvalidValue: If `request_id` was charged before for something else.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     release = study.plan(ft.count()).release()
        ...     print(list(release), release.repeated, study.plan(ft.count()).release().repeated)
        ...     study.close()
        ['count'] False True
        """
        return release_of_plan(self._as_approved(), request_id, progress, fresh=fresh, title=title)

    def _as_approved(self) -> Plan:
        """The plan as a curator approved it: budgets may have moved since it was asked for, and its noise with them."""
        study = self.study
        if study.analyst is None or self.earlier is not None:
            return self
        request = study.ledger.requests.approved(study.name, study.payer, self.request.name)
        if request is None or "plan" not in request.document:
            return self
        kept = request.document["plan"]
        plan = Plan.requested(study, self.asked, self.expected, self.epsilon, self.request, kept)
        return replace(plan, lines=self.lines, from_file=self.from_file)

    def submit(self, purpose: str, title: str = "") -> PlanRequest:
        """Ask a curator to allow the release of this plan; nothing is spent.

        Once the request is approved, `release()` of the same plan, in this script or the next time it runs, charges
        exactly what was approved, once. To ask for more than your grant has, plan with `study.on_request()`.

        Args:
            purpose: What the answers are for.
            title: A few words to call it by; the names of the statistics by default.

        Returns:
            The request with its number; the one that is there already if you asked for the same.

        Raises:
            InvalidValue: If nobody asks (a curator needs no request), or the plan was released before.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
        >>> folder = tempfile.TemporaryDirectory()
        >>> ada = ft.Study(people, epsilon=1.0, ledger=folder.name + "/study.db", name="people")
        >>> ada.register()
        >>> _ = ada.ledger.grant("people", "bob", 0.0)
        >>> bob = ft.Study(people, epsilon=1.0, ledger=ada.ledger.acting("bob", "analyst"), name="people")
        >>> plan = bob.plan(ft.count(), epsilon=0.5)
        >>> plan.submit("the yearbook").state
        'open'
        >>> _ = ada.ledger.requests.approve(plan.submit("the yearbook").id)
        >>> round(plan.release().cost, 6)
        0.5
        >>> ada.close(); folder.cleanup()
        """
        return submitted(self, self.asked, purpose, title)

    def change_request(self, request: int, reason: str, expires: date | str | None = None) -> PlanRequest:
        """For a curator: allow this plan in place of the one that an analyst asked for.

        Make it with a study of that analyst, `Study(..., analyst="bob")`. The analyst sees the new version and the
        reason, and may release it.

        Args:
            request: The number of the request.
            reason: Why, for the analyst.
            expires: The last day on which it may be charged; 90 days from now by default.

        Returns:
            The request as it is now.

        Raises:
            InvalidValue: If the request is somebody else's, or was declined, withdrawn or used.
            NotAllowed: If the role is not "curator".
        """
        return changed(self, self.asked, request, reason, expires)

    def __str__(self) -> str:
        return plan_table(self)

    def __repr__(self) -> str:
        epsilon = number_text(self.allocation.problem.epsilon)
        return f"Plan({len(self.statistics)} statistics, epsilon={epsilon}, nothing spent)"

    _repr_html_ = plan_html

    def explain(self) -> str:
        """In words: what is measured, what each statistic is made of, and why it costs what it does.

        Returns:
            Several lines of text.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print("count" in study.plan(ft.count()).explain())
        ...     study.close()
        True
        """
        return plan_explanation(self)

    def plot(self) -> Any:
        """Errors, shares of the budget and prices, as an Altair chart.

        Returns:
            The chart.

        Raises:
            MissingExtra: If the extra `plots` is not installed.
        """
        from farthing.plots import plan_chart

        return plan_chart(self.to_dict())

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The plan as plain data.

        Args:
            confidence: How often the errors hold.

        Returns:
            Dictionaries, lists, numbers and texts.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count()).to_dict()["statistics"][0]["error"])
        ...     study.close()
        3.0
        """
        return plan_data(self, confidence)

    def to_json(self, confidence: float = 0.95) -> str:
        """The plan as JSON; what is infinite is null.

        Args:
            confidence: How often the errors hold.

        Returns:
            The text of `to_dict`.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count()).to_json()[0])
        ...     study.close()
        {
        """
        return json.dumps(plain(self.to_dict(confidence)), indent=2)

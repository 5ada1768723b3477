"""`KeyCountPlan`: a count by a column whose values nobody listed, in one step, alone or beside other statistics.

The noise that decides which values are found is the noise of their counts, so that its whole epsilon goes into both.
It is one charge, under the name of the finding: later plans use the values that it has found. Statistics beside it need
nothing of what is found. Their noise is fixed before anything is drawn, like that of the count, so that all of it is
one fixed plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from farthing.adaptive.discovery import KeySearch, key_search
from farthing.adaptive.discovery.key_search import kept_of_each, value_of
from farthing.data import Categories
from farthing.data.unknown_columns import known
from farthing.errors import BudgetExceeded, Infeasible, InvalidValue
from farthing.ledger import PlanRequest
from farthing.ledger.entries import checked_name
from farthing.numerics import Bounds
from farthing.numerics.bounds import number_text
from farthing.planner import Allocation, Problem, Requirement, TheoremPrices, allocate, proven_cost
from farthing.privacy import Composed, Event
from farthing.privacy.events import MAX_EPSILON
from farthing.statistics import Statistic
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise, Slot
from farthing.study.counted_search import Beside, CountedSearch
from farthing.study.discovery_plan import OWN_DELTA
from farthing.study.findings import counted_finding, find, paid_finding
from farthing.study.one_step_count import CONTROLS, OneStepCount, one_step_count
from farthing.study.plan import Plan
from farthing.study.plan_contents import least_in_cell
from farthing.study.plan_statistic import AtOnce, PlannedStatistic, planned_statistic
from farthing.study.release import Release, post_processing, predicted, stored_release, warn_if_changed
from farthing.study.release_request import (
    Control,
    Earlier,
    Request,
    changes_of,
    checked_weight,
    with_controls,
)
from farthing.study.staged_plan import in_use
from farthing.study.study_account import Allowance, StudyAccount, counted_rows

_VALUES = 10  # as many values are supposed where a plan needs some: no error depends on it
_HAIRS = (0.0, 1e-9, 1e-6, 1e-3)  # of epsilon that the others do without, so that all of it fits


@dataclass(frozen=True, eq=False)
class FoundStatistic(PlannedStatistic):
    """What is predicted of a count whose values are found with it: errors of values that enough units share."""

    search: KeySearch | None = None
    even_search: KeySearch | None = None  # for an even share of the plan's epsilon; None where it has all of it

    @property
    def epsilon(self) -> float:
        """What the search costs: finding the values is in it."""
        assert self.search is not None
        return self.search.epsilon

    def even_share(self, confidence: float = 0.95) -> float:
        """The error if the search had an even share of the epsilon."""
        search = self.even_search or self.search
        assert search is not None
        return float(search.counts.promise(confidence)[1])

    @property
    def shown_even_share(self) -> str:
        """The same for a table; empty where it is the only statistic of its plan."""
        return "" if self.even_search is None else f"± {number_text(self.even_share())}"

    def worst_error(self, confidence: float = 0.95) -> float:
        """The same for every value that enough units share."""
        return self.error(confidence)

    def error(self, confidence: float = 0.95, *, at_once: bool = False) -> float:
        """How far off the count of a value is that enough units share; see `sentence`."""
        assert self.search is not None
        return float(self.search.counts.promise(confidence)[1])

    @property
    def shown_error(self) -> str:
        """The 95% error, and from how many units on it holds."""
        assert self.search is not None
        units, error = self.search.counts.promise()
        return f"± {number_text(error)} (values with {units:,} or more)"

    @property
    def sentence(self) -> str:
        """How often a value appears, and how far off its count is."""
        assert self.search is not None
        units, error = self.search.counts.promise()
        words = value_of(units, self.search.units, self.search.max_keys)
        return f"{words} appears 95 times in 100, with a count within ±{number_text(error)}"


@dataclass(frozen=True, eq=False)
class KeyCountPlan(Plan):
    """A plan with one count by an unknown column: its values and their counts come from the same noise.

    Made by `Study.plan`. What it predicts of the count holds for every value with enough units; how many values there
    will be nobody knows. Other statistics may stand beside it, if they need nothing that is unknown. By default the
    search gets an even share of the epsilon; a weight changes that as it does for any statistic.

    Args:
        whole: The study as it is declared.
        search: The search whose noisy counts are released.
        counted: The noise of the search, as that of a measurement.
        others: The plan of the statistics beside the count, if there are any.

    >>> import pyarrow, tempfile, farthing as ft
    >>> visits = pyarrow.table({"who": list(range(3_000)), "drug": ["a", "b", "c"] * 1_000, "age": [40] * 3_000})
    >>> schema = {"drug": ft.unknown("text"), "age": (0, 110)}
    >>> visits = ft.dataset(visits, unit="who", max_rows=1, schema=schema, name="visits")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(visits, epsilon=1.0, delta=1e-6, ledger=folder + "/study.db")
    ...     plan = study.plan(ft.count(by="drug", of="people", max_cells=1), ft.mean("age"))
    ...     print(plan["count of people by drug"].sentence)
    ...     release = plan.release()
    ...     print(release["count of people by drug"].labels, study.dataset.schema["drug"].values, list(release))
    ...     study.close()
    a value that 34 or more units (who) have as the one value kept of each, chosen at random, appears 95 times in 100,
    with a count within ±7
    ('a', 'b', 'c') ('a', 'b', 'c') ['count of people by drug', 'mean of age']
    """

    whole: StudyAccount | None = None
    search: KeySearch | None = None
    counted: Allocation | None = None
    others: Plan | None = None

    @cached_property
    def cost(self) -> Bounds:
        """What is charged: the epsilon of the search, or what it and the others cost together, proven."""
        if self.others is None:
            return Bounds(self._search.epsilon, self._search.epsilon)
        return proven_cost(self._event, self.delta)

    @property
    def price(self) -> TheoremPrices:
        """The others under each theorem, to which the search adds its epsilon; one search alone has only that."""
        one, own = self._search.epsilon, self._search.delta
        if self.others is None:
            return TheoremPrices(basic=one, advanced=one, kov=one, optimal=one, own=one, delta=own, count=1)
        rest = self.others.price
        sums = {name: getattr(rest, name) + one for name in ("basic", "advanced", "kov", "optimal")}
        return TheoremPrices(**sums, own=self.cost.upper, delta=self.delta, count=rest.count + 1)

    @property
    def adaptive_cost(self) -> float:
        """What it would cost to choose each measurement after seeing those before it; the search adds its epsilon."""
        return self._search.epsilon + (0.0 if self.others is None else self.others.adaptive_cost)

    @property
    def column(self) -> str:
        """The column whose values are found."""
        return self._search.name

    @property
    def _search(self) -> KeySearch:
        assert self.search is not None
        return self.search

    @property
    def _event(self) -> Event:
        return _event_of(self._search, self.others)

    @property
    def _count(self) -> Statistic:
        """The statistic whose values are found."""
        others = () if self.others is None else self.others.asked
        return next(each for each in self.asked if each not in others)

    @cached_property
    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """The count, with what holds whatever the rows are, and those beside it, in the order they were asked for."""
        assert self.counted is not None
        plain = planned_statistic(self.design.output(self._count.name), self.counted, self.study.dataset)
        facts = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
        # The values that a plan supposes are nobody's: no cell of them is shown.
        facts["output"] = replace(plain.output, labels=(), reference=np.zeros(0))
        planned: dict[str, PlannedStatistic] = {}
        planned[plain.name] = FoundStatistic(**facts, search=self._search, even_search=self._even_search)
        planned |= {} if self.others is None else {each.name: each for each in self.others.statistics}
        return tuple(planned[output.name] for output in self.design.outputs)

    @property
    def _even_search(self) -> KeySearch | None:
        if self.others is None:
            return None
        problem = self.problem
        even = (problem.epsilon - problem.reserved) / len(self.asked)
        return replace(self._search, epsilon=min(even, MAX_EPSILON))

    @property
    def notes(self) -> tuple[str, ...]:
        """Which values will appear, and that they are counted with them; and those of the statistics beside them."""
        return (f"found and counted at once: {self._search.prediction}", *(self.others.notes if self.others else ()))

    def explain(self) -> str:
        """What is measured and what is made of it, in words.

        Returns:
            The text.
        """
        one, search = self.named(self._count.name), self._search
        noise, kept = search.counts.noise, kept_of_each(search.units, search.max_keys)
        spread = f"{one.mechanism} noise of standard error {number_text(noise.standard_error)}"
        cost = f"Cost: epsilon {number_text(search.epsilon, 6)} at delta {search.delta:g}, for all of it"
        lines = [
            "What is measured:",
            f"  how many {search.units} have each value of {search.name} {kept}".rstrip() + f", with {spread}",
            "What is computed from it:",
            f"  {one.name}: the values whose noisy count reaches {noise.threshold:,}, with these counts;",
            f"    {one.sentence}",
            "    a value below that is shown by luck alone, and then its count is about the threshold; intervals",
            "    hold 95 times in 100 for every value that is shown, however many have it",
            cost,
        ]
        if self.others is not None:
            whole = f"epsilon {number_text(self.cost.upper, 6)} at delta {self.delta:g}, proven, as one charge"
            lines += ["", "Beside it:", *(f"  {line}" for line in self.others.explain().splitlines())]
            lines += ["", f"Together: {whole}"]
        return "\n".join(lines)

    def at_once(self, confidence: float = 0.95) -> AtOnce:
        """Nothing is known of all numbers before it is known how many there are; a release has it."""
        return AtOnce(confidence, 1, confidence, True, {one.name: one.error(confidence) for one in self.statistics})

    def release(
        self,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        fresh: bool = False,
        title: str = "",
    ) -> Release:
        """Charge for all of it, and answer with the values that were found, their counts and the other statistics.

        Args:
            request_id: Must be left out: values are found under the name of their column, once.
            progress: Called with a share between 0 and 1 while the engine runs.
            fresh: Search again, which is charged again; later plans then use the new values.
            title: What people will find it by; the names of the statistics by default.

        Returns:
            The answers, and the receipt of the charge. Without the count if no value was found; `about` says so.

        Raises:
            BudgetExceeded: If the budget does not have what it costs; nothing is spent.
            AnswerForfeited: If the run failed after the charge, which stays.
            InvalidValue: If a request id is given, a policy withholds small cells from the analyst, or no value was
                found and nothing else was asked, which is paid for.
        """
        assert self.whole is not None
        if request_id is not None:
            way_out = "leave it out, or find the values first: study.discover"
            raise InvalidValue("request_id", request_id, "cannot name what finds values and counts them", way_out)
        if self.earlier is not None and not self.earlier.exact:
            rule = f"no longer fits the budget: it is shown as it was when {self.earlier.request_id!r} was planned"
            raise InvalidValue(
                "plan", self.column, rule, "release it with the controls it had then, which costs nothing"
            )
        if self.earlier is not None and not fresh:
            release = stored_release(self.whole.ledger, self.earlier.request_id)
            warn_if_changed(self.whole, release.receipt, "release(fresh=True)")
            return release
        if least_in_cell(self) != 0:
            rule = "would show small cells, which a policy withholds from you"
            raise InvalidValue("plan", self.column, rule, "find the values first with study.discover, then count")
        paid = find(self.whole, self._question(title), fresh=fresh, progress=progress, world="planned")
        self.whole.learn()
        earlier = counted_finding(self.whole, self.column, self.request)
        if earlier is not None and not earlier.exact:
            earlier = None
        if earlier is None and not paid.finding.is_usable:
            raise InvalidValue("column", self.column, paid.finding.sentence.partition(": ")[2], "it was paid for")
        if earlier is None:
            rule = "was found meanwhile by somebody else, without counts"
            raise InvalidValue("column", self.column, rule, "plan the count again: its values are known now")
        return replace(stored_release(self.whole.ledger, earlier.request_id), repeated=paid.repeated)

    def _question(self, title: str) -> CountedSearch:
        kept = {**predicted(self), **({"title": checked_name(title, "title")} if title else {})}
        kept["made"] |= {"search": [self._search.epsilon, self._search.delta]}
        if self.others is None:
            return CountedSearch(self._search, self._count, kept, self._search.delta)
        kept["made"] |= {"others": [self.others.allowance.epsilon, self.others.allowance.delta]}
        beside = Beside(self.others.study.dataset, self.others.measurements, post_processing(self.others, "", 0))
        return CountedSearch(self._search, self._count, kept, self.delta, beside)

    def submit(self, purpose: str, title: str = "") -> PlanRequest:
        """Refused: a curator approves a plan whose values are known."""
        raise self._refusal("submit")

    def controlled(
        self,
        weights: Mapping[str, float],
        requirements: Mapping[str, Requirement],
        reserve: float | None = None,
        start: Plan | None = None,
        *,
        quick: bool = False,
    ) -> Plan:
        """`weight`, `require` and `reserve` at once.

        Args:
            weights: Weights by the name of the statistic.
            requirements: Requirements by the name of the statistic; not of the count.
            reserve: What is left unspent.
            start: Not used.
            quick: Not used.

        Returns:
            A new plan; nothing is spent.

        Raises:
            InvalidValue: If an argument is out of range, or something is required of the count.
            Infeasible: If the requirements cannot be met.
        """
        controls = with_controls(self.request, weights, requirements, reserve).controls
        plan: Plan = self
        for control in controls[len(self.request.controls) :]:
            plan = plan._controlled(control)
        return plan

    def _controlled(self, control: Control, start: Plan | None = None) -> Plan:
        word, *details = control
        if self.others is None or word not in CONTROLS:
            raise self._refusal(word)
        if word == "require" and details[0] == self._count.name:
            raise self._refusal(word)
        assert self.whole is not None
        request = self.request.then(*control)
        plan = key_count_plan(self.whole, self.asked, self.expected, self.epsilon, request.controls)
        if not isinstance(plan, KeyCountPlan):
            rule = "is no longer unknown: its values were found after the plan was made"
            raise InvalidValue("column", self.column, rule, "plan again")
        return replace(plan, from_file=self.from_file)

    def _refusal(self, word: str) -> InvalidValue:
        way_out = "limit it with epsilon=, or find the values first with study.discover and plan again"
        if self.others is not None and word == "require":
            way_out = "give it a weight, or find the values first with study.discover and plan again"
        return InvalidValue(
            "plan",
            word,
            f"cannot be asked of a count whose values are found with it: {self.column} is not known yet",
            way_out,
        )


@dataclass(frozen=True, eq=False)
class KnownKeysPlan(Plan):
    """A plan of statistics whose values were found by the same request with further controls.

    As it is, it is a new request, which is measured with noise of its own. With these controls it is what was released:
    a script that runs again gets the answers that it has paid for.

    Args:
        whole: The study as it is declared.
    """

    whole: StudyAccount | None = None

    def _controlled(self, control: Control, start: Plan | None = None) -> Plan:
        assert self.whole is not None
        controls = self.request.then(*control).controls
        plan = key_count_plan(self.whole, self.asked, self.expected, self.epsilon, controls)
        return super()._controlled(control, start) if plan is None else replace(plan, from_file=self.from_file)


def key_count_plan(
    study: StudyAccount,
    asked: tuple[Statistic, ...],
    expected: Mapping[str, Any] | None,
    epsilon: float | None,
    controls: Sequence[Control] = (),
) -> KeyCountPlan | KnownKeysPlan | None:
    """The plan in one step with a count by a column of unknown text; None where that is not what is asked.

    Nor where its values are known by now, unless this very request has found them: then it is that plan again. If this
    request with further controls has found them, it is a plan that can become that one.
    """
    one = one_step_count(study, asked, expected)
    if one is None or not one.takes(controls):
        return None
    own = copy(study)
    own.dataset = study.declared
    if one.others:
        own = in_use(own, one.others, one.expected_of_others(expected))
    request = replace(Request.of(own, asked, epsilon, expected), controls=tuple(controls))
    earlier = counted_finding(study, one.column, request)
    if earlier is None and paid_finding(study, one.column) is not None:
        return None
    if earlier is not None and not earlier.exact:
        try:
            plan = Plan.of(in_use(study, asked, expected), asked, expected, epsilon)
            for control in controls:
                plan = plan._controlled(control)
        except (BudgetExceeded, Infeasible):  # then it is shown as it was, for the controls that are still to come
            return _Making(study, own, asked, one, expected, epsilon, request, earlier).plan()
        facts = {each.name: getattr(plan, each.name) for each in fields(Plan)}
        return KnownKeysPlan(**facts, whole=study)
    return _Making(study, own, asked, one, expected, epsilon, request, earlier).plan()


@dataclass(frozen=True)
class _Making:
    """A plan in the making: what it may cost, and how that is divided."""

    study: StudyAccount
    own: StudyAccount  # with the findings that the other statistics need
    asked: tuple[Statistic, ...]
    one: OneStepCount
    expected: Mapping[str, Any] | None
    epsilon: float | None
    request: Request
    earlier: Earlier | None

    def plan(self) -> KeyCountPlan:
        """The noise of the search and that of the others, which fit the budget together."""
        allowed, part, reserved = self._allowances()
        price, rest = self._parts(part)
        others = self._others(rest) if self.one.others else None
        search = self._search(price, others, part)
        words, count, noises = self._count(search)
        counted = replace(allocate(count), noises=noises)
        design, problem, given = count.design, count, counted
        assert isinstance(design, Design)
        if others is None:
            problem = replace(problem, design=replace(design, assumptions=()))
        else:
            outputs = {output.name: output for output in (*design.outputs, *others.design.outputs)}
            slots = (*design.slots, *others.design.slots)
            ordered = tuple(outputs[each.name] for each in self.asked)
            weights = changes_of(self.request, others.problem)["weights"]
            problem = replace(
                others.problem,
                design=replace(others.design, slots=slots, outputs=ordered),
                epsilon=allowed.epsilon,
                delta=min(search.delta + others.delta, part.delta) if self.earlier is None else price[1] + others.delta,
                weights=weights,
                reserved=reserved,
            )
            given = others.allocation
        given = replace(given, problem=problem)
        draft = Plan.draft(words, self.asked, problem, self.expected, self.epsilon)
        facts = {name: getattr(draft, name) for name in Plan.__dataclass_fields__}
        facts |= {"request": self.request, "earlier": self.earlier, "allowance": allowed, "_given": given}
        return KeyCountPlan(**facts, whole=self.study, search=search, counted=counted, others=others)

    def _allowances(self) -> tuple[Allowance, Allowance, float]:
        """What the budget has for it, what is left of that beside what is reserved, and how much is."""
        reserved = next((control[1] for control in reversed(self.request.controls) if control[0] == "reserve"), 0.0)
        if self.earlier is not None:
            allowed = Allowance(*map(float, self.earlier.plan["made"]["allowance"]))
            return allowed, replace(allowed, epsilon=allowed.epsilon - reserved), reserved
        allowed = replace(self.study.allowance(self.epsilon, plan=True), clock=None)
        if not reserved:
            return allowed, allowed, 0.0
        if not 0 <= reserved < allowed.epsilon:
            rule = f"must be less than the plan's {allowed.epsilon:g}"
            raise InvalidValue("epsilon", reserved, rule, "reserve less")
        part = self.study.allowance(allowed.epsilon - reserved, plan=True)
        return allowed, replace(part, clock=None), reserved

    def _parts(self, part: Allowance) -> tuple[tuple[float, float], Allowance]:
        """Epsilon and delta of the search, and of the others; of delta a small part for the search.

        More of it would not lower a threshold by much, unless it is the last plan and the first.
        """
        if self.earlier is not None:
            made = self.earlier.plan["made"]
            epsilon, delta = map(float, made.get("search", made["allowance"]))
            return (epsilon, delta), Allowance(*map(float, made.get("others", (0.0, 0.0))))
        total = self.study.budget.total
        is_all = self.study.budget.untouched and part.epsilon == total.epsilon
        most = part.delta / 2 if self.one.others else part.delta
        delta = most if is_all else min(most, total.delta / OWN_DELTA / 2)
        epsilon = min(part.epsilon * self._share, MAX_EPSILON) if self.one.others else part.epsilon
        return (epsilon, delta), Allowance(part.epsilon - epsilon, part.delta - delta)

    @property
    def _share(self) -> float:
        """The share of epsilon that the search gets: with a weight of 8 twice as much as with 1."""
        weights = {word[1]: checked_weight(word[2]) for word in self.request.controls if word[0] == "weight"}
        shares = {each.name: weights.get(each.name, 1.0) ** (1 / 3) for each in self.asked}
        return float(shares[self.one.statistic.name] / sum(shares.values()))

    def _others(self, rest: Allowance) -> Plan:
        """The plan of the other statistics for their part of the budget."""
        expected = self.one.expected_of_others(self.expected)
        counted = counted_rows(self.own, expected)
        problem = self.own.problem(self.one.others, rest.epsilon, expected, allowance=rest, counted=counted)
        plan = replace(Plan.draft(self.own, self.one.others, problem, expected, rest.epsilon), earlier=self.earlier)
        changes = changes_of(self.request, problem)
        weights = {name: weight for name, weight in changes["weights"].items() if name != self.one.statistic.name}
        if weights or changes["requirements"]:
            return plan.controlled(weights, changes["requirements"])
        return plan

    def _search(self, price: tuple[float, float], others: Plan | None, part: Allowance) -> KeySearch:
        """The search for its part; a hair less where all of it would not fit, as far as that is proven."""
        table, one = self.study.declared, self.one
        epsilon, delta = price
        for hair in _HAIRS:
            search = key_search(table, one.column, epsilon * (1 - hair), delta, one.most, counted=True)
            if others is None or self.earlier is not None:
                break
            if proven_cost(_event_of(search, others), delta + others.delta).upper <= part.epsilon:
                break
        search.check(table)
        return search

    def _count(self, search: KeySearch) -> tuple[StudyAccount, Problem, dict[str, Noise]]:
        """The count of a table that has some values, with the noise of the search."""
        some = Categories([f"value {number}" for number in range(1, max(_VALUES, search.max_keys + 1) + 1)])
        words = copy(self.own)
        words.dataset = known(self.own.dataset, {search.name: some})
        design = design_of((self.one.statistic,), words.dataset, self.one.expected_of_count(self.expected))
        noises = {slot.name: _noise(slot, search) for slot in design.slots}
        return words, Problem(design, search.epsilon, search.delta), noises


def _event_of(search: KeySearch, others: Plan | None) -> Event:
    """All that is measured, as one fixed plan."""
    return search.event if others is None else Composed(((search.event, 1), (others.allocation.measured, 1)))


def _noise(slot: Slot, search: KeySearch) -> Noise:
    """The noise of the search as that of a measurement, not a hair less."""
    noise = search.counts.noise
    if noise.kind == "gaussian":
        return Noise("gaussian", float(noise.spread) ** 0.5 / slot.sensitivity.l2)
    return Noise("laplace", min(slot.sensitivity.l1 / float(noise.spread), search.epsilon) * (1 - 1e-12))

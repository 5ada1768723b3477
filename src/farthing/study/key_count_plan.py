"""`KeyCountPlan`: a count by a column whose values nobody listed, in one step.

The noise that decides which values are found is the noise of their counts, so that the whole epsilon goes into both.
It is one charge, under the name of the finding: later plans use the values that it has found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from farthing.adaptive.discovery import KeySearch, finding_of, key_search
from farthing.adaptive.discovery.found_counts import found_counts
from farthing.data import Categories, Dataset
from farthing.data.unknown_columns import known
from farthing.errors import InvalidValue
from farthing.inference.answers import level_at_once
from farthing.ledger import PlanRequest
from farthing.ledger.entries import checked_name
from farthing.mechanisms.weighted_keys import MOST_KEYS
from farthing.numerics import Bounds
from farthing.numerics.bounds import number_text
from farthing.planner import Problem, TheoremPrices, allocate
from farthing.privacy import Event
from farthing.statistics import Statistic
from farthing.statistics.answer_records import stored_form, with_note
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise, Slot
from farthing.study.discovery_plan import OWN_DELTA
from farthing.study.findings import counted_finding, find, paid_finding
from farthing.study.plan import Plan
from farthing.study.plan_contents import least_in_cell
from farthing.study.plan_statistic import AtOnce, PlannedStatistic
from farthing.study.release import Release, predicted, stored_release, warn_if_changed
from farthing.study.release_request import Control, Earlier, Request
from farthing.study.study_account import StudyAccount

_VALUES = 10  # as many values are supposed where a plan needs some: no error depends on it
_KIND = "count of found values"


@dataclass(frozen=True, eq=False)
class FoundStatistic(PlannedStatistic):
    """What is predicted of a count whose values are found with it: errors of values that enough units share."""

    search: KeySearch | None = None

    @property
    def epsilon(self) -> float:
        """What the search costs: finding the values is in it."""
        assert self.search is not None
        return self.search.epsilon

    @property
    def shown_even_share(self) -> str:
        """Empty: it is the only statistic of its plan."""
        return ""

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
        words = f"a value that {units:,} or more {self.search.units} share appears 95 times in 100"
        return f"{words}, with a count within ±{number_text(error)}"


@dataclass(frozen=True, eq=False)
class KeyCountPlan(Plan):
    """A plan of one count by an unknown column: its values and their counts come from the same noise.

    Made by `Study.plan`. What it predicts holds for every value with enough units; how many values there will be nobody
    knows.

    Args:
        whole: The study as it is declared.
        search: The search whose noisy counts are released.

    >>> import pyarrow, tempfile, farthing as ft
    >>> visits = pyarrow.table({"who": list(range(3_000)), "drug": ["a", "b", "c"] * 1_000})
    >>> visits = ft.dataset(visits, unit="who", max_rows=1, schema={"drug": ft.unknown("text")}, name="visits")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(visits, epsilon=1.0, delta=1e-6, ledger=folder + "/study.db")
    ...     plan = study.plan(ft.count(by="drug", of="people", max_cells=1))
    ...     print(plan["count of people by drug"].sentence)
    ...     release = plan.release()
    ...     print(release["count of people by drug"].labels, study.dataset.schema["drug"].values)
    ...     study.close()
    a value that 17 or more units (who) share appears 95 times in 100, with a count within ±4
    ('a', 'b', 'c') ('a', 'b', 'c')
    """

    whole: StudyAccount | None = None
    search: KeySearch | None = None

    @property
    def cost(self) -> Bounds:
        """What is charged: the epsilon of the search, at its delta."""
        return Bounds(self._search.epsilon, self._search.epsilon)

    @property
    def price(self) -> TheoremPrices:
        """One search: there is nothing to compose."""
        one = self._search.epsilon
        return TheoremPrices(basic=one, advanced=one, kov=one, optimal=one, own=one, delta=self._search.delta, count=1)

    @property
    def adaptive_cost(self) -> float:
        """The same: it is one charge."""
        return self._search.epsilon

    @property
    def column(self) -> str:
        """The column whose values are found."""
        return self._search.name

    @property
    def _search(self) -> KeySearch:
        assert self.search is not None
        return self.search

    @cached_property
    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """The count, with what holds whatever the rows are."""
        (plain,) = Plan.statistics.func(self)  # type: ignore[attr-defined]
        facts = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
        # The values that a plan supposes are nobody's: no cell of them is shown.
        facts["output"] = replace(plain.output, labels=(), reference=np.zeros(0))
        return (FoundStatistic(**facts, search=self._search),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """None: what is predicted holds whatever the rows are."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Which values will appear, and that they are counted with them."""
        return (f"found and counted at once: {self._search.prediction}",)

    def explain(self) -> str:
        """What is measured and what is made of it, in words.

        Returns:
            The text.
        """
        (one,), search = self.statistics, self._search
        noise = search.counts.noise
        spread = f"{one.mechanism} noise of standard error {number_text(noise.standard_error)}"
        return "\n".join(
            [
                "What is measured:",
                f"  how many {search.units} have each value of {search.name}, with {spread}",
                "What is computed from it:",
                f"  {one.name}: the values whose noisy count reaches {noise.threshold:,}, with these counts;",
                f"    {one.sentence}",
                "    a value below that is shown by luck alone, and then its count is about the threshold; intervals",
                "    hold 95 times in 100 for every value that is shown, however many have it",
                f"Cost: epsilon {number_text(search.epsilon, 6)} at delta {search.delta:g}, for all of it",
            ]
        )

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
        """Charge for the search, and answer with the values that it has found and their counts.

        Args:
            request_id: Must be left out: values are found under the name of their column, once.
            progress: Called with a share between 0 and 1 while the engine runs.
            fresh: Search again, which is charged again; later plans then use the new values.
            title: What people will find it by; the name of the count by default.

        Returns:
            The counts of the values that were found, and the receipt of the charge.

        Raises:
            BudgetExceeded: If the budget does not have what it costs; nothing is spent.
            AnswerForfeited: If the run failed after the charge, which stays.
            InvalidValue: If a request id is given, a policy withholds small cells from the analyst, or no value was
                found, which alone is paid for.
        """
        assert self.whole is not None
        if request_id is not None:
            way_out = "leave it out, or find the values first: study.discover"
            raise InvalidValue("request_id", request_id, "cannot name what finds values and counts them", way_out)
        if self.earlier is not None and not fresh:
            release = stored_release(self.whole.ledger, self.earlier.request_id)
            warn_if_changed(self.whole, release.receipt, "release(fresh=True)")
            return release
        if least_in_cell(self):
            rule = "would show small cells, which a policy withholds from you"
            raise InvalidValue("plan", self._search.name, rule, "find the values first with study.discover, then count")
        kept = {**predicted(self), **({"title": checked_name(title, "title")} if title else {})}
        question = _CountedSearch(self._search, self.asked[0], kept)
        paid = find(self.whole, question, fresh=fresh, progress=progress, world="planned")
        self.whole.learn()
        if not paid.finding.is_usable:
            raise InvalidValue("column", self._search.name, paid.finding.sentence.partition(": ")[2], "it was paid for")
        earlier = counted_finding(self.whole, self._search.name, self.request)
        if earlier is None:
            rule = "was found meanwhile by somebody else, without counts"
            raise InvalidValue("column", self._search.name, rule, "plan the count again: its values are known now")
        return replace(stored_release(self.whole.ledger, earlier.request_id), repeated=paid.repeated)

    def submit(self, purpose: str, title: str = "") -> PlanRequest:
        """Refused: a curator approves a plan whose values are known."""
        raise self._refusal("submit")

    def _controlled(self, control: Control, start: Plan | None = None) -> Plan:
        raise self._refusal(control[0])

    def _refusal(self, word: str) -> InvalidValue:
        return InvalidValue(
            "plan",
            word,
            f"cannot be asked of a count whose values are found with it: {self._search.name} is not known yet",
            "limit it with epsilon=, or find the values first with study.discover and plan again",
        )


@dataclass(frozen=True)
class _CountedSearch:
    """The search as a question whose record is a finding and a release."""

    search: KeySearch
    statistic: Statistic
    plan: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.search.name

    @property
    def epsilon(self) -> float:
        return self.search.epsilon

    @property
    def delta(self) -> float:
        return self.search.delta

    @property
    def prediction(self) -> str:
        return self.search.prediction

    @property
    def event(self) -> Event:
        return self.search.event

    @property
    def digest(self) -> str:
        return self.search.digest

    def check(self, dataset: Dataset) -> None:
        self.search.check(dataset)

    def run(self, dataset: Dataset, progress: Callable[[float], None]) -> Mapping[str, Any]:
        return self.search.run(dataset, progress)

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The finding; where values were found, also the answer and the plan that predicted it."""
        finished = dict(self.search.finish(answers))
        facts = finished["finding"]
        if not facts["values"]:
            return finished
        selection, cells = self.search.counts, len(facts["values"])
        level = level_at_once(0.95, cells, independent=True)
        answer = found_counts(selection, facts, self.statistic.name, rounded=self.statistic.rounded)
        answer = with_note(answer, finding_of(facts).note)
        planned, at_once = dict(self.plan["statistics"][0]), dict(self.plan["at_once"])
        planned |= {"cells": cells, "level_at_once": level, "asked": {**planned["asked"], "kind": _KIND}}
        at_once |= {"numbers": cells, "level": level}
        plan = {**self.plan, "statistics": [planned], "at_once": at_once}
        return {**finished, "answers": [stored_form(answer, (level,))], "plan": plan}


def key_count_plan(
    study: StudyAccount, asked: tuple[Statistic, ...], expected: Mapping[str, Any] | None, epsilon: float | None
) -> KeyCountPlan | None:
    """The plan in one step of a single count by a column of unknown text; None where that is not what is asked.

    Nor where its values are known by now, unless this very request has found them: then it is that plan again.
    """
    column, most = counted_column(study, asked)
    if column is None:
        return None
    words = copy(study)
    words.dataset = study.declared
    request = Request.of(words, asked, epsilon, expected)
    earlier = counted_finding(study, column, request)
    if earlier is None and paid_finding(study, column) is not None:
        return None
    if earlier is None:
        search = _search(study, column, most, epsilon)
    else:
        price, delta = map(float, earlier.plan["made"]["allowance"])
        search = key_search(study.declared, column, price, delta, most, counted=True)
    return _plan(words, study, asked, search, expected, epsilon, request, earlier)


def counted_column(study: StudyAccount, asked: tuple[Statistic, ...]) -> tuple[str | None, int]:
    """The unknown column that is counted, and how many of its values a unit counts for."""
    nothing = None, 0
    table, statistic = study.declared, asked[0]
    cells = (*statistic.columns, *statistic.by)
    if len(asked) > 1 or statistic.kind not in ("count", "histogram") or len(cells) != 1 or statistic.bins:
        return nothing
    rules = table.unknown.get(cells[0])
    if rules is None or rules.kind != "text" or statistic.where is not None or statistic.for_population:
        return nothing
    if not table.is_whole_table or table.is_auto or table.stability().group > 1 or study.sampling_rate is not None:
        return nothing
    if study.by_request or not study.budget.total.delta > 0 or not study.budget.total.epsilon > 0:
        return nothing  # what is in the way is said where values are found first
    if not table.unit:
        return (cells[0], 1) if statistic.bound is None else nothing
    if not statistic.counts_people or not 1 <= (statistic.max_cells or 1) <= MOST_KEYS:
        return nothing  # one unit may have many rows: its rows are counted when values are known
    return cells[0], statistic.max_cells or 1


def _search(study: StudyAccount, column: str, most: int, epsilon: float | None) -> KeySearch:
    """For all that the plan may have; of delta a small part, unless it is the last plan and the first."""
    allowed = study.allowance(epsilon, plan=True)
    total = study.budget.total
    is_all = study.budget.untouched and allowed.epsilon == total.epsilon
    delta = allowed.delta if is_all else min(allowed.delta, total.delta / OWN_DELTA / 2)
    return key_search(study.declared, column, allowed.epsilon, delta, most, counted=True)


def _plan(
    words: StudyAccount,
    study: StudyAccount,
    asked: tuple[Statistic, ...],
    search: KeySearch,
    expected: Mapping[str, Any] | None,
    epsilon: float | None,
    request: Request,
    earlier: Earlier | None,
) -> KeyCountPlan:
    """The plan of a table that has some values, with the noise of the search."""
    search.check(study.declared)
    some = Categories([f"value {number}" for number in range(1, max(_VALUES, search.max_keys + 1) + 1)])
    words.dataset = known(study.declared, {search.name: some})
    design = design_of(asked, words.dataset, expected)
    noises = {slot.name: _noise(slot, search) for slot in design.slots}
    problem = Problem(design, search.epsilon, search.delta)
    draft = Plan.draft(words, asked, problem, expected, epsilon)
    facts = {name: getattr(draft, name) for name in Plan.__dataclass_fields__}
    facts |= {"request": request, "earlier": earlier, "_given": replace(allocate(problem), noises=noises)}
    return KeyCountPlan(**facts, whole=study, search=search)


def _noise(slot: Slot, search: KeySearch) -> Noise:
    """The noise of the search as that of a measurement, not a hair less."""
    noise = search.counts.noise
    if noise.kind == "gaussian":
        return Noise("gaussian", float(noise.spread) ** 0.5 / slot.sensitivity.l2)
    return Noise("laplace", min(slot.sensitivity.l1 / float(noise.spread), search.epsilon) * (1 - 1e-12))

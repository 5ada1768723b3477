"""`StagedPlan`: a plan of statistics that need something that nobody knows yet, in two stages.

Stage one finds it, for a part of the budget. What stage two will be is then known exactly, and it asks again: bounds
that nobody expected may make its errors useless. Until then its errors are predicted for two cases, one of narrow
ranges and one of wide ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, TypeVar

from farthing.adaptive.discovery import ROWS
from farthing.data import Categories, Dataset, Dates, Integers, Reals
from farthing.data.expressions.expression import read
from farthing.data.schema import Domain
from farthing.data.unknown_columns import known
from farthing.errors import InvalidExpression, InvalidValue
from farthing.ledger import PlanRequest
from farthing.numerics.bounds import number_text
from farthing.statistics import Statistic
from farthing.statistics.coverage import counts_all_values
from farthing.statistics.design import design_of
from farthing.statistics.statistic import text_of
from farthing.study.discovery_plan import DiscoveryPlan, discovery_plan
from farthing.study.findings import paid_finding, with_findings
from farthing.study.plan import Plan
from farthing.study.release import Release
from farthing.study.study_account import StudyAccount

Account = TypeVar("Account", bound=StudyAccount)

_CASES: tuple[Mapping[str, Any], ...] = (
    {"number": Reals(0, 100), "whole number": Integers(0, 100), "date": Dates(date(2020, 1, 1), date(2020, 12, 31))},
    {"number": Reals(0, 1e6), "whole number": Integers(0, 10**6), "date": Dates(date(1930, 1, 1), date(2029, 12, 31))},
)
_NEXT = "plan.discover() pays for the first stage alone, and shows the plan with exact errors before the rest is spent."
_VALUES = (10, 1_000)  # of a column of text
_ROWS = (10, 100)  # of a unit


@dataclass(frozen=True, eq=False)
class StagedPlan(Plan):
    """A plan whose errors depend on what is not known yet; `discover()` finds that, and returns the plan itself.

    What it predicts as a plan is for the first of its `cases`. Made by `Study.plan`.

    Args:
        stage: What is found first, and what that costs.
        cases: What may be found, in words, each with the plan that it would lead to.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"income": [30_000.0] * 1_000}), schema={"income": ft.unknown("number")})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
    ...     plan = study.plan(ft.sum("income"))
    ...     print(plan.stage.cost, [words for words, _ in plan.cases])
    ...     study.close()
    0.05 ['income: 0 to 100', 'income: 0 to 1,000,000']
    """

    whole: StudyAccount | None = None
    stage: DiscoveryPlan | None = None
    cases: tuple[tuple[str, Plan], ...] = ()

    def discover(self, progress: Callable[[float], None] | None = None) -> Plan:
        """Charge for stage one, and plan stage two with what was found; nothing else is spent.

        Args:
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            The plan of the statistics, with exact predictions; the rest is spent when you release it.

        Raises:
            BudgetExceeded: If the budget does not have what stage one costs; nothing is spent.
            InvalidValue: If nothing was found: then the plan cannot be made.
        """
        assert self.stage is not None and self.whole is not None
        self.stage.release(progress)
        refuse_fruitless(self.whole, [search.name for search in self.stage.searches])
        plan = Plan.of(in_use(self.whole, self.asked, self.expected), self.asked, self.expected, self.epsilon)
        for control in self.request.controls:
            plan = plan._controlled(control)
        return plan

    def release(
        self,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        fresh: bool = False,
        title: str = "",
        both: bool = False,
    ) -> Release:
        """Refused without `both=True`, which spends both stages without a look at what the first has found.

        Args:
            request_id: As for a plan.
            progress: As for a plan.
            fresh: As for a plan.
            title: As for a plan.
            both: Spend the rest as well, whatever was found.

        Returns:
            The answers with their errors, and the receipt of the second charge.

        Raises:
            InvalidValue: If `both` is not true.
            BudgetExceeded: If the budget does not have what it costs.
        """
        if not both:
            raise self._refusal()
        return self.discover(progress).release(request_id, progress, fresh=fresh, title=title)

    def submit(self, purpose: str, title: str = "") -> PlanRequest:
        """Refused: a curator approves exact amounts, and they are not known yet."""
        raise self._refusal()

    def _refusal(self) -> InvalidValue:
        assert self.stage is not None
        names = ", ".join(search.name for search in self.stage.open)
        return InvalidValue(
            "plan",
            names,
            "is not known yet, and decides how accurate the plan is",
            "find it first, look at the plan, then release it: plan.discover().release(); or spend both with both=True",
        )

    def __str__(self) -> str:
        assert self.stage is not None
        names = [statistic.name for statistic in self.statistics]
        columns = [["", *names]]
        for words, plan in self.cases:
            columns.append([words, *(f"±{number_text(plan[name].error())}" for name in names)])
        widths = [max(map(len, column)) for column in columns]
        rows = list(zip(*columns, strict=True))
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        rest = number_text(self.allocation.problem.epsilon)
        parts = [str(self.stage), "", f"Then, for epsilon {rest}: errors (95 times in 100) if this is found:"]
        parts += [f"  {line}".rstrip() for line in lines]
        return "\n".join(parts if self.from_file else [*parts, "", _NEXT])

    def __repr__(self) -> str:
        assert self.stage is not None
        return f"StagedPlan({len(self.asked)} statistics after {len(self.stage.open)} searches, nothing spent)"

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The first stage and the predictions of each case, as plain data.

        Args:
            confidence: How often the errors hold.

        Returns:
            Dictionaries, lists, numbers and texts.
        """
        assert self.stage is not None
        cases = [{"if": words, **plan.to_dict(confidence)} for words, plan in self.cases]
        return {"discover": self.stage.to_dict(), "cases": cases}


def in_use(study: Account, asked: tuple[Statistic, ...], expected: Mapping[str, Any] | None) -> Account:
    """The study with the findings that some statistics need, and no others.

    What was asked before something else was found is then still the same request, and costs nothing.
    """
    if not study.declared.unknown:
        return study
    words = [*(expected or ()), *(text_of(each.where) for each in asked if each.where is not None)]
    named = {name for each in asked if not counts_all_values(each, study.declared) for name in each.columns}
    named |= {name for each in asked for name in each.by}
    used = {name for name in study.declared.unknown if name in named or any(name in text for text in words)}
    own = copy(study)
    own.dataset = with_findings(study, study.declared, used)
    return study if unknown_columns(own.dataset, asked, expected) else own


def staged_plan(
    study: StudyAccount, asked: tuple[Statistic, ...], expected: Mapping[str, Any] | None, epsilon: float | None
) -> StagedPlan | None:
    """The plan in two stages of statistics that need something unknown; None where they need nothing of it.

    What a condition lets through depends on the range that is found, so no case would predict it: a condition on an
    unknown column is refused.
    """
    for each in asked:
        if each.where is not None and study.dataset.unknown:
            read(each.where, study.dataset.schema)
    columns = unknown_columns(study.dataset, asked, expected)
    needed = [*columns, *([ROWS] if study.dataset.is_auto else [])]
    if not needed:
        return None
    refuse_fruitless(study, needed)
    rows = study.dataset.is_auto
    left = study.allowance(epsilon, plan=True).epsilon
    stage = discovery_plan(study, tuple(columns), rows_per_unit=rows, whole=left)
    rest = left - stage.cost
    cases = []
    for place in range(len(_CASES)):
        shadow = copy(study)
        shadow.dataset = _supposed(study.dataset, columns, place)
        cases.append((_words(study.dataset, needed, place), Plan.of(shadow, asked, expected, rest)))
    first = cases[0][1]
    facts = {each.name: getattr(first, each.name) for each in fields(Plan)}
    given = rest if epsilon is not None else None
    return StagedPlan(**{**facts, "epsilon": given}, whole=study, stage=stage, cases=tuple(cases))


def refuse_fruitless(study: StudyAccount, names: Sequence[str]) -> None:
    """Refuse what needs something that was searched and not found: to search for the same again returns the same."""
    for name in names:
        paid = paid_finding(study, name)
        if paid is None or paid.finding.is_usable:
            continue
        place = ("max_rows", "auto") if name == ROWS else ("column", name)
        what, option = ("rows_per_unit=True", "--rows-per-unit") if name == ROWS else (repr(name), f"--column {name}")
        cost, outcome = number_text(paid.receipt.epsilon), paid.finding.sentence.partition(": ")[2]
        raise InvalidValue(
            *place,
            f"was searched at a cost of epsilon {cost}, and cannot be used: {outcome}",
            f"search again with a larger epsilon, study.discover({what}, epsilon=..., fresh=True) or farthing discover "
            f"{option} --epsilon E --fresh, or declare it",
        )


def unknown_columns(
    dataset: Dataset, asked: tuple[Statistic, ...], expected: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """The unknown columns that statistics need, in the order in which they are met."""
    needed: dict[str, None] = {}
    while True:
        trial = _supposed(dataset, tuple(needed), 0)
        try:
            design_of(asked, trial, expected)
        except (InvalidValue, InvalidExpression) as problem:
            column = problem.column if isinstance(problem, InvalidExpression) else problem.value
            if not isinstance(column, str) or column in needed or column not in dataset.unknown:
                return tuple(needed)  # what is wrong is something else, and is said when the plan is made
            needed[column] = None
        else:
            return tuple(needed)


def _supposed(dataset: Dataset, columns: tuple[str, ...], place: int) -> Dataset:
    """The dataset with ranges, values and bounds as they may turn out to be."""
    supposed = {name: _domain(dataset.unknown[name].kind, place) for name in columns}
    return known(dataset, supposed, _ROWS[place] if dataset.is_auto else None)


def _domain(kind: str, place: int) -> Domain:
    if kind == "text":
        return Categories([f"value {number}" for number in range(1, _VALUES[place] + 1)])
    domain: Domain = _CASES[place][kind]
    return domain


def _words(dataset: Dataset, needed: list[str], place: int) -> str:
    def one(name: str) -> str:
        if name == ROWS:
            return f"max_rows={_ROWS[place]}"
        domain = _domain(dataset.unknown[name].kind, place)
        if isinstance(domain, Categories):
            return f"{name}: {len(domain.values):,} values"
        ends = (domain.lower, domain.upper)  # type: ignore[union-attr]
        return f"{name}: " + " to ".join(end.isoformat() if isinstance(end, date) else f"{end:,.0f}" for end in ends)

    return ", ".join(map(one, needed))

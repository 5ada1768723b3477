"""Plans and releases as text: tables that line up in any terminal, explanations, and lines of Python."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from farthing.curator.payers import period_account
from farthing.inference import Answer
from farthing.inference.answers import with_interval
from farthing.numerics import Bounds
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table
from farthing.planner import COMPARED, Allocation, Problem, TheoremPrices
from farthing.statistics import Statistic
from farthing.statistics.answer_records import label_texts
from farthing.statistics.design import Design
from farthing.statistics.measurements import Measurements
from farthing.statistics.public_facts import assumed_size
from farthing.statistics.statistic import COUNT_FAMILY, MARGINALS, RANGES, ROWS
from farthing.study.plan_statistic import AtOnce, PlannedStatistic
from farthing.study.release_request import Earlier, Request
from farthing.study.study_account import Allowance, StudyAccount


class PlanFacts(Protocol):
    """What texts and releases need of a plan."""

    @property
    def study(self) -> StudyAccount:
        """Whose rows they are, and who pays."""

    @property
    def design(self) -> Design:
        """What is measured, and which statistics read it."""

    @property
    def problem(self) -> Problem:
        """What the planner divides: the design, the budget and the controls."""

    @property
    def allocation(self) -> Allocation:
        """The noise of every measurement."""

    @property
    def statistics(self) -> Sequence[PlannedStatistic]:
        """Each statistic with its error."""

    @property
    def measurements(self) -> Measurements:
        """What would be run: slots with their noises."""

    @property
    def cost(self) -> Bounds:
        """The epsilon of the whole plan."""

    @property
    def delta(self) -> float:
        """The delta at which the cost is stated."""

    @property
    def price(self) -> TheoremPrices:
        """The cost under each theorem."""

    @property
    def allowance(self) -> Allowance:
        """What the budget had for it."""

    @property
    def asked(self) -> tuple[Statistic, ...]:
        """The statistics, as they were named in the call."""

    @property
    def expected(self) -> Mapping[str, Any]:
        """Facts about the table that whoever plans has stated."""

    @property
    def epsilon(self) -> float | None:
        """The part of the budget that was asked for."""

    @property
    def request(self) -> Request:
        """What it is named by."""

    @property
    def request_id(self) -> str:
        """The name of its release."""

    @property
    def earlier(self) -> Earlier | None:
        """The release that asked for the same."""

    @property
    def code(self) -> tuple[str, ...]:
        """The lines that made it."""

    @property
    def from_file(self) -> bool:
        """Whether a study.toml made it."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What its errors rest on."""

    @property
    def assumed_rows(self) -> int | None:
        """The number of rows that is assumed."""

    @property
    def counting(self) -> float | None:
        """The epsilon for which rows can be counted."""

    @property
    def opening(self) -> str | None:
        """What the plan says first, where it says something."""

    @property
    def about(self) -> str | None:
        """Which rows it is about."""

    @property
    def withheld(self) -> str | None:
        """Which numbers a release may withhold."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Which statistics would be mostly noise."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the budget protects little."""

    @property
    def rows(self) -> int | None:
        """The number of rows, where it is known."""

    def at_once(self, confidence: float = 0.95) -> AtOnce:
        """Errors that hold for all numbers together."""

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The plan as plain data."""


def study_lines(study: StudyAccount) -> tuple[str, ...]:
    """The dataset and the study, by what is public about them."""
    data = study.dataset
    unit = f", unit={_unit_argument(data.unit)!r}" if data.unit else ""
    unit += f", max_rows={data.rows_per_unit}" if data.bounds_rows else ""
    named: dict[str, Any] = {"analyst": study.analyst, "sampling_rate": study.sampling_rate}
    account = study.name
    if data.period is not None and account.endswith(end := period_account("", data.period[1].names[0])):
        column, periods = data.period
        account = account.removesuffix(end)
        named |= {"renews": periods.every, "date": column, "period": periods.names[0]}
    options = "".join(f", {name}={value!r}" for name, value in named.items() if value is not None)
    return (
        "import farthing as ft",
        f"dataset = ft.dataset({data.name!r}{unit}, schema=...)  # columns: {', '.join(data.schema)}",
        f"study = ft.Study(dataset, epsilon={study.epsilon!r}, delta={study.delta!r}, "
        f"account={account!r}, ledger=...{options})",
    )


def call_lines(
    word: str, asked: Sequence[Statistic], options: Mapping[str, Any], expected: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """`plan = study.plan(...)` with one line for each statistic.

    >>> from farthing.statistics import count
    >>> print("\\n".join(call_lines("plan", [count()], {"epsilon": 0.5}, None)))
    plan = study.plan(
        ft.count(),
        epsilon=0.5,
    )
    """
    arguments = {**options, **({"expected": dict(expected)} if expected else {})}
    return (
        f"plan = study.{word}(",
        *(f"    ft.{statistic!r}," for statistic in asked),
        *(f"    {name}={value!r}," for name, value in arguments.items() if value is not None),
        ")",
    )


def control_line(control: str, *words: Any, **options: Any) -> str:
    """`plan = plan.control(...)`.

    >>> control_line("require", "mean of income", within=500)
    "plan = plan.require('mean of income', within=500)"
    """
    arguments = [*map(repr, words), *(f"{name}={value!r}" for name, value in options.items())]
    return f"plan = plan.{control}({', '.join(arguments)})"


def _unit_argument(unit: tuple[str, ...]) -> Any:
    return unit[0] if len(unit) == 1 else list(unit)


def opening_line(
    assumed_rows: int | None,
    names: Sequence[str] | None = None,
    *,
    from_file: bool = False,
    counting: str = "",
) -> str | None:
    """What a plan says first where nobody said how many rows there are: which errors are for an assumed size.

    `names` are the statistics whose errors depend on it, None for all; `counting` says how to have the rows counted.

    >>> print(opening_line(10_000, from_file=True))
    every error here is for an assumed size: the table is assumed to have 10,000 rows; write rows = ... under [expected]
    >>> print(opening_line(10_000, ["std of age"]))
    the error of std of age is for an assumed size: ...; pass expected={'rows': ...}
    >>> opening_line(None)
    """
    if assumed_rows is None:
        return None
    size = assumed_size(assumed_rows)
    if names is None:
        which = "every error here is"
    elif len(names) == 1:
        which = f"the error of {names[0]} is"
    else:
        rest = f"{len(names) - _FEW_NAMES:,} more" if len(names) > _FEW_NAMES + 1 else names[-1]
        first = names[:_FEW_NAMES] if len(names) > _FEW_NAMES + 1 else names[:-1]
        which = f"the errors of {', '.join(first)} and {rest} are"
    return f"{which} for an assumed size: {size.in_toml if from_file else size}{counting}"


def opening_of(plan: PlanFacts) -> str | None:
    """What a plan says first, with the way to have the rows counted."""
    if plan.assumed_rows is None:
        return None
    names = [output.name for output in plan.design.sized]
    counting = ""
    if plan.counting is not None:
        how = "farthing release --count-first" if plan.from_file else "study.count_rows()"
        counting = f", or have them counted first, for epsilon {number_text(plan.counting)}: {how}"
    return opening_line(
        plan.assumed_rows,
        None if len(names) == len(plan.design.outputs) else names,
        from_file=plan.from_file,
        counting=counting,
    )


_FEW_NAMES = 3  # statistics that the first line names


def plan_explanation(plan: PlanFacts) -> str:
    """What is measured, how each statistic comes out of it, and what it costs."""
    lines = [] if plan.opening is None else [plan.opening]
    lines += ["What is measured (each row is counted in one cell, or in the sums that hold its cell):"]
    design = plan.design
    for slot in design.slots:
        noise = plan.allocation.noises[slot.name]
        kind = {"laplace": "epsilon", "gaussian": "noise multiplier", "exponential": "epsilon"}[noise.kind]
        lines.append(
            f"  {slot.name}: {slot.cells_text(noise)}, {noise.kind} noise of {kind} {number_text(noise.parameter)}"
        )
    lines.append("What is computed from it:")
    for statistic in plan.statistics:
        sources = ", ".join(name for name, _ in statistic.noises) or "public facts"
        lines.append(f"  {statistic.name}: from {sources}; {statistic.sentence}")
        lines += [f"    {text}" for text in statistic.remarks]
        lines += [f"    required: {statistic.required}"] if statistic.required else []
        lines += [f"    {statistic.of_table.sentence}"] if statistic.of_table is not None else []
    if plan.at_once().sentence:
        lines += ["How far off all numbers are at once:", f"  {plan.at_once().sentence}"]
    price = plan.price
    lines += [
        "Cost:",
        f"  epsilon {number_text(plan.cost.upper, 6)} at delta {plan.delta:g}, proven",
        f"  summed {number_text(price.basic)}, advanced {number_text(price.advanced)}, KOV {number_text(price.kov)}, "
        f"optimal {number_text(price.optimal)}, exact curves {number_text(price.own)}",
        f"  {price.sentence}",
    ]
    if plan.notes:
        lines += ["Notes:", *(f"  {text}" for text in plan.notes)]
    if plan.assumptions:
        lines += ["Assumptions:", *(f"  {text}" for text in plan.assumptions)]
    return "\n".join(lines)


_MOST_CELLS = 40
_PRICES = (*(theorem.key for theorem in COMPARED), "sentence")


def plan_table(plan: PlanFacts) -> str:
    """statistic | mechanism | 95% error | even share | epsilon; then the cost, notes and what was assumed."""
    rows = error_rows(plan.statistics)
    lines = [] if plan.opening is None else [*textwrap.wrap(plan.opening, 100, subsequent_indent="  "), ""]
    lines += [*aligned(rows, right=range(rows[0].index("95% error"), len(rows[0]))), ""]
    lines += textwrap.wrap(_cost(plan), 100, subsequent_indent="  ")
    lines.append(f"price: {plan.price.sentence}")
    if plan.at_once().sentence:
        lines += textwrap.wrap(f"at once: {plan.at_once().sentence}", 100, subsequent_indent="  ")
    for statistic in plan.statistics:
        if statistic.required:
            text = f"required: {statistic.name} {statistic.required}"
            lines += textwrap.wrap(text, 100, subsequent_indent="  ")
    for statistic in plan.statistics:
        if statistic.of_table is not None:
            text = f"of the table: {statistic.name} {statistic.of_table.sentence}"
            lines += textwrap.wrap(text, 100, subsequent_indent="  ")
    for text in plan.warnings:
        lines += textwrap.wrap(f"warning: {text}", 100, subsequent_indent="  ")
    for text in (*plan.notes, *table_notes(plan.statistics)):
        lines += textwrap.wrap(f"note: {text}", 100, subsequent_indent="  ")
    for text in plan.assumptions:
        lines += textwrap.wrap(f"assumed: {text}", 100, subsequent_indent="  ")
    lines += textwrap.wrap(_payer(plan), 100, subsequent_indent="  ")
    if plan.withheld is not None:
        lines += textwrap.wrap(f"withheld: {plan.withheld}", 100, subsequent_indent="  ")
    if plan.about is not None:
        lines += textwrap.wrap(f"about: {plan.about}", 100, subsequent_indent="  ")
    if not plan.study.dataset.unit:
        lines.append("about: the budget protects one row; if a person may have several rows, declare a unit")
    return "\n".join(lines)


def table_notes(statistics: Sequence[PlannedStatistic]) -> list[str]:
    """What a table of several statistics would leave people wondering about."""
    slots = [name for statistic in statistics for name, _ in statistic.noises]
    notes = []
    if len(set(slots)) < len(slots):
        notes.append(
            "statistics that share a measurement each show its whole epsilon, so the column counts it more than once"
        )
    asked = [
        each.output.statistic
        for each in statistics
        if each.output.statistic.kind in (*COUNT_FAMILY, *RANGES, *MARGINALS)
    ]
    cells = {(each.by, each.columns) for each in asked}
    several = [each.name for each in asked if each.bound is not None and (each.bound.max_cells or 1) > 1]
    if several:
        notes.append(
            f"one unit may count in several cells of {several[0] if not several[1:] else 'a statistic with max_cells'}:"
            " do not add its cells up to a total"
        )
    if len(cells) > 1:
        notes.append(
            "a row without a value in a column is in none of its cells: counts by different columns may have different "
            "totals"
        )
    return notes


class ErrorRow(Protocol):
    """What a table of errors needs of a statistic, here or on a server."""

    @property
    def name(self) -> str:
        """The name of the statistic."""

    @property
    def counts(self) -> str:
        """What it counts: rows or people, and how much of each unit."""

    @property
    def mechanism(self) -> str:
        """Which noise makes it private."""

    @property
    def shown_error(self) -> str:
        """The 95% error, with what it rests on."""

    @property
    def shown_even_share(self) -> str:
        """The same with an even share of the budget."""

    @property
    def epsilon(self) -> float:
        """What it would cost alone."""


def error_rows(statistics: Sequence[ErrorRow]) -> list[tuple[str, ...]]:
    """The rows of a plan's table; the even share is left out where there is one statistic, which has the whole.

    What is counted stands there where it is not all rows.
    """
    rows: list[tuple[str, ...]] = [("statistic", "counts", "mechanism", "95% error", "even share", "epsilon")]
    rows += [
        (one.name, one.counts, one.mechanism, one.shown_error, one.shown_even_share, number_text(one.epsilon))
        for one in statistics
    ]
    rows = rows if len(statistics) > 1 else [(*row[:4], row[5]) for row in rows]
    return rows if any(one.counts != ROWS for one in statistics) else [(row[0], *row[2:]) for row in rows]


def plan_html(plan: PlanFacts) -> str:
    """A plan as a notebook shows it."""
    heads, *rows = error_rows(plan.statistics)
    cost = f"costs epsilon {number_text(plan.cost.upper, 6)} at delta {plan.delta:g}"
    spent = "it was released before: releasing it returns those answers" if plan.earlier else "nothing is spent yet"
    notes = [f"{cost}; {spent}", *plan.notes, *(f"assumed: {each}" for each in plan.assumptions)]
    return html_table(heads, rows, notes=notes, numbers=[len(heads) - 1])


def plan_data(plan: PlanFacts, confidence: float, *, promises: bool = True) -> dict[str, Any]:
    """A plan as plain data; without `promises` only required errors say how far they reach in the worst cell."""
    price = plan.price
    return {
        "dataset": plan.study.name,
        "account_news": plan.study.account_news,
        "epsilon": plan.allocation.problem.epsilon,
        "delta": plan.delta,
        "confidence": confidence,
        "statistics": [statistic.to_dict(confidence, promises=promises) for statistic in plan.statistics],
        "at_once": plan.at_once(confidence).to_dict(),
        "cost": {"lower": plan.cost.lower, "upper": plan.cost.upper},
        "price": {name: getattr(price, name) for name in _PRICES},
        "assumed_rows": plan.assumed_rows,
        "counting": plan.counting,
        "counted": None if plan.design.counted is None else asdict(plan.design.counted),
        "opening": plan.opening,
        "assumptions": list(plan.assumptions),
        "notes": list(plan.notes),
        "about": plan.about,
        "withheld": plan.withheld,
        "warnings": list(plan.warnings),
        "rows": plan.rows,
        "request_id": plan.request_id,
        "released": plan.earlier is not None and plan.earlier.exact,
    }


def _cost(plan: PlanFacts) -> str:
    """What it will cost, or what was paid by the release that the ledger has."""
    cost = f"epsilon {number_text(plan.cost.upper, 6)} of {_limit(plan)} at delta {plan.delta:g}"
    earlier = plan.earlier
    if earlier is None:
        return f"cost: {cost}; nothing is spent yet"
    if earlier.exact:
        again = "farthing release --fresh" if plan.from_file else "release(fresh=True)"
        paid = f"epsilon {number_text(float(earlier.plan['cost']['upper']), 6)} at delta {plan.delta:g}"
        return (
            f"cost: nothing. It was released before, for {paid}, as {earlier.request_id}: releasing it returns those "
            f"answers. {again} draws new noise and is charged again."
        )
    return (
        f"cost: {cost}, as it was when {earlier.request_id} was planned; it no longer fits the budget. With the "
        "controls it had then, releasing it costs nothing."
    )


def _payer(plan: PlanFacts) -> str:
    """Who pays, in one line, and what a release changes about accounts; nothing where it was paid for."""
    study = plan.study
    if study.account_news is not None:
        return f"account: releasing it {study.account_news}"
    if plan.earlier is not None:
        return ""
    if study.by_request:  # the grant, which is what the budget is here, does not pay
        return f"account: {study.name!r} pays, once a curator approves"
    who = f"{study.name!r}" if study.analyst is None else f"the grant of {study.payer!r} in {study.name!r}"
    left = f"{number_text(study.budget.remaining.epsilon, 6)} of {number_text(study.budget.total.epsilon, 6)} is left"
    return f"account: {who} pays; {left}"


def _limit(plan: PlanFacts) -> str:
    """What the plan may use, beside the budget where that is more."""
    problem = plan.allocation.problem
    limit, budget = problem.epsilon - problem.reserved, plan.study.epsilon
    if limit >= budget:
        return number_text(limit, 6)
    return f"the {number_text(limit, 6)} this plan may use (budget {number_text(budget, 6)})"


def release_table(
    answers: Collection[Answer],
    warnings: Sequence[str] = (),
    about: str | None = None,
    counts: Mapping[str, str] | None = None,
) -> str:
    """statistic | cell | answer | counts; of a statistic with very many cells the first few.

    `counts` says what the numbers of each statistic count, in the line of each number; it is left out where all of them
    count all rows.
    """
    levels = {answer.confidence for answer in answers}
    level = f" ({100 * levels.pop():g}%)" if len(levels) == 1 else ""
    rows: list[tuple[str, ...]] = [("statistic", "cell", f"answer{level}", "counts")]
    for answer in answers:
        counted = (counts or {}).get(answer.name, ROWS)
        rows += [(*row, counted if row[2] else "") for row in _answer_rows(answer)]
    if all(row[3] in ("", ROWS) for row in rows[1:]):
        rows = [row[:3] for row in rows]
    lines = aligned(rows)
    notes: dict[str, list[str]] = {}
    for answer in answers:
        if answer.note:
            notes.setdefault(answer.note, []).append(answer.name)
    for note, names in notes.items():  # several statistics of one column say the same: once is enough
        few = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3:,} more"]
        subjects = f"{', '.join(few[:-1])} and {few[-1]}" if few[1:] else few[0]
        lines += ["", *textwrap.wrap(f"note: {subjects}: {note}", 100, subsequent_indent="  ")]
    for text in warnings:
        lines += ["", *textwrap.wrap(f"warning: {text}", 100, subsequent_indent="  ")]
    if about is not None:
        lines += ["", *textwrap.wrap(f"about: {about}", 100, subsequent_indent="  ")]
    return "\n".join(lines)


def _answer_rows(answer: Answer) -> list[tuple[str, str, str]]:
    few = slice(_MOST_CELLS)
    columns = (np.atleast_1d(column)[few] for column in (answer.values, answer.lower, answer.upper))
    texts = [with_interval(*map(float, cell)) for cell in zip(*columns, strict=True)]
    width = max(text.find(" ") if " " in text else len(text) for text in texts)
    texts = [" " * (width - len(text.split(" ")[0])) + text for text in texts]
    names = [answer.name, *[""] * (len(texts) - 1)]
    rows = list(zip(names, label_texts(answer.labels[few]) or [""], texts, strict=True))
    if len(answer) > _MOST_CELLS:
        return [*rows, ("", f"... and {len(answer) - _MOST_CELLS:,} more", "")]
    return rows


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of text with a line below the first, columns two spaces apart.

    >>> print("\\n".join(aligned([("name", "n"), ("a", "10")], right=[1])))
    name   n
    ----  --
    a     10
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    ruled = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in ruled
    ]

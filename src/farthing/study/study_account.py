"""The account of a study: how much of its budget one plan may use, and the count of rows that is paid from it.

Where the number of rows is not public it is counted once, for a small share of the budget. Plans that are made
afterwards depend on the answer, so the count and what follows are two charges: the ledger's filters, which hold for
choices that depend on answers, decide what is left for the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from farthing.curator.questions import Single
from farthing.curator.session_records import PATIENCE
from farthing.data import Count
from farthing.errors import AnswerForfeited, BudgetExceeded, InvalidValue, NotAllowed
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.ledger import Budget
from farthing.ledger.account import SUMS_PART
from farthing.ledger.charge_lifecycle import all_of, command_for_more, command_to_free
from farthing.mechanisms import DiscreteLaplace
from farthing.numerics.bounds import rounded_down_text
from farthing.planner import Problem, Usage
from farthing.planner.planning_problem import NANO
from farthing.privacy import ApproxDP, Event
from farthing.privacy.events import checked_epsilon, checked_real
from farthing.statistics import Statistic
from farthing.statistics.coverage import Coverage, limited
from farthing.statistics.design import Design
from farthing.statistics.public_facts import Counted
from farthing.statistics.statistic import ROWS

if TYPE_CHECKING:
    from farthing.curator import Curator
    from farthing.data import Dataset
    from farthing.ledger import Ledger, Receipt, Stored
    from farthing.ledger.table_versions import Version


_CRUMB = 1e-5  # of a budget: what a plan of all of it leaves for rounding is not worth another plan
_CLOCK_CRUMB = 2e-3  # the same on a clock, which adds up squares: what is left of it is the root of a few millionths


@dataclass(frozen=True)
class Allowance:
    """Epsilon and delta for one charge; `clock` are those of a plan that the clock can pay, and the most it can."""

    epsilon: float
    delta: float
    clock: tuple[float, float, float] | None = field(default=None, kw_only=True)


class StudyAccount(Protocol):
    """What plans, requests and sessions need of a study: its rows, its ledger, and the account that pays."""

    dataset: Dataset
    declared: Dataset
    ledger: Ledger
    name: str
    epsilon: float
    delta: float
    analyst: str | None
    sampling_rate: float | None

    @property
    def payer(self) -> str:
        """Whose grant pays; empty where it is the budget itself."""

    @property
    def budget(self) -> Budget:
        """The budget, or the grant, that pays."""

    @property
    def by_request(self) -> bool:
        """Whether plans are made to be approved, beside any grant."""

    @property
    def is_registered(self) -> bool:
        """Whether the ledger has the budget."""

    @property
    def account_news(self) -> str | None:
        """What a release would do besides spending: open an account, or register a table to one."""

    @property
    def curator(self) -> Curator:
        """The only way to the rows."""

    def register(self) -> None:
        """Write the budget to the ledger, unless it is there."""

    def learn(self) -> None:
        """Use what was found about the table."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of all budgets that pay."""

    def allowance(self, epsilon: float | None = None, *, plan: bool = False) -> Allowance:
        """The epsilon and delta that one charge, or a plan, may use now."""

    def on_request(self) -> Self:
        """The same study for what a curator is to approve, or has approved."""

    def table_changed(self, request_id: str) -> bool | None:
        """Whether the rows have changed since a request was charged; None if that cannot be detected."""

    def version(self, request_id: str | None = None) -> Version | None:
        """Which version of the table a request was charged for; None for analysts."""

    def problem(
        self,
        asked: Sequence[Statistic],
        epsilon: float | None = None,
        expected: Mapping[str, Any] | None = None,
        design: Design | None = None,
        allowance: Allowance | None = None,
        counted: Counted | None = None,
    ) -> Problem:
        """What a plan of these statistics divides."""


def left_of(budget: Budget, whole: Budget | None = None) -> tuple[ApproxDP, bool]:
    """The largest charge that would be admitted now, and whether that is next to nothing.

    `whole` is the dataset's own budget where `budget` is a grant in it: a charge must fit both.
    """
    left = budget.remaining
    if whole is not None:
        rest = whole.remaining
        left = ApproxDP(min(left.epsilon, rest.epsilon), min(left.delta, rest.delta))
    both = [budget] if whole is None else [budget, whole]
    return left, not left.epsilon > _CRUMB * budget.total.epsilon or any(map(_is_run_down, both))


def _is_run_down(budget: Budget) -> bool:
    """Whether only crumbs are left of a clock, and of plain sums."""
    return budget.clock_room > 0 and budget.room.epsilon <= _CLOCK_CRUMB * budget.total.epsilon


Budgets = Sequence[tuple[Budget, Budget | None]]
"""Of every account that pays, the budget, or the grant and the budget that it is a grant in."""


def allowance_of(budgets: Budgets, epsilon: float | None = None) -> Allowance:
    """What all accounts that pay allow one charge; all that allow too little are named in one refusal."""
    allowances = [_allowance(budget, epsilon, whole) for budget, whole in budgets]
    short = {_id(each): each for part in allowances if isinstance(part, list) for each in part}
    if short:
        raise _exceeded(list(short.values()), epsilon)
    parts = [part for part in allowances if isinstance(part, Allowance)]
    return Allowance(min(each.epsilon for each in parts), min(each.delta for each in parts))


def requested_allowance(budgets: Budgets, epsilon: float) -> Allowance:
    """What a session or a synthesis that a curator is to approve may use: the same whatever is spent until then.

    An approval is of exactly one charge, so that its delta is a share of the whole budget and not of what is left.
    """
    allowed = allowance_of(budgets, epsilon)
    totals = [budget.total for budget, _ in budgets]
    share = min(total.delta / SUMS_PART * min(1.0, allowed.epsilon / total.epsilon) for total in totals)
    return Allowance(allowed.epsilon, min(allowed.delta, share))


def plan_allowance(budgets: Budgets, epsilon: float | None = None) -> Allowance:
    """What they allow a plan, which may have Gaussian noise.

    What plain sums, or the clock for any single charge, can pay is entered there. Beyond that there are two ways: all
    that they can pay, or so much on the clock at all of delta.
    """
    clock = clock_room_of(budgets)
    left = min(left_of(*pair)[0].epsilon for pair in budgets)
    amount = None if epsilon is None else checked_epsilon(epsilon)
    if clock is None or (amount is not None and amount < left + 1 / NANO):
        return allowance_of(budgets, epsilon)
    most, delta = clock
    if amount is not None and not amount < most + 1 / NANO:
        flat = {_id(each): each for pair in budgets for each in pair if each is not None}
        short = [each for each in flat.values() if not amount <= each.room.epsilon] or list(flat.values())
        raise _exceeded(short, amount, plan=max(left, most))
    sums = allowance_of(budgets)
    return replace(sums, clock=(most if amount is None else min(amount, most), delta, most))


def clock_room_of(budgets: Budgets) -> tuple[float, float] | None:
    """The epsilon and delta of the largest plan that the clocks of all budgets pay; None where one of them pays none.

    Nor where all of them are as they were opened: then there is nothing to choose, and the first plan may have it all.
    """
    flat = [each for pair in budgets for each in pair if each is not None]
    if all(_is_fresh(each) for each in flat):
        return None
    epsilon = min(each.total.epsilon if _is_fresh(each) else each.clock_room for each in flat)
    delta = min(each.total.delta for each in flat)
    return (epsilon, delta) if epsilon > 0 and delta > 0 else None


def room_of(budgets: Budgets) -> ApproxDP:
    """The most that one plan may cost: what is left for one charge, or more at all of delta where clocks pay it."""
    lefts = [left_of(*pair)[0] for pair in budgets]
    left = ApproxDP(min(each.epsilon for each in lefts), min(each.delta for each in lefts))
    clock = clock_room_of(budgets)
    return left if clock is None or not clock[0] > left.epsilon else ApproxDP(*clock)


def _is_fresh(budget: Budget) -> bool:
    return budget.untouched and not budget.withheld


def _allowance(budget: Budget, epsilon: float | None, whole: Budget | None) -> Allowance | list[Budget]:
    """All that is left, or `epsilon` of it with the same share of what is left of delta.

    The first plan of an untouched budget may have all of it: nothing was answered yet, so nothing has to be kept for
    choices that depend on answers. Later plans share what the ledger's filters leave. `whole` is the dataset's own
    budget where `budget` is a grant in it: a charge must fit both. Those of the two that have too little, if one does.
    """
    amount = 0.0 if epsilon is None else checked_epsilon(epsilon)
    if epsilon is not None and not amount > 0:
        raise InvalidValue("epsilon", epsilon, "must be > 0", "leave it out for all that is left")
    left, is_spent = left_of(budget, whole)
    both = [budget] if whole is None else [budget, whole]
    untouched = budget.untouched and not budget.withheld
    if whole is not None:
        untouched = untouched and whole.untouched and not whole.withheld
    if epsilon is None and untouched:
        # A grant may be larger than what it is a grant in.
        totals = [budget.total] if whole is None else [budget.total, whole.total]
        return Allowance(min(each.epsilon for each in totals), min(each.delta for each in totals))
    if not left.epsilon > 0 or (is_spent and epsilon is None):
        crumb = _CRUMB * budget.total.epsilon if epsilon is None else amount - 1 / NANO
        return [each for each in both if not each.remaining.epsilon > crumb or (epsilon is None and _is_run_down(each))]
    if epsilon is None:
        return Allowance(left.epsilon, left.delta)
    # A ledger keeps billionths: a third of a budget, or of what is left of it, is wanted as it is kept.
    most = budget.total.epsilon if untouched else left.epsilon
    if 0 < amount - most < 1 / NANO:
        amount = most
    if untouched and amount == budget.total.epsilon:
        return Allowance(amount, budget.total.delta)
    if not amount <= left.epsilon:
        return [each for each in both if not amount <= each.remaining.epsilon]
    return Allowance(amount, min(map(_delta_of_parts, both)) * (amount / left.epsilon))


def _delta_of_parts(budget: Budget) -> float:
    """The delta that plans share where more than one is to come: what plain sums have of a fresh budget, or left."""
    left = budget.remaining.delta
    return min(left, budget.total.delta / SUMS_PART) if budget.untouched else left


def _exceeded(short: list[Budget], epsilon: float | None, *, plan: float | None = None) -> BudgetExceeded:
    """What is in the way of a charge, all of it, and how much in all each would have to be.

    `plan` is what all of them together allow a plan, where it is one.
    """

    def rest(budget: Budget) -> ApproxDP:
        if plan is None:
            return budget.remaining
        return ApproxDP(min(plan, budget.room.epsilon), budget.room.delta)

    least = min(short, key=lambda each: rest(each).epsilon)
    left = rest(least)
    ways = all_of(_way_out(each, epsilon, rest(each).epsilon, plan=plan is not None) for each in short)
    if epsilon is None or not any(rest(each).epsilon > 0 for each in short):
        crumb = f" but {left.epsilon:.2g}" if left.epsilon > 0 else ""
        spent = " and ".join(f"{_called(each)} (epsilon={each.total.epsilon:g})" for each in short)
        message = f"nothing is left of {spent}{crumb}; {ways}."
    else:
        lefts = " and ".join(f"the {rounded_down_text(rest(each).epsilon)} left of {_called(each)}" for each in short)
        most = "that" if len(short) == 1 else rounded_down_text(left.epsilon)
        lower = f"plan with no more than {most}, or " if left.epsilon > 0 else ""
        message = f"a plan of epsilon={epsilon:.12g} exceeds {lefts}; {lower}{ways}."
    return BudgetExceeded(message, requested=epsilon, remaining=left, budget_id=_id(least))


def _way_out(budget: Budget, epsilon: float | None, left: float, *, plan: bool) -> str:
    """How a budget that has too little comes to have enough: for the plan that was asked for, or for as much again."""
    needed = budget.total.epsilon or 1.0 if epsilon is None else epsilon
    total = budget.total_for(needed, plan=plan)
    more = command_for_more(budget.place, budget.dataset, budget.analyst, total, budget.total)
    kept = sum(amount.epsilon for amount in budget.withheld.values())
    enough = kept > 0 if epsilon is None else left + kept >= epsilon
    if not (kept and enough):
        return more
    return f"{command_to_free(budget.place, budget.dataset, budget.withheld, kept)}, or {more}"


def _called(budget: Budget) -> str:
    if budget.analyst:
        return f"the grant of {budget.analyst!r} in {budget.dataset!r}"
    return f"the budget of {budget.dataset!r}"


def _id(budget: Budget) -> str:
    return f"{budget.dataset}/{budget.analyst}" if budget.analyst else budget.dataset


def usage_of(study: StudyAccount) -> Usage | None:
    """What the ledger says to a charge; None where nothing was spent, and the budgets say it all.

    A plan that is made for a request is asked of the dataset's own budget alone.
    """
    asks = study.by_request
    budgets = [] if asks else [study.budget]
    budgets += [] if study.analyst is None else [study.ledger.budget(study.name)]
    others = [name for name in study.accounts if name != study.name]
    if not others and all(map(_is_fresh, budgets)):
        return None
    names = [study.name, *others] if study.is_registered else others
    analyst = None if asks else study.analyst

    def usage(event: Event, delta: float) -> float:
        return max(study.ledger.usage(name, event, delta=delta, analyst=analyst, requested=asks) for name in names)

    return usage if names else None


SEARCH = "a search"
"""What finds out about a table; all else needs to know how many rows of a unit are kept."""

SHARE = 0.02
"""Of a budget, for counting, where nobody says."""

RowAnswer = Answer
"""A number of rows with its interval."""

NAME = "rows"
_MOST_ATTEMPTS = 1_000


@dataclass(frozen=True)
class RowCount:
    """A count that was paid for; or, without an `answer`, the request id under which it would be charged."""

    request_id: str
    answer: Answer | None = None
    epsilon: float = 0.0
    scale: float = 0.0  # of its noise
    receipt: Receipt | None = None
    repeated: bool = True  # it was there before

    @property
    def answered(self) -> Answer:
        """The answer of a count that was made."""
        assert self.answer is not None
        return self.answer

    @property
    def counts(self) -> str:
        """What was counted: rows, or some rows of each unit."""
        return self.answered.counts or ROWS

    @property
    def sentence(self) -> str:
        """The count in one line, with what is not in it."""
        answer = self.answered
        beyond = "what is beyond is in neither the number nor its margin of error"
        cut = f", counts {answer.counts}: {beyond}" if answer.counts else ""
        return f"{answer.counting('')!r}{cut}"

    @property
    def counted(self) -> Counted | None:
        """As plans use it: the number, and the ends of its 95% interval."""
        if self.answer is None:
            return None
        ends = max(1, math.floor(float(self.answer.lower))), max(1, math.ceil(float(self.answer.upper)))
        return Counted(max(1, round(float(self.answer.values))), *ends)


@dataclass(frozen=True)
class _RowCountQuestion(Single):
    """A count whose noise is kept with it, so that its interval can be told later."""

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The scale of its noise."""
        assert isinstance(self.mechanism, DiscreteLaplace)
        return {"row_count": {"scale": self.mechanism.l1_sensitivity / self.mechanism.epsilon}}


def price_of_counting(study: StudyAccount, share: float = SHARE) -> float:
    """The epsilon of a count for a share of the whole budget, or of the whole grant."""
    part = checked_real(share, "share")
    if not 0 < part < 1:
        raise InvalidValue("share", share, "must be above 0 and below 1", "0.02 is a fiftieth of the budget")
    budget = study.budget
    if not budget.total.epsilon > 0:
        raise BudgetExceeded(
            f"counting rows costs a share of {_called(budget)}, which is 0; say about how many "
            "rows there are, or ask a curator for a grant.",
            requested=None,
            remaining=budget.remaining,
            budget_id=_id(budget),
        )
    return part * budget.total.epsilon


def register_to_spend(study: StudyAccount) -> None:
    """Open the account and register the table, where that is to be done; a file that cannot be read opens none.

    Args:
        study: Who is about to pay.

    Raises:
        InvalidData: If a file is refused: nothing is written to the ledger.
        InvalidValue: If the account is another than the table's, or nothing says which table a frame is.
    """
    if study.account_news is not None:
        study.dataset.prepare()
    study.register()


def refuse_sample(study: StudyAccount, what: str) -> None:
    """Refuse what cannot read a dataset that is a sample, before anything is charged.

    Sessions and syntheses read their rows once and keep them, so that one sample would serve many answers; a count of
    one sample says little about the size of the next.
    """
    if study.dataset.is_auto and what != SEARCH:
        way_out = "find it first: study.discover().release(), or farthing discover; or declare a number"
        raise InvalidValue("max_rows", "auto", f"was not found yet, and is needed for {what}", way_out)
    if study.dataset.probability < 1:
        raise InvalidValue(
            "dataset",
            f"a sample with probability {study.dataset.probability:g}",
            f"cannot be used for {what}: it is a sample",
            "study the whole table: the budget is the same one",
        )


def can_be_counted(study: StudyAccount) -> bool:
    """Whether a count would add anything, and may be charged for by itself."""
    return study.dataset.rows is None and study.sampling_rate is None and study.dataset.probability == 1


def stored_count(study: StudyAccount, *, wait: bool = False) -> RowCount:
    """The last count of this study that has an answer, or where the next one will stand; no row is read.

    A count that was lost is made again under another name; so is a fresh one. One that another process makes just now
    is left alone, or waited for.
    """
    latest: RowCount | None = None
    for request_id, stored in _attempts(study):
        if stored is None:
            return latest or RowCount(request_id)
        own = (stored.charge.dataset, stored.charge.analyst) == (study.name, study.payer)
        own = own and not study.curator.is_of_other_table(study.dataset, request_id)
        if own and (stored.state == "released" or (wait and stored.state == "reserved")):
            try:
                latest = _read(study, request_id) or latest
            except AnswerForfeited:
                continue
    raise AssertionError("the last attempt is one that nobody made")


def count_rows(
    study: StudyAccount,
    epsilon: float,
    *,
    fresh: bool = False,
    progress: Callable[[float], None] | None = None,
) -> RowCount:
    """Charge for a count and make it, unless there is one; `fresh` counts again, and is charged again."""
    if study.dataset.rows is not None:
        raise InvalidValue("rows", study.dataset.rows, "are public already", "no count is needed")
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a count of rows would be it",
            "say about how many rows there are: expected={'rows': ...}",
        )
    refuse_sample(study, "a count of rows")
    earlier = stored_count(study, wait=True)
    if earlier.answer is not None and not fresh:
        return earlier
    if fresh:
        *_, (request_id, _) = _attempts(study)
    else:
        request_id = earlier.request_id
    register_to_spend(study)
    mechanism = DiscreteLaplace(epsilon, max(1, study.dataset.sensitivity(Count()).l1))
    question = _RowCountQuestion(NAME, Count(), mechanism, study.dataset.probability)
    study.curator.run(
        study.dataset,
        question,
        ledger_name=study.name,
        request_id=request_id,
        world="adaptive",  # what is asked afterwards depends on it
        progress=progress,
    )
    row_count = _read(study, request_id)
    assert row_count is not None
    return replace(row_count, repeated=False)


def lost_count(study: StudyAccount, since: int) -> str | None:
    """The request id of a count that was charged since a moment (in nanoseconds) and has no answer, if there is one."""
    for request_id, stored in _attempts(study):
        if stored is None:
            return None
        own = (stored.charge.dataset, stored.charge.analyst) == (study.name, study.payer)
        if own and stored.state == "forfeited" and stored.receipt.time_ns >= since:
            return request_id
    return None


def counted_rows(study: StudyAccount, expected: Mapping[str, Any] | None = None) -> Counted | None:
    """The count that was paid for, where plans need it: the number of rows is neither public nor expected."""
    if "rows" in (expected or {}) or not can_be_counted(study):
        return None
    return stored_count(study).counted


def _read(study: StudyAccount, request_id: str) -> RowCount | None:
    answered = study.curator.recorded(request_id, PATIENCE)
    if NAME not in answered.answers:
        return None
    value = float(answered.answers[NAME].reshape(-1)[0])
    kept = answered.finished.get("row_count", {})
    # Earlier versions kept no scale, and counted with all of what they had charged.
    scale = float(kept.get("scale", 0.0)) or study.dataset.sensitivity(Count()).l1 / answered.receipt.epsilon
    receipt = answered.receipt
    counts = Coverage.of(Statistic("count"), study.dataset, 1).text
    return RowCount(request_id, row_answer(value, scale, counts), receipt.epsilon, scale, receipt)


def row_answer(value: float, scale: float, counts: str) -> Answer:
    """A count with discrete Laplace noise of this scale as an answer with its interval, and which rows it counts."""
    distribution = ErrorDistribution([Term("laplace", scale)])
    return Answer.around(NAME, max(0.0, value), distribution, centre=value, least=0).counting(limited(counts))


def _attempts(study: StudyAccount) -> Iterator[tuple[str, Stored | None]]:
    """The request ids of counts with what the ledger has of them; the last has nothing yet."""
    for attempt in range(1, _MOST_ATTEMPTS):
        request_id = _request_id(study, attempt)
        try:
            stored = study.ledger.stored(request_id)
        except NotAllowed:  # somebody else was quicker with the name
            continue
        yield request_id, stored
        if stored is None:
            return
    raise InvalidValue("rows", None, "were counted too often", "say about how many there are: rows=...")


def _request_id(study: StudyAccount, attempt: int) -> str:
    who = study.analyst
    return f"rows of {study.name}" + (f" for {who}" if who else "") + (f" {attempt}" if attempt > 1 else "")

"""`DiscoveryPlan`: what will be found about a table and what that costs, before anything is spent."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.adaptive.discovery import ROWS, Finding, Search, row_search, search_of
from farthing.data.unknown_columns import table_itself
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.numerics.bounds import number_text
from farthing.privacy.events import checked_epsilon, checked_real
from farthing.study.findings import PaidFinding, find, paid_finding, study_of_search
from farthing.study.release import warn_if_changed
from farthing.study.study_account import SEARCH, StudyAccount, refuse_sample

SHARE = 0.05
"""Of the whole budget, for each range and for rows per unit, by default; values of text get twice as much."""

OWN_DELTA = 32
"""A clock sets this part of delta aside for the charges' own deltas: with more of it a search stops it."""

_MOST = 0.2  # of the whole budget, for all of them


@dataclass(frozen=True, eq=False)
class DiscoveryPlan:
    """What will be searched, at which price, and what will be known. Made by `Study.discover`.

    Print it, then `release()`: each search is charged by itself, and what was found before costs nothing.

    Args:
        study: The study that made it.
        searches: What is searched, each with its price.
        paid: What was found before, by its name.
        fresh: Whether that is searched again.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = pyarrow.table({"income": [30_000.0, 41_000.0, 52_000.0] * 1_000})
    >>> people = ft.dataset(people, schema={"income": ft.unknown("number")})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
    ...     plan = study.discover("income")
    ...     print(plan.cost, study.left, plan.release()["income"].name, study.discover("income").cost)
    ...     study.close()
    0.05 1.0 income 0
    """

    study: StudyAccount
    searches: tuple[Search, ...]
    paid: Mapping[str, PaidFinding] = field(default_factory=dict)
    fresh: bool = False

    @property
    def open(self) -> tuple[Search, ...]:
        """What is to be paid for: all that was not found before."""
        return tuple(search for search in self.searches if self.fresh or search.name not in self.paid)

    @property
    def cost(self) -> float:
        """The sum of what the searches may cost."""
        return sum(search.epsilon for search in self.open)

    @property
    def delta(self) -> float:
        """The sum of their deltas."""
        return sum(search.delta for search in self.open)

    def release(self, progress: Callable[[float], None] | None = None) -> dict[str, Finding]:
        """Charge for each search and run it; what was found before is returned as it is, and costs nothing.

        Args:
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            What was found, by name. Plans that the study makes from now on use it.

        Raises:
            BudgetExceeded: If the budget does not have what all of them cost; nothing is spent.
            AnswerForfeited: If a run failed after its charge, which stays.
        """
        if self.open:
            self._refuse_beyond_budget()
        paid = {}
        # A first charge may choose the rule of its account: let it be the one that needs most of delta.
        for search in sorted(self.searches, key=lambda search: -search.delta):
            paid[search.name] = find(self.study, search, fresh=self.fresh, progress=progress)
            if paid[search.name].repeated:
                again = f"discover({search.name!r}, fresh=True)"
                warn_if_changed(study_of_search(self.study, search.name), paid[search.name].receipt, again)
        self.study.learn()
        return {search.name: paid[search.name].finding for search in self.searches}

    def _refuse_beyond_budget(self) -> None:
        """Refuse before the first search is charged what all of them cannot have."""
        self.study.allowance(self.cost)
        remaining = self.study.budget.remaining
        if not self.delta <= remaining.delta:
            raise BudgetExceeded(
                f"the searches cost delta={self.delta:.3g} together, and the budget of {self.study.name!r} has "
                f"{remaining.delta:.3g} left for charges of their own delta; leave delta out, or search for less.",
                requested=self.cost,
                remaining=remaining,
                budget_id=self.study.name,
            )

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data.

        Returns:
            Dictionaries, lists, numbers and texts.
        """
        searches = [
            {
                "name": search.name,
                "epsilon": 0.0 if search not in self.open else search.epsilon,
                "delta": 0.0 if search not in self.open else search.delta,
                "prediction": search.prediction,
                "finding": None if search in self.open else dict(self.paid[search.name].finding.facts),
                "sentence": None if search in self.open else self.paid[search.name].finding.sentence,
                "paid": None if search in self.open else self.paid[search.name].receipt.epsilon,
            }
            for search in self.searches
        ]
        return {"searches": searches, "epsilon": self.cost, "delta": self.delta}

    def __str__(self) -> str:
        lines = []
        for search in self.searches:
            if search in self.open:
                price = f"epsilon {number_text(search.epsilon)}" + (f", delta {search.delta:g}" if search.delta else "")
                text = f"{search.name}: {price}, for {search.prediction}"
            else:
                paid = self.paid[search.name]
                text = f"found before, for epsilon {number_text(paid.receipt.epsilon)}: {paid.finding.sentence}"
            lines += textwrap.wrap(text, 110, initial_indent="  ", subsequent_indent="    ")
        whole = self.study.budget.total.epsilon
        if not self.open:
            return "\n".join(["Everything was found before; nothing is charged.", *lines])
        part = f"epsilon {number_text(self.cost)}" + (f" of {number_text(whole)}" if whole > 0 else "")
        return "\n".join([f"To be found first, for {part}; nothing is spent yet:", *lines])


def discovery_plan(
    study: StudyAccount,
    names: tuple[str, ...],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    share: float | None = None,
    rows_per_unit: bool = False,
    max_keys: int | None = None,
    confidence: float = 0.95,
    fresh: bool = False,
    whole: float | None = None,
    since: int | None = None,
) -> DiscoveryPlan:
    """The plan to find what nobody knows about a table; see `Study.discover`.

    Shares are of `whole`: the epsilon of the plan whose first stage it is, or the whole budget. What was found before
    takes no share, unless that was since a moment (in nanoseconds): then this very plan has paid for it, and goes on.
    """
    declared = study.declared
    wanted = list(names) if names or rows_per_unit else list(declared.unknown)
    if rows_per_unit or (declared.is_auto and not names):
        wanted.append(ROWS)
    if not wanted or len(set(wanted)) != len(wanted):
        raise InvalidValue(
            "columns", wanted, "must name columns that are declared as unknown, each once", _way_out(declared)
        )
    refuse_search(study)
    texts = [name for name in wanted if name in declared.unknown and declared.unknown[name].kind == "text"]
    whole = study.budget.total.epsilon if whole is None else whole
    there = [name for name in wanted if name == ROWS or name in declared.unknown]  # others are refused below
    paid = {name: stored for name in there if (stored := paid_finding(study, name)) is not None}
    done = {name for name, one in paid.items() if not fresh and (since is None or one.receipt.time_ns < since)}
    every = len(wanted) + len(texts)
    shares = sum(1 + (name in texts) for name in wanted if name not in done) or every
    each = _price(whole, shares, epsilon, share)
    # How many units a value needs grows with the logarithm of 1/delta only, so a small part of delta will do.
    usual = study.budget.total.delta / OWN_DELTA / max(2, len(texts))
    spread = usual if delta is None else checked_real(delta, "delta")
    rest = max(whole - each * shares, each)

    def search(name: str) -> Search:
        price = each * shares / every if name in done else each  # what is done is not run, whatever its price
        if name == ROWS:
            return row_search(table_itself(declared), price, rest, confidence)
        table = table_itself(declared, name)
        return search_of(table, name, 2 * price if name in texts else price, spread, confidence, max_keys)

    plan = DiscoveryPlan(study, tuple(map(search, wanted)), paid, fresh)
    for one in plan.open:  # all of them now: none is charged if another one is refused
        one.check(study_of_search(study, one.name).dataset)
    return plan


def refuse_search(study: StudyAccount) -> None:
    """Refuse to search what is a sample: one release is all that a secret sample pays for."""
    refuse_sample(study, SEARCH)
    if study.sampling_rate is not None:
        rule = "holds for one release, and a search would use it up"
        raise InvalidValue("sampling_rate", study.sampling_rate, rule, "declare ranges that are known in public")


def _price(whole: float, count: int, epsilon: float | None, share: float | None) -> float:
    """The epsilon of one of `count` searches, where a search for values of text counts twice."""
    if epsilon is not None and share is not None:
        raise InvalidValue("share", share, "must be left out where epsilon is given")
    if epsilon is not None:
        each = checked_epsilon(epsilon) / count
        if not each > 0:
            raise InvalidValue("epsilon", epsilon, "must be > 0", "leave it out for a few percent of the budget")
        return each
    part = min(SHARE, _MOST / count) if share is None else checked_real(share, "share") / count
    if not 0 < part < 1:
        raise InvalidValue("share", share, "must be above 0 and below 1", "0.05 is a twentieth of the budget")
    if not whole > 0:
        raise InvalidValue("epsilon", None, "must be given: the grant is 0", "ask a curator to find it")
    return part * whole


def _way_out(table: Any) -> str:
    there = ", ".join(table.unknown)
    return f"there are: {there}" if there else "declare one with farthing.unknown(...), or say rows_per_unit=True"

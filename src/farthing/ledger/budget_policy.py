"""What only a curator may do: datasets, budgets, grants and reserves. Each is an entry of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farthing.accounting.event_price import budget_in_nano, budget_in_units, delta_down
from farthing.errors import InvalidValue
from farthing.ledger.account import Account
from farthing.ledger.account_state import Holding
from farthing.ledger.entries import Entry, checked_name
from farthing.ledger.ledger_change import Transaction, known
from farthing.ledger.partitions import Part
from farthing.ledger.tamper_evidence import canonical
from farthing.privacy.units import Unit, alike

if TYPE_CHECKING:
    from farthing.ledger.budget import Budget

OWNED = "rows "
"""Before what is kept of the owners of a table's rows, beside the mark of that table: one of them, and for good."""

_FORMS = "use Ledger.set_budget to change a budget"


def register(
    tx: Transaction,
    dataset: str,
    epsilon: float,
    delta: float,
    unit: Unit | str,
    sources: Iterable[str] | None = None,
    titles: Iterable[str] = (),
) -> Entry:
    """Open an account; `sources` are signatures of its tables, None as older versions had it."""
    if tx.whole() is not None:
        raise InvalidValue("dataset", dataset, "must not be registered already", _FORMS)
    holding = Holding(Account.of(epsilon, delta), unit=unit)
    if sources is not None:
        holding = _with_sources(holding, dataset, sources, titles)
    unit_data = unit.to_dict() if isinstance(unit, Unit) else unit
    return _appended(tx, "dataset", dataset, "", holding, epsilon, delta, new=True, unit=unit_data)


_NEVER = ("unit", "neighbours")


def correction_body(changes: Mapping[str, tuple[str, str]], reason: str, source: str) -> str:
    """What the entry of a correction says."""
    if not changes:
        raise InvalidValue("changes", {}, "must name what changes", "nothing is to be corrected")
    for name in changes:
        if alike(checked_name(name, "changes")) in _NEVER:
            raise InvalidValue("changes", name, "must not be corrected: it is whom the account protects")
    pairs = {name: [str(before), str(after)] for name, (before, after) in changes.items()}
    return canonical({"changes": pairs, "reason": checked_name(reason, "reason"), "source": str(source)})


def correction_text(body: Mapping[str, Any]) -> str:
    """What a correction changed, and why, in words.

    >>> correction_text({"changes": {"age": ["0 to 110", "0 to 120"]}, "reason": "some are older"})
    'age was 0 to 110 and is 0 to 120 in later releases (some are older)'
    """
    changes = (f"{name} was {before} and is {after}" for name, (before, after) in body["changes"].items())
    return f"{'; '.join(changes)} in later releases ({body['reason']})"


def correct(tx: Transaction, dataset: str, body: str) -> Entry:
    """Write a correction down; no account changes."""
    known(tx, dataset)
    return tx.append("correction", dataset, body)


def refuse_spelling(dataset: str, names: Iterable[str]) -> None:
    """Refuse a new account whose name is another spelling of one that is open."""
    for other in names:
        if other != dataset and alike(other) == alike(dataset):
            rule = f"must not be another spelling of the account {other!r}"
            raise InvalidValue("dataset", dataset, rule, "use that, or another name")


def wholes_of(dataset: str, names: Iterable[str]) -> list[str]:
    """The accounts of which a name sounds like one period.

    >>> wholes_of("Patients, 2026-03", ["patients", "visits"])
    ['patients']
    """
    whole, comma, _ = alike(dataset).rpartition(", ")
    return [name for name in names if comma and alike(name) == whole]


def refuse_name_of_period(dataset: str, unit: Unit | str, whole: Budget) -> None:
    """Refuse a name that belongs to a period of an account that renews, to an account that is not of it."""
    renewal = None if whole.protects is None else whole.protects.renewal
    if renewal is None or renewal.period is not None:
        return
    own = unit.renewal if isinstance(unit, Unit) else None
    if own is None or own.period is None or own != replace(renewal, period=own.period):
        raise InvalidValue(
            "dataset",
            dataset,
            f"must not sound like one {renewal.every} of the account {whole.dataset!r}, which renews",
            "use another name",
        )


def open_part(tx: Transaction, part: Part, epsilon: float, delta: float, unit: Unit) -> Entry | None:
    """Open the account of a part, if its partition was charged; None if it is open."""
    checked_name(part.name, "part")
    before, charged, account = tx.whole(), tx.charge(), Account.of(epsilon, delta)
    if before is not None and before.part == part:
        return None
    if before is not None or charged is None or not part.is_paid_by(charged.dataset, charged.body, account):
        raise InvalidValue("part", part.name, "must be one of a partition that was charged, with its budget")
    holding = Holding(account, unit=unit, sources=frozenset(), part=part)
    return _appended(tx, "dataset", part.name, "", holding, epsilon, delta, new=True, unit=unit.to_dict())


def attach(tx: Transaction, dataset: str, sources: Iterable[str], titles: Sequence[str] = ()) -> Entry | None:
    """Let an account stand for further tables; None if it does already."""
    before = known(tx, dataset)
    # Older versions kept no titles: their accounts are called by the one table that they were opened for.
    own = (dataset,) if titles and not before.titles and before.sources != frozenset() else ()
    after = _with_sources(before, dataset, sources, (*own, *titles))
    if after == before:
        return None
    added = len(after.sources or ()) - len(before.sources or ())
    named = list(after.titles[len(before.titles) :])
    body = {"added": added, **({"titles": named} if named else {}), "state": json.loads(after.text())}
    return tx.append("source", dataset, canonical(body), keep={(dataset, ""): after})


def _with_sources(before: Holding, dataset: str, sources: Iterable[str], titles: Iterable[str]) -> Holding:
    """The same for further tables; refused where another process has just said otherwise whose the rows of one are."""
    after = before.with_sources(sources, titles)
    owners: dict[str, str] = {}
    for mark in after.sources or ():
        signature, _, rest = mark.partition(" ")
        if rest.startswith(OWNED) and owners.setdefault(signature, rest) != rest:
            raise InvalidValue(
                "keys",
                dataset,
                "has a table whose rows another request has just counted by another column: a row has one owner",
                "plan again, which says how the table is recorded",
            )
    return after


def set_budget(tx: Transaction, dataset: str, epsilon: float, delta: float | None) -> Entry:
    """Give a dataset another budget; what was spent stays spent."""
    before = known(tx, dataset)
    if isinstance(before.unit, Unit) and before.unit.renewal is not None:
        raise InvalidValue(
            "dataset",
            dataset,
            "is the same for every period and cannot be changed: the yearly bound depends on it",
            "open another account, for other periods, with another budget",
        )
    if before.part is not None:
        raise InvalidValue(
            "dataset",
            dataset,
            "is a part; its budget was fixed when the table was divided",
            "declare another partition",
        )
    after, delta = _changed(before, epsilon, delta)
    return _appended(tx, "budget", dataset, "", after, epsilon, delta, raised=_raised(before, after))


def grant(tx: Transaction, dataset: str, analyst: str, epsilon: float, delta: float | None) -> Entry:
    """Let an analyst spend so much of a dataset's budget in all."""
    known(tx, dataset)
    before = tx.own()
    if before is None:
        delta = delta or 0.0
        holding = Holding(Account.of(epsilon, delta))
        return _appended(tx, "grant", dataset, analyst, holding, epsilon, delta, new=True, raised=True)
    after, delta = _changed(before, epsilon, delta)
    return _appended(tx, "grant", dataset, analyst, after, epsilon, delta, raised=_raised(before, after))


def _changed(before: Holding, epsilon: float, delta: float | None) -> tuple[Holding, float]:
    """The same history under another budget, and its delta: the one it has if none is said.

    Less than what was spent is allowed. A delta at which no epsilon covers it is not: then nothing would fit any more,
    whatever epsilon is given, and nobody who changes an epsilon means that.
    """
    chosen = before.account.budget.delta if delta is None else delta
    after = before.with_budget(epsilon, chosen)
    if not after.account.spent_upper < math.inf:
        least = before.account.least_delta(epsilon)
        raise InvalidValue(
            "delta",
            chosen,
            "is too small for what was spent: no epsilon covers that with it",
            f"say a delta of {least:g} or more"
            + ("" if delta is None else f", or none, which keeps {before.account.budget.delta:g}"),
        )
    return after, chosen


def reserve(tx: Transaction, dataset: str, epsilon: float, delta: float | None, name: str) -> Entry:
    """Set aside so much of a dataset's budget under a name; nothing frees it."""
    holding = known(tx, dataset)
    if delta is None:  # no epsilon and no delta said: it is freed, and not kept for its delta
        delta = delta_down(holding.reserves.get(name, (0, 0))[1]) if epsilon else 0.0
    after = holding.with_reserve(name, budget_in_nano(epsilon), budget_in_units(delta))
    nano, units = after.withheld()
    if not (nano <= after.account.epsilon_nano and units <= after.account.delta_units):
        budget = holding.account.budget
        raise InvalidValue(
            "reserve",
            f"({epsilon:g}, {delta:g})",
            f"all reserves together must be at most the budget ({budget.epsilon:g}, {budget.delta:g})",
            "set aside less, or raise the budget first",
        )
    return _appended(tx, "reserve", dataset, "", after, epsilon, delta, name=name)


def _raised(before: Holding, after: Holding) -> bool:
    one, other = before.account, after.account
    return other.epsilon_nano > one.epsilon_nano or other.delta_units > one.delta_units


def _appended(
    tx: Transaction,
    kind: str,
    dataset: str,
    analyst: str,
    holding: Holding,
    epsilon: float,
    delta: float,
    *,
    new: bool = False,
    **words: Any,
) -> Entry:
    # The whole state is in the entry, so that a replay reads it and never works out a budget again.
    body = {"epsilon": epsilon, "delta": delta, **words, "state": json.loads(holding.text())}
    return tx.append(kind, dataset, canonical(body), analyst=analyst, keep={(dataset, analyst): holding}, new=new)

"""A ledger as tables for people and as JSON for programs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.numerics.bounds import rounded_down_text, rounded_text, rounded_up_text

if TYPE_CHECKING:
    from rich.console import Console

    from farthing.ledger import Budget, Entry, Ledger, Verification
    from farthing.ledger.partitions import Part
    from farthing.study.release_list import ReleaseRecord


_LONGEST = 200  # letters about what was released
_WIDE = 100  # columns of a terminal in which every figure has a column of its own


@dataclass(frozen=True)
class LedgerView:
    """What `farthing ledger show` shows: budgets and grants, and the last entries."""

    place: str
    ledger: str
    head: str
    count: int
    budgets: tuple[Budget, ...]
    last: tuple[Entry, ...]
    subjects: Mapping[str, str]  # what the answers among these entries are about, by request id
    releases: tuple[ReleaseRecord, ...] = ()  # the last ones
    partitions: tuple[str, ...] = ()  # in words

    @classmethod
    def of(cls, ledger: Ledger, place: str, datasets: Sequence[str], most: int) -> LedgerView:
        """Budgets of these datasets, grants in them, their last releases and entries."""
        from farthing.study.release_list import release_list

        wanted, head, count = set(datasets), "", 0
        grants: dict[tuple[str, str], None] = {}
        last: deque[Entry] = deque(maxlen=most)
        for entry in ledger.entries():
            head, count = entry.mac, entry.sequence
            if not entry.dataset or entry.dataset in wanted or wanted.intersection(entry.others):
                last.append(entry)
            if entry.kind == "grant" and entry.dataset in wanted:
                grants[entry.dataset, entry.analyst] = None
        budgets = [ledger.budget(name) for name in datasets]
        budgets += [ledger.budget(name, analyst) for name, analyst in sorted(grants)]
        subjects = {each.request_id: _subject(ledger, each) for each in last if each.kind == "released"}
        releases = release_list(ledger, wanted, most)
        partitions = [words for account, words in partition_lines(ledger) if account in wanted]
        return cls(
            place, ledger.id, head, count, tuple(budgets), tuple(last), subjects, tuple(releases), tuple(partitions)
        )


def print_ledger(state: LedgerView, console: Console) -> None:
    """A line about the ledger, a table of budgets, a table of entries."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    say(f"{state.place}: ledger {state.ledger}, {_entries_in_all(state.count)}, verified; head {state.head[:16]}...")
    if not state.budgets:
        say("No account is open yet; open one with `farthing ledger budget set ... --new`.")
        return
    narrow = console.width < _WIDE
    console.print(_budgets(state.budgets, narrow))
    for line in _beside(state.budgets) if narrow else []:
        console.print(line, highlight=False, markup=False)
    for line in filter(None, map(sources_line, state.budgets)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for line in filter(None, map(lifetime_line, state.budgets)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for line in filter(None, map(would_fit_line, state.budgets)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for line in state.partitions:
        console.print(f" {line}", highlight=False, markup=False, soft_wrap=True)
    if state.releases:
        console.print(_releases(state.releases, narrow))
    if state.last:
        console.print(_entries_in_brief(state) if narrow else _entries(state))


def ledger_json(state: LedgerView) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {
        "ledger": state.ledger,
        "place": state.place,
        "head": state.head,
        "entries": state.count,
        "budgets": [json_of_budget(budget) for budget in state.budgets],
        "partitions": list(state.partitions),
        "releases": [release.to_dict() for release in state.releases],
        "last": [
            {
                **entry.to_dict(),
                "released": state.subjects.get(entry.request_id) if entry.kind == "released" else None,
            }
            for entry in state.last
        ],
    }


def json_of_budget(budget: Budget) -> dict[str, Any]:
    """A budget as JSON-ready data; infinity is the string "inf"."""
    return {
        "dataset": budget.dataset,
        "analyst": budget.analyst or None,
        "total": _pair(budget.total),
        "spent": {"lower": _number(budget.spent.lower), "upper": _number(budget.spent.upper)},
        "reserved": _number(budget.reserved),
        "withheld": {name: _pair(amount) for name, amount in budget.withheld.items()},
        "remaining": _pair(budget.remaining),
        "room": _pair(budget.room),
        "would_fit": {f"{size:g}": count for size, count in budget.would_fit.items()},
        "odometer": _number(budget.odometer),
        "charges": budget.count,
        "unit": budget.unit,
        "sources": list(budget.sources),
        "lifetime": lifetime_line(budget).strip() or None,
    }


def budget_line(budget: Budget) -> str:
    """A budget in one line.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> print(budget_line(Budget("census", "", ApproxDP(1.0, 1e-9), 0.3, 0.0, {}, ApproxDP(0.7, 5e-10), 1)))
    epsilon 1, delta 1e-09; spent 0.3, left 0.7
    """
    aside = set_aside(budget)
    kept = f", set aside {rounded_up_text(aside)}" if aside else ""
    total = f"epsilon {rounded_text(budget.total.epsilon)}, delta {rounded_text(budget.total.delta)}"
    spent, left = rounded_up_text(budget.spent_upper), rounded_down_text(budget.remaining.epsilon)
    return f"{total}; spent {spent}{kept}, left {left}"


def account_lines(budget: Budget, whole: str | None) -> list[str]:
    """An account in lines: whom it protects, how it stands, its tables; `whole` is the one that it is a part of.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> files = ("people.csv", "visits-*.csv")
    >>> one = Budget("patients", "", ApproxDP(1.0), 0.0, 0.0, {}, ApproxDP(1.0), 0, "person, add-remove", sources=files)
    >>> print(*account_lines(one, None), sep="\\n")
    patients: protects person, add-remove
      epsilon 1, delta 0; spent 0, left 1
      people.csv
      visits-*.csv
    """
    lines = [f"{budget.dataset}: protects {budget.unit or 'an unstated unit'}", f"  {budget_line(budget)}"]
    if whole is not None:
        lines.append(f"  a part of {whole}, which has paid for it")
    lifelong = lifetime_line(budget).strip().removeprefix(f"{budget.dataset}: ")
    lines += [f"  {lifelong}"] if lifelong else []
    return lines + [f"  {source}" for source in budget.sources if whole is None]


def sources_line(budget: Budget) -> str:
    """The tables of an account where its name does not say it all; else nothing.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> tables = ("people.csv", "visits-*.csv")
    >>> print(sources_line(Budget("patients", "", ApproxDP(1.0), 0.0, 0.0, {}, ApproxDP(1.0), 0, sources=tables)))
     patients: pays for people.csv, visits-*.csv
    """
    if budget.analyst or budget.sources in ((), (budget.dataset,)):
        return ""
    return f" {_name(budget)}: pays for {', '.join(budget.sources)}"


def lifetime_line(budget: Budget) -> str:
    """What somebody in all periods of an account that renews is protected by; else nothing.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> from farthing.privacy.units import Renewal, Unit
    >>> whom = Unit(("person",), renewal=Renewal("quarter", "day"))
    >>> print(lifetime_line(Budget("visits", "", ApproxDP(0.5), 0, 0, {}, ApproxDP(0.5), 0, protects=whom)))
     visits: somebody in all 4 quarters of a year is protected by epsilon 2; no bound holds for ever
    """
    from farthing.ledger.lifetime import lifetime_words

    renewal = None if budget.protects is None else budget.protects.renewal
    if budget.analyst or renewal is None or renewal.period is not None:  # said once, of all periods
        return ""
    return f" {_name(budget)}: {lifetime_words(budget.protects, budget.total)}"


def partition_lines(ledger: Ledger) -> list[tuple[str, str]]:
    """The account of every partition of the ledger, and in words how it was divided and what that cost.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M"]}), schema={"sex": ["F", "M"]}, name="people")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
    ...     _ = study.split("sex", epsilon=0.5)
    ...     print(partition_lines(study.ledger)[0][1])
    ...     study.close()
    people: divided by sex into 2 disjoint parts of epsilon 0.5; for all of them together epsilon 0.5 was charged
    """
    groups: dict[str, list[Part]] = {}
    for part in ledger.parts().values():
        groups.setdefault(part.request_id, []).append(part)
    lines = []
    for request_id, parts in groups.items():
        each, receipt = ledger.budget(parts[0].name).total.epsilon, ledger.receipt(request_id)
        paid = "" if receipt is None else f"; for all of them together epsilon {rounded_up_text(receipt.epsilon)}"
        words = (
            f"{parts[0].account}: divided by {parts[0].by} into {len(parts):,} disjoint parts of epsilon "
            f"{rounded_text(each)}{paid} was charged"
        )
        lines.append((parts[0].account, words))
    return lines


def would_fit_line(budget: Budget) -> str:
    """What would fit besides the one charge that is left, where many small ones come to more; else nothing.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> counts = {0.1: 1, 0.01: 229, 0.001: 23_106}
    >>> budget = Budget("census", "", ApproxDP(1.0, 1e-9), 0.5, 0.0, {}, ApproxDP(0.121), 100, _fitting=counts.get)
    >>> print(would_fit_line(budget))
     census: would fit, decided one by one: one charge of epsilon 0.121, or 229 of 0.01, or 23,106 of 0.001
    """
    words = budget.would_fit_words()
    return f" {_name(budget)}: would fit, decided one by one: {words}" if words else ""


def without_secrets(place: str) -> str:
    """A path as it is; an address without its user, its password and its options.

    >>> without_secrets("postgresql://ada:secret@db.example:5432/registry?sslkey=k"), without_secrets("study.db")
    ('postgresql://db.example:5432/registry', 'study.db')
    """
    if "://" not in place:
        return place
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(place)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # what stands where a port should be may be a piece of a password
        return f"{place.partition(':')[0]}://..."
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def set_aside(budget: Budget) -> float:
    """The epsilon of all reserves together."""
    return math.fsum(amount.epsilon for amount in budget.withheld.values())


def json_of_verifications(place: str, verifications: Sequence[tuple[str, Verification]]) -> dict[str, Any]:
    """What was verified, as JSON-ready data."""
    last = verifications[-1][1]
    return {
        "place": place,
        "ok": all(verification.ok for _, verification in verifications),
        "entries": last.entries,
        "head": last.head,
        "problems": [problem for _, verification in verifications for problem in verification.problems],
        "notes": list(last.notes),
        "receipts": [
            {"file": path, "ok": verification.ok, "problems": list(verification.problems)}
            for path, verification in verifications
            if path
        ],
    }


def print_verifications(
    place: str, verifications: Sequence[tuple[str, Verification]], say: Callable[[str], object]
) -> None:
    """A line for the ledger, and one for each receipt."""
    good = all(verification.ok for _, verification in verifications)
    last = verifications[-1][1]
    if good:
        say(f"{place}: {_entries_in_all(last.entries)}, verified; head {last.head}")
    for path, verification in verifications:
        if verification.ok and path:
            say(f"{path}: in the ledger, with everything before it")
        for problem in verification.problems:
            say(f"{path or place}: DOES NOT VERIFY: {problem}")
    for note in last.notes:
        say(f"note: {note}")


def _budgets(budgets: Sequence[Budget], narrow: bool) -> Any:
    columns: dict[str, list[str]] = {
        "account": [_name(each) for each in budgets],
        "epsilon": [rounded_text(each.total.epsilon) for each in budgets],
        "delta": [rounded_text(each.total.delta) for each in budgets],
        "spent": [rounded_up_text(each.spent_upper) for each in budgets],
        "waiting": [rounded_up_text(each.reserved) for each in budgets],
        "set aside": [rounded_up_text(set_aside(each)) for each in budgets],
        "left": [rounded_down_text(each.remaining.epsilon) for each in budgets],
        "charges": [f"{each.count:,}" for each in budgets],
        "unit": [each.unit or "not stated" for each in budgets],
    }
    if narrow:
        del columns["unit"]
    for name in ("waiting", "set aside"):  # seldom there, and wide
        if narrow or set(columns[name]) == {"0"}:
            del columns[name]
    return _table(columns, words=("account", "unit"))


def _beside(budgets: Sequence[Budget]) -> list[str]:
    """What a narrow table has no columns for."""
    lines = []
    for each in budgets:
        parts = [] if each.analyst else [f"protects {each.unit or 'an unstated unit'}"]
        if each.reserved:
            parts.append(f"{rounded_up_text(each.reserved)} of what is spent waits for its answer")
        if set_aside(each):
            parts.append(f"{rounded_up_text(set_aside(each))} is set aside")
        if parts:
            lines.append(f" {_name(each)}: {', '.join(parts)}")
    return lines


def _name(budget: Budget) -> str:
    return budget.dataset + (f" / {budget.analyst}" if budget.analyst else "")


def _releases(releases: Sequence[ReleaseRecord], narrow: bool) -> Any:
    """What was released: each with its title, its statistics where the title does not say them, and its version.

    The account names the part or the period that paid; where all are of one account, the table above says it.
    """
    columns: dict[str, list[str]] = {
        "released (UTC)": [each.when.strftime("%Y-%m-%d" if narrow else "%Y-%m-%d %H:%M") for each in releases],
        "title": [_shortened(each.title) for each in releases],
        "statistics": [_shortened(", ".join(each.statistics)) for each in releases],
        "account": [" + ".join(each.accounts) for each in releases],
        "unit": [each.unit for each in releases],
        "version": [
            "" if each.version is None else f"{each.version.number} of {each.version.source}" for each in releases
        ],
        "who": [each.who for each in releases],
        "request": [each.request_id for each in releases],
        "epsilon": [rounded_up_text(each.epsilon) for each in releases],
    }
    several = len(set(columns["account"])) > 1
    hidden: set[str] = set() if several else {"account"}
    if all(each.title == ", ".join(each.statistics) for each in releases):  # then the titles are the statistics
        hidden.add("statistics")
    if narrow:
        hidden |= {"unit", "request"} | ({"statistics", "version"} if several else set())
    visible = {name: cells for name, cells in columns.items() if name not in hidden}
    words = tuple(name for name in visible if name != "epsilon")
    return _table(visible, words=words, whole=("released (UTC)", "request"))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _entries(state: LedgerView) -> Any:
    entries = state.last
    columns: dict[str, list[str]] = {
        "entry": [f"{each.sequence:,}" for each in entries],
        "time (UTC)": [each.when.strftime("%Y-%m-%d %H:%M:%S") for each in entries],
        "what": [each.kind for each in entries],
        "dataset": [_payers(each) for each in entries],
        "who": [each.analyst or each.actor for each in entries],
        "request": [_request(state, each) for each in entries],
        "epsilon": [_epsilon(each) for each in entries],
    }
    return _table(columns, words=("time (UTC)", "what", "dataset", "who", "request"))


def _entries_in_brief(state: LedgerView) -> Any:
    """Words in one column, which folds between them, and days without their hours."""
    about, entries = "dataset, who: request", state.last
    columns: dict[str, list[str]] = {
        "entry": [f"{each.sequence:,}" for each in entries],
        "day (UTC)": [each.when.strftime("%Y-%m-%d") for each in entries],
        "what": [each.kind for each in entries],
        about: [
            ", ".join(filter(None, (_payers(each), each.analyst or each.actor)))
            + (f": {_request(state, each)}" if each.request_id or each.kind in ("correction", "deposit") else "")
            for each in entries
        ],
        "epsilon": [_epsilon(each) for each in entries],
    }
    return _table(columns, words=("day (UTC)", "what", about), whole=("day (UTC)", "what"))


def _payers(entry: Entry) -> str:
    """Every dataset that an entry is charged to."""
    return " + ".join((entry.dataset, *entry.others)) if entry.dataset else ""


def _request(state: LedgerView, entry: Entry) -> str:
    """The request id, and what was released where that is known."""
    if entry.kind == "correction":
        from farthing.ledger.budget_policy import correction_text

        return correction_text(entry.body)
    if entry.kind == "deposit":
        from farthing.ledger.deposit_records import DepositRecord

        return DepositRecord.of(entry).words
    subject = state.subjects.get(entry.request_id) if entry.kind == "released" else ""
    return f"{entry.request_id}: {subject}" if subject else entry.request_id


def _subject(ledger: Ledger, entry: Entry) -> str:
    from farthing.study.release import answer_facts, answer_subject

    subject = answer_subject(answer_facts(ledger, entry.request_id), entry.request_id)
    return _shortened(subject)


def _table(columns: dict[str, list[str]], words: Sequence[str], whole: Sequence[str] = ("time (UTC)",)) -> Any:
    """Columns side by side; words stand on the left and may be folded unless `whole`, numbers on the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        if name in words:
            table.add_column(name, overflow="fold", no_wrap=name in whole)
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return table


def _epsilon(entry: Entry) -> str:
    """What an entry charged, refused or set; an outcome changes nothing."""
    if entry.kind in ("released", "forfeited"):
        return ""
    if "epsilon" in entry.body:
        return rounded_text(entry.body["epsilon"])
    nano = entry.body.get("nano")
    if not isinstance(nano, int):
        return ""
    return "inf" if nano < 0 else rounded_up_text(nano / 1e9)


def _entries_in_all(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _pair(amount: Any) -> dict[str, Any]:
    return {"epsilon": _number(amount.epsilon), "delta": _number(amount.delta)}


def _number(value: float) -> float | str:
    return "inf" if value == float("inf") else value

"""What a study has found out about its table: searches that were paid for, in the ledger, and what they change.

A search is charged once for each thing that is searched, under a name that says what it is: "income found in people".
The findings are there when somebody opens the study again, whatever is left of the budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from farthing.adaptive.discovery import ROWS as ROWS
from farthing.adaptive.discovery import Finding, Search, bound_of, finding_of
from farthing.adaptive.discovery.key_search import VALUES_FOUND
from farthing.adaptive.discovery.row_search import tally_of
from farthing.curator.payers import Register
from farthing.curator.session_records import PATIENCE
from farthing.data import Dataset
from farthing.data.table_identity import pieces_of
from farthing.data.unknown_columns import known, table_itself
from farthing.errors import AnswerForfeited, InvalidValue, NotAllowed
from farthing.study.release_request import Earlier, Request
from farthing.study.study_account import StudyAccount, register_to_spend

if TYPE_CHECKING:
    from farthing.ledger import Ledger, Receipt, Stored

_MOST_ATTEMPTS = 1_000
_LONGEST = 80  # characters of a column's name in the name of a request


@dataclass(frozen=True)
class PaidFinding:
    """A finding with the receipt of what was paid for it.

    Args:
        finding: What was found.
        receipt: The receipt of its charge; its request id names it in the ledger.
        repeated: Whether it was there before.
    """

    finding: Finding
    receipt: Receipt
    repeated: bool = True


def paid_finding(study: StudyAccount, name: str, *, wait: bool = False) -> PaidFinding | None:
    """The last finding about a column, or about "rows per unit", that this study may use; no row is read.

    It is the study's own, or one that was paid from the budget itself: an analyst knows what the curator has found.
    """
    own = _latest(study, name, study.payer, wait)
    return own if own is not None or not study.payer else _latest(study, name, "", wait)


def with_findings(study: StudyAccount, dataset: Dataset, only: Container[str] | None = None) -> Dataset:
    """A dataset in which everything is known that the study has found out about its table; of columns, `only` these."""
    domains = {}
    for name in dataset.unknown:
        if only is not None and name not in only:
            continue
        paid = paid_finding(study, name)
        if paid is not None and paid.finding.domain is not None:
            domains[name] = paid.finding.domain
    paid = paid_finding(study, ROWS) if dataset.unit else None
    if paid is None or not paid.finding.is_usable:
        return known(dataset, domains) if domains else dataset
    sizes = tally_of(paid.finding)
    if not dataset.bounds_rows:
        return known(dataset, domains, unit_sizes=sizes)
    bound, left_out = bound_of(paid.finding, None if dataset.is_auto else dataset.bound, dataset.table_rows)
    return known(dataset, domains, bound, left_out, sizes)


def found_notes(study: StudyAccount) -> dict[str, str]:
    """For each column whose values or range the study uses as they were found, what a reader of its numbers must know.

    A column may have been searched again since the plan was made: then the note is without the promise of a search.
    """
    notes = {}
    for name, rules in study.declared.unknown.items():
        if name not in study.dataset.schema:
            continue
        paid = paid_finding(study, name)
        if paid is not None and paid.finding.domain == study.dataset.schema[name]:
            notes[name] = paid.finding.note
        else:
            is_text = rules.kind == "text"
            notes[name] = (
                f"the values of {name} {VALUES_FOUND}" if is_text else f"the range of {name} was found in the data"
            )
    return notes


def find(
    study: StudyAccount,
    search: Search,
    *,
    fresh: bool = False,
    progress: Callable[[float], None] | None = None,
    world: str = "adaptive",
) -> PaidFinding:
    """Charge for a search and run it, unless it was; `fresh` searches again, and is charged again.

    As a rule what is asked afterwards depends on it, so that it is charged as adaptive.
    """
    place = _Place.of(study, search.name)
    # The name first: whoever charges from here on does so under this very name, and what they find is the answer.
    *_, (request_id, _) = _attempts(study, place, study.payer)
    earlier = paid_finding(study, search.name, wait=True)
    if earlier is not None and not fresh:
        return earlier
    register_to_spend(study)
    study.curator.run(
        place.table,
        search,
        ledger_name=place.account,
        request_id=request_id,
        world=world,
        delta=search.delta or None,
        progress=progress,
        patience=PATIENCE,  # somebody else may have been quicker by a moment: theirs is the answer
    )
    paid = _read(study, request_id)
    assert paid is not None
    return PaidFinding(paid.finding, paid.receipt, repeated=False)


def counted_finding(study: StudyAccount, name: str, request: Request) -> Earlier | None:
    """The last release that has found the values of a column and counted them, for this very request; if any.

    Failing that, one of the same with further controls, which is not exact.
    """
    latest: Earlier | None = None
    place = _Place.of(study, name)
    for request_id, stored in _attempts(study, place, study.payer):
        if stored is None or stored.state != "released":
            continue
        if study.curator.is_of_other_table(place.table, request_id):
            continue
        kept = study.curator.recorded(request_id).finished.get("plan")
        if not isinstance(kept, Mapping):
            continue
        exact = request.is_that_of(kept["asked"])
        if exact or (request.is_part_of(kept["asked"]) and not (latest is not None and latest.exact)):
            latest = Earlier(request_id, kept, exact)
    return latest


def study_of_search(study: StudyAccount, name: str) -> StudyAccount:
    """The study as far as it is about the table that is searched for something, which may be a linked one."""
    place, own = _Place.of(study, name), copy(study)
    own.dataset, own.name = place.table, place.account
    return own


def next_search(study: StudyAccount, name: str) -> str:
    """The request id under which a search would be charged now."""
    *_, (request_id, _) = _attempts(study, _Place.of(study, name), study.payer)
    return request_id


def lost_search(study: StudyAccount, name: str, since: int) -> str | None:
    """The request id of a search that was charged since a moment (in nanoseconds) and has no answer, if any."""
    lost, place = None, _Place.of(study, name)
    for request_id, stored in _attempts(study, place, study.payer):
        if stored is None:
            break
        own = (stored.charge.dataset, stored.charge.analyst) == (place.account, study.payer)
        if own and stored.state == "forfeited" and stored.receipt.time_ns >= since:
            lost = request_id
    return lost


def _latest(study: StudyAccount, name: str, payer: str, wait: bool) -> PaidFinding | None:
    latest: PaidFinding | None = None
    place = _Place.of(study, name)
    for request_id, stored in _attempts(study, place, payer):
        if stored is None:
            break
        own = (stored.charge.dataset, stored.charge.analyst) == (place.account, payer)
        own = own and not study.curator.is_of_other_table(place.table, request_id)
        if own and (stored.state == "released" or (wait and stored.state == "reserved")):
            try:
                paid = _read(study, request_id)
            except AnswerForfeited:
                continue
            if paid is not None and _fits(place.table, name, paid.finding):
                latest = paid
    return latest


@dataclass(frozen=True)
class _Place:
    """Where something is searched: the table that has it, by itself, and the account under whose name that stands.

    A column that was brought along from a linked table is searched in that table, so that all studies of these tables
    share what is found. All accounts of linked tables pay, whichever of them the charge is named after.
    """

    name: str
    table: Dataset
    account: str

    @classmethod
    def of(cls, study: StudyAccount, name: str) -> Self:
        table = table_itself(study.declared, None if name == ROWS else name)
        is_first = table.sources()[0] is study.declared.sources()[0]
        return cls(name, table, study.name if is_first else _holder_of(study.ledger, table, study.name))


def _holder_of(ledger: Ledger, dataset: Dataset, name: str) -> str:
    """The account that a charge for a linked table is named after, in a study of `name`: its own, if it has one.

    Each of them may have had an account before they were linked. All of these pay, whichever names the charge.
    """
    source, register = dataset.sources()[0], Register(ledger)
    holders = set().union(*map(register.holders, pieces_of(source)))
    if name in holders or len(holders) != 1:
        return name
    (holder,) = holders
    return name if name.startswith((f"{holder}, ", f"{holder} / ")) else holder  # a period or a part of it


def _fits(dataset: Dataset, name: str, finding: Finding) -> bool:
    """Whether a finding is about what is declared now: a column may have been declared as another kind."""
    if name == ROWS:
        return finding.kind == "rows"
    rules = dataset.unknown[name]
    if finding.kind != rules.kind or rules.kind != "text":  # of a range, "lower" is where it begins
        return finding.kind == rules.kind
    return all(finding.facts.get(rule, False) == getattr(rules, rule) for rule in ("trim", "lower"))


def _read(study: StudyAccount, request_id: str) -> PaidFinding | None:
    answered = study.curator.recorded(request_id, PATIENCE)
    facts = answered.finished.get("finding")
    return PaidFinding(finding_of(facts), answered.receipt) if facts else None


def _attempts(study: StudyAccount, place: _Place, payer: str) -> Iterator[tuple[str, Stored | None]]:
    """The request ids of searches with what the ledger has of them; the last has nothing yet."""
    for attempt in range(1, _MOST_ATTEMPTS):
        request_id = _request_id(place.account, place.name, payer, attempt)
        try:
            stored = study.ledger.stored(request_id)
        except NotAllowed:  # somebody else was quicker with the name
            continue
        yield request_id, stored
        if stored is None:
            return
    raise InvalidValue("column", place.name, "was searched too often", "declare its range")


def _request_id(account: str, name: str, payer: str, attempt: int) -> str:
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]} {hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"{name} found in {account}" + (f" for {payer}" if payer else "") + (f" {attempt}" if attempt > 1 else "")

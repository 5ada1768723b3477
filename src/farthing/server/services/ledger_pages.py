"""The ledger as the server reads it out: pages of entries, each with a sentence, as far as the caller may see them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.ledger import Entry, Ledger, Receipt, Verification
from farthing.ledger.budget_policy import correction_text
from farthing.ledger.deposit_records import DEPOSIT, DepositRecord
from farthing.ledger.ledger_replay import Moment
from farthing.numerics.bounds import rounded_down_text, rounded_text, rounded_up_text
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.entry_schema import (
    BurnDownView,
    EntriesView,
    EntryView,
    LedgerView,
    PointView,
    VerificationView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import account_of
from farthing.server.services.ledger_history import iso_time
from farthing.study.sessions import RoundId

MOST_READ = 20_000  # entries that are looked at for one page
WINDOW = 1_000  # that are read at once where the newest come first
STATES = {"charge": "reserved", "released": "released", "forfeited": "forfeited", "refused": "refused"}


def summary(state: State, who: Caller) -> LedgerView:
    """The ledger as a whole."""
    ledger = state.ledger(who)
    return LedgerView(
        id=ledger.id,
        entries=ledger.last(),
        verified=state.history.verified,
        datasets=[name for name in ledger.datasets() if _may_see(ledger, who, name)],
    )


def page(state: State, who: Caller, dataset: str | None, since: int, limit: int, newest: bool) -> EntriesView:
    """A page of entries: those after `since` in order, or those before it, the newest first."""
    ledger = state.ledger(who)
    if dataset is not None:
        dataset = account_of(state.store, dataset)
        refuse_unknown(ledger, who, dataset)
    own = who.role == "analyst"
    # All are read and what is somebody else's is left out here, so that a page ends after so many in any case.
    read = _newest(state.root, since) if newest else state.root.entries(since=since)
    entries, last, count = [], None, 0
    for entry in read:
        last, count = entry.sequence, count + 1
        mine = not own or entry.analyst == who.name
        if mine and (dataset is None or entry.is_about(dataset)):
            entries.append(entry_view(entry, own))
        if len(entries) == limit or count == MOST_READ:
            break
    else:
        last = None
    at_the_end = last is None or (last <= 1 if newest else last >= ledger.last())
    return EntriesView(entries=entries, next=None if at_the_end else last)


def _newest(root: Ledger, before: int) -> Iterator[Entry]:
    """Entries before `before` (all of them if it is 0), the newest first, read window by window."""
    last = root.last()
    top = min(before - 1, last) if before else last  # a request from far beyond the end begins at the end
    while top >= 1:
        low = max(0, top - WINDOW)
        yield from reversed(list(islice(root.entries(since=low), top - low)))
        top = low


def burn_down(state: State, who: Caller, dataset: str, analyst: str | None) -> BurnDownView:
    """How a budget or a grant came to be what it is; analysts see their own grant."""
    ledger, dataset = state.ledger(who), account_of(state.store, dataset)
    refuse_unknown(ledger, who, dataset)
    whose = who.name if who.role == "analyst" else analyst
    try:
        total = ledger.budget(dataset, whose).total.epsilon
    except InvalidValue:
        raise RequestRefused("not_found", f"there is no grant of that name in {dataset!r}.") from None
    return BurnDownView(
        dataset=dataset,
        analyst=whose,
        total=total,
        points=[_point(moment, whose is not None) for moment in state.history.moments(dataset, whose or "")],
    )


def refuse_unknown(ledger: Ledger, who: Caller, dataset: str) -> None:
    """Refuse a dataset that does not exist, or in which an analyst has no grant."""
    if dataset not in ledger.datasets() or not _may_see(ledger, who, dataset):
        raise RequestRefused(
            "not_found", f"there is no dataset {dataset!r} that you may see; see the list of datasets."
        )


def _may_see(ledger: Ledger, who: Caller, dataset: str) -> bool:
    if who.role != "analyst":
        return True
    try:
        ledger.budget(dataset, who.name)
    except InvalidValue:
        return False
    return True


def verification_view(verification: Verification, who: Caller, ledger_ok: bool) -> VerificationView:
    """What was found, and whether the ledger by itself is intact, whatever a receipt says.

    Analysts do not see the problems themselves, which may name other people.
    """
    problems, notes = list(verification.problems), list(verification.notes)
    if who.role == "analyst":
        problems = [text if "receipt" in text else "the ledger does not verify; tell its curator" for text in problems]
        notes = []
    return VerificationView(
        ok=verification.ok,
        ledger_ok=ledger_ok,
        entries=verification.entries,
        problems=problems,
        notes=notes,
        at=iso_time(time.time()),
    )


def read_receipt(text: str) -> Receipt:
    """The receipt in a text: a receipt, or what was downloaded with one in it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    inner = data.get("receipt") if isinstance(data, dict) else None
    if isinstance(inner, str):
        return Receipt.from_json(inner)
    return Receipt.from_json(json.dumps(inner) if isinstance(inner, dict) else text)


def exported(state: State) -> Iterator[str]:
    """All entries as JSON lines; the first page is read before anything is sent, so that a failure is an error."""
    entries = state.root.entries()
    first = list(islice(entries, 1_000))
    return (json.dumps(entry.to_dict(), sort_keys=True, allow_nan=False) + "\n" for entry in chain(first, entries))


def _point(moment: Moment, own: bool) -> PointView:
    entry, account = moment.entry, moment.holding.account
    spent = account.spent_upper
    return PointView(
        sequence=entry.sequence,
        when=when_of(entry),
        spent=spent if spent < float("inf") else None,
        total=account.budget.epsilon,
        kind=entry.kind,
        sentence=sentence_of(entry, own),
    )


def entry_view(entry: Entry, own: bool = False) -> EntryView:
    """An entry; `own` says that an analyst looks at their own, whose grant has a price of its own."""
    epsilon, delta = amount_of(entry, own)
    return EntryView(
        sequence=entry.sequence,
        kind=entry.kind,
        dataset=entry.dataset,
        analyst=entry.analyst or None,
        actor=entry.actor,
        when=when_of(entry),
        request_id=request_of(entry) or None,
        epsilon=None if epsilon is None or not math.isfinite(epsilon) else epsilon,
        delta=delta,
        state=STATES.get(entry.kind),
        sentence=sentence_of(entry, own),
    )


def when_of(entry: Entry) -> str:
    """When an entry was written, as text with its zone."""
    return entry.when.isoformat()


def request_of(entry: Entry) -> str:
    """The request id; a session's rounds end with letters that keep others from taking them, and these stay out."""
    of_round = RoundId.read(entry.request_id)
    return entry.request_id if of_round is None else of_round.public


def amount_of(entry: Entry, own: bool = False) -> tuple[float | None, float | None]:
    """Epsilon and delta that an entry charges, refuses or sets; nothing for those that change no budget."""
    body = entry.body
    if "epsilon" in body:
        return float(body["epsilon"]), float(body["delta"])
    nano = body.get("own_nano", body.get("nano")) if own else body.get("nano")
    if not isinstance(nano, int):
        return None, None
    return (math.inf if nano < 0 else nano / 1e9), int(body.get("units", 0)) / 1e40


def sentence_of(entry: Entry, own: bool = False) -> str:
    """What happened, in one sentence."""
    who = entry.analyst or entry.actor
    epsilon, delta = amount_of(entry, own)
    price = _amount(epsilon, delta, entry.kind in ("charge", "released", "forfeited"))
    stays = "stay" if " and " in price else "stays"
    request = request_of(entry)
    body = entry.body
    if entry.kind == "created":
        return "The ledger was created."
    if entry.kind == "dataset":
        return f"{entry.actor} opened the account {entry.dataset}: {price} in all."
    if entry.kind == "budget":
        did = "raised" if body.get("raised") else "set"
        return f"{entry.actor} {did} the budget of {entry.dataset} to {price} in all."
    if entry.kind == "source":
        tables = " and ".join(body.get("titles", ())) or "another table"
        return f"The account {entry.dataset} now protects the people in {tables} too."
    if entry.kind == "correction":
        return f"{entry.actor} corrected the declaration of {body['source'] or entry.dataset}: {correction_text(body)}."
    if entry.kind == DEPOSIT:
        return f"{entry.actor} deposited {DepositRecord.of(entry).words}."
    if entry.kind == "people":
        return f"A sketch of the people in a table of {entry.dataset} was kept, for its curators."
    if entry.kind in REQUESTS:
        return _request_sentence(entry)
    if entry.kind == "grant":
        return f"{entry.actor} lets {entry.analyst} spend at most {price} of {entry.dataset}."
    if entry.kind == "reserve":
        name = body.get("name", "reserve")
        if not epsilon and not delta:
            return f"{entry.actor} freed what was set aside in {entry.dataset} as {name}."
        return f"{entry.actor} set {price} of {entry.dataset} aside as {name}."
    if entry.kind == "refused":
        return f"{who} asked for {price} ({request}) and was refused: {_left(body)} was left in {_where(entry)}."
    of_round = RoundId.read(entry.request_id)
    if of_round is not None and not epsilon:
        if of_round.word == "notes":
            what = "kept" if entry.kind == "released" else "begins to keep"
            return f"{who}'s session {of_round.session} {what} free answers, so that they can be asked for again."
        what = {"charge": "began", "released": "ended with an answer"}.get(entry.kind, "was given up")
        return f"A round of {who}'s session {of_round.session} {what}; the session has paid for it."
    if entry.kind == "charge":
        right = entry.right or {}
        by_right = f" (request {right['request']}, approved)" if "request" in right else ""
        request += by_right or (" (within a policy)" if "policy" in right else "")
        paid = f", in the budgets of {' and '.join([entry.dataset, *entry.others])} each" if entry.others else ""
        return f"{who} was charged {price} for {request}{paid}, before anything was computed."
    if entry.kind == "released":
        return f"The answer of {request} was recorded; {price} {stays} spent."
    if entry.kind == "forfeited":
        return f"{request} will never have an answer ({body.get('reason', 'no reason')}); {price} {stays} spent."
    return f"{entry.actor} wrote an entry of kind {entry.kind}."


REQUESTS = ("request", "approved", "changed", "declined", "withdrawn", "policy")


def _request_sentence(entry: Entry) -> str:
    """What was asked, allowed or refused, in one sentence."""
    body, actor = entry.body, entry.actor
    if entry.kind == "policy":
        policy = body["policy"]
        if policy is None or policy["until"] <= entry.time_ns:
            return f"{actor} ended the policy of {entry.analyst} in {entry.dataset}."
        amount = _amount(policy["nano"] / 1e9, policy["units"] / 1e40, spent=False)
        return f"{actor} lets {entry.analyst} spend {amount} of {entry.dataset} per {policy['per']} without asking."
    request, price = f"request {body['request']}", _amount(*amount_of(entry), spent=True)
    if entry.kind == "request":
        return f"{entry.analyst} asked to spend {price} of {entry.dataset} ({request}: {body['title']})."
    if entry.kind == "changed":
        return f"{actor} changed {request} of {entry.analyst} to {price}, and approved that ({body['reason']})."
    why = f" ({body['reason']})" if "reason" in body else ""
    return f"{actor} {'withdrew' if entry.kind == 'withdrawn' else entry.kind} {request} of {entry.analyst}{why}."


def _amount(epsilon: float | None, delta: float | None, spent: bool) -> str:
    if epsilon is None:
        return "nothing"
    if math.isinf(epsilon):
        return "an unbounded epsilon"
    figure = rounded_up_text(epsilon, 4) if spent else rounded_text(epsilon, 6)
    return f"epsilon {figure}" + (f" and delta {rounded_text(delta, 3)}" if delta else "")


def _where(entry: Entry) -> str:
    """What had too little left: somebody's grant, or a budget."""
    budget = str(entry.body.get("budget"))
    dataset, slash, who = budget.rpartition("/")
    grant = entry.analyst and slash and who == entry.analyst
    return f"the grant of {entry.analyst} in {dataset}" if grant else f"the budget of {budget}"


def _left(body: dict[str, Any]) -> str:
    left = body.get("remaining") or {}
    return f"epsilon {rounded_down_text(float(left.get('epsilon', 0.0)), 4)}"

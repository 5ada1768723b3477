"""Entries of the ledger in plain words, as far as whoever asks may see them."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from farthing.ledger import Entry
from farthing.numerics.digits import shown, shown_down, shown_up

STATES = {"charge": "reserved", "released": "released", "forfeited": "forfeited", "refused": "refused"}


class _View(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EntryView(_View):
    """One line of the ledger."""

    sequence: int
    kind: str
    dataset: str
    analyst: str | None
    actor: str
    when: str = Field(description="the writer's clock, UTC, ISO 8601")
    request_id: str | None
    epsilon: float | None = Field(description="what was charged, refused or set; null: nothing, or unbounded")
    delta: float | None
    state: str | None
    sentence: str


class EntriesView(_View):
    """A page of entries; `next` is what to send as `since` for the next page, null at the end."""

    entries: list[EntryView]
    next: int | None


class VerifiedView(_View):
    """Whether the ledger was found to be what was written, and when; null if that is not known here."""

    ok: bool
    at: str


class LedgerView(_View):
    """The ledger as a whole."""

    id: str
    entries: int
    verified: VerifiedView
    datasets: list[str]


class VerificationView(_View):
    """What reading the whole ledger again came to."""

    ok: bool
    ledger_ok: bool = Field(description="whether the ledger is intact by itself, whatever the receipt says")
    entries: int
    problems: list[str]
    notes: list[str]
    at: str


class PointView(_View):
    """How much was spent after an entry; null where that is unbounded."""

    sequence: int
    when: str
    spent: float | None
    total: float
    kind: str
    sentence: str


class BurnDownView(_View):
    """How a budget or a grant came to be what it is."""

    dataset: str
    analyst: str | None
    total: float
    points: list[PointView]


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
    """When it was written."""
    return entry.when.isoformat()


def request_of(entry: Entry) -> str:
    """The request id; a session's rounds end with letters that keep others from taking them, and these stay out."""
    session, word, rest = entry.request_id.rpartition(" round ")
    number = rest.partition(" ")[0]
    return f"{session} round {number}" if word and number.isdecimal() else entry.request_id


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
        return "The ledger was made."
    if entry.kind == "dataset":
        return f"{entry.actor} opened the budget of {entry.dataset}: {price} in all."
    if entry.kind == "budget":
        did = "raised" if body.get("raised") else "set"
        return f"{entry.actor} {did} the budget of {entry.dataset} to {price} in all."
    if entry.kind == "source":
        return f"The budget of {entry.dataset} now covers the people in another table too."
    if entry.kind == "grant":
        return f"{entry.actor} lets {entry.analyst} spend at most {price} of {entry.dataset}."
    if entry.kind == "reserve":
        name = body.get("name", "reserve")
        if not epsilon and not delta:
            return f"{entry.actor} freed what was set aside in {entry.dataset} as {name}."
        return f"{entry.actor} set {price} of {entry.dataset} aside as {name}."
    if entry.kind == "refused":
        return (
            f"{who} asked for {price} ({request}) and was refused: {_left(body)} was left in {_where(entry)}."
        )
    if " round " in request and not epsilon:
        what = {"charge": "began", "released": "ended with an answer"}.get(entry.kind, "was given up")
        return f"A round of {who}'s session {request.rpartition(' round ')[0]} {what}; the session has paid for it."
    if entry.kind == "charge":
        paid = (
            f", in the budgets of {' and '.join([entry.dataset, *entry.others])} each" if entry.others else ""
        )
        return f"{who} was charged {price} for {request}{paid}, before anything was computed."
    if entry.kind == "released":
        return f"The answer of {request} was recorded; {price} {stays} spent."
    if entry.kind == "forfeited":
        return (
            f"{request} will never have an answer ({body.get('reason', 'no reason')}); {price} {stays} spent."
        )
    return f"{entry.actor} wrote an entry of kind {entry.kind}."


def _amount(epsilon: float | None, delta: float | None, spent: bool) -> str:
    if epsilon is None:
        return "nothing"
    if math.isinf(epsilon):
        return "an unbounded epsilon"
    figure = shown_up(epsilon, 4) if spent else shown(epsilon, 6)
    return f"epsilon {figure}" + (f" and delta {shown(delta, 3)}" if delta else "")


def _where(entry: Entry) -> str:
    """What had too little left: somebody's grant, or a budget."""
    budget = str(entry.body.get("budget"))
    dataset, slash, who = budget.rpartition("/")
    grant = entry.analyst and slash and who == entry.analyst
    return f"the grant of {entry.analyst} in {dataset}" if grant else f"the budget of {budget}"


def _left(body: dict[str, Any]) -> str:
    left = body.get("remaining") or {}
    return f"epsilon {shown_down(float(left.get('epsilon', 0.0)), 4)}"

"""Requests, policies and what an analyst did so far, as they are read from the entries of a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from farthing.accounting.event_price import delta_down, delta_up, epsilon_down
from farthing.ledger.entries import Entry, epsilon_of
from farthing.ledger.rights import APPROVED, OPEN, StandingPolicy


class Step(NamedTuple):
    """One step of a request: which entry, what was done, by whom, when, and why."""

    sequence: int
    kind: str
    actor: str
    when: datetime
    reason: str = ""


@dataclass(frozen=True)
class PlanRequest:
    """A plan that somebody asks to be allowed to release, and what became of it. Made by `ledger.requests`.

    Args:
        id: Its number: that of the entry with which it was submitted.
        dataset: Whose budget would pay.
        analyst: Who asks.
        title: What it is called.
        purpose: What the answers are for.
        state: "open", "approved", "declined", "withdrawn", "used" or "expired".
        version: 1 as it was submitted, more if a curator changed it.
        epsilon: What it may cost.
        delta: The delta of that.
        document: The plan as data: statistics with their predicted errors, and what it was made of.
        name: What its plan is called in the ledger.
        others: Further datasets whose budgets would pay.
        expires: Until when an approval holds.
        request_id: The request id of its release, once it was charged.
        steps: Every entry about it, oldest first.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db", actor="ada") as ledger:
    ...     _ = ledger.register("survey", 1.0)
    ...     bob = ledger.acting("bob", "analyst")
    ...     asked = bob.requests.submit("survey", 0.25, digest="d", purpose="the yearbook")
    ...     ledger.requests.approve(asked.id).state, bob.charge("survey", 0.25, digest="d", request_id="r").epsilon
    ('approved', 0.25)
    """

    id: int
    dataset: str
    analyst: str
    title: str
    purpose: str
    state: str
    version: int
    epsilon: float
    delta: float
    document: Mapping[str, Any] = field(repr=False)
    name: str = ""
    others: tuple[str, ...] = ()
    expires: datetime | None = None
    request_id: str = ""
    steps: tuple[Step, ...] = field(default=(), repr=False)

    @property
    def last_day(self) -> str:
        """The last day, in UTC, on which an approval can be used; empty where it is not approved."""
        return "" if self.expires is None else _last_day(self.expires)

    @property
    def reason(self) -> str:
        """Why it was changed or declined, in the words of whoever did it."""
        return next((step.reason for step in reversed(self.steps) if step.reason), "")

    def to_dict(self) -> dict[str, Any]:
        """The request as JSON-ready data.

        Returns:
            Its fields by name; times as text.
        """
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("steps", "expires")}
        steps = [{**step._asdict(), "when": step.when.isoformat()} for step in self.steps]
        expires = None if self.expires is None else self.expires.isoformat()
        return {**data, "others": list(self.others), "reason": self.reason, "expires": expires, "steps": steps}


@dataclass(frozen=True)
class Policy:
    """What an analyst may spend without asking: so much in every period. Made by `ledger.requests.grant_policy`.

    Args:
        dataset: Whose budget pays; that has the last word.
        analyst: Who may spend.
        epsilon: How much of epsilon in every period, as the sum of what is charged.
        delta: How much of delta.
        per: "week", "month", "quarter" or "year" of the calendar, in UTC.
        expires: When it ends.
        statistics: The kinds of statistics that are allowed; None for all.
        columns: The columns that may be read; None for all.
        cell: How many people a cell must hold to be shown, by the low end of a released count; 0 for no rule.
        left: What is left of epsilon in this period.

    >>> from datetime import datetime
    >>> Policy("survey", "bob", 0.1, 0.0, "quarter", datetime(2027, 1, 1), ("count",), None, 0, 0.1).per
    'quarter'
    """

    dataset: str
    analyst: str
    epsilon: float
    delta: float
    per: str
    expires: datetime
    statistics: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    cell: int
    left: float

    @property
    def last_day(self) -> str:
        """The last day, in UTC, on which it holds."""
        return _last_day(self.expires)

    def to_dict(self) -> dict[str, Any]:
        """The policy as JSON-ready data.

        Returns:
            Its fields by name.
        """
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("statistics", "columns"):
            data[name] = None if data[name] is None else list(data[name])
        return {**data, "expires": self.expires.isoformat()}


def policy_of(dataset: str, analyst: str, standing: StandingPolicy, now: int) -> Policy:
    """The policy that the account of an analyst holds."""
    return Policy(
        dataset,
        analyst,
        epsilon_down(standing.nano),
        delta_down(standing.units),
        standing.per,
        _moment(standing.until),
        standing.statistics,
        standing.columns,
        standing.cell,
        epsilon_down(standing.left(now)[0]),
    )


@dataclass(frozen=True)
class AnalystHistory:
    """What somebody has asked for and spent so far: what a curator looks at before deciding.

    Args:
        analyst: Who.
        requests: How many requests there are in each state.
        charges: How many charges there are by what covered them: "grant", "request" or "policy".
        epsilon: The plain sum of their epsilons, by the same; None where one is infinite.
        refused: How many charges were refused.

    >>> AnalystHistory("bob", {"used": 1}, {"request": 1}, {"request": 0.25}, 0).sentence
    'bob: 1 request (1 used); 1 charge, epsilon 0.25 summed plainly; no charge refused.'
    """

    analyst: str
    requests: Mapping[str, int]
    charges: Mapping[str, int]
    epsilon: Mapping[str, float | None]
    refused: int

    @property
    def sentence(self) -> str:
        """In words: requests by their state, what was charged, how often a charge was refused."""
        states = ", ".join(f"{count} {state}" for state, count in self.requests.items())
        asked = f"{_counted(sum(self.requests.values()), 'request')}{f' ({states})' if states else ''}"
        known = [each for each in self.epsilon.values() if each is not None]
        amount = (
            f"epsilon {sum(known):.4g} summed plainly" if len(known) == len(self.epsilon) else "one of them infinite"
        )
        spent = _counted(sum(self.charges.values()), "charge") + (f", {amount}" if self.charges else "")
        return f"{self.analyst}: {asked}; {spent}; {_counted(self.refused, 'charge')} refused."

    def to_dict(self) -> dict[str, Any]:
        """The history as JSON-ready data.

        Returns:
            Its fields by name, and the sentence.
        """
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**{name: dict(value) if isinstance(value, Mapping) else value for name, value in data.items()},
                "sentence": self.sentence}  # fmt: skip


def follow(requests: dict[int, PlanRequest], entry: Entry) -> None:
    """Take the next entry about requests."""
    body = entry.body
    if entry.kind == "charge":
        number = (entry.right or {}).get("request")
        if number in requests:
            step = Step(entry.sequence, "used", entry.actor, entry.when)
            before = requests[number]
            requests[number] = replace(before, state="used", request_id=entry.request_id, steps=(*before.steps, step))
        return
    number = entry.sequence if entry.kind == "request" else int(body["request"])
    step = Step(entry.sequence, entry.kind, entry.actor, entry.when, body.get("reason", ""))
    plan: dict[str, Any] = {}
    if "document" in body:
        plan = {name: body[name] for name in ("document", "name", "version")}
        plan |= {"epsilon": epsilon_of(body["nano"]), "delta": delta_up(body["units"]), "others": tuple(body["others"])}
    if entry.kind == "request":
        words = {name: body[name] for name in ("title", "purpose")}
        requests[number] = PlanRequest(number, entry.dataset, entry.analyst, state=OPEN, steps=(step,), **words, **plan)
        return
    before = requests[number]
    state = APPROVED if entry.kind in ("approved", "changed") else entry.kind
    expires = _moment(body["until"]) if state == APPROVED else None
    requests[number] = replace(before, state=state, steps=(*before.steps, step), expires=expires, **plan)


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC)


def _last_day(expires: datetime) -> str:
    return f"{expires - timedelta(seconds=1):%Y-%m-%d}"


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count <= 1 else 's'}"

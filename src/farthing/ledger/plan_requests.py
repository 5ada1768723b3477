"""Requests of analysts and what curators make of them: submitted, approved, changed, declined, withdrawn, used.

Every step is an entry of the ledger. What it allows stands in the analyst's account (`farthing.ledger.rights`), and is
checked and changed under the lock under which charges are made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Protocol, TypeVar

from farthing.accounting.event_price import budget_in_nano, budget_in_units
from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger.account import Account
from farthing.ledger.account_state import Holding
from farthing.ledger.charge_quotes import Request, quoted
from farthing.ledger.entries import (
    Entry,
    checked_budget,
    checked_choice,
    checked_event,
    checked_name,
    checked_note,
    clock,
    epsilon_of,
)
from farthing.ledger.ledger_change import Question, Reader, Transaction, entry_of, known, registered
from farthing.ledger.ledger_store import Store
from farthing.ledger.ledger_tables import COLUMNS, ENTRIES
from farthing.ledger.request_records import AnalystHistory, PlanRequest, Policy, follow, policy_of
from farthing.ledger.rights import APPROVED, OPEN, PERIODS, Rights, StandingPolicy, Wish, checked_until
from farthing.ledger.tamper_evidence import Chain, canonical
from farthing.privacy.events import Event, checked_count, checked_delta

STEPS = ("request", "approved", "changed", "declined", "withdrawn")
STATES = ("open", "approved", "declined", "withdrawn", "used", "expired")
DAYS = 90  # that an approval holds, where nobody says
_POLICY_DAYS = 365
_LONGEST_TEXT = 1_000  # of a purpose or a reason
_LONGEST_DOCUMENT = 500_000  # characters


_Done = TypeVar("_Done")


class Doors(Protocol):
    """What requests need of an open ledger."""

    @property
    def actor(self) -> str:
        """The name that entries carry."""

    @property
    def role(self) -> str:
        """That of the actor, which decides what is allowed."""

    def analysts(self, dataset: str) -> list[str]:
        """The names of all who have an account in it."""

    def datasets(self) -> list[str]:
        """The names of all accounts."""

    def source_signatures(self, sources: Iterable[str]) -> list[str]:
        """What the ledger stores of the names of tables."""

    def _only(self, action: str, *roles: str) -> None: ...

    def _spender(self, analyst: str | None) -> str: ...

    def _append(self, question: Question, act: Callable[[Transaction], _Done]) -> _Done: ...

    def _reader(self, question: Question) -> Reader: ...

    _store: Store
    _chain: Chain


class PlanRequests:
    """The requests and policies of a ledger; `ledger.requests`.

    Args:
        ledger: The open ledger, whose actor and role decide what may be done.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(f"{folder.name}/study.db", actor="ada")
    >>> _ = ledger.register("survey", 1.0)
    >>> bob = ledger.acting("bob", "analyst")
    >>> asked = bob.requests.submit("survey", 0.25, digest="d", purpose="the yearbook", title="counts by region")
    >>> bob.charge("survey", 0.25, digest="d", request_id="too early")
    Traceback (most recent call last):
        ...
    farthing.errors.BudgetExceeded: charge of epsilon=0.25 exceeds ... (request 3 waits for a curator).
    >>> ledger.requests.decline(asked.id, "say which regions").state, bob.requests.one(asked.id).reason
    ('declined', 'say which regions')
    >>> _ = ledger.requests.grant_policy("survey", "bob", 0.1, per="quarter", statistics=["count"])
    >>> [(policy.per, policy.left) for policy in bob.requests.policies()]
    [('quarter', 0.1)]
    >>> ledger.verify().ok, ledger.requests.history("bob").requests
    (True, {'declined': 1})
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, ledger: Doors) -> None:
        self._ledger = ledger

    def submit(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        digest: str,
        purpose: str,
        title: str = "",
        document: Mapping[str, Any] | None = None,
        name: str = "",
        delta: float | None = None,
        others: Iterable[str] = (),
        analyst: str | None = None,
        source: str = "",
    ) -> PlanRequest:
        """Ask that one charge be allowed; nothing is spent. `Plan.submit` fills this in.

        Args:
            dataset: Whose budget would pay.
            event: What would be charged, as for `Ledger.charge`.
            digest: The fingerprint that the charge will bring.
            purpose: What the answers are for; the curator reads it.
            title: A few words to call it by.
            document: The plan as JSON-ready data: what the curator is shown.
            name: What its plan is called in the ledger.
            delta: The delta at which it would be charged.
            others: Further datasets that would pay.
            analyst: Who asks, if a curator submits it for them.
            source: The text that names the table, as the charge will bring it: another table is another charge.

        Returns:
            The request; the one that is there already if the same charge was asked for and is open or approved.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If the role is "auditor", or a curator asks for nobody.
        """
        self._ledger._only("submit a request", "curator", "analyst")
        who = self._ledger._spender(analyst)
        if not who:
            raise NotAllowed(self._ledger.role, "submit a request", "a curator needs none: release the plan")
        charge = _charge(dataset, who, event, digest, delta, others, self._signed(source))
        words = {
            "title": checked_note(title, "title"),
            "purpose": _checked_text(purpose, "purpose"),
            **_described(charge, document, name),
        }
        number = self._ledger._append(_question(charge), lambda tx: _submit(tx, charge, words))
        return self.one(number)

    def approve(self, request: int, *, expires: date | str | None = None) -> PlanRequest:
        """Allow exactly the charge that was asked for, once.

        Args:
            request: The number of the request.
            expires: The last day on which it may be charged; 90 days from now by default.

        Returns:
            The request as it is now.

        Raises:
            InvalidValue: If it is not open, or is the curator's own.
            NotAllowed: If the role is not "curator".
        """
        return self._decide(request, "approved", {}, expires=expires)

    def change(
        self,
        request: int,
        event: Event | float | tuple[float, float],
        *,
        digest: str,
        reason: str,
        document: Mapping[str, Any] | None = None,
        name: str = "",
        delta: float | None = None,
        others: Iterable[str] = (),
        expires: date | str | None = None,
        source: str = "",
    ) -> PlanRequest:
        """Allow another charge than the one that was asked for: a new version, which the analyst sees and may release.

        Args:
            request: The number of the request.
            event: What may be charged.
            digest: The fingerprint that the charge will bring.
            reason: Why, for the analyst.
            document: The changed plan as JSON-ready data.
            name: What the changed plan is called in the ledger.
            delta: The delta at which it would be charged.
            others: Further datasets that would pay.
            expires: The last day on which it may be charged; 90 days from now by default.
            source: The text that names the table, as for `submit`.

        Returns:
            The request as it is now: approved, with a higher version.

        Raises:
            InvalidValue: If it was declined, withdrawn or used.
            NotAllowed: If the role is not "curator".
        """
        first = self._first(request)
        charge = _charge(first.dataset, first.analyst, event, digest, delta, others, self._signed(source))
        words = {"reason": _checked_text(reason, "reason"), **_described(charge, document, name)}
        return self._decide(request, "changed", words, charge=charge, expires=expires)

    def _signed(self, source: str) -> str:
        return self._ledger.source_signatures([source])[0] if source else ""

    def decline(self, request: int, reason: str) -> PlanRequest:
        """Say no, or take an approval back that was not used.

        Args:
            request: The number of the request.
            reason: Why, for the analyst.

        Returns:
            The request as it is now.

        Raises:
            InvalidValue: If it was declined, withdrawn or used.
            NotAllowed: If the role is not "curator".
        """
        return self._decide(request, "declined", {"reason": _checked_text(reason, "reason")})

    def withdraw(self, request: int) -> PlanRequest:
        """Take back a request of your own; what was approved can then no longer be charged.

        Args:
            request: The number of the request.

        Returns:
            The request as it is now.

        Raises:
            InvalidValue: If it was declined, withdrawn or used.
            NotAllowed: If it is not yours.
        """
        return self._decide(request, "withdrawn", {})

    def one(self, request: int) -> PlanRequest:
        """A request by its number.

        Args:
            request: The number.

        Returns:
            The request with all its steps.

        Raises:
            InvalidValue: If there is none that you may see.
        """
        first = self._first(request)
        return next(each for each in self._all(first.dataset, first.analyst) if each.id == first.sequence)

    def all(self, dataset: str | None = None, state: str | None = None) -> list[PlanRequest]:
        """All requests, oldest first; an analyst sees their own.

        Args:
            dataset: Only those about this dataset.
            state: Only those in this state.

        Returns:
            The requests.

        Raises:
            InvalidValue: If there is no such state.
        """
        if state is not None:
            checked_choice(state, "state", STATES)
        own = self._ledger.actor if self._ledger.role == "analyst" else ""
        return [each for each in self._all(dataset, own) if state in (None, each.state)]

    def approved(self, dataset: str, analyst: str, name: str) -> PlanRequest | None:
        """The approved request of a plan, by the name of the plan; it looks at the account first, which is quick."""
        own = self._ledger._reader(Question(checked_name(dataset, "dataset"), checked_name(analyst, "analyst"))).own()
        rights = Rights() if own is None else own.rights
        now = rights.moment(clock())
        for number, wish in rights.requests.items():
            if wish.state == APPROVED and wish.name == name and now < wish.until:
                return self.one(number)
        return None

    def grant_policy(
        self,
        dataset: str,
        analyst: str,
        epsilon: float,
        delta: float = 0.0,
        *,
        per: str = "quarter",
        expires: date | str | None = None,
        statistics: Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        cell: int = 0,
    ) -> Policy:
        """Let an analyst release plans of some kind without asking: so much in every period, until it expires.

        A second policy replaces the first, and what was used in this period counts against it. The dataset's own budget
        has the last word.

        Args:
            dataset: The name of the dataset.
            analyst: The name of the analyst.
            epsilon: The epsilon of one period, as the plain sum of what is charged; 0 ends the policy.
            delta: The delta of one period.
            per: "week", "month", "quarter" or "year" of the calendar, in UTC.
            expires: The last day; a year from now by default.
            statistics: The kinds of statistics that are allowed, such as "count"; all by default.
            columns: The columns that may be read, conditions and groups included; all by default.
            cell: How many people a cell must hold to be shown. Plans that this policy pays for must release a count of
                every cell; a cell is withheld if the low end of the 95% interval of that count is below this. Only
                released numbers decide it, never rows.

        Returns:
            The policy as it is now.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".
        """
        self._ledger._only("grant a policy", "curator")
        name, who = checked_name(dataset, "dataset"), checked_name(analyst, "analyst")
        amount = checked_budget(epsilon, delta)
        standing = StandingPolicy(
            budget_in_nano(amount[0]),
            budget_in_units(amount[1]),
            checked_choice(per, "per", PERIODS),
            checked_until(expires, clock(), _POLICY_DAYS),
            _names(statistics, "statistics"),
            _names(columns, "columns"),
            checked_count(cell, "cell"),
        )
        self._ledger._append(Question(name, who), lambda tx: _grant_policy(tx, name, who, standing))
        return policy_of(name, who, standing, clock()) if not standing.nano else self._policy(name, who)

    def policies(self, dataset: str | None = None) -> list[Policy]:
        """All policies that have not ended; an analyst sees their own.

        Args:
            dataset: Only those of this dataset.

        Returns:
            The policies, by dataset and analyst.
        """
        policies = []
        for name in self._ledger.datasets() if dataset is None else [checked_name(dataset, "dataset")]:
            own = [self._ledger.actor] if self._ledger.role == "analyst" else self._ledger.analysts(name)
            for who in own:
                holding = self._ledger._reader(Question(name, who)).own()
                if holding is not None and holding.rights.policy is not None:
                    now = holding.rights.moment(clock())
                    policy = policy_of(name, who, holding.rights.policy, now)
                    policies += [policy] if now < holding.rights.policy.until else []
        return policies

    def history(self, analyst: str, dataset: str | None = None) -> AnalystHistory:
        """What somebody has asked for and spent so far.

        Args:
            analyst: The name of the analyst.
            dataset: Only in this dataset.

        Returns:
            Their history.

        Raises:
            NotAllowed: If an analyst asks for somebody else's.
        """
        who = checked_name(analyst, "analyst")
        if self._ledger.role == "analyst" and who != self._ledger.actor:
            raise NotAllowed(self._ledger.role, "see the history of somebody else")
        charges: Counter[str] = Counter()
        sums: dict[str, float | None] = {}
        refused = 0
        for entry in self._selected("analyst = ? AND kind IN ('charge', 'refused')", (who,)):
            if dataset is not None and not entry.is_about(dataset):
                continue
            if entry.kind == "refused":
                refused += 1
                continue
            by = next((word for word in ("request", "policy") if word in (entry.right or {})), "grant")
            charges[by] += 1
            before, nano = sums.get(by, 0.0), entry.body["nano"]
            sums[by] = None if before is None or nano < 0 else before + epsilon_of(nano)
        states = Counter(each.state for each in self._all(dataset, who))
        return AnalystHistory(who, dict(states), dict(charges), sums, refused)

    def _policy(self, dataset: str, analyst: str) -> Policy:
        holding = self._ledger._reader(Question(dataset, analyst)).own()
        assert holding is not None
        assert holding.rights.policy is not None
        return policy_of(dataset, analyst, holding.rights.policy, holding.rights.moment(clock()))

    def _decide(
        self,
        request: int,
        kind: str,
        words: Mapping[str, Any],
        *,
        charge: Request | None = None,
        expires: date | str | None = None,
    ) -> PlanRequest:
        if kind == "withdrawn":
            self._ledger._only("withdraw a request", "analyst")
        else:
            self._ledger._only("decide about a request", "curator")
        first = self._first(request)
        if kind in ("approved", "changed") and first.analyst == self._ledger.actor:
            raise InvalidValue("request", request, "is your own", "another curator must approve it")
        question = Question(first.dataset, first.analyst, others=() if charge is None else charge.others)
        until = checked_until(expires, clock(), DAYS) if kind in ("approved", "changed") else 0
        self._ledger._append(question, lambda tx: _decide(tx, first, kind, dict(words), until, charge))
        return self.one(first.sequence)

    def _selected(self, condition: str, values: tuple[Any, ...]) -> Iterator[Entry]:
        """The entries that a condition of SQL selects, in order, each checked against its signature."""
        ledger = self._ledger
        ledger._reader(Question())  # the head must be genuine
        statement = f"SELECT {', '.join(COLUMNS)} FROM {ENTRIES} WHERE {condition} ORDER BY sequence"
        with ledger._store.reading() as link:
            selected = link.run(ledger._store.sql(statement), values).fetchall()
        return (entry_of(ledger._chain, row) for row in selected)

    def _first(self, request: int) -> Entry:
        """The entry with which a request was submitted, if the actor may see it."""
        number = checked_count(request, "request")
        entries = list(self._selected("sequence = ? AND kind = 'request'", (min(number, 2**62),)))
        hidden = self._ledger.role == "analyst" and any(entry.analyst != self._ledger.actor for entry in entries)
        if not entries or hidden:
            raise InvalidValue("request", request, "must be the number of a request that you may see", "list them")
        return entries[0]

    def _all(self, dataset: str | None, analyst: str) -> list[PlanRequest]:
        kinds = ", ".join(f"'{kind}'" for kind in STEPS)
        condition, values = f"(kind IN ({kinds}) OR (kind = 'charge' AND body LIKE ?))", ['%"right":{%']
        if dataset is not None:
            condition, values = f"{condition} AND dataset = ?", [*values, checked_name(dataset, "dataset")]
        if analyst:
            condition, values = f"{condition} AND analyst = ?", [*values, analyst]
        requests: dict[int, PlanRequest] = {}
        for entry in self._selected(condition, tuple(values)):
            follow(requests, entry)
        now = datetime.now(UTC)
        return [
            replace(each, state="expired")
            if each.state == APPROVED and each.expires is not None and each.expires <= now
            else each
            for each in requests.values()
        ]


def _submit(tx: Transaction, charge: Request, words: Mapping[str, Any]) -> int:
    """The number of the request: a new one, or the one that asks for the same."""
    own = tx.own()
    rights = Rights() if own is None else own.rights
    now = rights.moment(clock())
    wish = _wish(tx, charge, str(words["name"]))
    for number, other in rights.requests.items():
        if other.mark == wish.mark and (other.state == OPEN or now < other.until):
            return number
    number = tx.last[0] + 1
    after = (own or Holding(Account.of(0.0))).with_rights(rights.having(number, wish, now))
    _append(tx, "request", charge, number, {**words, **_terms(wish)}, after, new=own is None)
    return number


def _decide(
    tx: Transaction, first: Entry, kind: str, words: dict[str, Any], until: int, charge: Request | None
) -> Entry:
    """One step of a request that is open or approved; others have come to their end."""
    own = tx.own()
    wish = None if own is None else own.rights.requests.get(first.sequence)
    if own is None or wish is None or (kind == "approved" and wish.state != OPEN):
        done = "approved already" if wish is not None else "declined, withdrawn or used, or its approval has expired"
        raise InvalidValue("request", first.sequence, f"was {done}", "look at its steps: farthing requests show")
    now = own.rights.moment(clock())
    if kind in ("declined", "withdrawn"):
        rights = own.rights.without(first.sequence, now)
    else:
        if charge is not None:
            wish = replace(_wish(tx, charge, str(words["name"])), version=wish.version + 1)
            words |= _terms(wish)
        wish = replace(wish, state=APPROVED, until=until)
        words |= {"until": until, "version": wish.version}
        rights = own.rights.having(first.sequence, wish, now)
    about = charge or Request(first.dataset, first.analyst, checked_event(0.0), "", "planned", None, "", None)
    return _append(tx, kind, about, first.sequence, words, own.with_rights(rights))


def _grant_policy(tx: Transaction, dataset: str, analyst: str, standing: StandingPolicy) -> Entry:
    known(tx, dataset)
    own = tx.own()
    rights = Rights() if own is None else own.rights
    now = rights.moment(clock())
    policy = standing.in_place_of(rights.policy, now) if standing.nano else None
    if policy is None and rights.policy is not None:  # what was used stays used, should there be another policy
        policy = replace(rights.policy, until=now)
    after = (own or Holding(Account.of(0.0))).with_rights(replace(rights, policy=policy, seen=max(rights.seen, now)))
    body = {"policy": None if policy is None else policy.to_dict(), "state": json.loads(after.text())}
    keep = {(dataset, analyst): after}
    return tx.append("policy", dataset, canonical(body), analyst=analyst, keep=keep, new=own is None)


def _append(
    tx: Transaction,
    kind: str,
    charge: Request,
    number: int,
    words: Mapping[str, Any],
    after: Holding,
    new: bool = False,
) -> Entry:
    # The whole state is in the entry, so that a replay reads it.
    body = {**words, "request": number, "state": json.loads(after.text())}
    return tx.append(
        kind,
        charge.dataset,
        canonical(body),
        analyst=charge.analyst,
        request_id=f"request {number}",
        keep={(charge.dataset, charge.analyst): after},
        new=new,
    )


def _wish(tx: Transaction, charge: Request, name: str) -> Wish:
    """What a charge would cost now, in the plain sums of the dataset's budget."""
    whole = known(tx, charge.dataset)
    for other in charge.others:
        registered(tx.other(other)[0], other)
    price = quoted(charge, whole, None).price
    if price.epsilon_nano is None:
        raise InvalidValue(
            "event", charge.event, "must have a finite epsilon under this budget", "ask for a plan that has a delta"
        )
    return Wish(OPEN, charge.mark, price.epsilon_nano, price.delta_units, name=name)


def _terms(wish: Wish) -> dict[str, Any]:
    return {"mark": wish.mark, "nano": wish.nano, "units": wish.units, "version": wish.version}


def _charge(
    dataset: str,
    analyst: str,
    event: Event | float | tuple[float, float],
    digest: str,
    delta: float | None,
    others: Iterable[str],
    source: str,
) -> Request:
    """The charge that is asked for, every part checked as `Ledger.charge` checks it."""
    name = checked_name(dataset, "dataset")
    return Request(
        name,
        analyst,
        checked_event(event),
        "",
        "planned",
        None if delta is None else checked_delta(delta),
        checked_note(digest, "digest"),
        None,
        tuple(sorted({checked_name(other, "others") for other in others} - {name})),
        source=source,
    )


def _question(charge: Request) -> Question:
    return Question(charge.dataset, charge.analyst, others=charge.others)


def _described(charge: Request, document: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """What an entry says about a plan."""
    try:
        text = canonical(dict(document or {}))
    except (TypeError, ValueError, RecursionError):
        raise InvalidValue("document", "...", "must be JSON-ready data") from None
    if not len(text) <= _LONGEST_DOCUMENT:
        rule = f"must be at most {_LONGEST_DOCUMENT} characters as JSON"
        raise InvalidValue("document", len(text), rule, "ask for fewer statistics at a time")
    return {"document": json.loads(text), "name": checked_note(name, "name"), "others": list(charge.others)}


def _checked_text(value: object, name: str) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not (0 < len(text) <= _LONGEST_TEXT and text.isprintable()):
        raise InvalidValue(
            name, value, f"must be 1 to {_LONGEST_TEXT} characters that can be printed", "say it in words"
        )
    return text


def _names(values: Iterable[str] | None, what: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise InvalidValue(what, values, "must be a list of names", f"[{values!r}]")
    names = tuple(dict.fromkeys(checked_name(value, what) for value in values))
    if not 0 < len(names) <= 1_000:
        raise InvalidValue(what, names, "must name at least one", "leave it out to allow all")
    return names

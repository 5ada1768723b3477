"""Charge, release, forfeit: each one transaction, durable before anything is returned."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

from farthing.errors import BudgetExceeded, InvalidValue, LedgerTampered, NotAllowed
from farthing.ledger.amounts import delta_up, epsilon_up
from farthing.ledger.chain import canonical
from farthing.ledger.entries import FORFEITED, RELEASED, RESERVED, Charge, Entry
from farthing.ledger.holdings import Holding, checked_reserve
from farthing.ledger.policy import known, registered
from farthing.ledger.prices import Price
from farthing.ledger.quotes import Quote, Request, quoted, written
from farthing.ledger.receipts import epsilon_of
from farthing.ledger.transaction import Reader, Transaction, Whose
from farthing.ledger.values import event_of
from farthing.privacy.events import ApproxDP


@dataclass(frozen=True, slots=True)
class Charged:
    """The entry of a charge; an earlier one if the request id was charged before, then with how far it came."""

    entry: Entry
    price: Price | None = None
    state: str = RESERVED


def charge(tx: Transaction, request: Request, quote: Quote | None) -> Charged | BudgetExceeded:
    """Charge a request, or find the charge it had; a refusal is returned, so that its entry is kept.

    Every account pays or none does: they are changed by one entry.
    """
    earlier = tx.charge()
    if earlier is not None:
        return _repeated(tx, request, earlier)
    whole = known(tx, request.dataset)
    reserve = checked_reserve(whole, request.reserve)
    own = tx.own()
    others = {name: _accounts(tx, name) for name in request.others}
    if quote is None or not quote.holds(whole, own, others):
        quote = quoted(request, whole, own, others)
    keep: dict[Whose, Holding] = {}
    for name, found, part, spare in [
        (request.dataset, (whole, own), quote, reserve),
        *((name, others[name], quote.others[name], "") for name in request.others),
    ]:
        refusal = _charged(tx, request, name, found, part, spare, keep)
        if refusal is not None:
            return refusal
    entry = tx.append(
        "charge",
        request.dataset,
        quote.body,
        analyst=request.analyst,
        request_id=request.request_id,
        keep=keep,
    )
    return Charged(entry, quote.price)


def _accounts(tx: Transaction, dataset: str) -> tuple[Holding, Holding | None]:
    """The accounts of another dataset that pays."""
    whole, own = tx.other(dataset)
    return registered(whole, dataset), own


def _charged(
    tx: Transaction,
    request: Request,
    dataset: str,
    found: tuple[Holding, Holding | None],
    quote: Quote,
    reserve: str,
    keep: dict[Whose, Holding],
) -> BudgetExceeded | None:
    """Put the accounts of one dataset after the charge into `keep`, or refuse it."""
    whole, own = found
    after = whole.admitted(quote.price, reserve)
    if after is None:
        return _refused(tx, request, whole, quote.price, dataset, reserve)
    keep[dataset, ""] = after
    if request.analyst:
        own_after = own.admitted(quote.own_price) if own is not None and quote.own_price is not None else None
        if own_after is None:
            return _refused(tx, request, own, quote.own_price or quote.price, dataset, "", grant=True)
        keep[dataset, request.analyst] = own_after
    return None


def settle(
    tx: Transaction, kind: str, charge: Charge, words: dict[str, Any], answer: str | None = None
) -> Entry:
    """Give a waiting charge its outcome; the outcome it already has, if it has one."""
    made = tx.charge()
    mine = charge.sequence, charge.mac, charge.dataset, charge.analyst
    if made is None or (made.sequence, made.mac, made.dataset, made.analyst) != mine:
        raise InvalidValue("charge", charge.request_id, "must be a charge that this ledger made")
    check_owner(made, tx.actor, tx.role)
    earlier = tx.outcome()
    if earlier is not None:
        return earlier
    terms = made.body
    body = {"charge": made.sequence, "units": terms["units"], **words}
    keep: dict[Whose, Holding] = {}
    body |= _settled(made, made.dataset, (known(tx, made.dataset), tx.own()), terms, keep)
    others = {
        name: _settled(made, name, _accounts(tx, name), part, keep)
        for name, part in terms.get("others", {}).items()
    }
    if others:
        body["others"] = others
    return tx.append(
        kind,
        made.dataset,
        canonical(body),
        analyst=made.analyst,
        request_id=made.request_id,
        keep=keep,
        answer=answer,
    )


def _settled(
    made: Entry,
    dataset: str,
    found: tuple[Holding, Holding | None],
    terms: Mapping[str, Any],
    keep: dict[Whose, Holding],
) -> dict[str, Any]:
    """Put the accounts of one dataset after an outcome into `keep`; what the entry says about them."""
    whole, own = found
    body = {"nano": terms["nano"]}
    keep[dataset, ""] = whole.settled(body["nano"])
    if made.analyst:
        if own is None:
            raise LedgerTampered(f"the account of {dataset!r} for {made.analyst!r} is gone")
        body["own_nano"] = terms["own_nano"]
        keep[dataset, made.analyst] = own.settled(body["own_nano"])
    return body


def charge_made(ledger: str, request: Request, charged: Charged) -> Charge:
    """The charge that a request has now."""
    entry, price = charged.entry, charged.price
    if price is None:
        return charge_of(ledger, entry, charged.state)
    return Charge(
        ledger, entry.dataset, entry.analyst, entry.request_id, entry.sequence, request.event,
        *_point(written(price), price.delta_units), charged.state, False, entry.mac, request.others,
    )  # fmt: skip


def charge_of(ledger: str, entry: Entry, state: str) -> Charge:
    """The charge that an entry of an earlier time records."""
    body = entry.body
    return Charge(
        ledger, entry.dataset, entry.analyst, entry.request_id, entry.sequence, event_of(body["event"]),
        *_point(body["nano"], body["units"]), state, True, entry.mac, entry.others,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _point(nano: int, units: int) -> tuple[float, float]:
    return epsilon_of(nano), delta_up(units)


def state_after(outcome: Entry | None) -> str:
    """The state of a charge with this outcome."""
    if outcome is None:
        return RESERVED
    return RELEASED if outcome.kind == "released" else FORFEITED


def check_owner(entry: Entry, actor: str, role: str) -> None:
    """An analyst may only touch and see requests that were charged to the analyst's own grant."""
    if role == "analyst" and entry.analyst != actor:
        raise NotAllowed(role, "use a request of somebody else", "use a request id of your own")


def _repeated(tx: Reader, request: Request, earlier: Entry) -> Charged:
    body = earlier.body
    same = (
        earlier.dataset == request.dataset
        and earlier.analyst == request.analyst
        and body["digest"] == request.digest
        and event_of(body["event"]) == request.event
    )
    if not same:
        raise InvalidValue(
            "request_id",
            request.request_id,
            "was charged before for something else",
            "use a new request id for a new request",
        )
    return Charged(earlier, state=state_after(tx.outcome()))


def _refused(
    tx: Transaction,
    request: Request,
    holding: Holding | None,
    price: Price,
    dataset: str,
    reserve: str,
    *,
    grant: bool = False,
) -> BudgetExceeded:
    """Record that a charge was refused, by a dataset's budget or by a grant in it; no account changes."""
    who = request.analyst if grant else ""
    budget_id = f"{dataset}/{who}" if who else dataset
    if holding is None:
        remaining = ApproxDP(0.0)
    else:
        remaining = holding.account.remaining_beside(holding.withheld(but=reserve))
    tx.append(
        "refused",
        request.dataset,
        canonical({
            "event": request.event.to_dict(), "world": request.world, "digest": request.digest,
            "nano": written(price), "units": price.delta_units, "budget": budget_id,
            "remaining": {"epsilon": remaining.epsilon, "delta": remaining.delta},
            **({"others": list(request.others)} if request.others else {}),
        }),
        analyst=request.analyst,
        request_id=request.request_id,
    )  # fmt: skip
    return _explained(price, remaining, holding, reserve, dataset, who)


def _explained(
    price: Price,
    remaining: ApproxDP,
    holding: Holding | None,
    reserve: str,
    dataset: str,
    analyst: str,
) -> BudgetExceeded:
    """The refusal in words; `analyst` where it is their grant that has too little, and not the budget."""
    epsilon = None if price.epsilon_nano is None else epsilon_up(price.epsilon_nano)
    delta = delta_up(price.delta_units)
    asked = "an unbounded epsilon" if epsilon is None else f"epsilon={_shown(epsilon, ROUND_CEILING)}"
    if delta:
        asked += f", delta={_shown(delta, ROUND_CEILING)}"
    left = f"epsilon={_shown(remaining.epsilon, ROUND_FLOOR)}"
    if remaining.delta:
        left += f", delta={_shown(remaining.delta, ROUND_FLOOR)}"
    more = f"ask its curator for more: {command_for_more(dataset, analyst)}"
    if holding is None:
        way_out = f"there is no grant; ask a curator for one: {command_for_more(dataset, analyst)}"
    elif remaining.epsilon > 0:
        way_out = f"a charge of at most {left} would fit; lower it or {more}"
    else:
        way_out = more
    where = f"the grant of {analyst!r} in {dataset!r}" if analyst else f"budget {dataset!r}"
    aside = holding.withheld(but=reserve) if holding is not None else (0, 0)
    if any(aside):
        left += f" (beside the {_shown(epsilon_up(aside[0]), ROUND_CEILING)} set aside)"
    return BudgetExceeded(
        f"charge of {asked} exceeds the {left} left in {where}; {way_out}.",
        requested=None if epsilon is None else ApproxDP(epsilon, delta),
        remaining=remaining,
        budget_id=f"{dataset}/{analyst}" if analyst else dataset,
    )


def command_for_more(dataset: str, analyst: str = "") -> str:
    """What a curator types to give more: of a dataset's budget, or of somebody's grant in it.

    >>> print(command_for_more("people.csv"), command_for_more("people.csv", "ada"), sep="; ")
    farthing ledger budget set LEDGER people.csv --epsilon E; farthing ledger grant LEDGER people.csv ada --epsilon E
    """
    if analyst:
        return f"farthing ledger grant LEDGER {shlex.quote(dataset)} {shlex.quote(analyst)} --epsilon E"
    return f"farthing ledger budget set LEDGER {shlex.quote(dataset)} --epsilon E"


def _shown(amount: float, rounding: str) -> str:
    """Three significant digits, rounded so that what is said is true."""
    return f"{float(Context(prec=3, rounding=rounding).create_decimal(repr(amount))):.3g}"

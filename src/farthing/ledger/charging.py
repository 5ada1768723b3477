"""Charge, release, forfeit: each one transaction, durable before anything is returned."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

from farthing.errors import BudgetExceeded, InvalidValue, LedgerTampered, NotAllowed
from farthing.ledger.amounts import delta_up, epsilon_up
from farthing.ledger.chain import canonical
from farthing.ledger.entries import FORFEITED, RELEASED, RESERVED, Charge, Entry
from farthing.ledger.holdings import Holding, checked_reserve
from farthing.ledger.policy import known
from farthing.ledger.prices import Price
from farthing.ledger.quotes import Quote, Request, quoted, written
from farthing.ledger.receipts import epsilon_of
from farthing.ledger.transaction import Reader, Transaction
from farthing.ledger.values import event_of
from farthing.privacy.events import ApproxDP


@dataclass(frozen=True, slots=True)
class Charged:
    """The entry of a charge; an earlier one if the request id was charged before, then with how far it came."""

    entry: Entry
    price: Price | None = None
    state: str = RESERVED


def charge(tx: Transaction, request: Request, quote: Quote | None) -> Charged | BudgetExceeded:
    """Charge a request, or find the charge it had; a refusal is returned, so that its entry is kept."""
    earlier = tx.charge()
    if earlier is not None:
        return _repeated(tx, request, earlier)
    whole = known(tx, request.dataset)
    reserve = checked_reserve(whole, request.reserve)
    own = tx.own()
    if quote is None or not quote.holds(whole, own):
        quote = quoted(request, whole, own)
    after = whole.admitted(quote.price, reserve)
    if after is None:
        return _refused(tx, request, whole, quote.price, request.dataset, reserve)
    keep = {"": after}
    if request.analyst:
        own_after = own.admitted(quote.own_price) if own is not None and quote.own_price is not None else None
        if own_after is None:
            budget = f"{request.dataset}/{request.analyst}"
            return _refused(tx, request, own, quote.own_price or quote.price, budget, "")
        keep[request.analyst] = own_after
    entry = tx.append(
        "charge",
        request.dataset,
        quote.body,
        analyst=request.analyst,
        request_id=request.request_id,
        keep=keep,
    )
    return Charged(entry, quote.price)


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
    body = {"charge": made.sequence, "nano": terms["nano"], "units": terms["units"], **words}
    keep = {"": known(tx, made.dataset).settled(body["nano"])}
    if made.analyst:
        own = tx.own()
        if own is None:
            raise LedgerTampered(f"the account of {made.dataset!r} for {made.analyst!r} is gone")
        body["own_nano"] = terms["own_nano"]
        keep[made.analyst] = own.settled(body["own_nano"])
    return tx.append(
        kind,
        made.dataset,
        canonical(body),
        analyst=made.analyst,
        request_id=made.request_id,
        keep=keep,
        answer=answer,
    )


def charge_made(ledger: str, request: Request, charged: Charged) -> Charge:
    """The charge that a request has now."""
    entry, price = charged.entry, charged.price
    if price is None:
        return charge_of(ledger, entry, charged.state)
    return Charge(
        ledger, entry.dataset, entry.analyst, entry.request_id, entry.sequence, request.event,
        *_point(written(price), price.delta_units), charged.state, False, entry.mac,
    )  # fmt: skip


def charge_of(ledger: str, entry: Entry, state: str) -> Charge:
    """The charge that an entry of an earlier time records."""
    body = entry.body
    return Charge(
        ledger, entry.dataset, entry.analyst, entry.request_id, entry.sequence, event_of(body["event"]),
        *_point(body["nano"], body["units"]), state, True, entry.mac,
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
    tx: Transaction, request: Request, holding: Holding | None, price: Price, budget_id: str, reserve: str
) -> BudgetExceeded:
    """Record that a charge was refused; no account changes."""
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
        }),
        analyst=request.analyst,
        request_id=request.request_id,
    )  # fmt: skip
    return _explained(price, remaining, budget_id, holding, reserve)


def _explained(
    price: Price, remaining: ApproxDP, budget_id: str, holding: Holding | None, reserve: str
) -> BudgetExceeded:
    epsilon = None if price.epsilon_nano is None else epsilon_up(price.epsilon_nano)
    delta = delta_up(price.delta_units)
    asked = "an unbounded epsilon" if epsilon is None else f"epsilon={_shown(epsilon, ROUND_CEILING)}"
    if delta:
        asked += f", delta={_shown(delta, ROUND_CEILING)}"
    left = f"epsilon={_shown(remaining.epsilon, ROUND_FLOOR)}"
    if remaining.delta:
        left += f", delta={_shown(remaining.delta, ROUND_FLOOR)}"
    if holding is None:
        way_out = "there is no grant; ask a curator for one"
    elif remaining.epsilon > 0:
        way_out = f"a charge of at most {left} would fit; lower it or ask the owner for more"
    else:
        way_out = "ask the owner for more"
    aside = holding.withheld(but=reserve) if holding is not None else (0, 0)
    if any(aside):
        left += f" (beside the {_shown(epsilon_up(aside[0]), ROUND_CEILING)} set aside)"
    return BudgetExceeded(
        f"charge of {asked} exceeds the {left} left in budget {budget_id!r}; {way_out}.",
        requested=None if epsilon is None else ApproxDP(epsilon, delta),
        remaining=remaining,
        budget_id=budget_id,
    )


def _shown(amount: float, rounding: str) -> str:
    """Three significant digits, rounded so that what is said is true."""
    return f"{float(Context(prec=3, rounding=rounding).create_decimal(repr(amount))):.3g}"

"""Charge, release, forfeit: each one transaction, durable before anything is returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from farthing.errors import InvalidValue, LedgerTampered, NotAllowed
from farthing.ledger.budget_policy import known, registered
from farthing.ledger.charge_limits import Limit, Quote, Request, quoted, written
from farthing.ledger.charge_prices import Price
from farthing.ledger.entries import FORFEITED, RELEASED, RESERVED, Charge, Entry, epsilon_of
from farthing.ledger.hash_chain import canonical
from farthing.ledger.holdings import Holding, checked_reserve
from farthing.ledger.integer_amounts import delta_up
from farthing.ledger.ledger_arguments import event_of
from farthing.ledger.transaction import Reader, Transaction, Whose


@dataclass(frozen=True, slots=True)
class Charged:
    """The entry of a charge; an earlier one if the request id was charged before, then with how far it came."""

    entry: Entry
    price: Price | None = None
    state: str = RESERVED


def charge(tx: Transaction, request: Request, quote: Quote | None) -> Charged | tuple[Limit, ...]:
    """Charge a request, or find the charge it had; all that refuse it are returned, so that the entry of it is kept.

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
    limits: list[Limit] = []
    for name, found, part, spare in [
        (request.dataset, (whole, own), quote, reserve),
        *((name, others[name], quote.others[name], "") for name in request.others),
    ]:
        limits += _charged(request, name, found, part, spare, keep)
    if limits:
        _refuse(tx, request, limits[0])
        return tuple(limits)
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
    request: Request,
    dataset: str,
    found: tuple[Holding, Holding | None],
    quote: Quote,
    reserve: str,
    keep: dict[Whose, Holding],
) -> list[Limit]:
    """Put the accounts of one dataset after the charge into `keep`; those that refuse it."""
    whole, own = found
    limits = []
    after = whole.admitted(quote.price, reserve)
    if after is None:
        limits.append(Limit(dataset, "", whole, quote.price, reserve))
    else:
        keep[dataset, ""] = after
    if request.analyst:
        own_after = own.admitted(quote.own_price) if own is not None and quote.own_price is not None else None
        if own_after is None:
            limits.append(Limit(dataset, request.analyst, own, quote.own_price or quote.price))
        else:
            keep[dataset, request.analyst] = own_after
    return limits


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


def _refuse(tx: Transaction, request: Request, limit: Limit) -> None:
    """Record that a charge was refused, by a dataset's budget or by a grant in it; no account changes."""
    remaining, price = limit.remaining, limit.price
    tx.append(
        "refused",
        request.dataset,
        canonical({
            "event": request.event.to_dict(), "world": request.world, "digest": request.digest,
            "nano": written(price), "units": price.delta_units, "budget": limit.budget_id,
            "remaining": {"epsilon": remaining.epsilon, "delta": remaining.delta},
            **({"others": list(request.others)} if request.others else {}),
        }),
        analyst=request.analyst,
        request_id=request.request_id,
    )  # fmt: skip

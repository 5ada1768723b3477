"""Charge, release, forfeit: each one transaction, durable before anything is returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from farthing.errors import BudgetExceeded, InvalidValue, LedgerTampered, NotAllowed
from farthing.ledger.amounts import delta_up, epsilon_up
from farthing.ledger.entries import FORFEITED, RELEASED, RESERVED, Charge, Entry
from farthing.ledger.holdings import Holding, checked_reserve
from farthing.ledger.policy import known
from farthing.ledger.prices import Price
from farthing.ledger.receipts import epsilon_of
from farthing.ledger.transaction import Question, Reader, Transaction, about_charge, about_holding
from farthing.ledger.values import event_of
from farthing.privacy.events import ApproxDP, Event


@dataclass(frozen=True, slots=True)
class Request:
    """A charge as it was asked for, every part checked."""

    dataset: str
    analyst: str
    event: Event
    request_id: str
    world: str
    delta: float | None
    digest: str
    reserve: str | None


def questions(request: Request) -> Iterator[Question]:
    """What `charge` is going to ask."""
    yield about_charge(request.request_id)
    yield about_holding(request.dataset)
    if request.analyst:
        yield about_holding(request.dataset, request.analyst)


@dataclass(frozen=True, slots=True)
class Charged:
    """The entry of a charge; an earlier one if the request id was charged before, then with how far it came."""

    entry: Entry
    state: str = RESERVED
    repeated: bool = False


def charge(tx: Transaction, request: Request) -> Charged | BudgetExceeded:
    """Charge a request, or find the charge it had; a refusal is returned, so that its entry is kept."""
    earlier = tx.charge_of(request.request_id)
    if earlier is not None:
        return _repeated(tx, request, earlier)
    holding = known(tx, request.dataset)
    reserve = checked_reserve(holding, request.reserve)
    price = holding.account.priced(request.event, request.delta)
    own = tx.holding(request.dataset, request.analyst) if request.analyst else None
    own_price = own.account.priced(request.event, request.delta) if own is not None else None
    if not holding.admits(price, reserve):
        return _refused(tx, request, holding, price, request.dataset, reserve)
    if request.analyst and (own is None or own_price is None or not own.admits(own_price)):
        return _refused(tx, request, own, own_price or price, f"{request.dataset}/{request.analyst}", "")
    body: dict[str, Any] = {
        "event": request.event.to_dict(), "world": request.world, "digest": request.digest, "reserve": reserve,
        "price": price.to_dict(), "nano": _written(price), "units": price.delta_units,
    }  # fmt: skip
    keep = {"": holding.charged(price, reserve)}
    if own is not None and own_price is not None:
        body |= {"own_price": own_price.to_dict(), "own_nano": _written(own_price)}
        keep[request.analyst] = own.charged(own_price)
    return Charged(
        tx.append(
            "charge", request.dataset, body, analyst=request.analyst, request_id=request.request_id, keep=keep
        )
    )


def settle(
    tx: Transaction, kind: str, charge: Charge, words: dict[str, Any], answer: str | None = None
) -> Entry:
    """Give a waiting charge its outcome; the outcome it already has, if it has one."""
    made = tx.charge_of(charge.request_id)
    if made is None or made.sequence != charge.sequence or made.mac != charge.mac:
        raise InvalidValue("charge", charge.request_id, "must be a charge that this ledger made")
    check_owner(made, tx.actor, tx.role)
    earlier = tx.outcome_of(charge.request_id)
    if earlier is not None:
        return earlier
    body = {"charge": made.sequence, "nano": made.body["nano"], "units": made.body["units"], **words}
    keep = {"": known(tx, made.dataset).settled(body["nano"])}
    if made.analyst:
        own = tx.holding(made.dataset, made.analyst)
        if own is None:
            raise LedgerTampered(f"the account of {made.dataset!r} for {made.analyst!r} is gone")
        body["own_nano"] = made.body["own_nano"]
        keep[made.analyst] = own.settled(body["own_nano"])
    return tx.append(
        kind, made.dataset, body, analyst=made.analyst, request_id=made.request_id, keep=keep, answer=answer
    )


def charge_of(ledger: str, entry: Entry, state: str, *, repeated: bool) -> Charge:
    """The charge that an entry records."""
    body = entry.body
    return Charge(
        ledger, entry.dataset, entry.analyst, entry.request_id, entry.sequence, event_of(body["event"]),
        epsilon_of(body["nano"]), delta_up(body["units"]), state, repeated, entry.mac,
    )  # fmt: skip


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
    same = (
        earlier.dataset == request.dataset
        and earlier.analyst == request.analyst
        and earlier.body["digest"] == request.digest
        and event_of(earlier.body["event"]) == request.event
    )
    if not same:
        raise InvalidValue(
            "request_id",
            request.request_id,
            "was charged before for something else",
            "use a new request id for a new request",
        )
    return Charged(earlier, state_after(tx.outcome_of(request.request_id)), repeated=True)


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
        {
            "event": request.event.to_dict(), "world": request.world, "digest": request.digest,
            "nano": _written(price), "units": price.delta_units, "budget": budget_id,
            "remaining": {"epsilon": remaining.epsilon, "delta": remaining.delta},
        },
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


def _written(price: Price) -> int:
    return -1 if price.epsilon_nano is None else price.epsilon_nano

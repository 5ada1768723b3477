"""A charge from its quote to its outcome: quote, charge, release, forfeit.

Each is one transaction, durable before anything is returned. A charge that does not fit is refused with what is left
and with the command that would raise the budget.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

from farthing.accounting.event_price import delta_up, epsilon_up
from farthing.errors import BudgetExceeded, InvalidValue, LedgerTampered, NotAllowed
from farthing.ledger.account import Account, Withheld
from farthing.ledger.account_state import Holding, checked_reserve
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.charge_quotes import Others, Quote, Request, body_text, quoted, written
from farthing.ledger.entries import FORFEITED, RELEASED, RESERVED, Charge, Entry, clock, epsilon_of, event_of
from farthing.ledger.larger_totals import first_total, used
from farthing.ledger.ledger_change import Reader, Transaction, Whose, known, registered
from farthing.ledger.tamper_evidence import canonical
from farthing.numerics.bounds import as_typed
from farthing.privacy.events import ApproxDP
from farthing.privacy.units import Unit


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget, or a grant in it, that refused a charge of this price; None for a grant that nobody gave."""

    dataset: str
    analyst: str
    holding: Holding | None
    price: ChargePrice
    reserve: str = ""
    note: str = ""  # why no approval and no policy covers it

    @property
    def budget_id(self) -> str:
        """What the entry of the refusal calls it."""
        return f"{self.dataset}/{self.analyst}" if self.analyst else self.dataset

    @property
    def withheld(self) -> Withheld:
        """What reserves keep from the charge."""
        return (0, 0) if self.holding is None else self.holding.withheld(but=self.reserve)

    @property
    def remaining(self) -> ApproxDP:
        """The largest charge that would fit."""
        if self.holding is None:
            return ApproxDP(0.0)
        return self.holding.account.remaining_beside(self.withheld)

    def total(self, request: Request) -> ApproxDP | None:
        """A total with which it would admit the request; None where none was found."""
        account = Account.of(0.0) if self.holding is None else self.holding.account
        fixed = request.delta is not None or isinstance(request.event, ApproxDP)

        def price(under: Account) -> ChargePrice:
            again = under.untouched or not fixed
            return under.priced(request.event, request.delta, self.withheld) if again else self.price

        def start(under: Account) -> float:
            return used(under, self.withheld) + epsilon_up(price(under).epsilon_nano or 0)

        def lack(under: Account) -> float:
            return 0.0 if under.admits(price(under), self.withheld) else under.budget.epsilon / 25

        units = account.parts_of_delta * (account.sum_units + self.withheld[1] + self.price.delta_units)
        return first_total(account, start, lack, units)

    def words(self, request: Request, place: str) -> tuple[str, str]:
        """What is left, and the way to more of it."""
        left = f"the {_amount(self.remaining)} left in {self._called}"
        if any(self.withheld):
            left = (
                f"the {_amount(self.remaining)} (beside the {_digits(epsilon_up(self.withheld[0]), ROUND_CEILING)} "
                f"set aside) left in {self._called}"
            )
        if self.holding is None:
            return left, command_for_more(place, self.dataset, self.analyst, self.total(request), None)
        account = self.holding.account
        way = command_for_more(place, self.dataset, self.analyst, self.total(request), account.budget)
        if any(self.withheld) and account.admits(self.price):
            names = [name for name in self.holding.reserves if name != self.reserve]
            way = f"{command_to_free(place, self.dataset, names, epsilon_up(self.withheld[0]))}, or {way}"
        return left, way

    @property
    def _called(self) -> str:
        return f"the grant of {self.analyst!r} in {self.dataset!r}" if self.analyst else f"budget {self.dataset!r}"


def refusal(limits: Iterable[Limit], request: Request, place: str) -> BudgetExceeded:
    """All that is in the way of a request, in words; `place` is where the ledger is, or nothing."""
    reached = list(limits)
    first, price = reached[0], reached[0].price
    epsilon = None if price.epsilon_nano is None else epsilon_up(price.epsilon_nano)
    delta = delta_up(price.delta_units)
    asked = "an unbounded epsilon" if epsilon is None else f"epsilon={_digits(epsilon, ROUND_CEILING)}"
    if delta:
        asked += f", delta={_digits(delta, ROUND_CEILING)}"
    lefts, ways = zip(*(limit.words(request, place) for limit in reached), strict=True)
    left = [limit.remaining for limit in reached]
    least = ApproxDP(min(each.epsilon for each in left), min(each.delta for each in left))
    lower = f"a charge of at most {_amount(least)} would fit; lower it or " if least.epsilon > 0 else ""
    if all(limit.holding is None for limit in reached):
        lower = "there is no grant; "
    notes = "".join(f" ({note})" for note in dict.fromkeys(limit.note for limit in reached) if note)
    return BudgetExceeded(
        f"charge of {asked} exceeds {' and '.join(lefts)}; {lower}{all_of(ways)}{notes}.",
        requested=None if epsilon is None else ApproxDP(epsilon, delta),
        remaining=first.remaining,
        budget_id=first.budget_id,
    )


def all_of(ways: Iterable[str]) -> str:
    """Ways of which every one is needed.

    >>> all_of(["raise a", "raise b"]), all_of(["raise a"])
    ('raise a; and raise b', 'raise a')
    """
    return "; and ".join(ways)


def command_for_more(place: str, dataset: str, analyst: str, total: ApproxDP | None, before: ApproxDP | None) -> str:
    """What a curator types to give more: of a dataset's budget, or of somebody's grant in it.

    `before` is the total that it has, None for a grant that is not there. Without a `place` nobody can type it.

    >>> print(command_for_more("study.db", "people.csv", "", ApproxDP(2.5), ApproxDP(1.0)))
    ask its curator for more, epsilon=2.5 in all: farthing ledger budget set study.db people.csv --epsilon 2.5
    >>> print(command_for_more("", "people.csv", "ada", ApproxDP(2.5, 1e-9), None))
    ask its curator for a grant, epsilon=2.5, delta=1e-09 in all
    """
    what = "for more" if before is not None else "for a grant"
    if total is None:
        return f"ask its curator {what}"
    says_delta = total.delta != (0.0 if before is None else before.delta)
    amount = f"epsilon={as_typed(total.epsilon)}" + f", delta={as_typed(total.delta)}" * says_delta
    if not place:
        return f"ask its curator {what}, {amount} in all"
    options = f"--epsilon {as_typed(total.epsilon)}" + f" --delta {as_typed(total.delta)}" * says_delta
    words = ["grant", place, dataset, analyst] if analyst else ["budget", "set", place, dataset]
    return f"ask its curator {what}, {amount} in all: farthing ledger {shlex.join(words)} {options}"


def command_to_let_ask(place: str, dataset: str, analyst: str) -> str:
    """What a curator types for somebody who has no grant yet: nothing to spend is enough to plan and to ask.

    >>> print(command_to_let_ask("study.db", "people.csv", "ada"))
    ask its curator for one: 'farthing ledger grant study.db people.csv ada --epsilon 0' is enough to plan and to submit
    requests, and more than 0 may be spent without asking
    """
    enough = "is enough to plan and to submit requests, and more than 0 may be spent without asking"
    if not place:
        return f"ask its curator for one: epsilon=0 {enough}"
    return (
        f"ask its curator for one: 'farthing ledger grant {shlex.join([place, dataset, analyst])} --epsilon 0' {enough}"
    )


def command_to_free(place: str, dataset: str, names: Iterable[str], reserved: float) -> str:
    """What a curator types to free what reserves keep.

    >>> print(command_to_free("study.db", "people", ["reserve"], 0.5))
    free what is set aside by reserves, epsilon=0.5 ('reserve'): farthing ledger reserve study.db people --epsilon 0
    """
    named = list(names)
    advice = f"free what is set aside by reserves, epsilon={reserved:.6g} ({', '.join(map(repr, named))})"
    if not place:
        return advice
    commands = (
        f"farthing ledger reserve {shlex.join([place, dataset])}"
        + ("" if name == "reserve" else f" --name {shlex.quote(name)}")
        + " --epsilon 0"
        for name in named
    )
    return f"{advice}: {' && '.join(commands)}"


def _amount(amount: ApproxDP) -> str:
    text = f"epsilon={_digits(amount.epsilon, ROUND_FLOOR)}"
    return text + f", delta={_digits(amount.delta, ROUND_FLOOR)}" if amount.delta else text


def _digits(amount: float, rounding: str) -> str:
    """Three significant digits, rounded so that what is said is true."""
    return f"{float(Context(prec=3, rounding=rounding).create_decimal(repr(amount))):.3g}"


@dataclass(frozen=True, slots=True)
class Charged:
    """The entry of a charge; an earlier one if the request id was charged before, then with how far it came."""

    entry: Entry
    price: ChargePrice | None = None
    state: str = RESERVED


def charge(tx: Transaction, request: Request, quote: Quote | None) -> Charged | tuple[Limit, ...]:
    """Charge a request, or find the charge it had; all that refuse it are returned, so that the entry of it is kept.

    Every account pays or none does: they are changed by one entry.
    """
    earlier = tx.charge()
    if earlier is not None:
        return _repeated(tx, request, earlier)
    whole = _one_budget(known(tx, request.dataset), request.dataset)
    reserve = checked_reserve(whole, request.reserve)
    own = tx.own()
    others = {name: _accounts(tx, name) for name in request.others}
    note = ""
    if own is not None and own.rights and request.reserve is None:
        charged, note = _by_right(tx, request, (whole, own), others)
        if charged is not None:
            return charged
    if quote is None or not quote.holds(whole, own, others):
        quote = quoted(request, whole, own, others)
    keep: dict[Whose, Holding] = {}
    limits: list[Limit] = []
    for name, holding, part, spare in [
        (request.dataset, (whole, own), quote, reserve),
        *((name, others[name], quote.others[name], "") for name in request.others),
    ]:
        limits += _charged(request, name, holding, part, spare, keep)
    if limits:
        _refuse(tx, request, limits[0])
        return tuple(replace(limit, note=note if limit.analyst else "") for limit in limits)
    entry = tx.append(
        "charge",
        request.dataset,
        quote.body,
        analyst=request.analyst,
        request_id=request.request_id,
        keep=keep,
    )
    return Charged(entry, quote.price)


def _by_right(
    tx: Transaction, request: Request, holdings: tuple[Holding, Holding], others: Others
) -> tuple[Charged | tuple[Limit, ...] | None, str]:
    """A charge that an approved request, or a policy, covers; None and the reason where none does.

    The datasets' own budgets have the last word all the same. The analyst's grant is not touched: all that changes in
    that account is the right, which is used up in the same transaction.
    """
    whole, own = holdings
    unowned = {name: (account, None) for name, (account, _) in others.items()}
    quote = quoted(request, whole, None, unowned)
    price, now = quote.price, own.rights.moment(clock())
    contents = None if request.others else request.contents  # a policy of one dataset is none of another
    right, note = own.rights.covering(request.mark, contents, price.epsilon_nano, price.delta_units, now)
    if right is None:
        return None, note
    keep: dict[Whose, Holding] = {}
    limits: list[Limit] = []
    shared = replace(request, analyst="")
    for name, account, part in [
        (request.dataset, whole, quote),
        *((name, unowned[name][0], quote.others[name]) for name in request.others),
    ]:
        limits += _charged(shared, name, (account, None), part, "", keep)
    if limits:
        _refuse(tx, request, limits[0])
        return tuple(limits), ""
    keep[request.dataset, request.analyst] = own.with_rights(own.rights.used(right, written(price), price.delta_units))
    entry = tx.append(
        "charge",
        request.dataset,
        body_text(request, price, None, quote.others, right),
        analyst=request.analyst,
        request_id=request.request_id,
        keep=keep,
    )
    return Charged(entry, price), ""


def _accounts(tx: Transaction, dataset: str) -> tuple[Holding, Holding | None]:
    """The accounts of another dataset that pays."""
    whole, own = tx.other(dataset)
    return _one_budget(registered(whole, dataset), dataset), own


def _one_budget(holding: Holding, dataset: str) -> Holding:
    """An account that can be charged: what the periods of one that renews have in common is no budget."""
    renewal = holding.unit.renewal if isinstance(holding.unit, Unit) else None
    if renewal is not None and renewal.period is None:
        raise InvalidValue(
            "dataset", dataset, f"has a budget for each {renewal.every}, and none of its own", "charge that of a period"
        )
    return holding


def _charged(
    request: Request,
    dataset: str,
    holdings: tuple[Holding, Holding | None],
    quote: Quote,
    reserve: str,
    keep: dict[Whose, Holding],
) -> list[Limit]:
    """Put the accounts of one dataset after the charge into `keep`; those that refuse it."""
    whole, own = holdings
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


def settle(tx: Transaction, kind: str, charge: Charge, words: dict[str, Any], answer: str | None = None) -> Entry:
    """Give a waiting charge its outcome; the outcome it already has, if it has one."""
    charged = tx.charge()
    mine = charge.sequence, charge.mac, charge.dataset, charge.analyst
    if charged is None or (charged.sequence, charged.mac, charged.dataset, charged.analyst) != mine:
        raise InvalidValue("charge", charge.request_id, "must be a charge that this ledger made")
    check_owner(charged, tx.actor, tx.role)
    earlier = tx.outcome()
    if earlier is not None:
        return earlier
    terms = charged.body
    body = {"charge": charged.sequence, "units": terms["units"], **words}
    keep: dict[Whose, Holding] = {}
    body |= _settled(charged, charged.dataset, (known(tx, charged.dataset), tx.own()), terms, keep)
    others = {
        name: _settled(charged, name, _accounts(tx, name), part, keep) for name, part in terms.get("others", {}).items()
    }
    if others:
        body["others"] = others
    return tx.append(
        kind,
        charged.dataset,
        canonical(body),
        analyst=charged.analyst,
        request_id=charged.request_id,
        keep=keep,
        answer=answer,
    )


def _settled(
    charged: Entry,
    dataset: str,
    holdings: tuple[Holding, Holding | None],
    terms: Mapping[str, Any],
    keep: dict[Whose, Holding],
) -> dict[str, Any]:
    """Put the accounts of one dataset after an outcome into `keep`; what the entry says about them."""
    whole, own = holdings
    body = {"nano": terms["nano"]}
    keep[dataset, ""] = whole.settled(body["nano"])
    if charged.analyst and "own_nano" in terms:  # a charge by right has no part in the grant
        if own is None:
            raise LedgerTampered(f"the account of {dataset!r} for {charged.analyst!r} is gone")
        body["own_nano"] = terms["own_nano"]
        keep[dataset, charged.analyst] = own.settled(body["own_nano"])
    return body


def charge_made(ledger: str, request: Request, charged: Charged) -> Charge:
    """The charge that a request has now."""
    entry, price = charged.entry, charged.price
    if price is None:
        return charge_of(ledger, entry, charged.state)
    return Charge(
        ledger,
        entry.dataset,
        entry.analyst,
        entry.request_id,
        entry.sequence,
        request.event,
        *_point(written(price), price.delta_units),
        charged.state,
        False,
        entry.mac,
        request.others,
    )


def charge_of(ledger: str, entry: Entry, state: str) -> Charge:
    """The charge that an entry of an earlier time records."""
    body = entry.body
    return Charge(
        ledger,
        entry.dataset,
        entry.analyst,
        entry.request_id,
        entry.sequence,
        event_of(body["event"]),
        *_point(body["nano"], body["units"]),
        state,
        True,
        entry.mac,
        entry.others,
    )


@lru_cache(maxsize=1024)
def _point(nano: int, units: int) -> tuple[float, float]:
    return epsilon_of(nano), delta_up(units)


def checked_charge(charge: object) -> Charge:
    """A charge that `Ledger.charge` returned."""
    if not isinstance(charge, Charge):
        raise InvalidValue("charge", charge, "must be a Charge that Ledger.charge returned")
    return charge


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
        canonical(
            {
                "event": request.event.to_dict(),
                "world": request.world,
                "digest": request.digest,
                "nano": written(price),
                "units": price.delta_units,
                "budget": limit.budget_id,
                "remaining": {"epsilon": remaining.epsilon, "delta": remaining.delta},
                **({"others": list(request.others)} if request.others else {}),
            }
        ),
        analyst=request.analyst,
        request_id=request.request_id,
    )

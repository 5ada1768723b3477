"""What a charge costs: the request with every part checked, its prices, and the body of its entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from farthing.ledger.account_state import Holding
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.rights import Contents, mark_of
from farthing.ledger.tamper_evidence import canonical
from farthing.privacy.events import Event

Pricing = tuple[int, int, int, bool, bool, int, int]
Others = Mapping[str, tuple[Holding, Holding | None]]
"""By dataset, its account and that of the analyst in it."""


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
    others: tuple[str, ...] = ()  # further datasets that pay, each from its own account
    table: str = ""  # the signature of the table that will be read
    contents: Contents | None = None  # what a policy looks at
    version: str = ""  # a sealed note of that table
    source: str = ""  # a signature of what the table is called: an approval is for this one

    @property
    def mark(self) -> str:
        """What an approval names it by: everything that decides what is released and what it costs."""
        event = self.event.to_dict()
        return mark_of(self.dataset, self.analyst, event, self.digest, self.delta, self.others, self.source)


@dataclass(frozen=True, slots=True)
class Quote:
    """The prices of a request under two budgets, the dataset's and the analyst's, and the body of its entry."""

    event: Event
    pricing: Pricing
    own_pricing: Pricing | None
    price: ChargePrice
    own_price: ChargePrice | None
    body: str
    others: Mapping[str, Quote] = field(default_factory=dict)
    reserve: str = ""

    def holds(self, whole: Holding, own: Holding | None, others: Others = MappingProxyType({})) -> bool:
        """Whether it is still what `quoted` would make: the accounts may be others by now, and so may the budgets."""
        if _pricing(whole, self.reserve) != self.pricing or not whole.account.takes(self.event, self.price):
            return False
        if (None if own is None else _pricing(own)) != self.own_pricing:
            return False
        if own is not None and not (self.own_price is not None and own.account.takes(self.event, self.own_price)):
            return False
        return all(self.others[name].holds(*accounts) for name, accounts in others.items())


def quoted(request: Request, whole: Holding, own: Holding | None, others: Others = MappingProxyType({})) -> Quote:
    """What a request costs in these accounts; `others` are those of the other datasets."""
    reserve = request.reserve or ""
    pricing = _pricing(whole, reserve)
    price = whole.account.priced(request.event, request.delta, whole.withheld(but=reserve))
    parts = {name: quoted(replace(request, reserve=None), *accounts) for name, accounts in others.items()}
    if own is None:
        body = body_text(request, price, None, parts)
        return Quote(request.event, pricing, None, price, None, body, parts, reserve)
    own_price = own.account.priced(request.event, request.delta, own.withheld())
    body = body_text(request, price, own_price, parts)
    return Quote(request.event, pricing, _pricing(own), price, own_price, body, parts, reserve)


def _pricing(holding: Holding, reserve: str = "") -> Pricing:
    """All that a price depends on besides the event and the clock."""
    return *holding.account.pricing, *holding.withheld(but=reserve)


def body_text(
    request: Request,
    price: ChargePrice,
    own_price: ChargePrice | None,
    others: Mapping[str, Quote],
    right: Mapping[str, Any] | None = None,
) -> str:
    """The body of the entry in its canonical spelling; events and prices come again and again."""
    paid = f'"others":{canonical({name: _terms(quote) for name, quote in others.items()})},' if others else ""
    own = ""
    if own_price is not None:
        own = f'"own_nano":{written(own_price)},"own_price":{_price_text(own_price)},'
    table = f'"table":{canonical(request.table)},' if request.table else ""
    version = f'"version":{canonical(request.version)},' if request.version else ""
    by_right = f'"right":{canonical(right)},' if right else ""
    return (
        f'{{"digest":{canonical(request.digest)},"event":{_event_text(request.event)},"nano":{written(price)},'
        f'{paid}{own}"price":{_price_text(price)},"reserve":{canonical(request.reserve or "")},'
        f'{by_right}{table}"units":{price.delta_units},{version}"world":{canonical(request.world)}}}'
    )


def _terms(quote: Quote) -> dict[str, Any]:
    """What the entry says about another account that pays."""
    price, own_price = quote.price, quote.own_price
    terms: dict[str, Any] = {"nano": written(price), "units": price.delta_units, "price": price.to_dict()}
    if own_price is not None:
        terms |= {"own_nano": written(own_price), "own_price": own_price.to_dict()}
    return terms


@lru_cache(maxsize=1024)
def _event_text(event: Event) -> str:
    return canonical(event.to_dict())


@lru_cache(maxsize=1024)
def _price_text(price: ChargePrice) -> str:
    return canonical(price.to_dict())


def written(price: ChargePrice) -> int:
    """The epsilon of a price as an entry says it; -1 is infinite."""
    return -1 if price.epsilon_nano is None else price.epsilon_nano

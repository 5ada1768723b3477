"""A charge worked out ahead of time: its price and all that its entry will say, but for what only the lock can tell.

Pricing a large plan may take a second, and spelling an entry takes longer than deciding on it. Both depend on the
event and on the budget, and not on what was spent: done before the lock is taken, they need not be done under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from farthing.ledger.chain import canonical
from farthing.ledger.holdings import Holding
from farthing.ledger.prices import Price
from farthing.privacy.events import Event

Pricing = tuple[int, int, int, bool]
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
    table: str = ""  # a mark of the table that will be read


@dataclass(frozen=True, slots=True)
class Quote:
    """The prices of a request under two budgets, the dataset's and the analyst's, and the body of its entry."""

    pricing: Pricing
    own_pricing: Pricing | None
    price: Price
    own_price: Price | None
    body: str
    others: Mapping[str, Quote] = field(default_factory=dict)

    def holds(self, whole: Holding, own: Holding | None, others: Others = MappingProxyType({})) -> bool:
        """Whether it is still what `quoted` would make: the accounts may be others by now, and so may the budgets."""
        if whole.account.pricing != self.pricing:
            return False
        if (None if own is None else own.account.pricing) != self.own_pricing:
            return False
        return all(self.others[name].holds(*accounts) for name, accounts in others.items())


def quoted(
    request: Request, whole: Holding, own: Holding | None, others: Others = MappingProxyType({})
) -> Quote:
    """What a request costs in these accounts; `others` are those of the other datasets."""
    account = whole.account
    price = account.priced(request.event, request.delta)
    parts = {name: quoted(request, *accounts) for name, accounts in others.items()}
    if own is None:
        return Quote(account.pricing, None, price, None, _body(request, price, None, parts), parts)
    own_price = own.account.priced(request.event, request.delta)
    body = _body(request, price, own_price, parts)
    return Quote(account.pricing, own.account.pricing, price, own_price, body, parts)


def _body(request: Request, price: Price, own_price: Price | None, others: Mapping[str, Quote]) -> str:
    """The body of the entry in its canonical spelling; events and prices come again and again."""
    paid = f'"others":{canonical({name: _terms(quote) for name, quote in others.items()})},' if others else ""
    own = ""
    if own_price is not None:
        own = f'"own_nano":{written(own_price)},"own_price":{_price_text(own_price)},'
    table = f'"table":{canonical(request.table)},' if request.table else ""
    return (
        f'{{"digest":{canonical(request.digest)},"event":{_event_text(request.event)},"nano":{written(price)},'
        f'{paid}{own}"price":{_price_text(price)},"reserve":{canonical(request.reserve or "")},'
        f'{table}"units":{price.delta_units},"world":{canonical(request.world)}}}'
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
def _price_text(price: Price) -> str:
    return canonical(price.to_dict())


def written(price: Price) -> int:
    """The epsilon of a price as an entry says it; -1 is infinite."""
    return -1 if price.epsilon_nano is None else price.epsilon_nano

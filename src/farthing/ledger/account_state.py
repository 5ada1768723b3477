"""An account with what is withheld from it: charges that wait for their answer, and reserves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from farthing.errors import InvalidValue
from farthing.ledger.account import Account
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.partitions import Part
from farthing.ledger.rights import NONE, Rights
from farthing.ledger.tamper_evidence import canonical
from farthing.privacy.events import Event
from farthing.privacy.units import Unit


@dataclass(frozen=True)
class Holding:
    """The state of a dataset's budget, or of one analyst's grant in it.

    A charge and its replay in a verification go through the same functions, so they cannot differ.

    >>> holding = Holding(Account.of(1.0, 0.0)).with_reserve("census day", 200_000_000, 0)
    >>> Holding.of_text(holding.text()) == holding, holding.withheld()
    (True, (200000000, 0))
    """

    account: Account
    reserves: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting: int = 0
    waiting_nano: int = 0
    unit: Unit | str = ""  # words where an older version, or somebody in their own, wrote them
    sources: frozenset[str] | None = None  # signatures of the tables it stands for; None: an older version did not say
    rights: Rights = NONE  # of an analyst, besides the grant
    titles: tuple[str, ...] = ()  # what people call these tables
    part: Part | None = None  # of another account, which has paid for it

    def text(self) -> str:
        """The state in its one spelling: whole numbers, names and nothing else."""
        reserves, unit = self.reserves, self.unit
        sources = f'"sources":{_sources_text(self.sources)},' if self.sources is not None else ""
        rights = f'"rights":{self.rights.text()},' if self.rights is not NONE else ""
        titles = f'"titles":{_titles_text(self.titles)},' if self.titles else ""
        part = f'"part":{canonical(self.part.to_dict())},' if self.part is not None else ""
        return (
            f'{{"account":{self.account.text()},{part}"reserves":{canonical(reserves) if reserves else "{}"},'
            f'{rights}{sources}{titles}"unit":{_unit_text(unit)},'
            f'"waiting":{self.waiting},"waiting_nano":{self.waiting_nano}}}'
        )

    def sums(self) -> str:
        """The beginning of what an entry says about the state: the plain sums; a fingerprint of all of it follows."""
        account = self.account
        plain = -1 if account.sum_nano is None else account.sum_nano
        return (
            f'{{"count":{account.count},"leak_units":{account.leak_units},"sum_nano":{plain},'
            f'"sum_units":{account.sum_units},"whole":"'
        )

    @classmethod
    def of_text(cls, text: str) -> Holding:
        """The state that `text` wrote."""
        data = json.loads(text)
        return cls(
            Account.from_dict(data["account"]),
            {str(name): (int(nano), int(units)) for name, (nano, units) in data["reserves"].items()},
            int(data["waiting"]),
            int(data["waiting_nano"]),
            Unit.from_dict(data["unit"]) if isinstance(data["unit"], dict) else str(data["unit"]),
            frozenset(map(str, data["sources"])) if "sources" in data else None,
            Rights.from_dict(data["rights"]) if "rights" in data else NONE,
            tuple(map(str, data.get("titles", ()))),
            Part.from_dict(data["part"]) if "part" in data else None,
        )

    def withheld(self, *, but: str = "") -> tuple[int, int]:
        """What reserves set aside, all together or all but one."""
        set_aside = [amounts for name, amounts in self.reserves.items() if name != but]
        return sum(nano for nano, _ in set_aside), sum(units for _, units in set_aside)

    def admits(self, price: ChargePrice, reserve: str = "") -> bool:
        """Whether a charge fits next to what is spent and what is set aside (a named reserve may be used)."""
        return self.admitted(price, reserve) is not None

    def admitted(self, price: ChargePrice, reserve: str = "") -> Holding | None:
        """The state after a charge if it fits, or None."""
        account = self.account.admitted(price, self.withheld(but=reserve) if self.reserves else (0, 0))
        return None if account is None else self._with_charge(account, price, reserve)

    def charged(self, price: ChargePrice, reserve: str = "") -> Holding:
        """The state after a charge that was admitted; it waits for its answer."""
        return self._with_charge(self.account.after(price), price, reserve)

    def _with_charge(self, account: Account, price: ChargePrice, reserve: str) -> Holding:
        reserves = self.reserves
        if reserve:
            nano, units = reserves[reserve]
            left = (max(0, nano - _or_default(price.epsilon_nano, nano)), max(0, units - price.delta_units))
            reserves = _with(reserves, reserve, left)
        return Holding(
            account,
            reserves,
            self.waiting + 1,
            self.waiting_nano + _or_default(price.epsilon_nano, 0),
            self.unit,
            self.sources,
            self.rights,
            self.titles,
            self.part,
        )

    def settled(self, nano: int) -> Holding:
        """The state after a waiting charge of so much (-1: infinite) was answered or forfeited. It stays spent."""
        return self._waiting(self.waiting - 1, self.waiting_nano - max(0, nano))

    def charged_many(self, price: ChargePrice, times: int) -> Holding:
        """The state after so many charges of one price, none of them the first."""
        nano = self.waiting_nano + times * _or_default(price.epsilon_nano, 0)
        account = self.account.after_many(price, times)
        about = (self.unit, self.sources, self.rights, self.titles, self.part)
        return Holding(account, self.reserves, self.waiting + times, nano, *about)

    def settled_many(self, times: int, nano: int) -> Holding:
        """The state after so many charges, of so much together, were answered or forfeited."""
        return self._waiting(self.waiting - times, self.waiting_nano - nano)

    def _waiting(self, waiting: int, nano: int) -> Holding:
        about = (self.unit, self.sources, self.rights, self.titles, self.part)
        return Holding(self.account, self.reserves, waiting, nano, *about)

    def with_budget(self, epsilon: float, delta: float) -> Holding:
        """The same history under another budget."""
        return replace(self, account=self.account.with_budget(epsilon, delta))

    def with_reserve(self, name: str, nano: int, units: int) -> Holding:
        """So much set aside under `name`; nothing frees it."""
        return replace(self, reserves=_with(self.reserves, name, (nano, units)))

    def with_rights(self, rights: Rights) -> Holding:
        """The same account, with other rights of the analyst."""
        return replace(self, rights=rights)

    def with_sources(self, signatures: Iterable[str], titles: Iterable[str] = ()) -> Holding:
        """The same for further tables, with what people call them."""
        known = frozenset().union(self.sources or (), signatures)
        return replace(self, sources=known, titles=tuple(dict.fromkeys((*self.titles, *titles))))


def usage_in(holdings: Iterable[Holding | None], event: Event, delta: float | None) -> float:
    """The largest part that an event would take of what any of them has left; infinite for a grant nobody gave.

    >>> from farthing.privacy import ApproxDP
    >>> usage_in([Holding(Account.of(1.0)), Holding(Account.of(0.5))], ApproxDP(0.25), None)
    0.25
    """
    return max(
        math.inf
        if each is None
        else each.account.usage(each.account.priced(event, delta, each.withheld()), each.withheld())
        for each in holdings
    )


def checked_reserve(holding: Holding, name: str | None) -> str:
    """The name of a reserve that exists, or nothing."""
    if name is None:
        return ""
    if name not in holding.reserves:
        known = ", ".join(sorted(holding.reserves)) or "none"
        raise InvalidValue("use_reserve", name, f"must name a reserve of this dataset ({known})")
    return name


@lru_cache(maxsize=64)
def _sources_text(sources: frozenset[str]) -> str:
    return canonical(sorted(sources))


@lru_cache(maxsize=64)
def _titles_text(titles: tuple[str, ...]) -> str:
    return canonical(titles)


@lru_cache(maxsize=256)
def _unit_text(unit: Unit | str) -> str:
    return canonical(unit.to_dict() if isinstance(unit, Unit) else unit)


def _or_default(amount: int | None, otherwise: int) -> int:
    return otherwise if amount is None else amount


def _with(reserves: dict[str, tuple[int, int]], name: str, amounts: tuple[int, int]) -> dict[str, tuple[int, int]]:
    others = {other: kept for other, kept in reserves.items() if other != name}
    return {**others, name: amounts} if any(amounts) else others

"""The ledger read again from its first entry: what the accounts must be now, if every entry is genuine."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn

from farthing.errors import FarthingError, LedgerTampered
from farthing.ledger.account import Account
from farthing.ledger.chain import GENESIS, canonical, fingerprint
from farthing.ledger.entries import Entry
from farthing.ledger.holdings import Holding
from farthing.ledger.prices import Price

_EVERY = 64  # how often the whole state of an account is compared with what an entry says
_POLICY = {"dataset", "budget", "grant", "reserve"}


class Replay:
    """The accounts after the entries so far, by (dataset, analyst), each with the entry that changed it last."""

    def __init__(self) -> None:
        self.sequence = 0
        self.mac = GENESIS
        self.released = 0
        self.accounts: dict[tuple[str, str], tuple[int, Holding]] = {}

    def follow(self, entry: Entry) -> None:
        """Take the next entry; raises LedgerTampered if it cannot come next or its totals are not the sum."""
        if entry.sequence != self.sequence + 1 or entry.previous != self.mac:
            raise LedgerTampered(f"entry {self.sequence + 1} is missing", sequence=self.sequence + 1)
        if (entry.kind == "created") != (entry.sequence == 1):
            raise LedgerTampered("the ledger does not begin with its creation", sequence=entry.sequence)
        try:
            changed = self._changed(entry)
        except LedgerTampered:
            raise
        except (FarthingError, KeyError, TypeError, ValueError, AttributeError):
            raise LedgerTampered(f"entry {entry.sequence} cannot be read", sequence=entry.sequence) from None
        for who, holding in changed.items():
            if not _agrees(holding, entry.body["after"][who], whole=entry.sequence % _EVERY == 0):
                _wrong(entry)
            self.accounts[entry.dataset, who] = (entry.sequence, holding)
        self.released += entry.kind == "released"
        self.sequence, self.mac = entry.sequence, entry.mac

    def _changed(self, entry: Entry) -> dict[str, Holding]:
        """The accounts that an entry changes, as they are after it."""
        body = entry.body
        if entry.kind in _POLICY:
            return self._after_policy(entry)
        if entry.kind == "charge":
            changed = {"": self._of(entry, "").charged(_price(body["price"]), body["reserve"])}
            if entry.analyst:
                price = _price(body["own_price"])
                changed[entry.analyst] = self._of(entry, entry.analyst).charged(price)
            return changed
        if entry.kind in ("released", "forfeited"):
            changed = {"": self._of(entry, "").settled(body["nano"])}
            if entry.analyst:
                changed[entry.analyst] = self._of(entry, entry.analyst).settled(body["own_nano"])
            return changed
        return {}

    def _after_policy(self, entry: Entry) -> dict[str, Holding]:
        """The state that the entry holds in full: as before but for what a curator may change."""
        who = entry.analyst if entry.kind == "grant" else ""
        after = Holding.of_text(canonical(entry.body["state"]))
        _, before = self.accounts.get((entry.dataset, who), (0, None))
        if before is None:
            fresh = Holding(_with_budget_of(Account.of(0.0), after), unit=after.unit)
            opened = entry.kind == "dataset" or (
                entry.kind == "grant" and (entry.dataset, "") in self.accounts
            )
            return {who: fresh} if opened and after == fresh else _wrong(entry)
        if entry.kind == "reserve":
            return {who: after} if replace(before, reserves=after.reserves) == after else _wrong(entry)
        kept = replace(before, account=_with_budget_of(before.account, after))
        return {who: after} if entry.kind != "dataset" and kept == after else _wrong(entry)

    def _of(self, entry: Entry, who: str) -> Holding:
        return self.accounts[entry.dataset, who][1]


def _wrong(entry: Entry) -> NoReturn:
    raise LedgerTampered(
        f"the totals after entry {entry.sequence} are not the sum of the entries before it",
        sequence=entry.sequence,
    )


def _with_budget_of(account: Account, other: Holding) -> Account:
    budget = other.account
    return replace(account, epsilon_nano=budget.epsilon_nano, delta_units=budget.delta_units)


def _agrees(holding: Holding, claimed: dict[str, Any], *, whole: bool) -> bool:
    """Whether an entry's totals are those of the replay: the sums always, the whole state now and then.

    What is in between cannot differ for long: sums only grow, and the last state is compared with the accounts.
    """
    account = holding.account
    plain = -1 if account.sum_nano is None else account.sum_nano
    sums = (account.count, plain, account.sum_units, account.leak_units)
    if sums != tuple(claimed[name] for name in ("count", "sum_nano", "sum_units", "leak_units")):
        return False
    return not whole or claimed["state"] == fingerprint(holding.text())


def _price(data: dict[str, Any]) -> Price:
    """The price of a stored charge. Most charges cost what another did, so they are read once."""
    return _price_read(
        *(tuple(part) if isinstance(part, list) else part for part in data.values()), tuple(data)
    )


@lru_cache(maxsize=1024)
def _price_read(*parts: Any) -> Price:
    values = (list(part) if isinstance(part, tuple) else part for part in parts[:-1])
    return Price.from_dict(dict(zip(parts[-1], values, strict=True)))

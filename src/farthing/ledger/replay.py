"""The ledger read again from its first entry: what the accounts must be now, if every entry is genuine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from farthing.errors import FarthingError, LedgerTampered
from farthing.ledger.account import Account
from farthing.ledger.chain import GENESIS, canonical
from farthing.ledger.entries import Entry
from farthing.ledger.holdings import Holding
from farthing.ledger.prices import Price
from farthing.ledger.standings import Standing
from farthing.ledger.totals import label_of, totals_agree

_EVERY = 64  # how often the whole state of an account is compared with what an entry says
_POLICY = {"dataset", "source", "budget", "grant", "reserve"}


class Replay:
    """The accounts after the entries so far, by (dataset, analyst)."""

    def __init__(self) -> None:
        self.sequence = 0
        self.mac = GENESIS
        self.released = 0
        self._standings: dict[tuple[str, str], Standing] = {}

    @property
    def accounts(self) -> dict[tuple[str, str], tuple[int, Holding]]:
        """All accounts, each with the entry that changed it last."""
        return {whose: (found.sequence, found.holding) for whose, found in self._standings.items()}

    def holding(self, dataset: str, analyst: str = "") -> Holding:
        """One of them."""
        return self._standings[dataset, analyst].holding

    def follow(self, entry: Entry) -> None:
        """Take the next entry; raises LedgerTampered if it cannot come next or its totals are not the sum."""
        sequence = entry.sequence
        if sequence != self.sequence + 1 or entry.previous != self.mac:
            raise LedgerTampered(f"entry {self.sequence + 1} is missing", sequence=self.sequence + 1)
        if (entry.kind == "created") != (sequence == 1):
            raise LedgerTampered("the ledger does not begin with its creation", sequence=sequence)
        try:
            changed = self._changed(entry)
        except LedgerTampered:
            raise
        except (FarthingError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise LedgerTampered(f"entry {sequence} cannot be read", sequence=sequence) from None
        # The sums always, the whole state now and then: what is in between cannot differ for long, because sums only
        # grow, and the last state is compared with the accounts.
        if not totals_agree(entry.totals_text, changed, whole=sequence % _EVERY == 0):
            _wrong(entry)
        self.released += entry.kind == "released"
        self.sequence, self.mac = sequence, entry.mac

    def _changed(self, entry: Entry) -> dict[str, Standing]:
        """The accounts that an entry changes, changed."""
        sequence, kind, dataset, analyst = entry.sequence, entry.kind, entry.dataset, entry.analyst
        if kind == "charge":
            changed = {}
            for name, terms in _charge_terms(entry.body_text, dataset):
                whole = changed[label_of(dataset, name, "")] = self._standings[name, ""]
                whole.charge(sequence, terms.price, terms.reserve)
                if analyst:
                    own = changed[label_of(dataset, name, analyst)] = self._standings[name, analyst]
                    own.charge(sequence, _present(terms.own_price), "")
            return changed
        if kind in ("released", "forfeited"):
            body, changed = entry.body, {}
            for name, part in ((dataset, body), *body.get("others", {}).items()):
                whole = changed[label_of(dataset, name, "")] = self._standings[name, ""]
                whole.settle(sequence, part["nano"])
                if analyst:
                    own = changed[label_of(dataset, name, analyst)] = self._standings[name, analyst]
                    own.settle(sequence, part["own_nano"])
            return changed
        return self._after_policy(entry) if kind in _POLICY else {}

    def _after_policy(self, entry: Entry) -> dict[str, Standing]:
        """The state that the entry holds in full: as before but for what a curator may change."""
        who = entry.analyst if entry.kind == "grant" else ""
        whose = entry.dataset, who
        after = Holding.of_text(canonical(entry.body["state"]))
        standing = self._standings.get(whose)
        if standing is None:
            budget = _with_budget_of(Account.of(0.0), after)
            expected = Holding(budget, unit=after.unit, sources=after.sources)
            allowed = entry.kind == "dataset" or (
                entry.kind == "grant" and (entry.dataset, "") in self._standings
            )
            standing = Standing(entry.sequence, expected)
        else:
            before = standing.holding
            if entry.kind == "reserve":
                expected = replace(before, reserves=after.reserves)
            elif entry.kind == "source":
                expected = before.with_sources(after.sources or ())
            else:
                expected = replace(before, account=_with_budget_of(before.account, after))
            allowed = entry.kind != "dataset"
        if not allowed or after != expected:
            _wrong(entry)
        standing.change(entry.sequence, after)
        self._standings[whose] = standing
        return {who: standing}


def _wrong(entry: Entry) -> NoReturn:
    raise LedgerTampered(
        f"the totals after entry {entry.sequence} are not the sum of the entries before it",
        sequence=entry.sequence,
    )


def _with_budget_of(account: Account, other: Holding) -> Account:
    budget = other.account
    return replace(account, epsilon_nano=budget.epsilon_nano, delta_units=budget.delta_units)


class _ChargeTerms(NamedTuple):
    price: Price
    own_price: Price | None
    reserve: str


@lru_cache(maxsize=1024)
def _charge_terms(body: str, dataset: str) -> tuple[tuple[str, _ChargeTerms], ...]:
    """What a charge's body says about accounts, by dataset. Most say what another did, so they are read once."""
    data = json.loads(body)
    others = data.get("others", {})
    if dataset in others:
        raise ValueError("an account is charged twice")
    return tuple((name, _terms(part)) for name, part in ((dataset, data), *others.items()))


def _terms(data: Mapping[str, Any]) -> _ChargeTerms:
    own = Price.from_dict(data["own_price"]) if "own_price" in data else None
    return _ChargeTerms(Price.from_dict(data["price"]), own, data.get("reserve", ""))


def _present(price: Price | None) -> Price:
    if price is None:
        raise ValueError("no price")
    return price

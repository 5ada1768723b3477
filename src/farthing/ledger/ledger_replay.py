"""The ledger read again from its first entry: what the accounts must be now, if every entry is genuine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from farthing.accounting.event_price import NOTHING
from farthing.errors import FarthingError, LedgerTampered
from farthing.ledger.account import Account
from farthing.ledger.account_state import Holding
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.entries import Entry, _name, label_of
from farthing.ledger.partitions import PARTITION
from farthing.ledger.tamper_evidence import GENESIS, canonical, fingerprint


class Standing:
    """The account of one dataset or analyst after the entries so far, last changed by entry `sequence`.

    >>> from farthing.ledger.account import Account
    >>> account = Account.of(1.0)
    >>> standing = Standing(2, Holding(account))
    >>> for n in range(3, 13):
    ...     standing.charge(n, account.priced(0.1), "")
    >>> standing.sequence, standing.holding.account.sum_nano, standing.holding.waiting
    (12, 1000000000, 10)
    """

    __slots__ = ("_answered", "_answered_nano", "_holding", "_price", "_times", "sequence")

    def __init__(self, sequence: int, holding: Holding) -> None:
        self.sequence = sequence
        self._holding = holding
        self._price: ChargePrice | None = None
        self._times = 0
        self._answered, self._answered_nano = 0, 0

    @property
    def holding(self) -> Holding:
        holding = self._holding
        if self._price is not None:
            holding = holding.charged_many(self._price, self._times)
            self._price, self._times = None, 0
        if self._answered:
            holding = holding.settled_many(self._answered, self._answered_nano)
            self._answered, self._answered_nano = 0, 0
        self._holding = holding
        return holding

    def change(self, sequence: int, holding: Holding) -> None:
        self.sequence, self._holding = sequence, holding
        self._price, self._times, self._answered, self._answered_nano = None, 0, 0, 0

    def charge(self, sequence: int, price: ChargePrice, reserve: str) -> None:
        if price is self._price and not reserve:
            self._times += 1
        elif reserve or self._holding.account.untouched:  # which changes more than sums
            self.change(sequence, self.holding.charged(price, reserve))
        else:
            self._holding = self.holding
            self._price, self._times = price, 1
        self.sequence = sequence

    def settle(self, sequence: int, nano: int) -> None:
        """One charge that waited is answered or forfeited."""
        self._answered += 1
        self._answered_nano += max(0, nano)
        self.sequence = sequence

    def sums(self) -> str:
        price = self._price
        if price is None:
            return self._holding.sums()
        account, times = self._holding.account, self._times
        nano = account.sum_nano
        plain = -1 if nano is None or price.epsilon_nano is None else nano + times * price.epsilon_nano
        return (
            f'{{"count":{account.count + times},"leak_units":{account.leak_units + times * price.leak_units},'
            f'"sum_nano":{plain},"sum_units":{account.sum_units + times * price.delta_units},"whole":"'
        )

    def text(self) -> str:
        return self.holding.text()


_MARK = 32  # characters of a fingerprint


def totals_agree(claimed: str, states: Mapping[str, Holding | Standing], *, whole: bool) -> bool:
    """Whether totals are those of these accounts: the sums always, the fingerprints only if `whole`.

    >>> from farthing.ledger.account import Account
    >>> from farthing.ledger.entries import totals_of
    >>> holding = Holding(Account.of(1.0))
    >>> claimed = totals_of({"": (holding, holding.text())})
    >>> totals_agree(claimed, {"": holding}, whole=True), totals_agree(claimed[:-1], {"": holding}, whole=False)
    (True, False)
    """
    if not states:
        return claimed == ""
    place, before = 0, "{"
    for who, holding in states.items():
        lead = f"{before}{_name(who)}{holding.sums()}"
        if not claimed.startswith(lead, place):
            return False
        place += len(lead)
        if whole and claimed[place : place + _MARK] != fingerprint(holding.text()):
            return False
        place, before = place + _MARK, '"},'
    return claimed[place:] == '"}}'


_EVERY = 64  # how often the whole state of an account is compared with what an entry says
_RIGHTS = {"request", "approved", "changed", "declined", "withdrawn", "policy"}
_POLICY = {"dataset", "source", "budget", "grant", "reserve"} | _RIGHTS


class Replay:
    """The accounts after the entries so far, by (dataset, analyst)."""

    def __init__(self) -> None:
        self.sequence = 0
        self.mac = GENESIS
        self.released = 0
        self._standings: dict[tuple[str, str], Standing] = {}
        self._partitions: dict[str, tuple[str, dict[str, Any]]] = {}  # charges of partitions, by request id

    @property
    def accounts(self) -> dict[tuple[str, str], tuple[int, Holding]]:
        """All accounts, each with the entry that changed it last."""
        return {whose: (standing.sequence, standing.holding) for whose, standing in self._standings.items()}

    def holding(self, dataset: str, analyst: str = "") -> Holding:
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
            changed, right = {}, entry.right
            if PARTITION in entry.body_text:
                self._partitions[entry.request_id] = (dataset, entry.body)
            for name, terms in _charge_terms(entry.body_text, dataset):
                whole = changed[label_of(dataset, name, "")] = self._standings[name, ""]
                whole.charge(sequence, terms.price, terms.reserve)
                if analyst and right is None:
                    own = changed[label_of(dataset, name, analyst)] = self._standings[name, analyst]
                    own.charge(sequence, _present(terms.own_price), "")
            if right is not None:
                changed[analyst] = self._after_right(entry, right)
            return changed
        if kind in ("released", "forfeited"):
            body, changed = entry.body, {}
            for name, part in ((dataset, body), *body.get("others", {}).items()):
                whole = changed[label_of(dataset, name, "")] = self._standings[name, ""]
                whole.settle(sequence, part["nano"])
                if analyst and "own_nano" in part:  # a charge by right has no part in the grant
                    own = changed[label_of(dataset, name, analyst)] = self._standings[name, analyst]
                    own.settle(sequence, part["own_nano"])
            return changed
        return self._after_policy(entry) if kind in _POLICY else {}

    def _after_right(self, entry: Entry, right: Mapping[str, Any]) -> Standing:
        """The account of an analyst after a charge that an approval or a policy covered: the grant is as before."""
        own, body = self._standings[entry.dataset, entry.analyst], entry.body
        before = own.holding
        own.change(entry.sequence, before.with_rights(before.rights.used(right, body["nano"], body["units"])))
        return own

    def _after_policy(self, entry: Entry) -> dict[str, Standing]:
        """The state that the entry holds in full: as before but for what a curator may change."""
        who = entry.analyst if entry.kind == "grant" or entry.kind in _RIGHTS else ""
        whose = entry.dataset, who
        after = Holding.of_text(canonical(entry.body["state"]))
        standing = self._standings.get(whose)
        if standing is None:
            empty = replace(Account.of(0.0), divergences=NOTHING if after.account.divergences else ())
            opened = Holding(_with_budget_of(empty, after), unit=after.unit, sources=after.sources)
            expected = replace(opened, titles=after.titles, part=after.part)
            if entry.kind in _RIGHTS:
                expected = Holding(empty, rights=after.rights)  # with no grant
            below = bool(who) and (entry.dataset, "") in self._standings
            allowed = entry.kind == "dataset" or (below and (entry.kind == "grant" or entry.kind in _RIGHTS))
            allowed = allowed and self._is_paid(after, entry.dataset)
            standing = Standing(entry.sequence, expected)
        else:
            before = standing.holding
            if entry.kind == "reserve":
                expected = replace(before, reserves=after.reserves)
            elif entry.kind in _RIGHTS:
                expected = before.with_rights(after.rights)
            elif entry.kind == "source":
                expected = before.with_sources(after.sources or (), after.titles)
            else:
                expected = replace(before, account=_with_budget_of(before.account, after))
            allowed = entry.kind != "dataset" and not (entry.kind == "budget" and before.part is not None)
        if not allowed or after != expected:
            _wrong(entry)
        standing.change(entry.sequence, after)
        self._standings[whose] = standing
        return {who: standing}

    def _is_paid(self, holding: Holding, name: str) -> bool:
        """Whether an account is none of a part, or the one of a part whose partition was charged before."""
        part = holding.part
        if part is None:
            return True
        paid = self._partitions.get(part.request_id)
        return paid is not None and name == part.name and part.is_paid_by(*paid, holding.account)


def _wrong(entry: Entry) -> NoReturn:
    raise LedgerTampered(
        f"the totals after entry {entry.sequence} are not the sum of the entries before it",
        sequence=entry.sequence,
    )


def _with_budget_of(account: Account, other: Holding) -> Account:
    budget = other.account
    return replace(account, epsilon_nano=budget.epsilon_nano, delta_units=budget.delta_units)


class _ChargeTerms(NamedTuple):
    price: ChargePrice
    own_price: ChargePrice | None
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
    own = ChargePrice.from_dict(data["own_price"]) if "own_price" in data else None
    return _ChargeTerms(ChargePrice.from_dict(data["price"]), own, data.get("reserve", ""))


def _present(price: ChargePrice | None) -> ChargePrice:
    if price is None:
        raise ValueError("no price")
    return price


_SILENT = {"released", "forfeited", "source", "people", "deposit"} | _RIGHTS  # what was spent stays spent


class Moment(NamedTuple):
    """An entry and how an account stood after it."""

    entry: Entry
    holding: Holding


class Thinning:
    """Keeps policy and between `most` and twice as many of the rest, evenly; the last one always."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._policy: list[Moment] = []
        self._rest: list[Moment] = []
        self._stride, self._seen = 1, 0
        self._last: Moment | None = None

    def add(self, entry: Entry, holding: Holding) -> None:
        self._last = Moment(entry, holding)
        if entry.kind not in ("charge", "refused"):
            self._policy.append(self._last)
            return
        if self._seen % self._stride == 0:
            self._rest.append(self._last)
        self._seen += 1
        if len(self._rest) >= 2 * self._most:
            self._rest, self._stride = self._rest[::2], 2 * self._stride

    def all(self) -> list[Moment]:
        """What was kept, in order."""
        moments = {moment.entry.sequence: moment for moment in [*self._policy, *self._rest]}
        if self._last is not None:
            moments[self._last.entry.sequence] = self._last
        return [moments[sequence] for sequence in sorted(moments)]


class History:
    """The moments of every budget and every grant, read on from where the last reading ended.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     _ = ledger.register("census", epsilon=1.0)
    ...     _ = ledger.charge("census", 0.25, request_id="r-1")
    ...     history = History()
    ...     for entry in ledger.entries(since=history.sequence):
    ...         history.follow(entry)
    ...     [(moment.entry.kind, moment.holding.account.spent_upper) for moment in history.moments("census")]
    [('dataset', 0.0), ('charge', 0.25)]
    """

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._replay = Replay()
        self._thinnings: dict[tuple[str, str], Thinning] = {}

    @property
    def sequence(self) -> int:
        """The last entry that was followed."""
        return self._replay.sequence

    def follow(self, entry: Entry) -> None:
        """Take the next entry of the ledger; all of them must come, in order."""
        self._replay.follow(entry)
        if entry.kind in _SILENT or not entry.dataset:
            return
        for dataset in (entry.dataset, *entry.others):
            if entry.kind != "grant":
                self._add(entry, dataset, "")
            if entry.analyst:
                self._add(entry, dataset, entry.analyst)

    def moments(self, dataset: str, analyst: str = "") -> list[Moment]:
        """The entries about a budget or a grant; of very many charges some, and the last."""
        thinning = self._thinnings.get((dataset, analyst))
        return [] if thinning is None else thinning.all()

    def _add(self, entry: Entry, dataset: str, analyst: str) -> None:
        whose = dataset, analyst
        try:
            holding = self._replay.holding(*whose)
        except KeyError:
            return  # somebody without a grant was refused
        self._thinnings.setdefault(whose, Thinning(self._most)).add(entry, holding)

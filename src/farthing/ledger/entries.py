"""What a ledger holds and hands out: entries, charges, stored outcomes, receipts; and the rules for their fields."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple
from unicodedata import normalize

from farthing.accounting.charges import check_range, read_charges
from farthing.accounting.event_price import delta_up, epsilon_up
from farthing.errors import InvalidData, InvalidValue
from farthing.ledger.account_state import Holding
from farthing.ledger.ledger_tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD
from farthing.ledger.tamper_evidence import canonical, fingerprint
from farthing.privacy.events import ApproxDP, Event, checked_delta, checked_epsilon

_LONGEST_NAME = 200
_LARGEST_EPSILON = 1e6
ROLES = ("curator", "analyst", "auditor")
WORLDS = ("planned", "adaptive")


def checked_name(value: object, name: str) -> str:
    """`value` as printable text of 1 to 200 characters; what looks the same is the same name.

    An accent may be part of its letter or a character after it (Unicode NFC, NFD): two spellings, and not two budgets.

    >>> checked_name("census 2026", "dataset"), checked_name("e\u0301", "dataset") == "\u00e9"
    ('census 2026', True)
    """
    return _printable(normalize("NFC", value) if isinstance(value, str) else value, name)


def checked_note(value: object, name: str) -> str:
    """`value` as printable text of at most 200 characters, which may be empty; it stays as it is spelled."""
    return "" if value == "" else _printable(value, name)


def _printable(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(name, value, f"must be text, not {type(value).__name__}")
    text = str.__str__(value)  # only plain text is signed, and NumPy and enums have kinds of their own
    if not (0 < len(text) <= _LONGEST_NAME and text.isprintable() and text.strip() == text):
        raise InvalidValue(name, value, f"must be 1 to {_LONGEST_NAME} printable characters, no spaces around")
    return text


def checked_choice(value: object, name: str, choices: tuple[str, ...]) -> str:
    """`value` as one of `choices`."""
    if not (isinstance(value, str) and value in choices):
        raise InvalidValue(name, value, f"must be one of {', '.join(choices)}")
    return str.__str__(value)


def checked_budget(epsilon: object, delta: object) -> tuple[float, float]:
    """(epsilon, delta) of a budget: finite, not negative, and small enough to mean something."""
    number = checked_epsilon(epsilon)
    if not number <= _LARGEST_EPSILON:
        raise InvalidValue("epsilon", epsilon, "must be at most 1e6", "above that, nothing is private")
    return number, checked_delta(delta)


def checked_change(epsilon: object, delta: object) -> tuple[float, float | None]:
    """(epsilon, delta) of a budget that may be there already; None for a delta that stays as it is.

    >>> checked_change(0.5, None), checked_change(0.5, 1e-9)
    ((0.5, None), (0.5, 1e-09))
    """
    number, least = checked_budget(epsilon, 0.0 if delta is None else delta)
    return number, None if delta is None else least


def checked_event(value: object) -> Event:
    """A charge in any accepted form (epsilon, an (epsilon, delta) pair, an event) as an event in range.

    >>> checked_event(0.5), checked_event((0.5, 1e-9))
    (ApproxDP(epsilon=0.5, delta=0.0), ApproxDP(epsilon=0.5, delta=1e-09))
    >>> checked_event(True)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: epsilon=True: must be a real number, not bool.
    """
    if isinstance(value, Event):
        event = value
    elif isinstance(value, tuple | list):
        if len(value) != 2:
            raise InvalidValue("event", value, "must be an epsilon, an (epsilon, delta) pair or an event")
        event = ApproxDP(*checked_budget(value[0], value[1]))
    else:
        event = ApproxDP(*checked_budget(value, 0.0))
    _in_range(event)
    return event


@lru_cache(maxsize=4096)
def _in_range(event: Event) -> None:
    charges = read_charges([event])
    if not charges.k:
        raise InvalidValue("event", event, "must hold at least one charge")
    check_range(charges)


def checked_answer(value: object) -> str:
    """An answer as text that both databases can hold; the answer itself is in no message."""
    if not isinstance(value, str):
        raise InvalidData("answer", f"must be text, not {type(value).__name__}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidData("answer", "must be valid Unicode") from None
    if "\0" in value:
        raise InvalidData("answer", "must not hold the character U+0000", "store JSON text")
    return str.__str__(value)


def event_of(data: Any) -> Event:
    """The event of a stored body."""
    return Event.from_dict(data)


KINDS = (
    "created",
    "dataset",
    "source",
    "people",
    "budget",
    "grant",
    "reserve",
    "charge",
    "released",
    "forfeited",
    "refused",
    "request",
    "approved",
    "changed",
    "declined",
    "withdrawn",
    "policy",
    "correction",
    "deposit",
)
RESERVED, RELEASED, FORFEITED = "reserved", "released", "forfeited"
_LATEST = 2**63 - 1  # in the year 2262: the largest number that both databases hold


def clock() -> int:
    """What this machine's clock shows, in nanoseconds; one that is centuries off shows the nearest that can be kept.

    >>> clock() > 1_700_000_000_000_000_000
    True
    """
    return max(-_LATEST, min(time.time_ns(), _LATEST))


class Entry(NamedTuple):
    """One line of the ledger: never changed, never removed, signed together with the line before it.

    The fields are those of the table's columns, in their order. `body` and `totals` are read from their texts when they
    are asked for.

    Args:
        sequence: Its number, which is its order.
        kind: What was done, such as "charge" or "released".
        dataset: Whose budget it concerns.
        analyst: Whose grant it concerns, or nothing.
        actor: Who did it.
        role: What they were when they did it.
        time_ns: What the writer's clock showed, for people; nothing depends on it.
        request_id: The request it belongs to, or nothing.
        body_text: What was done and at what price, as the text that is signed.
        totals_text: How the accounts stood afterwards, as the text that is signed.
        previous: The signature of the line before.
        mac: Its own signature.

    >>> entry = Entry(1, "created", "", "", "ada", "curator", 0, "", '{"format":2}', "", "0" * 64, "ab" * 32)
    >>> entry.when.year, entry.kind, entry.body, entry.totals
    (1970, 'created', {'format': 2}, {})
    """

    sequence: int
    kind: str
    dataset: str
    analyst: str
    actor: str
    role: str
    time_ns: int
    request_id: str
    body_text: str
    totals_text: str
    previous: str
    mac: str

    @property
    def body(self) -> dict[str, Any]:
        """What was done, as JSON-ready data of the caller's own."""
        data: dict[str, Any] = json.loads(self.body_text)
        return data

    @property
    def totals(self) -> dict[str, dict[str, Any]]:
        """The plain sums of the accounts after it, by analyst ("" is the dataset's own); empty if none changed."""
        data: dict[str, dict[str, Any]] = json.loads(self.totals_text) if self.totals_text else {}
        return data

    @property
    def others(self) -> tuple[str, ...]:
        """Further datasets whose budgets pay, or paid, with the first."""
        return tuple(self.body.get("others", ())) if '"others":' in self.body_text else ()

    @property
    def right(self) -> dict[str, Any] | None:
        """What covered a charge instead of a grant: an approved request, or a policy; None for other charges."""
        data = self.body.get("right") if '"right":' in self.body_text else None
        return data if isinstance(data, dict) else None

    def is_about(self, dataset: str) -> bool:
        """Whether it concerns the budget of a dataset.

        Args:
            dataset: The name of the dataset.

        Returns:
            True if its budget paid or was changed.

        >>> entry = Entry(2, "dataset", "survey", "", "ada", "curator", 0, "", "{}", "", "0" * 64, "ab" * 32)
        >>> entry.is_about("survey"), entry.is_about("census")
        (True, False)
        """
        return dataset == self.dataset or dataset in self.others

    @property
    def when(self) -> datetime:
        """The writer's clock, in UTC."""
        return datetime.fromtimestamp(self.time_ns // 10**9, UTC)

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON-ready data.

        Returns:
            The fields by name, with `body` and `totals` as data.

        >>> Entry(1, "created", "", "", "ada", "curator", 0, "", '{"format":2}', "", "", "").to_dict()["body"]
        {'format': 2}
        """
        texts = {"body_text": ("body", self.body), "totals_text": ("totals", self.totals)}
        return dict(texts.get(name, (name, value)) for name, value in zip(self._fields, self, strict=True))


def write_lines(entries: Iterable[Entry], file: IO[str]) -> int:
    """Write entries as lines of JSON; how many there were."""
    count = 0
    for entry in entries:
        file.write(json.dumps(entry.to_dict(), sort_keys=True, allow_nan=False) + "\n")
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Charge:
    """A durable charge: it counts as spent from this moment on, whatever happens next. Made by `Ledger.charge`.

    Args:
        ledger: The identity of the ledger.
        dataset: Whose budget paid.
        analyst: Whose grant paid too, or nothing.
        request_id: The name of the request.
        sequence: The number of its entry.
        event: What was charged.
        epsilon: Its epsilon in the plain sums, rounded up.
        delta: Its delta in the plain sums, rounded up.
        state: How far it came: "reserved", "released" or "forfeited".
        repeated: Whether the request id had been charged before; then nothing was charged now.
        mac: The signature of its entry.
        others: Further datasets whose budgets paid as well.

    >>> from farthing.privacy import ApproxDP
    >>> Charge("l", "census", "", "r-1", 3, ApproxDP(0.1), 0.1, 0.0, "reserved", False, "ab").request_id
    'r-1'
    """

    ledger: str
    dataset: str
    analyst: str
    request_id: str
    sequence: int
    event: Event
    epsilon: float
    delta: float
    state: str
    repeated: bool
    mac: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """What the ledger knows of a request. Made by `Ledger.stored`.

    Args:
        charge: Its charge.
        state: "reserved", "released" or "forfeited".
        answer: The answer, if there is one.
        receipt: The receipt of its outcome, or of its charge while it waits.

    >>> Stored.__slots__
    ('charge', 'state', 'answer', 'receipt')
    """

    charge: Charge
    state: str
    answer: str | None
    receipt: Receipt


_KEYS = {
    "ledger": str, "dataset": str, "analyst": str, "request_id": str, "state": str, "sequence": int, "mac": str,
    "epsilon": float, "delta": float, "charges": int, "total_nano": int, "total_units": int, "time_ns": int,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Receipt:
    """One entry of a ledger, with its signature: later the ledger must still contain it, and everything before it.

    Args:
        ledger: The identity of the ledger.
        dataset: Whose budget paid.
        analyst: Whose grant paid too, or nothing.
        request_id: The name of the request.
        state: "reserved", "released" or "forfeited".
        sequence: The number of the entry.
        mac: The head of the chain when the entry was written.
        epsilon: The epsilon that was charged.
        delta: The delta that was charged.
        charges: How many charges the dataset had by then.
        total_nano: The dataset's plain sum of epsilons, in billionths; -1 is infinite.
        total_units: The dataset's plain sum of deltas, in units of 1e-40; -1 is infinite.
        time_ns: What the writer's clock showed.
        others: Further accounts that paid the same with the first; receipts of older versions do not name them.

    >>> receipt = Receipt("l", "census", "", "r-1", "released", 4, "ab", 0.1, 0.0, 2, 300_000_000, 0, 0)
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    ledger: str
    dataset: str
    analyst: str
    request_id: str
    state: str
    sequence: int
    mac: str
    epsilon: float
    delta: float
    charges: int
    total_nano: int
    total_units: int
    time_ns: int
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, ledger: str, entry: Entry) -> Receipt | None:
        """The receipt of a charge or of its outcome; other entries have none.

        Args:
            ledger: The identity of the ledger.
            entry: The entry.

        Returns:
            Its receipt, or None.
        """
        if entry.kind not in ("charge", "released", "forfeited"):
            return None
        body, after = entry.body, entry.totals[""]
        return cls(
            ledger,
            entry.dataset,
            entry.analyst,
            entry.request_id,
            "reserved" if entry.kind == "charge" else entry.kind,
            entry.sequence,
            entry.mac,
            epsilon_of(body["nano"]),
            delta_up(body["units"]),
            after["count"],
            after["sum_nano"],
            after["sum_units"],
            entry.time_ns,
            entry.others,
        )

    def is_of(self, ledger: str, entry: Entry) -> bool:
        """Whether it is the receipt of this entry.

        Args:
            ledger: The identity of the ledger.
            entry: The entry.

        Returns:
            True if every field is that of the entry; one without other accounts may be from an older version, and one
            without names from a publication.
        """
        receipt = Receipt.of(ledger, entry)
        return receipt is not None and self in (receipt, replace(receipt, others=()), receipt.without_names())

    def without_names(self) -> Receipt:
        """The receipt for everybody: without the names of the request and of the analyst, which say who asked.

        The entry is still the one with this number and this head of the chain, and the ledger contains it or not.

        Returns:
            A receipt that `is_of` takes as well.

        >>> receipt = Receipt("l", "census", "ada", "ada:7", "released", 4, "ab", 0.1, 0.0, 2, 300_000_000, 0, 0)
        >>> receipt.without_names().accounts, receipt.without_names().request_id
        (('census',), '')
        """
        return replace(self, request_id="", analyst="")

    @property
    def accounts(self) -> tuple[str, ...]:
        """Every account that paid, the first one first."""
        return (self.dataset, *self.others)

    @property
    def when(self) -> datetime:
        """The writer's clock, in UTC."""
        return datetime.fromtimestamp(self.time_ns // 10**9, UTC)

    def to_dict(self) -> dict[str, Any]:
        """The receipt as JSON-ready data; an infinite epsilon is written as null."""
        data = asdict(self)
        named = list(data.pop("others"))
        others = {"others": named} if named else {}
        return {**data, "epsilon": None if self.epsilon == float("inf") else self.epsilon, **others}

    def to_json(self) -> str:
        """The receipt as text, one key a line."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote; anything else is refused.

        Args:
            text: What `to_json` returned.

        Returns:
            An equal receipt.

        Raises:
            InvalidValue: If the text is not that of a receipt.

        >>> Receipt.from_json("{}")
        Traceback (most recent call last):
            ...
        farthing.errors.InvalidValue: receipt='{}': must have the keys ledger, dataset, ...
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidValue("receipt", text, "must be the JSON text of a receipt") from None
        if not isinstance(data, dict) or set(data) - {"others"} != set(_KEYS):
            raise InvalidValue("receipt", text, f"must have the keys {', '.join(_KEYS)}")
        others = data.pop("others", [])
        if not isinstance(others, list) or not all(isinstance(name, str) for name in others):
            raise InvalidValue("others", others, "must be a list of the names of accounts")
        if data["epsilon"] is None:
            data["epsilon"] = float("inf")
        for key, kind in _KEYS.items():
            if kind is float and type(data[key]) is int and abs(data[key]) < 2**53:
                data[key] = float(data[key])
            if type(data[key]) is not kind or data[key] != data[key]:
                raise InvalidValue(key, data[key], f"must be a JSON value of type {kind.__name__}")
        return cls(**data, others=tuple(others))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the receipt to a file; of what is there already only a receipt is replaced.

        Args:
            path: The file.

        Returns:
            Its path.

        Raises:
            InvalidValue: If the file holds something else.

        >>> import tempfile
        >>> receipt = Receipt("l", "census", "", "r-1", "released", 4, "ab", 0.1, 0.0, 2, 300_000_000, 0, 0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Receipt.load(receipt.save(f"{folder}/receipt.json")) == receipt
        True
        """
        place = Path(path)
        if place.exists():
            try:
                Receipt.load(place)
            except (InvalidValue, UnicodeDecodeError):
                raise InvalidValue("path", str(path), "is a file of something else", "choose another") from None
        place.write_text(self.to_json(), encoding="utf-8")
        return place

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Receipt:
        """The receipt that `save` wrote to a file.

        Args:
            path: The file.

        Returns:
            An equal receipt.

        Raises:
            InvalidValue: If the file holds something else.
            OSError: If it cannot be read.
        """
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def epsilon_of(nano: int) -> float:
    """Stored billionths as an epsilon; -1 is infinite."""
    return float("inf") if nano < 0 else epsilon_up(nano)


APPEND = f"INSERT INTO {ENTRIES} ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
OPEN_ACCOUNT = f"INSERT INTO {ACCOUNTS} (sequence, state, mac, dataset, analyst) VALUES (?, ?, ?, ?, ?)"
KEEP_ACCOUNT = f"UPDATE {ACCOUNTS} SET sequence = ?, state = ?, mac = ? WHERE dataset = ? AND analyst = ?"
STORE_ANSWER = f"INSERT INTO {ANSWERS} (sequence, body) VALUES (?, ?)"
MOVE_HEAD = f"UPDATE {HEAD} SET sequence = ?, mac = ?, seal = ? WHERE one = 1 AND sequence = ? AND mac = ?"


class AccountRow(NamedTuple):
    """A row of accounts as it is after the change."""

    sequence: int
    state: str
    mac: str
    dataset: str
    analyst: str


class Change(NamedTuple):
    """One entry and what changes with it. `new` says that the accounts are opened and not kept.

    >>> Change(Entry(1, "created", "", "", "ada", "curator", 0, "", "{}", "", "0" * 64, "ab"), "cd").head
    (1, 'ab', 'cd')
    """

    entry: Entry
    seal: str
    accounts: tuple[AccountRow, ...] = ()
    new: bool = False
    answer: str | None = None

    @property
    def head(self) -> tuple[int, str, str]:
        """The head after the change."""
        return self.entry.sequence, self.entry.mac, self.seal

    @property
    def head_move(self) -> tuple[Any, ...]:
        """The values for `MOVE_HEAD`: the head after the change, and the one that it must find."""
        return (*self.head, self.entry.sequence - 1, self.entry.previous)


_NAMES = {"": '"":'}


def label_of(dataset: str, other: str, analyst: str) -> str:
    """What totals call an account in an entry of `dataset`: the analyst, after its dataset where that is another.

    >>> label_of("flights", "flights", "bob"), label_of("flights", "planes", "bob")
    ('bob', 'planes\\nbob')
    """
    return analyst if other == dataset else f"{other}\n{analyst}"  # no name has a line break in it


def totals_of(states: Mapping[str, tuple[Holding, str]]) -> str:
    """The totals of an entry that leaves these accounts, by analyst, each with its text; nothing for no accounts.

    >>> from farthing.ledger.account import Account
    >>> holding = Holding(Account.of(1.0))
    >>> totals_of({"": (holding, holding.text())})[:51]
    '{"":{"count":0,"leak_units":0,"sum_nano":0,"sum_uni'
    """
    if not states:
        return ""
    parts = (f'{_name(who)}{holding.sums()}{fingerprint(text)}"}}' for who, (holding, text) in states.items())
    return f"{{{','.join(parts)}}}"


def _name(who: str) -> str:
    return _NAMES.get(who) or f"{canonical(who)}:"

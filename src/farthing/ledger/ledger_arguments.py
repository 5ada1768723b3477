"""What a caller may hand to a ledger: names, events and answers, checked before any transaction begins."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from unicodedata import normalize

from farthing.accounting.charges import check_range, read_charges
from farthing.errors import InvalidData, InvalidValue
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
        raise InvalidValue(
            name, value, f"must be 1 to {_LONGEST_NAME} printable characters, no spaces around"
        )
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
        raise InvalidValue("epsilon", epsilon, "must be at most 1e6", "beyond, nothing is private")
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

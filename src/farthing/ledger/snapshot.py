"""The one question that every change of the ledger asks: the head, the accounts and the request, in one row."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from farthing.errors import LedgerTampered
from farthing.ledger.ledger_tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD


class Question(NamedTuple):
    """Which accounts and which request a change is about; empty where it is about none.

    `fresh` says that the request is not expected to have any entries, so that it is worth looking first. `others` are
    further datasets whose accounts are charged with the first.

    >>> Question("census", request_id="r-1").parameters
    ('census', 'census', '', 'r-1', 'r-1')
    """

    dataset: str = ""
    analyst: str = ""
    request_id: str = ""
    fresh: bool = False
    others: tuple[str, ...] = ()

    @property
    def accounts(self) -> list[tuple[str, str]]:
        """The accounts of the other datasets: each one's own and, if an analyst is named, the analyst's in it."""
        whose = ("", self.analyst) if self.analyst else ("",)
        return [(dataset, analyst) for dataset in self.others for analyst in whose]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The values for the question marks of `ASK`, in order; `LOOK` has all but the last."""
        return (self.dataset, self.dataset, self.analyst, self.request_id, self.request_id)


class Found(NamedTuple):
    """The row that answers a question, in parts; None where there is nothing.

    head              ledger, sequence, mac, seal
    whole, own        sequence, state, mac of the dataset's account and of the analyst's
    charge, outcome   the columns of the two entries of the request
    answer            the stored answer
    others            by (dataset, analyst), what `whole` and `own` are for the other datasets
    """

    head: tuple[Any, ...]
    whole: tuple[Any, ...] | None
    own: tuple[Any, ...] | None
    charge: tuple[Any, ...] | None
    outcome: tuple[Any, ...] | None
    answer: Any
    others: Mapping[tuple[str, str], tuple[Any, ...] | None] = MappingProxyType({})


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


_STATE = ("sequence", "state", "mac")
_STANDING = f"{_columns('h', ('ledger', 'sequence', 'mac', 'seal'))}, {_columns('w', _STATE)}, {_columns('o', _STATE)}"
_FOUND_BY = f"""
FROM {HEAD} h
LEFT JOIN {ACCOUNTS} w ON w.dataset = ? AND w.analyst = ''
LEFT JOIN {ACCOUNTS} o ON o.dataset = ? AND o.analyst = ? AND o.analyst <> ''
LEFT JOIN {ENTRIES} c ON c.request_id = ? AND c.kind = 'charge'
"""
LOOK = f"SELECT {_STANDING}, c.sequence {_FOUND_BY} WHERE h.one = 1"
"""The beginning of `ASK`: all there is to find if the request has no entries."""
ASK = f"""
SELECT {_STANDING}, {_columns("c", COLUMNS)}, {_columns("s", COLUMNS)}, n.body
{_FOUND_BY}
LEFT JOIN {ENTRIES} s ON s.request_id = ? AND s.kind IN ('released', 'forfeited')
LEFT JOIN {ANSWERS} n ON n.sequence = s.sequence
WHERE h.one = 1
"""
ONE_ACCOUNT = f"SELECT {', '.join(_STATE)} FROM {ACCOUNTS} WHERE dataset = ? AND analyst = ?"
_WHOLE, _OWN, _CHARGE = 4, 7, 10
_OUTCOME = _CHARGE + len(COLUMNS)
_ANSWER = _OUTCOME + len(COLUMNS)
_NOTHING = (None,) * (_ANSWER + 1)


def is_taken(rows: list[tuple[Any, ...]]) -> bool:
    """Whether `LOOK` found the request charged: then only `ASK` says all of it."""
    return any(row[_CHARGE] is not None for row in rows)


def found_in(rows: list[tuple[Any, ...]]) -> Found | None:
    """What `ASK` found, in parts, or `LOOK` where it was enough; None without a head.

    No column of a table may be empty, so an empty sequence means: no such row. All rows are fetched, because a cursor
    left half-read, and kept alive by the traceback of an error, would hold SQLite to this state of the ledger.
    """
    if len(rows) > 1:
        raise LedgerTampered("a request has two entries of one kind")
    if not rows:
        return None
    row = rows[0] + _NOTHING[len(rows[0]) :]
    return Found(
        row[:_WHOLE],
        None if row[_WHOLE] is None else row[_WHOLE:_OWN],
        None if row[_OWN] is None else row[_OWN:_CHARGE],
        None if row[_CHARGE] is None else row[_CHARGE:_OUTCOME],
        None if row[_OUTCOME] is None else row[_OUTCOME:_ANSWER],
        row[_ANSWER],
    )

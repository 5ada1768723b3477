"""The two statements of a change on PostgreSQL, prepared once for each connection: one asks, one writes everything.

A change is two messages to the server: begin, lock and ask; write and commit. Each message is one journey, and no
statement is planned twice.
"""

from __future__ import annotations

from itertools import count

from farthing.ledger.changes import Change
from farthing.ledger.questions import ASK
from farthing.ledger.tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD

# One lock for all writers of a ledger, which is known by its head table. Unlike a row, it has a queue of its own, and
# whoever waited for it has nothing to read twice. That the head has not moved is checked again by whoever moves it.
WRITE_LOCK = f"SELECT pg_advisory_xact_lock(4714006, '{HEAD}'::regclass::oid::integer)"
ASK_NAME = "farthing_ask"


def _numbered(statement: str) -> str:
    """A statement with `?` for its parameters, as PREPARE has them."""
    pieces = statement.split("?")
    return "".join(f"{piece}${n}" for n, piece in enumerate(pieces[:-1], 1)) + pieces[-1]


PREPARE_ASK = f"PREPARE {ASK_NAME} (text, text, text, text, text) AS {_numbered(ASK)}"


def write_name(change: Change) -> str:
    """The name of the statement that writes a change of this shape.

    >>> from farthing.ledger.entries import Entry
    >>> write_name(Change(Entry(2, "refused", "d", "", "ada", "curator", 0, "r", "{}", "", "a", "b"), "c"))
    'farthing_write_0_kept'
    """
    answered = "" if change.answer is None else "_answered"
    return f"farthing_write_{len(change.accounts)}_{'new' if change.new else 'kept'}{answered}"


def prepare_write(change: Change) -> str:
    """The statement that writes every row of a change of this shape, or fails as a whole.

    It takes the entry's columns, the seal of the head, and for each account its state, mark, dataset and analyst.
    Where a row that was read is gone, the product at the end is 0, and dividing by it undoes everything.
    """
    types = ["bigint" if name in ("sequence", "time_ns") else "text" for name in COLUMNS] + ["text"]
    mac, previous, seal = _place("mac"), _place("previous"), f"${len(types)}"
    values = ", ".join(f"${n}" for n in range(1, len(COLUMNS) + 1))
    parts = {
        "head": f"UPDATE {HEAD} SET sequence = $1, mac = {mac}, seal = {seal} "
        f"WHERE one = 1 AND sequence = $1 - 1 AND mac = {previous}",
        "entry": f"INSERT INTO {ENTRIES} ({', '.join(COLUMNS)}) VALUES ({values})",
    }
    place = count(len(types) + 1)
    for n in range(len(change.accounts)):
        state, mark, dataset, analyst = (f"${next(place)}" for _ in range(4))
        types += ["text"] * 4
        parts[f"account_{n}"] = (
            f"INSERT INTO {ACCOUNTS} (sequence, state, mac, dataset, analyst) "
            f"VALUES ($1, {state}, {mark}, {dataset}, {analyst})"
            if change.new
            else f"UPDATE {ACCOUNTS} SET sequence = $1, state = {state}, mac = {mark} "
            f"WHERE dataset = {dataset} AND analyst = {analyst}"
        )
    if change.answer is not None:
        types.append("text")
        parts["answer"] = f"INSERT INTO {ANSWERS} (sequence, body) VALUES ($1, ${next(place)})"
    written = ", ".join(f"{name}_done AS ({text} RETURNING 1)" for name, text in parts.items())
    product = " * ".join(f"(SELECT count(*) FROM {name}_done)" for name in parts)
    return f"PREPARE {write_name(change)} ({', '.join(types)}) AS WITH {written} SELECT 1 / ({product})"


def _place(column: str) -> str:
    return f"${1 + COLUMNS.index(column)}"

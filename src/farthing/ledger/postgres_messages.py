"""Messages of several statements to a PostgreSQL server, and its answers, with as little around them as can be.

The driver's cursors cost more time than all that a charge has to work out, and they cost it while others wait for the
lock. So the statements of every charge go to the server through the driver's wrapper of libpq, which quotes what they
hold.
"""

from __future__ import annotations

import select
from itertools import count
from typing import Any

from farthing.errors import LedgerUnavailable
from farthing.ledger.entries import Change
from farthing.ledger.ledger_change import ASK, LOOK
from farthing.ledger.ledger_tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD

# One lock for all writers of a ledger, which is known by its head table. Unlike a row, it has a queue of its own, and
# a writer that waited for it has nothing to read twice. That the head has not moved is checked again before it moves.
# It is let go by a commit that does not wait for the disk, so that the next writer need not wait for it either.
_LOCK = (
    "SELECT pg_catalog.set_config('synchronous_commit', 'off', true), "
    f"pg_catalog.pg_advisory_xact_lock(4714006, '{HEAD}'::regclass::oid::integer)"
)
# A transaction of its own that is durable when it has ended, whatever the user's, the database's or the connection's
# default is. It is written behind everything that it could see, so when it is on disk, all of that is. A standby server
# has nothing that is not on disk elsewhere. Where standby servers must have it as well and somebody ends that wait, the
# server says so by a warning and no error: it must be sent whatever the connection wants to hear.
CONFIRM = (
    "SELECT pg_catalog.set_config('synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit') "
    "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), "
    "pg_catalog.set_config('client_min_messages', 'warning', true), "
    "CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_logical_emit_message(true, 'farthing', '') END"
)
LOCKED, CONFIRMED = "EXECUTE farthing_lock", "EXECUTE farthing_confirm"
ASK_NAME, LOOK_NAME = "farthing_ask", "farthing_look"


def _numbered(statement: str) -> str:
    """A statement with `?` for its parameters, as PREPARE has them."""
    pieces = statement.split("?")
    return "".join(f"{piece}${n}" for n, piece in enumerate(pieces[:-1], 1)) + pieces[-1]


PREPARE_ASK = (
    f"PREPARE farthing_lock AS {_LOCK}; PREPARE farthing_confirm AS {CONFIRM}; "
    f"PREPARE {LOOK_NAME} (text, text, text, text) AS {_numbered(LOOK)}; "
    f"PREPARE {ASK_NAME} (text, text, text, text, text) AS {_numbered(ASK)}"
)


def write_name(change: Change) -> str:
    """The name of the statement that writes a change of this shape.

    >>> from farthing.ledger.entries import Entry
    >>> write_name(Change(Entry(2, "refused", "d", "", "ada", "curator", 0, "r", "{}", "", "a", "b"), "c"))
    'farthing_write_0_kept'
    """
    suffix = "" if change.answer is None else "_answered"
    return f"farthing_write_{len(change.accounts)}_{'new' if change.new else 'kept'}{suffix}"


def prepare_write(change: Change) -> str:
    """The statement that writes every row of a change of this shape, or fails as a whole.

    It takes the entry's columns, the seal of the head, and for each account its state, mac, dataset and analyst.
    Where a row that was read is gone, or is there twice, the entry has no number, or two, and everything is undone.
    """
    types = ["bigint" if name in ("sequence", "time_ns") else "text" for name in COLUMNS] + ["text"]
    mac, previous, seal = _place("mac"), _place("previous"), f"${len(types)}"
    values = ", ".join(f"${n}" for n in range(2, len(COLUMNS) + 1))
    parts = {
        "head": f"UPDATE {HEAD} SET sequence = $1, mac = {mac}, seal = {seal} "
        f"WHERE one = 1 AND sequence = $1 - 1 AND mac = {previous}",
    }
    place = count(len(types) + 1)
    for n in range(len(change.accounts)):
        state, mac, dataset, analyst = (f"${next(place)}" for _ in range(4))
        types += ["text"] * 4
        parts[f"account_{n}"] = (
            f"INSERT INTO {ACCOUNTS} (sequence, state, mac, dataset, analyst) "
            f"VALUES ($1, {state}, {mac}, {dataset}, {analyst})"
            if change.new
            else f"UPDATE {ACCOUNTS} SET sequence = $1, state = {state}, mac = {mac} "
            f"WHERE dataset = {dataset} AND analyst = {analyst}"
        )
    if change.answer is not None:
        types.append("text")
        parts["answer"] = f"INSERT INTO {ANSWERS} (sequence, body) VALUES ($1, ${next(place)})"
    steps = ", ".join(f"{name}_done AS ({text} RETURNING 1)" for name, text in parts.items())
    number = f"(SELECT $1 FROM {', '.join(f'{name}_done' for name in parts)})"
    return (
        f"PREPARE {write_name(change)} ({', '.join(types)}) AS WITH {steps} "
        f"INSERT INTO {ENTRIES} ({', '.join(COLUMNS)}) VALUES ({number}, {values})"
    )


def _place(column: str) -> str:
    return f"${1 + COLUMNS.index(column)}"


_WHOLE_NUMBERS = (20, 21, 23)  # the types bigint, smallint and integer, as PostgreSQL numbers them
Row = tuple[Any, ...]


class Messages:
    """One conversation over a connection of the driver; a server that is silent for `patience` seconds is given up."""

    def __init__(self, driver: Any, patience: float) -> None:
        from psycopg import pq

        self._patience = patience
        self._warning = ""
        driver.add_notice_handler(self._hear)

        self._server = driver.pgconn
        self._literal = pq.Escaping(driver.pgconn).escape_literal
        self._failed = pq.ExecStatus.FATAL_ERROR
        self._readable, self._either = select.poll(), select.poll()
        self._readable.register(self._server.socket, select.POLLIN)
        self._either.register(self._server.socket, select.POLLIN | select.POLLOUT)

    def call(self, name: str, values: tuple[object, ...]) -> bytes:
        """The execution of a prepared statement, ready for a message."""
        literal = self._literal
        spelled = [b"%d" % value if type(value) is int else literal(str(value).encode()) for value in values]
        return b"EXECUTE %s(%s)" % (name.encode(), b",".join(spelled))

    def say(self, message: bytes) -> list[Any]:
        """Send statements and wait for what each of them had for an answer; what follows a failed one is not done."""
        server = self._server
        server.send_query(message)
        while server.flush():
            self._wait(self._either)
            server.consume_input()
        answers, failure = [], None
        while True:
            while server.is_busy():
                self._wait(self._readable)
                server.consume_input()
            answer = server.get_result()
            if answer is None:
                break
            answers.append(answer)
            if answer.status == self._failed:
                failure = answer
        if failure is not None:
            from psycopg.errors import error_from_result

            raise error_from_result(failure)
        return answers

    def confirm(self, message: bytes) -> list[Any]:
        """The same for statements that end with `CONFIRM`: a warning means that it may not be where it must be."""
        self._warning = ""
        answers = self.say(message)
        if self._warning:
            raise LedgerUnavailable(
                f"the server warned that its standby servers may lack what was written ({self._warning})",
                "see the server's log, then retry with the same request id",
            )
        return answers

    def _hear(self, notice: Any) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warning = notice.sqlstate or "WARNING"

    def _wait(self, for_news: select.poll) -> None:
        """Wait until something moves. After a silence the connection is closed: its answers may come at any time."""
        if not for_news.poll(1000 * self._patience):
            self._server.finish()
            raise LedgerUnavailable(f"the server has been silent for {self._patience:g} s")


def rows_of(answer: Any) -> list[Row]:
    """The rows of an answer, of whole numbers and text."""
    columns = range(answer.nfields)
    whole = [answer.ftype(column) in _WHOLE_NUMBERS for column in columns]
    return [
        tuple(_value(answer.get_value(row, column), whole[column]) for column in columns)
        for row in range(answer.ntuples)
    ]


def _value(field: bytes | None, whole: bool) -> int | str | None:
    if field is None:
        return None
    return int(field) if whole else field.decode()

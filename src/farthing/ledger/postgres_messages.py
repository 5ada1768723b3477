"""Messages of several statements to a PostgreSQL server, and its answers, with as little around them as can be.

The driver's cursors cost more time than all that a charge has to work out, and they cost it while others wait for the
lock. So the statements of every charge go to the server through the driver's wrapper of libpq, which quotes what they
hold.
"""

from __future__ import annotations

import select
from typing import Any

from farthing.errors import LedgerUnavailable

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


def _value(found: bytes | None, whole: bool) -> int | str | None:
    if found is None:
        return None
    return int(found) if whole else found.decode()

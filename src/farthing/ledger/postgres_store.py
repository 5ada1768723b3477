"""A ledger on a PostgreSQL server, for many users and machines. Writers queue, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from farthing.errors import LedgerTampered, LedgerUnavailable, MissingExtra
from farthing.ledger.entries import Change
from farthing.ledger.ledger_change import Question, Snapshot, is_taken, snapshot_in
from farthing.ledger.ledger_store import Link, Run, Store
from farthing.ledger.ledger_tables import HEAD, POSTGRES_GUARDS, TABLES, tables
from farthing.ledger.postgres_messages import (
    ASK_NAME,
    CONFIRM,
    CONFIRMED,
    LOCKED,
    LOOK_NAME,
    PREPARE_ASK,
    Messages,
    prepare_write,
    rows_of,
    write_name,
)

_TABLES = ", ".join(f"to_regclass('{table}')" for table in TABLES)
# Prepared statements are others than we think: somebody between us and the server gave us another connection, or
# emptied this one, or a signal came after a statement was prepared and before that was noted.
_MISTAKEN = ("26000", "42P05")
_SCHEMA = (
    f"SELECT coalesce((SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('{HEAD}')), "
    "current_schema()::text)"
)
_MAKING = 4_714_005  # any fixed number: the advisory lock for making the tables


class PostgresStore(Store):
    """The ledger in a database of a server; its tables stand in the schema that the user's search path names."""

    # A writer who waited for the lock must see what the one before it did: READ COMMITTED looks again at every
    # statement, and nothing is read before the lock is had.
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    list_tables = "SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"
    # Kinds and flags and no deparsed text, which another version of the server may spell in another way.
    list_shape = f"""
        WITH t AS (SELECT oid, relname, relkind, relrowsecurity FROM pg_class WHERE oid IN ({_TABLES}))
        SELECT 'table', relname::text, concat_ws(' ', relkind, relrowsecurity) FROM t
        UNION ALL
        SELECT 'index', c.relname::text, concat_ws(' ', t.relname, i.indisunique, i.indisvalid, i.indkey)
        FROM pg_index i JOIN t ON t.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
        UNION ALL
        SELECT 'trigger', concat_ws(' ', t.relname, g.tgname), concat_ws(' ', g.tgtype, p.proname)
        FROM pg_trigger g JOIN t ON t.oid = g.tgrelid JOIN pg_proc p ON p.oid = g.tgfoid WHERE NOT g.tgisinternal
        UNION ALL
        SELECT 'rule', concat_ws(' ', t.relname, r.rulename), r.ev_type::text
        FROM pg_rewrite r JOIN t ON t.oid = r.ev_class
    """
    placeholder = "%s"

    def __init__(self, url: Any, timeout: float) -> None:
        super().__init__(timeout)
        self._url = url
        self.name = public_address(url)

    @property
    def patience(self) -> float:
        """How long the server may be silent: longer than it waits for the lock, so that it can say who is to blame."""
        return 2 * self.timeout + 1

    def driver_errors(self) -> tuple[type[Exception], ...]:
        from sqlalchemy.exc import SQLAlchemyError

        return (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error, UnicodeDecodeError)

    def create_tables(self, link: Link) -> None:
        tables().create_all(link.connection, checkfirst=False)
        for statement in POSTGRES_GUARDS:
            link.connection.exec_driver_sql(statement)

    def new_engine(self) -> Any:
        """An engine whose connections begin and end transactions only on request."""
        import sqlalchemy as sa
        from sqlalchemy.pool import NullPool

        settings = {
            "connect_timeout": max(2, round(self.timeout)),
            # A peer that is gone without a word is noticed, also by who waits without a limit of their own.
            "keepalives": 1,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": round(1000 * self.patience),
        }
        own = {name: value for name, value in settings.items() if name not in self._url.query}
        try:
            return sa.create_engine(
                self._url,
                poolclass=NullPool,
                pool_reset_on_return=None,  # transactions end by hand, and a failed reset would log the driver's text
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
                # In another encoding some names and answers could not be said, or would be read as bytes.
                connect_args={**own, "client_encoding": "utf8"},
            )
        except ImportError:
            raise MissingExtra("ledgers on PostgreSQL", "psycopg", "postgres") from None

    def prepare(self, run: Run) -> None:
        wait = max(1, round(1000 * self.timeout))  # to the server 0 means forever
        settings = {
            "lock_timeout": wait,
            "statement_timeout": 6 * wait,
            # A client that was stopped in the middle must not hold up everybody else.
            "idle_in_transaction_session_timeout": 6 * wait,
        }
        run("SELECT " + ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items()))

    def place(self, link: Link) -> str:
        """Where the ledger is, or would be made: another server, database or schema is another place."""
        server = link.connection.connection.dbapi_connection.info
        (schema,) = link.run(_SCHEMA).fetchone()
        return f"{server.host}:{server.port}/{server.dbname}/{schema}"

    def link(self, connection: Any) -> Link:
        """Statements are prepared by hand: the driver forgets all of them whenever a transaction is undone."""
        driver = connection.connection.dbapi_connection
        driver.prepare_threshold = None
        return Link(driver.execute, connection, Messages(driver, self.patience))

    def begin(self, link: Link, question: Question) -> Snapshot | None:
        """Begin, wait for the lock and ask, in one message to the server."""
        snapshot = self._snapshot(link, question, f"{self.begin_writing}; {LOCKED}; ".encode())
        return self.with_others(link, question, snapshot)

    def snapshot_of(self, link: Link, question: Question) -> Snapshot | None:
        """The answer to a question, in whatever transaction there is."""
        return self.with_others(link, question, self._snapshot(link, question, b""))

    def _snapshot(self, link: Link, question: Question, before: bytes) -> Snapshot | None:
        messages = _prepared(link, ASK_NAME, lambda: PREPARE_ASK)
        if question.fresh:
            rows = rows_of(messages.say(before + messages.call(LOOK_NAME, question.parameters[:-1]))[-1])
            if not is_taken(rows):
                return snapshot_in(rows)
            before = b""
        return snapshot_in(rows_of(messages.say(before + messages.call(ASK_NAME, question.parameters))[-1]))

    def finish(self, link: Link, change: Change | None) -> None:
        """Write everything, let the next writer in and wait for the disk, in one message.

        What follows a statement that fails is not done. The next writer builds on what may not be on disk yet; but
        it is before theirs in the server's log, and no disk has the later part of a log without the earlier.
        """
        if change is None:
            (answer,) = link.messages.say(b"COMMIT")
            _check_committed(answer.command_status.decode())
            self.confirm(link)
            return
        name = write_name(change)
        messages = _prepared(link, name, lambda: prepare_write(change))
        stored = () if change.answer is None else (change.answer,)
        accounts = (value for account in change.accounts for value in account[1:])
        values = (*change.entry, change.seal, *accounts, *stored)
        answers = messages.confirm(messages.call(name, values) + f"; COMMIT; {CONFIRMED}".encode())
        _check_committed(answers[1].command_status.decode())

    def confirm(self, link: Link) -> None:
        """Others may be waiting for the disk with what was seen here."""
        link.messages.confirm(CONFIRM.encode())

    def confirm_snapshot(self) -> None:
        """By the connection for writing, because the snapshot's own is in the middle of a transaction."""
        with self._alone():
            link = self._linked()
            try:
                self.confirm(link)
            except BaseException as problem:
                self.undo(link, problem)
                raise

    def commit(self, run: Run) -> None:
        """PostgreSQL answers COMMIT with ROLLBACK, and no error, when the transaction had failed before."""
        _check_committed(run("COMMIT").statusmessage)

    def undo(self, link: Link, problem: BaseException) -> None:
        """After Ctrl-C nobody knows which answers are still to come: waiting for them may take forever.

        A writer that lost the connection, and the lock with it, after asking may find that others have continued since.
        That is no proof of an edit, so it comes out as a lost connection.
        """
        if isinstance(problem, LedgerTampered):
            try:
                link.messages.say(b"ROLLBACK")
            except BaseException:
                self._discard()
                raise
            return
        mistaken = getattr(problem, "sqlstate", None) in _MISTAKEN
        if isinstance(problem, Exception) and not mistaken:
            try:
                link.messages.say(b"ROLLBACK")
            except BaseException:
                self._discard()
            return
        with suppress(Exception):
            link.connection.connection.dbapi_connection.close()
        self._discard()

    def notes(self, run: Run) -> list[str]:
        """Whether the server keeps what it has confirmed."""
        return [
            f"the server runs with {name}=off, so a power cut there can lose charges that were confirmed"
            for name in ("fsync", "full_page_writes")
            if run(f"SHOW {name}").fetchone()[0] == "off"
        ]

    def prepare_long_reading(self, run: Run) -> None:
        """A verification may take as long as it takes. What it will see is settled by this first question."""
        run("SELECT set_config('statement_timeout', '0', true)")

    def lock_making(self, run: Run) -> None:
        """Of several who find no tables, one makes them."""
        run(f"SELECT pg_advisory_xact_lock({_MAKING})")


def public_address(url: Any) -> str:
    """An address for messages: without the password, and without the settings, which may hold one."""
    text: str = url.set(query={}).render_as_string(hide_password=True)
    return text


def _prepared(link: Link, name: str, statements: Callable[[], str]) -> Messages:
    """The messages of a connection that knows a statement."""
    messages: Messages = link.messages
    if name not in link.prepared:
        messages.say(statements().encode())
        link.prepared.add(name)
    return messages


def _check_committed(answer: str | None) -> None:
    if answer != "COMMIT":
        raise LedgerUnavailable("the server undid the transaction")

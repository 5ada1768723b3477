"""A ledger on a PostgreSQL server, for many users and machines. Writers queue on the head row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from farthing.errors import LedgerUnavailable, MissingExtra
from farthing.ledger.store import Link, Run, Store
from farthing.ledger.tables import TABLES

_TABLES = ", ".join(f"to_regclass('{table}')" for table in TABLES)
_MAKING = 4_714_005  # any fixed number: the advisory lock of whoever makes the tables


class PostgresStore(Store):
    """The ledger in a database of a server; its tables stand in the schema that the user's search path names."""

    # A writer who waited for the head row must see what the one before it did: READ COMMITTED looks anew at every
    # statement, and nothing is read before the row is held.
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    lock_head = " FOR UPDATE"
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
        self.name = shown(url)

    def new_engine(self) -> Any:
        """An engine whose connections begin and end transactions only when told to."""
        import sqlalchemy as sa
        from sqlalchemy.pool import NullPool

        try:
            return sa.create_engine(
                self._url,
                poolclass=NullPool,
                pool_reset_on_return=None,  # transactions end by hand, and a failed reset would log the driver's text
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
                connect_args={"connect_timeout": max(2, round(self.timeout))},
            )
        except ImportError:
            raise MissingExtra("ledgers on PostgreSQL", "psycopg", "postgres") from None

    def prepare(self, run: Run) -> None:
        """Durable commits whatever the server's default is, and no waiting for ever."""
        wait = max(1, round(1000 * self.timeout))  # to the server 0 means for ever
        settings = {
            "lock_timeout": wait,
            "statement_timeout": 6 * wait,
            # A client that was stopped in the middle must not hold up everybody else.
            "idle_in_transaction_session_timeout": 6 * wait,
        }
        run(
            "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
            "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false), "
            + ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
        )

    def link(self, connection: Any) -> Link:
        """With a pipeline: statements are sent without waiting for the answers of those before them."""
        driver = connection.connection.dbapi_connection
        return Link(driver.execute, connection, lambda: _quiet_pipeline(driver))

    def commit(self, run: Run, pipeline: Any) -> None:
        """PostgreSQL answers COMMIT with ROLLBACK, and no error, when the transaction had failed before."""
        answer = run("COMMIT")
        pipeline.sync()
        if answer.statusmessage != "COMMIT":
            raise LedgerUnavailable("the server undid the transaction")

    def prepare_long_reading(self, run: Run) -> None:
        """A verification may take as long as it takes."""
        run("SET LOCAL statement_timeout = 0")

    def lock_making(self, run: Run) -> None:
        """Of several who find no tables, one makes them."""
        run(f"SELECT pg_advisory_xact_lock({_MAKING})")


def shown(url: Any) -> str:
    """An address for messages: without the password, and without the settings, which may hold one."""
    text: str = url.set(query={}).render_as_string(hide_password=True)
    return text


@contextmanager
def _quiet_pipeline(driver: Any) -> Iterator[Any]:
    """A pipeline that never learns why it ends: told of an error, the driver would log the server's text."""
    pipeline = driver.pipeline()
    try:
        entered = pipeline.__enter__()
        try:
            yield entered
        except Exception:
            with suppress(Exception):
                pipeline.__exit__(None, None, None)
            raise
        pipeline.__exit__(None, None, None)
    except Exception:
        raise
    except BaseException:
        # After Ctrl-C in the middle nobody knows which answers are still to come: waiting for them may take for ever.
        with suppress(Exception):
            driver.close()
            pipeline.__exit__(None, None, None)
        raise

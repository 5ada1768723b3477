"""The tables, once for both databases, and the seat belts that keep entries from being changed."""

from __future__ import annotations

from typing import Any

ENTRIES, HEAD, ACCOUNTS, ANSWERS = (
    "farthing_entries",
    "farthing_head",
    "farthing_accounts",
    "farthing_answers",
)
TABLES = (ENTRIES, HEAD, ACCOUNTS, ANSWERS)
COLUMNS = (
    "sequence", "kind", "dataset", "analyst", "actor", "role", "time_ns", "request_id", "body",
    "totals", "previous", "mac",
)  # fmt: skip

_SQLITE = """
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""
_POSTGRES_FUNCTION = """
CREATE FUNCTION farthing_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'append-only'; END $$
"""
_POSTGRES = """
CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION farthing_append_only()
"""


def create_tables(connection: Any) -> None:
    """Make the tables of an empty database, inside the transaction that writes the first entry."""
    import sqlalchemy as sa

    metadata = sa.MetaData()
    sa.Table(
        ENTRIES,
        metadata,
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in COLUMNS[1:6]),
        sa.Column("time_ns", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in COLUMNS[7:]),
        # A request id has one charge and one outcome; other entries may repeat it.
        *(
            sa.Index(
                f"{ENTRIES}_{name}",
                "request_id",
                unique=True,
                sqlite_where=sa.text(condition),
                postgresql_where=sa.text(condition),
            )
            for name, condition in (
                ("charge", "kind = 'charge'"),
                ("outcome", "kind IN ('released', 'forfeited')"),
            )
        ),
    )
    sa.Table(
        HEAD,
        metadata,
        sa.Column("one", sa.Integer, sa.CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
        sa.Column("ledger", sa.Text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("mac", sa.Text, nullable=False),
        sa.Column("seal", sa.Text, nullable=False),
    )
    sa.Table(
        ACCOUNTS,
        metadata,
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("mac", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    sa.Table(
        ANSWERS,
        metadata,
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    metadata.create_all(connection, checkfirst=False)
    for statement in _guards(connection.dialect.name):
        connection.exec_driver_sql(statement)


def _guards(dialect: str) -> list[str]:
    protected = (ENTRIES, ANSWERS)
    if dialect == "sqlite":
        both = [_SQLITE.format(table=table) for table in protected]
        return [f"{part.strip()} END;" for text in both for part in text.split("END;") if part.strip()]
    return [_POSTGRES_FUNCTION, *(_POSTGRES.format(table=table) for table in protected)]

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

_PROTECTED = (ENTRIES, ANSWERS)
SQLITE_GUARDS = [
    f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table}\n"
    "BEGIN SELECT RAISE(ABORT, 'append-only'); END;"
    for table in _PROTECTED
    for change in ("UPDATE", "DELETE")
]
POSTGRES_GUARDS = [
    """
CREATE FUNCTION farthing_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'append-only'; END $$
""",
    *(
        f"""
CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION farthing_append_only()
"""
        for table in _PROTECTED
    ),
]


def tables() -> Any:
    """The tables as SQLAlchemy knows them, which is asked only when a ledger is made."""
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
    return metadata

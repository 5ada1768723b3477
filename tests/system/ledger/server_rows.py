"""The rows of a ledger on PostgreSQL as its administrator can read and exchange them, without farthing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from system.ledger.history import Rows
from system.ledger.places import Place


@contextmanager
def administrator(place: Place, facts: dict[str, Any]) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A connection that may do anything to the ledger's database."""
    address = {
        "host": facts["host"], "port": facts["port"], "dbname": place.url.rpartition("/")[2],
        "user": "postgres", "password": facts["passwords"]["postgres"],
    }  # fmt: skip
    with psycopg.connect(**address, row_factory=dict_row) as server:
        yield server


def rows_on_server(place: Place, facts: dict[str, Any]) -> Rows:
    """All that the tables hold, in an order that does not depend on when it was written."""
    with administrator(place, facts) as server:
        names = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        return {
            row["tablename"]: server.execute(
                sql.SQL("SELECT * FROM {} ORDER BY 1, 2").format(sql.Identifier(row["tablename"]))
            ).fetchall()
            for row in names
        }


def write_rows_on_server(place: Place, facts: dict[str, Any], rows: Rows) -> None:
    """Put these rows in place of those that are there, with the triggers switched off."""
    with administrator(place, facts) as server:
        server.execute("SET session_replication_role = replica")
        for table, own in rows.items():
            name = sql.Identifier(table)
            server.execute(sql.SQL("DELETE FROM {}").format(name))
            for row in own:
                columns = sql.SQL(", ").join(map(sql.Identifier, row))
                marks = sql.SQL(", ").join(sql.Placeholder() * len(row))
                insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(name, columns, marks)
                server.execute(insert, list(row.values()))


def forget_witness(place: Place) -> None:
    """Without the witness, the chain alone has to tell."""
    assert place.key is not None
    for path in Path(place.key).parent.glob("*.witness"):
        path.unlink()

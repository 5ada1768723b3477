"""What a ledger's speed is measured against: a raw insert, and the least that a chain of entries needs on a server.

The bare chain takes the lock, reads the head and the account, writes the next entry, moves the head and the account,
and commits, with as many bytes as a charge and the same messages to the server. It works out nothing: no price, no
mark, no check. What a charge takes longer is the ledger's own; the rest is the server's and the machine's.
"""

from __future__ import annotations

from collections.abc import Callable

Client = Callable[[int, int], None]

_TEXT = "x" * 1_200  # as many bytes as a charge has in all
_MARK, _BODY, _TOTALS, _STATE = "0" * 64, "b" * 400, "t" * 100, "s" * 440
_TABLES = """
CREATE TABLE bare_head (one INTEGER PRIMARY KEY, sequence BIGINT, mac TEXT, seal TEXT);
CREATE TABLE bare_accounts (dataset TEXT PRIMARY KEY, sequence BIGINT, state TEXT, mac TEXT);
CREATE TABLE bare_entries (sequence BIGINT PRIMARY KEY, request_id TEXT UNIQUE, body TEXT, totals TEXT, mac TEXT);
INSERT INTO bare_head VALUES (1, 0, '', '');
INSERT INTO bare_accounts VALUES ('people', 0, '', '');
"""
_PREPARE = """
PREPARE bare_lock AS SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(4714007);
PREPARE bare_confirm AS SELECT pg_logical_emit_message(true, 'bare', '');
PREPARE bare_look (text) AS
    SELECT h.sequence, h.mac, h.seal, a.sequence, a.state, a.mac, e.sequence FROM bare_head h
    LEFT JOIN bare_accounts a ON a.dataset = 'people' LEFT JOIN bare_entries e ON e.request_id = $1 WHERE h.one = 1;
PREPARE bare_write (bigint, text, text, text, text, text, text) AS WITH
    head_done AS (UPDATE bare_head SET sequence = $1, mac = $2, seal = $3
        WHERE one = 1 AND sequence = $1 - 1 RETURNING 1),
    account_done AS (UPDATE bare_accounts SET sequence = $1, state = $4, mac = $2
        WHERE dataset = 'people' RETURNING 1)
    INSERT INTO bare_entries (sequence, request_id, body, totals, mac)
    VALUES ((SELECT $1 FROM head_done, account_done), $5, $6, $7, $2);
"""


def raw_client(url: str) -> Client:
    """One durable insert of as many bytes as a charge has."""
    if url.startswith("postgresql"):
        import psycopg

        server = psycopg.connect(url, autocommit=True)
        server.execute("SET synchronous_commit = on")
        sql = "INSERT INTO raw (client, n, body) VALUES (%s, %s, %s)"

        def insert_there(client: int, n: int) -> None:
            server.execute(sql, (client, n, _TEXT))

        return insert_there
    import sqlite3

    store = sqlite3.connect(url, timeout=60, isolation_level=None)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = FULL")

    def insert(client: int, n: int) -> None:
        store.execute("BEGIN IMMEDIATE")
        store.execute("INSERT INTO raw (client, n, body) VALUES (?, ?, ?)", (client, n, _TEXT))
        store.execute("COMMIT")

    return insert


def make_raw_table(url: str) -> None:
    """The table of the raw inserts, in a file or database of its own."""
    table = "CREATE TABLE raw (id {} PRIMARY KEY, client INTEGER, n INTEGER, body TEXT)"
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url, autocommit=True) as server:
            server.execute(table.format("BIGSERIAL"))
        return
    import sqlite3

    store = sqlite3.connect(url, isolation_level=None)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute(table.format("INTEGER"))
    store.close()


def make_bare_tables(url: str) -> None:
    """The tables of the bare chain."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        server.execute(_TABLES)


def bare_client(url: str) -> Client:
    """One durable step of a chain on a server."""
    import psycopg
    from psycopg import pq

    driver = psycopg.connect(url, autocommit=True)
    driver.execute("SET synchronous_commit = on")
    driver.execute(_PREPARE)
    server = driver.pgconn  # kept open by the client that is returned

    def say(message: str) -> pq.abc.PGresult:
        found = server.exec_(message.encode())
        if found.status == pq.ExecStatus.FATAL_ERROR:
            raise RuntimeError(found.get_error_message())
        return found

    def step(client: int, n: int) -> None:
        request = f"{client}-{n}"
        found = say(f"BEGIN; EXECUTE bare_lock; EXECUTE bare_look('{request}')")
        number = int(found.get_value(0, 0) or 0) + 1
        say(
            f"EXECUTE bare_write({number}, '{_MARK}', '{_MARK}', '{_STATE}', '{request}', '{_BODY}', '{_TOTALS}'); "
            "COMMIT; EXECUTE bare_confirm"
        )

    return step

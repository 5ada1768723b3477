"""What can happen to a ledger on PostgreSQL short of a crash: edits, locks, lost connections, no right to write."""

from __future__ import annotations

import copy
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from farthing.errors import LedgerError, LedgerTampered, LedgerUnavailable
from farthing.ledger import Ledger
from farthing.ledger.entries import Change, Charge
from farthing.ledger.ledger_store import Link
from farthing.ledger.postgres_store import PostgresStore
from farthing.ledger.tamper_evidence import Witness
from system.ledger.checks import problems
from system.ledger.flips import EDITS, verdict
from system.ledger.history import made
from system.ledger.nursery import PATIENCE
from system.ledger.places import DATASET, OTHERS, Place, postgres_place
from system.ledger.proxy import stalling_proxy
from system.ledger.server_rows import administrator, forget_witness, rows_on_server, write_rows_on_server

EPSILON = 0.001


@pytest.fixture
def place(postgres_server: dict[str, Any], tmp_path: Path) -> Place:
    found = postgres_place(postgres_server, tmp_path)
    found.prepare(1.0)
    return found


@pytest.mark.slow
def test_edits_by_the_administrator_are_found(postgres_server: dict[str, Any], tmp_path: Path) -> None:
    place = postgres_place(postgres_server, tmp_path)
    history = made(place, 8)
    older = rows_on_server(place, postgres_server)
    with place.open() as ledger:
        history.live(ledger, 4, 8)
    pristine, chance, left = rows_on_server(place, postgres_server), random.Random(9), [*EDITS] * 2
    while left:  # each kind in turn, until it has changed something as often as it stands there
        rows = copy.deepcopy(pristine)
        told = left[0](rows, older, chance)
        try:
            write_rows_on_server(place, postgres_server, rows)
        except (psycopg.DataError, psycopg.IntegrityError):  # the database itself does not take it
            continue
        if rows_on_server(place, postgres_server) == pristine:
            continue
        del left[0]
        forget_witness(place)
        assert verdict(place, history, same=False) == "refused", told
    write_rows_on_server(place, postgres_server, pristine)
    assert verdict(place, history, same=True) == "works"


@pytest.mark.slow
def test_an_older_state_of_the_whole_database_is_refused(postgres_server: dict[str, Any], tmp_path: Path) -> None:
    place = postgres_place(postgres_server, tmp_path)
    history = made(place, 3)
    older = rows_on_server(place, postgres_server)
    with place.open() as ledger:
        history.live(ledger, 5, 3)
    write_rows_on_server(place, postgres_server, older)
    with pytest.raises(LedgerTampered):
        place.open()
    forget_witness(place)
    with place.open(role="auditor") as ledger:
        assert ledger.verify().ok and not ledger.verify(receipt=history.receipts[-1]).ok


def test_a_row_put_back_while_the_ledger_is_open_is_refused(place: Place, postgres_server: dict[str, Any]) -> None:
    """An account as it was, with its genuine mark: spending would begin again from there."""
    with place.open() as ledger:
        ledger.charge(DATASET, EPSILON, request_id="one")
        older = rows_on_server(place, postgres_server)
        ledger.charge(DATASET, EPSILON, request_id="two")
        newer = rows_on_server(place, postgres_server)
        write_rows_on_server(place, postgres_server, newer | {"farthing_accounts": older["farthing_accounts"]})
        with pytest.raises(LedgerTampered):
            ledger.charge(DATASET, EPSILON, request_id="three")


def test_somebody_who_holds_the_head_makes_it_unavailable_and_not_for_ever(
    place: Place, postgres_server: dict[str, Any]
) -> None:
    with place.open(timeout=5.0) as ledger:
        with administrator(place, postgres_server) as other:
            other.execute("SELECT * FROM farthing_head FOR UPDATE")
            with pytest.raises(LedgerUnavailable):
                ledger.charge(DATASET, EPSILON, request_id="one")
        assert not ledger.charge(DATASET, EPSILON, request_id="one").repeated
    assert problems(place, [], EPSILON, 1000) == []


@pytest.mark.slow
def test_connections_that_are_cut_again_and_again_lose_nothing(place: Place, postgres_server: dict[str, Any]) -> None:
    stop = threading.Event()

    def cut() -> None:
        with administrator(place, postgres_server) as server:
            while not stop.wait(0.02):
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    said: list[dict[str, Any]] = []
    failures = 0
    with place.open() as ledger:
        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            while len(said) < 60 or (failures < 3 and len(said) < 900):
                try:
                    charge = ledger.charge(DATASET, EPSILON, request_id=str(len(said)))
                    said.append({"charged": str(len(said)), "sequence": charge.sequence})
                except LedgerUnavailable:
                    failures += 1
        finally:
            stop.set()
            cutter.join()
    assert failures > 0
    assert problems(place, said, EPSILON, 1000) == []


@pytest.mark.slow
def test_a_user_who_may_only_read_gets_a_clean_refusal(place: Place, postgres_server: dict[str, Any]) -> None:
    with administrator(place, postgres_server) as server:
        server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    secret = postgres_server["passwords"]
    reader = Place(place.url.replace(f"owner:{secret['owner']}", f"reader:{secret['reader']}"), place.key)
    with reader.open(role="auditor") as ledger:
        assert ledger.verify().ok
    with reader.open() as ledger, pytest.raises(LedgerError) as refusal:
        ledger.charge(DATASET, EPSILON, request_id="one")
    assert secret["reader"] not in str(refusal.value)
    assert problems(place, [], EPSILON, 1000) == []


@pytest.mark.slow
def test_a_ledger_that_was_dropped_is_not_begun_anew(place: Place, postgres_server: dict[str, Any]) -> None:
    with administrator(place, postgres_server) as server:
        for table in ("entries", "head", "accounts", "answers"):
            server.execute(f"DROP TABLE farthing_{table}")
        server.execute("DROP FUNCTION farthing_append_only")
    with pytest.raises(LedgerTampered, match="has seen one there"):
        place.open()
    forget_witness(place)
    with place.open() as ledger:
        assert ledger.datasets() == []


@pytest.mark.slow
def test_another_schema_of_the_database_is_another_place(place: Place, postgres_server: dict[str, Any]) -> None:
    with administrator(place, postgres_server) as server:
        server.execute("CREATE SCHEMA second AUTHORIZATION owner")
    other = Place(f"{place.url}?options=-csearch_path%3Dsecond", f"{place.key}.second")
    with other.open() as ledger, place.open() as first:
        assert ledger.datasets() == [] and first.datasets() == sorted((DATASET, *OTHERS)) and ledger.id != first.id
    with administrator(place, postgres_server) as server:
        server.execute("DROP SCHEMA second CASCADE; CREATE SCHEMA second AUTHORIZATION owner")
    with pytest.raises(LedgerTampered, match="has seen one there"):
        other.open()


def test_the_first_charge_after_a_lost_connection_can_be_repeated(
    place: Place, postgres_server: dict[str, Any]
) -> None:
    """A fresh handle asks before it charges, and what it asked must not keep the dead connection."""
    with place.open() as ledger:
        with administrator(place, postgres_server) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(LedgerUnavailable):
            ledger.charge(DATASET, EPSILON, request_id="one")
        assert not ledger.charge(DATASET, EPSILON, request_id="one").repeated


@pytest.mark.slow
def test_names_and_answers_of_every_script_and_quote_come_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    words = [
        "a'b",
        "\\",
        "\\'; COMMIT; --",
        "%s",
        "%(x)s",
        "$1",
        "$$",
        "\u6f22\u30bd\u8868",
        "\u02bc\uff07\u2019",
    ]
    for options in ("", "?options=-cstandard_conforming_strings%3Doff"):
        with Place(place.url + options, place.key).open() as ledger:
            for word in words:
                name = f"{options}{word}"
                ledger.release(ledger.charge(DATASET, EPSILON, request_id=name, digest=word), word * 9)
                stored = ledger.stored(name)
                assert stored is not None and stored.answer == word * 9
            assert ledger.verify().ok


def test_a_server_that_may_lose_what_it_confirmed_is_noted(place: Place, postgres_server: dict[str, Any]) -> None:
    with administrator(place, postgres_server) as server:
        found = server.execute("SHOW fsync").fetchone()
    assert found is not None
    with place.open(role="auditor") as ledger:
        notes = ledger.verify().notes
    assert any("fsync=off" in note for note in notes) is (found["fsync"] == "off")


_LOOKS: dict[str, Callable[[Ledger, Charge], object]] = {
    "the same request": lambda ledger, charge: ledger.charge(DATASET, EPSILON, request_id=charge.request_id),
    "the same release": lambda ledger, charge: ledger.release(charge, "another answer"),
    "a stored answer": lambda ledger, charge: ledger.stored(charge.request_id),
    "a budget": lambda ledger, _: ledger.budget(DATASET),
    "all entries": lambda ledger, _: list(ledger.entries()),
    "all datasets": lambda ledger, _: ledger.datasets(),
    "a verification": lambda ledger, _: ledger.verify(),
    "a new charge": lambda ledger, _: ledger.charge(DATASET, EPSILON, request_id="new"),
}


def test_nobody_sees_what_a_crash_could_undo(place: Place, postgres_server: dict[str, Any]) -> None:
    """Others let the next writer in before the disk has theirs; whoever sees it waits for the disk as well."""
    with place.open() as ledger, administrator(place, postgres_server) as server:
        server.autocommit = True
        server.execute("SET synchronous_commit = off")
        charge = ledger.charge(DATASET, EPSILON, request_id="one")
        ledger.release(charge, "an answer")
        for name, look in _LOOKS.items():
            written = server.execute("SELECT pg_logical_emit_message(true, 'test', '') AS place").fetchone()
            assert written is not None
            link = ledger._store._writer
            assert link is not None
            link.run("RESET ALL")  # as poolers do: no setting of the connection is relied on
            look(ledger, charge)
            found = server.execute(
                "SELECT pg_current_wal_flush_lsn() > %s::pg_lsn AS safe", [written["place"]]
            ).fetchone()
            assert found is not None and found["safe"], name


def test_whoever_lost_the_lock_half_way_raises_no_alarm(
    place: Place, postgres_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that slept while the server ended its transaction compares an old answer with a new witness."""
    with place.open() as ledger, place.open() as other:
        ledger.charge(DATASET, EPSILON, request_id="one")
        read = Witness.read

        def read_late(witness: Witness, *known: Any, **head: Any) -> tuple[int, str] | None:
            monkeypatch.setattr(Witness, "read", read)
            with administrator(place, postgres_server) as server:
                server.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                )
            other.charge(DATASET, EPSILON, request_id="two")
            return read(witness, *known, **head)

        monkeypatch.setattr(Witness, "read", read_late)
        with pytest.raises(LedgerUnavailable):
            ledger.charge(DATASET, EPSILON, request_id="three")
        assert not ledger.charge(DATASET, EPSILON, request_id="three").repeated and ledger.verify().ok


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM farthing_accounts", "is gone"),
        ("UPDATE farthing_head SET mac = 'x'", "is gone"),
        ("INSERT INTO farthing_accounts SELECT * FROM farthing_accounts", "a row twice"),
    ],
)
def test_rows_changed_between_reading_and_writing_are_noticed(
    place: Place, postgres_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch, change: str, words: str
) -> None:
    with place.open() as ledger:
        with administrator(place, postgres_server) as server:
            server.execute("ALTER TABLE farthing_accounts DROP CONSTRAINT farthing_accounts_pkey")
        ledger.charge(DATASET, EPSILON, request_id="one")
        finish = PostgresStore.finish

        def finish_late(store: PostgresStore, link: Link, decided: Change | None) -> None:
            with administrator(place, postgres_server) as server:
                server.execute(change)
            finish(store, link, decided)

        monkeypatch.setattr(PostgresStore, "finish", finish_late)
        with pytest.raises(LedgerTampered, match=words):
            ledger.charge(DATASET, EPSILON, request_id="two")


@pytest.mark.slow
def test_an_answer_larger_than_a_connection_takes_at_once_is_stored(place: Place) -> None:
    answer = "0123456789" * 800_000
    with place.open() as ledger:
        ledger.release(ledger.charge(DATASET, EPSILON, request_id="one"), answer)
        stored = ledger.stored("one")
    assert stored is not None and stored.answer == answer


@pytest.mark.slow
def test_a_network_that_falls_silent_is_given_up_and_the_charge_is_found_again(
    place: Place, postgres_server: dict[str, Any]
) -> None:
    """What was sent may have arrived: the server commits, and its answer is what gets lost."""
    with stalling_proxy(postgres_server["host"], postgres_server["port"]) as proxy:
        there = Place(place.url.replace(f":{postgres_server['port']}/", f":{proxy.port}/"), place.key)
        with there.open(timeout=5.0) as ledger:
            ledger.charge(DATASET, EPSILON, request_id="one")
            proxy.swallow_after(b"farthing_write")
            began = time.monotonic()
            with pytest.raises(LedgerUnavailable, match="silent"):
                ledger.charge(DATASET, EPSILON, request_id="two")
            assert time.monotonic() - began < PATIENCE  # and not forever
            proxy.heal()
            assert ledger.charge(DATASET, EPSILON, request_id="two").repeated
            assert ledger.verify().ok
    assert problems(place, [], EPSILON, 1000) == []


def test_a_user_who_may_not_confirm_is_told_which_right_is_missing(
    place: Place, postgres_server: dict[str, Any]
) -> None:
    with administrator(place, postgres_server) as server:
        found = server.execute(
            "SELECT oid::regprocedure::text AS name FROM pg_proc WHERE proname = 'pg_logical_emit_message'"
        )
        for function in found.fetchall():  # its parameters differ between versions
            server.execute(f"REVOKE EXECUTE ON FUNCTION {function['name']} FROM PUBLIC")
    with (
        pytest.raises(LedgerUnavailable, match="may not execute pg_logical_emit_message"),
        place.open() as ledger,
    ):
        ledger.charge(DATASET, EPSILON, request_id="one")

"""Transactions: what a failure in the middle leaves behind, and what an error of the database becomes."""

from __future__ import annotations

import dis
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import make_url

from farthing.errors import BudgetExceeded, FarthingError, InvalidValue, LedgerTampered, LedgerUnavailable
from farthing.ledger import Ledger, open_ledger
from farthing.ledger.ledger_change import ASK, Question, Transaction
from farthing.ledger.ledger_store import Link, translated
from farthing.ledger.postgres_store import PostgresStore


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db", timeout=0.3) as made:
        made.register("people", 1.0)
        yield made


class _Stop(BaseException):
    pass


@pytest.mark.parametrize(
    "statement", ["INSERT INTO farthing_entries", "UPDATE farthing_accounts", "UPDATE farthing_head"]
)
@pytest.mark.parametrize("kind", [_Stop, KeyboardInterrupt, RuntimeError])
def test_a_charge_that_is_broken_off_never_happened(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, statement: str, kind: type[BaseException]
) -> None:
    from farthing.ledger import ledger_store as store

    genuine = ledger._store._writer
    assert genuine is not None

    def run(text: str, *parameters: Any) -> Any:
        cursor = genuine.run(text, *parameters)
        if text.startswith(statement):
            raise kind
        return cursor

    monkeypatch.setattr(ledger._store, "_writer", store.Link(run, genuine.connection))
    with pytest.raises(kind):
        ledger.charge("people", 0.5, request_id="r-1")
    monkeypatch.setattr(ledger._store, "_writer", genuine)
    assert ledger.stored("r-1") is None and ledger.budget("people").count == 0
    assert not ledger.charge("people", 0.5, request_id="r-1").repeated
    assert ledger.verify().ok


def test_a_charge_that_is_broken_off_after_its_commit_is_found_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger._witness, "note", stop)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge("people", 0.5, request_id="r-1")
    monkeypatch.undo()
    again = ledger.charge("people", 0.5, request_id="r-1")
    assert again.repeated and again.state == "reserved" and ledger.budget("people").count == 1


def test_a_charge_in_the_middle_of_a_charge_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler might do it: the inner charge must not end the transaction of the outer one."""
    from farthing.ledger import charge_lifecycle

    genuine, inner = charge_lifecycle.known, []

    def meddling(tx: Any, dataset: str) -> Any:
        if not inner:
            inner.append("tried")
            with pytest.raises(LedgerUnavailable, match="this thread is in the middle of using it"):
                ledger.charge("people", 0.5, request_id="inner")
        return genuine(tx, dataset)

    monkeypatch.setattr(charge_lifecycle, "known", meddling)
    ledger.charge("people", 0.5, request_id="outer")
    assert ledger.stored("inner") is None and ledger.stored("outer") is not None
    assert ledger.verify().ok


def test_a_thread_that_holds_on_to_the_ledger_makes_it_unavailable(ledger: Ledger) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._store.reading():
            entered.set()
            leave.wait(600)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(600)
    with pytest.raises(LedgerUnavailable, match="another thread"):
        ledger.charge("people", 0.1, request_id="r-1")
    leave.set()
    holder.join()
    ledger.charge("people", 0.1, request_id="r-1")


def test_ctrl_c_as_the_lock_is_had_does_not_lock_this_thread_out(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = ledger._store._threads

    class Interrupted:
        def acquire(self, timeout: float) -> bool:
            genuine.acquire(timeout=timeout)
            raise KeyboardInterrupt

        def release(self) -> None:
            genuine.release()

    monkeypatch.setattr(ledger._store, "_threads", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        ledger.charge("people", 0.1, request_id="r-1")
    monkeypatch.undo()
    other = threading.Thread(target=lambda: ledger.charge("people", 0.1, request_id="r-1"))
    other.start()
    other.join()
    assert ledger.stored("r-1") is not None


class _Signal:
    """Raises where a signal handler could: after the `at`-th call that one of `Store._alone`'s lines has made."""

    def __init__(self, at: int) -> None:
        self.left = at
        self._called = False

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name != "_alone":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if self._called:
                self.left -= 1
                if not self.left:
                    sys.settrace(None)
                    raise _Stop
            self._called = dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
        return self


def test_a_signal_at_any_moment_locks_no_other_thread_out(ledger: Ledger) -> None:
    outer, at = sys.gettrace(), 0
    while True:
        at += 1
        signal = _Signal(at)
        sys.settrace(signal)
        try:
            ledger.budget("people")
        except _Stop:
            pass
        finally:
            sys.settrace(outer)
        counts: list[int] = []
        other = threading.Thread(target=lambda found=counts: found.append(ledger.budget("people").count))
        other.start()
        other.join()
        assert counts == [0]
        if signal.left:
            break
    assert at > 3


def test_threads_share_one_ledger_without_overdrawing_it(ledger: Ledger) -> None:
    ledger._store.timeout = 60.0
    outcomes: list[str] = []

    def spend(me: int) -> None:
        for number in range(4):
            try:
                ledger.charge("people", 0.1, request_id=f"{me}-{number}")
                outcomes.append("spent")
            except BudgetExceeded:
                outcomes.append("refused")

    threads = [threading.Thread(target=spend, args=(me,)) for me in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 10 + ["spent"] * 10
    assert ledger.verify().ok


def test_what_was_asked_is_not_taken_for_an_old_state_because_another_thread_went_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.grant("people", "bob", 0.5)
    genuine, done = ledger._store.ask, []

    def overtaken(question: Question, read: Any) -> Any:
        found = genuine(question, read)
        name = f"r-{len(done)}"
        other = threading.Thread(
            target=lambda: done.append(ledger.charge("people", 0.1, request_id=name, analyst="bob"))
        )
        monkeypatch.setattr(ledger._store, "ask", genuine)
        other.start()
        other.join()
        return found

    for seen in range(3):
        monkeypatch.setattr(ledger._store, "ask", overtaken)
        assert ledger.budget("people", "bob").count == seen and len(done) == seen + 1
    assert ledger.budget("people", "bob").count == 3


def test_a_question_that_fails_leaves_no_broken_connection_behind(ledger: Ledger) -> None:
    genuine = ledger._store._writer
    assert genuine is not None
    genuine.connection.connection.dbapi_connection.close()
    with pytest.raises(LedgerUnavailable, match="lost"):
        ledger.budget("people")
    assert ledger.budget("people").count == 0


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_child_uses_connections_of_its_own(ledger: Ledger) -> None:
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            ledger.charge("people", 0.25, request_id="child")
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    ledger.charge("people", 0.25, request_id="parent")
    assert ledger.budget("people").count == 2 and ledger.verify().ok


def test_an_error_that_is_kept_does_not_hold_the_ledger_to_the_past(ledger: Ledger, tmp_path: Path) -> None:
    """As an interactive session keeps the last one: its traceback keeps every variable of the charge alive."""
    ledger.charge("people", 0.1, request_id="r-1")
    with pytest.raises(InvalidValue, match="for something else") as kept:
        ledger.charge("people", 0.2, request_id="r-1")
    with open_ledger(tmp_path / "study.db") as other:
        other.charge("people", 0.1, request_id="r-2")
    assert ledger.budget("people").count == 2
    assert not ledger.charge("people", 0.1, request_id="r-3").repeated
    assert kept.value.name == "request_id"


def test_another_program_that_holds_the_file_makes_it_unavailable(ledger: Ledger, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="another program holds the file"):
        ledger.charge("people", 0.1, request_id="r-1")
    other.execute("ROLLBACK")
    other.close()
    assert not ledger.charge("people", 0.1, request_id="r-1").repeated


def test_entries_cannot_be_changed_by_accident(ledger: Ledger, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    ledger.release(ledger.charge("people", 0.1, request_id="r-1"), "x")
    for statement in (
        "UPDATE farthing_entries SET actor = 'x'",
        "DELETE FROM farthing_entries",
        "UPDATE farthing_answers SET body = 'x'",
        "DELETE FROM farthing_answers",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(statement)
    other.close()


def test_a_question_is_answered_by_indexes_alone(ledger: Ledger, tmp_path: Path) -> None:
    """Otherwise the millionth charge would cost more than the first."""
    other = sqlite3.connect(tmp_path / "study.db")
    plan = other.execute(f"EXPLAIN QUERY PLAN {ASK}", Question("people", "bob", "r-1").parameters).fetchall()
    other.close()
    steps = [step[3] for step in plan]
    assert len(steps) == 6 and all(step.startswith("SEARCH") for step in steps)
    assert sum("farthing_entries_charge" in step for step in steps) == 1
    assert sum("farthing_entries_outcome" in step for step in steps) == 1


def test_a_request_with_two_charges_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """Which the index rules out, unless somebody takes it away while the ledger is open."""
    ledger.charge("people", 0.1, request_id="r-1")
    other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    other.execute("DROP INDEX farthing_entries_charge")
    other.execute(
        "INSERT INTO farthing_entries SELECT sequence + 9, kind, dataset, analyst, actor, role, time_ns, request_id, "
        "body, totals, previous, mac FROM farthing_entries WHERE request_id = 'r-1'"
    )
    other.close()
    with pytest.raises(LedgerTampered, match="two entries of one kind"):
        ledger.charge("people", 0.1, request_id="r-1")


class _Driver(Exception):
    def __init__(self, **codes: str) -> None:
        super().__init__("a private text")
        for name, value in codes.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (_Driver(sqlite_errorname="SQLITE_FULL"), LedgerUnavailable, "full"),
        (_Driver(sqlite_errorname="SQLITE_IOERR_WRITE"), LedgerUnavailable, "disk failed"),
        (_Driver(sqlite_errorname="SQLITE_READONLY_DBMOVED"), LedgerUnavailable, "read-only"),
        (_Driver(sqlite_errorname="SQLITE_BUSY_SNAPSHOT"), LedgerUnavailable, "another program"),
        (_Driver(sqlite_errorname="SQLITE_CORRUPT_VTAB"), LedgerTampered, "damaged"),
        (_Driver(sqlite_errorname="SQLITE_NOTADB"), LedgerTampered, "not a ledger"),
        (_Driver(sqlite_errorname="SQLITE_NEWLY_INVENTED"), LedgerUnavailable, "SQLITE_NEWLY_INVENTED"),
        (_Driver(sqlstate="53100"), LedgerUnavailable, "run out"),
        (_Driver(sqlstate="57P01"), LedgerUnavailable, "57P01"),
        (_Driver(sqlstate="25006"), LedgerUnavailable, "read-only"),
        (_Driver(sqlstate="0A000"), LedgerUnavailable, "a standby"),
        (_Driver(sqlstate="22P05"), LedgerUnavailable, "encoding"),
        (_Driver(sqlstate="42P01"), LedgerTampered, "not those of a ledger"),
        (_Driver(sqlstate="42P05"), LedgerUnavailable, "shared with other clients"),
        (_Driver(sqlstate="26000"), LedgerUnavailable, "shared with other clients"),
        (_Driver(sqlstate="42501"), LedgerUnavailable, "lacks a right"),
        (_Driver(sqlstate="23505"), LedgerTampered, "the head does not know"),
        (_Driver(), LedgerUnavailable, "lost or refused"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column"), LedgerTampered, "cannot be read"),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), LedgerUnavailable, "lost"),
    ],
)
def test_errors_of_databases_lose_their_text(error: Exception, kind: type[FarthingError], words: str) -> None:
    found = translated(error)
    assert type(found) is kind and words in str(found) and "private" not in str(found)


def test_a_commit_that_the_server_undid_is_no_commit() -> None:
    class _Answer:
        statusmessage = "ROLLBACK"

    with pytest.raises(LedgerUnavailable, match="undid"):
        PostgresStore.commit(object.__new__(PostgresStore), lambda _: _Answer())


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (KeyboardInterrupt(), ["close"]),
        (ValueError(), ["ROLLBACK"]),
        (_Driver(sqlstate="26000"), ["close"]),
        (_Driver(sqlstate="42P05"), ["close"]),
    ],
)
def test_a_conversation_broken_off_by_ctrl_c_is_not_waited_for(problem: BaseException, told: list[str]) -> None:
    """Which answers of the server are still to come is not known then, and asking could take forever."""
    heard: list[str] = []
    driver = SimpleNamespace(close=lambda: heard.append("close"))
    connection = SimpleNamespace(connection=SimpleNamespace(dbapi_connection=driver))
    store = PostgresStore(make_url("postgresql://db/x"), 1.0)
    messages = SimpleNamespace(say=lambda message: heard.append(message.decode()))
    store.undo(Link(heard.append, connection, messages), problem)
    assert heard == told


def test_what_a_broken_off_transaction_saw_proves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    """On a server it may have seen what a crash then undid: that would look like an older state forever."""
    question, noted = Question("people"), ledger._memory.accounts
    with open_ledger(tmp_path / "study.db") as other:
        other.charge("people", 0.25, request_id="r-1")
    before = dict(noted)

    def break_off(tx: Transaction) -> None:
        assert tx.whole() is not None
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ledger._append(question, break_off)
    assert noted == before
    ledger._append(question, Transaction.whole)
    assert noted[("people", "")] > before[("people", "")]

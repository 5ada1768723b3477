"""Workers in threads of this process: what they write down is what the ledger says, whoever dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farthing.errors import AnswerForfeited, BudgetExceeded, EngineError, InvalidValue, LedgerUnavailable
from farthing.server.auth.permissions import Caller
from farthing.server.jobs import job_worker
from farthing.server.jobs.job_runner import MOST_ATTEMPTS, Kind, Progress, TakenOver, perform
from farthing.server.jobs.job_worker import SLOTS, Worker, WorkerProcesses
from farthing.server.services.app_state import State
from farthing.server.services.job_queue import submitted
from farthing.server.settings import Settings
from farthing.server.store import job_rows as rows
from farthing.server.store.store_tables import jobs, users

BOB = Caller("bob", "analyst", frozenset({"spend"}), "token")
COST = 0.25
LONG = 600  # seconds, for what takes a moment on an idle machine


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    found = State.open(Settings(ledger=str(tmp_path / "study.db"), data=tmp_path, workers=0), WorkerProcesses)
    with found.store.begin() as connection:
        people = {
            "role": "analyst",
            "password_hash": None,
            "oidc_subject": None,
            "disabled": False,
            "created": 0,
        }
        connection.execute(users.insert().values(name="bob", **people))
    found.root.register("people", 1.0)
    found.root.grant("people", "bob", 1.0)
    yield found
    found.close()


class Clock:
    """Time that passes when a test says so: on a busy machine seconds pass between two lines."""

    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(job_worker, "time", made)
    return made


@contextmanager
def working(state: State, kind: Kind, *, patience: float = 15.0, slots: int = SLOTS) -> Iterator[Worker]:
    worker = Worker(state, kinds={"release": kind}, patience=patience, look=0.02, slots=slots)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.drain()
        thread.join(LONG)
        assert not thread.is_alive()


def ask(state: State, request_id: str) -> None:
    submitted(state, BOB, kind="release", request_id=request_id, dataset="people", asked={})


def job(state: State, request_id: str) -> rows.Job:
    found = rows.job_of(state.store, f"bob:{request_id}")
    assert found is not None
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def ended(state: State, request_id: str) -> rows.Job:
    until(lambda: job(state, request_id).is_ended)
    return job(state, request_id)


def charge_and_answer(job: rows.Job, state: State, progress: Progress) -> None:
    """What a release does to a ledger."""
    ledger = state.root.acting(job.owner, job.role)
    progress(0.0)
    charge = ledger.charge("people", COST, request_id=job.id)
    if not charge.repeated:
        ledger.release(charge, '"an answer"')


def test_a_job_is_done_and_says_so(state: State) -> None:
    with working(state, charge_and_answer):
        ask(state, "r-1")
        found = ended(state, "r-1")
    assert (found.state, found.progress, found.error) == ("released", 1.0, None)
    assert state.root.budget("people", "bob").spent_upper == COST


@pytest.mark.parametrize(
    ("problem", "state_after", "code"),
    [
        (BudgetExceeded("too much", requested=1, remaining=0), "refused", "budget_exceeded"),
        (InvalidValue("epsilon", -1, "must be > 0"), "refused", "invalid_value"),
        (EngineError("postgres", "ConnectionLost"), "failed", "engine_error"),
        (LedgerUnavailable("it is away"), "failed", "ledger_unavailable"),
        (KeyError("a secret of a row"), "failed", "internal"),
    ],
)
def test_what_fails_before_the_charge_charges_nothing(
    state: State, problem: Exception, state_after: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(job: rows.Job, state: State, progress: Progress) -> None:
        raise problem

    with working(state, fail):
        ask(state, "r-1")
        found = ended(state, "r-1")
    assert found.error is not None
    assert (found.state, found.error["code"]) == (state_after, code)
    assert state.root.stored("bob:r-1") is None and state.root.budget("people").count == 0
    assert "secret" not in caplog.text and "secret" not in str(found.error)


@pytest.mark.slow
def test_what_fails_after_the_charge_is_forfeited_with_its_reason(state: State) -> None:
    def lose(job: rows.Job, state: State, progress: Progress) -> None:
        charge = state.root.charge("people", COST, request_id=job.id)
        state.root.forfeit(charge, "the engine died")
        raise AnswerForfeited(job.id, "the engine died")

    def crash(job: rows.Job, state: State, progress: Progress) -> None:
        state.root.charge("people", COST, request_id=job.id)
        raise KeyError("a secret of a row")

    for request_id, kind, reason in (
        ("r-1", lose, "the engine died"),
        ("r-2", crash, "no answer was recorded"),
    ):
        with working(state, kind):
            ask(state, request_id)
            found = ended(state, request_id)
        assert found.state == "forfeited" and found.error is not None
        assert found.error["code"] == "answer_forfeited" and reason in found.error["message"]
    assert state.root.budget("people").spent_upper == 2 * COST
    assert state.root.budget("people").reserved == 0.0


def test_an_answer_that_was_recorded_before_a_failure_is_released(state: State) -> None:
    def stumble(job: rows.Job, state: State, progress: Progress) -> None:
        charge_and_answer(job, state, progress)
        raise LedgerUnavailable("the answer is there, but nobody heard it")

    with working(state, stumble):
        ask(state, "r-1")
        assert ended(state, "r-1").state == "released"


@pytest.mark.slow
def test_what_a_dead_worker_had_is_settled_by_the_ledger(state: State) -> None:
    """Answered: released. Charged: forfeited. Neither: done by another worker."""
    for request_id in ("answered", "charged", "neither"):
        ask(state, request_id)
        assert rows.take(state.store, "dead", ["release"]) is not None
    charge_and_answer(job(state, "answered"), state, lambda share: None)
    state.root.charge("people", COST, request_id="bob:charged")
    rows.declare_dead(state.store, "dead")
    done: list[str] = []

    def note(job: rows.Job, state: State, progress: Progress) -> None:
        done.append(job.id)
        charge_and_answer(job, state, progress)

    with working(state, note):
        found = {request_id: ended(state, request_id) for request_id in ("answered", "charged", "neither")}
    assert {request_id: one.state for request_id, one in found.items()} == {
        "answered": "released",
        "charged": "forfeited",
        "neither": "released",
    }
    assert done == ["bob:neither"] and found["neither"].attempts == 1
    assert state.root.budget("people").spent_upper == 3 * COST


def test_a_worker_counts_as_dead_when_its_heartbeat_stands_still_whatever_clocks_show(
    state: State, clock: Clock
) -> None:
    ask(state, "r-1")
    rows.take(state.store, "silent", ["release"])
    watcher = Worker(state, kinds={"release": charge_and_answer}, patience=0.05)
    for _ in range(3):
        rows.beat(state.store, "silent")
        watcher._look_after_the_dead()
        clock.now += 0.06
        rows.beat(state.store, "silent")
        watcher._look_after_the_dead()
        assert job(state, "r-1").worker == "silent"
    clock.now += 0.06
    watcher._look_after_the_dead()
    assert (job(state, "r-1").state, job(state, "r-1").attempts) == ("queued", 1)


@pytest.mark.slow
def test_a_job_that_its_own_worker_dropped_is_noticed_while_it_lives(state: State) -> None:
    with working(state, charge_and_answer) as worker:
        row = rows.body_text("people", "0", {}, {})
        rows.add(state.store, "bob:r-1", "bob", "analyst", "none that it takes", row)
        with state.store.begin() as connection:
            dropped = {"state": "running", "worker": worker.name, "heartbeat": 1, "kind": "release"}
            connection.execute(jobs.update().values(**dropped))
        assert ended(state, "r-1").state == "released"


def test_a_watcher_that_was_away_itself_starts_to_watch_anew(state: State, clock: Clock) -> None:
    ask(state, "r-1")
    rows.take(state.store, "slow", ["release"])
    watcher = Worker(state, kinds={"release": charge_and_answer}, patience=0.05)
    watcher._look_after_the_dead()
    clock.now += 0.06
    clock.now += 60  # the store did not answer for a minute
    watcher._look_after_the_dead()
    assert job(state, "r-1").worker == "slow"
    clock.now += 0.06
    watcher._look_after_the_dead()
    assert job(state, "r-1").state == "queued"


def test_a_job_that_kills_its_workers_is_given_up(state: State) -> None:
    ask(state, "r-1")

    def never(job: rows.Job, state: State, progress: Progress) -> None:
        raise AssertionError

    for _ in range(MOST_ATTEMPTS):
        assert rows.take(state.store, "dead", ["release"]) is not None
        rows.declare_dead(state.store, "dead")
        worker = Worker(state, kinds={"release": never})
        worker._look_after_the_dead()
    found = job(state, "r-1")
    assert found.state == "failed" and found.error is not None and found.error["code"] == "internal"


def test_a_job_that_was_taken_over_is_stopped_before_it_pays(state: State) -> None:
    ask(state, "r-1")
    mine = rows.take(state.store, "slow", ["release"])
    assert mine is not None
    rows.declare_dead(state.store, "slow")

    def late(job: rows.Job, state: State, progress: Progress) -> None:
        (seen,) = rows.running(state.store)
        assert rows.take_over(state.store, seen, "quick")
        with pytest.raises(TakenOver):
            progress(0.0)
        raise TakenOver

    perform(mine, state, "slow", {"release": late})
    assert (job(state, "r-1").state, job(state, "r-1").worker) == ("running", "quick")
    assert state.root.budget("people").count == 0


def test_a_drained_worker_finishes_what_it_has_and_takes_no_more(state: State) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(job: rows.Job, state: State, progress: Progress) -> None:
        begun.set()
        assert go_on.wait(LONG)
        charge_and_answer(job, state, progress)

    # With one slot it cannot be in the middle of taking another job when it is drained.
    with working(state, slow, slots=1) as worker:
        ask(state, "r-1")
        assert begun.wait(LONG)
        worker.drain()
        ask(state, "r-2")
        go_on.set()
    assert (job(state, "r-1").state, job(state, "r-2").state) == ("released", "queued")


def test_a_long_job_does_not_hold_up_a_short_one(state: State) -> None:
    go_on = threading.Event()

    def one_slow(job: rows.Job, state: State, progress: Progress) -> None:
        if job.id.endswith("slow"):
            assert go_on.wait(LONG)
        charge_and_answer(job, state, progress)

    with working(state, one_slow):
        ask(state, "slow"), ask(state, "quick")
        assert ended(state, "quick").state == "released"
        assert job(state, "slow").state == "running"
        go_on.set()


def test_progress_is_written_down(state: State) -> None:
    told, seen = threading.Event(), threading.Event()

    def half(job: rows.Job, state: State, progress: Progress) -> None:
        progress(0.5)
        told.set()
        assert seen.wait(LONG)
        charge_and_answer(job, state, lambda share: None)

    with working(state, half):
        ask(state, "r-1")
        assert told.wait(LONG)
        assert (job(state, "r-1").progress, job(state, "r-1").state) == (0.5, "running")
        seen.set()
        assert ended(state, "r-1").progress == 1.0


@pytest.mark.parametrize("change", [{"disabled": True}, {"role": "auditor"}, {"role": "removed"}])
def test_nothing_is_spent_for_somebody_who_was_shut_out(state: State, change: dict[str, object]) -> None:
    ask(state, "r-1")
    with state.store.begin() as connection:
        connection.execute(users.update().values(**change))
    with working(state, charge_and_answer):
        found = ended(state, "r-1")
    assert found.state == "refused" and found.error is not None and found.error["code"] == "not_allowed"
    assert state.root.budget("people").count == 0

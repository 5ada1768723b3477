"""Rows of jobs: taken once, told by their owner only, put back or settled when their worker is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.errors import RequestRefused
from farthing.server.auth.permissions import Caller
from farthing.server.jobs.job_worker import WorkerProcesses
from farthing.server.services.app_state import State
from farthing.server.services.job_queue import MOST_WAITING, submitted, visible_job
from farthing.server.settings import Settings
from farthing.server.store import job_rows as rows

BOB = Caller("bob", "analyst", frozenset({"spend"}), "token")
CARL = Caller("carl", "analyst", frozenset({"spend"}), "token")
ADA = Caller("ada", "curator", frozenset({"spend"}), "token")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    found = State.open(Settings(ledger=str(tmp_path / "study.db"), data=tmp_path, workers=0), WorkerProcesses)
    yield found
    found.close()


def ask(state: State, request_id: str, who: Caller = BOB, dataset: str = "people", **asked: object) -> rows.Job:
    return submitted(state, who, kind="release", request_id=request_id, dataset=dataset, asked=asked)


def test_the_same_request_is_one_job(state: State) -> None:
    first = ask(state, "r-1", epsilon=0.5)
    assert ask(state, "r-1", epsilon=0.5) == first
    assert (first.id, first.state, first.owner) == ("bob:r-1", "queued", "bob")


def test_another_body_under_the_same_id_is_a_conflict(state: State) -> None:
    ask(state, "r-1", epsilon=0.5)
    for words in ({"epsilon": 0.6}, {"epsilon": 0.5, "fit": True}):
        with pytest.raises(RequestRefused) as refused:
            ask(state, "r-1", **words)
        assert refused.value.code == "conflict"
    with pytest.raises(RequestRefused):
        ask(state, "r-1", dataset="others", epsilon=0.5)


def test_ids_of_two_people_do_not_meet(state: State) -> None:
    assert ask(state, "r-1", BOB).id != ask(state, "r-1", CARL).id
    with pytest.raises(RequestRefused) as refused:
        visible_job(state, CARL, "release", "bob:r-1")
    assert refused.value.code == "not_found"
    assert visible_job(state, BOB, "release", "r-1") == visible_job(state, ADA, "release", "bob:r-1")


@pytest.mark.slow
def test_jobs_are_taken_once_and_oldest_first(state: State) -> None:
    ids = [ask(state, f"r-{number}").id for number in range(20)]
    taken: list[str] = []
    lock = threading.Lock()

    def work(name: str) -> None:
        while (job := rows.take(state.store, name, ["release"])) is not None:
            with lock:
                taken.append(job.id)

    threads = [threading.Thread(target=work, args=(f"w-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(ids)
    assert rows.take(state.store, "w-1", ["release"]) is None
    ask(state, "early"), ask(state, "late")
    first = rows.take(state.store, "w-1", ["release"])
    assert first is not None and first.id == "bob:early"


def test_kinds_that_a_worker_does_not_know_are_left(state: State) -> None:
    ask(state, "r-1")
    assert rows.take(state.store, "w-1", ["session"]) is None


def test_only_the_worker_of_a_job_may_end_it(state: State) -> None:
    ask(state, "r-1")
    rows.take(state.store, "w-1", ["release"])
    assert not rows.write_progress(state.store, "bob:r-1", "w-2", 0.5)
    assert not rows.end(state.store, "bob:r-1", "w-2", "released")
    assert rows.write_progress(state.store, "bob:r-1", "w-1", 0.5)
    assert rows.end(state.store, "bob:r-1", "w-1", "released")
    assert not rows.end(state.store, "bob:r-1", "w-1", "refused")
    found = rows.job_of(state.store, "bob:r-1")
    assert found is not None and (found.state, found.progress) == ("released", 1.0)


def test_what_was_refused_is_tried_again_when_asked_again(state: State) -> None:
    ask(state, "r-1", epsilon=0.5)
    rows.take(state.store, "w-1", ["release"])
    rows.end(state.store, "bob:r-1", "w-1", "refused", {"code": "budget_exceeded", "message": "", "fields": {}})
    again = ask(state, "r-1", epsilon=0.5)
    assert (again.state, again.error) == ("queued", None)


@pytest.mark.parametrize("ended", ["released", "forfeited"])
def test_what_was_paid_is_never_done_again(state: State, ended: str) -> None:
    ask(state, "r-1")
    rows.take(state.store, "w-1", ["release"])
    rows.end(state.store, "bob:r-1", "w-1", ended)
    assert ask(state, "r-1").state == ended
    assert rows.take(state.store, "w-1", ["release"]) is None


def test_a_job_is_taken_over_once_and_only_where_it_stood_still(state: State) -> None:
    ask(state, "r-1")
    seen = rows.take(state.store, "w-1", ["release"])
    assert seen is not None
    rows.beat(state.store, "w-1")
    assert not rows.take_over(state.store, seen, "w-2")  # it has moved since
    (seen,) = rows.running(state.store)
    assert rows.take_over(state.store, seen, "w-2")
    assert not rows.take_over(state.store, seen, "w-3")


def test_lists_are_of_one_person_and_one_dataset(state: State) -> None:
    ask(state, "r-1", BOB), ask(state, "r-2", BOB, dataset="100% _"), ask(state, "r-3", CARL)
    assert [job.id for job in rows.listed(state.store, "release", "bob")] == ["bob:r-2", "bob:r-1"]
    assert [job.id for job in rows.listed(state.store, "release", dataset="100% _")] == ["bob:r-2"]
    assert [job.id for job in rows.listed(state.store, "release", dataset="people")] == [
        "carl:r-3",
        "bob:r-1",
    ]
    assert rows.listed(state.store, "session") == [] and rows.counted(state.store) == {"queued": 3}


@pytest.mark.slow
def test_nobody_fills_the_queue(state: State) -> None:
    for number in range(MOST_WAITING):
        ask(state, f"r-{number}")
    with pytest.raises(RequestRefused) as refused:
        ask(state, "one-more")
    assert refused.value.code == "rate_limited"
    assert ask(state, "r-1", CARL).state == "queued"
    assert ask(state, "r-1").state == "queued"  # a retry is no new one

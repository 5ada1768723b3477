"""The curator checks, charges before it reads, records before it answers, and draws once for a request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from asking import Rows, plan, released, spent, state_of, the_people
from farthing.curator import Answered, Curator, stored_answer, unit_of
from farthing.curator import curator as module
from farthing.curator.questions import PlanQuestion
from farthing.data import Count, Sum, dataset
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger import Ledger
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace, ReportNoisyMax


def test_an_answer_is_charged_recorded_and_given(ledger: Ledger, rows: Rows) -> None:
    found = released(ledger)
    assert not found.repeated and rows.reads == 1
    assert set(found.answers) == {"people", "years"}
    assert all(array.dtype == np.int64 and array.shape == (1,) for array in found.answers.values())
    assert spent(ledger) == pytest.approx(0.25) and state_of(ledger) == "released"
    assert found.receipt == ledger.receipt("r-1") and ledger.verify(found.receipt).ok


def test_the_same_request_returns_what_was_recorded_and_reads_no_row(ledger: Ledger, rows: Rows) -> None:
    first, again = released(ledger), released(ledger)
    assert again.repeated and rows.reads == 1 and again.receipt == first.receipt
    assert {n: a.tolist() for n, a in again.answers.items()} == {n: a.tolist() for n, a in first.answers.items()}
    assert spent(ledger) == pytest.approx(0.25)


def test_a_request_without_an_id_gets_a_fresh_one(ledger: Ledger) -> None:
    first, second = released(ledger, None), released(ledger, None)
    assert first.request_id != second.request_id
    assert spent(ledger) == pytest.approx(0.5)
    assert ledger.stored(first.request_id) is not None


@pytest.mark.parametrize(
    "other",
    [
        lambda curator: curator.release(the_people(), plan(0.2), ledger_name="survey", request_id="r-1"),
        lambda curator: curator.release(the_people().where("age > 40"), plan(), ledger_name="survey", request_id="r-1"),
        lambda curator: curator.answer(
            the_people(), "people", Count(), DiscreteLaplace(0.25), ledger_name="survey", request_id="r-1"
        ),
    ],
    ids=["other noise", "other rows", "other door"],
)
def test_a_request_id_stands_for_one_question(ledger: Ledger, rows: Rows, other: Callable[[Curator], Answered]) -> None:
    released(ledger)
    with pytest.raises(InvalidValue, match="was charged before for something else"):
        other(Curator(ledger))
    assert rows.reads == 1 and spent(ledger) == pytest.approx(0.25)


# Before the charge: nothing changes


def test_a_budget_for_persons_is_not_spent_on_answers_about_rows(ledger: Ledger, rows: Rows) -> None:
    by_person = dataset(
        pa.table({"age": [30, 45], "person": [1, 1]}), unit="person", max_rows=1, schema={"age": (0, 110)}
    )
    Curator(ledger).register(by_person, "persons", epsilon=1.0)
    before = ledger.verify().head
    with pytest.raises(InvalidValue, match="must be 'person, add-remove'"):
        Curator(ledger).release(the_people(), plan(), ledger_name="persons")
    assert ledger.verify().head == before and rows.reads == 0


def test_protecting_groups_of_the_registered_unit_is_welcome(ledger: Ledger) -> None:
    threes = the_people().group_privacy(3)
    assert str(unit_of(threes)) == "row, add-remove, groups of 3"
    Curator(ledger).release(threes, plan(people=threes), ledger_name="survey")
    Curator(ledger).register(threes, "threes", epsilon=1.0)
    with pytest.raises(InvalidValue, match="groups of 3"):
        Curator(ledger).release(the_people(), plan(), ledger_name="threes")


def test_noise_made_for_closer_neighbours_is_refused_before_the_charge(ledger: Ledger, rows: Rows) -> None:
    with pytest.raises(InvalidValue, match="l1 sensitivity of 'people'=1: must be at least 3"):
        Curator(ledger).release(the_people().group_privacy(3), plan(), ledger_name="survey")
    assert spent(ledger) == 0 and rows.reads == 0


@pytest.mark.parametrize(
    ("aggregate", "mechanism", "rule"),
    [
        (Sum("age"), DiscreteLaplace(0.1), "l1_sensitivity=1: must be at least 110"),
        (Sum("age"), DiscreteGaussian(4.0), "l2_sensitivity=1: must be at least 110"),
        (Count(), DiscreteLaplace(0.1, cells=2), "cells=2: must be 1"),
        (Count(), DiscreteLaplace(0.1, grid=0.5), "must state l1_sensitivity"),
        (Count(), ReportNoisyMax(0.1), "must state l1_sensitivity"),
    ],
    ids=["laplace", "gaussian", "cells", "grid", "no sensitivity"],
)
def test_a_mechanism_that_does_not_fit_is_refused_before_the_charge(
    ledger: Ledger, rows: Rows, aggregate: Any, mechanism: Any, rule: str
) -> None:
    with pytest.raises(InvalidValue, match=rule):
        Curator(ledger).answer(the_people(), "x", aggregate, mechanism, ledger_name="survey")
    assert spent(ledger) == 0 and rows.reads == 0


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1"])
def test_a_time_limit_is_a_number_of_seconds(ledger: Ledger, timeout: Any) -> None:
    with pytest.raises(InvalidValue, match="timeout"):
        released(ledger, timeout=timeout)
    assert spent(ledger) == 0


def test_an_unknown_name_is_refused(ledger: Ledger, rows: Rows) -> None:
    with pytest.raises(InvalidValue, match="nobody"):
        Curator(ledger).release(the_people(), plan(), ledger_name="nobody")
    assert rows.reads == 0


def test_a_refusal_reads_nothing_and_poisons_nothing(ledger: Ledger, rows: Rows) -> None:
    with pytest.raises(BudgetExceeded) as refusal:
        Curator(ledger).release(the_people(), plan(1.5), ledger_name="survey", request_id="r-1")
    assert refusal.value.remaining.epsilon == 1.0  # type: ignore[attr-defined]
    assert rows.reads == 0 and spent(ledger) == 0
    assert not released(ledger, "r-2").repeated
    assert not released(ledger, "r-1").repeated  # a refused request was never charged, so its id is free


def test_an_analyst_spends_a_grant_and_no_more(ledger: Ledger, rows: Rows) -> None:
    ledger.grant("survey", "ada", 0.3)
    ada = Curator(ledger, analyst="ada")
    ada.release(the_people(), plan(), ledger_name="survey")
    with pytest.raises(BudgetExceeded):
        ada.release(the_people(), plan(), ledger_name="survey")
    assert rows.reads == 1 and ledger.budget("survey", "ada").count == 1


# Many callers


def test_threads_with_one_request_id_get_one_draw(ledger: Ledger, rows: Rows) -> None:
    rows.then = lambda: time.sleep(0.1)
    found: list[Answered] = []
    workers = [threading.Thread(target=lambda: found.append(released(ledger))) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert rows.reads == 1 and len(found) == 6
    assert len({tuple(each.answers["years"].tolist()) for each in found}) == 1
    assert sorted(each.repeated for each in found) == [False] + [True] * 5
    assert spent(ledger) == pytest.approx(0.25)


def test_a_caller_with_patience_waits_for_the_answer_of_another_process(
    ledger: Ledger, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes have no common lock; here the lock is taken away from two threads."""
    monkeypatch.setattr(module, "_turn_of", lambda *_: module._Turn())
    running = threading.Event()

    def slowly() -> None:
        running.set()
        time.sleep(0.3)

    rows.then = slowly
    found: list[Answered] = []
    worker = threading.Thread(target=lambda: found.append(released(ledger)))
    worker.start()
    assert running.wait(600)
    again = released(ledger, timeout=600)
    worker.join()
    assert again.repeated and rows.reads == 1
    assert again.answers["years"].tolist() == found[0].answers["years"].tolist()


# The small door


def test_one_mechanism_can_be_asked_by_itself(ledger: Ledger, rows: Rows) -> None:
    curator = Curator(ledger)
    mechanism = DiscreteLaplace(0.25, l1_sensitivity=110)
    found = curator.answer(the_people(), "years", Sum("age"), mechanism, ledger_name="survey", request_id="r-1")
    again = curator.answer(the_people(), "years", Sum("age"), mechanism, ledger_name="survey", request_id="r-1")
    assert again.repeated and rows.reads == 1
    assert found.answers["years"].shape == () and found.answers == again.answers
    assert spent(ledger) == pytest.approx(0.25)


def test_a_question_of_any_kind_goes_through_the_same_door(ledger: Ledger, rows: Rows) -> None:
    question = PlanQuestion(plan(), post_processing=lambda answers: {"names": sorted(answers)})
    first = Curator(ledger).run(the_people(), question, ledger_name="survey", request_id="r-1")
    again = Curator(ledger).run(the_people(), question, ledger_name="survey", request_id="r-1")
    assert first.finished == again.finished == {"names": ["people", "years"]}
    assert again.repeated and rows.reads == 1 and spent(ledger) == pytest.approx(0.25)


def test_a_secret_sample_is_charged_as_one(ledger: Ledger) -> None:
    Curator(ledger).answer(
        the_people().sample(0.1), "people", Count(), DiscreteLaplace(0.5), ledger_name="survey", request_id="r-1"
    )
    assert 0 < spent(ledger) < 0.1


def test_a_child_does_not_wait_for_a_thread_of_its_parent(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked in the middle of a request, it has the turn of a thread that does not exist in it."""
    mine = module._turn_of(ledger, "r-1")
    assert module._turn_of(ledger, "r-1") is mine
    monkeypatch.setattr(module.os, "getpid", lambda: 1)
    assert module._turn_of(ledger, "r-1") is not mine


@pytest.mark.parametrize("request_id", [5, "", ["r-1"], "r\n1", "r" * 201])
def test_what_is_no_request_id_is_refused_before_the_charge(ledger: Ledger, request_id: Any) -> None:
    with pytest.raises(InvalidValue, match="request_id"):
        released(ledger, request_id=request_id)
    assert spent(ledger) == 0


@pytest.mark.parametrize("text", ["41", "{}", '{"answers": 5}', "not JSON", "[]"])
def test_an_answer_of_somebody_else_is_no_answer_of_a_curator(ledger: Ledger, text: str) -> None:
    ledger.release(ledger.charge("survey", 0.1, request_id="r-1"), text)
    with pytest.raises(InvalidValue, match="curator's release"):
        stored_answer(ledger, "r-1")

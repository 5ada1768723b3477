"""The curator charges before it reads, records before it answers, and draws once for a request, whatever fails."""

from __future__ import annotations

import secrets
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing.curator import Answered, Curator, unit_of
from farthing.curator import curator as module
from farthing.data import Count, Dataset, Sum, connection, dataset
from farthing.data.engines.duckdb import quiet
from farthing.data.running import rows_of
from farthing.errors import (
    AnswerForfeited,
    BudgetExceeded,
    EngineError,
    InvalidValue,
    LedgerUnavailable,
)
from farthing.ledger import Ledger, open_ledger
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace, ReportNoisyMax
from farthing.release.measurements import Measurements
from farthing.release.noise import Noise
from farthing.release.slots import Slot

PEOPLE = dataset(pa.table({"age": [30, 45, 51], "person": [1, 1, 2]}), schema={"age": (0, 110)})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as made:
        Curator(made).register(PEOPLE, "survey", epsilon=1.0)
        yield made


class Rows:
    """Counts how often private rows are read, and does something else on the way if it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        self.then: Callable[[], object] = lambda: None
        exact = Dataset.exact

        def counted(*arguments: Any, **named: Any) -> Any:
            self.reads += 1
            self.then()
            return exact(*arguments, **named)

        monkeypatch.setattr(Dataset, "exact", counted)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    return Rows(monkeypatch)


def plan(epsilon: float = 0.25, people: Dataset = PEOPLE) -> Measurements:
    count, total = Count(), Sum("age")
    return Measurements(
        (),
        (
            Slot("people", count, people.sensitivity(count), 1),
            Slot("years", total, people.sensitivity(total), 1),
        ),
        {"people": Noise("laplace", epsilon / 2), "years": Noise("laplace", epsilon / 2)},
    )


def released(ledger: Ledger, request_id: str | None = "r-1", **options: Any) -> Answered:
    return Curator(ledger).release(PEOPLE, plan(), ledger_name="survey", request_id=request_id, **options)


def spent(ledger: Ledger) -> float:
    return ledger.budget("survey").spent_upper


def state_of(ledger: Ledger, request_id: str = "r-1") -> str | None:
    stored = ledger.stored(request_id)
    return None if stored is None else stored.state


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
    assert {n: a.tolist() for n, a in again.answers.items()} == {
        n: a.tolist() for n, a in first.answers.items()
    }
    assert spent(ledger) == pytest.approx(0.25)


def test_a_request_without_an_id_gets_a_fresh_one(ledger: Ledger) -> None:
    first, second = released(ledger, None), released(ledger, None)
    assert first.request_id != second.request_id
    assert spent(ledger) == pytest.approx(0.5)
    assert ledger.stored(first.request_id) is not None


@pytest.mark.parametrize(
    "other",
    [
        lambda curator: curator.release(PEOPLE, plan(0.2), ledger_name="survey", request_id="r-1"),
        lambda curator: curator.release(
            PEOPLE.where("age > 40"), plan(), ledger_name="survey", request_id="r-1"
        ),
        lambda curator: curator.answer(
            PEOPLE, "people", Count(), DiscreteLaplace(0.25), ledger_name="survey", request_id="r-1"
        ),
    ],
    ids=["other noise", "other rows", "other door"],
)
def test_a_request_id_stands_for_one_question(
    ledger: Ledger, rows: Rows, other: Callable[[Curator], Answered]
) -> None:
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
        Curator(ledger).release(PEOPLE, plan(), ledger_name="persons")
    assert ledger.verify().head == before and rows.reads == 0


def test_protecting_groups_of_the_registered_unit_is_welcome(ledger: Ledger) -> None:
    threes = PEOPLE.group_privacy(3)
    assert unit_of(threes) == "row, add-remove, groups of 3"
    Curator(ledger).release(threes, plan(people=threes), ledger_name="survey")
    Curator(ledger).register(threes, "threes", epsilon=1.0)
    with pytest.raises(InvalidValue, match="groups of 3"):
        Curator(ledger).release(PEOPLE, plan(), ledger_name="threes")


def test_noise_made_for_closer_neighbours_is_refused_before_the_charge(ledger: Ledger, rows: Rows) -> None:
    with pytest.raises(InvalidValue, match="l1 sensitivity of 'people'=1: must be at least 3"):
        Curator(ledger).release(PEOPLE.group_privacy(3), plan(), ledger_name="survey")
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
        Curator(ledger).answer(PEOPLE, "x", aggregate, mechanism, ledger_name="survey")
    assert spent(ledger) == 0 and rows.reads == 0


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1"])
def test_a_time_limit_is_a_number_of_seconds(ledger: Ledger, timeout: Any) -> None:
    with pytest.raises(InvalidValue, match="timeout"):
        released(ledger, timeout=timeout)
    assert spent(ledger) == 0


def test_an_unknown_name_is_refused(ledger: Ledger, rows: Rows) -> None:
    with pytest.raises(InvalidValue, match="nobody"):
        Curator(ledger).release(PEOPLE, plan(), ledger_name="nobody")
    assert rows.reads == 0


def test_a_refusal_reads_nothing_and_poisons_nothing(ledger: Ledger, rows: Rows) -> None:
    with pytest.raises(BudgetExceeded) as refusal:
        Curator(ledger).release(PEOPLE, plan(1.5), ledger_name="survey", request_id="r-1")
    assert refusal.value.remaining.epsilon == 1.0  # type: ignore[attr-defined]
    assert rows.reads == 0 and spent(ledger) == 0
    assert not released(ledger, "r-2").repeated
    assert not released(ledger, "r-1").repeated  # a refused request was never charged, so its id is free


def test_an_analyst_spends_a_grant_and_no_more(ledger: Ledger, rows: Rows) -> None:
    ledger.grant("survey", "ada", 0.3)
    ada = Curator(ledger, analyst="ada")
    ada.release(PEOPLE, plan(), ledger_name="survey")
    with pytest.raises(BudgetExceeded):
        ada.release(PEOPLE, plan(), ledger_name="survey")
    assert rows.reads == 1 and ledger.budget("survey", "ada").count == 1


# The charge itself


def test_a_charge_that_failed_can_be_asked_for_again(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(LedgerUnavailable):
        patch.setattr(ledger, "charge", _failing)
        released(ledger)
    assert spent(ledger) == 0 and rows.reads == 0
    assert not released(ledger).repeated


@pytest.mark.parametrize("kind", [LedgerUnavailable, KeyboardInterrupt])
def test_a_charge_of_unknown_outcome_is_never_run_afterwards(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """The charge was made and its answer got lost: whoever asks again cannot know that nobody drew."""
    with monkeypatch.context() as patch, pytest.raises(kind):
        patch.setattr(ledger, "charge", _done_and_failing(ledger.charge, kind))
        released(ledger)
    assert spent(ledger) == pytest.approx(0.25) and state_of(ledger) == "reserved"
    with pytest.raises(AnswerForfeited, match="Ask again under a new request id"):
        released(ledger)
    assert state_of(ledger) == "forfeited" and rows.reads == 0
    assert spent(ledger) == pytest.approx(0.25)


# The run


@pytest.mark.parametrize("kind", [ValueError, MemoryError, ZeroDivisionError, RuntimeError, SystemExit])
def test_what_a_run_raises_stays_inside_and_the_charge_stays(
    ledger: Ledger, rows: Rows, kind: type[BaseException]
) -> None:
    cell = secrets.token_hex(8)
    rows.then = _raising(kind(f"could not convert {cell}"))
    with pytest.raises(AnswerForfeited) as lost:
        released(ledger)
    assert lost.value.reason == f"the run ended with {kind.__name__}" and lost.value.request_id == "r-1"
    assert lost.value.__context__ is None
    kept = "".join(traceback.format_exception(lost.value)) + "".join(
        str(e.to_dict()) for e in ledger.entries()
    )
    assert cell not in kept
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)


def test_a_forfeited_request_is_not_run_again_and_a_new_one_pays_again(ledger: Ledger, rows: Rows) -> None:
    rows.then = _raising(ValueError())
    with pytest.raises(AnswerForfeited):
        released(ledger)
    rows.then = lambda: None
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert rows.reads == 1
    assert not released(ledger, "r-2").repeated
    assert spent(ledger) == pytest.approx(0.5)


def test_the_death_of_the_engine_keeps_the_charge_and_names_the_engine(ledger: Ledger, rows: Rows) -> None:
    rows.then = _raising(EngineError("duckdb", "IOException", "check the disk"))
    with pytest.raises(AnswerForfeited, match="duckdb failed") as lost:
        released(ledger)
    assert isinstance(lost.value.__cause__, EngineError)
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)


def test_answers_that_are_no_whole_numbers_are_not_given(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measurements, "run", lambda *_: {"people": np.array([1.5])})
    with pytest.raises(AnswerForfeited, match="must be whole numbers"):
        released(ledger)
    assert state_of(ledger) == "forfeited"


def test_ctrl_c_during_the_run_keeps_the_charge(ledger: Ledger, rows: Rows) -> None:
    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    rows.then = lambda: time.sleep(0.3)
    with pytest.raises(KeyboardInterrupt):
        released(ledger, progress=interrupt)
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert rows.reads == 1


def test_a_time_limit_stops_the_engine_and_keeps_the_charge(ledger: Ledger) -> None:
    """The table has 10^10 rows; DuckDB would count for minutes."""
    tables = connection()
    tables.raw_sql(
        "CREATE VIEW long AS SELECT (a.range + b.range) % 110 AS age FROM range(100000) a, range(100000) b"
    )
    with quiet():
        slow = dataset(tables.table("long"), schema={"age": (0, 110)})
    with pytest.raises(AnswerForfeited, match=r"stopped after 0\.3 s"):
        Curator(ledger).release(slow, plan(), ledger_name="survey", request_id="r-1", timeout=0.3)
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)
    engine = slow._base.source.engine
    assert rows_of(engine, "SELECT 42") == [(42,)]  # the long query has given back its turn


def test_an_answer_that_comes_too_late_is_never_given(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.curator.running.GRACE", 0.05)
    go = threading.Event()
    rows.then = lambda: go.wait(60)
    with pytest.raises(AnswerForfeited, match="stopped after"):
        released(ledger, timeout=0.1)
    go.set()
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert ledger.stored("r-1").answer is None  # type: ignore[union-attr]


# The record


def test_a_ledger_that_is_away_for_a_moment_gets_the_same_answer_again(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.01,))
    texts: list[str] = []
    release = ledger.release

    def once(charge: Any, text: str) -> Any:
        texts.append(text)
        return release(charge, text) if len(texts) > 1 else _failing()

    monkeypatch.setattr(ledger, "release", once)
    assert not released(ledger).repeated
    assert rows.reads == 1 and texts[0] == texts[1]


def test_an_answer_that_could_not_be_recorded_is_not_given(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.01,))
    with monkeypatch.context() as patch, pytest.raises(LedgerUnavailable):
        patch.setattr(ledger, "release", _failing)
        released(ledger)
    assert state_of(ledger) == "reserved" and spent(ledger) == pytest.approx(0.25)
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert rows.reads == 1 and state_of(ledger) == "forfeited"


@pytest.mark.parametrize("kind", [LedgerUnavailable, KeyboardInterrupt])
def test_an_answer_that_was_recorded_is_found_again(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """The answer is in the ledger and the caller never got it."""
    monkeypatch.setattr(module, "_PAUSES", ())
    with monkeypatch.context() as patch, pytest.raises(kind):
        patch.setattr(ledger, "release", _done_and_failing(ledger.release, kind))
        released(ledger)
    again = released(ledger)
    assert again.repeated and rows.reads == 1 and spent(ledger) == pytest.approx(0.25)


def test_a_request_given_up_elsewhere_is_not_answered(ledger: Ledger, rows: Rows) -> None:
    """Another process lost patience while this one was running."""

    def forfeit() -> None:
        stored = ledger.stored("r-1")
        assert stored is not None
        ledger.forfeit(stored.charge, "no patience")

    rows.then = forfeit
    with pytest.raises(AnswerForfeited, match="meanwhile"):
        released(ledger)
    assert ledger.stored("r-1").answer is None  # type: ignore[union-attr]


def test_what_is_made_of_the_numbers_is_recorded_with_them(ledger: Ledger) -> None:
    first = released(ledger, finish=lambda found: {"people": float(found["people"][0]) / 2})
    again = released(ledger, finish=lambda found: {"people": -1})
    assert first.finished == again.finished == {"people": first.answers["people"][0] / 2}


def test_numbers_that_were_paid_for_survive_a_fault_in_what_is_made_of_them(
    ledger: Ledger, rows: Rows
) -> None:
    def broken(found: Any) -> Any:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            released(ledger, finish=broken)
    assert state_of(ledger) == "released"
    again = released(ledger, finish=lambda found: {"n": int(found["people"][0])})
    assert again.repeated and rows.reads == 1 and again.finished == {"n": again.answers["people"][0]}


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
    assert running.wait(60)
    again = released(ledger, timeout=60)
    worker.join()
    assert again.repeated and rows.reads == 1
    assert again.answers["years"].tolist() == found[0].answers["years"].tolist()


# The small door


def test_one_mechanism_can_be_asked_by_itself(ledger: Ledger, rows: Rows) -> None:
    curator = Curator(ledger)
    mechanism = DiscreteLaplace(0.25, l1_sensitivity=110)
    found = curator.answer(PEOPLE, "years", Sum("age"), mechanism, ledger_name="survey", request_id="r-1")
    again = curator.answer(PEOPLE, "years", Sum("age"), mechanism, ledger_name="survey", request_id="r-1")
    assert again.repeated and rows.reads == 1
    assert found.answers["years"].shape == () and found.answers == again.answers
    assert spent(ledger) == pytest.approx(0.25)


def test_a_secret_sample_is_charged_as_one(ledger: Ledger) -> None:
    Curator(ledger).answer(
        PEOPLE.sample(0.1), "people", Count(), DiscreteLaplace(0.5), ledger_name="survey", request_id="r-1"
    )
    assert 0 < spent(ledger) < 0.1


# A table that is itself a secret sample


def sampled(ledger: Ledger, request_id: str = "r-1", rate: float | None = 0.01, **options: Any) -> Answered:
    return Curator(ledger).release(
        PEOPLE, plan(), ledger_name="sample", request_id=request_id, sampling_rate=rate, **options
    )


@pytest.fixture
def sample_ledger(ledger: Ledger) -> Ledger:
    Curator(ledger).register(PEOPLE, "sample", epsilon=1.0, delta=1e-6, sampling_rate=0.01)
    return ledger


def test_a_secret_sample_is_charged_what_it_costs_the_population(sample_ledger: Ledger) -> None:
    sampled(sample_ledger)
    whole = np.log1p(0.01 * np.expm1(0.25))
    assert sample_ledger.budget("sample").spent_upper == pytest.approx(whole, rel=1e-6)
    assert sample_ledger.budget("sample").unit == "row, add-remove, secret sample of 0.01"


def test_a_second_release_of_a_secret_sample_is_refused(sample_ledger: Ledger, rows: Rows) -> None:
    """Two releases at inner epsilon 5 and rate 0.01 would be charged 1.8 together, and cost 5.4."""
    sampled(sample_ledger)
    assert sampled(sample_ledger).repeated  # the same request is no second one
    with pytest.raises(InvalidValue, match="holds for one release of 'sample'"):
        sampled(sample_ledger, "r-2")
    assert sample_ledger.budget("sample").count == 1 and rows.reads == 1


def test_of_two_releases_of_a_secret_sample_at_once_one_is_run(
    sample_ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process charges between our look at the account and our own charge."""
    charge = sample_ledger.charge

    def overtaken(*arguments: Any, **named: Any) -> Any:
        charge("sample", 0.001, request_id="quicker")
        return charge(*arguments, **named)

    monkeypatch.setattr(sample_ledger, "charge", overtaken)
    with pytest.raises(InvalidValue, match="holds for one release"):
        sampled(sample_ledger)
    assert rows.reads == 0 and state_of(sample_ledger) == "forfeited"


def test_a_sampling_rate_is_the_registered_one_or_none(sample_ledger: Ledger, rows: Rows) -> None:
    for rate in (0.001, None):
        with pytest.raises(InvalidValue, match=r"must be 'row, add-remove, secret sample of 0\.01'"):
            sampled(sample_ledger, rate=rate)
    with pytest.raises(InvalidValue, match="must be 'row, add-remove'"):
        Curator(sample_ledger).release(PEOPLE, plan(), ledger_name="survey", sampling_rate=0.01)
    assert rows.reads == 0


def test_amplification_needs_units_that_come_and_go_one_by_one() -> None:
    replaced = dataset(pa.table({"age": [1]}), schema={"age": (0, 110)}, neighbours="replace")
    for table in (PEOPLE.group_privacy(2), PEOPLE.sample(0.5), replaced):
        with pytest.raises(InvalidValue, match="needs single units that are added or removed"):
            unit_of(table, 0.01)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan"), True])
def test_a_sampling_rate_is_a_probability(rate: Any) -> None:
    with pytest.raises(InvalidValue, match="sampling_rate"):
        unit_of(PEOPLE, rate)


def _failing(*_: Any, **__: Any) -> Any:
    raise LedgerUnavailable("the disk is full")


def _done_and_failing(act: Callable[..., Any], kind: type[BaseException]) -> Callable[..., Any]:
    def acted(*arguments: Any, **named: Any) -> Any:
        act(*arguments, **named)
        raise kind("the connection was lost")

    return acted


def _raising(problem: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise problem

    return fail

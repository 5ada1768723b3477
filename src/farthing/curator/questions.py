"""What can be asked of private rows: something with a price, a fingerprint, and a way to run it.

A question runs in a thread of its own (`run_apart`), with a time limit if there is one. The caller gets a value or a
reason. What was raised inside never comes out: its text, its context and the frames of its traceback may hold numbers
of private rows.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.data import Dataset, Sensitivity
from farthing.data.aggregates.aggregate import Aggregate
from farthing.errors import (
    AnswerForfeited,
    EngineError,
    FarthingError,
    InvalidData,
    InvalidValue,
    LedgerUnavailable,
)
from farthing.privacy import Event, Sampled
from farthing.statistics.measurements import Measurements, amplified

if TYPE_CHECKING:
    from farthing.ledger import Charge, Ledger, Receipt


PATIENCE = 0.05  # seconds between two looks
GRACE = 2.0  # seconds for an engine to stop before it is left to itself


class Stopped(BaseException):
    """Raised inside a run that nobody waits for any more, wherever it reports its progress."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to: its text, or the reason why there is none and, if it is a safe one, the error."""

    text: str | None
    reason: str = ""
    error: FarthingError | None = None


def run_apart(work: Callable[[Progress], str], timeout: float | None, progress: Progress | None) -> Outcome:
    """What `work` comes to within `timeout` seconds; `progress` is called in the thread that waits.

    When the time is up, or the waiting thread is interrupted, the run is stopped where it next reports its progress,
    which stops the query in the engine. A run that does not hear is left behind, and what it finds goes nowhere.

    >>> run_apart(lambda tell: "42", None, None).text
    '42'
    """
    outcomes: list[Outcome] = []
    done, stop = threading.Event(), threading.Event()
    share = [0.0]

    def tell(done_so_far: float) -> None:
        if stop.is_set():
            raise Stopped
        share[0] = done_so_far

    def run() -> None:
        try:
            outcomes.append(Outcome(work(tell)))
        except BaseException as problem:
            outcomes.append(_failed(problem))
        finally:
            done.set()

    deadline = None if timeout is None else time.monotonic() + timeout
    threading.Thread(target=run, name="farthing-run", daemon=True).start()
    try:
        while not done.wait(_pause(deadline)):
            if deadline is not None and time.monotonic() >= deadline:
                break
            if progress is not None:
                progress(share[0])
    except BaseException:  # Ctrl-C, or the listener stopped it
        stop.set()
        done.wait(GRACE)
        raise
    if not done.is_set():
        stop.set()
        done.wait(GRACE)
        return Outcome(None, f"stopped after {timeout:g} s")
    if progress is not None and outcomes[0].text is not None:
        progress(1.0)
    return outcomes[0]


def _pause(deadline: float | None) -> float:
    return PATIENCE if deadline is None else max(0.0, min(PATIENCE, deadline - time.monotonic()))


def _failed(problem: BaseException) -> Outcome:
    """The two errors whose texts hold nothing private come through, made again; of others only the class."""
    if isinstance(problem, EngineError):
        error: FarthingError = EngineError(problem.engine, problem.kind, problem.way_out)
    elif isinstance(problem, InvalidData):
        error = InvalidData(problem.name, problem.rule, problem.way_out)
    else:
        return Outcome(None, f"the run ended with {type(problem).__name__}")
    return Outcome(None, str(error).rstrip("."), error)


Answers = dict[str, NDArray[Any]]

PAUSES = (0.1, 0.4, 1.6)  # seconds between attempts to record what was drawn, for a database that restarts


def record(ledger: Ledger, charge: Charge, text: str) -> Receipt:
    """Record what was drawn, again if the database is away for a moment: it is the same answer each time."""
    for pause in (*PAUSES, None):
        try:
            return ledger.release(charge, text)
        except LedgerUnavailable:
            if pause is None:  # recorded or not, asking again with this request id finds out
                raise
            time.sleep(pause)
        except InvalidValue:
            break
    raise AnswerForfeited(charge.request_id, "another call with this request id gave it up meanwhile")


def text_of(answers: Mapping[str, Any], finished: Mapping[str, Any] | None = None) -> str:
    """Arrays of whole numbers as JSON, exact at any size, and what was made of them afterwards.

    >>> text_of({"people": np.array([3, -1])})
    '{"answers":{"people":{"shape":[2],"values":[3,-1]}},"finished":null}'
    """
    texts = {name: _written(value) for name, value in answers.items()}
    return json.dumps({"answers": texts, "finished": finished}, separators=(",", ":"), allow_nan=False)


def answers_of(text: str) -> Answers:
    """The arrays of `text_of`: int64 where all numbers fit, Python integers otherwise.

    >>> answers_of('{"answers":{"people":{"shape":[2],"values":[3,-1]}},"finished":null}')
    {'people': array([ 3, -1])}
    """
    return {name: _read(value) for name, value in json.loads(text)["answers"].items()}


def finished_of(text: str) -> dict[str, Any]:
    """What was made of the answers when they were drawn; empty where nothing was.

    >>> finished_of('{"answers":{},"finished":{"mean":3.5}}')
    {'mean': 3.5}
    """
    return json.loads(text)["finished"] or {}


def _written(value: Any) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.kind == "O":
        whole = all(isinstance(item, int) and not isinstance(item, bool) for item in array.flat)
    else:
        whole = array.dtype.kind in "iu"
    if not whole:
        raise InvalidData("answer", "must be whole numbers", "release steps of a grid, not reals")
    return {"shape": list(array.shape), "values": array.reshape(-1).tolist()}


def _read(value: Any) -> NDArray[Any]:
    numbers = value["values"]
    fits = all(-(2**63) <= number < 2**63 for number in numbers)
    return np.array(numbers, dtype=np.int64 if fits else object).reshape(value["shape"])


Progress = Callable[[float], None]
Finish = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_NORMS = {"l1_sensitivity": "l1", "l2_sensitivity": "l2"}


class Question(Protocol):
    """All that the curator needs to know. Only `run` touches rows."""

    @property
    def event(self) -> Event:
        """What it costs, as an event for the accountant."""

    @property
    def digest(self) -> str:
        """A fingerprint of everything public about it."""

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset for which the noise would be too small, before anything is charged."""

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """Noisy whole numbers by name."""

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What is made of them: JSON-ready data, recorded beside them. Post-processing; it sees no rows."""


class OneNumber(Protocol):
    """A mechanism that adds noise to whole numbers and says how far neighbours may be apart."""

    @property
    def event(self) -> Event:
        """What one release costs, as an event for the accountant."""

    def release(self, value: Any) -> Any:
        """The value with fresh noise added."""


@dataclass(frozen=True)
class PlanQuestion:
    """The measurements of a plan.

    `sampled` is the rate at which the table was sampled, in secret, or is for this run, and the delta at which the
    whole is charged then;
    `post_processing` makes answers of the noisy numbers (see `farthing.statistics.answer_records.PostProcessing`).
    """

    measurements: Measurements
    sampled: tuple[float, float] | None = None
    post_processing: Finish | None = None

    @cached_property
    def event(self) -> Event:
        """All of them as one fixed plan; for a secret sample, what that costs those it was drawn from."""
        whole = self.measurements.event
        return whole if self.sampled is None else amplified(whole, *self.sampled)

    @property
    def digest(self) -> str:
        return self.measurements.digest

    @property
    def withholds(self) -> bool:
        """Whether cells of few people are withheld: then what was measured is not recorded, only what it came to."""
        return bool(getattr(self.post_processing, "least", 0))

    def check(self, dataset: Dataset) -> None:
        """Every slot was designed for neighbours at least as far apart as those of this dataset."""
        derived = dict(self.measurements.derived)
        prepared = dataset.derive(**derived) if derived else dataset
        for slot in self.measurements.slots:
            for aggregate in slot.aggregates.values():
                _refuse_further(prepared.sensitivity(aggregate), slot.counted, slot.name)
        slots = self.measurements.slots
        prepared.refuse_several_samples({name: part for slot in slots for name, part in slot.aggregates.items()})

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """One pass over the rows, then the noise."""
        return self.measurements.run(dataset, progress)

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the plan makes of the noisy numbers."""
        return None if self.post_processing is None else self.post_processing(answers)


@dataclass(frozen=True)
class Single:
    """One aggregate through one mechanism of additive noise on whole numbers."""

    name: str
    aggregate: Aggregate
    mechanism: OneNumber
    probability: float = 1.0

    @cached_property
    def event(self) -> Event:
        """The mechanism's event, amplified where the rows are a secret sample."""
        event = self.mechanism.event
        return event if self.probability == 1 else Sampled(event, self.probability)

    @property
    def digest(self) -> str:
        """Of the name, the aggregate and the mechanism."""
        return _hashed([self.name, repr(self.aggregate), repr(self.mechanism), self.probability.hex()])

    def check(self, dataset: Dataset) -> None:
        """The noise is made for the sensitivity of the aggregate, or for more."""
        stated = {name: getattr(self.mechanism, name, None) for name in ("grid", "cells", *_NORMS)}
        norm = next((name for name in _NORMS if stated[name] is not None), None)
        if norm is None or stated["grid"] is not None:
            kind = type(self.mechanism).__name__
            raise InvalidValue("mechanism", kind, f"must state {' or '.join(_NORMS)} for whole numbers")
        least = getattr(dataset.sensitivity(self.aggregate), _NORMS[norm])
        if not stated[norm] >= least:
            raise InvalidValue(norm, stated[norm], f"must be at least {least}", "see dataset.sensitivity()")
        cells = _cells_of(self.aggregate, dataset)
        if stated["cells"] != cells:
            raise InvalidValue("cells", stated["cells"], f"must be {cells}, the number of cells of the aggregate")

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """The one aggregate, and its noise."""
        exact = dataset.exact({self.name: self.aggregate}, progress)[self.name]
        return {self.name: self.mechanism.release(exact)}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return None


def digest_of(question: Question, dataset: Dataset) -> str:
    """A fingerprint of a question about a dataset; the place where the rows lie is not part of it."""
    stability = dataset.stability()
    steps = [[link.title, link.own, link.rows] for link in stability.links[1:]]
    facts = [question.digest, steps, stability.links[0].own, sorted(dataset.unit), dataset.neighbours]
    schema = [[name, repr(dataset.schema[name])] for name in dataset.schema]
    return _hashed([*facts, schema, stability.group, str(stability.exact_probability)])


def _refuse_further(sensitivity: Sensitivity, designed: Sensitivity, name: str) -> None:
    for norm in ("l0", "l1", "l2_squared", "linf"):
        least, stated = getattr(sensitivity, norm), getattr(designed, norm)
        if not stated >= least:
            raise InvalidValue(
                f"{norm} sensitivity of {name!r}",
                stated,
                f"must be at least {least} for this dataset",
                "make the plan for the dataset that it is run on",
            )


def _cells_of(aggregate: Aggregate, dataset: Dataset) -> int:
    """How many whole numbers an aggregate consists of."""
    shape = [len(axis) for axis in aggregate.axes(dataset.schema)]
    return aggregate.finished(np.zeros((*shape, len(aggregate.features(dataset.schema))))).size


def _hashed(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

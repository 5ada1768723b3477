"""How many rows a table has, where that is not public: counted once, for a small share of the budget.

Plans that are made afterwards depend on the answer, so that the count and what follows are two charges: the ledger's
filters, which hold for choices that depend on answers, decide what is left for the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from farthing.curator.questions import Single
from farthing.curator.session_records import PATIENCE
from farthing.data import Count
from farthing.errors import AnswerForfeited, InvalidValue, NotAllowed
from farthing.inference import Answer, ErrorLaw, Term
from farthing.mechanisms import DiscreteLaplace
from farthing.privacy.events import checked_real
from farthing.statistics.public_facts import Counted

if TYPE_CHECKING:
    from farthing.curator import Curator
    from farthing.data import Dataset
    from farthing.ledger import Budget, Ledger, Receipt, Stored


class Counting(Protocol):
    """What a study must have so that its rows can be counted."""

    dataset: Dataset
    ledger: Ledger
    name: str
    analyst: str | None
    sampling_rate: float | None

    @property
    def budget(self) -> Budget:
        """The budget, or the grant, that pays."""

    @property
    def curator(self) -> Curator:
        """The one door to the rows."""

    def register(self) -> None:
        """Write the budget to the ledger, unless it is there."""


SHARE = 0.02
"""Of a budget, for counting, where nobody says."""

RowAnswer = Answer
"""A number of rows with its interval."""

NAME = "rows"
_MOST_ATTEMPTS = 1_000


@dataclass(frozen=True)
class RowCount:
    """A count that was paid for; or, without an `answer`, the request id under which it would be charged."""

    request_id: str
    answer: Answer | None = None
    epsilon: float = 0.0
    scale: float = 0.0  # of its noise
    receipt: Receipt | None = None
    repeated: bool = True  # it was there before

    @property
    def answered(self) -> Answer:
        """The answer of a count that was made."""
        assert self.answer is not None
        return self.answer

    @property
    def counted(self) -> Counted | None:
        """As plans use it: the number, and the ends of its 95% interval."""
        if self.answer is None:
            return None
        ends = max(1, math.floor(float(self.answer.lower))), max(1, math.ceil(float(self.answer.upper)))
        return Counted(max(1, round(float(self.answer.values))), *ends)


@dataclass(frozen=True)
class _Counting(Single):
    """A count whose noise is kept with it, so that its interval can be told later."""

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The scale of its noise."""
        assert isinstance(self.mechanism, DiscreteLaplace)
        return {"row_count": {"scale": self.mechanism.l1_sensitivity / self.mechanism.epsilon}}


def price_of_counting(study: Counting, share: float = SHARE) -> float:
    """The epsilon of a count for a share of the whole budget, or of the whole grant."""
    part = checked_real(share, "share")
    if not 0 < part < 1:
        raise InvalidValue("share", share, "must be above 0 and below 1", "0.02 is a fiftieth of the budget")
    return part * study.budget.total.epsilon


def can_be_counted(study: Counting) -> bool:
    """Whether a count would tell anything, and may be charged for by itself."""
    return study.dataset.rows is None and study.sampling_rate is None


def found_count(study: Counting, *, wait: bool = False) -> RowCount:
    """The last count of this study that has an answer, or where the next one will stand; no row is read.

    A count that was lost is made again under another name; so is a fresh one. One that another process makes just now
    is left alone, or waited for.
    """
    found: RowCount | None = None
    for request_id, stored in _attempts(study):
        if stored is None:
            return found or RowCount(request_id)
        own = (stored.charge.dataset, stored.charge.analyst) == (study.name, study.analyst or "")
        own = own and not study.curator.is_of_other_table(study.dataset, request_id)
        if own and (stored.state == "released" or (wait and stored.state == "reserved")):
            try:
                found = _read(study, request_id) or found
            except AnswerForfeited:
                continue
    raise AssertionError("the last attempt is one that nobody made")


def count_rows(
    study: Counting,
    epsilon: float,
    *,
    fresh: bool = False,
    progress: Callable[[float], None] | None = None,
) -> RowCount:
    """Charge for a count and make it, unless there is one; `fresh` counts again, and is charged again."""
    if study.dataset.rows is not None:
        raise InvalidValue("rows", study.dataset.rows, "are public already", "no count is needed")
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a count of rows would be it",
            "say about how many rows there are: expected={'rows': ...}",
        )
    found = found_count(study, wait=True)
    if found.answer is not None and not fresh:
        return found
    if fresh:
        *_, (request_id, _) = _attempts(study)
    else:
        request_id = found.request_id
    study.register()
    mechanism = DiscreteLaplace(epsilon, max(1, study.dataset.sensitivity(Count()).l1))
    question = _Counting(NAME, Count(), mechanism, study.dataset.probability)
    study.curator.run(
        study.dataset,
        question,
        ledger_name=study.name,
        request_id=request_id,
        world="adaptive",  # what is asked afterwards depends on it
        progress=progress,
    )
    made = _read(study, request_id)
    assert made is not None
    return replace(made, repeated=False)


def lost_count(study: Counting, since: int) -> str | None:
    """The request id of a count that was charged since a moment (in nanoseconds) and has no answer, if there is one."""
    for request_id, stored in _attempts(study):
        if stored is None:
            return None
        own = (stored.charge.dataset, stored.charge.analyst) == (study.name, study.analyst or "")
        if own and stored.state == "forfeited" and stored.receipt.time_ns >= since:
            return request_id
    return None


def counted_rows(study: Counting, expected: Mapping[str, Any] | None = None) -> Counted | None:
    """The count that was paid for, where plans need it: the number of rows is neither public nor expected."""
    if "rows" in (expected or {}) or not can_be_counted(study):
        return None
    return found_count(study).counted


def _read(study: Counting, request_id: str) -> RowCount | None:
    answered = study.curator.recorded(request_id, PATIENCE)
    if NAME not in answered.answers:
        return None
    value = float(answered.answers[NAME].reshape(-1)[0])
    kept = answered.finished.get("row_count", {})
    # Earlier versions kept no scale, and counted with all of what they had charged.
    scale = float(kept.get("scale", 0.0)) or study.dataset.sensitivity(Count()).l1 / answered.receipt.epsilon
    receipt = answered.receipt
    return RowCount(request_id, row_answer(value, scale), receipt.epsilon, scale, receipt)


def row_answer(value: float, scale: float) -> Answer:
    """A count with discrete Laplace noise of this scale as an answer with its interval."""
    law = ErrorLaw([Term("laplace", scale)])
    return Answer.around(NAME, max(0.0, value), law, centre=value, least=0)


def _attempts(study: Counting) -> Iterator[tuple[str, Stored | None]]:
    """The request ids of counts with what the ledger has of them; the last has nothing yet."""
    for attempt in range(1, _MOST_ATTEMPTS):
        request_id = _request_id(study, attempt)
        try:
            stored = study.ledger.stored(request_id)
        except NotAllowed:  # somebody else was quicker with the name
            continue
        yield request_id, stored
        if stored is None:
            return
    raise InvalidValue("rows", None, "were counted too often", "say about how many there are: rows=...")


def _request_id(study: Counting, attempt: int) -> str:
    who = study.analyst
    return f"rows of {study.name}" + (f" for {who}" if who else "") + (f" {attempt}" if attempt > 1 else "")

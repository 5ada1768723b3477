"""What a release is named by: what is asked, of which rows, from which account. The same request is paid for once.

What was left of a budget is no part of a name: a script that runs again finds less of it, and asks for the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from farthing.curator import stored_answer
from farthing.curator.payers import table_marks
from farthing.errors import AnswerForfeited, FarthingError, Infeasible, InvalidValue, NotAllowed
from farthing.numerics.bounds import ceiling
from farthing.planner import Problem, Requirement
from farthing.planner.offers import exact_text
from farthing.privacy.events import checked_real
from farthing.statistics import Statistic
from farthing.study.study_account import StudyAccount

if TYPE_CHECKING:
    from farthing.data import Dataset
    from farthing.ledger import Stored


Control = tuple[Any, ...]
"""One call of a control: its word, and what it was called with."""

PATIENCE = 20.0  # seconds after a charge in which another process is given time to record its answer
_LOOK = 0.05
_IN_ORDER = ("hold", "fit")  # what they come to depends on the controls before them
_SUBJECT = {"weight": 2, "require": 2, "reserve": 1}  # so many of its words say what a control is about
_USUAL = {"weight": 1.0, "reserve": 0.0}  # which change nothing
_PREFIX = "plan-"
_LETTERS = 12  # of a mark, where it tells two tables of one name apart


@dataclass(frozen=True)
class Request:
    """The arguments that made a plan: those of `study.plan`, and its controls.

    `name` is the request id of its release. Controls in another order are the same request, as long as none of them
    looks at what the others came to.

    >>> one = Request("count of people").then("weight", "count", 2.0).then("reserve", 0.1)
    >>> other = Request("count of people").then("reserve", 0.1).then("weight", "count", 2.0)
    >>> one.name == other.name != Request("count of people").name
    True
    >>> Request("count of people").is_part_of(one.to_dict()), one.is_part_of(Request("count of people").to_dict())
    (True, False)
    """

    facts: str
    controls: tuple[Control, ...] = ()

    @classmethod
    def of(
        cls,
        study: StudyAccount,
        asked: Sequence[Statistic],
        epsilon: float | None,
        expected: Mapping[str, Any] | None,
    ) -> Request:
        """The request of `study.plan` with these arguments."""
        facts = [
            study.name,
            study.payer,
            study.sampling_rate,
            definition_asked(study.dataset),
            sorted([statistic.name, repr(statistic)] for statistic in asked),
            epsilon,
            expected or {},
        ]
        return cls(json.dumps(_plain(facts)))

    def then(self, word: str, *details: Any) -> Request:
        """The same request with one more control."""
        return replace(self, controls=(*self.controls, (word, *_plain(details))))

    @property
    def base(self) -> str:
        """A digest of everything but the controls."""
        return hashlib.sha256(self.facts.encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """The request id that these words have."""
        text = json.dumps([self.facts, _canonical(self.controls)])
        return f"{_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:24]}"

    def to_dict(self) -> dict[str, Any]:
        """As it is kept with its answers."""
        return {"base": self.base, "controls": _listed(self.controls)}

    def is_that_of(self, kept: Mapping[str, Any]) -> bool:
        """Whether `to_dict` of the same request made this."""
        controls = kept.get("controls", ())
        return bool(kept.get("base") == self.base) and _canonical(controls) == _canonical(self.controls)

    def is_part_of(self, kept: Mapping[str, Any]) -> bool:
        """Whether controls, further ones or none, can make of it the request that `to_dict` made this of."""
        if kept.get("base") != self.base:
            return False
        theirs, own = _listed(kept.get("controls", ())), _listed(self.controls)
        if any(control[0] in _IN_ORDER for control in theirs):
            return theirs[: len(own)] == own
        return all(control in theirs for control in own)


@dataclass(frozen=True)
class Earlier:
    """A release in the ledger of the same request, or (without `exact`) of the same with further controls.

    `plan` is its plan as it was kept with the answers.
    """

    request_id: str
    plan: Mapping[str, Any]
    exact: bool

    def in_order(self, asked: Sequence[Statistic]) -> tuple[Statistic, ...]:
        """The statistics in the order of then: what is measured for them is numbered by it."""
        places = {statistic["name"]: place for place, statistic in enumerate(self.plan["statistics"])}
        return tuple(sorted(asked, key=lambda statistic: places.get(statistic.name, len(places))))


def definition_asked(dataset: Dataset) -> list[Any]:
    """The definition of a dataset as it names requests: a link to a file is called by the file that it leads to."""
    declared, *rest = dataset.definition
    files = dataset.sources()[0].files
    if len(files) == 1 and os.path.basename(files[0]) == declared and os.path.islink(files[0]):
        declared = os.path.basename(os.path.realpath(files[0]))
    return [declared, *rest]


def checked_statistics(statistics: Sequence[Any]) -> tuple[Statistic, ...]:
    """The statistics that were asked for, one by one or as a list."""
    if len(statistics) == 1 and isinstance(statistics[0], list | tuple):
        statistics = tuple(statistics[0])
    if not statistics:
        raise InvalidValue("statistics", [], "must hold at least one", 'for example ft.count(by="sex")')
    for statistic in statistics:
        if not isinstance(statistic, Statistic):
            raise InvalidValue("statistics", statistic, "must be statistics", 'for example ft.mean("income")')
    return tuple(statistics)


def earlier_release(study: StudyAccount, request: Request, request_id: str | None = None) -> Earlier | None:
    """The release of this request, if the ledger has it; one that another process makes just now is waited for.

    `request_id` is what a server calls it, which has its owner's name in it.
    """
    name = request_id or own_name(study, request.name)
    stored = awaited_answer(study, name)
    if stored is None or stored.answer is None:
        return None
    return _earlier(study, request, name)


def own_name(study: StudyAccount, name: str) -> str:
    """The request id of this request for this table.

    Another file of the same name, in the same account, may have made the same request: then it has an id of its own.
    """
    if not study.curator.is_of_other_table(study.dataset, name):
        return name
    first = next(mark for marks in table_marks(study.ledger, study.dataset) for mark in marks)
    own, others = f"{name}.{first[:_LETTERS]}", re.compile(rf"{re.escape(name)}\.[0-9a-f]{{{_LETTERS}}}")
    if _stored(study, own) is None:  # it may have had another path when it asked
        for request_id, _ in _charged(study):
            if others.fullmatch(request_id) and not study.curator.is_of_other_table(study.dataset, request_id):
                return request_id
    return own


def earlier_request(study: StudyAccount, request: Request) -> Earlier | None:
    """A release of this request, perhaps with further controls; under whatever request id.

    It reads through the ledger, so it is for those whom the budget has refused.
    """
    match: Earlier | None = None
    for request_id, waits in _charged(study):
        if waits and not request_id.startswith(_PREFIX):
            continue
        stored = awaited_answer(study, request_id)
        # Whether the digest is in the text is seen sooner than what the text says.
        if stored is None or stored.answer is None or request.base not in stored.answer:
            continue
        earlier = _earlier(study, request, request_id)
        if earlier is not None and (match is None or earlier.exact or not match.exact):
            match = earlier  # the last one, of the exact ones if there are any
    return match


def fresh_name(study: StudyAccount, request: Request) -> str:
    """A new request id for a request that was released before."""
    return f"{own_name(study, request.name)}-{secrets.token_hex(6)}"


def fresh_answer(study: StudyAccount, request: Request) -> Stored | None:
    """The last fresh answer to this request; it reads through the ledger."""
    latest: Stored | None = None
    name = own_name(study, request.name)
    for request_id, waits in _charged(study):
        stored = None
        if not waits and request_id.startswith(f"{name}-"):
            stored = _stored(study, request_id)
        if stored is not None and stored.answer is not None:
            latest = stored
    return latest


def awaited_answer(study: StudyAccount, request_id: str) -> Stored | None:
    """What the ledger knows of a request; a charge of this minute is given time to have its answer.

    The process that made it may be gone, and nobody can know: it is not given up here.
    """
    stored = _stored(study, request_id)
    deadline = time.monotonic() + PATIENCE
    while stored is not None and stored.state == "reserved":
        age = (time.time_ns() - stored.receipt.time_ns) / 1e9
        if not age < PATIENCE or time.monotonic() > deadline:
            break
        time.sleep(_LOOK)
        stored = _stored(study, request_id)
    return stored


def without_answer(stored: Stored, way_out: str) -> FarthingError:
    """Why a request that was charged has no answer."""
    request_id = stored.charge.request_id
    if stored.state == "forfeited":
        return AnswerForfeited(request_id, "the attempt that was charged ended without one", way_out)
    return InvalidValue(
        "request_id",
        request_id,
        f"was charged epsilon={stored.charge.epsilon:.6g} and has no answer yet",
        "if another process is running it, ask again later; if that process is gone, what was charged stays spent, and "
        f"{way_out}",
    )


def _earlier(study: StudyAccount, request: Request, request_id: str) -> Earlier | None:
    try:
        plan = stored_answer(study.ledger, request_id).finished.get("plan")
    except (AnswerForfeited, InvalidValue):
        return None
    kept = plan.get("asked") if isinstance(plan, Mapping) else None
    if not isinstance(plan, Mapping) or not isinstance(kept, Mapping):
        return None
    if study.curator.is_of_other_table(study.dataset, request_id):
        return None
    if request.is_that_of(kept):
        return Earlier(request_id, plan, True)
    return Earlier(request_id, plan, False) if request.is_part_of(kept) else None


def _charged(study: StudyAccount) -> Iterable[tuple[str, bool]]:
    """The request ids that this study has paid for, oldest first, and whether they still wait for their answers."""
    waiting: dict[str, bool] = {}
    if not study.is_registered:
        return ()
    for entry in study.ledger.entries(study.name):
        if entry.kind == "charge" and entry.analyst == study.payer and entry.body["nano"] != 0:
            waiting[entry.request_id] = True
        elif entry.kind in ("released", "forfeited") and entry.request_id in waiting:
            waiting[entry.request_id] = False
    return waiting.items()


def _stored(study: StudyAccount, request_id: str) -> Stored | None:
    try:
        return study.ledger.stored(request_id)
    except NotAllowed:  # somebody else has taken the name; they would be refused when they charge
        return None


def _canonical(controls: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Controls as data that is the same for all orders that come to the same."""
    if any(control[0] in _IN_ORDER for control in controls):
        return _listed(controls)
    # The last of its kind counts: one reserve, one weight and one required error of each statistic.
    last = {tuple(control[: _SUBJECT[control[0]]]): list(control) for control in controls}
    return sorted((control for control in last.values() if control[-1] != _USUAL.get(control[0])), key=repr)


def _listed(controls: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(control) for control in controls]


def _plain(value: Any) -> Any:
    """Words as data whose text is the same wherever they were written: 3 is 3.0, a pair is a list."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return sorted([repr(key), _plain(each)] for key, each in value.items())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist())
    if isinstance(value, int | float):
        return float(value) if abs(value) < 2**53 else repr(value)
    return repr(value)


def nothing_to_measure(asked: Sequence[Statistic]) -> InvalidValue:
    """Every answer is public already: a count of all rows where their number is, or of rows that cannot be."""
    impossible = next((statistic for statistic in asked if statistic.where is not None), None)
    if impossible is None:
        rule, way_out = "is public already", "it needs no study; ask for something that is not public too"
        return InvalidValue("statistics", asked[0].name, rule, way_out)
    return InvalidValue(
        "statistics",
        impossible.name,
        "is always 0: no row can meet the condition",
        "compare where= with the bounds and categories of the schema, or ask for something else too",
    )


def with_controls(
    request: Request,
    weights: Mapping[str, float],
    requirements: Mapping[str, Requirement],
    reserve: float | None = None,
) -> Request:
    """The request with several controls at once."""
    for name, weight in weights.items():
        request = request.then("weight", name, weight)
    for name, required in requirements.items():
        request = request.then("require", name, required.within, required.confidence)
    return request.then("reserve", reserve) if reserve else request


def fit_control(requirements: Mapping[str, Requirement]) -> Control:
    """`fit` as a control: each statistic with its required error."""
    return ("fit", *sorted([name, each.within, each.confidence] for name, each in requirements.items()))


def required_by(control: Control) -> dict[str, Requirement]:
    """The errors that `fit` was called with."""
    return {name: Requirement(within, confidence) for name, within, confidence in control[1:]}


def changes_of(request: Request, problem: Problem) -> dict[str, Any]:
    """What the controls of a request change in a problem, but for what is held."""
    weights: dict[str, float] = {}
    requirements: dict[str, Requirement] = {}
    changes: dict[str, Any] = {}
    for word, *details in request.controls:
        if word == "weight":
            weights[details[0]] = details[1]
        elif word == "require":
            requirements[details[0]] = Requirement(*details[1:])
        elif word == "fit":
            requirements = required_by((word, *details))
        elif word == "reserve":
            share = 1 - details[0] / problem.epsilon
            changes = {"reserved": details[0], "delta": problem.delta * share if share > 0 else problem.delta}
    return {**changes, "weights": weights, "requirements": requirements}


def refuse_over(needed: float, limit: float, names: tuple[str, ...]) -> None:
    """Refuse what the least epsilon that meets its requirements is too much for."""
    if needed > limit:
        enough = float(ceiling(needed, 4))  # typed back, it does
        left = (
            f"{exact_text(limit)} is left" if limit > 0 else "that is more than the ledger admits after what was spent"
        )
        raise Infeasible(
            f"the errors required of {' and '.join(map(repr, names))} would cost epsilon={exact_text(enough)}, and "
            f"{left}; "
            "allow a larger error, or raise the budget.",
            blocking=names,
            closest=None,
            epsilon=enough,
        )


def checked_weight(weight: Any) -> float:
    """A weight that a statistic may have."""
    number = checked_real(weight, "weight")
    if not 1e-6 <= number <= 1e6:
        raise InvalidValue("weight", weight, "must be between 1e-6 and 1e6", "1 is the usual weight")
    return number


def earlier_or_raise(study: StudyAccount, request: Request, refusal: Exception) -> Earlier:
    """The earlier answer to this request, perhaps with further controls; else the refusal itself."""
    if isinstance(refusal, InvalidValue) and refusal.name not in ("sampling_rate", "epsilon", "reserve"):
        raise refusal  # it is not about what is left
    earlier = earlier_request(study, request)
    if earlier is None:
        raise refusal
    return earlier

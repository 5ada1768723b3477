"""The reusable holdout of a study: its dataset is the holdout set, its budget pays, its ledger keeps the rounds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from farthing.adaptive.holdout import Holdout, HoldoutPlan
from farthing.adaptive.holdout.rows import rows_of
from farthing.curator.sessions import LedgerJournal, Session, stored_session
from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.study.allowance import spender
from farthing.study.requests import own_name

if TYPE_CHECKING:
    from farthing.study.study import Study

_PRICE = ("epsilon", "delta")


def opened_holdout(
    study: Study,
    training: Dataset,
    *,
    queries: int,
    corrections: int,
    threshold: float | None,
    epsilon: float | None,
    confidence: float,
    request_id: str | None,
) -> Holdout:
    """Charge for all corrections, once; a session that was opened before is taken up at the price it has paid."""
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a holdout goes on",
            "study the table by itself, in another ledger= and without sampling_rate=",
        )
    if not isinstance(training, Dataset):
        raise InvalidValue(
            "training", type(training).__name__, "must be a dataset", "make one with farthing.dataset(...)"
        )
    of_training, of_holdout = rows_of(training, study.dataset)
    options: dict[str, Any] = {"queries": queries, "corrections": corrections, "confidence": confidence}
    facts = [study.name, spender(study), of_training.rows, options, threshold, epsilon]
    name = request_id or own_name(study, f"holdout-{_hashed(facts)[:24]}")
    price = _price(study, name, epsilon)
    plan = HoldoutPlan(of_holdout.rows, of_training.rows, **price, stated_threshold=threshold, **options)

    def check(dataset: Dataset) -> None:
        rows_of(training, dataset)

    study.register()
    session = Session(plan.event, _hashed(["holdout", asdict(plan)]), plan.corrections, check, price)
    journal = LedgerJournal(
        study.curator, study.dataset, session, ledger_name=study.name, request_id=name, delta=plan.delta
    )
    return Holdout(training, study.dataset, **price, threshold=threshold, journal=journal, **options)


def _price(study: Study, name: str, epsilon: float | None) -> dict[str, Any]:
    """What the session has paid; for a new one, what the budget has for it."""
    stored = stored_session(study.curator, name)
    if stored is None:
        allowance = study.allowance(epsilon)
        return {"epsilon": allowance.epsilon, "delta": allowance.delta}
    if set(stored) != set(_PRICE):
        raise InvalidValue("request_id", name, "is that of a session of another kind", "choose another")
    if epsilon not in (None, stored["epsilon"]):
        rule = f"must be {stored['epsilon']!r}, for which this session was opened"
        raise InvalidValue("epsilon", epsilon, rule, "leave it out, or choose another request id")
    return {fact: stored[fact] for fact in _PRICE}


def _hashed(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

"""A plan as a request: what a curator is shown of it, and what the ledger is asked to allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from farthing.errors import InvalidValue
from farthing.publication.edition import without_advice
from farthing.statistics.answer_records import plain
from farthing.study.attacker_odds import odds_sentence
from farthing.study.release import predicted

if TYPE_CHECKING:
    from farthing.curator.curator import ReleaseTerms
    from farthing.ledger import PlanRequest
    from farthing.ledger.plan_requests import PlanRequests
    from farthing.statistics import Statistic
    from farthing.study.plan_text import PlanFacts
    from farthing.study.study_account import StudyAccount

Account = TypeVar("Account", bound="StudyAccount")


def submitted(plan: PlanFacts, asked: Sequence[Statistic], purpose: str, title: str) -> PlanRequest:
    """Ask a curator to allow the release of a plan."""
    study = plan.study
    _refuse_nobody(study)
    if plan.earlier is not None and plan.earlier.exact:
        raise InvalidValue("plan", plan.earlier.request_id, "was released before", "release() returns its answers free")
    analyst = None if study.ledger.role == "analyst" else study.analyst
    facts = _facts(plan, asked)
    return study.ledger.requests.submit(
        study.name, **facts, purpose=purpose, title=title or _title(asked), analyst=analyst
    )


def submitted_offer(
    study: StudyAccount,
    terms: ReleaseTerms,
    *,
    name: str,
    delta: float,
    cost: float,
    offer: Mapping[str, Any],
    words: str,
    kind: str,
    purpose: str,
    title: str,
    body: Mapping[str, Any] | None = None,
) -> PlanRequest:
    """Ask a curator to allow what is paid for at once and is no plan: a synthetic table, or a session of questions.

    `name` is its request id, `offer` what it is as data, `words` what the curator reads, `body` what a server was sent.
    """
    _refuse_nobody(study)
    facts = {"offer": dict(offer), "kind": kind, "words": words, "odds": odds_sentence(cost, delta)}
    facts |= {"dataset": study.dataset.name} | ({} if body is None else {"draft": dict(body)})
    return study.ledger.requests.submit(
        study.name,
        **terms._asdict(),
        delta=delta,
        name=name,
        document=plain(facts),
        purpose=purpose,
        title=title or kind,
        analyst=None if study.ledger.role == "analyst" else study.analyst,
    )


def plain_assumptions(document: Mapping[str, Any]) -> list[str]:
    """What the errors of a request rest on, without the words in which its analyst would say otherwise.

    >>> texts = ["a; pass expected={'rows': ...}", "b; write c = ... under [expected]"]
    >>> plain_assumptions({"plan": {"assumptions": texts}})
    ['a', 'b']
    """
    return [without_advice(str(text)) for text in document.get("plan", {}).get("assumptions", ())]


def as_approved(study: Account, name: str) -> Account:
    """The study that may open what was approved under this name: beside any grant; else the study itself."""
    if study.analyst is None or study.by_request:
        return study
    approved = study.ledger.requests.approved(study.name, study.payer, name)
    return study if approved is None else study.on_request()


def _refuse_nobody(study: StudyAccount) -> None:
    if study.analyst is None:
        raise InvalidValue("analyst", None, "must name the analyst who asks", "a curator can release without a request")


def changed(
    plan: PlanFacts,
    asked: Sequence[Statistic],
    request: int,
    reason: str,
    expires: date | str | None,
    requests: PlanRequests | None = None,
) -> PlanRequest:
    """Allow this plan in place of the one that was asked for; `requests` are those of the curator who allows it."""
    study, requests = plan.study, requests or plan.study.ledger.requests
    before = requests.one(request)
    if (study.name, study.payer) != (before.dataset, before.analyst):
        raise InvalidValue(
            "request",
            request,
            f"is that of {before.analyst!r} for {before.dataset!r}",
            f"plan with Study(..., account={before.dataset!r}, analyst={before.analyst!r})",
        )
    return requests.change(request, **_facts(plan, asked), reason=reason, expires=expires)


def _facts(plan: PlanFacts, asked: Sequence[Statistic]) -> dict[str, Any]:
    """What the release of a plan would be charged, by which name, and the plan as data."""
    study = plan.study
    terms = study.curator.release_terms(
        study.dataset, plan.measurements, ledger_name=study.name, delta=plan.delta, sampling_rate=study.sampling_rate
    )
    return {
        "event": terms.event,
        "digest": terms.digest,
        "others": terms.others,
        "source": terms.source,
        "delta": plan.delta,
        "name": plan.request.name,
        "document": document_of(plan, asked),
    }


def document_of(plan: PlanFacts, asked: Sequence[Statistic]) -> dict[str, Any]:
    """The plan as data, from which exactly this plan can be made again: with the noise of every measurement."""
    noises = {slot: [noise.kind, noise.parameter] for slot, noise in plan.allocation.noises.items()}
    document: dict[str, Any] = plain(
        {
            "statistics": [{"kind": statistic.kind, **statistic.arguments} for statistic in asked],
            "expected": _written(plan.expected),
            "epsilon": plan.epsilon,
            "dataset": plan.study.dataset.name,
            "draft": _draft(plan, asked),
            "odds": odds_sentence(plan.cost.upper, plan.delta),
            "plan": {**predicted(plan), "noises": noises},
        }
    )
    return document


def _draft(plan: PlanFacts, asked: Sequence[Statistic]) -> dict[str, Any]:
    """What asks for the same plan, as bodies of JSON and study.toml have it; what is held is no part of it."""
    entries: dict[str, dict[str, Any]] = {
        statistic.name: {"kind": statistic.kind, **statistic.arguments} for statistic in asked
    }
    for name, weight in plan.problem.weights.items():
        entries[name]["weight"] = weight
    for name, required in plan.problem.requirements.items():
        entries[name] |= {"within": required.within, "confidence": required.confidence}
    fit = any(word == "fit" for word, *_ in plan.request.controls)
    draft = {"statistics": list(entries.values()), "expected": _written(plan.expected), "epsilon": plan.epsilon}
    return {**draft, "fit": fit, **({"reserve": plan.problem.reserved} if plan.problem.reserved else {})}


def _written(expected: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {str(key): each for key, each in value.items()} if isinstance(value, Mapping) else value
        for name, value in expected.items()
    }


def _title(asked: Sequence[Statistic]) -> str:
    """The names of the first statistics, as many as fit."""
    names = [statistic.name for statistic in asked]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{', '.join(names[:2])}"[: 190 - len(more)] + more

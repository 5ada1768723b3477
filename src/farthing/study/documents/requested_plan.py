"""The plan of a request, made again as it was submitted, or as a curator changed it."""

from __future__ import annotations

from dataclasses import replace

from farthing.errors import InvalidValue
from farthing.ledger import PlanRequest
from farthing.study.documents.study_document import dated, expected_values, plan_description
from farthing.study.plan import Plan
from farthing.study.release_request import Request
from farthing.study.study import Study


def requested_plan(study: Study, request: int | PlanRequest) -> Plan:
    """The plan of a request with exactly the noise that was shown; if it is approved, `release` may charge for it.

    Args:
        study: The study of its dataset, of the analyst who asked.
        request: The request, or its number.

    Returns:
        The plan.

    Raises:
        InvalidValue: If there is no such request, or it is not about this study.

    >>> import pyarrow, tempfile, farthing as ft
    >>> from farthing.study.documents.requested_plan import requested_plan
    >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
    >>> folder = tempfile.TemporaryDirectory()
    >>> ada = ft.Study(people, epsilon=1.0, ledger=folder.name + "/study.db", name="people")
    >>> ada.register()
    >>> _ = ada.ledger.grant("people", "bob", 0.0)
    >>> bob = ft.Study(people, epsilon=1.0, ledger=ada.ledger.acting("bob", "analyst"), name="people")
    >>> asked = bob.plan(ft.count(), epsilon=0.5).submit("the yearbook")
    >>> _ = ada.ledger.requests.approve(asked.id)
    >>> round(requested_plan(bob, asked.id).release().cost, 6)
    0.5
    >>> ada.close(); folder.cleanup()
    """
    record = request if isinstance(request, PlanRequest) else study.ledger.requests.one(request)
    if (record.dataset, record.analyst) != (study.name, study.payer):
        raise InvalidValue(
            "request",
            record.id,
            f"is that of {record.analyst!r} for {record.dataset!r}",
            "open the study of that dataset as that analyst",
        )
    document = record.document
    if "plan" not in document:
        raise InvalidValue("request", record.id, "has no stored plan", "charge it by hand")
    described = plan_description(document["statistics"])
    asked = tuple(dated(statistic, study.dataset) for statistic in described.statistics)
    expected = expected_values(document["expected"], study.dataset)
    kept, epsilon = document["plan"], document["epsilon"]
    words = Request.of(study, asked, epsilon, expected)
    words = replace(words, controls=tuple(tuple(control) for control in kept["asked"]["controls"]))
    return Plan.requested(study, asked, expected, epsilon, words, kept)

"""Routes about the ledger: what was spent, by whom, in order, and whether it is what was written."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.http.security_headers import described_headers
from farthing.server.schemas.entry_schema import (
    BurnDownView,
    EntriesView,
    LedgerView,
    ReleasedView,
    VerificationAsked,
    VerificationView,
)
from farthing.server.services import ledger_pages, ledger_releases
from farthing.server.services.app_state import TheState

router = guarded("ledger")

DatasetName = Annotated[str, Query(min_length=1, max_length=64, description="the name of a dataset")]


@router.get("/ledger", response_model=LedgerView, summary="The ledger as a whole")
def ledger(who: Who, state: TheState) -> LedgerView:
    """Its identity, how many entries it has, when it was last verified, and the datasets in it."""
    return ledger_pages.summary(state, who)


@router.get(
    "/ledger/entries",
    response_model=EntriesView,
    responses=refusals("not_found"),
    summary="Entries, each with a sentence",
)
def entries(
    who: Who,
    state: TheState,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    since: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    newest: Annotated[bool, Query(description="the newest first")] = False,
) -> EntriesView:
    """A page of entries, each with a sentence; analysts see those of their own grants."""
    return ledger_pages.page(state, who, dataset, since, limit, newest)


@router.get(
    "/ledger/releases",
    response_model=ReleasedView,
    responses=refusals("not_found"),
    summary="The last releases: title, statistics, unit, version, who and when",
)
def releases(
    who: Who,
    state: TheState,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ReleasedView:
    """Everything that was paid for and has an answer; analysts see their own, without versions of tables."""
    return ledger_releases.released(state, who, dataset, limit)


@router.post(
    "/ledger/verify",
    response_model=VerificationView,
    responses=refusals("too_large", "rate_limited"),
    summary="Verify the ledger",
)
def verify(body: VerificationAsked, who: Who, state: TheState) -> VerificationView:
    """Read every entry again, and look for a receipt's entry if one is given. One at a time."""
    receipt = body.receipt
    if isinstance(receipt, dict):
        receipt = json.dumps(receipt)
    verification = state.history.verify(None if receipt is None else ledger_pages.read_receipt(receipt))
    # A receipt that was edited says nothing about the ledger, which is read once more without it.
    ledger_ok = verification.ok or (receipt is not None and state.history.verify(None).ok)
    return ledger_pages.verification_view(verification, who, ledger_ok)


@router.get(
    "/ledger/burn-down",
    response_model=BurnDownView,
    responses=refusals("not_found", "rate_limited"),
    summary="How a budget is used up",
)
def burn_down(
    who: Who,
    state: TheState,
    dataset: DatasetName,
    analyst: Annotated[str | None, Query(max_length=64, description="whose grant; analysts see their own")] = None,
) -> BurnDownView:
    """What was spent after each entry (a sample, if there are very many). Analysts see their own grant."""
    return ledger_pages.burn_down(state, who, dataset, analyst)


@router.get(
    "/ledger/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "one entry a line",
            "headers": described_headers({"Content-Disposition": "what the file is called"}),
            "content": {"application/jsonl": {}},
        },
        **refusals("rate_limited"),
    },
    summary="All entries as JSON lines",
)
def export(state: TheState) -> StreamingResponse:
    """Everything, as it is signed; for curators and auditors."""
    headers = {"Content-Disposition": 'attachment; filename="ledger.jsonl"'}
    return StreamingResponse(ledger_pages.exported(state), media_type="application/jsonl", headers=headers)

"""Routes about publications: the form, a preview, the signed files, deposits. Curators sign; nothing is spent."""

from __future__ import annotations

from fastapi import Response

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.http.security_headers import described_headers
from farthing.server.routes.release_routes import AnyId
from farthing.server.schemas.deposit_schema import DepositForm, DepositView, PublishingView
from farthing.server.schemas.launch_schema import LaunchForm, LaunchView
from farthing.server.schemas.publication_schema import PublicationForm, PublicationPreview
from farthing.server.services import deposit_service, publication_service
from farthing.server.services.app_state import TheState

router = guarded("releases")

_REFUSALS = refusals("not_found", "conflict", "budget_exceeded", "infeasible", "answer_forfeited", "engine_error")


@router.post(
    "/releases/{request_id}/publication/preview",
    response_model=PublicationPreview,
    responses=_REFUSALS,
    summary="How a publication will look",
)
def publication_preview(request_id: AnyId, body: PublicationForm, who: Who, state: TheState) -> PublicationPreview:
    """Which details are missing, or the landing page; nothing is signed."""
    return publication_service.preview(state, who, request_id, body)


@router.post(
    "/releases/{request_id}/publication",
    response_class=Response,
    responses={
        200: {
            "description": "a zip file that `farthing verify` checks",
            "headers": described_headers({"Content-Disposition": "the name of the file"}),
            "content": {"application/zip": {}},
        },
        **_REFUSALS,
    },
    summary="A release as a signed publication",
)
def publication(request_id: AnyId, body: PublicationForm, who: Who, state: TheState) -> Response:
    """The signed publication: tables, charts, report, methods and metadata. The same details give the same bytes."""
    content, name = publication_service.bundle(state, who, request_id, body)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/zip", headers=headers)


@router.get("/publishing", response_model=PublishingView, summary="What the form of a publication asks")
def publishing(state: TheState) -> PublishingView:
    """The fields of the form, and the Dataverses that this server may deposit in."""
    return deposit_service.publishing(state)


@router.get(
    "/releases/{request_id}/deposits",
    response_model=list[DepositView],
    responses=_REFUSALS,
    summary="The deposits of a release",
)
def deposits(request_id: AnyId, who: Who, state: TheState) -> list[DepositView]:
    """How far each deposit of a release is, and what was asked."""
    return deposit_service.deposits(state, who, request_id)


@router.post(
    "/releases/{request_id}/deposits",
    status_code=202,
    response_model=DepositView,
    responses=_REFUSALS,
    summary="Deposit a publication in a Dataverse",
)
def deposit(request_id: AnyId, body: DepositForm, who: Who, state: TheState) -> DepositView:
    """Begin a deposit, or continue one that ended half-way; nothing is uploaded twice. It runs in the background."""
    return deposit_service.begun(state, who, request_id, body)


@router.post(
    "/launches",
    response_model=LaunchView,
    responses=_REFUSALS,
    summary="Which file of a Dataverse a link is about",
)
def launch(body: LaunchForm, state: TheState) -> LaunchView:
    """Ask an allowed Dataverse which file somebody was looking at when they chose farthing there."""
    return deposit_service.launched(state, body.callback)

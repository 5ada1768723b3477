"""Routes about publications: how one will look, and the signed files. Curators sign; nothing is spent."""

from __future__ import annotations

from fastapi import Response

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.http.security_headers import described_headers
from farthing.server.routes.release_routes import AnyId
from farthing.server.schemas.publication_schema import PublicationForm, PublicationPreview
from farthing.server.services import publication_service
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

"""Publications of releases: how one will look, and the signed files. Nothing is spent, and no row is read."""

from __future__ import annotations

from farthing.errors import RequestRefused
from farthing.publication import PublicationDetails
from farthing.publication.bundle import zip_of
from farthing.publication.edition import edition_of
from farthing.publication.landing_page import landing_page
from farthing.publication.publisher import publication_files
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.publication_schema import PublicationForm, PublicationPreview
from farthing.server.services.app_state import State
from farthing.server.services.job_queue import as_the_ledger_has_it
from farthing.server.services.release_status import refuse_unreleased, visible_release
from farthing.server.store.job_rows import RELEASED
from farthing.study.release import Release, stored_release
from farthing.study.reports.release_report import report_page


def preview(state: State, who: Caller, request_id: str, form: PublicationForm) -> PublicationPreview:
    """What is missing, or how the landing page will look."""
    release, publication = publishable_release(state, who, request_id), PublicationDetails.of(form.plain())
    missing = list(publication.missing)
    page = None if missing else landing_page(edition_of(release, publication, state.root), pictures=False)
    return PublicationPreview(missing=missing, landing_page=page, public_key=state.root.publication_key().public)


def bundle(state: State, who: Caller, request_id: str, form: PublicationForm) -> tuple[bytes, str]:
    """The publication as a zip file, and what the file is called."""
    release = publishable_release(state, who, request_id)
    edition, files = publication_files(release, form.plain(), ledger=state.root, report=report_page)
    return zip_of(files, edition), f"{edition.publication.registry_slug}-v{edition.publication.version}.zip"


def publishable_release(state: State, who: Caller, request_id: str) -> Release:
    """A release that is there to be published."""
    job = as_the_ledger_has_it(state, visible_release(state, who, request_id))
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "the release is not finished yet; publish it when it is.")
    return stored_release(state.root, job.charged)

"""The releases of the ledger as a list, each with the way to its answers, as far as the caller may see them."""

from __future__ import annotations

from farthing.server.auth.permissions import Caller
from farthing.server.schemas.entry_schema import ReleasedLine, ReleasedView
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import account_of
from farthing.server.services.ledger_pages import refuse_unknown
from farthing.server.store.job_rows import job_of
from farthing.study.release_list import ReleaseRecord, release_list


def released(state: State, who: Caller, dataset: str | None, limit: int) -> ReleasedView:
    """The last releases, the newest first."""
    ledger = state.ledger(who)
    account = None if dataset is None else account_of(state.store, dataset)
    if account is not None:
        refuse_unknown(ledger, who, account)
    # The whole ledger is read for it: once, until it has another entry.
    key = (who.name, who.role, account, limit, ledger.last())
    records = state.releases.value(key)
    if records is None:
        records = state.releases.keep(key, release_list(ledger, account, limit))
    return ReleasedView(releases=[_line(state, each) for each in reversed(records)])


def _line(state: State, release: ReleaseRecord) -> ReleasedLine:
    job = job_of(state.store, release.request_id)
    known = {"kind": None, "dataset": None} if job is None else {"kind": job.kind, "dataset": job.dataset}
    return ReleasedLine.model_validate({**release.to_dict(), **known})

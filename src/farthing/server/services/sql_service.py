"""Statements of SQL as drafts, and the rows of those that were released. Nothing is spent, and no table is read."""

from __future__ import annotations

from farthing.errors import InvalidSQL, InvalidValue, RequestRefused
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.sql_schema import ResultView, StatementView, StatementWords
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import as_the_ledger_has_it
from farthing.server.services.release_status import refuse_unreleased, visible_release
from farthing.study.documents.study_document import entry_of
from farthing.study.release import stored_release
from farthing.study.sql.sql_plan import Script, compiled


def statement_view(state: State, who: Caller, words: StatementWords) -> StatementView:
    """A statement in the words of a draft; with the request id of its release also its rows."""
    study = study_of(state, who, words.dataset)
    script = compiled(study, words.sql, words.max_cells, names=(words.dataset,))
    if script.derived or script.dataset is not study.dataset:
        wanted = ", ".join(script.derived) or "another table"
        rule = f"on a server a statement asks about the columns of the dataset as it was declared, not {wanted[:100]}"
        way_out = (
            "declare bands and ratios as steps of the dataset, with derive; or use farthing sql where the data are"
        )
        raise InvalidSQL(words.sql, script.places[0], rule, way_out)
    return StatementView(
        statistics=[entry_of(statistic, {}) for statistic in script.statistics],
        explain=script.explain,
        tables=None if words.request_id is None else _tables(state, who, words, script),
    )


def _tables(state: State, who: Caller, words: StatementWords, script: Script) -> list[ResultView]:
    job = as_the_ledger_has_it(state, visible_release(state, who, str(words.request_id)))
    if job.dataset != words.dataset:
        raise RequestRefused("not_found", f"{words.dataset!r} has no release {words.request_id!r}.")
    refuse_unreleased(job)
    release = stored_release(state.root, job.charged)
    names = set(release)
    missing = [statistic.name for statistic in script.statistics if statistic.name not in names]
    if missing:
        rule, way_out = "is a release of something else", f"it lacks {missing[0]}"
        raise InvalidValue("request_id", words.request_id, rule, way_out)
    return [
        ResultView.model_validate({**table.to_dict(), "measured": list(table.measured)})
        for table in script.results(release)
    ]

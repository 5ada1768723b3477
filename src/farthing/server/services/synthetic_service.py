"""Synthetic tables: priced, made as a job that charges once, and drawn again from the ledger for whoever reads them."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.synthetic_schema import (
    SyntheticAsked,
    SyntheticColumn,
    SyntheticLine,
    SyntheticList,
    SyntheticMaking,
    SyntheticPlanView,
    SyntheticQuality,
    SyntheticView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import as_the_ledger_has_it, full_id, submitted, visible_job
from farthing.server.services.release_status import plain_text_cell, refuse_unreleased, visible_release
from farthing.server.store.job_rows import RELEASED, SYNTHESIS, Job, listed

if TYPE_CHECKING:
    from farthing.ledger import PlanRequest
    from farthing.study import Study
    from farthing.study.synthesis.synthetic_table import SynthesisOffer, Synthetic

MOST_LISTED = 50
MOST_CELLS = 10_000_000  # of a table that is downloaded: rows times columns
Format = Literal["csv", "parquet", "json", "html"]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}


def priced(state: State, who: Caller, asked: SyntheticAsked) -> SyntheticPlanView:
    """What a table would cost, and what would be measured; nothing is spent and no row is read."""
    study = study_of(state, who, asked.dataset)
    study = study.on_request() if asked.on_request else study
    with state.sessions.price_turn():
        offer = offer_of(state, who, study, asked.plain())
    own = state.root.stored(full_id(who, offer.request_id))
    facts = offer.to_dict()
    return SyntheticPlanView(
        dataset=asked.dataset,
        epsilon=offer.cost,
        delta=offer.delta,
        columns=[SyntheticColumn(**column) for column in facts["columns"]],
        sentences=[words.strip() for words in (*offer.measured, *offer.cuts)],
        warnings=list(offer.cautions),
        request_id=offer.request_id,
        made=offer.made_before or (own is not None and own.answer is not None),
    )


def making(state: State, who: Caller, body: SyntheticMaking) -> Job:
    """The job that makes a table."""
    study_of(state, who, body.dataset)  # a dataset that is not theirs is not there
    return submitted(
        state,
        who,
        kind=SYNTHESIS,
        request_id=body.request_id,
        dataset=body.dataset,
        asked=body.plain(),
        limits={"confirmed_epsilon": body.confirmed_epsilon},
    )


def submitted_table(state: State, who: Caller, asked: SyntheticAsked, purpose: str, title: str) -> PlanRequest:
    """Ask a curator to allow a table; nothing is spent and no row is read."""
    if asked.epsilon is None:
        raise InvalidValue("epsilon", None, "must be given in a request", "say what you ask the curator for")
    study, body = study_of(state, who, asked.dataset), asked.plain()
    with state.sessions.price_turn():
        return offer_of(state, who, study.on_request(), body).submit(purpose, title, body)


def offer_of(state: State, who: Caller, study: Study, asked: Mapping[str, Any]) -> SynthesisOffer:
    """The table that is asked for, priced."""
    from farthing.study.release import stored_release

    jobs = [as_the_ledger_has_it(state, visible_release(state, who, name)) for name in asked.get("known") or ()]
    for job in jobs:
        refuse_unreleased(job)
    return study.synthesis_plan(
        epsilon=asked.get("epsilon"),
        columns=asked.get("columns"),
        bins={name: _cut(cut) for name, cut in (asked.get("bins") or {}).items()} or None,
        missing=asked["missing"],
        known=[stored_release(state.root, job.charged) for job in jobs],
    )


def table_list(state: State, who: Caller, dataset: str | None) -> SyntheticList:
    """The newest tables: an analyst's own, to others everybody's."""
    owner = who.name if who.role == "analyst" else None
    jobs = listed(state.store, SYNTHESIS, owner, dataset, limit=MOST_LISTED)
    return SyntheticList(tables=[SyntheticLine(**_line(as_the_ledger_has_it(state, job))) for job in jobs])


def visible_table(state: State, who: Caller, table_id: str) -> Job:
    """The job of a table, if the caller may see it."""
    return as_the_ledger_has_it(state, visible_job(state, who, SYNTHESIS, table_id))


def table_view(state: State, job: Job) -> SyntheticView:
    """A table with its price and its quality, once it is made."""
    unknown: dict[str, Any] = {
        "epsilon": None, "delta": None, "rows": None, "columns": [], "quality": [], "warnings": [], "receipt": None,
    }  # fmt: skip
    error = None if job.error is None else ErrorBody.model_validate(job.error)
    head = {**_line(job), "progress": job.progress, "error": error}
    if job.state != RELEASED:
        return SyntheticView(**{**head, **unknown})
    table = _table_of(state, job)
    return SyntheticView(
        **{
            **head,
            "sentence": f"{table.sentence}. {table.quality.sentence[0].upper()}{table.quality.sentence[1:]}.",
            "epsilon": table.cost,
            "delta": table.question.delta,
            "rows": len(table.codes),
            "columns": list(table.columns),
            "quality": [SyntheticQuality(**one.to_dict()) for one in table.quality.marginals],
            "warnings": list(table.quality.warnings),
            "receipt": table.receipt.to_json(),
        }
    )


def download(state: State, job: Job, form: Format, rows: int | None) -> tuple[bytes, str, str]:
    """A table as a file: its bytes, its type and its name."""
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "it is not made yet; wait until it is, and download it then.")
    table = _table_of(state, job, rows)
    name = f"{job.dataset}-{job.id.partition(':')[2]}".replace(" ", "-")
    return _written(table, form), _TYPES[form], f"{name}.{form}"


def _written(table: Synthetic, form: Format) -> bytes:
    if form == "json":
        return table.to_json().encode()
    if form == "html":
        from farthing.study.reports.synthetic_report import report_page

        return report_page(table).encode()
    file = io.BytesIO()
    if form == "parquet":
        from pyarrow import parquet

        parquet.write_table(table.table(), file)
    else:
        from pyarrow import csv

        csv.write_csv(_for_spreadsheets(table.table()), file)
    return file.getvalue()


def _for_spreadsheets(table: Any) -> Any:
    """The same rows, but for texts that a spreadsheet would run: values may have been found among private rows."""
    import pyarrow

    columns = []
    for column in table.columns:
        if pyarrow.types.is_string(column.type):
            values = column.combine_chunks().dictionary_encode()
            texts = [plain_text_cell(value) for value in values.dictionary.to_pylist()]
            column = pyarrow.array(texts, pyarrow.string()).take(values.indices)
        columns.append(column)
    return pyarrow.table(columns, names=[plain_text_cell(name) for name in table.column_names])


def _table_of(state: State, job: Job, rows: int | None = None) -> Synthetic:
    """The table as the ledger has it, with as many rows as were measured or as are asked for, within reason."""
    from farthing.study.synthesis.synthetic_table import stored_synthetic

    key = (job.charged, rows)
    table = state.tables.value(key)
    if table is not None:
        return table
    table = stored_synthetic(state.root, job.charged)
    most = MOST_CELLS // len(table.columns)
    if rows is not None and rows > most:
        raise InvalidValue(
            "rows", rows, f"must be at most {most:,} on a server", "make more rows with `farthing synth`"
        )
    wanted = most if rows is None and table.question.rows(table.model) > most else rows
    if wanted is not None:
        table = stored_synthetic(state.root, job.charged, wanted)
    return state.tables.keep(key, table)


def _cut(cut: int | list[Any]) -> int | list[Any]:
    """Into how many cells, or at which edges: dates are texts in JSON. What is no date is refused with the column."""
    if isinstance(cut, int):
        return cut
    edges = list(cut)
    for place, edge in enumerate(edges):
        if isinstance(edge, str):
            with suppress(ValueError):
                edges[place] = datetime.date.fromisoformat(edge)
    return edges


def _line(job: Job) -> dict[str, Any]:
    created = datetime.datetime.fromtimestamp(job.created / 1e9, datetime.UTC).isoformat(timespec="milliseconds")
    facts = {"id": job.id, "dataset": job.dataset, "owner": job.owner, "created": created, "state": job.state}
    return {**facts, "sentence": _words(job)}


def _words(job: Job) -> str:
    if job.state == "released":
        columns = job.asked.get("columns")
        return "all columns" if columns is None else f"columns {', '.join(json.dumps(name) for name in columns)}"
    return {
        "queued": "Waiting to be made; nothing is charged yet.",
        "running": "It is being made.",
        "forfeited": "It was charged and lost while it was being made; what was paid stays spent.",
    }.get(job.state, "It was not made, and nothing was charged for it.")

"""A statement at the shell: planned, explained, confirmed, released and shown."""

from __future__ import annotations

import json
import shlex
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from farthing.cli.part_releases import payers_text
from farthing.cli.terminal import confirm_spending, refuse_unreadable, say_if_changed, say_if_same_people
from farthing.errors import InvalidValue, SamePeople

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.study.documents.study_file import StudyFile
    from farthing.study.sql.sql_plan import SqlPlan, SqlRelease


@dataclass(frozen=True)
class SqlOptions:
    """How statements are to be planned and shown."""

    asked: StudyFile
    epsilon: float | None
    max_cells: int | None
    errors: bool
    as_json: bool
    table: str | None
    title: str
    yes: bool
    fresh: bool = False


def planned_sql(study: Study, text: str, options: SqlOptions) -> SqlPlan:
    """The plan of a text."""
    return study.sql(text, epsilon=options.epsilon, expected=options.asked.expected, max_cells=options.max_cells)


def explanation(plan: SqlPlan) -> str:
    """The plan with everything that it can say."""
    assert plan.script is not None
    return str(plan) if plan.script.explain else f"{plan}\n\n{plan.explain()}"


def released_sql(study: Study, plan: SqlPlan, options: SqlOptions) -> SqlRelease:
    """Confirm what is new, and release it."""
    from rich.console import Console

    from farthing.cli.terminal import stages

    if plan.earlier is not None and not plan.earlier.exact:
        raise InvalidValue("epsilon", options.epsilon, "is more than is left", "ask with a smaller --epsilon")
    if plan.earlier is None or options.fresh:
        refuse_unreadable(study.dataset)
        say_if_same_people(study, unasked=options.yes and not options.asked.names_account)
        if not options.yes:
            click.echo(str(plan), err=options.as_json)
            confirm_spending(study, plan.cost.upper, "Release?", err=options.as_json, plan=True)
        elif study.account_news is not None:
            click.echo(f"note: this release {study.account_news}", err=True)
    with stages(Console(stderr=True)) as work, warnings.catch_warnings():
        warnings.simplefilter("ignore", SamePeople)  # it was said above
        work.begin("running on the engine", measured=True)
        release = plan.release(progress=work.share, fresh=options.fresh, title=options.title)
    if release.repeated:
        say_if_changed(study, release.receipt, f"farthing sql {shlex.quote(str(options.asked.path))} --fresh")
    return release


def show(release: SqlRelease, options: SqlOptions, study: Study) -> None:
    """The rows, what was paid for them, and by whom."""
    if options.as_json:
        facts = {"tables": [table.to_dict() for table in release.tables], **release.to_dict()}
        from farthing.statistics.answer_records import plain

        click.echo(json.dumps(plain(facts), indent=2, allow_nan=False))
    else:
        for table in release.tables:
            if options.errors:
                frame = table.to_frame(errors=True, intervals=True)
                click.echo(frame.to_string(index=False, na_rep="NULL"))
                click.echo("\n".join(f"note: {note}" for note in table.notes) + "\n")
            else:
                click.echo(f"{table}\n")
        word = "paid before: " if release.repeated else "spent: "
        click.echo(f"{word}epsilon {release.cost:.6g} {payers_text(release, study)}; request {release.request_id}")
    if options.table is not None:
        with open(options.table, "w", encoding="utf-8", newline="") as file:
            file.write("\n".join(table.to_csv() for table in release.tables))
        click.echo(f"Written: {options.table}", err=options.as_json)

"""`farthing sql`: a statement about a study's table, or a prompt for many: errors and price first, then rows."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from farthing.cli.charge_grammar import decimal_number
from farthing.cli.part_releases import payers_text
from farthing.cli.study_commands import refuse_unwritable
from farthing.cli.terminal import (
    confirm_spending,
    declared_study,
    refuse_unreadable,
    say_if_changed,
    say_if_same_people,
    somebody_is_there,
    study_options,
    study_to_spend,
)
from farthing.errors import InvalidValue, SamePeople

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.study.documents.study_file import StudyFile
    from farthing.study.sql.sql_plan import SqlPlan, SqlRelease

HELP = """\
Ask a study's table (study.toml) in SQL: see every error and the price, then release the rows of the statement.

STATEMENT is one SELECT, or several separated by semicolons, which are planned together; - reads it from the standard
input. What will be spent is shown and confirmed first. The same statistics are answered once, by whichever words: asked
again, also by farthing release or from Python, the answers come from the ledger and nothing is spent.

Without STATEMENT on a terminal it is a prompt with history and completion, where every statement is planned with
--epsilon, by default a tenth of the budget. EXPLAIN before a statement, or --explain, shows errors, prices and the SQL
that the engine would run, and spends nothing.

Exit code: 0 when it was answered or explained; 1 when you declined; 2 when it was refused; 130 when interrupted.
"""


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


@click.command("sql", help=HELP, short_help="Ask a study's table in SQL; errors and price first.")
@click.argument("file", default="study.toml")
@click.argument("statement", required=False)
@click.option("--explain", is_flag=True, help="Show errors, prices and the engine's SQL; spend nothing.")
@click.option("--epsilon", metavar="E", help="How much of the budget it may use (default: plan_epsilon, or all).")
@click.option("--max-cells", metavar="N", type=int, help="In how many groups one person counts (default: in all).")
@click.option("--errors", is_flag=True, help="Show errors in columns of their own.")
@click.option("--csv", "table", metavar="FILE", help="Write the rows with errors and intervals.")
@click.option("--json", "as_json", is_flag=True, help="Print rows, plan and receipt as JSON.")
@click.option("--fresh", is_flag=True, help="Draw new noise and pay again, even if this was released before.")
@click.option("--title", metavar="TEXT", default="", help="Title under which the release is listed.")
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def sql_command(
    file: str,
    statement: str | None,
    explain: bool,
    epsilon: str | None,
    max_cells: int | None,
    errors: bool,
    table: str | None,
    as_json: bool,
    fresh: bool,
    title: str,
    yes: bool,
) -> None:
    """Plan the statement, confirm, release; or open the prompt."""
    asked = declared_study(file, statistics=False)
    if table is not None:
        refuse_unwritable("csv", table)
    own = asked.facts["study"].get("plan_epsilon")
    limit = own if epsilon is None else decimal_number(epsilon, "epsilon")
    options = SqlOptions(asked, limit, max_cells, errors, as_json, table, title, yes, fresh)
    if statement is None and somebody_is_there():
        from farthing.cli.sql_prompt import run_prompt

        run_prompt(options)
        return
    text = sys.stdin.read() if statement in (None, "-") else str(statement)
    if explain or text.lstrip()[:7].lower() == "explain":
        with asked.looked_at() as study:
            plan = planned_sql(study, text, options)
            click.echo(plan.to_json() if as_json else explanation(plan))
        return
    if not asked.has_ledger:  # so that none is made either
        refuse_unreadable(asked.dataset)
        with asked.looked_at() as looking:
            planned_sql(looking, text, options)  # refused before a ledger is made
    study = study_to_spend(asked, yes)
    release = released_sql(study, planned_sql(study, text, options), options)
    show(release, options, study)


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

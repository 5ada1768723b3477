"""`farthing sql`: a statement about a study's table, or a prompt for many: errors and price first, then rows."""

from __future__ import annotations

import sys

import click

from farthing.cli.charge_grammar import decimal_number
from farthing.cli.sql_statement import SqlOptions, explanation, planned_sql, released_sql, show
from farthing.cli.study_commands import refuse_unwritable
from farthing.cli.terminal import declared_study, refuse_unreadable, somebody_is_there, study_options, study_to_spend

HELP = """\
Ask a study's table (study.toml) in SQL: see every error and the price, then release the rows of the statement.

STATEMENT is one SELECT, or several separated by semicolons, which are planned together; - reads it from the standard
input. What will be spent is shown and confirmed first. Statistics that were released before, by this command, by
farthing release or from Python, come from the ledger and cost nothing.

Without STATEMENT, on a terminal, it opens a prompt with history and completion, where each statement may use
--epsilon, by default a tenth of the budget. EXPLAIN before a statement, or --explain, shows errors, prices and the SQL
that the engine would run, and spends nothing.

Exit code: 0 when it was answered or explained; 1 when you declined; 2 when it was refused; 130 when interrupted.
"""


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

"""`farthing series`: counts and running totals of a table that grows, period by period."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.requests_command import asked_by_analyst
from farthing.cli.session_plans import agree_to_open, show_session_plan, study_for_session
from farthing.cli.terminal import declared_study, study_options

if TYPE_CHECKING:
    from farthing.adaptive.running_series import SeriesStep

HELP = """\
Release counts and running totals of a table that grows, one step for each period that is over.

All steps are paid for, once, when the series is opened. Each call releases the periods that are over and were not
released yet, and shows all steps; called again in the same period it shows the same. The same arguments resume the
series; a second one of the same counts and periods is refused unless --session names it.

\b
Examples:
  farthing series study.toml --date admitted --every month --first 2026-01 --steps 60 --append-only --plan
  farthing series study.toml --date admitted --every month --first 2026-01 --steps 60 --append-only --yes
  farthing series study.toml --date admitted --every week --steps 52 --where "age >= 65" --by region

--append-only states that rows are only added to the table, and keep their unit and date: errors are then much smaller,
and the guarantee rests on it. That is not checked.

Exit code: 0 when it was shown; 1 when you declined; 2 when it was refused; 130 when interrupted.
"""


@click.command("series", help=HELP, short_help="Release counts and running totals of a table that grows.")
@click.argument("file", default="study.toml")
@click.option(
    "--date", "day", metavar="COLUMN", required=True, help="The column of dates that says in which period a row lies."
)
@click.option("--steps", metavar="N", required=True, help="How many periods to pay for.")
@click.option("--every", metavar="PERIOD", default="month", help="day, week, month, quarter or year (default: month).")
@click.option(
    "--first",
    metavar="PERIOD",
    help="The first period, such as 2026-01 (default: the first within the declared bounds).",
)
@click.option("--where", "condition", metavar="CONDITION", help="Count these rows (default: all).")
@click.option("--by", metavar="COLUMNS", help="One series for each value of a column, or of several (a,b).")
@click.option("--epsilon", metavar="E", help="What all steps together may cost (default: all that is left).")
@click.option("--append-only", is_flag=True, help="Rows are only added to the table; the guarantee rests on it.")
@click.option("--confidence", metavar="P", default="0.95", help="Confidence of the errors (default: 0.95).")
@click.option("--until", metavar="PERIOD", help="Release no later period (default: the last that is over).")
@click.option("--session", metavar="ID", help="Name this series; a new name is charged separately.")
@click.option("--plan", "plan_only", is_flag=True, help="Show price and errors, and spend nothing.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object per step; asks on a terminal before spending, else needs --yes.",
)
@click.option("--purpose", metavar="TEXT", help="Ask a curator to allow it, for this purpose; spends nothing.")
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def series_command(
    file: str,
    day: str,
    steps: str,
    every: str,
    first: str | None,
    condition: str | None,
    by: str | None,
    epsilon: str | None,
    append_only: bool,
    confidence: str,
    until: str | None,
    session: str | None,
    plan_only: bool,
    purpose: str | None,
    as_json: bool,
    yes: bool,
) -> None:
    """Read the arguments, show the plan, confirm, open, release what is over."""
    from farthing.numerics.bounds import rounded_down_text, rounded_up_text
    from farthing.study.sessions.series_sessions import (
        SeriesOptions,
        open_series,
        series_name,
        series_plan,
        submit_series,
    )

    asked = SeriesOptions(
        condition,
        day,
        every,
        whole_number(steps, "steps"),
        first,
        None if by is None else [name.strip() for name in by.split(",")],
        None if epsilon is None else decimal_number(epsilon, "epsilon"),
        append_only,
        decimal_number(confidence, "confidence"),
    )
    declared = declared_study(file, statistics=False)
    if purpose is not None:
        asked_by_analyst(declared, as_json, lambda study: submit_series(study, asked, purpose))
        return
    if plan_only:
        show_session_plan(declared, lambda study: series_plan(study, asked), as_json=as_json)
        return
    study = study_for_session(declared, yes)
    name = session or series_name(study, asked)
    paid = "spent" if study.ledger.stored(name) is None else "paid before"
    agree_to_open(study, name, lambda study: series_plan(study, asked), agreed=yes, as_json=as_json)
    series = open_series(study, asked, name)
    new = {step.period for step in series.update(until=until)}
    for step in series.steps:
        click.echo(json.dumps(_plain(step, step.period in new)) if as_json else _words(step, step.period in new))
    if not as_json:
        click.echo("all periods are released." if series.next is None else f"next: {series.next}, when it is over.")
    for words in series.plan.notes:
        click.echo(f"note: {words}", err=as_json)
    cost, left = rounded_up_text(series.plan.epsilon), rounded_down_text(study.left)
    click.echo(f"{paid}: epsilon {cost}; left {left}; request {name}", err=as_json)


def _plain(step: SeriesStep, new: bool) -> dict[str, Any]:
    return {"period": step.period, "new": new, "count": step.count.to_dict(), "total": step.total.to_dict()}


def _words(step: SeriesStep, new: bool) -> str:
    mark = "  (new)" if new else ""
    if not step.count.labels:
        return f"{step.period}  count {step.count}, total {step.total}{mark}"
    lines = [f"{step.period}{mark}"]
    lines += [f"  {label}  count {step.count[label]}, total {step.total[label]}" for label in step.count.labels]
    return "\n".join(lines)

"""`farthing discover`: find ranges and bounds that nobody knows, for a small share of the budget, before planning."""

from __future__ import annotations

import json
import math
import shlex
from typing import TYPE_CHECKING

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.terminal import confirm_spending, declared_study, say_if_changed, study_options, study_to_spend

if TYPE_CHECKING:
    from farthing.study import Study

HELP = """\
Find what the schema of a study (study.toml) declares as unknown, for a small share of its budget: the range of numbers
and dates, the values of text, and with max_rows = "auto" how many rows of a unit to keep.

It shows what it will find and what that costs, and asks before anything is spent. The ledger keeps what was found:
plans use it free of charge, and running this again shows it. --rows-per-unit finds how many rows units have, and so
which share of the rows max_rows leaves out: that alone, or beside what --column names. What was found before takes no
part of --epsilon.

Exit code: 0 when everything was found; 1 when you declined, or a search found nothing; 2 when it was refused; 130 when
interrupted.
"""


@click.command("discover", help=HELP, short_help="Find ranges and values that nobody knows.")
@click.argument("file", default="study.toml")
@click.option("--column", "columns", metavar="NAME", multiple=True, help="Only this column; repeat it for several.")
@click.option(
    "--rows-per-unit", is_flag=True, help="Find how many rows units have, and only the columns that --column names."
)
@click.option("--epsilon", metavar="E", help="What all searches may cost (default: 5% for each range, 10% for text).")
@click.option("--delta", metavar="D", help="The delta of each search for values of text (default: 1/64 of the whole).")
@click.option("--max-keys", metavar="N", help="How many values of text one unit counts for (default: 4).")
@click.option("--fresh", is_flag=True, help="Search again and pay again, even for what was found before.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print what was found as JSON; asks on a terminal before spending, else needs --yes.",
)
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def discover_command(
    file: str,
    columns: tuple[str, ...],
    rows_per_unit: bool,
    epsilon: str | None,
    delta: str | None,
    max_keys: str | None,
    fresh: bool,
    as_json: bool,
    yes: bool,
) -> None:
    """Show the searches, confirm, run them, print what was found."""
    from rich.console import Console

    from farthing.cli.terminal import stages

    declared = declared_study(file, statistics=False, incomplete=True)
    study = study_to_spend(declared, yes)
    plan = study.discover(
        *columns,
        epsilon=None if epsilon is None else decimal_number(epsilon, "epsilon"),
        delta=None if delta is None else decimal_number(delta, "delta"),
        rows_per_unit=rows_per_unit,
        max_keys=None if max_keys is None else whole_number(max_keys, "max_keys"),
        fresh=fresh,
    )
    if plan.open:
        study.allowance(plan.cost)  # refused before anybody is asked
        click.echo(str(plan), err=as_json)
        if not yes:
            confirm_spending(study, plan.cost, "Find it?", err=as_json)
    for paid in () if fresh else plan.paid.values():
        say_if_changed(study, paid.receipt, f"farthing discover {shlex.quote(file)} --fresh")
    with stages(Console(stderr=True)) as work:
        work.begin("searching", measured=True)
        findings = plan.release(work.share)
    spent = plan.cost
    if as_json:
        data = {"findings": [dict(finding.facts) for finding in findings.values()], "spent_now": spent}
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo("\n".join(["", *(finding.sentence for finding in findings.values())]))
        click.echo(f"\nSpent now: epsilon {spent:.6g}. To see the plan: farthing plan {shlex.quote(file)}")
    for place, columns in declared.unbounded.items():
        click.echo(_bound_to_write(study, place, columns), err=True)
    if not all(finding.is_usable for finding in findings.values()):
        raise SystemExit(1)


def _bound_to_write(study: Study, place: str, columns: tuple[str, ...]) -> str:
    """What a statistic still lacks before it can be planned, with the number of its cells where that is known."""
    from farthing.data.aggregates.aggregate import axis_of
    from farthing.errors import InvalidValue

    try:
        cells = math.prod(len(axis_of(name, study.dataset.schema)) for name in columns)
    except InvalidValue:  # one of them was not searched, or nothing was found
        cells = 0
    named = " and ".join(columns)
    most = f"; {named} has {cells:,} cells now, and max_cells = {cells} leaves nobody out" if cells else ""
    return f"Note: {place} still lacks max_cells: write max_cells = {min(cells, 3) or 3}, for example, below it{most}."

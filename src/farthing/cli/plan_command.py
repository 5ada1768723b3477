"""`farthing plan`: what a study would tell, how accurately and at what price; nothing is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from farthing.errors import BudgetExceeded, Infeasible

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.study.study_file import StudyFile

_BEFORE = (
    "This study was released before, by an earlier version of farthing, as {}: farthing release returns those answers "
    "and spends nothing."
)

_OUTSIDE = "To see how many values lie outside their bounds, and count as the nearer bound: farthing check {}"

HELP = """\
Show the error of every statistic of a study (study.toml) before anything is spent, and what the plan would cost.

No row is read and nothing is written: the ledger is opened to see what is left of the budget, and where there is none
yet, the release makes it.

Exit code: 0 when there is a plan; 2 when it was refused, with the reason and what to do.
"""


@click.command("plan", help=HELP)
@click.argument("file", default="study.toml")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option(
    "--explain", is_flag=True, help="Also say what is measured and how each statistic comes out of it."
)
@click.option("--plot", metavar="FILE", help="Draw errors and prices (svg, png or html).")
def plan_command(file: str, as_json: bool, explain: bool, plot: str | None) -> None:
    """Read the file, divide the budget, print."""
    if plot is not None:
        from farthing.cli.compose_command import _refuse_undrawable

        _refuse_undrawable(plot)

    from rich.console import Console

    from farthing.cli.waiting import stages
    from farthing.release.bounds import clipped_columns
    from farthing.study.study_file import read_study

    asked = read_study(file)
    with asked.looked_at() as study:
        try:
            with stages(Console(stderr=True)) as work:
                work.begin("planning")
                plan = asked.plan(study)
                shown = plan.to_json() if as_json else f"{plan}\n\n{plan.explain()}" if explain else str(plan)
        except (BudgetExceeded, Infeasible):
            if not _was_released(asked, study):
                raise
            _show_released(asked, study, as_json)
            return
        click.echo(shown)
        if not as_json:
            click.echo(f"\nTo release it: farthing release {file}")
            if any(clipped_columns(one.output.statistic, study.dataset.schema) for one in plan.statistics):
                click.echo(_OUTSIDE.format(file))
            if plan.earlier is None and _was_released(asked, study):
                click.echo(_BEFORE.format(asked.request_id), err=True)
        if plot is not None:
            from farthing.plots import save

            save(plan.plot(), plot)
            click.echo(f"Picture: {plot}", err=as_json)


def _was_released(asked: StudyFile, study: Study) -> bool:
    """Whether an earlier version released this very file: `farthing release` returns what it has."""
    stored = study.ledger.stored(asked.request_id)
    return stored is not None and stored.answer is not None


def _show_released(asked: StudyFile, study: Study, as_json: bool) -> None:
    from farthing.study.stored import plain

    release = study.released(asked.request_id)
    if as_json:
        told = {**release.plan, "request_id": release.request_id, "released": True}
        click.echo(json.dumps(plain(told), indent=2))
        return
    click.echo(_BEFORE.format(release.request_id))
    click.echo(f"It has: {', '.join(release)}. It was charged epsilon {release.cost:.6g} then.")

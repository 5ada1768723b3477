"""`farthing plan`: what a study would tell, how accurately and at what price; nothing is spent."""

from __future__ import annotations

import click

HELP = """\
Show the error of every statistic of a study (study.toml) before anything is spent, and what the plan would cost.

No row is read, and no budget is written to the ledger: the release does that. The ledger is opened to see what is left;
a new one is made where there is none.

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
    from farthing.study.study_file import read_study

    with stages(Console(stderr=True)) as work:
        work.begin("planning")
        plan = read_study(file).plan()
        shown = plan.to_json() if as_json else f"{plan}\n\n{plan.explain()}" if explain else str(plan)
    click.echo(shown)
    if not as_json:
        click.echo(f"\nTo release it: farthing release {file}")
    if plot is not None:
        from farthing.plots import save

        save(plan.plot(), plot)
        click.echo(f"Picture: {plot}", err=as_json)

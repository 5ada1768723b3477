"""`farthing count`: how many rows a table has, for a small share of its budget, before anything else is planned."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from farthing.cli.charge_grammar import decimal_number
from farthing.cli.terminal import confirm_spending, declared_study, say_if_changed, study_options, study_to_spend

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.study.study_account import RowCount

HELP = """\
Count the rows of a study's table (study.toml), with noise, for a small share of its budget.

Use it where the number of rows is neither public (rows under [dataset]) nor expected (rows under [expected]): errors of
means, quantiles and the like depend on it. Plans made afterwards predict errors for the low end of what was counted,
and use what is left of the budget. `farthing release --count-first` does both, one after the other.

The rows are counted once: run it again and the answer comes from the ledger, whatever --share says, without spending
anything. If the table has changed since, a note says so. --fresh counts again and is charged again.

Exit code: 0 when the rows were counted; 1 when you declined; 2 when it was refused; 130 when interrupted.
"""

share_option = click.option(
    "--share",
    metavar="S",
    default="0.02",
    help="The share of the whole budget that counting rows may cost (default: 0.02).",
)


@dataclass(frozen=True)
class CountFirst:
    """Whether rows are to be counted before a release, and for which share of the budget."""

    share: float
    wanted: bool

    def price(self, study: Study) -> float:
        """The epsilon of the count."""
        from farthing.study.study_account import price_of_counting

        return price_of_counting(study, self.share)


@click.command("count", help=HELP, short_help="Count the rows of a study's table, with noise.")
@click.argument("file", default="study.toml")
@share_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the count as JSON; asks on a terminal before spending, else needs --yes.",
)
@click.option("--fresh", is_flag=True, help="Count again and pay again, even if the rows were counted before.")
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def count_command(file: str, share: str, as_json: bool, fresh: bool, yes: bool) -> None:
    """Look for a stored count, else confirm and count."""
    from farthing.study.study_account import stored_count

    study = study_to_spend(declared_study(file, statistics=False), yes)
    before = stored_count(study)
    if before.answer is not None and not fresh:
        assert before.receipt is not None
        say_if_changed(study, before.receipt, f"farthing count {shlex.quote(file)} --fresh")
        row_count, spent = before, 0.0
    else:
        row_count = count_first(study, decimal_number(share, "share"), agreed=yes, err=as_json, fresh=fresh, quiet=True)
        spent = row_count.epsilon
    answer = row_count.answered
    if as_json:
        ends = {"rows": answer.values, "lower": answer.lower, "upper": answer.upper}
        facts = {**ends, "confidence": answer.confidence, "counts": row_count.counts}
        facts |= {"epsilon": row_count.epsilon, "spent_now": spent}
        click.echo(json.dumps({**facts, "request_id": row_count.request_id}, indent=2))
        return
    if not spent:
        click.echo("Answered from the ledger: the rows were counted before; nothing was spent now.\n")
    click.echo(f"rows: {row_count.sentence}; epsilon {row_count.epsilon:.6g}; request {row_count.request_id}")


def count_first(
    study: Study, share: float, *, agreed: bool, err: bool, fresh: bool = False, quiet: bool = False
) -> RowCount:
    """Confirm and count; without `quiet`, say what came out."""
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.study_account import count_rows, price_of_counting

    price = price_of_counting(study, share)
    if not agreed:
        confirm_spending(study, price, "Count the rows?", err=err)
    with stages(Console(stderr=True)) as work:
        work.begin("counting the rows", measured=True)
        count = count_rows(study, price, fresh=fresh, progress=work.share)
    if not quiet:
        click.echo(f"\nrows: {count.sentence}, for epsilon {count.epsilon:.6g}. The plan for what is left:\n", err=err)
    return count

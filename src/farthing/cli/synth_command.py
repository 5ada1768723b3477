"""`farthing synth`: a synthetic table of a study, with a word about where it can be trusted."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.requests_command import asked_by_analyst
from farthing.cli.study_commands import refuse_unwritable
from farthing.cli.terminal import (
    confirm_spending,
    declared_study,
    say_if_changed,
    study_options,
    study_to_spend,
    warn_of_budget,
)
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.ledger import PlanRequest
    from farthing.study import Study
    from farthing.study.documents.study_file import StudyFile
    from farthing.study.synthesis.synthetic_quality import Quality
    from farthing.study.synthesis.synthetic_table import EarlierSynthesis, SynthesisOffer, Synthetic

HELP = """\
Make a synthetic table of a study's table (study.toml): rows that belong to nobody, with about the counts of those that
do, and columns and types as in the schema. A verdict comes with it: which columns and pairs of columns can be trusted.

The file needs [dataset], [schema] and [study]; statistics are not needed. What will be spent is shown and confirmed
first (--yes skips the question). The same arguments give the same table again and spend nothing; another number of
--rows costs nothing either, but fewer rows are less accurate, and the verdicts say so. --request-id names a table of
your own; a new id draws again and pays again. A used id returns its table again: alone, or with the same arguments.

\b
Examples:
  farthing synth study.toml --plan
  farthing synth study.toml -o synthetic.parquet --report quality.html
  farthing synth study.toml -o synthetic.csv --columns age,sex,income --epsilon 0.5 --bins income=20

Exit code: 0 when it was made, also where a warning on stderr says that it is mostly noise; 1 when you declined; 2 when
it was refused; 130 when interrupted. The message says whether anything was charged: what was charged before Ctrl-C
stays spent, and the same arguments are then refused until --request-id names another table.
"""

_MOST_SHOWN = 20


@click.command("synth", help=HELP, short_help="Make a synthetic table of a study's table.")
@click.argument("file", default="study.toml")
@click.option("-o", "--output", metavar="FILE", help="Write the rows: Parquet (.parquet) or CSV (.csv).")
@click.option("--rows", metavar="N", help="How many rows (default: as many as were measured).")
@click.option("--epsilon", metavar="E", help="What it may cost (default: all that is left).")
@click.option("--columns", metavar="NAMES", help="Only these columns, such as a,b,c (default: all of the schema).")
@click.option(
    "--bins",
    "cuts",
    metavar="COLUMN=N",
    multiple=True,
    help="Cut a column of numbers or dates into N cells, or at edges (income=0,1,50000); several times for more.",
)
@click.option("--no-missing", is_flag=True, help="No column lacks values; rows that do are left out.")
@click.option("--known", metavar="ID", multiple=True, help="Use an earlier release, free of charge: its request id.")
@click.option("--report", metavar="FILE", help="Write the quality as a self-contained HTML page.")
@click.option("--request-id", metavar="ID", help="Name this table; the same id is drawn once.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be done and what it costs; spend nothing.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print quality and receipt as JSON; asks on a terminal before spending, else needs --yes.",
)
@click.option("--purpose", metavar="TEXT", help="Ask a curator to allow it, for this purpose; spends nothing.")
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def synth_command(
    file: str,
    output: str | None,
    rows: str | None,
    epsilon: str | None,
    columns: str | None,
    cuts: tuple[str, ...],
    no_missing: bool,
    known: tuple[str, ...],
    report: str | None,
    request_id: str | None,
    plan_only: bool,
    purpose: str | None,
    as_json: bool,
    yes: bool,
) -> None:
    """Look for a stored table, else plan, confirm and run; then write."""
    from farthing.study.synthesis.synthetic_table import checked_target

    if output is None and not plan_only and purpose is None:
        raise InvalidValue("output", None, "must be given", "say where the rows go: -o synthetic.parquet")
    asked = declared_study(file, statistics=False)
    options: dict[str, Any] = {
        "epsilon": None if epsilon is None else decimal_number(epsilon, "epsilon"),
        "columns": None if columns is None else [name.strip() for name in columns.split(",")],
        "bins": read_cuts(cuts),
        "missing": not no_missing,
    }
    count = None if rows is None else whole_number(rows, "rows")
    if output is not None:
        checked_target(output)
    for name, path in (("output", output), ("report", report)):
        if path is not None:
            refuse_unwritable(name, path)
    if purpose is not None:
        asked_by_analyst(asked, as_json, lambda study: _submitted(study, options, known, count, purpose))
        return
    if plan_only:
        with asked.looked_at() as study:
            plan = _plan(asked, study, options, known, count, request_id)
            click.echo(json.dumps(plan.to_dict(), indent=2, allow_nan=False) if as_json else str(plan))
        return
    synthetic = _synthetic(asked, options, known, count, request_id, agreed=yes, as_json=as_json)
    assert output is not None
    synthetic.save(output)
    if as_json:
        click.echo(synthetic.to_json())
    else:
        _print(synthetic)
    for warning in synthetic.quality.warnings:
        click.echo(f"WARNING: {warning}.", err=True)
    click.echo(f"Written: {output}", err=as_json)
    if report is not None:
        synthetic.report(report)
        click.echo(f"Written: {report}", err=as_json)


def _submitted(
    study: Study, options: dict[str, Any], known: tuple[str, ...], count: int | None, purpose: str
) -> PlanRequest:
    releases = [study.released(one) for one in known]
    return study.synthesis_plan(rows=count, **options, known=releases).submit(purpose)


def read_cuts(words: tuple[str, ...]) -> dict[str, Any]:
    """How columns are cut: a number of cells, or edges.

    >>> read_cuts(("income=20", "age=18,65", "born=1950-01-01,2000-01-01"))
    {'income': 20, 'age': [18, 65], 'born': [datetime.date(1950, 1, 1), datetime.date(2000, 1, 1)]}
    """
    cuts: dict[str, Any] = {}
    for word in words:
        column, equals, cells = word.rpartition("=")
        if not (column and equals and cells):
            raise InvalidValue("bins", word, "must be COLUMN=N or COLUMN=EDGE,EDGE,...", "such as --bins income=20")
        edges = [_edge(word, edge.strip()) for edge in cells.split(",")]
        cuts[column] = edges[0] if len(edges) == 1 and isinstance(edges[0], int) else edges
    return cuts


def _edge(word: str, text: str) -> Any:
    import datetime

    for kind in (int, float, datetime.date.fromisoformat):
        try:
            return kind(text)
        except ValueError:
            continue
    raise InvalidValue("bins", word, "must have numbers or dates (2000-12-31) after =")


def _request_id(asked: StudyFile, options: dict[str, Any], known: tuple[str, ...]) -> str:
    """What earlier versions called a table: by the text of the file. Now it is named by what is asked."""
    facts = json.dumps([asked.text, options, sorted(known)], default=str)
    return f"{asked.path.stem[:40]}-synth-{hashlib.sha256(facts.encode()).hexdigest()[:24]}"


def _plan(
    asked: StudyFile,
    study: Study,
    options: dict[str, Any],
    known: tuple[str, ...],
    count: int | None,
    request_id: str | None,
) -> SynthesisOffer | EarlierSynthesis:
    from farthing.study.synthesis.synthetic_table import SynthesisOptions, earlier_synthesis

    releases = [study.released(one) for one in known]
    earlier = earlier_synthesis(
        study, request_id or _request_id(asked, options, known), SynthesisOptions(known=releases, **options)
    )
    return study.synthesis_plan(rows=count, known=releases, **options) if earlier is None else earlier


def _synthetic(
    asked: StudyFile,
    options: dict[str, Any],
    known: tuple[str, ...],
    count: int | None,
    request_id: str | None,
    *,
    agreed: bool,
    as_json: bool,
) -> Synthetic:
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.synthesis.synthetic_table import SynthesisOptions, earlier_synthesis

    study = study_to_spend(asked, agreed)
    releases = [study.released(one) for one in known]
    earlier = earlier_synthesis(
        study, request_id or _request_id(asked, options, known), SynthesisOptions(known=releases, **options)
    )
    if earlier is not None:
        with stages(Console(stderr=True)) as work:
            work.begin("making the table again")
            again = earlier.table(count)
        say_if_changed(study, again.receipt, "--request-id with a new id")
        return again
    plan = study.synthesis_plan(rows=count, known=releases, **options)
    if agreed and not plan.made_before:
        warn_of_budget(study.epsilon, study.delta, study.dataset.rows)
    elif request_id is not None or not plan.made_before:
        click.echo(str(plan), err=as_json)
        confirm_spending(study, plan.cost, "Make the table?", err=as_json)
    with stages(Console(stderr=True)) as work:
        work.begin("measuring and fitting", measured=True)
        return plan.release(request_id, progress=work.share)


def _print(synthetic: Synthetic) -> None:
    from farthing.numerics.bounds import number_text

    if synthetic.repeated:
        click.echo("Made again from the ledger: it was paid for before; nothing was spent now.\n")
    _print_quality(synthetic.quality)
    click.echo(f"{synthetic.sentence}: {synthetic.quality.sentence}.")
    when = "paid before" if synthetic.repeated else "spent"
    click.echo(f"{when}: epsilon {number_text(synthetic.cost, 6)}; request {synthetic.request_id}")


def _print_quality(quality: Quality) -> None:
    """Columns by themselves, then the pairs that are furthest off: the others are better."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from farthing.study.synthesis.synthetic_quality import GOOD, NOT_VOUCHED, table_row

    table = Table(box=box.SIMPLE, title="Where it can be trusted (error: share of rows misplaced)")
    for heading in ("columns", "estimated", "at most", "verdict"):
        table.add_column(heading, justify="right" if heading in ("estimated", "at most") else "left")
    worst = sorted(quality.of_size(2), key=lambda one: -one.at_most)
    colours = {GOOD: "green", NOT_VOUCHED: "red"}
    for one in [*quality.of_size(1)[:_MOST_SHOWN], *worst[:_MOST_SHOWN]]:
        *cells, verdict = table_row(one)
        table.add_row(*cells, f"[{colours.get(verdict, 'yellow')}]{verdict}[/]")
    hidden = max(0, len(quality.of_size(1)) - _MOST_SHOWN) + max(0, len(worst) - _MOST_SHOWN)
    if hidden:
        table.caption = f"and {hidden:,} more; --report and --json have all of them"
    Console().print(table)

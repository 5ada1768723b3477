"""`farthing demo`: a study from end to end on a made-up health survey, with an HTML report at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.cli.survey import Columns
    from farthing.study import Plan, Release
    from farthing.study.study_file import StudyFile

TABLE, STUDY, REPORT, RECEIPT = "survey.parquet", "study.toml", "report.html", "receipt.json"

HELP = f"""\
Study a health survey of 100,000 made-up people from end to end: the errors first, the price under every theorem,
the release with the truth beside it, and DIR/{REPORT}.

Everything is written to DIR. A second run there is answered from its ledger and spends nothing; remove DIR to begin
anew.
"""


@click.command("demo", help=HELP)
@click.option(
    "--out", default="farthing-demo", show_default=True, metavar="DIR", help="Where everything goes."
)
def demo_command(out: str) -> None:
    """Generate, plan, compare, release, report."""
    from rich.console import Console

    from farthing.cli.survey import STUDY as TEXT
    from farthing.cli.survey import survey, write_survey
    from farthing.cli.waiting import stages
    from farthing.study.study_file import read_study

    folder = _made(Path(out))
    _refuse_other(folder / STUDY, TEXT)
    with stages(Console(stderr=True)) as work:
        work.begin("making up people")
        visits = survey()
        write_survey(visits, folder / TABLE)
        (folder / STUDY).write_text(TEXT, encoding="utf-8")
    people = int(visits["person_id"][-1]) + 1
    _title(1, "The table")
    click.echo(f"{folder / TABLE}: {people:,} made-up people with {len(visits['sex']):,} visits.")
    click.echo(f"{folder / STUDY}: what is public about it, the budget, and the statistics wanted.")
    release = _studied(read_study(folder / STUDY))
    _beside_the_truth(release, visits)
    release.report(str(folder / REPORT))
    release.receipt.save(folder / RECEIPT)
    _ending(folder, release)


def _studied(asked: StudyFile) -> Release:
    """The plan and its price, then the release; what the ledger holds already is taken from there."""
    from rich.console import Console

    from farthing.cli.waiting import stages

    study = asked.study()
    if study.ledger.stored(asked.request_id) is not None:
        _title(2, "The release, from the ledger")
        click.echo("This study was released before: no row is read and nothing is spent.")
        return study.released(asked.request_id)
    with stages(Console(stderr=True)) as work:
        work.begin("planning")
        plan = asked.plan(study)
        text = str(plan)
    _title(2, "The plan: how accurate each statistic will be; no row was read, nothing is spent")
    click.echo(text)
    _title(3, "The price of this plan under each theorem")
    _price(plan)
    with stages(Console(stderr=True)) as work:
        work.begin("running on the engine", measured=True)
        release = plan.release(asked.request_id, progress=work.share)
    _title(4, "The release: charged, run once, recorded")
    return release


def _price(plan: Plan) -> None:
    """This plan beside one that asks for much more, where composition begins to matter."""
    from farthing.cli.survey import sixty_means
    from farthing.study.tables import aligned
    from farthing.study.words import shown

    more = plan.study.plan(*sixty_means(), expected=plan.expected)
    rows: list[tuple[str, ...]] = [("theorem", "this plan", "60 means")]
    for label, name in (
        ("summing", "basic"), ("advanced", "advanced"), ("KOV", "kov"), ("optimal, noise unknown", "optimal"),
        ("own curves (charged)", "own"),
    ):  # fmt: skip
        rows.append((label, *(shown(getattr(each.price, name), 4) for each in (plan, more))))
    click.echo("\n".join(aligned(rows, right=[1, 2])))
    click.echo(f"This plan: {plan.price.sentence}")
    click.echo(
        f"60 means of people above each of 20 ages: for noise that costs epsilon {shown(more.price.own)} summing "
        f"would charge {shown(more.price.basic)}."
    )


def _beside_the_truth(release: Release, visits: Columns) -> None:
    """Answers, and what they would be without noise, which only a made-up table may show."""
    from farthing.cli.survey import truths
    from farthing.inference.figures import decimals_for, plain, with_interval
    from farthing.study.tables import aligned

    true = [value for name in release for value in truths(visits)[name]]
    records = release.records()
    rows = [("statistic", "cell", "answer (95%)", "truth")]
    before, inside = "", 0
    for record, value in zip(records, true, strict=True):
        lower, upper = record["lower"], record["upper"]
        inside += lower <= value <= upper
        name = record["statistic"] if record["statistic"] != before else ""
        before = record["statistic"]
        answer = with_interval(record["value"], lower, upper)
        rows.append((name, record["cell"], answer, plain(value, max(0, decimals_for(upper - lower)))))
    click.echo("\n".join(aligned(rows, right=[3])))
    click.echo(f"\n{inside} of {len(true)} answers have the truth in their 95% interval.")


def _ending(folder: Path, release: Release) -> None:
    from farthing.study.words import shown

    _title(5, "The account")
    budget = release.plan["budget"]["total"]
    click.echo(
        f"Spent: epsilon {shown(release.cost, 6)} of {shown(budget, 6)} at delta {release.plan['delta']:g}."
    )
    click.echo(f"To see the ledger: farthing ledger show {folder / 'study.db'}")
    click.echo(f"The receipt:       {folder / RECEIPT}")
    click.echo(f"The report:        {folder / REPORT}  (open it in a browser)")


def _title(number: int, text: str) -> None:
    click.echo(click.style(f"\n{number}. {text}", bold=True))


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        rule = f"cannot be made a directory ({problem.strerror})"
        raise InvalidValue("out", str(folder), rule, "choose another") from None
    return folder


def _refuse_other(path: Path, text: str) -> None:
    """A study that somebody wrote, or an older demo's, is not overwritten: its ledger would not fit."""
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise InvalidValue(
            "out", str(path.parent), "holds another study already", "choose another, or remove it"
        )

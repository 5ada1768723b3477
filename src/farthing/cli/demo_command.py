"""`farthing demo`: a study from end to end on a made-up health survey, with an HTML report at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.statistics import Statistic
    from farthing.study import Plan, Release
    from farthing.study.documents.study_file import StudyFile


PEOPLE = 100_000
MOST_VISITS = 3
SEED = 1913  # of made-up people only: randomness that protects real ones is never seeded

Columns = Mapping[str, NDArray[Any]]

SURVEY_STUDY = """\
# A health survey of made-up people. Everything in this file is public.

[dataset]
source = "survey.parquet"
unit = "person_id"                 # whose privacy: a person with all of their visits
max_rows = 3

[schema]
sex = { categories = ["F", "M"] }
smoker = { flags = true }
age = { range = [0, 110] }
bmi = { range = [10.0, 60.0] }
pressure = { range = [70, 220] }
income = { range = [0, 250_000] }

[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"

[expected]                         # from last year's report; it only makes the predicted errors better
rows = 200_000
sex = { F = 0.52, M = 0.48 }       # shares
smoker = { true = 0.2, false = 0.8 }
age = [45.0, 18.0]                 # mean and standard deviation
bmi = [26.0, 4.5]
pressure = [125.0, 16.0]
income = [40_000.0, 25_000.0]

[[statistics]]
kind = "count"
by = ["sex", "smoker"]

[[statistics]]
kind = "count"
where = "bmi >= 30"
by = "sex"

[[statistics]]
kind = "histogram"
column = "age"
bins = 11

[[statistics]]
kind = "mean"
column = "income"
within = 75                        # 95 times in 100; the others share what is left

[[statistics]]
kind = "mean"
column = "pressure"
by = "smoker"

[[statistics]]
kind = "std"
column = "pressure"

[[statistics]]
kind = "median"
column = "bmi"
by = "sex"
"""


def survey() -> Columns:
    """One entry for each visit, person after person."""
    rng = np.random.default_rng(SEED)
    visits = rng.integers(1, MOST_VISITS + 1, PEOPLE)
    person = np.repeat(np.arange(PEOPLE), visits)
    sex = rng.random(PEOPLE) < 0.48
    age = np.clip(rng.normal(45, 18, PEOPLE), 0, 110).astype(np.int64)
    smoker = rng.random(PEOPLE) < np.where(sex, 0.24, 0.17)
    income = np.clip(rng.lognormal(10.4, 0.6, PEOPLE), 0, 250_000).astype(np.int64)
    weight = 25.5 + 1.2 * sex + 0.02 * (age - 45) + rng.normal(0, 4, PEOPLE)
    base = 108 + 0.38 * age + 4 * smoker
    return {
        "person_id": person,
        "sex": np.where(sex, "M", "F")[person],
        "smoker": smoker[person],
        "age": age[person],
        "bmi": np.clip(weight[person] + rng.normal(0, 0.8, len(person)), 10.0, 60.0),
        "pressure": np.clip(base[person] + rng.normal(0, 13, len(person)), 70, 220).astype(np.int64),
        "income": income[person],
    }


def write_survey(columns: Columns, path: Path) -> None:
    """The visits as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(columns)), path)


def sixty_means() -> list[Statistic]:
    """More than the study asks for: the means of three columns among people above each of twenty ages."""
    from farthing.statistics import mean

    ages = range(0, 100, 5)
    return [mean(column, where=f"age >= {age}") for column in ("bmi", "pressure", "income") for age in ages]


def truths(columns: Columns) -> dict[str, list[float]]:
    """The statistics of the study without noise. They can be shown because these people do not exist."""
    sex, smoker, bmi = columns["sex"], columns["smoker"], columns["bmi"]
    age, pressure, income = columns["age"], columns["pressure"], columns["income"]
    of = {name: sex == name for name in ("F", "M")}
    kept = {flag: smoker == flag for flag in (False, True)}
    # A median here is the value that half of the rows do not exceed.
    middle = {name: float(np.quantile(bmi[rows], 0.5, method="inverted_cdf")) for name, rows in of.items()}
    return {
        "count by sex and smoker": [float((of[s] & kept[f]).sum()) for s in of for f in kept],
        "count where bmi >= 30 by sex": [float((rows & (bmi >= 30)).sum()) for rows in of.values()],
        "histogram of age": np.histogram(age, np.linspace(0, 110, 12))[0].astype(float).tolist(),
        "mean of income": [float(income.mean())],
        "mean of pressure by smoker": [float(pressure[rows].mean()) for rows in kept.values()],
        "std of pressure": [float(pressure.std())],
        "median of bmi by sex": list(middle.values()),
    }


TABLE, STUDY, REPORT, RECEIPT = "survey.parquet", "study.toml", "report.html", "receipt.json"

HELP = f"""\
Study a health survey of 100,000 made-up people from end to end: the errors first, the price under every theorem,
the release with the truth beside it, and DIR/{REPORT}.

Everything is written to DIR. A second run there is answered from its ledger and spends nothing; remove DIR to start
over.
"""


@click.command("demo", help=HELP, short_help="Study a health survey of made-up people from end to end.")
@click.option("--out", default="farthing-demo", show_default=True, metavar="DIR", help="Where everything goes.")
def demo_command(out: str) -> None:
    """Generate, plan, compare, release, report."""
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.documents.study_file import read_study

    folder = _existing_folder(Path(out))
    _refuse_other(folder / STUDY, SURVEY_STUDY)
    with stages(Console(stderr=True)) as work:
        work.begin("making up people")
        visits = survey()
        write_survey(visits, folder / TABLE)
        (folder / STUDY).write_text(SURVEY_STUDY, encoding="utf-8")
    people = int(visits["person_id"][-1]) + 1
    _title(1, "The table")
    click.echo(f"{folder / TABLE}: {people:,} made-up people with {len(visits['sex']):,} visits.")
    click.echo(f"{folder / STUDY}: what is public about it, the budget, and the statistics wanted.")
    release = _plan_and_release(read_study(folder / STUDY))
    _beside_the_truth(release, visits)
    release.report(str(folder / REPORT))
    release.receipt.save(folder / RECEIPT)
    _closing_section(folder, release)


def _plan_and_release(asked: StudyFile) -> Release:
    """The plan and its price, then the release; what the ledger holds already is taken from there."""
    from rich.console import Console

    from farthing.cli.terminal import stages

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
    from farthing.numerics.bounds import number_text
    from farthing.planner import COMPARED
    from farthing.study.plan_text import aligned

    more = type(plan).of(plan.study, tuple(sixty_means()), plan.expected, None)
    rows: list[tuple[str, ...]] = [("theorem", "this plan", "60 means")]
    names = {theorem.key: theorem.name for theorem in COMPARED} | {"own": "exact curves (charged)"}
    for key, name in names.items():
        rows.append((name, *(number_text(getattr(each.price, key), 4) for each in (plan, more))))
    click.echo("\n".join(aligned(rows, right=[1, 2])))
    click.echo(f"This plan: {plan.price.sentence}")
    click.echo(
        f"60 means over people above each of 20 ages: their noise costs epsilon {number_text(more.price.own)}, and a "
        f"plain sum would charge {number_text(more.price.basic)}."
    )


def _beside_the_truth(release: Release, visits: Columns) -> None:
    """Answers, and what they would be without noise, which only a made-up table may show."""
    from farthing.inference.answers import decimals_for, plain, with_interval
    from farthing.study.plan_text import aligned

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


def _closing_section(folder: Path, release: Release) -> None:
    from farthing.numerics.bounds import number_text

    _title(5, "The account")
    budget = release.plan["budget"]["total"]
    click.echo(
        f"Spent: epsilon {number_text(release.cost, 6)} of {number_text(budget, 6)} at delta {release.plan['delta']:g}."
    )
    click.echo(f"To see the ledger: farthing ledger show {folder / 'study.db'}")
    click.echo(f"The receipt:       {folder / RECEIPT}")
    click.echo(f"The report:        {folder / REPORT}  (open it in a browser)")


def _title(number: int, text: str) -> None:
    click.echo(click.style(f"\n{number}. {text}", bold=True))


def _existing_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        rule = f"cannot be made a directory ({problem.strerror})"
        raise InvalidValue("out", str(folder), rule, "choose another") from None
    return folder


def _refuse_other(path: Path, text: str) -> None:
    """A study that somebody wrote, or an older demo's, is not overwritten: its ledger would not fit."""
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise InvalidValue("out", str(path.parent), "holds another study already", "choose another, or remove it")

"""`farthing compare`: differences, ratios, shares and tests of a release, with intervals that account for the noise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.publish_command import released
from farthing.cli.terminal import declared_study, study_options
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.inference import Answer, Significance
    from farthing.study import Release

HELP = """\
Compare groups of a statistic that was released: "mean of income by sex" F M is the mean of F minus that of M.

Without groups, --shares shows every group as a share of the total, and --test tests that all groups have the same mean
or that two columns are unrelated. With two groups of a cdf, --test tests that both have the same distribution.

Nothing is spent, and no row is read.

Exit code: 0 if it was computed; 2 if it was refused, with the reason and what to do.
"""


@click.command("compare", help=HELP, short_help="Compare groups of a statistic that was released.")
@click.argument("file")
@click.argument("statistic")
@click.argument("groups", nargs=-1)
@click.option("--ratio", "how", flag_value="ratio", help="The first group over the second.")
@click.option("--odds-ratio", "how", flag_value="odds_ratio", help="The odds of the first over those of the second.")
@click.option("--shares", "how", flag_value="shares", help="Every group as a share of the total.")
@click.option("--test", "how", flag_value="test", help="A p-value that accounts for the noise.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of the interval.")
@click.option("--request-id", metavar="ID", help="Which release (default: the one that the file asks for).")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@study_options
def compare_command(
    file: str,
    statistic: str,
    groups: tuple[str, ...],
    how: str | None,
    confidence: float,
    request_id: str | None,
    as_json: bool,
) -> None:
    """Find the release in the ledger, compute, print."""
    asked = declared_study(file)
    if not asked.has_ledger:
        raise InvalidValue("study", file, "has not been released yet", f"run farthing release {file} first")
    study = asked.study()
    try:
        release = released(asked, study, request_id)
        if how == "test":
            test = _test(release, statistic, groups)
            click.echo(json.dumps(vars(test), indent=2) if as_json else f"{test}")
            return
        answer = _comparison(release, statistic, groups, how or "difference").at(confidence)
        click.echo(json.dumps(answer.to_dict(), indent=2) if as_json else _named(answer))
    finally:
        study.close()


def _named(answer: Answer) -> str:
    """An answer under its name; one with groups prints its own."""
    return f"{answer}" if answer.labels else f"{answer.name}: {answer}"


def _labels(release: Release, statistic: str, groups: tuple[str, ...]) -> list[Any]:
    """The labels that groups stand for, by their text."""
    from farthing.statistics.answer_records import label_texts

    labels = release[statistic].labels
    by_text = dict(zip(label_texts(labels), labels, strict=True))
    for group in groups:
        if group not in by_text:
            raise InvalidValue("group", group, f"must be a group of {statistic!r}", f"there are: {', '.join(by_text)}")
    return [by_text[group] for group in groups]


def _comparison(release: Release, statistic: str, groups: tuple[str, ...], how: str) -> Answer:
    if how == "shares":
        if groups:
            raise InvalidValue("groups", list(groups), "must be left out with --shares")
        return release.shares(statistic)
    if len(groups) != 2:
        raise InvalidValue("groups", list(groups), "must be two", "name one and the other, or use --shares or --test")
    one, other = _labels(release, statistic, groups)
    if how == "ratio":
        return release.ratio(statistic, one, other)
    return (release.odds_ratio if how == "odds_ratio" else release.difference)(statistic, one, other)


def _test(release: Release, statistic: str, groups: tuple[str, ...]) -> Significance:
    """The test that suits the statistic."""
    (kind,) = [each["asked"]["kind"] for each in release.plan["statistics"] if each["name"] == release[statistic].name]
    if kind == "cdf":
        if len(groups) != 2:
            raise InvalidValue("groups", list(groups), "must be two for a test of a cdf")
        known = {f"{label[0]}": label[0] for label in release[statistic].labels if isinstance(label, tuple)}
        return release.same_distribution(statistic, *(known.get(group, group) for group in groups))
    if groups:
        raise InvalidValue("groups", list(groups), "must be left out for this test, which compares all groups")
    return release.equality(statistic) if kind == "mean" else release.independence(statistic)

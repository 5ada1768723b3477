"""`farthing attack`: what answers without differential privacy give away, shown on made-up data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_delta, checked_epsilon

if TYPE_CHECKING:
    from farthing.auditing.attacks import Differenced, Reconstructed

_MEASURED = ("guessed right", "standard error", "at most")
_ABOUT_ERRORS = (
    'A blind guess is right 50% of the time. "At most" bounds the expected share; a measured share can be two or\n'
    "three standard errors above or below its expectation."
)
_ABOUT_ROUNDING = (
    "\nRounding is no protection: it hides most single pairs of counts, but not ten pairs with 0 to 9 people more in\n"
    "both, and `farthing attack reconstruct` recovers nearly a whole column from rounded counts."
)
_MOST_ROWS, _MOST_QUERIES, _MOST_REPETITIONS = 2_000, 20_000, 10_000
_STEPS = 10  # between the points of the picture

HELP = """\
Attack made-up tables: see what exact answers give away, and what private ones do not. None of your data is read.
"""

DIFFERENCE = """\
The differencing attack: count everybody who has a property, count everybody but one person, subtract.

The person's secret is a fair coin, drawn again for every repetition: a blind guess is right half of the time. "At
most" is a bound that no attacker can beat, whatever they know: e^epsilon / (1 + e^epsilon).

Exit code: 0 with a table; 2 when the input is refused.
"""

RECONSTRUCT = """\
The reconstruction attack of Dinur and Nissim: ask for counts over random subsets of the rows, and solve for the
secret bit of every row.

All answers together have the epsilon and delta that you give; "at most" is the expected share that no attacker can
beat, whatever they know.

Exit code: 0 with a table; 2 when the input is refused; 130 when interrupted.
"""


@click.group("attack", help=HELP, short_help="Attack made-up tables, with exact and with private answers.")
def attack_command() -> None:
    """The group of attacks: one person, or a whole column."""


@attack_command.command("difference", help=DIFFERENCE, short_help="One person, from two counts.")
@click.option("--epsilon", metavar="E", default="1", help="The epsilon of the private answers (default: 1).")
@click.option("--repetitions", metavar="N", default="10000", help="How often to attack (default: 10000).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def difference_command(epsilon: str, repetitions: str, as_json: bool) -> None:
    """Attack one person with two counts, and print how often the guess is right."""
    from farthing.auditing.attacks import differences

    budget = _epsilon(epsilon)
    times = _whole(repetitions, "repetitions", 10**7)
    attacks = differences(budget, repetitions=times)
    if as_json:
        click.echo(json.dumps({"epsilon": budget, "repetitions": times, "attacks": [_data(one) for one in attacks]}))
        return
    click.echo(f"Two counts that differ by one person, {times:,} times over; whose secret is it?\n")
    click.echo(_table(("answers", *_MEASURED), [_row(one) for one in attacks]))
    click.echo(_ABOUT_ROUNDING)
    click.echo(_ABOUT_ERRORS)


@attack_command.command("reconstruct", help=RECONSTRUCT, short_help="A whole column, from many counts.")
@click.option("--rows", metavar="N", default="200", help="Rows of the table (default: 200).")
@click.option("--queries", metavar="M", help="Counts asked for (default: four for each row).")
@click.option("--epsilon", metavar="E", default="1", help="The epsilon of all private answers (default: 1).")
@click.option("--delta", metavar="D", default="1e-9", help="Their delta (default: 1e-9); 0 for Laplace noise.")
@click.option("--repetitions", metavar="N", default="20", help="How many tables to attack (default: 20).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Draw the share recovered against the noise (svg, png or html).")
def reconstruct_command(
    rows: str,
    queries: str | None,
    epsilon: str,
    delta: str,
    repetitions: str,
    as_json: bool,
    plot: str | None,
) -> None:
    """Attack a whole column with many counts, and print how much of it comes back."""
    budget, leak = _epsilon(epsilon), checked_delta(decimal_number(delta, "delta"))
    size = _whole(rows, "rows", _MOST_ROWS)
    asked = 4 * size if queries is None else _whole(queries, "queries", _MOST_QUERIES)
    times = _whole(repetitions, "repetitions", _MOST_REPETITIONS)
    if plot is not None:
        from farthing.plots.chart_files import checked_path

        checked_path(plot)

    from rich.console import Console

    from farthing.auditing.attacks import noisy_reconstructions, reconstructions
    from farthing.cli.terminal import stages

    table = {"rows": size, "queries": asked, "repetitions": times}
    with stages(Console(stderr=True)) as work:
        work.begin("attacking")
        attacks = reconstructions(budget, leak, **table)
        between = [] if plot is None else noisy_reconstructions(_noises(attacks), **table)
    if as_json:
        about = {**table, "epsilon": budget, "delta": leak}
        click.echo(json.dumps({**about, "attacks": [_data(one) for one in attacks]}))
    else:
        click.echo(f"{asked:,} counts over random subsets of {size:,} rows; which rows have the secret bit?\n")
        lines = [(one.answers, f"{one.noise:,.3g}", *_row(one)[1:]) for one in attacks]
        click.echo(_table(("answers", "noise", *_MEASURED), lines))
        click.echo("\nNoise: the standard deviation of an answer's error.")
        click.echo(_ABOUT_ERRORS)
    if plot is not None:
        _draw(between, attacks[-1], size, asked, plot)
        click.echo(f"Picture: {plot}", err=as_json)


def _noises(attacks: list[Reconstructed]) -> list[float]:
    """From the least noise of a table to twice that of private answers, in even steps of a logarithmic axis."""
    least, most = min(one.noise for one in attacks if one.noise > 0), 2 * attacks[-1].noise
    return [least * (most / least) ** (step / _STEPS) for step in range(_STEPS + 1)]


def _draw(between: list[Reconstructed], private: Reconstructed, rows: int, queries: int, path: str) -> None:
    from farthing.plots import save, share_recovered

    marked = [(private.answers, private.noise, private.share)]
    noises, shares = [one.noise for one in between], [one.share for one in between]
    save(share_recovered(noises, shares, rows=rows, queries=queries, marked=marked), path)


def _epsilon(word: str) -> float:
    epsilon = checked_epsilon(decimal_number(word, "epsilon"))
    if not 0 < epsilon <= 50:
        raise InvalidValue("epsilon", epsilon, "must be > 0 and at most 50")
    return epsilon


def _whole(word: str, name: str, most: int) -> int:
    number = whole_number(word, name)
    if not 1 <= number <= most:
        raise InvalidValue(name, number, f"must be from 1 to {most:,}")
    return number


def _data(one: Differenced | Reconstructed) -> dict[str, Any]:
    data = {
        "answers": one.answers,
        "guessed_right": one.share,
        "standard_error": one.standard_error,
        "at_most": one.most,
    }
    noise = getattr(one, "noise", None)
    return data if noise is None else {**data, "noise": noise}


def _row(one: Differenced | Reconstructed) -> tuple[str, ...]:
    return one.answers, *(_percent(share) for share in (one.share, one.standard_error, one.most))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )

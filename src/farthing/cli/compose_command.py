"""`farthing compose`: what charges cost together, the optimum beside every theorem."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

import click

from farthing.cli.words import GRAMMAR, decimal_number
from farthing.errors import InvalidValue
from farthing.numerics.digits import shown
from farthing.privacy.events import checked_delta, checked_epsilon

if TYPE_CHECKING:
    from farthing.accounting.comparison import Comparison

DEFAULT_DELTA = 1e-6
STANDARD_INPUT = "-"

HELP = f"""\
What charges cost together: the optimum, proven, beside every theorem people compare with.

{GRAMMAR}
\b
Examples:
  farthing compose 0.1x100 0.05,1e-7x20 gaussian:4x10 --delta 1e-6
  farthing compose --file charges.csv --json
  zcat charges.csv.gz | farthing compose -

The parameters must have been fixed before the first answer. If they were chosen in the light of answers, use a filter
(farthing.accounting.filters) instead.

Exit code: 0 with an answer, also when the answer is that no finite epsilon exists; 2 when the input is refused;
130 when interrupted.
"""


# Unknown options reach the charge parser, because a negative epsilon looks like one and deserves a real answer.
@click.command("compose", help=HELP, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="[CHARGE]...")
@click.option("--delta", metavar="D", help=f"The delta of the whole; {DEFAULT_DELTA:g} if left out.")
@click.option("--epsilon", metavar="E", help="Also the delta at this epsilon.")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="CSV of charges: epsilon[,delta[,count]], or a charge word a line; - is standard input.",
)
@click.option("--json", "as_json", is_flag=True, help='Print JSON; infinity is the string "inf".')
@click.option("--plot", metavar="FILE", help="Draw the comparison to FILE.svg, .png or .html.")
@click.option("--no-proof", is_flag=True, help="A fast estimate with a margin, not proven; do not charge it.")
def compose_command(
    words: tuple[str, ...],
    delta: str | None,
    epsilon: str | None,
    files: tuple[str, ...],
    as_json: bool,
    plot: str | None,
    no_proof: bool,
) -> None:
    """Check everything that is cheap to check, then compute, then print."""
    _refuse_unknown_options(words)
    target = DEFAULT_DELTA if delta is None else checked_delta(decimal_number(delta, "delta"))
    ceiling = None if epsilon is None else checked_epsilon(decimal_number(epsilon, "epsilon"))
    sources = [*files, *(STANDARD_INPUT for word in words if word == STANDARD_INPUT)]
    if not words and not sources:
        way_out = "write one such as 0.1x100, or use --file charges.csv"
        raise InvalidValue("charges", [], "must name at least one charge", way_out)
    if sources.count(STANDARD_INPUT) > 1:
        raise InvalidValue(
            "file", STANDARD_INPUT, "must be given at most once", "standard input can be read once only"
        )
    if plot is not None:
        _refuse_undrawable(plot)

    from rich.console import Console

    from farthing.accounting.comparison import comparison_of, joined
    from farthing.cli.charges import charges_of_words
    from farthing.cli.reading import charges_of_file
    from farthing.cli.rendering import json_of, print_comparison
    from farthing.cli.waiting import stages

    with stages(Console(stderr=True)) as work:
        parts = [charges_of_words([word for word in words if word != STANDARD_INPUT])]
        for source in sources:
            work.begin(f"reading {'standard input' if source == STANDARD_INPUT else source}", measured=True)
            read = charges_of_file(source, work.share)
            if not read.k:  # a broken pipe or a wrong file must not look like a free plan
                raise InvalidValue(
                    "file", source, "must hold at least one charge", "check what was written to it"
                )
            parts.append(read)
        work.begin("composing")
        comparison = comparison_of(
            joined(parts), target, epsilon=ceiling, proof=not no_proof, delta_is_default=delta is None
        )
        if plot is not None:
            work.begin("drawing")
            _draw(comparison, plot)
    if as_json:
        click.echo(json.dumps(json_of(comparison), indent=2, allow_nan=False))
    else:
        print_comparison(comparison, Console())
    if plot is not None:
        click.echo(f"Picture: {plot}", err=as_json)


def _draw(comparison: Comparison, path: str) -> None:
    from farthing.plots import save, theorem_bars

    subtitle = f"{comparison.k:,} mechanisms at delta = {shown(comparison.delta)}; percentages are waste."
    save(theorem_bars(comparison.lines, comparison.optimal, subtitle), path)


def _refuse_unknown_options(words: tuple[str, ...]) -> None:
    for word in words:
        if word.startswith("--"):
            context = click.get_current_context()
            known = [option for parameter in context.command.params for option in parameter.opts]
            raise click.NoSuchOption(word, possibilities=difflib.get_close_matches(word, known), ctx=context)


def _refuse_undrawable(plot: str) -> None:
    from farthing.plots._style import require_renderer
    from farthing.plots.saving import checked_path

    require_renderer()
    checked_path(plot)

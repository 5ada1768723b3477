"""`farthing compose`: what charges cost together, the optimum beside every theorem."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from farthing.accounting.comparison import Charges, charges_of_pairs
from farthing.cli.charge_grammar import GRAMMAR, charge_of, decimal_number
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import as_typed, interval, rounded_down_text, rounded_text, rounded_up_text
from farthing.privacy.events import checked_delta, checked_epsilon

if TYPE_CHECKING:
    from rich.console import Console

    from farthing.accounting.comparison import AdaptiveComparison, Comparison, FilterLine, Line
    from farthing.cli.terminal import Stages


WIDE = 100  # columns from which on remarks are shown beside sources


def print_comparison(comparison: Comparison, console: Console) -> None:
    """The optimum with its interval, then every theorem and what it wastes."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    mechanisms = "mechanism" if comparison.k == 1 else "mechanisms"
    default = " (the default; choose with --delta)" if comparison.delta_is_default else ""
    say(f"{comparison.k:,} {mechanisms} at delta = {as_typed(comparison.delta)}{default}")
    if comparison.reason:
        say(f"Optimum: epsilon = inf, no finite epsilon exists: {comparison.reason}.")
    else:
        say(f"Optimum: epsilon = {rounded_up_text(comparison.optimal.upper, 7)}, {_interval(comparison.optimal)}")
    if comparison.at_epsilon is not None:
        epsilon, bounds = comparison.at_epsilon
        say(f"At epsilon = {as_typed(epsilon)}: delta = {rounded_up_text(bounds.upper, 7)}, {_interval(bounds)}")
    if not comparison.k:
        say("Nothing is composed, so nothing is lost.")
    elif any(line.applies and math.isfinite(line.epsilon) for line in comparison.lines):
        console.print(_table(comparison, wide=console.width >= WIDE))
    else:
        say("No theorem gives a finite epsilon either.")
    for note in comparison.notes:
        say(note)
    say(f"Engine: {comparison.engine}, because {comparison.engine_reason}.")
    optimum, everything = (rounded_text(each, 2) for each in (comparison.seconds, comparison.seconds_in_all))
    say(f"Time: {optimum} s for the optimum, {everything} s in all.")


def json_of(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON-ready data; infinity is the string "inf", because JSON has no number for it."""
    answer: dict[str, Any] = {
        "k": comparison.k,
        "delta": comparison.delta,
        "optimal": _bounds_as_data(comparison.optimal),
        "engine": comparison.engine,
        "engine_reason": comparison.engine_reason,
        "theorems": [_line_as_data(line) for line in comparison.lines],
        "notes": list(comparison.notes),
        "seconds": comparison.seconds,
        "seconds_in_all": comparison.seconds_in_all,
    }
    if comparison.reason:
        answer["reason"] = comparison.reason
    if comparison.at_epsilon is not None:
        epsilon, bounds = comparison.at_epsilon
        answer["at_epsilon"] = {"epsilon": epsilon, "delta": _bounds_as_data(bounds)}
    return answer


def _table(comparison: Comparison, *, wide: bool) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("theorem", overflow="fold")
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("waste", justify="right", no_wrap=True)
    table.add_column("waste %", justify="right", no_wrap=True)
    table.add_column("source or remark", overflow="fold", style="dim")
    best = comparison.optimal
    word = "proven" if best.proven else "not proven"
    table.add_row(Text("optimal", style="bold"), Text(rounded_up_text(best.upper, 7), style="bold"), "", "", Text(word))
    for line in comparison.lines:
        if line.applies:
            cells = (rounded_up_text(line.epsilon, 7), _waste(line.waste), _percent(line.waste_percent))
        else:
            cells = ("-", "", "")
        # Where room is short, a source is enough for a theorem that applies; JSON has everything.
        note = line.note if wide or not line.applies or math.isinf(line.epsilon) else ""
        table.add_row(Text(line.name), *cells, Text("; ".join(filter(None, (line.source, note)))))
    return table


def print_adaptive(comparison: AdaptiveComparison, console: Console, *, delta_is_default: bool) -> None:
    """The optimum for charges fixed in advance, then every filter, and the sentence that matters."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    default = " (the default; choose with --delta)" if delta_is_default else ""
    charges = f"{comparison.k:,} {'charge' if comparison.k == 1 else 'charges'}"
    budget = "" if comparison.epsilon is None else f" into epsilon = {as_typed(comparison.epsilon)}"
    heading = f"{charges}{budget} at delta = {as_typed(comparison.delta)}{default}"
    console.print(heading, highlight=False, markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("account")
    table.add_column("epsilon" if comparison.epsilon is None else "fit", justify="right", no_wrap=True)
    table.add_column("more" if comparison.epsilon is None else "fewer", justify="right", no_wrap=True)
    table.add_column("source or remark", overflow="fold", style="dim")
    for line in comparison.lines:
        cost = "" if line.cost_percent is None else f"{_three_digits(line.cost_percent)} %"
        table.add_row(Text(line.name), _reading(line), cost, Text("; ".join(filter(None, (line.source, line.note)))))
    console.print(table)
    if comparison.leak:
        aside = f"Filters set aside {rounded_up_text(comparison.leak, 3)} of delta for the charges' own deltas."
        console.print(aside, highlight=False, markup=False)
    console.print(comparison.sentence, highlight=False, markup=False)


def adaptive_json_of(comparison: AdaptiveComparison) -> dict[str, Any]:
    """The adaptive comparison as JSON-ready data; infinity is the string "inf"."""
    return {
        "k": comparison.k,
        "delta": comparison.delta,
        "epsilon": comparison.epsilon,
        "leak": comparison.leak,
        "accounts": [
            {
                "name": line.name,
                "epsilon": None if line.epsilon is None else _number(line.epsilon),
                "fits": line.fits,
                "cost_percent": line.cost_percent,
                "source": line.source,
                "applies": line.applies,
                "note": line.note,
            }
            for line in comparison.lines
        ],
        "sentence": comparison.sentence,
    }


def _reading(line: FilterLine) -> str:
    if not line.applies:
        return "-"
    return rounded_up_text(line.epsilon, 5) if line.epsilon is not None else f"{line.fits:,}"


def _interval(bounds: Bounds) -> str:
    word = "proven" if bounds.proven else "estimated, not proven,"
    if bounds.lower == bounds.upper:
        return f"{word} exactly"
    if math.isinf(bounds.upper):
        return f"{word} to be at least {rounded_down_text(bounds.lower, 7)}"
    return f"{word} in {interval(bounds.lower, bounds.upper)} ({rounded_text(bounds.width, 2)} wide)"


def _waste(waste: float | None) -> str:
    if waste is None:
        return ""
    return f"+{_three_digits(waste)}" if 0 < waste < math.inf else rounded_text(waste)


def _percent(percent: float | None) -> str:
    if percent is None or math.isinf(percent):
        return ""
    return f"+{_three_digits(percent)} %" if percent > 0 else "0 %"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e9 else rounded_text(value, 3)


def _bounds_as_data(bounds: Bounds) -> dict[str, Any]:
    return {
        "lower": _number(bounds.lower),
        "upper": _number(bounds.upper),
        "estimate": _number(bounds.estimate),
        "proven": bounds.proven,
    }


def _line_as_data(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "epsilon": _number(line.epsilon) if line.applies else None,
        "source": line.source,
        "applies": line.applies,
        "note": line.note,
        "waste": None if line.waste is None else _number(line.waste),
        "waste_percent": None if line.waste_percent is None else _number(line.waste_percent),
    }


def _number(value: float) -> float | str:
    # A string compares with no number, so a program that forgets the case stops instead of reading a low cost.
    return value if math.isfinite(value) else "inf"


def charges_of_words(words: Iterable[str]) -> Charges:
    """The charges a list of words stands for.

    >>> charges = charges_of_words(["0.1x100", "0.05,1e-7x20", "gaussian:4x10"])
    >>> charges.k, charges.epsilons, charges.events
    (130, array([0.1 , 0.05]), ((GaussianNoise(noise_multiplier=4.0), 10),))
    """
    return charges_of_pairs([charge_of(word) for word in words])


DEFAULT_DELTA = 1e-6
STANDARD_INPUT = "-"

HELP = f"""\
What charges cost together: the proven optimum, next to every theorem that people compare with.

{GRAMMAR}
\b
Examples:
  farthing compose 0.1x100 0.05,1e-7x20 gaussian:4x10 --delta 1e-6
  farthing compose --file charges.csv --json
  zcat charges.csv.gz | farthing compose -
  farthing compose 0.01x400 --adaptive --epsilon 1 --delta 1e-9

The parameters must have been fixed before the first answer. If some were chosen after seeing answers, add --adaptive:
it shows what every filter charges beside the optimum, and with --epsilon how many of the charges fit, in their order.

Exit code: 0 with an answer, also when the answer is that no finite epsilon exists; 2 when the input is refused;
130 when interrupted.
"""


# Unknown options reach the charge parser, because a negative epsilon looks like one and deserves a real answer.
@click.command(
    "compose",
    help=HELP,
    short_help="What charges cost together, beside every theorem.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, metavar="[CHARGE]...")
@click.option("--delta", metavar="D", help=f"The delta of the composition (default: {DEFAULT_DELTA:g}).")
@click.option("--epsilon", metavar="E", help="Also print the delta at this epsilon; with --adaptive, a budget.")
@click.option("--adaptive", is_flag=True, help="What the same charges cost when they are chosen as you go.")
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
    adaptive: bool,
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
        raise InvalidValue("file", STANDARD_INPUT, "must be given at most once", "standard input can be read once only")
    if adaptive and (plot is not None or no_proof):
        other = "--plot" if plot is not None else "--no-proof"
        raise InvalidValue(other, True, "does not go with --adaptive", f"leave out {other}, or --adaptive")
    if plot is not None:
        _refuse_undrawable(plot)

    from rich.console import Console

    from farthing.accounting.comparison import adaptive_comparison_of, comparison_of
    from farthing.cli.terminal import stages

    with stages(Console(stderr=True)) as work:
        charges = _read([word for word in words if word != STANDARD_INPUT], sources, work)
        work.begin("composing")
        if adaptive:
            answer = adaptive_comparison_of(charges, target, epsilon=ceiling)
        else:
            comparison = comparison_of(
                charges, target, epsilon=ceiling, proof=not no_proof, delta_is_default=delta is None
            )
        if plot is not None:
            work.begin("drawing")
            _draw(comparison, plot)
    if as_json:
        data = adaptive_json_of(answer) if adaptive else json_of(comparison)
        click.echo(json.dumps(data, indent=2, allow_nan=False))
    elif adaptive:
        print_adaptive(answer, Console(), delta_is_default=delta is None)
    else:
        print_comparison(comparison, Console())
    if plot is not None:
        click.echo(f"Picture: {plot}", err=as_json)


def _read(words: list[str], sources: list[str], work: Stages) -> Charges:
    """The charges of words and of files, as one list."""
    from farthing.accounting.comparison import joined
    from farthing.cli.charge_grammar import charges_of_file

    parts = [charges_of_words(words)]
    for source in sources:
        work.begin(f"reading {'standard input' if source == STANDARD_INPUT else source}", measured=True)
        read = charges_of_file(source, work.share)
        if not read.k:  # a broken pipe or a wrong file must not look like a free plan
            raise InvalidValue("file", source, "must hold at least one charge", "check what was written to it")
        parts.append(read)
    return joined(parts)


def _draw(comparison: Comparison, path: str) -> None:
    from farthing.plots import save, theorem_bars

    subtitle = f"{comparison.k:,} mechanisms at delta = {rounded_text(comparison.delta)}; percentages are waste."
    save(theorem_bars(comparison.lines, comparison.optimal, subtitle), path)


def _refuse_unknown_options(words: tuple[str, ...]) -> None:
    for word in words:
        if word.startswith("--"):
            context = click.get_current_context()
            known = [option for parameter in context.command.params for option in parameter.opts]
            raise click.NoSuchOption(word, possibilities=difflib.get_close_matches(word, known), ctx=context)


def _refuse_undrawable(plot: str) -> None:
    from farthing.plots._style import require_renderer
    from farthing.plots.chart_files import checked_path

    require_renderer()
    checked_path(plot)

"""`farthing audit`: every mechanism examined, every planted bug caught; or the user's own code."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.words import decimal_number, whole_number
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.auditing.self_test import Check

DEFAULT_CONFIDENCE = 0.999
DEFAULT_SAMPLES = 100_000

HELP = f"""\
Try to contradict privacy claims by running mechanisms on neighbouring tables.

Without --target: every mechanism of farthing against its own event, then a self-test in which planted bugs have to be
caught. That takes minutes. A run of correct mechanisms raises a false alarm with probability at most 1 - confidence
(with {DEFAULT_CONFIDENCE:g}, if left out: one in a thousand).

With --target: your own code. MODULE is looked up from the current directory; NAME is a function value -> output, or
an object with release(value), and release_many(value, count) if it can draw many at once. An exception is an output
like any other.

\b
  farthing audit --target survey:noisy_count --claim 1.0 \\
    --neighbours '[[[1, 1], [1, 1, 1]]]'

Exit code: 0 if nothing was contradicted and no planted bug was missed (with a cap that is too low to see one, the
table says what it needs); 1 otherwise; 2 when the input is refused; 130
when interrupted. An audit never proves a claim.
"""


@click.command("audit", help=HELP)
@click.option("--target", metavar="MODULE:NAME", help="Audit your own code instead.")
@click.option("--claim", metavar="EPS[,DELTA]", help="What the target claims; its own event if left out.")
@click.option("--neighbours", metavar="JSON", help="A list of pairs of neighbouring inputs of the target.")
@click.option(
    "--samples", metavar="N", help="Outputs a side; without --target a cap on each check's own number."
)
@click.option("--confidence", metavar="C", help=f"Of the whole run; {DEFAULT_CONFIDENCE:g} if left out.")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only checks whose name (or kind) holds NAME; =NAME is one."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Draw the one audit that is run to FILE.svg, .png or .html.")
@click.option("--no-progress", is_flag=True, help="No bar, not even on a terminal.")
def audit_command(
    target: str | None,
    claim: str | None,
    neighbours: str | None,
    samples: str | None,
    confidence: str | None,
    only: tuple[str, ...],
    as_json: bool,
    plot: str | None,
    no_progress: bool,
) -> None:
    """Check what is cheap to check, audit, print, and say by the exit code how it went."""
    level = DEFAULT_CONFIDENCE if confidence is None else decimal_number(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidValue("confidence", confidence, "must be between 0 and 1", "0.999 is a good choice")
    count = None if samples is None else _checked_samples(samples)
    if plot is not None:
        from farthing.cli.compose_command import _refuse_undrawable

        _refuse_undrawable(plot)
    if target is None:
        for name, value in (("claim", claim), ("neighbours", neighbours)):
            if value is not None:
                raise InvalidValue(name, value, "is for --target", "leave it out, or name a target")
        good = _examine(only, level, count, as_json, plot, not no_progress)
    else:
        if only:
            raise InvalidValue("only", only[0], "is not for --target", "leave it out")
        good = _audit_target(
            target, claim, neighbours, level, count or DEFAULT_SAMPLES, as_json, plot, not no_progress
        )
    if not good:
        click.get_current_context().exit(1)


def _examine(
    only: tuple[str, ...], confidence: float, samples: int | None, as_json: bool, plot: str | None, bar: bool
) -> bool:
    from rich.console import Console

    from farthing.auditing.self_test import all_checks, examine
    from farthing.cli.audit_table import json_of, print_outcomes
    from farthing.cli.waiting import stages

    checks = _chosen(all_checks(), only)
    if plot is not None and len(checks) != 1:
        raise InvalidValue(
            "plot", plot, f"can show one audit, not {len(checks)}", "name one with --only =NAME"
        )
    start = time.perf_counter()
    with stages(Console(stderr=True, force_terminal=None if bar else False)) as work:
        work.begin(f"auditing {len(checks)} mechanisms", measured=True)
        outcomes = examine(
            checks,
            confidence=confidence,
            samples=samples,
            told=lambda done, total: work.share(done / total),
        )
    seconds = time.perf_counter() - start
    if as_json:
        click.echo(json.dumps(json_of(outcomes, confidence, seconds), indent=2, allow_nan=False))
    else:
        print_outcomes(outcomes, confidence, seconds, Console())
    if plot is not None:
        _draw(outcomes[0].report, plot, as_json)
    return all(outcome.good for outcome in outcomes)


def _audit_target(
    target: str,
    claim: str | None,
    neighbours: str | None,
    confidence: float,
    samples: int,
    as_json: bool,
    plot: str | None,
    bar: bool,
) -> bool:
    if neighbours is None:
        way_out = "write --neighbours '[[D, E]]', a JSON list of pairs"
        raise InvalidValue("neighbours", "", "must be given with --target", way_out)
    pairs = _pairs_of(neighbours)
    promised = None if claim is None else _claim_of(claim)

    from rich.console import Console

    from farthing.auditing import audit
    from farthing.cli.audit_target import current_directory_first, found

    with current_directory_first():
        mechanism, show = found(target), None if bar else False
        try:
            report = audit(mechanism, promised, pairs, samples=samples, confidence=confidence, progress=show)
        except SystemExit:  # its code would pass for a verdict
            raise InvalidValue("target", target, "must not end the process, and calls sys.exit") from None
    if as_json:
        click.echo(json.dumps({"target": target, **report.to_dict()}, indent=2, allow_nan=False))
    else:
        Console().print(str(report), highlight=False, markup=False)  # wrapped at the width of the terminal
    if plot is not None:
        _draw(report, plot, as_json)
    return not report.violation


def _checked_samples(text: str) -> int:
    from farthing.auditing.audit import LEAST_SAMPLES

    count = whole_number(text, "samples")
    if not count >= LEAST_SAMPLES:
        raise InvalidValue("samples", text, f"must be at least {LEAST_SAMPLES}")
    return count


def _chosen(checks: list[Check], only: tuple[str, ...]) -> list[Check]:
    """The checks whose name or kind holds one of the words; `=NAME` is the check of that name alone."""
    if not only:
        return checks

    def meant(word: str, check: Check) -> bool:
        if word.startswith("="):
            return word[1:].lower() == check.name.lower()
        return word.lower() in check.name.lower() or word.lower() in check.kind

    for word in only:
        if not any(meant(word, check) for check in checks):
            rule = "must be part of a check's name or of its kind, or =NAME for one check"
            names = "".join(f"\n  {check.name}" for check in checks)
            way_out = f"the names are{names}\nand the kinds are 'mechanism' and 'planted bug'"
            raise InvalidValue("only", word, rule, way_out)
    return [check for check in checks if any(meant(word, check) for word in only)]


def _pairs_of(text: str) -> list[tuple[Any, Any]]:
    try:
        pairs = json.loads(text)
    except ValueError as problem:
        raise InvalidValue("neighbours", text, f"must be JSON ({problem})", "quote it as a whole") from None
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        rule = "must be a list of pairs"
        raise InvalidValue("neighbours", text, rule, "one pair of numbers is [[0, 1]]")
    return [(pair[0], pair[1]) for pair in pairs]


def _claim_of(text: str) -> tuple[float, float]:
    epsilon, _, delta = text.partition(",")
    return decimal_number(epsilon, "claim"), decimal_number(delta, "claim") if delta else 0.0


def _draw(report: Any, path: str, as_json: bool) -> None:
    from farthing.plots import audit_region, save

    save(audit_region(report), path)
    click.echo(f"Picture: {path}", err=as_json)

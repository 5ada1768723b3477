"""`farthing audit`: every mechanism examined, every planted bug caught; or the user's own code."""

from __future__ import annotations

import importlib
import json
import math
import operator
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.errors import FarthingError, InvalidValue
from farthing.numerics.bounds import rounded_down_text, rounded_text

if TYPE_CHECKING:
    from rich.console import Console

    from farthing.auditing import AuditReport
    from farthing.auditing.self_test import Check, Outcome


WIDE = 110  # columns from which on samples, seconds and events are shown; JSON has them always


def print_outcomes(outcomes: Sequence[Outcome], confidence: float, seconds: float, console: Console) -> None:
    """One table for the mechanisms, one for the planted bugs, then what went wrong, then what it means."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    for kind, title in (
        ("mechanism", "Mechanisms, each against its own event"),
        ("planted bug", "Planted bugs, which have to be caught"),
    ):
        rows = [outcome for outcome in outcomes if outcome.check.kind == kind]
        if rows:
            say(title)
            console.print(_table(rows, kind, wide=console.width >= WIDE))
    for outcome in outcomes:
        if not outcome.good:
            say(f"{outcome.check.name}: {outcome.verdict}\n{outcome.report}\n")
    say(_summary(outcomes))
    say(
        f"All bounds hold together with confidence {confidence:g}. "
        "An audit can contradict a claim; it never proves one."
    )
    say(f"Time: {seconds:.0f} s.")


def json_of(outcomes: Sequence[Outcome], confidence: float, seconds: float) -> dict[str, Any]:
    """The outcomes as JSON-ready data; infinity is the string "inf"."""
    return {
        "good": all(outcome.good for outcome in outcomes),
        "confidence": confidence,
        "seconds": seconds,
        "checks": [
            {
                "name": outcome.check.name,
                "kind": outcome.check.kind,
                "story": outcome.check.story,
                "verdict": outcome.verdict,
                "good": outcome.good,
                "judged": not outcome.shortfall,
                **outcome.report.to_dict(),
            }
            for outcome in outcomes
        ],
    }


def _summary(outcomes: Sequence[Outcome]) -> str:
    ours = [outcome for outcome in outcomes if outcome.check.kind == "mechanism"]
    planted = [outcome for outcome in outcomes if outcome.check.kind == "planted bug"]
    parts = []
    if ours:
        bad = sum(not outcome.good for outcome in ours)
        parts.append(f"{len(ours)} mechanism{'s' * (len(ours) != 1)}: {bad or 'none'} contradicted.")
    if planted:
        parts.append(f"{len(planted)} planted bug{'s' * (len(planted) != 1)}: {_self_test(planted)}.")
    return " ".join(parts)


def _self_test(planted: Sequence[Outcome]) -> str:
    """How many were caught, missed, and left without what it takes to see them."""
    caught = sum(outcome.report.violation for outcome in planted)
    if caught == len(planted):
        return "all caught"
    missed = sum(not outcome.good for outcome in planted)
    parts = [f"{missed} MISSED"] if missed else []
    unjudged = [outcome for outcome in planted if outcome.shortfall]
    short = [outcome for outcome in unjudged if outcome.report.samples < outcome.check.samples]
    if short:
        cap, most = (max(each) for each in zip(*((o.report.samples, o.check.samples) for o in short), strict=True))
        needed = f"up to {most:,}" if len(short) > 1 else f"{most:,}"
        them = "them" if len(short) > 1 else "it"
        reason = f"--samples {cap:,} is too few to see {them} ({needed} needed)"
        parts.append(f"{len(short)} not judged, because {reason}")
    if len(unjudged) > len(short):
        parts.append(f"{len(unjudged) - len(short)} not judged, because --confidence asks for too much")
    return "; ".join([f"{caught or 'none'} caught", *parts])


def _table(outcomes: Sequence[Outcome], kind: str, *, wide: bool) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    planted = kind == "planted bug"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(kind, no_wrap=True)
    table.add_column("claimed", justify="right", no_wrap=True)
    table.add_column("at least", justify="right", no_wrap=True)
    table.add_column("verdict" if planted else "claim", no_wrap=True)
    if not planted:
        table.add_column("notices", justify="right", no_wrap=True)
    if wide:
        table.add_column("samples", justify="right", no_wrap=True)
        table.add_column("s", justify="right", no_wrap=True)
        table.add_column("event", overflow="fold", style="dim")
    for outcome in outcomes:
        report = outcome.report
        cells = [
            Text(outcome.check.name),
            Text(_claimed(report)),
            Text(rounded_down_text(report.epsilon_lower, 3)),
            Text(outcome.verdict, style=_style(outcome)),
        ]
        if not planted:
            cells.append(Text(rounded_text(report.detectable, 3) if math.isfinite(report.detectable) else "-"))
        if wide:
            cells += [Text(f"{report.samples:,}"), Text(rounded_text(report.seconds, 2)), Text(report.event)]
        table.add_row(*cells)
    return table


def _style(outcome: Outcome) -> str:
    if outcome.shortfall:
        return "yellow"
    return "green" if outcome.good else "bold red"


def _claimed(report: AuditReport) -> str:
    at = f", {rounded_text(report.delta, 3)}" if report.delta else ""
    return f"{rounded_text(report.claimed_epsilon, 3)}{at}"


WAY_OUT = "write module:function, and run in the directory of module.py"

# Errors whose text is about the code. The text of any other may quote what the module has read, so it is not repeated.
_TEXT_IS_CODE = (SyntaxError, ImportError, NameError, FarthingError)


@contextmanager
def current_directory_first() -> Iterator[None]:
    """Imports look into the current directory first, those that a target makes when it is called included."""
    before = list(sys.path)
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path[:] = before


def audit_target(target: str) -> Any:
    """The object that a target names.

    >>> audit_target("math:floor")(2.5)
    2
    >>> audit_target("no_such_module:f")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: target='no_such_module:f': cannot be found (No module named 'no_such_module'); ...
    """
    module, colon, name = target.partition(":")
    if not (colon and _dotted(module) and _dotted(name)):
        way_out = "leave .py and directories out" if ".py:" in target or "/" in module else WAY_OUT
        raise InvalidValue("target", target, "must be MODULE:NAME", way_out)
    try:
        holder = importlib.import_module(module)
    except (Exception, SystemExit) as problem:
        raise _not_imported(target, module, problem) from None
    try:
        return operator.attrgetter(name)(holder)
    except AttributeError as problem:
        way_out = f"name a function or an object of {module}"
        raise InvalidValue("target", target, f"cannot be found ({problem})", way_out) from None


def _dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _not_imported(target: str, module: str, problem: BaseException) -> InvalidValue:
    if isinstance(problem, ModuleNotFoundError) and f"{module}.".startswith(f"{problem.name}."):
        way_out = "leave .py out" if module.endswith(".py") else WAY_OUT
        return InvalidValue("target", target, f"cannot be found ({problem})", way_out)
    kind = type(problem).__name__
    text = " ".join(str(getattr(problem, "msg", None) or problem).split())
    reason = f"{kind}: {text.rstrip('.')}" if isinstance(problem, _TEXT_IS_CODE) and text else kind
    place = _place_of(problem)
    rule = f"cannot be imported ({f'{place}: ' if place else ''}{reason})"
    if isinstance(problem, ModuleNotFoundError):
        return InvalidValue("target", target, rule, f"install {problem.name}, or correct its name")
    return InvalidValue("target", target, rule, f"python -c 'import {module}' shows all of it")


def _place_of(problem: BaseException) -> str:
    """File and line: of bad syntax, or of the innermost frame in the user's own files."""
    if isinstance(problem, SyntaxError) and problem.filename and problem.lineno:
        return _location(problem.filename, problem.lineno)
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if not frame.filename.startswith("<")]
    # The first is the call in this file.
    frames = [frame for frame in frames[1:] if Path(frame.filename).parent != Path(importlib.__file__).parent]
    own = [frame for frame in frames if _is_own(frame.filename)]
    for frame in (own or frames)[-1:]:
        return _location(frame.filename, frame.lineno or 1)
    return ""


def _is_own(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts


def _location(file: str, line: int) -> str:
    path = Path(file)
    short = os.path.relpath(path) if _is_own(file) else str(path)
    return f"{short}, line {line}"


DEFAULT_CONFIDENCE = 0.999
DEFAULT_SAMPLES = 100_000

HELP = f"""\
Try to contradict privacy claims by running mechanisms on neighbouring tables.

Without --target: every mechanism of farthing against its own event, then a self-test in which planted bugs have to be
caught. That takes minutes. A run of correct mechanisms raises a false alarm with probability at most 1 - confidence
(one in a thousand at the default confidence, {DEFAULT_CONFIDENCE:g}).

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


@click.command("audit", help=HELP, short_help="Try to contradict the privacy claims of mechanisms.")
@click.option("--target", metavar="MODULE:NAME", help="Audit your own code instead.")
@click.option("--claim", metavar="EPS[,DELTA]", help="What the target claims (default: its own event).")
@click.option("--neighbours", metavar="JSON", help="A list of pairs of neighbouring inputs of the target.")
@click.option("--samples", metavar="N", help="Outputs per side; without --target a limit on the number of each check.")
@click.option("--confidence", metavar="C", help=f"Confidence of the whole run (default: {DEFAULT_CONFIDENCE:g}).")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only checks whose name (or kind) holds NAME; =NAME is one."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Draw the one audit that is run to FILE.svg, .png or .html.")
@click.option("--no-progress", is_flag=True, help="No progress bar, even on a terminal.")
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
        good = _audit_target(target, claim, neighbours, level, count or DEFAULT_SAMPLES, as_json, plot, not no_progress)
    if not good:
        click.get_current_context().exit(1)


def _examine(
    only: tuple[str, ...], confidence: float, samples: int | None, as_json: bool, plot: str | None, bar: bool
) -> bool:
    from rich.console import Console

    from farthing.auditing.self_test import all_checks, examine
    from farthing.cli.terminal import stages

    checks = _selection(all_checks(), only)
    if plot is not None and len(checks) != 1:
        raise InvalidValue("plot", plot, f"can show one audit, not {len(checks)}", "name one with --only =NAME")
    start = time.perf_counter()
    with stages(Console(stderr=True, force_terminal=None if bar else False)) as work:
        work.begin(f"auditing {len(checks)} mechanisms", measured=True)
        outcomes = examine(
            checks,
            confidence=confidence,
            samples=samples,
            progress=lambda done, total: work.share(done / total),
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

    with current_directory_first():
        mechanism, show = audit_target(target), None if bar else False
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


def _selection(checks: list[Check], only: tuple[str, ...]) -> list[Check]:
    """The checks whose name or kind holds one of the words; `=NAME` is the check of that name alone."""
    if not only:
        return checks

    def is_named(word: str, check: Check) -> bool:
        if word.startswith("="):
            return word[1:].lower() == check.name.lower()
        return word.lower() in check.name.lower() or word.lower() in check.kind

    for word in only:
        if not any(is_named(word, check) for check in checks):
            rule = "must be part of a check's name or of its kind, or =NAME for one check"
            names = "".join(f"\n  {check.name}" for check in checks)
            way_out = f"the names are{names}\nand the kinds are 'mechanism' and 'planted bug'"
            raise InvalidValue("only", word, rule, way_out)
    return [check for check in checks if any(is_named(word, check) for word in only)]


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

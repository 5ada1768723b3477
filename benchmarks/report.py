"""Tables on the screen; the same as Markdown and JSON in benchmarks/results/."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cases import CASES
from benchmarks.mixed import (
    SELF_COLUMNS,
    SUMMARY_COLUMNS,
    Outcome,
    header_of,
    plain,
    remarks,
    rows_of_predictions,
    rows_of_setting,
    summary_row,
)
from benchmarks.race import Result
from benchmarks.samplers import COLUMNS as SPEED_COLUMNS
from benchmarks.samplers import Speed
from benchmarks.targets import Target

COLUMNS = ("contender", "epsilon", "interval width", "error", "seconds", "× our proof", "peak MB")
LIBRARIES = ("farthing", "dp-accounting", "prv-accountant", "opendp", "numpy", "scipy", "python-flint")


def rows_of(case: str, results: list[Result]) -> list[tuple[str, ...]]:
    """The table of one case, as text."""
    mine = [r for r in results if r.case == case]
    truth = next((r.data.get("epsilon") for r in mine if r.name == "truth"), None)
    proof = next((r.seconds for r in mine if r.name == "farthing, proven" and not r.failure), math.nan)
    return [_row(r, truth, proof) for r in mine if r.name != "truth"]


def _row(result: Result, truth: float | None, proof_seconds: float) -> tuple[str, ...]:
    data = result.data
    memory = f"{data['peak_megabytes']:.0f}" if "peak_megabytes" in data else ""
    if result.failure:
        short = result.failure if len(result.failure) <= 24 else result.failure[:23] + "…"
        return (result.name, short, "", "", "", "", memory)
    lower, upper, epsilon = data["lower"], data["upper"], data["epsilon"]
    width = "one side only" if lower is None else f"{upper - lower:.1e}"
    error = "" if truth is None else _error(epsilon, lower, upper, truth)
    ratio = result.seconds / proof_seconds
    return (result.name, f"{epsilon:.10g}", width, error, _seconds(result.seconds), f"{ratio:.3g}", memory)


def _error(epsilon: float, lower: float | None, upper: float | None, truth: float) -> str:
    """Signed, with a word when a side that the library vouches for is on the wrong side of the truth.

    The truth itself is good to about 1e-12, so smaller misses are not called wrong.
    """
    slack = 1e-11 * max(1.0, truth)
    wrong = (lower is not None and lower > truth + slack) or (upper is not None and upper < truth - slack)
    difference = epsilon - truth
    size = "< 1e-12" if abs(difference) < 1e-12 else f"{difference:+.1e}"
    return size + (" WRONG SIDE" if wrong else "")


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds >= 1e-4 else f"{seconds:.1e}"


def show(console: Console, case: str, results: list[Result]) -> None:
    """One table per case."""
    table = Table(*COLUMNS, title=CASES[case].title, title_justify="left", title_style="bold")
    for i, column in enumerate(table.columns):
        column.justify, column.no_wrap = ("left" if i == 0 else "right"), True
    for row in rows_of(case, results):
        table.add_row(*row, style="green" if row[0].startswith("farthing") else None)
    console.print(table)
    for r in results:
        if r.case == case and r.failure:
            console.print(f"  {r.name}: {r.failure}", style="dim", highlight=False)


def show_targets(console: Console, targets: list[Target]) -> None:
    """Promises, in one table."""
    table = Table("what", "promised", "measured", "", title="Promises", title_justify="left", title_style="bold")
    for t in targets:
        table.add_row(t.what, t.promise, t.measured, _verdict(t))
    console.print(table)


def save(
    folder: Path,
    results: list[Result],
    targets: list[Target],
    speeds: Sequence[Speed] = (),
    mixed: Sequence[Sequence[Outcome]] = (),
    about_mixed: Sequence[str] = (),
) -> Path:
    """Write latest.json and latest.md; returns the Markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": _machine(),
        "results": [{"case": r.case, "contender": r.name, **_finite(r.data)} for r in results],
        "samplers": [asdict(s) for s in speeds],
        "mixed": {"about": list(about_mixed), "settings": [plain(outcomes) for outcomes in mixed]},
        "targets": [asdict(t) for t in targets],
    }
    (folder / "latest.json").write_text(json.dumps(document, indent=1, allow_nan=False), encoding="utf-8")
    lines = ["# Bench", "", ", ".join(f"{k} {v}" for k, v in _machine().items()), ""]
    for case in dict.fromkeys(r.case for r in results):
        lines += [f"## {CASES[case].title}", "", *_markdown(COLUMNS, rows_of(case, results)), ""]
    if speeds:
        lines += ["## Noise for vectors", "", *_markdown(SPEED_COLUMNS, [s.row() for s in speeds]), ""]
    if mixed:
        lines += _mixed(mixed, about_mixed)
    rows: list[tuple[str, ...]] = [(t.what, t.promise, t.measured, _verdict(t)) for t in targets]
    lines += ["## Promises", "", *_markdown(("what", "promised", "measured", ""), rows), ""]
    path = folder / "latest.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (header, ("---",) * len(header), *rows)]


def _mixed(mixed: Sequence[Sequence[Outcome]], about: Sequence[str]) -> list[str]:
    """Ordinary statistics: the summary, then every setting."""
    lines = ["## Ordinary statistics beside the peers", "", *(f"- {line}" for line in about), ""]
    lines += [
        "Geometric means of RMSE: farthing's over that of the best tool, then over the best peer for each statistic,",
        "the worst of these ratios, and farthing's over each tool's.",
        "",
        *_markdown(SUMMARY_COLUMNS, [summary_row(outcomes) for outcomes in mixed]),
        "",
    ]
    for outcomes in mixed:
        lines += [f"### {outcomes[0].setting.title}", ""]
        lines += [*_markdown(header_of(outcomes), rows_of_setting(outcomes)), ""]
        lines += ["farthing: predicted standard error over RMSE, and coverage", ""]
        lines += [*_markdown(SELF_COLUMNS, rows_of_predictions(outcomes)), ""]
        lines += [*(f"- {line}" for line in remarks(outcomes)), ""]
    return lines


def _verdict(target: Target) -> str:
    return {True: "met", False: "missed", None: ""}[target.met]


def _finite(data: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: write it as text."""
    return {k: repr(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in data.items()}


def _machine() -> dict[str, str]:
    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "absent"

    facts = {"Python": platform.python_version(), "machine": platform.machine(), "cores": str(os.cpu_count())}
    return facts | {name: installed(name) for name in LIBRARIES}

"""farthing alone beside figures of the peers: `python -m benchmarks.own_errors --peers FILE [--table panel] [...]`.

One setting of `benchmarks.mixed` in less than a minute, for whoever works on a mechanism or on the planner. The plan is
made once and the sums are added up once; the releases are drawn below the ledger. FILE was written by
`python -m benchmarks --mixed --peers FILE`; without it only farthing's own columns are shown.

For each statistic: its RMSE with what chance makes of it; the RMSE of its best peer, and whose that is; the ratio; the
plan's standard error over the measured one of what it is about (`benchmarks.mixed`); and the coverage of its 95%
intervals. Below: the ratios in geometric mean, over the best tool in the whole set and over the best peer of each
statistic.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.mixed import (
    OURS,
    Outcome,
    Setting,
    against_best,
    best_peer,
    geometric_mean,
    kept_outcomes,
    of_farthing,
    ratios,
)
from benchmarks.mixed_farthing import KNOWN, ROWS
from benchmarks.mixed_tables import QUESTIONS, adult, panel
from benchmarks.peer_environments import wanted
from benchmarks.peer_figures import PeerFigures

RELEASES, SECONDS = 400, 45.0
COLUMNS = ("statistic", "RMSE", "spread", "best peer", "", "ratio", "predicted", "coverage")


def rows_of(outcomes: list[Outcome]) -> list[tuple[str, ...]]:
    """One row for each statistic of the first outcome, then the geometric means."""
    ours, *_ = outcomes
    own = ratios(outcomes, ours.contender)
    rows: list[tuple[str, ...]] = []
    for name, error in ours.errors.items():
        best = best_peer(outcomes, name)
        rival = ("–", "", "–") if best is None else (f"{best[0]:.4g}", best[2], f"{own[name][0]:.2f}")
        said = f"{ours.said[name]:.2f}" if name in ours.said else "–"
        rows.append((name, f"{error.rmse:.4g}", f"{error.spread:.0%}", *rival, said, f"{ours.coverage[name]:.1%}"))
    if own:
        middle, rival_name = against_best(outcomes, ours.contender)
        each = geometric_mean([ratio for ratio, _ in own.values()])
        rows.append(("over the best tool", "", "", "", rival_name, f"{middle:.3f}", "", ""))
        rows.append(("over the best peer of each", "", "", "", "", f"{each:.3f}", "", ""))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own_errors", description="farthing alone, quickly")
    parser.add_argument("--peers", type=Path, help="the file of the peers' figures")
    parser.add_argument("--table", choices=("adult", "panel"), default="adult")
    parser.add_argument("--adult", type=Path, help="the file of the Adult table (or FARTHING_ADULT names it)")
    parser.add_argument("--set", choices=list(QUESTIONS), default="twelve", help="the statistics")
    parser.add_argument("--only", default="", help="show only statistics with these words; all are planned")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--known", choices=(*KNOWN, "all"), default=ROWS, help="what the plan is told")
    parser.add_argument("--releases", type=int, default=RELEASES)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="fewer releases where they take longer")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    people = panel() if options.table == "panel" else adult(options.adult)
    setting = Setting(people.name, options.set, options.epsilon, options.delta)
    peers = kept_outcomes(setting, people, wanted(), PeerFigures(options.peers))
    console, written = Console(width=150), []
    for known in KNOWN if options.known == "all" else (options.known,):
        start = time.monotonic()
        ours = of_farthing(setting, people, known, options.releases, options.seconds)
        if ours.failure:
            raise SystemExit(f"{OURS[known]}: {ours.failure}")
        title = f"{setting.title}: {ours.contender}, {ours.releases} releases, {time.monotonic() - start:.0f} s"
        table = Table(*COLUMNS, title=title, title_justify="left", title_style="bold", box=SIMPLE, padding=(0, 1, 0, 0))
        for row in rows_of([ours, *peers]):
            if options.only in row[0] or row[0].startswith("over the best"):
                table.add_row(*row)
        console.print(table)
        written.append(asdict(ours))
    if options.json:
        options.json.write_text(json.dumps(written, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

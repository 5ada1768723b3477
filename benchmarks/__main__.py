"""`make bench`, which is `python -m benchmarks [--quick] [--case NAME] [--cap S]`.

With `--samplers`, `--audits`, `--tables`, `--ledger`, `--workloads`, `--mixed`, `--adaptive` or `--synthesis`
only those.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

from benchmarks.adaptive import adaptive_targets, measured_streams, show_streams
from benchmarks.audits import audit_targets
from benchmarks.cases import CASES
from benchmarks.ledger import ledger_targets, loads, show_loads
from benchmarks.mixed import QUICK as QUICK_RELEASES
from benchmarks.mixed import RELEASES, Outcome, compared, mixed_targets, settings, show_mixed
from benchmarks.mixed import about as about_mixed
from benchmarks.mixed_tables import adult, panel
from benchmarks.peer_environments import prepared
from benchmarks.peer_figures import PeerFigures
from benchmarks.race import QUICK_CASES, Result, race
from benchmarks.report import save, show, show_targets
from benchmarks.samplers import Speed, sampler_targets, show_speeds, speeds
from benchmarks.synthesis import runs as synthesis_runs
from benchmarks.synthesis import synthesis_targets
from benchmarks.tables import runs, show_runs, table_targets
from benchmarks.targets import targets
from benchmarks.workloads import (
    adult_pairs,
    draw,
    fixed_errors,
    measured_errors,
    show_workloads,
    workload_targets,
)

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Race, print as it goes, save at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="farthing beside its peers")
    parser.add_argument("--quick", action="store_true", help="fewer cases, fewer settings")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this case (may be repeated)")
    parser.add_argument("--samplers", action="store_true", help="only noise for vectors")
    parser.add_argument("--audits", action="store_true", help="only audits of Laplace noise, ours and others'")
    parser.add_argument("--tables", action="store_true", help="only plans on big tables, beside SQL by hand")
    parser.add_argument("--ledger", action="store_true", help="only the ledger under four clients")
    parser.add_argument("--workloads", action="store_true", help="only errors of many queries on one histogram")
    parser.add_argument("--mixed", action="store_true", help="only errors of ordinary statistics, beside every peer")
    parser.add_argument(
        "--releases", type=int, help=f"of ordinary statistics; {RELEASES}, or {QUICK_RELEASES} with --quick"
    )
    parser.add_argument("--adult", type=Path, help="the file of the Adult table (or FARTHING_ADULT names it)")
    parser.add_argument("--peers", type=Path, help="a file that keeps the peers' figures of ordinary statistics")
    parser.add_argument("--adaptive", action="store_true", help="only online answers, beside a split budget")
    parser.add_argument("--synthesis", action="store_true", help="only the synthetic Adult table")
    parser.add_argument("--cap", type=float, help="seconds a peer may take for one answer")
    options = parser.parse_args()
    cap = options.cap or (25.0 if options.quick else 60.0)
    some = (
        options.samplers
        or options.audits
        or options.tables
        or options.ledger
        or options.workloads
        or options.mixed
        or options.adaptive
        or options.synthesis
    )
    everything = not options.case and not some
    names = options.case or ([] if some else list(QUICK_CASES) if options.quick else list(CASES))

    console, start = Console(), time.monotonic()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console = Console(width=150)
    results: list[Result] = []
    measured: list[Speed] = []
    rows = []
    mixed: list[list[Outcome]] = []
    compared_tables: list[str] = []
    with console.status("starting") as status:
        for name in names:
            results.extend(race([name], cap, status.update, options.quick))
            show(console, name, results)
        if everything:
            rows = targets(results, options.quick, cap, status.update)
        if everything or options.samplers:
            measured = list(speeds(options.quick, cap, status.update))
            show_speeds(console, measured)
            rows += sampler_targets(measured)
        if everything or options.audits:
            rows += audit_targets(status.update)
        if everything or options.tables:
            size = 1_000_000 if options.quick else 10_000_000
            found = runs(size, size // 20, 10 * cap, 1 if options.quick else 3, status.update)
            show_runs(console, found, size)
            rows += table_targets(found, size)
        if everything or options.ledger:
            sizes = [0, 20_000] if options.quick else [0, 100_000, 1_000_000]
            loaded = list(loads(sizes, 3.0 if options.quick else 10.0, 60 * cap, status.update))
            show_loads(console, loaded)
            rows += ledger_targets(loaded)
        if everything or options.workloads:
            fixed = fixed_errors(status.update)
            errors = measured_errors(options.quick, status.update)
            pairs = adult_pairs(status.update)
            show_workloads(console, fixed, errors, pairs)
            rows += workload_targets(fixed, errors, pairs)
            if errors:
                RESULTS.mkdir(parents=True, exist_ok=True)
                draw(RESULTS / "workloads.svg", errors)
        if everything or options.mixed:
            tables, environments = [adult(options.adult), panel()], prepared(status.update)
            compared_tables = about_mixed(tables, environments)
            console.print("\n".join(compared_tables), highlight=False)
            chosen = settings(options.quick, *(people.name for people in tables))
            releases = options.releases or (QUICK_RELEASES if options.quick else RELEASES)
            figures = PeerFigures(options.peers)
            for outcomes in compared(chosen, tables, environments, releases, status.update, 2 * cap, figures):
                mixed.append(outcomes)
                show_mixed(console, outcomes)
                rows += mixed_targets(outcomes)
        if everything or options.adaptive:
            streams, split = measured_streams(options.quick, status.update)
            show_streams(console, streams, split)
            rows += adaptive_targets(streams, split)
        if everything or options.synthesis:
            status.update("synthetic Adult")
            rows += synthesis_targets(synthesis_runs(1 if options.quick else 3))
        if rows:
            show_targets(console, rows)
    path = save(RESULTS, results, rows, measured, mixed, compared_tables)
    if results:
        console.print(
            "error: against an independent high-precision computation of the optimum (benchmarks/truth.py).\n"
            "dp-accounting composes one by one as its accountant does; «by tree» is the faster wiring by hand.",
            highlight=False,
        )
    console.print(
        f"{time.monotonic() - start:.0f} s in all; saved in {path.relative_to(RESULTS.parents[1])}",
        highlight=False,
    )


if __name__ == "__main__":
    main()

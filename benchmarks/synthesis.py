"""Synthetic Adult beside the figures of others: `python -m benchmarks.synthesis [--runs N] [--pure]`.

The mean total variation, over all 364 three-way marginals, between the coded Adult table (14 columns, 48,842 rows) and
as many synthetic rows; epsilon 1 and delta 1e-9. Rows drawn again from the real ones are the floor, and columns that
are shuffled one by one what a perfect release of one-way marginals would give. Other people's figures are those of
published code run on the same table in 2026-11.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.targets import Target
from benchmarks.workload_data import adult
from farthing.adaptive.synthesis import synthesis_plan

PROMISED, SECONDS, GIBIBYTES = 0.10, 300.0, 4.0
PEERS: dict[str, tuple[float, float | None]] = {
    "MST (mbi)": (0.112, 112.0),
    "AIM (dpmm, 30 rounds)": (0.123, 59.0),
    "independent columns": (0.180, None),
}


@dataclass(frozen=True)
class Run:
    """One way to synthetic rows."""

    name: str
    variation: float
    seconds: float | None


def mean_variation(real: NDArray[np.int64], rows: NDArray[np.int64], sizes: tuple[int, ...]) -> float:
    """The mean over all three-way marginals of the total variation between two tables of as many rows."""
    found = []
    for columns in combinations(range(len(sizes)), 3):
        shape = [sizes[column] for column in columns]
        one, two = (
            np.bincount(np.ravel_multi_index([table[:, c] for c in columns], shape), minlength=int(np.prod(shape)))
            for table in (real, rows)
        )
        found.append(float(np.abs(one / len(real) - two / len(rows)).sum()) / 2)
    return float(np.mean(found))


def runs(count: int, delta: float = 1e-9) -> list[Run]:
    """Ours `count` times, each with noise of its own, and the two ends of the scale; nothing without the table."""
    table = adult()
    if table is None:
        return []
    sizes, real = tuple(table[0].values()), table[1]
    random = np.random.default_rng(1)
    again = real[random.integers(0, len(real), len(real))]
    shuffled = random.permuted(real, axis=0)
    found = [
        Run("real rows drawn again (the floor)", mean_variation(real, again, sizes), None),
        Run("real columns, each shuffled", mean_variation(real, shuffled, sizes), None),
    ]
    for number in range(count):
        start = time.perf_counter()
        plan = synthesis_plan(sizes, 1.0, delta)
        rows = plan.fitted(plan.draw(real)).rows(len(real))
        seconds = time.perf_counter() - start
        found.append(Run(f"farthing, run {number + 1}", mean_variation(real, rows, sizes), seconds))
    return found


def synthesis_targets(found: list[Run], delta: float = 1e-9) -> list[Target]:
    """The promises that these runs can judge."""
    ours = [run for run in found if run.seconds is not None]
    if not ours:
        return []
    mean = float(np.mean([run.variation for run in ours]))
    slowest = max(run.seconds or 0.0 for run in ours)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    what = f"synthetic Adult, epsilon = 1, delta = {delta:g}"
    return [
        Target(f"{what}: mean 3-way total variation", f"<= {PROMISED}", f"{mean:.4f}", mean <= PROMISED),
        Target(f"{what}: seconds", f"< {SECONDS:g}", f"{slowest:.1f}", slowest < SECONDS),
        Target(f"{what}: memory of the process", f"< {GIBIBYTES:g} GiB", f"{memory:.2f} GiB", memory < GIBIBYTES),
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis", description="synthetic Adult")
    parser.add_argument("--runs", type=int, default=3, help="how many runs of ours")
    parser.add_argument("--pure", action="store_true", help="delta = 0")
    options = parser.parse_args()
    delta = 0.0 if options.pure else 1e-9
    found = runs(options.runs, delta)
    shown = Table("method", "mean 3-way total variation", "seconds")
    for name, (variation, seconds) in PEERS.items():
        shown.add_row(name, f"{variation:.3f}", "" if seconds is None else f"{seconds:.0f}")
    for run in found:
        shown.add_row(run.name, f"{run.variation:.4f}", "" if run.seconds is None else f"{run.seconds:.1f}")
    console = Console(width=110)
    console.print(shown)
    for target in synthesis_targets(found, delta):
        console.print(f"{target.what}: {target.measured} (promised {target.promise})")


if __name__ == "__main__":
    main()

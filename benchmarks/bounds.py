"""A mean of values whose range nobody knows: find the range, then the mean, within one epsilon, beside PyDP.

    python -m benchmarks.bounds [releases] [PYTHON]

farthing plans `ft.mean` of a column declared `ft.unknown("number")`, finds its range for a twentieth of epsilon, and
releases the mean for the rest. PyDP's `BoundedMean` without bounds finds them by Google's approximate bounds, for half
of epsilon. Neighbours add or remove one row, and delta is 0. OpenDP and tmlt.analytics ask for bounds. `PYTHON` is an
interpreter that has python-dp; by default its environment is made as `peers.toml` says.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import farthing as ft
from benchmarks.peer_environments import prepared
from farthing.errors import FarthingError
from farthing.study.staged_plan import StagedPlan

Values = NDArray[np.float64]
Means = list[float | None]

EPSILON = 1.0
TABLES: dict[str, Callable[[np.random.Generator], Values]] = {
    "ages 18 to 94": lambda draw: draw.integers(18, 95, 10_000).astype(float),
    "incomes, log-normal": lambda draw: np.exp(draw.normal(10.5, 0.8, 10_000)),
    "incomes, 100,000 rows": lambda draw: np.exp(draw.normal(10.5, 0.8, 100_000)),
    "waiting times, exponential": lambda draw: draw.exponential(30.0, 10_000),
    "temperatures, normal": lambda draw: draw.normal(-3.0, 9.0, 10_000),
    "claims, Pareto 2.5": lambda draw: 1_000 * (1 + draw.pareto(2.5, 10_000)),
}


def farthing_means(values: Values, releases: int) -> Means:
    """Both stages of a plan, each time in a new ledger; None where no range was found."""
    means: Means = []
    table = pa.table({"x": values})
    for _ in range(releases):
        with tempfile.TemporaryDirectory() as folder:
            rows = ft.dataset(table, schema={"x": ft.unknown("number")}, name="values")
            study = ft.Study(rows, epsilon=EPSILON, ledger=f"{folder}/study.db", account="values")
            try:
                plan = study.plan(ft.mean("x"), expected={"rows": len(values)})
                assert isinstance(plan, StagedPlan)
                release = plan.discover().release()
                means.append(float(release["mean of x"].values))
            except FarthingError:
                means.append(None)
            study.close()
    return means


def peer_means(python: str, tables: dict[str, Values], releases: int) -> dict[str, Means]:
    """What PyDP says, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        for place, values in enumerate(tables.values()):
            np.save(f"{folder}/{place}.npy", values)
        script = Path(__file__).with_name("bounds_peer.py")
        said = subprocess.run([python, script, folder, str(releases), str(EPSILON)], check=True, capture_output=True)
    return dict(zip(tables, json.loads(said.stdout), strict=True))


def rows(releases: int, python: str) -> list[str]:
    """A line for each table: the root mean squared error of both, and how often nothing was found."""
    draw = np.random.default_rng(7)
    tables = {name: made(draw) for name, made in TABLES.items()}
    peers = peer_means(python, tables, releases)
    lines = [f"{'table':<28}{'farthing':>12}{'PyDP':>12}{'ratio':>8}   nothing found"]
    for name, values in tables.items():
        both = farthing_means(values, releases), peers[name]
        truth = float(values.mean())
        own, other = (
            math.sqrt(np.mean([(mean - truth) ** 2 for mean in each if mean is not None] or [math.nan]))
            for each in both
        )
        none = " and ".join(str(each.count(None)) for each in both)
        lines.append(f"{name:<28}{own:>12.4g}{other:>12.4g}{own / other:>8.2f}   {none}")
    return lines


def main() -> None:
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if len(sys.argv) > 2:
        python = sys.argv[2]
    else:
        (environment,) = prepared(print, only="pydp")
        if environment.failure:
            raise SystemExit(environment.failure)
        python = environment.python
    print("\n".join(rows(releases, python)))


if __name__ == "__main__":
    main()

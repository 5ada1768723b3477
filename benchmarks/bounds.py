"""A mean of values whose range nobody knows: find the range, then the mean, within one epsilon.

    python -m benchmarks.bounds [releases]

Beside farthing's search stands the rule that Google's differential privacy libraries, PyDP and PipelineDP have
(approximate bounds: powers of two, the outermost cells that an empty one passes with probability 1e-9 in all, half of
epsilon), written out again here: PyDP itself is in `peers.toml` where it installs. OpenDP and tmlt.analytics ask for
bounds. Both get the same epsilon, neighbours that add or remove a row, and the same noisy mean afterwards: sum over
count, with values moved by the middle of the range.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.discovery import UnitCounts
from farthing.adaptive.discovery.search_cells import cells_of
from farthing.data.schema import Unknown

Values = NDArray[np.float64]
Bounds = tuple[float, float]

CELLS = cells_of(Unknown("number").widest())
SHARE = 0.05
TABLES: dict[str, Callable[[np.random.Generator], Values]] = {
    "ages 18 to 94": lambda draw: draw.integers(18, 95, 10_000).astype(float),
    "incomes, log-normal": lambda draw: np.exp(draw.normal(10.5, 0.8, 10_000)),
    "incomes, 100,000 rows": lambda draw: np.exp(draw.normal(10.5, 0.8, 100_000)),
    "waiting times, exponential": lambda draw: draw.exponential(30.0, 10_000),
    "temperatures, normal": lambda draw: draw.normal(-3.0, 9.0, 10_000),
    "claims, Pareto 2.5": lambda draw: 1_000 * (1 + draw.pareto(2.5, 10_000)),
}


def farthing_bounds(values: Values, epsilon: float) -> Bounds | None:
    """The search of `farthing.adaptive.discovery`, on an array."""
    counts = UnitCounts(CELLS, epsilon)
    places = np.searchsorted(np.array(CELLS.edges[1:-1]), values, side="right")
    ends = counts.range_of(counts.mechanism.release(np.bincount(places, minlength=len(CELLS))))
    return None if ends is None else (CELLS.lows[ends[0]], CELLS.highs[ends[1]])


def google_bounds(values: Values, epsilon: float, draw: np.random.Generator) -> Bounds | None:
    """Approximate bounds: cells between powers of two, of both signs; success probability 1 - 1e-9."""
    edges = np.array([0.0, *(2.0**power for power in range(-60, 54))])
    sides = [
        np.bincount(np.searchsorted(edges[1:], side), minlength=len(edges))[: len(edges) - 1]
        for side in (values[values >= 0], -values[values < 0])
    ]
    both = np.concatenate([sides[1][::-1], sides[0]]) + draw.laplace(0, 1 / epsilon, 2 * (len(edges) - 1))
    threshold = -math.log(2 - 2 * (1 - 1e-9) ** (1 / (len(both) - 1))) / epsilon
    seen = np.flatnonzero(both > threshold)
    if not len(seen):
        return None
    ends = np.concatenate([-edges[1:][::-1], [0.0], edges[1:]])
    return float(ends[seen[0]]), float(ends[seen[-1] + 1])


def noisy_mean(values: Values, bounds: Bounds, epsilon: float, draw: np.random.Generator) -> float:
    """A sum of values around the middle of their range, over a count; half of epsilon each."""
    middle, reach = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    total = np.clip(values, *bounds).sum() - middle * len(values) + draw.laplace(0, 2 * reach / epsilon)
    return float(middle + total / max(1.0, len(values) + draw.laplace(0, 2 / epsilon)))


def rows(releases: int = 100, epsilon: float = 1.0) -> list[str]:
    """A line for each table: the root mean squared error of both, and how often nothing was found."""
    lines = [f"{'table':<28}{'farthing':>12}{'Google rule':>14}{'ratio':>8}   nothing found"]
    draw = np.random.default_rng(7)
    for name, made in TABLES.items():
        values = made(draw)
        truth, none = float(values.mean()), [0, 0]
        errors: tuple[list[float], list[float]] = ([], [])
        for _ in range(releases):
            ours, theirs = farthing_bounds(values, SHARE * epsilon), google_bounds(values, epsilon / 2, draw)
            for place, (bounds, rest) in enumerate(((ours, (1 - SHARE) * epsilon), (theirs, epsilon / 2))):
                if bounds is None:
                    none[place] += 1
                else:
                    errors[place].append(noisy_mean(values, bounds, rest, draw) - truth)
        own, other = (math.sqrt(np.mean(np.square(each))) if each else math.nan for each in errors)
        lines.append(f"{name:<28}{own:>12.4g}{other:>14.4g}{own / other:>8.2f}   {none[0]} and {none[1]}")
    return lines


if __name__ == "__main__":
    print("\n".join(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 100)))

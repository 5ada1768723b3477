"""How often intervals of quantiles hold the truth, and how wide they are: `python -m benchmarks.quantile_intervals`.

Columns are smooth, skewed, heavy-tailed, discrete and tiny, in good bounds and in bounds 1,000 times too wide; places
run from 0.01 to 0.999; panel data have 4 rows for each person. Nothing is expected of any column. Width and error are
in rows: how many lie in the interval, and how far the value is off in rank. At epsilon = 1, 300 releases each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import farthing as ft
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise

PLACES: tuple[tuple[float, ...], ...] = (
    (0.01,),
    (0.25,),
    (0.5,),
    (0.9,),
    (0.99,),
    (0.999,),
    (0.25, 0.5, 0.75),
)
EPSILON = 1.0


@dataclass(frozen=True)
class Column:
    """A column's values, its bounds, and how many rows a person may have."""

    name: str
    draw: Callable[[np.random.Generator], Any]
    bounds: tuple[float, float]
    rows_each: int = 1

    @property
    def whole(self) -> bool:
        """Whether its bounds are whole numbers, and so its values."""
        return isinstance(self.bounds[0], int)


COLUMNS = (
    Column("normal, 20,000 rows", lambda draw: draw.normal(27, 5, 20_000), (10.0, 60.0)),
    Column("lognormal, 6,000", lambda draw: draw.lognormal(9.6, 0.9, 6_000), (0.0, 100_000.0)),
    Column("the same, bounds 100 times too wide", lambda draw: draw.lognormal(9.6, 0.9, 6_000), (0.0, 1e7)),
    Column("normal, bounds 1,000 times too wide", lambda draw: draw.normal(500, 150, 6_000), (0.0, 1e6)),
    Column("Pareto 0.7, 4,000", lambda draw: draw.pareto(0.7, 4_000), (0.0, 50_000.0)),
    Column("Poisson 3, 3,000", lambda draw: draw.poisson(3.0, 3_000), (0, 30)),
    Column("age, 5,000", lambda draw: draw.normal(40, 15, 5_000).round(), (0, 110)),
    Column("normal, 90", lambda draw: draw.normal(45, 12, 90), (0.0, 100.0)),
    Column("gamma, 8,000, 4 rows each", lambda draw: draw.gamma(4, 6, 8_000), (0.0, 100.0), 4),
)


def measured(column: Column, places: tuple[float, ...], releases: int) -> Iterator[tuple[float, float, float]]:
    """Of each place: the share of intervals that hold it, their rows, and how many rows the value is off."""
    kept = np.clip(column.draw(np.random.default_rng(1)), *column.bounds)
    table = pa.table({"x": kept.astype(np.int64) if column.whole else kept, "person": np.arange(len(kept))})
    unit: dict[str, Any] = {} if column.rows_each == 1 else {"unit": "person", "max_rows": column.rows_each}
    data = ft.dataset(table, schema={"x": column.bounds}, **unit)
    design = design_of([ft.quantiles("x", list(places))], data, {"rows": len(kept)})
    (slot,), (output,), noise = design.slots, design.outputs, Noise("exponential", EPSILON)
    derived = data.derive(**dict(design.derived)) if design.derived else data
    exact = slot.own(derived.exact(dict(slot.aggregates)))
    answers = [output.answer({slot.name: slot.measure(exact, noise)}, {slot.name: noise}) for _ in range(releases)]
    ordered = np.sort(kept)
    for number, place in enumerate(places):
        truth = np.quantile(ordered, place, method="inverted_cdf")
        low, high, value = (
            np.array([np.atleast_1d(getattr(answer, name))[number] for answer in answers])
            for name in ("lower", "upper", "values")
        )
        rows = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
        first, last = np.searchsorted(ordered, value, "left"), np.searchsorted(ordered, value, "right")
        wanted = place * len(ordered)
        off = np.maximum(np.maximum(first - wanted, wanted - last), 0)
        yield (
            float(np.mean((low <= truth) & (truth <= high))),
            float(rows.mean()),
            float(np.sqrt(np.mean(off**2))),
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantile_intervals", description="quantiles")
    parser.add_argument("--releases", type=int, default=300, help="how many of each")
    releases = parser.parse_args().releases
    shown = Table("column", "place", "held", "rows in the interval", "value off by, rows")
    for column in COLUMNS:
        for places in PLACES:
            for place, (held, rows, off) in zip(places, measured(column, places, releases), strict=True):
                name = f"{place:g}" if len(places) == 1 else f"{place:g} of {len(places)}"
                shown.add_row(column.name, name, f"{held:.1%}", f"{rows:,.1f}", f"{off:,.2f}")
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()

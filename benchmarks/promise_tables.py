"""Six tables that look like real ones, for `benchmarks.promises`: generated, the same on every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import farthing as ft
from farthing.data import Dataset
from farthing.statistics import Statistic

Floats = NDArray[np.float64]

EDGES = 8
GROUPS = ("north", "east", "south", "west", "abroad")


@dataclass(frozen=True)
class Example:
    """A table with its schema: `group`, `band`, `flag`, and the numbers `x` and `y`; NaN stands for a missing one."""

    name: str
    columns: Mapping[str, Any]
    groups: tuple[Any, ...]
    bounds: tuple[float, float]
    max_rows: int | None = None

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns["group"])

    @property
    def dataset(self) -> Dataset:
        """The table as a steward declares it."""
        arrays = {
            name: pa.array(values, mask=np.isnan(values) if np.asarray(values).dtype.kind == "f" else None)
            for name, values in self.columns.items()
        }
        schema = {
            "group": list(self.groups),
            "band": (0, 3),
            "flag": bool,
            "x": self.bounds,
            "y": (0.0, 100.0),
        }
        unit: dict[str, Any] = {} if self.max_rows is None else {"unit": "person", "max_rows": self.max_rows}
        return ft.dataset(pa.table(arrays), schema=schema, **unit)

    @property
    def x(self) -> Floats:
        """The numbers as the bounds leave them, without the missing ones."""
        own = np.asarray(self.columns["x"], dtype=float)
        return np.asarray(np.clip(own[~np.isnan(own)], *self.bounds))

    @property
    def edges(self) -> Floats:
        """Where x is cut into cells."""
        return np.linspace(*self.bounds, EDGES + 1)


def _of(
    name: str, rows: int, seed: int, x: Callable[[np.random.Generator, int], Floats], bounds: tuple[float, float],
    *, groups: tuple[Any, ...] = GROUPS, shares: Any = None, missing: float = 0.0, max_rows: int | None = None,
) -> Example:  # fmt: skip
    draw = np.random.default_rng(seed)
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05]) if shares is None else shares
    columns: dict[str, Any] = {
        "group": np.array(groups)[draw.choice(len(groups), rows, p=shares)],
        "band": draw.binomial(3, 0.4, rows),
        "flag": draw.random(rows) < 0.2,
        "x": x(draw, rows),
    }
    lower, upper = bounds
    level = np.clip((columns["x"] - lower) / (upper - lower), 0, 1)
    columns["y"] = np.clip(30 + 40 * level + draw.normal(0, 8, rows), 0, 100)
    if missing:
        columns["x"] = np.where(draw.random(rows) < missing, np.nan, columns["x"])
    if max_rows is not None:  # everybody has 1 to max_rows rows, one after the other
        people = np.repeat(np.arange(rows), draw.integers(1, max_rows + 1, rows))[:rows]
        columns["person"] = people
    return Example(name, columns, groups, bounds, max_rows)


def examples() -> tuple[Example, ...]:
    """The six, always the same."""
    keys = tuple(f"k{place:03d}" for place in range(400))
    few = np.zeros(len(keys))
    few[::10] = 1 / np.arange(1, 41)
    return (
        _of("skewed", 6_000, 1, lambda draw, n: draw.lognormal(9.6, 0.9, n), (0.0, 100_000.0)),
        _of("tiny", 90, 2, lambda draw, n: draw.normal(45, 12, n), (0.0, 100.0)),
        _of(
            "sparse", 5_000, 3, lambda draw, n: draw.exponential(4, n), (0.0, 100.0),
            groups=keys, shares=few / few.sum(),
        ),
        _of("wrong bounds", 6_000, 4, lambda draw, n: draw.normal(3_000, 900, n), (0.0, 1_000_000.0)),
        _of("panel", 8_000, 5, lambda draw, n: draw.gamma(4, 6, n), (0.0, 100.0), max_rows=4),
        _of("missing values", 6_000, 6, lambda draw, n: draw.normal(62, 15, n), (0.0, 100.0), missing=0.25),
    )  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of statistic: how it is asked, what it truly is, whether its cells are counts, where it must lie."""

    name: str
    ask: Callable[[Example], Statistic]
    truth: Callable[[Example], Floats] | None = None  # None: what the engine counts, without noise
    adds_up: bool = False
    bounds: Callable[[Example], tuple[float, float]] | None = None  # of what it can be, whatever the noise


def _counts(example: Example) -> Floats:
    return np.array([np.sum(example.columns["group"] == group) for group in example.groups], dtype=float)


def _cells(example: Example) -> Floats:
    return np.histogram(example.x, example.edges)[0].astype(float)


def _table(example: Example) -> Floats:
    group, flag = example.columns["group"], example.columns["flag"]
    return np.array([np.sum((group == one) & (flag == yes)) for one in example.groups for yes in (False, True)], float)


def _by_flag(example: Example) -> Floats:
    own, flag = np.asarray(example.columns["x"], dtype=float), example.columns["flag"]
    there = ~np.isnan(own)
    return np.array([np.clip(own[there & (flag == yes)], *example.bounds).mean() for yes in (False, True)])


def _line(example: Example) -> Floats:
    own = np.asarray(example.columns["x"], dtype=float)
    there = ~np.isnan(own)
    slope, level = np.polyfit(np.clip(own[there], *example.bounds), example.columns["y"][there], 1)
    return np.array([level, slope])


def _shares(example: Example) -> tuple[float, float]:
    return 0.0, 1.0


def _own(example: Example) -> tuple[float, float]:
    return example.bounds


def _squares(example: Example) -> tuple[float, float]:
    return 0.0, (example.bounds[1] - example.bounds[0]) ** 2 / 4


def _spreads(example: Example) -> tuple[float, float]:
    return 0.0, (example.bounds[1] - example.bounds[0]) / 2


def _middle(example: Example) -> Floats:
    return np.array([np.quantile(example.x, 0.5, method="inverted_cdf")])


KINDS: tuple[Kind, ...] = (
    Kind("count by", lambda e: ft.count(by="group"), _counts, adds_up=True),
    Kind("histogram", lambda e: ft.histogram("x", bins=EDGES), _cells, adds_up=True),
    Kind("contingency", lambda e: ft.contingency(["group", "flag"]), _table, adds_up=True),
    Kind("cdf", lambda e: ft.cdf("x", bins=EDGES), lambda e: np.cumsum(_cells(e)) / len(e.x), bounds=_shares),
    Kind("ranges", lambda e: ft.ranges("x", bins=32), adds_up=True),
    Kind("marginals", lambda e: ft.marginals(["group", "flag", "band"], way=2), adds_up=True),
    Kind("sum", lambda e: ft.sum("x"), lambda e: np.array([e.x.sum()])),
    Kind("mean", lambda e: ft.mean("x"), lambda e: np.array([e.x.mean()]), bounds=_own),
    Kind("mean by", lambda e: ft.mean("x", by="flag"), _by_flag, bounds=_own),
    Kind("share", lambda e: ft.mean("flag"), lambda e: np.array([e.columns["flag"].mean()]), bounds=_shares),
    Kind("variance", lambda e: ft.variance("x"), lambda e: np.array([e.x.var()]), bounds=_squares),
    Kind("std", lambda e: ft.std("x"), lambda e: np.array([e.x.std()]), bounds=_spreads),
    Kind("median", lambda e: ft.median("x"), _middle, bounds=_own),
    Kind("regression", lambda e: ft.linear_regression("y", "x"), _line),
)

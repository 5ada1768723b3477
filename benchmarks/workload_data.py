"""Histograms for workloads: DPBench's where they are at hand, and shapes made here, sampled to any number of rows.

The public files are looked for in the folder that FARTHING_DATA names, else in `shared/data` beside the repository.
Without them only the made shapes are used.
"""

from __future__ import annotations

import csv
import json
import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def folder() -> Path:
    """Where the public files are."""
    named = os.environ.get("FARTHING_DATA", "")
    return Path(named) if named else Path(__file__).parents[2] / "shared" / "data"


def dpbench_shapes(cells: int) -> dict[str, Floats]:
    """The one-column histograms of DPBench, neighbours added up to `cells`; empty without the files."""
    found = {}
    for path in sorted((folder() / "dpbench" / "1D").glob("*.npy")):
        name = path.name.removesuffix(".npy").removesuffix(".n4096").removesuffix("_no_outliers")
        found[name] = np.load(path).astype(float).reshape(cells, -1).sum(axis=1)
    return found


def flattened_shapes(cells: int) -> dict[str, Floats]:
    """The two-column histograms of DPBench row by row: far from smooth, many cells empty."""
    found = {}
    for path in sorted((folder() / "dpbench" / "2D").glob("*.npy")):
        found[path.name.split("_")[0]] = np.load(path).astype(float).reshape(cells, -1).sum(axis=1)
    return found


def made_shapes(cells: int) -> dict[str, Floats]:
    """Shapes that no public file has: even, a spike, spikes, bells, tails, steps, a comb, a walk."""
    generator = np.random.default_rng(5)
    place = np.arange(cells) / cells
    tail = 1.0 / np.arange(1, cells + 1)
    spike, spikes, few, comb, block = (np.zeros(cells) for _ in range(5))
    spike[cells * 3 // 10] = 1.0
    few[generator.choice(cells, max(1, cells // 64), replace=False)] = generator.pareto(1, max(1, cells // 64)) + 0.1
    spikes[generator.choice(cells, max(1, cells // 8), replace=False)] = 1.0
    comb[::16] = 1.0
    block[: max(1, cells // 20)] = 1.0
    steps = np.ones(cells)
    steps[cells // 3 : cells // 2] = 6.0
    steps[cells // 2 + cells // 28 : cells * 3 // 4] = 0.2
    return {
        "even": np.ones(cells),
        "spike": spike,
        "few spikes": few,
        "many spikes": spikes,
        "bell": np.exp(-(((place - 0.5) / 0.15) ** 2) / 2),
        "two bells": 0.5 * np.exp(-(((place - 0.3) / 0.03) ** 2) / 2)
        + 0.3 * np.exp(-(((place - 0.7) / 0.1) ** 2) / 2)
        + 0.01,
        "tail": tail,
        "shuffled tail": generator.permutation(tail),
        "heavy shuffled tail": generator.permutation(tail**2),
        "steps": steps,
        "comb": comb,
        "ramp": place + 1 / cells,
        "walk": np.exp(0.3 * np.cumsum(generator.normal(size=cells))),
        "block": block,
    }


def sampled(shape: Floats, records: int, *seeds: object) -> Counts:
    """So many rows drawn from a shape; the same ones for the same seeds."""
    generator = np.random.default_rng(zlib.crc32(repr(seeds).encode()))
    return np.asarray(generator.multinomial(records, shape / shape.sum()), dtype=np.int64)


def adult() -> tuple[dict[str, int], Counts] | None:
    """The coded Adult table: sizes of its columns, and its rows as codes. None without the files."""
    domain = folder() / "tables" / "adult-coded-domain.json"
    if not domain.is_file():
        return None
    sizes: dict[str, int] = json.loads(domain.read_text(encoding="utf-8"))
    with (folder() / "tables" / "adult-coded.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return sizes, np.array([[int(row[name]) for name in sizes] for row in rows], dtype=np.int64)

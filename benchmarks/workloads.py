"""Error of many queries on one histogram, beside the figures of others: `python -m benchmarks --workloads`.

Three tables. Fixed strategies by their exact expected error; `auto` and `dawa` on DPBench histograms at three sizes, as
geometric means over the histograms; all pairs of Adult's columns. Other people's figures are those of published code
run on the same histograms in 2026-11, at the same epsilon. Errors are root mean squares over the queries.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.targets import Target
from benchmarks.workload_data import adult, dpbench_shapes, flattened_shapes, made_shapes, sampled
from farthing.matrix import answer_workload, workloads
from farthing.matrix.strategy_candidates import named, rmse_of
from farthing.matrix.workloads import Workload

CELLS, EPSILON = 1024, 0.1
RECORDS = (10**3, 10**5, 10**7)
FIXED = ("identity", "hierarchical", "wavelet", "tree", "optimised")
PEERS_FIXED = {
    "identity": (320, 262),
    "hierarchical": (139, 167),
    "wavelet": (172, 203),
    "optimised": (97, 111),
}
PEERS = {10**3: (76.0, 47.0), 10**5: (97.0, 111.0), 10**7: (97.0, 111.0)}
"""The best private one of others at so many rows, on prefixes and on random ranges."""
PEER_NAMES = {10**3: "DAWA, partition 0.25", 10**5: "HDMM p-Identity", 10**7: "HDMM p-Identity"}
MOST_RATIO = 1.3
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """One strategy on one kind of histograms of one size: its error on each."""

    shapes: str
    records: int
    workload: str
    strategy: str
    errors: dict[str, float]

    @property
    def mean(self) -> float:
        """The geometric mean over the histograms."""
        return math.exp(float(np.mean(np.log(list(self.errors.values())))))


@dataclass(frozen=True)
class Pairs:
    """All pairs of Adult's columns: error of a cell, expected and measured."""

    expected: float
    measured: float
    seconds: float


def asked(cells: int = CELLS) -> dict[str, Workload]:
    """All prefixes, and 2,000 random ranges."""
    ends = np.sort(np.random.default_rng(1).integers(0, cells, (2000, 2)), axis=1) + np.array([0, 1])
    return {"prefixes": workloads.prefix(cells), "random ranges": workloads.ranges(cells, ends)}


def fixed_errors(say: Say) -> dict[str, tuple[float, float]]:
    """Expected errors of the fixed strategies, on all prefixes and all ranges."""
    found = {}
    for name in FIXED:
        say(f"{name} strategy")
        pair = [
            rmse_of(named(name, workload, EPSILON, 0.0), workload)
            for workload in (workloads.prefix(CELLS), workloads.all_ranges(CELLS))
        ]
        found[name] = (pair[0], pair[1])
    return found


def measured_errors(quick: bool, say: Say) -> list[Measured]:
    """`auto` and `dawa` on all histograms; a fixed strategy has the same error on each."""
    kinds = {
        "DPBench": dpbench_shapes(CELLS),
        "DPBench, two columns in one": {} if quick else flattened_shapes(CELLS),
        "made": made_shapes(CELLS),
    }
    found = []
    for kind, shapes in kinds.items():
        few, many = (1, 3) if quick else (3, 10)
        for records in RECORDS if shapes else ():
            for name, workload in asked().items():
                for strategy in ("auto", "dawa"):
                    trials = many if (kind, strategy) == ("DPBench", "auto") else few
                    say(f"{strategy} on {records:,} rows, {kind}, {name}")
                    errors = {
                        shape: _error(
                            workload,
                            strategy,
                            (sampled(own, records, shape, trial) for trial in range(trials)),
                        )
                        for shape, own in shapes.items()
                    }
                    found.append(Measured(kind, records, name, strategy, errors))
    return found


def _error(workload: Workload, strategy: str, histograms: Iterable[NDArray[np.int64]]) -> float:
    squares = []
    for cells in histograms:
        answers = answer_workload(cells, workload, epsilon=EPSILON, strategy=strategy).answers
        squares.append(float(np.mean((answers - workload.answers(cells)) ** 2)))
    return math.sqrt(float(np.mean(squares)))


def adult_pairs(say: Say) -> Pairs | None:
    """All 2-way marginals of the coded Adult table at epsilon = 1, delta = 1e-9; None without the table."""
    from farthing.matrix.data_dependent.step_budget import Spending
    from farthing.matrix.strategies.marginals import plan_marginals
    from farthing.mechanisms.randomness import SYSTEM

    data = adult()
    if data is None:
        return None
    say("all pairs of Adult's columns")
    sizes, rows = data
    names = list(sizes)
    start = time.perf_counter()
    plan = plan_marginals(sizes, list(combinations(names, 2)))
    tables = {
        pair: np.bincount(
            rows[:, pair[0]] * sizes[names[pair[1]]] + rows[:, pair[1]],
            minlength=sizes[names[pair[0]]] * sizes[names[pair[1]]],
        ).reshape(sizes[names[pair[0]]], sizes[names[pair[1]]])
        for pair in plan.subsets
    }
    spending = Spending(1.0, 1e-9, "gaussian")
    noises = [
        spending.noise(level.plain, Fraction(float(share)))
        for level, share in zip(plan.levels, plan.shares / (plan.shares.sum() * (1 + 1e-9)), strict=True)
    ]
    noisy = [
        np.asarray(noise.mechanism._answer(exact * noise.finer, SYSTEM), float).reshape(np.shape(exact)) / noise.finer
        for noise, exact in zip(noises, plan.measure_exact(tables), strict=True)
    ]
    fit = plan.fit(np.array([noise.variance for noise in noises]))
    found = fit.estimate(noisy, list(plan.subsets))
    cells = {pair: float(np.size(table)) for pair, table in tables.items()}
    whole = sum(cells.values())
    expected = math.sqrt(sum(fit.variance_per_cell(pair) * cells[pair] for pair in tables) / whole)
    squares = sum(float(np.sum((found[pair] - tables[pair]) ** 2)) for pair in tables)
    return Pairs(expected, math.sqrt(squares / whole), time.perf_counter() - start)


def worst_ratio(found: list[Measured], records: int, workload: str) -> tuple[float, str]:
    """The largest error of `auto` over that of the best named strategy on the same histogram, and which one that is."""
    best = rmse_of(named("optimised", asked()[workload], EPSILON, 0.0), asked()[workload])
    worst = (0.0, "")
    for one in found:
        if (one.records, one.workload, one.strategy) != (records, workload, "auto"):
            continue
        other = next(
            rival
            for rival in found
            if (rival.shapes, rival.records, rival.workload, rival.strategy) == (one.shapes, records, workload, "dawa")
        )
        for shape, error in one.errors.items():
            worst = max(worst, (error / min(best, other.errors[shape]), shape))
    return worst


def show_workloads(
    console: Console, fixed: dict[str, tuple[float, float]], found: list[Measured], pairs: Pairs | None
) -> None:
    """All tables."""
    title = f"Fixed strategies: expected error, {CELLS:,} cells, epsilon {EPSILON}"
    table = Table("strategy", "prefixes", "all ranges", "others", title=title, title_justify="left")
    for name, (prefixes, ranges) in fixed.items():
        others = " / ".join(map(str, PEERS_FIXED[name])) if name in PEERS_FIXED else ""
        table.add_row(name, f"{prefixes:.0f}", f"{ranges:.0f}", others)
    console.print(table)
    title = "Chosen by looking: geometric mean of measured errors"
    table = Table("histograms", "rows", "workload", "auto", "dawa", "best of others", title=title, title_justify="left")
    for one in found:
        if one.strategy != "auto":
            continue
        dawa = next(r for r in found if r.strategy == "dawa" and _same(r, one))
        peer = f"{_peer(one):.0f} ({PEER_NAMES[one.records]})"
        shown = peer if one.shapes == "DPBench" else ""
        table.add_row(one.shapes, f"{one.records:,}", one.workload, f"{one.mean:.0f}", f"{dawa.mean:.0f}", shown)
    console.print(table)
    if pairs is not None:
        console.print(
            f"All pairs of Adult's columns, epsilon 1, delta 1e-9: error of a cell {pairs.measured:.2f}, "
            f"expected {pairs.expected:.2f}, {pairs.seconds:.1f} s",
            highlight=False,
        )


def _peer(one: Measured) -> float:
    return PEERS[one.records][0 if one.workload == "prefixes" else 1]


def _same(a: Measured, b: Measured) -> bool:
    return (a.shapes, a.records, a.workload) == (b.shapes, b.records, b.workload)


def workload_targets(fixed: dict[str, tuple[float, float]], found: list[Measured], pairs: Pairs | None) -> list[Target]:
    """The promises about error."""
    rows = []
    for name, most in (("optimised", (97, 111)), ("tree", (112, 128))):
        text = f"{fixed[name][0]:.1f} / {fixed[name][1]:.1f}"
        met = fixed[name][0] < most[0] + 0.5 and fixed[name][1] < most[1] + 0.5
        rows.append(Target(f"{name}: prefixes / all ranges", f"{most[0]} / {most[1]}", text, met))
    for one in found:
        if (one.shapes, one.strategy) != ("DPBench", "auto"):
            continue
        most_error = _peer(one)
        what = f"auto on DPBench, {one.records:,} rows, {one.workload}"
        rows.append(Target(what, f"<= {most_error:.0f}", f"{one.mean:.1f}", one.mean <= most_error))
    for records in RECORDS:
        for workload in asked():
            ratio, shape = worst_ratio(found, records, workload)
            what = f"auto over the best of ours, worst histogram, {records:,} rows, {workload}"
            rows.append(Target(what, f"<= {MOST_RATIO}", f"{ratio:.2f} ({shape})", ratio <= MOST_RATIO))
    if pairs is not None:
        off = abs(pairs.measured / pairs.expected - 1)
        rows.append(Target("Adult's pairs: measured over expected error", "within 3%", f"{off:.1%}", off <= 0.03))
        rows.append(Target("Adult's pairs: seconds", "< 60", f"{pairs.seconds:.1f}", pairs.seconds < 60))
    return rows


def draw(path: Path, found: list[Measured]) -> None:
    """Error of `auto` and `dawa` against the number of rows, as SVG."""
    import altair as module
    import vl_convert

    altair: Any = module
    rows = [
        {
            "rows": one.records,
            "error": error,
            "strategy": one.strategy,
            "workload": one.workload,
            "histogram": shape,
        }
        for one in found
        if one.shapes == "DPBench"
        for shape, error in one.errors.items()
    ]
    chart = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(point=True, opacity=0.5)
        .encode(
            x=altair.X("rows:Q", scale=altair.Scale(type="log")),
            y=altair.Y("error:Q", scale=altair.Scale(type="log"), title="root mean squared error of a query"),
            color="strategy:N",
            detail="histogram:N",
            column="workload:N",
        )
        .properties(width=320, height=260)
    )
    path.write_text(vl_convert.vegalite_to_svg(chart.to_dict()), encoding="utf-8")

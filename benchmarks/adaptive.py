"""Ten thousand counting questions from one budget: `python -m benchmarks.adaptive [--quick] [--runs N]`.

Tables of 100,000 rows in about 2^16 cells, epsilon 1, delta 1e-9. Every kind of table meets every kind of question;
the largest error of the stream is set beside that of a budget split over all questions, whichever of Laplace and
Gaussian noise is better under optimal composition. Errors are medians over runs.

`chasing` questions are those of somebody who knows the rows and asks where the weights are most wrong: no analyst can
do that, and it shows what updates are for.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.adaptive_data import TABLES, Counts, tables
from benchmarks.report import show_targets
from benchmarks.targets import Target
from farthing.adaptive.query_session import QuerySession, QuerySessionPlan, plan_query_session
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import BudgetExceeded
from farthing.mechanisms import DiscreteGaussian
from farthing.statistics.cells.cell_axes import Axis

EPSILON, DELTA, ALPHA, QUERIES, ROWS = 1.0, 1e-9, 0.01, 10_000, 100_000
MOST_RATIO = 0.5
Question = str | NDArray[np.bool_]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Stream:
    """One run: the largest error of all answers, updates used and afforded, and the time that asking took."""

    table: str
    questions: str
    asked: int
    error: float
    updates: int
    afforded: int
    theorem: int
    seconds: float
    exhausted: bool


Streams = dict[tuple[str, str], list[Stream]]


def conjunctions(session: QuerySession, counts: Counts, rng: np.random.Generator) -> Iterator[Question]:
    """Texts: one to six columns, each equal to a value or within a range of values."""
    axes = session.axes
    while True:
        parts = []
        for place in rng.choice(len(axes), rng.integers(1, min(6, len(axes)) + 1), replace=False):
            low, high = sorted(int(end) for end in rng.integers(0, len(axes[place]), 2))
            name = axes[place].column
            parts.append(f"{name} = {low}" if rng.random() < 0.5 else f"{low} <= {name} <= {high}")
        yield " and ".join(parts)


def subsets(session: QuerySession, counts: Counts, rng: np.random.Generator) -> Iterator[Question]:
    """Half of all cells, at random."""
    while True:
        yield np.unpackbits(rng.integers(0, 256, -(-counts.size // 8), dtype=np.uint8))[: counts.size].astype(bool)


def adaptive(session: QuerySession, counts: Counts, rng: np.random.Generator) -> Iterator[Question]:
    """Conjunctions that grow where the answers so far are farthest from independence."""
    axes = session.axes
    everybody = max(session.ask("all").value, 1)
    found: list[tuple[float, dict[str, int]]] = [(0.0, {})]
    while True:
        _, base = found[int(rng.integers(0, min(len(found), 50)))]
        free = [axis for axis in axes if axis.column not in base]
        if not free or len(base) >= 6:
            base, free = {}, list(axes)
        axis = free[int(rng.integers(0, len(free)))]
        grown = {**base, axis.column: int(rng.integers(0, len(axis)))}
        yield _text(grown)
        together = session.ask(_text(grown)).value
        expected = float(everybody)
        for column, value in grown.items():
            expected *= max(session.estimate({column: value}).value, 0) / everybody
        found.append((abs(together - expected), grown))
        found.sort(key=lambda pair: -pair[0])


def chasing(session: QuerySession, counts: Counts, rng: np.random.Generator) -> Iterator[Question]:
    """For one question in four thousand, all cells where the rows are above the weights; else random halves."""
    halves = subsets(session, counts, rng)
    asked = 0
    while True:
        asked += 1
        yield (counts > session._weights()[1].values).reshape(-1) if asked % 4000 == 0 else next(halves)


def _text(conditions: dict[str, int]) -> str:
    return " and ".join(f"{column} = {value}" for column, value in conditions.items())


STREAMS: dict[str, Callable[[QuerySession, Counts, np.random.Generator], Iterator[Question]]] = {
    "conjunctions": conjunctions,
    "subsets": subsets,
    "adaptive": adaptive,
    "chasing": chasing,
}


def run(table: str, questions: str, queries: int, seed: int) -> Stream:
    """One stream over one table; the table and the questions are seeded, the noise is not."""
    rng = np.random.default_rng(seed)
    counts = TABLES[table](rng)
    axes = [Axis(f"c{place}", range(size)) for place, size in enumerate(counts.shape)]
    plan = plan_query_session(axes, EPSILON, DELTA, ALPHA, queries, ROWS)
    start = time.perf_counter()
    session = QuerySession(plan, axes, lambda: counts, MemoryJournal())
    seconds = time.perf_counter() - start
    stream = STREAMS[questions](session, counts, rng)
    worst, exhausted = 0.0, False
    for _ in range(queries):
        question = next(stream)
        start = time.perf_counter()
        try:
            answer = session.ask(question)
        except BudgetExceeded:
            exhausted = True
            break
        finally:
            seconds += time.perf_counter() - start
        truth = float(np.sum(counts, where=session._mask(question).counted))
        worst = max(worst, abs(answer.value - truth))
    return Stream(
        table, questions, session.questions, worst, session.updates, plan.updates, plan.most_updates,
        seconds, exhausted,
    )  # fmt: skip


def split_error(plan: QuerySessionPlan, runs: int) -> float:
    """The median, over runs, of the largest error of a split budget: noise drawn, not bounded."""
    noise = DiscreteGaussian(plan.split_budget.standard_error, 1, cells=plan.queries)
    zeros = np.zeros(plan.queries, dtype=np.int64)
    return statistics.median(float(np.abs(noise.release(zeros)).max()) for _ in range(runs))


def show_streams(console: Console, found: Streams, split: float) -> None:
    """One row for each table and kind of questions."""
    table = Table(
        title=f"{QUERIES:,} questions, epsilon {EPSILON:g}, delta {DELTA:g}; a split budget errs by {split:,.0f}"
    )
    for name in ("table", "questions", "largest error", "ratio", "updates", "of", "seconds", "answered"):
        table.add_column(name, justify="left" if name in ("table", "questions") else "right")
    for (kind, questions), streams in found.items():
        error = statistics.median(stream.error for stream in streams)
        table.add_row(
            kind, questions, f"{error:,.0f}", f"{error / split:.2f}",
            f"{statistics.median(stream.updates for stream in streams):g}", str(streams[0].afforded),
            f"{statistics.median(stream.seconds for stream in streams):.1f}",
            "all" if not any(stream.exhausted for stream in streams) else f"{min(s.asked for s in streams):,}",
        )  # fmt: skip
    console.print(table)


def adaptive_targets(found: Streams, split: float) -> list[Target]:
    """The promises of the query session."""
    errors = {key: statistics.median(stream.error for stream in streams) for key, streams in found.items()}
    worst = max(errors, key=lambda key: errors[key])
    streams = [stream for group in found.values() for stream in group]
    ratio, slowest = errors[worst] / split, max(stream.seconds for stream in streams)
    ended = sum(not stream.exhausted for stream in streams)
    return [
        Target(
            f"largest error, {worst[1]} on {worst[0]}", f"<= {MOST_RATIO:g} of a split budget",
            f"{ratio:.2f}", ratio <= MOST_RATIO,
        ),
        Target(
            "updates", "never above the theorem's", f"{max(stream.updates for stream in streams)}",
            all(stream.updates <= stream.theorem for stream in streams),
        ),
        Target("10,000 questions", "< 60 s", f"{slowest:.0f} s", slowest < 60),
        Target("streams answered to their end", "all", f"{ended} of {len(streams)}", ended == len(streams)),
    ]  # fmt: skip


def measured_streams(
    quick: bool, say: Say, runs: int = 3, names: Sequence[str] = (), kinds: Sequence[str] = ()
) -> tuple[Streams, float]:
    """Every table with every kind of questions, and the error of a split budget."""
    if quick:  # never fewer questions: the promise is about ten thousand
        runs, names, kinds = 1, names or ("product", "clustered"), kinds or ("conjunctions", "adaptive")
    split = split_error(plan_query_session(2**16, EPSILON, DELTA, ALPHA, QUERIES, ROWS), 21)
    found: Streams = {}
    for table in names or tables():
        for questions in kinds or STREAMS:
            say(f"{questions} on {table}")
            found[table, questions] = [run(table, questions, QUERIES, seed) for seed in range(runs)]
    return found, split


def main() -> None:
    """Run all streams and print what was promised and measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adaptive", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run, two tables, two kinds of questions")
    parser.add_argument("--runs", type=int, default=3, help="streams of each kind")
    parser.add_argument("--table", action="append", choices=list(TABLES), help="only this one (may be repeated)")
    parser.add_argument("--questions", action="append", choices=list(STREAMS), help="only these questions")
    options = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    with console.status("starting") as status:
        found, split = measured_streams(
            options.quick, status.update, options.runs, options.table or (), options.questions or ()
        )
    show_streams(console, found, split)
    show_targets(console, adaptive_targets(found, split))


if __name__ == "__main__":
    main()

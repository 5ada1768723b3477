"""`python -m benchmarks.holdout [--repetitions 200] [--rows 5000] [--features 1000]`: structure found in pure noise.

After the experiment of Dwork et al. (Science 2015): features and labels are fair coins, so that every classifier is
right half of the time. An analyst looks at each feature on the training and on the holdout set, keeps those on which
both agree about the sign, weighs their votes by what the holdout said, and at last asks it how good the vote is.
The naive analyst reads the holdout directly; the other one asks a `farthing.adaptive.Holdout`. They run the same code.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from farthing.adaptive.holdout import Holdout

Rows = NDArray[np.int8]  # rows x (features, then the label), signs, stored column by column
Statistic = Callable[[Rows], Any]
CORRECTIONS = 5


@dataclass(frozen=True)
class Claims:
    """By how much the accuracies that analysts report exceed the truth, 1/2: one number for each repetition."""

    naive: NDArray[np.float64]
    reusable: NDArray[np.float64]
    corrections: NDArray[np.int64]
    guarantee: str
    seconds: float


def coins(generator: np.random.Generator, rows: int, features: int) -> Rows:
    """Features and a label that have nothing to do with each other."""
    count = (features + 1) * rows
    bits = np.unpackbits(np.frombuffer(generator.bytes(-(-count // 8)), dtype=np.uint8))[:count]
    return (2 * bits.astype(np.int8) - 1).reshape(features + 1, rows).T


def agrees(feature: int) -> Statistic:
    """How often a feature equals the label."""
    return lambda table: table[:, feature] == table[:, -1]


def right(weights: NDArray[np.float32]) -> Statistic:
    """How often the weighted vote of all features equals the label."""
    return lambda table: (table[:, :-1].astype(np.float32) @ weights > 0) == (table[:, -1] > 0)


def share(statistic: Statistic, table: Rows) -> float:
    """The mean of a statistic that is true or false."""
    return np.count_nonzero(statistic(table)) / len(table)


def answered(session: Holdout, statistic: Statistic) -> float:
    """The same, as the reusable holdout has it."""
    return session.ask(statistic).value


def claimed_accuracy(training: Rows, ask: Callable[[Statistic], float]) -> float:
    """What an analyst reports who reads the training set and asks about the holdout."""
    features = range(training.shape[1] - 1)
    on_training = np.array([share(agrees(feature), training) for feature in features]) - 0.5
    confirmed = np.array([ask(agrees(feature)) for feature in features]) - 0.5
    kept = np.sign(on_training) == np.sign(confirmed)
    return ask(right(np.where(kept, confirmed, 0.0).astype(np.float32)))


def repeat(repetitions: int, rows: int, features: int, epsilon: float = 1.0, seed: int = 2015) -> Claims:
    """Both analysts on the same coins, again and again."""
    generator, start = np.random.default_rng(seed), time.perf_counter()
    naive, reusable, used, guarantee = [], [], [], ""
    for _ in range(repetitions):
        training, fresh = coins(generator, rows, features), coins(generator, rows, features)
        session = Holdout(training, fresh, epsilon=epsilon, queries=features + 1, corrections=CORRECTIONS)
        naive.append(claimed_accuracy(training, partial(share, table=fresh)))
        reusable.append(claimed_accuracy(training, partial(answered, session)))
        used.append(CORRECTIONS - session.corrections_left)
        guarantee = str(session.guarantee)
    seconds = time.perf_counter() - start
    return Claims(np.array(naive) - 0.5, np.array(reusable) - 0.5, np.array(used), guarantee, seconds)


def main() -> None:
    """Print the excess of both analysts for one number of rows or several."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holdout", description="structure found in pure noise")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000], help="of the training and of the holdout set")
    parser.add_argument("--features", type=int, default=1_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    console = Console()
    table = Table(
        title=f"claimed accuracy minus the truth, {options.repetitions} repetitions, {options.features} features"
    )
    for name in (
        "rows",
        "naive: mean",
        "least",
        "ours: mean",
        "mean size",
        "worst",
        "corrections",
        "seconds",
    ):
        table.add_column(name, justify="right")
    for rows in options.rows:
        claims = repeat(options.repetitions, rows, options.features, options.epsilon)
        figures = (claims.naive.mean(), claims.naive.min(), claims.reusable.mean())
        sizes = np.abs(claims.reusable)
        table.add_row(
            f"{rows:,}", *(f"{figure:+.4f}" for figure in figures), f"{sizes.mean():.4f}", f"{sizes.max():.4f}",
            f"{claims.corrections.mean():.2f}", f"{claims.seconds:.1f}",
        )  # fmt: skip
    console.print(table)
    console.print(claims.guarantee)


if __name__ == "__main__":
    main()

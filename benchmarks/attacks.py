"""`python -m benchmarks.attacks`: what attackers get out of exact and of private answers, for the page on limits."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import farthing as ft
from farthing.auditing.attacks import (
    differences,
    most_guessed,
    private_counts,
    random_subsets,
    reconstruct,
    reconstructed,
)

Bits = NDArray[np.bool_]

ROWS, QUERIES, DELTA = 200, 800, 1e-9
PEOPLE, QUESTIONS = 1_000, 10_000


def differencing(repetitions: int = 100_000) -> Table:
    """One person, for several epsilons."""
    table = Table("epsilon", "exact", "two counts", "one person alone", "at most", title="differencing")
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        exact, *_, two, alone = differences(epsilon, repetitions=repetitions)
        shares = (exact.share, two.share, alone.share, most_guessed(epsilon))
        table.add_row(f"{epsilon:g}", *(f"{share:.1%}" for share in shares))
    return table


def reconstruction(repetitions: int = 50) -> Table:
    """A whole column, for several epsilons: private noise, and the same noise made 50 times too small."""
    table = Table("epsilon", "noise", "recovered", "at most", "50x too small", title="reconstruction")
    size: dict[str, Any] = {"rows": ROWS, "queries": QUERIES, "repetitions": repetitions}
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        mechanism = private_counts(QUERIES, epsilon, DELTA)
        width, short = mechanism.standard_error, mechanism.standard_error / 50
        ours = reconstruct(mechanism.release, noise=width, **size).share
        wrong = reconstruct(_blurred(short), noise=short, **size).share
        most = most_guessed(epsilon, DELTA)
        table.add_row(f"{epsilon:g}", f"{width:.0f}", f"{ours:.1%}", f"{most:.1%}", f"{wrong:.1%}")
    return table


def products() -> Table:
    """The same attack through the front door: a count for every person, and 10,000 online answers."""
    table = Table("asked of a study", "epsilon", "recovered", "at most", title="through a study")
    secret = np.random.default_rng(10).random(PEOPLE) < 0.5
    for epsilon in (0.5, 1.0, 3.0):
        for name, attack in (
            ("a count for every person", _counts),
            (f"{QUESTIONS:,} online answers", _online),
        ):
            share = float(np.mean(attack(secret, epsilon) == secret))
            table.add_row(name, f"{epsilon:g}", f"{share:.1%}", f"{most_guessed(epsilon):.1%}")
    return table


def _blurred(width: float) -> Callable[[NDArray[np.int64]], Any]:
    rng = np.random.default_rng(0)
    return lambda counts: counts + rng.normal(0, width, len(counts))


def _study(secret: Bits, epsilon: float, folder: str) -> ft.Study:
    table = pa.table({"person": np.arange(len(secret)), "secret": secret})
    schema = {"person": (0, len(secret) - 1), "secret": bool}
    dataset = ft.dataset(table, schema=schema, neighbours="replace", rows=len(secret))
    return ft.Study(dataset, epsilon, ledger=Path(folder) / "study.db", account="secrets")


def _counts(secret: Bits, epsilon: float) -> Bits:
    """Ask for everybody at once, and take each noisy count at its word."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(secret, epsilon, folder)
        release = study.plan(ft.count(where="secret", by="person", name="each")).release()
        study.close()
        return np.asarray(release["each"].values) > 0.5


def _online(secret: Bits, epsilon: float) -> Bits:
    """Ask about random subsets, and solve for everybody."""
    subsets = random_subsets(QUESTIONS, PEOPLE)
    with tempfile.TemporaryDirectory() as folder:
        study = _study(secret, epsilon, folder)
        session = study.query_session(alpha=0.8, queries=len(subsets))
        weights = np.zeros((len(secret), 2))
        told = []
        for subset in subsets:
            weights[:, 1] = subset
            told.append(session.ask(weights.copy()).value)
        study.close()
    return reconstructed(subsets, told, noise=math.sqrt(PEOPLE) / 4)


if __name__ == "__main__":
    console = Console(width=110)
    for part in (differencing, reconstruction, products):
        console.print(part())

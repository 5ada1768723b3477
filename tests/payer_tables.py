"""Small tables whose people pay from accounts of a ledger, and what is left of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from farthing import Study, count, dataset
from farthing.data import Dataset
from farthing.ledger import Ledger


def write(name: str, more: str = "") -> None:
    Path(name).write_text(f"person,age\n1,30\n2,41\n{more}")


def rows(source: Any, **facts: Any) -> Dataset:
    return dataset(source, **{"unit": "person", "max_rows": 1, "schema": {"age": (0, 110)}, **facts})


def spend(ledger: Ledger, made: Dataset, epsilon: float = 0.25, **options: Any) -> Study:
    study = Study(made, epsilon=1.0, ledger=ledger, **options)
    study.plan(count(), epsilon=epsilon).release(fresh=True)
    return study


def left(ledger: Ledger, *names: str) -> list[float]:
    return [round(ledger.budget(name).remaining.epsilon, 6) for name in names or ledger.datasets()]

"""A small table, a plan for it, and rows that count how often they are read: for tests of the curator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from farthing.curator import Answered, Curator
from farthing.data import Count, Dataset, Sum, dataset
from farthing.ledger import Ledger
from farthing.statistics.measurements import Measurements, Noise, Slot


@cache
def the_people() -> Dataset:
    return dataset(pa.table({"age": [30, 45, 51], "person": [1, 1, 2]}), schema={"age": (0, 110)})


class Rows:
    """Counts how often private rows are read, and does something else on the way if it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        self.then: Callable[[], object] = lambda: None
        exact = Dataset.exact

        def counted(*arguments: Any, **named: Any) -> Any:
            self.reads += 1
            self.then()
            return exact(*arguments, **named)

        monkeypatch.setattr(Dataset, "exact", counted)


def plan(epsilon: float = 0.25, people: Dataset | None = None) -> Measurements:
    people = people or the_people()
    count, total = Count(), Sum("age")
    return Measurements(
        (),
        (
            Slot("people", count, people.sensitivity(count), 1),
            Slot("years", total, people.sensitivity(total), 1),
        ),
        {"people": Noise("laplace", epsilon / 2), "years": Noise("laplace", epsilon / 2)},
    )


def released(ledger: Ledger, request_id: str | None = "r-1", **options: Any) -> Answered:
    return Curator(ledger).release(the_people(), plan(), ledger_name="survey", request_id=request_id, **options)


def spent(ledger: Ledger) -> float:
    return ledger.budget("survey").spent_upper


def state_of(ledger: Ledger, request_id: str = "r-1") -> str | None:
    stored = ledger.stored(request_id)
    return None if stored is None else stored.state

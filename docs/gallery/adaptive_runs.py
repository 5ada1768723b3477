"""One session of online answers and one synthesis, on made-up people: what the pictures of how they went show."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa

import farthing as ft

ROWS = 50_000
SCHEMA = {"age": (0, 63), "region": [f"r{place}" for place in range(16)], "ill": bool, "income": (0, 31)}


def study(folder: str) -> ft.Study:
    """People whose columns have much to do with each other."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 64, ROWS)
    region = (age // 8 + rng.integers(0, 4, ROWS)) % 16
    income = np.clip(age // 3 + rng.integers(-4, 14, ROWS), 0, 31)
    ill = rng.random(ROWS) < 0.05 + 0.5 * (age > 48) * (income < 20)
    names = np.asarray(SCHEMA["region"])
    table = pa.table({"age": age, "region": names[region], "ill": ill, "income": income})
    return ft.Study(ft.dataset(table, schema=SCHEMA, rows=ROWS), 1.0, 1e-9, ledger=f"{folder}/study.db", name="people")


def answered(questions: int = 400) -> dict[str, Any]:
    """What `convergence` draws: ranges and conjunctions, to a query session that begins with no guess at all."""
    rng = np.random.default_rng(6)
    with tempfile.TemporaryDirectory() as folder:
        people = study(folder)
        session = people.query_session(alpha=0.06, queries=questions, start="none")
        for _ in range(questions):
            low, high = sorted(rng.choice(64, 2, replace=False))
            question = {"age": (int(low), int(high))}
            if rng.random() < 0.5:
                question["income"] = (0, int(rng.integers(1, 32)))
            try:
                session.ask(question)
            except ft.errors.SessionEnded:
                break
        people.close()
        return {"history": session.history, "updates": session.plan.updates, "rows": ROWS}


def synthesised() -> list[Any]:
    """What `synthesis_rounds` draws."""
    with tempfile.TemporaryDirectory() as folder:
        people = study(folder)
        found = people.synthesise()
        people.close()
        return list(found.rounds)

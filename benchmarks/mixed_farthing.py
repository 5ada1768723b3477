"""farthing on the statistics of `benchmarks.mixed`: planned as a user would, released many times from one pass.

What a plan knows of the table is one of `KNOWN`: only the number of rows; everything as it truly is; or everything
wrong by a factor of two, up or down in turn.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import farthing as ft
from benchmarks.mixed_tables import BOUNDS, CATEGORIES, SIX, Asked, Floats, People
from farthing.data import Dataset
from farthing.inference import Answer
from farthing.statistics import Statistic
from farthing.statistics.answer_records import answers_from
from farthing.study import Plan

ROWS, TRUTH, WRONG = "rows", "truth", "off by 2"
KNOWN = (ROWS, TRUTH, WRONG)


def dataset_of(people: People) -> Dataset:
    """The table as a steward declares it."""
    arrays: dict[str, Any] = {name: np.array(CATEGORIES[name])[people.columns[name]] for name in CATEGORIES} | {
        name: people.columns[name].astype(np.int64) for name in BOUNDS
    }
    schema: dict[str, Any] = {name: list(values) for name, values in CATEGORIES.items()}
    schema |= {name: (int(lower), int(upper)) for name, (lower, upper) in BOUNDS.items()}
    unit: dict[str, Any] = {}
    if people.person is not None:
        arrays["person"] = people.person
        unit = {"unit": "person", "max_rows": people.most_rows}
    return ft.dataset(pa.table(arrays), schema=schema, **unit)


def statistics_of(questions: Sequence[Asked]) -> list[Statistic]:
    """The same questions in farthing's words; all tables of two of six columns are one statistic."""
    if all(asked.kind == "marginal" for asked in questions):
        return [ft.marginals(list(SIX), way=2, name="marginals")]
    return [_statistic(asked) for asked in questions]


def _statistic(asked: Asked) -> Statistic:
    options: dict[str, Any] = {"name": asked.name, "by": list(asked.by) or None, "where": _condition(asked)}
    if asked.kind == "histogram":
        return ft.histogram(asked.column, bins=[int(edge) for edge in asked.edges], **options)
    if asked.kind == "ranges":
        pairs = [(int(asked.edges[first]), int(asked.edges[last])) for first, last in asked.ranges]
        return ft.ranges(asked.column, ranges=pairs, **options)
    if asked.kind == "quantiles" and len(asked.levels) > 1:
        return ft.quantiles(asked.column, list(asked.levels), **options)
    if asked.kind == "count":
        return ft.count(**options)
    made = {"sum": ft.sum, "mean": ft.mean, "variance": ft.variance, "quantiles": ft.median}[asked.kind]
    return made(asked.column, **options)


def _condition(asked: Asked) -> str | None:
    if asked.where is None:
        return None
    column, sign, value = asked.where
    return (
        f"{column} {sign} {CATEGORIES[column][int(value)]!r}" if column in CATEGORIES else f"{column} {sign} {value:g}"
    )


def expected_of(people: People, questions: Sequence[Asked], known: str) -> dict[str, Any]:
    """What a plan is told of the table."""
    if known == ROWS:
        return {"rows": people.rows}

    def told(values: Any) -> list[float]:
        own = np.asarray(values, dtype=float)
        turns = np.resize((2.0, 0.5), own.size)
        return [float(value) for value in (own * turns if known == WRONG else own)]

    expected: dict[str, Any] = {"rows": int(people.rows * (2 if known == WRONG else 1))}
    for name, categories in CATEGORIES.items():
        shares = np.bincount(people.columns[name], minlength=len(categories)) / people.rows
        expected[name] = dict(zip(categories, told(np.maximum(shares, 1e-9)), strict=True))
    for name, (lower, upper) in BOUNDS.items():
        own = people.columns[name]
        if known == TRUTH:
            expected[name] = np.quantile(own, np.linspace(0, 1, 2001)).tolist()
        else:
            expected[name] = (float(np.clip(2 * own.mean(), lower, upper)), float(2 * own.std()))
    for asked in questions:
        if asked.kind in ("count", "histogram"):
            expected[asked.name] = told(asked.truth(people))
        elif asked.kind in ("sum", "mean", "variance"):
            expected[asked.name] = told(asked.sensible(asked.truth(people)))
            if asked.kind == "mean":
                expected[asked.name] = asked.sensible(expected[asked.name]).tolist()
            if asked.by:
                expected[f"count by {' and '.join(asked.by)}"] = told(asked.counts(people))
    return expected


def released(
    people: People,
    questions: Sequence[Asked],
    epsilon: float,
    delta: float,
    known: str,
    releases: int,
    seconds: float = math.inf,
) -> dict[str, Any]:
    """Releases of one plan, its predicted standard errors, and how often its intervals held the truth.

    Predicted and delivered errors are of the cells that the plan's line speaks of ("for groups of 750 rows or more"),
    and of `raw`, the numbers before those below zero were moved to it.

    There are fewer releases where they would take longer than `seconds`.
    """
    with tempfile.TemporaryDirectory() as folder:
        study = ft.Study(
            dataset_of(people), epsilon=epsilon, delta=delta, ledger=Path(folder) / "study.db", account="mixed"
        )
        plan = study.plan(*statistics_of(questions), expected=expected_of(people, questions, known))
        found = _drawn(plan, people, questions, releases, seconds)
        study.close()
    return found


def _drawn(plan: Plan, people: People, questions: Sequence[Asked], releases: int, seconds: float) -> dict[str, Any]:
    exact = plan.measurements.exact(plan.study.dataset)
    design, schema = plan.design, plan.study.dataset.schema
    deadline = time.monotonic() + seconds
    drawn: list[list[Answer]] = []
    while len(drawn) < releases and (len(drawn) < 2 or time.monotonic() < deadline):
        noisy = plan.measurements.measure(exact)
        drawn.append(answers_from(design.outputs, plan.allocation.noises, schema, noisy))

    def cells(part: str) -> list[Floats]:
        """For each question, releases by cells."""
        whole = [
            np.concatenate([np.ravel(np.asarray(getattr(answer, part), dtype=float)) for answer in answers])
            for answers in drawn
        ]
        return np.split(np.array(whole), ends, axis=1)

    truths = [asked.truth(people) for asked in questions]
    ends = np.cumsum([len(truth) for truth in truths])[:-1]
    predicted = np.split(np.concatenate([np.ravel(one.law.standard_errors) for one in plan.statistics]), ends)
    values, raw, lower, upper = (cells(part) for part in ("values", "raw", "lower", "upper"))
    answers, errors, delivered, coverage = {}, {}, {}, {}
    for place, (asked, truth) in enumerate(zip(questions, truths, strict=True)):
        compared = asked.compared(people)
        needed = plan.statistics[place].output.rows_needed if len(plan.statistics) == len(questions) else None
        spoken_of = compared if needed is None else compared & (asked.counts(people) >= needed)
        inside = (lower[place] <= truth + 1e-9) & (truth - 1e-9 <= upper[place])
        answers[asked.name] = values[place].tolist()
        if spoken_of.any():
            errors[asked.name] = float(np.sqrt(np.mean(predicted[place][spoken_of] ** 2)))
            delivered[asked.name] = float(np.sqrt(np.mean((raw[place] - truth)[:, spoken_of] ** 2)))
        coverage[asked.name] = float(inside[:, compared].mean())
    return {"answers": answers, "predicted": errors, "delivered": delivered, "coverage": coverage, "missing": {}}

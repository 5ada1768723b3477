"""A plan as numbers for people to look at: errors with their percentages, its part of the budget, what it risks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.ledger import Budget
from farthing.numerics import Bounds
from farthing.planner import COMPARED, TheoremPrices, adaptivity_sentence
from farthing.statistics.answer_records import label_texts
from farthing.study.attacker_odds import PRIORS, factor_of, odds_sentence, posterior_upper
from farthing.study.plan import Plan
from farthing.study.plan_statistic import PlannedStatistic

MOST_CELLS = 50  # of one statistic that are shown
_HARDLY = 0.01  # a gain below one percent is called none
_COUNTS = ("count", "histogram", "top", "contingency", "ranges", "marginals")


@dataclass(frozen=True, eq=False)
class Outlook:
    """What a plan predicts and costs. Without `proof` costs are estimates, found at once.

    >>> import pyarrow, tempfile, farthing as ft
    >>> folder = tempfile.TemporaryDirectory()
    >>> people = ft.dataset(pyarrow.table({"age": [30, 41]}), schema={"age": (0, 110)})
    >>> study = ft.Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
    >>> outlook = Outlook(study.plan(ft.mean("age"), epsilon=0.5, expected={"rows": 1000, "age": (40.0, 15.0)}))
    >>> one = outlook.statistics()[0]
    >>> one["unit_of_error"], one["reference"], one["error_percent"] == 100 * one["error"] / 40.0
    ('age', 40.0, True)
    >>> {part: round(size, 6) for part, size in outlook.bar(study.budget).items()}
    {'total': 1.0, 'spent': 0.0, 'waiting': 0.0, 'withheld': 0.0, 'plan': 0.5, 'free': 0.5}
    >>> study.close(); folder.cleanup()
    """

    plan: Plan
    proof: bool = True

    @property
    def cost(self) -> Bounds:
        """The epsilon of everything together: proven, or as the search saw it."""
        if self.proof:
            return self.plan.cost
        estimate = self.plan.allocation.estimate
        return Bounds(estimate, estimate, proven=False)

    @property
    def _price(self) -> TheoremPrices:
        return self.plan.price if self.proof else self.plan.allocation.quick_price

    @property
    def price(self) -> dict[str, Any]:
        """The same noises under each composition theorem, and whether composing gains anything yet."""
        price = self._price
        sizes = price.to_dict()
        return {
            **{name: _finite(size) for name, size in sizes.items()},
            "sentence": price.sentence,
            **self._adaptivity,
            "gain": price.count > 1 and price.own < price.basic * (1 - _HARDLY),
            "rows": [
                {
                    "key": theorem.key,
                    "theorem": theorem.name,
                    "epsilon": _finite(sizes[theorem.key]),
                    "remark": theorem.remark,
                }
                for theorem in COMPARED
            ],
        }

    @property
    def _adaptivity(self) -> dict[str, Any]:
        """What deciding as you go would cost; not while a slider moves, because every noise is priced by itself."""
        if not self.proof:
            return {"adaptive": None, "adaptive_sentence": ""}
        adaptive, price = self.plan.adaptive_cost, self._price
        return {
            "adaptive": _finite(adaptive),
            "adaptive_sentence": adaptivity_sentence(price.own, adaptive, price.count),
        }

    def statistics(self) -> list[dict[str, Any]]:
        """Each statistic in the order it was asked for."""
        return [self._statistic(statistic) for statistic in self.plan.statistics]

    @property
    def at_once(self) -> dict[str, Any] | None:
        """All numbers together; it takes the far ends of every distribution, so not while a slider moves."""
        if not self.proof:
            return None
        errors = self.plan.at_once().to_dict()
        return {**errors, "errors": {name: _finite(error) for name, error in errors["errors"].items()}}

    def _statistic(self, statistic: PlannedStatistic) -> dict[str, Any]:
        problem, asked = self.plan.problem, statistic.output.statistic
        required = problem.requirements.get(statistic.name)
        error, percent_of = statistic.error(), self._percent_of(statistic)
        scale = _scale(statistic) if percent_of else None
        expected = _expected_value(statistic, self.plan.expected, self.plan.study.dataset.probability)
        labels = statistic.output.labels
        return {
            "name": statistic.name,
            "kind": asked.kind,
            "mechanism": statistic.mechanism,
            "epsilon": _finite(statistic.epsilon) if statistic.noises else 0.0,
            "cells": statistic.cells,
            "unit_of_error": _unit(statistic),
            "standard_error": _finite(statistic.standard_error),
            "error": _finite(error),
            "shown_error": statistic.shown_error,
            "error_at_best": _finite(statistic.at_best.error()) if statistic.depends_on else _finite(error),
            "even_share": _finite(statistic.even_share()),
            "shown_even_share": statistic.shown_even_share,
            "depends_on": statistic.depends_on,
            # How wide intervals come out takes long to work out, so not while a slider moves.
            "worst_error": _finite(statistic.worst_error()) if self.proof else None,
            "error_at_once": _finite(statistic.error(at_once=True)) if self.proof else None,
            "error_percent": None if scale is None else _finite(100 * error / scale),
            "percent_of": None if scale is None else percent_of,
            "reference": expected,
            "whisker": None if expected is None or not math.isfinite(error) else [expected - error, expected + error],
            "sentence": statistic.sentence,
            "counts": statistic.counts,
            "of_table": self._of_table(statistic),
            "weight": problem.weight_of(statistic.name),
            "within": None if required is None else required.within,
            "confidence": 0.95 if required is None else required.confidence,
            "required": statistic.required or None,
            "rests_on": list(statistic.rests_on),
            "note": statistic.note or None,
            "labels": label_texts(labels[:MOST_CELLS]) if labels else [],
            "errors": [_finite(each) for each in self._errors(statistic)],
        }

    def _of_table(self, statistic: PlannedStatistic) -> dict[str, Any] | None:
        """The error against the whole table, where the plan reads a sample."""
        error = statistic.of_table
        if error is None:
            return None
        numbers = {name: _finite(getattr(error, name)) for name in ("standard_error", "error", "times")}
        return {**error.to_dict(), **numbers}

    def _percent_of(self, statistic: PlannedStatistic) -> str:
        """What a percentage of its error is one of: as somebody said, or as follows from the number of rows alone.

        Empty where nobody said anything: a share of a number that farthing made up says nothing.
        """
        asked, expected, design = statistic.output.statistic, self.plan.expected, self.plan.design
        if expected.get(statistic.name) is not None:
            return "the expected value"
        sized = "rows" in expected or self.plan.study.dataset.rows is not None or design.counted is not None
        if asked.counts_people:
            sized = "people" in expected or self.plan.study.dataset.people is not None
        if asked.kind in _COUNTS:
            if asked.kind == "count" and not asked.by and asked.where is None:
                return "the expected value" if sized else ""
            return "the assumed value" if sized else ""
        if asked.kind in ("cdf", "linear_regression") or expected.get(asked.column) is None:
            return ""
        return "the expected value" if sized or asked.kind != "sum" else ""

    def _errors(self, statistic: PlannedStatistic) -> list[float]:
        if statistic.cells == 1:
            return [statistic.error()]
        deviations = statistic.distribution.standard_errors
        if np.all(deviations == deviations[0]):  # cells that are alike have one error
            return [statistic.error()] * min(statistic.cells, MOST_CELLS)
        if statistic.cells <= MOST_CELLS:
            return list(statistic.errors())
        return [
            float(statistic.distribution.cell(place).error(0.95)) for place in range(min(statistic.cells, MOST_CELLS))
        ]

    def bar(self, budget: Budget) -> dict[str, float]:
        """The budget in parts that add up to it: a part is cut where those before it leave less."""
        spent = budget.spent_upper
        waiting = min(budget.reserved, spent)  # it counts as spent
        withheld = math.fsum(amount.epsilon for amount in budget.withheld.values())
        parts = {
            "spent": spent - waiting if math.isfinite(spent) else spent,
            "waiting": waiting,
            "withheld": withheld,
            "plan": self.cost.upper,
        }
        if self.plan.allocation.problem.on_clock and math.isfinite(spent):
            # A clock adds up squares: this is about what the budget will read after the plan.
            parts["plan"] = math.hypot(spent, self.cost.upper) - spent
        left, widths = budget.total.epsilon, {"total": budget.total.epsilon}
        for name, size in parts.items():
            widths[name] = min(max(size, 0.0), left)
            left -= widths[name]
        return {**widths, "free": left}

    @property
    def risk(self) -> dict[str, Any]:
        """What this plan can do to beliefs about one person."""
        epsilon, delta = self.cost.upper, self.plan.delta
        return {
            "odds_sentence": odds_sentence(epsilon, delta),
            "factor": _finite(factor_of(epsilon)),
            "table": [{"prior": prior, "posterior_upper": posterior_upper(prior, epsilon, delta)} for prior in PRIORS],
        }


def _scale(statistic: PlannedStatistic) -> float | None:
    """What the statistic is expected to be like, cell by cell on average; None where nothing can be said."""
    reference = np.asarray(statistic.output.reference, dtype=float)
    if not reference.size:
        return None
    scale = float(reference.mean())
    return scale if 1e-200 < scale < math.inf else None


def _expected_value(statistic: PlannedStatistic, expected: Mapping[str, Any], share: float) -> float | None:
    """The one number that somebody expects of it, said by its name, by its column or as the number of rows."""
    asked = statistic.output.statistic
    value = expected.get(statistic.name)
    if value is None and not asked.by and asked.where is None:
        if asked.kind == "count":
            # Of a sample, rows and people are those of the table.
            value = expected.get(asked.of) if share == 1 and asked.rows_per_cell is asked.max_rows is None else None
        elif asked.kind in ("mean", "std") and isinstance(expected.get(asked.column), tuple):
            value = expected[asked.column][0 if asked.kind == "mean" else 1]
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    if isinstance(value, bool) or not isinstance(value, int | float) or statistic.cells != 1:
        return None
    return _finite(float(value))


def _unit(statistic: PlannedStatistic) -> str:
    """What its error counts, in a word or two."""
    asked = statistic.output.statistic
    if asked.kind in _COUNTS:
        return asked.of
    if asked.kind == "cdf":
        return f"share of {asked.of}"
    if asked.kind == "linear_regression":
        return f"coefficients of {asked.target}"
    return f"{asked.column} squared" if asked.kind == "variance" else asked.column


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

"""What comes back from `answer_workload`: answers with their errors, and any further question for free."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue, MissingExtra
from farthing.inference import Answer
from farthing.inference.error_laws import ErrorLaw
from farthing.inference.figures import with_error
from farthing.numerics import Bounds
from farthing.privacy.events import Event
from farthing.release.candidates import Candidates, unweighted
from farthing.release.strategies.base import Estimator, Floats
from farthing.release.workloads.asking import Question, axes_of, vector_of
from farthing.release.workloads.base import Workload

_MOST_ROWS = 2**20
_MOST_DRAWN = 2000
_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class WorkloadAnswers:
    """The answers of a workload, their standard errors, and the histogram they come from.

    `answers` and `standard_errors` have one number for each query, `estimate` is the reconstructed histogram, `cost`
    the proven epsilon at `delta`, `candidates` the strategies that were weighed, `look` what looking at the data took
    of the budget, if there was a look. Printed, ± is one standard error. `query` asks anything else that the cells can
    answer: it is computed from what was released and costs nothing.

    >>> from farthing.release import answer_workload, workloads
    >>> found = answer_workload([5, 0, 12, 3] * 16, workloads.prefix(64), epsilon=1.0, strategy="tree")
    >>> found.answers.shape, found.estimate.shape, found.strategy, found.cost.upper <= 1.0
    ((64,), (64,), 'tree', True)
    >>> bool(np.all(found.standard_errors > 0)), round(found.rmse, 1)
    (True, 5.8)
    >>> found.query("10 <= x < 25").name
    '10 <= x < 25'
    """

    workload: Workload
    strategy: str
    event: Event
    cost: Bounds
    delta: float
    cells: Floats
    centre: Floats
    estimator: Estimator
    law: Callable[[Floats], ErrorLaw]
    candidates: Candidates
    confidence: float = 0.95
    note: str = ""
    look: str = ""
    whole: bool = field(default=False)

    @cached_property
    def answers(self) -> Floats:
        """The answer of every query, from the reconstructed histogram: they all agree with one another."""
        return self.workload.answers(self.cells)

    @cached_property
    def standard_errors(self) -> Floats:
        """The standard error of every answer, known before anything was measured.

        They are those of the unbiased estimate; moving it to be non-negative makes most answers better.
        """
        return np.sqrt(self.estimator.query_variances(self.workload))

    @property
    def estimate(self) -> NDArray[Any]:
        """The reconstructed histogram, shaped like the domain; whole numbers if they were asked for."""
        shaped = self.cells.reshape(self.workload.shape)
        return shaped.astype(np.int64) if self.whole else shaped

    @cached_property
    def rmse(self) -> float:
        """The expected root mean squared error over the queries."""
        return math.sqrt(self.estimator.total_variance(unweighted(self.workload)) / self.workload.queries)

    def query(self, what: Question, confidence: float | None = None) -> Answer:
        """One more question of the same cells: "10 <= age < 25", a pair, a mapping of columns, or coefficients.

        It is post-processing of what was released: free, at any time, as often as one likes. It prints with its
        interval of `confidence` (the release's own if left out), `standard_errors` has one standard error.
        """
        vector = vector_of(what, axes_of(self.workload))
        name = what if isinstance(what, str) else repr(what) if isinstance(what, tuple | dict) else "query"
        variance = self.estimator.variance(vector)
        if not math.isfinite(variance):
            way_out = 'use strategy="identity", or ask for it in the workload'
            raise InvalidValue("query", what, "needs cells that this strategy did not measure", way_out)
        found = Answer.around(
            name,
            float(vector @ self.cells),
            self.law(vector),
            confidence=self.confidence if confidence is None else confidence,
            centre=float(vector @ self.centre),
            least=0.0 if bool(np.all(vector >= 0)) else -math.inf,
        )
        return (
            replace(found, note=self.note) if self.note else found
        )  # what an interval rests on goes with it

    def explain(self) -> str:
        """In words: what was asked, what was measured, what it costs, and why this strategy."""
        of_delta = f" at delta = {self.delta:.3g}" if self.delta > 0 else ""
        lines = [
            f"{self.workload.queries:,} queries over {self.workload.cells:,} cells, answered through {self.strategy!r}"
            f" for epsilon = {self.cost.upper:.4g}{of_delta}.",
            f"Expected error of a query: {self.rmse:.4g} (root mean square).",
            *([self.look] if self.look else []),
            *([self.note] if self.note else []),
            "",
            str(self.candidates),
        ]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """One row for each query: query, answer, standard_error. Refused above 2^20 queries."""
        if not self.workload.queries <= _MOST_ROWS:
            rule = f"must be at most {_MOST_ROWS:,} to be listed one by one"
            raise InvalidValue("queries", self.workload.queries, rule, "use answers and standard_errors")
        numbers = zip(self.answers.tolist(), self.standard_errors.tolist(), strict=True)
        return [
            {"query": self.workload.label(place), "answer": answer, "standard_error": error}
            for place, (answer, error) in enumerate(numbers)
        ]

    def to_frame(self) -> Any:
        """A tidy pandas table: query, answer, standard_error."""
        import pandas

        return pandas.DataFrame(self.records())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "strategy": self.strategy,
            "epsilon": self.cost.upper,
            "delta": self.delta,
            "event": self.event.to_dict(),
            "rmse": self.rmse,
            "columns": list(self.workload.columns),
            "estimate": self.estimate.tolist(),
            "answers": self.records(),
            "candidates": [
                {"strategy": one.strategy, "rmse": one.rmse, "why": one.why, "chosen": one.chosen}
                for one in self.candidates
            ],
            "note": self.note,
            "look": self.look,
        }

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def plot(self) -> Any:
        """Answers with bands of two standard errors, as an Altair chart (needs the extra `plots`)."""
        try:
            import altair as module
        except ImportError:
            raise MissingExtra("pictures", "altair", "plots") from None
        altair: Any = module
        step = max(1, self.workload.queries // _MOST_DRAWN)
        places = range(0, self.workload.queries, step)
        rows = [
            {
                "query": place,
                "label": self.workload.label(place),
                "answer": float(self.answers[place]),
                "lower": float(self.answers[place] - 2 * self.standard_errors[place]),
                "upper": float(self.answers[place] + 2 * self.standard_errors[place]),
            }
            for place in places
        ]
        base = altair.Chart(altair.Data(values=rows)).encode(x=altair.X("query:Q", title="query"))
        band = base.mark_area(opacity=0.3, color="#56B4E9").encode(
            y=altair.Y("lower:Q", title="answer"), y2="upper:Q"
        )
        line = base.mark_line(color="#0072B2").encode(
            y="answer:Q", tooltip=["label:N", "answer:Q", "lower:Q", "upper:Q"]
        )
        title = f"{self.workload.queries:,} answers through {self.strategy} for epsilon {self.cost.upper:.4g}"
        return (band + line).properties(title=title, width=520, height=260)

    def __len__(self) -> int:
        return self.workload.queries

    def __repr__(self) -> str:
        head = (
            f"{self.workload.queries:,} answers over {self.workload.cells:,} cells: strategy {self.strategy}, "
            f"epsilon {self.cost.upper:.4g}, expected error {self.rmse:.4g}"
        )
        if not self.workload.queries <= _MOST_ROWS:
            return head
        shown = min(_SHOWN, self.workload.queries)
        labels = [self.workload.label(place) for place in range(shown)]
        width = max(map(len, labels))
        rows = [
            f"  {label:<{width}}  {with_error(float(answer), float(error))}"
            for label, answer, error in zip(labels, self.answers, self.standard_errors, strict=False)
        ]
        more = self.workload.queries - shown
        meaning = f"± is one standard error; query(...) gives an interval of {100 * self.confidence:.6g}%"
        return "\n".join([head, *rows, *([f"  ... and {more:,} more"] if more else []), f"  ({meaning})"])

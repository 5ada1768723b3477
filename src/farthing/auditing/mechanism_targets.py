"""farthing's own mechanisms with neighbours that strain them; each is audited against its own event."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.adaptive.discovery import UnitCounts
from farthing.adaptive.discovery.search_cells import SearchCells
from farthing.adaptive.holdout import Holdout, HoldoutAnswer
from farthing.adaptive.query_session import Answer, Axis, QuerySession, QuerySessionPlan, plan_query_session
from farthing.adaptive.session_journal import MemoryJournal
from farthing.adaptive.synthesis import synthesis_plan
from farthing.errors import SessionEnded
from farthing.mechanisms import (
    AboveThreshold,
    BoundedSum,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    KeySelection,
    Mechanism,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
    TopK,
)
from farthing.mechanisms.counted_keys import CountedKeys, NoiseKind
from farthing.mechanisms.quantile_surroundings import QuantileSurroundings
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.smooth_median import SmoothMedian, SmoothSensitivity, SmoothStatistic
from farthing.mechanisms.weighted_keys import WeightedKeySelection, selection_for
from farthing.privacy import Event

_QUICK, _EXACT = 400_000, 8_000  # samples a side: of whole vectors at once, and one release after the other


@dataclass(frozen=True)
class BuiltIn:
    """A mechanism of ours, neighbours, and how many samples a side are drawn.

    >>> built_in_mechanisms()[0].name
    'discrete Laplace'
    """

    name: str
    mechanism: Mechanism
    neighbours: list[tuple[Any, Any]]
    samples: int
    batch: Callable[[Any, int], Any] | None = None


def built_in_mechanisms() -> list[BuiltIn]:
    """Every mechanism, in the variants whose code differs."""
    return [*_additive(), *_sums(), *_answers(), *_choices(), *_thresholds(), *_smooth(), *_keys()]


def _cell_by_cell(mechanism: DiscreteLaplace | DiscreteGaussian) -> Callable[[Any, int], Any]:
    """Noise is drawn for each cell by itself, so a vector of equal values is as many releases of one."""

    def batch(value: int, count: int) -> Any:
        return replace(mechanism, cells=count).release(np.full(count, value, dtype=np.int64))

    return batch


def _additive() -> list[BuiltIn]:
    laplace, gaussian = DiscreteLaplace(1.0), DiscreteGaussian(1.0)
    wide = DiscreteLaplace(1.0, l1_sensitivity=3)
    return [
        BuiltIn("discrete Laplace", laplace, [(0, 1)], _QUICK, _cell_by_cell(laplace)),
        BuiltIn("discrete Laplace, sensitivity 3", wide, [(0, 3)], _QUICK, _cell_by_cell(wide)),
        BuiltIn("discrete Laplace, one by one", laplace, [(0, 1), (2**62 + 5, 2**62 + 4)], _EXACT),
        BuiltIn(
            "discrete Laplace, three cells",
            DiscreteLaplace(1.0, l1_sensitivity=3, cells=3),
            [([0, 0, 0], [1, 1, 1]), ([0, 0, 0], [3, 0, 0])],
            _EXACT,
        ),
        BuiltIn(
            "discrete Laplace, real values",
            DiscreteLaplace(1.0, l1_sensitivity=1.0, grid=2.0**-10),
            [(0.0, 1.0), (2.0**-40, 1.0 - 2.0**-11)],
            _EXACT,
        ),
        BuiltIn("discrete Gaussian", gaussian, [(0, 1)], _QUICK, _cell_by_cell(gaussian)),
        BuiltIn(
            "discrete Gaussian, real values",
            DiscreteGaussian(1.0, l2_sensitivity=1.0, grid=2.0**-10),
            [(0.0, 1.0)],
            _EXACT,
        ),
    ]


def _sums() -> list[BuiltIn]:
    whole = BoundedSum(1.0, lower=0, upper=10)
    real = BoundedSum(1.0, lower=-1.0, upper=1.0, grid=2.0**-10)
    largest = 2**63 - 1
    return [
        BuiltIn(
            "bounded sum, whole rows",
            whole,
            [([3, 4], [3, 4, 10]), ([], [largest]), ([largest] * 3, [largest] * 4)],
            _EXACT,
        ),
        BuiltIn(
            "bounded sum, real rows",
            real,
            [([0.5], [0.5, 1.0]), ([0.5], [0.5, math.nan]), ([1e300] * 9, [1e300] * 10)],
            _EXACT,
        ),
    ]


def _answers() -> list[BuiltIn]:
    three = RandomizedResponse(1.0, categories=("a", "b", "c"))
    return [
        BuiltIn("randomized response", RandomizedResponse(1.0), [(0, 1)], _EXACT),
        BuiltIn("randomized response, k = 3", three, [("a", "b")], _EXACT),
        BuiltIn("randomized response, Warner", RandomizedResponse.warner("3/4"), [(0, 1)], _EXACT),
    ]


def _choices() -> list[BuiltIn]:
    """Scores that move against each other, which is the worst case, and ties, which are another."""
    apart = [([0, 0, 0, 0], [1, -1, -1, -1])]
    rows = [0.2, 0.3, 0.5, 0.6]
    moved = [(rows, [*rows, 1.0]), ([0.5], [])]
    counted = [([0, 3, 3, 0], [0, 3, 4, 0]), ([0, 0, 0, 1], [0, 0, 0, 0])]
    return [
        BuiltIn("exponential mechanism", ExponentialMechanism(1.0), apart, _EXACT),
        BuiltIn("report noisy max", ReportNoisyMax(1.0), apart, _EXACT),
        BuiltIn("report noisy max, with gap", ReportNoisyMax(1.0, gap=True), apart, _EXACT),
        BuiltIn("permute and flip", PermuteAndFlip(1.0), apart, _EXACT),
        BuiltIn("top k", TopK(k=2, epsilon=1.0), apart, _EXACT),
        BuiltIn("quantile", Quantile(0.5, 1.0, lower=0.0, upper=1.0, grid=2.0**-4), moved, _EXACT // 2),
        BuiltIn(
            "several quantiles",
            Quantiles((0.25, 0.75), 1.0, lower=0.0, upper=1.0, grid=2.0**-4),
            moved,
            _EXACT // 2,
        ),
        BuiltIn(
            "quantiles and counts around them",
            QuantileSurroundings((0.25, 0.5, 0.75), 1.0, points=4, weights=(2, 1)),
            counted,
            _EXACT // 2,
        ),
    ]


def _thresholds() -> list[BuiltIn]:
    """The neighbours that refute the broken variants (see `planted_sparse_vector`)."""
    pairs = [([0, 0, 1, 1], [1, 1, 0, 0]), ([0, 0, 0], [1, 1, 1])]
    return [
        BuiltIn("above threshold", AboveThreshold(1.0), pairs, _EXACT),
        BuiltIn("above threshold, with gap", AboveThreshold(1.0, with_gap=True), pairs, _EXACT),
        BuiltIn("sparse vector", SparseVector(1.0, positives=2), pairs, _EXACT),
        BuiltIn(
            "sparse vector, fresh, with gap",
            SparseVector(1.0, positives=2, fresh_threshold=True, with_gap=True),
            pairs,
            _EXACT,
        ),
    ]


def _doubling(t: int) -> int:
    return min(100, 1 << t)


def _doubling_early(t: int) -> int:
    return _doubling(t + 1)


def _smooth() -> list[BuiltIn]:
    """Neighbours between which the local sensitivity itself jumps."""
    calm, jumpy = [5, 5, 5, 5, 5], [5, 5, 5, 5, 5, 100]
    steep = SmoothStatistic(0, _doubling), SmoothStatistic(1, _doubling_early)
    return [
        BuiltIn("smooth median", SmoothMedian(1.0, lower=0, upper=100), [(calm, jumpy)], _EXACT // 2),
        BuiltIn(
            "smooth median, with delta",
            SmoothMedian(1.0, lower=0, upper=100, delta=0.01),
            [([0, 0, 50, 100, 100], [0, 0, 50, 100])],
            _EXACT // 2,
        ),
        BuiltIn("smooth sensitivity", SmoothSensitivity(1.0, global_sensitivity=100), [steep], _EXACT // 2),
    ]


def _keys() -> list[BuiltIn]:
    pairs = [({}, {"a": 1}), ({"a": 3, "b": 50}, {"a": 4, "b": 50})]
    return [
        BuiltIn(f"key selection, {rule}", KeySelection(1.0, 0.01, rule=rule), pairs, _EXACT)
        for rule in ("optimal", "truncated_geometric", "laplace")
    ] + [_discovery(1), _discovery(3), _counted_discovery("laplace"), _counted_discovery("gaussian"), _range_search()]


def _range_search() -> BuiltIn:
    """From rows of (unit, cell) to the ends of a range: each unit adds one of its rows, as in `unknown_columns`."""
    cells = SearchCells(tuple(range(7)), tuple(range(6)), tuple(range(1, 7)))
    counts, generator = UnitCounts(cells, 1.0), random.SystemRandom()

    def run(rows: Sequence[tuple[str, int]]) -> Any:
        own: dict[str, list[int]] = {}
        for unit, cell in rows:
            own.setdefault(unit, []).append(cell)
        exact = np.bincount([generator.choice(each) for each in own.values()], minlength=6)
        return str(counts.range_of(counts.mechanism.release(exact)))

    some = [(f"unit {number}", 1 + number % 2) for number in range(2 * counts.seen)]
    pairs = [(some, [*some, *(("new", 4) for _ in range(8))]), (some, [*some, ("new", 2)])]
    return BuiltIn("range search, one row a unit", WholeSession(counts.mechanism.event, run), pairs, _EXACT)


def _discovery(max_keys: int) -> BuiltIn:
    cap = "one key a unit" if max_keys == 1 else f"{max_keys} keys a unit"
    return _searched(f"key discovery, {cap}", selection_for(1.0, 0.01, max_keys))


def _counted_discovery(kind: NoiseKind) -> BuiltIn:
    return _searched(f"key discovery with counts, 2 keys a unit, {kind}", CountedKeys(1.0, 0.01, 2, kind))


def _searched(name: str, selection: KeySelection | WeightedKeySelection | CountedKeys) -> BuiltIn:
    """From rows of (unit, key) to keys: each unit keeps some of its own at random, as in `farthing.data.key_counts`."""
    max_keys, generator = selection.max_keys_per_unit, random.SystemRandom()

    def run(rows: Sequence[tuple[str, str]]) -> Any:
        own: dict[str, set[str]] = {}
        for unit, key in rows:
            own.setdefault(unit, set()).add(key)
        weights: dict[str, int] = {}
        for keys in own.values():
            kept = generator.sample(sorted(keys), min(max_keys, len(keys)))
            for key in kept:
                weights[key] = weights.get(key, 0) + selection.weights[len(kept) - 1]
        return selection.release(weights)

    many = [(f"unit {number}", "a") for number in range(12)]
    several = [*many, *(("new", f"rare {number}") for number in range(4))]
    pairs = [(many, several), (many[:7], many[:8]), ([*many, ("other", "b")], [("new", "b"), *many, ("other", "b")])]
    return BuiltIn(name, WholeSession(selection.event, run), pairs, _EXACT)


_SESSIONS, _SYNTHESES = 6_000, 500  # samples a side; a synthesis fits models on its way
_LONG_SESSIONS = 2_000  # what is not charged adds up over many questions, and few samples show it
_FREE, _ENDED = -1.0, -2.0


@dataclass(frozen=True)
class WholeSession(Mechanism):
    """A session from its opening to its last question, as one mechanism."""

    cost: Event
    run: Callable[[Any], Any]

    @property
    def event(self) -> Event:
        """What the session says it costs."""
        return self.cost

    def _answer(self, value: Any, source: Source) -> Any:
        return self.run(value)  # sessions have no public place for a source: they take the system's


def adaptive_sessions() -> list[BuiltIn]:
    """The query session, the reusable holdout and syntheses, on tables of a few rows."""
    return [*_online(), _long_online(), *_holdouts(), *_syntheses()]


def _transcript(ask: Callable[[Any], tuple[float, bool]], questions: Sequence[Any]) -> list[float]:
    """What an analyst sees of a session, question by question."""
    values = []
    for question in questions:
        try:
            value, paid = ask(question)
        except SessionEnded:
            value, paid = _ENDED, True
        values.append(value if paid else _FREE)
    return values


def _online() -> list[BuiltIn]:
    """Counts that lie at the threshold of "too far from what was expected"; 25 rows are expected in each cell."""
    axes = [Axis("a", range(2)), Axis("b", range(2))]
    questions = [{"a": 0}, {"b": 0}, {"a": 1}]
    answers = []
    for start, epsilon, updates in (("none", 2.0, 1), ("cells", 4.0, 2)):
        plan = plan_query_session(
            axes, epsilon, 0.0, alpha=0.45, queries=3, rows=100, updates=updates, start=start, confidence=0.5
        )

        def run(cells: Any, plan: QuerySessionPlan = plan) -> list[float]:
            query_session = QuerySession(plan, axes, lambda: cells, MemoryJournal())
            opened = [float(query_session.estimate(question).value) for question in questions]
            return opened + _transcript(lambda question: _value_and_paid(query_session.ask(question)), questions)

        name = "query session" if start == "none" else "query session, noisy start"
        pair = [plan.threshold + 25, 25, 0, 0], [plan.threshold + 24, 25, 0, 0]
        answers.append(BuiltIn(name, WholeSession(plan.event, run), [pair], _SESSIONS))
    return answers


def _long_online() -> BuiltIn:
    """One update is paid for, and twenty questions ask for one each: whatever comes after the first is a leak.

    Two cells hold more rows than weights can ever be moved to, so that every question about one of them is far off.
    Half of the questions move between the neighbours and half do not: a threshold noise that was kept drops out.
    """
    axes = [Axis("a", range(12))]
    questions = [{"a": [heavy, other]} for other in range(2, 12) for heavy in (0, 1)]
    plan = plan_query_session(axes, 2.0, 0.0, alpha=0.45, queries=20, rows=100, updates=1, start="none", confidence=0.5)

    def run(cells: Any) -> list[float]:
        query_session = QuerySession(plan, axes, lambda: cells, MemoryJournal())
        return _transcript(lambda question: _value_and_paid(query_session.ask(question)), questions)

    pair = [1000, 1000, *[0] * 10], [1001, 1000, *[0] * 10]
    name = "query session, one update for twenty questions"
    return BuiltIn(name, WholeSession(plan.event, run), [pair], _LONG_SESSIONS)


def _holdouts() -> list[BuiltIn]:
    """Two questions in turn: one counts the rows that the other does not, so that one falls when the other rises."""
    many = [0] * 20 + [1] * 20, [0] * 19 + [1] * 21  # far from 0, however the noise falls
    return [
        _holdout("reusable holdout", 2.0, 1, (0, 0, 1), ([0, 0, 1, 1], [0, 1, 1, 1])),
        _holdout("reusable holdout, two corrections", 4.0, 2, (0, 0, 0, 1, 1), ([0, 0, 0, 1], [0, 0, 1, 1])),
        _holdout(
            "reusable holdout, one correction for sixty questions",
            2.0,
            1,
            (0, 1) * 30,
            many,
            0.1,
            _LONG_SESSIONS,
        ),
    ]


def _holdout(
    name: str,
    epsilon: float,
    corrections: int,
    codes: tuple[int, ...],
    pair: tuple[list[int], list[int]],
    threshold: float = 0.5,
    samples: int = _SESSIONS,
) -> BuiltIn:
    training = np.full(len(pair[0]), 2)  # neither of the two: every mean over the training rows is 0
    options: dict[str, Any] = {"queries": len(codes), "corrections": corrections, "threshold": threshold}

    def run(rows: Any) -> list[float]:
        session = Holdout(training, np.asarray(rows), epsilon=epsilon, **options)
        return _transcript(lambda code: _value_and_paid(session.ask(lambda table: table == code)), codes)

    cost = Holdout.plan(len(training), epsilon, **options).event
    return BuiltIn(name, WholeSession(cost, run), [pair], samples)


def _value_and_paid(answer: Answer | HoldoutAnswer) -> tuple[float, bool]:
    return float(answer.value), answer.paid


def _syntheses() -> list[BuiltIn]:
    """One column: noise alone, and so quick that a third too little of it shows. Two columns: the whole loop, in which
    one row decides which table the model gets wrong."""
    both = [[0, 0], [0, 0], [1, 1]], [[0, 0], [0, 0], [1, 1], [1, 1]]
    alone = tuple([row[:1] for row in rows] for rows in both)
    return [
        _synthesis("synthesis of one column", (2,), 1.0, alone, _SESSIONS),
        _synthesis("synthesis", (2, 2), 4.0, both, _SYNTHESES),
    ]


def _synthesis(name: str, sizes: tuple[int, ...], epsilon: float, pair: Any, samples: int) -> BuiltIn:
    plan = synthesis_plan(sizes, epsilon)

    def run(rows: Any) -> dict[str, list[int]]:
        answers = plan.draw(np.asarray(rows))
        return {name: np.reshape(numbers, -1).tolist() for name, numbers in answers.items()}

    return BuiltIn(name, WholeSession(plan.event, run), [pair], samples)

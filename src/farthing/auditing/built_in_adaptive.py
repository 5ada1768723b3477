"""Adaptive sessions as mechanisms, with neighbours that strain them: each is audited as a whole against its own event.

One output is one whole session on a fixed list of questions, some of which move up between the neighbours and some
down: answers that came free, paid answers, and where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.adaptive.holdout import Holdout, HoldoutAnswer
from farthing.adaptive.journal import MemoryJournal
from farthing.adaptive.online import Answer, AnswererPlan, OnlineAnswerer, plan_answerer
from farthing.adaptive.synthesis import synthesis_plan
from farthing.auditing.built_in import BuiltIn
from farthing.errors import SessionEnded
from farthing.mechanisms import Mechanism
from farthing.mechanisms.randomness import Source
from farthing.privacy import Event
from farthing.release.workloads.axes import Axis

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
    """The online answerer, the reusable holdout and syntheses, on tables of a few rows."""
    return [*_online(), _long_online(), *_holdouts(), *_syntheses()]


def _told(ask: Callable[[Any], tuple[float, bool]], questions: Sequence[Any]) -> list[float]:
    """What an analyst sees of a session, question by question."""
    seen = []
    for question in questions:
        try:
            value, paid = ask(question)
        except SessionEnded:
            value, paid = _ENDED, True
        seen.append(value if paid else _FREE)
    return seen


def _online() -> list[BuiltIn]:
    """Counts that lie at the threshold of "too far from what was expected"; 25 rows are expected in each cell."""
    axes = [Axis("a", range(2)), Axis("b", range(2))]
    questions = [{"a": 0}, {"b": 0}, {"a": 1}]
    found = []
    for start, epsilon, updates in (("none", 2.0, 1), ("cells", 4.0, 2)):
        plan = plan_answerer(
            axes, epsilon, 0.0, alpha=0.45, queries=3, rows=100, updates=updates, start=start, confidence=0.5
        )

        def run(cells: Any, plan: AnswererPlan = plan) -> list[float]:
            answerer = OnlineAnswerer(plan, axes, lambda: cells, MemoryJournal())
            opened = [float(answerer.estimate(question).value) for question in questions]
            return opened + _told(lambda question: _shown(answerer.ask(question)), questions)

        name = "online answerer" if start == "none" else "online answerer, noisy start"
        pair = [plan.threshold + 25, 25, 0, 0], [plan.threshold + 24, 25, 0, 0]
        found.append(BuiltIn(name, WholeSession(plan.event, run), [pair], _SESSIONS))
    return found


def _long_online() -> BuiltIn:
    """One update is paid for, and twenty questions ask for one each: whatever comes after the first is a leak.

    Two cells hold more rows than weights can ever be moved to, so that every question about one of them is far off.
    Half of the questions move between the neighbours and half do not: a threshold noise that was kept drops out.
    """
    axes = [Axis("a", range(12))]
    questions = [{"a": [heavy, other]} for other in range(2, 12) for heavy in (0, 1)]
    plan = plan_answerer(
        axes, 2.0, 0.0, alpha=0.45, queries=20, rows=100, updates=1, start="none", confidence=0.5
    )

    def run(cells: Any) -> list[float]:
        answerer = OnlineAnswerer(plan, axes, lambda: cells, MemoryJournal())
        return _told(lambda question: _shown(answerer.ask(question)), questions)

    pair = [1000, 1000, *[0] * 10], [1001, 1000, *[0] * 10]
    name = "online answerer, one update for twenty questions"
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
        return _told(lambda code: _shown(session.ask(lambda table: table == code)), codes)

    cost = Holdout.plan(len(training), epsilon, **options).event
    return BuiltIn(name, WholeSession(cost, run), [pair], samples)


def _shown(answer: Answer | HoldoutAnswer) -> tuple[float, bool]:
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
        drawn = plan.draw(np.asarray(rows))
        return {name: np.reshape(numbers, -1).tolist() for name, numbers in drawn.items()}

    return BuiltIn(name, WholeSession(plan.event, run), [pair], samples)

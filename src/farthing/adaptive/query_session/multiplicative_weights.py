"""The hypothesis: one positive weight for each cell, moved by a factor where a question was far off."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.expression import check
from farthing.data.expressions.parser import parse
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression, InvalidValue
from farthing.matrix.workloads.condition_language import Question
from farthing.statistics.cells.cell_axes import Axis
from farthing.statistics.cells.cell_queries import mask_of

_MOST_KEPT = 2**22  # cells of marginals that are kept at once

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class Mask:
    """Which cells a question counts: one dimension for each axis, of size 1 where the axis does not matter.

    >>> mask = Mask.of("c = 1", [Axis("b", range(3)), Axis("c", range(2))])
    >>> mask.counted.tolist(), Mask.read(mask.record).counted.tolist()
    ([[False, True]], [[False, True]])
    """

    counted: NDArray[np.bool_]

    @classmethod
    def of(cls, question: Question, axes: Sequence[Axis]) -> Mask:
        """The mask of a text, a mapping, a pair on a single axis, or zeros and ones for all cells.

        >>> Mask.of("c is null", [Axis("c", range(2))])
        Traceback (most recent call last):
            ...
        farthing.errors.InvalidExpression: expression: rows that lack a value lie in no cell...
        """
        values = mask_of(question, axes)
        if isinstance(question, str):
            _refuse_missing(question, axes)
        counted = values != 0
        if not np.array_equal(values, counted):
            raise InvalidValue(
                "question", "an array", "must hold zeros and ones only", "count every cell once or not at all"
            )
        return cls(counted)

    @property
    def key(self) -> tuple[tuple[int, ...], bytes]:
        """A key that is equal for equal masks only."""
        return self.counted.shape, np.packbits(self.counted).tobytes()

    @property
    def fingerprint(self) -> str:
        """Equal for equal masks, and short however many cells there are.

        >>> axes = [Axis("b", range(3)), Axis("c", range(2))]
        >>> Mask.of("b < 1", axes).fingerprint == Mask.of("not b >= 1", axes).fingerprint
        True
        """
        shape, packed = self.key
        return hashlib.sha256(repr(shape).encode() + packed).hexdigest()

    @property
    def record(self) -> dict[str, Any]:
        """The mask as whole numbers and text."""
        shape, packed = self.key
        return {"shape": list(shape), "bits": base64.b64encode(packed).decode("ascii")}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Mask:
        """The mask that was recorded."""
        shape = tuple(int(size) for size in record["shape"])
        packed = np.frombuffer(base64.b64decode(record["bits"]), dtype=np.uint8)
        return cls(np.unpackbits(packed, count=math.prod(shape)).reshape(shape).astype(bool))


def _refuse_missing(text: str, axes: Sequence[Axis]) -> None:
    """Cells hold rows without missing values only: an answer about others would be a promise that nobody keeps."""
    if not any(word in text.lower() for word in ("null", "coalesce")):
        return
    meaning = check(parse(text, chains=True), Schema({axis.column: axis.domain for axis in axes}), text)
    if any(part.operator in ("is null", "coalesce") for part in meaning.walk()):
        raise InvalidExpression(
            text, None, "rows that lack a value lie in no cell and cannot be asked about", "ask about values"
        )


class Cells(Generic[Number]):
    """Numbers in cells and their sums under masks; marginals over the same axes are kept for the next question.

    The numbers may be private: nothing of them is shown.

    >>> cells = Cells(np.arange(6).reshape(2, 3))
    >>> int(cells.sum_under(Mask(np.array([[False], [True]])))), cells
    (12, Cells(2 x 3))
    """

    __slots__ = ("_marginals", "_size", "values")

    def __init__(self, values: NDArray[Number]) -> None:
        self.values: NDArray[Number] = values
        self._marginals: dict[tuple[int, ...], NDArray[Number]] = {}
        self._size = 0

    def sum_under(self, mask: Mask) -> Number:
        """The sum of the cells that the mask counts."""
        idle = tuple(axis for axis, size in enumerate(mask.counted.shape) if size < self.values.shape[axis])
        return np.sum(self._marginal(idle), where=mask.counted)

    def _marginal(self, idle: tuple[int, ...]) -> NDArray[Number]:
        if not idle:
            return self.values
        sums = self._marginals.get(idle)
        if sums is None:
            sums = self.values.sum(axis=idle, keepdims=True)
            if self._size + sums.size > _MOST_KEPT:
                self._marginals.clear()
                self._size = 0
            self._marginals[idle] = sums
            self._size += sums.size
        return sums

    def __repr__(self) -> str:
        return f"Cells({' x '.join(map(str, self.values.shape))})"


UNIFORM_PART = 2.0**-20
"""The part of every start that is spread evenly over the cells, so that no cell is ever ruled out."""
# Weights stay positive: a question that should count nothing is scaled down by this much.
_LEAST_FACTOR = 2.0**-30


def gain_of_step(rows: float, weight: float, goal: float) -> float:
    """By how much the divergence from the rows falls if the cells of a question are scaled from `weight` to `goal`.

    Statement:
        Let D(x || h) = sum_i x_i ln(x_i / h_i) - x_i + h_i over cells, with 0 ln 0 = 0. Multiply h_i by m / b in the
        cells that a question counts, where h says b > 0 and x says a. D falls by exactly a ln(m / b) - m + b. That is
        concave in m, greatest at m = a, and there at least (a - b)^2 / (2 max(a, b)).
        Proof: D(x||h) - D(x||h') = sum x_i ln(h'_i / h_i) - sum (h'_i - h_i). With t = b / a the gain at m = a is
        a (t - 1 - ln t); f(t) = t - 1 - ln t has f(1) = f'(1) = 0 and f''(t) = 1 / t^2, so for t <= 1 (where
        f'' >= 1) f >= (1 - t)^2 / 2 and for t > 1, by comparing derivatives, f >= (t - 1)^2 / (2 t).
    Source: own derivation; the potential argument is Hardt & Rothblum 2010, "A multiplicative weights mechanism for
        privacy-preserving data analysis", Section 3, there with normalised weights and a fixed step.
    Assumes: a >= 0; b, m > 0; the question counts every cell zero times or once.
    Direction: exact.
    Checked by: tests/theorems/test_multiplicative_weights_updates.py

    >>> round(gain_of_step(rows=200, weight=100, goal=200), 3)
    38.629
    """
    return rows * math.log(goal / weight) - goal + weight


def most_updates(cells: int, rows: int, alpha: float, least_gain: int) -> int:
    """How many updates can be needed at all.

    Statement:
        Let n <= (1 + alpha) N rows lie in K cells, and let the start be at least w N / K in every cell, with a total
        of at most (1 + alpha) N. If every update finds a question that is off by at least g, goes at least so far that
        half of the gain of a step by g is kept, and weights are scaled into a range of totals that holds n and ends
        at or below (1 + alpha) N, there are at most 4 M^2 ln((1 + alpha) K / w) / g^2 updates, M = (1 + alpha) N.
        Proof: D(x || h) >= 0 always. At the start it is at most n ln(n K / (w N)) - n + M, which rises in n, so at
        most M ln((1 + alpha) K / w). A step gains at least g^2 / (4 max(a, b)) by `gain_of_step`, and a, b <= M.
        Scaling into the range projects on a convex set that x lies in, which only lowers D.
    Source: own derivation; Hardt & Rothblum 2010, Section 3, has the same with 4 ln K / (g / N)^2 for known n.
    Assumes: the number of rows, and what the start takes it for, are at most (1 + alpha) times the public `rows`;
        what `QuerySessionPlan.confidence` covers.
    Direction: rounded up; an upper bound.
    Checked by: tests/theorems/test_multiplicative_weights_updates.py

    >>> most_updates(cells=2**16, rows=100_000, alpha=0.01, least_gain=250)
    16297607
    """
    most = (1 + alpha) * rows
    return math.ceil(4 * (most / least_gain) ** 2 * math.log((1 + alpha) * cells / UNIFORM_PART) * (1 + 1e-12))


def updates_needed(cells: int, rows: int, alpha: float, least_gain: int, even: bool) -> int:
    """How many updates can be needed at all, as sharply as it is proven.

    Statement:
        As in `most_updates`, with M = (1 + alpha) N and g = `least_gain`. An update lowers D by at least half of
            f = (M - g) ln(1 - g / M) + g >= g^2 / (2 M),
        and D is at the start at most max(N, M ln((1 + alpha) K) - alpha N) for a start from N / K in every cell
        (`even`), and M ln((1 + alpha) K / w) for one that is at least w N / K. So there are at most 2 D / f updates.
        Proof: let the rows certainly be s under the question, |s - b| = g, s and b in [0, M]. The sure gain is
        s ln(s / b) - s + b. For s = b + g and for s = b - g it falls as b grows: its derivatives are ln(1 + g / b) -
        g / b and ln(1 - g / b) + g / b, both <= 0. So it is least at b = M - g, where it is -M ln(1 - g / M) - g, or
        at b = M, where it is f, the smaller one: of both, f has the smaller power series in g / M, term by term.
        At an even start D <= n ln(n K / N) - n + N, which is convex in n: largest at n = 0 or at n = M.
    Source: own derivation; Hardt & Rothblum 2010, Section 3, has 4 ln K / (g / N)^2 for known n.
    Assumes: what `most_updates` assumes; for `even`, no earlier releases in the start.
    Direction: rounded up; an upper bound, at most `most_updates` for a start from even weights.
    Checked by: tests/theorems/test_multiplicative_weights_updates.py

    >>> updates_needed(cells=256, rows=100_000, alpha=0.05, least_gain=2_001, even=True)
    60699
    >>> most_updates(cells=256, rows=100_000, alpha=0.05, least_gain=2_001)
    214299
    """
    most = (1 + alpha) * rows
    part = min(least_gain / most, 1.0)
    # The first terms of its power series, where the difference would lose all digits; the rest is positive.
    series = part**2 / 2 + part**3 / 6 + part**4 / 12
    fall = most * (1.0 if part == 1 else (1 - part) * math.log1p(-part) + part if part > 1e-3 else series)
    if even:
        start = max(rows, most * math.log((1 + alpha) * cells) - alpha * rows)
    else:
        start = most * math.log((1 + alpha) * cells / (UNIFORM_PART / 2))
    return math.ceil(2 * start / fall * (1 + 1e-9))


def goal_of_step(weight: float, sure: float, likely: float) -> float:
    """Where a question's weight is moved to: towards what is likely, but so that half of the sure gain is kept.

    `sure` is the count on the near side of which the rows certainly are not, `likely` the best guess beyond it.

    >>> goal_of_step(weight=100.0, sure=120.0, likely=125.0)
    125.0
    >>> round(goal_of_step(weight=100.0, sure=120.0, likely=200.0), 1)
    135.6
    """
    nearest = max(sure, 0.0)
    best = max(likely, weight * _LEAST_FACTOR)
    enough = (gain_of_step(nearest, weight, nearest) if nearest else weight) / 2
    if gain_of_step(nearest, weight, best) >= enough:
        return best
    near, far = max(nearest, weight * _LEAST_FACTOR), best
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if gain_of_step(nearest, weight, middle) >= enough else (near, middle)
    return near


def stepped(
    weights: NDArray[np.float64], counted: NDArray[np.bool_], factor: float, least: float, most: float
) -> NDArray[np.float64]:
    """Weights after one update, scaled so that their total is not outside of what the number of rows can be.

    >>> stepped(np.array([1.0, 2.0, 3.0]), np.array([True, False, False]), 2.0, least=0.0, most=100.0)
    array([2., 2., 3.])
    >>> stepped(np.array([1.0, 2.0, 3.0]), np.array([True, False, False]), 5.0, least=0.0, most=5.0)
    array([2.5, 1. , 1.5])
    """
    moved = np.where(counted, weights * factor, weights)
    total = float(moved.sum())
    return moved * (min(max(total, least), most) / total)

"""How far off the cells of an answer are: standard errors at once, errors at a confidence when asked.

A law is cheap to make, since a planner makes thousands: only the terms are kept. Standard errors are closed forms;
errors at a confidence come from the exact law of the noise (see `noise_sums`), once for each kind of cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.noise_sums import checked_confidence, errors_of_many, tails_of_many
from farthing.inference.noise_terms import Floats, Parts, Term, parts_of, variance_of_parts

_MOST_KINDS = 64  # of cells, when coverage is averaged over unequal ones
_PRECISION = 3e-5
_ALIKE = (
    2.0  # of two sums of noises at one confidence, the one with half the standard error is not the wider one
)


class ErrorLaw:
    """The law of the errors of an answer's cells, each a sum of independent terms of noise.

    `coefficient` and `count` of a term may be arrays over the cells. Cells need not be independent of one another:
    nothing here asks for it.

    >>> law = ErrorLaw([Term("laplace", 10.0, count=np.array([1, 1, 4]))])
    >>> law.standard_errors.round(2), round(law.standard_error, 2)
    (array([14.14, 14.14, 28.27]), 19.99)
    >>> law.errors(0.95), round(law.error(0.95), 2)
    (array([30., 30., 57.]), 43.0)
    """

    def __init__(self, terms: Iterable[Term], cells: int | None = None) -> None:
        self.terms = tuple(terms)
        shapes = [
            part.shape
            for term in self.terms
            for part in (term.coefficient, term.count)
            if isinstance(part, np.ndarray)
        ]
        if not shapes:
            self.cells: int = 1 if cells is None else cells
            return
        try:
            shape = np.broadcast_shapes(*shapes, () if cells is None else (cells,))
        except ValueError:
            raise InvalidValue("terms", shapes, "must all be over the same cells") from None
        if len(shape) > 1:
            raise InvalidValue("terms", shape, "must have arrays of one dimension", "flatten the cells")
        self.cells = shape[0] if shape else 1

    @cached_property
    def standard_errors(self) -> Floats:
        """The root mean squared error of every cell."""
        total: Floats = np.zeros(self.cells)
        for term in self.terms:
            total = total + term.variance
        return np.sqrt(total)

    @property
    def standard_error(self) -> float:
        """The root mean squared error over all cells."""
        return float(np.sqrt(np.mean(self.standard_errors**2))) if self.cells else 0.0

    def errors(self, confidence: float = 0.95) -> Floats:
        """For every cell the least e (or a hair more) that its error stays within at the confidence."""
        kinds, place, _ = self._kinds
        return np.asarray(errors_of_many(kinds, checked_confidence(confidence))[place])

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together.

        Where all cells have one law, this is the error of each. Where they differ, it is the e at which the coverage,
        averaged over the cells, reaches the confidence.
        """
        level = checked_confidence(confidence)
        kinds, _, counts = self._kinds
        if not kinds:
            return 0.0
        if len(kinds) == 1:
            return float(errors_of_many(kinds, level)[0])
        kinds, counts = self._fewer(kinds, counts)
        single = errors_of_many(kinds, level)
        share = counts / counts.sum()
        return _least(lambda e: float(share @ tails_of_many(kinds, e)), 1 - level, single.min(), single.max())

    def worst(self, confidence: float = 0.95) -> float:
        """The largest of `errors`: what every cell by itself stays within at the confidence.

        >>> ErrorLaw([Term("laplace", 10.0, count=np.array([1, 1, 4]))]).worst(0.95)
        57.0
        """
        level = checked_confidence(confidence)
        kinds, _, _ = self._kinds
        if not kinds:
            return 0.0
        if len(kinds) > 1:
            deviations = np.sqrt([variance_of_parts(parts) for parts in kinds])
            widest = np.argsort(deviations)[::-1][:_MOST_KINDS]
            kinds = [kinds[place] for place in widest if deviations[place] * _ALIKE >= deviations[widest[0]]]
        return float(errors_of_many(kinds, level).max())

    def scaled(self, factor: float) -> ErrorLaw:
        """The law of the errors times a factor: the same answer in other units.

        >>> ErrorLaw([Term("normal", 2.0)]).scaled(10).standard_error
        20.0
        """
        return ErrorLaw(
            [Term(t.kind, t.scale, np.multiply(t.coefficient, factor), t.count) for t in self.terms],
            self.cells,
        )

    def cell(self, index: int) -> ErrorLaw:
        """The law of one cell."""
        at = range(self.cells)[index]
        return ErrorLaw(
            [Term(t.kind, t.scale, float(_at(t.coefficient, at)), int(_at(t.count, at))) for t in self.terms]
        )

    @cached_property
    def _kinds(self) -> tuple[list[Parts], NDArray[np.intp], Floats]:
        """The distinct laws of cells, which one each cell has, and how many have each."""
        if self.cells == 0:
            return [], np.zeros(0, dtype=np.intp), np.zeros(0)
        if all(np.size(t.coefficient) == np.size(t.count) == 1 for t in self.terms):
            one = parts_of(
                (t.kind, t.scale, float(_at(t.coefficient, 0)), int(_at(t.count, 0))) for t in self.terms
            )
            return [one], np.zeros(self.cells, dtype=np.intp), np.array([float(self.cells)])
        rows = np.empty((2 * len(self.terms), self.cells))
        for i, term in enumerate(self.terms):
            rows[2 * i], rows[2 * i + 1] = np.abs(term.coefficient), term.count
        distinct, place, counts = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
        kinds = [
            parts_of(
                (t.kind, t.scale, float(column[2 * i]), int(column[2 * i + 1]))
                for i, t in enumerate(self.terms)
            )
            for column in distinct.T
        ]
        return kinds, place.reshape(-1), counts.astype(float)

    def _fewer(self, kinds: list[Parts], counts: Floats) -> tuple[list[Parts], Floats]:
        """At most 64 kinds, each standing for neighbours in standard error that are no larger than itself."""
        if len(kinds) <= _MOST_KINDS:
            return kinds, counts
        deviations = np.sqrt([variance_of_parts(parts) for parts in kinds])
        blocks = np.array_split(np.argsort(deviations), _MOST_KINDS)
        return [kinds[block[-1]] for block in blocks], np.array([counts[block].sum() for block in blocks])


class StatedLaw(ErrorLaw):
    """A law known only by what it says: standard errors, and a function from confidence to errors.

    >>> law = StatedLaw([1.0, 1.0], lambda confidence: np.array([2.0, 2.0]))
    >>> law.error(0.95), law.standard_error
    (2.0, 1.0)
    """

    def __init__(self, standard_errors: ArrayLike, errors: Callable[[float], ArrayLike]) -> None:
        self._stated = np.atleast_1d(np.asarray(standard_errors, dtype=float))
        self._errors = errors
        super().__init__((), len(self._stated))

    @cached_property
    def standard_errors(self) -> Floats:
        """As stated."""
        return self._stated

    def errors(self, confidence: float = 0.95) -> Floats:
        """As stated."""
        found = np.asarray(self._errors(checked_confidence(confidence)), dtype=float)
        return np.array(np.broadcast_to(found, (self.cells,)))

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        level = checked_confidence(confidence)
        single = self.errors(level)
        if not self.cells or np.isinf(single).all() or np.ptp(single) <= _PRECISION * single.max():
            return float(single.max(initial=0.0))
        # Coverage of a cell at e: the highest confidence of a ladder whose error is still within e.
        ladder = 1 - np.geomspace(1 - level / 4, (1 - level) / 64, 80)
        table = np.array([self.errors(rung) for rung in ladder])
        steps = np.concatenate([[0.0], ladder])

        def tail(e: float) -> float:
            reached = np.count_nonzero(np.maximum.accumulate(table) <= e, axis=0)
            return 1 - float(np.mean(steps[reached]))

        return _least(tail, 1 - level, single.min(), single.max())

    def worst(self, confidence: float = 0.95) -> float:
        """The largest of `errors`."""
        return float(self.errors(confidence).max(initial=0.0))

    def scaled(self, factor: float) -> ErrorLaw:
        """The law of the errors times a factor."""
        size = abs(float(factor))
        return StatedLaw(self._stated * size, lambda confidence: self.errors(confidence) * size)

    def cell(self, index: int) -> ErrorLaw:
        """The law of one cell."""
        return StatedLaw(self._stated[index], lambda confidence: self.errors(confidence)[index])


def errors_of_laws(laws: Sequence[ErrorLaw], confidence: float = 0.95) -> Floats:
    """`law.error(confidence)` for many laws in one pass over arrays: how a plan of a hundred statistics is shown.

    >>> laws = [ErrorLaw([Term("laplace", 10.0 + i, count=4)]) for i in range(3)]
    >>> errors_of_laws(laws), laws[1].error(0.95)
    (array([57., 63., 68.]), 63.0)
    """
    level = checked_confidence(confidence)
    found = np.zeros(len(laws))
    alike: list[tuple[int, Parts]] = []
    for place, law in enumerate(laws):
        if isinstance(law, StatedLaw) or len(law._kinds[0]) != 1:
            found[place] = law.error(level)
        else:
            alike.append((place, law._kinds[0][0]))
    if alike:
        found[[place for place, _ in alike]] = errors_of_many([parts for _, parts in alike], level)
    return found


def _least(tail: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The least e between `low` and `high` with tail(e) <= target, to 3e-5, outward; `high` is known to hold."""
    at_low, at_high = tail(low), target
    if at_low <= target:
        return float(low)
    for round_ in range(60):
        if high - low <= _PRECISION * high:
            break
        # Secants on the logarithm, which is nearly straight; they pile up on one side, so every third step halves.
        drop = math.log(at_low / max(at_high, 1e-300))
        share = (
            0.5 if round_ % 3 == 2 or drop <= 0 else min(max(math.log(at_low / target) / drop, 0.02), 0.98)
        )
        middle = low + share * (high - low)
        at = tail(middle)
        if at <= target:
            high, at_high = middle, at
        else:
            low, at_low = middle, at
    return float(high)


def _at(values: object, index: int) -> float:
    flat = np.asarray(values).reshape(-1)
    return float(flat[index if len(flat) > 1 else 0])

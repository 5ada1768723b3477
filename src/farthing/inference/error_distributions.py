"""How far off the cells of an answer are: standard errors at once, errors at a confidence when asked.

A distribution is cheap to make, since a planner makes thousands: only the terms are stored. Standard errors are closed
forms; errors at a confidence come from the exact distribution of the noise (see `noise_sums`), once for each kind of
cell; from the worst of several cases; or, for the ratio of two sums, from Fieller's interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.gaussian_sums import normal_errors, wide_errors
from farthing.inference.noise_sums import checked_confidence, errors_of_many, tails_of_many
from farthing.inference.noise_terms import Floats, Parts, Term, parts_of, variance_of, variance_of_parts
from farthing.inference.normal_quantiles import normal_quantiles

_ROUNDS = 3
_SETTLED = 1e-12  # of an error: an end that is off by less is left there


@dataclass(frozen=True, eq=False)
class Measured:
    """Numbers, one for each cell, and the terms of the noise in them. No terms: known exactly.

    Args:
        values: The numbers, one for each cell.
        terms: The noise in each of them. Without any, the numbers are known exactly.

    Raises:
        InvalidValue: If a term is over other cells than the values.

    >>> Measured(1000.0, (Term("laplace", 5.0),)).variances.round(2)
    array([49.83])
    """

    values: Floats
    terms: tuple[Term, ...] = ()

    def __init__(self, values: ArrayLike, terms: Iterable[Term] = ()) -> None:
        object.__setattr__(self, "values", np.atleast_1d(np.asarray(values, dtype=float)))
        object.__setattr__(self, "terms", tuple(terms))
        for term in self.terms:
            for part in (term.coefficient, term.count):
                if np.shape(part) not in ((), self.values.shape):
                    raise InvalidValue("terms", np.shape(part), "must be over the same cells as the values")

    @cached_property
    def variances(self) -> Floats:
        """The variance of the noise in every cell."""
        total = np.zeros_like(self.values)
        for term in self.terms:
            total = total + term.variance
        return total


@dataclass(frozen=True, eq=False)
class JointNoise:
    """The noises in several measurements of the same cells, each once, and what it is multiplied by in each of them.

    Arrays have a row for each noise and a column for each cell; `coefficients` has one of them for each measurement.
    Errors of `rough` noise are estimates, to a few percent and the steps that whole numbers take.
    """

    kinds: tuple[str, ...]
    scales: tuple[float, ...]
    counts: Floats
    coefficients: tuple[Floats, ...]
    rough: bool = False

    @classmethod
    def of(cls, *measured: Measured) -> JointNoise:
        """The noises of the measurements; terms of one source are one noise."""
        cells = len(measured[0].values)
        alike: dict[object, Term] = {}
        factors: list[dict[object, Floats]] = [{} for _ in measured]
        for own, one in zip(factors, measured, strict=True):
            for term in one.terms:
                key = (term.source,) if term.source is not None else object()
                first = alike.setdefault(key, term)
                if key in own or (term.kind, term.scale) != (first.kind, first.scale):
                    raise InvalidValue("source", term.source, "must stand for one noise, once in a measurement")
                own[key] = np.broadcast_to(np.asarray(term.coefficient, dtype=float), (cells,))
        counts = [np.broadcast_to(np.asarray(term.count, dtype=float), (cells,)) for term in alike.values()]
        nothing = np.zeros(cells)
        return cls(
            tuple(term.kind for term in alike.values()),
            tuple(term.scale for term in alike.values()),
            np.array(counts).reshape(-1, cells),
            tuple(np.array([own.get(key, nothing) for key in alike]).reshape(-1, cells) for own in factors),
        )

    @cached_property
    def variances(self) -> Floats:
        """The variance of every noise with the coefficient 1."""
        each = [variance_of(kind, scale) for kind, scale in zip(self.kinds, self.scales, strict=True)]
        return np.asarray(self.counts * np.reshape(each, (-1, 1)))

    def repeated(self, times: int = 2) -> JointNoise:
        """The same for all cells and, after them, for all cells again."""
        return JointNoise(
            self.kinds,
            self.scales,
            np.tile(self.counts, times),
            tuple(np.tile(own, times) for own in self.coefficients),
            self.rough,
        )

    def products(self, one: Floats, other: Floats) -> Floats:
        """The covariances of two sums of the noises with these coefficients."""
        return np.asarray(np.sum(one * other * self.variances, axis=0))

    def errors(self, coefficients: Floats, confidence: float | Floats) -> Floats:
        """What sums of the noises with these coefficients stay within at a confidence, or at one for each."""
        if self.rough:
            return self._estimates(coefficients, confidence)
        of_these = normal_errors if "laplace" not in self.kinds else wide_errors
        errors = of_these(self.kinds, self.scales, self.counts, coefficients, confidence)
        levels = np.broadcast_to(confidence, errors.shape)
        left = np.isnan(errors)
        counts = self.counts.astype(int)
        for level in np.unique(levels[left]).tolist():
            others = np.flatnonzero(left & (levels == level)).tolist()
            sums = [
                parts_of(zip(self.kinds, self.scales, coefficients[:, j].tolist(), counts[:, j].tolist(), strict=True))  # type: ignore[arg-type]
                for j in others
            ]
            errors[others] = errors_of_many(sums, level)
        return errors

    def _estimates(self, coefficients: Floats, confidence: float | Floats) -> Floats:
        """Quantiles between the normal's and Laplace's, by how much of the fourth moment is that of Laplace noise."""
        squares = coefficients**2 * self.variances
        total = np.maximum(squares.sum(axis=0), 1e-300)
        heavy = np.array([[kind == "laplace"] for kind in self.kinds])
        excess = np.sum(heavy * squares**2 / np.maximum(self.counts, 1.0), axis=0) / total**2
        missed = 1 - np.asarray(confidence, dtype=float)
        normal, laplace = -normal_quantiles(missed / 2), -np.log(missed) / math.sqrt(2)
        return np.asarray((normal + (laplace - normal) * np.minimum(excess, 1)) * np.sqrt(total))


@dataclass(frozen=True, eq=False)
class Ratio:
    """The ratio of two measurements, which is known to lie in [least, most]. They may have noises in common.

    Args:
        numerator: What is divided.
        denominator: What it is divided by, over the same cells.
        least: The least that the ratio can be.
        most: The most that the ratio can be.
        rough: Whether intervals are estimates, found at once: to be looked at, not to be released.

    Raises:
        InvalidValue: If the two are over different cells, or `least` is above `most`.

    Statement:
        Let S, N > 0 be the exact numbers, S~ and N~ the measured ones, r = S / N. Then S~ - r N~ is the noise of S
        minus r times the noise of N: the sum of (a_k - r b_k) n_k, where the noise n_k is in S with the coefficient a_k
        and in N with b_k. Its distribution is known for every r. So the set of all r in [least, most] with
        |S~ - r N~| <= e(r), where e(r) holds the share `confidence` of that noise, holds the true r with
        probability at least `confidence`. If N~ exceeds the error of its own noise the set is an interval; else
        [least, most] is given, which holds it.
    Source: Fieller 1954, "Some problems in interval estimation", JRSS B 16(2), with the exact distribution of the noise
        in place of the normal one.
    Assumes: the n_k are independent of each other; least <= S / N <= most.
    Direction: the interval is rounded outward; coverage is at least the confidence.
    Checked by: tests/theorems/test_ratios.py

    >>> income = Ratio(Measured(41_230e3, [Term("laplace", 2.5e5)]), Measured(1000, [Term("laplace", 1.0)]), 0, 250e3)
    >>> income.values, income.standard_errors.round(1)
    (array([41230.]), array([358.]))
    >>> low, high = income(0.95)
    >>> low.round(0), high.round(0)
    (array([40475.]), array([41986.]))
    """

    numerator: Measured
    denominator: Measured
    least: float = -math.inf
    most: float = math.inf
    rough: bool = False

    def __post_init__(self) -> None:
        if self.numerator.values.shape != self.denominator.values.shape:
            raise InvalidValue(
                "denominator", self.denominator.values.shape, "must be over the same cells as the numerator"
            )
        if not self.least <= self.most:
            raise InvalidValue("least", self.least, f"must be at most most={self.most}")

    @cached_property
    def values(self) -> Floats:
        """The quotients, within the bounds; a denominator below 1 counts as 1."""
        return np.clip(self.numerator.values / np.maximum(self.denominator.values, 1.0), self.least, self.most)

    @cached_property
    def noise(self) -> JointNoise:
        """The noises of the two."""
        return replace(JointNoise.of(self.numerator, self.denominator), rough=self.rough)

    @cached_property
    def standard_errors(self) -> Floats:
        """To first order: the noise of S - r N over N, and never more than half the range allows."""
        top, bottom = self.noise.coefficients
        left = top - self.values * bottom
        noise = np.sqrt(self.noise.products(left, left))
        return np.minimum(noise / np.maximum(self.denominator.values, 1.0), self.most - self.least)

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return self.at_levels([confidence])[0]

    def at_levels(self, levels: Sequence[float]) -> list[tuple[Floats, Floats]]:
        """Lower and upper ends at each of several confidences, found together.

        Args:
            levels: The confidences.

        Returns:
            The lower and the upper ends at each of them.

        Raises:
            InvalidValue: If a confidence is not between 0 and 1.

        >>> share = Ratio(Measured(50.0, [Term("normal", 5.0)]), Measured(100.0), 0.0, 1.0)
        >>> [round(float(high[0]), 3) for low, high in share.at_levels([0.5, 0.95])]
        [0.534, 0.598]
        """
        count, cells = len(levels), len(self.values)
        confidence = np.repeat([checked_confidence(level) for level in levels], cells)
        noise = self.noise.repeated(2 * count)
        top, bottom = noise.coefficients
        lower, upper = fieller_ends(
            np.tile(self.numerator.values, count),
            np.tile(self.denominator.values, count),
            noise,
            lambda _: top,
            bottom,
            np.tile(confidence, 2),
            self.least,
            self.most,
        )
        return list(zip(lower.reshape(count, cells), upper.reshape(count, cells), strict=True))


class Levels(Protocol):
    """An interval that is found at several confidences at once."""

    def at_levels(self, levels: Sequence[float]) -> list[tuple[Floats, Floats]]:
        """Lower and upper ends at each of several confidences."""


@dataclass(frozen=True, eq=False)
class KeptInterval:
    """An interval about a middle; what was found is kept.

    >>> ratio = Ratio(Measured(50.0, [Term("normal", 5.0)]), Measured(100.0), -1.0, 1.0)
    >>> low, high = KeptInterval(ratio, 7.0)(0.95)
    >>> low.round(3), high.round(3)
    (array([7.402]), array([7.598]))
    """

    interval: Levels
    middle: float = 0.0
    _ends: dict[float, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return self.at_levels([confidence])[0]

    def at_levels(self, levels: Sequence[float]) -> list[tuple[Floats, Floats]]:
        """Lower and upper ends at each of several confidences."""
        new = [level for level in dict.fromkeys(levels) if level not in self._ends]
        if new:
            for level, (low, high) in zip(new, self.interval.at_levels(new), strict=True):
                self._ends[level] = low + self.middle, high + self.middle
        return [self._ends[level] for level in levels]


def fieller_ends(
    top: Floats,
    bottom: Floats,
    noise: JointNoise,
    above: Callable[[Floats], Floats],
    below: Floats,
    confidence: float | Floats,
    least: float,
    most: float,
) -> tuple[Floats, Floats]:
    """The ends of {r: |S~ - r N~| <= e(r)}, e(r) the error of noises with the coefficients above(r) - r below.

    `noise`, `above` and `below` are over all cells twice: for the lower ends, then for the upper ones; `confidence` is
    too, or one for all. `above` may change with r, by less than nothing: the absolute value of a coefficient changes
    by at most |below| times as much as r does.
    """
    cells = len(top)
    s, n, side = np.tile(top, 2), np.tile(bottom, 2), np.repeat([-1.0, 1.0], cells)
    variance_n = noise.products(below, below)
    ends = np.clip(s / np.where(n > 0, n, 1.0), least, most)
    over = above(ends)
    levels = np.tile(np.broadcast_to(confidence, 2 * cells), 2)
    alone, error = np.split(noise.repeated().errors(np.hstack([below, over - ends * below]), levels), 2)
    lost = ~(n > np.maximum(alone, 0.0))
    for _ in range(_ROUNDS):
        # e(r) is k times the deviation of the noise, with k nearly constant: a quadratic for r, then a better k.
        left = over - np.where(lost, 0.0, ends) * below
        k = error / np.sqrt(np.maximum(noise.products(left, left), 1e-300))
        leading = n**2 - k**2 * variance_n
        lost |= ~(leading > 0)
        a = np.where(lost, 1.0, leading)
        variance_s, both = noise.products(over, over), noise.products(over, below)
        inner = n**2 * variance_s - 2 * s * n * both + s**2 * variance_n
        root = k * np.sqrt(np.maximum(inner - k**2 * (variance_s * variance_n - both**2), 0.0))
        ends = np.where(lost, 0.0, (s * n - k**2 * both + side * root) / a)
        ends = np.clip(ends, least, most)
        over = above(ends)
        error = noise.errors(over - ends * below, confidence)
        gap = error - side * (ends * n - s)
        if np.all(lost | (np.abs(gap) <= _SETTLED * error) | (ends <= least) | (ends >= most)):
            break
    # What the last round left open is closed outward; the slope of the gap is at least n minus k deviations of N.
    gap = np.maximum(gap, 0.0)
    slope = np.where(lost, 1.0, n - k * np.sqrt(variance_n))
    ends = ends + side * 2 * np.where(slope > 0, gap / np.where(slope > 0, slope, 1.0), math.inf)
    ends = np.clip(np.where(lost, side * math.inf, ends), least, most)
    return ends[:cells], ends[cells:]


_MOST_KINDS = 64  # of cells, when coverage is averaged over unequal ones
_PRECISION = 3e-5
_ALIKE = 2.0  # of two sums of noises at one confidence, the one with half the standard error is not the wider one


class ErrorDistribution:
    """The distribution of the errors of an answer's cells, each a sum of independent terms of noise.

    Args:
        terms: Independent terms of noise. The `coefficient` and `count` of a term may be arrays over the cells. Cells
            need not be independent of one another.
        cells: How many cells there are, where no term has an array.

    Raises:
        InvalidValue: If the terms' arrays are over different cells.

    >>> distribution = ErrorDistribution([Term("laplace", 10.0, count=np.array([1, 1, 4]))])
    >>> distribution.standard_errors.round(2), round(distribution.standard_error, 2)
    (array([14.14, 14.14, 28.27]), 19.99)
    >>> distribution.errors(0.95), round(distribution.error(0.95), 2)
    (array([30., 30., 57.]), 43.0)
    """

    def __init__(self, terms: Iterable[Term], cells: int | None = None) -> None:
        self.terms = tuple(terms)
        shapes = [
            part.shape for term in self.terms for part in (term.coefficient, term.count) if isinstance(part, np.ndarray)
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
        """For every cell the least e (or a hair more) that its error stays within at the confidence.

        Args:
            confidence: A probability between 0 and 1.

        Returns:
            One error for each cell.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.
        """
        kinds, place, _ = self._kinds
        return np.asarray(errors_of_many(kinds, checked_confidence(confidence))[place])

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together.

        Where all cells have one distribution, this is the error of each. Where they differ, it is the e at which the
        coverage, averaged over the cells, reaches the confidence.

        Args:
            confidence: A probability between 0 and 1.

        Returns:
            The error.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.
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

        Args:
            confidence: A probability between 0 and 1.

        Returns:
            The largest error.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.

        >>> ErrorDistribution([Term("laplace", 10.0, count=np.array([1, 1, 4]))]).worst(0.95)
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

    def scaled(self, factor: float) -> ErrorDistribution:
        """The distribution of the errors times a factor: the same answer in other units.

        Args:
            factor: What every error is multiplied by.

        Returns:
            The distribution in the new units.

        >>> ErrorDistribution([Term("normal", 2.0)]).scaled(10).standard_error
        20.0
        """
        return ErrorDistribution(
            [Term(t.kind, t.scale, np.multiply(t.coefficient, factor), t.count) for t in self.terms],
            self.cells,
        )

    def cell(self, index: int) -> ErrorDistribution:
        """The distribution of one cell.

        Args:
            index: Which cell, from 0 on.

        Returns:
            The distribution of its error alone.
        """
        at = range(self.cells)[index]
        return ErrorDistribution(
            [Term(t.kind, t.scale, float(_at(t.coefficient, at)), int(_at(t.count, at))) for t in self.terms]
        )

    @cached_property
    def _kinds(self) -> tuple[list[Parts], NDArray[np.intp], Floats]:
        """The distinct distributions of cells, which one each cell has, and how many have each."""
        if self.cells == 0:
            return [], np.zeros(0, dtype=np.intp), np.zeros(0)
        if all(np.size(t.coefficient) == np.size(t.count) == 1 for t in self.terms):
            one = parts_of((t.kind, t.scale, float(_at(t.coefficient, 0)), int(_at(t.count, 0))) for t in self.terms)
            return [one], np.zeros(self.cells, dtype=np.intp), np.array([float(self.cells)])
        rows = np.empty((2 * len(self.terms), self.cells))
        for i, term in enumerate(self.terms):
            rows[2 * i], rows[2 * i + 1] = np.abs(term.coefficient), term.count
        distinct, place, counts = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
        kinds = [
            parts_of((t.kind, t.scale, float(column[2 * i]), int(column[2 * i + 1])) for i, t in enumerate(self.terms))
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


class StatedDistribution(ErrorDistribution):
    """A distribution known only by what it says: standard errors, and a function from confidence to errors.

    Args:
        standard_errors: One for each cell.
        errors: Maps a confidence to one error for each cell.

    >>> distribution = StatedDistribution([1.0, 1.0], lambda confidence: np.array([2.0, 2.0]))
    >>> distribution.error(0.95), distribution.standard_error
    (2.0, 1.0)
    """

    def __init__(self, standard_errors: ArrayLike, errors: Callable[[float], ArrayLike]) -> None:
        self._stated = np.atleast_1d(np.asarray(standard_errors, dtype=float))
        self._errors = cache(errors)  # a plan shows the error at one level in several places
        super().__init__((), len(self._stated))

    @cached_property
    def standard_errors(self) -> Floats:
        return self._stated

    def errors(self, confidence: float = 0.95) -> Floats:
        errors = np.asarray(self._errors(checked_confidence(confidence)), dtype=float)
        return np.array(np.broadcast_to(errors, (self.cells,)))

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
        return float(self.errors(confidence).max(initial=0.0))

    def scaled(self, factor: float) -> ErrorDistribution:
        """The distribution of the errors times a factor."""
        size = abs(float(factor))
        return StatedDistribution(self._stated * size, lambda confidence: self.errors(confidence) * size)

    def cell(self, index: int) -> ErrorDistribution:
        """The distribution of one cell."""
        return StatedDistribution(self._stated[index], lambda confidence: self.errors(confidence)[index])


def errors_of_distributions(distributions: Sequence[ErrorDistribution], confidence: float = 0.95) -> Floats:
    """`error(confidence)` of many distributions in one pass over arrays, for plans of many statistics.

    Args:
        distributions: The distributions.
        confidence: A probability between 0 and 1.

    Returns:
        One error for each distribution.

    Raises:
        InvalidValue: If `confidence` is not between 0 and 1.

    >>> distributions = [ErrorDistribution([Term("laplace", 10.0 + i, count=4)]) for i in range(3)]
    >>> errors_of_distributions(distributions), distributions[1].error(0.95)
    (array([57., 63., 68.]), 63.0)
    """
    level = checked_confidence(confidence)
    errors = np.zeros(len(distributions))
    alike: list[tuple[int, Parts]] = []
    for place, distribution in enumerate(distributions):
        if isinstance(distribution, StatedDistribution) or len(distribution._kinds[0]) != 1:
            errors[place] = distribution.error(level)
        else:
            alike.append((place, distribution._kinds[0][0]))
    if alike:
        errors[[place for place, _ in alike]] = errors_of_many([parts for _, parts in alike], level)
    return errors


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
        share = 0.5 if round_ % 3 == 2 or drop <= 0 else min(max(math.log(at_low / target) / drop, 0.02), 0.98)
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


CASES = 4096
_FARTHEST = 1e-8  # from an end of a coordinate, where ends matter
_FEWEST_BEYOND = 40  # cases beyond a quantile that is read off them


@cache
def even_cases(dimensions: int, cases: int = CASES) -> Floats:
    """Points that fill the unit cube evenly: cases x dimensions, each coordinate in (0, 1).

    The additive recurrence with the powers of 1 / phi_d, phi_d the positive root of x^(d + 1) = x + 1 (M. Roberts 2018,
    "The unreasonable effectiveness of quasirandom sequences").

    >>> even_cases(2, 3).round(3)
    array([[0.255, 0.07 ], [0.01 , 0.64 ], [0.765, 0.21 ]])
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.arange(1, cases + 1)[:, None] * steps) % 1.0)


@cache
def tail_cases(dimensions: int, cases: int = CASES) -> tuple[Floats, Floats]:
    """Points of the unit cube, half of each coordinate's near its ends, and the probability that each stands for.

    An end is reached as often in every power of ten down to 1e-8, so that what happens once in a million cases is among
    a few thousand. Weights are those of importance sampling: one over the density, adding up to 1.

    >>> points, weights = tail_cases(1)
    >>> round(float(weights.sum()), 6), round(1000 * float(weights[points[:, 0] < 0.001].sum()), 1)
    (1.0, 1.0)
    """
    shares = even_cases(dimensions, cases)
    span = np.log(0.5 / _FARTHEST)
    side = np.where(shares < 0.75, 4 * shares - 2, 4 * (1 - shares))  # 0.5 .. 0.75 below, 0.75 .. 1 above
    tail = 0.5 * np.exp(-span * np.clip(side, 0.0, 1.0))
    points = np.where(shares < 0.5, 2 * shares, np.where(shares < 0.75, tail, 1 - tail))
    nearest = np.minimum(points, 1 - points)
    density = 0.5 + np.where(nearest >= _FARTHEST, 0.5 / (2 * span * np.maximum(nearest, _FARTHEST)), 0.0)
    weights = np.prod(1 / density, axis=1)
    return points, weights / weights.sum()


def noise_at(kind: str, scale: float, shares: Floats) -> Floats:
    """Laplace or Gaussian noise at shares of its distribution, in whole steps.

    >>> noise_at("laplace", 10.0, np.array([0.025, 0.5, 0.975]))
    array([-30.,   0.,  30.])
    """
    return np.asarray(np.rint(scale * _standard_noise(kind, shares)))


def _standard_noise(kind: str, shares: Floats) -> Floats:
    if kind == "laplace":
        away = shares - 0.5
        return np.asarray(-np.sign(away) * np.log1p(-2 * np.minimum(np.abs(away), 0.5 - 1e-12)))
    return normal_quantiles(shares)


@cache
def noise_in_cases(kind: str, dimensions: int, *, tails: bool) -> Floats:
    """Noise of scale 1 at every coordinate of `tail_cases`, or of `even_cases`: many statistics are tried on the same.

    >>> noise_in_cases("gaussian", 2, tails=False)[:2].round(2)
    array([[-0.66, -1.48], [-2.34,  0.36]])
    """
    return _standard_noise(kind, tail_cases(dimensions)[0] if tails else even_cases(dimensions))


class SampledDistribution(StatedDistribution):
    """The distribution of errors in equally probable cases; `beyond` is one whose far ends have the same shape.

    A mean of few rows is a ratio of two noisy numbers, cut at its bounds; a standard deviation is a root. Where the
    noise is small beside the numbers the first order is enough, and exact distributions are at hand. Where it is not,
    what is computed from the noisy numbers is computed from a few thousand cases instead, the same ones every time,
    spread evenly over all that the noise can do.

    >>> distribution = SampledDistribution(np.linspace(-1, 1, 4001)[:, None], ErrorDistribution((), 1))
    >>> round(distribution.error(0.95), 2), round(distribution.standard_error, 3)
    (0.95, 0.577)
    """

    def __init__(self, errors: NDArray[np.float64], beyond: ErrorDistribution, most: ArrayLike = np.inf) -> None:
        self._sizes = np.sort(np.abs(np.asarray(errors, dtype=float)), axis=0)
        self._beyond, self._most = beyond, np.asarray(most, dtype=float)
        super().__init__(np.sqrt(np.mean(self._sizes**2, axis=0)), self._at)

    def _at(self, confidence: float) -> Floats:
        level = min(confidence, 1 - _FEWEST_BEYOND / len(self._sizes))
        sizes = self._sizes[int(np.ceil(level * len(self._sizes))) - 1]
        if confidence > level:  # too few cases lie so far out: as the other distribution does from there on
            inner, outer = self._beyond.errors(level), self._beyond.errors(confidence)
            sizes = sizes * np.where(inner > 0, outer / np.where(inner > 0, inner, 1.0), 1.0)
        return np.asarray(np.minimum(sizes, self._most))

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        level = checked_confidence(confidence)
        if level > 1 - _FEWEST_BEYOND / len(self._sizes) or self.cells == 1:
            return float(np.max(self.errors(level), initial=0.0))
        every = np.sort(self._sizes, axis=None)
        return float(every[int(np.ceil(level * len(every))) - 1])


class WorstDistribution(StatedDistribution):
    """Of several distributions the largest error of every cell: what holds whichever of them is the true one.

    >>> from farthing.inference import Term
    >>> cases = [ErrorDistribution([Term("normal", deviation)]) for deviation in (1.0, 3.0)]
    >>> WorstDistribution(cases).standard_error
    3.0
    """

    def __init__(self, distributions: Sequence[ErrorDistribution], most: float = np.inf) -> None:
        errors = np.max([distribution.standard_errors for distribution in distributions], axis=0)
        super().__init__(
            np.minimum(errors, most),
            lambda level: np.minimum(
                np.max([distribution.errors(level) for distribution in distributions], axis=0), most
            ),
        )


class RootDistribution(StatedDistribution):
    """The distribution of a square root's error, whatever the number under it: |sqrt(v + e) - sqrt(v)| <= sqrt(|e|).

    The mean square is at most half the mean of |e| at v = 0, where only errors above zero are left, and hardly more
    elsewhere.

    >>> from farthing.inference import Term
    >>> RootDistribution(ErrorDistribution([Term("normal", 8.0)])).standard_error
    2.0
    """

    def __init__(self, distribution: ErrorDistribution, most: float = np.inf) -> None:
        super().__init__(
            np.minimum(np.sqrt(distribution.standard_errors / 2), most),
            lambda level: np.minimum(np.sqrt(distribution.errors(level)), most),
        )

"""Ratios of noisy numbers, such as means: intervals that hold their share however noisy the denominator is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.noise_sums import checked_confidence, errors_of_many
from farthing.inference.noise_terms import Floats, Parts, Term, parts_of

_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Measured:
    """Numbers, one for each cell, and the terms of the noise in them. No terms: known exactly.

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

    def columns(self, factor: Floats) -> list[tuple[str, float, Floats, Floats]]:
        """Every term over all cells, its coefficient times `factor`."""
        shape = self.values.shape
        return [
            (
                term.kind,
                term.scale,
                np.broadcast_to(term.coefficient, shape) * factor,
                np.broadcast_to(term.count, shape),
            )
            for term in self.terms
        ]


@dataclass(frozen=True, eq=False)
class Ratio:
    """numerator / denominator, two measurements with independent noise; known to lie in [least, most].

    Statement:
        Let S, N > 0 be the exact numbers, S~ and N~ the measured ones, r = S / N. Then S~ - r N~ is the noise of S
        minus r times the noise of N, whose law is known for every r. So the set of all r in [least, most] with
        |S~ - r N~| <= e(r), where e(r) holds the share `confidence` of that noise, holds the true r with
        probability at least `confidence`. If N~ exceeds the error of its own noise the set is an interval; else
        [least, most] is given, which holds it.
    Source: Fieller 1954, "Some problems in interval estimation", JRSS B 16(2), with the exact law of the noise in
        place of the normal one.
    Assumes: the noises of S and N are independent; least <= S / N <= most.
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
        return np.clip(
            self.numerator.values / np.maximum(self.denominator.values, 1.0), self.least, self.most
        )

    @cached_property
    def standard_errors(self) -> Floats:
        """To first order: the noise of S - r N over N, and never more than half the range allows."""
        noise = np.sqrt(self.numerator.variances + self.values**2 * self.denominator.variances)
        return np.minimum(noise / np.maximum(self.denominator.values, 1.0), self.most - self.least)

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return fieller_ends(
            self.numerator, self.denominator, checked_confidence(confidence), self.least, self.most
        )


def fieller_ends(
    top: Measured,
    bottom: Measured,
    confidence: float,
    least: ArrayLike,
    most: ArrayLike,
    extra: ArrayLike = 0.0,
) -> tuple[Floats, Floats]:
    """The ends of {r: |S~ - r N~| <= e(r)}; `extra` is added to |r| where it multiplies the noise of N."""
    shape = top.values.shape
    s, n = np.tile(top.values, 2), np.tile(bottom.values, 2)
    floor, ceiling, extra = (np.tile(np.broadcast_to(x, shape), 2) for x in (least, most, extra))
    side = np.repeat([-1.0, 1.0], len(top.values))
    variance_s, variance_n = np.tile(top.variances, 2), np.tile(bottom.variances, 2)
    alone = np.tile(errors_of_many(_sums(None, bottom, np.ones(shape)), confidence), 2)
    safe_n = np.where(n > 0, n, 1.0)
    ends = np.clip(s / safe_n, floor, ceiling)
    error = _error(top, bottom, np.abs(ends) + extra, confidence)
    lost = ~(n > np.maximum(alone, 0.0))
    for _ in range(_ROUNDS):
        # e(r) is k times the deviation of the noise, with k nearly constant: a quadratic for r, then a better k.
        reach = np.abs(ends) + extra
        k = error / np.sqrt(np.maximum(variance_s + reach**2 * variance_n, 1e-300))
        fixed = variance_s + (reach**2 - ends**2) * variance_n
        leading = n**2 - k**2 * variance_n
        lost |= ~(leading > 0)
        a = np.where(lost, 1.0, leading)
        root = k * np.sqrt(np.maximum(fixed * a + s**2 * variance_n, 0.0))
        ends = np.clip(np.where(lost, side * math.inf, (s * n + side * root) / a), floor, ceiling)
        error = _error(top, bottom, np.where(lost, 0.0, np.abs(ends)) + extra, confidence)
    # What the last round left open is closed outward; the slope of the gap is at least n minus k deviations of N.
    gap = np.maximum(error - side * (ends * n - s), 0.0)
    slope = np.where(lost, 1.0, n - k * np.sqrt(variance_n))
    ends = np.where(lost, side * math.inf, ends + side * 2 * np.where(slope > 0, gap / slope, math.inf))
    ends = np.clip(ends, floor, ceiling)
    half = len(top.values)
    return ends[:half], ends[half:]


def _error(top: Measured, bottom: Measured, factor: Floats, confidence: float) -> Floats:
    """e(r) for both sides' factors, one after the other."""
    half = len(top.values)
    sums = _sums(top, bottom, factor[:half]) + _sums(top, bottom, factor[half:])
    return errors_of_many(sums, confidence)


def _sums(top: Measured | None, bottom: Measured, factor: Floats) -> list[Parts]:
    """The noise of S minus `factor` times that of N, cell by cell."""
    columns = bottom.columns(factor)
    if top is not None:
        columns += top.columns(np.ones_like(factor))
    return [
        parts_of((kind, scale, float(sizes[j]), int(counts[j])) for kind, scale, sizes, counts in columns)  # type: ignore[misc]
        for j in range(len(factor))
    ]

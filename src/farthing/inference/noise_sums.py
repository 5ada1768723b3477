"""The law of a sum of independent noises: how far off an answer is, at a confidence.

Closed forms for one term and for normal limits, an integral in the complex plane for wide noise, a Fourier transform
on short lattices, a Fourier series for the rest. Every error is rounded outward: it holds at least the asked share,
and by less than 1e-4 more than it must (short of the steps that whole numbers take).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Protocol

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.mixed_sums import (
    MixedSum,
    SeriesSum,
    mixed_errors,
    mixed_sum,
    mixed_tails,
    series_sum,
)
from farthing.inference.noise_terms import (
    Floats,
    Kind,
    Parts,
    Term,
    chernoff_radius,
    lattice_sum,
    parts_of,
    variance_of_parts,
)
from farthing.inference.wide_sums import SMALLEST_TAIL, WideSum, errors_of, tails_of, wide_sum
from farthing.privacy.events import checked_real

_NORMAL = NormalDist()
_OUTWARD = 1 + 1e-9
_STEPS_TO_BE_NORMAL = 4


class SumLaw(Protocol):
    """The law of a sum: both answers err on the side of more error."""

    def tail(self, x: float) -> float:
        """P[|X| > x] or a little more."""

    def error(self, confidence: float) -> float:
        """An e with P[|X| <= e] >= confidence."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No noise at all."""

    def tail(self, x: float) -> float:
        """Zero from zero on."""
        return 0.0 if x >= 0 else 1.0

    def error(self, confidence: float) -> float:
        """Zero."""
        return 0.0


@dataclass(frozen=True, slots=True)
class OneLaplace:
    """`size` times one discrete Laplace noise: P[|n| > k] = 2 r^(k + 1) / (1 + r) with r = exp(-1 / scale)."""

    scale: float
    size: float

    def tail(self, x: float) -> float:
        """The closed form."""
        if x < 0:
            return 1.0
        k = math.floor(x / self.size * (1 + 1e-12))
        r = math.exp(-1 / self.scale)
        return min(1.0, 2 * math.exp(-(k + 1) / self.scale) / (1 + r))

    def error(self, confidence: float) -> float:
        """The least multiple of `size` that holds the share."""
        r = math.exp(-1 / self.scale)
        k = self.scale * math.log(2 / ((1 + r) * (1 - confidence))) - 1
        return self.size * max(0, math.ceil(k - 1e-12 * (1 + self.scale)))


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal law, or one on a lattice of `step` that is normal midway between its points."""

    deviation: float
    step: float = 0.0
    ripple: float = 0.0

    def tail(self, x: float) -> float:
        """The normal's tail, midway between two points of the lattice."""
        if x < 0:
            return 1.0
        if self.step:
            x = (math.floor(x / self.step * (1 + 1e-12)) + 0.5) * self.step
        return min(1.0, math.erfc(x / self.deviation / math.sqrt(2)) * _OUTWARD + self.ripple)

    def error(self, confidence: float) -> float:
        """The normal's quantile, outward to the lattice."""
        tail = (1 - confidence - self.ripple) / 2
        x = -_NORMAL.inv_cdf(tail) * self.deviation * _OUTWARD if tail > 0 else math.inf
        return self.step * max(0, math.ceil(x / self.step - 0.5)) if self.step and x < math.inf else x


@lru_cache(maxsize=16384)
def law_of(parts: Parts) -> SumLaw:
    """The law of the sum of normalised terms, by the first method that suits it."""
    if not parts:
        return Nothing()
    kind, scale, size, count = parts[0]
    if len(parts) == 1 and count == 1:
        if kind == "laplace":
            return OneLaplace(scale, size)
        if kind == "normal":
            return Normal(size * scale)
    wide = wide_sum(parts)
    if wide is not None:
        if any(part[0] == "laplace" for part in parts):
            return wide
        steps = wide.deviation / wide.step if wide.step else math.inf
        if steps >= _STEPS_TO_BE_NORMAL:
            # Midway between points of the lattice the law is that of a normal whose variance lacks step^2 / 12
            # (Sheppard's correction); what comes next in the Euler-Maclaurin series is of the fourth order.
            deviation = wide.deviation * math.sqrt(1 - 1 / (12 * steps**2))
            return Normal(deviation, wide.step, wide.ripple + 4e-3 / steps**4)
    return lattice_sum(parts) or mixed_sum(parts) or series_sum(parts)


def error_of_sum(terms: Iterable[Term], confidence: float = 0.95) -> float:
    """The least e (or a hair more) with P[|sum of the terms| <= e] >= confidence.

    >>> error_of_sum([Term("laplace", 10.0, count=4)])
    57.0
    >>> error_of_sum([Term("gaussian", 3.0), Term("gaussian", 4.0)])
    10.0
    """
    return error_of_parts(parts_of(map(_scalar, terms)), checked_confidence(confidence))


def tail_of_sum(terms: Iterable[Term], x: float) -> float:
    """P[|sum of the terms| > x], or up to 1e-4 more.

    >>> round(tail_of_sum([Term("laplace", 10.0)], 29), 4)
    0.0523
    """
    return law_of(parts_of(map(_scalar, terms))).tail(checked_real(x, "x"))


def error_of_parts(parts: Parts, confidence: float) -> float:
    """The error of one normalised sum."""
    law = law_of(parts)
    if 1 - confidence < SMALLEST_TAIL and not isinstance(law, Nothing | OneLaplace):
        rough = isinstance(law, WideSum | MixedSum | SeriesSum)
        exact = lattice_sum(parts) if rough else law  # where there is a lattice, tails are right to 1e-12
        found = exact.error(confidence) if exact else math.inf
        return min(found, chernoff_radius(parts, 1 - confidence))
    found = law.error(confidence)
    return found if found < math.inf else chernoff_radius(parts, 1 - confidence)


def errors_of_many(sums: Sequence[Parts], confidence: float) -> Floats:
    """The error of every sum at once; sums that need arrays share one pass over them."""
    errors = np.zeros(len(sums))
    wide: dict[int, WideSum] = {}
    mixed: dict[int, MixedSum] = {}
    far = 1 - confidence < SMALLEST_TAIL
    for place, parts in enumerate(sums):
        law = law_of(parts)
        if isinstance(law, WideSum) and not far:
            wide[place] = law
        elif isinstance(law, MixedSum) and not far:
            mixed[place] = law
        else:
            errors[place] = error_of_parts(parts, confidence)
    if wide:
        errors[list(wide)] = errors_of(list(wide.values()), confidence)
    if mixed:
        errors[list(mixed)] = mixed_errors(list(mixed.values()), confidence)
    return errors


def tails_of_many(sums: Sequence[Parts], x: float) -> Floats:
    """P[|X_j| > x] for every sum, or a little more."""
    tails = np.zeros(len(sums))
    wide: dict[int, WideSum] = {}
    mixed: dict[int, MixedSum] = {}
    for place, parts in enumerate(sums):
        law = law_of(parts)
        if isinstance(law, WideSum):
            wide[place] = law
        elif isinstance(law, MixedSum):
            mixed[place] = law
        else:
            tails[place] = law.tail(x)
    if wide:
        tails[list(wide)] = tails_of(list(wide.values()), np.full(len(wide), x))
    if mixed:
        tails[list(mixed)] = mixed_tails(list(mixed.values()), np.full(len(mixed), x))
    return tails


def deviation_of_sum(terms: Iterable[Term]) -> float:
    """The standard deviation of the sum.

    >>> deviation_of_sum([Term("gaussian", 3.0), Term("gaussian", 4.0)])
    5.0
    """
    return math.sqrt(variance_of_parts(parts_of(map(_scalar, terms))))


def checked_confidence(confidence: object) -> float:
    """`confidence` as a probability strictly between 0 and 1."""
    level = checked_real(confidence, "confidence")
    if not 0 < level < 1:
        way_out = "95% is 0.95" if 1 < level < 100 else "0.95 is a common choice"
        raise InvalidValue("confidence", confidence, "must be above 0 and below 1", way_out)
    return level


def _scalar(term: Term) -> tuple[Kind, float, float, int]:
    if np.ndim(term.coefficient) or np.ndim(term.count):
        raise InvalidValue("term", term, "must be one number, not an array", "use ErrorLaw for several cells")
    return term.kind, term.scale, float(term.coefficient), int(term.count)

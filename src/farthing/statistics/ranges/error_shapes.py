"""The distribution of an estimate from very many noises: its standard error, and a shape from normal to Laplace.

A least-squares estimate is a sum of all measured noises with coefficients c. For Gaussian noise that is normal. For
Laplace noise it lies between: the excess kurtosis is 3 sum c^4 / (sum c^2)^2, 3 for a single noise and next to nothing
for many. A distribution of that kurtosis stands for it, one Laplace noise beside a normal one: no other sum of Laplace
noises has so large a part of its variance in one noise, whose tail decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import ErrorDistribution, StatedDistribution, Term
from farthing.inference.answers import cut_interval
from farthing.inference.noise_sums import error_of_sum
from farthing.inference.noise_terms import variance_of

Floats = NDArray[np.float64]

_FINE = 4096.0  # steps in which Laplace noise is as good as continuous
_MOST_SIZES = 64


@dataclass(frozen=True)
class Shape:
    """Distributions with sum c^4 / (sum c^2)^2 from `least` to `most`: 0 is normal, 1 that of one Laplace noise.

    >>> Shape(0.0, 0.0).factor(0.95), Shape(1.0, 1.0).factor(0.95)
    (1.95..., 2.11...)
    """

    least: float
    most: float

    def factor(self, confidence: float) -> float:
        """By how many standard errors an estimate is off at most, at a confidence; of any distribution between."""
        return max(_factor(round(self.least, 3), confidence), _factor(round(self.most, 3), confidence))

    def terms(self, standard_errors: Floats) -> list[Term]:
        """The distribution of the most as terms of noise."""
        return _terms(self.most, standard_errors)

    @property
    def blurred(self) -> Shape:
        """The same with an unknown amount of normal error added."""
        return Shape(0.0, self.most)


NORMAL = Shape(0.0, 0.0)
UNKNOWN = Shape(0.0, 1.0)
"""Of a sum of Laplace noises about which nothing else is known."""


@lru_cache(maxsize=4096)
def _factor(share: float, confidence: float) -> float:
    return error_of_sum(_terms(share, 1.0), confidence)


def _terms(share: float, size: float | Floats) -> list[Term]:
    single = math.sqrt(min(max(share, 0.0), 1.0))  # of the variance
    return [
        Term("laplace", _FINE, size * math.sqrt(single / variance_of("laplace", _FINE))),
        Term("normal", 1.0, size * math.sqrt(1 - single)),
    ]


@dataclass(frozen=True, eq=False)
class ShapedErrors:
    """Standard errors of cells at noise of variance 1, and their shape; errors are found once and scaled."""

    deviations: Floats
    shape: Shape

    @cached_property
    def _errors(self) -> dict[float, float]:
        return {}

    def error(self, confidence: float) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        if confidence not in self._errors:
            blocks = np.array_split(np.sort(self.deviations), min(_MOST_SIZES, len(self.deviations)))
            sizes = np.array([block[-1] for block in blocks])
            self._errors[confidence] = ErrorDistribution(self.shape.terms(sizes), len(sizes)).error(confidence)
        return self._errors[confidence]


class ShapedDistribution(StatedDistribution):
    """Standard errors times one factor, whatever the confidence.

    >>> ShapedDistribution(ShapedErrors(np.array([1.0, 2.0]), NORMAL), 10.0).errors(0.95).round(1)
    array([19.6, 39.2])
    """

    def __init__(self, unit: ShapedErrors, deviation: float) -> None:
        own = unit.deviations * deviation
        super().__init__(own, lambda level: own * unit.shape.factor(level))
        self._unit, self._deviation = unit, deviation

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        return self._unit.error(confidence) * self._deviation


@dataclass(frozen=True, eq=False)
class ShapedInterval:
    """The interval `centre` plus and minus a factor of standard errors, cut off at `least`: counts are not negative."""

    centre: Floats
    standard_errors: Floats
    shape: Shape
    least: float = 0.0

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return cut_interval(self.centre, self.standard_errors * self.shape.factor(confidence), self.least)

    def stored(self) -> dict[str, Any]:
        """What it is made of, but for the standard errors, as JSON-ready data."""
        centre = [float(f"{value:.9g}") for value in self.centre]
        cut = self.least > -math.inf
        return {"centre": centre, "shape": [self.shape.least, self.shape.most], "cut": cut}

    @classmethod
    def restored(cls, form: Mapping[str, Any], standard_errors: Floats) -> ShapedInterval:
        """The interval that `stored` wrote down."""
        least = 0.0 if form["cut"] else -math.inf
        return cls(np.array(form["centre"], dtype=float), standard_errors, Shape(*form["shape"]), least)

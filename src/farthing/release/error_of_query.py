"""The law of one answer's error: the noises of a strategy, each times what it counts in the answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from farthing.inference.error_laws import ErrorLaw
from farthing.inference.terms import Kind, Term
from farthing.mechanisms import DiscreteLaplace
from farthing.release.strategies.base import Floats
from farthing.release.strategies.pricing import LevelNoise, Priced

_MOST_TERMS = 24


def error_law(one: Priced, query: Floats) -> ErrorLaw:
    """The exact law where few noises decide; where thousands do, the small ones together are taken as normal."""
    coefficients = one.estimator.coefficients(query)
    if coefficients is None:
        return ErrorLaw([Term("normal", float(np.sqrt(one.estimator.variance(query))))])
    terms = [
        (noise, size, count)
        for noise, own in zip(one.noises, coefficients, strict=True)
        if noise is not None
        for size, count in _grouped(own)
    ]
    terms.sort(key=lambda term: -(term[1] ** 2) * term[0].variance)
    rest = sum(size**2 * noise.variance * count for noise, size, count in terms[_MOST_TERMS:])
    found = [
        Term(_kind(noise), _scale(noise), float(size / noise.finer), count)
        for noise, size, count in terms[:_MOST_TERMS]
    ]
    return ErrorLaw([*found, *([Term("normal", float(np.sqrt(rest)))] if rest > 0 else [])])


def _grouped(coefficients: Floats) -> list[tuple[float, int]]:
    """Sizes of coefficients and how often each comes; those that are rounding are left out."""
    sizes = np.abs(np.ravel(coefficients))
    largest = float(sizes.max(initial=0.0))
    if not largest > 0:
        return []
    steps, counts = np.unique(np.rint(sizes[sizes > 1e-9 * largest] * (1e9 / largest)), return_counts=True)
    return list(zip((steps * (largest / 1e9)).tolist(), counts.tolist(), strict=True))


def _kind(noise: LevelNoise) -> Kind:
    return "laplace" if isinstance(noise.mechanism, DiscreteLaplace) else "gaussian"


def _scale(noise: LevelNoise) -> float:
    if isinstance(noise.mechanism, DiscreteLaplace):
        return noise.mechanism.scale
    return float(Fraction(noise.mechanism.noise_multiplier) * Fraction(noise.mechanism.l2_sensitivity))

"""What a planner reads off the events of a slot: sensitivities, the width of its noises and how strong they may be."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.cost_estimates import REAL_LAPLACE
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
)
from farthing.statistics.measurements import WIDE_SIGMA, Noise, Slot

Floats = NDArray[np.float64]

LAPLACE, GAUSSIAN, EXPONENTIAL = 0, 1, 2
"""Places of the kinds in arrays, in the order of `farthing.statistics.measurements.KINDS`."""

_LARGEST_EPSILON = 50.0  # what mechanisms accept
_STRONGEST = 8.0  # l2 sensitivity / sigma of a vector: beyond, the leak of its noise is not small
_NARROWEST = 4.5  # least (sigma^2 - narrowing) of a vector of Gaussian noise, in squared steps: 8 is refused


def facts_of(slot: Slot) -> tuple[float, ...]:
    """l1, steps of the Laplace loss, l2, narrowing of Gaussian noise and from which width on, and facts of a choice.

    Read off the slot's events: sigma^2 - narrowing is the variance of the continuous noise it is priced by.
    """
    l1 = steps = l2 = parts = 1.0
    narrowing = wide = beside = 0.0
    chosen = 1.0
    if "laplace" in slot.kinds:
        l1, steps = float(slot.sensitivity.l1), _laplace_steps(slot.event(Noise("laplace", 0.5)))
    if "gaussian" in slot.kinds:
        l2 = float(slot.sensitivity.l2)
        sigma = max(1000.0, l2)
        inner = _gaussian_multiplier(slot.event(Noise("gaussian", sigma / l2)))
        narrowing = max(0.0, sigma**2 - (inner * l2) ** 2)
        narrowing = 0.0 if narrowing < 1e-6 * sigma else narrowing
        wide = WIDE_SIGMA if slot.moves_one_number else 0.0
    if "exponential" in slot.kinds:
        parts, chosen, beside = _choices(slot.event(Noise("exponential", 0.5)), 0.5)
    return l1, steps, l2, narrowing, wide, parts, chosen, beside


def _parts(event: Event) -> tuple[tuple[Event, int], ...]:
    return event.parts if isinstance(event, Composed) else ((event, 1),)


def _laplace_steps(event: Event) -> float:
    match event:
        case DiscreteLaplaceNoise(l1_sensitivity=steps):
            return float(steps)
        case LaplaceNoise():
            return REAL_LAPLACE
    raise InvalidValue("event", event, "must be Laplace noise for noise of that kind")


def _gaussian_multiplier(event: Event) -> float:
    """The multiplier of the one Gaussian part; beside it there may be a leak too small to matter to a search."""
    for part, _ in _parts(event):
        match part:
            case GaussianNoise(noise_multiplier=multiplier) | DiscreteGaussianNoise(noise_multiplier=multiplier):
                return float(multiplier)
            case ApproxDP(epsilon=0.0):
                continue
    raise InvalidValue("event", event, "must be Gaussian noise for noise of that kind")


def _choices(event: Event, epsilon: float) -> tuple[float, float, float]:
    """How many equal choices of bounded range, with which share of epsilon, and the steps of the noise beside them.

    Choices that differ count as so many equal ones with the same sum and the same sum of squares.
    """
    spent, squares, beside = 0.0, 0.0, 0.0
    for part, count in _parts(event):
        match part:
            case BoundedRange(epsilon=own):
                spent, squares = spent + count * own, squares + count * own**2
            case DiscreteLaplaceNoise() if beside == 0 and count == 1:
                beside = _laplace_steps(part)
            case _:
                raise InvalidValue("event", event, "must be choices of bounded range for noise of that kind")
    parts = spent**2 / squares
    parts = float(round(parts)) if abs(parts - round(parts)) < 1e-9 else parts
    return parts, spent / epsilon if beside > 0 else 1.0, beside


def limits_of(facts: Floats) -> tuple[Floats, Floats]:
    """Least and largest strengths for each slot and kind: what the mechanisms accept, with a little room."""
    l1, l2, vector = facts[:, 0], facts[:, 2], (facts[:, 3] > 0) & (facts[:, 4] == 0)
    least = np.stack((np.maximum(l1 * 2.0**-55, 1e-12), np.maximum(l2 * 2.0**-55, 1e-11), np.full(len(l1), 1e-6)), 1)
    most = np.full((len(l1), 3), _LARGEST_EPSILON)
    # One number with noise so wide that it is made as that of a vector has the vector's limit.
    wide = (facts[:, 3] > 0) & (l2 > _STRONGEST * facts[:, 4])
    strongest = np.where(vector, np.minimum(l2 / math.sqrt(_NARROWEST), _STRONGEST), 90.0)
    most[:, GAUSSIAN] = np.where(vector | ~wide, strongest, _STRONGEST)
    return least, most

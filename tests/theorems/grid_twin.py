"""The slow twin of the grid engine: pairs of output laws written down from the definition of the noise, in mpmath.

Nothing here knows about losses, sampling theorems or grids: a sampled mechanism is the mixture of its distributions
with and without the unit, and a divergence is a sum or an integral of max(0, P - e^epsilon Q).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import mpmath as mp

from farthing.privacy import (
    ApproxDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

DIGITS = 60
Outcomes = list[tuple[mp.mpf, mp.mpf]]


@functools.cache
def outcomes(event: Event, direction: str, reach: float = 14.0) -> Outcomes:
    """(P, Q) of every outcome of a discrete event; noise is cut `reach` deviations out."""
    with mp.workdps(DIGITS):
        if isinstance(event, Sampled):
            q = mp.mpf(event.probability)
            return [_mixed(p, r, q, direction) for p, r in outcomes(event.event, "remove", reach)]
        match event:
            case RandomizedResponse(epsilon=epsilon):
                return _leaky(epsilon, 0.0)
            case ApproxDP(epsilon=epsilon, delta=delta):
                return _leaky(epsilon, delta)
            case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=s):
                scale = mp.mpf(multiplier) * s
                return _shifted(lambda k: mp.exp(-abs(k) / scale), s, math.ceil(reach * 5 * multiplier * s + s))
            case DiscreteGaussianNoise(noise_multiplier=multiplier, l2_sensitivity=s):
                deviation = mp.mpf(multiplier) * s
                width = math.ceil(reach * multiplier * s + s)
                return _shifted(lambda k: mp.exp(-((k / deviation) ** 2) / 2), s, width)
    raise AssertionError(event)


def _mixed(p: mp.mpf, q: mp.mpf, probability: mp.mpf, direction: str) -> tuple[mp.mpf, mp.mpf]:
    """With the unit there (P) or not (Q), and in the sample or not."""
    if direction == "remove":
        return (1 - probability) * q + probability * p, q
    return p, (1 - probability) * p + probability * q


def _leaky(epsilon: float, delta: float) -> Outcomes:
    truth = mp.exp(epsilon) / (1 + mp.exp(epsilon))
    d = mp.mpf(delta)
    zero = mp.mpf(0)
    return [
        ((1 - d) * truth, (1 - d) * (1 - truth)),
        ((1 - d) * (1 - truth), (1 - d) * truth),
        (d, zero),
        (zero, d),
    ]


def _shifted(mass: Callable[[int], mp.mpf], shift: int, width: int) -> Outcomes:
    masses = {k: mass(k) for k in range(-width - shift, width + shift + 1)}
    total = mp.fsum(masses.values())  # what is beyond is far below every accuracy asked for
    return [(masses[k - shift] / total, masses[k] / total) for k in range(-width, width + shift + 1)]


def product(parts: Sequence[Outcomes]) -> Outcomes:
    """All combinations of outcomes."""
    with mp.workdps(DIGITS):
        pairs = itertools.product(*parts)
        return [(mp.fprod(p for p, _ in combination), mp.fprod(q for _, q in combination)) for combination in pairs]


def divergence(pairs: Outcomes, epsilon: float) -> mp.mpf:
    """The sum of max(0, P - e^epsilon Q)."""
    with mp.workdps(DIGITS):
        factor = mp.exp(mp.mpf(epsilon))
        return mp.fsum(p - factor * q for p, q in pairs if p > factor * q)


def integrated(event: Event, epsilon: float, direction: str) -> mp.mpf:
    """The divergence of a Laplace or Gaussian event, sampled or not, by numerical integration over the real line."""
    with mp.workdps(20):
        inner = event.event if isinstance(event, Sampled) else event
        probability = mp.mpf(event.probability) if isinstance(event, Sampled) else mp.mpf(1)
        scale = mp.mpf(inner.noise_multiplier)
        if isinstance(inner, LaplaceNoise):
            corners = [mp.mpf(0), mp.mpf(1)]

            def density(y: mp.mpf) -> mp.mpf:
                return mp.exp(-abs(y) / scale) / (2 * scale)
        else:
            assert isinstance(inner, GaussianNoise)
            corners = []

            def density(y: mp.mpf) -> mp.mpf:
                return mp.exp(-((y / scale) ** 2) / 2) / (scale * mp.sqrt(2 * mp.pi))

        factor = mp.exp(mp.mpf(epsilon))

        def gain(y: mp.mpf) -> mp.mpf:
            p, q = _mixed(density(y - 1), density(y), probability, direction)
            return p - factor * q

        far = (60 if corners else 11) * scale + 2
        low, high = -far, far
        if gain(high) <= 0:
            return mp.mpf(0)
        if gain(low) > 0:
            start = low
        else:  # the ratio P / Q grows with y, so the gain changes sign once
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (middle, high) if gain(middle) <= 0 else (low, middle)
            start = high
        steps = [start + (far - start) * i / 8 for i in range(9)]
        points = sorted({*steps, *(c for c in corners if c > start)})
        return mp.quad(gain, points)

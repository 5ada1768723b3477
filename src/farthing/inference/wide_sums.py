"""Sums of wide noise, many at once: tails by an integral along a path in the complex plane.

For x > 0, P[X > x] = (1 / 2 pi i) * integral of exp(K(s) - s x) / s along any path that leaves 0 on its left and the
poles of the moment generating function on its right. A hyperbola that bends to the right makes the integrand die off
doubly exponentially, so that the trapezium rule with 48 points is right to 1e-6.

Noise on the whole numbers repeats its poles up and down the plane. The path passes to the right of the repeats, which
leaves them out: they are the ripple of the lattice. `ripple` bounds it. Where all coefficients share a lattice, 1 / s
becomes g / (2 sinh(g s / 2)) and x lies midway between two points of it, which takes the common ripple in exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from farthing.inference.noise_terms import NARROW, Floats, Parts, common_step, variance_of, variance_of_parts

Complexes = NDArray[np.complex128]
_POINTS, _SPACING = 48, 0.12
_SLACK = 2e-6  # twice and more what the rule was ever off by in tests/theorems/test_sums_of_noise.py
_LARGEST_RIPPLE, _REPEATS, _NEGLIGIBLE = 5e-5, 24, 1e-7
_LEAST, _NEWTON_STEPS = 0.05, 4  # in standard deviations; no error is stated below the least
SMALLEST_TAIL = 1e-4  # below it Chernoff's bound takes over


@dataclass(frozen=True, eq=False)
class WideSum:
    """A sum whose ripple is small: its deviation, lattice step (0: none) and ripple."""

    parts: Parts
    deviation: float
    step: float
    ripple: float

    def tail(self, x: float) -> float:
        """P[|X| > x] or up to 1e-4 more."""
        return float(tails_of([self], np.array([x]))[0])

    def error(self, confidence: float) -> float:
        """An e with P[|X| <= e] >= confidence."""
        return float(errors_of([self], confidence)[0])


def wide_sum(parts: Parts) -> WideSum | None:
    """The sum as a wide one, or None where the lattices of its terms show."""
    # Narrower noise keeps its poles so far to the right that the path meets their repeats on the wrong side.
    if any(kind != "normal" and scale < NARROW for kind, scale, _, _ in parts):
        return None
    step = common_step(parts)
    ripple = 0.0 if step is None else _size_at(parts, math.pi / step)
    for i, (kind, scale, size, count) in enumerate(parts):
        if kind == "normal":
            continue
        # The i-th transform is 1 again at multiples of 2 pi / size, over a width that shrinks with its deviation;
        # what the other terms leave of it there is the ripple. Repeats common to all terms are in the kernel.
        width = 0.45 / math.sqrt(count * variance_of(kind, scale))
        rest, multiple = parts[:i] + parts[i + 1 :], 0 if step is None else round(size / step)
        # Next to a term of steps so fine that all repeats lie within half its period, they only shrink.
        shrinking = any(2 * _REPEATS * other[2] < size or other[0] == "normal" for other in rest)
        for k in range(1, _REPEATS + 1):
            if width < _NEGLIGIBLE * k or ripple > _LARGEST_RIPPLE:
                break
            if not multiple or k % multiple:
                seen = width / k * _size_at(rest, 2 * math.pi * k / size)
                ripple += seen
                if shrinking and seen * _REPEATS < _NEGLIGIBLE:
                    break
    if not ripple <= _LARGEST_RIPPLE:
        return None
    return WideSum(parts, math.sqrt(variance_of_parts(parts)), step or 0.0, ripple)


def _size_at(parts: Parts, frequency: float) -> float:
    """The characteristic function at one frequency, by plain floats: quicker than an array of one."""
    total = 1.0
    for kind, scale, size, count in parts:
        u = size * frequency
        if kind == "laplace":
            # By way of logarithms: the power itself overflows for sums of very many noises.
            total *= math.exp(-count * math.log1p(2 * variance_of(kind, scale) * math.sin(u / 2) ** 2))
        else:
            if kind == "gaussian":
                u -= 2 * math.pi * round(u / (2 * math.pi))
            total *= math.exp(-count * (scale * u) ** 2 / 2)
    return total


@dataclass(frozen=True, eq=False)
class _Path:
    """Values along the paths of several sums, in units of their deviations: s, and exp(K) ds / s."""

    s: Complexes
    weighted: Complexes

    def tails(self, x: Floats) -> Floats:
        """P[|X| > x], both sides."""
        moved = np.exp(-self.s * x[:, None])
        return np.asarray(2 * _SPACING / math.pi * np.sum((self.weighted * moved).imag, axis=1))

    def tails_and_densities(self, x: Floats) -> tuple[Floats, Floats]:
        """P[|X| > x] and minus its derivative."""
        moved = self.weighted * np.exp(-self.s * x[:, None])
        factor = 2 * _SPACING / math.pi
        return factor * np.sum(moved.imag, axis=1), factor * np.sum((moved * self.s).imag, axis=1)


def _path(sums: Sequence[WideSum], x: Floats) -> _Path:
    """The paths that suit tails near x (in deviations, > 0)."""
    laplace = max(sum(kind == "laplace" for kind, *_ in one.parts) for one in sums)
    shape = (laplace, len(sums))
    size, twice_variance, count = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    pole, quadratic = np.full(len(sums), math.inf), np.zeros(len(sums))
    for j, one in enumerate(sums):
        i = 0
        for kind, scale, coefficient, copies in one.parts:
            relative = coefficient / one.deviation
            if kind == "laplace":
                size[i, j], twice_variance[i, j] = relative, 2 * variance_of(kind, scale)
                count[i, j] = copies
                pole[j] = min(pole[j], 1 / (relative * scale))
                i += 1
            else:
                quadratic[j] += copies * (relative * scale) ** 2
    start = np.minimum(0.5 * pole, (x + np.sqrt(x * x + 4)) / 2)[:, None]  # the latter is the normal's saddle
    w = _SPACING * (np.arange(_POINTS) + 0.5)
    s = start * (0.5 + 0.5 * np.cosh(w) + 1j * np.sinh(w))
    slope = start * (0.5 * np.sinh(w) + 1j * np.cosh(w))
    # Far out exp(-s x) has made everything tiny; sinh is kept from overflowing there.
    exponent = quadratic[:, None] * s * s / 2
    for i in range(laplace):
        z = size[i][:, None] * s / 2
        z = np.where(z.real > 300, 300, z)
        exponent -= count[i][:, None] * np.log(1 - twice_variance[i][:, None] * np.sinh(z) ** 2)
    step = np.array([one.step / one.deviation for one in sums])[:, None]
    half = np.where(step > 0, step, 1) * s / 2
    half = np.where(half.real > 300, 300, half)
    kernel = np.where(step > 0, step / (2 * np.sinh(half)), 1 / s)
    return _Path(s, np.exp(exponent) * kernel * slope)


def tails_of(sums: Sequence[WideSum], x: Floats) -> Floats:
    """P[|X_j| > x_j] for every sum, or up to 1e-4 more."""
    deviation = np.array([one.deviation for one in sums])
    step = np.array([one.step for one in sums])
    safe = np.where(step > 0, step, 1.0)
    midway = np.where(step > 0, (np.floor(x / safe * (1 + 1e-12)) + 0.5) * step, x) / deviation
    # Beyond 60 deviations the tail at 60 is charged: next to nothing, and nothing overflows.
    seen = np.clip(midway, _LEAST, 60.0)
    charged = _path(sums, seen).tails(seen) + np.array([one.ripple for one in sums]) + _SLACK
    return np.asarray(np.where(midway < _LEAST, 1.0, np.clip(charged, 0.0, 1.0)))


def errors_of(sums: Sequence[WideSum], confidence: float) -> Floats:
    """For every sum an e with P[|X| <= e] >= confidence; 1 - confidence is at least SMALLEST_TAIL."""
    target = 1 - confidence - _SLACK - np.array([one.ripple for one in sums])
    x = np.maximum(_first_guess(sums, float(np.max(target))), _LEAST)
    path = _path(sums, x)
    for _ in range(_NEWTON_STEPS):  # on the logarithm of the tail, which is nearly straight
        tail, density = path.tails_and_densities(x)
        x = np.maximum(x + tail / density * np.log(tail / target), _LEAST)
    x *= 1 + 1e-9
    deviation = np.array([one.deviation for one in sums])
    step = np.array([one.step for one in sums])
    safe = np.where(step > 0, step, 1.0)
    on_lattice = np.maximum(np.ceil(x * deviation / safe - 0.5), 0) * step
    return np.asarray(np.where(step > 0, on_lattice, x * deviation))


def _first_guess(sums: Sequence[WideSum], tail: float) -> Floats:
    """Between the normal law and the Laplace law, by the kurtosis."""
    excess = np.array(
        [
            sum(
                3 * count * (size / one.deviation) ** 4 * variance_of(kind, scale) ** 2
                for kind, scale, size, count in one.parts
                if kind == "laplace"
            )
            for one in sums
        ]
    )
    normal, laplace = NormalDist().inv_cdf(1 - tail / 2), -math.log(tail) / math.sqrt(2)
    return normal + (laplace - normal) * np.minimum(excess / 3, 1)

"""The integral for D(x), sampled on one vertical line.

Statement:
    For a loss L with transform M(z) = E[exp(z L)] and any c > 0,
        D(x) = E[(1 - exp(x - L))_+] = 1/(2 pi) * integral over t of M(z) exp(-x z) k(z),   z = c + i t,
    with k(z) = 1 / (z (z + 1)). If L lives on a lattice of span d, one period |t| <= pi / d suffices with
        k(z) = d (exp(-z r) / (1 - exp(-z d)) - exp(-(z+1) r) / (1 - exp(-(z+1) d))),
    r being the distance from x up to the next lattice point. The trapezoid rule at step h returns
        sum over integers m of exp(c m P) D(x + m P),   P = 2 pi / h:   never less than D(x).
Source: MATH section 3; the two-sided Laplace transform of (1 - exp(-u))_+ and Poisson summation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.loss_transforms import Array, Cumulants, Phase, Transform

_SMALLEST, _LARGEST = 1e-12, 1e18  # where c is looked for
_LONG = 1 << 16  # points


class Saddle(NamedTuple):
    """The line z = c + i t, the loss x it belongs to, and the cumulants there.

    The line runs through the saddle point of the integrand, where |M(z) exp(-x z) / (z (z+1))| is smallest on the real
    axis: there the integral has no cancellation, so its *relative* accuracy is that of the arithmetic, at delta = 0.1
    and at 1e-300 alike.
    """

    c: float
    x: float
    at_c: Cumulants


def saddle_for_delta(transform: Transform, log_delta: float) -> Saddle:
    """The saddle whose first-order approximation of D(x) has the given logarithm.

    Both x and -log D grow with c, so one search on log c finds c, x and delta together.
    """
    c = _crossing(lambda c: _log_delta(c, transform.cumulants(c)) > log_delta)
    cumulants = transform.cumulants(c)
    return Saddle(c, _loss(c, cumulants), cumulants)


def saddle_for_loss(transform: Transform, x: float) -> Saddle:
    """The saddle that belongs to the loss x."""
    c = _crossing(lambda c: _loss(c, transform.cumulants(c)) < x)
    return Saddle(c, x, transform.cumulants(c))


def _crossing(below: Callable[[float], bool]) -> float:
    """The c up to which `below` holds, to a few percent: any line is valid, the saddle's is only the best."""
    position, stride = 0.0, 1.5
    direction = 1 if below(1.0) else -1
    while _SMALLEST < math.exp(position) < _LARGEST:
        position += direction * stride
        stride *= 1.5
        if below(math.exp(position)) != (direction > 0):
            break
    low, high = sorted((position, position - direction * stride / 1.5))
    while high - low > 0.03:
        middle = (low + high) / 2
        if below(math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(high)


def _loss(c: float, k: Cumulants) -> float:
    return k.first - 1 / c - 1 / (c + 1)


def _log_delta(c: float, k: Cumulants) -> float:
    """The saddle-point approximation of log D at the x that belongs to c."""
    curvature = k.second + 1 / c**2 + 1 / (c + 1) ** 2
    return k.value - _loss(c, k) * c - math.log(c) - math.log(c + 1) - 0.5 * math.log(2 * math.pi * curvature)


@dataclass(frozen=True)
class Aliases:
    """What sampling at step 2 pi / P adds to D, bounded.

    Statement:
        Sampling the integrand at step 2 pi / P returns sum_m exp(c m P) D(x + m P). For any c1 in [0, c) and
        c2 > c the terms m < 0 and m > 0 are at most exp(K(c1) - c1 (x + m P) + c m P) and
        exp(K(c2) - c2 (x + m P) + c m P): two geometric series.
    Source: Poisson summation; D(x) <= M(s) exp(-s x) for s >= 0 (Chernoff), as (1 - exp(-u))_+ <= exp(s u).
    Assumes: M finite at c1 and c2; period > 0.
    Direction: upper bound. All terms are >= 0, so an upper bound of D needs none of this.
    Checked by: tests/theorems/test_contour.py

    `left` and `right` hold (K(c') - K(c), |c' - c|) for a few lines on either side.
    """

    left: tuple[tuple[float, float], ...]
    right: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, transform: Transform, saddle: Saddle) -> Aliases:
        """Evaluate the transform on a few lines beside the saddle's."""
        c, here = saddle.c, saddle.at_c.value - saddle.at_c.error
        width = 1 / math.sqrt(saddle.at_c.second + 1 / c**2)  # the tilted loss has about this inverse spread
        lines = np.array([0.0, 0.5 * c, 0.8 * c, c + 2 * width, c + 6 * width, c + 18 * width])
        levels = (transform.log_transform_upper(lines) - here).tolist()
        pairs = [(level, abs(line - c)) for level, line in zip(levels, lines.tolist(), strict=True)]
        left, right = pairs[:3], [pair for pair in pairs[3:] if math.isfinite(pair[0])]
        return cls(tuple(left), tuple(right))

    def period(self, x: float, tolerance: float) -> float:
        """A period so long that the aliases are below `tolerance` of exp(K(c) - c x)."""
        need = -math.log(tolerance)
        left = min((level + rate * x + need) / rate for level, rate in self.left)
        right = min((level - rate * x + need) / rate for level, rate in self.right)
        return max(left, right, 1e-300)

    def bound(self, x: float, period: float) -> float:
        """Upper bound of all aliases, relative to exp(K(c) - c x)."""
        total = 0.0
        for side, sign in ((self.left, 1), (self.right, -1)):
            best = math.inf
            for level, rate in side:
                decay, exponent = -math.expm1(-rate * period), level + sign * rate * x - rate * period
                slack = 2.0**-48 * (abs(level) + rate * (abs(x) + period))
                if decay > 0 and exponent < 700:
                    best = min(best, math.exp(exponent + slack) / decay)
            total += best
        return total * (1 + 1e-9)


def dyadic(value: float, bits: int = 20) -> float:
    """`value` rounded down to a few bits, so that integer multiples of it are exact doubles."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(mantissa * 2**bits), exponent - bits)


def nodes(step: float, first: int, last: int) -> Array:
    """The sampling points first * step ... (last - 1) * step, exact when `step` is dyadic."""
    return np.arange(first, last, dtype=np.float64) * step


ComplexArray = NDArray[np.complexfloating[Any, Any]]


class Kernel(Protocol):
    """k(z), written for the shifted point: the integrand is M(z) exp(-z anchor(x)) times values(z, x)."""

    def anchor(self, x: float) -> float:
        """The loss y in exp(-z y): x itself, or the lattice point above it."""
        ...

    def values(self, z: ComplexArray, x: float) -> ComplexArray:
        """What multiplies M(z) exp(-z anchor(x))."""
        ...

    def derivative(self, z: ComplexArray, x: float) -> ComplexArray:
        """The derivative in x of exp(-z anchor(x)) values(z, x), over exp(-z anchor(x))."""
        ...


@dataclass(frozen=True)
class PlainKernel:
    """1 / (z (z + 1))."""

    def anchor(self, x: float) -> float:
        return x

    def values(self, z: ComplexArray, x: float) -> ComplexArray:
        """1 / (z (z + 1)) at every z."""
        return 1 / (z * (z + 1))

    def derivative(self, z: ComplexArray, x: float) -> ComplexArray:
        return -1 / (z + 1)


@dataclass(frozen=True)
class DeconvolvedKernel:
    """1 / (z (z + 1)) with a Gaussian smoothing of the loss taken back, to third order: for estimates."""

    smoothing: float

    def anchor(self, x: float) -> float:
        return x

    def values(self, z: ComplexArray, x: float) -> ComplexArray:
        """exp(-w) / (z (z + 1)) by its series, w = z (z+1) mu^2 / 2 being the logarithm of the smoothing factor."""
        w = z * (z + 1) * (self.smoothing**2 / 2)
        return (1 - w + w * w / 2) / (z * (z + 1))

    def derivative(self, z: ComplexArray, x: float) -> ComplexArray:
        return -z * self.values(z, x)


@dataclass(frozen=True)
class LatticeKernel:
    """The lattice sum of exp(-z u) (1 - exp(-u)) over u = r, r + d, r + 2 d, ... times d."""

    top: float
    span: float

    def anchor(self, x: float) -> float:
        """The first lattice point at or above x."""
        return self.top - self.span * math.floor((self.top - x) / self.span)

    def values(self, z: ComplexArray, x: float) -> ComplexArray:
        """The kernel relative to the anchor, so that exp(-z r) is not part of it."""
        below, above, power = self._parts(z, x)
        result: ComplexArray = self.span * (below + power * above) / self._denominator(z)
        return result

    def _parts(self, z: ComplexArray, x: float) -> tuple[float, float, ComplexArray]:
        """1 - exp(-r), exp(-r) - exp(-d) and exp(-z d): both kernels over one denominator, where nothing cancels."""
        d, r = self.span, min(max(self.anchor(x) - x, 0.0), self.span)
        return -math.expm1(-r), -math.exp(-r) * math.expm1(r - d), np.exp(-z * d)

    def _denominator(self, z: ComplexArray) -> ComplexArray:
        product: ComplexArray = np.expm1(-z * self.span) * np.expm1(-(z + 1) * self.span)
        return product

    def error(self, z: ComplexArray, x: float) -> Array:
        """A bound on the error of `values`: rounding, and r being known only as well as the largest loss is."""
        below, above, power = self._parts(z, x)
        off = 2.0**-49 * (abs(self.top) + abs(x))
        size = 2.0**-46 * (below + above * np.abs(power)) + off * np.abs(1 - power)
        result: Array = self.span * size / np.abs(self._denominator(z))
        return result

    def derivative(self, z: ComplexArray, x: float) -> ComplexArray:
        """Between lattice points only exp(-r) moves with x."""
        d, r = self.span, self.anchor(x) - x
        result: ComplexArray = d * math.exp(-r) / np.expm1(-(z + 1) * d)
        return result


@dataclass(frozen=True, eq=False)
class Line:
    """Phi at the points t >= 0 of the line, with everything needed to read off D(x) near the saddle.

    `weights` is 1 at t = 0 and 2 elsewhere (conjugate points are folded). `log_scale` is K(c).
    """

    c: float
    step: float
    log_scale: float
    t: Array
    weights: Array
    phase: Phase
    kernel: Kernel

    def integrand(self, x: float) -> ComplexArray:
        """weights * Phi(t) exp(-i t y) k(z): the samples whose real parts add up to D, up to the prefactor."""
        return self.turned(x) * self.kernel_values(x)

    def turned(self, x: float) -> ComplexArray:
        """weights * Phi(t) exp(-i t y): the same without the kernel."""
        turn = self.t * self.kernel.anchor(x)
        back = np.empty(len(turn), dtype=np.complex128)
        np.cos(turn, out=back.real)
        np.negative(np.sin(turn), out=back.imag)
        back *= self._samples
        return back

    def kernel_values(self, x: float) -> ComplexArray:
        """k(z) at every point; only that of a lattice depends on x."""
        if isinstance(self.kernel, LatticeKernel):
            return self.kernel.values(self.c + 1j * self.t, x)
        return self._fixed_kernel

    @cached_property
    def _samples(self) -> ComplexArray:
        samples: ComplexArray = self.weights * np.exp(self.phase.log_modulus) * np.exp(1j * self.phase.argument)
        return samples

    @cached_property
    def _fixed_kernel(self) -> ComplexArray:
        return self.kernel.values(self.c + 1j * self.t, 0.0)

    @cached_property
    def _fixed_derivative(self) -> ComplexArray:
        return self.kernel.derivative(self.c + 1j * self.t, 0.0)

    def kernel_error(self, x: float) -> Array | float:
        """What an inexact kernel adds to the error of each sample; the plain kernels are right to rounding."""
        if not isinstance(self.kernel, LatticeKernel):
            return 0.0
        size = self.weights * np.exp(self.phase.log_modulus)
        error: Array = size * self.kernel.error(self.c + 1j * self.t, x)
        return error

    def log_prefactor(self, x: float) -> float:
        """log of h / (2 pi) * exp(K(c) - c y)."""
        return math.log(self.step / (2 * math.pi)) + self.log_scale - self.c * self.kernel.anchor(x)

    def log_delta(self, x: float) -> float:
        """log D(x), without error bounds; -inf when the sum is not positive."""
        return self._value_and_slope(x)[0]

    def slope(self, x: float) -> float:
        """-d log D / dx at x."""
        return self._value_and_slope(x)[1]

    def _value_and_slope(self, x: float) -> tuple[float, float]:
        turned, lattice = self.turned(x), isinstance(self.kernel, LatticeKernel)
        moved = self.kernel.derivative(self.c + 1j * self.t, x) if lattice else self._fixed_derivative
        total = float(np.sum((turned * self.kernel_values(x)).real))
        change = float(np.sum((turned * moved).real))
        if not (total > 0 and change < 0):
            return -math.inf, self.c
        return self.log_prefactor(x) + math.log(total), -change / total

    def _beginning(self, points: int) -> Line:
        phase = Phase(*(values[:points] for values in self.phase))
        return replace(self, t=self.t[:points], weights=self.weights[:points], phase=phase)

    def root(self, log_delta: float, x: float) -> float:
        """The x near the saddle's where log D(x) = log_delta: Newton, kept inside a bracket.

        On a lattice the slope jumps at every lattice point, so plain Newton may hop to and fro. Of a long line, the
        first part says where to start.
        """
        if len(self.t) > _LONG:
            x = self._beginning(len(self.t) // 16).root(log_delta, x)
        low, high, best = -math.inf, math.inf, math.inf
        for _ in range(60):
            value, slope = self._value_and_slope(x)
            value -= log_delta
            if abs(value) < 2e-15 * (1 + abs(log_delta)) or best / 2 < abs(value) < 1e-11:
                return x  # there, or as close as rounding lets it come
            best = min(best, abs(value))
            if value > 0:
                low = x
            else:
                high = x
            fresh = x + value / slope if math.isfinite(value) else x - 1 / self.c
            if not low < fresh < high and math.isfinite(low) and math.isfinite(high):
                fresh = (low + high) / 2
            if not abs(fresh - x) > 2e-16 * abs(x):
                return x
            x = fresh
        return x

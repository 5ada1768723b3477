"""The transform of a composed privacy loss, on one vertical line of the complex plane.

For a privacy loss L write M(z) = E[exp(z L)] and fix the line z = c + i t. Everything the contour engines
need of M is
    K(c) = log M(c) and its first two derivatives     (where to put the line), and
    Phi(t) = M(c + i t) / M(c), of modulus <= 1        (what to integrate along it).
Losses add, so logarithms of transforms add, and a composition is a weighted sum over a few arrays.

Randomized response of epsilon e (the worst of all e-DP mechanisms) has M(z) = cosh((z + 1/2) e) / cosh(e / 2), hence
with a = (c + 1/2) e and b = t e
    Phi = cosh(a + i b) / cosh(a) = cos b + i tanh(a) sin b.
Laplace noise of multiplier 1/e has M(z) = ((z+1) exp(z e) + z exp(-(z+1) e)) / (2z + 1); a choice of bounded range
has M(z) = sinh((z + 1/2) e) / ((2z + 1) sinh(e / 2)); Gaussian noise with
mu = 1 / noise_multiplier has M(z) = exp(z (z + 1) mu^2 / 2). Discrete Laplace noise of several steps is `Stepped`.

Floating-point model. Every elementary function of NumPy is taken to be right to a relative `FUNCTION_ERROR`, which
is many times what its authors claim (a test compares against ball arithmetic); products and sums are IEEE. Where
an answer is charged, the resulting error bounds are added on the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Stepped(NamedTuple):
    """Epsilons, steps and counts of discrete Laplace noises, as arrays of one length.

    With mass proportional to r^|n|, r = exp(-a), and a shift of s steps (epsilon e = a s), the loss is e for n <= 0, -e
    for n >= s and a (s - 2n) between. Summing the geometric series, with q = exp(-(2z + 1) a),

        M(z) exp(-z e) = (1 - r q + q^s (r - q)) / ((1 + r) (1 - q)),

    which is randomized response at s = 1 and Laplace noise in the limit of many steps. The differences are taken as
    expm1, so that small rates lose nothing: 1 - r q = -expm1(-(2z + 2) a), r - q = -r expm1(-2 z a) and
    1 - q = -expm1(-(2z + 1) a).
    """

    epsilons: Array
    steps: Array
    counts: Array

    @classmethod
    def none(cls) -> Stepped:
        """The group without a single discrete Laplace noise."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    @property
    def rates(self) -> Array:
        """What one step is worth."""
        return self.epsilons / self.steps

    def cumulants(self, c: float) -> tuple[float, float, float, float]:
        """K, K' and K'' at c >= 0 and a bound on the error of K; the derivatives only guide a search."""
        a, s, n = self.rates, self.steps, self.counts
        r = np.exp(-a)
        e1, e2, d = -np.expm1(-(2 * c + 2) * a), -np.expm1(-2 * c * a), -np.expm1(-(2 * c + 1) * a)
        tail = r * np.exp(-(2 * c + 1) * self.epsilons)  # r q^s
        top = e1 + tail * e2
        slope, twice = 2 * a, 4 * a * a
        top1 = slope * (1 - e1) - slope * s * tail * e2 + tail * slope * (1 - e2)
        top2 = -twice * (1 - e1) + twice * tail * (s * s * e2 - 2 * s * (1 - e2) - (1 - e2))
        first_top, first_d = top1 / top, slope * (1 - d) / d
        value = c * self.epsilons + np.log(top / (d * (1 + r)))
        first = self.epsilons + first_top - first_d
        second = top2 / top - first_top**2 + twice * (1 - d) / d + first_d**2
        error = 2.0**-44 * float(np.sum(n * (1 + c * self.epsilons)))
        return float(np.sum(n * value)), float(np.sum(n * first)), float(np.sum(n * second)), error

    def log_ratio(self, c: float, t: Array) -> tuple[Array, Array, Array]:
        """log |Phi|, arg Phi and what their rounding is in proportion to, summed over the noises, at every t."""
        a, n = self.rates, self.counts
        level = np.log(_quotient(self, np.array([[complex(c)]]))[0].real)
        z = c + 1j * t[:, None]
        value, spread = _quotient(self, z)
        log_value = np.log(value) - level
        argument = log_value.imag + t[:, None] * self.epsilons
        spread = spread + 2 + np.abs(argument) + np.abs(z) * a
        return (n * log_value.real).sum(axis=1), (n * argument).sum(axis=1), (n * spread).sum(axis=1)

    def log_top_mass(self) -> float:
        """The log of the probability of the largest loss: 1 / (1 + r) each."""
        return -float(np.sum(self.counts * np.log1p(np.exp(-self.rates))))


def _quotient(stepped: Stepped, z: Any) -> tuple[Any, Any]:
    """(1 - r q + q^s (r - q)) / (1 - q), and how much larger the parts are than what they make."""
    a = stepped.rates
    w1, w2, w3, ws = (2 * z + 2) * a, 2 * z * a, (2 * z + 1) * a, (2 * z + 1) * stepped.epsilons
    e1, e2, d = -np.expm1(-w1), -np.expm1(-w2), -np.expm1(-w3)
    tail = np.exp(-a) * np.exp(-ws)
    top = e1 + tail * e2
    # An expm1 is off by units of itself and of its argument; the tail by units of its own argument.
    off = np.abs(e1) + np.abs(w1) + np.abs(tail) * (np.abs(e2) * (1 + np.abs(ws)) + np.abs(w2))
    return top / d, off / np.abs(top) + 1 + np.abs(w3) / np.abs(d)


Array = NDArray[np.float64]

FUNCTION_ERROR = 2.0**-48
"""Relative error allowed to one elementary function call (16 units in the last place)."""

ARGUMENT_ERROR = 2.0**-50
"""Relative error allowed to the arguments a and b: their rounding, and epsilons up to 2^-51 off a lattice."""

_EXACT_SUMS = 100_000
_CHUNK = 1 << 19  # matrix cells worked on at a time: small enough for the cache, large enough for NumPy


class Cumulants(NamedTuple):
    """K(c), K'(c), K''(c) and a bound on the error of K(c)."""

    value: float
    first: float
    second: float
    error: float


class Phase(NamedTuple):
    """log |Phi(t)|, the argument of Phi(t), and a bound on the relative error of the Phi that they make."""

    log_modulus: Array
    argument: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Transform:
    """The composed transform: randomized responses, Laplace noises, choices of bounded range and one Gaussian.

    `epsilons` and `weights` are the randomized responses (weights are multiplicities, or real numbers when they come
    from a sketch), `laplace` and `laplace_counts` the Laplace epsilons (1 / noise_multiplier), `ranges` and
    `range_counts` the epsilons of bounded ranges, `stepped` the discrete Laplace noises of several steps, and
    `gaussian` the sum of mu^2 over Gaussian noises.
    """

    epsilons: Array
    weights: Array
    laplace: Array
    laplace_counts: Array
    gaussian: float = 0.0
    ranges: Array = field(default_factory=lambda: np.zeros(0))
    range_counts: Array = field(default_factory=lambda: np.zeros(0))
    stepped: Stepped = field(default_factory=Stepped.none)

    @property
    def terms(self) -> int:
        """How many factors one evaluation of Phi touches."""
        return len(self.epsilons) + len(self.laplace) + len(self.ranges) + len(self.stepped.epsilons)

    @property
    def only_responses(self) -> bool:
        """Whether every loss is that of a randomized response: atoms, and nothing else."""
        return not (self.gaussian or len(self.laplace) or len(self.ranges) or len(self.stepped.epsilons))

    def cumulants(self, c: float) -> Cumulants:
        """K, K' and K'' at c >= 0."""
        value = first = second = error = 0.0
        if len(self.epsilons):
            value, first, second, error = _response_cumulants(self.epsilons, self.weights, c)
        if len(self.laplace):
            more = _laplace_cumulants(self.laplace, self.laplace_counts, c)
            value, first, second, error = value + more[0], first + more[1], second + more[2], error + more[3]
        if len(self.ranges):
            more = _range_cumulants(self.ranges, self.range_counts, c)
            value, first, second, error = value + more[0], first + more[1], second + more[2], error + more[3]
        if len(self.stepped.epsilons):
            more = self.stepped.cumulants(c)
            value, first, second, error = value + more[0], first + more[1], second + more[2], error + more[3]
        if self.gaussian:
            term = c * (c + 1) * self.gaussian / 2
            value += term
            first += (c + 0.5) * self.gaussian
            second += self.gaussian
            error += 2.0**-48 * term
        # K'' is a variance; the Laplace terms lose it to cancellation when e is large, and it only guides the search.
        return Cumulants(value, first, max(second, 0.0), error + 2.0**-50 * abs(value))

    def log_transform_upper(self, c: Array) -> Array:
        """Upper bounds of K at several c >= 0 at once."""
        value, error = np.zeros(len(c)), np.zeros(len(c))
        if 0 < len(self.epsilons) * len(c) <= _CHUNK:
            log_f = _response_log(self.epsilons, c[:, None])
            value += (self.weights * log_f).sum(axis=1)
            error += 2.0**-45 * value + 2.0**-50 * (c + 1) * float(np.sum(np.abs(self.weights) * self.epsilons))
        elif len(self.epsilons):
            only = Transform(self.epsilons, self.weights, np.zeros(0), np.zeros(0))
            each = [only.cumulants(point) for point in c.tolist()]
            value += np.array([k.value for k in each])
            error += np.array([k.error for k in each])
        for e, n, cumulants in (
            (self.laplace, self.laplace_counts, _laplace_cumulants),
            (self.ranges, self.range_counts, _range_cumulants),
        ):
            if len(e):
                at_each = [cumulants(e, n, point) for point in c.tolist()]
                value += np.array([k[0] for k in at_each])
                error += np.array([k[3] for k in at_each])
        if len(self.stepped.epsilons):
            at_each = [self.stepped.cumulants(point) for point in c.tolist()]
            value += np.array([k[0] for k in at_each])
            error += np.array([k[3] for k in at_each])
        value += c * (c + 1) * self.gaussian / 2
        return value + (error + 2.0**-47 * np.abs(value))

    def phase(self, c: float, t: Array) -> Phase:
        """log |Phi|, arg Phi and their error at every t."""
        out = Phase(np.zeros_like(t), np.zeros_like(t), np.zeros_like(t))
        if len(self.epsilons):
            _add_responses(out, self.epsilons, self.weights, c, t)
        if len(self.laplace):
            _add_laplace(out, self.laplace, self.laplace_counts, c, t)
        if len(self.ranges):
            _add_ranges(out, self.ranges, self.range_counts, c, t)
        if len(self.stepped.epsilons):
            _add_stepped(out, self.stepped, c, t)
        if self.gaussian:
            modulus, argument = -t * t * self.gaussian / 2, t * (c + 0.5) * self.gaussian
            out.log_modulus[:] += modulus
            out.argument[:] += argument
            out.error[:] += 2.0**-48 * (abs(modulus) + abs(argument))
        # exp, cos and sin of the sums, and the additions of the families above.
        out.error[:] += FUNCTION_ERROR * (2 + abs(out.log_modulus) + abs(out.argument))
        # A number whose logarithm is off by d is off by at most exp(d) - 1, relatively.
        out.error[:] = np.expm1(np.minimum(out.error, 700.0))
        return out

    def run(self, c: float, step: float, starts: NDArray[np.int64], width: int) -> Phase:
        """`phase` at the multiples n, n + 1 ... n + width - 1 of `step` for each n of `starts`, one after the other.

        Many times faster when all are randomized responses. No sines are needed: exp(i t e) is a product of two table
        entries, and Phi = prod(cos b + i tanh(a) sin b) is multiplied up directly. Its error is absolute, not relative,
        which is what counts where Phi is small: every factor has modulus <= 1, so the errors of the factors add.
        """
        t: Array = (starts[:, None] + np.arange(width)).ravel().astype(np.float64) * step
        others = len(self.laplace) or len(self.ranges) or len(self.stepped.epsilons)
        if others or len(self.epsilons) > 20_000:
            return self.phase(c, t)
        value = _product(self.epsilons, self.weights, c, step, starts, width)
        growth, number = float(np.dot(self.weights, self.epsilons)), float(np.sum(self.weights))
        error = number * (3 * FUNCTION_ERROR + 2.0**-49) + 2.0**-50 * growth * (c + 0.5 + t)
        size = np.maximum(np.abs(value), 1e-290)
        modulus, argument = np.log(size), np.angle(value)
        if self.gaussian:
            modulus -= t * t * self.gaussian / 2
            argument += t * (c + 0.5) * self.gaussian
            error = error + 2.0**-48 * t * (t + c + 0.5) * self.gaussian * size
        return Phase(modulus, argument, error / size + 2.0**-42)

    @property
    def top_error(self) -> float:
        """Relative error allowed to the sum of all epsilons: products rounded once, or pairwise sums of very many."""
        return 2.0**-51 if self.terms <= _EXACT_SUMS else 2.0**-46

    def top(self) -> tuple[float, float]:
        """The largest possible loss, and the log of its probability; (inf, -inf) when a Gaussian takes part.

        The loss is right to a relative `top_error`, the log of its probability to 2^-45.
        """
        if self.gaussian:
            return np.inf, -np.inf
        loss = _total(self.weights * self.epsilons) + _total(self.laplace_counts * self.laplace)
        loss += _total(self.range_counts * self.ranges) + _total(self.stepped.counts * self.stepped.epsilons)
        if len(self.ranges):  # a bounded range has a density up to its end, and no mass there
            return loss, -np.inf
        log_mass = -float(np.sum(self.weights * np.log1p(np.exp(-self.epsilons)))) + self.stepped.log_top_mass()
        return loss, log_mass - float(np.log(2.0) * np.sum(self.laplace_counts))


def _total(terms: Array) -> float:
    """The sum, correctly rounded where that is quick; pairwise otherwise (some 50 units in the last place)."""
    return math.fsum(terms.tolist()) if len(terms) <= _EXACT_SUMS else float(np.sum(terms))


def _response_cumulants(e: Array, w: Array, c: float) -> tuple[float, float, float, float]:
    a = (c + 0.5) * e
    tanh = np.tanh(a)
    sech2 = 1 / np.cosh(np.minimum(a, 350.0)) ** 2
    log_f = _response_log(e, c)
    growth = float(np.sum(np.abs(w) * e))
    error = 2.0**-45 * float(np.sum(np.abs(w) * log_f)) + 2.0**-50 * (c + 1) * growth
    return float(np.sum(w * log_f)), float(np.sum(w * e * tanh)), float(np.sum(w * e * e * sech2)), error


def _response_log(e: Array, c: float | Array) -> Array:
    """log M(c) of one randomized response: c may be a column of several lines.

    log f = log1p(f - 1) has no cancellation while c e is small; for large c e the growth c e is split off.
    """
    growth = c * e
    small = np.minimum(growth, 1.0)
    near: Array = np.log1p(2 * np.sinh(small / 2) ** 2 + np.tanh(e / 2) * np.sinh(small))
    if not growth.max() > 1.0:
        return near
    far: Array = growth + np.log1p(np.expm1(-2 * growth) / (1 + np.exp(np.minimum(e, 700.0))))
    return np.where(growth <= 1.0, near, far)


def _laplace_cumulants(e: Array, n: Array, c: float) -> tuple[float, float, float, float]:
    s = 2 * c + 1
    up, down = (c + 1) / s, c / s
    slope, bend = 1 / s**2, 4 / s**3
    tail = np.exp(-s * e)
    f = up + down * tail
    f1 = (-slope + up * e) + (slope - down * e) * tail
    f2 = (bend - 2 * slope * e + up * e * e) + (-bend - 2 * slope * e + down * e * e) * tail
    log_f = c * e + np.log(f)
    error = 2.0**-45 * float(np.sum(n * (1 + c * e)))
    first = f1 / f
    return (
        float(np.sum(n * log_f)),
        float(np.sum(n * first)),
        float(np.sum(n * (f2 / f - first * first))),
        error,
    )


def _range_cumulants(e: Array, n: Array, c: float) -> tuple[float, float, float, float]:
    s = 2 * c + 1
    log_f = c * e + np.log(np.expm1(-s * e) / np.expm1(-e)) - np.log(s)
    x = s * e / 2
    # K' = e (coth x - 1/x) and K'' = e^2 (1/x^2 - 1/sinh(x)^2); both only guide the search.
    small, y = x < 1e-2, np.maximum(x, 1e-2)
    first = np.where(small, x / 3, 1 / np.tanh(y) - 1 / y)
    second = np.where(small, 1 / 3 - x * x / 15, 1 / y**2 - 1 / np.sinh(np.minimum(y, 350.0)) ** 2)
    error = 2.0**-45 * float(np.sum(n * (1 + c * e)))
    return float(np.sum(n * log_f)), float(np.sum(n * e * first)), float(np.sum(n * e * e * second)), error


def _add_responses(out: Phase, e: Array, w: Array, c: float, t: Array) -> None:
    a = (c + 0.5) * e
    tanh, sech2 = np.tanh(a), 1 / np.cosh(np.minimum(a, 350.0)) ** 2
    growth, steepest = float(np.sum(np.abs(w) * e)), float(np.max(tanh)) ** 2
    rows = max(1, _CHUNK // len(e))
    for start in range(0, len(t), rows):
        part = slice(start, start + rows)
        b = t[part, None] * e
        sine, cosine = np.sin(b), np.cos(b)
        drop = sech2 * sine * sine
        modulus = 0.5 * np.log1p(-drop)
        argument = np.arctan2(tanh * sine, cosine)
        # d/da log cosh(a + ib) = tanh(a + ib): how much relative errors of a and b move the logarithm.
        largest = np.minimum(drop.max(axis=1), 1 - 2.0**-52)
        pull = 1 + np.sqrt((steepest + largest) / (1 - largest))
        size, turned = (w * modulus).sum(axis=1), (w * argument).sum(axis=1)
        out.log_modulus[part] += size
        out.argument[part] += turned
        out.error[part] += ARGUMENT_ERROR * pull * growth * (c + 0.5 + t[part])
        # |argument| <= 2 |b|; and log1p magnifies the error of drop by drop / (1 - drop).
        out.error[part] += 3 * FUNCTION_ERROR * (np.abs(size) / (1 - largest) + 2 * growth * t[part])


def _add_laplace(out: Phase, e: Array, n: Array, c: float, t: Array) -> None:
    rows = max(1, _CHUNK // len(e))
    z0 = 2 * c + 1
    level = np.log(((c + 1) + c * np.exp(-z0 * e)) / z0)
    for start in range(0, len(t), rows):
        part = slice(start, start + rows)
        z = c + 1j * t[part, None]
        value = ((z + 1) + z * np.exp(-(2 * z + 1) * e)) / (2 * z + 1)
        log_value = np.log(value) - level
        argument = log_value.imag + t[part, None] * e
        out.log_modulus[part] += (n * log_value.real).sum(axis=1)
        out.argument[part] += (n * argument).sum(axis=1)
        # value is at least (1 - exp(-e)) / 2 away from 0 relative to its parts, so errors are divided by that.
        spread = 1 + 2 * (1 + c * e + np.abs(t[part, None]) * e) / np.abs(value)
        out.error[part] += 8 * FUNCTION_ERROR * (n * spread).sum(axis=1)


def _add_ranges(out: Phase, e: Array, n: Array, c: float, t: Array) -> None:
    rows = max(1, _CHUNK // len(e))
    s = 2 * c + 1
    level = np.log(-np.expm1(-s * e) / s)
    for start in range(0, len(t), rows):
        part = slice(start, start + rows)
        z = c + 1j * t[part, None]
        turned = -(2 * z + 1) * e
        rest = -np.expm1(turned)
        log_value = np.log(rest / (2 * z + 1)) - level
        argument = log_value.imag + t[part, None] * e
        out.log_modulus[part] += (n * log_value.real).sum(axis=1)
        out.argument[part] += (n * argument).sum(axis=1)
        # 1 - exp(-w) is off by a few units of |w| at most, w being off by a few units of itself.
        spread = 2 + 2 * np.abs(turned) / np.abs(rest) + np.abs(argument)
        out.error[part] += 8 * FUNCTION_ERROR * (n * spread).sum(axis=1)


def _add_stepped(out: Phase, stepped: Stepped, c: float, t: Array) -> None:
    rows = max(1, _CHUNK // len(stepped.epsilons))
    for start in range(0, len(t), rows):
        part = slice(start, start + rows)
        modulus, argument, spread = stepped.log_ratio(c, t[part])
        out.log_modulus[part] += modulus
        out.argument[part] += argument
        out.error[part] += 8 * FUNCTION_ERROR * spread


_RUN = 1 << 15  # points worked on at a time


def _product(
    e: Array, w: Array, c: float, step: float, starts: NDArray[np.int64], width: int
) -> NDArray[np.complex128]:
    """prod over j of (cos b + i tanh(a) sin b)^w at the points of all runs."""
    out = np.empty((len(starts), width), dtype=np.complex128)
    tanh = np.tanh((c + 0.5) * e)
    fine = np.exp(1j * (np.arange(width) * step)[:, None] * e).T.copy()
    rows = max(1, _RUN // width)
    for first in range(0, len(starts), rows):
        coarse = np.exp(1j * (starts[first : first + rows] * step)[:, None] * e).T.copy()
        total = out[first : first + rows]
        total[:] = 1.0
        factor = np.empty_like(total)
        for j in range(len(e)):
            np.multiply(coarse[j][:, None], fine[j], out=factor)
            factor.imag *= tanh[j]
            total *= factor if w[j] == 1 else _power(factor, int(w[j]))
    return out.ravel()


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """base^exponent by repeated squaring: products only, so errors add as they do for distinct factors."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result

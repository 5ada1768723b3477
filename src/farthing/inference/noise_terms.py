"""Terms of noise: what an error is made of, without a mechanism or a row in sight.

An answer that is a combination of independent noisy numbers is off by `sum of coefficient * noise`. A term says which
noise (kind and scale), what it is multiplied by, and how many independent copies of it are added. Terms on one common
step are summed here: on a short lattice, or as a wide sum by an integral in the complex plane.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real

Floats = NDArray[np.float64]
Kind = Literal["laplace", "gaussian", "normal"]
KINDS: tuple[Kind, ...] = ("laplace", "gaussian", "normal")
NARROW = 1.0  # below this scale a noise is a few likely integers, and treated as such


@dataclass(frozen=True, eq=False)
class Term:
    """`count` independent noises of one kind and scale, each multiplied by `coefficient`.

    Args:
        kind: "laplace", on the whole numbers with mass proportional to exp(-|n| / scale); "gaussian", on the whole
            numbers with mass proportional to exp(-n^2 / (2 scale^2)); or "normal", real-valued (an error of sampling,
            say).
        scale: The scale of one noise; for "normal" its standard deviation.
        coefficient: What each noise is multiplied by; an array over the cells of an answer, or one number.
        count: How many noises there are; an array over the cells of an answer, or one number.
        source: A name for the noise itself. Where two measurements have terms of the same source, it is the same noise
            in both: what is computed from the two knows that. By default it is in no other.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> Term("laplace", 10.0, coefficient=0.5, count=4).variance
    199.8334...
    """

    kind: Kind
    scale: float
    coefficient: float | Floats = 1.0
    count: int | NDArray[np.int64] = 1
    source: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        scale = checked_real(self.scale, "scale")
        if not 0 <= scale < math.inf:
            raise InvalidValue("scale", self.scale, "must be a finite number >= 0")
        object.__setattr__(self, "scale", scale)
        # A planner makes thousands of terms: single numbers are checked without arrays.
        plain = type(self.coefficient) is float
        if not (math.isfinite(self.coefficient) if plain else np.all(np.isfinite(self.coefficient))):
            raise InvalidValue("coefficient", self.coefficient, "must be finite")
        if type(self.count) is int:
            fits = self.count >= 0
        else:
            counts = np.asarray(self.count)
            fits = counts.dtype.kind in "iu" and bool(np.all(counts >= 0))
        if not fits:
            raise InvalidValue("count", self.count, "must be whole numbers >= 0")

    @property
    def variance(self) -> Any:
        """The variance of the term, an array where `coefficient` or `count` is one."""
        one = variance_of(self.kind, self.scale)
        if isinstance(self.coefficient, np.ndarray) or isinstance(self.count, np.ndarray):
            return np.square(self.coefficient) * self.count * one
        return self.coefficient**2 * self.count * one


@lru_cache(maxsize=4096)
def variance_of(kind: Kind, scale: float) -> float:
    """The variance of one noise: that of the distribution on the integers, not of its continuous cousin.

    >>> round(variance_of("laplace", 2.0), 4), variance_of("gaussian", 3.0), round(variance_of("gaussian", 0.5), 4)
    (7.8354, 9.0, 0.215)
    """
    if scale == 0:
        return 0.0
    if kind == "laplace":
        return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > 1e-3 else 0.0
    if kind == "normal" or scale >= 2:  # from 2 on the difference is below 1e-30
        return scale**2
    masses, magnitudes = _narrow_gaussian(scale)
    return float(np.dot(masses, magnitudes**2))


@lru_cache(maxsize=1024)
def _narrow_gaussian(sigma: float) -> tuple[Floats, Floats]:
    """P[|noise| = n] and n, for n = 0, 1, ... as far as doubles go."""
    magnitudes = np.arange(0.0, math.ceil(40 * max(sigma, 0.05)) + 2)
    masses = np.exp(-(magnitudes**2) / (2 * sigma**2))
    masses[1:] *= 2
    return masses / masses.sum(), magnitudes


# Below these scales an integer noise is zero but for a chance of 1e-15: no error at a confidence can show it.
_SILENT: dict[Kind, float] = {"laplace": 0.028, "gaussian": 0.12, "normal": 5e-324}

# A normalised term: kind, scale, coefficient > 0, count >= 1; hashable, one cell.
Part = tuple[Kind, float, float, int]
Parts = tuple[Part, ...]


def parts_of(terms: Iterable[tuple[Kind, float, float, int]]) -> Parts:
    """The terms of one cell, signs dropped (the distributions are symmetric), like terms joined, in a fixed order."""
    joined: dict[tuple[Kind, float, float], int] = {}
    normal = 0.0
    for kind, scale, coefficient, count in terms:
        size = abs(coefficient)
        if size == 0 or count == 0 or scale < _SILENT[kind]:
            continue
        if kind == "normal":
            normal += count * (size * scale) ** 2
        else:
            key = (kind, scale, size)
            joined[key] = joined.get(key, 0) + int(count)
    parts: list[Part] = [(*key, count) for key, count in sorted(joined.items())]
    if normal > 0:
        parts.append(("normal", math.sqrt(normal), 1.0, 1))
    return tuple(parts)


def variance_of_parts(parts: Parts) -> float:
    """The variance of the sum."""
    return sum(count * size * size * variance_of(kind, scale) for kind, scale, size, count in parts)


def characteristic_function(parts: Parts, frequencies: Floats) -> Floats:
    """E[cos(u X)] at every frequency u: all there is, since X is symmetric."""
    total = np.ones_like(frequencies)
    for kind, scale, size, count in parts:
        total *= _one_characteristic_function(kind, scale, size * frequencies) ** count
    return total


def _one_characteristic_function(kind: Kind, scale: float, u: Floats) -> Floats:
    if kind == "laplace":
        return np.asarray(1 / (1 + 2 * variance_of(kind, scale) * np.sin(u / 2) ** 2))
    if kind == "normal":
        return np.asarray(np.exp(-((scale * u) ** 2) / 2))
    if scale < NARROW:
        masses, magnitudes = _narrow_gaussian(scale)
        return np.asarray(np.cos(np.multiply.outer(u, magnitudes)) @ masses)
    # Poisson summation: copies of the normal's transform at every multiple of 2 pi; the next ones are below 1e-19.
    reduced = u - 2 * math.pi * np.round(u / (2 * math.pi))
    copies = sum(np.exp(-((scale * (reduced - 2 * math.pi * k)) ** 2) / 2) for k in (-1, 0, 1))
    return np.asarray(copies / (1 + 2 * math.exp(-2 * (math.pi * scale) ** 2)))


def chernoff_radius(parts: Parts, probability: float) -> float:
    """An x with P[|X| > x] <= probability: the best of Chernoff's bounds on a grid of tilts.

    Cheap and never too small; a tenth or so too large, so it is used for far tails and for the reach of a grid.
    """
    if not parts:
        return 0.0
    poles = [1 / (size * scale) for kind, scale, size, _ in parts if kind == "laplace"]
    proxy = sum(n * a * a * (variance_of(kind, t) if kind == "laplace" else t * t) for kind, t, a, n in parts)
    natural = math.sqrt(2 * math.log(2 / probability) / proxy)
    top = min([0.9999 * pole for pole in poles] + [2 * natural])
    tilts = top * np.linspace(1 / 64, 1, 64)
    logarithm = np.zeros_like(tilts)
    for kind, scale, size, count in parts:
        if kind == "laplace":
            with np.errstate(over="ignore", invalid="ignore"):
                inner = 1 - 2 * variance_of(kind, scale) * np.sinh(size * tilts / 2) ** 2
            logarithm -= count * np.log(np.maximum(inner, 1e-300))
        else:  # the discrete Gaussian is subgaussian with its own sigma (Canonne, Kamath & Steinke 2020, Fact 19)
            logarithm += count * (scale * size * tilts) ** 2 / 2
    return float(np.min((logarithm + math.log(2 / probability)) / tilts))


_LONGEST = 1 << 14
_LEFT_OUT = 1e-13  # mass beyond the grid, which wraps around; rounding of the transform is of the same size


@dataclass(frozen=True, eq=False)
class LatticeSum:
    """`within[k]` is P[|X| <= k * step]."""

    step: float
    within: Floats

    def tail(self, x: float) -> float:
        """P[|X| > x], never too small by more than 1e-12."""
        k = math.floor(x / self.step * (1 + 1e-12))
        return float(1 - self.within[min(k, len(self.within) - 1)]) + _LEFT_OUT if k >= 0 else 1.0

    def error(self, confidence: float) -> float:
        """The least e with P[|X| <= e] >= confidence; infinite when the grid cannot tell."""
        k = int(np.searchsorted(self.within, confidence + 2 * _LEFT_OUT))
        return self.step * k if k < len(self.within) else math.inf


def common_step(parts: Parts, divisors: int = 12) -> float | None:
    """The g of which every coefficient is a whole multiple, if there is a plain one."""
    if parts[-1][0] == "normal":  # it stands last
        return None
    sizes = {size for _, _, size, _ in parts}
    least = min(sizes)
    ratios = [size / least for size in sizes if size > least]
    for divisor in range(1, divisors + 1):
        for ratio in ratios:
            multiple = ratio * divisor
            if abs(multiple - round(multiple)) > 1e-9 * multiple:
                break
        else:
            return least / divisor
    return None


def lattice_sum(parts: Parts) -> LatticeSum | None:
    """The distribution on its lattice, or None where there is no lattice or it is too long."""
    step = common_step(parts)
    if step is None:
        return None
    reach = math.ceil(chernoff_radius(parts, _LEFT_OUT) / step) + 1
    length = 1 << (2 * reach + 1).bit_length()
    if length > _LONGEST:
        return None
    frequencies = 2 * math.pi / length * np.arange(length // 2 + 1, dtype=float)
    unit: Parts = tuple((kind, scale, float(round(size / step)), count) for kind, scale, size, count in parts)
    masses = np.fft.irfft(characteristic_function(unit, frequencies), length)
    both = masses[: reach + 1].copy()
    both[1:] *= 2
    return LatticeSum(step, np.maximum.accumulate(np.cumsum(np.maximum(both, 0.0))))


Complexes = NDArray[np.complex128]
_POINTS, _SPACING = 48, 0.12
SLACK = 2e-6  # twice and more what the rule was ever off by in tests/theorems/test_sums_of_noise.py
LARGEST_RIPPLE, REPEATS, NEGLIGIBLE = 5e-5, 24, 1e-7
LEAST, _NEWTON_STEPS = 0.05, 4  # in standard deviations; no error is stated below the least
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
    """The sum as a wide one, or None where the lattices of its terms show.

    For x > 0, P[X > x] = (1 / 2 pi i) * integral of exp(K(s) - s x) / s along any path that leaves 0 on its left and
    the poles of the moment generating function on its right. A hyperbola that bends to the right makes the integrand
    die off doubly exponentially, so that the trapezium rule with 48 points is right to 1e-6.

    Noise on the whole numbers repeats its poles up and down the plane. The path passes to the right of the repeats,
    which leaves them out: they are the ripple of the lattice. `ripple` bounds it. Where all coefficients share a
    lattice, 1 / s becomes g / (2 sinh(g s / 2)) and x lies midway between two points of it, which takes the common
    ripple in exactly.
    """
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
        shrinking = any(2 * REPEATS * other[2] < size or other[0] == "normal" for other in rest)
        for k in range(1, REPEATS + 1):
            if width < NEGLIGIBLE * k or ripple > LARGEST_RIPPLE:
                break
            if not multiple or k % multiple:
                error = width / k * _size_at(rest, 2 * math.pi * k / size)
                ripple += error
                if shrinking and error * REPEATS < NEGLIGIBLE:
                    break
    if not ripple <= LARGEST_RIPPLE:
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
    step = np.array([one.step / one.deviation for one in sums])
    return path_near(x, size, twice_variance, count, pole, quadratic, step)


def path_near(
    x: Floats, size: Floats, twice_variance: Floats, count: Floats, pole: Floats, quadratic: Floats, step: Floats
) -> _Path:
    """The same from arrays, in deviations: a row for each Laplace noise, the least pole, the variance of all others."""
    start = np.minimum(0.5 * pole, (x + np.sqrt(x * x + 4)) / 2)[:, None]  # the latter is the normal's saddle
    w = _SPACING * (np.arange(_POINTS) + 0.5)
    s = start * (0.5 + 0.5 * np.cosh(w) + 1j * np.sinh(w))
    slope = start * (0.5 * np.sinh(w) + 1j * np.cosh(w))
    # Far out exp(-s x) has made everything tiny; sinh is kept from overflowing there.
    exponent = quadratic[:, None] * s * s / 2
    for i in range(len(size)):
        z = size[i][:, None] * s / 2
        z = np.where(z.real > 300, 300, z)
        exponent -= count[i][:, None] * np.log(1 - twice_variance[i][:, None] * np.sinh(z) ** 2)
    has_step = step[:, None] > 0
    half = np.where(has_step, step[:, None], 1) * s / 2
    half = np.where(half.real > 300, 300, half)
    kernel = np.where(has_step, step[:, None] / (2 * np.sinh(half)), 1 / s)
    return _Path(s, np.exp(exponent) * kernel * slope)


def tails_of(sums: Sequence[WideSum], x: Floats) -> Floats:
    """P[|X_j| > x_j] for every sum, or up to 1e-4 more."""
    deviation = np.array([one.deviation for one in sums])
    step = np.array([one.step for one in sums])
    safe = np.where(step > 0, step, 1.0)
    midway = np.where(step > 0, (np.floor(x / safe * (1 + 1e-12)) + 0.5) * step, x) / deviation
    # Beyond 60 deviations the tail at 60 is charged: next to nothing, and nothing overflows.
    clipped = np.clip(midway, LEAST, 60.0)
    charged = _path(sums, clipped).tails(clipped) + np.array([one.ripple for one in sums]) + SLACK
    return np.asarray(np.where(midway < LEAST, 1.0, np.clip(charged, 0.0, 1.0)))


def errors_of(sums: Sequence[WideSum], confidence: float) -> Floats:
    """For every sum an e with P[|X| <= e] >= confidence; 1 - confidence is at least SMALLEST_TAIL."""
    target = 1 - confidence - SLACK - np.array([one.ripple for one in sums])
    x = np.maximum(_first_guess(sums, float(np.max(target))), LEAST)
    deviation = np.array([one.deviation for one in sums])
    step = np.array([one.step for one in sums])
    return errors_on(_path(sums, x), x, target, deviation, step)


def errors_on(path: _Path, x: Floats, target: Floats, deviation: Floats, step: Floats) -> Floats:
    """The same along paths near x: where tails are as large as `target`, outward to the lattice."""
    for _ in range(_NEWTON_STEPS):  # on the logarithm of the tail, which is nearly straight
        tail, density = path.tails_and_densities(x)
        x = np.maximum(x + tail / density * np.log(tail / target), LEAST)
    x = x * (1 + 1e-9)
    safe = np.where(step > 0, step, 1.0)
    on_lattice = np.maximum(np.ceil(x * deviation / safe - 0.5), 0) * step
    return np.asarray(np.where(step > 0, on_lattice, x * deviation))


def _first_guess(sums: Sequence[WideSum], tail: float) -> Floats:
    """Between the normal distribution and the Laplace distribution, by the kurtosis."""
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

"""The distribution of a sum of independent noises: how far off an answer is, at a confidence.

Closed forms for one term and for normal limits, an integral in the complex plane for wide noise, a Fourier transform
on short lattices, a sum over the atoms of all terms but one where there is no common step, and a Fourier series for
what is left. Every error is rounded outward: it holds at
least the asked share, and by less than 1e-4 more than it must (short of the steps that whole numbers take).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Protocol

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import (
    SMALLEST_TAIL,
    Floats,
    Kind,
    Part,
    Parts,
    Term,
    WideSum,
    characteristic_function,
    chernoff_radius,
    errors_of,
    lattice_sum,
    parts_of,
    tails_of,
    variance_of,
    variance_of_parts,
    wide_sum,
)
from farthing.privacy.events import checked_real

_BLUR = 1e-3  # standard deviation of the blur over that of the sum
_REACH = 4.5  # a blur further out than this many of its deviations has probability 6.8e-6
_WRAPPED = 1e-7  # mass beyond the period
_SLACK = 6.9e-6 + _WRAPPED + 2e-6  # blur, wrapping, terms left out
_LONGEST_OVER_BLUR = 30_000
_FAINTEST = 3e-10  # weight of a sine in a series; the few thousand that are fainter are charged together
_SERIES_STEP = 2e-4  # of a standard deviation: how closely an error is found, outward


@dataclass(frozen=True, eq=False)
class SeriesSum:
    """A lower bound of P[|X| <= shift + x], by no more than the blur and 1e-5: x / period + sum of weights sin(k x).

    `frequencies` are those whose weights count; the weights of all others, added up, are part of the slack.
    """

    period: float
    shift: float
    deviation: float
    frequencies: Floats
    weights: Floats
    slack: float

    def within(self, x: float) -> float:
        """The bound at one distance, 0 <= x <= period."""
        sines = float(self.weights @ np.sin(self.frequencies * x))
        return min(max(x / self.period + sines - self.slack, 0.0), 1.0 - self.slack)

    def tail(self, x: float) -> float:
        """P[|X| > x] or a little more."""
        return 1 - self.within(min(x - self.shift, self.period)) if x >= self.shift else 1.0

    def error(self, confidence: float) -> float:
        """An e with P[|X| <= e] >= confidence, a few thousandths of a standard deviation too large."""
        target, bracket = 1 - confidence, {0.0: 1.0, self.period: 1 - self.within(self.period)}
        if not bracket[self.period] <= target:
            return math.inf
        low, high = 0.0, self.period
        # Between the normal's quantile and that of Laplace noise, most likely; secants of the logarithm and halves find
        # it in any case.
        guesses = [_NORMAL.inv_cdf((1 + confidence) / 2), -math.log(target) / math.sqrt(2)]
        likely = sorted(guess * self.deviation for guess in guesses)
        for turn in range(60):
            if high - low <= _SERIES_STEP * self.deviation:
                break
            share = math.log(bracket[low] / target) / max(math.log(bracket[low] / bracket[high]), 1e-12)
            x = low + (0.5 if turn % 3 == 1 else min(max(1.01 * share, 0.01), 0.99)) * (high - low)
            x = likely[turn] if turn < 2 and low < likely[turn] < high else x
            bracket[x] = 1 - self.within(x)
            low, high = (low, x) if bracket[x] <= target else (x, high)
        return self.shift + high


def series_sum(parts: Parts) -> SeriesSum:
    """The distribution of the sum plus a small normal blur, from its cosine series over a period.

    With Z the blur, P[|X| <= x + z] >= P[|X + Z| <= x] - P[|Z| > z]. The blurred distribution has a density whose
    series converges, whatever the lattices of the terms.
    """
    deviation = math.sqrt(variance_of_parts(parts))
    period = chernoff_radius(parts, _WRAPPED) + 6 * _BLUR * deviation
    blur = max(_BLUR * deviation, period / _LONGEST_OVER_BLUR)
    highest = min([5.3 / blur, *(_frequency_limit(part, blur) for part in parts)])
    k = np.arange(1, math.ceil(highest * period / math.pi) + 1)
    frequencies = np.asarray(math.pi / period * k, dtype=float)
    blurred = characteristic_function(parts, frequencies) * np.exp(-((blur * frequencies) ** 2) / 2)
    weights = 2 * blurred / (math.pi * k)
    sizes = np.abs(weights)
    counted = sizes > _FAINTEST
    slack = _SLACK + float(sizes[~counted].sum())
    return SeriesSum(period, _REACH * blur, deviation, frequencies[counted], weights[counted], slack)


def _frequency_limit(part: tuple[str, float, float, int], blur: float) -> float:
    """Beyond it this term alone makes what is left of the series smaller than 1e-6."""
    kind, scale, size, count = part
    if kind == "normal":
        return math.sqrt(28 / count) / (size * scale)
    # The term's transform returns to 1 at multiples of 2 pi / size; from pi / size on the blur must have taken over.
    if size * 5.3 > math.pi * blur:
        return math.inf
    if kind == "gaussian":
        return math.pi / (size * scale) * math.sqrt(7 / count)
    # sin(y) >= 2 y / pi gives phi(u) <= c / u^2; the rest of the series is below (c / u^2)^count / (pi count).
    c = math.pi**2 / (2 * variance_of("laplace", scale) * size**2)
    return math.sqrt(c) * math.pow(1e6 / (math.pi * count), 1 / (2 * count))


_FINE_SCALE = 100.0  # steps; one step of outward rounding is then below a hundredth of the scale
_MOST_ATOMS = 4096
_MOST_STEPPED_ATOMS = 8192  # beside one term with steps of its own
_MOST_AT_ONCE = 1 << 14  # atoms of several sums in one array: what a processor keeps at hand
_HAIR = 1e-9  # of a standard deviation: more than sums of floats are off by
_LEFT_OUT = 1e-7  # mass of a coarse term beyond its atoms
_PRECISION = 1e-4  # of a standard deviation, outward
_NEARLY_EQUAL = 1e-3


@dataclass(frozen=True, eq=False)
class FineNoise:
    """One or two Laplace terms, or a normal distribution: scales in units of the answer, and the steps they are in.

    With a `lattice` above 0 it is one discrete Laplace term in steps of it, and no approximation.
    """

    first: float
    second: float
    normal: float
    steps: float
    lattice: float = 0.0


@dataclass(frozen=True, eq=False)
class MixedSum:
    """Atoms of the coarse part with their masses, and the fine part."""

    atoms: Floats
    masses: Floats
    fine: FineNoise
    slack: float
    deviation: float

    def tail(self, x: float) -> float:
        """P[|X| > x] or a little more."""
        return float(mixed_tails([self], np.array([x]))[0]) if x >= 0 else 1.0

    def error(self, confidence: float) -> float:
        """An e with P[|X| <= e] >= confidence."""
        return float(mixed_errors([self], confidence)[0])


def mixed_sum(parts: Parts) -> MixedSum | None:
    """The sum split into coarse and fine noise, or None where it does not split.

    A mean is the case in mind: its count has noise of a few whole numbers, its sum noise of thousands of small steps.
    With A the coarse part and W the fine one, P[A + W > x] is the sum over the atoms a of P[A = a] P[W > x - a].
    """
    fine = [part for part in parts if part[0] == "normal" or part[1] >= _FINE_SCALE]
    noise = _fine_noise(fine)
    coarse = [part for part in parts if part not in fine]
    if noise is None or not coarse:
        return None
    return _over_atoms(parts, coarse, noise, _MOST_ATOMS)


def stepped_sum(parts: Parts) -> MixedSum | None:
    """The same where every term has steps that show and no step is common to all, or None where it has many atoms.

    A mean between soft halves is the case in mind: two noises of one scale, with nearly equal coefficients. The atoms
    are those of all terms but the widest, which is a discrete Laplace noise with an exact tail. Where even two of them
    have many atoms, both count as fine if that is no rougher than the series.
    """
    laplace = [part for part in parts if part[0] == "laplace" and part[3] == 1]
    if not laplace or any(part[0] == "normal" for part in parts):
        return None
    deviation = math.sqrt(variance_of_parts(parts))
    widest = max(laplace, key=lambda part: part[1])
    _, scale, size, _ = widest
    noise = FineNoise(size * scale, 0.0, 0.0, _HAIR * deviation, size)
    rest = [part for part in parts if part != widest]
    stepped = _over_atoms(parts, rest, noise, _MOST_STEPPED_ATOMS)
    if stepped is None and (fine := _fine_noise(parts)) and fine.steps <= _REACH * _BLUR * deviation:
        stepped = _over_atoms(parts, [], fine, 1)
    return stepped


def _over_atoms(parts: Parts, coarse: Sequence[Part], noise: FineNoise, most: int) -> MixedSum | None:
    """The sum of coarse terms, atom by atom, and fine noise; None where there are more atoms than `most`."""
    atoms, masses, slack = np.zeros(1), np.ones(1), 0.0
    for kind, scale, size, count in coarse:
        if _reach_of(kind, scale) > most:
            return None
        one = _truncated(kind, scale)
        for _ in range(count):
            slack += _LEFT_OUT
            if len(atoms) * len(one) > most:
                return None
            n = np.arange(len(one)) - len(one) // 2
            atoms = np.add.outer(atoms, size * n).reshape(-1)
            masses = np.multiply.outer(masses, one).reshape(-1)
    return MixedSum(atoms, masses, noise, slack, math.sqrt(variance_of_parts(parts)))


def _reach_of(kind: str, scale: float) -> float:
    """How far the atoms of a term reach."""
    far = -math.log(_LEFT_OUT / 4)
    return scale * far if kind == "laplace" else scale * math.sqrt(2 * far)


def _truncated(kind: str, scale: float) -> Floats:
    """P[n] for n = -reach .. reach; what is beyond is charged as slack by the caller."""
    reach = math.ceil(_reach_of(kind, scale)) + 1
    n = np.abs(np.arange(-reach, reach + 1.0))
    weights = np.exp(-n / scale if kind == "laplace" else -(n**2) / (2 * scale**2))
    return np.asarray(weights / weights.sum())


def _fine_noise(parts: Sequence[Part]) -> FineNoise | None:
    laplace = [(size * scale, count) for kind, scale, size, count in parts if kind == "laplace"]
    others = [part for part in parts if part[0] != "laplace"]
    if laplace and others:
        return None
    if others:
        variance = sum(count * (size * scale) ** 2 for _, scale, size, count in others)
        # A sum of wide discrete Gaussians is normal midway between its points, to within a step of the coarsest.
        coarsest = max((size for kind, _, size, _ in others if kind != "normal"), default=0.0)
        return FineNoise(0.0, 0.0, math.sqrt(variance), coarsest)
    scales = sorted(scale for scale, count in laplace for _ in range(min(count, 3)))
    if not 1 <= len(scales) <= 2:
        return None
    steps = sum(size * count for _, _, size, count in parts)
    if len(scales) == 1:
        return FineNoise(scales[0], 0.0, 0.0, steps)
    low, high = scales
    return FineNoise(high, high if low > (1 - _NEARLY_EQUAL) * high else low, 0.0, steps)


class _FineTails:
    """P[W > z] of several fine noises W, a row of numbers z for each; W is continuous, one step's worth outward.

    A discrete Laplace noise is a continuous one less an independent part within one step (the difference of two
    geometric noises, each the whole part of an exponential one), so moving z in by the steps never gives too little.
    """

    def __init__(self, fine: Sequence[FineNoise]) -> None:
        self.first, self.second, self.normal, self.steps, self.lattice = (
            np.array([getattr(one, name) for one in fine])[:, None]
            for name in ("first", "second", "normal", "steps", "lattice")
        )
        of_kind: dict[Callable[..., Floats], list[int]] = {}
        for row, one in enumerate(fine):
            of_kind.setdefault(_tail_of(one), []).append(row)
        # Where all are of one kind, as most are, a slice of all of them copies nothing.
        self.kinds = [(kind, rows if len(of_kind) > 1 else slice(None)) for kind, rows in of_kind.items()]

    def __call__(self, z: Floats) -> Floats:
        z = z - self.steps
        y = np.abs(z)
        upper = np.empty_like(z)
        for kind, at in self.kinds:
            upper[at] = kind(z[at], y[at], self.first[at], self.second[at], self.normal[at], self.lattice[at])
        return np.where(z >= 0, upper, 1 - upper)


def _tail_of(noise: FineNoise) -> Callable[..., Floats]:
    if noise.normal > 0:
        return _normal_tail
    if noise.lattice > 0:
        return _lattice_tail
    if noise.second == 0:
        return _laplace_tail
    return _equal_laplace_tail if noise.second == noise.first else _two_laplace_tail


def _normal_tail(z: Floats, y: Floats, s: Floats, t: Floats, normal: Floats, lattice: Floats) -> Floats:
    from scipy.special import erfc

    return np.asarray(erfc(y / (math.sqrt(2) * normal)) / 2)


def _laplace_tail(z: Floats, y: Floats, s: Floats, t: Floats, normal: Floats, lattice: Floats) -> Floats:
    return np.exp(-y / s) / 2


def _equal_laplace_tail(z: Floats, y: Floats, s: Floats, t: Floats, normal: Floats, lattice: Floats) -> Floats:
    return (1 + y / (2 * s)) * np.exp(-y / s) / 2


def _two_laplace_tail(z: Floats, y: Floats, s: Floats, t: Floats, normal: Floats, lattice: Floats) -> Floats:
    return (s * s * np.exp(-y / s) - t * t * np.exp(-y / t)) / (2 * (s * s - t * t))


def _lattice_tail(z: Floats, y: Floats, s: Floats, t: Floats, normal: Floats, lattice: Floats) -> Floats:
    """P[n >= k] = r^k / (1 + r) for k >= 0: beyond z, and for z < 0 the complement of what is at most z."""
    step = lattice / s
    k = np.where(z >= 0, np.floor(y / lattice) + 1, np.ceil(y / lattice))
    return np.asarray(np.exp(-k * step) / (1 + np.exp(-step)))


def mixed_tails(sums: Sequence[MixedSum], x: Floats) -> Floats:
    """P[|X_j| > x_j] for every sum, or a little more."""
    return _Table(sums).tails(x)


class _Table:
    """Several sums with their atoms padded to one length."""

    def __init__(self, sums: Sequence[MixedSum]) -> None:
        longest = max(len(one.atoms) for one in sums)
        self.atoms, self.masses = np.zeros((len(sums), longest)), np.zeros((len(sums), longest))
        for j, one in enumerate(sums):
            self.atoms[j, : len(one.atoms)], self.masses[j, : len(one.masses)] = one.atoms, one.masses
        self.fine = _FineTails([one.fine for one in sums])
        self.slack = np.array([one.slack for one in sums])

    def tails(self, x: Floats) -> Floats:
        one_side = np.einsum("ja,ja->j", self.masses, self.fine(x[:, None] - self.atoms))
        return np.asarray(np.minimum(2 * one_side + self.slack, 1.0))


def mixed_errors(sums: Sequence[MixedSum], confidence: float) -> Floats:
    """For every sum an e with P[|X| <= e] >= confidence, by a bracketing secant on the logarithm of the tail."""
    if len(sums) > 1 and len(sums) * max(len(one.atoms) for one in sums) > _MOST_AT_ONCE:
        half = len(sums) // 2
        return np.concatenate([mixed_errors(sums[:half], confidence), mixed_errors(sums[half:], confidence)])
    table, target = _Table(sums), 1 - confidence
    deviation = np.array([one.deviation for one in sums])
    guess = max(NormalDist().inv_cdf(1 - target / 2), -math.log(target) / math.sqrt(2), 0.05) * deviation
    low, high = np.zeros_like(guess), 1.25 * guess
    at_low, at_high = np.ones_like(guess), table.tails(high)
    while np.any(at_high > target):
        wrong = at_high > target
        low, at_low = np.where(wrong, high, low), np.where(wrong, at_high, at_low)
        high = np.where(wrong, 1.5 * high, high)
        at_high = table.tails(high)
        if np.any(high > 1e3 * guess):
            return np.full(len(sums), math.inf)
    for round_ in range(60):
        if np.all(high - low <= _PRECISION * deviation):
            break
        share = np.log(at_low / target) / np.maximum(np.log(at_low / np.maximum(at_high, 1e-300)), 1e-12)
        # Secants pile up on one side of a curve, so every third step halves instead; steps aim a little outward.
        share = np.full_like(share, 0.5) if round_ % 3 == 2 else np.clip(share * 1.005, 0.01, 0.99)
        middle = low + share * (high - low)
        at = table.tails(middle)
        holds = at <= target
        low, at_low = np.where(holds, low, middle), np.where(holds, at_low, at)
        high, at_high = np.where(holds, middle, high), np.where(holds, at, at_high)
    return high


_NORMAL = NormalDist()
OUTWARD = 1 + 1e-9
STEPS_TO_BE_NORMAL = 4


class SumDistribution(Protocol):
    """The distribution of a sum: both answers err on the side of more error."""

    def tail(self, x: float) -> float:
        """P[|X| > x] or a little more."""

    def error(self, confidence: float) -> float:
        """An e with P[|X| <= e] >= confidence."""


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The sum of no terms, which is 0 with certainty."""

    def tail(self, x: float) -> float:
        return 0.0 if x >= 0 else 1.0

    def error(self, confidence: float) -> float:
        return 0.0


@dataclass(frozen=True, slots=True)
class OneLaplace:
    """`size` times one discrete Laplace noise: P[|n| > k] = 2 r^(k + 1) / (1 + r) with r = exp(-1 / scale)."""

    scale: float
    size: float

    def tail(self, x: float) -> float:
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
    """A normal distribution, or one on a lattice of `step` that is normal midway between its points."""

    deviation: float
    step: float = 0.0
    ripple: float = 0.0

    def tail(self, x: float) -> float:
        """The normal's tail, midway between two points of the lattice."""
        if x < 0:
            return 1.0
        if self.step:
            x = (math.floor(x / self.step * (1 + 1e-12)) + 0.5) * self.step
        return min(1.0, math.erfc(x / self.deviation / math.sqrt(2)) * OUTWARD + self.ripple)

    def error(self, confidence: float) -> float:
        """The normal's quantile, outward to the lattice."""
        tail = (1 - confidence - self.ripple) / 2
        x = -_NORMAL.inv_cdf(tail) * self.deviation * OUTWARD if tail > 0 else math.inf
        return self.step * max(0, math.ceil(x / self.step - 0.5)) if self.step and x < math.inf else x


@lru_cache(maxsize=16384)
def distribution_of(parts: Parts) -> SumDistribution:
    """The distribution of the sum of normalised terms, by the first method that suits it."""
    if not parts:
        return NoNoise()
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
        if steps >= STEPS_TO_BE_NORMAL:
            # Midway between points of the lattice the distribution is that of a normal whose variance lacks step^2 / 12
            # (Sheppard's correction); what comes next in the Euler-Maclaurin series is of the fourth order.
            deviation = wide.deviation * math.sqrt(1 - 1 / (12 * steps**2))
            return Normal(deviation, wide.step, wide.ripple + 4e-3 / steps**4)
    return lattice_sum(parts) or mixed_sum(parts) or stepped_sum(parts) or series_sum(parts)


def error_of_sum(terms: Iterable[Term], confidence: float = 0.95) -> float:
    """The least e (or a hair more) with P[|sum of the terms| <= e] >= confidence.

    Args:
        terms: Independent terms of noise.
        confidence: A probability between 0 and 1.

    Returns:
        The error.

    Raises:
        InvalidValue: If `confidence` is not between 0 and 1.

    >>> error_of_sum([Term("laplace", 10.0, count=4)])
    57.0
    >>> error_of_sum([Term("gaussian", 3.0), Term("gaussian", 4.0)])
    10.0
    """
    return error_of_parts(parts_of(map(_scalar, terms)), checked_confidence(confidence))


def tail_of_sum(terms: Iterable[Term], x: float) -> float:
    """P[|sum of the terms| > x], or up to 1e-4 more.

    Args:
        terms: Independent terms of noise.
        x: The bound.

    Returns:
        The probability, rounded up.

    Raises:
        InvalidValue: If `x` is not a number.

    >>> round(tail_of_sum([Term("laplace", 10.0)], 29), 4)
    0.0523
    """
    return distribution_of(parts_of(map(_scalar, terms))).tail(checked_real(x, "x"))


def error_of_parts(parts: Parts, confidence: float) -> float:
    """The error of one normalised sum."""
    distribution = distribution_of(parts)
    if 1 - confidence < SMALLEST_TAIL and not isinstance(distribution, NoNoise | OneLaplace):
        rough = isinstance(distribution, WideSum | MixedSum | SeriesSum)
        # Where there is a lattice, tails are right to 1e-12.
        exact = lattice_sum(parts) if rough else distribution
        error = exact.error(confidence) if exact else math.inf
        return min(error, chernoff_radius(parts, 1 - confidence))
    error = distribution.error(confidence)
    return error if error < math.inf else chernoff_radius(parts, 1 - confidence)


def errors_of_many(sums: Sequence[Parts], confidence: float) -> Floats:
    """The error of every sum at once; sums that need arrays share one pass over them."""
    errors = np.zeros(len(sums))
    wide: dict[int, WideSum] = {}
    mixed: dict[int, MixedSum] = {}
    far = 1 - confidence < SMALLEST_TAIL
    for place, parts in enumerate(sums):
        distribution = distribution_of(parts)
        if isinstance(distribution, WideSum) and not far:
            wide[place] = distribution
        elif isinstance(distribution, MixedSum) and not far:
            mixed[place] = distribution
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
        distribution = distribution_of(parts)
        if isinstance(distribution, WideSum):
            wide[place] = distribution
        elif isinstance(distribution, MixedSum):
            mixed[place] = distribution
        else:
            tails[place] = distribution.tail(x)
    if wide:
        tails[list(wide)] = tails_of(list(wide.values()), np.full(len(wide), x))
    if mixed:
        tails[list(mixed)] = mixed_tails(list(mixed.values()), np.full(len(mixed), x))
    return tails


def deviation_of_sum(terms: Iterable[Term]) -> float:
    """The standard deviation of a sum of independent terms of noise.

    Args:
        terms: The terms.

    Returns:
        The standard deviation.

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
        raise InvalidValue("term", term, "must be one number, not an array", "use ErrorDistribution for several cells")
    return term.kind, term.scale, float(term.coefficient), int(term.count)

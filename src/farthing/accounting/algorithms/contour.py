"""The contour engine: D(x) between two integrals that can be bounded for all t.

Statement (the Gaussian sandwich):
    For mu > 0 add to L the loss of one more mechanism, a Gaussian with that mu: a normal variable g of mean mu^2 / 2
    and variance mu^2. Write D_mu for the curve of L + g and g_mu for its density, whose integrals have the factor
    exp(z (z+1) mu^2 / 2) and, in place of k(z), k(z) and 1.
    Then   D_mu(x) - A mu^2 g_mu(x)  <=  D(x)  <=  D_mu(x),   A = (2 Phi(mu/2) - 1) / (mu phi(mu/2)) = 1 + O(mu^2).
Source: this project. Right side: adding a mechanism never lowers delta. Left side: with u = L - x the excess of the
    smoothed payoff E[(1 - exp(-u - g))_+] over (1 - exp(-u))_+ is, by put-call parity, exp(-u/2) times
    (R(v - mu/2) - R(v + mu/2)) exp(-u^2 / (2 mu^2) - mu^2 / 8) / sqrt(2 pi), with v = |u| / mu and R = (1 - Phi) / phi
    (Mills). R is decreasing and convex, so the difference is largest at u = 0, where it is A mu; and
    mu^2 exp(-u/2 - u^2/(2 mu^2) - mu^2/8) / (mu sqrt(2 pi)) is mu^2 times the density above.
Assumes: any loss with a finite transform at c; nothing about lattices or smoothness.
Direction: both. The gap is second order: about (c + 1) mu^2 in epsilon. For both integrands the factor
    exp(-t^2 mu^2 / 2) makes everything beyond t of about 7 / mu negligible, whatever the epsilons are; between the
    sampled part and there, |Phi| is bounded on boxes, and where that is too weak the points are sampled too.
Checked by: tests/theorems/test_contour.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.algorithms.line_integral import (
    Aliases,
    DeconvolvedKernel,
    Kernel,
    LatticeKernel,
    Line,
    PlainKernel,
    Saddle,
    dyadic,
    nodes,
)
from farthing.accounting.inversion import Curve
from farthing.accounting.lattice import Lattice
from farthing.accounting.loss_transforms import ARGUMENT_ERROR, Array, Phase, Transform
from farthing.accounting.sketch import Sketch

_ROUNDING = 1e-9  # far above the error of reducing t e modulo pi for t e < 10^6, far below any angle that matters
_CHUNK = 1 << 20


class BoxBounds:
    """Bounds on boxes for one transform and one line; sorts the epsilons once."""

    def __init__(self, transform: Transform, c: float) -> None:
        order = np.argsort(transform.epsilons)
        self.epsilons = transform.epsilons[order]
        self.weights = transform.weights[order]
        self.sech2 = 1 / np.cosh(np.minimum((c + 0.5) * self.epsilons, 350.0)) ** 2
        self.spread = np.concatenate([[0.0], np.cumsum(self.weights * self.epsilons**2 * self.sech2)])
        self.transform = transform
        self.c = c

    def natural_width(self, t: float, factors: int) -> float:
        """A box width at t for which the chosen factors do not blur: r <= 1/4."""
        chosen = self._chosen(t, factors)
        if not len(chosen):
            return t
        return min(t, 0.5 / float(self.epsilons[chosen[-1]]))

    def log_modulus(self, low: Array, high: Array, factors: int) -> Array:
        """An upper bound of log |Phi| on each [low, high]; all boxes lie within a factor of two of the first."""
        out = -low * low * self.transform.gaussian / 2
        # Factors too slow to turn within the box: the Gaussian-like part.
        slow = np.searchsorted(self.epsilons, 1 / high)
        fastest = high * self.epsilons[np.maximum(slow - 1, 0)] if len(self.epsilons) else high
        out -= self.spread[slow] * low * low * np.maximum(1 - fastest**2 / 3, 2 / 3) / 2
        chosen = self._chosen(float(low[0]), factors)
        fast = chosen[self.epsilons[chosen] > 1 / float(high.max())]
        if len(fast):
            e, w, sech2 = self.epsilons[fast], self.weights[fast], self.sech2[fast]
            single = bool(np.all(w == 1))
            rows = max(1, _CHUNK // len(e))
            for start in range(0, len(low), rows):
                part = slice(start, start + rows)
                turn = (low[part, None] + high[part, None]) * (e / (2 * np.pi))
                sine = np.pi * np.abs(turn - np.rint(turn))
                sine -= (high[part, None] - low[part, None]) * (e / 2) + _ROUNDING * (1 + turn * 1e-6)
                np.maximum(sine, 0.0, out=sine)
                np.sin(sine, out=sine)
                square = 1 - sech2 * sine * sine
                square[high[part, None] * e <= 1] = 1.0  # counted among the slow ones above
                if single:
                    out[part] += 0.5 * np.log(np.maximum(square.prod(axis=1), 1e-300))
                else:
                    out[part] += 0.5 * (w * np.log(square)).sum(axis=1)
        out += self._laplace(low)
        out += self._ranges(low)
        return out * (1 - _ROUNDING)

    def typical(self) -> float:
        """The mean of log |Phi| over a long stretch of t.

        The mean of log |cos b + i tanh(a) sin b| over all b is log((1 + tanh a) / 2).
        """
        return float(np.dot(self.weights, np.log((1 + np.sqrt(np.maximum(1 - self.sech2, 0.0))) / 2)))

    def _chosen(self, t: float, factors: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Some `factors` of the smallest epsilons that turn by at least one radian up to t.

        Small ones allow wide boxes. They are picked from a whole octave, because neighbours in a long list are so alike
        that they would all stand still at the same t.
        """
        size = len(self.epsilons)
        first = min(int(np.searchsorted(self.epsilons, 1 / t)), max(0, size - factors))
        octave = int(np.searchsorted(self.epsilons, 2 * self.epsilons[first])) if first < size else size
        last = min(size, max(first + factors, octave))
        if last - first <= factors:
            return np.arange(first, last)
        return np.linspace(first, last - 1, factors).astype(np.intp)

    def _ranges(self, low: Array) -> Array | float:
        """A bounded range has a density only: its transform decays like s / (2 t)."""
        e, n = self.transform.ranges, self.transform.range_counts
        if not len(e):
            return 0.0
        s = 2 * self.c + 1
        ratio = (1 + np.exp(-s * e)) / -np.expm1(-s * e) * s / (2 * low[:, None])
        bound: Array = (n * np.minimum(np.log(ratio), 0.0)).sum(axis=1)
        return bound

    def _laplace(self, low: Array) -> Array | float:
        """Half of a Laplace loss is two atoms; the rest has a density whose transform decays like 1 / t."""
        e, n = self.transform.laplace, self.transform.laplace_counts
        if not len(e):
            return 0.0
        s = 2 * self.c + 1
        level = np.log(((self.c + 1) + self.c * np.exp(-s * e)) / s)
        ratio = 0.5 * (1 + np.exp(-s * e)) * (1 + 1 / (2 * low[:, None]))
        bound: Array = (n * np.minimum(np.log(ratio) - level, 0.0)).sum(axis=1)
        return bound


Integers = NDArray[np.int64]

_BLOCK = 16
# Factors used, and how much smaller the boxes are, in turn.
_TRIES = (
    (120, 1),
    (240, 2),
    (1000, 4),
    (4000, 8),
)
_HOPELESS = -40.0  # a typical log |Phi| above which no box bound will be small enough
_MOST_BOX_WORK = 1e8  # factors times boxes in one zone
_NEGLIGIBLE = -40.0  # log of what no longer matters in double precision


@dataclass(frozen=True, eq=False)
class Proof:
    """A sampled line with a bound on everything that was not sampled."""

    line: Line
    transform: Transform
    saddle: Saddle
    beside: Aliases
    smoothing: float
    left_out: float
    far_points: int  # how many samples lie beyond the main part of the line

    def estimate(self) -> Line:
        """The line from which to read the best single value: the smoothing taken back."""
        return replace(self.line, kernel=DeconvolvedKernel(self.smoothing)) if self.smoothing else self.line

    def log_delta(self, x: float) -> Curve:
        """log D(x) from below and from above, every error included."""
        line = self.line
        samples = line.integrand(x)
        turn = np.abs(line.t * line.kernel.anchor(x))
        inexact = line.phase.error + 2 * ARGUMENT_ERROR * (turn + 16)
        error = float(np.sum(np.abs(samples) * inexact + line.kernel_error(x)))
        error = error * (1 + 1e-6) + self.left_out
        total = float(np.sum(samples.real))
        # log(h / 2 pi) + K - c y: the rounding of each of the three terms.
        anchor = line.kernel.anchor(x)
        slack = self.saddle.at_c.error + 2.0**-50 * (abs(line.log_scale) + 2 * line.c * abs(anchor) + 16)
        prefactor = line.log_prefactor(x)
        chernoff = self.chernoff(x)
        # D is positive, so a sum that is not (or is NaN) says nothing: then the plain bound stands.
        high = prefactor + math.log(total + error) + slack if total + error > 0 else 0.0
        lowest = total - error - self._correction(x) - self.aliases(x)
        low = prefactor + math.log(lowest) - slack if lowest > 0 else -math.inf
        return Curve(low, min(high, chernoff))

    def chernoff(self, x: float) -> float:
        """log of the plain bound D(x) <= min(1, M(c) exp(-c x)), for when nothing better is known."""
        k, c = self.saddle.at_c, self.line.c
        return min(0.0, k.value + k.error - c * x + 2.0**-50 * (abs(k.value) + c * abs(x)))

    def _correction(self, x: float) -> float:
        """A mu^2 g_mu(x), in units of the prefactor; 0 when nothing was smoothed."""
        if not self.smoothing:
            return 0.0
        line = self.line
        turn = line.phase.argument - line.t * line.kernel.anchor(x)
        size = line.weights * np.exp(line.phase.log_modulus)
        samples = size * np.cos(turn)
        error = float(np.sum(size * (line.phase.error + 2 * ARGUMENT_ERROR * np.abs(line.t * x))))
        return (
            excess_constant(self.smoothing)
            * self.smoothing**2
            * (max(float(np.sum(samples)), 0.0) + error)
            * (1 + 1e-9)
        )

    def aliases(self, x: float) -> float:
        """What sampling added, in units of the prefactor: only the lower bound has to take it off."""
        anchor = self.line.kernel.anchor(x)
        relative = self.beside.bound(x, 2 * math.pi / self.line.step)
        # alias_bound is relative to exp(K - c x); the prefactor has exp(K - c y), y >= x.
        return relative * 2 * math.pi / self.line.step * math.exp(min(self.line.c * (anchor - x), 700.0)) * (1 + 1e-6)


def excess_constant(smoothing: float) -> float:
    """An upper bound of A(mu) = (2 Phi(mu/2) - 1) / (mu phi(mu/2)) for mu <= 1: the series 1 + mu^2/12 + ..."""
    return 1 + smoothing**2 / 11 + 1e-12


def reach(goal: float, c: float) -> float:
    """How far up the line the sandwich has to look: about 7 / mu."""
    return 7 / smoothing_for(goal, c)


def smoothing_for(goal: float, c: float) -> float:
    """The mu whose sandwich is about `goal` wide in epsilon."""
    return min(0.5, math.sqrt(goal / (c + 1)))


def prove(
    transform: Transform,
    saddle: Saddle,
    lattice: Lattice | None,
    goal: float,
    work: float = 1e9,
    most: float = 5e5,
) -> Proof:
    """Sample the line through `saddle` and bound the rest.

    `goal` is the width of the sandwich aimed at (lattices need none); `work` caps how many factor evaluations and
    `most` how many points are spent on sampling the far part before its box bounds are accepted as they are.
    """
    smoothing = 0.0
    kernel: Kernel = PlainKernel()
    if lattice is None and not _gaussian_suffices(transform, smoothing_for(goal, saddle.c)):
        smoothing = smoothing_for(goal, saddle.c)
        transform = replace(transform, gaussian=transform.gaussian + smoothing**2)
        saddle = Saddle(saddle.c, saddle.x, transform.cumulants(saddle.c))
    beside = Aliases.of(transform, saddle)
    period = beside.period(saddle.x, 1e-17)
    if lattice is not None:
        points = max(3, math.ceil(period / lattice.span)) | 1
        step = 2 * math.pi / (points * lattice.span)
        kernel = LatticeKernel(transform.top()[0], lattice.span)
        last = points // 2 + 1
    else:
        step = dyadic(2 * math.pi / period)
        last = 1 << 62
    return _sampled(transform, saddle, beside, kernel, step, last, smoothing, work, most)


def _gaussian_suffices(transform: Transform, smoothing: float) -> bool:
    """Whether the mechanisms' own Gaussian noise already makes the far part negligible soon enough."""
    return transform.gaussian > smoothing**2


def _sampled(
    transform: Transform,
    saddle: Saddle,
    beside: Aliases,
    kernel: Kernel,
    step: float,
    last: int,
    smoothing: float,
    work: float,
    most: float,
) -> Proof:
    main, end = _main_part(transform, saddle, step, last, work)
    lattice = isinstance(kernel, LatticeKernel)
    start = nodes(step, 0, end)
    line = Line(saddle.c, step, saddle.at_c.value, start, _folded(start), main, kernel)
    scale = abs(float(np.sum(line.integrand(saddle.x).real)))
    tolerance = max(scale, 1e-300) * 1e-13
    bound = _kernel_bound(kernel, saddle.c, smoothing)
    stop, tail = (last, 0.0) if lattice else _tail(transform, step, bound, tolerance)
    far = far_part(
        BoxBounds(transform, saddle.c),
        step,
        end,
        stop,
        bound,
        tolerance,
        min(most, work / max(1, transform.terms)),
    )
    left_out = far.left_out + tail
    if far.runs:
        more = [transform.run(saddle.c, step, low, high) for low, high in far.runs]
        phase = Phase(*(np.concatenate(pieces) for pieces in zip(main, *more, strict=True)))
        t = np.concatenate([start, *(nodes(step, low, high) for low, high in far.runs)])
        line = replace(line, t=t, weights=_folded(t), phase=phase)
    return Proof(line, transform, saddle, beside, smoothing, left_out * (1 + 1e-9), len(line.t) - end)


def _folded(t: Array) -> Array:
    """Weight 1 at t = 0 and 2 elsewhere: the points at -t are conjugates."""
    return np.where(t == 0, 1.0, 2.0)


def _main_part(transform: Transform, saddle: Saddle, step: float, last: int, work: float) -> tuple[Phase, int]:
    """Phi at 0, h, 2 h, ... until it is negligible, or until box bounds are the better way to go on."""
    parts: list[Phase] = []
    end, block = 0, _BLOCK
    limit = min(last, max(256, int(min(work, 4e6) / max(20, transform.terms))))
    while end < limit:
        stop = min(end + block, limit)
        parts.append(transform.phase(saddle.c, nodes(step, end, stop)))
        end = stop
        if float(np.max(parts[-1].log_modulus[-8:])) < _NEGLIGIBLE:
            break
        block = max(block, end // 2)
    return Phase(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True))), end


def _kernel_bound(kernel: Kernel, c: float, smoothing: float) -> tuple[float, float]:
    """(a, b) with |k(z)| <= a / t^2 + b for both ends of the sandwich."""
    if isinstance(kernel, LatticeKernel):
        return 0.0, 2 * kernel.span / -math.expm1(-c * kernel.span) * (1 + 1e-9)
    return 1.0, excess_constant(smoothing) * smoothing**2 if smoothing else 0.0


def _tail(transform: Transform, step: float, bound: tuple[float, float], tolerance: float) -> tuple[int, float]:
    """How far to look, and a bound on 2 sum |Phi k| beyond: the Gaussian factor alone.

    For t > T the terms are at most (a / T^2 + b) exp(-s t^2 / 2) and decrease, so their sum is below the integral from
    T - h on, which is below exp(-s T'^2 / 2) / (s T' h) with T' = T - h.
    """
    s = transform.gaussian
    if not s > 0:
        raise AssertionError("the sandwich or a Gaussian event always provides decay")
    reach = 5.0
    while True:
        end = math.ceil(reach / math.sqrt(s) / step) + 2
        start = (end - 2) * step
        left = 2 * (bound[0] / start**2 + bound[1]) * math.exp(-s * start**2 / 2) / (s * start * step)
        if left <= tolerance or reach > 40:
            return end, left * (1 + 1e-6)
        reach += 0.25


class Far(NamedTuple):
    """Runs of points to sample, and a bound on all the others."""

    runs: list[tuple[int, int]]
    left_out: float


def far_part(
    boxes: BoxBounds,
    step: float,
    first: int,
    stop: int,
    bound: tuple[float, float],
    tolerance: float,
    budget: float,
) -> Far:
    """Cover the points first..stop by boxes; sample those whose bound is too weak, within the budget.

    Zones double in t. In each, boxes are tried with few factors, then smaller ones with more factors.
    """
    left_out = 0.0
    weak: list[tuple[float, int, int]] = []
    # With few factors |Phi| stays too large for boxes to help: then everything is sampled, as far as that goes.
    if boxes.typical() > _HOPELESS and stop - first <= budget:
        return Far([(first, stop)] if stop > first else [], 0.0)
    start, zones = first, max(1, math.ceil(math.log2(max(stop, 2) / max(first, 1))))
    while start < stop:
        end = min(stop, 2 * start)
        allowed = tolerance / zones / (end - start)  # a box may leave out its share, by its number of points
        low, high = np.array([start]), np.array([end])
        value = 2.0 * (high - low) * (bound[0] / (start * step) ** 2 + bound[1])  # |Phi| <= 1
        for factors, shrink in _TRIES:
            width = max(1, int(boxes.natural_width(start * step, factors) / step / shrink))
            finer_low, finer_high = _split(low, high, width)
            if len(finer_low) * min(factors, len(boxes.epsilons)) > _MOST_BOX_WORK:
                break
            low, high = finer_low, finer_high
            value = _contribution(boxes, low, high, step, bound, factors)
            good = value <= allowed * (high - low)
            left_out += float(np.sum(value[good]))
            low, high, value = low[~good], high[~good], value[~good]
            if not len(low):
                break
        weak += zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
        start = end
    # The heaviest boxes are sampled first; what does not fit into the budget stays as a bound.
    weak.sort(key=lambda box: -box[0] / (box[2] - box[1]))
    chosen: list[tuple[int, int]] = []
    for value_, low_, high_ in weak:
        if high_ - low_ <= budget:
            budget -= high_ - low_
            chosen.append((low_, high_))
        else:
            left_out += value_
    return Far(_joined(chosen), left_out)


def _joined(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Intervals close to each other made one: sampling a short gap is cheaper than starting over."""
    runs: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if runs and low - runs[-1][1] <= 128:
            runs[-1] = (runs[-1][0], high)
        else:
            runs.append((low, high))
    return runs


def _split(low: Integers, high: Integers, width: int) -> tuple[Integers, Integers]:
    """Integer boxes [low, high) cut to at most `width` points each."""
    pieces = -(-(high - low) // width)
    index = np.repeat(np.arange(len(low)), pieces)
    offset = np.arange(len(index)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = low[index] + offset * width
    return starts, np.minimum(starts + width, high[index])


def _contribution(
    boxes: BoxBounds, low: Integers, high: Integers, step: float, bound: tuple[float, float], factors: int
) -> Array:
    """2 * points * sup |Phi| * sup |k| on each box."""
    if not len(low):
        return np.zeros(0)
    t: Array = low.astype(np.float64) * step
    top = np.exp(boxes.log_modulus(t, (high.astype(np.float64) - 1) * step, factors))
    result: Array = 2 * (high - low) * top * (bound[0] / t**2 + bound[1]) * (1 + 1e-9)
    return result


_GOAL = 1e-5  # width of the sandwich, which is then taken back to third order
_WORK = 3e6  # factor evaluations an estimate may spend on one line
_POINTS = 20_000  # and points
_FINEST = 2e4  # pi / span up to which a lattice is walked through; finer ones look like a continuum
_DECAYED = -38.0  # log of what no longer matters


@dataclass(frozen=True, eq=False)
class Estimate:
    """A line, where it runs, and an honest margin for log D.

    The line is that of the proof, sampled less far: for planning, sliders and starting points.
    """

    line: Line
    start: float
    margin: float

    def log_delta(self, x: float) -> float:
        """The estimate of log D(x), without a bound on its error."""
        return self.line.log_delta(x)

    def root(self, log_target: float) -> float:
        """Where log D(x) = log_target, estimated."""
        return self.line.root(log_target, self.start)

    def slope(self, x: float) -> float:
        """-d log D / dx."""
        return self.line.slope(x)


def estimate_line(transform: Transform, saddle: Saddle, lattice: Lattice | None) -> Estimate:
    """The line through `saddle`, with a coarser sandwich than a proof's, and less work on its far part."""
    if lattice is not None and math.pi / lattice.span > _FINEST:
        lattice = None
    proof = prove(transform, saddle, lattice, _GOAL, _WORK, _POINTS)
    estimate = _of_proof(proof)
    if lattice is None and estimate.margin > 1e-8 and proof.smoothing:
        # Too few factors for the far part to be negligible: smooth so much that the points at hand reach its end.
        most = min(_POINTS, _WORK / max(1, transform.terms))
        goal = (saddle.c + 1) * (7 / (most * proof.line.step)) ** 2
        if goal > _GOAL:
            rougher = _of_proof(prove(transform, saddle, None, goal, _WORK, _POINTS))
            estimate = min(estimate, rougher, key=lambda each: each.margin)
    return estimate


def _of_proof(proof: Proof) -> Estimate:
    saddle, line = proof.saddle, proof.estimate()
    samples = line.integrand(saddle.x)
    total = abs(float(np.sum(samples.real)))
    error = float(np.sum(np.abs(samples) * proof.line.phase.error)) + proof.left_out
    margin = saddle.at_c.error + 1e-14 + (error / total if total > 0 else math.inf)
    # The sandwich is 2 w wide in log D. Taking it back leaves w^3 of a smooth curve, and a few percent of a rough one.
    w = saddle.c * (saddle.c + 1) * proof.smoothing**2 / 2
    # Smooth: Phi itself, without the smoothing, had died out at the end of the main part, and nothing came back.
    end = slice(-8, None)
    alone = proof.line.phase.log_modulus[end] + (proof.line.t[end] * proof.smoothing) ** 2 / 2
    smooth = not proof.far_points and float(np.max(alone)) < _DECAYED
    # Rough: by as much as Phi typically is where the smoothing cuts it off, and never by more than the sandwich.
    # A few values with many repetitions turn together, so nothing is typical of them.
    typical = 0.0 if proof.transform.terms < 16 else min(0.0, BoxBounds(proof.transform, saddle.c).typical())
    rough = min(1.0, 100 * math.exp(typical))
    return Estimate(line, saddle.x, margin + (w**3 if smooth else rough * w + w**3))


def sketched_line(transform: Transform, saddle: Saddle, sketch: Sketch, sampled_epsilons: Array) -> Estimate:
    """The line of a sketch; `sampled_epsilons` are some of its epsilons, to show that nothing comes back further up, or
    none where that is known already.

    A sketch is valid up to t of about 0.75 / epsilon. By then the many epsilons of a dense octave have made the
    integrand negligible; but if they were (nearly) on a lattice it would return, which a few of them can tell.
    """
    furthest = min((0.75 / largest for largest, _ in sketch.dense_octaves()), default=math.inf)
    line = _fast_estimate_sampled(transform, saddle, furthest)
    samples = line.integrand(saddle.x)
    total = abs(float(np.sum(samples.real)))
    error = float(np.sum(np.abs(samples) * line.phase.error))
    if len(sampled_epsilons):
        error += _far_estimate(transform, saddle, sketch, sampled_epsilons, line, furthest, total)
    margin = saddle.at_c.error + 1e-13 + (error / total if total > 0 else math.inf)
    return Estimate(line, saddle.x, margin)


def _far_estimate(
    transform: Transform,
    saddle: Saddle,
    sketch: Sketch,
    sampled_epsilons: Array,
    line: Line,
    furthest: float,
    total: float,
) -> float:
    """An estimate of what the integrand amounts to beyond the sketch's reach."""
    none = np.zeros(0)
    # Each sampled epsilon stands for its share of the many; that is an estimate, not a proof.
    many = sum(number for _, number in sketch.dense_octaves())
    share = np.full(len(sampled_epsilons), many / max(1, len(sampled_epsilons)))
    boxes = BoxBounds(Transform(sampled_epsilons, share, none, none, transform.gaussian), saddle.c)
    end = max(len(line.t), int(min(furthest, 1e15) / line.step))
    stop = int(reach(_GOAL, saddle.c) / line.step)
    return far_part(boxes, line.step, end, stop, (1.0, 0.0), 1e-13 * total, 0.0).left_out


def _fast_estimate_sampled(transform: Transform, saddle: Saddle, furthest: float) -> Line:
    step = dyadic(2 * math.pi / Aliases.of(transform, saddle).period(saddle.x, 1e-16))
    last = int(min(_POINTS, max(8.0, furthest / step)))
    parts: list[Phase] = []
    end, block = 0, 16
    while end < last:
        stop = min(end + block, last)
        parts.append(transform.phase(saddle.c, nodes(step, end, stop)))
        end = stop
        if float(np.max(parts[-1].log_modulus[-8:])) < _DECAYED:
            break
        block = max(16, end // 2)
    joined = Phase(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))
    t = nodes(step, 0, end)
    return Line(saddle.c, step, saddle.at_c.value, t, np.where(t == 0, 1.0, 2.0), joined, PlainKernel())

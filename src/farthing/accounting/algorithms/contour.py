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

from farthing.accounting.algorithms.box_bounds import BoxBounds
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

_CHUNK = 1 << 20

Integers = NDArray[np.int64]

_BLOCK = 16
# Factors used, and how much smaller the boxes are, in turn.
_TRIES = (
    (120, 1),
    (240, 2),
    (1000, 4),
    (4000, 8),
)
_QUICK = 1.3e9  # factor evaluations that a proof may always spend on sampling
_AFTERWARDS = 100
_BOX_PRICE = 3  # what a factor in a box bound costs, in factors of a sample
_SHORT_GAP = 64
_LEFT_OUT = 5e-4  # what may be left out, in widths of the sandwich
_FEW = 2000  # factors up to which a better line is looked for
_WIDE = 1e-8  # in epsilon
_SHORT_WORK = 1e8  # factor evaluations, times 2 pi, for which no other line is looked for
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
    rate: float  # about -d log D / dx: the c of the saddle, even where the line runs beside it
    smoothing: float
    left_out: float
    far_points: int  # how many points were sampled beyond the main part of the line

    def estimate(self) -> Line:
        """The line from which to read the best single value: the smoothing taken back."""
        return replace(self.line, kernel=DeconvolvedKernel(self.smoothing)) if self.smoothing else self.line

    def log_delta(self, x: float) -> Curve:
        """log D(x) from below and from above, every error included."""
        line = self.line
        turned = line.turned(x)
        samples = turned * line.kernel_values(x)
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
        lowest = total - error - self._correction(x, float(np.sum(turned.real))) - self.aliases(x)
        low = prefactor + math.log(lowest) - slack if lowest > 0 else -math.inf
        return Curve(low, min(high, chernoff))

    def chernoff(self, x: float) -> float:
        """log of the plain bound D(x) <= min(1, M(c) exp(-c x)), for when nothing better is known."""
        k, c = self.saddle.at_c, self.line.c
        return min(0.0, k.value + k.error - c * x + 2.0**-50 * (abs(k.value) + c * abs(x)))

    def _correction(self, x: float, total: float) -> float:
        """A mu^2 g_mu(x), in units of the prefactor, `total` being the sum of its samples; 0 without a smoothing."""
        if not self.smoothing:
            return 0.0
        line = self.line
        size = line.weights * np.exp(line.phase.log_modulus)
        error = float(np.sum(size * (line.phase.error + 2 * ARGUMENT_ERROR * np.abs(line.t * x))))
        return excess_constant(self.smoothing) * self.smoothing**2 * (max(total, 0.0) + error) * (1 + 1e-9)

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
    work: float = 1.3e9,
    most: float = 5e5,
) -> Proof:
    """Sample the line through `saddle` and bound the rest.

    `goal` is the width of the sandwich aimed at (lattices need none); `work` caps how many factor evaluations and
    `most` how many points are spent on sampling the far part before its box bounds are accepted as they are.
    """
    smoothing, rate = 0.0, saddle.c
    kernel: Kernel = PlainKernel()
    furthest = math.pi / lattice.span if lattice is not None else reach(goal, rate)
    saddle = _beside(transform, saddle, furthest, lattice is not None or goal < _WIDE)
    if lattice is None:
        # A hair narrower than the goal, which leaves room for what is not sampled.
        wanted = smoothing_for(goal * (1 - 8 * _LEFT_OUT), rate)
        if not _gaussian_suffices(transform, wanted):
            smoothing = wanted
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
    return _sampled(transform, saddle, beside, kernel, step, last, rate, smoothing, work, most)


def sampling_work(transform: Transform, saddle: Saddle, furthest: float) -> float:
    """Factor evaluations for sampling everything up to `furthest`; 0 where box bounds make that unnecessary.

    What is done with a point once it is known costs as much as `_AFTERWARDS` factors.
    """
    if not _is_hopeless(transform, saddle.c):
        return 0.0
    line = _beside(transform, saddle, furthest)
    return (
        furthest * Aliases.of(transform, line).period(line.x, 1e-17) / (2 * math.pi) * (transform.terms + _AFTERWARDS)
    )


def _is_hopeless(transform: Transform, c: float) -> bool:
    """Whether |Phi| stays too large for box bounds to help, as it does with few factors or large epsilons."""
    return transform.terms <= _FEW and BoxBounds(transform, c).typical() > _HOPELESS


def _beside(transform: Transform, saddle: Saddle, furthest: float, careful: bool = True) -> Saddle:
    """A line with a shorter period where most points will have to be sampled; the saddle's own otherwise.

    At a large delta the saddle is near 0, and what sampling adds from the left dies out slowly there. Further to the
    right the samples cancel more, but they are fewer: rounding matters less as long as their product falls. Who is not
    `careful` has a goal so wide that rounding does not matter.
    """
    if not _is_hopeless(transform, saddle.c):
        return saddle

    def price(line: Saddle) -> float:
        level = line.at_c.value - line.c * line.x - math.log(line.c) - math.log(line.c + 1)
        return math.log(Aliases.of(transform, line).period(line.x, 1e-17)) + (level if careful else level / 4)

    if Aliases.of(transform, saddle).period(saddle.x, 1e-17) * furthest * transform.terms < _SHORT_WORK:
        return saddle
    best, least, c = saddle, price(saddle), saddle.c
    for _ in range(40):
        c *= 1.2
        line = Saddle(c, saddle.x, transform.cumulants(c))
        now = price(line)
        if not now <= least + 0.1:
            break
        if now < least:
            best, least = line, now
    return best


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
    rate: float,
    smoothing: float,
    work: float,
    most: float,
) -> Proof:
    main, end = _main_part(transform, saddle, step, last, work)
    lattice = isinstance(kernel, LatticeKernel)
    start = nodes(step, 0, end)
    line = Line(saddle.c, step, saddle.at_c.value, start, _folded(start), main, kernel)
    scale = abs(float(np.sum(line.integrand(saddle.x).real)))
    # What is left out must not be seen beside the sandwich, which is rate (rate + 1) mu^2 wide in log D.
    tolerance = max(scale, 1e-300) * max(1e-13, _LEFT_OUT * rate * (rate + 1) * smoothing**2)
    bound = _kernel_bound(kernel, saddle.c, smoothing)
    stop, tail = (last, 0.0) if lattice else _tail(transform, step, bound, tolerance)
    terms = max(1, transform.terms)
    budget = min(max(most, _QUICK / terms), work / terms)
    far = far_part(BoxBounds(transform, saddle.c), step, end, stop, bound, tolerance, budget)
    more, more_t, dropped = _far_samples(transform, saddle.c, step, far.runs, bound, tolerance)
    phase = Phase(*(np.concatenate(pieces) for pieces in zip(main, *more, strict=True)))
    t = np.concatenate([start, *more_t])
    line = replace(line, t=t, weights=_folded(t), phase=phase)
    left_out = (far.left_out + tail + dropped) * (1 + 1e-9)
    far_points = sum(high - low for low, high in far.runs)
    return Proof(line, transform, saddle, beside, rate, smoothing, left_out, far_points)


def _far_samples(
    transform: Transform,
    c: float,
    step: float,
    runs: list[tuple[int, int]],
    bound: tuple[float, float],
    tolerance: float,
) -> tuple[list[Phase], list[Array], float]:
    """The runs sampled; of their points, those that matter, and a bound on the others."""
    points = sum(high - low for low, high in runs)
    if not points:
        return [], [], 0.0
    width = 512 if points > 1024 * len(runs) else 64
    starts = np.concatenate([np.arange(low, high, width) for low, high in runs])
    ends = np.concatenate([np.full(-(-(high - low) // width), high) for low, high in runs])
    kept: list[Phase] = []
    kept_t: list[Array] = []
    left_out, rows = 0.0, max(1, _CHUNK // width)
    for first in range(0, len(starts), rows):
        part = slice(first, first + rows)
        numbers = starts[part, None] + np.arange(width)
        inside = (numbers < ends[part, None]).ravel()
        t: Array = numbers.ravel().astype(np.float64) * step
        phase = transform.run(c, step, starts[part], width)
        most = 2 * np.exp(phase.log_modulus) * (1 + phase.error) * (bound[0] / t**2 + bound[1]) * (1 + 1e-9)
        matters = inside & ~(most <= tolerance / points)
        left_out += float(np.sum(most[inside & ~matters]))
        kept.append(Phase(*(values[matters] for values in phase)))
        kept_t.append(t[matters])
    return kept, kept_t, left_out


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
    # With few factors |Phi| stays too large for boxes to help: then everything is sampled, as far as that goes.
    if _is_hopeless(boxes.transform, boxes.c) and stop - first <= budget:
        return Far([(first, stop)] if stop > first else [], 0.0)
    left_out, terms = 0.0, len(boxes.epsilons)
    weak = [(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))]
    start, zones = first, max(1, math.ceil(math.log2(max(stop, 2) / max(first, 1))))
    while start < stop:
        end = min(stop, 2 * start)
        allowed = tolerance / zones / (end - start)  # a box may leave out its share, by its number of points
        low, high = np.array([start]), np.array([end])
        value = 2.0 * (high - low) * (bound[0] / (start * step) ** 2 + bound[1])  # |Phi| <= 1
        for factors, shrink in _TRIES:
            width = max(1, int(boxes.natural_width(start * step, factors) / step / shrink))
            finer_low, finer_high = _split(low, high, width)
            box_work, points = len(finer_low) * min(factors, terms), int(np.sum(high - low))
            if box_work > _MOST_BOX_WORK or (points <= budget and _BOX_PRICE * box_work > points * terms):
                break
            low, high = finer_low, finer_high
            value = _contribution(boxes, low, high, step, bound, factors)
            good = value <= allowed * (high - low)
            left_out += float(np.sum(value[good]))
            low, high, value = low[~good], high[~good], value[~good]
            if not len(low):
                break
        weak.append((value, low, high))
        start = end
    runs, rest = _chosen(weak, budget)
    return Far(runs, left_out + rest)


def _chosen(weak: list[tuple[Array, Integers, Integers]], budget: float) -> tuple[list[tuple[int, int]], float]:
    """The heaviest boxes, as many as fit into the budget, to be sampled; and what the others amount to."""
    value, low, high = (np.concatenate(pieces) for pieces in zip(*weak, strict=True))
    order = np.argsort(-value / (high - low), kind="stable")
    fits = np.cumsum(high[order] - low[order]) <= budget
    sampled = np.sort(order[fits])
    return _joined(low[sampled], high[sampled]), float(np.sum(value[order[~fits]]))


def _joined(low: Integers, high: Integers) -> list[tuple[int, int]]:
    """Sorted intervals, those close to each other made one: sampling a short gap is cheaper than starting over."""
    if not len(low):
        return []
    apart = np.flatnonzero(low[1:] - high[:-1] > _SHORT_GAP)
    first, last = low[np.concatenate([[0], apart + 1])], high[np.concatenate([apart, [len(high) - 1]])]
    return list(zip(first.tolist(), last.tolist(), strict=True))


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
    w = proof.rate * (proof.rate + 1) * proof.smoothing**2 / 2
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

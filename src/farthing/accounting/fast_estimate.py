"""The fast estimate: the line of the proof, sampled less far, for planning, sliders and starting points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.accounting.algorithms.contour import BoxBounds, Proof, far_part, prove, reach
from farthing.accounting.algorithms.line_integral import Line, PlainKernel
from farthing.accounting.lattice import Lattice
from farthing.accounting.loss_transforms import Array, Phase, Transform
from farthing.accounting.saddle_point import Aliases, Saddle, dyadic, nodes
from farthing.accounting.sketch import Sketch

_GOAL = 1e-5  # width of the sandwich, which is then taken back to third order
_WORK = 3e6  # factor evaluations an estimate may spend on one line
_POINTS = 20_000  # and points
_FINEST = 2e4  # pi / span up to which a lattice is walked through; finer ones look like a continuum
_DECAYED = -38.0  # log of what no longer matters


@dataclass(frozen=True, eq=False)
class Estimate:
    """A line, where it runs, and an honest margin for log D."""

    line: Line
    start: float
    margin: float

    def log_delta(self, x: float) -> float:
        """log D(x), estimated."""
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


def sketched_line(transform: Transform, saddle: Saddle, sketch: Sketch, witnesses: Array) -> Estimate:
    """The line of a sketch; `witnesses` are some of its epsilons, to show that nothing comes back further up, or none
    where that is known already.

    A sketch is valid up to t of about 0.75 / epsilon. By then the many epsilons of a dense octave have made the
    integrand negligible; but if they were (nearly) on a lattice it would return, which a few of them can tell.
    """
    furthest = min((0.75 / largest for largest, _ in sketch.dense_octaves()), default=math.inf)
    line = _sampled(transform, saddle, furthest)
    samples = line.integrand(saddle.x)
    total = abs(float(np.sum(samples.real)))
    error = float(np.sum(np.abs(samples) * line.phase.error))
    if len(witnesses):
        error += _revival(transform, saddle, sketch, witnesses, line, furthest, total)
    margin = saddle.at_c.error + 1e-13 + (error / total if total > 0 else math.inf)
    return Estimate(line, saddle.x, margin)


def _revival(
    transform: Transform,
    saddle: Saddle,
    sketch: Sketch,
    witnesses: Array,
    line: Line,
    furthest: float,
    total: float,
) -> float:
    """An estimate of what the integrand amounts to beyond the sketch's reach."""
    none = np.zeros(0)
    # Each witness stands for its share of the many; that is an estimate, not a proof.
    share = np.full(
        len(witnesses), sum(number for _, number in sketch.dense_octaves()) / max(1, len(witnesses))
    )
    boxes = BoxBounds(Transform(witnesses, share, none, none, transform.gaussian), saddle.c)
    end = max(len(line.t), int(min(furthest, 1e15) / line.step))
    stop = int(reach(_GOAL, saddle.c) / line.step)
    return far_part(boxes, line.step, end, stop, (1.0, 0.0), 1e-13 * total, 0.0).left_out


def _sampled(transform: Transform, saddle: Saddle, furthest: float) -> Line:
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

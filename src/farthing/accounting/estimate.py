"""The fast estimate: the sampled line without the proof, for planning, sliders and starting points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.accounting.engines.contour import Proof
from farthing.accounting.engines.line import Kernel, LatticeKernel, Line, PlainKernel
from farthing.accounting.lattice import Lattice
from farthing.accounting.saddle import Saddle, alias_for, dyadic, nodes
from farthing.accounting.sketch import Sketch
from farthing.accounting.transforms import Phase, Transform

_WORK = 3e6  # factor evaluations an estimate may spend on one line


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
        gap = 1e-4 / self.line.c
        value = (self.line.log_delta(x) - self.line.log_delta(x + gap)) / gap
        return value if math.isfinite(value) and value > 0 else self.line.c


def estimate_line(
    transform: Transform,
    saddle: Saddle,
    lattice: Lattice | None,
    sketch: Sketch | None = None,
    phase: Proof | None = None,
) -> Estimate:
    """Sample the line through `saddle` until the integrand is negligible or the work is done.

    `phase` reuses the samples of a proof on the same line.
    """
    if phase is not None:
        line = phase.line
    else:
        line = _sampled(transform, saddle, lattice, sketch)
    samples = np.abs(line.integrand(saddle.x))
    total = abs(float(np.sum(line.integrand(saddle.x).real)))
    # What was cut off is about as large as the last samples, falling like 1 / t^2: t times the last one.
    cut = float(np.mean(samples[-8:])) * len(samples) if phase is None else phase.left_out
    if isinstance(line.kernel, LatticeKernel) and _whole_period(line):
        cut = 0.0
    rounding = float(np.sum(samples * line.phase.error))
    margin = (cut + rounding) / max(total, 1e-300) + saddle.at_c.error + 1e-14
    return Estimate(line, saddle.x, margin)


def _whole_period(line: Line) -> bool:
    assert isinstance(line.kernel, LatticeKernel)
    return bool(line.t[-1] + line.step > math.pi / line.kernel.span)


def _sampled(transform: Transform, saddle: Saddle, lattice: Lattice | None, sketch: Sketch | None) -> Line:
    period = alias_for(transform, saddle)
    kernel: Kernel
    if lattice is not None:
        points = max(3, math.ceil(period / lattice.span)) | 1
        step, last = 2 * math.pi / (points * lattice.span), points // 2 + 1
        kernel = LatticeKernel(transform.top()[0], lattice.span)
    else:
        step, last, kernel = dyadic(2 * math.pi / period), 1 << 40, PlainKernel()
    if sketch is not None:
        last = min(last, max(8, int(_sketch_reach(sketch, saddle.c) / step)))
    last = min(last, max(64, int(_WORK / max(1, transform.terms))))
    parts: list[Phase] = []
    end, block = 0, 16
    while end < last:
        stop = min(end + block, last)
        parts.append(transform.phase(saddle.c, nodes(step, end, stop)))
        end = stop
        if float(np.max(parts[-1].log_modulus[-4:])) < -42:
            break
        block = max(16, end // 2)
    joined = Phase(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))
    t = nodes(step, 0, end)
    return Line(saddle.c, step, saddle.at_c.value, t, np.where(t == 0, 1.0, 2.0), joined, kernel)


def _sketch_reach(sketch: Sketch, c: float) -> float:
    """The largest t at which every sketched octave is still well inside its circle of convergence."""
    reach = math.inf
    for largest, _ in sketch.dense_octaves():
        reach = min(reach, 0.75 / largest)
    return reach

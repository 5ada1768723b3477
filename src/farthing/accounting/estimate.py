"""The fast estimate: the sampled line without the proof, for planning, sliders and starting points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from farthing.accounting.engines.line import DeconvolvedKernel, Kernel, LatticeKernel, Line, PlainKernel
from farthing.accounting.lattice import Lattice
from farthing.accounting.saddle import Aliases, Saddle, dyadic, nodes
from farthing.accounting.sketch import Sketch
from farthing.accounting.transforms import Phase, Transform

_WORK = 3e6  # factor evaluations an estimate may spend on one line
_POINTS = 20_000  # and points
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


def estimate_line(
    transform: Transform, saddle: Saddle, lattice: Lattice | None, sketch: Sketch | None = None
) -> Estimate:
    """Sample the line through `saddle` until the integrand is negligible or the work is done.

    In the second case the rest is damped by a Gaussian smoothing of the loss, which is taken back to third order.
    """
    line = _sampled(transform, saddle, lattice, sketch)
    margin = saddle.at_c.error + 1e-14
    if float(np.max(line.phase.log_modulus[-8:])) > _DECAYED and not _whole_period(line):
        smoothing = 7.0 / float(line.t[-1])
        line = _smoothed(line, smoothing)
        # The sandwich is (c + 1) c mu^2 wide in log D; taking it back leaves a small part of that.
        margin += 0.02 * saddle.c * (saddle.c + 1) * smoothing**2
    samples = line.integrand(saddle.x)
    size = np.abs(samples)
    total = max(abs(float(np.sum(samples.real))), 1e-300)
    margin += (
        float(np.sum(size * line.phase.error)) / total + float(np.mean(size[-4:])) * len(size) / total * 0.1
    )
    return Estimate(line, saddle.x, margin)


def _smoothed(line: Line, smoothing: float) -> Line:
    """The same samples for the loss plus that of a Gaussian."""
    spread = smoothing**2
    phase = Phase(
        line.phase.log_modulus - line.t**2 * spread / 2,
        line.phase.argument + line.t * (line.c + 0.5) * spread,
        line.phase.error,
    )
    scale = line.log_scale + line.c * (line.c + 1) * spread / 2
    return replace(line, phase=phase, log_scale=scale, kernel=DeconvolvedKernel(smoothing))


def _whole_period(line: Line) -> bool:
    return isinstance(line.kernel, LatticeKernel) and bool(
        line.t[-1] + line.step > math.pi / line.kernel.span
    )


def _sampled(transform: Transform, saddle: Saddle, lattice: Lattice | None, sketch: Sketch | None) -> Line:
    period = Aliases.of(transform, saddle).period(saddle.x, 1e-16)
    most = max(64, min(_POINTS, int(_WORK / max(1, transform.terms))))
    kernel: Kernel = PlainKernel()
    step, last = dyadic(2 * math.pi / period), most
    if lattice is not None:
        points = max(3, math.ceil(period / lattice.span)) | 1
        step, last = 2 * math.pi / (points * lattice.span), min(points // 2 + 1, 10 * most)
        kernel = LatticeKernel(transform.top()[0], lattice.span)
    if sketch is not None and (reach := _sketch_reach(sketch)) < math.inf:
        last = min(last, max(8, int(reach / step)))
    parts: list[Phase] = []
    end, block = 0, 16
    while end < last:
        stop = min(end + block, last)
        parts.append(
            transform.run(saddle.c, step, end, stop)
            if end > 4096
            else transform.phase(saddle.c, nodes(step, end, stop))
        )
        end = stop
        if (
            float(np.max(parts[-1].log_modulus[-8:])) < _DECAYED
        ):  # several: a single one may be a chance cancellation
            break
        block = max(16, end // 2)
    joined = Phase(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))
    t = nodes(step, 0, end)
    return Line(saddle.c, step, saddle.at_c.value, t, np.where(t == 0, 1.0, 2.0), joined, kernel)


def _sketch_reach(sketch: Sketch) -> float:
    """The largest t at which every sketched octave is still well inside its circle of convergence."""
    return min((0.75 / largest for largest, _ in sketch.dense_octaves()), default=math.inf)

"""The sampled line once more, in ball arithmetic: for few distinct charges and very many repetitions.

A million equal charges multiply every rounding error by a million. Where only a few distinct factors are involved, each
sample can afford 128 bits, and the proof then rests on Arb alone rather than on the floating-point model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

from farthing.accounting.algorithms.contour import Proof, excess_constant
from farthing.accounting.algorithms.line_integral import LatticeKernel
from farthing.accounting.inversion import Curve
from farthing.accounting.lattice import RELATIVE_ERROR, Lattice
from farthing.accounting.loss_transforms import Transform
from farthing.numerics.bounds import down, precision, up

_BITS = 128


@dataclass(frozen=True, eq=False)
class BallProof:
    """`Proof` with every sample a ball. `exact` says that the epsilons are the doubles as given."""

    proof: Proof
    lattice: Lattice | None
    points: list[Any]
    samples: list[Any]
    top: Any
    span: Any

    @classmethod
    def of(cls, proof: Proof, lattice: Lattice | None, exact: bool) -> BallProof:
        """Evaluate the transform in balls at every point that `proof` sampled."""
        line = proof.line
        with precision(_BITS):
            epsilons = _epsilon_balls(proof.transform, lattice, exact)
            span = flint.arb(0)
            if lattice is not None:
                span = 2 * _inexact(lattice.step, exact and len(epsilons) == 1)
                points_in_period = round(2 * math.pi / (line.step * lattice.span))
                unit = 2 * flint.arb.pi() / (points_in_period * span)
                t = [round(value / line.step) * unit for value in line.t.tolist()]
            else:
                t = [flint.arb(value) for value in line.t.tolist()]
            points = [flint.acb(flint.arb(line.c), value) for value in t]
            samples = [_relative_transform(proof.transform, epsilons, z) for z in points]
            top = sum((n * e for e, n in epsilons), flint.arb(0))
            top += sum((_inexact(e) * int(n) for e, n in _laplace(proof.transform)), flint.arb(0))
            top += sum((flint.arb(e) * int(n) for e, n in _ranges(proof.transform)), flint.arb(0))
            top += sum((_inexact(e) * int(n) for e, _, n in _stepped(proof.transform)), flint.arb(0))
        return cls(proof, lattice, points, samples, top, span)

    def log_delta(self, x: float) -> Curve:
        """log D(x) from below and from above."""
        line = self.proof.line
        with precision(_BITS):
            c = flint.arb(line.c)
            if isinstance(line.kernel, LatticeKernel):
                depth = self.span * math.floor((line.kernel.top - x) / line.kernel.span)
                rise = self.top - depth - flint.arb(x)
                kernels = [_lattice_kernel(z, self.span, rise) for z in self.points]
                unit = 2 * flint.arb.pi() / (round(2 * math.pi / (line.step * line.kernel.span)) * self.span)
            else:
                depth = self.top - flint.arb(x)
                kernels = [1 / (z * (z + 1)) for z in self.points]
                unit = flint.arb(line.step)
            unit = unit / (2 * flint.arb.pi())
            total, plain = flint.arb(0), flint.arb(0)
            for z, sample, kernel, weight in zip(
                self.points, self.samples, kernels, line.weights.tolist(), strict=True
            ):
                value = sample * (z * depth).exp()
                total += int(weight) * (value * kernel).real
                plain += int(weight) * value.real
            # exp(K(c) - c y): what the bounds of the unsampled part are relative to. K may be a little off here.
            level = (
                flint.arb(self.proof.saddle.at_c.value + self.proof.saddle.at_c.error) - c * (self.top - depth)
            ).exp()
            above = total + flint.arb(self.proof.left_out) * level
            mu = self.proof.smoothing
            excess = flint.arb(excess_constant(mu) * mu * mu * (1 + 1e-9)) if mu else flint.arb(0)
            missing = flint.arb(self.proof.left_out + self.proof.aliases(x)) * level
            below = total - excess * flint.arb(max(0.0, up(plain))) - missing
            # D is positive here, so a ball that cannot say so says nothing: then the plain bound stands.
            highest = (above * unit).upper()
            high = up(highest.log()) if highest.is_finite() and highest > 0 else 0.0
            low = down((below * unit).log()) if below > 0 else -math.inf
        return Curve(low, min(high, self.proof.chernoff(x)))


def _inexact(value: float, exact: bool = False) -> Any:
    """The ball of all doubles' true values: a lattice point or a quotient may be off by RELATIVE_ERROR."""
    return flint.arb(value) if exact else flint.arb(value, value * RELATIVE_ERROR)


def _epsilon_balls(transform: Transform, lattice: Lattice | None, exact: bool) -> list[tuple[Any, int]]:
    counts = [int(n) for n in transform.weights.tolist()]
    if lattice is None:
        return [(_inexact(e, exact), n) for e, n in zip(transform.epsilons.tolist(), counts, strict=True)]
    step = _inexact(lattice.step, exact and len(counts) == 1)
    return [(step * int(m), n) for m, n in zip(lattice.multiples.tolist(), counts, strict=True)]


def _laplace(transform: Transform) -> list[tuple[float, float]]:
    return list(zip(transform.laplace.tolist(), transform.laplace_counts.tolist(), strict=True))


def _ranges(transform: Transform) -> list[tuple[float, float]]:
    return list(zip(transform.ranges.tolist(), transform.range_counts.tolist(), strict=True))


def _stepped(transform: Transform) -> list[tuple[float, float, float]]:
    stepped = transform.stepped
    return list(zip(stepped.epsilons.tolist(), stepped.steps.tolist(), stepped.counts.tolist(), strict=True))


def _relative_transform(transform: Transform, epsilons: list[tuple[Any, int]], z: Any) -> Any:
    """M(z) exp(-z S), S being the largest loss: prod over e of ((1 + exp(-(2z+1) e)) / (1 + exp(-e)))^n, and so on.

    Logarithms are added, not factors multiplied: the radius of a complex ball grows by up to sqrt(2) with every
    product. All the logarithms are of numbers 1 + E with |E| < 1, so no branch is crossed.
    """
    total = flint.acb(0)
    for e, n in epsilons:
        total += n * ((1 + (-(2 * z + 1) * e).exp()).log() - (-e).exp().log1p())
    for e_, n_ in _laplace(transform):
        grown = (1 + z / (z + 1) * (-(2 * z + 1) * _inexact(e_)).exp()).log()
        total += int(n_) * (grown + (z + 1).log() - (2 * z + 1).log())
    for e_, n_ in _ranges(transform):
        e = flint.arb(e_)
        grown = (1 - (-(2 * z + 1) * e).exp()).log() - (-(-e).expm1()).log()
        total += int(n_) * (grown - (2 * z + 1).log())
    for e_, s_, n_ in _stepped(transform):
        e = _inexact(e_)
        a, r = e / int(s_), (-e / int(s_)).exp()
        first, other = -(-(2 * z + 2) * a).expm1(), -r * (-2 * z * a).expm1()
        grown = (first + (-(2 * z + 1) * e).exp() * other) / (-(-(2 * z + 1) * a).expm1() * (1 + r))
        total += int(n_) * grown.log()
    if transform.gaussian:
        total += z * (z + 1) * flint.arb(transform.gaussian, transform.gaussian * 2.0**-48) / 2
    return total.exp()


def _lattice_kernel(z: Any, span: Any, rise: Any) -> Any:
    return span * (1 / (1 - (-z * span).exp()) - (-rise).exp() / (1 - (-(z + 1) * span).exp()))


def worthwhile(proof: Proof, limit: float) -> bool:
    """Whether ball arithmetic on every sample is affordable: factors times samples, against `limit`."""
    return proof.transform.terms * len(proof.line.t) <= limit and bool(np.all(proof.transform.weights < 2**53))

"""A pair of output distributions as the grid engine sees it: atoms and a density of the privacy loss.

A pair (P, Q) is what an adversary has to distinguish. The grid engine needs of it, along an increasing coordinate y,
the P-mass, the Q-mass and the loss u = log dP/dQ. `grid_events` writes down the pair of each event; this file holds
the two parts a pair is made of and what Poisson sampling does to them.

Floating-point model. NumPy's elementary functions are right to a relative `FUNCTION_ERROR`; sums and products are
IEEE. `error` bounds the relative error of masses, `loss_error` the absolute error of losses; both are generous, and
a test compares them with ball arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.accounting.loss_transforms import Array

Direction = Literal["remove", "add"]

ARGUMENT_ERROR = 2.0**-47
"""Relative error of an exponent and the exponential taken of it, with all that goes into computing it."""


def sampled_loss(u: Array, probability: float, direction: Direction) -> Array:
    """The loss, after Poisson sampling, of an outcome that had loss `u` before.

    Statement:
        If (P, Q) dominates an event for neighbours that lose a unit, ((1-q) Q + q P, Q) dominates the event on a
        Poisson(q) sample for them; if (P, Q) dominates it for neighbours that gain a unit, (P, (1-q) P + q Q) does.
        The losses are log(1 - q + q e^u) and -log(1 - q + q e^-u).
    Source: Zhu, Dong & Wang, arXiv:2106.08567, Theorem 11.
    Assumes: 0 < q <= 1; units enter the sample independently of each other, and the sample stays secret.
    Direction: exact for the pair; "remove" and "add" must both be priced and the worse one charged.
    Checked by: tests/theorems/test_sampling_pairs.py

    >>> float(sampled_loss(np.array([1.0]), 1.0, "remove")[0])
    1.0
    """
    if probability == 1.0:
        return u
    sign = 1.0 if direction == "remove" else -1.0
    x = sign * u
    # log1p(q expm1(x)) keeps relative accuracy near 0. Near log(1 - q) it would cancel when q is close to 1, and where
    # expm1 would overflow the growth x is split off.
    moved = probability * np.expm1(np.minimum(x, 700.0))
    low = np.log((1 - probability) + probability * np.exp(np.minimum(x, 0.0)))
    near = np.where(moved < -0.5, low, np.log1p(np.maximum(moved, -0.5)))
    odds = (1 - probability) / probability
    far = x + math.log(probability) + np.log1p(odds * np.exp(-np.maximum(x, 700.0)))
    return sign * np.where(x <= 700.0, near, far)


def unsampled_loss(loss: Array, probability: float, direction: Direction) -> Array:
    """The inverse of `sampled_loss`, up to rounding; losses out of reach become -inf or inf.

    >>> u = unsampled_loss(sampled_loss(np.array([-2.0, 3.0]), 0.1, "add"), 0.1, "add")
    >>> [round(float(x), 9) for x in u]
    [-2.0, 3.0]
    """
    if probability == 1.0:
        return loss
    sign = 1.0 if direction == "remove" else -1.0
    x = sign * loss
    with np.errstate(divide="ignore", over="ignore"):
        near = np.log1p(np.maximum(np.expm1(np.minimum(x, 700.0)) / probability, -1.0))
        far = x - math.log(probability) + np.log1p(-(1 - probability) * np.exp(-np.maximum(x, 700.0)))
    return sign * np.where(x <= 700.0, near, far)


def share_of_signal(u: Array, loss: Array, probability: float, direction: Direction) -> Array:
    """d loss / d u, which is the posterior probability that the unit was in the sample."""
    if probability == 1.0:
        return np.ones_like(u)
    gap = u - loss if direction == "remove" else loss - u
    return np.minimum(1.0, probability * np.exp(np.minimum(gap, 700.0)))


@dataclass(frozen=True, eq=False)
class Atoms:
    """Finitely many losses with their log P-mass and log Q-mass; `error` is the relative error of the masses."""

    loss: Array
    log_p: Array
    log_q: Array
    error: Array
    loss_error: float

    def sampled(self, probability: float, direction: Direction) -> Atoms:
        """These atoms after Poisson sampling."""
        if probability == 1.0:
            return self
        loss = sampled_loss(self.loss, probability, direction)
        if direction == "remove":
            log_p, log_q = self.log_q + loss, self.log_q
        else:
            log_p, log_q = self.log_p, self.log_p - loss
        share = share_of_signal(self.loss, loss, probability, direction)
        size = np.abs(self.loss) * share + np.abs(loss)
        loss_error = float(np.max(self.loss_error * share + ARGUMENT_ERROR * size, initial=0.0))
        return Atoms(loss, log_p, log_q, self.error + self.loss_error + ARGUMENT_ERROR * (1 + size), loss_error)


def no_atoms() -> Atoms:
    """An empty list of atoms."""
    nothing_lost = np.zeros(0)
    return Atoms(nothing_lost, nothing_lost, nothing_lost, nothing_lost, 0.0)


@dataclass(frozen=True)
class Density:
    """The part of a pair that has densities along y, cut to low <= y <= high.

    `kind` is "gaussian" (Q = N(0, 1), P = N(scale, 1), u = scale y - scale^2 / 2) or "laplace" (y = u in
    [-scale, scale], P-density exp((u - scale) / 2) / 4) or "range" (the same, divided by its total, so that nothing is
    left for atoms); then it is sampled with `probability` in `direction`.
    `lattice` > 0 makes a "gaussian" stand for a discrete one with atoms that far apart in y: see `sandwich`.
    """

    kind: Literal["gaussian", "laplace", "range"]
    scale: float
    low: float
    high: float
    direction: Direction = "remove"
    probability: float = 1.0
    lattice: float = 0.0

    def base_loss(self, y: Array) -> Array:
        """u(y), the loss before sampling."""
        return self.scale * (y - self.scale / 2) if self.kind == "gaussian" else y

    def loss(self, y: Array) -> Array:
        """The loss at y; it increases with y."""
        return sampled_loss(self.base_loss(y), self.probability, self.direction)

    def coordinate(self, loss: Array) -> Array:
        """The y at which the loss is `loss`, cut to [low, high]; right up to rounding, which callers measure."""
        u = unsampled_loss(loss, self.probability, self.direction)
        y = u / self.scale + self.scale / 2 if self.kind == "gaussian" else u
        return np.clip(y, self.low, self.high)

    def log_p_and_q(self, y: Array) -> tuple[Array, Array]:
        """The logarithms of both densities at y."""
        loss = self.loss(y)
        # Then Q is as it was and P = exp(loss) Q; else the other way round.
        remove = self.direction == "remove"
        if self.kind == "gaussian":
            known = -((y if remove else y - self.scale) ** 2) / 2 - math.log(2 * math.pi) / 2
        else:
            known = ((-y if remove else y) - self.scale) / 2 - math.log(4.0)
            if self.kind == "range":  # 4 sinh(scale / 2) for 4 exp(scale / 2)
                known += math.log(2.0) - math.log(-math.expm1(-self.scale))
        return (known + loss, known) if remove else (known, known - loss)

    def steepness(self, y: Array) -> Array:
        """1 / r, where at complex distance r around y both densities are at most exp(1.5) times those at y.

        Both are mixtures of exp(-(y - m)^2 / 2) with m in {0, scale}, and |exp(-v z - z^2 / 2)| <= exp(|v| r + r^2 / 2)
        for |z| <= r; or of exp(y / 2) and exp(-y / 2).
        """
        if self.kind != "gaussian":
            return np.ones_like(y)
        return 1 + np.maximum(np.abs(y), np.abs(y - self.scale))

    def error(self, y: Array) -> Array:
        """Relative error of the densities computed at y: that of the known one, and that of the loss."""
        if self.kind != "gaussian":
            # The total of a "range" is computed to a few units of its last place, its logarithm may be as large as 21.
            size = 2 + self.scale + (0.0 if self.kind == "laplace" else 25.0)
            return ARGUMENT_ERROR * size + self.loss_error(y)
        known = y if self.direction == "remove" else y - self.scale
        return ARGUMENT_ERROR * (2 + known * known) + self.loss_error(y)

    def loss_error(self, y: Array) -> Array:
        """Absolute error of `loss(y)`: that of u, passed on by the sampling, and the functions on the way."""
        u, loss = self.base_loss(y), self.loss(y)
        size = np.abs(u) + (self.scale**2 if self.kind == "gaussian" else 0.0)
        return ARGUMENT_ERROR * (share_of_signal(u, loss, self.probability, self.direction) * size + np.abs(loss))

    def sandwich(self) -> tuple[float, float]:
        """(a, b) with exp(-b) g(k) <= f(k) <= exp(a) g(k): a discrete Gaussian f against the rounded Gaussian g.

        Statement:
            Let f(k) = exp(-y^2 / 2) / Z, y = k / s, be the discrete Gaussian of deviation s and g(k) the mass that
            N(0, s^2) has within 1/2 of k. Then exp(-y^2 / (8 s^2)) <= f(k) / g(k) <= exp(1 / (8 s^2)), up to a factor
            1 + 3 exp(-2 pi^2 s^2) from the total Z.
        Source: g(k) / f(k) is the integral of cosh(k t / s^2) exp(-t^2 / (2 s^2)) over |t| <= 1/2 (times that factor);
            1 <= cosh(x) <= exp(x^2 / 2). Z / (s sqrt(2 pi)) by Poisson summation.
        Assumes: s >= 10, so that the factor of Z is nothing; |y| and |y - scale| bounded on [low, high].
        Direction: P <= exp(a) P_g and Q >= exp(-b) Q_g make an upper bound, the opposite a lower bound.
        Checked by: tests/theorems/test_sampling_pairs.py

        >>> Density("gaussian", 1.0, -9.0, 9.0).sandwich()
        (0.0, 0.0)
        """
        furthest = max(abs(self.low), abs(self.high), abs(self.low - self.scale), abs(self.high - self.scale))
        furthest += self.lattice  # cells of whole atoms may reach half a step further
        eighth = self.lattice * self.lattice / 8 * (1 + ARGUMENT_ERROR)
        return eighth, eighth * furthest * furthest


@dataclass(frozen=True, eq=False)
class LossPair:
    """One event in one direction: atoms, perhaps a density, and bounds on everything left out.

    `log_infinite` is the logarithm of the P-mass of infinite loss. `log_above` and `log_below` bound the logarithms of
    the P-mass that was cut off at high and at low losses. `largest_loss` bounds every finite loss, also those cut off.
    `dominating`, when given, is a pair that dominates this one and takes its place in upper bounds; this one then only
    has to be dominated by the event.
    """

    atoms: Atoms
    density: Density | None = None
    log_infinite: float = -math.inf
    log_above: float = -math.inf
    log_below: float = -math.inf
    largest_loss: float = math.inf
    dominating: LossPair | None = None


LOW_CUT = 50.0
"""-log of the P-mass that may be moved up from the low end: far below what a tilted distribution can feel."""


def gaussian_range(mu: float, q: float, direction: Direction, cut: float) -> tuple[float, float]:
    """Where to cut y, with Q = N(0, 1) and P = N(mu, 1), so that P has less than exp(-cut) above.

    >>> gaussian_range(1.0, 1.0, "remove", 50.0)
    (-9.0, 11.0)
    """
    lowest_centre = 0.0 if direction == "remove" and q < 1.0 else mu
    return lowest_centre - math.sqrt(2 * LOW_CUT), mu + math.sqrt(2 * max(cut, 1.0))


def gaussian_tails(mu: float, low: float, high: float, q: float, direction: Direction) -> tuple[float, float]:
    """Upper bounds of log P(y > high) and log P(y < low), P after sampling.

    Statement:
        P[N(0, 1) > z] <= exp(-z^2 / 2) / 2 for z >= 0. The same bounds the discrete Gaussian of any deviation s beyond
        an outcome k with k / s >= z: the sum over larger outcomes of exp(-k^2 / (2 s^2)) is below the integral from k
        on, and the total is at least s sqrt(2 pi).
    Source: exp(-z^2 / 2) / 2 - P[N > z] is 0 at 0 and at infinity and grows until z = sqrt(2 / pi), then falls. The
        total by Poisson summation, whose terms are all positive.
    Assumes: low <= 0 <= mu <= high in sampled remove pairs, low <= mu <= high otherwise.
    Direction: upper bounds.
    Checked by: tests/theorems/test_sampling_pairs.py

    >>> above, below = gaussian_tails(1.0, -9.0, 11.0, 1.0, "remove")
    >>> above < -50 and below < -50
    True
    """
    parts = [(q, mu), (1 - q, 0.0)] if direction == "remove" else [(1.0, mu)]

    def log_tail(distance: float) -> float:
        return -distance * distance / 2 - math.log(2.0) if distance > 0 else 0.0

    above = [math.log(weight) + log_tail(high - centre) for weight, centre in parts if weight > 0]
    below = [math.log(weight) + log_tail(centre - low) for weight, centre in parts if weight > 0]
    # 1e-9 pays for the rounding here and of high and low.
    return float(np.logaddexp.reduce(above)) + 1e-9, float(np.logaddexp.reduce(below)) + 1e-9


def largest_sampled_loss(q: float, direction: Direction) -> float:
    """The supremum of the loss of a sampled event whose own loss is unbounded.

    >>> largest_sampled_loss(0.5, "remove"), round(largest_sampled_loss(0.5, "add"), 6)
    (inf, 0.693147)
    """
    return -math.log1p(-q) * (1 + ARGUMENT_ERROR) if direction == "add" and q < 1.0 else math.inf

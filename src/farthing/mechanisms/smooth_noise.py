"""Noise whose scale follows the data, smoothly enough to reveal nobody.

The scale is a rung of a public ladder of fractions. A smooth bound is worked out in whole rungs, so no rounding
can break its smoothness; both distributions of noise are drawn exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import flint
from flint import acb, arb, fmpq

from farthing.errors import InvalidValue
from farthing.mechanisms.noise_distributions import DiscreteLaplaceDistribution, NoiseDistribution
from farthing.mechanisms.samplers.single_draws import Bits, bernoulli, discrete_laplace
from farthing.numerics.bounds import down, precision, up


def discrete_cauchy(scale: Fraction, bits: Bits) -> int:
    """n with mass exactly proportional to scale^2 / (scale^2 + n^2), scale > 0.

    Rejection from an envelope that is flat on |n| < 2^J, with 2^J near the scale, and scale^2 / 4^j on each octave
    2^j <= |n| < 2^(j+1) beyond. Octave j then weighs 2 scale^2 / 2^j, half of the one before: coins choose it. All
    probabilities are fractions; about half of the candidates are accepted.

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> isinstance(discrete_cauchy(Fraction(5, 2), Bits(SYSTEM)), int)
    True
    """
    square = scale * scale
    octave = max(0, math.ceil(scale).bit_length() - 1)
    edge = 1 << octave
    centre, tail = 2 * edge - 1, 4 * square / edge
    while True:
        if bernoulli(centre / (centre + tail), bits):
            n = bits.below(centre) - (edge - 1)
            if bernoulli(square / (square + n * n), bits):
                return n
            continue
        start = edge
        while bits.bit():
            start *= 2
        n = start + bits.below(start)
        negative = bits.bit()
        if bernoulli(start * start / (square + n * n), bits):
            return -n if negative else n


@dataclass(frozen=True, slots=True)
class DiscreteCauchyDistribution(NoiseDistribution):
    """Mass proportional to scale^2 / (scale^2 + n^2); it has a median and quantiles, but no variance.

    >>> distribution = DiscreteCauchyDistribution(Fraction(4))
    >>> distribution.error(0.5), distribution.error(0.95), distribution.variance
    (4, 51, inf)
    """

    scale: Fraction

    @property
    def variance(self) -> float:
        """Infinite: the tail falls as 1 / n^2."""
        return math.inf

    def _normaliser(self) -> Any:
        width = arb.pi() * self._scale_ball()
        return width / width.tanh()  # the sum of scale^2 / (scale^2 + n^2) is pi scale coth(pi scale)

    def _mass(self, n: int) -> Any:
        square = self._scale_ball() ** 2
        return square / (square + arb(n) ** 2) / self._normaliser()

    def _tail(self, n: int) -> Any:
        # The sum over m > n of 1 / (m^2 + s^2) is Im digamma(n + 1 + i s) / s.
        scale = self._scale_ball()
        return 2 * scale * acb(arb(n + 1), scale).digamma().imag / self._normaliser()

    def _scale_ball(self) -> Any:
        return arb(fmpq(self.scale.numerator, self.scale.denominator))


_UNIT: Final = 1 << 64
_MOST_RUNGS: Final = 2**18
_RUNGS_PER_STEP: Final = 8
_CAUCHY_SHARE: Final = Fraction(12, 17)  # alpha as a share of epsilon
_LAPLACE_SHARE: Final = Fraction(1, 2)


def beta_of_cauchy_noise(epsilon: float) -> float:
    """How fast the scale may change from neighbour to neighbour, for Cauchy noise at `epsilon`, delta = 0.

    Statement:
        Let f be integer-valued and S a beta-smooth bound: S(x) >= |f(x) - f(x')|, S(x) <= e^beta S(x') for
        neighbours, and S >= 1. With s = S(x) / alpha, releasing f(x) + n with mass of n proportional to
        s^2 / (s^2 + n^2) is epsilon-DP if, with e = epsilon - ln coth(pi / alpha) >= alpha,
            cosh(beta) + alpha^2 e^-beta / 2 <= cosh(e).
        Proof: the masses s / (s^2 + n^2) add up to pi coth(pi s). The ratio of s / (s^2 + (n - f)^2) to the same with
        f', s' is, over all real n, at most the larger root of y + 1/y = (s^2 + s'^2 + (f - f')^2) / (s s') (where
        a quadratic in n touches zero), which is e^d, d the hyperbolic distance of the points (f, s) and (f', s'):
        cosh d = ((s / s' + s' / s) + (f - f')^2 / (s s')) / 2. With k >= 1 the ratio of the scales and
        |f - f'| <= alpha min(s, s') that is at most (k + 1/k + alpha^2 / k) / 2, convex in k, so the worst is k = 1
        (1 + alpha^2 / 2 <= cosh(e)) or k = e^beta. The normalisers add at most ln coth(pi s'), s' >= 1 / alpha.
    Source: Nissim, Raskhodnikova & Smith, "Smooth sensitivity and sampling in private data analysis", STOC 2007,
        section 2 (admissible noise, gamma = 2), with alpha = beta = epsilon / 6 for the continuous distribution.
    Departs from source: moving and stretching are bounded together (Harnack's inequality of the half-plane), and the
        distribution is discrete; alpha = 12/17 epsilon, just below epsilon / sqrt(2), leaves at least as much for beta.
    Assumes: 0 < epsilon <= 50.
    Direction: rounded down. Reached for large S when |f - f'| = S(x') = e^-beta S(x).
    Checked by: tests/theorems/test_smooth_noise_is_private.py

    >>> beta_of_cauchy_noise(1.0)
    0.90899...
    """
    with precision(160):
        alpha = _ball(Fraction(epsilon) * _CAUCHY_SHARE)
        e = flint.arb(epsilon) + (flint.arb.pi() / alpha).tanh().log()
        if not e >= alpha:
            return 0.0
        # y = e^beta solves y + 1/y + alpha^2 / y = 2 cosh(e).
        return down((e.cosh() + (e.sinh() ** 2 - alpha**2).sqrt()).log())


def delta_of_laplace_noise(epsilon: float, beta: float) -> float:
    """The delta of discrete Laplace noise of scale S / alpha, alpha = epsilon / 2, with a beta-smooth S >= 1.

    Statement:
        Let f and S be as for `beta_of_cauchy_noise`, alpha = epsilon / 2 and c = e^beta - 1 <= epsilon - alpha.
        Releasing f(x) + n with mass of n proportional to e^(-|n| / s), s = S(x) / alpha, is (epsilon, delta)-DP with
            delta = 2 / (1 + e^-alpha) (1 - e^-beta) e^(-(epsilon - alpha + g) / c),
            g = ln(tanh(e^beta alpha / 2) / tanh(alpha / 2)).
        Proof: the normaliser is tanh(1 / (2 s)). Write u = 1 / (2 s), k = s / s' for neighbours. If k <= 1, the loss
        is at most ln(1/k) + alpha k <= alpha + beta <= epsilon (tanh is concave; |f - f'| <= alpha min(s, s')).
        If k > 1, the loss at n is at most alpha + ln(tanh u / tanh(k u)) + (k - 1) |n| / s. For |n| < s that is
        at most alpha + c <= epsilon. For |n| >= s it rises with k, since its derivative
        2 u (|n| - 1 / sinh(2 k u)) is >= 0; so k = e^beta is the worst, and tanh u / tanh(e^beta u) rises with u,
        which is at most alpha / 2: the loss is at most alpha - g + c |n| / s. Adding up the hockey stick over
        |n| > s (epsilon - alpha + g) / c with q = e^(-1/s): it is 2 / (1 + q) e^(-(epsilon - alpha + g) / c) times
        q^y - q^((1 + c) y) (1 - q) / (1 - q^(1 + c)) for some y in [0, 1], whose maximum over y >= 0 is at most
        c / (1 + c) = 1 - e^-beta (at the maximum the second term is 1 / (1 + c) of the first, and q^y <= 1).
    Source: Nissim, Raskhodnikova & Smith, STOC 2007, section 2: beta = epsilon / (2 ln(2 / delta)), continuous.
    Departs from source: direct for the discrete distribution, with the exact hockey stick instead of two halves of
        delta.
    Assumes: 0 < epsilon <= 50, beta > 0.
    Direction: rounded up; 1 where c > epsilon - alpha. Reached nearly for large S.
    Checked by: tests/theorems/test_smooth_noise_is_private.py

    >>> delta_of_laplace_noise(1.0, 0.04) < 1e-6 < delta_of_laplace_noise(1.0, 0.06)
    True
    """
    with precision(128):
        alpha, b = flint.arb(epsilon) / 2, flint.arb(beta)
        c = b.expm1()
        if not c <= alpha:
            return 1.0
        g = ((b.exp() * alpha / 2).tanh() / (alpha / 2).tanh()).log()
        return min(1.0, up(2 / (1 + (-alpha).exp()) * -(-b).expm1() * (-(alpha + g) / c).exp()))


@lru_cache(maxsize=256)
def beta_of_laplace_noise(epsilon: float, delta: float) -> float:
    """The largest beta, up to rounding down, whose `delta_of_laplace_noise` is at most delta.

    >>> 0.5 / math.log(2e6) < beta_of_laplace_noise(1.0, 1e-6) < 0.06
    True
    """
    low, high = 0.0, math.log1p(epsilon / 2)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_laplace_noise(epsilon, middle) <= delta else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class SmoothNoise:
    """The public side of a smooth release: how fast the scale may change, and the ladder it moves on.

    Statement:
        Let A_t(x), t = 0, 1, ..., be whole numbers from 0 to `largest`, with A_0(x) at least the local sensitivity at
        x and A_t(x) <= A_{t+1}(x') for all neighbours. Let r_0 = 1 < r_1 < ... with r_{i+j} <= e^beta r_i, and let
        rung(a) be the first i with r_i >= a. Then level(x) = max(0, max over t of rung(A_t(x)) - j t) moves by at most
        j between neighbours, and S(x) = r_{level(x)} is a beta-smooth bound, at least 1.
        Proof: rung(A_t(x)) - j t <= rung(A_{t+1}(x')) - j (t + 1) + j <= level(x') + j. And level(x) >= rung(A_0(x)).
        Capping the ladder at `largest` keeps all of this. The ladder here is r_{i+1} = r_i w rounded down, with a
        w^j <= e^beta rounded down, so r_{i+j} <= w^j r_i by integers alone.
    Source: Nissim, Raskhodnikova & Smith, STOC 2007, section 3, for max over t of e^(-beta t) A_t.
    Departs from source: the maximum is over rungs, at most a factor e^(beta / j) above theirs.
    Assumes: what is stated of A_t, which its supplier has to prove.
    Direction: S is at or above the smooth sensitivity.
    Checked by: tests/theorems/test_smooth_noise_is_private.py

    >>> noise = SmoothNoise(epsilon=1.0, delta=0.0, largest=1000)
    >>> noise.bound_at(noise.level(lambda t: min(1000, 10 * (t + 1))))
    Fraction(...)
    """

    epsilon: float
    delta: float
    largest: int

    @property
    def beta(self) -> float:
        """How fast the scale may change: by a factor e^beta at most from neighbour to neighbour."""
        if self.delta == 0:
            return beta_of_cauchy_noise(self.epsilon)
        return beta_of_laplace_noise(self.epsilon, self.delta)

    @property
    def rungs_per_step(self) -> int:
        """How many rungs the scale may move at once; fewer on a very long ladder."""
        length = math.log(self.largest + 1)
        if not length <= _MOST_RUNGS * self.beta:
            raise InvalidValue(
                "epsilon",
                self.epsilon,
                "is too small for a smooth bound over this range",
                "raise epsilon, narrow the range, or add noise for the global sensitivity",
            )
        return max(1, min(_RUNGS_PER_STEP, math.floor(_MOST_RUNGS * self.beta / max(length, 1))))

    def level(self, at: Callable[[int], int]) -> int:
        """The level of a data set with local sensitivity at most `at(t)` within distance t. Private: never shown."""
        ladder, step = self._ladder, self.rungs_per_step
        top = len(ladder) - 1
        level = 0
        for t in range(top // step + 1):
            if top - step * t <= level:
                break  # nothing further out can matter
            level = max(level, bisect_left(ladder, min(at(t), self.largest) * _UNIT) - step * t)
        return level

    def bound_at(self, level: int) -> Fraction:
        """The smooth bound of a level."""
        return Fraction(self._ladder[level], _UNIT)

    def scale_of(self, bound: Fraction) -> Fraction:
        """The scale of the noise for a smooth bound."""
        share = _CAUCHY_SHARE if self.delta == 0 else _LAPLACE_SHARE
        return bound / (Fraction(self.epsilon) * share)

    def draw(self, level: int, bits: Bits) -> int:
        """Noise for a level, drawn exactly."""
        scale = self.scale_of(self.bound_at(level))
        return discrete_cauchy(scale, bits) if self.delta == 0 else discrete_laplace(scale, bits)

    def distribution(self, assumed_bound: int) -> NoiseDistribution:
        """The distribution of the noise if the smooth sensitivity were `assumed_bound`."""
        rung = bisect_left(self._ladder, min(assumed_bound, self.largest) * _UNIT)
        scale = self.scale_of(self.bound_at(rung))
        return DiscreteCauchyDistribution(scale) if self.delta == 0 else DiscreteLaplaceDistribution(scale)

    @property
    def _ladder(self) -> tuple[int, ...]:
        return _rungs(self.beta, self.rungs_per_step, self.largest)


def _ball(value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


@lru_cache(maxsize=16)
def _rungs(beta: float, steps: int, largest: int) -> tuple[int, ...]:
    """1, w, w^2, ... in units of 2^-64, each rounded down, up to and capped at `largest`."""
    with precision(160):
        factor: Any = (flint.arb(beta) / steps).exp() * _UNIT
        mantissa, exponent = factor.lower().man_exp()
    w = int(mantissa) << int(exponent) if int(exponent) >= 0 else int(mantissa) >> -int(exponent)
    rungs, last = [_UNIT], largest * _UNIT
    while rungs[-1] < last:
        rungs.append(min(rungs[-1] * w >> 64, last))
    return tuple(rungs)

"""Noise added to numbers: the discrete Laplace and the discrete Gaussian, for one number or a vector.

Whole numbers are answered as they are; real numbers go through a power-of-two grid (`grid=`), whose rounding is part
of the sensitivity. The distributions are exact, so variances and errors are those of the noise really added.
`vector_event` says what discrete Gaussian noise on a vector costs: continuous noise and a tiny leak dominate it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import Mechanism, checked_integers, checked_reals
from farthing.mechanisms.noise_distributions import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    NoiseDistribution,
)
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers import LARGEST_SCALE, discrete_gaussian_noise, discrete_laplace_noise
from farthing.mechanisms.value_grid import Grid
from farthing.numerics.bounds import down, precision, rounded_down, rounded_up, up
from farthing.privacy.events import (
    ApproxDP,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    checked_count,
    checked_mechanism_epsilon,
    checked_real,
)

_SMOOTHING = 4  # s^2: the part of sigma^2 that turns a continuous draw into an integer one
_LARGEST_LEAK = 2.0**-60


def vector_event(sigma_squared: Fraction, l2_steps: float, cells: int) -> Event:
    """The event of `cells` independent discrete Gaussian noises on an integer vector of l2 sensitivity `l2_steps`.

    >>> event = vector_event(Fraction(30) ** 2, 3.0, cells=100)
    >>> print(f"{event.parts[0][0].noise_multiplier:.4f} {event.parts[1][0].delta:.1e}")
    9.9778 1.9e-31

    Statement:
        Let s^2 = 4 < sigma^2, tau^2 = sigma^2 - s^2, mu = l2_steps / tau, kappa = 2 sum_k exp(-2 pi^2 s^2 k^2) and
        eta = 3 cells kappa. If x and y are integer vectors at most l2_steps apart in l2, the distributions of x and y
        plus noise are dominated by continuous Gaussian noise of multiplier 1/mu composed with a leak of 3 eta / (2
        Phi(-mu/2)).
    Source: own derivation; Poisson summation as in Canonne, Kamath & Steinke, arXiv:2004.00010v5, section 2.
        Draw z from N(x, tau^2), then each n_i from the discrete Gaussian of parameter s around z_i: post-processing of
        a Gaussian release. Its normaliser, the sum of exp(-(n - z)^2 / (2 s^2)) over n, is s sqrt(2 pi) times a factor
        in [1 - kappa, 1 + kappa] whatever z is, so integrating z out leaves exp(-(n - x)^2 / (2 sigma^2)) up to that
        factor: each cell's distribution is within a ratio exp(+-3 kappa) of the discrete Gaussian, the vector's within
        exp(+-eta). For distributions P, Q within exp(+-eta) of P', Q', and E = {P > g Q} with g >= 1,
            P(E) - g Q(E) <= H_g(P' | Q') + (e^eta - 1) P'(E) + g (1 - e^-eta) Q'(E) <= H_g(P' | Q') + 3 eta,
        because g Q'(E) <= e^eta g Q(E) <= e^eta P(E) <= e^(2 eta). A leak of l makes H into l + (1 - l) H, which is
        H + l (1 - H), and 1 - H_g >= 1 - H_1 = 2 Phi(-mu/2) for Gaussians. For g < 1, H_g(P|Q) = 1 - g + g H_(1/g)(Q|P)
        turns the statement into the one above with the sides changed.
    Assumes: eta <= 1/10; noise independent of everything; l2 distance at most `l2_steps`.
    Direction: multiplier rounded down, leak rounded up; refused when the leak would exceed 2^-60.
    Checked by: tests/theorems/test_vector_gaussian.py
    """
    finer = 2
    while sigma_squared * finer**2 < 900:  # from 30 steps on the event costs half a percent
        finer *= 2
    way_out = f"use more noise, or a finer grid=, such as 1/{finer} of the present step"
    if not sigma_squared > 2 * _SMOOTHING:
        raise InvalidValue(
            "sigma in steps",
            float(sigma_squared) ** 0.5,
            "must be above 2.83 for a vector of this sensitivity",
            way_out,
        )
    tau_squared = sigma_squared - _SMOOTHING
    with precision(128):
        tau = arb(fmpq(tau_squared.numerator, tau_squared.denominator)).sqrt()
        steps = Fraction(l2_steps)
        multiplier = down(tau / arb(fmpq(steps.numerator, steps.denominator)))
        # The series of kappa falls faster than a geometric one of ratio below 1/2: twice its first term is enough.
        kappa = 4 * (-2 * arb.pi() ** 2 * _SMOOTHING).exp()
        eta = 3 * cells * kappa
        both_tails = (1 / (arb(multiplier) * arb(8).sqrt())).erfc()  # 2 Phi(-mu/2)
        leak = up(3 * eta / both_tails)
    if not leak <= _LARGEST_LEAK:
        raise InvalidValue("noise_multiplier", multiplier, "is too small for a vector of this size", way_out)
    return Composed(((GaussianNoise(multiplier), 1), (ApproxDP(0.0, leak), 1)))


_MOST = 2**62 - 1


def with_noise(steps: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """The exact sum of values within +-2^62 and noise, clamped to +-(2^62 - 1); it fits into int64 on the way.

    The noise may have been cut at +-(2^63 - 1): that much of it passes the bound whatever it is added to.

    >>> with_noise(np.array([2**62, -3]), np.array([5, 2**63 - 1])).tolist() == [2**62 - 1] * 2
    True
    """
    return steps + np.clip(noise, -_MOST - steps, _MOST - steps)


_MOST_CELLS = 2**40


class _Additive(Mechanism):
    """What the two have in common: cells, the grid, and errors in the units of the value."""

    grid: float | None
    cells: int

    @property
    def distribution(self) -> NoiseDistribution:
        """The exact distribution of the integer noise (in steps of the grid, when there is one)."""
        raise AssertionError  # pragma: no cover - both subclasses have one

    @property
    def law(self) -> NoiseDistribution:
        """`distribution` under its name before 0.1; deprecated, there until 1.0."""
        return self.distribution

    @property
    def variance(self) -> float:
        """The variance of the noise in one cell, in squared units of the value; rounding to a grid is not noise."""
        return self.distribution.variance * self._step**2

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in one cell, in units of the value."""
        return math.sqrt(self.distribution.variance) * self._step

    def error(self, confidence: float = 0.95, *, every_cell: bool = False) -> float:
        """The least e with P[|answer - value| <= e] >= confidence: both tails of the exact distribution.

        On a grid it includes the half step that rounding may add. With `every_cell` the statement holds for all
        cells at once.
        """
        noise = self.distribution.error(confidence, self.cells if every_cell else 1)
        return noise * self._step + (0.0 if self.grid is None else self._step / 2)

    @property
    def _step(self) -> float:
        return 1.0 if self.grid is None else self.grid

    def _steps(self, value: Any) -> NDArray[np.int64]:
        """The private value in whole steps, `cells` of them."""
        if self.grid is None:
            steps = checked_integers(value)
        else:
            steps = Grid(self.grid).steps(checked_reals(value))
        if steps.size != self.cells:
            raise InvalidData(
                "value",
                f"must hold exactly {self.cells} number{'s' * (self.cells > 1)}",
                "say how many with cells=",
            )
        return steps

    def _with_noise(self, value: Any, draw: Any) -> Any:
        steps = self._steps(value)
        noisy = with_noise(steps, draw(steps.size).reshape(steps.shape))
        if self.grid is None:
            return int(noisy) if noisy.ndim == 0 else noisy
        real = Grid(self.grid).values(noisy)
        return float(real) if real.ndim == 0 else real


@dataclass(frozen=True)
class DiscreteLaplace(_Additive):
    """The discrete Laplace (two-sided geometric) mechanism: epsilon-DP, pure.

    Args:
        epsilon: The epsilon of one release, > 0.
        l1_sensitivity: How far neighbours' values can be apart in l1 (a whole number without a grid).
        grid: The step, a power of two, to which real numbers are rounded; without it, values are whole numbers.
        cells: How many numbers one release holds.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> mechanism = DiscreteLaplace(epsilon=0.5)
    >>> mechanism.event
    DiscreteLaplaceNoise(noise_multiplier=2.0, l1_sensitivity=1)
    >>> round(mechanism.variance, 3), mechanism.error(0.95)
    (7.835, 6.0)
    >>> isinstance(mechanism.release(120), int)
    True
    >>> incomes = DiscreteLaplace(epsilon=1.0, l1_sensitivity=500.0, grid=0.25, cells=3)
    >>> incomes.release([41_000.0, 38_500.5, 52_123.75]).shape
    (3,)
    """

    epsilon: float
    l1_sensitivity: float = 1
    grid: float | None = None
    cells: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        _check_shape(self, "l1_sensitivity")

    @classmethod
    def of_scale(
        cls, scale: float, l1_sensitivity: float = 1, grid: float | None = None, cells: int = 1
    ) -> DiscreteLaplace:
        """The mechanism whose noise has (to the last digit of epsilon, rounded up) this scale, in units of the value.

        Args:
            scale: The scale of the noise, > 0.
            l1_sensitivity: How far neighbours' values can be apart in l1.
            grid: The step to which real numbers are rounded, if they are real.
            cells: How many numbers one release holds.

        Returns:
            The mechanism.

        Raises:
            InvalidValue: If `scale` is not a finite number > 0, or so large that epsilon vanishes.

        >>> DiscreteLaplace.of_scale(4.0, l1_sensitivity=2)
        DiscreteLaplace(epsilon=0.5, l1_sensitivity=2, grid=None, cells=1)
        """
        number = checked_real(scale, "scale")
        if not 0 < number < math.inf:
            raise InvalidValue("scale", scale, "must be a finite number > 0")
        step = Fraction(1) if grid is None else Fraction(Grid(grid).step)
        moved = cls(1.0, l1_sensitivity, grid, cells)._sensitivity_steps * step
        epsilon = rounded_up(moved / Fraction(number))
        if not epsilon > 0:
            raise InvalidValue("scale", scale, "must not be so large that epsilon vanishes")
        return cls(epsilon, l1_sensitivity, grid, cells)

    @property
    def scale(self) -> float:
        """The scale of the noise in units of the value, to the nearest double."""
        return float(self._scale) * self._step

    @property
    def event(self) -> Event:
        """The discrete Laplace event: exact for one number, and the worst case of every vector.

        Statement:
            Let integer vectors x, y differ by at most s in l1, and let independent noise of mass proportional to
            r^|n|, r = exp(-1/scale), be added to each cell. The pair of distributions is dominated by that of one
            number that moves by s.
        Source: own derivation. For one number moved by a the hockey-stick curve at epsilon = (a - 2j) / scale is
            1 - r^j, 0 <= j <= a. Let two cells move by a <= b and put m = j at epsilon = (a + b - 2m) / scale. The
            product's curve is the mean, over the loss of the first cell, of the second's curve at what is left of
            epsilon; summing the geometric terms gives 1 - r^m (1 + a t) + (a - m)^+ t r^m with t = (1 - r)/(1 + r),
            which is at most 1 - r^m, the curve of one cell moved by a + b. Both curves are linear in exp(epsilon)
            between these points, so the inequality holds for all epsilon; negative epsilons follow by symmetry.
            More cells follow one by one, because products of dominating pairs dominate, and a shift below s is
            dominated by s because the noise is log-concave (thresholds are the best tests for every shift).
        Assumes: integer cells; l1 distance at most s; noise independent of everything.
        Direction: the event's noise multiplier is rounded down.
        Checked by: tests/theorems/test_vector_laplace.py
        """
        return DiscreteLaplaceNoise(rounded_down(1 / Fraction(self.epsilon)), self._sensitivity_steps)

    @property
    def distribution(self) -> DiscreteLaplaceDistribution:
        """The exact distribution of the integer noise, in steps."""
        return DiscreteLaplaceDistribution(self._scale)

    @property
    def _scale(self) -> Fraction:
        return self._sensitivity_steps / Fraction(self.epsilon)

    @property
    def _width_squared(self) -> Fraction:
        return self._scale**2

    @property
    def _sensitivity_steps(self) -> int:
        if self.grid is None:
            return int(self.l1_sensitivity)
        return Grid(self.grid).l1_steps(self.l1_sensitivity, self.cells)

    def _answer(self, value: Any, source: Source) -> Any:
        return self._with_noise(value, lambda size: discrete_laplace_noise(self._scale, size, source))


@dataclass(frozen=True)
class DiscreteGaussian(_Additive):
    """The discrete Gaussian mechanism, for one number or a vector with an l2 sensitivity.

    Args:
        noise_multiplier: The noise's sigma over the sensitivity, as `farthing.calibrate` returns it.
        l2_sensitivity: How far neighbours' values can be apart in l2 (a whole number without a grid).
        grid: The step, a power of two, to which real numbers are rounded; without it, values are whole numbers.
        cells: How many numbers one release holds.

    Raises:
        InvalidValue: If a parameter is out of its range, or the noise is too narrow for a vector on this grid.

    >>> mechanism = DiscreteGaussian(noise_multiplier=3.0, l2_sensitivity=2)
    >>> mechanism.event
    DiscreteGaussianNoise(noise_multiplier=3.0, l2_sensitivity=2)
    >>> round(mechanism.standard_error, 6), mechanism.error(0.95)
    (6.0, 12.0)
    >>> isinstance(mechanism.release(120), int)
    True
    >>> DiscreteGaussian.of_rho(0.5).noise_multiplier
    1.0
    """

    noise_multiplier: float
    l2_sensitivity: float = 1
    grid: float | None = None
    cells: int = 1

    def __post_init__(self) -> None:
        multiplier = checked_real(self.noise_multiplier, "noise_multiplier")
        if not 0.01 <= multiplier <= 1e12:
            raise InvalidValue(
                "noise_multiplier",
                self.noise_multiplier,
                "must be between 0.01 and 1e12",
                "it is sigma divided by the sensitivity; 1 to 20 are common",
            )
        object.__setattr__(self, "noise_multiplier", multiplier)
        _check_shape(self, "l2_sensitivity")
        _ = self.event  # a vector whose noise is too narrow for the grid is refused now, not at the release

    @classmethod
    def of_rho(
        cls, rho: float, l2_sensitivity: float = 1, grid: float | None = None, cells: int = 1
    ) -> DiscreteGaussian:
        """The mechanism that is rho-zCDP: noise multiplier 1 / sqrt(2 rho), rounded up.

        Args:
            rho: The rho of zero-concentrated DP, > 0.
            l2_sensitivity: How far neighbours' values can be apart in l2.
            grid: The step to which real numbers are rounded, if they are real.
            cells: How many numbers one release holds.

        Returns:
            The mechanism.

        Raises:
            InvalidValue: If `rho` is not a finite number > 0, or the mechanism refuses its parameters.

        >>> DiscreteGaussian.of_rho(0.125, l2_sensitivity=3).noise_multiplier
        2.0
        """
        number = checked_real(rho, "rho")
        if not 0 < number < math.inf:
            raise InvalidValue("rho", rho, "must be a finite number > 0")
        multiplier = 1 / math.sqrt(2 * number)
        # A multiplier below 0.01 is refused anyway; from a root that underflowed to 0 the way up would be endless.
        while multiplier >= 0.01 and Fraction(multiplier) ** 2 * 2 * Fraction(number) < 1:
            multiplier = math.nextafter(multiplier, math.inf)
        return cls(multiplier, l2_sensitivity, grid, cells)

    @cached_property
    def event(self) -> Event:
        """The discrete Gaussian event for one number; for a vector, what dominates every shift of that l2 norm."""
        steps = self._sensitivity_steps
        if self.cells == 1 or steps == 1:  # an integer vector of norm 1 moves one cell by one
            return DiscreteGaussianNoise(self.noise_multiplier, int(steps))
        return vector_event(self._sigma_squared, steps, self.cells)

    @property
    def distribution(self) -> DiscreteGaussianDistribution:
        """The exact distribution of the integer noise, in steps."""
        return DiscreteGaussianDistribution(self._sigma_squared)

    @property
    def _sigma_squared(self) -> Fraction:
        return (Fraction(self.noise_multiplier) * Fraction(self._sensitivity_steps)) ** 2

    @property
    def _width_squared(self) -> Fraction:
        return self._sigma_squared

    @property
    def _sensitivity_steps(self) -> float:
        if self.grid is not None:
            return Grid(self.grid).l2_steps(self.l2_sensitivity, self.cells)
        return float(math.floor(self.l2_sensitivity)) if self.cells == 1 else self.l2_sensitivity

    def _answer(self, value: Any, source: Source) -> Any:
        return self._with_noise(value, lambda size: discrete_gaussian_noise(self._sigma_squared, size, source))


def _check_shape(mechanism: DiscreteLaplace | DiscreteGaussian, name: str) -> None:
    """Sensitivity, grid and cells, checked and stored as plain numbers."""
    sensitivity = getattr(mechanism, name)
    number = checked_real(sensitivity, name)
    if number < sensitivity:  # a whole number or a fraction that a double rounds down
        number = math.nextafter(number, math.inf)
    if not 0 < number < math.inf:
        raise InvalidValue(name, sensitivity, "must be a finite number > 0")
    if mechanism.grid is not None:
        object.__setattr__(mechanism, "grid", Grid(mechanism.grid).step)
        object.__setattr__(mechanism, name, number)
    elif name == "l1_sensitivity" and not number.is_integer():
        raise InvalidValue(name, sensitivity, "must be a whole number for whole values", "use grid= for real values")
    elif not number >= 1:
        raise InvalidValue(name, sensitivity, "must be at least 1 for whole values", "use grid= for real values")
    else:
        object.__setattr__(mechanism, name, int(number) if number.is_integer() else number)
    cells = checked_count(mechanism.cells, "cells")
    if not 1 <= cells <= _MOST_CELLS:
        raise InvalidValue("cells", mechanism.cells, "must be a whole number from 1 to 2^40")
    object.__setattr__(mechanism, "cells", cells)
    if not mechanism._sensitivity_steps <= 2**53:
        raise InvalidValue(name, sensitivity, "must not exceed 2^53 steps", "use a coarser grid")
    if not mechanism._width_squared <= LARGEST_SCALE**2:
        parameter = "epsilon" if isinstance(mechanism, DiscreteLaplace) else "noise_multiplier"
        raise InvalidValue(
            parameter,
            getattr(mechanism, parameter),
            "makes the noise wider than 2^56 steps",
            "use less noise or a coarser grid",
        )

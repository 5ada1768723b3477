"""Why a vector of discrete Gaussian noises costs no more than a slightly narrower continuous one."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, fmpq

from farthing.errors import InvalidValue
from farthing.numerics.balls import down, precision, up
from farthing.privacy.events import ApproxDP, Composed, Event, GaussianNoise

_SMOOTHING = 4  # s^2: the part of sigma^2 that turns a continuous draw into an integer one
_LARGEST_LEAK = 2.0**-60


def vector_event(sigma_squared: Fraction, l2_steps: float, cells: int) -> Event:
    """The event of `cells` independent discrete Gaussian noises on an integer vector of l2 sensitivity `l2_steps`.

    >>> event = vector_event(Fraction(30) ** 2, 3.0, cells=100)
    >>> print(f"{event.parts[0][0].noise_multiplier:.4f} {event.parts[1][0].delta:.1e}")
    9.9778 1.9e-31

    Statement:
        Let s^2 = 4 < sigma^2, tau^2 = sigma^2 - s^2, mu = l2_steps / tau, kappa = 2 sum_k exp(-2 pi^2 s^2 k^2) and
        eta = 3 cells kappa. If x and y are integer vectors at most l2_steps apart in l2, the laws of x and y plus
        noise are dominated by continuous Gaussian noise of multiplier 1/mu composed with a leak of
        3 eta / (2 Phi(-mu/2)).
    Source: own derivation; Poisson summation as in Canonne, Kamath & Steinke, arXiv:2004.00010v5, section 2.
        Draw z from N(x, tau^2), then each n_i from the discrete Gaussian of parameter s around z_i: post-processing of
        a Gaussian release. Its normaliser, the sum of exp(-(n - z)^2 / (2 s^2)) over n, is s sqrt(2 pi) times a factor
        in [1 - kappa, 1 + kappa] whatever z is, so integrating z out leaves exp(-(n - x)^2 / (2 sigma^2)) up to that
        factor: each cell's law is within a ratio exp(+-3 kappa) of the discrete Gaussian, the vector's within
        exp(+-eta). For laws P, Q within exp(+-eta) of P', Q', and E = {P > g Q} with g >= 1,
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

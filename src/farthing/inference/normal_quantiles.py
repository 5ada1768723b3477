"""Quantiles of the normal distribution for arrays, without loading SciPy for them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Wichura's coefficients, highest power first: numerator and denominator.
_MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_NEAR = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def normal_quantiles(shares: Floats) -> Floats:
    """The quantiles of the standard normal distribution at shares; minus infinity at 0 and below, infinity from 1 on.

    Statement: three ratios of polynomials, right to about 1e-15 relatively.
    Source: Wichura 1988, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics
        37(3).
    Assumes: nothing.
    Direction: to the nearest; who needs a bound adds a margin.
    Checked by: tests/theorems/test_sums_of_noise.py

    >>> normal_quantiles(np.array([0.0, 0.025, 0.5, 0.999999])).round(4)
    array([   -inf, -1.96  ,  0.    ,  4.7534])
    """
    away = np.asarray(shares, dtype=float) - 0.5
    middle = np.abs(away) <= 0.425
    result = np.empty_like(away)
    inner = away[middle]
    result[middle] = inner * _ratio(_MIDDLE, 0.180625 - inner * inner)
    outer = np.asarray(shares, dtype=float)[~middle]
    nearest = np.minimum(outer, 1 - outer)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.sqrt(-np.log(nearest))
        size = np.where(r <= 5.0, _ratio(_NEAR, r - 1.6), _ratio(_FAR, r - 5.0))
    result[~middle] = np.copysign(np.where(nearest > 0, size, math.inf), away[~middle])
    return result


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    above, below = (np.full_like(x, own[0]) for own in coefficients)
    for a, b in zip(coefficients[0][1:], coefficients[1][1:], strict=True):
        above, below = above * x + a, below * x + b
    return np.asarray(above / below)

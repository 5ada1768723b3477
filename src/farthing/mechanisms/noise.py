"""One vector of integer noise, clamped so that its sum with a clamped value always fits into int64.

Single numbers go through the table sampler too: a draw there takes the same time whatever comes out, while the time of
a draw made coin by coin tells something about its size.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers import discrete_gaussian_noise, discrete_laplace_noise

_MOST = 2**62 - 1  # draws lie within +-2^62, values are clamped to +-2^62, and int64 ends one below 2^63


def laplace_noise(scale: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent draws with mass proportional to exp(-|n| / scale)."""
    return np.minimum(discrete_laplace_noise(scale, size, source), _MOST)


def gaussian_noise(sigma_squared: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent draws with mass proportional to exp(-n^2 / (2 sigma_squared))."""
    return np.minimum(discrete_gaussian_noise(sigma_squared, size, source), _MOST)

"""One vector of integer noise: exact draws one by one for small vectors, tables for big ones; the same law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms import exact
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers import discrete_gaussian_noise, discrete_laplace_noise

_SMALL = 512  # below this a table costs more than it saves
_MOST = 2**62 - 1  # noise clamped to [-2^62, 2^62 - 1] plus a value clamped to +-2^62 always fits into int64


def laplace_noise(scale: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent draws with mass proportional to exp(-|n| / scale), clamped so that sums fit."""
    if size >= _SMALL:
        return np.minimum(discrete_laplace_noise(scale, size, source), _MOST)
    bits = exact.Bits(source)
    return _clamped([exact.discrete_laplace(scale, bits) for _ in range(size)])


def gaussian_noise(sigma_squared: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent draws with mass proportional to exp(-n^2 / (2 sigma_squared)), clamped so that sums fit."""
    if size >= _SMALL:
        return np.minimum(discrete_gaussian_noise(sigma_squared, size, source), _MOST)
    bits = exact.Bits(source)
    return _clamped([exact.discrete_gaussian(sigma_squared, bits) for _ in range(size)])


def _clamped(draws: list[int]) -> NDArray[np.int64]:
    return np.array([min(max(n, -(2**62)), _MOST) for n in draws], dtype=np.int64)

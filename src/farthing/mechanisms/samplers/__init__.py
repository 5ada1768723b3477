"""Integer noise for vectors, exact: `discrete_laplace_noise` and `discrete_gaussian_noise`.

    law         the two laws as one formula
    alias       a choice among many in constant time, in whole numbers
    table       blocks of a law, their shares of the proposals, lines that decide acceptance
    staircase   the sampler and the theorem that it is exact
    opendp      the same laws drawn by OpenDP, for comparison (optional)

Single numbers are drawn by `farthing.mechanisms.exact_samplers`, which has the same laws and needs no table.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.staircase import Staircase
from farthing.mechanisms.samplers.staircase_table import Law

__all__ = ["LARGEST_SCALE", "discrete_gaussian_noise", "discrete_laplace_noise"]

LARGEST_SCALE = 1 << 56  # beyond, the noise would not fit into int64 with all but vanishing probability


def discrete_laplace_noise(scale: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent whole numbers n with mass exactly proportional to e^(-|n| / scale).

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> noise = discrete_laplace_noise(Fraction(1000), 10_000, SYSTEM)
    >>> noise.dtype, noise.shape, bool(1200 < noise.std() < 1650)
    (dtype('int64'), (10000,), True)
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise InvalidValue("scale", scale, "must be > 0 and <= 2**56", "use a coarser grid")
    return _sampler(Law.laplace(Fraction(scale))).draw(_checked_size(size), source)


def discrete_gaussian_noise(variance: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent whole numbers n with mass exactly proportional to e^(-n^2 / (2 variance)).

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> noise = discrete_gaussian_noise(Fraction(10**6), 10_000, SYSTEM)
    >>> noise.dtype, noise.shape, bool(900 < noise.std() < 1100)
    (dtype('int64'), (10000,), True)
    """
    if not 0 < variance <= LARGEST_SCALE**2:
        raise InvalidValue("variance", variance, "must be > 0 and <= 2**112", "use a coarser grid")
    return _sampler(Law.gaussian(Fraction(variance))).draw(_checked_size(size), source)


@lru_cache(maxsize=32)
def _sampler(law: Law) -> Staircase:
    """Tables are made of public parameters only, and are kept: a mechanism draws from the same law many times."""
    return Staircase.of(law)


def _checked_size(size: int) -> int:
    if not size >= 0:
        raise InvalidValue("size", size, "must be >= 0")
    return size

"""The same two distributions drawn by OpenDP: a second opinion for tests and benchmarks, and a choice for users.

OpenDP takes its scale as a double and draws from its own generator. Where the double differs from the exact scale it is
the next one above, so the noise is never less than asked for.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue, MissingExtra

__all__ = ["discrete_gaussian_noise", "discrete_laplace_noise"]


def discrete_laplace_noise(scale: Fraction, size: int) -> NDArray[np.int64]:
    """`size` independent whole numbers n with mass proportional to e^(-|n| / scale), from OpenDP's sampler.

    >>> discrete_laplace_noise(Fraction(10), 3).shape
    (3,)
    """
    return _drawn("make_laplace", "l1_distance", _double_above(scale, "scale"), size)


def discrete_gaussian_noise(variance: Fraction, size: int) -> NDArray[np.int64]:
    """`size` independent whole numbers n with mass proportional to e^(-n^2 / (2 variance)), from OpenDP's sampler.

    >>> discrete_gaussian_noise(Fraction(100), 3).shape
    (3,)
    """
    deviation = math.sqrt(_double_above(variance, "variance"))
    while Fraction(deviation) ** 2 < variance:
        deviation = math.nextafter(deviation, math.inf)
    return _drawn("make_gaussian", "l2_distance", deviation, size)


def _double_above(value: Fraction, name: str) -> float:
    if not 0 < value < Fraction(2) ** 1000:
        raise InvalidValue(name, value, "must be > 0 and < 2**1000")
    double = float(value)
    return double if Fraction(double) >= value else math.nextafter(double, math.inf)


def _drawn(measurement: str, metric: str, scale: float, size: int) -> NDArray[np.int64]:
    if not size >= 0:
        raise InvalidValue("size", size, "must be >= 0")
    opendp: Any = _opendp()
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    noise = getattr(opendp.m, measurement)(domain, getattr(opendp, metric)(T="i64"), scale=scale)
    return np.array(noise([0] * size), dtype=np.int64)


def _opendp() -> Any:
    try:
        import opendp.prelude as opendp
    except ImportError:
        raise MissingExtra("OpenDP's samplers", "opendp", "opendp") from None
    opendp.enable_features("contrib")
    return opendp

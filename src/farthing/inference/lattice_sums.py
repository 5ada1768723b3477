"""Sums of noise that lie on one short lattice: the whole law by one Fourier transform."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.inference.terms import Floats, Parts, characteristic_function, chernoff_radius

_LONGEST = 1 << 14
_LEFT_OUT = 1e-13  # mass beyond the grid, which wraps around; rounding of the transform is of the same size


@dataclass(frozen=True, eq=False)
class LatticeSum:
    """`within[k]` is P[|X| <= k * step]."""

    step: float
    within: Floats

    def tail(self, x: float) -> float:
        """P[|X| > x], never too small by more than 1e-12."""
        k = math.floor(x / self.step * (1 + 1e-12))
        return float(1 - self.within[min(k, len(self.within) - 1)]) + _LEFT_OUT if k >= 0 else 1.0

    def error(self, confidence: float) -> float:
        """The least e with P[|X| <= e] >= confidence; infinite when the grid cannot tell."""
        k = int(np.searchsorted(self.within, confidence + 2 * _LEFT_OUT))
        return self.step * k if k < len(self.within) else math.inf


def common_step(parts: Parts, divisors: int = 12) -> float | None:
    """The g of which every coefficient is a whole multiple, if there is a plain one."""
    if parts[-1][0] == "normal":  # it stands last
        return None
    sizes = {size for _, _, size, _ in parts}
    least = min(sizes)
    ratios = [size / least for size in sizes if size > least]
    for divisor in range(1, divisors + 1):
        for ratio in ratios:
            multiple = ratio * divisor
            if abs(multiple - round(multiple)) > 1e-9 * multiple:
                break
        else:
            return least / divisor
    return None


def lattice_sum(parts: Parts) -> LatticeSum | None:
    """The law on its lattice, or None where there is no lattice or it is too long."""
    step = common_step(parts)
    if step is None:
        return None
    reach = math.ceil(chernoff_radius(parts, _LEFT_OUT) / step) + 1
    length = 1 << (2 * reach + 1).bit_length()
    if length > _LONGEST:
        return None
    frequencies = 2 * math.pi / length * np.arange(length // 2 + 1, dtype=float)
    unit: Parts = tuple((kind, scale, float(round(size / step)), count) for kind, scale, size, count in parts)
    masses = np.fft.irfft(characteristic_function(unit, frequencies), length)
    both = masses[: reach + 1].copy()
    both[1:] *= 2
    return LatticeSum(step, np.maximum.accumulate(np.cumsum(np.maximum(both, 0.0))))

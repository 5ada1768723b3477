"""Bounds of |Phi(t)| over whole intervals of t: the proof that the far part of the line does not matter.

Statement:
    For randomized response |Phi(t)|^2 = 1 - sech^2(a) sin^2(t e), a = (c + 1/2) e. Let t run over [low, high], m be the
    distance of (low + high) e / 2 from the nearest multiple of pi and r = (high - low) e / 2. Then
        sin^2(t e) >= sin^2(max(0, m - r)),   and   sin^2(t e) >= (low e)^2 (1 - (high e)^2 / 3) when high e <= 1.
    Every factor of Phi has modulus <= 1, so any subset of the factors gives a bound.
Source: the distance to the nearest multiple of pi is 1-Lipschitz and |sin| grows with it; sin^2 v >= v^2 (1 - v^2 / 3).
Assumes: weights >= 0 (true multiplicities, not a sketch's).
Direction: upper bound of log |Phi|, and so of what truncation leaves out.
Checked by: tests/theorems/test_contour.py
"""

from __future__ import annotations

import numpy as np

from farthing.accounting.transforms import Array, Transform

_ROUNDING = (
    1e-9  # far above the error of reducing t e modulo pi for t e < 10^6, far below any angle that matters
)
_CHUNK = 1 << 20


class BoxBounds:
    """Bounds on boxes for one transform and one line; sorts the epsilons once."""

    def __init__(self, transform: Transform, c: float) -> None:
        order = np.argsort(transform.epsilons)
        self.epsilons = transform.epsilons[order]
        self.weights = transform.weights[order]
        self.sech2 = 1 / np.cosh(np.minimum((c + 0.5) * self.epsilons, 350.0)) ** 2
        self.spread = np.concatenate([[0.0], np.cumsum(self.weights * self.epsilons**2 * self.sech2)])
        self.transform = transform
        self.c = c

    def natural_width(self, t: float, factors: int) -> float:
        """A box width at t for which the chosen factors do not blur: r <= 1/4."""
        chosen = self._chosen(t, factors)
        if not len(chosen):
            return t
        return min(t, 0.5 / float(self.epsilons[chosen[-1]]))

    def log_modulus(self, low: Array, high: Array, factors: int) -> Array:
        """An upper bound of log |Phi| on each [low, high]; all boxes lie within a factor of two of the first."""
        out = -low * low * self.transform.gaussian / 2
        # Factors too slow to turn within the box: the Gaussian-like part.
        slow = np.searchsorted(self.epsilons, 1 / high)
        fastest = high * self.epsilons[np.maximum(slow - 1, 0)] if len(self.epsilons) else high
        out -= self.spread[slow] * low * low * np.maximum(1 - fastest**2 / 3, 2 / 3) / 2
        chosen = self._chosen(float(low[0]), factors)
        fast = chosen[self.epsilons[chosen] > 1 / float(high.max())]
        if len(fast):
            e, w, sech2 = self.epsilons[fast], self.weights[fast], self.sech2[fast]
            single = bool(np.all(w == 1))
            rows = max(1, _CHUNK // len(e))
            for start in range(0, len(low), rows):
                part = slice(start, start + rows)
                turn = (low[part, None] + high[part, None]) * (e / (2 * np.pi))
                sine = np.pi * np.abs(turn - np.rint(turn))
                sine -= (high[part, None] - low[part, None]) * (e / 2) + _ROUNDING * (1 + turn * 1e-6)
                np.maximum(sine, 0.0, out=sine)
                np.sin(sine, out=sine)
                square = 1 - sech2 * sine * sine
                square[high[part, None] * e <= 1] = 1.0  # counted among the slow ones above
                if single:
                    out[part] += 0.5 * np.log(np.maximum(square.prod(axis=1), 1e-300))
                else:
                    out[part] += 0.5 * (w * np.log(square)).sum(axis=1)
        out += self._laplace(low)
        out += self._ranges(low)
        return out * (1 - _ROUNDING)

    def typical(self) -> float:
        """The mean of log |Phi| over a long stretch of t.

        The mean of log |cos b + i tanh(a) sin b| over all b is log((1 + tanh a) / 2).
        """
        return float(np.dot(self.weights, np.log((1 + np.sqrt(np.maximum(1 - self.sech2, 0.0))) / 2)))

    def _chosen(self, t: float, factors: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Some `factors` of the smallest epsilons that turn by at least one radian up to t.

        Small ones allow wide boxes. They are picked from a whole octave, because neighbours in a long list are so alike
        that they would all stand still at the same t.
        """
        size = len(self.epsilons)
        first = min(int(np.searchsorted(self.epsilons, 1 / t)), max(0, size - factors))
        octave = int(np.searchsorted(self.epsilons, 2 * self.epsilons[first])) if first < size else size
        last = min(size, max(first + factors, octave))
        if last - first <= factors:
            return np.arange(first, last)
        return np.linspace(first, last - 1, factors).astype(np.intp)

    def _ranges(self, low: Array) -> Array | float:
        """A bounded range has a density only: its transform decays like s / (2 t)."""
        e, n = self.transform.ranges, self.transform.range_counts
        if not len(e):
            return 0.0
        s = 2 * self.c + 1
        ratio = (1 + np.exp(-s * e)) / -np.expm1(-s * e) * s / (2 * low[:, None])
        bound: Array = (n * np.minimum(np.log(ratio), 0.0)).sum(axis=1)
        return bound

    def _laplace(self, low: Array) -> Array | float:
        """Half of a Laplace loss is two atoms; the rest has a density whose transform decays like 1 / t."""
        e, n = self.transform.laplace, self.transform.laplace_counts
        if not len(e):
            return 0.0
        s = 2 * self.c + 1
        level = np.log(((self.c + 1) + self.c * np.exp(-s * e)) / s)
        ratio = 0.5 * (1 + np.exp(-s * e)) * (1 + 1 / (2 * low[:, None]))
        bound: Array = (n * np.minimum(np.log(ratio) - level, 0.0)).sum(axis=1)
        return bound

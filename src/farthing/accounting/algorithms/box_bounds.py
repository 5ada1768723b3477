"""Bounds on the modulus of a transform on whole boxes of its line: what need not be sampled, and why."""

from __future__ import annotations

import numpy as np

from farthing.accounting.loss_transforms import Array, Transform

_ROUNDING = 1e-9  # far above the error of reducing t e modulo pi for t e < 10^6, far below any angle that matters
_CHUNK = 1 << 15  # matrix cells worked on at a time


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
            single, all_fast = bool(np.all(w == 1)), float(high.min()) * float(e.min()) > 1
            rows = max(1, _CHUNK // len(e))
            for start in range(0, len(low), rows):
                part = slice(start, start + rows)
                turn = (low[part, None] + high[part, None]) * (e / (2 * np.pi))
                sine = np.pi * np.abs(turn - np.rint(turn))
                turn *= _ROUNDING * 1e-6
                turn += (high[part, None] - low[part, None]) * (e / 2) + _ROUNDING
                sine -= turn
                square = _square_of_sine(np.maximum(sine, 0.0, out=sine), turn)
                square *= -sech2
                square += 1.0
                if not all_fast:
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


def _square_of_sine(angle: Array, out: Array) -> Array:
    """A lower bound of sin^2 on [0, pi / 2], less than 1e-4 below it, written to `out`; `angle` is used up.

    sin^2 s = sum of (-1)^(n+1) 2^(2n-1) s^(2n) / (2n)!, whose terms alternate and decrease there: cut after a negative
    one, the sum is too small. It is several times as fast as the sine.
    """
    square = np.multiply(angle, angle, out=angle)
    np.multiply(square, -2 / 467775, out=out)
    for coefficient in (2 / 14175, -1 / 315, 2 / 45, -1 / 3, 1.0):
        out += coefficient
        out *= square
    return out

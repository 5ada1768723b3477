"""From noisy counts of all cells to counts that could be true: none below zero, and coarse shapes kept.

Noise is first taken out in a basis of coarse and fine shapes. Cutting negative cells off then would move mass in one
direction everywhere, which adds up in the coarse shapes; so the nearest table without negative cells is looked for
in a distance in which coarse shapes weigh more.
"""

from __future__ import annotations

import math

import numpy as np

from farthing.adaptive.online.shrinkage import shrunk
from farthing.adaptive.online.wavelets import Floats, Wavelets

_STIFFNESS = 100.0  # of the link between both halves of the iteration: any value converges, this one soon
_ROUNDS = 200
_FAINT = 0.05  # of its size: what is left of a kind that is dropped
_CLOSE = 5e-4  # of the total, moved in one round
_WORK = 3 * 2**26  # cells times rounds: the largest domains have fewer rounds


def settled(numbers: Floats, variances: Floats, basis: Wavelets) -> Floats:
    """Counts >= 0 from noisy numbers of a basis; the first number, the total, is kept as it is.

    >>> basis = Wavelets((4,))
    >>> noisy = np.array([100.0, -3.0, 2.0, 1.0])
    >>> found = settled(basis.forward(noisy), np.full(4, 9.0), basis)
    >>> bool(found.min() >= 0), round(float(found.sum())), round(float(found[0])) > 90
    (True, 100, True)
    """
    expected = basis.forward(_independent(numbers, basis))
    denoised = expected + _denoised(numbers - expected, variances, basis)
    total = max(float(denoised.flat[0]) * float(np.sqrt(denoised.size)), 1.0)
    found = _without_negatives(denoised, variances, total, basis)
    mass = float(found.sum())
    return found * (total / mass) if mass > 0 else np.full(basis.shape, total / found.size)


def _independent(numbers: Floats, basis: Wavelets) -> Floats:
    """The table with the same shares of each column's values, all columns independent of each other.

    What noise is taken out of is the difference to this. With one column or two there would be nothing left to learn
    from the others: then all cells are alike.
    """
    shape = basis.shape
    total = max(float(numbers.flat[0]) * math.sqrt(numbers.size), 1.0)
    found = np.full(shape, total / numbers.size)
    if len(shape) < 3:
        return found
    for axis, size in enumerate(shape):
        place = tuple(slice(None) if other == axis else 0 for other in range(len(shape)))
        counts = Wavelets((size,)).back(numbers[place]) * math.sqrt(numbers.size / size)
        spread = [size if other == axis else 1 for other in range(len(shape))]
        shares = np.maximum(counts / total, 0.01 / size)
        found *= (shares * (size / shares.sum())).reshape(spread)
    return found


def _denoised(numbers: Floats, variances: Floats, basis: Wavelets) -> Floats:
    """All kinds of numbers shrunk by themselves, but for the total."""
    kinds, sizes = basis.kinds
    order = np.argsort(kinds, kind="stable")
    values, spreads = numbers.reshape(-1), variances.reshape(-1)
    found = np.empty(values.size)
    for places in np.split(order, np.cumsum(sizes)[:-1]):
        kept = shrunk(values[places], spreads[places])
        # A kind of which next to nothing is left would only push cells below zero.
        worth = float(np.sum(kept**2)) >= _FAINT**2 * float(np.sum(values[places] ** 2))
        found[places] = kept if worth else 0.0
    found[0] = values[0]
    return found.reshape(basis.shape)


def _without_negatives(numbers: Floats, variances: Floats, total: float, basis: Wavelets) -> Floats:
    """The table h >= 0 that makes the sum of weight_k (number_k(h) - number_k)^2 least, by alternating directions.

    A number weighs by its precision, and more if there are few of its kind: 1 + 0.3 (cells / numbers)^0.8 times, chosen
    by trial on many tables.
    """
    kinds, sizes = basis.kinds
    weights = (1 + 0.3 * (numbers.size / sizes) ** 0.8)[kinds].reshape(basis.shape)
    weights *= float(variances.max()) / variances
    weights.flat[0] = 1e6
    near = basis.back(numbers)
    shifted = near - _even_shift(near, total)
    # The projection that keeps the total only is where it begins, with its own multipliers.
    found, pull = np.maximum(shifted, 0.0), np.minimum(shifted, 0.0) / _STIFFNESS
    for _ in range(min(_ROUNDS, max(8, _WORK // numbers.size))):
        mixed = weights * numbers + _STIFFNESS * basis.forward(found - pull)
        smooth = basis.back(mixed / (weights + _STIFFNESS))
        before, found = found, np.maximum(smooth + pull, 0.0)
        pull = pull + smooth - found
        if float(np.abs(found - before).sum() + np.abs(smooth - found).sum()) <= _CLOSE * total:
            break
    return found


def _even_shift(table: Floats, total: float) -> float:
    """What must be taken off every cell so that the positive ones have this total."""
    low, high = float(table.min()) - total / table.size - 1, float(table.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.maximum(table - middle, 0).sum()) > total else (low, middle)
    return low

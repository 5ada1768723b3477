"""Noise taken out of many numbers of one kind, by what they say about each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SAMPLE = 16_384  # numbers that the common law is learnt from
_BLOCK = 65_536
_ROUNDS = 40


def shrunk(values: Floats, variances: Floats) -> Floats:
    """Posterior means of numbers that were measured with Gaussian noise of known variances.

    The law of the true numbers is a mixture of centred Gaussians of many widths, zero among them; its weights are the
    most likely ones. Where there is nothing but noise all numbers go to zero, where there is much more they stay.
    After Stephens, "False discovery rates: a new deal", Biostatistics 18 (2017), with a grid of widths. Whatever
    comes out is post-processing: it may be wrong, never unsafe.

    >>> noise = np.tile([-1.0, 1.0, -0.5, 0.5], 100)
    >>> bool(np.abs(shrunk(noise, np.ones(400))).max() < 0.1)
    True
    >>> shrunk(np.array([100.0, -80.0, 90.0]), np.ones(3)).round()
    array([100., -80.,  90.])
    """
    top = max(float(np.max(values**2)), 4 * float(variances.max()))
    least = float(variances.min()) / 4
    widths = np.concatenate([[0.0], np.geomspace(least, top, 2 + round(np.log2(top / least)))])
    every = -(-len(values) // _SAMPLE)
    weights = _most_likely(values[::every], variances[::every], widths)
    found = np.empty(len(values))
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        chances = _likelihoods(values[part], variances[part], widths) * weights
        factors = widths / (widths + variances[part, None])
        found[part] = values[part] * (chances * factors).sum(axis=1) / chances.sum(axis=1)
    return found


def _likelihoods(values: Floats, variances: Floats, widths: Floats) -> Floats:
    """Up to a factor for each value, so that the largest is 1."""
    spreads = widths + variances[:, None]
    logs = -0.5 * (np.log(spreads) + values[:, None] ** 2 / spreads)
    found: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
    return found


def _most_likely(values: Floats, variances: Floats, widths: Floats) -> Floats:
    """Weights by expectation and maximisation, with half an observation's worth of doubt spread evenly."""
    likelihoods = _likelihoods(values, variances, widths)
    weights = np.full(len(widths), 1 / len(widths))
    for _ in range(_ROUNDS):
        shares = likelihoods * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = shares.sum(axis=0) + 0.5 / len(widths)
        weights /= weights.sum()
    return weights

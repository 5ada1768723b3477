"""How a budget is best divided over the levels of a tree: a small problem, solved for many trees at once.

With blocks of s_0 > s_1 > ... > s_h cells, each level measured with precision w_l (one over the variance of its noise),
least squares gives the details between level j - 1 and level j the precision lambda_j = sum of w_l s_l over l >= j.
A workload with energy d_j in those details has the total variance sum_j d_j / lambda_j.
"""

from __future__ import annotations

import numpy as np

from farthing.release.strategies.base import Floats, Norm

_DROPPED = 1e-3
_STEPS = 400


def precisions(sizes: Floats, shares: Floats, norm: Norm) -> Floats:
    """lambda_j of every level at epsilon = 1 (l1, continuous Laplace noise) or mu = 1 (l2)."""
    weights = sizes * (shares**2 / 2 if norm == "l1" else shares)
    return np.asarray(np.cumsum(weights[..., ::-1], axis=-1)[..., ::-1])


def error(sizes: Floats, details: Floats, shares: Floats, norm: Norm) -> Floats:
    """The total variance sum_j d_j / lambda_j, for one tree or for many; infinite where a detail is not measured."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = details / precisions(sizes, shares, norm)
    return np.asarray(np.sum(np.where(details > 0, terms, 0.0), axis=-1))


def best_shares(sizes: Floats, details: Floats, norm: Norm, steps: int = _STEPS) -> Floats:
    """The shares of least error, rows of trees at once: (trees, levels) each.

    At the optimum the error falls equally fast in every share that is not zero. Each step moves
    the shares towards that; for l2 this is the classical multiplicative algorithm of optimal design, for l1 the
    problem is not convex and the answer is a local optimum.

    >>> sizes, details = np.array([[4.0, 1.0]]), np.array([[8.0, 8.0]])
    >>> best_shares(sizes, details, "l2").round(4)
    array([[0.1547, 0.8453]])
    """
    shares: Floats = np.full(sizes.shape, 1.0 / sizes.shape[-1])
    for step in range(steps):
        following = _moved(sizes, details, shares, norm)
        change = float(np.max(np.abs(following - shares)))
        shares = following
        if change < 1e-7 and step > 8:
            break
    return shares


def settled_shares(sizes: Floats, details: Floats, norm: Norm) -> Floats:
    """The best shares of one tree, where levels that would get next to nothing are not measured at all."""
    shares: Floats = best_shares(sizes[None], details[None], norm)[0]
    kept = shares >= _DROPPED / len(shares)
    if bool(np.all(kept)):
        return shares
    # Levels left out pass their details on to the next level that is measured, or to none at the fine end.
    fewer: Floats = np.where(kept, shares, 0.0) / np.sum(shares[kept])
    for _ in range(_STEPS):
        fewer = _moved(sizes, details, fewer, norm)
    worse = error(sizes, details, fewer, norm) > error(sizes, details, shares, norm) * (1 + 1e-6)
    best: Floats = shares if bool(worse) else fewer
    return best


def _moved(sizes: Floats, details: Floats, shares: Floats, norm: Norm) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = details / precisions(sizes, shares, norm) ** 2
    pulls = sizes * np.cumsum(np.where(details > 0, slopes, 0.0), axis=-1)
    moved = shares * (np.cbrt(shares * pulls) if norm == "l1" else np.sqrt(pulls))
    return np.asarray(moved / np.sum(moved, axis=-1, keepdims=True))

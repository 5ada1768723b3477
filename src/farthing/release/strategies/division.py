"""How a budget is best divided over the levels of a tree: a small problem, solved for many trees at once.

With blocks of s_0 > s_1 > ... > s_h cells, each level measured with precision w_l (one over the variance of its noise),
least squares gives the details between level j - 1 and level j the precision lambda_j = sum of w_l s_l over l >= j.
A workload with energy d_j in those details has the total variance sum_j d_j / lambda_j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farthing.release.strategies.base import Floats, Norm

Kept = NDArray[np.bool_]

_DROPPED = 1e-3
_STEPS = 400
_ROUNDS = 8


def precisions(sizes: Floats, shares: Floats, norm: Norm) -> Floats:
    """lambda_j of every level at epsilon = 1 (l1, continuous Laplace noise) or mu = 1 (l2)."""
    weights = sizes * (shares**2 / 2 if norm == "l1" else shares)
    return np.asarray(np.cumsum(weights[..., ::-1], axis=-1)[..., ::-1])


def error(sizes: Floats, details: Floats, shares: Floats, norm: Norm) -> Floats:
    """The total variance sum_j d_j / lambda_j, for one tree or for many; infinite where a detail is not measured."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = details / precisions(sizes, shares, norm)
    return np.asarray(np.sum(np.where(details > 0, terms, 0.0), axis=-1))


def best_shares(
    sizes: Floats, details: Floats, norm: Norm, steps: int = _STEPS, begun: Floats | None = None
) -> Floats:
    """The shares of least error, rows of trees at once: (trees, levels) each.

    At the optimum the error falls equally fast in every share that is not zero. Each step moves
    the shares towards that; for l2 this is the classical multiplicative algorithm of optimal design, for l1 the
    problem is not convex and the answer is a local optimum. A share that is 0 when `begun` stays 0.

    >>> sizes, details = np.array([[4.0, 1.0]]), np.array([[8.0, 8.0]])
    >>> best_shares(sizes, details, "l2").round(4)
    array([[0.1547, 0.8453]])
    """
    shares: Floats = np.full(sizes.shape, 1.0 / sizes.shape[-1]) if begun is None else begun
    for step in range(steps):
        following = _moved(sizes, details, shares, norm)
        change = float(np.max(np.abs(following - shares)))
        shares = following
        if change < 1e-6 and step > 8:
            break
    return shares


def settled_shares(sizes: Floats, details: Floats, norm: Norm) -> Floats:
    """The best shares of one tree, where levels that would get next to nothing are not measured at all.

    For l1 the shares sit in one of many local optima, each with its own set of measured levels: sets that leave out
    one level more, or move one level to the next size, are tried as long as one of them is better.

    >>> from farthing.release.strategies.trees import details_of
    >>> from farthing.release.workloads import prefix
    >>> sizes = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
    >>> settled_shares(np.array(sizes, dtype=float), details_of(prefix(1024), sizes), "l1").round(2)
    array([0.  , 0.  , 0.3 , 0.  , 0.  , 0.  , 0.34, 0.  , 0.  , 0.  , 0.36])
    """
    shares: Floats = best_shares(sizes[None], details[None], norm)[0]
    shares = _from_sets(sizes, details, [shares >= _DROPPED / len(shares)], shares, norm)
    if norm == "l2":  # convex: there is nothing better to be found
        return shares
    for _ in range(_ROUNDS):
        following = _from_sets(sizes, details, _nearby_sets(shares > 0), shares, norm)
        if following is shares:
            break
        shares = following
    return shares


def _nearby_sets(kept: Kept) -> list[Kept]:
    """The sets of levels that differ by one level left out, or moved to a neighbouring size; the finest stays."""
    found = []
    for place in np.flatnonzero(kept[:-1]):
        without = kept.copy()
        without[place] = False
        found.append(without)
        for other in (place - 1, place + 1):
            if 0 <= other < len(kept) - 1 and not kept[other]:
                moved = without.copy()
                moved[other] = True
                found.append(moved)
    return found


def _from_sets(sizes: Floats, details: Floats, sets: list[Kept], shares: Floats, norm: Norm) -> Floats:
    """The best shares that measure only one of the sets of levels, if they are as good as `shares`; else those."""
    # Details finer than anything measured stay unknown: such sets have no error to speak of.
    finest = int(np.flatnonzero(details > 0)[-1]) if bool(np.any(details > 0)) else 0
    usable = [kept for kept in sets if bool(np.any(kept[finest:]))]
    if not usable:
        return shares
    many = (len(usable), len(sizes))
    begun = np.array(usable, dtype=float)
    begun /= np.sum(begun, axis=1, keepdims=True)
    wide, deep = np.broadcast_to(sizes, many), np.broadcast_to(details, many)
    tried = best_shares(wide, deep, norm, begun=begun)
    errors = error(wide, deep, tried, norm)
    lowest = int(np.argmin(errors))
    # Fewer levels for the same error are better; a hair of tolerance, so that the search ends.
    fewer = np.count_nonzero(tried[lowest]) < np.count_nonzero(shares)
    limit = float(error(sizes, details, shares, norm)) * (1 + 1e-6 if fewer else 1 - 1e-6)
    return np.asarray(tried[lowest]) if errors[lowest] <= limit else shares


def _moved(sizes: Floats, details: Floats, shares: Floats, norm: Norm) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = details / precisions(sizes, shares, norm) ** 2
    # A detail that no level measures pulls endlessly at levels without a share, which stay without one.
    endless = sizes * np.cumsum(np.where(details > 0, slopes, 0.0), axis=-1)
    pulls = np.where(shares > 0, endless, 0.0)
    moved = shares * (np.cbrt(shares * pulls) if norm == "l1" else np.sqrt(pulls))
    return np.asarray(moved / np.sum(moved, axis=-1, keepdims=True))

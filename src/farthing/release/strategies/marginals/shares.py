"""How a budget is divided over levels that overlap: several of them tell something about the same residual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from farthing.inference.marginals import Subset
from farthing.inference.terms import Floats
from farthing.release.strategies.base import Norm
from farthing.release.strategies.marginals.levels import MarginalLevel
from farthing.release.strategies.marginals.optimum import best_division

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_NEGLIGIBLE = 1e-4  # of the largest share: not worth a level of its own


def precisions(levels: Sequence[MarginalLevel], parts: Sequence[Subset]) -> csr_array:
    """How precisely each level (column) determines each residual (row), at noise variance 1."""
    from scipy.sparse import csr_array

    place = {part: i for i, part in enumerate(parts)}
    rows, columns, values = [], [], []
    for j, level in enumerate(levels):
        for part in _within(level):
            if part in place:
                rows.append(place[part])
                columns.append(j)
                values.append(level.precision(part))
    return csr_array((values, (rows, columns)), shape=(len(parts), len(levels)))


def best_shares(
    levels: Sequence[MarginalLevel], parts: Sequence[Subset], energies: Floats, norm: Norm
) -> Floats:
    """The shares of epsilon (l1) or mu squared (l2) that make the sum of energy / precision least.

    Where each residual is measured by one level of its own and noise is Gaussian, this is `best_division`. Otherwise a
    local search from even shares: any shares are sound, and the error told is that of the shares found.
    """
    from scipy.optimize import minimize

    known = precisions(levels, parts)
    wanted = np.flatnonzero(energies > 0)
    moved = np.array([float(level.plain.l1 if norm == "l1" else level.plain.l2_squared) for level in levels])
    if norm == "l2" and known.nnz == len(levels) == len(parts) and np.all(known.diagonal() > 0):
        return best_division(energies, moved / known.diagonal())
    power = 2 if norm == "l1" else 1
    weights = known[wanted] / (moved**power)[None, :]
    # A dense product is quicker until most of it is zeros.
    weights = weights.toarray() if math.prod(weights.shape) <= 2**17 else weights.tocsr()
    asked = energies[wanted] / energies.max()

    def objective(logits: Floats) -> tuple[float, Floats]:
        logits = logits - logits.max()
        shares = np.exp(logits) / np.exp(logits).sum()
        with np.errstate(divide="ignore", over="ignore"):
            errors = asked / (weights @ shares**power)
        if not np.isfinite(errors).all():
            return np.inf, np.zeros_like(logits)
        value = float(errors.sum())
        slope = -power * shares**power * (weights.T @ (errors**2 / asked))
        return float(np.log(value)), (slope - shares * slope.sum()) / value

    found = minimize(
        objective, np.zeros(len(levels)), jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-8}
    )
    shares = np.exp(found.x - found.x.max())
    kept = np.where(shares > _NEGLIGIBLE * shares.max(), shares, 0.0)
    if np.all(weights @ kept**power > 0):
        shares = kept
    return np.asarray(shares / shares.sum())


def _within(level: MarginalLevel) -> list[Subset]:
    from itertools import combinations

    plain = [column for column in level.subset if column not in level.contrasts]
    return [
        tuple(sorted((*level.contrasts, *some)))
        for length in range(len(plain) + 1)
        for some in combinations(plain, length)
    ]

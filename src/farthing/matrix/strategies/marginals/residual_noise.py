"""How much Gaussian noise each residual deserves: closed for sums of variances, convex for the largest one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from farthing.inference.consistent_marginals import Subset
from farthing.inference.noise_terms import Floats
from farthing.matrix.strategies.marginals.marginal_levels import MarginalLevel
from farthing.matrix.strategies.strategy import Norm

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_ROUNDS = 20_000
_GAP = 1e-4


def cell_coefficients(sizes: Sequence[int], subsets: Sequence[Subset], parts: Sequence[Subset]) -> csr_array:
    """a(S, T): a cell of marginal S has variance sum over T in S of a(S, T) * variance of the residual of T.

    >>> cell_coefficients([2, 4], [(0, 1)], [(), (1,), (0, 1)]).toarray()
    array([[0.015625, 0.1875 , 0.375 ]])
    """
    from itertools import combinations

    from scipy.sparse import csr_array

    place = {part: j for j, part in enumerate(parts)}
    rows, columns, values = [], [], []
    for i, subset in enumerate(subsets):
        for length in range(len(subset) + 1):
            for part in combinations(subset, length):
                if part in place:
                    rows.append(i)
                    columns.append(place[part])
                    values.append(cell_coefficient(sizes, subset, part))
    return csr_array((values, (rows, columns)), shape=(len(subsets), len(parts)))


def cell_coefficient(sizes: Sequence[int], subset: Subset, part: Subset) -> float:
    """a(S, T) for one marginal S and one T in it."""
    share = math.prod(1.0 - 1.0 / sizes[column] for column in part)
    return share / math.prod(float(sizes[column]) ** 2 for column in subset if column not in part)


def best_division(energies: Floats, prices: Floats) -> Floats:
    """The division of a Gaussian budget that makes the sum of energy / precision least.

    Statement:
        Let residual T have error energy E_T / p_T at precision p_T and cost mu_T^2 = c_T p_T. Among all divisions of
        mu^2 = sum mu_T^2, the sum of the errors is least for mu_T^2 proportional to sqrt(E_T c_T), and is then
        (sum_T sqrt(E_T c_T))^2 / mu^2. With c_T = prod(1 - 1/n_i: i in T) and E_T the weighted sum over marginals S of
        cells(S) a(S, T), no linear strategy with Gaussian noise answers the marginals with less total variance.
    Source: the closed form is Cauchy-Schwarz; optimality as in Xiao, He, Zhang & Kifer, arXiv:2305.08175v2, by
        symmetry. The total variance tr(W'W X^-1) is convex in the information matrix X, its price is the largest
        diagonal entry of X, and both stay as they are when the values of a column are permuted. So the mean of X over
        all permutations is no worse, and such means are sums of the residual projectors, one number for each T.
    Assumes: energies >= 0 and prices > 0; for optimality among all strategies, a workload of marginals.
    Direction: equality; a residual without energy gets nothing.
    Checked by: tests/theorems/test_residual_optimum.py

    >>> best_division(np.array([4.0, 1.0]), np.array([1.0, 1.0]))
    array([0.66666667, 0.33333333])
    """
    roots = np.sqrt(energies * prices)
    return np.asarray(roots / roots.sum())


def most_even_weights(coefficients: csr_array, scales: Floats, prices: Floats) -> Floats:
    """Weights of the marginals whose best division makes the largest scale * variance of a cell least.

    Statement:
        min over divisions of max_S scale_S var_S equals the max over weights w (>= 0, sum 1) of the least weighted sum
        of scale_S var_S, which is (sum_T sqrt(c_T sum_S w_S scale_S a(S, T)))^2. At the maximum all marginals of
        positive weight have the same scaled variance, the largest.
    Source: minimax for a function convex in the precisions and linear in the weights (Sion 1958); the iteration
        w_S <- w_S * scaled variance_S, normalised, is Titterington's multiplicative algorithm for optimal designs.
    Assumes: scales and prices > 0.
    Direction: the weights are feasible, so the variances are those of a real division; it ends within 1e-4 of the
        optimum, or after 20,000 rounds at whatever has been reached.
    Checked by: tests/theorems/test_residual_optimum.py
    """
    scaled = coefficients.multiply(scales[:, None]).tocsr()
    weights = np.full(len(scales), 1.0 / len(scales))
    best, best_value = weights, math.inf
    for _ in range(_ROUNDS):
        energies = scaled.T @ weights
        roots = np.sqrt(energies * prices)
        # Precision of T is roots / prices up to the budget: a residual that no weight asks for is not in any S.
        variances = scaled @ np.divide(prices, roots, out=np.zeros_like(roots), where=roots > 0) * roots.sum()
        largest = float(variances.max())
        if largest < best_value:
            best, best_value = weights, largest
        mean = float(weights @ variances)
        if largest <= mean * (1 + _GAP):
            break
        weights = weights * variances / mean
    return best


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


def best_shares(levels: Sequence[MarginalLevel], parts: Sequence[Subset], energies: Floats, norm: Norm) -> Floats:
    """The shares of epsilon (l1) or mu squared (l2) that make the sum of energy / precision least.

    Where each residual is measured by one level of its own and noise is Gaussian, this is `best_division`. Otherwise a
    local search from even shares: any shares are sound, and the error reported is that of the shares found.
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
    goals = energies[wanted] / energies.max()

    def objective(logits: Floats) -> tuple[float, Floats]:
        logits = logits - logits.max()
        shares = np.exp(logits) / np.exp(logits).sum()
        with np.errstate(divide="ignore", over="ignore"):
            errors = goals / (weights @ shares**power)
        if not np.isfinite(errors).all():
            return np.inf, np.zeros_like(logits)
        value = float(errors.sum())
        slope = -power * shares**power * (weights.T @ (errors**2 / goals))
        return float(np.log(value)), (slope - shares * slope.sum()) / value

    optimum = minimize(
        objective, np.zeros(len(levels)), jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-8}
    )
    shares = np.exp(optimum.x - optimum.x.max())
    large = np.where(shares > _NEGLIGIBLE * shares.max(), shares, 0.0)
    if np.all(weights @ large**power > 0):
        shares = large
    return np.asarray(shares / shares.sum())


def _within(level: MarginalLevel) -> list[Subset]:
    from itertools import combinations

    plain = [column for column in level.subset if column not in level.contrasts]
    return [
        tuple(sorted((*level.contrasts, *some)))
        for length in range(len(plain) + 1)
        for some in combinations(plain, length)
    ]

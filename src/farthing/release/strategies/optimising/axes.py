"""Optimised strategies over several axes: one for each axis, optimised in turn against what the others leave."""

from __future__ import annotations

import math

import numpy as np

from farthing.errors import InvalidValue
from farthing.release.strategies.base import Norm
from farthing.release.strategies.kronecker import KroneckerStrategy, axis_workload, flattened
from farthing.release.strategies.matrix import MatrixStrategy
from farthing.release.strategies.optimising.descent import Progress
from farthing.release.strategies.optimising.strategy import CellsAndSums
from farthing.release.workloads.base import Workload
from farthing.release.workloads.marginal import Marginals
from farthing.release.workloads.products import Product
from farthing.release.workloads.unions import Union, union

_BITS = 24  # of the weights of a whole product, shared among its axes
_ROUNDS = 3
_MOST_PRODUCTS = 4_096
_MOST_CELLS = 2_048  # of one axis: factors are solved as dense matrices
_MOST_TOGETHER = 2**26  # no histogram of more cells is measured


def optimised_product(
    workload: Workload, norm: Norm, *, progress: Progress, seconds: float
) -> KroneckerStrategy:
    """The product of one optimised strategy for each axis.

    Statement:
        For a product of workloads and a product of strategies, tr((A'A)^-1 W'W) is the product over the axes of
        tr((A_a'A_a)^-1 W_a'W_a), so each axis is optimised by itself. For a union of products it is the sum of such
        products, so with the other axes fixed the best strategy for one axis is the best for the union of its
        workloads, each weighted by the root of what the other axes contribute; axes are optimised in turn.
    Source: McKenna, Miklau, Hay & Machanavajjhala, arXiv:1808.03537v1, section 6 (products, and unions of products by
        block cyclic descent).
    Assumes: the workload is a product, or a union of products, of workloads of one axis each.
    Direction: used for choosing only; sensitivities and errors are those of the whole numbers that are measured.
    Checked by: tests/theorems/test_matrix_mechanism_optimum.py

    >>> from farthing.release.workloads import identity, prefix, product
    >>> strategy = optimised_product(
    ...     product(prefix(32), identity(4)), "l1", progress=lambda fraction: None, seconds=10.0
    ... )
    >>> [factor.matrix.shape for factor in strategy.factors]
    [(34, 32), (4, 4)]
    """
    axes = len(workload.shape)
    if not max(workload.shape) <= _MOST_CELLS:
        raise InvalidValue(
            "strategy", "optimised", f"must have at most {_MOST_CELLS:,} cells along each axis", 'use "tree"'
        )
    if not workload.cells <= _MOST_TOGETHER:
        rule = f"has too many cells to optimise: {_MOST_TOGETHER:,} at most"
        raise InvalidValue("strategy", "optimised", rule, 'use "marginals" for marginals, else "tree"')
    parts = products_in(workload)
    rounds = 1 if len(parts) == 1 else _ROUNDS
    bits = max(6, _BITS // axes)
    factors: list[MatrixStrategy] = []
    best: tuple[float, KroneckerStrategy] | None = None
    for turn in range(rounds):
        for axis in range(axes):
            asked = _asked_of(parts, factors, axis) if turn else axis_workload(workload, axis)
            found = _factor(asked, norm, bits, seconds / (rounds * axes))
            factors = [*factors[:axis], found, *factors[axis + 1 :]]
            progress((turn * axes + axis + 1) / (rounds * axes))
        strategy = KroneckerStrategy("optimised", factors)
        error = strategy.unit_error(workload, norm)
        if best is None or error < best[0]:
            best = error, strategy
    assert best is not None, "there is at least one round"
    return best[1]


def products_in(workload: Workload) -> list[tuple[float, tuple[Workload, ...]]]:
    """The products that a workload consists of, each with its squared weight and one workload for each axis.

    >>> from farthing.release.workloads import identity, marginals, prefix, product
    >>> [[one.queries for one in axes] for _, axes in products_in(marginals((2, 3), way=1))]
    [[2, 1], [1, 3]]
    """
    if len(workload.shape) == 1:
        return [(1.0, (workload,))]
    if isinstance(workload, Product):
        found: list[tuple[float, tuple[Workload, ...]]] = [(1.0, ())]
        for factor in workload.factors:
            own = products_in(factor)
            if not len(found) * len(own) <= _MOST_PRODUCTS:
                break
            found = [(w * v, left + right) for w, left in found for v, right in own]
        else:
            return found
    elif isinstance(workload, Union | Marginals):
        weights = workload.weights if isinstance(workload, Union) else (1.0,) * len(workload.parts)
        together = [
            (weight**2 * inner, axes)
            for weight, part in zip(weights, workload.parts, strict=True)
            for inner, axes in products_in(part)
        ]
        if len(together) <= _MOST_PRODUCTS:
            return together
    raise InvalidValue(
        "workload",
        type(workload).__name__,
        f"must consist of at most {_MOST_PRODUCTS:,} products of workloads of one axis",
        'use strategy="identity"',
    )


def _asked_of(
    parts: list[tuple[float, tuple[Workload, ...]]], factors: list[MatrixStrategy], axis: int
) -> Workload:
    """What is asked of one axis when the strategies of the others are fixed: same workloads are asked once."""
    weights: dict[str, float] = {}
    known: dict[str, Workload] = {}
    for weight, axes in parts:
        others = math.prod(
            _trace(factor, own)
            for place, (factor, own) in enumerate(zip(factors, axes, strict=True))
            if place != axis
        )
        own = axes[axis].renamed(("x",))
        known[own.digest] = own
        weights[own.digest] = weights.get(own.digest, 0.0) + weight * others
    if len(known) == 1:
        return next(iter(known.values()))
    largest = max(weights.values())
    # Rounded, so that the same axis comes out of the cache the next time.
    scales = [float(f"{math.sqrt(weights[digest] / largest):.3g}") for digest in known]
    return union(*known.values(), weights=[max(scale, 1e-6) for scale in scales])


def _trace(factor: MatrixStrategy, workload: Workload) -> float:
    """tr((A'A)^-1 W'W), up to the scale of A, which is the same for all workloads of the axis."""
    return float(np.sum(factor.pseudo_inverse * workload.gram()))


def _factor(workload: Workload, norm: Norm, bits: int, seconds: float) -> MatrixStrategy:
    """The optimised strategy of one axis as a matrix of coarser weights, so that products of them still fit."""
    from farthing.release.strategies.optimising.making import optimised

    found = optimised(workload, norm, seconds=seconds)
    if not isinstance(found, CellsAndSums | MatrixStrategy):
        return flattened(found, workload, norm, bits)
    weights = found.matrix.astype(float)
    whole = np.rint(weights * (2.0**bits / np.abs(weights).max())).astype(np.int64)
    places = np.arange(found.cells)
    # Both shapes have the cells' own weights on the diagonal of their first rows: none may be lost.
    whole[places, places] = np.maximum(1, whole[places, places])
    kept = whole[np.any(whole != 0, axis=1)]
    return MatrixStrategy("optimised", kept // np.gcd.reduce(np.unique(kept)))

"""The last look at buckets: counts of each, and of groups of neighbours where that helps the workload."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from farthing.mechanisms.randomness import Source
from farthing.release.data_dependent.buckets import Counted, counted, level_of, members, reduced_gram
from farthing.release.data_dependent.spending import Spending
from farthing.release.strategies.base import Floats, Integers
from farthing.release.strategies.division import best_shares, error
from farthing.release.workloads.base import Workload

Plan = list[tuple[Integers, Fraction]]

_GROUPS = (4, 6, 8, 12, 16, 24, 32)
_PARTS = (Fraction(1, 4), Fraction(2, 5), Fraction(11, 20), Fraction(7, 10))  # of the budget, for the groups
_FEW = 96  # buckets up to which plans are weighed exactly
_LEAST_SHARE = 0.02


def best_plan(
    workload: Workload, edges: Integers, before: Sequence[Counted], spending: Spending, part: Fraction
) -> Plan:
    """Which partitions to count, each with its part of the budget: the least expected error among some dozens.

    What was measured `before` is taken into account where buckets are few. Only public parameters and noisy counts
    are looked at.
    """
    gram = reduced_gram(workload, edges)
    if len(gram) > _FEW:
        return _tree_plan(gram, edges, spending, part)
    plans: list[Plan] = [[(edges, part)]]
    groups = [size for size in _GROUPS if 2 * size <= len(gram)]
    # Where rows lie close together most queries hold all of them, or none: then the total itself is worth a look.
    for size in sorted({*groups, -(-len(gram) // 2), len(gram)}):
        if size > 1:
            plans += [[(_grouped(edges, size), part * own), (edges, part * (1 - own))] for own in _PARTS]
    known = np.zeros_like(gram)
    for one in before:
        shared = np.intersect1d(one.edges, edges)
        # A group of buckets that were counted one by one is known by the sum of their counts.
        summed = members(shared, one.edges).sum(axis=1)
        rows = members(shared, edges) / np.sqrt(summed * one.variance)[:, None]
        known += rows.T @ rows
    errors = [_error(gram, known, plan, edges, spending) for plan in plans]
    return plans[int(np.argmin(errors))]


def measured(
    cells: Integers, plan: Plan, spending: Spending, source: Source, name: str = "buckets"
) -> list[Counted]:
    """The private step: every partition of the plan counted with its noise."""
    return [counted(cells, edges, spending.noise(level_of(edges, name), own), source) for edges, own in plan]


def _tree_plan(gram: Floats, edges: Integers, spending: Spending, part: Fraction) -> Plan:
    """Trees of one branching over the buckets, weighed as if all groups were full."""
    trees = [(size, 1) for size in _GROUPS] + [(size**2, size, 1) for size in _GROUPS]
    usable = [tree for tree in trees if 2 * tree[0] <= len(gram)]
    found = []
    for tree in usable:
        sizes = np.array(tree, dtype=float)
        details = np.maximum(np.diff([_energy(gram, size) for size in tree], prepend=0.0), 0.0)
        shares = best_shares(sizes[None], details[None], spending.norm)[0]
        found.append((float(error(sizes, details, shares, spending.norm)), tree, shares))
    _, tree, shares = min(found, key=lambda one: one[0])
    kept = [
        (size, Fraction(float(share)))
        for size, share in zip(tree, shares, strict=True)
        if share >= _LEAST_SHARE
    ]
    whole = sum(share for _, share in kept)
    return [(_grouped(edges, size), part * share / whole) for size, share in kept]


def _energy(gram: Floats, size: int) -> float:
    firsts = np.arange(0, len(gram), size)
    blocks = np.add.reduceat(np.add.reduceat(gram, firsts, axis=0), firsts, axis=1)
    return float(np.trace(blocks)) / size


def _grouped(edges: Integers, size: int) -> Integers:
    return np.append(edges[:-1:size], edges[-1])


def _error(gram: Floats, known: Floats, plan: Plan, edges: Integers, spending: Spending) -> float:
    precision = known.copy()
    for partition, own in plan:
        rows = members(partition, edges)
        precision += rows.T @ rows / spending.deviation(own) ** 2
    return float(np.sum(gram * np.linalg.inv(precision)))

"""Margins by single columns against whole tables, residual by residual."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from farthing.inference.consistent_marginals import closure, from_residuals, residual, summed
from farthing.matrix.strategies.marginals import plan_marginals
from farthing.statistics.marginals.single_margins import SingleMargins

SIZES = (2, 3, 1, 4)


@pytest.mark.parametrize("subset", [(0,), (0, 1), (1, 3), (0, 2, 3), (0, 1, 2, 3)])
def test_cells_and_sums_are_those_of_the_residuals_of_at_most_one_column(subset: tuple[int, ...]) -> None:
    draw = np.random.default_rng(1)
    joint = draw.normal(size=SIZES)
    everything = tuple(range(len(SIZES)))
    margins = SingleMargins(SIZES)
    numbers = np.concatenate([summed(joint, everything, (column,)) for column in everything])
    parts = {part: residual(summed(joint, everything, part)) for part in closure([subset]) if len(part) <= 1}
    slow = from_residuals(SIZES, parts, subset)
    assert np.allclose(margins.over_cells(subset, numbers[:, None])[:, 0], slow.reshape(-1))
    query = draw.normal(size=slow.shape)
    assert np.isclose(margins.of_sum(subset, query) @ numbers, np.sum(query * slow))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_covariance_is_that_of_the_fit(norm: str) -> None:
    plan = plan_marginals(SIZES, list(itertools.combinations(range(4), 2)), norm=norm)  # type: ignore[arg-type]
    fit = plan.fit(np.linspace(1.0, 3.0, len(plan.levels)))
    margins = SingleMargins(SIZES)
    matrix = margins.covariance(fit.residual_variances)
    draw = np.random.default_rng(2)
    for column, n in enumerate(SIZES):
        query = draw.normal(size=n)
        function = np.zeros(len(matrix))
        function[margins.place(column)] = query
        assert np.isclose(function @ matrix @ function, fit.variance((column,), query))
    both = draw.normal(size=(2, 3))  # of two columns together: the part that the margins have
    function = np.zeros(len(matrix))
    function[margins.place(0)], function[margins.place(1)] = both.sum(axis=1), both.sum(axis=0)
    table = both.sum(axis=1)[:, None] + both.sum(axis=0)[None, :]
    # A sum of the two margins is one sum over the table of both columns.
    assert np.isclose(function @ matrix @ function, fit.variance((0, 1), table))

"""nearest_in_answers: the dense solution at small sizes, and answers that are never further from the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from farthing.errors import InvalidValue
from farthing.matrix.workloads import (
    Workload,
    all_ranges,
    identity,
    marginals,
    prefix,
    product,
    ranges,
    total,
    union,
)
from farthing.matrix.workloads.nonnegative_histograms import gram_diagonal, nearest_in_answers


def some_ranges(draw: np.random.Generator, size: int, count: int) -> Workload:
    pairs = np.sort(draw.integers(0, size, (count, 2)), axis=1)
    return ranges(size, np.column_stack([pairs[:, 0], pairs[:, 1] + 1]))


def workload_of(name: str, draw: np.random.Generator) -> Workload:
    size = int(draw.integers(2, 11))
    makers = {
        "prefix": lambda: prefix(size),
        "all ranges": lambda: all_ranges(size),
        "cells": lambda: identity(size),
        "total": lambda: total(size),
        "ranges": lambda: some_ranges(draw, size, int(draw.integers(1, 12))),
        "union": lambda: union(prefix(size), some_ranges(draw, size, 3), identity(size), weights=(1.0, 2.0, 0.5)),
        "product": lambda: product(prefix(4), all_ranges(3)),
        "lines": lambda: product(identity(2), all_ranges(4), identity(2)),
        "marginals": lambda: marginals((3, 2, 2), way=2),
    }
    return makers[name]()


NAMES = ["prefix", "all ranges", "cells", "total", "ranges", "union", "product", "lines", "marginals"]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
@pytest.mark.parametrize("name", NAMES)
def test_settled_answers_are_the_dense_solution_and_never_further_away(name: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    workload = workload_of(name, draw)
    truth = draw.poisson(0.7, workload.cells).astype(float)
    estimate = truth + draw.normal(0, 3, workload.cells)
    found = nearest_in_answers(estimate, workload)
    weights = np.repeat(workload.weights, [p.queries for p in workload.parts]) if name == "union" else 1.0  # type: ignore[attr-defined]
    rows = workload.matrix() * np.reshape(weights, (-1, 1))
    before, after = (np.linalg.norm(rows @ (x - truth)) for x in (estimate, found))
    assert np.all(found >= 0)
    assert after <= before + 1e-6 * (1 + before)
    # Cells need not be unique, what is least is.
    twin, _ = nnls(rows, rows @ estimate, maxiter=3_000)
    least, reached = (np.linalg.norm(rows @ (x - estimate)) for x in (twin, found))
    exact = name in {"prefix", "all ranges", "cells", "total", "lines"}
    assert reached == pytest.approx(least, abs=(1e-9 if exact else 1e-5) * (1 + least))
    if name in {"prefix", "all ranges", "cells"}:
        assert found == pytest.approx(twin, abs=1e-9 * (1 + np.abs(estimate).sum()))


@pytest.mark.parametrize("name", NAMES)
def test_the_diagonal_counts_the_queries_of_each_cell(name: str) -> None:
    workload = workload_of(name, np.random.default_rng(1))
    assert gram_diagonal(workload) == pytest.approx(np.diag(workload.gram()), rel=1e-12)


def test_sparse_histograms_gain_most_where_plain_clipping_loses() -> None:
    draw = np.random.default_rng(2)
    size = 2_048
    truth = np.zeros(size)
    truth[draw.integers(0, size, 40)] = draw.integers(1, 50, 40)
    estimate = truth + draw.normal(0, 20, size)
    for workload in (prefix(size), all_ranges(size), some_ranges(draw, size, 2_000)):
        plain, clipped, better = (
            np.sqrt(np.mean(workload.answers(x - truth) ** 2))
            for x in (estimate, np.maximum(estimate, 0), nearest_in_answers(estimate, workload))
        )
        assert better < 0.8 * plain < 0.2 * clipped


def test_a_million_cells_are_settled_at_once() -> None:
    draw = np.random.default_rng(3)
    estimate = draw.normal(0.5, 5, 2**20)
    for workload in (prefix(2**20), all_ranges(2**20)):
        found = nearest_in_answers(estimate, workload)
        assert np.all(found >= 0)


def test_estimates_that_need_nothing_or_do_not_fit() -> None:
    assert nearest_in_answers([1.0, 0.0], prefix(2)).tolist() == [1.0, 0.0]
    for bad in ([1.0], [1.0, np.nan]):
        with pytest.raises(InvalidValue, match="2 finite numbers"):
            nearest_in_answers(bad, prefix(2))

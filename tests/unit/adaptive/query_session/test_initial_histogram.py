"""From noisy tables to weights: the basis beside its definition, shrinking, and settling."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farthing.adaptive.query_session import QuerySession, plan_query_session
from farthing.adaptive.query_session.initial_histogram import denoised_histogram, noisy_start, shrunk, starting_weights
from farthing.adaptive.query_session.initial_measurements import Opening
from farthing.adaptive.query_session.wavelets import Wavelets, _split
from farthing.adaptive.session_journal import MemoryJournal
from farthing.statistics.cells.cell_axes import Axis
from sources import TestSource


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 2, 3), (7, 1, 4), (300,), (3, 270)])
def test_the_basis_is_orthonormal_and_the_product_of_those_of_its_axes(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).normal(size=shape)
    basis = Wavelets(shape)
    found = basis.forward(table)
    slow = table
    for axis in range(len(shape)):
        slow = np.moveaxis(_split(np.moveaxis(slow, axis, -1)), -1, axis)
    assert np.allclose(found, slow)
    assert np.allclose(basis.back(found), table)
    assert math.isclose(float(np.sum(found**2)), float(np.sum(table**2)))
    kinds, sizes = basis.kinds
    assert kinds.size == table.size == sizes.sum()


def test_kinds_of_two_valued_columns_are_the_orders_of_interaction() -> None:
    _, sizes = Wavelets((2,) * 6).kinds
    assert sorted(sizes) == sorted(math.comb(6, order) for order in range(7))


def test_shrinking_beats_the_raw_numbers_with_and_without_signal() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=5000)
    for truth in (np.zeros(5000), np.where(rng.random(5000) < 0.02, 30.0, 0.0), rng.normal(size=5000)):
        error = np.mean((shrunk(truth + noise, np.ones(5000)) - truth) ** 2)
        assert error < 0.6 * np.mean(noise**2)


def test_settling_keeps_coarse_shapes_where_cutting_negatives_off_would_not() -> None:
    rng = np.random.default_rng(3)
    shape = (2,) * 12
    truth = np.zeros(shape)
    truth[1] = rng.poisson(2.0, size=shape[1:])  # one half is full, the other empty
    noisy = truth + rng.laplace(scale=2.0, size=shape)
    basis = Wavelets(shape)
    found = denoised_histogram(basis.forward(noisy), np.full(shape, 8.0), basis)
    cut = np.maximum(noisy, 0)
    assert found.min() >= 0
    assert abs(found[1].sum() - truth[1].sum()) < 0.1 * abs(cut.sum() - truth.sum())


@pytest.mark.parametrize("shape", [(2,) * 8, (16, 16)])
def test_weights_are_positive_and_near_the_rows(shape: tuple[int, ...]) -> None:
    axes = [Axis(f"c{i}", range(size)) for i, size in enumerate(shape)]
    plan = plan_query_session(axes, 1.0, 1e-9, 0.05, 1000, 20_000)
    counts = np.zeros(shape, dtype=np.int64)
    counts.flat[::3] = 230
    weights, least, most = starting_weights(plan, axes, noisy_start(plan, counts, TestSource(5)))
    assert weights.min() > 0 and least <= weights.sum() <= most * (1 + 1e-6)
    assert least < counts.sum() < most
    assert abs(weights[0].sum() - counts[0].sum()) < 500


@pytest.mark.slow
def test_the_start_draws_the_noise_that_it_pays_for() -> None:
    """A tenth more or less noise on 16,384 cells is told apart; false alarm below 1e-6."""
    shape = (2,) * 14
    axes = [Axis(f"c{i}", range(2)) for i in range(14)]
    plan = plan_query_session(axes, 1.0, 1e-9, 0.05, 1000, 20_000)
    opening = plan.opening
    assert opening is not None
    noisy = opening.of_cells(1, plan.cells)._answer(np.zeros(plan.cells, dtype=np.int64), TestSource(7))
    expected = float(np.mean(np.abs(noisy))) * np.array([1.0, 0.9, 1.1])
    rate = math.exp(-opening.cell_epsilon)
    mean, variance = 2 * rate / (1 - rate**2), opening.of_cells(1, plan.cells).variance
    distances = np.abs(expected - mean) / math.sqrt((variance - mean**2) / plan.cells)
    assert distances[0] < 4.9 < min(distances[1:])
    record = noisy_start(plan, np.zeros(shape, dtype=np.int64), TestSource(7))
    assert set(record) == {"start", "tables", "cells"}


def test_tables_move_by_no_more_than_their_noise_is_made_for() -> None:
    for shape, delta in (((2,) * 16, 1e-9), ((2,) * 16, 0.0), ((16, 9, 7, 6), 1e-9), ((256, 256), 1e-9)):
        opening = Opening.chosen(shape, 0.75, delta, 3)
        mechanism = opening.of_tables(3, delta)
        moved = [3.0] * opening.tables  # one person adds three rows to one cell, and so to a cell of each table
        norm = getattr(mechanism, "l2_sensitivity", None)
        if norm is None:
            assert mechanism.l1_sensitivity >= sum(moved)  # type: ignore[union-attr]
        else:
            assert norm >= math.sqrt(sum(move**2 for move in moved))


@pytest.mark.slow
def test_a_large_domain_works() -> None:
    shape = (2,) * 18
    axes = [Axis(f"c{i}", range(2)) for i in range(18)]
    counts = np.random.default_rng(1).multinomial(100_000, np.full(2**18, 2.0**-18)).reshape(shape)
    plan = plan_query_session(axes, 1.0, 1e-9, 0.02, 1000, 100_000)
    session = QuerySession._with_source(plan, axes, lambda: counts, MemoryJournal(), TestSource(1))
    assert abs(session.ask("c3 = 1 and c7 = 0").value - 25_000) < 1000

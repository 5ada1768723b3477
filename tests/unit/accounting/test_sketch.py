"""The sketch stands for its epsilons in every sum that the transform takes, and sketches add."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.accounting.sketch import Sketch

MANY = np.random.default_rng(6).uniform(0.001, 0.9, 30_000)  # several dense octaves and some sparse ones
FUNCTIONS = {
    "log cosh": lambda e: np.log(np.cosh(0.5 * e)),
    "tanh": lambda e: e * np.tanh(0.7 * e),
    "square": lambda e: e * e,
    "count": np.ones_like,
    "complex": lambda e: np.log(np.cosh((0.8 + 0.7j) * e)),
}


def sketch_of(values: np.ndarray, counts: np.ndarray | None = None) -> Sketch:
    counts = np.ones(len(values), dtype=np.int64) if counts is None else counts
    return Sketch().plus(values, counts)


def total(sketch: Sketch, name: str) -> complex:
    nodes, weights = sketch.nodes()
    return complex(np.sum(weights * FUNCTIONS[name](nodes)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_over_the_nodes_are_sums_over_the_epsilons(name: str) -> None:
    exact = complex(np.sum(FUNCTIONS[name](MANY)))
    assert abs(total(sketch_of(MANY), name) - exact) <= 1e-13 * abs(exact)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_counts_weigh_as_repetitions_do(name: str) -> None:
    counts = np.random.default_rng(6).integers(1, 9, len(MANY))
    repeated, weighted = sketch_of(np.repeat(MANY, counts)), sketch_of(MANY, counts)
    assert abs(total(repeated, name) - total(weighted, name)) <= 1e-12 * abs(total(weighted, name))


def test_many_epsilons_become_few_nodes() -> None:
    assert len(sketch_of(MANY).nodes()[0]) < 4000
    assert len(sketch_of(np.random.default_rng(6).uniform(0.25, 0.5, 200_000)).nodes()[0]) == 20


def test_few_epsilons_are_kept_as_they_are() -> None:
    few = MANY[:100]
    nodes, weights = sketch_of(few).nodes()
    assert sorted(nodes.tolist()) == sorted(few.tolist()) and set(weights.tolist()) == {1.0}
    assert sketch_of(few).dense_octaves() == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sketches_add_in_any_order_and_any_parts(name: str) -> None:
    whole = total(sketch_of(MANY), name)
    parts = [sketch_of(part) for part in np.array_split(MANY, [10, 1500, 9000, 9001, 20_000])]
    forward, backward = Sketch(), Sketch()
    for part in parts:
        forward = forward.merge(part)
    for part in reversed(parts):
        backward = part.merge(backward)
    assert abs(total(forward, name) - whole) <= 1e-12 * abs(whole)
    assert abs(total(backward, name) - whole) <= 1e-12 * abs(whole)


def test_drops_make_an_octave_dense_at_last() -> None:
    sketch = Sketch()
    values = np.random.default_rng(6).uniform(0.5, 1.0, 5000)
    for part in np.array_split(values, 50):
        sketch = sketch.plus(part, np.ones(len(part), dtype=np.int64))
    assert sketch.dense_octaves() == [(1.0, pytest.approx(5000))]
    assert len(sketch.nodes()[0]) < 2500


def test_adding_leaves_the_older_sketch_as_it_was() -> None:
    old = sketch_of(MANY)
    before = total(old, "log cosh")
    old.plus(MANY[:5000], np.ones(5000, dtype=np.int64))
    old.merge(old)
    assert total(old, "log cosh") == before


def test_a_sketch_of_nothing_has_no_nodes() -> None:
    nodes, weights = Sketch().merge(Sketch()).nodes()
    assert len(nodes) == len(weights) == 0

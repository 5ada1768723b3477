"""Junction trees: every measured set in one clique, and the cliques of a column hang together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidValue
from farthing.inference.graphical import model_cells
from farthing.inference.graphical.junction_tree import junction_tree

sets_of_columns = st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=3), max_size=10)


@pytest.mark.slow
@given(st.lists(st.integers(1, 9), min_size=8, max_size=8), sets_of_columns)
def test_cliques_cover_the_sets_and_share_only_with_their_parents(sizes: list[int], subsets: list[set[int]]) -> None:
    tree = junction_tree(sizes, subsets)
    assert all(tree.smallest_clique(subset) is not None for subset in subsets)
    seen: set[int] = set()
    for place, clique in enumerate(tree.cliques):
        assert clique.parent < place
        # Whatever a clique has in common with all cliques before it, it has in common with its parent.
        assert seen.intersection(clique.columns) == set(clique.separator)
        if clique.separator:
            assert set(clique.separator) <= set(tree.cliques[clique.parent].columns)
        seen.update(clique.columns)
    assert seen == set(range(8))
    assert model_cells(sizes, subsets) == sum(math.prod(sizes[c] for c in q.columns) for q in tree.cliques)


def test_a_circle_is_cut_where_it_costs_least() -> None:
    circle = [(0, 1), (1, 2), (2, 3), (0, 3)]
    assert model_cells((100, 2, 100, 3), circle) == 2 * 2 * 3 * 100  # 1 and 3 are joined, not 0 and 2
    assert model_cells((2, 100, 3, 100), circle) == 2 * 2 * 3 * 100


def test_a_tree_of_pairs_needs_no_more_than_its_pairs() -> None:
    sizes = (10,) * 60
    pairs = [(column // 2, column) for column in range(1, 60)]
    assert model_cells(sizes, pairs) == 59 * 100


@pytest.mark.parametrize(("sizes", "subset"), [((2, 0), (0,)), ((2, 2), (2,)), ((2, 2), (-1,))])
def test_columns_that_are_none_are_refused(sizes: tuple[int, ...], subset: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue):
        junction_tree(sizes, [subset])

"""Which columns have to stand in one table so that sums over all others can be done table by table.

The columns of a measured set are joined pairwise. Edges are added until every circle of four or more columns has a
chord; the largest sets of mutually joined columns (the cliques) then form a tree in which the cliques that hold any one
column hang together. The cells of the cliques are the whole memory of the model, whatever the cells of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import Subset


@dataclass(frozen=True)
class Clique:
    """One table of the tree: its separator (what it shares with its parent) first, the rest after."""

    separator: Subset
    residual: Subset
    parent: int  # -1 for the root

    @property
    def columns(self) -> Subset:
        """The columns in the order of the table's axes."""
        return self.separator + self.residual


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, every parent before its children.

    >>> tree = junction_tree((2, 3, 4, 5), [(0, 1), (1, 2), (0, 2), (2, 3)])
    >>> [(clique.columns, clique.parent) for clique in tree.cliques], tree.cells
    ([((2, 3), -1), ((2, 0, 1), 0)], 44)
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]

    @property
    def cells(self) -> int:
        """The number of cells of all cliques together."""
        return sum(math.prod(self.shape(place)) for place in range(len(self.cliques)))

    def smallest_clique(self, subset: Iterable[int]) -> int | None:
        """The smallest clique with all these columns, if there is one."""
        wanted = set(subset)
        fits = [place for place, clique in enumerate(self.cliques) if wanted <= set(clique.columns)]
        return min(fits, key=lambda place: (math.prod(self.shape(place)), place), default=None)

    def shape(self, place: int) -> tuple[int, ...]:
        """The lengths of a clique's axes."""
        return tuple(self.sizes[column] for column in self.cliques[place].columns)


def model_cells(sizes: Sequence[int], subsets: Iterable[Iterable[int]]) -> int:
    """The number of cells that a model of these measured sets keeps: a measure of its memory and of its time.

    Args:
        sizes: How many values each column has.
        subsets: Sets of columns that are measured together.

    Returns:
        The number of cells.

    >>> model_cells((2, 3, 4, 5), [(0, 1), (1, 2), (2, 3)]), model_cells((2, 3, 4, 5), [(0, 1, 2, 3)])
    (38, 120)
    """
    return junction_tree(sizes, subsets).cells


def junction_tree(sizes: Sequence[int], subsets: Iterable[Iterable[int]]) -> JunctionTree:
    """The tree of cliques for these measured sets; columns that no set holds are cliques of their own."""
    lengths = tuple(int(size) for size in sizes)
    if not all(size >= 1 for size in lengths):
        raise InvalidValue("sizes", lengths, "must be whole numbers >= 1, one for each column")
    wanted = frozenset(tuple(sorted(set(subset))) for subset in subsets)
    for subset in wanted:
        if subset and not (subset[0] >= 0 and subset[-1] < len(lengths)):
            raise InvalidValue("subset", subset, f"must be numbers of columns, from 0 to {len(lengths) - 1}")
    return _junction_tree(lengths, wanted)


@lru_cache(maxsize=4096)
def _junction_tree(sizes: tuple[int, ...], subsets: frozenset[Subset]) -> JunctionTree:
    joined: dict[int, frozenset[int]] = {column: frozenset() for column in range(len(sizes))}
    for subset in subsets:
        for column in subset:
            joined[column] |= frozenset(subset) - {column}
    # Neither rule for the next column to eliminate is always better, so both are tried.
    trees = (_rooted(sizes, _cliques(sizes, joined, by_fill)) for by_fill in (True, False))
    return min(trees, key=lambda tree: tree.cells)


def _cliques(sizes: tuple[int, ...], joined: dict[int, frozenset[int]], by_fill: bool) -> list[frozenset[int]]:
    """Columns are eliminated one by one, their neighbours joined; the largest sets met on the way are the cliques."""
    graph = {column: set(neighbours) for column, neighbours in joined.items()}
    cliques: list[frozenset[int]] = []

    def cells(column: int) -> int:
        return sizes[column] * math.prod(sizes[other] for other in graph[column])

    def fill(column: int) -> int:
        return sum(
            sizes[one] * sizes[two] for one, two in combinations(sorted(graph[column]), 2) if two not in graph[one]
        )

    while graph:
        rule = (lambda c: (fill(c), cells(c), c)) if by_fill else (lambda c: (cells(c), fill(c), c))
        column = min(graph, key=rule)
        neighbours = graph.pop(column)
        clique = frozenset(neighbours | {column})
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        for other in neighbours:
            graph[other] |= neighbours - {other}
            graph[other] -= {column}
    return cliques


def _rooted(sizes: tuple[int, ...], cliques: list[frozenset[int]]) -> JunctionTree:
    """A spanning tree of greatest shared columns, grown from the clique that shares with most others."""
    if not cliques:
        return JunctionTree(sizes, ())
    root = max(range(len(cliques)), key=lambda i: (sum(bool(cliques[i] & c) for c in cliques), -i))
    placed = [Clique((), tuple(sorted(cliques[root])), -1)]
    # The nearest clique that is already in the tree: (columns shared, minus its depth, its place).
    depth = [0]
    nearest = {i: (len(c & cliques[root]), 0, 0) for i, c in enumerate(cliques) if i != root}
    while nearest:
        new = max(nearest, key=lambda i: (nearest[i], -i))
        _, _, parent = nearest.pop(new)
        shared = cliques[new] & set(placed[parent].columns)
        placed.append(Clique(tuple(sorted(shared)), tuple(sorted(cliques[new] - shared)), parent))
        depth.append(depth[parent] + 1)
        for other, best in nearest.items():
            nearest[other] = max(best, (len(cliques[other] & cliques[new]), -depth[-1], len(placed) - 1))
    return JunctionTree(sizes, tuple(placed))

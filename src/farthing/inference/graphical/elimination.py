"""Sums of products of tables, one column at a time, and the tables of any columns of a calibrated tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.graphical.propagation import Calibrated, onto, placed
from farthing.inference.marginals import Subset
from farthing.inference.terms import Floats

_MOST_CELLS = 2**27  # one gibibyte
_REMEMBERED_CELLS = 2**24
Factor = tuple[Subset, Floats]


def summed_product(factors: Sequence[Factor], wanted: Subset) -> Floats:
    """The product of all factors, summed over every column that is not wanted.

    >>> chain = [((0, 1), np.array([[1.0, 2.0], [3.0, 4.0]])), ((1, 2), np.array([[1.0, 0.0], [1.0, 1.0]]))]
    >>> summed_product(chain, (2, 0))
    array([[3., 7.],
           [2., 4.]])
    """
    keep = set(wanted)
    left = [
        _without(factor, {c for c in factor[0] if _holders(factors, c) == 1} - keep) for factor in factors
    ]
    lengths = {c: n for columns, table in left for c, n in zip(columns, table.shape, strict=True)}

    def cells_without(column: int) -> int:
        touched = {c for columns, _ in left if column in columns for c in columns}
        return math.prod(lengths[c] for c in touched)

    while True:
        away = {c for columns, _ in left for c in columns} - keep
        if not away and len(left) == 1:
            break
        column = min(away, key=lambda c: (cells_without(c), c)) if away else None
        touched = [factor for factor in left if column is None or column in factor[0]]
        one, two = sorted(touched, key=lambda factor: factor[1].size)[:2]
        left = [factor for factor in left if factor is not one and factor is not two]
        done = {c for c in (*one[0], *two[0]) if c not in keep and not _holders(left, c)}
        left.append(_product(one, two, done))
    columns, table = left[0]
    return onto(table, columns, wanted)


def _holders(factors: Sequence[Factor], column: int) -> int:
    return sum(column in columns for columns, _ in factors)


def _without(factor: Factor, away: set[int]) -> Factor:
    if not away:
        return factor
    kept = tuple(column for column in factor[0] if column not in away)
    return kept, onto(factor[1], factor[0], kept)


def _product(one: Factor, two: Factor, away: set[int]) -> Factor:
    """Two tables multiplied and summed over the columns `away`, all of which both have: one matrix product."""
    shared = [column for column in one[0] if column in two[0]]
    batch = tuple(column for column in shared if column not in away)
    summed = tuple(column for column in shared if column in away)
    left = tuple(column for column in one[0] if column not in shared)
    right = tuple(column for column in two[0] if column not in shared)
    lengths = dict(zip((*one[0], *two[0]), (*one[1].shape, *two[1].shape), strict=True))

    def size(columns: Subset) -> int:
        return math.prod(lengths[column] for column in columns)

    columns = (*batch, *left, *right)
    if size(columns) > _MOST_CELLS:
        raise InvalidValue(
            "subset",
            f"{size(columns):.3g} cells on the way",
            f"must need at most {_MOST_CELLS:.3g}",
            "ask for fewer columns",
        )
    first = onto(one[1], one[0], (*batch, *left, *summed)).reshape(size(batch), size(left), size(summed))
    second = onto(two[1], two[0], (*batch, *summed, *right)).reshape(size(batch), size(summed), size(right))
    product = first @ second if summed else first * second
    return columns, product.reshape([lengths[column] for column in columns])


class Marginals:
    """Tables of any columns of a calibrated tree. What several tables have in common is worked out once."""

    def __init__(self, tree: JunctionTree, law: Calibrated) -> None:
        self._tree, self._law = tree, law
        self._children: list[list[int]] = [[] for _ in tree.cliques]
        self._below: list[frozenset[int]] = [frozenset(clique.residual) for clique in tree.cliques]
        for place in range(len(tree.cliques) - 1, 0, -1):
            parent = tree.cliques[place].parent
            self._children[parent].insert(0, place)
            self._below[parent] |= self._below[place]
        self._given: dict[tuple[int, frozenset[int]], Factor] = {}
        self._parts: dict[tuple[int, frozenset[int]], Factor] = {}
        self._remembered = 0

    def table(self, subset: Subset) -> Floats:
        """The probabilities of all combinations of values of these columns, axes in the order of `subset`."""
        if not self._tree.cliques:
            return np.ones(())
        wanted = frozenset(subset)
        top = self._top(wanted)
        branches = [
            self._law_given(child, wanted & self._below[child]) for child in self._touched(top, wanted)
        ]
        needed = wanted.union(*(self._tree.cliques[c].separator for c in self._touched(top, wanted)))
        columns = self._tree.cliques[top].columns
        part = self._part(top, needed.intersection(columns))
        return summed_product([part, *branches], subset)

    def expectation(self, factors: Mapping[int, Floats]) -> float:
        """The mean of a product of functions of single columns."""
        if not factors:
            return 1.0
        wanted = frozenset(factors)
        top = self._top(wanted)
        return float(self._weighted(top, self._law.marginals[top], wanted, factors).sum())

    def _weighted(
        self, place: int, table: Floats, wanted: frozenset[int], factors: Mapping[int, Floats]
    ) -> Floats:
        """A clique's table, with the factors of its own columns and the means of those below multiplied in."""
        clique = self._tree.cliques[place]
        own = clique.columns if table is self._law.marginals[place] else clique.residual
        for column in wanted.intersection(own):
            table = table * placed(factors[column], (column,), clique.columns)
        for child in self._touched(place, wanted):
            below = self._tree.cliques[child]
            inner = self._weighted(child, self._law.conditionals[child], wanted & self._below[child], factors)
            message = inner.sum(axis=tuple(range(len(below.separator), inner.ndim)))
            table = table * placed(message, below.separator, clique.columns)
        return table

    def _top(self, wanted: frozenset[int]) -> int:
        """The deepest clique that has all wanted columns in itself or below."""
        place = 0
        while True:
            deeper = [
                child
                for child in self._children[place]
                if wanted <= self._below[child].union(self._tree.cliques[child].separator)
            ]
            if not deeper:
                return place
            place = deeper[0]

    def _touched(self, place: int, wanted: frozenset[int]) -> list[int]:
        return [child for child in self._children[place] if wanted & self._below[child]]

    def _law_given(self, place: int, wanted: frozenset[int]) -> Factor:
        """The law of the wanted columns, all below the separator of this clique, given that separator."""
        known = self._given.get((place, wanted))
        if known is not None:
            return known
        clique = self._tree.cliques[place]
        branches = [
            self._law_given(child, wanted & self._below[child]) for child in self._touched(place, wanted)
        ]
        columns = (*clique.separator, *sorted(wanted))
        own: Factor = (clique.columns, self._law.conditionals[place])
        found = columns, summed_product([own, *branches], columns)
        if self._room_for(found):
            self._given[place, wanted] = found
        return found

    def _part(self, place: int, needed: frozenset[int]) -> Factor:
        """A clique's table, summed to the columns that are needed."""
        known = self._parts.get((place, needed))
        if known is None:
            columns = self._tree.cliques[place].columns
            kept = tuple(column for column in columns if column in needed)
            known = kept, onto(self._law.marginals[place], columns, kept)
            if len(kept) < len(columns) and self._room_for(known):
                self._parts[place, needed] = known
        return known

    def _room_for(self, factor: Factor) -> bool:
        self._remembered += factor[1].size
        return self._remembered <= _REMEMBERED_CELLS

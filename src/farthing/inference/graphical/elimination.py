"""Sums of products of tables, one column at a time, and the tables of any columns of a calibrated tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import Subset
from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.noise_terms import Floats


@dataclass(frozen=True)
class Calibrated:
    """The distributions of all cliques, as tables over the clique's columns in its own order."""

    conditionals: tuple[Floats, ...]  # residual given separator
    marginals: tuple[Floats, ...]
    log_partition: float


def calibrated(tree: JunctionTree, potentials: list[Floats]) -> Calibrated:
    """The distribution that is proportional to exp(the sum of all potentials). The potentials are overwritten.

    >>> from farthing.inference.graphical.junction_tree import junction_tree
    >>> tree = junction_tree((2, 2, 2), [(0, 1), (1, 2)])
    >>> model = calibrated(tree, [np.log([[1.0, 2.0], [3.0, 4.0]]), np.log([[1.0, 3.0], [2.0, 2.0]])])
    >>> model.marginals[1], round(float(np.exp(model.log_partition)), 9)
    (array([[0.1, 0.3],
           [0.3, 0.3]]), 40.0)
    """
    above = list(potentials)
    conditionals: list[Floats] = [np.empty(0)] * len(above)
    log_partition = 0.0
    for place in range(len(above) - 1, -1, -1):
        clique = tree.cliques[place]
        lengths = tree.shape(place)
        shared = lengths[: len(clique.separator)]
        table = above[place].reshape(math.prod(shared), -1)
        top = table.max(axis=1, keepdims=True)
        table -= top
        np.exp(table, out=table)
        whole = table.sum(axis=1, keepdims=True)
        table /= whole
        conditionals[place] = table.reshape(lengths)
        message = (top + np.log(whole)).reshape(shared)
        if clique.parent < 0 or not clique.separator:
            log_partition += float(message)
        else:
            columns = tree.cliques[clique.parent].columns
            above[clique.parent] += placed(message, clique.separator, columns)
    marginals: list[Floats] = []
    for place, clique in enumerate(tree.cliques):
        distribution = conditionals[place]
        if clique.separator:
            shared_distribution = onto(marginals[clique.parent], tree.cliques[clique.parent].columns, clique.separator)
            distribution = distribution * shared_distribution.reshape(
                shared_distribution.shape + (1,) * len(clique.residual)
            )
        marginals.append(distribution)
    return Calibrated(tuple(conditionals), tuple(marginals), log_partition)


def lowest_sum(tree: JunctionTree, potentials: list[Floats]) -> float:
    """The least sum of all potentials over all combinations of values of all columns."""
    above = list(potentials)
    least = 0.0
    for place in range(len(above) - 1, -1, -1):
        clique = tree.cliques[place]
        shared = tree.shape(place)[: len(clique.separator)]
        message = above[place].reshape(math.prod(shared), -1).min(axis=1).reshape(shared)
        if clique.separator:
            columns = tree.cliques[clique.parent].columns
            above[clique.parent] = above[clique.parent] + placed(message, clique.separator, columns)
        else:
            least += float(message)
    return least


def placed(table: Floats, columns: Subset, among: Subset) -> Floats:
    """A table over `columns` as one that can be added to or multiplied with a table over `among`."""
    order = sorted(range(len(columns)), key=lambda axis: among.index(columns[axis]))
    lengths = dict(zip(columns, table.shape, strict=True))
    return table.transpose(order).reshape([lengths.get(column, 1) for column in among])


def onto(table: Floats, columns: Subset, wanted: Subset) -> Floats:
    """A table over `columns` summed to one over `wanted`, its axes in that order."""
    away = tuple(axis for axis, column in enumerate(columns) if column not in wanted)
    remaining = [column for column in columns if column in wanted]
    summed = table.sum(axis=away) if away else table
    return np.asarray(summed.transpose([remaining.index(column) for column in wanted]))


_MOST_CELLS = 2**27  # one gibibyte
_REMEMBERED_CELLS = 2**24
_TINY = 1e-290
Factor = tuple[Subset, Floats]


def summed_product(factors: Sequence[Factor], wanted: Subset) -> Floats:
    """The product of all factors, summed over every column that is not wanted.

    >>> chain = [((0, 1), np.array([[1.0, 2.0], [3.0, 4.0]])), ((1, 2), np.array([[1.0, 0.0], [1.0, 1.0]]))]
    >>> summed_product(chain, (2, 0))
    array([[3., 7.],
           [2., 4.]])
    """
    keep = set(wanted)
    left = [_without(factor, {c for c in factor[0] if _holders(factors, c) == 1} - keep) for factor in factors]
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
    remaining = tuple(column for column in factor[0] if column not in away)
    return remaining, onto(factor[1], factor[0], remaining)


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
    """Tables of any columns of a calibrated tree. What several tables have in common is worked out once.

    For a set of columns some clique is taken as the centre; the columns that it lacks lie in branches behind its
    neighbours, each known by its distribution given the columns that the neighbour shares with the centre.
    """

    def __init__(self, tree: JunctionTree, distribution: Calibrated) -> None:
        self._tree, self._distribution = tree, distribution
        self._neighbours: list[list[int]] = [[] for _ in tree.cliques]
        for place, clique in enumerate(tree.cliques[1:], 1):
            self._neighbours[place].append(clique.parent)
            self._neighbours[clique.parent].append(place)
        self._costs: dict[tuple[int, int | None, frozenset[int]], int] = {}
        self._behind: dict[tuple[int, int], frozenset[int]] = {}
        self._given: dict[tuple[int, int, frozenset[int]], Factor] = {}
        self._parts: dict[tuple[int, frozenset[int]], Factor] = {}
        self._remembered = 0

    def table(self, subset: Subset) -> Floats:
        """The probabilities of all combinations of values of these columns, axes in the order of `subset`."""
        if not self._tree.cliques:
            return np.ones(())
        wanted = frozenset(subset)
        centre = self._centre(wanted)
        branches = self._branches(centre, None, wanted)
        needed = wanted.intersection(self._tree.cliques[centre].columns)
        needed = needed.union(*(self._shared(centre, place) for place in branches))
        factors = [self._distribution_given(centre, place, columns) for place, columns in branches.items()]
        return summed_product([self._part(centre, needed), *factors], subset)

    def expectation(self, factors: Mapping[int, Floats]) -> float:
        """The mean of a product of functions of single columns."""
        if not factors:
            return 1.0
        centre = self._centre(frozenset(factors))
        return float(self._weighted(None, centre, frozenset(factors), factors).sum())

    def _weighted(
        self, origin: int | None, place: int, wanted: frozenset[int], factors: Mapping[int, Floats]
    ) -> Floats:
        """A clique given what it shares with its origin, times all factors of it and of what is behind it."""
        columns = self._tree.cliques[place].columns
        shared = () if origin is None else self._shared(origin, place)
        table = self._conditional(place, shared)
        for column in wanted.intersection(columns).difference(shared):
            table = table * placed(factors[column], (column,), columns)
        for behind, beyond in self._branches(place, origin, wanted).items():
            handed = self._shared(place, behind)
            inner = self._weighted(place, behind, beyond, factors)
            message = onto(inner, self._tree.cliques[behind].columns, handed)
            table = table * placed(message, handed, columns)
        return table

    def _centre(self, wanted: frozenset[int]) -> int:
        """A clique from which there are few cells on the way: the best that holds a wanted column, or one beside it."""
        homes = {self._tree.smallest_clique({column}) or 0 for column in wanted} or {0}
        cost = {place: self._cells_from(place, None, wanted) for place in homes}
        while True:
            best = min(cost, key=lambda place: (cost[place], place))
            beside = [place for place in self._branches(best, None, wanted) if place not in cost]
            cost |= {place: self._cells_from(place, None, wanted) for place in beside}
            if all(cost[place] >= cost[best] for place in beside):
                return best

    def _cells_from(self, place: int, origin: int | None, wanted: frozenset[int]) -> int:
        """The cells of the tables on the way from a clique, and from those behind it, to the wanted columns."""
        known = self._costs.get((place, origin, wanted))
        if known is None:
            branches = self._branches(place, origin, wanted)
            needed = wanted.union(*(self._shared(place, behind) for behind in branches))
            if origin is not None:
                needed = needed.union(self._shared(origin, place))
            known = math.prod(self._tree.sizes[column] for column in needed)
            known += sum(self._cells_from(behind, place, columns) for behind, columns in branches.items())
            self._costs[place, origin, wanted] = known
        return known

    def _shared(self, one: int, two: int) -> Subset:
        """The columns that two neighbours share."""
        return self._tree.cliques[two if self._tree.cliques[two].parent == one else one].separator

    def _branches(self, place: int, origin: int | None, wanted: frozenset[int]) -> dict[int, frozenset[int]]:
        """The neighbours (but the origin) with wanted columns that the clique lacks, and those columns."""
        missing = wanted.difference(self._tree.cliques[place].columns)
        if not missing:
            return {}
        behind = {p: missing & self._columns_behind(place, p) for p in self._neighbours[place] if p != origin}
        return {place: columns for place, columns in behind.items() if columns}

    def _columns_behind(self, origin: int, place: int) -> frozenset[int]:
        """All columns of a neighbour and of what lies behind it."""
        known = self._behind.get((origin, place))
        if known is None:
            known = frozenset(self._tree.cliques[place].columns).union(
                *(self._columns_behind(place, p) for p in self._neighbours[place] if p != origin)
            )
            self._behind[origin, place] = known
        return known

    def _distribution_given(self, origin: int, place: int, wanted: frozenset[int]) -> Factor:
        """The distribution of wanted columns in and behind `place`, given what it shares with its origin."""
        known = self._given.get((origin, place, wanted))
        if known is not None:
            return known
        shared = self._shared(origin, place)
        branches = self._branches(place, origin, wanted)
        factors = [self._distribution_given(place, behind, columns) for behind, columns in branches.items()]
        own: Factor = (self._tree.cliques[place].columns, self._conditional(place, shared))
        columns = (*shared, *sorted(wanted))
        conditional = columns, summed_product([own, *factors], columns)
        if self._room_for(conditional):
            self._given[origin, place, wanted] = conditional
        return conditional

    def _conditional(self, place: int, given: Subset) -> Floats:
        clique, distribution = self._tree.cliques[place], self._distribution
        if not given or given == clique.separator:
            return distribution.conditionals[place] if given else distribution.marginals[place]
        whole = onto(distribution.marginals[place], clique.columns, given)
        # What has no probability has no distribution either; zero is as good as any.
        inverse = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > _TINY)
        return distribution.marginals[place] * placed(inverse, given, clique.columns)

    def _part(self, place: int, needed: frozenset[int]) -> Factor:
        """A clique's table, summed to the columns that are needed."""
        known = self._parts.get((place, needed))
        if known is None:
            columns = self._tree.cliques[place].columns
            remaining = tuple(column for column in columns if column in needed)
            known = remaining, onto(self._distribution.marginals[place], columns, remaining)
            if len(remaining) < len(columns) and self._room_for(known):
                self._parts[place, needed] = known
        return known

    def _room_for(self, factor: Factor) -> bool:
        self._remembered += factor[1].size
        return self._remembered <= _REMEMBERED_CELLS

"""The best linear estimate from measurements that count the same rows in different ways.

Several vectors of numbers were measured, each number with independent noise, or were estimated from a strategy with a
known covariance. Certain sums of one vector equal certain sums of another, whatever the data: a total and its parts,
two tables and their common margin. Least squares under these relations is the best linear unbiased estimate, for every
sum at once, and estimates agree with each other. Only the relations enter into a dense system: vectors may be long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference.noise_terms import Floats

Places = NDArray[np.int64]

_SMALL = 2**17  # multiplications, half of what OpenBLAS does without threads
_LARGE = 64  # rows: from about 100 on it inverts with threads
_DEPENDENT = 1e-9  # of a relation's own square: what is left of it beside the others


@dataclass(frozen=True, eq=False)
class Link:
    """Sums that two vectors have in common.

    Args:
        vectors: Which two vectors, by their numbers.
        labels: For each of the two, the sum that every number of it belongs to, or -1.
        sums: How many sums there are.
    """

    vectors: tuple[int, int]
    labels: tuple[Places, Places]
    sums: int


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of a vector at noise of variance 1: equal blocks, one for each group, then numbers of their own.

    Args:
        block: The covariance of one group times each row of a matrix.
        length: How many numbers a group has.
        groups: How many groups there are, with noises of their own.
        rest: The variances of the numbers after the groups, which are independent.
        typical: The mean variance of one number of a group.
    """

    block: Callable[[Floats], Floats]
    length: int
    groups: int
    rest: Floats
    typical: float

    def times(self, functions: Floats) -> Floats:
        """Linear functions of the vector, one in each row, times the covariance.

        >>> both = Covariance(lambda rows: rows @ np.array([[2.0, 1.0], [1.0, 2.0]]), 2, 1, np.array([5.0]), 2.0)
        >>> both.times(np.array([[1.0, 0.0, 1.0]]))
        array([[2., 1., 5.]])
        """
        inside = self.groups * self.length
        blocks = self.block(functions[:, :inside].reshape(-1, self.length)).reshape(len(functions), inside)
        return np.concatenate([blocks, functions[:, inside:] * self.rest], axis=1)


@dataclass(frozen=True, eq=False)
class LinkedCounts:
    """Vectors of measured numbers and the sums that they have in common.

    Args:
        sizes: How long each vector is.
        links: The sums in common. Relations that follow from others are found and left out.
        units: How many rows one unit of a vector's numbers stands for; 1 for plain counts.
        covariances: Of each vector at noise of variance 1; None, or none at all, where noises are independent.

    Statement:
        Let y_v = x_v + noise, the noise of covariance s_v V_v in vector v and independent between vectors, and let
        C x = 0 hold for the stacked x. Then, with S the covariance of all noise,
            x~ = y - S C' (C S C')^+ C y
        has the least variance for every linear function of x, among all linear estimates that are unbiased for all x
        with C x = 0; and C x~ = 0. The covariance of x~ is S - S C' (C S C')^+ C S.
    Source: Aitken 1935, "On least squares and linear combination of observations", Proc. Royal Soc. Edinburgh 55; with
        the relations as restrictions: Rao, Linear Statistical Inference and Its Applications, 2nd ed., 4a.9. A vector
        that is itself the least-squares estimate from measurements which determine it carries all they say about it.
    Assumes: noises of mean zero and of the stated covariances; the relations hold. Where a V_v is singular, so are the
        numbers: what it leaves no noise in holds for x_v as well.
    Direction: equality, up to rounding.
    Checked by: tests/theorems/test_linked_counts.py

    >>> whole, parts = np.zeros(1, dtype=int), np.zeros(2, dtype=int)
    >>> linked = LinkedCounts((1, 2), (Link((0, 1), (whole, parts), 1),))
    >>> [part.round(9) for part in linked.at([1.0, 4.0]).estimate([np.array([100.0]), np.array([60.0, 49.0])])]
    [array([101.]), array([56., 45.])]
    """

    sizes: tuple[int, ...]
    links: tuple[Link, ...]
    units: tuple[float, ...] = ()
    covariances: tuple[Covariance | None, ...] = ()

    @cached_property
    def _starts(self) -> Places:
        return np.cumsum([0, *(link.sums for link in self.links)])

    @cached_property
    def _parts(self) -> list[list[tuple[int, Places, float]]]:
        """For each vector its links: the number of the first relation, the labels, and the sign with the unit."""
        parts: list[list[tuple[int, Places, float]]] = [[] for _ in self.sizes]
        units = self.units or (1.0,) * len(self.sizes)
        for start, link in zip(self._starts.tolist(), self.links, strict=False):
            for vector, labels, sign in zip(link.vectors, link.labels, (1.0, -1.0), strict=True):
                parts[vector].append((start, labels, sign * units[vector]))
        return parts

    @cached_property
    def _squares(self) -> list[tuple[Places, Floats]]:
        """For each vector v the relations that it enters and C_v C_v' over them."""
        squares = []
        for vector, parts in enumerate(self._parts):
            rows = [np.arange(start, start + self._sums(start)) for start, _, _ in parts]
            ends = np.cumsum([0, *map(len, rows)])
            if self._covariance(vector) is not None:
                places = np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
                products = self._added_up(vector, self._moves[vector][places])[:, places]
                squares.append((places, (products + products.T) / 2))
                continue
            matrix = np.zeros((ends[-1], ends[-1]))
            for i, (_, mine, one) in enumerate(parts):
                for j, (_, theirs, other) in enumerate(parts[: i + 1]):
                    both = _table(mine, theirs, len(rows[i]), len(rows[j])) * (one * other)
                    matrix[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = both
                    matrix[ends[j] : ends[j + 1], ends[i] : ends[i + 1]] = both.T
            squares.append((np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64), matrix))
        return squares

    def _covariance(self, vector: int) -> Covariance | None:
        return self.covariances[vector] if self.covariances else None

    @cached_property
    def _moves(self) -> dict[int, Floats]:
        """C_v V_v over all relations, for the vectors that have a covariance."""
        moves = {}
        for vector, covariance in enumerate(self.covariances):
            if covariance is not None:
                relations = np.zeros((int(self._starts[-1]), self.sizes[vector]))
                for start, labels, sign in self._parts[vector]:
                    inside = np.flatnonzero(labels >= 0)
                    relations[start + labels[inside], inside] = sign
                moves[vector] = covariance.times(relations)
        return moves

    def moved(self, vector: int) -> Floats:
        """V_v C_v' over the kept relations: one row for each number of a vector that has a covariance."""
        return np.ascontiguousarray(self._moves[vector][self.kept].T)

    def _added_up(self, vector: int, functions: Floats) -> Floats:
        """F C_v' over all relations, F in rows."""
        crossed = np.zeros((len(functions), int(self._starts[-1])))
        for start, labels, sign in self._parts[vector]:
            inside = np.flatnonzero(labels >= 0)
            order = inside[np.argsort(labels[inside], kind="stable")]
            first, starts = np.unique(labels[order], return_index=True)
            if len(first):
                crossed[:, start + first] += sign * np.add.reduceat(functions[:, order], starts, axis=1)
        return crossed

    def _sums(self, start: int) -> int:
        return self.links[int(np.searchsorted(self._starts, start, side="right")) - 1].sums

    @cached_property
    def kept(self) -> Places:
        """Relations from which all others follow."""
        typical = [1.0 if each is None else 1.0 / each.typical for each in self.covariances]
        return independent_rows(self._weighted(typical or np.ones(len(self.sizes))))

    @cached_property
    def squares(self) -> list[tuple[Places, Floats]]:
        """For each vector v the kept relations that it enters, by their numbers among these, and C_v C_v' over them."""
        number = np.full(int(self._starts[-1]), -1)
        number[self.kept] = np.arange(len(self.kept))
        inside = [number[rows] >= 0 for rows, _ in self._squares]
        return [
            (number[rows[own]], matrix[np.ix_(own, own)])
            for (rows, matrix), own in zip(self._squares, inside, strict=True)
        ]

    def _weighted(self, variances: Sequence[float] | Floats) -> Floats:
        total = np.zeros((int(self._starts[-1]),) * 2)
        for (rows, matrix), variance in zip(self._squares, variances, strict=True):
            total[np.ix_(rows, rows)] += float(variance) * matrix
        return total

    def crossed(self, vector: int, members: Places, outputs: int) -> Floats:
        """F V_v C_v' over the kept relations, F adding up numbers of a vector: `members` is the sum of each, or -1."""
        if self._covariance(vector) is not None:
            return self.combined(vector, (members == np.arange(outputs)[:, None]).astype(np.float64))
        crossed = np.zeros((outputs, int(self._starts[-1])))
        for start, labels, sign in self._parts[vector]:
            sums = self._sums(start)
            crossed[:, start : start + sums] = sign * _table(members, labels, outputs, sums)
        return crossed[:, self.kept]

    def combined(self, vector: int, functions: Floats) -> Floats:
        """The same for any linear functions of a vector's numbers, one in each row."""
        if self._covariance(vector) is not None:
            return np.asarray(functions @ self.moved(vector))
        return self._added_up(vector, functions)[:, self.kept]

    def gaps(self, numbers: Sequence[Floats]) -> Floats:
        """C y over the kept relations: by how much the measured sums disagree."""
        gaps = np.zeros(int(self._starts[-1]))
        for parts, own in zip(self._parts, numbers, strict=True):
            for start, labels, sign in parts:
                inside = labels >= 0
                sums = self._sums(start)
                gaps[start : start + sums] += sign * np.bincount(labels[inside], weights=own[inside], minlength=sums)
        return gaps[self.kept]

    def spread(self, vector: int, multipliers: Floats) -> Floats:
        """C_v' times one multiplier for each kept relation: one number for each number of the vector.

        `multipliers` may have several rows; so has the result. What a vector with a covariance is changed by is
        `moved` times the multipliers.
        """
        whole = np.zeros((*multipliers.shape[:-1], int(self._starts[-1])))
        whole[..., self.kept] = multipliers
        total = np.zeros((*multipliers.shape[:-1], self.sizes[vector]))
        for start, labels, sign in self._parts[vector]:
            inside = labels >= 0
            total[..., inside] += sign * whole[..., start + labels[inside]]
        return total

    def entries(self, vector: int) -> list[tuple[float, Places]]:
        """How a vector enters the kept relations: a weight, and the relation that each number is in with it, or -1."""
        number = np.full(int(self._starts[-1]) + 1, -1)
        number[self.kept] = np.arange(len(self.kept))
        return [
            (sign, number[np.where(labels >= 0, start + labels, -1)]) for start, labels, sign in self._parts[vector]
        ]

    def signatures(self, vector: int) -> tuple[Places, Places]:
        """One number of the vector for each way of entering into the relations, and how many numbers do so alike."""
        columns = [labels for _, labels, _ in self._parts[vector]]
        if not columns:
            return np.zeros(1, dtype=np.int64), np.array([self.sizes[vector]])
        _, first, counts = np.unique(np.array(columns), axis=1, return_index=True, return_counts=True)
        return first, counts

    def at(self, variances: Sequence[float]) -> LinkedEstimate:
        """The estimate under these variances of the noise in one number of each vector.

        Args:
            variances: One for each vector, > 0.

        Returns:
            The weights of the estimate, and its variances.
        """
        return LinkedEstimate(self, np.asarray(variances, dtype=float))


@dataclass(frozen=True, eq=False)
class LinkedEstimate:
    """The weights of the best linear estimate under given variances; see `LinkedCounts`."""

    linked: LinkedCounts
    variances: Floats

    @cached_property
    def inverse(self) -> Floats:
        """(C S C')^-1 over the kept relations."""
        count = len(self.linked.kept)
        total = np.zeros((count, count))
        for (rows, matrix), variance in zip(self.linked.squares, self.variances.tolist(), strict=True):
            total[np.ix_(rows, rows)] += variance * matrix
        root = np.sqrt(np.maximum(np.diag(total), 1e-300))
        scaled = total / root / root[:, None]
        try:
            inverse = _inverse(scaled)
        except np.linalg.LinAlgError:
            inverse = np.asarray(np.linalg.pinv(scaled, hermitian=True), dtype=np.float64)
        inverse = (inverse + inverse.T) / 2
        return np.asarray(inverse / root / root[:, None])

    def multipliers(self, vector: int | Places, crossed: Floats) -> Floats:
        """For each function of a vector (`crossed` is F C_v') by how much every relation's gap is taken off.

        `vector` may be one number for each function.
        """
        scaled = np.empty((len(crossed), self.inverse.shape[1]))
        for each in np.unique(vector).tolist():
            own = slice(None) if np.ndim(vector) == 0 else np.flatnonzero(vector == each)
            rows, _ = self.linked.squares[each]  # the only relations that a function of this vector meets
            scaled[own] = _product(crossed[own][:, rows], self.inverse[rows])
        variances = np.broadcast_to(self.variances[vector], len(crossed))
        return np.asarray(variances[:, None] * scaled)

    def square_weights(
        self, vector: int | Places, crossed: Floats, squares: Floats, taken: Floats | None = None
    ) -> Floats:
        """The sum of squared weights on every vector, one column for each; `squares` is the diagonal of F V_v F'.

        `taken` are the `multipliers`, where they are known.

        With a covariance: the variance that the noise of the vector brings, per unit of its own variance.
        """
        return np.maximum(self.signed_square_weights(vector, crossed, squares, taken), 0.0)

    def signed_square_weights(
        self, vector: int | Places, crossed: Floats, squares: Floats, taken: Floats | None = None
    ) -> Floats:
        """The same without a floor: parts of one sum, each of which may fall below zero."""
        taken = self.multipliers(vector, crossed) if taken is None else taken
        sums = np.empty((len(taken), len(self.variances)))
        for other, (rows, matrix) in enumerate(self.linked.squares):
            own = taken[:, rows]
            sums[:, other] = np.einsum("ij,ij->i", _product(own, matrix), own)
        sums[np.arange(len(taken)), vector] += squares - 2 * np.einsum("ij,ij->i", taken, crossed)
        return sums

    def covariance(self, vector: int, one: Floats, other: Floats, products: Floats) -> Floats:
        """The covariance of two functions of a vector, row by row; `products` is the diagonal of their F G'."""
        variance = float(self.variances[vector])
        return np.asarray(variance * (products - np.einsum("ij,ij->i", self.multipliers(vector, one), other)))

    def estimate(self, measured: Sequence[Floats]) -> list[Floats]:
        """Every vector with the gaps of all relations taken off.

        Args:
            measured: The measured numbers of each vector.

        Returns:
            The estimates, which satisfy all relations.
        """
        numbers = [np.asarray(values, dtype=float).reshape(-1) for values in measured]
        shares = self.inverse @ self.linked.gaps(numbers)
        return [
            own - variance * self._change(vector, shares)
            for vector, (own, variance) in enumerate(zip(numbers, self.variances.tolist(), strict=True))
        ]

    def _change(self, vector: int, shares: Floats) -> Floats:
        if self.linked.covariances and self.linked.covariances[vector] is not None:
            return np.asarray(self.linked.moved(vector) @ shares)
        return self.linked.spread(vector, shares)


def independent_rows(gram: Floats) -> Places:
    """The rows of a matrix from which all others follow, given its Gram matrix: a Cholesky factor with pivots.

    >>> rows = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, -1.0]])
    >>> independent_rows(rows @ rows.T)
    array([0, 1])
    """
    size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    left = gram / size / size[:, None]
    chosen: list[int] = []
    diagonal = np.where(np.diag(gram) > 0, 1.0, 0.0)
    for _ in range(len(gram)):
        place = int(np.argmax(diagonal))
        if not diagonal[place] > _DEPENDENT:
            break
        chosen.append(place)
        column = left[:, place] / np.sqrt(diagonal[place])
        left -= column[:, None] * column[None, :]
        diagonal = np.diag(left).copy()
        diagonal[chosen] = 0.0
    return np.sort(np.array(chosen, dtype=np.int64))


def _product(left: Floats, right: Floats) -> Floats:
    """left @ right, so many rows at a time that a linear algebra library wakes up no threads: they cost more."""
    some = max(1, _SMALL // max(right.size, 1))
    if len(left) <= some:
        return np.asarray(left @ right)
    whole = len(left) // some * some
    blocks = left[:whole].reshape(-1, some, left.shape[1]) @ right
    return np.concatenate([blocks.reshape(whole, -1), left[whole:] @ right])


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix without negative eigenvalues, in halves that need no threads either."""
    if len(matrix) <= _LARGE:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    half = len(matrix) // 2
    first = _inverse(matrix[:half, :half])
    across = _product(first, matrix[:half, half:])
    second = _inverse(matrix[half:, half:] - _product(matrix[half:, :half], across))
    corner = -_product(across, second)
    return np.block([[first - _product(corner, across.T), corner], [corner.T, second]])


def _table(mine: Places, theirs: Places, rows: int, columns: int) -> Floats:
    """How many numbers have each pair of labels; those with -1 in either are left out."""
    inside = (mine >= 0) & (theirs >= 0)
    flat = np.bincount(mine[inside] * columns + theirs[inside], minlength=rows * columns)
    return flat.reshape(rows, columns).astype(np.float64)

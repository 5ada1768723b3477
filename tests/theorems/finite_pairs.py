"""Pairs of finite distributions, and what can be found out about them by trying everything."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

Pair = tuple[list[Fraction], list[Fraction]]


@st.composite
def finite_pairs(draw: st.DrawFn, most: int = 4) -> Pair:
    """Pairs with zeros, equal likelihood ratios, and outcomes that never occur."""
    size = draw(st.integers(1, most))
    weights = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    P, Q = draw(weights), draw(weights)
    return [Fraction(p, sum(P)) for p in P], [Fraction(q, sum(Q)) for q in Q]


@st.composite
def stochastic_matrices(draw: st.DrawFn, rows: int, most: int = 4) -> list[list[Fraction]]:
    """Matrices whose rows are distributions."""
    columns = draw(st.integers(1, most))
    weights = st.lists(st.integers(0, 3), min_size=columns, max_size=columns).filter(any)
    return [[Fraction(w, sum(row)) for w in row] for row in (draw(weights) for _ in range(rows))]


def processed(pair: Pair, matrix: list[list[Fraction]]) -> Pair:
    """The pair after the matrix."""
    P, Q = (
        [sum((p * row[j] for p, row in zip(side, matrix, strict=True)), Fraction(0)) for j in range(len(matrix[0]))]
        for side in pair
    )
    return P, Q


def all_tests(pair: Pair) -> list[tuple[Fraction, Fraction, tuple[int, ...]]]:
    """(P_FA, P_MD, outcomes) of every test without a coin: all subsets of the outcomes."""
    P, Q = pair
    found = []
    for chosen in product((False, True), repeat=len(P)):
        outcomes = tuple(place for place, taken in enumerate(chosen) if taken)
        found.append(
            (sum((P[i] for i in outcomes), Fraction(0)), 1 - sum((Q[i] for i in outcomes), Fraction(0)), outcomes)
        )
    return found


def least_missed(pair: Pair, alpha: Fraction) -> Fraction:
    """The least P_MD at one P_FA: a coin between any two tests, or one alone."""
    tests = [(a, b) for a, b, _ in all_tests(pair)]
    best = min(b for a, b in tests if a <= alpha)
    for a, b in tests:
        for c, d in tests:
            if a <= alpha < c:
                best = min(best, b + (d - b) * (alpha - a) / (c - a))
    return best


def least_deficiency(first: Pair, second: Pair) -> float:
    """By linear programme: the least t such that some stochastic matrix is off by at most t in total variation."""
    n, m = len(first[0]), len(second[0])
    # Variables: T (n m), how far each simulated probability exceeds the one wanted (2 m), and t.
    size = n * m + 2 * m + 1
    rows, limits = [], []
    for side in (0, 1):
        total = np.zeros(size)
        total[-1] = -1
        for j in range(m):
            row = np.zeros(size)
            row[j : n * m : m] = [float(p) for p in first[side]]
            row[n * m + side * m + j] = -1
            rows.append(row)
            limits.append(float(second[side][j]))
            total[n * m + side * m + j] = 1
        rows.append(total)
        limits.append(0.0)
    sums = np.zeros((n, size))
    for i in range(n):
        sums[i, i * m : (i + 1) * m] = 1
    cost = np.zeros(size)
    cost[-1] = 1
    found = linprog(cost, np.array(rows), limits, sums, np.ones(n), bounds=(0, None), method="highs")
    assert found.status == 0
    return float(found.fun)

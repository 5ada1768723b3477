"""Simulation: answers of one mechanism made from those of another, or the test that shows that this cannot be done.

Blackwell's theorem for two hypotheses, both ways. Processing answers never enlarges a region; and if the region of the
second pair of distributions lies inside that of the first, a stochastic matrix turns the first pair into the second.
The matrix is constructed here, and checked exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from farthing.accounting.finite_distributions import (
    Distribution,
    Number,
    Pair,
    checked_number,
    checked_pair,
    leaky_response,
    odds_above,
)
from farthing.accounting.loss_transforms import Array
from farthing.accounting.regions import Corner, Region, best_tests, rejection_order, shortfall
from farthing.errors import InvalidValue
from farthing.numerics.bounds import number_text

_NONE = Fraction(0)


@dataclass(frozen=True)
class Witness:
    """A test of the second mechanism that no test of the first can match.

    Attributes:
        outcomes: The outcomes of the second for which it rejects, by their places.
        false_alarm: Its false-alarm rate.
        missed: Its missed-detection rate.
        least_missed: The least missed-detection rate of the first at the same false-alarm rate: it is larger.

    >>> simulate(([0.6, 0.4], [0.4, 0.6]), ([0.75, 0.25], [0.25, 0.75])).witness.outcomes
    (1,)
    """

    outcomes: tuple[int, ...]
    false_alarm: Fraction
    missed: Fraction
    least_missed: Fraction

    def __str__(self) -> str:
        alarm, missed, least = (
            number_text(float(rate), 6) for rate in (self.false_alarm, self.missed, self.least_missed)
        )
        return (
            f"Rejecting for outcomes {list(self.outcomes)} of the second has a false-alarm rate of {alarm} and misses "
            f"{missed}; with that rate every test of the first misses at least {least}."
        )


@dataclass(frozen=True)
class Simulation:
    """The answer of `simulate`: a matrix, or else a witness.

    Attributes:
        matrix: Row i is the distribution of the second's outcome, given outcome i of the first; None if there is none.
        witness: The test that shows that there is none; None if there is one.
        error: How far, in total variation, the simulated distributions are from the second pair; 0 if exact.

    >>> found = simulate(([0.75, 0.25], [0.25, 0.75]), ([1], [1]))
    >>> found.possible, found.error == 0
    (True, True)
    >>> print(found)
    The second can be made from answers of the first, exactly (2 outcomes of the first, 1 of the second).
    """

    matrix: tuple[Distribution, ...] | None
    witness: Witness | None = None
    error: Fraction = _NONE

    @property
    def possible(self) -> bool:
        """Whether there is a matrix."""
        return self.matrix is not None

    def __str__(self) -> str:
        if self.matrix is None:
            return f"The second cannot be made from answers of the first. {self.witness}"
        size = f"{len(self.matrix):,} outcomes of the first, {len(self.matrix[0]):,} of the second"
        close = "exactly" if self.error == 0 else f"up to {number_text(float(self.error), 3)} in total variation"
        return f"The second can be made from answers of the first, {close} ({size})."

    def array(self) -> Array:
        """The matrix in doubles.

        Returns:
            An array of shape (outcomes of the first, outcomes of the second).

        Raises:
            InvalidValue: If there is no matrix.

        >>> simulate(([0.75, 0.25], [0.25, 0.75]), ([0.5, 0.5], [0.5, 0.5])).array().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        if self.matrix is None:
            raise InvalidValue("matrix", None, "does not exist here", "look at the witness")
        return np.array([[float(share) for share in row] for row in self.matrix])


def simulate(
    first: tuple[Iterable[Number], Iterable[Number]],
    second: tuple[Iterable[Number], Iterable[Number]],
    tolerance: Number = Fraction(1, 10**12),
) -> Simulation:
    """The processing that makes answers of the second mechanism from those of the first, whoever is in the table.

    Args:
        first: The distributions (P, Q) of the first mechanism's answer for two neighbouring tables.
        second: Those of the second mechanism, with outcomes of its own.
        tolerance: The largest error in total variation that is accepted, so that rounding of the given numbers does not
            rule out a matrix. 0 insists on the exact numbers.

    Returns:
        The stochastic matrix, or the test that shows that there is none.

    Raises:
        InvalidValue: If something is not a distribution, or the two of a pair have different numbers of outcomes.

    Statement:
        A stochastic matrix T with P1 T = P2 and Q1 T = Q2 exists if and only if the region of (P2, Q2) lies inside
        that of (P1, Q1). Under (P + Q) / 2, the posterior Q / (P + Q) of the first is then a mean-preserving spread of
        the second's. Going through the outcomes of the second by posterior, each takes from what is left of the first
        the piece between two quantiles that has its mass and its mean.
    Source: Blackwell, Ann. Math. Stat. 24, 1953, for two hypotheses; Kairouz, Oh & Viswanath, arXiv:1311.0776v4,
        section 2 (the data processing inequality and its converse, Theorem 2.5); Beiglboeck & Juillet, Ann. Probab.
        44, 2016, Theorem 4.8 and Example 4.7, for the coupling.
    Assumes: sums within 1e-9 of 1, which are made exactly 1.
    Direction: exact, in fractions: the equations are checked before the matrix is returned. If `error` is not 0, they
        hold for the second pair moved by so much towards its mean.
    Checked by: tests/theorems/test_simulation.py
    Departs from source: `tolerance`.

    >>> found = simulate(([0.75, 0.25], [0.25, 0.75]), ([0.6, 0.4], [0.4, 0.6]))
    >>> [[str(share) for share in row] for row in found.matrix]
    [['7/10', '3/10'], ['3/10', '7/10']]
    >>> print(simulate(([0.6, 0.4], [0.4, 0.6]), ([0.75, 0.25], [0.25, 0.75])).witness)
    Rejecting for outcomes [1] of the second has a false-alarm rate of 0.25 and misses 0.25; with that rate every test
    of the first misses at least 0.625.
    """
    source, target = (
        _two_distributions(first, "first"),
        _two_distributions(second, "second"),
    )
    most = checked_number(tolerance, "tolerance")
    if not 0 <= most < 1:
        raise InvalidValue("tolerance", tolerance, "must be at least 0 and below 1", "1e-12 is usual")
    region = Region.from_distributions(*source)
    share = _share_of_mean(region, best_tests(target))
    mean = [(p + q) / 2 for p, q in zip(*target, strict=True)]
    near = tuple(tuple(p + share * (m - p) for p, m in zip(side, mean, strict=True)) for side in target)
    error = sum((abs(p - m) for p, m in zip(target[0], mean, strict=True)), _NONE) * share / 2
    if error > most:
        return Simulation(None, _witness(region, target))
    return Simulation(_verified(_transport(source, (near[0], near[1])), source, (near[0], near[1])), None, error)


def _two_distributions(given: object, name: str) -> Pair:
    """What somebody passed as the distributions of one mechanism."""
    way_out = (
        "a region's are region.distributions()" if isinstance(given, Region) else "such as ([0.7, 0.3], [0.3, 0.7])"
    )
    try:
        P, Q = (list(side) for side in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        rule = "must be two lists of probabilities, one for each of two neighbouring tables"
        raise InvalidValue(name, given, rule, way_out) from None
    return checked_pair(P, Q, names=(f"{name}[0]", f"{name}[1]"))


def randomized_response_simulation(
    P: Iterable[Number],
    Q: Iterable[Number],
    epsilon: float,
    delta: float = 0.0,
    tolerance: Number = Fraction(1, 10**12),
) -> Simulation:
    """The processing that makes the answers of any (epsilon, delta)-DP mechanism from those of randomized response.

    Args:
        P: The probabilities of the mechanism's outcomes for one table.
        Q: The probabilities of the same outcomes for its neighbour.
        epsilon: The epsilon that the mechanism is claimed to have.
        delta: Its delta.
        tolerance: As in `simulate`.

    Returns:
        The matrix, with one row for each outcome of leaky randomized response: "it is the first table", "probably the
        first", "probably the second", "it is the second"; or the test that refutes the claim.

    Raises:
        InvalidValue: If P or Q is not a distribution, or epsilon or delta is out of its range.

    Statement:
        (P, Q) is (epsilon, delta)-indistinguishable if and only if there is a stochastic matrix T with R0 T = P and
        R1 T = Q, where, with odds r = e^epsilon,
            R0 = (delta, (1 - delta) r / (1 + r), (1 - delta) / (1 + r), 0),  R1 = the same backwards.
    Source: Kairouz, Oh & Viswanath, ICML 2015 (arXiv:1311.0776v4): the mechanism that dominates, in the proof of
        Theorem 3.3 (supplement of ICML, section 5.1, equations 12 and 13), by Theorem 2.5; Murtagh & Vadhan, Theory of
        Computing 14(8), 2018 (arXiv:1507.03113), section 3 (the simulation lemma).
    Assumes: sums within 1e-9 of 1, which are made exactly 1.
    Direction: r is e^epsilon, rounded up by at most one part in 2^50. So a matrix is always found where the claim
        holds, and a witness refutes the claim.
    Checked by: tests/theorems/test_simulation.py

    >>> import math
    >>> found = randomized_response_simulation([0.5, 0.3, 0.2], [0.3, 0.3, 0.4], math.log(2))
    >>> for row in found.matrix:
    ...     print([str(share) for share in row])
    ['0', '0', '1']
    ['7/10', '3/10', '0']
    ['1/10', '3/10', '3/5']
    ['0', '0', '1']
    >>> randomized_response_simulation([0.9, 0.1], [0.1, 0.9], 1.0).witness.outcomes
    (1,)
    """
    return simulate(leaky_response(odds_above(epsilon), delta), (P, Q), tolerance)


def _share_of_mean(region: Region, corners: Sequence[Corner]) -> Fraction:
    """The least share of (P + Q) / 2, mixed into P and Q, at which their best tests lie in the region."""
    # Mixing keeps the order of the outcomes. With the share s, both error rates of a test rise by s (1 - a - b) / 2.
    return max(
        (2 * rise / (1 - a - b) for a, b in corners if (rise := shortfall(region, (a, b)))),
        default=_NONE,
    )


def _witness(region: Region, pair: Pair) -> Witness:
    """The best test of the pair that lies furthest below the region."""
    corners = best_tests(pair)
    below = [region.missed_at(a) - b for a, b in corners]
    place = max(range(len(corners)), key=below.__getitem__)
    (a, b), order = corners[place], rejection_order(pair)
    return Witness(tuple(sorted(order[:place])), a, b, region.missed_at(a))


def _transport(source: Pair, target: Pair) -> list[list[Fraction]]:
    """The matrix: each outcome of the target takes its piece of what is left of the source."""
    rows = [[_NONE] * len(target[0]) for _ in source[0]]
    left = _Remains(source)
    for j in rejection_order(target)[::-1]:
        for i, mass in left.take(target[0][j], target[1][j]):
            rows[i][j] += mass
    for i, row in enumerate(rows):
        mass = source[0][i] + source[1][i]
        if mass:
            rows[i] = [share / mass for share in row]
        else:
            row[-1] = Fraction(1)  # it never occurs
    return rows


class _Remains:
    """What is left of the source, its outcomes in the order of Q / (P + Q)."""

    def __init__(self, source: Pair) -> None:
        self.order = rejection_order(source)[::-1]
        self.mass = [source[0][i] + source[1][i] for i in self.order]
        self.posterior = [source[1][i] / mass for i, mass in zip(self.order, self.mass, strict=True)]

    def take(self, p: Fraction, q: Fraction) -> list[tuple[int, Fraction]]:
        """The piece between the quantiles s and s + p + q, in masses of P + Q, whose Q-mass is q."""
        ends = list(accumulate(self.mass))
        start = self._start(ends, p + q, q)
        piece = []
        for place, (end, mass) in enumerate(zip(ends, self.mass, strict=True)):
            part = min(end, start + p + q) - max(end - mass, start)
            if part > 0:
                piece.append((self.order[place], part))
                self.mass[place] -= part
        keep = [place for place, mass in enumerate(self.mass) if mass]
        self.order = [self.order[place] for place in keep]
        self.posterior = [self.posterior[place] for place in keep]
        self.mass = [self.mass[place] for place in keep]
        return piece

    def _start(self, ends: list[Fraction], width: Fraction, q: Fraction) -> Fraction:
        """Where the piece begins: its Q-mass grows with s, in straight lines between the s where an end is met."""
        totals = list(accumulate(mass * x for mass, x in zip(self.mass, self.posterior, strict=True)))

        def below(s: Fraction) -> Fraction:
            """The Q-mass of the first s."""
            place = bisect_left(ends, s)
            return totals[place] - (ends[place] - s) * self.posterior[place]

        last = ends[-1] - width
        stops = sorted(
            {_NONE, last, *(end for end in ends if end < last), *(end - width for end in ends if end > width)}
        )
        low, high = 0, len(stops) - 1
        amounts = {place: below(stops[place] + width) - below(stops[place]) for place in (low, high)}
        while high - low > 1:
            middle = (low + high) // 2
            amounts[middle] = below(stops[middle] + width) - below(stops[middle])
            low, high = (middle, high) if amounts[middle] <= q else (low, middle)
        rise = amounts[high] - amounts[low]
        return stops[low] + (stops[high] - stops[low]) * (q - amounts[low]) / rise if rise else stops[low]


def _verified(rows: list[list[Fraction]], source: Pair, target: Pair) -> tuple[Distribution, ...]:
    """The matrix, if it is stochastic and turns the source into the target: a construction that erred is not shown."""
    for before, after in zip(source, target, strict=True):
        for j, wanted in enumerate(after):
            if sum((p * row[j] for p, row in zip(before, rows, strict=True) if p and row[j]), _NONE) != wanted:
                raise ArithmeticError("the matrix does not turn the first pair into the second")
    if any(sum(row) != 1 or min(row) < 0 for row in rows):
        raise ArithmeticError("the matrix is not stochastic")
    return tuple(map(tuple, rows))

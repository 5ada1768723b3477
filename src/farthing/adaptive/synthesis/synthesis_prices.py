"""What a synthesis costs: shares of noise and private choices, all fixed before the first of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from farthing.accounting import calibrate
from farthing.data import Sensitivity
from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace, ExponentialMechanism
from farthing.mechanisms.additive import vector_event
from farthing.numerics.bounds import rounded_down, rounded_up
from farthing.privacy import ApproxDP, Composed, Event, GaussianNoise
from farthing.privacy.events import checked_delta, checked_epsilon

SHARES = 2000
MOST_CELLS = 2**22
_CHOOSING = 0.06  # the part of the budget that pays for choices
_SMALLEST_DELTA = 1e-18  # below it, what makes noise whole would leak as much: pure noise is used instead
_SMOOTHING = 4  # the part of sigma^2 that `vector_event` needs to turn real noise into whole numbers
_LEAST_SIGMA_SQUARED = 9


@dataclass(frozen=True)
class Prices:
    """The price of every part of a synthesis: `SHARES` even shares of noise, and `choices` private choices.

    A table with k shares carries the noise of k releases at the price of one share, taken together.

    Attributes:
        unit: The price of one share: the noise multiplier of a Gaussian, or an epsilon where delta is 0.
        pure: Whether delta is 0.
        choices: How many private choices there are at most.
        choice_epsilon: The epsilon of one choice.
        tables: How many tables are measured at most.
        sensitivity: How far neighbours move the counts of whole rows.

    >>> prices = prices_within(1.0, 1e-9, choices=16, tables=60, sensitivity=Sensitivity(1, 1, 1, 1))
    >>> round(prices.standard_error(SHARES), 2), round(prices.standard_error(SHARES // 100), 1)
    (6.02, 56.9)
    >>> print(prices.event.parts[1])
    (BoundedRange(epsilon=0.022...), 16)
    """

    unit: float
    pure: bool
    choices: int
    choice_epsilon: float
    tables: int
    sensitivity: Sensitivity

    @cached_property
    def event(self) -> Event:
        """The whole synthesis as one event.

        Statement:
            Let a run make, in an order and on tables that may depend on all earlier answers, at most `choices` choices
            by the exponential mechanism of `choice_epsilon` on scores that move by at most the l1 sensitivity, and at
            most `tables` noisy tables, of at most `MOST_CELLS` cells each, given at most `SHARES` shares in all. It is
            dominated by the composition of `SHARES` Gaussian releases of multiplier `unit` (or one release that is
            `SHARES` times `unit`-DP), `choices` epsilon-bounded-range choices and `tables` leaks of the size that
            `vector_event` states.
        Source: A table with k shares has discrete Gaussian noise of variance (unit l2)^2 / k + 4, which is, up to the
            leak, a continuous release of multiplier unit / sqrt(k) that was made whole (`vector_event`); and that is
            the mean of k releases of multiplier `unit`, so a post-processing of k of the shares. For pure noise,
            epsilons add up however they are divided; but one release of k shares is no composition of k small ones,
            which would cost less at every delta > 0. Shares, choices and leaks are three interactive mechanisms, each
            an adaptive composition of equal and fixed parts; run concurrently, in whatever order, they cost what their
            product costs: Vadhan & Zhang, arXiv:2207.08335v3 (interactive f-DP mechanisms are post-processings of plain
            ones). The loop is that of Hardt, Ligett & McSherry, arXiv:1012.4763 (MWEM), with the model of McKenna,
            Sheldon & Miklau, arXiv:1901.09136, and scores as in McKenna, Mullins, Sheldon & Miklau, arXiv:2201.12677
            (AIM).
        Assumes: every table is a sum over coded rows whose count vectors differ by at most `sensitivity` between
            neighbours; adding up cells moves nothing further apart. Scores are sums of |count - whole number| over
            disjoint cells, minus public whole numbers: they move by at most the l1 sensitivity.
        Direction: noise is rounded up, prices are rounded up; shares and choices that are not used stay paid.
        Checked by: tests/theorems/test_synthesis_prices.py
        """
        choosing = ExponentialMechanism(self.choice_epsilon, 1).event if self.choices else None
        whole = ApproxDP(rounded_up(SHARES * Fraction(self.unit)))
        parts: list[tuple[Event, int]] = [(whole, 1) if self.pure else (GaussianNoise(self.unit), SHARES)]
        if choosing is not None:
            parts.append((choosing, self.choices))
        if not self.pure:
            parts.append((ApproxDP(0.0, self._leak), self.tables))
        return Composed(tuple(parts))

    def noise(self, shares: int, cells: int) -> DiscreteGaussian | DiscreteLaplace:
        """The mechanism for a table of so many cells that is given so many shares.

        Args:
            shares: How many shares the table is given.
            cells: How many cells it has.

        Returns:
            The mechanism.
        """
        if not 1 <= shares <= SHARES or not 1 <= cells <= MOST_CELLS:
            raise InvalidValue("shares, cells", (shares, cells), f"must be 1 to {SHARES} and 1 to {MOST_CELLS}")
        if self.pure:
            epsilon = rounded_down(min(Fraction(self.unit) * shares, Fraction(50)))
            return DiscreteLaplace(epsilon, self.sensitivity.l1, cells=cells)
        # A single number moves by whole steps, and its mechanism rounds the sensitivity down to them: up is safe.
        reach = self.sensitivity.l2 if cells > 1 else float(math.ceil(self.sensitivity.l2))
        return DiscreteGaussian(_multiplier(self.unit, shares, reach), reach, cells=cells)

    def standard_error(self, shares: int) -> float:
        """The standard deviation of the noise in each cell of a table (of two or more) with so many shares.

        Args:
            shares: How many shares the table is given.

        Returns:
            The standard deviation.
        """
        return self.noise(shares, 2).standard_error

    @cached_property
    def choosing(self) -> ExponentialMechanism:
        """The mechanism of one choice."""
        return ExponentialMechanism(self.choice_epsilon, self.sensitivity.l1)

    def fair_shares(self, cells: float) -> float:
        """In proportion to what the shares of tables with these numbers of cells should be.

        A table of m cells errs by about m times its noise, which is k^(-1/2) for Gaussian and 1/k for pure noise of k
        shares; the sum of all errors is least when k grows as m^(2/3), or m^(1/2).

        Args:
            cells: How many cells a table has.

        Returns:
            A number that its shares should be in proportion to.
        """
        return float(cells ** (1 / 2 if self.pure else 2 / 3))

    @cached_property
    def _leak(self) -> float:
        """The leak of a table with the most cells and the most shares, which is the largest."""
        l2 = self.sensitivity.l2
        sigma_squared = (Fraction(_multiplier(self.unit, SHARES, l2)) * Fraction(l2)) ** 2
        event = vector_event(sigma_squared, l2, MOST_CELLS)
        assert isinstance(event, Composed) and isinstance(event.parts[1][0], ApproxDP)
        return event.parts[1][0].delta


@lru_cache(maxsize=64, typed=True)  # a plan, its release and every reading of that ask for the same prices
def prices_within(epsilon: float, delta: float, choices: int, tables: int, sensitivity: Sensitivity) -> Prices:
    """The prices that use up (epsilon, delta), proven to stay within it."""
    budget, slack = checked_epsilon(epsilon), checked_delta(delta)
    if not budget > 0:
        raise InvalidValue("epsilon", epsilon, "must be a finite number > 0")
    pure = slack < _SMALLEST_DELTA
    part = _CHOOSING if choices else 0.0

    def scaled(noise: float) -> Prices:
        if pure:
            unit, each = (1 - part) / (SHARES * noise), part / (max(choices, 1) * noise)
        else:
            # A choice of epsilon e costs about what a Gaussian of multiplier 2 / e does.
            unit = noise * math.sqrt(SHARES / (1 - part))
            each = 2 * math.sqrt(part / max(choices, 1)) / noise
        return Prices(unit, pure, choices, min(each, 50.0), tables, sensitivity)

    least = 1 / budget if pure else 0.05
    calibration = calibrate(
        lambda noise: [scaled(noise).event],
        budget,
        0.0 if pure else slack,
        bracket=(least / 2, 1e9 / min(budget, 1.0)),
        tolerance=1e-6,
    )
    prices = scaled(calibration.parameter)
    try:  # noise too wide to be drawn is refused now, before anything is charged
        prices.noise(1, 1)
    except InvalidValue:
        raise InvalidValue(
            "epsilon", epsilon, "must be large enough for noise that can be drawn", "1e-6 is more than enough"
        ) from None
    return prices


def _multiplier(unit: float, shares: int, l2: float) -> float:
    """The least noise multiplier, rounded up, whose variance is (unit l2)^2 / shares + 4 or more."""
    reach = Fraction(l2)
    wanted = max((Fraction(unit) * reach) ** 2 / shares + _SMOOTHING, Fraction(_LEAST_SIGMA_SQUARED)) / reach**2
    multiplier = max(math.sqrt(wanted), 0.01)
    while Fraction(multiplier) ** 2 < wanted:
        multiplier = math.nextafter(multiplier, math.inf)
    return multiplier

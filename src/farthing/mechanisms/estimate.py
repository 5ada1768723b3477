"""A share of a population, estimated from randomized answers, with its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real


@dataclass(frozen=True, slots=True)
class Estimate:
    """An unbiased estimate with its standard error; `interval` needs no normal approximation.

    `value` may lie a little outside 0 .. 1: that is what keeps averages of it right. `interval` stays inside.

    >>> from farthing.mechanisms.randomized_response import RandomizedResponse
    >>> survey = RandomizedResponse.warner("3/4")
    >>> found = survey.proportion([1] * 55 + [0] * 45, category=1)
    >>> round(found.value, 6), round(found.standard_error, 6)
    (0.6, 0.1)
    >>> low, high = found.interval(0.95)
    >>> round(low, 3), round(high, 3)
    (0.395, 0.799)
    """

    value: float
    standard_error: float
    count: int
    reports: int
    truth_probability: float
    lie_probability: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold the share with at least this probability, from the binomial law itself.

        Statement:
            The number of answers of one category among n people drawn from a population is binomial, with chance
            r = q + share (p - q) each. The interval of all r for which the count seen lies in neither tail of
            (1 - confidence) / 2, read back through that line, holds the share with at least `confidence`.
        Source: Clopper & Pearson (1934).
        Assumes: people are drawn independently, or are few among many. For the share among those asked, rather than in
            the population, the interval is wider than needed.
        Direction: covers with at least `confidence`; rounded outward by 2^-40.
        Checked by: tests/theorems/test_randomized_response.py
        """
        from scipy.special import betaincinv

        level = checked_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidValue("confidence", confidence, "must be > 0 and < 1", "0.95 is a common choice")
        tail = (1 - level) / 2
        x, n = self.count, self.reports
        low = float(betaincinv(x, n - x + 1, tail)) if x > 0 else 0.0
        high = float(betaincinv(x + 1, n - x, 1 - tail)) if x < n else 1.0
        p, q = self.truth_probability, self.lie_probability
        slack = 2.0**-40
        return (
            min(max((low * (1 - slack) - q) / (p - q) - slack, 0.0), 1.0),
            min(max((high * (1 + slack) - q) / (p - q) + slack, 0.0), 1.0),
        )


def estimated_share(count: int, reports: int, truth: Fraction, lie: Fraction) -> Estimate:
    """(count / reports - lie) / (truth - lie), and the root of its unbiased variance (inf for a single report)."""
    share = Fraction(count, reports)
    variance = share * (1 - share) / max(1, reports - 1) / (truth - lie) ** 2
    error = math.sqrt(variance) if reports > 1 else math.inf
    return Estimate(float((share - lie) / (truth - lie)), error, count, reports, float(truth), float(lie))

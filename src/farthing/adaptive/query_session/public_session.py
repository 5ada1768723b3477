"""Multiplicative weights without privacy: the algorithm under a query session, for teaching and tests.

Everything private is left out: no noise, no price, exact comparisons. What remains is the reason why a session works:
a guess that is corrected where it is far off needs few corrections, however many questions come.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real


class PublicSession:
    """Answers counting questions about public shares from a guess, and uses the shares only where the guess is far off.

    The shares are not protected. For private rows there is `farthing.adaptive.QuerySession`.

    Args:
        shares: A number >= 0 for each cell; they are divided by their sum.
        alpha: How far off an answer may be, above 0 and below 1.

    Raises:
        InvalidValue: If the shares are not such numbers, or alpha is out of its range.

    Statement:
        Every answer is within alpha of the truth, and at most 4 ln K / alpha^2 answers are corrected, whatever the
        questions are and however each depends on the answers before it; K is the number of cells.
        Proof: let D = sum_i x_i ln(x_i / h_i), at first at most ln K. A correction multiplies h_i by
        exp(eta r q_i), eta = alpha / 2, r = +1 where the answer was too small and -1 where it was too large, and
        divides by the sum: D falls by eta r (q(x) - q(h)) - ln sum_i h_i exp(eta r (q_i - q(h))), at least
        eta alpha - eta^2 = alpha^2 / 4, and D is never below 0.
    Source: Hardt & Rothblum, "A multiplicative weights mechanism for privacy-preserving data analysis", FOCS 2010,
        Section 3; Herbster & Warmuth 2001, for the potential.
    Assumes: questions with values from 0 to 1 in every cell.
    Direction: an upper bound on corrections.
    Checked by: tests/theorems/test_public_session.py

    >>> session = PublicSession([5, 3, 1, 1], alpha=0.1)
    >>> session.ask([1, 1, 0, 0])                             # the guess says 0.5, which is off by 0.3
    0.8
    >>> session.corrections, session.most_corrections
    (1, 554)
    """

    def __init__(self, shares: Any, alpha: float) -> None:
        values = _numbers(shares)
        largest = values.max(initial=0.0)
        if not (np.all(values >= 0) and 0 < largest < math.inf):
            raise InvalidValue("shares", "an array", "must hold finite numbers >= 0, not all of them 0")
        self.alpha = checked_real(alpha, "alpha")
        if not 0 < self.alpha < 1:
            raise InvalidValue("alpha", alpha, "must be above 0 and below 1")
        scaled = values / largest  # whose sum is no infinity
        self._shares = scaled / scaled.sum()
        self.guess: NDArray[np.float64] = np.full(len(values), 1 / len(values))
        self.corrections = 0

    @property
    def most_corrections(self) -> int:
        """The largest number of answers that can ever be corrected."""
        return math.floor(4 * math.log(len(self.guess)) / self.alpha**2)

    def ask(self, question: Any) -> float:
        """The share that a question counts: from the guess if that is close enough, else exactly.

        Args:
            question: A number from 0 to 1 for each cell: how far it counts.

        Returns:
            The answer, within alpha of the truth.

        Raises:
            InvalidValue: If the question is not such numbers.
        """
        counted = _numbers(question)
        if counted.shape != self.guess.shape or not np.all((counted >= 0) & (counted <= 1)):
            raise InvalidValue("question", "an array", f"must hold {len(self.guess)} numbers from 0 to 1")
        truth, answer = float(self._shares @ counted), float(self.guess @ counted)
        if abs(truth - answer) <= self.alpha:
            return answer
        self.corrections += 1
        moved = self.guess * np.exp(math.copysign(self.alpha / 2, truth - answer) * counted)
        self.guess = moved / moved.sum()
        return truth


def _numbers(given: Any) -> NDArray[np.float64]:
    """Anything as doubles; what is not a number becomes NaN, which is refused like any other."""
    try:
        return np.asarray(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        return np.array([math.nan])

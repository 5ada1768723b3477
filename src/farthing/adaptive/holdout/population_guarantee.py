"""What a reusable holdout promises about the population, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

_UP = 1 + 1e-9  # more than all rounding in these sums of doubles
_HALVINGS = 60


def log_histories(queries: int, corrections: int, levels: int) -> float:
    """The logarithm of the number of different questions that can come up in any session, rounded up.

    Statement:
        Fix the analyst and the training rows. Each answer is either the training mean (known in advance) or one of
        `levels` corrected values, and the session stops after `corrections` corrections or `queries` questions. Then
        at most
            N = sum over i < corrections of C(queries, i + 1) levels^i
        different questions are asked in any run, whatever the holdout rows are.
        Proof: a question is settled by the answers before it. Question j + 1 comes after j answers of which i are
        corrections, i < corrections: C(j, i) levels^i histories. Sum over j < queries: C(queries, i + 1).
    Source: the argument of bounded description length, Dwork, Feldman, Hardt, Pitassi, Reingold & Roth,
        "Generalization in adaptive data analysis and holdout reuse", arXiv:1506.02629v2, Section 4 (SparseValidate).
    Assumes: queries, corrections, levels >= 1; an analyst who draws lots is a mixture of such that do not.
    Direction: upward by 1e-9 of itself.
    Checked by: tests/theorems/test_holdout_generalises.py

    >>> round(math.exp(log_histories(queries=3, corrections=2, levels=10)))  # 3 + 3 * 10
    33
    """
    term, terms = math.log(queries), []
    for i in range(min(corrections, queries)):  # C(queries, i + 1) levels^i, each from the one before
        terms.append(term)
        term += math.log(levels) + math.log((queries - i - 1) / (i + 2)) if i + 1 < queries else 0.0
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(term - top) for term in terms))) * _UP + 1e-9


def sampling_deviation(log_questions: float, rows: int, failure: float) -> float:
    """How far the means of all possible questions over `rows` rows may be from the population's, at once.

    Statement:
        If the rows are independent draws from the population and every statistic lies in [0, 1], then with
        probability at least 1 - failure each of e^log_questions fixed statistics has a mean over the rows within
            s = sqrt((log_questions + log(2 / failure)) / (2 rows))
        of its mean over the population.
    Source: Hoeffding, JASA 58 (1963), Theorem 1, and the union over questions and sides.
    Assumes: the questions do not depend on the rows, as those of `log_histories` do not.
    Direction: upward by 1e-9 of itself.
    Checked by: tests/theorems/test_holdout_generalises.py

    >>> round(sampling_deviation(0.0, 10_000, 0.05), 4)  # a single question
    0.0136
    """
    return math.sqrt((max(log_questions, 0.0) + math.log(2 / failure)) / (2 * rows)) * _UP


def posterior_shift(epsilon: float, delta: float, failure: float) -> float:
    """How far the rows, seen through a private transcript, may seem to be from the population.

    Statement:
        Let S be independent draws from P, and let the transcript of an adaptive analyst be (epsilon, delta)-DP when
        one row is replaced. Write q(P) for the population mean of a statistic in [0, 1], and q(Q) for the mean of
        q(S) given the transcript. For every g > tanh(epsilon / 4),
            P[some question of the transcript has |q(Q) - q(P)| >= g] <= delta / (g - (e^epsilon - 1)(1 - g)^2 / 4),
        so that for delta = 0 no transcript has any question beyond tanh(epsilon / 4), and no smaller number will do.
        Proof: for each bad transcript T pick such a question, or its complement 1 - q, so that q(Q) - q(P) >= g; let
        B be the bad ones. Draw another X from P. For each row S_i the function 1[T in B] q_T(x)(1 - q_T(x')) has
        values in [0, 1], so that privacy between S_i = x and S_i = x' gives
            E[1_B q_T(S_i) (1 - q_T(X))] <= e^epsilon E[1_B (1 - q_T(S_i)) q_T(X)] + delta
        (on the right S_i and X have changed names, which are alike). Average over i: with a = q(Q) and p = q(P),
        E[1_B (a (1 - p) - e^epsilon (1 - a) p)] <= delta. The bracket is (a - p) - (e^epsilon - 1)(1 - a) p, and
        (1 - a) p <= ((1 - (a - p)) / 2)^2, so that it is at least g - (e^epsilon - 1)(1 - g)^2 / 4, which grows with
        g and vanishes at tanh(epsilon / 4). One row and randomized response reach it at p = 1 / (1 + e^(epsilon/2)).
    Source: after Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi & Shenfeld, "A new analysis of differential privacy's
        generalization guarantees", arXiv:1909.03577, whose bound is e^epsilon - 1 + 2 d with failure delta / d.
    Departs from source: both rows of the swap are weighed at once, which makes epsilon / 4 of their epsilon.
    Assumes: epsilon >= 0; 0 <= delta < 1; 0 < failure < 1; independent rows; neighbours replace one row.
    Direction: upward by 1e-9 of itself; at most 1.
    Checked by: tests/theorems/test_holdout_generalises.py

    >>> posterior_shift(0.4, 0.0, 0.05)  # tanh(0.1)
    0.0996...
    """
    growth = math.expm1(min(epsilon, 700.0)) / 4
    low, high = math.tanh(epsilon / 4), 1.0
    if not delta > 0:
        return min(1.0, low * _UP)
    if not high * failure >= delta:
        return 1.0
    for _ in range(_HALVINGS):  # the denominator grows with g
        middle = (low + high) / 2
        fits = (middle - growth * (1 - middle) ** 2) * failure >= delta
        low, high = (low, middle) if fits else (middle, high)
    return min(1.0, high * _UP)


def posterior_error(error_at: Callable[[float], float], failure: float) -> float:
    """How far answers may be from what the transcript makes of the rows, if they are close to the rows themselves.

    Statement:
        Let Z be the largest error of the answers on the rows, and P[Z > error_at(b)] <= b for every b. Given the
        transcript, every answer a has |a - q(Q)| <= E[Z | transcript], with Q as in `posterior_shift`. For every y,
            P[E[Z | transcript] > y + G(y) / failure] <= failure,   G(y) = E[(Z - y)^+].
        Proof: |a - q(Q)| = |E[a - q(S) | transcript]| <= E[Z | transcript], for answers are part of the transcript.
        (E[Z | transcript] - y)^+ has mean at most G(y) (Jensen), and Markov's inequality does the rest.
        G is bounded by a sum: between error_at(b) and error_at(b / 2) the tail is at most b; beyond the last step it
        is at most the last b, for errors do not exceed 1. The best y among the steps is taken.
    Source: after arXiv:1909.03577 (see `posterior_shift`), where P[Z > y] / c with c for the whole step is used.
    Assumes: errors in [0, 1]; 0 < failure < 1.
    Direction: upward.
    Checked by: tests/theorems/test_holdout_generalises.py

    >>> round(posterior_error(lambda b: 0.01 * math.log(1 / b), 0.05), 4)  # close to error_at(0.05 / e) = 0.04
    0.0438
    """
    tails = [failure / 2**step for step in range(30)]
    ends = [min(1.0, error_at(tail)) for tail in tails]
    best, rest = 1.0, tails[-1]
    for step in range(len(tails) - 1, -1, -1):
        if step + 1 < len(tails):
            rest += tails[step] * (ends[step + 1] - ends[step])
        best = min(best, ends[step] + rest / failure)
    return min(1.0, best * _UP)


_WHY = {
    "descriptions": "so few corrections reveal too little about the rows to fit a question to them",
    "privacy": "private answers cannot overfit the rows they were computed from",
}


@dataclass(frozen=True)
class HoldoutGuarantee:
    """All answers of a session at once, with `confidence`: how far they may be from the population's means.

    `error_free` holds for training means that were let through, `error_paid` for corrected ones. The holdout rows must
    be independent draws from the population, and nobody may have used them before.

    Attributes:
        route: Which of the two theorems of `farthing.adaptive.holdout.population_guarantee` gives the smaller errors.
        confidence: The probability that all errors hold at once.
        rows: How many holdout rows there are.
        queries: How many questions the errors hold for.
        corrections: How many answers may come from the holdout.
        threshold: How far the two means may be apart.
        free_on_rows: How far a free answer may be from the mean of the holdout rows.
        paid_on_rows: How far a corrected answer may be from it.
        sampling: How far the mean of the holdout rows may be from the population's.

    >>> from farthing.adaptive.holdout import Holdout
    >>> print(Holdout.plan(rows=10_000, epsilon=1.0, queries=1_000, corrections=5).guarantee)
    With confidence 0.95, all of up to 1,000 adaptive answers are this close to the population's means:
      training means accepted   within 0.119  (threshold 0.0549 + comparison 0.0108 + sampling 0.0531)
      corrected answers (up to 5)  within 0.067  (noise and rounding 0.0139 + sampling 0.0531)
    It holds for 10,000 independent holdout rows:
    so few corrections reveal too little about the rows to fit a question to them.
    """

    route: Literal["descriptions", "privacy"]
    confidence: float
    rows: int
    queries: int
    corrections: int
    threshold: float
    free_on_rows: float
    paid_on_rows: float
    sampling: float

    @property
    def error_free(self) -> float:
        """The distance of a training mean that was let through from the population's mean."""
        return min(1.0, self.free_on_rows + self.sampling)

    @property
    def error_paid(self) -> float:
        """The distance of a corrected answer from the population's mean."""
        return min(1.0, self.paid_on_rows + self.sampling)

    def __str__(self) -> str:
        comparison = self.free_on_rows - self.threshold
        free = f"(threshold {self.threshold:.3g} + comparison {comparison:.3g} + sampling {self.sampling:.3g})"
        paid = f"(noise and rounding {self.paid_on_rows:.3g} + sampling {self.sampling:.3g})"
        corrected = f"corrected answers (up to {self.corrections:,})"
        width = max(len(corrected), len("training means accepted"))
        return (
            f"With confidence {self.confidence:g}, all of up to {self.queries:,} adaptive answers are this close to "
            "the population's means:\n"
            f"  {'training means accepted':<{width}}  within {self.error_free:.3g}  {free}\n"
            f"  {corrected:<{width}}  within {self.error_paid:.3g}  {paid}\n"
            f"It holds for {self.rows:,} independent holdout rows:\n{_WHY[self.route]}."
        )

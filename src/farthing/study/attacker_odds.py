"""What a release can do to somebody's belief that a person is in the table: a bound on the belief afterwards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal

from farthing.errors import InvalidValue
from farthing.numerics.bounds import number_text, rounded_up_text
from farthing.privacy.events import checked_delta, checked_epsilon, checked_real

PRIORS = (0.01, 0.1, 0.5, 0.9)
MOST_ODDS = 1e6  # larger ones are said in words
LARGEST_DELTA = 0.1  # that anything can be planned with
_WEAK_EPSILON, _WEAK_DELTA = 10.0, 1e-4  # above these a budget is worth a word
_RARE, _COMMON = 1e-12, 0.01  # chances that are said as "1 in so many"
_UP = 1 + 2.0**-48  # more than the rounding of the few operations below


def posterior_upper(prior: float, epsilon: float, delta: float = 0.0) -> float:
    """The most that somebody who held a person to be in the table with probability `prior` can hold it afterwards.

    Statement:
        Of an (epsilon, delta)-DP release, on average over its randomness if the person is in the table,
            posterior <= delta + (1 - delta) r,    r = prior e^epsilon / (prior e^epsilon + 1 - prior),
        whatever else is known; and with probability 1 - delta it reveals no more than something after which the
        posterior is at most r. With delta = 0 it is at most r always.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Section 3: for two neighbours every (epsilon, delta)-DP
        release is a function of one signal, which with probability delta names the table and otherwise takes one of two
        values whose likelihoods differ by a factor e^epsilon. Bayes' rule for that signal gives r; what is computed
        from it is less informative, and the average of a posterior, given the truth, grows with information.
    Assumes: the alternative is the same table without the person (neighbours that add or remove one unit), or with
        somebody else in their place.
    Direction: rounded up; nobody can be surer than this.
    Checked by: tests/unit/study/test_attacker_odds.py

    >>> round(posterior_upper(0.5, 1.0), 4), posterior_upper(0.5, 0.0), posterior_upper(0.5, float("inf"))
    (0.7311, 0.5, 1.0)
    """
    belief = checked_real(prior, "prior")
    if not 0 <= belief <= 1:
        raise InvalidValue("prior", prior, "must be a probability, from 0 to 1")
    leak = checked_delta(delta)
    grown = _grown(belief, math.inf if epsilon == math.inf else checked_epsilon(epsilon))
    if leak == 0 and grown == belief:
        return belief
    return min(1.0, (leak + (1 - leak) * grown) * _UP) if belief > 0 else 0.0


def _grown(prior: float, epsilon: float) -> float:
    if prior in (0.0, 1.0) or epsilon == 0:
        return prior
    # With e^-epsilon nothing overflows.
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def odds_sentence(epsilon: float, delta: float = 0.0, *, after: str = "this release") -> str:
    """The bound for somebody who had no idea, in words, once they have seen what `after` names; rounded up.

    >>> print(odds_sentence(1.0))
    Somebody who thought it 1 in 2 that a person is in the table can be at most 73.2% sure after this release.
    >>> print(odds_sentence(0.1, 1e-6))  # doctest: +NORMALIZE_WHITESPACE
    Somebody who thought it 1 in 2 that a person is in the table can be at most 52.5% sure after this release, except
    with a chance of at most 1 in 1,000,000 (delta).
    """
    thought = "Somebody who thought it 1 in 2 that a person is in the table"
    text = f"{thought} can be at most {_percent(0.5, epsilon, delta)}% sure after {after}"
    return f"{text}, except with a chance of at most {chance_words(delta)} (delta)." if delta > 0 else f"{text}."


def _percent(prior: float, epsilon: float, delta: float = 0.0) -> str:
    """How sure somebody can be afterwards, in percent, rounded up."""
    bound = posterior_upper(prior, epsilon, delta)
    return f"{min(100.0, math.ceil(bound * 1000 * (1 - 1e-12)) / 10):g}"


def budget_cautions(epsilon: float | None, delta: float | None, rows: int | None = None) -> list[str]:
    """What somebody should know who sets or spends a budget that protects little; `rows` where their number is known.

    Delta is compared with 1 in 10,000 too, whether it is known or not.

    >>> budget_cautions(1.0, 1e-6), budget_cautions(None, None), budget_cautions(10.0, 1e-5, rows=50_000)
    ([], [], [])
    >>> for caution in budget_cautions(100.0, 0.01):
    ...     print(caution)  # doctest: +NORMALIZE_WHITESPACE
    Epsilon 100 protects almost nobody: odds can grow by a factor of more than a million. Somebody who thought it 1 in
    1,000 that a person is in the table can be up to 100% sure afterwards. Most budgets are 1 to 5.
    Delta 0.01 is large: a release may reveal everything about 1 in 100 of the people. Use less than 1 in the number of
    people, such as 1e-6.
    >>> print(budget_cautions(1.0, 1e-5, rows=200_000)[0])  # doctest: +NORMALIZE_WHITESPACE
    Delta 1e-05 is more than 1 in 200,000, the number of rows: a release may reveal everything about 1 in 100,000 of the
    people. Use less than 1 in the number of people, such as 1e-6.
    """
    cautions = []
    if epsilon is not None and epsilon > _WEAK_EPSILON:
        sure = _percent(0.001, epsilon)
        cautions.append(
            f"Epsilon {epsilon:g} protects almost nobody: odds can grow by a factor of {factor_words(epsilon)}. "
            f"Somebody who thought it 1 in 1,000 that a person is in the table can be up to {sure}% sure "
            "afterwards. Most budgets are 1 to 5."
        )
    share = 1.0 if not rows else 1 / rows
    if delta is not None and delta > min(_WEAK_DELTA, share):
        size = f"more than 1 in {rows:,}, the number of rows" if delta > share else "large"
        less = "1e-6" if share > 1e-6 else f"{share / 10:.0e}"
        cautions.append(
            f"Delta {delta:g} is {size}: a release may reveal everything about {chance_words(delta)} of the people. "
            f"Use less than 1 in the number of people, such as {less}."
        )
    return cautions


def factor_words(epsilon: float) -> str:
    """e^epsilon for people, never understated: beyond a million the number itself says no more.

    >>> factor_words(1.0), factor_words(10.0), factor_words(14.0), factor_words(float("inf"))
    ('up to 2.72', 'up to 22,100', 'more than a million', 'more than a million')
    """
    factor = factor_of(epsilon)
    return "more than a million" if factor > MOST_ODDS else f"up to {number_text(float(rounded_up_text(factor, 3)))}"


def chance_words(chance: float) -> str:
    """A small chance as people say it, never understated.

    >>> chance_words(1e-6), chance_words(3e-5), chance_words(0.3), chance_words(1e-30)
    ('1 in 1,000,000', '1 in 33,300', '0.3', '1e-30')
    """
    if not _RARE <= chance <= _COMMON:
        return f"{chance:g}"
    # Fewer than there are: "1 in 33,300" is a little more than 3e-5. The decimal that was typed, not its double.
    some = Context(prec=3, rounding=ROUND_FLOOR).divide(Decimal(1), Decimal(repr(chance)))
    return f"1 in {int(some):,}"


def factor_of(epsilon: float) -> float:
    """e^epsilon, by which odds can grow; infinite where it is too large for a double.

    >>> round(factor_of(1.0), 3), factor_of(800.0)
    (2.718, inf)
    """
    return math.exp(epsilon) if epsilon < 709 else math.inf


@dataclass(frozen=True)
class Risk:
    """Epsilon in words.

    >>> risk = Risk(1.0, 1e-9)
    >>> risk.odds
    'If the odds that you are in the table were 1 to 1 before, they are at most 2.72 to 1 after.'
    """

    epsilon: float
    delta: float

    @property
    def odds(self) -> str:
        """The testing view: how far the odds about one person can move."""
        before, factor = (
            "If the odds that you are in the table were 1 to 1 before, they",
            factor_of(self.epsilon),
        )
        if factor > MOST_ODDS:
            return f"{before} can be more than a million to one after: somebody can be all but certain."
        return f"{before} are at most {number_text(factor)} to 1 after."

    @property
    def chances(self) -> str:
        """The same as natural frequencies."""
        before, after = 50, 100 * _share(self.epsilon)
        return (
            f"A guess by coin flip whether you are in the table is right {before} times in 100; with this release a "
            f"guess is right at most {math.ceil(after)} times in 100."
        )

    @property
    def bayesian(self) -> str:
        """The posterior of any attacker, compared with the same release without the person."""
        most = factor_of(2 * self.epsilon)
        span = f"{number_text(1 / most)} to {number_text(most)}"
        if most > MOST_ODDS:
            span = "less than one in a million to more than a million"
        return (
            "Whatever somebody believed before, what they believe about you after this release is within a factor "
            f"e^(±2 epsilon), that is {span}, of what they would believe without your rows."
        )

    @property
    def economic(self) -> str:
        """The expected harm to one person, in words."""
        factor = factor_of(self.epsilon)
        most = f"is at most e^epsilon = {number_text(factor)}" if factor <= MOST_ODDS else "can be more than a million"
        return (
            f"Whatever may come of the release for you (an offer, a premium, a rumour), its expected harm {most} times "
            "what it would be without your rows."
        )

    @property
    def exception(self) -> str:
        """What delta leaves open, in words."""
        if not self.delta > 0:
            return "There is no exception: delta is 0."
        return f"All of this may fail with a probability of about {self.delta:g} (delta)."

    @property
    def sentences(self) -> tuple[str, ...]:
        """All readings of the risk, in order."""
        return self.odds, self.chances, self.bayesian, self.economic, self.exception


def _share(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))

"""What epsilon means to somebody who is in the table, told as odds.

Readings of the definition; both hold for every attacker, whatever is known from elsewhere, except with probability
about delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.study.odds import MOST_ODDS, factor_of
from farthing.study.words import shown


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
        return f"{before} are at most {shown(factor)} to 1 after."

    @property
    def chances(self) -> str:
        """The same as natural frequencies."""
        before, after = 50, 100 * _share(self.epsilon)
        return (
            f"Of 100 people in your place about whom somebody guessed with a coin, {before} were guessed rightly. "
            f"With this release, at most {math.ceil(after)} are."
        )

    @property
    def bayesian(self) -> str:
        """The posterior of any attacker, compared with the same release without the person."""
        most = factor_of(2 * self.epsilon)
        span = f"{shown(1 / most)} to {shown(most)}"
        if most > MOST_ODDS:
            span = "less than one in a million to more than a million"
        return (
            "Whatever somebody believes, what they come to think of you after this release is within a factor "
            f"e^(±2 epsilon), that is {span}, of what they would have come to think had your rows not been there."
        )

    @property
    def economic(self) -> str:
        """The expected harm."""
        factor = factor_of(self.epsilon)
        most = (
            f"is at most e^epsilon = {shown(factor)}" if factor <= MOST_ODDS else "can be more than a million"
        )
        return (
            f"Whatever may come of the release for you (an offer, a premium, a rumour), its expected harm {most} times "
            "what it would be without your rows."
        )

    @property
    def exception(self) -> str:
        """What delta leaves open."""
        if not self.delta > 0:
            return "There is no exception: delta is 0."
        return f"All of this may fail with a probability of about {self.delta:g} (delta)."

    @property
    def sentences(self) -> tuple[str, ...]:
        """All readings in order."""
        return self.odds, self.chances, self.bayesian, self.economic, self.exception


def _share(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))

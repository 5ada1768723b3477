"""What epsilon means to somebody who is in the table, told as odds.

Readings of the definition; both hold for every attacker, whatever is known from elsewhere, except with probability
about delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        return (
            "If the odds that you are in the table were 1 to 1 before, they are at most "
            f"{shown(_factor(self.epsilon))} to 1 after."
        )

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
        least, most = shown(_factor(-2 * self.epsilon)), shown(_factor(2 * self.epsilon))
        return (
            "Whatever somebody believes, what they come to think of you after this release is within a factor "
            f"e^(±2 epsilon), that is {least} to {most}, of what they would have come to think had your rows not been "
            "there."
        )

    @property
    def economic(self) -> str:
        """The expected harm."""
        return (
            "Whatever may come of the release for you (an offer, a premium, a rumour), its expected harm is at most "
            f"e^epsilon = {shown(_factor(self.epsilon))} times what it would be without your rows."
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


def _factor(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _share(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))

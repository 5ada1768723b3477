"""Pure DP is concentrated DP."""

from __future__ import annotations

import flint

from farthing.accounting.theorems._rounding import rounded_up
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_epsilon


def zcdp_of_pure(epsilon: float) -> float:
    """The rho of zero-concentrated DP that every `epsilon`-DP mechanism has.

    Statement:
        An epsilon-DP mechanism is (epsilon^2 / 2)-zCDP; under adaptive composition the rho add.
    Source: Bun & Steinke, arXiv:1605.02065v1, Proposition 1.4 and Lemma 1.7.
    Assumes: nothing more.
    Direction: an upper bound, rounded up by at most one unit in the last place.
    Checked by: tests/theorems/test_zcdp_of_pure.py

    >>> zcdp_of_pure(0.5)
    0.125
    """
    with precision(128):
        return rounded_up(flint.arb(checked_epsilon(epsilon)) ** 2 / 2)

"""What a selection by exponential weights costs: less than any epsilon-DP mechanism may."""

from __future__ import annotations

from fractions import Fraction

from farthing.mechanisms.base import rounded_down
from farthing.privacy import Composed, Event, LaplaceNoise


def event_of_bounded_range(epsilon: Fraction, count: int = 1) -> Event:
    """The event of `count` adaptive releases, each epsilon-bounded-range: Laplace noise of the same epsilon.

    Statement:
        A mechanism is epsilon-bounded-range if for all neighbours the privacy loss takes values in some interval of
        length epsilon (as every exponential mechanism does: Z and Z' move all losses by one constant).
        Write E = e^epsilon.
        (1) Every test of neighbours with false alarm a misses with probability at least
                f(a) = (1 - a) / (1 + (E - 1) a),
            and no larger function holds for all epsilon-bounded-range mechanisms.
        (2) f lies above the trade-off function of Laplace noise with noise_multiplier 1 / epsilon. So that noise
            dominates the mechanism, in one release and in adaptive composition.
    Source: bounded range: Durfee & Rogers, arXiv:1905.04273; dominating pairs compose: Zhu, Dong & Wang,
        arXiv:2106.08567, Theorem 10. Proof of (1): with r = dP/dQ in [e^(t - epsilon), e^t] and E_Q[r] = 1, the
        hockey-stick E_Q[(r - c)+] is convex in r, so it is largest when r takes the two end values only. That pair has
        one corner, a = (E/u - 1) / (E - 1), b = (u - 1) / (E - 1) with u = e^t, which solves
        ((E - 1) a + 1) ((E - 1) b + 1) = E, that is b = f(a); f is convex, so it lies below the two chords to the
        corner. (f is the trade-off function of logistic noise.) Proof of (2): Laplace noise has 1 - E a for
        a <= 1/(2E), 1/(4 E a) up to a = 1/2, and the mirror image. (1 - E a)(1 + (E - 1) a) = 1 - a - E (E - 1) a^2
        <= 1 - a; and 4 E a (1 - a) - 1 - (E - 1) a is concave in a and equals (1 - 1/E)/2 >= 0 and (E - 1)/2 >= 0 at
        the two ends; f is its own mirror image.
    Assumes: epsilon > 0; the parameters of later releases do not depend on earlier answers.
    Direction: an upper bound: the multiplier is rounded down. Against randomized response of the same epsilon it is
        equal at delta = 0 and smaller elsewhere; logistic noise itself would be smaller still.
    Checked by: tests/theorems/test_bounded_range.py

    >>> event_of_bounded_range(Fraction(1, 2))
    LaplaceNoise(noise_multiplier=2.0)
    >>> event_of_bounded_range(Fraction(1, 2), 3)
    Composed(parts=((LaplaceNoise(noise_multiplier=2.0), 3),))
    """
    single = LaplaceNoise(rounded_down(1 / epsilon))
    return single if count == 1 else Composed(((single, count),))

"""The hockey-stick curve of one event, exactly: delta as a function of epsilon, for every real epsilon.

    H_epsilon(P || Q) = sup over sets S of P(S) - e^epsilon Q(S)

for the dominating pair of the event. Closed forms are evaluated in ball arithmetic, so both ends of each `Bounds` are
certain; discrete noises are sums of positive terms with a stated error.
"""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np

from farthing.accounting.engines.grid_events import loss_pair
from farthing.accounting.engines.grid_pairs import ARGUMENT_ERROR, Direction, LossPair
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.balls import down, precision, up
from farthing.privacy import ApproxDP, Event, GaussianNoise, LaplaceNoise, RandomizedResponse, Sampled
from farthing.privacy.events import checked_real

_BITS = (96, 256, 1024, 4096, 16384, 65536)
_CUT = 800.0  # -log of the mass at which discrete noises are cut


def hockey_stick_divergence(event: Event, epsilon: float, direction: Direction = "remove") -> Bounds:
    """The smallest delta at which one run of `event` is (epsilon, delta)-DP for neighbours in `direction`.

    Statement:
        Randomized response: max(0, 1 - e^x, (e^e - e^x) / (1 + e^e)); a leak d turns H into d + (1 - d) H.
        Laplace, e = 1 / noise_multiplier: 0 for x >= e, 1 - exp((x - e) / 2) for |x| <= e, 1 - e^x for x <= -e.
        Gaussian, m = 1 / noise_multiplier: Phi(m/2 - x/m) - e^x Phi(-m/2 - x/m).
        Discrete noises: the sum of P(k) (1 - e^(x - u(k))) over outcomes k of loss u(k) > x.
        Sampled with probability q, remove: 1 - e^x if e^x <= 1 - q, else q H_y with e^y = (e^x - (1 - q)) / q;
        add: 0 if e^x (1 - q) >= 1, else a H_y with a = 1 - e^x (1 - q) and e^y = q e^x / a.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.3 (k = 1); Balle & Wang, arXiv:1805.06530, Theorem 8;
        Zhu, Dong & Wang, arXiv:2106.08567, Theorem 11, with the supremum taken over S.
    Assumes: epsilon is any real number; units join or leave, one at a time.
    Direction: charge `upper`, at the worse of the two directions.
    Checked by: tests/unit/accounting/test_hockey_stick.py

    >>> hockey_stick_divergence(LaplaceNoise(1.0), 0.0).estimate
    0.39346934...
    >>> hockey_stick_divergence(Sampled(GaussianNoise(1.0), 0.5), 1.0, "add").upper < 0.02
    True
    """
    x = checked_real(epsilon, "epsilon")
    if not -math.inf < x < math.inf:
        raise InvalidValue("epsilon", epsilon, "must be a finite number")
    if direction not in ("remove", "add"):
        raise InvalidValue("direction", direction, "must be 'remove' or 'add'")
    if not isinstance(event, Sampled):
        return _base(event, x)
    q = event.probability
    with precision(256):
        e_x, chance = flint.arb(x).exp(), flint.arb(q)
        if direction == "remove":
            factor, e_y = chance, (e_x - 1 + chance)
        else:
            factor = 1 - e_x * (1 - chance)
            e_y = chance * chance * e_x / factor if not factor.contains(0) else factor
        if not q > 0 or not e_y > 0 or not factor > 0:
            # All of the mass (remove) or none of it (add); where a ball cannot tell, both agree up to its radius.
            flat = 1 - e_x if direction == "remove" else flint.arb(0)
            return Bounds(max(0.0, down(flat)), min(1.0, max(0.0, up(abs(flat) + abs(factor).max(0) * 0 + _doubt(e_y)))))
        y = (e_y / chance).log()
        low, high = _base(event.event, down(y)), _base(event.event, up(y))  # the curve falls
        return Bounds(max(0.0, down(factor) * high.lower), min(1.0, up(factor) * low.upper))

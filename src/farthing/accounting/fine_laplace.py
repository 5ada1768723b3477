"""Discrete Laplace noise whose sensitivity is many steps: a real Laplace law, between two that differ by a hair."""

from __future__ import annotations

import math
from fractions import Fraction

from farthing.accounting.charges import Charges
from farthing.privacy.events import DiscreteLaplaceNoise, Event, LaplaceNoise

_FEWEST_STEPS = 64
_WIDEST = Fraction(1, 10**10)  # what all of them together may add to epsilon


def enclosing_laplace(noise_multiplier: float, steps: int) -> tuple[LaplaceNoise, LaplaceNoise]:
    """Real Laplace noises that cost no more and no less than discrete Laplace noise.

    >>> less, more = enclosing_laplace(2.0, 1000)
    >>> less.noise_multiplier, more.noise_multiplier
    (2.0, 1.999999...)

    Statement:
        Let integer noise have mass proportional to r^|n|, r = exp(-a), and let one number move by s steps; put
        epsilon = a s. Its pair dominates real Laplace noise of that epsilon, and is dominated by real Laplace noise of
        epsilon + 2 ln cosh(a / 2), which is at most epsilon + a^2 / 4.
    Source: own derivation. At the loss epsilon - y, 0 <= y <= 2 epsilon, the real law has 1 - delta = exp(-y / 2). The
        discrete one has the same at y = 2 j a, and between these points its delta is linear in exp(-y):
        1 - delta = r^j (r + exp(-(y - 2 j a))) / (1 + r), which is smaller, because exp(-y / 2) is concave in exp(-y).
        Hence the first half. The ratio of the two is largest at y = (2 j + 1) a, where it is
        (1 + r) / (2 exp(-a / 2)) = cosh(a / 2); moving y by 2 ln cosh(a / 2) makes up for it. For losses below -epsilon
        the discrete delta is 1 - exp(loss), which is the least any pair has.
    Assumes: s >= 1 whole; one number, or a vector moved by s in l1, which one number dominates.
    Direction: the second multiplier is rounded down, with a^2 / 4 for 2 ln cosh(a / 2).
    Checked by: tests/theorems/test_fine_laplace.py
    """
    exact = Fraction(noise_multiplier)  # epsilon = 1 / multiplier, a = epsilon / steps
    more = exact / (1 + 1 / (4 * exact * steps**2))
    rounded = float(more)
    down = rounded if Fraction(rounded) <= more else math.nextafter(rounded, 0.0)
    return LaplaceNoise(noise_multiplier), LaplaceNoise(down)


def enclosed(charges: Charges) -> tuple[Charges, Charges] | None:
    """The charges with every fine discrete Laplace noise replaced, from below and from above; None without any.

    Only where all of them together widen epsilon by less than 1e-10: coarser ones are priced as they are.
    """
    fine = {
        event: count
        for event, count in charges.events.items()
        if isinstance(event, DiscreteLaplaceNoise) and event.l1_sensitivity >= _FEWEST_STEPS
    }
    while fine:
        widths = {event: count * _hair(event) for event, count in fine.items()}
        if sum(widths.values()) <= _WIDEST:
            break
        del fine[max(widths, key=widths.__getitem__)]
    if not fine:
        return None
    below, above = dict(charges.events), dict(charges.events)
    for event, count in fine.items():
        less, more = enclosing_laplace(event.noise_multiplier, event.l1_sensitivity)
        for events, noise in ((below, less), (above, more)):
            del events[event]
            _add(events, noise, count)
    return Charges(charges.chunks, below, charges.k), Charges(charges.chunks, above, charges.k)


def _hair(event: DiscreteLaplaceNoise) -> Fraction:
    return 1 / (4 * (Fraction(event.noise_multiplier) * event.l1_sensitivity) ** 2)


def _add(events: dict[Event, int], event: Event, count: int) -> None:
    events[event] = events.get(event, 0) + count

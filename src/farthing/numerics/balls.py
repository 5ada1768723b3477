"""Ball arithmetic (Arb, through python-flint) with safe ways in and out.

A ball holds a midpoint and a radius and every operation on it encloses the exact result. The working precision of
python-flint is global to the process, threads included, so it is only ever changed under one lock.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flint

_LOCK = threading.RLock()


def _renew_lock() -> None:
    """A forked process has one thread; a lock that another thread held at the fork would never be given back there."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at `bits` of precision, one thread at a time.

    >>> with precision(200):
    ...     x = flint.arb(2).sqrt()
    >>> x.rad() < 1e-50
    True
    """
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def down(ball: Any) -> float:
    """A double at or below everything in the ball; -inf when the ball says nothing.

    >>> down(flint.arb(1) / 3) <= 1 / 3
    True
    """
    if not ball.is_finite():
        return -math.inf
    # float() of a ball's end may round either way: one step further is on the safe side of both.
    return math.nextafter(float(ball.lower()), -math.inf)


def up(ball: Any) -> float:
    """A double at or above everything in the ball; inf when the ball says nothing.

    >>> up(flint.arb(1) / 3) >= 1 / 3
    True
    """
    if not ball.is_finite():
        return math.inf
    return math.nextafter(float(ball.upper()), math.inf)


def around(value: float, error: float) -> Any:
    """The ball of radius `error` around `value`."""
    return flint.arb(value, error)

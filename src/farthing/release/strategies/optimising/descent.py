"""L-BFGS-B on weights that stay between 0 and a ceiling, which gives back the best point it has seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from farthing.release.strategies.base import Floats

Objective = Callable[[Floats], tuple[float, Floats]]
Progress = Callable[[float], None]
"""Told the fraction of the work that is done, from 0 to 1."""

CEILING = 100.0
"""No weight of a sum grows beyond this multiple of its cells' own: A'A must stay far from singular."""

_MEMORY = 10
_TOLERANCE = 1e-7


class _OutOfTime(Exception):
    """Leaves the minimiser when its time is up; never seen outside."""


def descended(
    objective: Objective,
    start: Floats,
    *,
    steps: int,
    until: float,
    told: Progress = lambda fraction: None,
) -> tuple[float, Floats]:
    """The least value found in at most `steps` iterations or until the monotonic clock says `until`, and where.

    Never worse than the start. A value that is not a finite number above 0 counts as infinitely bad.

    >>> value, place = descended(
    ...     lambda x: (1.0 + float(np.sum((x - 2.0) ** 2)), 2 * (x - 2.0)), np.array([0.5]), steps=9, until=1e300
    ... )
    >>> place.round(6)
    array([2.])
    """
    from scipy.optimize import Bounds, minimize

    unit = objective(start)[0]
    if not (np.isfinite(unit) and unit > 0):
        return np.inf, start
    least, place, done = unit, start, 0

    def scaled(weights: Floats) -> tuple[float, Floats]:
        nonlocal least, place
        value, gradient = objective(weights)
        if not (np.isfinite(value) and value > 0 and np.all(np.isfinite(gradient))):
            return 1e300, np.zeros_like(weights)
        if value < least:
            least, place = value, weights.copy()
        if time.monotonic() > until:
            raise _OutOfTime
        return value / unit, gradient / unit

    def stepped(_: Floats) -> None:
        nonlocal done
        done += 1
        told(min(1.0, done / steps))

    # Out of time, or out of luck: the best point so far stands.
    with suppress(_OutOfTime, np.linalg.LinAlgError):
        minimize(
            scaled,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(np.zeros_like(start), np.full_like(start, CEILING)),
            callback=stepped,
            options={
                "maxiter": steps,
                "maxfun": 3 * steps + 20,
                "maxcor": _MEMORY,
                "ftol": _TOLERANCE,
                "gtol": 0.0,
            },
        )
    return least, place

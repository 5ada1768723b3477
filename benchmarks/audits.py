"""Peers under audit: Laplace noise in doubles has to be caught, OpenDP's and ours have to stand."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.targets import Target

SAMPLES = 20_000
CONFIDENCE = 0.999


def audit_targets(say: Callable[[str], None]) -> list[Target]:
    """One row for each peer that is installed: epsilon = 1 is claimed for a count that moves by 1."""
    rows = []
    for name, make, caught in (
        ("diffprivlib's Laplace", _diffprivlib, True),
        ("OpenDP's Laplace on floats", _opendp, False),
        ("farthing's discrete Laplace", _farthing, False),
    ):
        say(f"audit of {name}")
        rows.append(_row(name, make, caught))
    return rows


def _row(name: str, make: Callable[[], Callable[[float], Any]], caught: bool) -> Target:
    from farthing import audit

    promise = "contradicted" if caught else "not contradicted"
    what = f"audit of {name}, epsilon = 1, {SAMPLES:,} samples"
    try:
        mechanism = make()
    except ImportError:
        return Target(what, promise, "not installed", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit(mechanism, 1.0, (0.0, 1.0), samples=SAMPLES, confidence=CONFIDENCE, progress=False)
    event = f" ({report.event})" if report.violation else ""
    return Target(
        what,
        promise,
        f"epsilon >= {report.epsilon_lower:.2f}{event}, {report.seconds:.1f} s",
        report.violation == caught,
    )


def _diffprivlib() -> Callable[[float], Any]:
    # Its models need an older scikit-learn than is usual, and are imported with everything else: leave them out.
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    from diffprivlib.mechanisms import Laplace

    mechanism = Laplace(epsilon=1.0, sensitivity=1.0)

    def release(value: float) -> Any:
        return mechanism.randomise(value)

    return release


def _opendp() -> Callable[[float], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measurement = dp.m.make_laplace(*space, scale=1.0)

    def release(value: float) -> Any:
        return measurement(value)

    return release


def _farthing() -> Callable[[float], Any]:
    from farthing.mechanisms import DiscreteLaplace

    return DiscreteLaplace(epsilon=1.0, l1_sensitivity=1.0, grid=2.0**-20).release

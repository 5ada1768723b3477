"""An audit in the testing view: the error rates that were reached, against the region that was claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from farthing.accounting.region_boundaries import intersection
from farthing.plots._style import BLUE, VERMILLION, altair, data_of, finished
from farthing.plots.region_charts import _blind_guesses, _probability_axis, _tooltips

_NAMES = ("claimed: no test gets below", "estimated from the audit", "its bound, at the chosen confidence")


class Audited(Protocol):
    """What the picture needs of an audit's report."""

    @property
    def region(self) -> Sequence[tuple[float, float]]:
        """Estimated (false alarm, missed detection) of a family of tests."""

    @property
    def bound(self) -> tuple[float, float]:
        """Upper bounds of both rates for the chosen test."""

    @property
    def claimed_points(self) -> Sequence[tuple[float, float]]:
        """(epsilon, delta) pairs that are claimed."""

    @property
    def claim(self) -> str:
        """The claim, as a person would state it."""

    @property
    def violation(self) -> bool:
        """Whether the bound contradicts the claim."""

    @property
    def confidence(self) -> float:
        """With which the bound holds."""


def audit_region(report: Audited) -> Any:
    """The tests of an audit as points (false alarm, missed detection), and the boundary that was claimed.

    A bound below the boundary contradicts the claim. The points are estimates; they scatter around the boundary when
    the claim is true and tight.

    Args:
        report: What `farthing.audit` returned.

    Returns:
        An Altair chart.

    >>> from farthing import audit
    >>> chart = audit_region(audit(lambda bit: bit, 1.0, (0, 1), samples=2_000))
    >>> "contradicted" in chart.to_dict()["title"]["text"]
    True
    """
    alt = altair()
    grid = np.concatenate([np.linspace(0.0, 0.2, 81), np.linspace(0.21, 1.0, 80)])
    boundary = intersection(report.claimed_points, grid)
    rows = [{"what": _NAMES[0], "P_FA": float(a), "P_MD": float(b)} for a, b in zip(grid, boundary, strict=True)]
    tests = [{"what": _NAMES[1], "P_FA": a, "P_MD": b} for a, b in report.region]
    bound = [{"what": _NAMES[2], "P_FA": report.bound[0], "P_MD": report.bound[1]}]
    colours = alt.Scale(domain=list(_NAMES), range=["#000000", BLUE, VERMILLION])
    encodings = {
        "x": _probability_axis("P_FA", "probability of false alarm, P_FA"),
        "y": _probability_axis("P_MD", "probability of missed detection, P_MD"),
        "color": alt.Color("what:N", title=None, sort=list(_NAMES), scale=colours),
        "tooltip": _tooltips("what", "P_FA", "P_MD"),
    }
    layers = [
        _blind_guesses(),
        alt.Chart(data_of(rows)).mark_line(strokeWidth=2.2).encode(**encodings),
        alt.Chart(data_of(tests)).mark_circle(size=28, opacity=0.8).encode(**encodings),
        alt.Chart(data_of(bound)).mark_point(shape="cross", size=160, filled=True).encode(**encodings),
    ]
    title = (
        "The claim is contradicted: a test does better than it allows"
        if report.violation
        else "No test that was tried does better than the claim allows"
    )
    return finished(
        alt.layer(*layers).properties(width=420, height=420),
        title,
        [
            f"Claim: {report.claim}. Confidence of the bound: {report.confidence:g}.",
            "The grey diagonal is blind guessing; the origin is an attacker who is never wrong.",
        ],
    )

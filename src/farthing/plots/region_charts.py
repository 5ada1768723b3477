"""The testing view in pictures: which error rates an attacker can reach.

An attacker who sees the answers guesses which of two neighbouring tables was used. False alarm and missed detection are
the two ways to be wrong. A guarantee keeps every test inside a region of pairs (P_FA, P_MD) around the blind guesses
P_FA + P_MD = 1; the closer the region comes to the origin, the more can be learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accounting import compose
from farthing.accounting.region_boundaries import GRID, lower_boundaries
from farthing.plots._style import BLUE, THEOREM_LABELS, Row, altair, data_of, finished, theorem_encoding
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

if TYPE_CHECKING:
    from farthing.accounting import Composition, Region


def tradeoff_curve(composition: Composition) -> Any:
    """The least missed-detection rate of any test, against its false-alarm rate.

    Args:
        composition: What `farthing.compose` returned.

    Returns:
        An Altair chart.

    >>> from farthing import compose
    >>> points = tradeoff_curve(compose([0.5, 0.5])).to_dict()["data"]["values"]
    >>> all(point["beta"] <= 1 - point["alpha"] for point in points)
    True
    """
    curve = composition.tradeoff()
    rows = [
        {"alpha": float(alpha), "beta": float(beta), "blind": 1 - float(alpha)}
        for alpha, beta in zip(curve.alpha, curve.beta, strict=True)
    ]
    alt = altair()
    unit = alt.Scale(domain=[0, 1])
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("alpha:Q", title="probability of false alarm, alpha", scale=unit, axis=alt.Axis(tickCount=5))
    )
    area = base.mark_area(color=BLUE, opacity=0.12).encode(
        y=alt.Y(
            "beta:Q",
            title="least probability of missed detection, f(alpha)",
            scale=unit,
            axis=alt.Axis(tickCount=5),
        ),
        y2="blind:Q",
    )
    line = base.mark_line(color=BLUE, strokeWidth=2.2).encode(
        y="beta:Q",
        tooltip=[alt.Tooltip("alpha:Q", format=".4g"), alt.Tooltip("beta:Q", format=".4g")],
    )
    blind = base.mark_line(color="#b5b5b5", strokeWidth=1).encode(y="blind:Q")
    counted = "1 mechanism" if composition.k == 1 else f"{composition.k:,} mechanisms"
    return finished(
        (area + line + blind).properties(width=420, height=420),
        "No test of one person's presence gets below this curve",
        [
            f"{counted} composed; the grey diagonal is blind guessing.",
            "The thinner the band between them, the more privacy.",
        ],
    )


# Viridis, dark end: even steps of lightness.
_SHADES = (
    "#35a779",
    "#1f7f8c",
    "#31588e",
    "#463083",
    "#38004a",
)


def privacy_regions(epsilon: float = 0.4, delta: float = 0.1, ks: Sequence[int] = (1, 2, 3, 4, 5)) -> Any:
    """The regions of k-fold compositions of an (epsilon, delta)-DP mechanism, one inside the other.

    After Kairouz, Oh & Viswanath (arXiv:1311.0776v4), figure 1 and Theorem 3.3: regions of optimal compositions.

    Args:
        epsilon: The epsilon of each mechanism.
        delta: The delta of each mechanism.
        ks: The numbers of mechanisms.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> chart = privacy_regions(0.4, 0.1, ks=(1, 2))
    >>> sorted({row["region"] for row in chart.to_dict()["layer"][1]["data"]["values"]})
    ['k = 1', 'k = 2']
    """
    epsilon, delta = checked_epsilon(epsilon), checked_delta(delta)
    folds = sorted({checked_count(k, "k") for k in ks})
    regions = {f"k = {k}": compose([epsilon], deltas=[delta], counts=[k]).region() for k in folds}
    return _nested_polygons(
        regions,
        "mechanisms composed",
        "Each further mechanism lets an attacker come closer to certainty",
        [
            f"Regions that k mechanisms of ({epsilon:g}, {delta:g})-DP guarantee together (optimal composition).",
            "The grey diagonal is blind guessing; the origin is an attacker who is never wrong.",
        ],
    )


def region_polygons(regions: Mapping[str, Region]) -> Any:
    """Any regions in one picture: those of guarantees, compositions or pairs of distributions.

    Args:
        regions: Names and regions.

    Returns:
        An Altair chart.

    >>> from farthing.accounting import Region
    >>> chart = region_polygons({"coin": Region([(0.25, 0.25)]), "nothing": Region()})
    >>> {row["region"] for row in chart.to_dict()["layer"][1]["data"]["values"]} == {"coin", "nothing"}
    True
    """
    return _nested_polygons(
        dict(regions),
        "region",
        "A region inside another one is better privacy",
        [
            "Error rates that tests can reach.",
            "The grey diagonal is blind guessing; the origin is an attacker who is never wrong.",
        ],
    )


def _nested_polygons(regions: dict[str, Region], legend: str, claim: str, explanation: list[str]) -> Any:
    rows = [row for name, region in regions.items() for row in _polygon_rows(name, region)]
    alt = altair()
    names = list(regions)
    shades = [_SHADES[round(place * (len(_SHADES) - 1) / max(1, len(names) - 1))] for place in range(len(names))]
    scale = alt.Scale(domain=names, range=shades)
    polygons = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=1.8, fillOpacity=0.07, strokeJoin="round")
        .encode(
            x=_probability_axis("P_FA", "probability of false alarm, P_FA"),
            y=_probability_axis("P_MD", "probability of missed detection, P_MD"),
            order=alt.Order("place:Q"),
            # Stroke and fill of one field share one legend; the innermost region comes first in it.
            stroke=alt.Stroke("region:N", scale=scale, sort=names, title=legend),
            fill=alt.Fill("region:N", scale=scale, sort=names, title=legend),
            tooltip=_tooltips("region", "P_FA", "P_MD"),
        )
    )
    return finished((_blind_guesses() + polygons).properties(width=420, height=420), claim, explanation)


def compare_regions(epsilon: float = 0.1, delta: float = 0.001, k: int = 30) -> Any:
    """What four theorems say about the same k mechanisms: the lower boundary each of them proves.

    After Kairouz, Oh & Viswanath (arXiv:1311.0776v4), figure 2. A closed form holds for every delta' at once, so
    its region is the intersection over all of them.

    Args:
        epsilon: The epsilon of each mechanism.
        delta: The delta of each mechanism.
        k: How many mechanisms there are.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> chart = compare_regions(0.1, 0.001, k=3)
    >>> sorted({row["theorem"] for row in chart.to_dict()["layer"][1]["data"]["values"]})
    ['DRV', 'KOV bound', 'basic', 'optimal']
    """
    epsilon, delta, k = checked_epsilon(epsilon), checked_delta(delta), checked_count(k, "k")
    rows = boundary_rows(epsilon, delta, k)
    alt = altair()
    curves = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2.2)
        .encode(
            x=_probability_axis("P_FA", "probability of false alarm, P_FA"),
            y=_probability_axis("P_MD", "probability of missed detection, P_MD"),
            order=alt.Order("place:Q"),
            tooltip=_tooltips("theorem", "P_FA", "P_MD"),
            **theorem_encoding("lower boundary by"),
        )
    )
    return finished(
        (_blind_guesses() + curves).properties(width=420, height=420),
        "The optimum rules out far more attacks than the older theorems do",
        [
            f"{k} mechanisms of ({epsilon:g}, {delta:g})-DP: no test gets below the curve.",
            "The optimum is the highest curve that is true; the grey diagonal is blind guessing.",
        ],
    )


def boundary_rows(epsilon: float, delta: float, k: int) -> list[Row]:
    """The lower boundaries of `compare_regions` as data.

    >>> rows = boundary_rows(0.1, 0.001, 3)
    >>> {row["theorem"]: round(row["P_MD"], 6) for row in rows if row["P_FA"] == 0}
    {'basic': 0.997, 'DRV': 0.997, 'KOV bound': 0.997003, 'optimal': 0.997003}
    """
    return [
        {"theorem": THEOREM_LABELS[key], "P_FA": float(alpha), "P_MD": float(beta), "place": place}
        for key, curve in lower_boundaries(epsilon, delta, k).items()
        for place, (alpha, beta) in enumerate(zip(GRID, curve, strict=True))
    ]


def _polygon_rows(name: str, region: Region) -> list[Row]:
    closed = np.concatenate([region.vertices, region.vertices[:1]])
    return [
        {"region": name, "P_FA": float(alpha), "P_MD": float(beta), "place": place}
        for place, (alpha, beta) in enumerate(closed)
    ]


def _blind_guesses() -> Any:
    alt = altair()
    ends = [{"P_FA": 0.0, "P_MD": 1.0}, {"P_FA": 1.0, "P_MD": 0.0}]
    return alt.Chart(data_of(ends)).mark_line(color="#b5b5b5", strokeWidth=1).encode(x="P_FA:Q", y="P_MD:Q")


def _probability_axis(field: str, title: str) -> Any:
    alt = altair()
    channel = alt.X if field == "P_FA" else alt.Y
    return channel(f"{field}:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))


def _tooltips(name: str, *fields: str) -> list[Any]:
    alt = altair()
    return [alt.Tooltip(f"{name}:N"), *(alt.Tooltip(f"{field}:Q", format=".4g") for field in fields)]

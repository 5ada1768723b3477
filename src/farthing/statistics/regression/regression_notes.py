"""What a released line says in words where its intervals are unbounded: which coefficients, why, and what helps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference.answers import plain
from farthing.statistics.measurements import Noise
from farthing.statistics.regression.normal_equations import NormalEquations

Floats = NDArray[np.float64]
_NORMAL = 1.96
_RARE_COUNT = 3.0  # standard errors of a noisy count up to which it may be of nobody


def rare_categories(equations: NormalEquations, gram: Floats, noises: Mapping[str, Noise]) -> list[str]:
    """Categories that hardly any row has: their noisy counts, which the equations hold, are within their noise.

    A flag u is -1 or 1, so of N rows (N + sum of u) / 2 have its category, and the first category has the rest.
    """
    variances = {
        entry.place: entry.slot.variance(noises[entry.slot.name]) * entry.slot.step**2 for entry in equations.entries
    }
    total, rare = variances[0, 0], []

    def look(name: str, count: float, variance: float) -> None:
        error = _NORMAL * math.sqrt(variance)
        if count <= _RARE_COUNT * math.sqrt(variance):
            rare.append(f"{name} ({plain(max(count, 0.0), 0)} ± {plain(error, 0)} counted)")

    flags = [(k, one) for k, one in enumerate(equations.features, start=1) if one.flag]
    for column in dict.fromkeys(one.column for _, one in flags):
        own = [(k, one) for k, one in flags if one.column == column]
        sums = sum(gram[0, k] for k, _ in own)
        share = 1 - len(own) / 2  # the first: N less all the others
        rest = share**2 * total + sum(variances[0, k] for k, _ in own) / 4
        first = own[0][1].compared if own[0][1].category is not None else "false"
        look(f"{column} = {first}", share * gram[0, 0] - sums / 2, rest)
        for k, one in own:
            name = one.label if one.category is not None else f"{column} = true"
            look(name, (gram[0, 0] + gram[0, k]) / 2, (total + variances[0, k]) / 4)
    return rare


def endless_note(endless: NDArray[np.bool_], labels: Sequence[Any], rare: Sequence[Sequence[str]] = ()) -> str:
    """Which coefficients have an endless interval, and what would help; `rare` has the rare categories of groups."""
    if not endless.any():
        return ""
    named = [
        ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        for label, one in zip(labels, endless, strict=True)
        if one
    ]
    few = f"{', '.join(named[:4])} and {len(named) - 4} more" if len(named) > 5 else " and ".join(named)
    blamed = _blamed(endless, labels, rare)
    if blamed:
        return (
            f"the interval is unbounded for {few}: hardly any row has {blamed}; leave that category (or column) out, "
            "or merge it with another"
        )
    return (
        f"the interval is unbounded for {few}: compared with the noise, the rows vary too little; "
        "more epsilon, tighter bounds, fewer features or more rows would help"
    )


def _blamed(endless: NDArray[np.bool_], labels: Sequence[Any], rare: Sequence[Sequence[str]]) -> str:
    """The rare categories of groups with an endless interval, each with its group where there are several."""
    size, names = len(labels) // max(1, len(rare)), []
    for group, own in enumerate(rare):
        if endless[group * size : (group + 1) * size].any():
            label = labels[group * size]
            whose = f" for {', '.join(map(str, label[:-1]))}" if len(rare) > 1 and own else ""
            names += [f"{name}{whose}" for name in own]
    return " or ".join([*names[:3], f"{len(names) - 3} more"] if len(names) > 4 else names)

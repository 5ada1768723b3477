"""The public surface. A name is public because it stands here; adding or removing one is a decision."""

from __future__ import annotations

PUBLIC: dict[str, list[str]] = {
    "farthing": [
        "Bounds",
        "Composition",
        "compose",
    ],
    "farthing.privacy": [
        "ApproxDP",
        "DiscreteGaussianNoise",
        "DiscreteLaplaceNoise",
        "Event",
        "GaussianNoise",
        "LaplaceNoise",
        "RandomizedResponse",
        "Sampled",
    ],
    "farthing.accounting": [
        "Composition",
        "compose",
    ],
    "farthing.accounting.theorems": [],
    "farthing.accounting.filters": [],
    "farthing.plots": [],
    "farthing.numerics": [
        "Bounds",
    ],
    "farthing.errors": [
        "BudgetExceeded",
        "FarthingError",
        "InvalidValue",
    ],
}

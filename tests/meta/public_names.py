"""The public surface. A name is public because it stands here; adding or removing one is a decision."""

from __future__ import annotations

PUBLIC: dict[str, list[str]] = {
    "farthing": [
        "Bounds",
        "Composition",
        "FarthingError",
        "__version__",
        "accounting",
        "compose",
        "errors",
        "privacy",
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
        "EngineChoice",
        "Region",
        "TradeoffFunction",
        "compose",
    ],
    "farthing.accounting.theorems": [
        "PartitionCount",
        "Row",
        "advanced_composition",
        "basic_composition",
        "count_equal_product_partitions",
        "epsilon_of_renyi",
        "epsilon_of_renyi_improved",
        "epsilon_of_zcdp",
        "epsilon_of_zcdp_improved",
        "exact_optimal_composition",
        "kov_exact_homogeneous",
        "kov_heterogeneous_bound",
        "kov_homogeneous_bound",
        "mv_dynamic_programme",
        "mv_enumeration",
        "pure_advanced_composition",
        "renyi_composition",
        "renyi_of_pure_composition",
        "table",
        "zcdp_of_pure",
    ],
    "farthing.accounting.filters": [
        "BasicFilter",
        "Filter",
        "FullyAdaptiveFilter",
        "Odometer",
        "RenyiFilter",
    ],
    "farthing.plots": [
        "MissingExtra",
        "compare_regions",
        "dominated_gap",
        "epsilon_against_delta",
        "epsilon_against_k",
        "heterogeneous_gap",
        "privacy_regions",
        "save",
        "spread_gap",
        "theorem_bars",
        "tradeoff_curve",
    ],
    "farthing.numerics": [
        "Bounds",
    ],
    "farthing.errors": [
        "BudgetExceeded",
        "FarthingError",
        "InvalidValue",
    ],
}

# Packages that are parts of a public one and are reached through it.
INTERNAL = {"farthing.accounting.engines", "farthing.cli"}

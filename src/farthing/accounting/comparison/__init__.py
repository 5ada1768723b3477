"""The optimum beside every theorem, and beside every filter, for the same charges at the same delta."""

from farthing.accounting.comparison.adaptive_comparison import (
    AdaptiveComparison,
    FilterLine,
    adaptive_comparison_of,
    clock_epsilon,
)
from farthing.accounting.comparison.theorem_comparison import (
    Charges,
    Comparison,
    Line,
    charges_of_pairs,
    comparison_of,
    joined,
)

__all__ = [
    "AdaptiveComparison",
    "Charges",
    "Comparison",
    "FilterLine",
    "Line",
    "adaptive_comparison_of",
    "charges_of_pairs",
    "clock_epsilon",
    "comparison_of",
    "joined",
]

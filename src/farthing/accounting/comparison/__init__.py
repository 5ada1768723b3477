"""The optimum beside every theorem, for the same charges at the same delta."""

from farthing.accounting.comparison.theorem_comparison import (
    Charges,
    Comparison,
    Line,
    charges_of_pairs,
    comparison_of,
    joined,
)

__all__ = ["Charges", "Comparison", "Line", "charges_of_pairs", "comparison_of", "joined"]

"""The optimum beside every theorem, for the same charges at the same delta."""

from farthing.accounting.comparison.charges import Charges, charges_of_pairs, joined
from farthing.accounting.comparison.comparing import Comparison, Line, comparison_of

__all__ = ["Charges", "Comparison", "Line", "charges_of_pairs", "comparison_of", "joined"]

"""Sums, means, variances and standard deviations, from shared sums of a centred column."""

from farthing.statistics.moments.moment_design import outputs_of

__all__ = ["outputs_of"]

"""Sums, means, variances and standard deviations, from shared sums of a centred column."""

from farthing.release.moments.designs import outputs_of

__all__ = ["outputs_of"]

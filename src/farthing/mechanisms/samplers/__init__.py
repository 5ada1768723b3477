"""Integer noise for vectors, exact: `discrete_laplace_noise` and `discrete_gaussian_noise`.

    staircase         blocks of a distribution, a choice among them in whole numbers, and the theorem that it is exact
    opendp_samplers   the same distributions drawn by OpenDP, for comparison (optional)

Single numbers are drawn by `single_draws`, from the same distributions and without a table.
"""

from farthing.mechanisms.samplers.vector_draws import (
    LARGEST_SCALE,
    discrete_gaussian_noise,
    discrete_laplace_noise,
)

__all__ = ["LARGEST_SCALE", "discrete_gaussian_noise", "discrete_laplace_noise"]

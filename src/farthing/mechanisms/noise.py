"""A clamped private value plus noise, so that only the sum is ever clamped, never the noise by itself.

Noise that stopped at a bound of its own would end at another place for each value, and an answer there would tell the
value: privacy with a small delta that no event counts. A sum that stops at a bound is post-processing.

Single numbers go through the table sampler too: a draw there takes the same time whatever comes out, while the time of
a draw made coin by coin tells something about its size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST = 2**62 - 1


def with_noise(steps: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """The exact sum of values within +-2^62 and noise, clamped to +-(2^62 - 1); it fits into int64 on the way.

    The noise may have been cut at +-(2^63 - 1): that much of it passes the bound whatever it is added to.

    >>> with_noise(np.array([2**62, -3]), np.array([5, 2**63 - 1])).tolist() == [2**62 - 1] * 2
    True
    """
    return steps + np.clip(noise, -_MOST - steps, _MOST - steps)

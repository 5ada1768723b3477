"""The entries of W'W on and beside its diagonal, from products alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from farthing.release.strategies.base import Floats
from farthing.release.workloads.base import Workload

_BLOCK = 512


@lru_cache(maxsize=32)
def gram_bands(workload: Workload) -> tuple[Floats, Floats]:
    """The diagonal of W'W, and its entries (j, j + 1): how often a cell is asked for, alone and with the next one.

    >>> from farthing.release.workloads import prefix
    >>> gram_bands(prefix(4))
    (array([4., 3., 2., 1.]), array([3., 2., 1.]))
    """
    cells = workload.cells
    diagonal, beside = np.empty(cells), np.empty(max(0, cells - 1))
    for start in range(0, cells, _BLOCK):
        stop = min(cells, start + _BLOCK)
        own = np.arange(stop - start)
        units = np.zeros((cells, stop - start))
        units[start + own, own] = 1.0
        columns = workload.gram_times(units)
        diagonal[start:stop] = columns[start + own, own]
        inner = own[: min(stop, cells - 1) - start]
        beside[start + inner] = columns[start + inner + 1, inner]
    diagonal.setflags(write=False)
    beside.setflags(write=False)
    return diagonal, beside

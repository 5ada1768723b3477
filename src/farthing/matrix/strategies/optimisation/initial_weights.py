"""Where an optimiser begins: overlapping hat functions at a few scales, which is what good strategies look like.

Optimised from anything, p-Identity strategies for ranges end at the same picture: beside the cells, rows shaped like
hat functions that overlap halfway, about 16 cells apart, and a second scale about 16 times wider; every scale takes an
equal part of each cell's weight. Beginning there saves most of the work and avoids poor local minima.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from farthing.matrix.strategies.optimisation.p_identity_error import Windows
from farthing.matrix.strategies.strategy import Floats
from farthing.matrix.workloads.workload import Workload

_BLOCK = 512


@lru_cache(maxsize=32)
def gram_bands(workload: Workload) -> tuple[Floats, Floats]:
    """The diagonal of W'W, and its entries (j, j + 1): how often a cell is asked for, alone and with the next one.

    >>> from farthing.matrix.workloads import prefix
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


_MARGIN = 2.0  # spacings that a window reaches to either side of its hat function's top: weights may move and widen
_SMALL = 256  # up to here every window is the whole domain
_FAINT = 0.3  # weight of a row over the whole domain that is offered beside the hat functions


def hat_functions(cells: int, scales: list[tuple[float, float]], *, whole: bool = False) -> tuple[Windows, Floats]:
    """Hat functions at several scales, given by (spacing, weight), and their windows; weights flat, row by row.

    >>> windows, weights = hat_functions(8, [(4.0, 1.0)])
    >>> windows.dense(weights).round(3)
    array([[1.   , 1.   , 0.875, 0.625, 0.375, 0.125, 0.   , 0.   ],
           [0.   , 0.   , 0.125, 0.375, 0.625, 0.875, 1.   , 1.   ]])
    """
    starts, stops, weights = [], [], []
    middles = np.arange(cells) + 0.5
    for spacing, weight in scales:
        count = max(1, round(cells / spacing))
        apart = cells / count
        tops = (np.arange(count) + 0.5) * apart
        for top in tops:
            start = 0 if whole else max(0, int(np.floor(top - _MARGIN * apart)))
            stop = cells if whole else min(cells, int(np.ceil(top + _MARGIN * apart)))
            # Beyond the outermost tops a hat function stays at its height, so that those of a scale sum to its weight.
            place = np.clip(middles[start:stop], tops[0], tops[-1])
            starts.append(start)
            stops.append(stop)
            weights.append(weight * np.maximum(0.0, 1.0 - np.abs(place - top) / apart))
    return Windows(cells, np.array(starts), np.array(stops)), np.concatenate(weights)


def starting_points(cells: int) -> Iterator[tuple[Windows, Floats]]:
    """A few starts worth comparing after some steps each."""
    if cells < 4:
        return
    whole = cells <= _SMALL
    wide = (float(cells), _FAINT)
    if cells <= 24:
        yield hat_functions(cells, [(float(cells), 1.0)], whole=True)
        yield hat_functions(cells, [(cells / 2, 1.0)], whole=True)
    elif cells <= _SMALL:
        for spacing in (12.0, 16.0, 24.0):
            yield hat_functions(cells, [(spacing, 1.0)], whole=whole)
            yield hat_functions(cells, [wide, (spacing, 1.0)], whole=whole)
        yield hat_functions(cells, [(cells / 2, 1.0), (16.0, 1.0)], whole=whole)
    else:
        # Measured between 1,024 and 4,096 cells: the best spacings grow slowly.
        fine = 16.0 * (cells / 1024) ** 0.16
        coarse = 230.0 * (cells / 1024) ** 0.4
        yield hat_functions(cells, [wide, (coarse, 1.0), (fine, 1.0)])
        if cells <= 1024:  # beyond, the first start was the best of all that were tried, and trials take long
            yield hat_functions(cells, [(coarse, 1.0), (fine, 1.0)])
            yield hat_functions(cells, [(1.5 * coarse, 1.0), (fine, 1.0)])

"""From codes of cells back to values: categories as the schema spells them, whole numbers whole, and within bounds.

A cell that holds several values gives each of them the same chance. Real numbers get as many decimals as tell about a
hundred of them apart within a cell: more would only look exact.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.coded_rows import CodedAxis
from farthing.data.schema import Categories, Dates, Flags, Integers

Codes = NDArray[np.int64]

_STEPS = 100  # about as many different real numbers lie within a cell


def decoded(codes: Codes, axes: Sequence[CodedAxis], random: np.random.Generator) -> Any:
    """The rows as an Arrow table with the types of the schema.

    >>> from farthing.data.schema import Categories, Integers
    >>> axes = [CodedAxis("sex", Categories(("F", "M"))), CodedAxis("age", Integers(0, 99), (0, 18, 99), missing=True)]
    >>> table = decoded(np.array([[1, 2], [0, 2]]), axes, np.random.default_rng(1))
    >>> table.to_pylist()
    [{'sex': 'M', 'age': None}, {'sex': 'F', 'age': None}]
    """
    import pyarrow

    columns = {axis.column: _column(np.asarray(codes)[:, place], axis, random) for place, axis in enumerate(axes)}
    return pyarrow.table(columns)


def _column(codes: Codes, axis: CodedAxis, random: np.random.Generator) -> Any:
    import pyarrow

    absent = codes >= axis.present
    cells = np.where(absent, 0, codes)
    kind = _type(axis)
    if axis.edges is None:
        labels = pyarrow.array(axis.labels, type=kind).take(pyarrow.array(cells))
        return pyarrow.compute.if_else(pyarrow.array(absent), None, labels) if absent.any() else labels
    if isinstance(axis.domain, Dates):
        values = _days(axis.edges, cells, random)
    elif isinstance(axis.domain, Integers):
        values = _whole(axis.edges, cells, random)
    else:
        values = _reals(axis.edges, cells, random)
    return pyarrow.array(values, type=kind, mask=absent)


def _type(axis: CodedAxis) -> Any:
    import pyarrow
    import pyarrow.compute

    domain = axis.domain
    if isinstance(domain, Categories):
        first = domain.values[0]
        if isinstance(first, str):
            return pyarrow.string()
        return pyarrow.bool_() if isinstance(first, bool) else pyarrow.int64()
    if isinstance(domain, Flags):
        return pyarrow.bool_()
    if isinstance(domain, Dates):
        return pyarrow.date32()
    return pyarrow.int64() if isinstance(domain, Integers) else pyarrow.float64()


def _whole(edges: Sequence[Any], cells: Codes, random: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers from each cell's lower edge up to, but not including, the upper one; the last cell is closed."""
    firsts = np.array([math.ceil(edge) for edge in edges], dtype=np.int64)
    ends = firsts[1:].copy()
    ends[-1] = math.floor(edges[-1]) + 1
    return random.integers(firsts[:-1][cells], ends[cells])


def _days(edges: Sequence[datetime.date], cells: Codes, random: np.random.Generator) -> NDArray[Any]:
    start = datetime.date(1970, 1, 1).toordinal()
    days = _whole([edge.toordinal() - start for edge in edges], cells, random)
    return days.astype("datetime64[D]")


def _reals(edges: Sequence[float], cells: Codes, random: np.random.Generator) -> NDArray[np.float64]:
    """Multiples of a power of ten within each cell; where there is none, the cell's lower edge."""
    values = np.empty(len(cells))
    last = len(edges) - 2
    for cell in np.unique(cells):
        low, high = edges[cell], edges[cell + 1]
        here = cells == cell
        values[here] = _within(low, high, int(here.sum()), random, closed=bool(cell == last))
    return values


def _within(low: float, high: float, count: int, random: np.random.Generator, *, closed: bool) -> NDArray[np.float64]:
    if not high > low:
        return np.full(count, low)
    power = math.floor(math.log10((high - low) / _STEPS))  # of ten, the distance between values
    scale = 10.0 ** abs(power)

    def value(steps: Any) -> Any:
        # Dividing by a power of ten gives the number that a short decimal is read as; multiplying would not.
        return steps / scale if power < 0 else steps * scale

    def step(edge: float) -> float:
        return edge * scale if power < 0 else edge / scale

    first, end = math.ceil(step(low)), math.floor(step(high)) + 1 if closed else math.ceil(step(high))
    values = value(random.integers(first, max(end, first + 1), size=count).astype(np.float64))
    inside = (values >= low) & ((values <= high) if closed else (values < high))
    return np.where(inside, values, low)  # rounding may have crossed an edge

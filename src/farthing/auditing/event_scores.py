"""Families of events. Each is a score of outputs; its events are {score >= t} and {score <= t}.

A score is fitted to some outputs of both sides, then used on others. NaN is the score of an output that belongs to no
event of the family. Whatever a score does, a bound that is taken on fresh outputs holds: a poor score only finds less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.output_cells import ABSENT, Cells, Outputs

Array = NDArray[np.float64]


class Score(Protocol):
    """A number for each output, and words for the events it defines."""

    @property
    def family(self) -> str:
        """The kind of events that the score ranks, for the report."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns of the outputs that the score reads."""

    def of(self, outputs: Outputs) -> Array:
        """The score of every output."""

    def words(self, sign: int, threshold: float) -> str:
        """The event {sign * score >= sign * threshold} in words."""


def relation(sign: int) -> str:
    """How an event of a score is written."""
    return ">=" if sign > 0 else "<="


@dataclass(frozen=True)
class Tail:
    """One-sided tails of a number."""

    field: str
    family: str = "tail"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        return outputs.values(self.field)

    def words(self, sign: int, threshold: float) -> str:
        return f"{self.field} {relation(sign)} {threshold:.6g}"


@dataclass(frozen=True)
class TwoSided:
    """Far from a centre, or near it."""

    field: str
    centre: float
    family: str = "two-sided tail"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        """The distance from the centre."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(np.abs(outputs.values(self.field) - self.centre))

    def words(self, sign: int, threshold: float) -> str:
        if threshold == 0 and sign < 0:
            return f"{self.field} is {self.centre:.6g}"
        return f"the distance of {self.field} from {self.centre:.6g} {relation(sign)} {threshold:.6g}"


@dataclass(frozen=True)
class Presence:
    """A field is there or not: a key of a dict, an entry of a list, an exception."""

    field: str
    family: str = "presence"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        """1 where the field is there, 0 where it is not."""
        return np.asarray(outputs.cells(self.field) != np.uint64(ABSENT), dtype=np.float64)

    def words(self, sign: int, threshold: float) -> str:
        return f"{self.field} is {'present' if sign > 0 else 'absent'}"


@dataclass(frozen=True, eq=False)
class Atoms:
    """Likelihood-ratio sets over exact values: each value scores the log-ratio of its frequencies.

    A value that was not seen twice scores 0. For outputs on two different grids this is membership of the other's grid.
    """

    field: str
    cells: Cells
    ratios: Array
    names: dict[int, str]
    family: str = "likelihood ratio of exact values"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        """The log-ratio of the value."""
        return _looked_up(self.cells, self.ratios, outputs.cells(self.field))

    def words(self, sign: int, threshold: float) -> str:
        """In words: the values of the set, a few of them."""
        inside = sign * self.ratios >= sign * threshold
        names = [self._name(int(cell)) for cell in self.cells[inside][:4]]
        more = int(inside.sum()) - len(names)
        unseen = " or any value not seen before" if sign * 0.0 >= sign * threshold else ""
        return f"{self.field} is one of {', '.join(names)}{f' and {more} more' if more else ''}{unseen}"

    def _name(self, cell: int) -> str:
        value = float(np.uint64(cell).view(np.float64))
        return f"{value:.6g}" if value == value else self.names.get(cell, "a certain value")


@dataclass(frozen=True, eq=False)
class Histogram:
    """Likelihood-ratio sets over intervals of a number, labels being intervals of their own."""

    field: str
    edges: Array
    ratios: Array
    labels: Cells
    label_ratios: Array
    names: dict[int, str]
    family: str = "likelihood ratio"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        """The log-ratio of the interval or label."""
        cells = outputs.cells(self.field)
        values = cells.view(np.float64)
        scores = self.ratios[np.searchsorted(self.edges, values, side="right")]
        other = np.isnan(values)
        if other.any():
            scores[other] = _looked_up(self.labels, self.label_ratios, cells[other])
        return np.asarray(scores)

    def words(self, sign: int, threshold: float) -> str:
        """In words: the intervals of the set, neighbours merged, a few of them."""
        inside = sign * self.ratios >= sign * threshold
        ends = [-np.inf, *self.edges.tolist(), np.inf]
        parts: list[list[float]] = []
        for place in np.flatnonzero(inside):
            if parts and parts[-1][1] == ends[place]:
                parts[-1][1] = ends[place + 1]
            else:
                parts.append([ends[place], ends[place + 1]])
        intervals = [f"[{low:.6g}, {high:.6g})" for low, high in parts]
        chosen = self.labels[sign * self.label_ratios >= sign * threshold]
        intervals += [self.names.get(int(cell), "a certain value") for cell in chosen]
        more = f" and {len(intervals) - 4} more" if len(intervals) > 4 else ""
        return f"{self.field} in {' or '.join(intervals[:4])}{more}"


@dataclass(frozen=True)
class LowestBit:
    """The lowest set bit of a double: noise added in floating point leaves other bits on other values."""

    field: str
    family: str = "lowest set bit"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        """The exponent of the lowest set bit."""
        return lowest_bits(outputs.values(self.field))

    def words(self, sign: int, threshold: float) -> str:
        side = "or higher" if sign > 0 else "or lower"
        return f"the lowest set bit of {self.field} is 2^{threshold:g} {side}"


@dataclass(frozen=True, eq=False)
class BitsAndSize:
    """Likelihood-ratio sets over the lowest set bit together with the size of the number."""

    field: str
    edges: Array
    codes: Array
    ratios: Array
    family: str = "lowest set bit and size"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def of(self, outputs: Outputs) -> Array:
        """The log-ratio of bit and size together."""
        codes = bit_codes(outputs.values(self.field), self.edges)
        return _looked_up(self.codes, self.ratios, codes)

    def words(self, sign: int, threshold: float) -> str:
        count = int(np.sum(sign * self.ratios >= sign * threshold))
        return f"the lowest set bit and the size of {self.field} are among {count:,} combinations"


@dataclass(frozen=True, eq=False)
class SumOfRatios:
    """The log-ratios of several fields added: the strongest test when they are independent."""

    parts: tuple[Histogram | Atoms, ...]
    family: str = "likelihood ratio of all fields"

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(field for part in self.parts for field in part.fields)

    def of(self, outputs: Outputs) -> Array:
        total = np.zeros(outputs.count)
        for part in self.parts:
            total += part.of(outputs)
        return total

    def words(self, sign: int, threshold: float) -> str:
        return f"the sum of log-ratios over {len(self.parts)} fields of the output {relation(sign)} {threshold:.6g}"


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear statistic of the entries, weighted by how far their means lie apart."""

    entries: tuple[str, ...]
    weights: Array
    lows: Array
    highs: Array
    family: str = "linear statistic"

    @property
    def fields(self) -> tuple[str, ...]:
        return self.entries

    def of(self, outputs: Outputs) -> Array:
        """The weighted sum; entries are clipped so that one wild one does not drown the others."""
        total = np.zeros(outputs.count)
        for field, weight, low, high in zip(self.entries, self.weights, self.lows, self.highs, strict=True):
            total += weight * np.clip(np.nan_to_num(outputs.values(field), nan=0.0), low, high)
        return total

    def words(self, sign: int, threshold: float) -> str:
        return f"a weighted sum of {len(self.entries)} entries of the output {relation(sign)} {threshold:.6g}"


def lowest_bits(values: Array) -> Array:
    """The exponent of the lowest set bit of each double: -1 for 2.5, 1 for 6; NaN where there is none.

    >>> lowest_bits(np.array([2.5, 6.0, 0.0, np.inf])).tolist()
    [-1.0, 1.0, nan, nan]
    """
    mantissa, exponent = np.frexp(values)
    usable = np.isfinite(values) & (values != 0)
    whole = np.where(usable, np.abs(mantissa) * 2.0**53, 1.0).astype(np.int64)
    low = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(usable, low + exponent - 53.0, np.nan)


def bit_codes(values: Array, edges: Array) -> Array:
    """One code for the lowest set bit and the interval of the size."""
    bits = np.nan_to_num(lowest_bits(values), nan=-5000.0)
    return np.asarray(bits * 64.0 + np.searchsorted(edges, np.abs(values), side="right"))


def _looked_up(keys: NDArray[np.generic], ratios: Array, wanted: NDArray[np.generic]) -> Array:
    """The ratio of each wanted key, 0 for one that is not in the sorted list of keys."""
    if not len(keys):
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, ratios[places], 0.0)

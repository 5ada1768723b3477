"""Numbers that are sums of known noises: which noise is in which cell of an answer, so that answers can be compared.

Two answers of one plan may contain the same noise. Their difference contains it once, or not at all. So each noise has
a name (`Source`), and an answer keeps which of them its cells are made of (`CellNoise`). There are no rows here: a
noise is known by its kind and scale, and a cell by its noisy number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from farthing.inference.error_distributions import ErrorDistribution, Measured, Ratio
from farthing.inference.noise_terms import Kind, Term, variance_of

Source = tuple[str, str, int, Kind, float]
"""One noise: the release and the measurement it is in, its place there, its kind and its scale."""

_MOST_STORED = 20_000  # numbers in the record of one answer; a larger one is not kept
_DIGITS = 12


def added(parts: Iterable[tuple[float, Mapping[Source, float]]]) -> dict[Source, float]:
    """A linear combination of noises.

    >>> one = ("", "counts", 0, "laplace", 2.0)
    >>> added([(1.0, {one: 2.0}), (-1.0, {one: 2.0})])
    {}
    """
    total: dict[Source, float] = {}
    for factor, noise in parts:
        for source, weight in noise.items():
            total[source] = total.get(source, 0.0) + factor * weight
    largest = max(map(abs, total.values()), default=0.0)
    return {source: weight for source, weight in total.items() if abs(weight) > 1e-13 * largest}


_APART, _TOGETHER = "sample, each cell apart: ", "sample: "


def _worst_samples(noises: Sequence[Mapping[Source, float]], sign: float = 1.0) -> Sequence[Mapping[Source, float]]:
    """The same with errors of sampling that may depend on each other in one, as large as they can be.

    Those of disjoint groups of one statistic are independent. Of others nothing is known, so that their standard
    deviations add up. `sign` is that of the second number's share in what the first two are for: it counts against it.
    """
    names = {source[:2] for noise in noises for source in noise if source[1].startswith("sample")}
    if not names or (len(names) == 1 and next(iter(names))[1].startswith(_APART)):
        return noises
    settled, against = [], 1.0
    for noise in noises:
        apart: dict[tuple[str, str], float] = {}
        rest, together = {}, 0.0
        for source, weight in noise.items():
            if source[1].startswith(_APART):
                apart[source[:2]] = math.hypot(apart.get(source[:2], 0.0), weight * source[4])
            elif source[1].startswith(_TOGETHER):
                together += abs(weight) * source[4]
            else:
                rest[source] = weight
        together += math.fsum(apart.values())
        settled.append({**rest, ("", _TOGETHER, 0, "normal", 1.0): against * together})
        against = -sign
    return settled


def terms_of(*noises: Mapping[Source, float], sign: float = 1.0) -> list[list[Term]]:
    """Terms for each of several combinations; noises that enter all of them alike are joined."""
    noises = tuple(_worst_samples(noises, sign))
    alike: dict[tuple[Any, ...], int] = {}
    for source in dict.fromkeys(source for noise in noises for source in noise):
        weights = tuple(_rounded(noise.get(source, 0.0)) for noise in noises)
        key = (*source[3:], *weights)
        alike[key] = alike.get(key, 0) + 1
    terms: list[list[Term]] = [[] for _ in noises]
    for number, ((kind, scale, *shares), count) in enumerate(alike.items()):
        for own, weight in zip(terms, shares, strict=True):
            if weight:
                own.append(Term(kind, scale, weight, count, f"{number}"))
    return terms


def _rounded(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def variance_in(noise: Mapping[Source, float]) -> float:
    """The variance of a combination of independent noises."""
    (settled,) = _worst_samples([noise])
    return math.fsum(weight**2 * variance_of(kind, scale) for (*_, kind, scale), weight in settled.items())


def error_in(noise: Mapping[Source, float], confidence: float) -> float:
    """What a combination of noises stays within at a confidence.

    >>> round(error_in({("", "counts", 0, "laplace", 10.0): 1.0}, 0.95))
    30
    """
    (terms,) = terms_of(noise)
    return float(ErrorDistribution(terms, 1).errors(confidence)[0])


@dataclass(frozen=True, eq=False)
class NoisyNumber:
    """A number and the noises in it, each with its weight."""

    value: float
    noise: Mapping[Source, float] = field(default_factory=dict, repr=False)

    def plus(self, other: NoisyNumber, factor: float = 1.0) -> NoisyNumber:
        """This number and so many times the other."""
        return NoisyNumber(self.value + factor * other.value, added([(1.0, self.noise), (factor, other.noise)]))

    def times(self, factor: float) -> NoisyNumber:
        """So many times this number."""
        return NoisyNumber(self.value * factor, added([(factor, self.noise)]))

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of its noise."""
        return math.sqrt(variance_in(self.noise))

    def over(self, other: NoisyNumber, least: float, most: float) -> Ratio:
        """The ratio of this number to another that is not 0, with Fieller's interval."""
        sign = math.copysign(1e6 / abs(other.value), other.value) if other.value else 1e6  # larger than 1, see `Ratio`
        top, bottom = self.times(sign), other.times(sign)
        above, below = terms_of(top.noise, bottom.noise, sign=math.copysign(1.0, top.value))
        return Ratio(Measured(top.value, above), Measured(bottom.value, below), least, most)


@dataclass(frozen=True)
class Spread:
    """Noises of one measurement that enter the cells of an answer with one weight.

    The noise in place `start + i * stride` of the measurement enters the cell `cells[i]`; -1 is none.
    """

    block: int
    weight: float
    cells: tuple[int, ...]
    start: int = 0
    stride: int = 1

    def sources(self, blocks: Sequence[tuple[str, Kind, float]], cell: int, release: str) -> dict[Source, float]:
        """The noises of one cell."""
        name, kind, scale = blocks[self.block]
        places = np.flatnonzero(np.asarray(self.cells) == cell).tolist()
        return {(release, name, self.start + place * self.stride, kind, scale): self.weight for place in places}


@dataclass(frozen=True)
class Mixture:
    """Noises of one measurement that enter the cells of an answer with weights of their own: a row for each cell."""

    block: int
    rows: tuple[tuple[float, ...], ...]

    @property
    def cells(self) -> tuple[float, ...]:
        """All weights, one row after another."""
        return tuple(weight for row in self.rows for weight in row)

    def sources(self, blocks: Sequence[tuple[str, Kind, float]], cell: int, release: str) -> dict[Source, float]:
        """The noises of one cell."""
        name, kind, scale = blocks[self.block]
        return {(release, name, place, kind, scale): weight for place, weight in enumerate(self.rows[cell]) if weight}


@dataclass(frozen=True)
class NoisyCells:
    """Noisy numbers, one for each cell: their values, the noises in them, and what least squares took off.

    `gaps` are sums of noises by which measurements of the same rows disagree, numbered like cells. Cell c has
    `taken[c][k]` times gap k taken off.
    """

    values: tuple[float, ...]
    spreads: tuple[Spread | Mixture, ...]
    gaps: tuple[Spread | Mixture, ...] = ()
    taken: tuple[tuple[float, ...], ...] = ()

    @property
    def size(self) -> int:
        """How many numbers it takes to store."""
        spread = sum(len(each.cells) for each in (*self.spreads, *self.gaps))
        return len(self.values) + spread + sum(map(len, self.taken))

    def number(self, cell: int, blocks: Sequence[tuple[str, Kind, float]], release: str) -> NoisyNumber:
        """The noisy number of one cell."""
        parts = [(1.0, each.sources(blocks, cell, release)) for each in self.spreads]
        if self.taken:
            parts += [
                (-factor, gap.sources(blocks, place, release))
                for place, factor in enumerate(self.taken[cell])
                if factor
                for gap in self.gaps
            ]
        return NoisyNumber(self.values[cell], added(parts))

    def stored(self) -> dict[str, Any]:
        """What it is made of, as plain data."""
        form: dict[str, Any] = {"values": list(self.values), "spreads": [_form(each) for each in self.spreads]}
        if self.taken:
            form["gaps"] = [_form(each) for each in self.gaps]
            form["taken"] = [[_rounded(number) for number in row] for row in self.taken]
        return form

    @classmethod
    def restored(cls, form: Mapping[str, Any]) -> NoisyCells:
        """What was stored, read from plain data."""
        return cls(
            tuple(map(float, form["values"])),
            tuple(map(_spread, form["spreads"])),
            tuple(map(_spread, form.get("gaps", ()))),
            tuple(tuple(map(float, row)) for row in form.get("taken", ())),
        )


def _form(spread: Spread | Mixture) -> list[Any]:
    if isinstance(spread, Mixture):
        return [spread.block, [[_rounded(weight) for weight in row] for row in spread.rows]]
    return [spread.block, spread.weight, list(spread.cells), spread.start, spread.stride]


def _spread(form: Sequence[Any]) -> Spread | Mixture:
    if len(form) == 2:
        return Mixture(int(form[0]), tuple(tuple(map(float, row)) for row in form[1]))
    block, weight, cells, start, stride = form
    return Spread(int(block), float(weight), tuple(map(int, cells)), int(start), int(stride))


@dataclass(frozen=True)
class CellNoise:
    """What the cells of an answer are made of: `offset + top / bottom`; without a bottom, `offset + top`.

    `blocks` are the measurements, each with the kind and the scale of its noise; `release` names the release that they
    are of. The truth lies in `least` .. `most`. Where the answer is about a population, `sampling` has the standard
    deviation of each top over samples; `apart` says that these errors are independent from cell to cell.
    """

    blocks: tuple[tuple[str, Kind, float], ...]
    top: NoisyCells
    bottom: NoisyCells | None = None
    offset: float = 0.0
    least: float = -math.inf
    most: float = math.inf
    sampling: tuple[float, ...] = ()
    apart: bool = False
    release: str = ""
    statistic: str = ""

    @property
    def small(self) -> bool:
        """Whether it is short enough to be kept with an answer."""
        return self.top.size + (0 if self.bottom is None else self.bottom.size) <= _MOST_STORED

    def numbers(self, cell: int) -> tuple[NoisyNumber, NoisyNumber | None]:
        """The top and the bottom of a cell."""
        top = self.top.number(cell, self.blocks, self.release)
        if self.sampling and self.sampling[cell] > 0:
            name = f"{_APART if self.apart else _TOGETHER}{self.statistic}"
            source = (self.release, name, cell, "normal", 1.0)
            top = NoisyNumber(top.value, {**top.noise, source: self.sampling[cell]})  # type: ignore[dict-item]
        if self.bottom is None:
            return top.plus(NoisyNumber(self.offset)), None
        bottom = self.bottom.number(cell, self.blocks, self.release)
        return top.plus(bottom, self.offset), bottom

    def stored(self) -> dict[str, Any]:
        """Plain data, without the release, which is known where it is read."""
        return {
            "blocks": [list(block) for block in self.blocks],
            "top": self.top.stored(),
            "bottom": None if self.bottom is None else self.bottom.stored(),
            "offset": self.offset,
            "least": None if math.isinf(self.least) else self.least,
            "most": None if math.isinf(self.most) else self.most,
            "sampling": list(self.sampling),
            "apart": self.apart,
        }

    @classmethod
    def restored(cls, form: Mapping[str, Any], release: str, statistic: str) -> CellNoise:
        """What was stored, read from plain data."""
        return cls(
            tuple((str(name), kind, float(scale)) for name, kind, scale in form["blocks"]),
            NoisyCells.restored(form["top"]),
            None if form["bottom"] is None else NoisyCells.restored(form["bottom"]),
            float(form["offset"]),
            -math.inf if form["least"] is None else float(form["least"]),
            math.inf if form["most"] is None else float(form["most"]),
            tuple(map(float, form["sampling"])),
            bool(form["apart"]),
            release,
            statistic,
        )

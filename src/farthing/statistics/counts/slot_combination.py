"""Slots that count the same rows in different ways: every count is estimated from all of them.

A slot whose cells hold every row has sums in common with every other such slot: at least their total, and with columns
in common their margins. Least squares under these relations makes all counts agree, a total with the sum of its parts,
and no count worse than from its own slot alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.data.schema import Schema
from farthing.inference import Answer, ErrorDistribution, Term, rounded
from farthing.inference.linked_counts import Link, LinkedCounts, LinkedEstimate
from farthing.inference.noisy_numbers import CellNoise, Mixture, NoisyCells, Spread
from farthing.statistics.cells.common_cells import common_cells
from farthing.statistics.counts.count_outputs import (
    LARGEST,
    WIDE,
    CountOutput,
    block_of,
    consistent_cells,
    moved_note,
    smooth_factor,
    smooth_noise,
)
from farthing.statistics.measurements import Integers, Kind, Noise, Output, RowCounts, Slot

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_LEAST = 1e-2  # variance of noise, in squared rows, beside which a slot counts as exact
_FAINT = 1e7  # times the least variance, or this one: a slot with so much noise says nothing about the others
_EXACT = 1e-9  # of the largest variance: noise of less is weighed as if it were so much
_MOST_SLOTS = 64  # that are compared pair by pair
_MOST_SUMS = 400  # relations in all
_LARGE = 20_000  # cells of a slot that is linked by its total alone
_FEW_FUNCTIONS = 200  # of one output that are compared one by one


@dataclass(frozen=True, eq=False)
class Crossed:
    """Linear functions F of a vector's numbers, as relations see them: F V C', and the diagonal of F V F'.

    V is the vector's covariance at noise of variance 1. `weights` is what each function's variance counts in the mean
    squared relative error of an output; the functions need not be its cells, if the mean is the same.
    """

    vector: int
    relations: Floats
    squares: Floats
    weights: Floats


class LinkedOutput(Protocol):
    """An output that is estimated from a combination."""

    @property
    def slots(self) -> Sequence[Slot]:
        """The slots that it would be made from if there were no others."""
        ...

    def crossed(self, vectors: Mapping[str, int], linked: LinkedCounts, kinds: Mapping[str, Kind]) -> Crossed:
        """What its error is made of, as linear functions of the numbers of its own slot."""
        ...


@dataclass(frozen=True, eq=False)
class _Stacked:
    """The functions of many outputs, alike ones once: their relations, and what they weigh in the mean of each."""

    vectors: Places
    relations: Floats
    squares: Floats
    weights: Floats
    outputs: Places


@dataclass(frozen=True, eq=False)
class Combination:
    """Slots that count all rows, and the sums that each pair of them has in common; `whole` is their total."""

    slots: tuple[Slot, ...]
    schema: Schema = field(repr=False)
    _estimates: dict[tuple[Any, ...], LinkedEstimate] = field(default_factory=dict, repr=False)
    _linked: dict[tuple[Any, ...], LinkedCounts] = field(default_factory=dict, repr=False)
    _stacks: dict[tuple[int, ...], _Stacked] = field(default_factory=dict, repr=False)
    _last: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, slots: Sequence[Slot], schema: Schema) -> Combination | None:
        """The slots that say how they count rows; None if they are fewer than two."""
        own = tuple(slot for slot in slots if slot.row_counts)
        return cls(own, schema) if len(own) > 1 else None

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of every slot by its name."""
        return {slot.name: place for place, slot in enumerate(self.slots)}

    @cached_property
    def _pairs(self) -> list[tuple[int, int, Places, Places, int]]:
        """Pairs of slots with more in common than their total; those with the fewest sums first."""
        few = [place for place, slot in enumerate(self.slots) if slot.numbers_count <= _LARGE][:_MOST_SLOTS]
        pairs = []
        for number, one in enumerate(few):
            for other in few[number + 1 :]:
                for mine in self.slots[one].row_counts:
                    for theirs in self.slots[other].row_counts:
                        left, right, sums = common_cells(mine.partition, theirs.partition, self.schema)
                        if sums > 1:
                            pairs.append((one, other, _looked_up(left, mine), _looked_up(right, theirs), sums))
        return sorted(pairs, key=lambda pair: pair[4])

    def over(self, active: tuple[int, ...], kinds: Mapping[str, Kind] | None = None) -> LinkedCounts:
        """The relations between some of the slots, without those that follow from others already there."""
        covariances = [
            self.slots[place].covariance((kinds or {}).get(self.slots[place].name, self.slots[place].kinds[0]))
            for place in active
        ]
        key = (active, *(id(each) for each in covariances if each is not None))
        if key not in self._linked:
            number = {place: vector for vector, place in enumerate(active)}
            wholes = [np.minimum(self.slots[place].row_counts[0].cells, 0) for place in active]
            links = [Link((0, vector), (wholes[0], wholes[vector]), 1) for vector in range(1, len(active))]
            room = _MOST_SUMS - len(links)
            groups: dict[tuple[int, bytes], int] = {}
            for one, other, left, right, sums in self._pairs:
                if one not in number or other not in number or sums - 1 > room:
                    continue
                # Partitions of two slots into the same sums are the same: a chain of them needs no further links.
                ends = [(one, _canonical(left)), (other, _canonical(right))]
                for end in ends:
                    groups.setdefault(end, len(groups))
                if groups[ends[0]] == groups[ends[1]]:
                    continue
                old, new = groups[ends[1]], groups[ends[0]]
                groups = {end: new if group == old else group for end, group in groups.items()}
                labels = tuple(np.where(each < sums - 1, each, -1) for each in (left, right))  # the last follows
                links.append(Link((number[one], number[other]), (labels[0], labels[1]), sums - 1))
                room -= sums - 1
            units = tuple(_unit(self.slots[place]) for place in active)
            sizes = tuple(self.slots[place].numbers_count for place in active)
            plain = all(each is None for each in covariances)
            self._linked[key] = LinkedCounts(sizes, tuple(links), units, () if plain else tuple(covariances))
        return self._linked[key]

    def at(
        self, variances: Mapping[str, float], kinds: Mapping[str, Kind] | None = None
    ) -> tuple[dict[str, int], LinkedEstimate]:
        """The slots that say something about each other under these variances of their noise, and the estimate.

        `kinds` are the kinds of noise, the first that a slot may have by default. The last few estimates are kept, as
        all outputs ask for the same.
        """
        known = {slot.name: (kinds or {}).get(slot.name, slot.kinds[0]) for slot in self.slots}
        scales = [_unit(slot) ** 2 * _typical(slot, known[slot.name]) for slot in self.slots]
        rows = [variances[slot.name] * scale for slot, scale in zip(self.slots, scales, strict=True)]  # squared rows
        most = _FAINT * max(_LEAST, min(rows))
        active = tuple(place for place, value in enumerate(rows) if value <= most)
        least = _EXACT * max(rows[place] for place in active)
        own = [max(value, least, 1e-300) / scale for value, scale in zip(rows, scales, strict=True)]
        linked = self.over(active, known)
        key = (id(linked), *(own[place] for place in active))
        if key not in self._estimates:
            if len(self._estimates) > 3:
                self._estimates.pop(next(iter(self._estimates)))
            self._estimates[key] = linked.at([own[place] for place in active])
        return {self.slots[place].name: vector for vector, place in enumerate(active)}, self._estimates[key]

    def slopes(
        self, outputs: Sequence[LinkedOutput], variances: Mapping[str, float], kinds: Mapping[str, Kind] | None = None
    ) -> tuple[tuple[str, ...], Floats]:
        """The mean squared relative error of every output per variance of each slot, at these variances.

        The variance of a best linear estimate is concave in the variances of its measurements, and these are its
        slopes: their sum of products is the variance there, and no less than it anywhere else.
        """
        vectors, estimate = self.at(variances, kinds)
        key = (id(estimate.linked), *map(id, outputs))
        if key not in self._stacks:
            self._stacks[key] = _stacked(outputs, vectors, estimate.linked, kinds or {})
        stack = self._stacks[key]
        sums = estimate.signed_square_weights(stack.vectors, stack.relations, stack.squares)
        slopes = np.zeros((len(outputs), len(vectors)))
        np.add.at(slopes, stack.outputs, stack.weights[:, None] * sums)
        return tuple(vectors), np.maximum(slopes, 0.0)

    def under(self, noises: Mapping[str, Noise]) -> tuple[dict[str, int], LinkedEstimate]:
        """The same under these noises. All outputs ask for it, so that what was found last is kept."""
        kept = self._last.get("under")
        if kept is None or kept[0] is not noises:
            kinds = {slot.name: noises[slot.name].kind for slot in self.slots}
            estimate = self.at({slot.name: slot.variance(noises[slot.name]) for slot in self.slots}, kinds)
            self._last["under"] = kept = noises, estimate
        return kept[1]

    def estimates(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> dict[str, Floats]:
        """The numbers of every slot, with all sums that they have in common brought to agree; found last is kept."""
        kept = self._last.get("estimates")
        if kept is None or kept[0] is not noises or kept[1] is not measured:
            vectors, estimate = self.under(noises)
            numbers = {slot.name: slot.numbers(measured[slot.name], noises[slot.name].kind) for slot in self.slots}
            agreed = dict(zip(vectors, estimate.estimate([numbers[name] for name in vectors]), strict=True))
            self._last["estimates"] = kept = noises, measured, numbers | agreed
        return kept[2]


def _stacked(
    outputs: Sequence[LinkedOutput], vectors: Mapping[str, int], linked: LinkedCounts, kinds: Mapping[str, Kind]
) -> _Stacked:
    """The functions of outputs that the relations say something about."""
    count = len(linked.kept)
    parts: list[tuple[int, Floats, Floats, Floats]] = []
    numbers: list[int] = []
    for number, output in enumerate(outputs):
        if output.slots[0].name in vectors:
            own = output.crossed(vectors, linked, kinds)
            parts.append((own.vector, *_condensed(own.relations, own.squares, own.weights)))
            numbers.append(number)
    lengths = [len(rows) for _, rows, _, _ in parts]
    return _Stacked(
        np.repeat(np.array([vector for vector, _, _, _ in parts], dtype=np.int64), lengths),
        np.concatenate([rows for _, rows, _, _ in parts] or [np.zeros((0, count))]),
        np.concatenate([squares for _, _, squares, _ in parts] or [np.zeros(0)]),
        np.concatenate([weights for _, _, _, weights in parts] or [np.zeros(0)]),
        np.repeat(np.array(numbers, dtype=np.int64), lengths),
    )


def _condensed(rows: Floats, squares: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Fewer functions with the same weighted sums of squares and products: alike ones once, or as many as relations."""
    if len(rows) <= max(_FEW_FUNCTIONS, 2 * rows.shape[1]):
        whole = np.column_stack((rows, squares))
        places: dict[bytes, int] = {}
        place = np.array([places.setdefault(row.tobytes(), len(places)) for row in whole], dtype=np.int64)
        first = np.unique(place, return_index=True)[1]
        return rows[first], squares[first], np.bincount(place, weights=weights).astype(np.float64)
    products = (rows.T * weights) @ rows
    sizes, directions = np.linalg.eigh(products)
    kept = sizes > 1e-14 * max(float(sizes[-1]), 1e-300)
    factor = np.sqrt(sizes[kept])[:, None] * directions.T[kept]
    factor = factor if len(factor) else np.zeros((1, rows.shape[1]))
    return factor, np.full(len(factor), float(weights @ squares) / len(factor)), np.ones(len(factor))


def _unit(slot: Slot) -> float:
    return slot.row_counts[0].unit


def _typical(slot: Slot, kind: Kind) -> float:
    covariance = slot.covariance(kind)
    return 1.0 if covariance is None else covariance.typical


def _looked_up(sums: Places, counts: RowCounts) -> Places:
    """The sum that every number of a slot belongs to, or -1."""
    return np.where(counts.cells >= 0, sums[counts.cells], -1)


def _canonical(labels: Places) -> bytes:
    """A partition of a slot's numbers, whatever its sums are called."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], dtype=np.int64).tobytes()


@dataclass(frozen=True, eq=False)
class CombinedOutput(CountOutput):
    """Counts estimated from all slots of a combination."""

    combination: Combination = field(kw_only=True)
    _crossings: dict[int, Crossed] = field(default_factory=dict, kw_only=True, repr=False)
    _known: dict[str, Any] = field(default_factory=dict, kw_only=True, repr=False)

    @classmethod
    def of(cls, output: CountOutput, combination: Combination) -> CombinedOutput:
        """The output, reading the other slots of the combination, too."""
        known = {each.name: getattr(output, each.name) for each in fields(CountOutput)}
        return cls(**known, combination=combination)

    @property
    def independent(self) -> bool:
        """One measured number is part of several estimates."""
        return False

    @property
    def links(self) -> Combination:
        """Every slot of the combination has a weight."""
        return self.combination

    def crossed(
        self, vectors: Mapping[str, int], linked: LinkedCounts, kinds: Mapping[str, Kind] | None = None
    ) -> Crossed:
        """Its counts as sums of the numbers of its slot."""
        if id(linked) not in self._crossings:
            vector = vectors[self.slots[0].name]
            crossed = linked.crossed(vector, self.members, len(self.reference))
            weights = 1.0 / np.asarray(self.reference, dtype=float) ** 2 / len(self.reference)
            self._crossings[id(linked)] = Crossed(vector, crossed, self.parts.astype(np.float64), weights)
        return self._crossings[id(linked)]

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution of the linear estimate."""
        return self._distribution(noises, self.expected)

    def _distribution(self, noises: Mapping[str, Noise], counts: Floats) -> ErrorDistribution:
        vectors, estimate = self.combination.under(noises)
        if self.slots[0].name not in vectors:
            return super()._distribution(noises, counts)
        kept = self._known.get("terms")
        if kept is None or kept[0] is not noises:  # a release asks for what its plan has found
            crossed = self.crossed(vectors, estimate.linked).relations
            slots = {name: self.combination.slots[self.combination.places[name]] for name in vectors}
            terms = _terms(vectors, slots, noises, estimate, self.slots[0].name, crossed, self.parts)
            self._known["terms"] = kept = noises, terms
        return ErrorDistribution([*kept[1], *self._sampling(counts)], len(self.reference))

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The estimates, made into counts; whole where that was asked for. The interval is that of the estimates."""
        (slot,) = self.slots
        cells = self.combination.estimates(measured, noises)[slot.name]
        deviation = float(np.sqrt(slot.variance(noises[slot.name])))
        plain = self._sums(cells)
        whole = self.statistic.rounded and float(np.abs(cells).sum()) < LARGEST
        settled = consistent_cells(rounded(cells) if whole else cells, self.together, deviation)
        values = self._sums(settled)
        distribution = self._distribution(noises, values)
        return Answer.around(
            self.name,
            values,
            distribution,
            self.labels,
            confidence=confidence,
            centre=plain,
            least=0.0,
            note=moved_note(plain, values, np.maximum(distribution.standard_errors, 1e-9)),
        )

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """The noises of its own cells, and those of all gaps that the combination takes off."""
        (slot,) = self.slots
        vectors, estimate = self.combination.under(noises)
        if slot.name not in vectors:
            return super().noise_in(measured, noises)
        linked = estimate.linked
        plain = self._sums(self.combination.estimates(measured, noises)[slot.name])
        names = list(vectors)
        slots = [self.combination.slots[self.combination.places[name]] for name in names]
        taken = estimate.multipliers(vectors[slot.name], self.crossed(vectors, linked).relations)
        cells = NoisyCells(
            tuple(plain.tolist()),
            (Spread(vectors[slot.name], 1.0, tuple(self.members.tolist())),),
            gaps_of(linked, slots, noises),
            tuple(map(tuple, taken.tolist())),
        )
        blocks = tuple(combined_block(each, noises[each.name]) for each in slots)
        return self.with_sampling(CellNoise(blocks, cells, least=0.0), plain)


def gaps_of(linked: LinkedCounts, slots: Sequence[Slot], noises: Mapping[str, Noise]) -> tuple[Spread | Mixture, ...]:
    """The noises in the gaps of all kept relations, which are those between these slots."""
    gaps: list[Spread | Mixture] = []
    for vector, slot in enumerate(slots):
        noise, entries = noises[slot.name], linked.entries(vector)
        mixing = slot.mixing(noise.kind)
        if slot.covariance(noise.kind) is None:
            gaps += [Spread(vector, weight, tuple(places.tolist())) for weight, places in entries]
        elif mixing is None:
            gaps += _together(vector, slot, noise, *linked.squares[vector])
        else:
            sums = np.zeros((len(linked.kept), len(mixing)))
            for weight, places in entries:
                inside = np.flatnonzero(places >= 0)
                sums[places[inside], inside] += weight
            gaps.append(Mixture(vector, tuple(map(tuple, (sums @ mixing).tolist()))))
    return tuple(gaps)


def combined_block(slot: Slot, noise: Noise) -> tuple[str, Literal["laplace", "gaussian", "normal"], float]:
    """The noise of a slot's numbers; of a strategy, whose numbers have many noises each, a smooth one."""
    if slot.covariance(noise.kind) is None or slot.mixing(noise.kind) is not None:
        return block_of(slot, noise)
    return (f"{slot.name}, together", *smooth_noise(noise.kind))


def _together(vector: int, slot: Slot, noise: Noise, relations: Places, covariance: Floats) -> list[Spread]:
    """What the noises of a strategy bring into the relations: as many noises as relations, of the same covariance.

    Each is a sum of many noises of one kind, whose tails are no wider than those of a single one.
    """
    sizes, directions = np.linalg.eigh(covariance)
    roots = directions * np.sqrt(np.maximum(sizes, 0.0)) * smooth_factor(slot, noise)
    return [
        Spread(vector, float(roots[row, column]), (int(relation),), column)
        for row, relation in enumerate(relations.tolist())
        for column in range(len(sizes))
        if abs(roots[row, column]) > 1e-12
    ]


_MANY = 200  # equal Laplace noises that are as good as one normal one: their excess kurtosis is 3 / 200
_MINOR = 0.005  # of an estimate's variance: Laplace noise of less is as good as normal
_FEW = 3  # kinds of numbers of a slot that are told apart


def _terms(
    vectors: Mapping[str, int],
    slots: Mapping[str, Slot],
    noises: Mapping[str, Noise],
    estimate: LinkedEstimate,
    name: str,
    crossed: Floats,
    parts: Places,
) -> list[Term]:
    """The noise in estimated counts: their own numbers, and for each slot what is spread over its others.

    Standard errors are exact. So are Gaussian noises, whose sums are Gaussian. Small Laplace noises of one slot count
    as so many equal ones that their variance is the same and their fourth moment no less: tails come out a hair too
    wide, not too narrow. Where they are many, or next to nothing beside the rest, they count as normal.
    """
    own = vectors[name]
    taken = estimate.multipliers(own, crossed)
    kept = np.maximum(parts, 1)
    weight = 1.0 - np.einsum("ij,ij->i", taken, crossed) / kept
    variances = np.array([slots[each].variance(noises[each]) for each in vectors])
    sums = estimate.square_weights(own, crossed, parts.astype(np.float64), taken)
    sums[:, own] = np.maximum(sums[:, own] - parts * weight**2, 0.0)
    total = np.maximum(sums @ variances + parts * weight**2 * variances[own], 1e-300)
    terms = [_term(slots[name], noises[name], weight, parts)]
    normal = np.zeros(len(parts))
    for other, vector in vectors.items():
        slot, noise = slots[other], noises[other]
        spread = sums[:, vector] * variances[vector]
        if noise.kind == "gaussian" or not (spread > _MINOR * total).any():
            normal += spread
            continue
        if slot.covariance(noise.kind) is not None:
            share = np.sqrt(sums[:, vector])
            single = slot.concentration(estimate.linked.spread(vector, taken), noise.kind)
            count = np.full(len(parts), max(1, math.floor(1 / max(single, 1e-6) * (1 + 1e-9))))
            terms.append(_term(slot, noise, share / np.sqrt(count), count))
            continue
        numbers, alike = estimate.linked.signatures(vector)
        weights = estimate.linked.spread(vector, taken)[:, numbers]
        if len(numbers) <= _FEW and vector != own:
            terms += [_term(slot, noise, weights[:, place], int(alike[place])) for place in range(len(numbers))]
            continue
        fourth = np.maximum(weights**4 @ alike, 1e-300)
        count = np.floor(np.maximum((weights**2 @ alike) ** 2 / fourth * (1 + 1e-9), 1.0))
        many = count > _MANY
        normal += np.where(many, spread, 0.0)
        count = np.where(many, 1.0, count)
        share = np.where(many, 0.0, np.sqrt(sums[:, vector] / count))
        terms.append(_term(slot, noise, share, count.astype(np.int64)))
    return [*terms, Term("normal", 1.0, np.sqrt(normal).round(9))] if (normal > 0).any() else terms


def _term(slot: Slot, noise: Noise, weight: Floats, count: Places | int) -> Term:
    """So many noises of a slot. Estimates are on no grid, so that wide noise may as well be smooth."""
    assert noise.kind != "exponential"
    digits = weight.round(10)  # cells that are alike stay alike
    if not slot.scale(noise) >= WIDE:
        return Term(noise.kind, slot.scale(noise), digits, count)
    kind, scale = smooth_noise(noise.kind)
    return Term(kind, scale, digits * smooth_factor(slot, noise), count)


def linked_outputs(outputs: Mapping[str, Output], slots: Sequence[Slot], schema: Schema) -> dict[str, Output]:
    """The outputs of a design, each reading every slot that says something about it."""
    combination = Combination.of(slots, schema)
    if combination is None:
        return dict(outputs)
    return {name: _linked(output, combination) for name, output in outputs.items()}


def _linked(output: Output, combination: Combination) -> Output:
    if not isinstance(output, CountOutput):
        return output.linked(combination)
    return CombinedOutput.of(output, combination) if output.slots[0].name in combination.places else output

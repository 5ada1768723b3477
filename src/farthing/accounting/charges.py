"""Read what the user hands to `compose`, refuse what is not a charge, and sort it by kind of loss.

The kinds are those whose transforms are known in closed form (randomized response, Laplace, Gaussian); the leak of an
(epsilon, delta) pair, which composes by itself; and everything else, which goes to the grid algorithm. `ComposedLoss`
holds all of them together in the forms that algorithms need, each made when it is first needed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.lattice import Lattice, recognise
from farthing.accounting.loss_transforms import Array, Stepped, Transform
from farthing.accounting.sketch import Sketch
from farthing.errors import InvalidValue
from farthing.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
    checked_delta,
    checked_epsilon,
    checked_real,
)

_FORMS = "use a list of epsilons, of (epsilon, delta) pairs, or of events from farthing.privacy"
_NONE = np.zeros(0)
_MOST = 2.0**53  # counts, one by one and in total: beyond, doubles skip whole numbers
_LARGEST_EPSILON = 1e6
# Bounded ranges outside are priced on the grid, as randomized responses.
_SMALLEST_RANGE, _LARGEST_RANGE = (
    1e-9,
    500.0,
)


@dataclass(frozen=True, eq=False)
class Chunk:
    """A batch of (epsilon, delta)-DP charges with multiplicities; all three arrays have one length."""

    epsilons: Array
    deltas: Array
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.epsilons)

    @cached_property
    def leaky(self) -> bool:
        """Whether any delta is positive (looked at once: large chunks live long)."""
        return bool(np.any(self.deltas > 0))


@dataclass(frozen=True, eq=False)
class Charges:
    """A multiset of charges, sorted by kind."""

    chunks: tuple[Chunk, ...] = ()
    events: Mapping[Event, int] = field(default_factory=dict)
    k: int = 0

    def merge(self, other: Charges) -> Charges:
        """Both multisets together. Small chunks are joined so that a long chain of additions stays short."""
        events = dict(self.events)
        for event, count in other.events.items():
            events[event] = events.get(event, 0) + count
        chunks = self.chunks + other.chunks
        _check_total(self.k + other.k)
        small = [chunk for chunk in chunks if len(chunk) < 4096]
        if len(small) > 32:
            chunks = (*(chunk for chunk in chunks if len(chunk) >= 4096), joined(small))
        return Charges(chunks, events, self.k + other.k)


def checked_finite_order(alpha: object) -> float:
    """A Renyi order as a float above 1 that is not infinite."""
    order = checked_real(alpha, "alpha")
    if not 1 < order < math.inf:
        raise InvalidValue("alpha", alpha, "must be a finite number > 1")
    return order


def check_range(charges: Charges) -> None:
    """Refuse what no engine can price: epsilons and noises so far out that nothing is private."""
    way_out = "above that, nothing is private"
    for chunk in charges.chunks:
        _check(chunk.epsilons, chunk.epsilons <= _LARGEST_EPSILON, "charges", "must be at most 1e6", way_out)
    for event in charges.events:
        bare = event.event if isinstance(event, Sampled) else event
        if isinstance(bare, BoundedRange) and not bare.epsilon <= _LARGEST_EPSILON:
            raise InvalidValue("epsilon", bare.epsilon, "must be at most 1e6", way_out)
        multiplier = getattr(bare, "noise_multiplier", 1.0)
        if not multiplier >= 1 / _LARGEST_EPSILON:
            raise InvalidValue("noise_multiplier", multiplier, "must be at least 1e-6", way_out)


def _check_total(k: int) -> None:
    if not k < _MOST:
        raise InvalidValue("k", k, "must be below 2^53 charges in total", "compose fewer charges at once")


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk with the charges of all."""
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return Chunk(_NONE, _NONE, np.zeros(0, dtype=np.int64))
    return Chunk(
        np.concatenate([chunk.epsilons for chunk in chunks]),
        np.concatenate([chunk.deltas for chunk in chunks]),
        np.concatenate([chunk.counts for chunk in chunks]),
    )


def read_charges(charges: Any, deltas: Any = None, counts: Any = None) -> Charges:
    """`charges` in any accepted form, checked, as one multiset."""
    unfit = isinstance(charges, (str, bytes, Mapping, Event, numbers.Number, np.ma.MaskedArray))
    if unfit or getattr(charges, "ndim", 1) == 0 or not isinstance(charges, Iterable):
        raise InvalidValue("charges", charges, f"must be a sequence, not {type(charges).__name__}", _FORMS)
    array = _as_float_array(charges)
    if array is not None:
        if array.ndim == 2:
            if array.shape[1] != 2:
                raise InvalidValue("charges.shape", array.shape, "must be (k,) or (k, 2)", _FORMS)
            if deltas is not None:
                raise InvalidValue("deltas", deltas, "must not be given when charges are (epsilon, delta) pairs")
            array, deltas = array[:, 0], array[:, 1]
        return _from_arrays(array, deltas, counts)
    return _from_objects(list(charges), deltas, counts)


def _as_float_array(charges: Any) -> Array | None:
    """Real numbers as one float array; None when they have to be looked at one by one."""
    if isinstance(charges, np.ndarray):
        if charges.dtype.kind in "iuf" and charges.ndim in (1, 2):
            return charges.astype(np.float64)
        if charges.dtype.kind != "O":
            raise InvalidValue(
                "charges",
                charges,
                f"must hold real numbers in one dimension, not {charges.dtype} in {charges.ndim}",
                _FORMS,
            )
        return None
    if not isinstance(charges, (list, tuple)) or not charges:
        return None
    # type() and not isinstance(): a bool is an int, and bools are refused one by one further on.
    if all(type(charge) in (float, int) for charge in charges):
        try:
            return np.asarray(charges, dtype=np.float64)
        except OverflowError:
            return None
    return None


def _from_arrays(epsilons: Array, deltas: Any, counts: Any) -> Charges:
    size = len(epsilons)
    _check(epsilons, (epsilons >= 0) & (epsilons < np.inf), "charges", "must be a finite number >= 0")
    delta_array = np.zeros(size) if deltas is None else _as_long_as_charges(deltas, size, "deltas")
    _check(delta_array, (delta_array >= 0) & (delta_array < 1), "deltas", "must be >= 0 and < 1")
    count_array = _read_counts(counts, size)
    # A count of 0 is no charge at all.
    if counts is not None and not count_array.all():
        present = count_array > 0
        epsilons, delta_array, count_array = epsilons[present], delta_array[present], count_array[present]
    k = sum(count_array.tolist()) if counts is not None else size
    _check_total(k)
    if not size:
        return Charges()
    return Charges((Chunk(epsilons, delta_array, count_array),), {}, k)


def _as_long_as_charges(values: Any, size: int, name: str) -> Array:
    """An array of real numbers as long as the charges; a single number stands for all of them."""
    if isinstance(values, (numbers.Number, np.generic)) or (isinstance(values, np.ndarray) and values.ndim == 0):
        return np.full(size, checked_real(values, name))
    if isinstance(values, (str, bytes, Mapping, np.ma.MaskedArray)) or not isinstance(values, Iterable):
        raise InvalidValue(name, values, "must be a sequence of numbers, one for each charge")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        array = values
    else:
        array = np.array([checked_real(value, f"{name}[{place}]") for place, value in enumerate(values)])
    if array.shape != (size,):
        raise InvalidValue(f"len({name})", len(array), f"must equal the number of charges, {size}")
    return array.astype(np.float64)


def _read_counts(counts: Any, size: int) -> NDArray[np.int64]:
    if counts is None:
        return np.ones(size, dtype=np.int64)
    array = _as_long_as_charges(counts, size, "counts")
    whole = (array >= 0) & (array == np.floor(array)) & (array < _MOST)
    _check(array, whole, "counts", "must be a whole number >= 0 and below 2^53")
    return array.astype(np.int64)


def _check(values: Array, good: NDArray[np.bool_], name: str, rule: str, way_out: str = "") -> None:
    if not good.all():
        place = int(np.argmin(good))
        raise InvalidValue(f"{name}[{place}]", float(values[place]), rule, way_out)


def _from_objects(charges: list[Any], deltas: Any, counts: Any) -> Charges:
    """Pairs, events and numbers, mixed freely."""
    if deltas is not None and not charges:
        _as_long_as_charges(deltas, 0, "deltas")
    elif deltas is not None:
        raise InvalidValue(
            "deltas",
            deltas,
            "must not be given unless all charges are plain epsilons",
            "put each delta into its pair or event",
        )
    repeats = _read_counts(counts, len(charges)).tolist()
    epsilons: list[float] = []
    leaks: list[float] = []
    multiples: list[int] = []
    events: dict[Event, int] = {}
    for place, charge, repeat in _one_by_one(charges, repeats):
        if not repeat:
            continue
        pair = _as_pair(charge, f"charges[{place}]")
        if pair is None:
            events[charge] = events.get(charge, 0) + repeat
        else:
            epsilons.append(pair[0])
            leaks.append(pair[1])
            multiples.append(repeat)
    k = sum(multiples) + sum(events.values())
    _check_total(k)
    chunk = Chunk(np.array(epsilons), np.array(leaks), np.array(multiples, dtype=np.int64))
    return Charges((chunk,) if epsilons else (), events, k)


def _one_by_one(charges: list[Any], repeats: list[int]) -> Iterator[tuple[int, Any, int]]:
    """(place, charge, count) with composed events taken apart: their parts are charges of their own."""
    for place, (charge, repeat) in enumerate(zip(charges, repeats, strict=True)):
        if isinstance(charge, Composed):
            yield from ((place, event, count * repeat) for event, count in charge.parts)
        else:
            yield place, charge, repeat


def _as_pair(charge: Any, name: str) -> tuple[float, float] | None:
    """(epsilon, delta) when the charge's loss is that of (leaky) randomized response; None for another event."""
    if isinstance(charge, ApproxDP):
        return charge.epsilon, charge.delta
    if isinstance(charge, RandomizedResponse):
        return charge.epsilon, 0.0
    if isinstance(charge, BoundedRange) and charge.epsilon == 0:
        return 0.0, 0.0
    if isinstance(charge, Sampled) and charge.probability == 0:
        return 0.0, 0.0
    if isinstance(charge, Sampled) and charge.probability == 1:
        return _as_pair(charge.event, name)
    if isinstance(charge, Event):
        return None
    if isinstance(charge, (tuple, list)) or (isinstance(charge, np.ndarray) and charge.ndim == 1):
        if len(charge) != 2:
            raise InvalidValue(name, charge, "must be a pair (epsilon, delta)", _FORMS)
        return checked_epsilon(charge[0], f"{name}[0]"), checked_delta(charge[1], f"{name}[1]")
    if isinstance(charge, (numbers.Number, np.generic)):
        return checked_epsilon(charge, name), 0.0
    way_out = "pass its .event" if isinstance(getattr(charge, "event", None), Event) else _FORMS
    raise InvalidValue(name, charge, f"must be a number, a pair or an event, not {type(charge).__name__}", way_out)


@dataclass(frozen=True, eq=False)
class Kinds:
    """The events other than (epsilon, delta) pairs, by the engine that prices them."""

    geometric: Chunk  # discrete Laplace at sensitivity 1: randomized response with epsilon = 1 / noise_multiplier
    laplace: Array
    laplace_counts: Array
    ranges: Array
    range_counts: Array
    stepped: Stepped  # discrete Laplace of several steps
    gaussian: tuple[tuple[float, int], ...]
    grid: tuple[tuple[Event, int], ...]


def sort_events(events: Mapping[Event, int], alone: bool = False) -> Kinds:
    """Laplace epsilons, Gaussian multipliers, bounded ranges, and what only the grid can price.

    An event that is `alone` and of bounded range goes to the grid engine, which knows its curve in closed form.
    """
    geometric: dict[float, int] = {}
    laplace: dict[float, int] = {}
    gaussian: dict[float, int] = {}
    ranges: dict[float, int] = {}
    stepped: dict[tuple[float, int], int] = {}
    grid: list[tuple[Event, int]] = []
    for event, count in events.items():
        bare = event.event if isinstance(event, Sampled) and event.probability == 1 else event
        if isinstance(bare, DiscreteLaplaceNoise) and bare.l1_sensitivity == 1:
            geometric[bare.noise_multiplier] = geometric.get(bare.noise_multiplier, 0) + count
        elif not alone and isinstance(bare, DiscreteLaplaceNoise) and _fits_floats(bare):
            key = bare.noise_multiplier, bare.l1_sensitivity
            stepped[key] = stepped.get(key, 0) + count
        elif isinstance(bare, LaplaceNoise):
            laplace[bare.noise_multiplier] = laplace.get(bare.noise_multiplier, 0) + count
        elif not alone and isinstance(bare, BoundedRange) and _SMALLEST_RANGE <= bare.epsilon <= _LARGEST_RANGE:
            ranges[bare.epsilon] = ranges.get(bare.epsilon, 0) + count
        elif isinstance(bare, GaussianNoise):
            gaussian[bare.noise_multiplier] = gaussian.get(bare.noise_multiplier, 0) + count
        else:
            grid.append((bare, count))
    return Kinds(
        Chunk(
            np.array([1 / m for m in geometric]),
            np.zeros(len(geometric)),
            np.array(list(geometric.values()), dtype=np.int64),
        ),
        np.array([1 / m for m in laplace]),
        np.array([float(n) for n in laplace.values()]),
        np.array(list(ranges)),
        np.array([float(n) for n in ranges.values()]),
        Stepped(
            np.array([1 / multiplier for multiplier, _ in stepped]),
            np.array([float(steps) for _, steps in stepped]),
            np.array([float(n) for n in stepped.values()]),
        ),
        tuple(gaussian.items()),
        tuple(grid),
    )


def _fits_floats(event: DiscreteLaplaceNoise) -> bool:
    """Whether floats hold the transform well: steps and rates far from where they under- or overflow."""
    epsilon = 1 / event.noise_multiplier
    return event.l1_sensitivity <= 2**40 and epsilon <= _LARGEST_RANGE and epsilon / event.l1_sensitivity >= 1e-15


class Leaks(NamedTuple):
    """The distinct positive deltas with their multiplicities."""

    deltas: Array
    counts: NDArray[np.int64]


def collect_leaks(chunks: Sequence[Chunk]) -> Leaks:
    """All leaks of the chunks, equal ones joined."""
    parts = [(chunk.deltas[chunk.deltas > 0], chunk.counts[chunk.deltas > 0]) for chunk in chunks if chunk.leaky]
    deltas = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0)
    if not len(deltas):
        return Leaks(np.zeros(0), np.zeros(0, dtype=np.int64))
    counts = np.concatenate([part[1] for part in parts])
    distinct, inverse = np.unique(deltas, return_inverse=True)
    totals = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, inverse, counts)
    return Leaks(distinct, totals)


class ComposedLoss:
    """Charges sorted by kind, with their transform, sketch, lattice and leaks.

    `off_lattice` says that a part of the charges is known to share no lattice, so the whole shares none; `calm` that
    their transform is known not to come back far up the line, which more charges can only make truer.
    """

    def __init__(
        self, charges: Charges, sketch: Sketch | None = None, off_lattice: bool = False, calm: bool = False
    ) -> None:
        self.charges = charges
        self.calm = calm
        self._sketch = sketch
        self._off_lattice = off_lattice

    @cached_property
    def kinds(self) -> Kinds:
        """Events other than (epsilon, delta) pairs."""
        return sort_events(self.charges.events, alone=self.charges.k == 1)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Everything that is randomized response to the accountant."""
        geometric = self.kinds.geometric
        return (*self.charges.chunks, geometric) if len(geometric) else self.charges.chunks

    @property
    def exact(self) -> bool:
        """Whether the epsilons are doubles as given, and not rounded quotients."""
        return not len(self.kinds.geometric)

    @cached_property
    def leaks(self) -> Leaks:
        """The deltas > 0 of the charges, exactly."""
        return collect_leaks(self.charges.chunks)

    @cached_property
    def transform(self) -> Transform:
        """The transform over distinct epsilons, for proofs."""
        chunk = joined(self.chunks)
        epsilons, inverse = np.unique(chunk.epsilons, return_inverse=True)
        counts = np.bincount(inverse, chunk.counts.astype(np.float64), len(epsilons)).astype(np.float64)
        positive = epsilons > 0
        return self._transform(epsilons[positive], counts[positive])

    @cached_property
    def sketch(self) -> Sketch:
        """The sketch of the epsilons, for estimates."""
        if self._sketch is not None:
            return self._sketch
        sketch = Sketch()
        for chunk in self.chunks:
            positive = chunk.epsilons > 0
            if positive.all():
                sketch = sketch.plus(chunk.epsilons, chunk.counts)
            else:
                sketch = sketch.plus(chunk.epsilons[positive], chunk.counts[positive])
        return sketch

    @cached_property
    def sketch_transform(self) -> Transform:
        """The transform over the sketch's nodes, for estimates of large multisets."""
        return self._transform(*self.sketch.nodes())

    def _transform(self, epsilons: Array, weights: Array) -> Transform:
        kinds = self.kinds
        gaussian = math.fsum(n / m / m for m, n in kinds.gaussian)
        return Transform(
            epsilons,
            weights,
            kinds.laplace,
            kinds.laplace_counts,
            gaussian,
            kinds.ranges,
            kinds.range_counts,
            kinds.stepped,
        )

    @property
    def distinct(self) -> int:
        """How many distinct positive epsilons there are."""
        return len(self.transform.epsilons)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice shared by all epsilons, if there is one and nothing else takes part."""
        kinds = self.kinds
        if self._off_lattice or kinds.grid or not self.transform.only_responses:
            return None
        return recognise(self.transform.epsilons)

    @cached_property
    def quick_lattice(self) -> Lattice | None:
        """The same for estimates: a look at a few epsilons of a large array is enough to say no."""
        if self._off_lattice:
            return None
        for chunk in self.chunks:
            few = chunk.epsilons[:64] if len(chunk) > 4096 else np.zeros(0)
            if few.any() and recognise(few[few > 0]) is None:
                return None
        return self.lattice

    @cached_property
    def cheap_transform(self) -> Transform:
        """The transform to search and to estimate with: the true one where it is small, else the sketch's."""
        return self.sketch_transform if self.sketched else self.transform

    @property
    def sketched(self) -> bool:
        """Whether estimates go through the sketch."""
        return self.charges.k > 4096 and bool(self.chunks) and self.quick_lattice is None

    @cached_property
    def sampled_epsilons(self) -> Array:
        """Some hundreds of the epsilons, evenly picked."""
        if not self.chunks:
            return np.zeros(0)
        largest = max(self.chunks, key=len)
        few = largest.epsilons[:: max(1, len(largest) // 400)]
        return few[few > 0]

    @cached_property
    def top(self) -> float:
        """The largest loss that the charges can have together."""
        return self.transform.top()[0]

    def losses(self, most: int) -> list[float] | None:
        """All losses >= 0 that can occur, when there are at most `most`; None otherwise."""
        transform = self.transform
        if self.kinds.grid or not transform.only_responses:
            return None
        top = self.top
        if self.lattice is not None and top / self.lattice.span < most:
            below = [top - self.lattice.span * j for j in range(int(top / self.lattice.span) + 1)]
        elif self.charges.k <= 6:
            depths = [0.0]
            for e, n in zip(transform.epsilons.tolist(), transform.weights.tolist(), strict=True):
                depths = [depth + 2 * e * j for depth in depths for j in range(int(n) + 1)]
            below = [top - depth for depth in depths]
        else:
            return None
        return sorted({0.0, *(loss for loss in below if loss >= 0)})

    def largest_loss(self, limit: float) -> list[float]:
        """The largest loss if there is one below `limit`, as a list of one or none."""
        return [] if self.kinds.grid or not self.top <= limit else [self.top]

    def merge(self, other: ComposedLoss) -> ComposedLoss:
        """Both together; sketches are added, not rebuilt."""
        sketch = self.sketch.merge(other.sketch) if self._has_sketch else None
        off_lattice = "quick_lattice" in self.__dict__ and self.quick_lattice is None
        return ComposedLoss(self.charges.merge(other.charges), sketch, off_lattice, self.calm)

    @property
    def _has_sketch(self) -> bool:
        return "sketch" in self.__dict__ or self._sketch is not None

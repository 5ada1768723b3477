"""Which noises sums and means are made of, for what is computed from their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference.answers import SymmetricInterval
from farthing.inference.noisy_numbers import CellNoise, NoisyCells, Spread
from farthing.statistics.measurements import Noise
from farthing.statistics.moments.moment_measurements import Shared

Floats = NDArray[np.float64]


def noise_of_sum(
    shared: Shared, noises: Mapping[str, Noise], weights: Sequence[float], interval: SymmetricInterval
) -> CellNoise:
    """The noises of a sum that has so much of the noise of each part."""
    top = _cells(shared, interval.centre, weights)
    noise = CellNoise(_blocks(shared, noises), top, least=interval.least, most=interval.most)
    drawn = [term.coefficient for term in interval.distribution.terms if term.kind == "normal"]
    return _with_sampling(noise, shared, np.broadcast_to(drawn[0], interval.centre.shape) if drawn else None)


def noise_of_mean(
    shared: Shared, noises: Mapping[str, Noise], first: Floats, number: Floats, sampling: Floats | None
) -> CellNoise:
    """The noises of S1 over N; `sampling` is how far S1 varies over samples, where that counts."""
    middle, half = shared.centred.middle, shared.centred.half_width
    counted = shared.number if shared.known_rows is None else np.zeros(len(shared.parts))
    top, bottom = _cells(shared, first, shared.first), _cells(shared, number, counted)
    noise = CellNoise(_blocks(shared, noises), top, bottom, middle, middle - half, middle + half)
    return _with_sampling(noise, shared, sampling)


def _with_sampling(noise: CellNoise, shared: Shared, sampling: Floats | None) -> CellNoise:
    if sampling is None:
        return noise
    return replace(noise, sampling=tuple(sampling.tolist()), apart=shared.rows_per_unit == 1)


def _blocks(shared: Shared, noises: Mapping[str, Noise]) -> tuple[tuple[str, Any, float], ...]:
    return tuple((slot.name, noises[slot.name].kind, slot.scale(noises[slot.name])) for slot in shared.slots)


def _cells(shared: Shared, values: Floats, weights: Sequence[float] | Floats) -> NoisyCells:
    names, members = [slot.name for slot in shared.slots], tuple(shared.members.tolist())
    spreads = tuple(
        Spread(names.index(part.slot.name), float(weight), members, part.place, part.width)
        for part, weight in zip(shared.parts, weights, strict=True)
        if weight
    )
    return NoisyCells(tuple(values.tolist()), spreads)

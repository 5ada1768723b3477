"""How likely a difference between two groups is to be found, before anything is spent: sample and noise together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference import tail_of_sum
from farthing.inference.comparisons import CLOSE, Estimate
from farthing.inference.noisy_numbers import added, error_in, terms_of
from farthing.privacy.events import checked_real
from farthing.statistics.measurements import Noise, Output
from farthing.statistics.moments.mean_outputs import MeanOutput
from farthing.statistics.moments.moment_noise import noise_of_mean

_STEPS = 60


def power_of(
    output: Output,
    noises: Mapping[str, Noise],
    groups: tuple[Any, Any],
    difference: float,
    spread: float | None,
    level: float,
) -> float:
    """The probability that a test at this level finds a difference of two means, if groups are as large as expected.

    `spread` is the standard deviation of the values within a group, where that is not expected of the column.
    """
    size = abs(checked_real(difference, "difference"))
    if not size < math.inf:
        raise InvalidValue("difference", difference, "must be a finite number")
    if not 0 < level < 1:
        raise InvalidValue("level", level, "must be between 0 and 1", "0.05 is usual")
    noise = _noise_of_difference(output, noises, groups, size, spread)
    if noise is None:
        return 0.0
    missed, (terms,) = error_in(noise, 1 - level), terms_of(noise)
    beyond = tail_of_sum(terms, missed + size) / 2
    apart = missed - size
    return min(1.0, beyond + (tail_of_sum(terms, apart) / 2 if apart >= 0 else 1 - tail_of_sum(terms, -apart) / 2))


def detectable_by(
    output: Output,
    noises: Mapping[str, Noise],
    groups: tuple[Any, Any],
    power: float,
    spread: float | None,
    level: float,
) -> float:
    """The least difference of two means that is found with this probability; infinite if none within the bounds is."""
    if not level < checked_real(power, "power") < 1:
        raise InvalidValue("power", power, f"must be above level={level} and below 1", "0.8 is usual")
    low, high = 0.0, output.most
    if not power_of(output, noises, groups, high, spread, level) >= power:
        return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = power_of(output, noises, groups, middle, spread, level) >= power
        low, high = (low, middle) if enough else (middle, high)
        if high - low <= 1e-4 * high:
            break
    return high


def _noise_of_difference(
    output: Output, noises: Mapping[str, Noise], groups: tuple[Any, Any], size: float, spread: float | None
) -> dict[Any, float] | None:
    """The noises and the error of sampling in the difference; None where a group is too small for its noise."""
    if not isinstance(output, MeanOutput) or len(output.labels) < 2:
        raise InvalidValue("name", output.name, "must be a mean by groups", "of a column of flags, a mean is a share")
    for group in groups:
        if group not in output.labels:
            raise InvalidValue("group", group, "must be a group", f"there are {list(output.labels)}")
    shared = output.shared
    if shared.rows_per_unit != 1:
        raise InvalidValue("name", output.name, "counts several rows of one unit", "ask with max_rows=1")
    rows, means = np.asarray(shared.rows, dtype=float), np.array(output.worst[0], dtype=float)
    places = [output.labels.index(group) for group in groups]
    lower, upper = shared.centred.lower, shared.centred.upper
    step = size if means[places[0]] + size <= upper else -size
    means[places[1]] = np.clip(means[places[0]] + step, lower, upper)
    cells = noise_of_mean(shared, noises, rows * (means - shared.centred.middle), rows, None)
    parts, variances = [], []
    for place in places:
        top, bottom = cells.numbers(place)
        one = Estimate.of(0.0, lambda level: (0.0, 0.0), top, bottom)
        if one.slope is None or one.relative > CLOSE:
            return None
        parts.append(one.slope)
        variances.append(_variance(output, float(means[place]), spread) / rows[place])
    sample = ("", "sample", 0, "normal", math.sqrt(sum(variances)))
    return {**added([(1.0, parts[0]), (-1.0, parts[1])]), sample: 1.0}


def _variance(output: MeanOutput, mean: float, spread: float | None) -> float:
    """The variance of values within a group: of a share it follows, else as given or as expected."""
    centred = output.shared.centred
    if spread is not None:
        given = checked_real(spread, "spread")
        if not 0 <= given <= centred.half_width:
            raise InvalidValue("spread", spread, "must be between 0 and half the distance of the bounds")
        return given**2
    if centred.thirds is centred.halves:  # a flag
        return mean * (1 - mean)
    if not (output.is_expected and output.shared.is_expected):
        way_out = "or say what is expected of the column: expected={...} with its mean and standard deviation"
        raise InvalidValue("spread", None, "must be the standard deviation within a group", way_out)
    return float(output.variance[0])

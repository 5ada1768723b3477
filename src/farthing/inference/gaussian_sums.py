"""Sums of noises that are smooth but for a ripple, many sums at once: of Gaussian noises, and of Laplace noises.

The same errors as `noise_sums.distribution_of` finds one after the other, for the sums that are most common in plans of
many statistics: an interval of a ratio asks for the error of a new sum in every round and cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from farthing.inference.noise_sums import OUTWARD, STEPS_TO_BE_NORMAL
from farthing.inference.noise_terms import (
    LARGEST_RIPPLE,
    LEAST,
    NARROW,
    NEGLIGIBLE,
    REPEATS,
    SLACK,
    SMALLEST_TAIL,
    Floats,
    errors_on,
    path_near,
    variance_of,
)
from farthing.inference.normal_quantiles import normal_quantiles

Flags = NDArray[np.bool_]
_DIVISORS = np.arange(1, 13)
_WIDE = 2.0  # from this scale on the variance of a noise is the square of its scale


def normal_errors(
    kinds: Sequence[str], scales: Sequence[float], counts: Floats, coefficients: Floats, confidence: float | Floats
) -> Floats:
    """The errors at a confidence of sums of noises, a row for each noise and a column for each sum.

    Statement:
        A sum of discrete Gaussian noises with at least `STEPS_TO_BE_NORMAL` steps of their common lattice in a standard
        deviation, or without one, has the normal's tails midway between its points, up to a ripple that
        `noise_terms.wide_sum` bounds. Beyond `SMALLEST_TAIL` Chernoff's bound sqrt(2 v log(2 / tail)) holds as well.
    Source: `noise_sums.distribution_of` and what it names.
    Assumes: the noises of a column are independent.
    Direction: the errors are rounded up.
    Checked by: tests/theorems/test_sums_of_noise.py

    Args:
        kinds: "gaussian" or "normal", for each row.
        scales: The scale of each row.
        counts: How many copies of each noise a sum has.
        coefficients: What they are multiplied by.
        confidence: Between 0 and 1, one for all sums or one for each.

    Returns:
        The errors; NaN where a sum is not of this kind.

    >>> one = np.ones((1, 2))
    >>> normal_errors(["gaussian"], [10.0], one, one * [1, 2], 0.95)
    array([20., 40.])
    >>> normal_errors(["laplace"], [10.0], one, one, 0.95)
    array([nan, nan])
    """
    size, scale = np.abs(coefficients), np.reshape(scales, (-1, 1))
    discrete = np.array([kind == "gaussian" for kind in kinds], dtype=bool)
    if "laplace" in kinds or not np.all(scale[discrete] >= _WIDE):
        return np.full(size.shape[1], math.nan)
    copies = _joined(size, scale, counts, discrete)
    heard = copies > 0
    variance = np.sum(copies * (size * scale) ** 2, axis=0)
    smeared = (heard[~discrete] & (scale[~discrete] > 0)).any(axis=0)
    step = _common_step(size[discrete], heard[discrete], smeared)
    ripple = _ripple(size, scale, copies, discrete, step)
    deviation = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(step > 0, deviation / np.where(step > 0, step, 1.0), math.inf)
        narrower = deviation * np.sqrt(1 - 1 / (12 * steps**2))
        tail = (1 - confidence - ripple - 4e-3 / steps**4) / 2
        x = -normal_quantiles(tail) * narrower * OUTWARD
        outward = step * np.maximum(0, np.ceil(x / np.where(step > 0, step, 1.0) - 0.5))
    errors = np.where((step > 0) & (x < math.inf), outward, x)
    missed = 1 - np.asarray(confidence, dtype=float)
    bound = np.sqrt(2 * variance * np.log(2 / missed)) * OUTWARD
    # The normal's quantile is infinite where the ripple alone exceeds what may be missed.
    errors = np.where((missed < SMALLEST_TAIL) | ~np.isfinite(errors), np.minimum(errors, bound), errors)
    suits = (ripple <= LARGEST_RIPPLE) & (steps >= STEPS_TO_BE_NORMAL)
    return np.where(variance == 0, 0.0, np.where(suits, errors, math.nan))


def wide_errors(
    kinds: Sequence[str], scales: Sequence[float], counts: Floats, coefficients: Floats, confidence: float | Floats
) -> Floats:
    """The same for sums in which there is Laplace noise: what `noise_terms.errors_of` finds, from arrays.

    Statement:
        Where the ripple of a sum of integer noises is small, its tails are an integral along a path in the complex
        plane, up to that ripple and the slack of the rule.
    Source: `noise_terms.wide_sum`.
    Assumes: the noises of a column are independent.
    Direction: the errors are rounded up.
    Checked by: tests/theorems/test_sums_of_noise.py

    >>> wide_errors(["laplace"], [10.0], np.array([[4.0, 1.0]]), np.ones((1, 2)), 0.95)
    array([57., nan])
    """
    size, scale, columns = np.abs(coefficients), np.reshape(scales, (-1, 1)), np.shape(coefficients)[1]
    laplace, normal = (np.array([kind == each for kind in kinds], dtype=bool) for each in ("laplace", "normal"))
    errors = np.full(columns, math.nan)
    if not laplace.any() or not np.all(scale[~normal] >= NARROW):
        return errors
    copies = _joined(size, scale, counts, laplace + 2 * normal)
    heard = copies > 0
    variances = np.reshape([variance_of(*each) for each in zip(kinds, scales, strict=True)], (-1, 1))
    variance = np.sum(copies * size**2 * variances, axis=0)
    smeared = (heard[normal] & (scale[normal] > 0)).any(axis=0)
    step = _common_step(size[~normal], heard[~normal], smeared)
    ripple = _ripple_beside_laplace(size, scale, copies, laplace, normal, variances, step)
    missed = np.broadcast_to(1 - np.asarray(confidence, dtype=float), (columns,))
    several = copies.sum(axis=0) > 1  # one by itself has a closed form
    suits = heard[laplace].any(axis=0) & several & (ripple <= LARGEST_RIPPLE) & (missed >= SMALLEST_TAIL)
    if not suits.any():
        return errors
    deviation, target = np.sqrt(variance[suits]), (missed - SLACK - ripple)[suits]
    relative, copies, own = size[:, suits] / deviation, copies[:, suits], variances[laplace]
    excess = np.sum(3 * copies[laplace] * relative[laplace] ** 4 * own**2, axis=0)
    near, far = -normal_quantiles(target / 2), -np.log(target) / math.sqrt(2)
    x = np.maximum(near + (far - near) * np.minimum(excess / 3, 1), LEAST)
    with np.errstate(divide="ignore"):
        poles = np.where(copies[laplace] > 0, 1 / (relative[laplace] * scale[laplace]), math.inf)
    rest = np.sum(copies[~laplace] * (relative[~laplace] * scale[~laplace]) ** 2, axis=0)
    twice = np.broadcast_to(2 * own, poles.shape)
    path = path_near(x, relative[laplace], twice, copies[laplace], poles.min(axis=0), rest, step[suits] / deviation)
    errors[suits] = errors_on(path, x, target, deviation, step[suits])
    return errors


def _ripple_beside_laplace(
    size: Floats, scale: Floats, copies: Floats, laplace: Flags, normal: Flags, variances: Floats, step: Floats
) -> Floats:
    """What `noise_terms.wide_sum` adds up, for many sums."""

    def size_at(frequency: Floats, without: int = -1) -> Floats:
        exponent = np.zeros_like(frequency)
        for j in range(len(size)):
            if j == without:
                continue
            u = size[j] * frequency
            if laplace[j]:
                exponent -= copies[j] * np.log1p(2 * variances[j] * np.sin(u / 2) ** 2)
            else:
                u = u if normal[j] else u - 2 * math.pi * np.rint(u / (2 * math.pi))
                exponent -= copies[j] * (scale[j] * u) ** 2 / 2
        return np.asarray(np.exp(exponent))

    has_step = step > 0
    safe = np.where(has_step, step, 1.0)
    total = np.where(has_step, size_at(math.pi / safe), 0.0)
    k = np.arange(1, REPEATS + 1)[:, None]
    for i in np.flatnonzero(~normal).tolist():
        heard = copies[i] > 0
        own = np.where(heard, size[i], 1.0)
        width = 0.45 / np.sqrt(np.where(heard, copies[i], 1.0) * variances[i])
        common = has_step & (k % np.maximum(np.rint(own / safe), 1) == 0)
        counted = heard & (width >= NEGLIGIBLE * k) & ~common
        errors = np.where(counted, width / k * size_at(2 * math.pi * k / own, i), 0.0)
        finer = (copies > 0) & (normal[:, None] | (2 * REPEATS * size < own))
        last = counted & finer.any(axis=0) & (errors * REPEATS < NEGLIGIBLE)
        total += np.sum(np.where(np.cumsum(last, axis=0) > last, 0.0, errors), axis=0)
    return np.asarray(total)


def _joined(size: Floats, scale: Floats, counts: Floats, discrete: Flags | NDArray[np.int64]) -> Floats:
    """The copies of each noise, where two of one scale and coefficient are one noise with more copies."""
    copies = np.where(size > 0, counts, 0.0)
    for i in range(1, len(size)):
        for j in range(i):
            if scale[i] == scale[j] and discrete[i] == discrete[j]:
                alike = size[i] == size[j]
                copies[j] += np.where(alike, copies[i], 0.0)
                copies[i] = np.where(alike, 0.0, copies[i])
    return copies


def _common_step(size: Floats, heard: Flags, smeared: Flags) -> Floats:
    """The g of which all coefficients of a column are whole multiples, 0 where there is no plain one."""
    if not len(size):
        return np.zeros(len(smeared))
    silent = ~heard.any(axis=0)
    least = np.where(silent, 1.0, np.min(np.where(heard, size, math.inf), axis=0))
    multiple = np.where(heard, size, least) / least * _DIVISORS[:, None, None]
    whole = np.all(np.abs(multiple - np.rint(multiple)) <= 1e-9 * multiple, axis=1)
    first = np.argmax(whole, axis=0)
    return np.where(whole.any(axis=0) & ~smeared & ~silent, least / _DIVISORS[first], 0.0)


def _ripple(size: Floats, scale: Floats, counts: Floats, discrete: Flags, step: Floats) -> Floats:
    """What `noise_terms.wide_sum` adds up, without the terms that it leaves out because others are negligible.

    Up to twice `NEGLIGIBLE` more than there.
    """
    total = np.zeros(size.shape[1])
    has_step = step > 0
    safe = np.where(has_step, step, 1.0)
    at_half = _transform(size, scale, counts, discrete, math.pi / safe)
    total += np.where(has_step, at_half, 0.0)
    k = np.arange(1, REPEATS + 1)[:, None]
    for i in np.flatnonzero(discrete):
        heard = counts[i] > 0
        width = 0.45 / np.sqrt(np.where(heard, counts[i], 1) * scale[i] ** 2)
        rest = np.where((np.arange(len(size)) == i)[:, None], 0, counts)
        left = _transform(size, scale, rest, discrete, 2 * math.pi * k / np.where(heard, size[i], 1.0))
        multiple = np.where(has_step, np.round(np.where(heard, size[i], 1.0) / safe), REPEATS + 1)
        # Beside no others, every repeat is common to all terms, and in the kernel.
        counted = heard & (width >= NEGLIGIBLE * k) & (k % np.maximum(multiple, 1) != 0)
        total += np.sum(np.where(counted, width / k * left, 0.0), axis=0)
    return total


def _transform(size: Floats, scale: Floats, counts: Floats, discrete: Flags, frequency: Floats) -> Floats:
    """The characteristic functions of sums at a frequency for each, or at several."""
    exponent = np.zeros(np.shape(frequency))
    for own, width, copies, lattice in zip(size, scale[:, 0], counts, discrete, strict=True):
        if not copies.any():
            continue
        turns = own / (2 * math.pi) * frequency
        if lattice:
            turns -= np.rint(turns)
        exponent -= copies * (2 * (math.pi * width) ** 2) * (turns * turns)
    return np.exp(exponent)

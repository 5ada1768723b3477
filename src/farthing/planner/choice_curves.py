"""Errors of choices by exponential weights as tables over epsilon."""

from __future__ import annotations

import math

import numpy as np

from farthing.planner.slot_facts import Floats

GRID = np.exp(np.linspace(math.log(1e-6), math.log(50.0), 321))
"""The epsilons at which the errors of choices by exponential weights are tabulated (between: cubic, in logarithms)."""

COARSE = GRID[::8]
"""Every eighth of them, at which outputs are asked."""


def curve_at(table: Floats, epsilon: float) -> float:
    """A tabulated curve between its points."""
    return math.exp(float(np.interp(math.log(epsilon), np.log(GRID), np.log(table))))


def epsilon_at(table: Floats, error: float) -> float:
    """The least epsilon at which a tabulated curve comes down to an error; where it is level, more buys nothing."""
    enough = table <= error * (1 + 1e-9)
    place = int(np.argmax(enough)) if enough[-1] else len(GRID) - 1
    if place == 0 or not table[place] < table[place - 1]:
        return float(GRID[place])
    left, right = math.log(table[place - 1]), math.log(table[place])
    part = min((left - math.log(error)) / (left - right), 1.0)
    return float(GRID[place - 1] * (GRID[place] / GRID[place - 1]) ** part)


def smooth(coarse: Floats) -> Floats:
    """The table on GRID from values on every eighth point: monotone, by a cubic in logarithms."""
    level = np.log(np.maximum(np.minimum.accumulate(coarse), 1e-300))
    slope = np.gradient(level)
    position = np.arange(len(GRID)) / 8
    left = np.minimum(position.astype(int), len(coarse) - 2)
    u = position - left
    cubic = (
        level[left] * (1 + 2 * u) * (1 - u) ** 2
        + slope[left] * u * (1 - u) ** 2
        + level[left + 1] * u * u * (3 - 2 * u)
        + slope[left + 1] * u * u * (u - 1)
    )
    # Not below the point to its right: at a knee a cubic swings out.
    table: Floats = np.exp(np.clip(cubic, level[left + 1], level[left]))
    return table

"""The distribution of a sum of integer noises by plain convolution: slow, and nothing in it to get wrong."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Part = tuple[str, float, float, int]


def masses(kind: str, scale: float, digits: float = 30.0) -> Floats:
    """P[n] for n = -reach .. reach, summing to 1."""
    reach = math.ceil(scale * digits if kind == "laplace" else scale * math.sqrt(2 * digits)) + 1
    n = np.abs(np.arange(-reach, reach + 1))
    weights = np.exp(-n / scale if kind == "laplace" else -(n**2) / (2 * scale**2))
    return np.asarray(weights / weights.sum())


def lattice_distribution(parts: list[Part]) -> Floats:
    """P[X = n] around the middle, for whole-numbered coefficients."""
    total = np.ones(1)
    for kind, scale, size, count in parts:
        one = masses(kind, scale)
        spread = np.zeros((len(one) - 1) * int(size) + 1)
        spread[:: int(size)] = one
        for _ in range(count):
            total = np.convolve(total, spread)
    return total


@lru_cache(maxsize=64)
def lattice_within(parts: tuple[Part, ...]) -> Floats:
    """P[|X| <= k] for k = 0, 1, ..."""
    distribution = lattice_distribution(list(parts))
    middle = len(distribution) // 2
    both = distribution[middle:].copy()
    both[1:] += distribution[:middle][::-1]
    return np.cumsum(both)


def atoms(parts: list[Part]) -> tuple[Floats, Floats]:
    """All values |X| takes, in order, and P[|X| <= value]: for a few narrow terms with any coefficients."""
    values, weights = np.zeros(1), np.ones(1)
    for (kind, scale, size, _), _ in product_of_copies(parts):
        one = masses(kind, scale, digits=23.0)
        middle = len(one) // 2
        n = np.arange(-middle, middle + 1)
        values = np.add.outer(values, size * n).reshape(-1)
        weights = np.multiply.outer(weights, one).reshape(-1)
    order = np.argsort(np.abs(values))
    return np.abs(values)[order], np.cumsum(weights[order])


def product_of_copies(parts: list[Part]) -> list[tuple[Part, int]]:
    return [pair for part in parts for pair in product([part], range(part[3]))]

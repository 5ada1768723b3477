"""Tables for online answers: 100,000 rows in about 2^16 cells, of kinds that differ in what makes them hard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.workload_data import adult

Counts = NDArray[np.int64]
CELLS, ROWS = 2**16, 100_000
BITS = (2,) * 16
_ADULT = ("education-num", "workclass", "marital-status", "relationship", "race", "sex")


def uniform(rng: np.random.Generator) -> Counts:
    """Every cell alike: there is nothing to learn but noise."""
    return _drawn(np.ones(CELLS), BITS, rng)


def product(rng: np.random.Generator) -> Counts:
    """Sixteen independent columns, some rare."""
    return _drawn(_independent(rng.uniform(0.1, 0.9, 16)), BITS, rng)


def clustered(rng: np.random.Generator) -> Counts:
    """Five groups of rows, each with its own habits."""
    shares = rng.dirichlet(np.ones(5))
    return _drawn(sum(share * _independent(rng.choice([0.1, 0.5, 0.9], 16)) for share in shares), BITS, rng)


def zipf(rng: np.random.Generator) -> Counts:
    """A few cells hold most rows, without any order."""
    return _drawn(rng.permutation(1 / np.arange(1, CELLS + 1) ** 1.1), BITS, rng)


def points(rng: np.random.Generator) -> Counts:
    """Ten cells hold all rows."""
    weights = np.zeros(CELLS)
    weights[rng.choice(CELLS, 10, replace=False)] = rng.dirichlet(np.ones(10))
    return _drawn(weights, BITS, rng)


def threes(rng: np.random.Generator) -> Counts:
    """Three rows in every other cell, at random: as rough as a table can be at this size."""
    counts = np.zeros(CELLS, dtype=np.int64)
    counts[rng.choice(CELLS, ROWS // 3, replace=False)] = 3
    return counts.reshape(BITS)


def parity(rng: np.random.Generator) -> Counts:
    """All sixteen columns interact, and no fifteen of them do."""
    signs = _independent(np.zeros(16) + 0.5)
    for column in range(16):
        signs = signs.reshape(2**column, 2, -1) * np.array([1.0, -1.0])[:, None]
    return _drawn(1 + 0.8 * np.sign(signs.reshape(-1)), BITS, rng)


def plane(rng: np.random.Generator) -> Counts:
    """Two ordered columns of 256 values, correlated."""
    drawn = rng.multivariate_normal([110, 140], [[1500, 900], [900, 1200]], size=ROWS)
    first, second = np.clip(np.round(drawn), 0, 255).astype(np.int64).T
    return np.bincount(256 * first + second, minlength=CELLS).reshape(256, 256)


def line(rng: np.random.Generator) -> Counts:
    """One ordered column of 65,536 values, with two humps."""
    drawn = np.concatenate([rng.normal(20_000, 6_000, ROWS // 2), rng.exponential(9_000, ROWS // 2)])
    return np.bincount(np.clip(np.round(drawn), 0, CELLS - 1).astype(np.int64), minlength=CELLS)


def adult_columns(rng: np.random.Generator) -> Counts:
    """Six columns of Adult, rows drawn again."""
    found = adult()
    assert found is not None  # `tables` leaves it out without the file
    sizes, codes = found
    places = [list(sizes).index(name) for name in _ADULT]
    shape = tuple(sizes[name] for name in _ADULT)
    cells = np.ravel_multi_index([codes[:, place] for place in places], shape)
    return np.bincount(rng.choice(cells, ROWS), minlength=int(np.prod(shape))).reshape(shape)


def _independent(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.ones(1)
    for chance in chances:
        weights = np.outer(weights, [chance, 1 - chance]).reshape(-1)
    return weights


def _drawn(weights: NDArray[np.float64], shape: tuple[int, ...], rng: np.random.Generator) -> Counts:
    return rng.multinomial(ROWS, weights / weights.sum()).astype(np.int64).reshape(shape)


TABLES: dict[str, Callable[[np.random.Generator], Counts]] = {
    "uniform": uniform, "product": product, "clustered": clustered, "zipf": zipf, "points": points,
    "threes": threes, "parity": parity, "plane": plane, "line": line, "adult": adult_columns,
}  # fmt: skip


def tables() -> list[str]:
    """The names of all tables there are files for."""
    return [name for name in TABLES if name != "adult" or adult() is not None]

"""What the steward expects of a column, from public knowledge: used to predict errors, never read from the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real


@dataclass(frozen=True)
class ColumnModel:
    """A guess at a column's distribution: rising points and the share of rows at or below each of them.

    >>> model = ColumnModel.uniform(0.0, 100.0)
    >>> model.mean, float(model.share_below(25.0))
    (50.0, 0.25)
    """

    points: tuple[float, ...]
    shares: tuple[float, ...]
    assumed: bool = False

    @classmethod
    def uniform(cls, lower: float, upper: float) -> ColumnModel:
        """Nothing is known but the bounds."""
        return cls((float(lower), float(upper)), (0.0, 1.0), assumed=True)

    @classmethod
    def normal(cls, mean: float, spread: float, lower: float, upper: float) -> ColumnModel:
        """A bell curve cut off at the bounds, whose rows beyond them sit on the bounds as clipping puts them."""
        points = np.unique(
            np.concatenate(
                (np.linspace(lower, upper, 257), np.linspace(mean - 5 * spread, mean + 5 * spread, 513))
            )
        )
        points = points[(points >= lower) & (points <= upper)]
        shares = np.array([0.5 * math.erfc((mean - x) / (spread * math.sqrt(2))) for x in points])
        shares[-1] = 1.0
        return cls(tuple(map(float, points)), tuple(map(float, shares)))

    @classmethod
    def sample(cls, values: Sequence[float], lower: float, upper: float) -> ColumnModel:
        """Public values of the same kind: last year's table, a published sample."""
        ordered = np.sort(np.clip(np.asarray(values, dtype=float), lower, upper))
        levels = np.linspace(0.0, 1.0, min(len(ordered), 2001))
        points = np.quantile(ordered, levels)
        last = np.append(np.flatnonzero(np.diff(points)), len(points) - 1)
        return cls(tuple(map(float, points[last])), tuple(map(float, levels[last])))

    @classmethod
    def read(cls, column: str, given: Any, lower: float, upper: float) -> ColumnModel:
        """A pair (mean, standard deviation), a list of public values, or None for nothing known.

        A table {"mean": ..., "sd": ..., "missing": ...} is a pair with the share of rows that have no value, and so is
        a list with None in it.
        """
        given = without_missing(column, given)
        if given is None:
            return cls.uniform(lower, upper)
        if isinstance(given, tuple) and len(given) == 2:
            mean = checked_real(given[0], f"expected[{column!r}]")
            spread = checked_real(given[1], f"expected[{column!r}]")
            if not lower <= mean <= upper:
                raise InvalidValue(
                    f"expected[{column!r}]", given, f"must have its mean between {lower:g} and {upper:g}"
                )
            if not 0 < spread < math.inf:
                raise InvalidValue(
                    f"expected[{column!r}]", given, "must have a standard deviation > 0", "write (mean, sd)"
                )
            return cls.normal(mean, spread, lower, upper)
        values = np.asarray(given, dtype=float) if isinstance(given, list | np.ndarray) else np.empty(0)
        if not (values.ndim == 1 and len(values) >= 2 and np.isfinite(values).all()):
            raise InvalidValue(
                f"expected[{column!r}]",
                given,
                "must be (mean, standard deviation) or a list of public values",
            )
        return cls.sample(list(values), lower, upper)

    def share_below(self, x: Any) -> NDArray[np.float64]:
        """The share of rows at or below x."""
        return np.asarray(
            np.interp(np.asarray(x, dtype=float), self.points, self.shares, left=0.0, right=1.0)
        )

    @property
    def mean(self) -> float:
        """The mean under the model."""
        return self._moment(lambda x: x)

    @property
    def variance(self) -> float:
        """The variance under the model."""
        centre = self.mean
        return self._moment(lambda x: (x - centre) ** 2)

    def moment(self, power: int, centre: float = 0.0) -> float:
        """The mean of (x - centre) ** power under the model."""
        return self._moment(lambda x: (x - centre) ** power)

    def _moment(self, function: Any) -> float:
        points, shares = np.asarray(self.points), np.asarray(self.shares)
        low, high, mass = points[:-1], points[1:], np.diff(shares)
        nodes, weights = np.polynomial.legendre.leggauss(5)
        inside = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * nodes[None, :]
        total = float((mass[:, None] * weights[None, :] / 2 * function(inside)).sum())
        return total + float(shares[0]) * float(function(points[0]))


def without_missing(column: str, given: Any) -> Any:
    """What is expected of the values of a column: a pair, a list, or whatever else was given.

    >>> without_missing("age", {"mean": 40, "sd": 12, "missing": 0.1}), without_missing("age", [30, None, 50])
    ((40, 12), [30, 50])
    """
    if isinstance(given, Mapping):
        names = {"mean", "sd"}
        if not names <= set(given) <= names | {"missing"}:
            raise InvalidValue(
                f"expected[{column!r}]", dict(given), "must have mean and sd, and may have missing",
                'write {"mean": 40, "sd": 12, "missing": 0.1}',
            )  # fmt: skip
        return given["mean"], given["sd"]
    return [value for value in given if value is not None] if isinstance(given, list) else given


def present_share(column: str, given: Any) -> float:
    """The share of rows that have a value, as far as anybody said; all of them by default.

    >>> present_share("age", {"mean": 40, "sd": 12, "missing": 0.1}), present_share("age", [30, None, 50, 20])
    (0.9, 0.75)
    """
    if isinstance(given, Mapping) and "missing" in given:
        missing = checked_real(given["missing"], f"expected[{column!r}]['missing']")
        if not 0 <= missing < 1:
            raise InvalidValue(
                f"expected[{column!r}]['missing']", missing, "must be a share of the rows, below 1"
            )
        return 1.0 - missing
    if isinstance(given, list) and given:
        return sum(value is not None for value in given) / len(given) or 1.0
    return 1.0

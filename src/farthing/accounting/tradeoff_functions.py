"""Trade-off functions: the least missed-detection rate of a test, as a function of its false-alarm rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.accounting.loss_transforms import Array
from farthing.errors import InvalidValue


@dataclass(frozen=True, eq=False)
class TradeoffFunction:
    """f(alpha): no test with false-alarm rate alpha misses less often than this.

    Built from finitely many proven points of the curve, so it lies at or below the exact function: its promise holds.

    Attributes:
        alpha: False-alarm rates, increasing.
        beta: The least missed-detection rate at each of them.

    >>> from farthing.accounting import compose
    >>> f = compose([1.0]).tradeoff()
    >>> bool(f(0.1) <= 1 - 0.1)
    True
    """

    alpha: Array
    beta: Array

    def __call__(self, alpha: Any) -> Any:
        """f at one rate or at an array of rates."""
        values = np.asarray(alpha, dtype=np.float64)
        if not np.all((values >= 0) & (values <= 1)):
            raise InvalidValue("alpha", alpha, "must be a rate between 0 and 1")
        result = np.interp(values, self.alpha, self.beta)
        return result if values.ndim else float(result)

"""What is composed. Seeds are fixed, so two runs price the same charges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Case:
    """Charges and the delta to ask at. `epsilons` are drawn when asked for, so that listing cases costs nothing."""

    name: str
    title: str
    delta: float
    kind: str  # "repeated": one epsilon many times; "distinct": different reals; "noise": Laplace and Gaussian
    k: int
    low: float = 0.0
    high: float = 0.0

    def epsilons(self) -> np.ndarray[Any, Any]:
        """The epsilons, in the order they were drawn."""
        import numpy as np

        if self.kind == "repeated":
            return np.full(self.k, self.low)
        return np.random.default_rng(2026).uniform(self.low, self.high, self.k)


LAPLACE = [(5.0, 20), (8.0, 20)]  # (noise multiplier, how often) of the mixed case
GAUSSIAN = [(6.0, 15), (10.0, 25)]

CASES = {
    case.name: case
    for case in (
        Case("a", "100 × 0.1 at δ = 1e-6", 1e-6, "repeated", 100, 0.1),
        Case("a15", "100 × 0.1 at δ = 1e-15", 1e-15, "repeated", 100, 0.1),
        Case("a20", "100 × 0.1 at δ = 1e-20", 1e-20, "repeated", 100, 0.1),
        Case("c", "20 reals at δ = 1e-6", 1e-6, "distinct", 20, 0.05, 0.3),
        Case("d100", "100 distinct reals at δ = 1e-9", 1e-9, "distinct", 100, 0.01, 0.03),
        Case("d1000", "1,000 distinct reals at δ = 1e-9", 1e-9, "distinct", 1_000, 0.01, 0.03),
        Case("d10000", "10,000 distinct reals at δ = 1e-9", 1e-9, "distinct", 10_000, 0.01, 0.03),
        Case("e", "1,000,000 × 0.001 at δ = 1e-6", 1e-6, "repeated", 1_000_000, 0.001),
        Case("f", "1,000,000 distinct reals at δ = 1e-9", 1e-9, "distinct", 1_000_000, 0.001, 0.003),
        Case("mix", "40 Laplace and 40 Gaussian at δ = 1e-6", 1e-6, "noise", 80),
    )
}

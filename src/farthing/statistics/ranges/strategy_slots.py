"""Slots of strategies: the engine counts cells, the client combines them, and the combinations get the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import Aggregate
from farthing.data.stability import Sensitivity
from farthing.inference.linked_counts import Covariance
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.mechanism import Mechanism
from farthing.statistics.measurements import Floats, Integers, Kind, Noise, Output, RowCounts, Slot
from farthing.statistics.ranges.strategy_transforms import Transform, sensitivity_through

_FEW = 512  # measured numbers whose weights in each estimate are written down


@dataclass(frozen=True, eq=False)
class StrategySlot(Slot):
    """Whole-number combinations of cells, other ones for Laplace than for Gaussian noise.

    `sensitivity` has the l1 norm of what gets Laplace noise and the l2 norm of what gets Gaussian noise; `cells_moved`
    is how far one unit moves the cells themselves.
    """

    transforms: Mapping[Kind, Transform] = field(kw_only=True)
    cells_moved: Sensitivity = field(kw_only=True)
    tables: tuple[Aggregate, ...] = field(kw_only=True, default=())  # where one aggregate is not enough
    strategy_names: Mapping[Kind, str] = field(kw_only=True)

    @classmethod
    def of(
        cls,
        name: str,
        aggregates: tuple[Aggregate, ...],
        cells: Sensitivity,
        transforms: Mapping[Kind, Transform],
        strategy_names: Mapping[Kind, str],
        row_counts: tuple[RowCounts, ...] = (),
    ) -> StrategySlot:
        """The slot with its sensitivity worked out; `row_counts` if its numbers are determined."""
        known = all(transform.covariance is not None for transform in transforms.values()) if row_counts else False
        sensitivities = {
            kind: sensitivity_through(cells, transform.columns, transform.size)
            for kind, transform in transforms.items()
        }
        one, other = sensitivities[next(iter(sensitivities))], sensitivities[next(reversed(sensitivities))]
        both = Sensitivity(
            l0=max(one.l0, other.l0),
            l1=sensitivities.get("laplace", other).l1,
            l2_squared=sensitivities.get("gaussian", one).l2_squared,
            linf=max(one.linf, other.linf),
        )
        size = max(transform.size for transform in transforms.values())
        return cls(
            name,
            aggregates[0],
            both,
            size,
            kinds=tuple(transforms),
            transforms=dict(transforms),
            cells_moved=cells,
            tables=aggregates,
            strategy_names=dict(strategy_names),
            row_counts=row_counts if known else (),
        )

    def covariance(self, kind: Kind) -> Covariance | None:
        """That of the transform for this kind of noise."""
        return self.transforms[kind].covariance

    def numbers(self, measured: Integers, kind: Kind) -> Floats:
        """Estimated from what was measured."""
        return self.transforms[kind].numbers(measured)

    def mixing(self, kind: Kind) -> Floats | None:
        """The estimates of every measured number by itself, as far as these are few."""
        transform = self.transforms[kind]
        if transform.size > _FEW:
            return None
        if kind not in self._mixing:
            self._mixing[kind] = np.array(
                [transform.numbers(each) for each in np.eye(transform.size, dtype=np.int64)]
            ).T
        return self._mixing[kind]

    @cached_property
    def _mixing(self) -> dict[Kind, Floats]:
        return {}

    @property
    def numbers_count(self) -> int:
        """The same for every kind of noise."""
        return self.transforms[self.kinds[0]].numbers_count

    def concentration(self, functions: Floats, kind: Kind) -> float:
        """That of the transform for this kind of noise."""
        return self.transforms[kind].concentration(functions)

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """One table of cells, or several."""
        if len(self.tables) == 1:
            return {self.name: self.aggregate}
        return {f"{self.name} [{place}]": table for place, table in enumerate(self.tables)}

    def own(self, exact: Mapping[str, NDArray[Any]]) -> Any:
        """Its cells, or a list of its tables."""
        arrays = [exact[name] for name in self.aggregates]
        return arrays[0] if len(arrays) == 1 else arrays

    @property
    def counted(self) -> Sensitivity:
        """How far one unit moves the cells."""
        return self.cells_moved

    @property
    def facts(self) -> list[Any]:
        """Those of any slot, and the maps."""
        maps = [[kind, transform.digest] for kind, transform in self.transforms.items()]
        return [*super().facts, [repr(table) for table in self.tables], maps]

    def cells_text(self, noise: Noise) -> str:
        """How many numbers get the noise, and of which strategy."""
        return f"{self.transforms[noise.kind].size:,} sums of cells ({self.strategy_names[noise.kind]})"

    def mechanism(self, noise: Noise) -> Mechanism:
        """The mechanism for the numbers that get this kind of noise."""
        self._check(noise)
        size = self.transforms[noise.kind].size
        if noise.kind == "laplace":
            return DiscreteLaplace(noise.parameter, l1_sensitivity=self.sensitivity.l1, cells=size)
        return DiscreteGaussian(noise.parameter, l2_sensitivity=self.sensitivity.l2, cells=size)

    @property
    def moves_one_number(self) -> bool:
        """Never: a row moves several."""
        return False

    def measure(self, exact: Any, noise: Noise) -> Integers:
        self._check(noise)
        numbers = self.transforms[noise.kind].apply(exact)
        return np.asarray(self.mechanism(noise).release(numbers)).reshape(-1)

    def merged(self, exact: Any) -> NDArray[Any]:
        """The combinations for the first kind of noise; still private."""
        return self.transforms[self.kinds[0]].apply(exact)


@dataclass(frozen=True, eq=False)
class StrategyOutput(Output):
    """An output that is estimated from the measurements of one strategy."""

    @property
    def slot(self) -> StrategySlot:
        """The one slot that the output reads."""
        (slot,) = self.slots
        assert isinstance(slot, StrategySlot)
        return slot

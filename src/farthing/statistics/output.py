"""An output: one statistic as a function of what is measured, with its error before and after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorLaw
from farthing.statistics.constructors import Statistic
from farthing.statistics.slots import Integers, Noise, Slot

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Output(ABC):
    """What a design promises and computes for one statistic.

    `labels` names the cells, empty for one number; `slots` are the measurements it reads; `reference` is what relative
    error is relative to, one positive number for each cell.
    """

    statistic: Statistic
    labels: tuple[Any, ...]
    slots: tuple[Slot, ...]
    reference: Floats

    @property
    def name(self) -> str:
        """The statistic's name."""
        return self.statistic.name

    @property
    @abstractmethod
    def coefficients(self) -> Mapping[str, Floats]:
        """For each slot, the variance of every cell of the output per squared step of noise variance.

        Empty for an output that is not (close to) linear in its measurements; then `variance_curve` is used.
        """

    @property
    def condition(self) -> str:
        """What its predicted error rests on, as "if ...": empty where it follows from the noise alone."""
        return ""

    @property
    def short_condition(self) -> str:
        """The same in few words, for a table."""
        if not self.condition:
            return ""
        return f"if as {'assumed' if 'assumed' in self.condition else 'expected'}"

    def variance_curve(self, epsilon: float) -> Floats:
        """The variance of every cell when the output's one slot is measured with this epsilon."""
        raise AssertionError(f"{self.name!r} is linear in its measurements")

    @property
    def depends_on(self) -> str:
        """What its error depends on that nobody said, in words; then `predicted` is for the worst case of it."""
        return ""

    def predicted_at_best(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The law of the error before anything is spent, where all that nobody said is at its best."""
        return self.predicted(noises)

    @property
    def limitless(self) -> str:
        """What to tell where its error has no limit, whatever the noise, because nothing is expected; mostly empty."""
        return ""

    @property
    def sized(self) -> bool:
        """Whether its error depends on how many rows the table has."""
        return self.statistic.for_population

    @property
    def rests_on(self) -> tuple[str, ...]:
        """What `promised` rests on beyond the number of rows, as clauses after "if"; nothing where it always holds."""
        if self.condition:
            return (self.condition.removeprefix("if "),)
        return ("its numbers are as expected",) if self.statistic.for_population else ()

    @property
    def holds(self) -> str:
        """How often a release is no wider than `promised`, in words: on average, where what comes out decides it."""
        return "on average over releases" if self.sized else "in every release"

    @property
    def independent(self) -> bool:
        """Whether the errors of its cells are independent of each other: each cell has noise of its own."""
        return False

    def remarks(self, noises: Mapping[str, Noise]) -> tuple[str, ...]:
        """What there is to know beyond the errors of its cells, in words; mostly nothing."""
        return ()

    def caution(self, noises: Mapping[str, Noise]) -> str:
        """A warning that belongs beside its predicted error, in words; mostly none."""
        return ""

    @abstractmethod
    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The law of the error before anything is spent; for the worst case of what nobody said."""

    def promised(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The law that a required error is held to: as wide as intervals come out, as often as `holds` says.

        The same as `predicted` where intervals do not depend on what comes out, or where only their mean is known.
        """
        return self.predicted(noises)

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        """The least and the most that declared bounds allow each cell, as far as bounds and noisy numbers tell."""
        return None

    @abstractmethod
    def answer(
        self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The statistic from noisy numbers: post-processing only."""

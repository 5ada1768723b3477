"""Laws of error that are found once and scaled: a plan is made anew many times with other noise."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np

from farthing.inference import ErrorLaw, StatedLaw
from farthing.inference.terms import variance_of
from farthing.release.noise import Kind, Noise
from farthing.release.slots import Slot

WIDE = 3.0
"""From this scale on, steps of whole numbers are small beside the noise."""


def smooth_noise(kind: Kind) -> tuple[Literal["laplace", "normal"], float]:
    """A kind of noise, and a scale, on so fine a grid that it has none.

    It differs from the noise in whole numbers by less than a step, and its law is the same at every scale.
    """
    assert kind != "exponential"
    return ("laplace", 4096.0) if kind == "laplace" else ("normal", 1.0)


def smooth_factor(slot: Slot, noise: Noise) -> float:
    """What the smooth noise is multiplied by to have the variance of the slot's."""
    return math.sqrt(slot.variance(noise) / variance_of(*smooth_noise(noise.kind)))


class RememberedLaw(ErrorLaw):
    """A law that finds the error at a confidence once."""

    @cached_property
    def _found(self) -> dict[float, float]:
        return {}

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        if confidence not in self._found:
            self._found[confidence] = super().error(confidence)
        return self._found[confidence]

    @cached_property
    def _largest(self) -> dict[float, float]:
        return {}

    def worst(self, confidence: float = 0.95) -> float:
        """The largest of `errors`."""
        if confidence not in self._largest:
            self._largest[confidence] = super().worst(confidence)
        return self._largest[confidence]


class ScaledLaw(StatedLaw):
    """A smooth law times a factor; for whole numbers, with errors rounded up to whole numbers."""

    def __init__(self, law: RememberedLaw, factor: float, *, whole: bool = False) -> None:
        step = np.ceil if whole else np.asarray
        super().__init__(law.standard_errors * factor, lambda level: step(law.errors(level) * factor))
        self._law, self._factor, self._whole = law, factor, whole

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        return self._stepped(self._law.error(confidence) * self._factor)

    def worst(self, confidence: float = 0.95) -> float:
        """The largest of `errors`."""
        return self._stepped(self._law.worst(confidence) * self._factor)

    def _stepped(self, error: float) -> float:
        return math.ceil(error) if self._whole else error

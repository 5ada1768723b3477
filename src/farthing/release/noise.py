"""How a measurement is made private: which noise, and how much of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real

Kind = Literal["laplace", "gaussian", "exponential"]
KINDS: tuple[Kind, ...] = ("laplace", "gaussian", "exponential")


@dataclass(frozen=True, slots=True)
class Noise:
    """A kind of noise and its parameter: epsilon, or for the Gaussian sigma over the l2 sensitivity.

    >>> Noise("laplace", 0.5)
    Noise(kind='laplace', parameter=0.5)
    """

    kind: Kind
    parameter: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        number = checked_real(self.parameter, "parameter")
        if not 0 < number < math.inf:
            raise InvalidValue("parameter", self.parameter, "must be a finite number > 0")
        object.__setattr__(self, "parameter", number)

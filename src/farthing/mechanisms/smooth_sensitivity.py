"""Noise for the data at hand instead of the worst data: any statistic whose local sensitivity is understood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.base import (
    SATURATION,
    Mechanism,
    checked_integers,
    checked_mechanism_epsilon,
)
from farthing.mechanisms.exact import Bits
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.smooth_noise import SmoothNoise
from farthing.privacy.events import ApproxDP, checked_count, checked_delta


@dataclass(frozen=True, slots=True)
class SmoothStatistic:
    """A statistic of private data: its value, and how far it could move near these data. Neither is ever shown.

    `local_sensitivity_at(t)` is the most that the statistic differs between any data set within t changes of these
    data and a neighbour of that one (or more than that, if it never falls short of the same at t - 1 for a neighbour).

    >>> SmoothStatistic(17, lambda t: t + 1)
    SmoothStatistic()
    """

    value: int = field(repr=False)
    local_sensitivity_at: Callable[[int], int] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SmoothSensitivity(Mechanism):
    """A whole-numbered statistic plus noise in proportion to its smooth sensitivity.

    Without a delta the noise has a Cauchy law (and no variance); with one, a Laplace law. The proofs, for these
    discrete laws and for the ladder that the scale moves on, stand at `beta_of_cauchy_noise`,
    `delta_of_laplace_noise` and `SmoothNoise`. `global_sensitivity` is public: the most the statistic can ever move.
    What a neighbour is, is decided by whoever supplies the local sensitivity.

    >>> mechanism = SmoothSensitivity(epsilon=1.0, global_sensitivity=10**6, delta=1e-9)
    >>> mechanism.event
    ApproxDP(epsilon=1.0, delta=1e-09)
    >>> calm = SmoothStatistic(500_000, lambda t: 3 * (t + 1))
    >>> abs(mechanism.release(calm) - 500_000) < 10**6
    True
    >>> mechanism.error(0.95, assumed_smooth_sensitivity=20)
    120
    """

    epsilon: float
    global_sensitivity: int
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))
        largest = checked_count(self.global_sensitivity, "global_sensitivity")
        if not 1 <= largest <= SATURATION:
            raise InvalidValue("global_sensitivity", self.global_sensitivity, "must be from 1 to 2^62")
        object.__setattr__(self, "global_sensitivity", largest)
        _ = self._noise.rungs_per_step  # an epsilon out of reach is refused here, not at the first release

    @property
    def event(self) -> ApproxDP:
        """What one release costs."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def beta(self) -> float:
        """How fast the noise may follow the data: sensitivity at distance t counts e^(-beta t) of itself."""
        return self._noise.beta

    def error(self, confidence: float = 0.95, *, assumed_smooth_sensitivity: int) -> int:
        """The error at a confidence, *if* the smooth sensitivity of the data is what you assume.

        The real one depends on the private data, so it is not told, and no error bar can be read off a release. Use
        this for planning, with a value from public data of the same kind.
        """
        assumed = checked_count(assumed_smooth_sensitivity, "assumed_smooth_sensitivity")
        return self._noise.law(assumed).error(confidence)

    @property
    def _noise(self) -> SmoothNoise:
        return SmoothNoise(self.epsilon, self.delta, self.global_sensitivity)

    def _answer(self, value: object, source: Source) -> int:
        if not isinstance(value, SmoothStatistic):
            raise InvalidData("value", f"must be a SmoothStatistic, not {type(value).__name__}")
        centre = checked_integers(value.value)
        if centre.shape != ():
            raise InvalidData("value", "must be a single whole number")
        bits = Bits(source)
        return int(centre) + self._noise.draw(self._noise.level(_checked(value.local_sensitivity_at)), bits)


def _checked(at: Callable[[int], int]) -> Callable[[int], int]:
    """The user's function, with errors that tell nothing of the data it closes over."""

    def checked(t: int) -> int:
        found = _whole(at, t)
        if (
            found is None
        ):  # raised here, not where it was noticed: no exception may carry what the function said
            raise InvalidData("local_sensitivity_at", "must give a whole number >= 0 for every t >= 0")
        return found

    return checked


def _whole(at: Callable[[int], int], t: int) -> int | None:
    try:
        return checked_count(at(t))
    except Exception:
        return None

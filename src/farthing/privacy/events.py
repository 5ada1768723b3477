"""What a mechanism did, as frozen facts an accountant can price.

An event says nothing about how the mechanism ran and nothing about data. Accountants interpret events;
mechanisms hand them over; a ledger stores them under a stable tag (never under a Python name).

Noise events describe one real- or integer-valued answer whose neighbouring values differ by at most the
sensitivity; `noise_multiplier` is scale / sensitivity, so a smaller multiplier costs more.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from farthing.errors import InvalidValue


def checked_epsilon(value: object, name: str = "epsilon") -> float:
    """`value` as a float >= 0 and finite; bools, strings and NaN are refused."""
    number = checked_real(value, name)
    if not 0 <= number < math.inf:
        raise InvalidValue(name, value, "must be a finite number >= 0")
    return number


def checked_delta(value: object, name: str = "delta") -> float:
    """`value` as a float in [0, 1)."""
    number = checked_real(value, name)
    if not 0 <= number < 1:
        raise InvalidValue(name, value, "must be >= 0 and < 1", "use a small probability such as 1e-9")
    return number


def checked_real(value: object, name: str) -> float:
    """`value` as a float; anything that is not a real number is refused (a bool is not a number here)."""
    if type(value) is float:  # nearly always: looking up what else is a number takes longer than all the rest
        return value
    scalar_array = getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", "-") in "iuf"
    if isinstance(value, bool) or not (isinstance(value, numbers.Real) or scalar_array):
        raise InvalidValue(name, value, f"must be a real number, not {type(value).__name__}")
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise InvalidValue(name, value, "must be a finite number") from None


def checked_count(value: object, name: str = "count") -> int:
    """`value` as an int >= 0; bools and fractions are refused."""
    if type(value) is int and value >= 0:  # as above
        return value
    # A NumPy integer without a dimension counts as one; "" in "iu" is true, hence the set.
    kind = getattr(getattr(value, "dtype", None), "kind", "") if getattr(value, "shape", None) == () else ""
    if isinstance(value, bool) or not (isinstance(value, numbers.Integral) or kind in {"i", "u"}):
        raise InvalidValue(name, value, "must be a whole number >= 0")
    if not value >= 0:  # type: ignore[operator]
        raise InvalidValue(name, value, "must be a whole number >= 0")
    return int(value)  # type: ignore[call-overload,no-any-return]


def _checked_multiplier(value: object) -> float:
    number = checked_real(value, "noise_multiplier")
    if not 0 < number < math.inf:
        raise InvalidValue(
            "noise_multiplier",
            value,
            "must be a finite number > 0",
            "it is the noise scale divided by the sensitivity",
        )
    return number


class Event:
    """Base of all events: frozen, hashable, and storable as plain data under a stable tag.

    >>> LaplaceNoise(2.0).to_dict()
    {'type': 'laplace', 'noise_multiplier': 2.0}
    >>> Event.from_dict({'type': 'laplace', 'noise_multiplier': 2.0})
    LaplaceNoise(noise_multiplier=2.0)
    """

    __slots__ = ()
    tag: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON-ready data.

        Returns:
            A dictionary with the tag under "type".

        >>> GaussianNoise(4.0).to_dict()
        {'type': 'gaussian', 'noise_multiplier': 4.0}
        """
        body: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Event):
                value = value.to_dict()
            elif isinstance(value, tuple):
                value = [{"event": event.to_dict(), "count": count} for event, count in value]
            body[field.name] = value
        return {"type": self.tag, **body}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Event:
        """The event that `to_dict` described; unknown tags are refused (no code is ever looked up by name).

        Args:
            data: What `to_dict` returned.

        Returns:
            An equal event.

        Raises:
            InvalidValue: If the tag or a parameter is not one.

        >>> Event.from_dict({"type": "approx_dp", "epsilon": 0.5, "delta": 0.0})
        ApproxDP(epsilon=0.5, delta=0.0)
        """
        body = dict(data)
        tag = body.pop("type", None)
        cls = _REGISTRY.get(tag) if isinstance(tag, str) else None
        if cls is None:
            raise InvalidValue("type", tag, f"must be one of {', '.join(sorted(_REGISTRY))}")
        if isinstance(body.get("event"), dict):
            body["event"] = Event.from_dict(body["event"])
        if cls is Composed:
            body["parts"] = _read_parts(body.get("parts"))
        event: Event = cls(**body)
        return event


@dataclass(frozen=True, slots=True)
class ApproxDP(Event):
    """Any (epsilon, delta)-DP mechanism, known by its guarantee alone; priced as the worst of its class.

    Args:
        epsilon: Its epsilon, finite and >= 0.
        delta: Its delta, >= 0 and < 1.

    Raises:
        InvalidValue: If a parameter is out of range.

    >>> ApproxDP(0.5, 1e-9)
    ApproxDP(epsilon=0.5, delta=1e-09)
    """

    epsilon: float
    delta: float = 0.0
    tag: ClassVar[str] = "approx_dp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Event):
    """A bit that is reported truthfully with probability e^epsilon / (1 + e^epsilon), else flipped.

    Args:
        epsilon: Its epsilon, finite and >= 0.

    Raises:
        InvalidValue: If epsilon is out of range.

    >>> RandomizedResponse(1.0)
    RandomizedResponse(epsilon=1.0)
    """

    epsilon: float
    tag: ClassVar[str] = "randomized_response"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))


@dataclass(frozen=True, slots=True)
class BoundedRange(Event):
    """A choice by exponential weights: the losses of all outcomes lie within some interval of length epsilon.

    It is epsilon-DP, and cheaper in composition than an epsilon-DP mechanism may be.

    Args:
        epsilon: The length of the interval, finite and >= 0.

    Raises:
        InvalidValue: If epsilon is out of range.

    >>> BoundedRange(0.5)
    BoundedRange(epsilon=0.5)
    """

    epsilon: float
    tag: ClassVar[str] = "bounded_range"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))


@dataclass(frozen=True, slots=True)
class LaplaceNoise(Event):
    """Real Laplace noise of scale noise_multiplier * l1_sensitivity; alone it is (1 / noise_multiplier)-DP.

    Args:
        noise_multiplier: The scale divided by the sensitivity, finite and > 0.

    Raises:
        InvalidValue: If the multiplier is out of range.

    >>> LaplaceNoise(10.0)
    LaplaceNoise(noise_multiplier=10.0)
    """

    noise_multiplier: float
    tag: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _checked_multiplier(self.noise_multiplier))


@dataclass(frozen=True, slots=True)
class GaussianNoise(Event):
    """Gaussian noise of standard deviation noise_multiplier * l2_sensitivity.

    Args:
        noise_multiplier: The standard deviation divided by the sensitivity, finite and > 0.

    Raises:
        InvalidValue: If the multiplier is out of range.

    >>> GaussianNoise(4.0)
    GaussianNoise(noise_multiplier=4.0)
    """

    noise_multiplier: float
    tag: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _checked_multiplier(self.noise_multiplier))


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(Event):
    """Integer noise with mass proportional to exp(-|n| / scale), scale = noise_multiplier * l1_sensitivity.

    One integer answer moves by at most `l1_sensitivity` (an integer). At sensitivity 1 the privacy loss is
    exactly that of randomized response with epsilon = 1 / noise_multiplier.

    Args:
        noise_multiplier: The scale divided by the sensitivity, finite and > 0.
        l1_sensitivity: How far the answer can move, a whole number >= 1.

    Raises:
        InvalidValue: If a parameter is out of range.

    >>> DiscreteLaplaceNoise(2.0)
    DiscreteLaplaceNoise(noise_multiplier=2.0, l1_sensitivity=1)
    """

    noise_multiplier: float
    l1_sensitivity: int = 1
    tag: ClassVar[str] = "discrete_laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _checked_multiplier(self.noise_multiplier))
        object.__setattr__(self, "l1_sensitivity", _checked_sensitivity(self.l1_sensitivity, "l1_sensitivity"))


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(Event):
    """Integer noise with mass proportional to exp(-n^2 / (2 sd^2)), sd = noise_multiplier * l2_sensitivity.

    One integer answer moves by at most `l2_sensitivity` (an integer).

    Args:
        noise_multiplier: The standard deviation divided by the sensitivity, finite and > 0.
        l2_sensitivity: How far the answer can move, a whole number >= 1.

    Raises:
        InvalidValue: If a parameter is out of range.

    >>> DiscreteGaussianNoise(3.0)
    DiscreteGaussianNoise(noise_multiplier=3.0, l2_sensitivity=1)
    """

    noise_multiplier: float
    l2_sensitivity: int = 1
    tag: ClassVar[str] = "discrete_gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _checked_multiplier(self.noise_multiplier))
        object.__setattr__(self, "l2_sensitivity", _checked_sensitivity(self.l2_sensitivity, "l2_sensitivity"))


@dataclass(frozen=True, slots=True)
class Sampled(Event):
    """`event` run on a Poisson sample: each unit is kept independently with `probability`, in secret.

    Neighbours add or remove one unit; both directions are priced and the worse one counts.

    Args:
        event: A single event that is not sampled itself.
        probability: The chance that a unit is kept, between 0 and 1.

    Raises:
        InvalidValue: If the event is composed or sampled, or the probability is out of range.

    >>> Sampled(GaussianNoise(1.0), 0.01)
    Sampled(event=GaussianNoise(noise_multiplier=1.0), probability=0.01)
    """

    event: Event
    probability: float
    tag: ClassVar[str] = "sampled"

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise InvalidValue(
                "event", self.event, "must be an event of farthing.privacy", "for example GaussianNoise(1.0)"
            )
        if isinstance(self.event, Composed):
            raise InvalidValue(
                "event",
                self.event,
                "must be a single event",
                "one sample serves all parts, so sampling the parts one by one would price too little",
            )
        if isinstance(self.event, Sampled):
            raise InvalidValue(
                "event", self.event, "must not be sampled already", "multiply the two probabilities instead"
            )
        number = checked_real(self.probability, "probability")
        if not 0 <= number <= 1:
            raise InvalidValue("probability", self.probability, "must be between 0 and 1")
        object.__setattr__(self, "probability", number)


@dataclass(frozen=True, slots=True)
class Composed(Event):
    """Several events made by one mechanism, each with a count; priced as if they had been charged one by one.

    Args:
        parts: Pairs of an event and how often it happened.

    Raises:
        InvalidValue: If a part is not such a pair.

    >>> Composed(((ApproxDP(0.1), 5), (GaussianNoise(4.0), 1))).to_dict()["parts"][0]
    {'event': {'type': 'approx_dp', 'epsilon': 0.1, 'delta': 0.0}, 'count': 5}
    """

    parts: tuple[tuple[Event, int], ...]
    tag: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        flat: list[tuple[Event, int]] = []
        for part in self.parts:
            if not (isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], Event)):
                raise InvalidValue("parts", part, "must be pairs (event, count)")
            event, count = part[0], checked_count(part[1], "count")
            if isinstance(event, Composed):  # counts multiply, so that the parts stay flat
                flat.extend((inner, count * repeats) for inner, repeats in event.parts)
            else:
                flat.append((event, count))
        object.__setattr__(self, "parts", tuple(flat))


def _read_parts(parts: Any) -> tuple[tuple[Event, int], ...]:
    if not isinstance(parts, list) or not all(
        isinstance(part, dict) and part.keys() == {"event", "count"} and isinstance(part["event"], dict)
        for part in parts
    ):
        raise InvalidValue("parts", parts, 'must be a list of {"event": ..., "count": ...}')
    return tuple((Event.from_dict(part["event"]), part["count"]) for part in parts)


def _checked_sensitivity(value: object, name: str) -> int:
    number = checked_count(value, name)
    if not number >= 1:
        raise InvalidValue(name, value, "must be a whole number >= 1")
    return number


_REGISTRY: dict[str, type[Any]] = {
    cls.tag: cls
    for cls in (
        ApproxDP,
        RandomizedResponse,
        LaplaceNoise,
        GaussianNoise,
        DiscreteLaplaceNoise,
        DiscreteGaussianNoise,
        Sampled,
        Composed,
        BoundedRange,
    )
}


MAX_EPSILON = 50.0


def checked_mechanism_epsilon(value: object, name: str = "epsilon") -> float:
    """An epsilon a mechanism accepts: above 0 and at most 50, beyond which there is no protection to speak of."""
    number = checked_real(value, name)
    if not 0 < number <= MAX_EPSILON:
        raise InvalidValue(
            name,
            value,
            f"must be > 0 and <= {MAX_EPSILON:g}",
            "1 is a common choice; beyond 50 nothing is protected",
        )
    return number

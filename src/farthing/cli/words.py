"""The grammar of a charge word, `0.1x100` or `sampled:0.01:gaussian:1.1x1000`, and nothing else.

    word    = charge [ "x" count ]
    charge  = epsilon [ "," delta ]
            | "rr:" epsilon
            | "bounded-range:" epsilon
            | "laplace:" noise_multiplier
            | "gaussian:" noise_multiplier
            | "discrete-laplace:" noise_multiplier [ ":" l1_sensitivity ]
            | "discrete-gaussian:" noise_multiplier [ ":" l2_sensitivity ]
            | "sampled:" probability ":" charge

Numbers are plain decimals (`0.1`, `1e-7`); counts are whole numbers (`20`, `1e6`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

GRAMMAR = """\
\b
A charge word is CHARGE or CHARGExCOUNT, where CHARGE is one of
  EPSILON[,DELTA]            any (epsilon, delta)-DP mechanism   0.1x100  0.05,1e-7x20
  rr:EPSILON                 randomized response                 rr:0.5x4
  bounded-range:EPSILON      a choice by exponential weights     bounded-range:0.1x20
  laplace:B                  Laplace noise                       laplace:2
  gaussian:B                 Gaussian noise                      gaussian:4x10
  discrete-laplace:B[:S]     integer Laplace noise               discrete-laplace:2x3
  discrete-gaussian:B[:S]    integer Gaussian noise              discrete-gaussian:5
  sampled:P:CHARGE           on a secret sample of rate P        sampled:0.01:gaussian:1.1x1000
B is the noise multiplier (noise scale / sensitivity), S the integer sensitivity (default 1).
"""

WAY_OUT = "write epsilon[,delta][xCOUNT] or kind:noise_multiplier[xCOUNT], as in 0.1x100 or gaussian:4x10"

# One charge word may stand for very many mechanisms, but beyond 2^53 a count is no longer an exact double.
LARGEST_COUNT = 2**53 - 1

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\Z", re.ASCII | re.IGNORECASE)


def charge_of(word: str, name: str = "charge") -> tuple[Event, int]:
    """The event a charge word stands for, and how many times; `name` is how a refusal calls the word.

    >>> charge_of("0.05,1e-7x20")
    (ApproxDP(epsilon=0.05, delta=1e-07), 20)
    >>> charge_of("sampled:0.01:gaussian:1.1")
    (Sampled(event=GaussianNoise(noise_multiplier=1.1), probability=0.01), 1)
    >>> charge_of("0.1x1.5")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: charge='0.1x1.5': count '1.5' must be a whole number >= 0; write ...
    """
    text = word.strip().lower()
    body, separator, count = text.rpartition("x")
    try:
        if not separator:
            return _event_of(text), 1
        return _event_of(body), whole_number(count, "count")
    except InvalidValue as refusal:
        raise InvalidValue(name, word, _rule_of(refusal), WAY_OUT) from None


def decimal_number(text: str, name: str) -> float:
    """`text` as a double; words such as `nan` and `inf`, which Python would take, are no numbers here.

    >>> decimal_number("1e-7", "delta")
    1e-07
    """
    if not _NUMBER.match(text.strip()):
        raise InvalidValue(name, text, "must be a plain number such as 0.1 or 1e-7")
    return float(text)


def whole_number(text: str, name: str) -> int:
    """`text` as a whole number >= 0; `1e6` and `20.0` are whole numbers too.

    >>> whole_number("1e6", "count")
    1000000
    """
    number = float(text) if _NUMBER.match(text.strip()) else -1.0
    if not (number >= 0 and number.is_integer()):
        raise InvalidValue(name, text, "must be a whole number >= 0")
    if not number <= LARGEST_COUNT:
        raise InvalidValue(name, text, "must be below 2^53")
    return int(number)


def _event_of(text: str) -> Event:
    kind, separator, rest = text.partition(":")
    if not separator:
        return _guarantee(text)
    make = _KINDS.get(kind)
    if make is None:
        raise InvalidValue("kind", kind, f"must be one of {', '.join(sorted(_KINDS))}")
    return make(rest)


def _guarantee(text: str) -> Event:
    epsilon, separator, delta = text.partition(",")
    return ApproxDP(decimal_number(epsilon, "epsilon"), decimal_number(delta, "delta") if separator else 0.0)


def _integer_noise(kind: type[DiscreteLaplaceNoise] | type[DiscreteGaussianNoise]) -> Callable[[str], Event]:
    def make(text: str) -> Event:
        multiplier, separator, sensitivity = text.partition(":")
        whole = whole_number(sensitivity, "sensitivity") if separator else 1
        return kind(decimal_number(multiplier, "noise_multiplier"), whole)

    return make


def _sampled(text: str) -> Event:
    probability, separator, inner = text.partition(":")
    rate = decimal_number(probability, "probability")
    if not separator:
        raise InvalidValue("charge", "", "is missing after sampled:P:, as in sampled:0.01:gaussian:1.1")
    if inner.startswith("sampled:"):
        raise InvalidValue("charge", inner, "must not be sampled twice: multiply the two probabilities")
    return Sampled(_event_of(inner), rate)


def _rule_of(refusal: InvalidValue) -> str:
    value = f" {refusal.value!r}" if isinstance(refusal.value, str) else ""
    return f"{refusal.name}{value} {refusal.rule}"


_KINDS: dict[str, Callable[[str], Event]] = {
    "rr": lambda text: RandomizedResponse(decimal_number(text, "epsilon")),
    "bounded-range": lambda text: BoundedRange(decimal_number(text, "epsilon")),
    "laplace": lambda text: LaplaceNoise(decimal_number(text, "noise_multiplier")),
    "gaussian": lambda text: GaussianNoise(decimal_number(text, "noise_multiplier")),
    "discrete-laplace": _integer_noise(DiscreteLaplaceNoise),
    "discrete-gaussian": _integer_noise(DiscreteGaussianNoise),
    "sampled": _sampled,
}

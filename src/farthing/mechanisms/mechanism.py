"""What every mechanism has, and how private values are looked at without being shown.

A mechanism is a frozen value made of public parameters. It hands an event to the accountant and turns a private value
into an answer. Parameters may be shown in errors; private values never are, not even their size.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.privacy.events import Event

SATURATION = 2**62  # private integers are clamped here: clamping moves no two values further apart


class Mechanism(ABC):
    """A randomized answer to a private value, with the event that an accountant charges for it.

    >>> from farthing.mechanisms import DiscreteLaplace, Mechanism
    >>> mechanism = DiscreteLaplace(epsilon=1.0)
    >>> issubclass(type(mechanism), Mechanism), mechanism.event
    (True, DiscreteLaplaceNoise(noise_multiplier=1.0, l1_sensitivity=1))
    """

    __slots__ = ()

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs, for the accountant."""

    @final
    def release(self, value: Any) -> Any:
        """A fresh randomized answer. Charge `event` first: each call is another release.

        Args:
            value: The private value, in the form that the mechanism states.

        Returns:
            The noisy answer, safe to publish.

        Raises:
            InvalidData: If the value has the wrong form. The message shows nothing of it.
        """
        return self._answer(value, SYSTEM)

    @abstractmethod
    def _answer(self, value: Any, source: Source) -> Any:
        """The answer, with randomness from `source`; only tests hand over anything but the system's."""


def nearest_double(value: Fraction) -> float:
    """The nearest double to a noisy answer; beyond the largest double, that one: no answer ends in an error."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def checked_integers(value: object, name: str = "value") -> NDArray[np.int64]:
    """Private whole numbers as int64, clamped to +-2^62; the shape of `value` is kept (0-d for a scalar).

    Clamping is a contraction, so it can only bring neighbours closer, and it leaves room for noise below 2^63.
    """
    array = _array(value, name)
    if isinstance(value, list | tuple):  # NumPy reads [-1, 2**63] as doubles and [True, 2] as integers
        array = np.asarray(value, dtype=object)
    if array.dtype.kind in "iu":
        return np.asarray(np.clip(array, _bound(array, -SATURATION), _bound(array, SATURATION)), np.int64)
    if array.dtype.kind == "O" and all(_is_whole(item) for item in array.flat):
        clamped = [min(max(int(item), -SATURATION), SATURATION) for item in array.flat]
        return np.array(clamped, dtype=np.int64).reshape(array.shape)
    raise InvalidData(
        name, f"must be whole numbers, not {_kind(array)}", "pass whole numbers, or use grid= for real ones"
    )


def checked_reals(value: object, name: str = "value") -> NDArray[np.float64]:
    """Private real numbers as doubles, all finite; whole numbers are welcome and clamped to +-2^53.

    Beyond 2^53 a double would round a whole number, by an amount no grid accounts for; clamping first moves nothing
    apart.
    """
    reals = checked_rows(value, name)
    if not bool(np.all(np.isfinite(reals))):
        raise InvalidData(name, "must be finite", "drop or replace missing and infinite values by a public rule first")
    return reals


def checked_rows(value: object, name: str = "rows") -> NDArray[np.float64]:
    """Private rows as doubles, where NaN stands for a missing one and infinities wait to be clamped.

    A refusal of either would reveal that such a row is there, which no event covers.
    """
    array = _array(value, name)
    if isinstance(value, int | list | tuple) and _hides_whole_numbers(array):
        array = _array(_clamped_items(value), name)
    if array.dtype.kind in "iu":
        return np.asarray(np.clip(array, _bound(array, -(2**53)), _bound(array, 2**53)), np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise InvalidData(name, f"must be real numbers, not {_kind(array)}", "pass floats or a float64 array")
    return array.astype(np.float64)


def _array(value: object, name: str) -> NDArray[Any]:
    if value is None or isinstance(value, str | bytes | dict | set):
        raise InvalidData(name, f"must be numbers, not {type(value).__name__}")
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidData(name, "must not be masked", "fill or drop masked entries by a public rule first")
    if isinstance(value, list | tuple) and any(isinstance(item, bool) for item in value):
        raise InvalidData(name, "must be numbers, not bool")
    array = read_array(value)
    if array is None:
        raise InvalidData(name, f"must be numbers, not {type(value).__name__}")
    return array


def read_array(value: object) -> NDArray[Any] | None:
    """`value` as an array, or None if it cannot be one.

    What a foreign object raises may quote its content, and an error raised while handling it would carry it along as
    its context, "from None" or not. So callers raise their own after this has returned.
    """
    try:
        return np.asarray(value)
    except Exception:
        return None


def _hides_whole_numbers(array: NDArray[Any]) -> bool:
    """Whether a list came out as objects or large doubles: NumPy reads [2**53 + 1, 0.5] as doubles and rounds."""
    return array.dtype.kind == "O" or (array.dtype.kind == "f" and bool(np.any(np.abs(array) >= 2.0**53)))


def _clamped_items(value: object) -> object:
    items = np.asarray(value, dtype=object)
    clamped = [min(max(int(item), -(2**53)), 2**53) if _is_whole(item) else item for item in items.flat]
    whole = read_array(clamped)
    return value if whole is None else whole.reshape(items.shape)


def _bound(array: NDArray[Any], bound: int) -> Any:
    """`bound`, brought into the range of the array's own integer type so that the comparison is exact."""
    limits = np.iinfo(array.dtype)
    return array.dtype.type(min(max(bound, int(limits.min)), int(limits.max)))


def _is_whole(item: object) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _kind(array: NDArray[Any]) -> str:
    if array.dtype.kind == "O":
        kinds = sorted({type(item).__name__ for item in array.flat})
        return kinds[0] if len(kinds) == 1 else "a mix of types"
    # The dtype of text says how long the longest of the values is.
    return {"U": "text", "S": "bytes", "V": "records"}.get(array.dtype.kind, str(array.dtype))

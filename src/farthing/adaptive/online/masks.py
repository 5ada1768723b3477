"""Counting questions as zeros and ones over the axes that matter, and sums of cells under them."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.checking import check
from farthing.data.expressions.parsing import parse
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression, InvalidValue
from farthing.release.workloads.asking import Question, mask_of
from farthing.release.workloads.axes import Axis

_MOST_KEPT = 2**22  # cells of marginals that are kept at once

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class Mask:
    """Which cells a question counts: one dimension for each axis, of size 1 where the axis does not matter.

    >>> mask = Mask.of("c = 1", [Axis("b", range(3)), Axis("c", range(2))])
    >>> mask.counted.tolist(), Mask.read(mask.record).counted.tolist()
    ([[False, True]], [[False, True]])
    """

    counted: NDArray[np.bool_]

    @classmethod
    def of(cls, question: Question, axes: Sequence[Axis]) -> Mask:
        """The mask of a text, a mapping, a pair on a single axis, or zeros and ones for all cells.

        >>> Mask.of("c is null", [Axis("c", range(2))])
        Traceback (most recent call last):
            ...
        farthing.errors.InvalidExpression: expression: rows that lack a value lie in no cell...
        """
        values = mask_of(question, axes)
        if isinstance(question, str):
            _refuse_missing(question, axes)
        counted = values != 0
        if not np.array_equal(values, counted):
            raise InvalidValue(
                "question", "an array", "must hold zeros and ones only", "count every cell once or not at all"
            )
        return cls(counted)

    @property
    def key(self) -> tuple[tuple[int, ...], bytes]:
        """Equal for equal masks."""
        return self.counted.shape, np.packbits(self.counted).tobytes()

    @property
    def fingerprint(self) -> str:
        """Equal for equal masks, and short however many cells there are.

        >>> axes = [Axis("b", range(3)), Axis("c", range(2))]
        >>> Mask.of("b < 1", axes).fingerprint == Mask.of("not b >= 1", axes).fingerprint
        True
        """
        shape, packed = self.key
        return hashlib.sha256(repr(shape).encode() + packed).hexdigest()

    @property
    def record(self) -> dict[str, Any]:
        """The mask as whole numbers and text."""
        shape, packed = self.key
        return {"shape": list(shape), "bits": base64.b64encode(packed).decode("ascii")}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Mask:
        """The mask that was recorded."""
        shape = tuple(int(size) for size in record["shape"])
        packed = np.frombuffer(base64.b64decode(record["bits"]), dtype=np.uint8)
        return cls(np.unpackbits(packed, count=math.prod(shape)).reshape(shape).astype(bool))


def _refuse_missing(text: str, axes: Sequence[Axis]) -> None:
    """Cells hold rows without missing values only: an answer about others would be a promise that nobody keeps."""
    if not any(word in text.lower() for word in ("null", "coalesce")):
        return
    meaning = check(parse(text, chains=True), Schema({axis.column: axis.domain for axis in axes}), text)
    if any(part.operator in ("is null", "coalesce") for part in meaning.walk()):
        raise InvalidExpression(
            text, None, "rows that lack a value lie in no cell and cannot be asked about", "ask about values"
        )


class Cells(Generic[Number]):
    """Numbers in cells and their sums under masks; marginals over the same axes are kept for the next question.

    The numbers may be private: nothing of them is shown.

    >>> cells = Cells(np.arange(6).reshape(2, 3))
    >>> int(cells.sum_under(Mask(np.array([[False], [True]])))), cells
    (12, Cells(2 x 3))
    """

    __slots__ = ("_kept", "_marginals", "values")

    def __init__(self, values: NDArray[Number]) -> None:
        self.values: NDArray[Number] = values
        self._marginals: dict[tuple[int, ...], NDArray[Number]] = {}
        self._kept = 0

    def sum_under(self, mask: Mask) -> Number:
        """The sum of the cells that the mask counts."""
        idle = tuple(axis for axis, size in enumerate(mask.counted.shape) if size < self.values.shape[axis])
        return np.sum(self._marginal(idle), where=mask.counted)

    def _marginal(self, idle: tuple[int, ...]) -> NDArray[Number]:
        if not idle:
            return self.values
        found = self._marginals.get(idle)
        if found is None:
            found = self.values.sum(axis=idle, keepdims=True)
            if self._kept + found.size > _MOST_KEPT:
                self._marginals.clear()
                self._kept = 0
            self._marginals[idle] = found
            self._kept += found.size
        return found

    def __repr__(self) -> str:
        return f"Cells({' x '.join(map(str, self.values.shape))})"

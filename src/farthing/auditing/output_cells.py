"""Outputs of any kind as columns of 64-bit cells, so that events can be searched with array arithmetic.

An output is taken apart into named fields: a number is one field, a list has its entries, its length and a few sums, a
dict or a set has one field per key, an exception is an output like any other. A cell is the 64 bits of a double.
Whatever is no number (a string, None, NaN, an absent key) is a *label*: a NaN whose payload is a hash of its text, so
that comparisons with a threshold are false for it, and two cells are equal exactly when they show the same thing.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.uint64]

WHOLE = "the output"
MOST_ENTRIES = 64  # of a list, and of the keys of one output
MOST_FIELDS = 256  # of all outputs together; what comes later is still part of the whole
_NAMED_ROWS = 200
MOST_NAMES = 5_000  # labels whose text is kept for descriptions
_LABEL = 0xFFF9 << 48  # a quiet NaN with room for 48 bits of hash
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def label(text: str) -> int:
    """The cell of something that is no number."""
    return _LABEL | int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=6).digest(), "big")


ABSENT_TEXT, NAN_TEXT = "absent", "nan"
ABSENT, NAN = label(ABSENT_TEXT), label(NAN_TEXT)


@dataclass(frozen=True)
class Raised:
    """A call that ended in an exception; the exception is what the analyst saw."""

    kind: str
    text: str


@dataclass(frozen=True)
class Outputs:
    """`count` outputs of one side, as columns; `names` holds the text of labels."""

    count: int
    columns: Mapping[str, Cells]
    names: Mapping[int, str]

    def cells(self, field: str) -> Cells:
        """The column of a field; a field that never occurred is absent everywhere."""
        column = self.columns.get(field)
        return np.full(self.count, ABSENT, dtype=np.uint64) if column is None else column

    def values(self, field: str) -> NDArray[np.float64]:
        """The column as doubles: NaN for everything that is no number."""
        return self.cells(field).view(np.float64)

    def only(self, wanted: Iterable[str]) -> Outputs:
        """The same outputs with fewer columns."""
        return Outputs(self.count, {f: self.columns[f] for f in wanted if f in self.columns}, self.names)


def joined(parts: Sequence[Outputs]) -> Outputs:
    """All parts, one after the other."""
    names: dict[int, str] = {}
    wanted: dict[str, None] = {}
    for part in parts:
        wanted.update(dict.fromkeys(part.columns))
        names.update(part.names)
    columns = {field: np.concatenate([part.cells(field) for part in parts]) for field in wanted}
    return Outputs(sum(part.count for part in parts), columns, names)


def outputs_of(answers: Any) -> Outputs:
    """A sequence of outputs (a list of anything, or an array whose first axis counts them), as columns.

    >>> read = outputs_of([{"a": 3}, {}, {"a": 5}])
    >>> read.values("key 'a'").tolist()
    [3.0, nan, 5.0]
    >>> outputs_of([1.5, None]).names[label("None")]
    'None'
    """
    array = _as_array(answers)
    if array is not None:
        return _of_array(array)
    cells: dict[str, Cells] = {}
    names: dict[int, str] = {ABSENT: ABSENT_TEXT, NAN: NAN_TEXT}
    for place, answer in enumerate(answers):
        for field, value in _fields(answer):
            column = cells.get(field)
            if column is None:
                if len(cells) >= MOST_FIELDS:
                    continue
                column = cells[field] = np.full(len(answers), ABSENT, dtype=np.uint64)
            column[place] = _cell(value, names)
    return Outputs(len(answers), cells, names)


def _as_array(answers: Any) -> NDArray[Any] | None:
    """The answers as a numeric array of one or two dimensions, when all of them are alike."""
    if not isinstance(answers, np.ndarray):
        kinds = {type(answer) for answer in answers}
        if kinds == {np.ndarray} and len({(answer.shape, answer.dtype) for answer in answers}) == 1:
            return _as_array(np.stack(answers)) if answers[0].ndim == 1 else None
        if not kinds or not all(issubclass(kind, float | int | np.floating | np.integer) for kind in kinds):
            return None
        if bool in kinds or len({issubclass(kind, float | np.floating) for kind in kinds}) > 1:
            return None  # 1, 1.0 and True are three outputs, not one
        if any(issubclass(kind, int) for kind in kinds) and not all(abs(a) < 2**53 for a in answers):
            return None
        return np.array(answers)
    if answers.ndim not in (1, 2) or answers.dtype.kind not in "iuf" or answers.dtype.itemsize > 8:
        return None
    if answers.dtype.kind in "iu" and answers.size and not np.all(np.abs(answers.astype(np.float64)) < 2**53):
        return None
    return answers


def _of_array(array: NDArray[Any]) -> Outputs:
    values = np.ascontiguousarray(array, dtype=np.float64)
    names = {ABSENT: ABSENT_TEXT, NAN: NAN_TEXT}
    if values.ndim == 1:
        return Outputs(len(values), {WHOLE: _cells_of(values)}, names)
    numeric = np.where(np.isnan(values), 0.0, values)
    with np.errstate(all="ignore"):
        sums = {
            "the sum of the output": numeric.sum(axis=1),
            "the largest entry of the output": numeric.max(axis=1, initial=-np.inf),
            "the smallest entry of the output": numeric.min(axis=1, initial=np.inf),
            "the number of numbers in the output": np.sum(~np.isnan(values), axis=1).astype(np.float64),
        }
    columns = {entry(j): _cells_of(values[:, j].copy()) for j in range(min(values.shape[1], MOST_ENTRIES))}
    columns |= {field: _cells_of(np.ascontiguousarray(total)) for field, total in sums.items()}
    columns[WHOLE] = _fingerprints(values)
    for cell, row in zip(columns[WHOLE][:_NAMED_ROWS].tolist(), values[:_NAMED_ROWS].tolist(), strict=True):
        names.setdefault(cell, _shortened("[" + ", ".join(f"{number:g}" for number in row) + "]"))
    return Outputs(len(values), columns, names)


def entry(place: int) -> str:
    """The name of an entry of a list."""
    return f"output[{place}]"


def _cells_of(values: NDArray[np.float64]) -> Cells:
    cells = values.view(np.uint64).copy()
    cells[np.isnan(values)] = NAN
    return cells


def _fingerprints(values: NDArray[np.float64]) -> Cells:
    """One label per row, equal for equal rows: whole outputs can be compared without sorting rows."""
    cells = _cells_of(values)
    total = np.zeros(len(cells), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for j in range(cells.shape[1]):
            total = (total ^ cells[:, j]) * np.uint64(0x9E3779B97F4A7C15)
            total ^= total >> np.uint64(29)
    return (total & np.uint64((1 << 48) - 1)) | np.uint64(_LABEL)


def _cell(value: object, names: dict[int, str]) -> int:
    if isinstance(value, float):
        if value == value:
            return int(np.float64(value).view(np.uint64))
        return NAN
    text = str(value)
    cell = label(text)
    if len(names) < MOST_NAMES:
        names[cell] = _shortened(text)
    return cell


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _fields(answer: object) -> Iterator[tuple[str, float | str]]:
    """What an output shows: pairs of a field and a number or a text."""
    if isinstance(answer, Raised):
        yield "the exception", answer.kind
        yield "the text of the exception", answer.text
        return
    if isinstance(answer, np.ndarray) and answer.ndim > 0:
        answer = answer.tolist()
    if is_dataclass(answer) and not isinstance(answer, type):
        answer = {f.name: getattr(answer, f.name, None) for f in fields(answer)}
    if isinstance(answer, Mapping | Set):
        yield from _fields_of_keys(answer)
    elif isinstance(answer, list | tuple):
        yield from _fields_of_entries(answer)
    else:
        yield WHOLE, _reading(answer)
        yield "the type of the output", type(answer).__name__
        if isinstance(answer, numbers.Integral) and abs(int(answer)) >= 2**53:
            yield "the last 32 bits of the output", float(int(answer) & 0xFFFFFFFF)


def _fields_of_entries(answer: Sequence[object]) -> Iterator[tuple[str, float | str]]:
    readings = [_reading(item) for item in answer]
    finite = [r for r in readings if isinstance(r, float) and r == r]
    yield "the length of the output", float(len(readings))
    for place, reading in enumerate(readings[:MOST_ENTRIES]):
        yield entry(place), reading
    yield "the number of numbers in the output", float(len(finite))
    if finite:
        yield "the sum of the output", float(np.sum(finite))
        yield "the largest entry of the output", max(finite)
        yield "the smallest entry of the output", min(finite)
    yield WHOLE, _text(answer)


def _fields_of_keys(answer: Mapping[Any, object] | Set[Any]) -> Iterator[tuple[str, float | str]]:
    keys = sorted(_text(key) for key in answer)
    yield "the number of keys", float(len(keys))
    yield "the set of keys", ", ".join(keys)
    if isinstance(answer, Mapping):
        for key, value in list(answer.items())[:MOST_ENTRIES]:
            yield f"key {_text(key)}", _reading(value)
        yield WHOLE, _text(answer)
    else:
        for text in keys[:MOST_ENTRIES]:
            yield f"key {text}", "present"


def _reading(value: object) -> float | str:
    """A number, or the text of what is none. Numbers too large for a double are texts."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return float(value)
        except (OverflowError, ValueError):
            return hex(int(value)) if isinstance(value, numbers.Integral) else _text(value)
    return _text(value)


def _text(value: object) -> str:
    """The text of anything, the same in every process: no addresses, and sets in order."""
    try:
        if isinstance(value, Set):
            return "{" + ", ".join(sorted(_text(item) for item in value)) + "}"
        return _ADDRESS.sub("", repr(value))
    except Exception as problem:  # a foreign repr may do anything; that it failed is what is seen
        return f"{type(value).__name__} whose repr raises {type(problem).__name__}"

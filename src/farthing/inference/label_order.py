"""The order in which people expect values that nobody listed: 2 before 10, and "drug 2" before "drug 10"."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from farthing.inference.answers import Answer

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_DIGITS = re.compile(r"([0-9]+)")


def natural_key(values: Collection[Any]) -> Callable[[Any], Any]:
    """How to sort values that were found: by value if all are numbers, else as text in which digits are numbers.

    Args:
        values: Texts or whole numbers.

    Returns:
        A key for `sorted`; no two different values have the same one.

    >>> numbers, names = ["10", "2", "1.5", "-3"], ["drug 10", "a", "drug 2", "drug"]
    >>> sorted(numbers, key=natural_key(numbers)), sorted(names, key=natural_key(names))
    (['-3', '1.5', '2', '10'], ['a', 'drug', 'drug 2', 'drug 10'])
    """
    if all(_NUMBER.fullmatch(str(value)) for value in values):
        return lambda value: (Decimal(str(value)), str(value))
    return lambda value: (_parts(str(value)), str(value))


def _parts(text: str) -> list[tuple[int, str]]:
    """Text and runs of digits in turns; a run by its length first, which is its order as a number of any size."""
    parts = _DIGITS.split(text)
    whole = [digits.lstrip("0") for digits in parts[1::2]]
    turns = [[(0, plain)] for plain in parts[::2]]
    for place, digits in enumerate(whole):
        turns[place].append((len(digits), digits))
    return [part for turn in turns for part in turn]


def in_natural_order(answer: Answer) -> Answer:
    """The same answer, with cells that are sorted as text in the order that people expect.

    Args:
        answer: An answer by values that were found; older versions kept them in the order of their text.

    Returns:
        The answer; itself where its cells are in another order than that of text.

    >>> answer = Answer.within("n", [5.0, 7.0, 9.0], 1.0, lambda confidence: (4.0, 10.0), ("1", "10", "2"))
    >>> print(in_natural_order(answer))
    n (95%)
      1   5 (4 to 10)
      2   9 (4 to 10)
      10  7 ± 3
    """
    cells = [label if isinstance(label, tuple) else (label,) for label in answer.labels]
    if answer.asking is not None or len({len(cell) for cell in cells}) != 1:
        return answer
    ranks = [_ranks(list(dict.fromkeys(column))) for column in zip(*cells, strict=True)]
    places = [[rank[part] for rank, part in zip(ranks, cell, strict=True)] for cell in cells]
    order = sorted(range(len(cells)), key=places.__getitem__)
    if order == list(range(len(cells))):
        return answer
    size = np.shape(answer.values)

    def interval_at(confidence: float) -> tuple[Any, Any]:
        lower, upper = (np.broadcast_to(end, size)[order] for end in answer.interval_at(confidence))
        return lower, upper

    moved = Answer.within(
        answer.name,
        np.asarray(answer.values)[order],
        np.broadcast_to(answer.standard_errors, size)[order],
        interval_at,
        tuple(answer.labels[place] for place in order),
        confidence=answer.confidence,
        note=answer.note,
        raw=np.broadcast_to(answer.raw, size)[order],
    )
    return moved.counting(answer.counts)


def _ranks(values: Sequence[Any]) -> dict[Any, int]:
    """The place of each value of one column: its own, or the natural one where they are sorted as text."""
    if all(isinstance(value, str) for value in values) and values == sorted(values):
        values = sorted(values, key=natural_key(values))
    return {value: place for place, value in enumerate(values)}

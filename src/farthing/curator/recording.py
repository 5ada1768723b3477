"""Noisy whole numbers as text and back: what is recorded is what is answered, the first time and every other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData

Answers = dict[str, NDArray[Any]]


def text_of(answers: Mapping[str, Any]) -> str:
    """Arrays of whole numbers as JSON, exact at any size.

    >>> text_of({"people": np.array([3, -1])})
    '{"people":{"shape":[2],"values":[3,-1]}}'
    """
    return json.dumps({name: _written(value) for name, value in answers.items()}, separators=(",", ":"))


def answers_of(text: str) -> Answers:
    """The arrays of `text_of`: int64 where all numbers fit, Python integers otherwise.

    >>> answers_of('{"people":{"shape":[2],"values":[3,-1]}}')
    {'people': array([ 3, -1])}
    """
    return {name: _read(value) for name, value in json.loads(text).items()}


def _written(value: Any) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.kind == "O":
        whole = all(isinstance(item, int) and not isinstance(item, bool) for item in array.flat)
    else:
        whole = array.dtype.kind in "iu"
    if not whole:
        raise InvalidData("answer", "must be whole numbers", "release steps of a grid, not reals")
    return {"shape": list(array.shape), "values": array.reshape(-1).tolist()}


def _read(value: Any) -> NDArray[Any]:
    numbers = value["values"]
    fits = all(-(2**63) <= number < 2**63 for number in numbers)
    return np.array(numbers, dtype=np.int64 if fits else object).reshape(value["shape"])

"""Noisy whole numbers as text and back: what is recorded is what is answered, the first time and every other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import AnswerForfeited, InvalidData, InvalidValue, LedgerUnavailable

if TYPE_CHECKING:
    from farthing.ledger import Charge, Ledger, Receipt

Answers = dict[str, NDArray[Any]]

PAUSES = (0.1, 0.4, 1.6)  # seconds between attempts to record what was drawn, for a database that restarts


def record(ledger: Ledger, charge: Charge, text: str) -> Receipt:
    """Record what was drawn, again if the database is away for a moment: it is the same answer each time."""
    for pause in (*PAUSES, None):
        try:
            return ledger.release(charge, text)
        except LedgerUnavailable:
            if pause is None:  # recorded or not, asking again with this request id finds out
                raise
            time.sleep(pause)
        except InvalidValue:
            break
    raise AnswerForfeited(charge.request_id, "another call with this request id gave it up meanwhile")


def text_of(answers: Mapping[str, Any], finished: Mapping[str, Any] | None = None) -> str:
    """Arrays of whole numbers as JSON, exact at any size, and what was made of them afterwards.

    >>> text_of({"people": np.array([3, -1])})
    '{"answers":{"people":{"shape":[2],"values":[3,-1]}},"finished":null}'
    """
    written = {name: _written(value) for name, value in answers.items()}
    return json.dumps({"answers": written, "finished": finished}, separators=(",", ":"), allow_nan=False)


def answers_of(text: str) -> Answers:
    """The arrays of `text_of`: int64 where all numbers fit, Python integers otherwise.

    >>> answers_of('{"answers":{"people":{"shape":[2],"values":[3,-1]}},"finished":null}')
    {'people': array([ 3, -1])}
    """
    return {name: _read(value) for name, value in json.loads(text)["answers"].items()}


def finished_of(text: str) -> dict[str, Any]:
    """What was made of the answers when they were drawn; empty where nothing was.

    >>> finished_of('{"answers":{},"finished":{"mean":3.5}}')
    {'mean': 3.5}
    """
    return json.loads(text)["finished"] or {}


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

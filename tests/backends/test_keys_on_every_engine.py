"""Keys that nobody listed, on every engine: the same values, their sums and their number, hostile cells included."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from farthing.data import dataset, unknown
from farthing.data.aggregates.distinct_keys import DistinctKeys
from farthing.data.key_counts import each_key

CELLS = [
    "flu", "Flu ", "\tFLU", "cold", "İ", "ı", "ß", "ẞ", "ÄPFEL", "äpfel", "ΣΑΣ", "σας", "Привет", "привет", "é", "é",
    "", " ", "a" * 100, "a" * 101, "ü" * 50, "ü" * 51, "東京", "O'Hare", "100%", "😀", None,
]  # fmt: skip
TABLE = pa.table(
    {
        "who": [number // 2 for number in range(len(CELLS))] + [None],
        "text": [*CELLS, "flu"],
        "code": [number % 5 - 2 for number in range(len(CELLS))] + [7],
    }
)
ASKED: dict[str, tuple[str, bool, bool, bool]] = {  # column, trim, lower, whether persons are units
    "as it is": ("text", False, False, True),
    "trimmed": ("text", True, False, True),
    "folded": ("text", True, True, True),
    "rows": ("text", False, True, False),
    "whole numbers": ("code", False, False, True),
}


def _small(letter: str) -> str:
    return letter.lower() if len(letter.lower()) == 1 and letter.lower().upper() == letter else letter


def _expected(column: str, trim: bool, lower: bool, units: bool) -> dict[Any, int]:
    weights, own = (10, 7), {}
    for place, row in enumerate(TABLE.to_pylist()):
        key = row[column]
        if isinstance(key, str):
            key = key.strip(" \t\n\r\v\f") if trim else key
            key = "".join(map(_small, key)) if lower else key
            key = key if len(key.encode()) <= 100 else None
        if key is not None and (not units or row["who"] is not None):
            own.setdefault(row["who"] if units else place, set()).add(key)
    found: dict[Any, int] = {}
    for keys in own.values():
        for key in keys:
            found[key] = found.get(key, 0) + weights[len(keys) - 1]
    return found


@pytest.mark.draws(false_alarm=0, miss=0)  # no unit has more keys than it may keep: nothing is left to chance
@pytest.mark.parametrize("asked", ASKED)
def test_every_engine_finds_the_same_keys(engine: EngineUnderTest, asked: str) -> None:
    column, trim, lower, units = ASKED[asked]
    unit: dict[str, Any] = {"unit": "who", "max_rows": 1} if units else {}
    people = dataset(engine.load(TABLE), schema={"text": ["flu"], "code": (0, 9)}, **unit)
    found: dict[Any, int] = {}
    each_key(
        people,
        column,
        (10, 7) if units else (10,),
        lambda keys, sums: found.update(zip(keys, sums.tolist(), strict=True)),
        trim=trim,
        lower=lower,
    )
    assert found == _expected(column, trim, lower, units)
    rules = unknown("text", trim=trim, lower=lower)
    number = people.exact({"number": DistinctKeys(column, 2 if units else 1, rules)})["number"]
    assert number.tolist() == len(found)

"""Names that numpy holds are plain text from where they come in: no refusal shows how numpy writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing import count, dataset, marginals, mean
from farthing.errors import InvalidValue
from farthing.statistics.design import design_of

SEX, AGE, ABSENT, F, M = np.array(["sex", "age", "absent", "F", "M"])
TABLE = pa.table({"sex": ["F", "M"], "age": [30, 41]})
SCHEMA: dict[Any, Any] = {SEX: [F, M], AGE: (np.int64(0), np.float64(110))}


def test_no_name_keeps_the_type_that_numpy_gave_it() -> None:
    people = dataset(TABLE, unit=AGE, max_rows=1, schema=SCHEMA)
    statistics = [count(by=SEX, name=ABSENT), mean(AGE), marginals([SEX, AGE])]
    shown = [people.schema, people.unit, statistics, design_of(statistics[:2], people, {AGE: (30, 9)}).expected]
    assert "np." not in repr(shown)


@pytest.mark.parametrize(
    "ask",
    [
        lambda people: dataset(TABLE, schema={ABSENT: [F, M]}),
        lambda people: dataset(TABLE, schema={SEX: [F, F]}),
        lambda people: dataset(TABLE, schema=SCHEMA, unit=ABSENT, max_rows=1),
        lambda people: dataset(TABLE, schema=SCHEMA, rows=np.int64(-1)),
        lambda people: people.select(ABSENT),
        lambda people: design_of([count(by=[SEX, ABSENT])], people),
        lambda people: design_of([mean(SEX)], people),
        lambda people: design_of([count()], people, {ABSENT: 1}),
        lambda people: design_of([count(by=SEX)], people, {SEX: {ABSENT: 1}}),
        lambda people: design_of([mean(AGE)], people, {AGE: (np.float64(-1.0), np.float64(2.0))}),
        lambda people: count(of=ABSENT),
    ],
)
def test_no_refusal_shows_how_numpy_writes_a_value(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidValue) as refused:
        ask(dataset(TABLE, schema=SCHEMA))
    assert "np." not in str(refused.value)

"""One table of cases on DuckDB, PostgreSQL and Spark: the same integers everywhere, and those of a loop in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from backends import twin
from backends.cases import AGGREGATES, DERIVED, FILTERS, Case, filters_in_one_query, in_one_query
from backends.chain_cases import CHAINS
from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import Dataset, dataset

CASES = [*AGGREGATES, *FILTERS, *DERIVED, *CHAINS]
# A server takes longer to plan a query than to run it, Spark above all: what can be asked together is. DuckDB is asked
# one by one, so that a fault has a name.
APART = {
    "everything in one plan", "everything of an empty table", "everything of an empty table with units", "rows",
    "where a category", "where or with unknown", "where a pattern", "where nobody", "where nobody in an empty table",
}  # fmt: skip
JOINED = [
    in_one_query(cases[start : start + 7])
    for cases in ([case for case in AGGREGATES if case.name not in APART], DERIVED)
    for start in range(0, len(cases), 7)
]
CONDITIONS = [case for case in FILTERS if case.name not in APART]
JOINED += [filters_in_one_query(CONDITIONS[start : start + 7]) for start in range(0, len(CONDITIONS), 7)]
ON_SERVERS = [*(case for case in (*AGGREGATES, *FILTERS) if case.name in APART), *JOINED, *CHAINS]


@pytest.fixture(scope="session")
def described(engine: EngineUnderTest) -> Callable[..., Dataset]:
    """The tables of the cases, in the engine; each is looked at once for all cases that describe it alike."""
    loaded = {name: engine.load(table) for name, table in TABLES.items()}

    @cache
    def made(table: str, unit: tuple[str, ...], max_rows: int | None) -> Dataset:
        return dataset(loaded[table], unit=unit or None, max_rows=max_rows, schema=SCHEMAS[table])

    return made


def test_there_are_enough_cases_each_with_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "case"),
    [
        *(pytest.param("duckdb", case, id=f"duckdb-{case.name}") for case in CASES),
        *(pytest.param(name, case, id=f"{name}-{case.name}") for name in ("postgres", "spark") for case in ON_SERVERS),
    ],
    indirect=["engine"],
    scope="session",
)
@pytest.mark.draws(false_alarm=0, miss=0)  # no unit has more rows than are kept
def test_the_engine_gives_the_integers_of_the_twin(case: Case, described: Callable[..., Dataset]) -> None:
    others = {"stays": described("stays", case.unit, case.max_rows)} if case.unit == ("person",) else {}
    chain = case.chain(described(case.table, case.unit, case.max_rows), others)
    found = chain.exact({name: asked.aggregate for name, asked in case.asked.items()})
    assert {name: _plain(value) for name, value in found.items()} == _expected(case)


def _expected(case: Case) -> dict[str, Any]:
    def rows(table: str) -> twin.Rows:
        return twin.read(TABLES[table].to_pylist(), SCHEMAS[table], case.unit)

    others = {"stays": rows("stays")} if case.unit == ("person",) else {}
    kept = case.loops(rows(case.table), others)
    return {name: asked.expected(kept) for name, asked in case.asked.items()}


def _plain(value: np.ndarray[Any, Any]) -> Any:
    """Nested lists of Python integers; anything that is not a whole number would not compare equal."""
    assert value.dtype in (np.dtype(object), np.dtype(np.int64))
    return value.tolist()

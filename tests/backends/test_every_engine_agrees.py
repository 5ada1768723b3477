"""One table of cases on DuckDB, PostgreSQL and Spark: the same integers everywhere, and those of a loop in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends import twin
from backends.cases import AGGREGATES, DERIVED, FILTERS, Case
from backends.chain_cases import CHAINS
from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import dataset

CASES = [*AGGREGATES, *FILTERS, *DERIVED, *CHAINS]


@pytest.fixture(scope="session")
def loaded(engine: EngineUnderTest) -> dict[str, Any]:
    """Every table of the cases, in the engine."""
    return {name: engine.load(table) for name, table in TABLES.items()}


def test_there_are_enough_cases_each_with_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.draws(false_alarm=0, miss=0)  # no unit has more rows than are kept
def test_the_engine_gives_the_integers_of_the_twin(case: Case, loaded: dict[str, Any]) -> None:
    def described(table: str) -> Any:
        return dataset(loaded[table], unit=case.unit or None, max_rows=case.max_rows, schema=SCHEMAS[table])

    others = {"stays": described("stays")} if case.unit == ("person",) else {}
    chain = case.chain(described(case.table), others)
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

"""The table of differences is what the engines really do; a row that stops being true fails here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from farthing.data.engines.engine_differences import DIFFERENCES
from farthing.errors import EngineError

ROW = pa.table({
    "zero": pa.array([0.0]), "large": pa.array([1e308]), "tiny": pa.array([1e-308]), "ten": pa.array([10.0]),
    "big": pa.array([2**62]), "nothing": pa.array([None], pa.float64()), "nan": pa.array([float("nan")]),
    "flag": pa.array([True]), "text": pa.array(["a"]),
})  # fmt: skip
Probe = Callable[[Any], Any]


def _ibis() -> Any:
    import ibis

    return ibis


PROBES: dict[str, Probe] = {
    "x / 0": lambda t: t.select(v=t.ten / t.zero),
    "ln(0)": lambda t: t.select(v=t.zero.ln()),
    "1e308 * 10": lambda t: t.select(v=t.large * t.ten),
    "1e-308 * 1e-308": lambda t: t.select(v=t.tiny * t.tiny),
    "2^62 * 4": lambda t: t.select(v=t.big * 4),
    "sum of 2^62 + 2^62": lambda t: t.union(t).aggregate(v=lambda both: both.big.sum()),
    "isnan(NULL)": lambda t: t.select(v=t.nothing.isnan()),
    "NaN > 1e308": lambda t: t.select(v=t.nan > t.large),
    "a flag as a 64-bit number": lambda t: t.select(v=t.flag.cast("int64")),
}
WRITTEN: dict[str, Probe] = {
    "SHA-256": lambda t: t.select(v=t.text.hexdigest("sha256")),
    "a random UUID": lambda t: t.select(v=_ibis().uuid()),
}
RUN: dict[str, Probe] = {
    "ORDER BY random() in a window": lambda t: t.select(
        v=_ibis().row_number().over(group_by=t.text, order_by=_ibis().random())
    ),
}
IN_WORDS = {
    "join with rows of the client", "a sum of integers through Ibis", "errors", "progress", "stopping a query",
    "a time limit", "columns that compare text by a collation", "timestamps with a time zone",
    "blanks at the end of a CHAR(8)", "the first 2 of a list", "a decimal that is NaN",  # see test_hostile_cells
}  # fmt: skip


@pytest.fixture(scope="session")
def row(engine: EngineUnderTest) -> Any:
    """One row with a cell for each probe."""
    return engine.load(ROW)


def test_every_difference_is_probed_or_said_in_words() -> None:
    names = [difference.what for difference in DIFFERENCES]
    assert sorted(names) == sorted([*PROBES, *WRITTEN, *RUN, *IN_WORDS])


def test_every_verdict_is_one_of_three() -> None:
    assert {difference.verdict for difference in DIFFERENCES} == {"never", "waiting on them", "not yet ours"}


@pytest.mark.draws(false_alarm=0, miss=0)  # a kind of column, not its values
def test_the_engine_does_what_the_table_says(engine: EngineUnderTest, row: Any) -> None:
    said = {difference.what: getattr(difference, engine.name) for difference in DIFFERENCES}
    found = {what: _value(engine, probe(row)) for what, probe in PROBES.items()}
    found |= {what: _function(engine, probe(row), said[what]) for what, probe in WRITTEN.items()}
    found |= {what: _outcome(engine, probe(row)) for what, probe in RUN.items()}
    assert found == {what: said[what] for what in found}


def _value(engine: EngineUnderTest, expression: Any) -> str:
    try:
        ((value,),) = engine.engine.rows(engine.engine.sql(expression))
    except Exception as error:
        # DuckDB's own errors are made safe one floor up; those of the others are safe already.
        assert isinstance(error, EngineError) or engine.name == "duckdb"
        return "error"
    return "missing" if value is None else str(value)


def _outcome(engine: EngineUnderTest, expression: Any) -> str:
    return "error" if _value(engine, expression) == "error" else "done"


def _function(engine: EngineUnderTest, expression: Any, name: str) -> str:
    """The name of the function that Ibis writes, if it is the one we say."""
    from ibis.common.exceptions import OperationNotDefinedError, UnsupportedOperationError

    try:
        sql = engine.engine.sql(expression).lower()
    except (OperationNotDefinedError, UnsupportedOperationError):
        return "not in Ibis"
    return name if f"{name}(" in sql else sql

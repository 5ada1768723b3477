"""What is random in an engine: whose rows are kept, and who is in a sample. Checked by what must hold every time."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest, SparkUnderTest
from backends.expression_cases import HOSTILE, table
from backends.expression_faults import faults
from backends.tables import CITIES, SCHEMAS, TABLES
from farthing.data import Count, Histogram, Sum, dataset

UNITS, EACH = 400, 10
# Person p has the rows 0 to 9; which of them is kept is all that can vary.
ROWS = pa.table(
    {
        "person": [person for person in range(UNITS) for _ in range(EACH)],
        "place": [place for _ in range(UNITS) for place in range(EACH)],
    }
)

# Servers draw by themselves. The chances are those of the tests with a margin; see there.
pytestmark = pytest.mark.draws(false_alarm=1e-10, miss=1e-12)


@pytest.fixture(scope="session")
def rows(engine: EngineUnderTest) -> Any:
    """400 people with 10 rows each."""
    return engine.load(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 9, 10, 11])
def test_every_unit_keeps_as_many_rows_as_it_may(rows: Any, most: int) -> None:
    kept = dataset(rows, unit="person", max_rows=most, schema={"person": (0, UNITS - 1), "place": (0, EACH - 1)})
    found = kept.exact({"each": Count(by="person"), "places": Sum("place")})
    assert set(found["each"].tolist()) == {min(most, EACH)}
    if most >= EACH:
        assert found["places"].tolist() == UNITS * sum(range(EACH))


@pytest.mark.slow
def test_rows_of_a_period_and_the_earliest_are_the_same_on_every_engine(engine: EngineUnderTest) -> None:
    """Days at the ends of months, missing ones, one beyond the bounds: which move no row to another period."""
    days = ["2025-03-01", "2025-01-31", "2024-12-31", "2025-02-01", None, "2031-01-15", "2025-01-02"]
    column = pa.array([None if day is None else date.fromisoformat(day) for day in days]).cast(pa.timestamp("us"))
    source = engine.load(pa.table({"person": [1, 1, 1, 2, 2, 3, None], "day": column}))
    bounds = {"day": (date(2024, 1, 1), date(2029, 12, 31))}
    visits = dataset(source, unit="person", max_rows=1, schema=bounds)
    months = {"2025-01": 1, "2029-12": 0}
    found = {month: int(visits.during("day", "month", month).exact({"n": Count()})["n"]) for month in months}
    assert found == months
    first = visits.earliest("day", date(2025, 1, 1)).where("day < date '2026-01-01'")
    edges = [date(2025, 1, 1), date(2025, 2, 1), date(2025, 3, 1), date(2025, 4, 1)]
    assert first.exact({"n": Histogram("day", cells=edges)})["n"].tolist()[1:4] == [1, 1, 0]


@pytest.mark.slow
def test_a_giant_unit_counts_no_more_than_its_bound(engine: EngineUnderTest) -> None:
    giant = dataset(engine.load(TABLES["giant"]), unit="person", max_rows=5, schema=SCHEMAS["giant"])
    assert giant.exact({"rows": Count()})["rows"].tolist() == 5 + 3


def test_the_row_that_is_kept_is_any_of_them_alike(rows: Any) -> None:
    """Each count is Binomial(400, 1/10): one of the ten leaves 7 to 89 once in 1e10. A row never kept has 0."""
    one = dataset(rows, unit="person", max_rows=1, schema={"place": (0, EACH - 1)})
    counts = one.exact({"places": Histogram("place")})["places"].tolist()
    assert sum(counts) == UNITS
    assert min(counts) > 6 and max(counts) < 90


def test_a_sample_takes_units_whole(rows: Any) -> None:
    half = dataset(rows, unit="person", max_rows=EACH, schema={"person": (0, UNITS - 1)}).sample(0.5)
    first, second = (half.exact({"each": Count(by="person")})["each"].tolist() for _ in range(2))
    assert {*first, *second} == {0, EACH}
    assert first != second  # drawn anew: equal once in 2^400 runs


def test_a_sample_of_rows_takes_some_of_each_persons(rows: Any) -> None:
    half = dataset(rows, schema={"person": (0, UNITS - 1)}).sample(0.5)
    each = half.exact({"each": Count(by="person")})["each"].tolist()
    assert 0 < sum(each) < UNITS * EACH
    assert len(set(each)) > 2


def test_a_sample_is_as_large_as_its_probability(rows: Any) -> None:
    """Binomial(4000, 0.2) leaves 601 to 999 once in 1e14; half or half again as much would stay there as rarely."""
    fifth = dataset(rows, schema={"place": (0, EACH - 1)}).sample(0.2)
    assert 600 < fifth.exact({"rows": Count()})["rows"].tolist() < 1000


def test_the_digest_is_sha_256_of_utf_8(engine: EngineUnderTest) -> None:
    table, own = engine.load(pa.table({"city": CITIES})), engine.engine
    digest = own.hexadecimal(own.sha256(own.bytes_of(table.city)))
    found = own.rows(own.sql(table.select("city", digest=digest)))
    assert dict(found) == {city: hashlib.sha256(city.encode()).hexdigest() for city in CITIES}


@pytest.mark.slow
def test_spark_gives_the_same_integers_without_ansi_mode(spark_engine: SparkUnderTest) -> None:
    """A user's own session may have it off: wrong numbers in place of errors must not come from that."""
    session = spark_engine.engine.backend._session
    rows = spark_engine.load(table())
    session.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert faults(spark_engine, rows, [case for case in HOSTILE if not case.refused]) == []
    finally:
        session.conf.set("spark.sql.ansi.enabled", "true")

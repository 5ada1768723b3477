"""The rows of a statement are those that a database gives for the same text, with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import farthing as ft
from farthing.study.sql.result_table import Cell, ResultTable
from sql_people import hospital, hospital_tables, people, people_table, visits, visits_table
from sql_statements import ALL

# DuckDB has no function or clause of this kind, or counts otherwise than exactly; a linked table names no unit there;
# and without keys the rows of two groups cannot be told apart.
NOT_IN_DUCKDB = (
    "WIDTH_BUCKET",
    "WITH ROLLUP",
    "APPROX_",
    "LEAST(",
    "AVG(smoker)",
    "(DISTINCT person_id)",
    "d.person_id",
    "SELECT COUNT(*) FROM people GROUP BY sex",
)
# Its quantile lies between two values, and farthing's on one; STDDEV divides by n - 1.
CLOSE = 0.02


def comparable() -> list[tuple[str, str]]:
    return [
        (name, text) for name, text, _ in ALL if not any(word in text for word in NOT_IN_DUCKDB) and ";" not in text
    ]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.register("people", people_table())
    for name, table in hospital_tables().items():
        connection.register(name, table)
    yield connection
    connection.close()


def released(name: str, text: str, folder: Path) -> ResultTable:
    """The rows of a statement with next to no noise: epsilon is absurd on purpose."""
    table = {"people": people, "visits": visits, "hospital": lambda: hospital()["drugs"]}[name]()
    study = ft.Study(table, epsilon=1e6, ledger=folder / "study.db", account=name)
    release = study.sql(text, epsilon=1e5).release()
    study.close()
    return release.table


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), comparable(), ids=[text[:70] for _, text in comparable()])
def test_a_database_gives_the_same_rows(
    name: str, text: str, engine: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Every group of the database is there with its number; what only farthing has is an empty group of the schema."""
    if name != "hospital":
        engine.register("visits", visits_table())
    else:
        engine.register("visits", hospital_tables()["visits"])
    ours = released(name, text, tmp_path)
    theirs = engine.execute(text).fetchall()
    keyed = {key_of(ours, row): row for row in ours.rows}
    assert len(keyed) == len(ours.rows)
    totals = "ROLLUP" in text or "CUBE" in text or "SETS" in text
    for row in theirs:
        if None in key_of(ours, row) and "NULL AS" not in text and not totals:
            continue  # a group of rows without a value, which farthing does not have
        mine = keyed.pop(key_of(ours, row), None)
        assert mine is not None, f"no row {row}"
        for number, (left, right) in enumerate(zip(mine, row, strict=True)):
            if ours.measured[number] and right is not None:
                assert left == pytest.approx(float(right), rel=CLOSE, abs=2.0)
    limited = "LIMIT" in text
    assert not keyed or limited or all(is_empty(ours, row) for row in keyed.values())
    if limited:
        assert len(ours.rows) == len(theirs)


def key_of(table: ResultTable, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is not a released number."""
    return tuple(value for value, measured in zip(row, table.measured, strict=True) if not measured)


def is_empty(table: ResultTable, row: tuple[Any, ...]) -> bool:
    """Whether all counts of a row are about 0; other numbers of an empty group say nothing."""
    counts = [value for name, value in zip(table.columns, row, strict=True) if "COUNT" in name.upper() or name == "n"]
    return bool(counts) and all(value is None or abs(value) < 1 for value in counts)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[ft.Study]:
    study = ft.Study(people(), epsilon=1e6, ledger=tmp_path / "study.db")
    yield study
    study.close()


def test_rows_stand_in_the_order_that_was_asked_for(study: ft.Study) -> None:
    release = study.sql(
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC", epsilon=10.0
    ).release()
    numbers = [n for _, n in release.table]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 4
    answer = release["count by region"]
    assert dict(release.table.rows) == dict(zip(answer.labels, answer.values.tolist(), strict=True))


def test_having_and_limit_choose_among_released_numbers(study: ft.Study) -> None:
    text = "SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 740 ORDER BY 2 LIMIT 2 OFFSET 1"
    release = study.sql(text, epsilon=10.0).release()
    above = sorted(value for value in release["count by region"].values if value > 740)
    assert [n for _, n in release.table] == above[1:3]
    assert any("compare released numbers" in note for note in release.table.notes)


def test_an_interval_moves_along_with_its_number(study: ft.Study) -> None:
    """-2 x + 1 turns the ends around, and the error doubles."""
    release = study.sql("SELECT COUNT(*) AS n, -2 * COUNT(*) + 1 AS less FROM people", epsilon=0.5).release()
    ((n, less),) = release.table.cells
    answer = release["count"]
    assert (n.value, n.lower, n.upper) == (answer.values, answer.lower, answer.upper)
    assert (less.value, less.lower, less.upper) == (1 - 2 * n.value, 1 - 2 * n.upper, 1 - 2 * n.lower)
    assert less.error == 2 * n.error


def test_a_ratio_is_that_of_the_answers_with_their_shared_noise(study: ft.Study) -> None:
    text = "SELECT sex, COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS share FROM people GROUP BY sex ORDER BY sex"
    release = study.sql(text, epsilon=0.5).release()
    by_python = release["count where smoker by sex"] / release["count by sex"]
    for (_, share), value, lower, upper in zip(
        release.table.cells, by_python.values, by_python.lower, by_python.upper, strict=True
    ):
        assert (share.value, share.lower, share.upper) == pytest.approx((value, lower, upper))
        assert 0 < share.lower < share.value < share.upper < 1
    (_, narrow), *_ = release.results(0.5)[0].cells
    assert narrow.error < release.table.cells[0][1].error


def test_another_confidence_costs_nothing(study: ft.Study) -> None:
    release = study.sql("SELECT COUNT(*) AS n FROM people WHERE smoker", epsilon=0.5).release()
    spent = study.budget.spent.upper
    (wide,), (narrow,) = release.results(0.99)[0].cells[0], release.results(0.5)[0].cells[0]
    assert wide.error > narrow.error
    assert study.budget.spent.upper == spent


def test_a_total_has_no_key_of_its_own(study: ft.Study) -> None:
    release = study.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)", epsilon=10.0).release()
    *parts, total = release.table.rows
    assert [sex for sex, _ in parts] == ["F", "M"] and total[0] is None
    assert total[1] == pytest.approx(sum(n for _, n in parts), abs=5)


def test_several_statements_have_a_table_each(study: ft.Study) -> None:
    release = study.sql(
        "SELECT COUNT(*) FROM people; SELECT sex, AVG(age) FROM people GROUP BY 1", epsilon=1.0
    ).release()
    assert [each.columns for each in release.tables] == [("COUNT(*)",), ("sex", "AVG(age)")]
    with pytest.raises(ft.errors.InvalidValue, match=r"look at .tables"):
        _ = release.table


def test_errors_and_intervals_come_on_request(study: ft.Study) -> None:
    table = study.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1.0).release().table
    assert list(table.records()[0]) == ["sex", "n"]
    assert list(table.records(errors=True)[0]) == ["sex", "n", "n_error"]
    frame = table.to_frame(errors=True, intervals=True)
    assert list(frame.columns) == ["sex", "n", "n_error", "n_lower", "n_upper"]
    assert (frame.n_error == (frame.n_upper - frame.n).combine(frame.n - frame.n_lower, max)).all()
    assert table.to_csv().splitlines()[0] == "sex,n,n_error,n_lower,n_upper"
    assert table.to_dict()["rows"][0]["sex"] == "F"


def test_a_table_without_rows_says_so() -> None:
    table = ResultTable(("n",), (), (True,), 0.95)
    assert str(table).splitlines()[-1] == "(no rows)"
    assert Cell(None).error is None and math.isinf(Cell(1.0, -math.inf, 3.0).error or 0)


def test_what_was_not_released_is_null() -> None:
    assert str(ResultTable(("n",), ((Cell(None),),), (True,), 0.95)).splitlines()[2].strip() == "NULL"

"""A plan by SQL is a plan like any other: the same price, the same request, the same controls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidSQL, InvalidValue
from farthing.study.documents.study_file import read_study
from farthing.study.sql.sql_plan import SqlPlan, SqlRelease
from sql_people import SCHEMA, hospital, people, people_table, visits


@pytest.fixture
def study(tmp_path: Path) -> Iterator[ft.Study]:
    study = ft.Study(people(), epsilon=1.0, delta=1e-9, ledger=tmp_path / "study.db")
    yield study
    study.close()


STATEMENT = "SELECT sex, COUNT(*), AVG(income) FROM people WHERE age >= 18 GROUP BY sex"


def test_sql_and_python_make_the_same_request_at_the_same_price(study: ft.Study) -> None:
    by_sql = study.sql(STATEMENT)
    by_python = study.plan(ft.count(where="age>=18", by="sex"), ft.mean("income", where="age >= 18", by="sex"))
    assert by_sql.asked == by_python.asked
    assert by_sql.request_id == by_python.request_id
    assert by_sql.cost == by_python.cost
    assert [one.error() for one in by_sql.statistics] == [one.error() for one in by_python.statistics]


def test_a_study_file_makes_the_same_request(tmp_path: Path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(people_table(), tmp_path / "people.parquet")
    file = tmp_path / "study.toml"
    file.write_text(
        """
        [dataset]
        source = "people.parquet"
        rows = 3_000
        [schema]
        sex = { categories = ["F", "M"] }
        age = { range = [0, 110] }
        income = { range = [0.0, 250_000.0] }
        [study]
        epsilon = 1.0
        delta = 1e-9
        ledger = "study.db"
        [[statistics]]
        kind = "count"
        where = "age >= 18"
        by = "sex"
        [[statistics]]
        kind = "mean"
        column = "income"
        where = "age >= 18"
        by = "sex"
        """,
        encoding="utf-8",
    )
    asked = read_study(file)
    study = asked.study()
    by_file, by_sql = asked.plan(study), study.sql(STATEMENT)
    assert by_sql.request_id == by_file.request_id
    assert by_sql.cost == by_file.cost
    release = by_sql.release()
    assert asked.plan(study).release().request_id == release.request_id  # answered once, by whichever way
    study.close()


def test_bands_by_sql_are_those_of_a_derived_dataset(study: ft.Study, tmp_path: Path) -> None:
    case = "CASE WHEN age < 18 THEN 'child' ELSE 'adult' END"
    by_sql = study.sql(f"SELECT {case} AS band, COUNT(*) FROM people GROUP BY band")
    derived = ft.Study(people().derive(band=case), epsilon=1.0, delta=1e-9, ledger=study.ledger)
    by_python = derived.plan(ft.count(by="band"))
    assert (by_sql.request_id, by_sql.cost) == (by_python.request_id, by_python.cost)


def test_people_and_linked_tables_make_the_same_requests(tmp_path: Path) -> None:
    study = ft.Study(visits(), epsilon=1.0, ledger=tmp_path / "visits.db")
    text = "SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) WHERE n > 2"
    own = ft.Study(visits().per_unit(n="count()"), epsilon=1.0, ledger=study.ledger)
    assert study.sql(text).request_id == own.plan(ft.mean("n", where="n > 2")).request_id
    study.close()
    tables = hospital()
    study = ft.Study(tables["drugs"], epsilon=1.0, ledger=tmp_path / "hospital.db", account="hospital")
    text = "SELECT ward, COUNT(*) FROM drugs JOIN visits USING (visit_id) GROUP BY ward"
    own = ft.Study(tables["drugs"].join("visits"), epsilon=1.0, ledger=study.ledger, account="hospital")
    assert study.sql(text).request_id == own.plan(ft.count(by="ward")).request_id
    study.close()


def test_a_release_is_charged_once_and_shows_rows(study: ft.Study) -> None:
    plan = study.sql(STATEMENT, epsilon=0.5)
    release = plan.release()
    assert isinstance(release, SqlRelease) and not release.repeated
    assert release.table.columns == ("sex", "COUNT(*)", "AVG(income)")
    assert release.table.rows[0][0] == "F"
    assert 0.49 < study.budget.spent.upper <= 0.5
    again = study.sql(STATEMENT, epsilon=0.5).release()
    assert again.repeated and again.table.rows == release.table.rows
    assert study.budget.spent.upper <= 0.5
    # The same numbers in other words, and in another order, cost nothing either: they are the same statistics.
    other = "SELECT sex AS s, AVG(income) AS m, COUNT(*) AS n FROM people p WHERE p.age >= 18 GROUP BY 1 ORDER BY 2"
    reordered = study.sql(other, epsilon=0.5).release()
    assert reordered.repeated and reordered.table.columns == ("s", "m", "n")


def test_a_statement_of_more_than_is_left_is_refused(study: ft.Study) -> None:
    study.sql("SELECT COUNT(*) FROM people WHERE smoker").release()
    with pytest.raises(BudgetExceeded):
        study.sql(STATEMENT, epsilon=0.5)


def test_controls_keep_the_statement(study: ft.Study) -> None:
    plan = (
        study.sql(STATEMENT)
        .weight("count where age >= 18 by sex", 4)
        .require("mean of income where age >= 18 by sex", within=3_000)
    )
    assert isinstance(plan, SqlPlan) and plan.statement == STATEMENT
    assert isinstance(plan.hold("mean of income where age >= 18 by sex"), SqlPlan)
    release = plan.release()
    assert isinstance(release, SqlRelease)
    again = (
        study.sql(STATEMENT)
        .weight("count where age >= 18 by sex", 4)
        .require("mean of income where age >= 18 by sex", within=3_000)
    )
    assert isinstance(again, SqlPlan) and again.release().table.rows == release.table.rows


def test_explain_says_everything_and_spends_nothing(study: ft.Study) -> None:
    plan = study.sql(f"EXPLAIN {STATEMENT}")
    said = str(plan)
    for words in ("95% error", "cost: epsilon 1 of 1", "What is measured", "ft.count(where='age >= 18', by='sex')",
                  "SQL that the engine would run", 'SUM("', "GROUP BY"):  # fmt: skip
        assert words in said
    with pytest.raises(InvalidValue, match="leave EXPLAIN out"):
        plan.release()
    assert study.budget.spent.upper == 0
    assert plan.request_id == study.sql(STATEMENT).request_id


def test_a_refusal_of_the_plan_is_shown_at_its_aggregate(tmp_path: Path) -> None:
    table = ft.dataset(pyarrow.table({"who": [1], "cost": [3]}), unit="who", schema={"cost": (0, 9)}, name="visits")
    study = ft.Study(table, epsilon=1.0, ledger=tmp_path / "study.db")
    with pytest.raises(InvalidSQL) as refusal:
        study.sql("SELECT COUNT(DISTINCT who),\n  AVG(cost) FROM visits")
    assert (refusal.value.line, refusal.value.place) == (2, 3)
    assert "max_rows" in str(refusal.value)
    study.close()


def test_max_cells_bounds_in_how_many_groups_one_person_counts(tmp_path: Path) -> None:
    study = ft.Study(visits(), epsilon=1.0, ledger=tmp_path / "study.db")
    text = "SELECT ward, COUNT(DISTINCT person) FROM visits GROUP BY ward"
    all_wards, one = study.sql(text), study.sql(text, max_cells=1)
    assert (all_wards.asked[0].max_cells, one.asked[0].max_cells) == (3, 1)
    assert one.statistics[0].error() < all_wards.statistics[0].error()
    study.close()


def test_a_column_that_nobody_knows_must_be_found_first(tmp_path: Path) -> None:
    table = ft.dataset(people_table(), schema={**SCHEMA, "income": ft.unknown("number")}, name="people")
    study = ft.Study(table, epsilon=1.0, ledger=tmp_path / "study.db")
    with pytest.raises(InvalidSQL, match="find it first"):
        study.sql("SELECT AVG(income) FROM people")
    assert study.sql("SELECT COUNT(*) FROM people").asked == (ft.count(),)
    study.close()


def test_expected_facts_make_predictions_better(study: ft.Study) -> None:
    plain = study.sql("SELECT AVG(income) FROM people")
    known = study.sql("SELECT AVG(income) FROM people", expected={"income": (40_000.0, 20_000.0)})
    assert known.statistics[0].error() < plain.statistics[0].error()


@pytest.mark.parametrize("name", ["people", "PEOPLE", '"people"', "survey"])
def test_a_table_has_its_own_name_and_that_of_its_account(tmp_path: Path, name: str) -> None:
    study = ft.Study(people(), epsilon=1.0, ledger=tmp_path / "study.db", account="survey")
    assert study.sql(f"SELECT COUNT(*) FROM {name}").asked == (ft.count(),)
    study.close()


def test_a_file_is_named_without_its_ending(tmp_path: Path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(people_table(), tmp_path / "people-2026.parquet")
    pyarrow.parquet.write_table(people_table(), tmp_path / "people.parquet")
    for file, names in (("people.parquet", ["people", '"people.parquet"']), ("people-2026.parquet", ['"people-2026"'])):
        dataset = ft.dataset(str(tmp_path / file), schema=SCHEMA)
        study = ft.Study(dataset, epsilon=1.0, ledger=tmp_path / f"{file}.db")
        for name in names:
            assert study.sql(f"SELECT COUNT(*) FROM {name}").asked == (ft.count(),)
        study.close()


# Statements that the tests and pages of SmartNoise SQL (opendp/smartnoise-sdk) and Qrlew (Qrlew/pyqrlew) publish, with
# the schemas before their tables left out.
PEERS = [
    ("SELECT sex, AVG(age) AS age FROM PUMS GROUP BY sex", ["mean('age', by='sex')"]),
    ("SELECT married, AVG(income) AS income, COUNT(*) AS n FROM PUMS GROUP BY married",
     ["mean('income', by='married')", "count(by='married')"]),
    ("SELECT age, sex, COUNT(*) AS n, SUM(income) AS income FROM PUMS GROUP BY age, sex HAVING income > 100000",
     ["count(by=['age', 'sex'])", "sum('income', by=['age', 'sex'])"]),
    ("SELECT educ, COUNT(*) AS n FROM PUMS GROUP BY educ", ["count(by='educ')"]),
    ("SELECT COUNT(*) AS c, married AS m FROM PUMS GROUP BY married ORDER BY c", ["count(by='married')"]),
    ("SELECT SUM(age) FROM PUMS", ["sum('age')"]),
    ("SELECT COUNT(*), VAR(age) AS var_age FROM PUMS", ["count()", "variance('age')"]),
    ("SELECT p.married, AVG(age) AS aa FROM PUMS AS p GROUP BY married", ["mean('age', by='married')"]),
    ("SELECT COUNT(married), AVG(age) FROM PUMS", ["count(where='not married is null')", "mean('age')"]),
    ("SELECT 3 AS three, p.married, educ, AVG(income) FROM PUMS AS p GROUP BY educ, married",
     ["mean('income', by=['educ', 'married'])"]),
    ("SELECT (SUM(age)) AS age FROM PUMS", ["sum('age')"]),
    ("SELECT SUM(age) * 1 AS age FROM PUMS", ["sum('age')"]),
    ("SELECT SUM(age) FROM PUMS GROUP BY married, CASE WHEN age > 90 THEN 1 ELSE 0 END",
     ["sum('age', by=['married', 'case when age > 90 then 1 else 0 end'])"]),
    # SmartNoise refuses these three, and says nothing of the reason.
    ("SELECT SUM(Age + Income) FROM PUMS", ["sum('age + income')"]),
    ("SELECT COUNT(*) FROM (SELECT * FROM PUMS)", ["count()"]),
    ("SELECT SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END) AS age FROM PUMS", ["count(where='age > 90')"]),
    ("SELECT COUNT(*) FROM census", ["count()"]),
    ("SELECT age, COUNT(*) FROM census GROUP BY age", ["count(by='age')"]),
]  # fmt: skip
REFUSED_PEERS = [
    "SELECT educ FROM PUMS GROUP BY educ",
    "SELECT TOP 5 educ, AVG(income) FROM PUMS GROUP BY educ",
    "SELECT PI(), RAND(), POWER(AVG(age), 2) FROM PUMS",
    "SELECT SUM(SUM(age)) FROM PUMS",
    "SELECT a.pid, b.income FROM PUMS AS a JOIN PUMS AS b ON b.pid = a.pid",
    "SELECT married, educ, income, AVG(age) FROM PUMS",
    "SELECT 3 AS three, p.married, educ, AVG(income) FROM PUMS AS p GROUP BY educ",
    "SELECT CASE WHEN age > 90 THEN 1 ELSE 0 END AS age FROM PUMS",
    "SELECT married, educ, income, AVG(age) FROM PUMS GROUP BY married, educ, income",
    "SELECT COUNT(*) FROM PUMS.PUMS",
]


@pytest.fixture
def pums(tmp_path: Path) -> Iterator[ft.Study]:
    table = pyarrow.table({"age": [30], "sex": ["0"], "educ": [3], "income": [3.0], "married": [True]})
    schema = {"age": (0, 100), "sex": ["0", "1"], "educ": (1, 16), "income": (0.0, 500_000.0), "married": bool}
    study = ft.Study(
        ft.dataset(table, schema=schema, name="PUMS"), epsilon=1.0, ledger=tmp_path / "study.db", account="census"
    )
    yield study
    study.close()


@pytest.mark.parametrize(("text", "expected"), PEERS, ids=[text[:60] for text, _ in PEERS])
def test_statements_of_peers_are_planned(pums: ft.Study, text: str, expected: list[str]) -> None:
    assert list(map(repr, pums.sql(text).asked)) == expected


@pytest.mark.parametrize("text", REFUSED_PEERS)
def test_statements_of_peers_that_are_not_answered_say_why(pums: ft.Study, text: str) -> None:
    with pytest.raises(InvalidSQL, match="line 1, column"):
        pums.sql(text)

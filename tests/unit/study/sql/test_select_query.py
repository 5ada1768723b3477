"""Statements become the statistics that Python would ask for, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest

import farthing as ft
from farthing.errors import InvalidSQL
from farthing.ledger import open_ledger
from farthing.study.sql.sql_plan import compiled
from sql_people import hospital, people, visits
from sql_statements import ALL


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ft.Study]:
    ledger = open_ledger(tmp_path_factory.mktemp("sql") / "study.db")
    tables = {"people": people(), "visits": visits(), "hospital": hospital()["drugs"]}
    return {name: ft.Study(table, epsilon=1.0, ledger=ledger, account=name) for name, table in tables.items()}


def test_there_are_enough_statements() -> None:
    assert len(ALL) >= 110
    assert len({text for _, text, _ in ALL}) == len(ALL)


@pytest.mark.parametrize(("table", "text", "expected"), ALL, ids=[text[:70] for _, text, _ in ALL])
def test_a_statement_becomes_these_statistics(
    studies: dict[str, ft.Study], table: str, text: str, expected: list[str]
) -> None:
    script = compiled(studies[table], text)
    derived = [f"{name} = {expression}" for name, expression in script.derived.items()]
    assert [*derived, *map(repr, script.statistics)] == expected


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("SELECT income FROM people", (1, 8), "rows never leave the table; ask for AVG(income)"),
        ("SELECT * FROM people", (1, 8), "rows never leave the table"),
        ("SELECT people.* FROM people", (1, 8), "rows never leave the table"),
        ("SELECT DISTINCT sex FROM people", (1, 17), "GROUP BY columns whose values are declared"),
        ("SELECT sex FROM people GROUP BY sex", (1, 8), "there is nothing to measure; add COUNT(*)"),
        ("SELECT age, COUNT(*) FROM people GROUP BY sex", (1, 8), "add age to GROUP BY, or take AVG(age)"),
        ("SELECT sex, income, COUNT(*)\nFROM people\nGROUP BY sex", (1, 13), "neither in GROUP BY nor"),
        ("SELECT MIN(age) FROM people", (1, 8), "the least value is one person's; PERCENTILE_CONT(0.01)"),
        ("SELECT MAX(age) FROM people", (1, 8), "PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY x)"),
        ("SELECT MODE(age) FROM people", (1, 8), "GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1"),
        ("SELECT ANY_VALUE(sex) FROM people", (1, 8), "one person's"),
        ("SELECT ARRAY_AGG(age) FROM people", (1, 8), "lists of values are rows"),
        ("SELECT STRING_AGG(sex) FROM people", (1, 8), "lists of values are rows"),
        ("SELECT BOOL_OR(smoker) FROM people", (1, 8), "COUNT(*) FILTER (WHERE ...)"),
        ("SELECT CORR(age, income) FROM people", (1, 8), "REGR_SLOPE(y, x)"),
        ("SELECT COUNT(DISTINCT sex, region) FROM people", (1, 8), "values of one column"),
        ("SELECT COUNT(DISTINCT income) FROM people", (1, 8), "column"),
        ("SELECT SUM(DISTINCT age) FROM people", (1, 21), "COUNT(DISTINCT x)"),
        ("SELECT AVG(sex) FROM people", (1, 8), "must hold numbers for a mean"),
        ("SELECT AVG(3) FROM people", (1, 12), "a constant is the same on every row"),
        ("SELECT PERCENTILE_CONT(0) WITHIN GROUP (ORDER BY age) FROM people", (1, 24), "above 0 and below 1"),
        ("SELECT PERCENTILE_CONT(1.5) WITHIN GROUP (ORDER BY age) FROM people", (1, 24), "above 0 and below 1"),
        ("SELECT PERCENTILE_CONT(age) WITHIN GROUP (ORDER BY age) FROM people", (1, 24), "must be one number"),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, income) FROM people", (1, 57), "of one column"),
        ("SELECT COUNT(*) FROM peopel", (1, 22), "did you mean people"),
        ("SELECT COUNT(*) FROM people WHERE agee > 3", (1, 35), "did you mean age"),
        ("SELECT COUNT(*) FROM people WHERE x.age > 3", (1, 35), "there is no table 'x' here; there are: people"),
        ("SELECT COUNT(*) FROM people p WHERE people.age > 3", (1, 37), "there are: p"),
        ('SELECT COUNT(*) FROM people WHERE "Age" > 3', (1, 35), "there is no column 'Age'; did you mean age"),
        ("SELECT COUNT(*) FROM people WHERE sex = 'X'", (1, 35), "they are 'F', 'M'"),
        ("SELECT COUNT(*) FROM people WHERE age", (1, 35), "age is not a condition; compare it with something"),
        ("SELECT COUNT(*) FROM people WHERE age > 'old'", (1, 35), "number"),
        ("SELECT COUNT(*) FROM people WHERE COUNT(*) > 3", (1, 35), "select it, or ask about it in HAVING"),
        ("SELECT COUNT(*) FILTER (WHERE age) FROM people", (1, 31), "is not a condition"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING sex", (1, 54), "is not a condition"),
        ("SELECT income, COUNT(*) FROM people GROUP BY income", (1, 46), "WIDTH_BUCKET(income, 0, 250000, 10)"),
        ("SELECT born, COUNT(*) FROM people GROUP BY born", (1, 44), "GROUP BY YEAR(born), MONTH(born)"),
        ("SELECT COUNT(*) FROM people GROUP BY COUNT(*)", (1, 38), "made by columns"),
        ("SELECT COUNT(*) FROM people GROUP BY 3", (1, 38), "no column 3 in SELECT"),
        ("SELECT COUNT(*) FROM people ORDER BY 2", (1, 38), "no column 2 in SELECT"),
        ("SELECT COUNT(*) FROM people LIMIT age", (1, 35), "LIMIT must be a whole number"),
        ("SELECT COUNT(*) FROM people LIMIT 10%", (1, 35), "LIMIT"),
        ("SELECT COUNT(*) FROM people ORDER BY income", (1, 38), "neither in GROUP BY nor in an aggregate"),
        ("SELECT SUM(income) * SQRT(COUNT(*)) FROM people", (1, 8), "added, subtracted, multiplied and divided"),
        ("SELECT 100 / COUNT(*) FROM people", (1, 8), "may be multiplied, shifted and rounded"),
        ("SELECT ABS(SUM(age)) FROM people", (1, 8), "may be multiplied, shifted and rounded"),
        ("SELECT WIDTH_BUCKET(age, 10, 0, 5), COUNT(*) FROM people GROUP BY 1", (1, 8), "lower end below"),
        ("SELECT WIDTH_BUCKET(age, 0, 10, age), COUNT(*) FROM people GROUP BY 1", (1, 33), "must be a number"),
        ("SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people", (1, 8), "write UNION ALL"),
        ("SELECT COUNT(*), 1 FROM people UNION ALL SELECT COUNT(*) FROM people", (1, 49), "as many columns: 2 and 1"),
        ("SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*) FROM people", (1, 8), "write SELECT, or UNION ALL"),
        ("SELECT COUNT(*)", (1, 8), "there is no FROM; write SELECT ... FROM people"),
        ("SELECT COUNT(*) FROM people WHERE LOG(age) > 1", (1, 35), "write LN(x), LOG10(x) or LOG(2, x)"),
        ("SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR) = '3'", (1, 35), "an integer or a double"),
        ("SELECT COUNT(*) FROM people WHERE DATE_TRUNC('month', born) = '2020-01-01'", (1, 35), "YEAR(d), MONTH(d)"),
        ("SELECT COUNT(*) FROM people WHERE born > DATE '2020-02-31'", (1, 47), "no such date"),
        ("SELECT COUNT(*) FROM people WHERE EXTRACT(DOW FROM born) = 1", (1, 35), "use YEAR, MONTH or DAY"),
        ("SELECT COUNT(*) FROM people WHERE region || sex = 'northF'", (1, 42), "CASE WHEN ... THEN ... END"),
        ("SELECT COUNT(*) FROM people WHERE region ILIKE 'N%'", (1, 35), "LIKE '%...%'"),
        ("SELECT COUNT(*) FROM people WHERE flor(age) = 3", (1, 35), "did you mean floor"),
        ("SELECT FROM people", (1, 13), "rows never leave the table"),
        ("SELECT COUNT() FROM people", (1, 8), "write COUNT(*)"),
        ("SELECT REGR_SLOPE(income, ) FROM people", None, "an argument is missing"),
        ("SELECT WIDTH_BUCKET(age, 0, 10, ), COUNT(*) FROM people GROUP BY 1", None, "an argument is missing"),
        ("SELECT COUNT(*) FROM people GROUP BY NULL", (1, 8), "always missing"),
        ("SELECT COUNT(* FROM people", (1, 16), "cannot be read from here on"),
        ("SELEC COUNT(*) FROM people", (1, 1), "this is not a question"),
        ("SELECT COUNT(*) FROM people WHERE sex = 'F", None, "a quote or a comment is not closed"),
        ("", None, "must be a text with a SELECT"),
        (" ; ", None, "must be a text with a SELECT"),
    ],
)  # fmt: skip
def test_a_refusal_shows_the_place_and_what_works(
    studies: dict[str, ft.Study], text: str, where: tuple[int, int] | None, words: str
) -> None:
    with pytest.raises(InvalidSQL) as refusal:
        studies["people"].sql(text)
    assert words in str(refusal.value)
    if where is None:
        assert refusal.value.position is None
    else:
        assert (refusal.value.line, refusal.value.place) == where


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT person, COUNT(*) FROM visits GROUP BY person", "groups of one person each would show one person each"),
        ("SELECT person FROM visits", "says whose a row is"),
        ("SELECT COUNT(*) FROM visits WHERE person = 3", "COUNT(DISTINCT person) counts people"),
        ("SELECT AVG(person) FROM visits", "says whose a row is"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING person > 3", "says whose a row is"),
        ("SELECT COUNT(*) FROM visits ORDER BY person", "says whose a row is"),
        ("SELECT COUNT(DISTINCT x.person) FROM visits AS v", "there is no table 'x' here"),
        ("SELECT COUNT(*) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", "GROUP BY person in it"),
        ("SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM visits)", "GROUP BY person in it"),
        ("SELECT COUNT(*) FROM (SELECT person, ward, COUNT(*) AS n FROM visits GROUP BY person, ward)", "have one row"),
        ("SELECT COUNT(*) FROM (SELECT person, MEDIAN(cost) AS m FROM visits GROUP BY person)", "must be COUNT, SUM"),
        ("SELECT COUNT(*) FROM (SELECT person, SUM(ward) AS m FROM visits GROUP BY person)", "m must be of numbers"),
        ("SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person); SELECT COUNT(*) FROM visits",
         "either rows, or one row a person"),
        ("SELECT COUNT(*) FROM (SELECT cost FROM visits LIMIT 5)", "would let one person's rows affect another's"),
        ("SELECT COUNT(*) FROM (SELECT cost FROM visits ORDER BY cost)", "at the end of the statement"),
        ("SELECT COUNT(*) FROM (SELECT person, COUNT() AS n FROM visits GROUP BY person)", "write COUNT(*)"),
        ("SELECT AVG(n) FROM (SELECT person, MAX() AS n FROM visits GROUP BY person)", "must be COUNT, SUM, AVG"),
        ("SELECT COUNT(*) FROM (SELECT cost + 1 FROM visits)", "a column that is computed needs a name"),
        ("SELECT COUNT(*) FROM (SELECT cost AS a, cost AS a FROM visits)", "two columns 'a'"),
        ("SELECT AVG(ward2) FROM (SELECT cost FROM visits)", "no column 'ward2'"),
        ("SELECT COUNT(*) FROM (SELECT cost FROM visits WHERE cost > 3 HAVING cost > 4)", "HAVING needs GROUP BY"),
        ("WITH RECURSIVE a AS (SELECT * FROM visits) SELECT COUNT(*) FROM a", "a query cannot call itself"),
        ("WITH a(x) AS (SELECT cost FROM visits) SELECT COUNT(*) FROM a", "columns are not renamed here"),
        ("SELECT COUNT(*) FROM (SELECT cost FROM visits UNION ALL SELECT ward FROM visits)", "the same columns"),
        ("SELECT COUNT(*) FROM (SELECT cost FROM visits UNION SELECT cost FROM visits)", "write UNION ALL"),
        ("SELECT COUNT(*) FROM visits JOIN visits USING (person)", "declare both tables and their key"),
    ],
)  # fmt: skip
def test_people_are_counted_and_never_named(studies: dict[str, ft.Study], text: str, words: str) -> None:
    with pytest.raises(InvalidSQL) as refusal:
        studies["visits"].sql(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT(*) FROM drugs d JOIN visits v ON d.visit_id = v.person_id", "write ON drugs.visit_id = visits"),
        ("SELECT COUNT(*) FROM drugs JOIN visits ON TRUE", "ON drugs.visit_id = visits.visit_id"),
        ("SELECT COUNT(*) FROM drugs JOIN visits ON drugs.visit_id < visits.visit_id", "the key that was declared"),
        ("SELECT COUNT(*) FROM drugs JOIN visits USING (person_id)", "the key that was declared"),
        ("SELECT COUNT(*) FROM drugs CROSS JOIN visits", "CROSS JOIN is not understood"),
        ("SELECT COUNT(*) FROM drugs FULL JOIN visits USING (visit_id)", "FULL JOIN is not understood"),
        ("SELECT COUNT(*) FROM visits RIGHT JOIN persons USING (person_id)", "RIGHT JOIN is not understood"),
        ("SELECT COUNT(*) FROM drugs NATURAL JOIN visits", "METHOD"),
        ("SELECT COUNT(*) FROM drugs, visits", "a join needs its key"),
        ("SELECT COUNT(*) FROM drugs JOIN nurses USING (visit_id)", "no key leads to 'nurses'; linked tables: persons"),
        ("SELECT COUNT(*) FROM (SELECT * FROM drugs) d JOIN visits USING (visit_id)", "come before anything else"),
        ("SELECT COUNT(*) FROM drugs JOIN (SELECT * FROM visits) v USING (visit_id)", "only tables are joined"),
        ("SELECT COUNT(*) FROM drugs JOIN visits ON drugs.visit_id = visits.visit_id AND ward = 'A'", "the key"),
    ],
)  # fmt: skip
def test_tables_are_joined_along_their_keys_only(studies: dict[str, ft.Study], text: str, words: str) -> None:
    with pytest.raises(InvalidSQL) as refusal:
        studies["hospital"].sql(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Only a CASE without another value leaves rows out, and only a constant is never missing.
        ("SELECT COUNT(CASE WHEN smoker THEN 1 ELSE 0 END) FROM people",
         ["count(where='not case when smoker then 1 else 0 end is null')"]),
        ("SELECT COUNT(CASE WHEN smoker THEN income END) FROM people",
         ["count(where='not case when smoker then income else null end is null')"]),
        ("SELECT SUM(CASE WHEN smoker THEN 2 ELSE 0 END) FROM people", ["sum('case when smoker then 2 else 0 end')"]),
        ("SELECT SUM(CASE WHEN smoker THEN 1 ELSE 1 END) FROM people", ["sum('case when smoker then 1 else 1 end')"]),
    ],
)  # fmt: skip
def test_a_case_counts_what_the_database_would_count(
    studies: dict[str, ft.Study], text: str, expected: list[str]
) -> None:
    assert list(map(repr, compiled(studies["people"], text).statistics)) == expected


def test_a_name_of_the_result_hides_no_column(studies: dict[str, ft.Study]) -> None:
    with pytest.raises(InvalidSQL, match="'age' is neither in GROUP BY nor in an aggregate"):
        studies["people"].sql("SELECT COUNT(*) AS age, age FROM people GROUP BY sex")
    text = "SELECT sex, SUM(income) AS income FROM people GROUP BY sex HAVING income > 3 ORDER BY income"
    assert list(map(repr, compiled(studies["people"], text).statistics)) == ["sum('income', by='sex')"]


def test_columns_of_one_row_a_person_are_told_apart(studies: dict[str, ft.Study]) -> None:
    inner = 'SELECT person, COUNT(*) AS "sum(cost)" FROM visits GROUP BY person HAVING SUM(cost) > 3'
    script = compiled(studies["visits"], f"SELECT COUNT(*) FROM ({inner})")
    assert list(map(repr, script.statistics)) == ["""count(where='"sum(cost) (hidden)" > 3')"""]
    with pytest.raises(InvalidSQL, match="two columns 'n'"):
        studies["visits"].sql(
            "SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n, SUM(cost) AS n FROM visits GROUP BY person)"
        )


def _doubled(times: int) -> str:
    names = ["people", *(f"t{number}" for number in range(times))]
    steps = [f"{new} AS (SELECT age FROM {old} UNION ALL SELECT age FROM {old})" for old, new in pairwise(names)]
    return f"WITH {', '.join(steps)} SELECT COUNT(*) FROM {names[-1]}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"SELECT COUNT(*) FROM people WHERE {'CASE ' * 40}age{' WHEN 1 THEN 2 WHEN 2 THEN 3 END' * 40} = 1",
         "too long"),
        (f"SELECT {' + '.join(['COUNT(*)'] * 700)} FROM people GROUP BY sex", "operations are nested too deep"),
        (f"SELECT COUNT(*) FROM people GROUP BY {', '.join(['CUBE (sex, smoker, region, children)'] * 9)}, "
         "CUBE (age // 50, age // 40, age // 30)", "more than 64 sets of groups"),
        (_doubled(30), "more than 64 tables in UNION ALL"),
    ],
    ids=["case", "sum", "cube", "union"],
)  # fmt: skip
def test_a_short_text_cannot_ask_for_endless_work(studies: dict[str, ft.Study], text: str, words: str) -> None:
    with pytest.raises(InvalidSQL) as refusal:
        compiled(studies["people"], text)
    assert words in str(refusal.value)


def test_columns_of_a_cube_count_once(studies: dict[str, ft.Study]) -> None:
    script = compiled(studies["people"], f"SELECT COUNT(*) FROM people GROUP BY CUBE ({', '.join(['sex'] * 60)})")
    assert list(map(repr, script.statistics)) == ["count(by='sex')", "count()"]

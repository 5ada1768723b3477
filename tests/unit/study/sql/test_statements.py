"""Hostile statements: refused by their text alone, or harmless. Nothing is charged, and nobody's row is looked at."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

import farthing as ft
from farthing.errors import FarthingError, InvalidSQL
from farthing.study.sql.statements import LONGEST_STATEMENT, read_script

# What must be refused. `people` has the columns sex and age; nothing else is there.
HOSTILE = """
DROP TABLE people
DELETE FROM people
UPDATE people SET age = 0
INSERT INTO people VALUES ('F', 3)
CREATE TABLE stolen AS SELECT * FROM people
CREATE VIEW v AS SELECT * FROM people
ALTER TABLE people ADD COLUMN x INT
TRUNCATE people
MERGE INTO people USING people ON TRUE WHEN MATCHED THEN DELETE
COPY people TO '/tmp/people.csv'
COPY (SELECT * FROM people) TO '/tmp/people.csv'
EXPORT DATABASE '/tmp/out'
IMPORT DATABASE '/tmp/in'
ATTACH '/tmp/other.db'
DETACH people
INSTALL httpfs
LOAD httpfs
PRAGMA table_info('people')
SET memory_limit = '1GB'
RESET ALL
CALL pragma_version()
DO $$ BEGIN RAISE NOTICE 'x'; END $$
GRANT ALL ON people TO PUBLIC
VACUUM
CHECKPOINT
BEGIN
COMMIT
PREPARE q AS SELECT COUNT(*) FROM people WHERE age = $1
SELECT WIDTH_BUCKET(age, 0, , 11), COUNT(*) FROM people GROUP BY sex
EXECUTE q(3)
DEALLOCATE q
DESCRIBE people
DESCRIBE SELECT * FROM people
SHOW TABLES
SUMMARIZE people
TABLE people
VALUES (1)
PIVOT people ON sex USING COUNT(*)
USE other
KILL 1
EXPLAIN ANALYZE SELECT COUNT(*) FROM people
EXPLAIN EXPLAIN SELECT COUNT(*) FROM people
EXPLAIN DROP TABLE people
SELECT COUNT(*) FROM people; DROP TABLE people
SELECT COUNT(*) FROM people; DELETE FROM people; SELECT 1
SELECT COUNT(*) FROM people; SELECT * FROM people
SELECT COUNT(*) FROM people WHERE age = 3 OR 1 = (SELECT COUNT(*) FROM people)
SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people WHERE sex = 'F')
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM people AS p WHERE p.age = 3)
SELECT COUNT(*) FROM people AS a WHERE age = (SELECT MAX(b.age) FROM people AS b WHERE b.sex = a.sex)
SELECT COUNT(*) FROM people WHERE age > ALL (SELECT age FROM people)
SELECT COUNT(*) FROM people WHERE age = ANY (SELECT age FROM people)
SELECT COUNT(*) FROM people HAVING (SELECT COUNT(*) FROM people) > 3
SELECT COUNT(*) FROM people ORDER BY (SELECT COUNT(*) FROM people)
SELECT COUNT(*) FROM people LIMIT (SELECT COUNT(*) FROM people)
SELECT (SELECT COUNT(*) FROM people) FROM people
SELECT COUNT(*), ARRAY(SELECT age FROM people) FROM people
SELECT ROW_NUMBER() OVER () FROM people
SELECT SUM(age) OVER (PARTITION BY sex) FROM people
SELECT LAG(age) OVER (ORDER BY age) FROM people
SELECT COUNT(*) OVER () FROM people
SELECT COUNT(*) FROM people QUALIFY ROW_NUMBER() OVER () = 1
SELECT COUNT(*) FROM people WINDOW w AS (ORDER BY age)
SELECT FIRST(age) FROM people
SELECT LAST(age ORDER BY age) FROM people
SELECT ARG_MAX(age, age) FROM people
SELECT LISTAGG(sex, ',') FROM people
SELECT GROUP_CONCAT(sex) FROM people
SELECT LIST(age) FROM people
SELECT HISTOGRAM(age) FROM people
SELECT ENTROPY(age) FROM people
SELECT MIN(age), MAX(age) FROM people
SELECT COUNT(*) FROM people WHERE ERROR('stop') IS NULL
SELECT COUNT(*) FROM people WHERE CASE WHEN age = 3 THEN ERROR('found') ELSE TRUE END
SELECT COUNT(*) FROM people WHERE 1 / (age - 3) > 0 AND PG_SLEEP(10) IS NULL
SELECT COUNT(*) FROM people WHERE SLEEP(5) = 0
SELECT COUNT(*) FROM people WHERE PG_READ_FILE('/etc/passwd') <> ''
SELECT COUNT(*) FROM people WHERE READ_TEXT('/etc/passwd') <> ''
SELECT COUNT(*) FROM READ_CSV('/etc/passwd')
SELECT COUNT(*) FROM READ_PARQUET('https://example.org/x.parquet')
SELECT COUNT(*) FROM '/etc/passwd'
SELECT COUNT(*) FROM "people.csv"
SELECT COUNT(*) FROM GLOB('/*')
SELECT COUNT(*) FROM QUERY('SELECT * FROM people')
SELECT COUNT(*) FROM GENERATE_SERIES(1, 1000000000)
SELECT COUNT(*) FROM RANGE(1000000000)
SELECT COUNT(*) FROM UNNEST([1, 2, 3])
SELECT UNNEST([age]) FROM people
SELECT COUNT(*) FROM information_schema.tables
SELECT COUNT(*) FROM pg_catalog.pg_stats
SELECT COUNT(*) FROM pg_stats
SELECT COUNT(*) FROM duckdb_columns()
SELECT COUNT(*) FROM sqlite_master
SELECT COUNT(*) FROM main.people
SELECT COUNT(*) FROM other.main.people
SELECT COUNT(*) FROM people, people AS again
SELECT COUNT(*) FROM people AS a JOIN people AS b ON a.age = b.age
SELECT COUNT(*) FROM people CROSS JOIN people AS b
SELECT COUNT(*) FROM people, LATERAL (SELECT 1)
SELECT COUNT(*) FROM people TABLESAMPLE 1 ROWS
SELECT COUNT(*) FROM people USING SAMPLE 1
SELECT COUNT(*) FROM people FOR UPDATE
SELECT COUNT(*) INTO stolen FROM people
SELECT COUNT(*) FROM (VALUES (1), (2)) AS t
SELECT COUNT(*) FROM (SELECT age FROM people LIMIT 1)
SELECT COUNT(*) FROM (SELECT age FROM people ORDER BY age)
SELECT COUNT(*) FROM (SELECT DISTINCT age FROM people)
SELECT COUNT(*) FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age) WHERE n = 1
SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM people)
WITH RECURSIVE r AS (SELECT age FROM people UNION ALL SELECT age + 1 FROM r) SELECT COUNT(*) FROM r
WITH p AS (DELETE FROM people RETURNING *) SELECT COUNT(*) FROM p
WITH people AS (SELECT * FROM people) SELECT MAX(age) FROM people
SELECT COUNT(*) FROM people INTERSECT SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people WHERE age = $1
SELECT COUNT(*) FROM people WHERE age = ?
SELECT COUNT(*) FROM people WHERE age = :age
SELECT COUNT(*) FROM people WHERE age = @age
SELECT COUNT(*) FROM people WHERE sex = {{ sex }}
SELECT COUNT(*) FROM people WHERE sex ~ '(a+)+$'
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(sex, '(a+)+$')
SELECT COUNT(*) FROM people WHERE sex SIMILAR TO 'F'
SELECT COUNT(*) FROM people WHERE sex GLOB 'F'
SELECT COUNT(*) FROM people WHERE CAST(sex AS INTEGER) = 1
SELECT COUNT(*) FROM people WHERE sex::INT = 1
SELECT COUNT(*) FROM people WHERE TRY_CAST(sex AS INTEGER) IS NULL
SELECT COUNT(*) FROM people WHERE age::VARCHAR = '3'
SELECT COUNT(*) FROM people WHERE age::BLOB = '3'
SELECT COUNT(*) FROM people WHERE RANDOM() < 0.5
SELECT COUNT(*) FROM people WHERE NOW() > '2020-01-01'
SELECT COUNT(*) FROM people WHERE CURRENT_DATE > DATE '2020-01-01'
SELECT COUNT(*) FROM people WHERE CURRENT_USER = 'x'
SELECT COUNT(*) FROM people WHERE GETENV('HOME') = 'x'
SELECT COUNT(*) FROM people WHERE CURRENT_SETTING('x') = 'x'
SELECT COUNT(*) FROM people WHERE NEXTVAL('s') = 1
SELECT COUNT(*) FROM people WHERE rowid = 1
SELECT COUNT(*) FROM people WHERE ctid = '(0,1)'
SELECT COUNT(*) FROM people WHERE COLUMNS(*) > 3
SELECT COUNT(COLUMNS(*)) FROM people
SELECT * EXCLUDE (sex) FROM people
SELECT * REPLACE (1 AS age) FROM people
SELECT #1 FROM people
SELECT COUNT(*) FROM people WHERE age > 99999999999999999999999999999999999999999999999
SELECT COUNT(*) FROM people WHERE age > 1e400
SELECT COUNT(*) FROM people WHERE POWER(age, 1000) > 1
SELECT AVG(EXP(age * 100)) FROM people
SELECT COUNT(*) FROM people WHERE [1, 2][1] = 1
SELECT COUNT(*) FROM people WHERE {'a': 1}.a = 1
SELECT COUNT(*) FROM people WHERE LIST_TRANSFORM([1], x -> x) = [1]
SELECT COUNT(*) FROM people WHERE age & 1 = 1
SELECT COUNT(*) FROM people WHERE (age, sex) = (3, 'F')
SELECT COUNT(*) FROM people WHERE age IS DISTINCT FROM 3
SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 5 AND 3
SELECT COUNT(*) FROM people WHERE sex COLLATE NOCASE = 'f'
SELECT COUNT(*) FROM people WHERE sex = 'F' COLLATE "C"
SELECT COUNT(*) FROM people WHERE INTERVAL 1 DAY > INTERVAL 1 HOUR
SELECT sex, COUNT(*) FROM people GROUP BY sex, ROLLUP (age), CUBE (age, sex), CUBE (age, sex, age + 1), CUBE (age + 2)
"""


def statements() -> list[str]:
    return HOSTILE.strip().splitlines()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ft.Study]:
    """A study whose account exists, so that a charge would be seen in its ledger."""
    table = pyarrow.table({"sex": ["F", "M"] * 50, "age": [30, 41] * 50})
    people = ft.dataset(table, schema={"sex": ["F", "M"], "age": (0, 110)}, name="people")
    study = ft.Study(people, epsilon=1.0, ledger=tmp_path_factory.mktemp("sql") / "study.db")
    study.register()
    yield study
    study.close()


def test_there_are_more_than_a_hundred() -> None:
    assert len(set(statements())) >= 150


@pytest.mark.parametrize("text", statements(), ids=lambda text: text[:80])
def test_it_is_refused_by_its_text_and_nothing_is_charged(
    study: ft.Study, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ft.data.Dataset, "exact", _nobody_reads)
    before = len(list(study.ledger.entries()))
    with caplog.at_level(logging.DEBUG), pytest.raises(InvalidSQL) as refusal:
        study.sql(text)
    assert not caplog.records  # the parser keeps quiet, too
    assert len(list(study.ledger.entries())) == before
    assert len(str(refusal.value)) < 700


def _nobody_reads(*_: object, **__: object) -> None:
    raise AssertionError("a row was read")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people WHERE " + "NOT " * 3_000 + "age > 3",
        "SELECT COUNT(*) FROM people WHERE " + " AND ".join(["age > 3"] * 900),
        "SELECT COUNT(*) FROM people WHERE age > " + "-" * 900 + "3",
        "SELECT COUNT(*) FROM people WHERE age > " + "- " * 900 + "3",
        "SELECT COUNT(*) FROM people WHERE " + "(" * 500 + "age > 3" + ")" * 500,
        "SELECT COUNT(*) FROM people WHERE age > " + "+".join(["age"] * 1_900),
        "SELECT COUNT(*) FROM people WHERE " + "CASE WHEN age > 3 THEN " * 300 + "1" + " END" * 300 + " > 0",
        "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 200 + "people" + ")" * 200,
        "SELECT COUNT(*) FROM people " + "UNION ALL SELECT COUNT(*) FROM people " * 600,
        "WITH " + ", ".join(f"a{n} AS (SELECT * FROM people)" for n in range(600)) + " SELECT COUNT(*) FROM a1",
        "SELECT COUNT(*) FROM people WHERE age > 3 " + " " * LONGEST_STATEMENT,
        "SELECT " + ", ".join(["COUNT(*)"] * 3_000) + " FROM people",
        "SELECT COUNT(*) FROM people WHERE age IN (" + ", ".join(map(str, range(3_900))) + ")",
        "SELECT COUNT(*) FROM people WHERE sex = '" + "F" * 19_000 + "'",
        "SELECT COUNT(*) FROM people WHERE age > 3 \0",
        "SELECT COUNT(*) FROM people WHERE age > 3 \ud800",
        "SELECT COUNT(*) FROM people WHERE age \u2265 3",
        "SELECT COUNT(*) FROM people WHERE age\u00a0> 3",
        "SELECT COUNT(*) FROM people WHERE \u202eage > 3",
        "SELECT COUNT(*) FROM people /* never closed",
        "/*+ hint */ SELECT MAX(age) FROM people",
    ],
    ids=range(21),
)
def test_long_and_strange_texts_end_in_an_answer_or_a_refusal(study: ft.Study, text: str) -> None:
    """Never in another error: a stack that runs over, a parser's own, or minutes of work."""
    before = len(list(study.ledger.entries()))
    try:
        study.sql(text)
    except FarthingError as refusal:
        assert len(str(refusal)) < 1_000
    assert len(list(study.ledger.entries())) == before


def test_comments_hide_nothing(study: ft.Study) -> None:
    """What stands in a comment is not part of the plan, which shows what will run."""
    plan = study.sql("SELECT COUNT(*) /*! , MAX(age) */ FROM people -- WHERE age > 3")
    assert plan.asked == (ft.count(),)


def test_a_quote_in_a_text_does_not_end_it(study: ft.Study) -> None:
    with pytest.raises(InvalidSQL, match="is not among the categories"):
        study.sql("SELECT COUNT(*) FROM people WHERE sex = 'F'' OR 1=1 --'")


def test_explain_is_read_in_any_case_and_on_any_line() -> None:
    for word in ("EXPLAIN ", "explain\n", "  Explain\t"):
        script = read_script(f"{word}SELECT COUNT(*) FROM people")
        assert script.explain and len(script.statements) == 1


def test_a_place_is_counted_by_line_and_column(study: ft.Study, tmp_path: Path) -> None:
    with pytest.raises(InvalidSQL) as refusal:
        study.sql("EXPLAIN\nSELECT COUNT(*)\n  FROM people\n  WHERE aeg > 3\n")
    assert (refusal.value.line, refusal.value.place) == (4, 9)
    assert str(refusal.value).splitlines()[1:] == ["      WHERE aeg > 3", "            ^"]

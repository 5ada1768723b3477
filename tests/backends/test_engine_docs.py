"""The pages about engines do what they say: their SQL and Python run on the real servers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from backends import spark_cluster
from backends.engine_under_test import SparkUnderTest, address

DOCS = Path(__file__).parents[2] / "docs" / "engines"
PEOPLE = pa.table({"person": [1, 1, 2], "sex": ["F", "F", "M"], "age": [30, 31, 45]})


def _blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return [block for block in found if ">>>" not in block]


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_the_grants_on_the_page_are_enough(
    postgres_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A database of its own, as a steward has it, and the page from the first line to the last."""
    (grants,), (program,) = _blocks("postgres.md", "sql"), _blocks("postgres.md", "python")
    database, role = "registry_of_the_page", "reader_of_the_page"
    with psycopg.connect(**address(postgres_server, "postgres"), autocommit=True) as steward:
        steward.execute(f"DROP DATABASE IF EXISTS {database}")
        steward.execute(f"DROP ROLE IF EXISTS {role}")
        steward.execute(f"CREATE DATABASE {database}")
    inside = {**address(postgres_server, "postgres"), "dbname": database}
    with psycopg.connect(**inside, autocommit=True) as steward:
        steward.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
        steward.execute("CREATE TABLE people AS SELECT 1::bigint AS person, 'F'::text AS sex, 30 AS age")
        for statement in grants.replace("registry", database).replace("reader", role).split(";")[:-1]:
            steward.execute(statement)
    monkeypatch.setenv("PGPASSWORD", "choose one")
    written = "postgresql://reader@127.0.0.1:5432/registry"
    assert written in program
    names: dict[str, Any] = {}
    exec(program.replace(written, f"postgresql://{role}@127.0.0.1:{postgres_server['port']}/{database}"), names)
    assert "GROUP BY" in capsys.readouterr().out
    counts = names["people"].exact({"rows": names["ft"].data.Count(by="sex")})
    assert counts["rows"].tolist() == [1, 0]
    names.clear()


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_both_programs_for_spark_run(
    spark_engine: SparkUnderTest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = spark_engine.engine.backend._session
    view = spark_engine.load(PEOPLE).get_name()
    session.sql("DROP TABLE IF EXISTS people").collect()
    session.sql(f"CREATE TABLE people USING parquet AS SELECT * FROM {view}").collect()
    names: dict[str, Any] = {}
    for program in _blocks("spark.md", "python"):
        assert "sc://127.0.0.1:15002" in program
        file = Path(spark_engine.facts["directory"]) / "tables" / f"{view}.parquet"
        here = program.replace("sc://127.0.0.1:15002", spark_engine.facts["url"])
        exec(here.replace("/data/people.parquet", str(file)), names)
    assert "GROUP BY" in capsys.readouterr().out
    ft = names["ft"]
    visitors = ft.dataset(names["visitors"], unit="person", max_rows=3, schema={"sex": ["F", "M"]})
    for dataset in (names["people"], visitors):
        assert dataset.exact({"rows": ft.data.Count(by="sex")})["rows"].tolist() == [2, 1]
    session.sql("DROP TABLE people").collect()


def test_the_page_starts_spark_with_the_words_that_start_it_in_the_tests() -> None:
    harness = Path(spark_cluster.__file__).read_text(encoding="utf-8")
    (commands,) = [block for block in _blocks("spark.md", "bash") if "spark-class" in block]
    words = set(re.findall(r"(?:org\.apache\.[\w.]+|--[a-z-]+|bin/[\w-]+|spark\.[\w.]+(?==)|spark-internal)", commands))
    assert len(words) >= 12
    assert [word for word in sorted(words) if word not in harness] == []

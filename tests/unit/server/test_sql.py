"""SQL over HTTP: a statement becomes the statistics of a draft, and nothing is spent or shown beside them."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

SQL = "/api/v1/sql"
STATEMENT = "SELECT sex, COUNT(*) AS n FROM people WHERE age >= 18 GROUP BY sex"


def asked(client: TestClient, sql: str, **words: Any) -> Any:
    return client.post(SQL, json={"dataset": "people", "sql": sql, **words})


@pytest.mark.slow
def test_a_statement_becomes_a_draft_that_is_priced_like_any_other(curator: TestClient) -> None:
    view = asked(curator, STATEMENT).json()
    assert view == {
        "statistics": [{"kind": "count", "where": "age >= 18", "by": "sex"}],
        "explain": False,
        "tables": None,
    }
    draft = {"dataset": "people", "statistics": view["statistics"], "epsilon": 0.1}
    assert curator.post("/api/v1/plans/price", json=draft).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DROP TABLE people", "this is a statement, not a question"),
        ("SELECT age FROM people", "rows never leave the table"),
        ("SELECT MAX(age) FROM people", "the greatest value is one person's"),
        ("SELECT COUNT(*) FROM other", "did you mean"),
        ("SELECT age // 10 AS decade, COUNT(*) FROM people GROUP BY decade", "declare bands and ratios as steps"),
    ],
)
def test_a_refusal_shows_its_place(curator: TestClient, sql: str, words: str) -> None:
    answer = asked(curator, sql)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_expression"
    error = answer.json()["error"]
    assert error["message"].startswith("SQL, line 1, column ")
    assert isinstance(error["fields"]["position"], int) and error["fields"]["text"] == sql
    if words != "did you mean":
        assert words in error["message"]


@pytest.mark.slow
def test_rows_of_a_release_that_is_not_there_are_refused(curator: TestClient) -> None:
    answer = asked(curator, STATEMENT, request_id="nobody:nothing")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.slow
def test_a_dataset_that_is_not_there_is_refused(curator: TestClient) -> None:
    answer = curator.post(SQL, json={"dataset": "nothing", "sql": STATEMENT})
    assert answer.json()["error"]["code"] == "not_found"

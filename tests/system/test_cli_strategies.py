"""`farthing strategies`: the table of what would be best, for people and for programs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from farthing.cli import main


def _run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["strategies", *words])
    return result.exit_code, result.output


def test_the_least_error_wins_and_every_row_says_why() -> None:
    code, text = _run("all-ranges", "256", "--epsilon", "0.1", "--quick", "--json")
    found = json.loads(text)
    rows = found["candidates"]
    assert code == 0 and found["queries"] == 256 * 257 // 2
    assert [row["chosen"] for row in rows] == [True, *[False] * (len(rows) - 1)]
    errors = [row["rmse"] for row in rows]
    assert errors == sorted(errors) and all(row["why"] and row["seconds"] >= 0 for row in rows)
    assert {row["strategy"] for row in rows} >= {"identity", "tree", "wavelet", "hierarchical"}
    identity = next(row["rmse"] for row in rows if row["strategy"] == "identity")
    assert identity == pytest.approx(10 * (2 * 258 / 3) ** 0.5, rel=1e-3)  # a range has (n + 2) / 3 cells on average


@pytest.mark.slow
def test_what_is_optimised_is_in_the_table_unless_there_is_no_time() -> None:
    code, text = _run("prefix", "24")
    assert code == 0 and "* optimised" in " ".join(text.split())
    assert "optimised" not in _run("prefix", "24", "--quick")[1]


def test_what_does_not_suit_many_columns_is_refused_in_words_at_once() -> None:
    code, text = _run("marginals", "x".join(["16"] * 12), "--json")
    rows = {row["strategy"]: row for row in json.loads(text)["candidates"]}
    assert code == 0 and rows["marginals"]["chosen"]
    assert rows["identity"]["why"] == "has too many cells to measure each (at most 2^40)"
    assert rows["optimised"]["why"] == "not looked for: marginals have a strategy of their own"
    assert rows["optimised"]["rmse"] is None


def test_only_workloads_that_auto_looks_at_are_told_of_the_look() -> None:
    assert 'strategy="auto") spends a few percent of epsilon' in _run("prefix", "256", "--quick")[1]
    assert "auto" not in _run("identity", "256", "--quick")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("haar", "8"), "workload='haar': must be one of prefix, all-ranges, identity, total, marginals"),
        (("prefix", "0"), "n='0': must be cells, from 1 to 1,048,576"),
        (("prefix", "eight"), "n='eight': must be a whole number"),
        (("prefix", "4096x4096"), "must be at most 4,194,304 cells together"),
        (("prefix", "8", "--way", "2"), "way='2': is for marginals only"),
        (("prefix", "8", "--epsilon", "0"), "must be > 0 and at most 50"),
        (("prefix", "8", "--epsilon", "nan"), "epsilon='nan': must be a plain number"),
        (("prefix", "8", "--delta", "1"), "delta=1.0: must be >= 0 and < 1"),
        (("marginals", "2x2", "--way", "7"), "way=7: must be a whole number from 1 to 2"),
        (("marginals", "2x2", "--way", "0"), "way=0: must be a whole number from 1 to 2"),
    ],
)
def test_a_mistake_is_refused_with_what_to_do(words: tuple[str, ...], message: str) -> None:
    code, text = _run(*words)
    assert code == 2 and message in text

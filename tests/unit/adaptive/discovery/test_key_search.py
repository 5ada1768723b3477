"""The search for values that nobody listed: what it finds, what it refuses before anything is paid, what it writes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.adaptive.discovery import finding_of
from farthing.adaptive.discovery.key_search import KeySearch, key_search
from farthing.curator.questions import answers_of, finished_of, text_of
from farthing.errors import InvalidValue
from farthing.mechanisms import KeySelection, WeightedKeySelection

FOLDED = ft.unknown("text", trim=True, lower=True)


def visits(cells: list[Any], kind: Any = FOLDED, **options: Any) -> Any:
    """One row a person, in the order of the cells."""
    table = pa.table({"who": list(range(len(cells))), "diagnosis": cells})
    return ft.dataset(table, **{"unit": "who", "max_rows": 1, "schema": {"diagnosis": kind}, **options})


def found(search: KeySearch, table: Any) -> Any:
    """What a ledger would hold, read back from its text."""
    search.check(table)
    answers = search.run(table, lambda share: None)
    text = text_of(answers, search.finish(answers))
    assert search.finish(answers_of(text)) == finished_of(text)
    json.dumps(finished_of(text))
    return finding_of(finished_of(text)["finding"])


def test_values_that_many_share_are_found_and_folded_and_others_are_not() -> None:
    """At epsilon 20, 50 people are 50 times as many as needed, and one person is seen with probability 1e-12."""
    cells = [" Flu", "FLU", "flu "] * 40 + ["Cold"] * 60 + ["a rarity", None, "x" * 200]
    finding = found(key_search(visits(cells), "diagnosis", 20.0, 1e-12), visits(cells))
    assert finding.is_usable
    assert finding.domain == ft.data.Categories(["cold", "flu"])
    assert finding.domain.trim and finding.domain.lowered
    assert str(finding).startswith("diagnosis: 2 values found (cold, flu)")


def test_what_was_found_says_that_only_some_values_of_each_unit_count() -> None:
    """A unit with many values keeps few of them, so a value of many units may be kept by too few to be found."""
    cells = ["flu", "cold"] * 60
    table = visits(cells, max_rows=9)
    finding = found(key_search(table, "diagnosis", 20.0, 1e-12), table)
    assert finding.facts["max_keys"] == 4
    kept, needed = "have {}among the 4 values kept of each, chosen at random", finding.facts["needed"]
    assert f"a value that {needed} or more units (who) {kept.format('')}, is found 95 times in 100" in finding.note
    assert f"as a rule fewer than {needed} units (who) {kept.format('them ')}" in str(finding)
    rare = visits([f"note {number}" for number in range(500)], max_rows=9)
    nothing = found(key_search(rare, "diagnosis", 20.0, 1e-12), rare)
    assert str(nothing).endswith(f"as a rule fewer than {needed} units (who) {kept.format('the same one ')}")


def test_codes_are_found_as_whole_numbers() -> None:
    table = visits([7] * 60 + [-3] * 60 + [5], ft.unknown("text"))
    finding = found(key_search(table, "diagnosis", 20.0, 1e-12), table)
    assert finding.domain == ft.data.Categories([-3, 7])


def test_free_text_finds_nothing_and_says_so_before_and_after() -> None:
    table = visits([f"note {number}" for number in range(5_000)])
    search = key_search(table, "diagnosis", 1.0, 1e-12)
    assert "in free text, where hardly any two cells are the same, nothing is found" in search.prediction
    finding = found(search, table)
    assert not finding.is_usable and finding.domain is None
    assert "no value found" in str(finding)


def test_the_order_of_the_rows_does_not_show() -> None:
    cells = ["b"] * 60 + ["a"] * 60 + ["c"] * 60
    orders = [found(key_search(visits(rows), "diagnosis", 20.0, 1e-12), visits(rows)) for rows in (cells, cells[::-1])]
    assert orders[0].facts["values"] == orders[1].facts["values"] == ["a", "b", "c"]


def test_the_cap_follows_the_rows_of_a_unit_and_the_rule_follows_the_cap() -> None:
    table = pa.table({"who": [1], "diagnosis": ["flu"]})
    made = {
        rows: key_search(
            ft.dataset(table, unit="who", max_rows=rows, schema={"diagnosis": FOLDED}), "diagnosis", 1.0, 1e-6
        )
        for rows in (1, 3, 50)
    }
    assert [search.max_keys for search in made.values()] == [1, 3, 4]
    assert [type(search.selection) for search in made.values()] == [KeySelection, KeySelection, WeightedKeySelection]
    assert "(31 are enough if they have no other value)" in made[50].prediction


def test_replacing_a_unit_is_priced_for_twice_as_many_values() -> None:
    table = visits(["flu"], neighbours="replace")
    search = key_search(table, "diagnosis", 1.0, 1e-6, max_keys=3)
    assert search.needed == KeySelection(1.0, 1e-6, 6).needed(0.95)
    assert len(search._weights) == 3
    with pytest.raises(InvalidValue, match="must be those that the search was made for"):
        search.check(visits(["flu"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "must be > 0 to find the values of 'diagnosis'"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"max_keys": 0}, "must be from 1 to 1,000"),
        ({"max_keys": 5_000}, "must be from 1 to 1,000"),
        ({"name": "who"}, "must be declared as unknown text"),
    ],
)
def test_bad_searches_are_refused_before_anything_is_paid(change: dict[str, Any], message: str) -> None:
    asked = {"name": "diagnosis", "epsilon": 1.0, "delta": 1e-6, **change}
    with pytest.raises(InvalidValue, match=message):
        key_search(visits(["flu"]), **asked)


def test_bad_tables_are_refused_before_anything_is_paid() -> None:
    search = key_search(visits(["flu"]), "diagnosis", 1.0, 1e-6)
    for table in (visits(["flu"]).sample(0.5), visits(["flu"]).group_privacy(2)):
        with pytest.raises(InvalidValue, match="must be discovered in the table itself"):
            search.check(table)
    few = visits(["flu"] * 5, rows=5)
    with pytest.raises(InvalidValue, match="a search needs 16 units \\(who\\) alike, and the table has 5 rows"):
        key_search(few, "diagnosis", 1.0, 1e-6).check(few)
    rows = ft.dataset(pa.table({"diagnosis": ["flu"]}), schema={"diagnosis": FOLDED})
    with pytest.raises(InvalidValue, match="must be 1 where the unit is one row"):
        key_search(rows, "diagnosis", 1.0, 1e-6, max_keys=2).check(rows)


def test_values_that_no_list_of_categories_can_hold_are_left_out() -> None:
    search = key_search(visits(["flu"]), "diagnosis", 1.0, 1e-6)
    texts = [
        "cafe\u0301",
        "caf\u00e9",
        "nul\0",
        "\u13a0",
        "flu",
    ]  # two spellings, NUL, a capital Cherokee letter
    parts = [text.encode() for text in texts]
    answers = {
        "bytes of the values": np.frombuffer(b"".join(parts), dtype=np.uint8).astype(np.int64),
        "lengths of the values": np.array([len(part) for part in parts]),
    }
    finding = finding_of(search.finish(answers)["finding"])
    assert finding.facts["values"] == ["cafe\u0301", "flu"]
    assert "3 more cannot be used" in str(finding)


def test_what_names_a_search_is_everything_that_is_public_about_it() -> None:
    table = visits(["flu"])
    usual = key_search(table, "diagnosis", 1.0, 1e-6)
    others = [
        key_search(table, "diagnosis", 1.1, 1e-6),
        key_search(table, "diagnosis", 1.0, 1e-7),
        key_search(table, "diagnosis", 1.0, 1e-6, max_keys=2),
        key_search(visits(["flu"], ft.unknown("text")), "diagnosis", 1.0, 1e-6),
    ]
    assert len({search.digest for search in (usual, *others)}) == 5

"""Keys that nobody listed, and keys that link tables, from columns as hostile as each engine allows.

No cell stops a query, and cells are the same key if their bytes are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from backends.engine_under_test import EngineUnderTest
from backends.hostile_columns import PLAIN, TEXT, hostile
from farthing.data import Count, dataset, linked
from farthing.data import table as linked_table
from farthing.data.key_counts import each_key
from farthing.errors import InvalidValue

# Each unit has one row, so that nothing is left to chance.
pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]

LONG = "repeat('flu', 1000000)"
COMMON: dict[str, str | None] = {
    "'flu'": "flu", "'FLU'": "FLU", "'flu  '": "flu  ", "' flu'": " flu", "'flü'": "flü", "''": "", "NULL": None,
}  # fmt: skip
ODD: dict[str, dict[str, str | None]] = {  # for columns without a length
    "duckdb": {LONG: None, "chr(0) || 'flu'": "\0flu", "'fl' || chr(0)": "fl\0"},
    "postgres": {LONG: None, "U&'fl\\FEFFu'": "fl\ufeffu"},
    "spark": {LONG: None, "concat('fl', char(0))": "fl\0", "cast(unhex('FF') as string)": None,
              "cast(unhex('666CEDA080') as string)": None},
}  # fmt: skip


@pytest.mark.parametrize("fold", [False, True], ids=["as it is", "trimmed and folded"])
def test_keys_of_hostile_text_are_their_bytes(engine: EngineUnderTest, fold: bool) -> None:
    """A text with bytes that are no text ended a search on Spark after its charge, and one of an Arrow table DuckDB."""
    for kind, padded in TEXT[engine.name].items():
        cells = {**COMMON, **({} if "(" in kind else ODD[engine.name])}
        rows = [[str(number), cell] for number, cell in enumerate([*cells, *cells])]
        people = dataset(
            hostile(engine, {"who": "bigint", "x": kind}, rows), unit="who", max_rows=1, schema={"x": ["flu"]}
        )
        found: dict[str, int] = {}
        take = found.update
        each_key(
            people, "x", (1,), lambda keys, sums, take=take: take(zip(keys, sums.tolist(), strict=True)),
            trim=fold, lower=fold,
        )  # fmt: skip
        read = [text.rstrip(" ") if padded else text for text in cells.values() if text is not None]
        read = [text.strip(" \t\n\r\v\f").lower() if fold else text for text in read]
        assert found == {text: 2 * number for text, number in Counter(read).items()}, kind


def test_keys_that_lead_nowhere_twice_or_to_two_people_stop_nothing(engine: EngineUnderTest) -> None:
    """A unit missing in one table, a child without a parent, NULL, a parent twice, parents of two people, long text."""
    kind = [*TEXT[engine.name]][1]
    spelled = {"a": "'ann'", "A": "'ANN'", "long": LONG, "no": "'nobody'", "null": "NULL"}
    if kind.endswith(")"):
        del spelled["long"]
    persons = [[spelled["a"], "'F'"], [spelled["a"], "'F'"], [spelled["A"], "'M'"], ["NULL", "'F'"]]
    visits = [["7", spelled[who]] for who in ("a", "A")]  # both of them have visit 7
    visits += [[str(10 + place), who] for place, who in enumerate(spelled.values())]
    visits += [["10", spelled["a"]], ["NULL", spelled["A"]]]
    drugs = [[visit, "'x'"] for visit in ("7", "10", "11", "12", "13", "14", "99", "NULL")]
    tables = {
        "persons": hostile(engine, {"who": kind, "sex": PLAIN[engine.name]}, persons),
        "visits": hostile(engine, {"visit": "bigint", "who": PLAIN[engine.name]}, visits),
        "drugs": hostile(engine, {"visit": "bigint", "drug": PLAIN[engine.name]}, drugs),
    }
    schemas: dict[str, Any] = {
        "persons": {"sex": ["F", "M"]},
        "visits": {"visit": (0, 99)},
        "drugs": {"drug": ["x", "y"]},
    }
    made = linked(
        **{name: linked_table(source, schema=schemas[name]) for name, source in tables.items()},
        unit="persons.who",
        keys={"visits.who": "persons.who", "drugs.visit": "visits.visit"},
        max_rows={"persons": 2, "visits": 9, "drugs": 9},
    )
    counts = {name: int(made[name].exact({"n": Count()})["n"]) for name in made}
    owned = {"10": "ann", "11": "ANN"} | ({"12": "long"} if "long" in spelled else {})
    owned |= {str(10 + [*spelled].index("no")): "nobody"}
    assert counts == {"persons": 3, "visits": len(visits) - 1, "drugs": len(owned)}
    drugs_by_sex = made["drugs"].join("visits").join("persons")
    assert drugs_by_sex.exact({"n": Count(by="sex")})["n"].tolist() == [1, 1]  # nobody and the long one are no persons


def test_keys_of_types_that_an_engine_would_cast_are_refused(engine: EngineUnderTest) -> None:
    """By their types alone, before any row is read."""
    text = PLAIN[engine.name]
    persons = hostile(engine, {"who": "bigint", "sex": text}, [])
    for kind, rule in {
        "date": "must be columns of one type", "boolean": "must be columns of one type",
        "decimal(9, 2)": "must be a column of whole numbers, text",
        "double" if engine.name != "postgres" else "double precision": "must be a column of whole numbers, text",
    }.items():  # fmt: skip
        visits = hostile(engine, {"visit": "bigint", "who": kind}, [])
        with pytest.raises(InvalidValue, match=rule):
            linked(
                persons=linked_table(persons, schema={"sex": ["F", "M"]}),
                visits=linked_table(visits, schema={"visit": (0, 9)}),
                unit="persons.who", keys={"visits.who": "persons.who"}, max_rows={"visits": 1},
            )  # fmt: skip

"""CSV and Parquet agree about flags, dates, decimal commas and categories that are written carelessly."""

from __future__ import annotations

import csv
import datetime
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.data import Categories, CellCounts, Count, Dates, Flags, Reals, Sum
from farthing.data.declaration_file import domain_of_entry, read_declaration
from farthing.errors import InvalidValue
from farthing.study.documents.study_document import _column, _literal, in_toml

DAYS = (datetime.date(2000, 1, 1), datetime.date(2025, 12, 31))
FLAGS = ["1", "0", "true", "False", " yes", "N", "1.0", "0.0", "T", "f", "2", "maybe", "", "on"]
DATES = [
    "2020-02-29", "2019-02-29", "2020-12-31T23:59:59Z", " 2021-01-01 ", "2021-13-01", "2021-00-10", "2021-04-31",
    "1900-01-01", "9999-12-31", "2022/03/04", "2022-3-4", "20220304", "yesterday", "0000-01-01", "2024-12-31x", "",
]  # fmt: skip
AMOUNTS = [
    "1,5",
    "2",
    " 3,25 ",
    "1.234",
    "1.234,5",
    "-4,75",
    "1e1",
    "1_0",  # ten for DuckDB alone
    "1,2,3",
    "NaN",
    "inf",
    "",
    "x",
    "9" * 200,
]
REGIONS = [
    "north", " North ", "SOUTH\t", "south", "östlich", "ÖSTLICH", "O\u0308STLICH", "nor th", "", "west", " " * 5000,
]  # fmt: skip
SCHEMA = {
    "flag": bool,
    "day": DAYS,
    "amount": Reals(0.0, 100.0, decimal=","),
    "region": Categories(["north", "south", "östlich"], trim=True, lower=True),
}
WANTED = {
    "flags": CellCounts("flag"),
    "days": CellCounts("year"),
    "said": Count("day"),
    "amounts": Sum("amount", grid=0.25),
    "numbers": Count("amount"),
    "regions": CellCounts("region"),
}


def table() -> dict[str, list[str]]:
    columns = {"flag": FLAGS, "day": DATES, "amount": AMOUNTS, "region": REGIONS}
    longest = max(map(len, columns.values()))
    return {name: cells + [""] * (longest - len(cells)) for name, cells in columns.items()}


def found(source: Any) -> dict[str, Any]:
    people = ft.dataset(source, schema=SCHEMA)
    edges = [DAYS[0], datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2022, 1, 1)]
    people = people.bin(day=edges)
    wanted = {**WANTED, "days": CellCounts("day")}
    return {name: value.tolist() for name, value in people.exact(wanted).items()}


EXPECTED = {
    "flags": [5, 5],  # false: 0, False, N, 0.0, f; true: 1, true, yes, 1.0, T
    "days": [1, 2, 1, 2],  # 1900 and 9999 are clipped, 2022/03/04 is a date
    "said": 6,
    "amounts": 6 + 8 + 13 + 0 + 40 + 400,  # in quarters; infinity is clipped, 200 digits are no number
    "numbers": 6,
    "regions": [2, 2, 2],  # the third Ö is an O with dots of its own, another letter
}


@pytest.mark.slow
def test_text_is_read_the_same_from_csv_parquet_and_frames(tmp_path: Path) -> None:
    columns = table()
    with (tmp_path / "people.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "people.parquet")
    assert found(tmp_path / "people.csv") == EXPECTED
    assert found(tmp_path / "people.parquet") == EXPECTED
    assert found(pandas.DataFrame(columns)) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int64", "int8", "uint64", "float64", "decimal128(5, 1)", "bool"])
def test_zero_and_one_are_flags_in_every_type(tmp_path: Path, kind: str) -> None:
    wide = pyarrow.decimal128(5, 1) if kind.startswith("decimal") else kind.replace("bool", "bool_")
    cells: list[Any] = [1, 0, 0, None] if kind != "bool" else [True, False, False, None]
    odd = [] if kind == "bool" else [2, 7]
    column = pyarrow.array([*cells, *odd], type=wide if not isinstance(wide, str) else getattr(pyarrow, wide)())
    pyarrow.parquet.write_table(pyarrow.table({"flag": column}), tmp_path / "people.parquet")
    text = "\n".join("" if cell is None else str(cell) for cell in column.to_pylist())
    (tmp_path / "people.csv").write_text(f"flag,x\n{text}\n".replace("\n", ",\n").replace("flag,x,", "flag,x"))
    for file in ("people.parquet", "people.csv"):
        for domain in (bool, [False, True]):
            people = ft.dataset(tmp_path / file, schema={"flag": domain})
            assert people.exact({"n": CellCounts("flag")})["n"].tolist() == [2, 1], (file, domain)
            assert domain is not bool or people.where("flag").exact({"n": Count()})["n"] == 1


def test_a_study_file_declares_how_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("bmi;region\n23,5; North\n1.000,0;south\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(
        '[dataset]\nsource = "people.csv"\n[schema]\n'
        'bmi = { range = [10.0, 60.0], decimal = "," }\n'
        'region = { categories = ["north", "south"], trim = true, lower = true }\n'
    )
    people = read_declaration(tmp_path / "study.toml")
    answers = people.exact({"n": Count("bmi"), "regions": CellCounts("region")})
    assert int(answers["n"]) == 1 and answers["regions"].tolist() == [1, 1]
    assert people.schema["bmi"] == Reals(10.0, 60.0)  # what it may hold, however it was spelled
    assert _literal(people.schema["bmi"]) == "ft.data.Reals(10.0, 60.0, decimal=',')"
    for name in people.schema:
        assert repr(domain_of_entry(name, _column(people.schema[name]))) == repr(people.schema[name])
    assert in_toml(_column(people.schema["region"])) == (
        '{ categories = ["north", "south"], trim = true, lower = true }'
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"range": [0.0, 1.0], "trim": True}, "is not known for range; with range there are: decimal"),
        ({"range": [0, 1], "decimal": ","}, "must be of real numbers with decimal"),
        ({"range": [0.0, 1.0], "decimal": ";"}, 'must be "," or "."'),
        ({"flags": True, "lower": True}, "is not known for flags"),
        ({"categories": ["North"], "lower": True}, "must be in lower case with lower; write 'north'"),
        ({"categories": [" north"], "trim": True}, "must have no blanks around it with trim"),
        ({"categories": [1, 2], "trim": True}, "must be text to be trimmed"),
        ({"categories": ["a"], "trim": 1}, "must be true or false"),
        ({"categories": ["a"], "flags": True}, "must have exactly one kind"),
        ({"trim": True}, "must have exactly one kind"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        domain_of_entry("x", entry)
    assert message in str(refusal.value)


def test_how_text_is_read_is_part_of_what_was_asked() -> None:
    """Two datasets that spell values differently can be united, but a stored answer of one is not that of the other."""
    plain, careless = Categories(["a"]), Categories(["a"], trim=True, lower=True)
    assert plain == careless and repr(plain) != repr(careless)
    assert Reals(0.0, 1.0) == Reals(0.0, 1.0, decimal=",") and Flags() == Flags() and Dates(*DAYS) == Dates(*DAYS)

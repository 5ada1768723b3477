"""What `linked` accepts and refuses, what it says of stability, and who pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.data import Bounded, Count, Integers, LinkedTables, Sum, TableFacts, UnitBound, check, owner_conflicts
from farthing.data.table_identity import Piece
from farthing.data.unknown_columns import known, one_row_a_unit, table_itself
from farthing.errors import InvalidValue

KEYS = {"visits.person_id": "persons.person_id", "drugs.visit_id": "visits.visit_id"}
ROWS = {
    "persons": {"person_id": [1, 2, 3], "sex": ["F", "M", "F"]},
    "visits": {"visit_id": [10, 11, 12, 13], "person_id": [1, 1, 2, 9], "ward": ["A", "B", "A", "A"]},
    "drugs": {"visit_id": [10, 10, 12, 13, 99], "drug": ["x", "y", "x", "y", "x"], "ward": ["A", "A", "B", "A", "A"]},
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "persons": {"sex": ["F", "M"]},
    "visits": {"ward": ["A", "B"]},
    "drugs": {"drug": ["x", "y"], "ward": ["A", "B"]},
}


def hospital(**changes: Any) -> LinkedTables:
    tables = {name: ft.table(pa.table(ROWS[name]), schema=SCHEMAS[name]) for name in ROWS}
    facts: dict[str, Any] = {
        **tables, "unit": "persons.person_id", "keys": KEYS, "max_rows": {"visits": 5, "drugs": 3}, **changes
    }  # fmt: skip
    return ft.linked(**{name: value for name, value in facts.items() if value is not None})


def number(rows: Any) -> int:
    return int(rows.exact({"n": Count()})["n"])


def test_each_table_has_the_rows_that_lead_to_a_unit() -> None:
    tables = hospital()
    assert list(tables) == ["persons", "visits", "drugs"]
    assert {name: number(rows) for name, rows in tables.items()} == {"persons": 3, "visits": 4, "drugs": 4}
    assert {name: rows.rows_per_unit for name, rows in tables.items()} == {"persons": 1, "visits": 5, "drugs": 3}
    assert all(rows.unit == ("person_id",) for rows in tables.values())


def test_a_unit_that_its_table_lacks_leaves_with_an_inner_join_only() -> None:
    drugs = hospital()["drugs"]
    assert number(drugs.join("persons")) == 3
    assert number(drugs.join("persons", how="left")) == 4
    assert drugs.join("persons", how="left").exact({"n": Count(by="sex")})["n"].tolist() == [2, 1]


def test_a_column_whose_name_is_taken_is_called_by_its_table_too() -> None:
    drugs = hospital()["drugs"].join("visits")
    assert list(drugs.schema) == ["drug", "ward", "visits_ward"]
    assert drugs.exact({"n": Count(by=["ward", "visits_ward"])})["n"].tolist() == [[3, 0], [1, 0]]


def test_tables_below_are_joined_on_the_unit_and_multiply() -> None:
    both = hospital()["persons"].join("visits", how="left")
    assert (both.rows_per_unit, number(both)) == (5, 4)
    assert "x 5" in str(both.stability())


def test_the_table_of_the_unit_is_joined_after_any_step() -> None:
    people = hospital()["visits"].per_unit(visits="count()").join("persons", how="left")
    assert (people.rows_per_unit, number(people), number(people.where("sex = 'F' and visits = 2"))) == (1, 3, 1)


def test_every_step_of_linked_tables_is_in_the_stability() -> None:
    text = str(hospital()["drugs"].join("visits").join("persons", how="left").where("sex = 'F'").stability())
    assert "visit_id says whose they are, through visits" in text
    assert "V1  join visits" in text and "V2  join persons" in text and "V3  where" in text
    assert text.endswith("neighbours differ in at most 3 rows")


def test_the_number_of_rows_of_a_unit_is_bounded_through_the_keys() -> None:
    tables = hospital(max_rows={"visits": 1, "drugs": 1})
    assert (number(tables["visits"]), number(tables["drugs"]), number(tables["drugs"].join("visits"))) == (3, 3, 3)


def test_text_keys_are_compared_by_their_bytes() -> None:
    persons = ft.table(pa.table({"id": ["a", "A"], "sex": ["F", "M"]}), schema=SCHEMAS["persons"])
    visits = ft.table(pa.table({"who": ["a", "a", "A ", "ä"], "ward": ["A"] * 4}), schema=SCHEMAS["visits"])
    tables = ft.linked(
        persons=persons, visits=visits, unit="persons.id", keys={"visits.who": "persons.id"}, max_rows={"visits": 9}
    )
    assert tables["visits"].join("persons").exact({"n": Count(by="sex")})["n"].tolist() == [2, 0]


def test_the_sample_and_people_of_linked_tables_are_those_of_the_unit() -> None:
    drugs = hospital()["drugs"]
    assert number(drugs.per_unit(drugs="count()")) == 3
    assert drugs.sample(0.5).probability == 0.5
    assert number(drugs.sample(0.5)) in range(5)


def test_the_order_of_joins_and_steps_is_said() -> None:
    drugs = hospital()["drugs"].where("drug = 'x'")
    with pytest.raises(InvalidValue, match=r"must be joined before other steps.*write .join\('visits'\) before .where"):
        drugs.join("visits")
    with pytest.raises(InvalidValue, match="not one of the linked tables; there are: persons, visits, drugs"):
        hospital()["drugs"].join("doctors")
    with pytest.raises(InvalidValue, match="must be another table"):
        hospital()["drugs"].join("visits").join("visits")
    with pytest.raises(InvalidValue, match=r"only tables of farthing\.linked"):
        ft.dataset(pa.table(ROWS["persons"]), schema=SCHEMAS["persons"]).join("visits")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": {**KEYS, "persons.person_id": "drugs.visit_id"}}, "persons -> drugs -> visits -> persons.*cycle"),
        ({"keys": {"visits.person_id": "visits.visit_id"}}, "visits -> visits.*must not form a cycle"),
        ({"keys": {"visits.person_id": "persons.person_id"}}, "must lead from 'drugs' to 'persons'"),
        ({"keys": {**KEYS, "doctors.id": "visits.visit_id"}}, "must begin with a table: persons, visits, drugs"),
        ({"keys": {**KEYS, "drugs.drug": "visits.ward"}}, "must be the only key of 'drugs'"),
        ({"keys": {**KEYS, "drugs.visit": "visits.visit_id"} | {"drugs.visit_id": None}}, "must be a table and a col"),
        ({"keys": ["visits.person_id"]}, "must be a mapping"),
        ({"unit": "person_id"}, "must be a table and a column"),
        ({"unit": "persons.peron_id"}, "^unit='persons.peron_id': is not a column of the source; did you mean 'person"),
        ({"keys": {**KEYS, "visits.person_id": "persons.peron_id"}}, "^persons.keys='peron_id': is not a column"),
        ({"unit": "people.person_id"}, "must begin with a table"),
        ({"max_rows": {"drugs": "auto"}}, r"max_rows\['drugs'\]='auto': must be a number in linked tables; find it in"),
        ({"max_rows": {"visits": 5, "drugs": 0}}, r"max_rows\['drugs'\]=0: must be a whole number from 1"),
        ({"max_rows": {"visit": 5, "drugs": 1}}, "among persons, visits, drugs"),
        ({"max_rows": 5}, "among persons, visits, drugs"),
        ({"drugs": pa.table(ROWS["drugs"])}, "drugs.*must be a table; write"),
        ({"persons": TableFacts(pa.table(ROWS["persons"]), {"sax": ["F"]})}, r"persons.schema\['sax'\].*mean 'sex'"),
        (
            {"persons": TableFacts(pa.table({"person_id": [True], "sex": ["F"]}), SCHEMAS["persons"])},
            "visits.person_id: persons.person_id.*must be columns of one type, not int64 and boolean",
        ),
        (
            {"visits": TableFacts(pa.table({"visit_id": [1.5], "person_id": [1], "ward": ["A"]}), SCHEMAS["visits"])},
            "visits.keys='visit_id': must be a column of whole numbers",
        ),
    ],
)
def test_links_that_cannot_be_are_refused_in_words(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        hospital(**changes)


def test_a_table_whose_statistics_have_bounds_needs_no_max_rows() -> None:
    tables = hospital(max_rows=None)
    assert str(tables).splitlines()[2] == "visits: any number of rows of a unit, person_id -> persons.person_id"
    drugs = tables["drugs"].join("visits").join("persons", how="left")
    people = Bounded(Count(by="ward"), UnitBound(rows_per_cell=1, max_cells=2))
    whole = hospital(max_rows={"visits": 9, "drugs": 9})["drugs"].join("visits").join("persons", how="left")
    assert drugs.exact({"n": people})["n"].tolist() == whole.exact({"n": people})["n"].tolist()
    assert drugs.sensitivity(people) == whole.sensitivity(people)
    words = r"max_rows\['drugs'\]=None: must be given with a unit where a statistic has no bound of its own; give that"
    with pytest.raises(InvalidValue, match=words) as told:
        number(drugs)
    assert "auto" not in str(told.value)
    with pytest.raises(InvalidValue, match=words):
        _ = drugs.stability().rows
    with pytest.raises(InvalidValue, match=r"max_rows\['visits'\]=None: must be given"):
        number(tables["persons"].join("visits", how="left"))


def test_a_table_that_only_links_needs_no_schema() -> None:
    tables = hospital(visits=TableFacts(pa.table(ROWS["visits"]), {}))
    assert number(tables["drugs"].join("visits")) == number(hospital()["drugs"].join("visits"))
    assert list(tables["drugs"].join("visits").schema) == ["drug", "ward"]  # its own, and no visits_ward


def test_a_table_that_is_not_there_is_said_in_words() -> None:
    tables = hospital()
    with pytest.raises(InvalidValue, match=r"^table='nothing': is not one of the linked tables; there are: persons, v"):
        tables["nothing"]
    assert "nothing" not in tables and tables.get("nothing") is None


def test_a_table_that_is_only_passed_through_needs_no_max_rows() -> None:
    assert number(hospital(max_rows={"drugs": 3})["drugs"].join("visits")) == number(hospital()["drugs"].join("visits"))


def test_linked_tables_are_no_parts_periods_or_plain_tables() -> None:
    drugs = hospital()["drugs"]
    assert not drugs.is_divisible() and not drugs.is_untransformed and drugs.rows is None
    assert drugs.definition != hospital(max_rows={"visits": 4, "drugs": 3})["drugs"].definition
    assert drugs.definition == hospital()["drugs"].definition


def test_the_steward_sees_how_many_rows_lead_to_nobody() -> None:
    found = check(hospital()["drugs"].join("visits"))
    assert found.rows == 5 and found.unit is not None and found.unit.without == 1
    assert [column.name for column in found.columns] == ["drug", "ward"]


def test_the_steward_sees_the_columns_of_joined_tables() -> None:
    wrong = TableFacts(pa.table(ROWS["persons"]), {"sex": ["f", "m"]})
    found = check(hospital(persons=wrong)["drugs"].join("visits").join("persons", how="left"))
    assert [(each.name, [column.name for column in each.columns]) for each in found.joined] == [
        ("visits", ["ward"]),
        ("persons", ["sex"]),
    ]
    assert (
        found.joined[1].columns[0].unread > 0 and "persons, joined: " in str(found) and "not listed: 'F'" in str(found)
    )


def test_the_steward_sees_how_many_rows_an_inner_join_leaves_out() -> None:
    drugs = hospital()["drugs"].join("visits")
    assert drugs.inner_joins == drugs.join("persons", how="left").inner_joins == ()
    assert drugs.join("persons").inner_joins == ("persons",)
    found = check(drugs.join("persons"))
    assert found.unit is not None and found.unit.lacking == (("persons", 1),)
    words = '1 (20%) has no row in persons and is dropped by the join; join = { table = "persons", how = "left" } keeps'
    assert words in str(found) and "no row in persons" not in str(check(drugs.join("persons", how="left")))
    later = hospital()["visits"].per_unit(visits="count()")
    assert later.join("persons").inner_joins == ("persons",) and later.join("persons", how="left").inner_joins == ()


def test_the_steward_sees_what_is_unknown() -> None:
    rows = pa.table({"who": [1, 1, 2], "cost": [1.0, 2.0, 3.0]})
    found = check(ft.dataset(rows, unit="who", max_rows="auto", schema={"cost": ft.unknown("number")}))
    assert found.unit is not None and found.unit.max_rows is None
    text = str(found)
    assert "cost: unknown, not looked at; farthing discover finds it" in text
    assert 'max_rows = "auto": farthing discover finds it; as max_rows, 2 would keep 100%' in text


def files(folder: Path) -> LinkedTables:
    for name, rows in ROWS.items():
        pq.write_table(pa.table(rows), folder / f"{name}.parquet")
    return hospital(**{name: ft.table(folder / f"{name}.parquet", schema=SCHEMAS[name]) for name in ROWS})


@pytest.mark.slow
def test_one_account_pays_for_tables_that_are_linked(tmp_path: Path) -> None:
    """That of the table which names the units; the others belong to it from then on, read or not."""
    tables = files(tmp_path)
    ledger = ft.open_ledger(tmp_path / "ledger.sqlite")
    study = ft.Study(tables["drugs"], epsilon=1.0, ledger=ledger)
    study.plan(ft.count(by="drug"), epsilon=0.5).release()
    assert list(ledger.datasets()) == ["persons.parquet"]
    for name in ("visits", "persons"):
        again = ft.Study(tables[name].join("persons") if name == "visits" else tables[name], epsilon=1.0, ledger=ledger)
        again.plan(ft.count(), epsilon=0.2).release()
    assert list(ledger.datasets()) == ["persons.parquet"]
    assert ledger.budget("persons.parquet").spent.upper == pytest.approx(0.9)
    with pytest.raises(InvalidValue, match=r"must be 'persons.parquet'.*a table belongs to one account"):
        ft.Study(tables["visits"], epsilon=1.0, ledger=ledger, account="other").plan(ft.count(), epsilon=0.1)


def test_every_account_that_has_one_of_the_tables_pays(tmp_path: Path) -> None:
    tables = files(tmp_path)
    ledger = ft.open_ledger(tmp_path / "ledger.sqlite")
    persons = ft.dataset(tmp_path / "persons.parquet", unit="person_id", max_rows=1, schema=SCHEMAS["persons"])
    ft.Study(persons, epsilon=0.3, ledger=ledger, account="register").register()
    ft.Study(tables["drugs"], epsilon=0.3, ledger=ledger).plan(ft.count(), epsilon=0.1).release()
    assert ledger.budget("register").spent.upper == pytest.approx(0.1)


def test_another_account_is_no_second_budget_for_people_whose_own_table_is_not_read(tmp_path: Path) -> None:
    """Drugs lead to persons by way of visits, so that no query of drugs reads persons: their account paid nothing."""
    tables = files(tmp_path)
    ledger = ft.open_ledger(tmp_path / "ledger.sqlite")
    persons = ft.dataset(tmp_path / "persons.parquet", unit="person_id", max_rows=1, schema=SCHEMAS["persons"])
    ft.Study(persons, epsilon=0.3, ledger=ledger, account="register").register()
    study = ft.Study(tables["drugs"], epsilon=1.0, ledger=ledger, account="other")
    study.plan(ft.count(), epsilon=0.2).release()
    assert [ledger.budget(name).spent.upper for name in ("register", "other")] == pytest.approx([0.2, 0.2])
    with pytest.raises(ft.FarthingError, match="register"):
        study.plan(ft.count(by="drug"), epsilon=0.5).release()
    cards = pa.table({"person_id": [1, 2], "card": [True, False]})
    cards = ft.dataset(cards, unit="person_id", max_rows=1, schema={"card": bool}, name="cards")
    beside = ft.Study(cards.join(tables["drugs"]), epsilon=1.0, ledger=ledger, account="cards")
    beside.plan(ft.count(), epsilon=0.05).release()
    assert ledger.budget("register").spent.upper == pytest.approx(0.25)


@pytest.mark.slow
def test_all_accounts_pay_or_none(tmp_path: Path) -> None:
    tables = files(tmp_path)
    ledger = ft.open_ledger(tmp_path / "ledger.sqlite")
    facts: dict[str, Any] = {"unit": "person_id", "max_rows": 1}
    for name, epsilon in (("persons", 0.2), ("visits", 1.0)):
        rows = ft.dataset(tmp_path / f"{name}.parquet", schema=SCHEMAS[name], **facts)
        ft.Study(rows, epsilon=epsilon, ledger=ledger, account=name).register()
    study = ft.Study(tables["visits"].join("persons"), epsilon=1.0, ledger=ledger)
    study.plan(ft.count(by="sex"), epsilon=0.15).release()
    assert [ledger.budget(name).spent.upper for name in ("persons", "visits")] == pytest.approx([0.15, 0.15])
    with pytest.raises(ft.FarthingError, match="persons"):
        study.plan(ft.count(by="ward"), epsilon=0.5).release()
    assert [ledger.budget(name).spent.upper for name in ("persons", "visits")] == pytest.approx([0.15, 0.15])


@pytest.mark.parametrize("textual", ["persons", "visits", "drugs"])
def test_whole_numbers_lead_to_text_that_is_spelled_like_them(textual: str) -> None:
    def spelled(name: str) -> Any:
        ids = {column: cells for column, cells in ROWS[name].items() if column.endswith("_id")}
        return pa.table({**ROWS[name], **{column: [str(cell) for cell in ids[column]] for column in ids}})

    changed = hospital(**{textual: ft.table(spelled(textual), schema=SCHEMAS[textual])})
    for name, rows in hospital().items():
        assert number(changed[name]) == number(rows)
    drugs = changed["drugs"].join("visits").join("persons", how="left")
    assert drugs.exact({"n": Count(by="sex")})["n"].tolist() == [2, 1]


def test_a_number_in_another_spelling_is_another_key() -> None:
    cells = {"person_id": ["01", " 1", "+2", "3"], "visit_id": ["10", "11", "12", "13"], "ward": ["A"] * 4}
    visits = hospital(visits=ft.table(pa.table(cells), schema=SCHEMAS["visits"]))["visits"]
    assert number(visits) == 4  # each is a unit of its own, as its bytes are
    assert number(visits.join("persons")) == 1


def test_numbers_and_text_meet_in_files_of_two_kinds(tmp_path: Path) -> None:
    pq.write_table(pa.table(ROWS["persons"]), tmp_path / "persons.parquet")
    lines = zip(*ROWS["visits"].values(), strict=True)
    text = "\n".join(["visit_id,person_id,ward", *(",".join(map(str, line)) for line in lines)])
    (tmp_path / "visits.csv").write_text(text + "\n", encoding="utf-8")
    tables = ft.linked(
        persons=ft.table(tmp_path / "persons.parquet", schema=SCHEMAS["persons"]),
        visits=ft.table(tmp_path / "visits.csv", schema=SCHEMAS["visits"]),
        unit="persons.person_id",
        keys={"visits.person_id": "persons.person_id"},
        max_rows={"visits": 5},
    )
    assert tables["visits"].join("persons").exact({"n": Count(by="sex")})["n"].tolist() == [2, 1]


def test_an_unknown_column_comes_along_and_is_known_once_it_is_found() -> None:
    visits = hospital(
        visits=ft.table(pa.table(ROWS["visits"]), schema={"visit_id": ft.unknown("whole number")}),
        drugs=ft.table(pa.table(ROWS["drugs"]), schema={"drug": ["x", "y"]}),
    )
    drugs = visits["drugs"].join("visits")
    assert (list(drugs.schema), list(drugs.unknown), drugs.origin("visit_id")) == (
        ["drug"],
        ["visit_id"],
        ("visits", "visit_id"),
    )
    found = known(drugs, {"visit_id": Integers(0, 20)})
    assert found.exact({"n": Sum("visit_id")})["n"].tolist() == 10 + 10 + 12 + 13
    assert table_itself(drugs, "visit_id").name == "visits"
    assert one_row_a_unit(table_itself(drugs, "visit_id"), "visit_id").exact({"n": Count()})["n"].tolist() == 3


def test_an_unknown_column_whose_name_is_taken_does_not_come_along() -> None:
    tables = hospital(visits=ft.table(pa.table(ROWS["visits"]), schema={"ward": ft.unknown("text")}))
    with pytest.raises(
        InvalidValue, match="has an unknown column 'ward', and the name is taken; declare what it holds"
    ):
        tables["drugs"].join("visits")


def test_tables_that_lie_in_one_folder_are_not_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Spark a table is known by the folders that it lies in, too: linked tables of one warehouse were refused."""

    def lying_in(*folders: str) -> list[Piece]:
        texts = tuple(f"spark location {each}" for each in folders)
        return [Piece("a table", texts, texts[:1])]

    places = {"persons": ("lake/persons", "lake"), "visits": ("lake/visits", "lake"), "drugs": ("lake/drugs", "lake")}
    monkeypatch.setattr(owner_conflicts, "pieces_of", lambda source: lying_in(*places[source.name]))
    assert list(hospital()) == ["persons", "visits", "drugs"]
    places["drugs"] = ("lake/visits/2024", "lake/visits", "lake")
    with pytest.raises(InvalidValue, match="rows of the same table are also owned"):
        hospital()

"""An account counts the rows of a table as those of one person, and never again as those of another.

Why one way to the owner is needed, and enough, is proven at `farthing.data.linked_rows.rows_of_one_unit`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.curator.registration import register_source
from farthing.data import Count, Dataset
from farthing.data.engines.duckdb import quiet
from farthing.errors import InvalidValue
from farthing.ledger import Ledger
from farthing.ledger.budget_policy import OWNED

PERSONS = "id,age\n" + "".join(f"{person},{30 + person}\n" for person in range(1, 9))
PAY = "pay_id,sender,receiver,amount\n" + "".join(f"{n},1,{1 + n % 8},{n}\n" for n in range(24))
NOTES = "pay,kind\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(24))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A new ledger, in a folder of three tables."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("persons", PERSONS), ("pay", PAY), ("notes", NOTES)):
        Path(f"{name}.csv").write_text(text)
    with ft.open_ledger("study.db") as made:
        yield made


def world(by: str, target: str = "pay_id", pay: Any = "pay.csv", columns: Any = None) -> Any:
    """Payments of those who sent them, or of those who received them."""
    return ft.linked(
        persons=ft.table("persons.csv", schema={"age": (0, 110)}),
        pay=ft.table(pay, schema=columns or {"amount": (0, 100)}),
        notes=ft.table("notes.csv", schema={"kind": ["a", "b"]}),
        unit="persons.id",
        keys={f"pay.{by}": "persons.id", "notes.pay": f"pay.{target}"},
        max_rows={"pay": 1, "notes": 1},
    )


def alone(by: str, pay: Any = "pay.csv", **facts: Any) -> Dataset:
    return ft.dataset(pay, unit=by, max_rows=1, schema={"amount": (0, 100)}, **facts)


def study(ledger: Ledger, rows: Dataset, account: str | None = "persons") -> ft.Study:
    return ft.Study(rows, epsilon=1.0, ledger=ledger, account=account)


def spend(ledger: Ledger, rows: Dataset, account: str | None = "persons") -> None:
    study(ledger, rows, account).plan(ft.count(), epsilon=0.125).release(fresh=True)


def refuse(ledger: Ledger, rows: Dataset, recorded: str = "by sender", account: str | None = "persons") -> None:
    """Nothing of it may be planned or charged, and the ledger stays as it is."""
    before = ledger.last()
    with pytest.raises(InvalidValue, match=rf"must be '{recorded}': .* one owner of every row; declare the table as"):
        study(ledger, rows, account).plan(ft.count(), epsilon=0.125).release(fresh=True)
    assert ledger.last() == before


def recorded(ledger: Ledger, account: str = "persons") -> int:
    return sum(OWNED in mark for mark in ledger.sources()[account] or ())


def test_a_second_owner_of_a_row_would_change_more_than_a_query_says(ledger: Ledger) -> None:
    """Person 1 sent all 24 payments, to 8 receivers. Whoever protects senders takes all of them away with person 1."""
    first, second = world("sender")["pay"], world("receiver")["pay"]
    Path("without.csv").write_text(PAY.splitlines()[0] + "\n")
    beside = world("receiver", pay="without.csv")["pay"]
    change = abs(int(second.exact({"rows": Count()})["rows"]) - int(beside.exact({"rows": Count()})["rows"]))
    assert change == 8 > second.sensitivity(Count()).l1 == 1  # so a charge for 1 must not be made
    spend(ledger, first)
    refuse(ledger, second)
    spend(ledger, first)


@pytest.mark.parametrize(
    "second",
    [
        lambda: world("receiver")["persons"],  # the table is not read, and declared otherwise
        lambda: world("receiver")["pay"].join("persons"),
        lambda: world("receiver")["notes"].join("pay"),
        lambda: world("receiver")["pay"].where("amount > 3").per_unit(payments="count()"),
        lambda: world("receiver")["persons"].join("pay", how="left"),
    ],
    ids=["beside", "join", "below", "per unit", "joined below"],
)
def test_every_way_to_a_second_owner_is_refused(ledger: Ledger, second: Callable[[], Dataset]) -> None:
    spend(ledger, world("sender")["pay"])
    refuse(ledger, second())


def test_a_table_below_is_owned_by_the_row_that_its_key_was_recorded_for(ledger: Ledger) -> None:
    spend(ledger, world("sender")["notes"])
    refuse(ledger, world("sender", "amount")["notes"], "by pay, which leads to pay_id of pay.csv")
    shutil.copy("pay.csv", "copy.csv")
    refuse(ledger, world("sender", pay="copy.csv")["notes"], "by pay, which leads to pay_id of pay.csv")
    shutil.move("pay.csv", "moved.csv")
    spend(ledger, world("sender", pay="moved.csv")["notes"])  # the same file


def test_one_declaration_has_one_owner_for_each_row(ledger: Ledger) -> None:
    os.link("pay.csv", "again.csv")
    tables = {name: ft.table(f"{name}.csv", schema={"amount": (0, 100)}) for name in ("pay", "again")}
    people = ft.table("persons.csv", schema={"age": (0, 110)})
    with pytest.raises(InvalidValue, match=r"'again by receiver': must be one way .* rows of the same table .* sender"):
        ft.linked(
            persons=people, **tables, unit="persons.id",
            keys={"pay.sender": "persons.id", "again.receiver": "persons.id"},
        )  # fmt: skip
    frame = pa.table({"sender": [1], "receiver": [2], "amount": [3]})
    one, two = (ft.table(frame, schema={"amount": (0, 9)}) for _ in range(2))
    with pytest.raises(InvalidValue, match="must be one way to the owner of a row"):
        ft.linked(
            persons=people, one=one, two=two,
            unit="persons.id", keys={"one.sender": "persons.id", "two.receiver": "persons.id"},
        )  # fmt: skip
    with pytest.raises(InvalidValue, match="must be one way to the owner of a row"):
        study(ledger, world("sender")["pay"].union(world("receiver")["pay"])).plan(ft.count())
    assert ledger.datasets() == []


def test_an_account_without_a_unit_of_its_own_keeps_the_first_one(ledger: Ledger) -> None:
    ledger.register("persons", 1.0)  # by hand: any unit will do
    spend(ledger, alone("sender"))
    refuse(ledger, alone("receiver"))
    refuse(ledger, ft.dataset("pay.csv", schema={"amount": (0, 100)}))
    refuse(ledger, alone("receiver", pay=["pay.csv"]))
    spend(ledger, alone("sender", pay=str(Path("pay.csv").absolute())))


def test_a_dataset_by_itself_and_one_that_is_linked_agree(ledger: Ledger) -> None:
    Path("pay.csv").write_text(PAY.replace("pay_id", "id"))
    spend(ledger, world("sender", "id")["pay"])
    refuse(ledger, alone("id"))  # the number of a payment is called as that of a person


def test_a_joined_table_is_kept_with_its_own_account(ledger: Ledger) -> None:
    ledger.register("people", 1.0)
    ledger.register("payments", 1.0)
    spend(ledger, alone("sender"), "payments")
    seniors = ft.dataset("persons.csv", unit="id", max_rows=1, schema={"age": (0, 110)})
    spend(ledger, seniors, "people")
    shutil.copy("persons.csv", "others.csv")
    Path("others.csv").write_text(PERSONS.replace("id", "receiver"))
    people = ft.dataset("others.csv", unit="receiver", max_rows=1, schema={"age": (0, 110)})
    refuse(ledger, people.join(alone("receiver")), account="people")
    refuse(ledger, people.union(alone("receiver").derive(age=("amount", (0, 110))).select("age")), account="people")
    assert recorded(ledger, "payments") == 3 == recorded(ledger, "people")


def test_a_list_of_diagnoses_is_owned_as_its_row(ledger: Ledger) -> None:
    pq.write_table(pa.table({"sender": [1], "receiver": [2], "codes": [["a", "b"]]}), "codes.parquet")
    ledger.register("persons", 1.0)

    def of(unit: str) -> Dataset:
        rows = ft.dataset("codes.parquet", unit=unit, max_rows=1, schema={"codes": ["a", "b"]})
        return rows.explode("codes", limit=2)

    spend(ledger, of("sender"))
    refuse(ledger, of("receiver"))


def test_files_of_a_folder_are_owned_like_the_folder(ledger: Ledger) -> None:
    ledger.register("persons", 1.0)
    Path("months").mkdir()
    for month in ("may", "june"):
        Path(f"months/{month}.csv").write_text(PAY)
    spend(ledger, alone("sender", pay="months/*.csv"))
    refuse(ledger, alone("receiver", pay="months/may.csv"))
    Path("months/july.csv").write_text(PAY)  # nobody has read it yet
    refuse(ledger, alone("receiver", pay="months/july.csv"))
    os.symlink("months", "years")
    refuse(ledger, alone("receiver", pay="years/j*.csv"))
    shutil.move("months/may.csv", "may.csv")
    refuse(ledger, alone("receiver", pay="may.csv"))
    spend(ledger, alone("sender", pay="years/*.csv"))


def test_a_file_that_was_owned_otherwise_is_not_read_as_one_of_a_folder(ledger: Ledger) -> None:
    ledger.register("persons", 1.0)
    Path("months").mkdir()
    for month in ("may", "june"):
        Path(f"months/{month}.csv").write_text(PAY)
    spend(ledger, alone("receiver", pay="months/may.csv"))
    refuse(ledger, alone("sender", pay="months/*.csv"), "by receiver")


VIEWS = {
    "as it is": ("SELECT * FROM pay WHERE amount > 3", True),
    "by name": ("SELECT sender, amount FROM pay", True),
    "renamed": ("SELECT receiver AS sender, amount FROM pay", False),
    "computed": ("SELECT sender + 0 AS sender, amount FROM pay", False),
    "both": ("SELECT sender, amount FROM pay UNION ALL SELECT receiver, amount FROM pay", False),
    "joined": ("SELECT b.receiver AS sender, a.amount FROM pay a JOIN pay b USING (amount)", False),
    "below": ("SELECT sender, amount FROM (SELECT receiver AS sender, amount FROM pay)", False),
    "replaced": ("SELECT * REPLACE (receiver AS sender) FROM pay", False),
    "swapped": ("SELECT sender, amount FROM pay AS t(amount, receiver, sender)", False),
    "unpivoted": ("SELECT sender, amount FROM (UNPIVOT pay ON sender, receiver INTO NAME n VALUE sender)", False),
    "macro": ("FROM turned()", False),
}


@pytest.mark.parametrize(("text", "is_same"), VIEWS.values(), ids=VIEWS)
def test_a_view_is_owned_by_the_column_that_it_shows(ledger: Ledger, text: str, is_same: bool) -> None:
    """A view may call any column `sender`."""
    ledger.register("persons", 1.0)
    with duckdb.connect("bank.db") as made:
        made.execute("CREATE TABLE pay AS SELECT amount, sender, receiver FROM 'pay.csv'")
        made.execute("CREATE MACRO turned() AS TABLE SELECT receiver AS sender, amount FROM pay")
        made.execute(f'CREATE VIEW shown ("to whom", amount, sender) AS SELECT 1, amount, sender FROM ({text})')
    bank = ibis.duckdb.connect("bank.db", read_only=True)
    with quiet():
        spend(ledger, alone("sender", pay=bank.table("pay")))
        (spend if is_same else refuse)(ledger, alone("sender", pay=bank.table("shown")))
        refuse(ledger, alone("to whom", pay=bank.table("shown")))


def test_a_view_that_is_defined_anew_is_another_owner(ledger: Ledger) -> None:
    ledger.register("persons", 1.0)
    bank = ibis.duckdb.connect()
    bank.raw_sql("CREATE TABLE pay AS SELECT * FROM 'pay.csv'")
    with quiet():
        bank.raw_sql("CREATE VIEW shown AS SELECT sender + 0 AS who, amount FROM pay")
        spend(ledger, alone("who", pay=bank.table("shown")))
        spend(ledger, alone("who", pay=bank.table("shown")))
        bank.raw_sql("CREATE OR REPLACE VIEW shown AS SELECT receiver + 0 AS who, amount FROM pay")
        refuse(ledger, alone("who", pay=bank.table("shown")), "by who of the view shown as [0-9a-f]+")


def test_frames_and_tables_in_memory_are_owned_by_their_names(ledger: Ledger) -> None:
    frame = pa.table({"sender": [1], "receiver": [2], "amount": [3]})
    ledger.register("persons", 1.0)
    spend(ledger, alone("sender", pay=frame, name="pay"))
    refuse(ledger, alone("receiver", pay=frame, name="Pay"))
    memory = ibis.duckdb.connect()
    memory.raw_sql("CREATE TABLE moves AS SELECT * FROM 'pay.csv'")
    with quiet():
        spend(ledger, alone("sender", pay=memory.table("moves")))
        refuse(ledger, alone("receiver", pay=memory.table("moves")))


def test_what_is_registered_without_a_question_is_owned_by_the_first_question(ledger: Ledger) -> None:
    Path("pay.csv").write_text(PAY.replace("pay_id", "id"))
    spend(ledger, world("sender", "id")["persons"])
    before = recorded(ledger)
    register_source(ledger, "persons", "pay.csv")  # which has a column `id` too, of payments
    assert recorded(ledger) == before
    spend(ledger, world("sender", "id")["pay"])
    register_source(ledger, "persons", "pay.csv")
    refuse(ledger, alone("id"))


def test_a_study_that_registers_keeps_the_owner(ledger: Ledger) -> None:
    study(ledger, world("sender")["pay"]).register()
    refuse(ledger, world("receiver")["pay"])


def test_a_correction_does_not_change_the_owner(ledger: Ledger) -> None:
    spend(ledger, world("sender")["pay"])
    ledger.correct("persons", {"keys": ("pay.sender", "pay.receiver")}, "we meant receivers")
    refuse(ledger, world("receiver")["pay"])


def test_a_session_and_a_search_are_refused_too(ledger: Ledger) -> None:
    spend(ledger, world("sender")["pay"])
    rows = world("receiver")["pay"]
    found = world("receiver", columns={"amount": ft.unknown("whole number")})["pay"]
    before = ledger.last()
    for ask in (
        lambda: study(ledger, rows).query_session(50.0, 4, bins={"amount": 2}, rows=100),
        lambda: study(ledger, rows).synthesise(epsilon=0.1, bins={"amount": 2}),
        lambda: study(ledger, found).discover(epsilon=0.1),
    ):
        with pytest.raises(InvalidValue, match="must be 'by sender'"):
            ask()
    assert ledger.last() == before


def test_an_older_ledger_takes_the_next_charge_for_the_owner(ledger: Ledger) -> None:
    """Its tables are known, and nobody has said whose their rows are."""
    rows = world("receiver")["pay"]
    accounts = study(ledger, rows).curator.accounts(rows, "persons")
    ledger.register("persons", 1.0, unit="id, add-remove", sources=accounts.sources, titles=accounts.titles)
    assert recorded(ledger) == 0
    spend(ledger, rows)
    refuse(ledger, world("sender")["pay"], "by receiver")
    assert ledger.verify().ok

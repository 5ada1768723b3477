"""Everybody whose rows are read pays, under whatever name, path or order a table is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from farthing import Study, count, dataset, open_ledger
from farthing.curator import unit_of
from farthing.data import Count, Dataset
from farthing.data.sources import open_source
from farthing.data.table_identity import pieces_of
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger import Ledger, budget_policy
from farthing.ledger.ledger_change import Question
from payer_tables import left, rows, spend, write

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    monkeypatch.chdir(made)
    for name in ("people.csv", "planes.csv", "visits-1.csv", "visits-2.csv"):
        write(name)
    return made


# Another table's people


def test_a_joined_table_and_one_put_below_are_paid_for_by_their_own_budgets(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("planes.csv"), 0.5)
    spend(ledger, rows("people.csv").join(rows("planes.csv").derive(seats="age + 1").select("seats")), 0.125)
    spend(ledger, rows("people.csv").union(rows("planes.csv")), 0.125)
    assert left(ledger, "people.csv", "planes.csv") == [0.75, 0.25]


def test_a_spent_budget_is_not_got_round_by_another_table(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("people.csv"), 1.0)
    spend(ledger, rows("planes.csv"), 0.5)
    before = ledger.last()
    for made in (rows("planes.csv").union(rows("people.csv")), rows(["planes.csv", "people.csv"], name="both")):
        study = Study(made, epsilon=1.0, ledger=ledger, account="planes.csv")
        with pytest.raises(BudgetExceeded, match=r"budget of 'people\.csv'"):
            study.plan(count(), epsilon=0.1)
        assert study.left == 0.0
        with pytest.raises(InvalidValue, match=r"must be .*'planes\.csv'.* a table belongs to one account; pass acc"):
            Study(made, epsilon=1.0, ledger=ledger, account="another")
    assert left(ledger, "people.csv", "planes.csv") == [0.0, 0.5] and ledger.last() == before


def test_a_plan_has_what_is_left_of_the_smallest_budget(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("people.csv"), 0.75)
    spend(ledger, rows("planes.csv"), 0.25)
    study = Study(rows("planes.csv").union(rows("people.csv")), epsilon=1.0, ledger=ledger)
    assert study.accounts == ("planes.csv", "people.csv")
    assert study.plan(count()).problem.epsilon == pytest.approx(0.25)


def test_the_same_table_twice_pays_once(ledger: Ledger, folder: Path) -> None:
    os.symlink("people.csv", "link.csv")
    spend(ledger, rows("people.csv").union(rows("link.csv")))
    frame = pa.table({"person": [1, 2], "age": [30, 41]})
    spend(ledger, rows(frame, name="frame").union(rows(frame)))
    assert left(ledger) == [0.75, 0.75]


def test_a_table_without_a_budget_is_refused_with_the_way_out(ledger: Ledger, folder: Path) -> None:
    frame = pa.table({"person": ["1", "2"], "age": [30, 41]})
    with pytest.raises(
        InvalidValue,
        match=r"'planes.csv': must have a budget.*Study\(\.\.\.\)\.register\(\).*Ledger.register",
    ):
        Study(rows("people.csv").union(rows("planes.csv")), epsilon=1.0, ledger=ledger)
    with pytest.raises(InvalidValue, match=r"must be named.*dataset\(\.\.\., name=.*none yet: open one.*register\("):
        Study(rows("people.csv").union(rows(frame)), epsilon=1.0, ledger=ledger, account="joined")
    with pytest.raises(InvalidValue, match="'crews': must have a budget"):
        Study(rows("people.csv").union(rows(frame, name="crews")), epsilon=1.0, ledger=ledger)
    assert ledger.datasets() == []
    spend(ledger, rows(frame, name="crews"))
    with pytest.raises(InvalidValue, match=r"must be named.*this ledger has 'crews'\.$") as refusal:
        Study(rows("people.csv").union(rows(frame)), epsilon=1.0, ledger=ledger, account="joined")
    assert "joined" not in str(refusal.value)  # no budget of that name could be named
    spend(ledger, rows("people.csv").union(rows(frame, name="crews")))
    assert left(ledger, "crews", "people.csv") == [0.5, 0.75]
    Study(rows("planes.csv"), epsilon=1.0, ledger=ledger).register()  # as the message says
    Study(rows("people.csv").union(rows("planes.csv")), epsilon=1.0, ledger=ledger)


def test_every_budget_must_be_of_the_same_unit(ledger: Ledger, folder: Path) -> None:
    spend(ledger, dataset("planes.csv", schema={"age": (0, 110)}))
    with pytest.raises(InvalidValue, match=r"must be 'row, add-remove', for .* of 'planes\.csv'"):
        Study(rows("people.csv").union(rows("planes.csv")), epsilon=1.0, ledger=ledger)
    with pytest.raises(InvalidValue, match=r"must be 'row, add-remove', for .* of 'planes\.csv'"):
        Study(rows("planes.csv"), epsilon=1.0, ledger=ledger)


def test_a_secret_sample_is_studied_by_itself(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("planes.csv"))
    with pytest.raises(InvalidValue, match="needs a table that no other budget pays for"):
        Study(rows("people.csv").union(rows("planes.csv")), 1.0, 1e-6, ledger=ledger, sampling_rate=0.01)


def test_sessions_are_paid_for_by_every_budget(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("planes.csv"), 0.5)
    both = rows("people.csv").union(rows("planes.csv"))
    monitor = Study(both, epsilon=1.0, ledger=ledger).monitor("age > 35", threshold=10, alerts=1, epsilon=0.25, steps=4)
    assert left(ledger, "people.csv", "planes.csv") == [0.75, 0.25]
    spend(ledger, rows("visits-1.csv"))
    with pytest.raises(InvalidValue, match=r"budget of 'visits-1\.csv' covers, which has not paid"):
        monitor.look(rows("people.csv").union(rows("visits-1.csv")))


# Other spellings of the same table


def test_a_pattern_keeps_its_budget_when_it_gains_a_file(ledger: Ledger, folder: Path) -> None:
    assert spend(ledger, rows("visits-*.csv")).name == "visits-*.csv"
    write("visits-3.csv")
    spend(ledger, rows("visits-3.csv"), 0.125)  # before the pattern was seen with it
    spend(ledger, rows("visits-*.csv"), 0.125)
    os.symlink("planes.csv", "visits-4.csv")
    os.symlink(folder, "again", target_is_directory=True)
    spend(ledger, rows("again/v*-[4].csv"), 0.125)
    assert left(ledger) == [0.375] and ledger.accounts()[0].sources == ("visits-*.csv", "v*-[4].csv")


def test_a_folder_is_one_source_whatever_it_holds(ledger: Ledger, folder: Path) -> None:
    os.makedirs("months/old")
    for name in ("months/1.csv", "months/_draft.csv", "months/old/0.csv"):
        write(name)
    assert spend(ledger, rows("months")).plan(count(), epsilon=0.1).study.account == "months"
    write("months/2.csv")
    spend(ledger, rows("months/2.csv"))
    assert left(ledger) == [0.5]
    assert spend(ledger, rows("months/old/0.csv")).account == "0.csv"  # a folder below it is another
    with pytest.raises(InvalidValue, match="is a directory without files that end in"):
        os.mkdir("empty")
        rows("empty")


@pytest.mark.parametrize(
    "spelling",
    ["link.csv", "hard.csv", "moved.csv", "../data/people.csv", "./people.csv", "absolute", "peopl?.csv",
     "[p]eople.csv", "**/people.csv", "list", "address", "local address"],
)  # fmt: skip
def test_another_spelling_of_a_file_is_the_same_budget(ledger: Ledger, folder: Path, spelling: str) -> None:
    spend(ledger, rows("people.csv"), account="census")
    if spelling == "moved.csv":
        os.rename("people.csv", "moved.csv")
    else:
        os.symlink("people.csv", "link.csv")
        os.link("people.csv", "hard.csv")
    absolute = str(folder / "people.csv")
    addresses = {"address": f"file://{absolute}", "local address": f"FILE://localhost{absolute.replace('l', '%6c')}"}
    source = {"absolute": absolute, "list": ["people.csv"], **addresses}.get(spelling, spelling)
    assert spend(ledger, rows(source)).name == "census"
    assert left(ledger) == [0.5]


def test_another_case_of_a_file_is_the_same_on_a_disk_that_ignores_it(
    ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a disk shows one name of two that open one file; here the second is a link that is not listed."""
    spend(ledger, rows("people.csv"))
    os.link("people.csv", "PEOPLE.CSV")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda place: [name for name in listed(place) if name != "PEOPLE.CSV"])
    (piece,) = pieces_of(open_source("PEOPLE.CSV"))
    assert piece.known_by[0] == f"file {os.path.realpath('people.csv')}"


def test_a_plan_says_what_its_release_opens_and_registers(ledger: Ledger, folder: Path) -> None:
    def said(made: Dataset, **options: Any) -> str:
        lines = str(Study(made, epsilon=1.0, ledger=ledger, **options).plan(count(), epsilon=0.1)).splitlines()
        return " ".join(line.strip() for line in lines[[x.startswith("account") for x in lines].index(True) :][:2])

    opens = "account: releasing it opens the account 'patients' (protects person, add-remove; epsilon 1, delta 0) for"
    assert said(rows("people.csv"), account="patients").startswith(f"{opens} people.csv")
    spend(ledger, rows("people.csv"), account="patients")
    news = "account: releasing it registers visits-*.csv to the account 'patients', which pays for it from now on"
    assert said(rows("visits-*.csv"), account="patients").startswith(news)
    Study(rows("visits-*.csv"), epsilon=1.0, ledger=ledger, account="patients").register()
    assert ledger.accounts()[0].sources == ("people.csv", "visits-*.csv")
    for made in (rows("people.csv"), rows("visits-1.csv")):
        study = Study(made, epsilon=1.0, ledger=ledger)
        assert (study.account, study.account_news) == ("patients", None)
    assert ledger.verify().ok


def test_one_name_is_one_account_however_it_is_spelled(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("people.csv"), account="The patients")
    assert spend(ledger, rows("planes.csv"), account="the  PATIENTS").account == "The patients"
    with pytest.raises(InvalidValue, match="must not be another spelling of the account 'The patients'"):
        ledger.register("THE PATIENTS", 1.0)
    with pytest.raises(InvalidValue, match=r"name='a': must not differ from account='b'"):
        Study(rows("people.csv"), epsilon=1.0, ledger=ledger, account="b", name="a")
    assert ledger.datasets() == ["The patients"]


def test_a_list_in_another_order_is_the_same_budget(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows(["visits-1.csv", "visits-2.csv"]))
    spend(ledger, rows(["visits-2.csv", "visits-1.csv"]))
    spend(ledger, rows("visits-*.csv"))
    assert left(ledger) == [0.25]


def test_a_file_that_was_replaced_keeps_its_budget(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("people.csv"), account="census")
    os.rename("people.csv", "old.csv")
    write("people.csv", "3,50\n")
    assert [spend(ledger, rows(name)).name for name in ("people.csv", "old.csv")] == ["census", "census"]


def test_files_of_two_budgets_are_paid_for_by_both(ledger: Ledger, folder: Path) -> None:
    for name in ("visits-1.csv", "visits-2.csv"):
        spend(ledger, rows(name))
    with pytest.raises(InvalidValue, match="must say which budget pays"):
        Study(rows("visits-*.csv"), epsilon=1.0, ledger=ledger)
    spend(ledger, rows("visits-*.csv"), account="visits-1.csv")
    assert left(ledger) == [0.5, 0.5]


def test_a_new_file_with_the_number_of_one_that_is_gone_is_another(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("people.csv"))
    number = os.stat("people.csv").st_ino
    os.unlink("people.csv")
    write("fresh.csv", "9,50\n")
    assert os.stat("fresh.csv").st_ino != number or spend(ledger, rows("fresh.csv")).name == "fresh.csv"


@pytest.mark.parametrize(
    ("old", "source"),
    [("people.csv", "people.csv"), ("people.csv", "link.csv"), ("visits-1.csv and 1 more", "visits-*.csv"),
     ("visits-1.csv and 4 more", "visits-*.csv"), ("visits-1.csv", "visits-*.csv"),
     ("visits-2.csv and 1 more", ["visits-1.csv", "visits-2.csv"]), ("visits-1.csv and 1 more", "visits-1.csv")],
)  # fmt: skip
def test_a_budget_that_an_older_version_opened_is_found(ledger: Ledger, folder: Path, old: str, source: Any) -> None:
    os.symlink("people.csv", "link.csv")
    ledger._append(Question(old), lambda tx: budget_policy.register(tx, old, 1.0, 0.0, "person, add-remove"))
    assert spend(ledger, rows(source)).name == old
    assert ledger.datasets() == [old] and left(ledger) == [0.75]
    assert spend(ledger, rows(source)).name == old  # now by what it stands for


def test_no_budget_of_an_older_version_is_a_second_one_for_a_table(ledger: Ledger, folder: Path) -> None:
    spend(ledger, rows("people.csv"))
    ledger._append(Question("old"), lambda tx: budget_policy.register(tx, "old", 1.0, 0.0, "person, add-remove"))
    with pytest.raises(InvalidValue, match=r"account='old': must be 'people\.csv'.*pass account='people\.csv', or"):
        spend(ledger, rows("people.csv"), account="old")
    assert left(ledger, "people.csv", "old") == [0.75, 1.0]


def test_two_budgets_that_stand_for_one_table_both_pay(ledger: Ledger, folder: Path) -> None:
    """As those of two processes that opened them at the same time do."""
    ledger.register("two", 1.0, unit=unit_of(rows("people.csv")))
    spend(ledger, rows("people.csv"), account="one")
    ledger.attach("two", [text for piece in pieces_of(open_source("people.csv")) for text in piece.kept])
    for name in ("one", "two"):
        spend(ledger, rows("people.csv"), account=name)
    assert left(ledger, "one", "two") == [0.25, 0.5]


def test_a_budget_that_another_process_opens_meanwhile_pays_too(
    ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rows("people.csv")
    study = Study(made, epsilon=1.0, ledger=ledger, account="slow")
    ledger.register("slow", 1.0, unit=unit_of(made))
    attach = Ledger.attach

    def late(self: Ledger, name: str, *about: Any) -> Any:
        monkeypatch.setattr(Ledger, "attach", attach)
        spend(ledger, rows("people.csv"), account="quick")
        return attach(self, name, *about)

    plan = study.plan(count(), epsilon=0.25)
    monkeypatch.setattr(Ledger, "attach", late)
    plan.release()
    assert left(ledger, "quick", "slow") == [0.5, 0.75]


def test_a_frame_belongs_to_the_account_that_its_name_was_registered_to(ledger: Ledger) -> None:
    frame = pa.table({"person": [1, 2], "age": [30, 41]})
    spend(ledger, rows(frame, name="crews"), account="staff")
    assert spend(ledger, rows(frame, name="Crews")).account == "staff"
    with pytest.raises(InvalidValue, match="account='another': must be 'staff'"):
        spend(ledger, rows(frame, name="crews"), account="another")
    spend(ledger, rows(frame), account="Staff")  # nothing says which frame that is
    assert left(ledger) == [0.25] and ledger.accounts()[0].sources == ("crews (frame)",)


def test_a_frame_that_nobody_named_is_planned_with_and_not_spent_on(ledger: Ledger) -> None:
    plan = Study(rows(pa.table({"person": [1, 2], "age": [30, 41]})), epsilon=1.0, ledger=ledger).plan(count())
    with pytest.raises(InvalidValue, match=r'account=None: must be given for a frame.*or name="\.\.\." to dataset'):
        plan.release()
    assert ledger.datasets() == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_where_a_link_leads_when_it_is_read_decides_who_pays(ledger: Ledger, folder: Path, ending: str) -> None:
    names = [f"{name}.{ending}" for name in ("here", "there")]
    for name in names:
        frame = pa.table({"person": ["1", "2"], "age": [30, 41]})
        (pq.write_table if ending == "parquet" else pa.csv.write_csv)(frame, name)
    spend(ledger, rows(names[1]))
    os.symlink(names[0], link := f"link.{ending}")
    study = Study(rows(link), epsilon=1.0, ledger=ledger, account="here")
    os.unlink(link)
    os.symlink(names[1], link)
    with pytest.raises(InvalidValue, match=rf"account='here': must be {names[1]!r}"):
        study.plan(count(), epsilon=0.25).release()
    assert left(ledger) == [0.75]


def test_a_linked_folder_is_no_way_round_a_pattern(ledger: Ledger, folder: Path) -> None:
    """Each of these was a second budget for files of the pattern."""
    for name in ("all/2024/visits.csv", "far/2025/visits.csv", "far/m-1.csv"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write(name)
    Study(rows("all/*/visits.csv"), epsilon=1.0, ledger=ledger, account="patients").register()
    os.symlink(folder / "far/2025", "all/2025")
    assert Study(rows("all/2025/visits.csv"), epsilon=1.0, ledger=ledger).name == "patients"
    Study(rows("all/2025/../m-*.csv"), epsilon=1.0, ledger=ledger, account="others").register()
    write("far/m-2.csv")
    for path in ("far/m-2.csv", "all/2025/../m-2.csv"):
        assert Study(rows(path), epsilon=1.0, ledger=ledger).name == "others"
    with pytest.raises(InvalidValue, match=r"must not go up \(\.\.\) below a pattern"):
        rows("all/*/../2024/visits.csv")


def test_a_further_pattern_of_known_files_is_listed(ledger: Ledger, folder: Path) -> None:
    for pattern in ("visits-*.csv", "./visits-*.csv", "visits-?.csv"):
        Study(rows(pattern), epsilon=1.0, ledger=ledger, account="patients").register()
    assert ledger.budget("patients").sources == ("visits-*.csv", "visits-?.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_another_working_folder_changes_no_table(folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """The rows of another file of the same name were read, and its people did not pay."""
    (folder / "other").mkdir()
    for name, ages in ((f"a.{ending}", [30, 41]), (f"other/a.{ending}", [30, 41, 52])):
        table = pa.table({"person": list(range(len(ages))), "age": ages})
        (pyarrow.csv.write_csv if ending == "csv" else pq.write_table)(table, name)
    made = rows(f"a.{ending}")
    monkeypatch.chdir(folder / "other")
    assert made.exact({"n": Count()})["n"] == 2

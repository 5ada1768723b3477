"""Are these the same people? The steward hears of it, nobody else does, and no release depends on it."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.errors import NotAllowed, SamePeople

PEOPLE = range(1_000, 1_800)


def written(path: Path, ids: range) -> ft.Dataset:
    rows = [(number, number % 90) for number in ids]
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("who", "age"))
            writer.writerows(rows)
    else:
        who, age = zip(*rows, strict=True)
        pq.write_table(pa.table({"age": age, "who": who}), path)
    return ft.dataset(str(path), unit="who", max_rows=1, schema={"age": (0, 110)})


def released(people: ft.Dataset, folder: Path, account: str | None = None) -> None:
    study = ft.Study(people, epsilon=1.0, ledger=folder / "study.db", account=account)
    study.plan(ft.count(), epsilon=0.1).release()
    study.close()


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    released(written(tmp_path / "visits.csv", PEOPLE), tmp_path, "patients")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ids", "share"), [("copy.parquet", PEOPLE, 1.0), ("may.csv", range(1_400, 1_900), 0.8)]
)
def test_a_copy_or_the_next_month_that_opens_an_account_is_pointed_out(
    patients: Path, name: str, ids: range, share: float
) -> None:
    with pytest.warns(
        SamePeople, match=f"of the units of {name} are in the account 'patients'.*account='patients'"
    ) as said:
        released(written(patients / name, ids), patients)
    assert len(said) == 1 and "not private" in str(said[0].message)
    assert said[0].filename == __file__  # the line that called farthing, not one inside it
    study = ft.Study(written(patients / f"again-{name}", ids), epsilon=1.0, ledger=patients / "study.db")
    first = next(each for each in study.same_people() if each.account == "patients")
    assert abs(first.share.value - share) < 0.03
    study.close()


@pytest.mark.slow
def test_strangers_and_tables_of_the_account_itself_are_no_news(patients: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamePeople)
        released(written(patients / "strangers.csv", range(5_000, 5_500)), patients)
        released(written(patients / "may.csv", PEOPLE), patients, "patients")
        released(written(patients / "may.csv", PEOPLE), patients)  # whose account is known now
        released(written(patients / "few.csv", range(1_000, 1_003)), patients)  # too few to tell


def test_nobody_but_a_curator_hears_of_it(patients: Path) -> None:
    with ft.open_ledger(patients / "study.db") as ledger:
        ledger.grant("patients", "bob", 0.5)
        people = written(patients / "visits.csv", PEOPLE)
        bob = ft.Study(people, epsilon=1.0, ledger=ledger.acting("bob", "analyst"), account="patients")
        with pytest.raises(NotAllowed):
            bob.same_people()


@pytest.mark.slow
def test_a_look_at_a_table_that_is_not_registered_leaves_nothing_in_the_account(patients: Path) -> None:
    with ft.open_ledger(patients / "study.db") as ledger:
        last = ledger.last()
        strangers = written(patients / "other.csv", range(5_000, 5_500))
        ft.Study(strangers, epsilon=1.0, ledger=ledger, account="patients").same_people()
        assert ledger.last() == last


@pytest.mark.slow
def test_a_table_is_not_advised_against_its_own_account(patients: Path) -> None:
    with pytest.warns(SamePeople):
        released(written(patients / "copy.parquet", PEOPLE), patients)
    with ft.open_ledger(patients / "study.db") as ledger:
        for name, account in (("visits.csv", None), ("next.csv", "patients"), ("copy.parquet", None)):
            study = ft.Study(written(patients / name, PEOPLE), epsilon=1.0, ledger=ledger, account=account)
            (other,) = study.same_people()
            assert other.account == ("patients" if study.name == "copy.parquet" else "copy.parquet")
            assert "2 budgets, which add up: 'patients' (oldest) and 'copy.parquet'; spend from one" in other.advice
        stranger = ft.Study(written(patients / "third.csv", PEOPLE), epsilon=1.0, ledger=ledger)
        assert [each.account for each in stranger.same_people()] == ["patients", "copy.parquet"]
        assert "account='patients'" in stranger.same_people()[0].advice

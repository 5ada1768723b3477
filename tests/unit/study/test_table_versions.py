"""Versions of tables have numbers, for curators and auditors; an analyst cannot tell one from another."""

from __future__ import annotations

from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidValue, NotAllowed, TableChanged
from farthing.study.release_list import release_list

SCHEMA = {"age": (0, 110)}


@pytest.mark.slow
def test_versions_are_numbered_as_they_came_and_shown_to_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"

    def asks(last: int, analyst: str | None = None, **options: object) -> ft.Study:
        file.write_text(f"age\n30\n{last}\n")
        lent = ledger if analyst is None else ledger.acting(analyst, "analyst")
        study = ft.Study(ft.dataset(file, schema=SCHEMA), epsilon=9.0, ledger=lent, account="people")
        study.plan(ft.count(), epsilon=0.1).release(**options)
        return study

    with ft.open_ledger(tmp_path / "study.db", actor="ada") as ledger:
        asks(41, title="first")
        ledger.grant("people", "bob", 1.0)
        bob = asks(42, "bob", request_id="bob:1", title="second")
        asks(41, "bob", request_id="bob:2")
        with pytest.warns(TableChanged, match=r"as it was, version 1 of .*people\.csv\. Keep"):
            asks(43)
        study = asks(41)
        asks(44, fresh=True)
        records = release_list(ledger)
        assert [(each.version.number if each.version else 0, each.title, each.who) for each in records] == [
            (1, "first", "ada"),
            (2, "second", "bob"),
            (1, "count", "bob"),
            (3, "count", "ada"),
        ]
        assert [each.version for each in release_list(ledger, "people", last=1)] == [records[-1].version]
        assert study.version() == records[-1].version and records[0].to_dict()["statistics"] == ["count"]
        file.write_text("age\n77\n")
        assert study.version() is None  # nothing was charged for it

        # An analyst sees notes that differ and have one length, whether the table has changed or not.
        assert bob.version("bob:1") is None and [each.version for each in release_list(bob.ledger)] == [None, None]
        with pytest.raises(NotAllowed):
            bob.ledger.versions()
        notes = [entry.body["version"] for entry in bob.ledger.entries() if entry.kind == "charge"]
        assert len(set(notes)) == 2 and len(set(map(len, notes))) == 1
        assert "version" not in str(bob.released("bob:1").to_dict())
        with pytest.raises(InvalidValue):
            study.plan(ft.count(), epsilon=0.2).release(title=" no ")
        assert ledger.verify().ok


def test_frames_of_two_accounts_have_versions_of_their_own(tmp_path: Path) -> None:
    import pyarrow as pa

    with ft.open_ledger(tmp_path / "study.db") as ledger:
        for account in ("one", "two"):
            rows = ft.dataset(pa.table({"age": [len(account), 4]}), schema=SCHEMA)
            ft.Study(rows, epsilon=1.0, ledger=ledger, account=account).plan(ft.count()).release()
        versions = [each.version for each in release_list(ledger)]
    assert [version.number for version in versions if version] == [1, 1]

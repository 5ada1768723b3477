"""Opening and making ledgers: addresses, several makers at once, and what is refused."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest

from farthing.errors import InvalidValue, LedgerTampered, LedgerUnavailable
from farthing.ledger import ledger_access, open_ledger
from farthing.ledger.ledger_access import store_of


@pytest.mark.parametrize(
    "url",
    [
        "",
        ":memory:",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://u@h/d",
        "duckdb:///x",
        "http://[",
        "a\0b",
        5,
        None,
    ],
)
def test_only_files_and_postgres_are_ledgers(url: str) -> None:
    with pytest.raises(InvalidValue):
        open_ledger(url)


def test_a_password_is_in_no_message_and_no_repr() -> None:
    with pytest.raises(InvalidValue) as error:
        open_ledger("mysql://user:hunter2@host/d")
    assert "hunter2" not in str(error.value)
    for address in ("user:hunter2@host/d", "user@host/d?password=hunter2", "user@host/d?sslpassword=hunter2"):
        assert "hunter2" not in store_of(f"postgresql://{address}", 1.0).name
    for address in (
        "mysql://u@h/d?password=hunter2",
        "postgresql://u:p@hunter2@h/d",
        "postgresql://u:hunter2@h\0",
    ):
        with pytest.raises(InvalidValue) as error:
            store_of(address, 1.0)
        assert "hunter2" not in str(error.value) and "hunter2" not in str(error.value.value)
    with pytest.raises(LedgerUnavailable) as unreachable:
        open_ledger("postgresql://user:hunter2@127.0.0.1:1/d", timeout=1)
    assert "hunter2" not in str(unreachable.value) and unreachable.value.__cause__ is None


def test_a_path_may_be_text_a_path_or_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    identity = open_ledger("stu dy?%20#.db").id
    (tmp_path / "elsewhere").mkdir()
    for url in (tmp_path / "stu dy?%20#.db", "./stu dy?%20#.db", "sqlite:///stu dy%3F%2520#.db"):
        with open_ledger(url, create=False) as ledger:
            assert ledger.id == identity
    (tmp_path / "link.db").symlink_to(tmp_path / "stu dy?%20#.db")
    with open_ledger("link.db", create=False) as ledger:
        monkeypatch.chdir(tmp_path / "elsewhere")
        ledger.register("people", 1.0)
    assert not os.listdir(tmp_path / "elsewhere")


@pytest.mark.parametrize("wrong", [{"role": "king"}, {"actor": ""}, {"actor": 5}, {"timeout": 0}, {"timeout": "1"}])
def test_what_is_no_actor_role_or_timeout_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        open_ledger(tmp_path / "a.db", **wrong)  # type: ignore[arg-type]
    assert not os.listdir(tmp_path)


def test_names_and_answers_may_be_text_of_any_kind(tmp_path: Path) -> None:
    class Name(str):
        """As NumPy and enums have."""

    with open_ledger(tmp_path / "a.db", actor=Name("ada"), role=Name("curator")) as ledger:
        ledger.register(Name("people"), 1.0, unit=Name("row"))
        ledger.grant("people", Name("bob"), 0.5)
        charge = ledger.charge(Name("people"), 0.1, request_id=Name("r-1"), analyst=Name("bob"))
        ledger.release(charge, Name("41"))
        assert ledger.stored("r-1").answer == "41" and ledger.verify().ok  # type: ignore[union-attr]
        assert list(ledger.entries(since=10**30)) == []


def test_two_spellings_that_look_the_same_are_one_budget(tmp_path: Path) -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    with open_ledger(tmp_path / "a.db") as ledger:
        ledger.register(composed, 1.0, unit=apart)
        with pytest.raises(InvalidValue, match="registered already"):
            ledger.register(apart, 1.0)
        ledger.charge(apart, 0.5, request_id=apart)
        assert ledger.charge(composed, 0.5, request_id=composed).repeated
        assert ledger.budget(composed).unit == apart  # whose words are compared with a dataset's
        ledger.grant(apart, apart, 0.5)
    with open_ledger(tmp_path / "a.db", actor=composed, role="analyst") as ledger:
        assert ledger.charge(apart, 0.1, request_id="r-1", analyst=apart).analyst == composed


def test_refusing_to_make_a_ledger_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable):
        open_ledger(tmp_path / "a.db", create=False)
    with pytest.raises(LedgerUnavailable, match="directory"):
        open_ledger(tmp_path / "nowhere" / "a.db")
    assert not os.listdir(tmp_path)


def _opened(path: str, gate: object) -> str:
    gate.wait()  # type: ignore[attr-defined]
    with open_ledger(path) as ledger:
        return ledger.id


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_many_who_make_a_ledger_at_once_make_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for attempt in range(3):
        with context.Manager() as manager, context.Pool(6) as pool:
            gate = manager.Barrier(6)
            found = pool.starmap(_opened, [(str(tmp_path / f"{attempt}.db"), gate)] * 6)
        assert len(set(found)) == 1
        with open_ledger(tmp_path / f"{attempt}.db") as ledger:
            assert [entry.kind for entry in ledger.entries()] == ["created"]


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.execute("CREATE TABLE people (age INTEGER)")
    other.close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(LedgerUnavailable, match="a database of something else"):
        open_ledger(tmp_path / "a.db")
    assert (tmp_path / "a.db").read_bytes() == before  # not even the kind of its journal
    (tmp_path / "b.db").write_text("These are notes and not a database. " * 100, encoding="utf-8")
    with pytest.raises(LedgerTampered, match="is not a ledger"):
        open_ledger(tmp_path / "b.db")
    assert sorted(os.listdir(tmp_path)) == ["a.db", "b.db"]


def test_a_file_left_empty_by_a_maker_who_died_becomes_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"")
    (tmp_path / "a.db.key").write_text("ab" * 32 + "\n", encoding="ascii")
    with open_ledger(tmp_path / "a.db") as ledger:
        assert ledger.verify().ok
    assert (tmp_path / "a.db.key").read_text(encoding="ascii") == "ab" * 32 + "\n"


def test_entries_are_exported_as_json_lines(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.db", actor="ada") as ledger:
        ledger.register("people", 1.0)
        file = io.StringIO()
        assert ledger.export(tmp_path / "out.jsonl") == ledger.export(file) == 2
        lines = [json.loads(line) for line in file.getvalue().splitlines()]
        assert [line["kind"] for line in lines] == ["created", "dataset"] and lines[1]["actor"] == "ada"
        assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == file.getvalue()
        assert [entry.kind for entry in ledger.entries(since=1)] == ["dataset"]
        assert list(ledger.entries("nobody")) == []


def test_a_ledger_of_another_format_is_left_to_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (1, 4):
        path = tmp_path / f"{other}.db"
        monkeypatch.setattr(ledger_access, "FORMAT", other)
        monkeypatch.setattr(ledger_access, "_READ", (other,))
        open_ledger(path).close()
        monkeypatch.undo()
        with sqlite3.connect(path) as store:  # whose tables need not be like ours
            store.execute("ALTER TABLE farthing_entries DROP COLUMN totals")
        store.close()
        with pytest.raises(LedgerUnavailable, match=f"it has format {other} and this farthing reads formats 2 and 3"):
            open_ledger(path)


@pytest.mark.parametrize("sequence", [0, -1, -(2**63)])
def test_an_entry_before_the_first_is_found(tmp_path: Path, sequence: int) -> None:
    place = tmp_path / "study.db"
    with open_ledger(place) as ledger:
        ledger.register("people", 1.0)
        ledger.charge("people", 0.1, request_id="r-1")
        file = sqlite3.connect(place, isolation_level=None)
        file.execute(
            "INSERT INTO farthing_entries SELECT ?, kind, dataset, analyst, actor, role, time_ns, 'r-2', body, totals, "
            "previous, mac FROM farthing_entries WHERE request_id = 'r-1'",
            (sequence,),
        )
        file.close()
        assert not ledger.verify().ok
    with pytest.raises(LedgerTampered, match="before the first"):
        open_ledger(place)


def test_who_acts_is_fixed_when_the_ledger_is_opened(tmp_path: Path) -> None:
    open_ledger(tmp_path / "a.db", actor="ada").close()
    with open_ledger(tmp_path / "a.db", actor="bob", role="analyst") as ledger:
        for name, value in (("role", "curator"), ("actor", "ada")):
            with pytest.raises(AttributeError):
                setattr(ledger, name, value)
        assert (ledger.actor, ledger.role) == ("bob", "analyst")


@pytest.mark.parametrize("ending", ["", "-wal", ".key", ".witness"])
def test_an_export_does_not_overwrite_the_ledger(tmp_path: Path, ending: str) -> None:
    with open_ledger(tmp_path / "a.db") as ledger:
        (tmp_path / "link").symlink_to(tmp_path / f"a.db{ending}")
        before = (tmp_path / f"a.db{ending}").read_bytes()
        for target in (str(tmp_path / f"a.db{ending}"), tmp_path / "link"):
            with pytest.raises(InvalidValue, match="must not be a file of the ledger"):
                ledger.export(target)
        assert (tmp_path / f"a.db{ending}").read_bytes() == before


def test_links_in_a_circle_are_a_clean_refusal(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(LedgerUnavailable):
        open_ledger(tmp_path / "a.db")


def test_opening_tells_how_far_it_is(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.db") as ledger:
        ledger.register("people", 1.0)
    told: list[tuple[int, int]] = []
    open_ledger(tmp_path / "a.db", progress=lambda done, total: told.append((done, total))).close()
    assert told[-1] == (2, 2)


def test_what_opening_verified_need_not_be_verified_again(tmp_path: Path) -> None:
    place = tmp_path / "study.db"
    with open_ledger(place) as ledger:
        ledger.register("people", 1.0)
        assert ledger.opening.entries == 1
    (tmp_path / "study.db.key").chmod(0o644)
    with open_ledger(place) as ledger:
        assert ledger.opening == ledger.verify()
        assert ledger.opening.ok and ledger.opening.entries == 2 and ledger.opening.notes

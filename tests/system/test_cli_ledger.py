"""`farthing ledger` shows what is there, changes budgets, and says by its exit code whether the ledger is whole."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from farthing.cli.commands import main
from farthing.errors import BudgetExceeded
from farthing.ledger import open_ledger
from farthing.privacy import ApproxDP, Composed, GaussianNoise


def run(*words: str | Path) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["ledger", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def filled(path: Path) -> Path:
    """A ledger with a budget, a grant, a reserve, two answers, a charge that waits, and a refusal."""
    with open_ledger(path, actor="ada") as ledger:
        ledger.register("census", 1.0, 1e-9, unit="row, add-remove")
        ledger.grant("census", "bob", 0.4)
        ledger.reserve("census", 0.2, name="publication")
        ledger.release(ledger.charge("census", 0.1, request_id="r-1"), "1")
        ledger.release(ledger.charge("census", 0.1, request_id="r-2", analyst="bob"), "2")
        ledger.charge("census", 0.05, request_id="r-3")
        with pytest.raises(BudgetExceeded):
            ledger.charge("census", 5.0, request_id="r-4")
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return filled(tmp_path / "study.db")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One ledger for all tests that must not change it."""
    path = filled(tmp_path_factory.mktemp("ledger") / "study.db")
    with open_ledger(path) as ledger:
        before = ledger.verify()
    yield path
    with open_ledger(path) as ledger:
        assert ledger.verify() == before


@pytest.mark.slow
def test_show_tells_budgets_grants_and_the_last_entries(kept: Path) -> None:
    code, out, _ = run("show", kept)
    lines = out.splitlines()
    assert code == 0 and "10 entries, verified" in lines[0]
    assert "census 1 1e-09 0.25 0.05 0.2 0.55 3 row, add-remove" in [" ".join(line.split()) for line in lines]
    assert "census / bob 0.4 0 0.1 0 0 0.3 1 row, add-remove" in [" ".join(line.split()) for line in lines]
    assert any("refused" in line and "r-4" in line and line.split()[-1] == "5" for line in lines)


def test_a_charge_to_two_budgets_is_shown_with_both(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        for name in ("flights", "planes"):
            ledger.register(name, 1.0)
        ledger.charge("flights", 0.1, request_id="both", others=["planes"])
    _, out, _ = run("show", tmp_path / "study.db")
    (line,) = [line for line in out.splitlines() if "both" in line]
    assert "flights + planes" in line


def test_show_breaks_no_word_in_a_terminal_of_80_columns(tmp_path: Path) -> None:
    path, name, request = tmp_path / "a.db", "national health survey 2026", "income by region, first version"
    with open_ledger(path, actor="ada lovelace") as ledger:
        ledger.register(name, 2.0, 1e-6)
        ledger.reserve(name, 0.25, name="publication")
        ledger.charge(name, 0.1234567, request_id=request)
        ledger.forfeit(ledger.charge(name, 0.5, request_id="x"), "the engine died")
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["ledger", "show", str(path)]).output
    lines = shown.splitlines()[1:]  # the first one is a sentence
    assert max(map(len, lines)) <= 80
    for word in {*name.split(), *request.split(), "lovelace", "forfeited", "0.123457", "0.25 is set aside"}:
        assert word in shown
    assert "waits for its answer" in shown and "2026-" in shown


def test_show_as_json_has_both_sides_of_what_was_spent(kept: Path) -> None:
    code, out, _ = run("show", "--ledger", kept, "census", "--json", "--entries", "2")
    data = json.loads(out)
    whole, bob = data["budgets"]
    assert code == 0 and data["entries"] == 10
    assert whole["total"] == {"epsilon": 1.0, "delta": 1e-9} and whole["unit"] == "row, add-remove"
    assert 0.2 <= whole["spent"]["lower"] <= whole["spent"]["upper"] == 0.25
    assert whole["reserved"] == 0.05 and whole["withheld"] == {"publication": {"epsilon": 0.2, "delta": 0.0}}
    assert whole["remaining"]["epsilon"] == 0.55 and bob["analyst"] == "bob"
    assert [entry["kind"] for entry in data["last"]] == ["charge", "refused"]


@pytest.mark.slow
def test_show_draws_how_the_budget_was_used_up(kept: Path, tmp_path: Path) -> None:
    code, out, _ = run("show", kept, "--plot", tmp_path / "burn.svg")
    drawn = (tmp_path / "burn.svg").read_text(encoding="utf-8")
    assert code == 0 and "Picture:" in out
    assert "25% of the budget of 'census' is spent" in drawn and "3 charges, 1 refused" in drawn


@pytest.mark.slow
def test_a_picture_shows_one_dataset(place: Path, tmp_path: Path) -> None:
    with open_ledger(place) as ledger:
        ledger.register("other", 1.0)
    code, _, said = run("show", place, "--plot", tmp_path / "burn.svg")
    assert code == 2 and "can show one dataset, not 2; name one of census, other" in said
    assert run("show", place, "other", "--plot", tmp_path / "burn.svg")[0] == 0


@pytest.mark.slow
def test_the_history_of_a_long_ledger_is_thinned_and_ends_at_the_present(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from farthing.cli import ledger_command as ledger_history

    monkeypatch.setattr(ledger_history, "MOST", 4)
    with open_ledger(place) as ledger:
        for number in range(40):
            ledger.charge("census", 0.001, request_id=f"more-{number}")
        moments = ledger_history.moments_of(ledger, "census")
        assert len(moments) < 14 and moments[-1].spent == ledger.budget("census").spent_upper
    assert [moment.kind for moment in moments][:2] == ["dataset", "reserve"]
    assert [moment.sequence for moment in moments] == sorted({moment.sequence for moment in moments})


def test_a_ledger_without_datasets_says_how_to_begin(tmp_path: Path) -> None:
    open_ledger(tmp_path / "study.db").close()
    code, out, _ = run("show", tmp_path / "study.db")
    assert code == 0 and "1 entry, verified" in out and "budget set ... --new" in out


@pytest.mark.slow
def test_budgets_are_made_raised_granted_and_set_aside(tmp_path: Path) -> None:
    place = tmp_path / "new.db"
    code, _, said = run("budget", "set", place, "census", "--epsilon", "1")
    assert code == 1 and "there is no ledger" in said and not place.exists()
    code, out, _ = run("budget", "set", place, "census", "--epsilon", "1", "--new", "--unit", "row, add-remove")
    assert (code, out) == (0, "budget of census: epsilon 1, delta 0; spent 0, left 1\n")
    code, out, _ = run("budget", "set", place, "census", "--epsilon", "2", "--delta", "1e-9", "--as", "ada")
    assert (code, out) == (0, "budget of census: epsilon 2, delta 1e-09; spent 0, left 2\n")
    code, out, _ = run("grant", "-l", place, "census", "bob", "--epsilon", "0.5")
    assert (code, out) == (0, "grant of bob in census: epsilon 0.5, delta 0; spent 0, left 0.5\n")
    code, out, _ = run("reserve", place, "census", "--epsilon", "0.25", "--name", "publication")
    assert (code, out) == (
        0,
        "publication set aside in census: epsilon 2, delta 1e-09; spent 0, set aside 0.25, left 1.75\n",
    )
    code, out, _ = run("reserve", place, "census", "--epsilon", "0", "--name", "publication", "--json")
    assert code == 0 and json.loads(out)["withheld"] == {}
    with open_ledger(place) as ledger:
        entries = list(ledger.entries())
    assert [entry.kind for entry in entries] == [
        "created",
        "dataset",
        "budget",
        "grant",
        "reserve",
        "reserve",
    ]
    assert entries[2].actor == "ada" and entries[2].body["raised"] is True


def test_a_delta_that_is_left_out_stays_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "new.db"
    run("budget", "set", place, "census", "--epsilon", "2", "--delta", "1e-6", "--new")
    with open_ledger(place) as ledger:
        ledger.charge("census", (0.5, 1e-8), request_id="r-1")
    code, out, _ = run("budget", "set", place, "census", "--epsilon", "4")
    assert (code, out) == (0, "budget of census: epsilon 4, delta 1e-06; spent 0.5, left 3.5\n")
    code, _, said = run("budget", "set", place, "census", "--epsilon", "4", "--delta", "0")
    assert code == 2 and "too small for what was spent" in said and "say a delta of 1.6e-07 or more" in said
    run("grant", place, "census", "bob", "--epsilon", "1", "--delta", "1e-7")
    code, out, _ = run("grant", place, "census", "bob", "--epsilon", "2")
    assert (code, out) == (0, "grant of bob in census: epsilon 2, delta 1e-07; spent 0, left 2\n")


@pytest.mark.parametrize(
    "event",
    [0.8, (0.4, 1e-5), GaussianNoise(2.0), Composed(((GaussianNoise(20.0), 13), (ApproxDP(0.5), 2)))],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_a_refusal_offers_is_typed_and_then_it_fits(tmp_path: Path, event: Any, delta: float) -> None:
    with open_ledger(tmp_path / "my study.db") as ledger:
        ledger.register("census", 1.0, delta)
        ledger.reserve("census", 0.4)
        ledger.grant("census", "bob", 0.3)
        ledger.charge("census", 0.1, request_id="r-1", analyst="bob")
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.charge("census", event, request_id="r-2", analyst="bob")
        told = str(refusal.value)
        assert "budget 'census'" in told and "the grant of 'bob' in 'census'" in told
        raises = re.findall(r"in all: farthing ledger (.+? --epsilon [^ ;]+(?: --delta [^ ;]+)?)(?:;|\.$)", told)
        assert [words.split()[0] for words in raises] == ["budget", "grant"]
        for words in raises:
            assert run(*shlex.split(words))[0] == 0
        assert ledger.charge("census", event, request_id="r-2", analyst="bob").state == "reserved"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("budget", "set", "PLACE", "cenzus", "--epsilon", "1"), "must be in the ledger; it has census"),
        (("budget", "set", "PLACE", "census", "--epsilon", "nan"), "must be a plain number"),
        (("budget", "set", "PLACE", "census", "--epsilon", "-1"), "must be a plain number|must be"),
        (("budget", "set", "PLACE", "census", "--epsilon", "1", "--delta", "2"), "must be >= 0 and < 1"),
        (("budget", "set", "PLACE", "census", "--epsilon", "1", "--new"), "must not be registered already"),
        (("budget", "set", "PLACE", "census", "--epsilon", "1", "--unit", "row"), "is for --new"),
        (("grant", "PLACE", "census", "--epsilon", "1"), "write LEDGER DATASET ANALYST"),
        (("show",), "write LEDGER"),
        (("show", "PLACE", "census", "more"), "write LEDGER"),
        (("show", "PLACE", "--entries", "x"), "must be a whole number"),
        (("show", "PLACE", "--plot", "x.pdf"), "must end in .svg"),
        (("receipt", "PLACE", "r-9"), "must have been charged in this ledger"),
        (("verify", "PLACE", "--receipt", "nowhere.json"), "cannot be read"),
        (("export", "PLACE", "--out", "PLACE"), "exists already"),
        (("export", "PLACE", "--out", "nowhere/x.jsonl"), "cannot be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_written_wrongly_is_refused_with_code_2_and_changes_nothing(
    kept: Path, words: tuple[str, ...], rule: str
) -> None:
    code, _, said = run(*(str(kept) if word == "PLACE" else word for word in words))
    assert code == 2 and any(part in said for part in rule.split("|")), said


def test_a_receipt_is_fetched_kept_and_found_again(place: Path, tmp_path: Path) -> None:
    code, out, _ = run("receipt", place, "r-1", "-o", tmp_path / "r.json")
    assert code == 0 and "receipt of request r-1" in out
    assert json.loads(run("receipt", place, "r-1")[1]) == json.loads((tmp_path / "r.json").read_text("utf-8"))
    code, out, _ = run("verify", place, "--receipt", tmp_path / "r.json")
    assert code == 0 and "10 entries, verified" in out and "in the ledger, with everything before it" in out


def test_a_ledger_that_was_cut_short_is_found_by_a_receipt(place: Path, tmp_path: Path) -> None:
    """An old copy verifies by itself; the receipt of a later entry shows that it is old."""
    with open_ledger(place) as ledger:
        pass
    old = sqlite3.connect(place)
    copy = sqlite3.connect(tmp_path / "old.db")
    old.backup(copy)
    copy.close()
    old.close()
    with open_ledger(place) as ledger:
        ledger.release(ledger.charge("census", 0.1, request_id="later"), "3")
        receipt = ledger.receipt("later")
        assert receipt is not None
        receipt.save(tmp_path / "r.json")
    for ending in ("", "-wal", "-shm", ".witness"):
        Path(f"{place}{ending}").unlink(missing_ok=True)
    (tmp_path / "old.db").rename(place)
    assert run("verify", place)[0] == 0
    code, out, _ = run("verify", place, "--receipt", tmp_path / "r.json")
    assert code == 1 and "DOES NOT VERIFY" in out and "cut short or is an older copy" in out
    code, out, _ = run("verify", place, "--receipt", tmp_path / "r.json", "--json")
    data = json.loads(out)
    assert code == 1 and data["ok"] is False and data["receipts"][0]["ok"] is False


def test_an_edited_ledger_does_not_verify_and_shows_nothing(place: Path) -> None:
    with sqlite3.connect(place) as database:
        database.execute("DROP TRIGGER farthing_entries_no_update")
        database.execute("UPDATE farthing_entries SET actor = 'eve' WHERE sequence = 5")
    database.close()
    code, out, _ = run("verify", place)
    assert code == 1 and "DOES NOT VERIFY: entry 5 does not carry the signature" in out
    code, out, _ = run("verify", place, "--json")
    assert code == 1 and json.loads(out)["problems"][0].startswith("entry 5")
    for words in (("show", place), ("export", place), ("budget", "set", place, "census", "--epsilon", "9")):
        code, out, said = run(*words)
        assert (code, out) == (1, "") and said.startswith("Error: entry 5")


def test_export_writes_one_line_an_entry(kept: Path, tmp_path: Path) -> None:
    code, out, _ = run("export", kept)
    entries = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [entry["sequence"] for entry in entries] == list(range(1, 11))
    code, out, _ = run("export", kept, "-o", tmp_path / "all.jsonl", "--json")
    assert code == 0 and json.loads(out)["entries"] == 10
    assert len((tmp_path / "all.jsonl").read_text("utf-8").splitlines()) == 10


def test_another_key_does_not_open_it(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "other.key").write_text("ab" * 32, encoding="ascii")
    code, _, said = run("show", kept, "--key", tmp_path / "other.key")
    assert code == 1 and "the key is not this ledger's" in said


def test_a_password_in_an_address_is_not_shown() -> None:
    code, out, said = run("show", "postgresql://ada:hunter2@127.0.0.1:1/registry")
    assert code == 1 and "hunter2" not in out + said


@pytest.mark.slow
def test_files_are_registered_to_an_account_and_listed_with_it(tmp_path: Path) -> None:
    place = tmp_path / "study.db"
    unit = ("--unit", "person, add-remove")
    assert run("budget", "set", place, "patients", "--epsilon", "1", "--new", *unit)[0] == 0
    assert run("budget", "set", place, "others", "--epsilon", "1", "--new", *unit)[0] == 0
    for name in ("visits-1.csv", "visits-2.csv", "export.csv"):
        (tmp_path / name).write_text("person,cost\n" + "".join(f"{n},1\n" for n in range(400)))
    code, out, err = run("register", place, "patients", tmp_path / "visits-*.csv")
    assert code == 0 and "visits-*.csv" in out and "units" not in err
    code, _, err = run("register", place, "others", tmp_path / "export.csv")
    assert code == 0 and "are in the account 'patients'" in err  # for the steward, on standard error
    code, _, err = run("register", place, "others", tmp_path / "visits-2.csv")
    assert code == 2 and "must be 'patients'" in err and "a table belongs to one account" in err
    (tmp_path / "names.csv").write_text("name\nada\n")
    assert run("register", place, "patients", tmp_path / "names.csv")[0] == 2  # which has no such unit
    listed = json.loads(run("accounts", place, "--json")[1])
    assert [(one["dataset"], [Path(file).name for file in one["sources"]]) for one in listed] == [
        ("others", ["export.csv"]),
        ("patients", ["visits-*.csv"]),
    ]
    code, out, _ = run("accounts", place)
    assert code == 0 and "patients: protects person, add-remove" in out and "epsilon 1, delta 0; spent 0, left 1" in out
    assert run("register", place, "patients")[0] == 2 and run("register", place, "nobody", "x.csv")[0] == 2

"""The ledger knows the dataset of a release: other machines, later releases and servers find it, and make no second."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dataverse_server import TOKEN, State, serving, shape_of
from farthing import count
from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.ledger import Ledger, deposit_records, open_ledger
from farthing.publication.bundle import Files
from farthing.publication.dataverse import Dataverse
from farthing.publication.deposit import Deposited, DepositPlan, NotesFile, deposit
from farthing.publication.deposit_ledger import LedgerNotes
from farthing.publication.edition import Edition
from farthing.publication.publisher import publication_files
from farthing.study import Release, Study
from farthing.study.reports.release_report import report_page
from publications import form, release_of, study_in

pytestmark = pytest.mark.slow
PLAN = DepositPlan("birds")
KEPT = ("tables/01-count-by-sex.csv", "release.json", "manifest.json")


class Stopped(Exception):
    """The program was ended."""


def stop(_: float) -> None:
    raise Stopped


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return study_in(tmp_path)


def made_of(study: Study, release: Release, **changes: object) -> tuple[Edition, Files]:
    """A small one: what is deposited is files, and each costs three calls."""
    edition, files = publication_files(release, form(**changes), ledger=study.ledger, report=report_page)
    return edition, {path: content for path, content in files.items() if path in KEPT or path.startswith("tables/01")}


def deposited(
    made: tuple[Edition, Files], url: str, ledger: Ledger, machine: Path, plan: DepositPlan = PLAN, **options: object
) -> Deposited:
    """As on a machine whose notes are in a folder of its own."""
    machine.mkdir(exist_ok=True)
    server = Dataverse(url, TOKEN, sleep=options.pop("sleep", lambda _: None), timeout=30.0)  # type: ignore[arg-type]
    try:
        return deposit(*made, server, plan, LedgerNotes(ledger, made[0], NotesFile(machine / "deposit.json")))
    finally:
        server.close()


def test_another_machine_finds_the_dataset_in_the_ledger(study: Study, tmp_path: Path) -> None:
    made, state = made_of(study, release_of(study)), State()
    with serving(state) as url:
        first = deposited(made, url, study.ledger, tmp_path / "one")
        before = Counter(call.name for call in state.calls if call.method != "GET")
        again = deposited(made, url, study.ledger, tmp_path / "two")
    assert again.persistent_id == first.persistent_id and again.uploaded == 0
    assert Counter(call.name for call in state.calls if call.method != "GET") == before
    assert len(state.datasets) == 1 and state.faults == []
    assert {each.persistent_id for each in study.ledger.deposits.all()} == {"", first.persistent_id}
    assert study.ledger.verify().ok and study.ledger.budget("patients").count == 1
    assert TOKEN.encode() not in (tmp_path / "study.db").read_bytes()


def test_a_later_release_is_a_new_version_and_has_the_earlier_receipts(study: Study, tmp_path: Path) -> None:
    first = made_of(study, release_of(study, epsilon=0.2))
    later = study.plan(count(by="sex"), epsilon=0.2).release()
    assert made_of(study, later, version=2)[0].earlier == ()  # the first was deposited nowhere
    state = State()
    with serving(state) as url:
        one = deposited(first, url, study.ledger, tmp_path / "one")
        other = deposited(made_of(study, later, title="Something else"), url, study.ledger, tmp_path / "three")
        second = made_of(study, later, version=2)
        two = deposited(second, url, study.ledger, tmp_path / "two")
    assert two.persistent_id == one.persistent_id != other.persistent_id and len(state.datasets) == 2
    assert second[0].earlier == (first[0].receipt,)
    assert made_of(study, later, version=2)[0] == second[0]  # the same again
    assert state.faults == []


def test_an_earlier_bundle_leads_to_its_dataset_under_another_title(study: Study, tmp_path: Path) -> None:
    first = made_of(study, release_of(study, epsilon=0.2))
    edition, files = made_of(study, study.plan(count(by="sex"), epsilon=0.2).release(), title="In 2027", version=2)
    with serving(State()) as url:
        one = deposited(first, url, study.ledger, tmp_path / "one")
        renamed = replace(edition, earlier=(first[0].receipt,))
        two = deposited((renamed, files), url, study.ledger, tmp_path / "two")
    assert two.persistent_id == one.persistent_id


@pytest.mark.parametrize("trouble", ["after", "before"])
def test_what_one_machine_left_another_continues(trouble: str, study: Study, tmp_path: Path) -> None:
    """Stopped at each call in turn: the other machine makes no second dataset and uploads nothing twice."""
    made, wanted = made_of(study, release_of(study)), State()
    ledgers = tmp_path.with_name(f"{tmp_path.name}-ledgers")
    shutil.copytree(tmp_path, ledgers)
    with serving(wanted) as url:
        deposited(made, url, study.ledger, tmp_path / "whole")
    for number in range(len(wanted.calls)):
        folder = tmp_path / f"{trouble}-{number}"
        shutil.copytree(ledgers, folder)
        state = State(trouble={number: trouble})
        with open_ledger(folder / "study.db") as ledger, serving(state) as url:
            with pytest.raises((Stopped, FarthingError)):
                deposited(made, url, ledger, folder / "one", sleep=stop)
            deposited(made, url, ledger, folder / "two")
        assert state.faults == [] and len(state.datasets) == 1, number
        assert shape_of(state) == shape_of(wanted), number


def test_while_one_deposits_another_waits_and_takes_over_what_was_left(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, state = made_of(study, release_of(study)), State()
    refusals: list[str] = []

    with serving(state) as url:

        def meanwhile(path: str) -> None:
            if "uploaded" in path and not refusals:
                with pytest.raises(RequestRefused) as refusal:
                    deposited(made, url, study.ledger, tmp_path / "two")
                refusals.append(str(refusal.value))

        (tmp_path / "one").mkdir()
        place = LedgerNotes(study.ledger, made[0], NotesFile(tmp_path / "one" / "deposit.json"))
        server = Dataverse(url, TOKEN, sleep=lambda _: None)
        deposit(*made, server, PLAN, place, meanwhile)
        server.close()
        assert "somebody else is depositing this publication" in refusals[0]
        place.save(replace(place.load(url), state="uploading"))  # and is killed
        with pytest.raises(RequestRefused):
            deposited(made, url, study.ledger, tmp_path / "two")
        monkeypatch.setattr(deposit_records, "PATIENCE", 0)
        assert deposited(made, url, study.ledger, tmp_path / "two").uploaded == 0
    assert len(state.datasets) == 1 and state.faults == []


def test_a_dataset_that_is_not_there_is_not_kept(study: Study, tmp_path: Path) -> None:
    made, state = made_of(study, release_of(study)), State()
    with serving(state) as url:
        with pytest.raises((RequestRefused, InvalidValue)):
            deposited(made, url, study.ledger, tmp_path / "one", replace(PLAN, persistent_id="doi:10.5072/FK2/NO"))
        assert study.ledger.deposits.all() == []


def _process(made: tuple[Edition, Files], url: str, ledger: str, machine: Path, begin: float) -> None:
    time.sleep(max(0.0, begin - time.time()))
    for _ in range(200):
        with open_ledger(ledger) as own:
            try:
                deposited(made, url, own, machine)
                return
            except RequestRefused:
                time.sleep(0.05)
    raise AssertionError("it never got its turn")


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_processes_with_one_ledger_make_one_dataset(study: Study, tmp_path: Path) -> None:
    made, state = made_of(study, release_of(study)), State()
    study.close()
    begin, spawn = time.time() + 1.0, multiprocessing.get_context("fork")
    with serving(state) as url:
        processes = [
            spawn.Process(target=_process, args=(made, url, str(tmp_path / "study.db"), tmp_path / f"{n}", begin))
            for n in range(4)
        ]
        for each in processes:
            each.start()
        for each in processes:
            each.join(120)
    assert [each.exitcode for each in processes] == [0] * 4
    assert len(state.datasets) == 1 and state.faults == []
    added = [call for call in state.calls if call.path.endswith("/add")]
    assert len(added) == len(made[1])  # each file once
    with open_ledger(tmp_path / "study.db") as ledger:
        assert ledger.verify().ok

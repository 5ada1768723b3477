"""A deposit does each thing once, in the words of Dataverse, whatever is cut, refused or slow; and keeps its token."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dataverse_server import CUTS, TOKEN, State, faults_of, serving, shape_of
from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.publication.bundle import Files
from farthing.publication.dataverse import Dataverse, Interrupted, read_token
from farthing.publication.dataverse_metadata import dataset_of, external_tool, marker_of, variables_xml
from farthing.publication.deposit import Deposited, DepositNotes, DepositPlan, NotesFile, deposit
from farthing.publication.edition import Edition
from publications import SCHEMAS, files_in, form

pytestmark = pytest.mark.slow
PLAN = DepositPlan("birds", original=7, ingest=True, publish="major")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Edition, Files]:
    """A small one: what is deposited is files, and each costs three calls."""
    edition, files = files_in(tmp_path_factory.mktemp("publication"))
    kept = ("tables/01-count-by-sex.csv", "release.json", "ddi.xml", "manifest.json")
    return edition, {path: files[path] for path in kept}


def deposited(
    made: tuple[Edition, Files], url: str, notes: Path, plan: DepositPlan = PLAN, token: str = TOKEN, **options: Any
) -> Deposited:
    server = Dataverse(url, token, sleep=options.pop("sleep", lambda seconds: None), **{"timeout": 30.0, **options})
    try:
        return deposit(*made, server, plan, NotesFile(notes))
    finally:
        server.close()


def reference(made: tuple[Edition, Files], folder: Path) -> State:
    state = State()
    with serving(state) as url:
        deposited(made, url, folder / "reference.json")
    return state


def test_a_whole_deposit(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State(locks=3, publishing=2)
    said: list[float] = []
    with serving(state) as url:
        done = deposited(made, url, tmp_path / "notes.json", sleep=said.append)
        assert done.url == f"{url}/dataset.xhtml?persistentId={done.persistent_id}"
    assert state.faults == [] and done.published and done.uploaded == 4
    (one,) = state.datasets.values()
    assert {f"{each['directoryLabel']}/{each['name']}".strip("/"): each["content"] for each in one["files"]} == made[1]
    assert one["files"][-1]["name"] == "manifest.json"  # last: it says that all is there
    assert all(each["restrict"] == "false" for each in one["files"])
    assert set(state.auxiliary) == {(7, "dpJson", "v1"), (7, "dpXml", "v1")}
    assert state.auxiliary[7, "dpJson", "v1"] == made[1]["release.json"]
    (described,) = state.variables.values()
    assert b"any one row is protected" in described and b"standard error" in described
    names = [call.name for call in state.calls]
    assert names[0] == "POST /api/dataverses/birds/datasets"
    assert names.index("PUT /api/edit/N") < names.index("POST /api/datasets/:persistentId/actions/:publish")
    assert said.count(1.0) >= 3  # locks and publishing were waited for
    notes = json.loads((tmp_path / "notes.json").read_text())
    assert notes["persistent_id"] == done.persistent_id and notes["state"] == "published"
    assert TOKEN not in (tmp_path / "notes.json").read_text()


@pytest.mark.parametrize("created", [200, 201])
def test_both_status_codes_are_taken(created: int, made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State(created=created)
    with serving(state) as url:
        assert deposited(made, url, tmp_path / "notes.json").published
    assert shape_of(state) == shape_of(reference(made, tmp_path))


def test_a_second_deposit_does_nothing(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State()
    with serving(state) as url:
        first = deposited(made, url, tmp_path / "notes.json")
        before = len(state.calls)
        again = deposited(made, url, tmp_path / "notes.json")
        (tmp_path / "notes.json").unlink()
        third = deposited(made, url, tmp_path / "notes.json", replace(PLAN, persistent_id=first.persistent_id))
    assert again.uploaded == third.uploaded == 0 and again.persistent_id == third.persistent_id == first.persistent_id
    changes = Counter(call.name for call in state.calls[before:] if call.method != "GET")
    # Attaching says 409 and describing is the same again; nothing else is sent twice.
    assert set(changes) == {"POST /api/access/datafile/N/auxiliary/dpJson/v1", "PUT /api/edit/N"} | {
        "POST /api/access/datafile/N/auxiliary/dpXml/v1"
    }
    assert shape_of(state) == shape_of(reference(made, tmp_path)) and state.faults == []


def test_nothing_is_published_unless_told(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State()
    with serving(state) as url:
        done = deposited(made, url, tmp_path / "notes.json", DepositPlan("birds"))
    (one,) = state.datasets.values()
    assert one["state"] == "DRAFT" and not done.published and not state.auxiliary and not state.variables
    assert not any("publish" in call.path for call in state.calls)


CALLS = 30  # more than a deposit makes: the last ones show that nothing is left


@pytest.mark.parametrize("trouble", [*CUTS, "429", "503"])
def test_whatever_is_cut_or_busy_each_thing_is_done_once(
    trouble: str, made: tuple[Edition, Files], tmp_path: Path
) -> None:
    """At every call of a deposit: it goes on by itself, and the server holds what it holds without trouble."""
    wanted = reference(made, tmp_path)
    for number in range(len(wanted.calls)):
        state = State(trouble={number: trouble})
        with serving(state) as url:
            done = deposited(made, url, tmp_path / f"notes-{trouble}-{number}.json")
        assert done.published and state.trouble == {}
        assert state.faults == [], (trouble, number)
        assert shape_of(state) == shape_of(wanted), (trouble, number, wanted.calls[number].name)
        assert len(state.datasets) == 1


@pytest.mark.parametrize("trouble", CUTS)
def test_a_deposit_that_ended_half_way_is_continued(trouble: str, made: tuple[Edition, Files], tmp_path: Path) -> None:
    """The program ends at the trouble (the wait that follows is where it is stopped), and is run again."""

    class Stopped(Exception):
        """The program was ended."""

    def stop(seconds: float) -> None:
        raise Stopped

    wanted = reference(made, tmp_path)
    for number in range(len(wanted.calls)):
        state = State(trouble={number: trouble})
        notes = tmp_path / f"stopped-{trouble}-{number}.json"
        with serving(state) as url:
            with pytest.raises(Stopped):
                deposited(made, url, notes, sleep=stop)
            assert deposited(made, url, notes).published
        assert state.faults == [] and shape_of(state) == shape_of(wanted), (trouble, number)


@pytest.mark.parametrize(
    ("status", "said"),
    [("401", "token is not one"), ("403", "may not do this"), ("413", "larger than"), ("409", "Somebody")],
)
def test_a_refusal_says_what_to_do_and_keeps_the_token(
    status: str, said: str, made: tuple[Edition, Files], tmp_path: Path
) -> None:
    state = State(trouble={0: status})
    with serving(state) as url:
        with pytest.raises(RequestRefused, match=said) as refusal:
            deposited(made, url, tmp_path / "notes.json")
        assert TOKEN not in str(refusal.value) and "told to: ..." in str(refusal.value)
        assert not state.datasets
        assert deposited(made, url, tmp_path / "notes.json").published
    assert state.faults == [] and len(state.datasets) == 1


def test_a_server_that_stays_busy_is_given_up(made: tuple[Edition, Files], tmp_path: Path) -> None:
    waits: list[float] = []
    state = State(trouble=dict.fromkeys(range(40), "503"))
    with serving(state) as url, pytest.raises(Interrupted):
        deposited(made, url, tmp_path / "notes.json", sleep=waits.append)
    assert len(state.calls) <= 40 and waits and max(waits) <= 60.0 and waits[0] == 3.0  # as Retry-After says


def test_a_slow_answer_is_given_up_and_looked_for(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State(trouble={0: "slow"})
    with serving(state) as url:
        done = deposited(made, url, tmp_path / "notes.json", timeout=2.0)
    assert done.published and len(state.datasets) == 1 and state.faults == []


def test_a_new_version_replaces_what_changed(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State()
    newer = replace(made[0], publication=form(version=2))
    files = {**made[1], "release.json": b"{}\n", "manifest.json": b"{2}\n"}
    del files["ddi.xml"]
    files["ddi.xml"] = b"<codeBook/>\n"
    with serving(state) as url:
        first = deposited(made, url, tmp_path / "notes.json")
        (one,) = state.datasets.values()
        one["files"].append(
            {**one["files"][0], "id": 1, "name": "mine.txt", "description": "by hand", "ingested": False}
        )
        second = deposited((newer, files), url, tmp_path / "notes.json")
    assert second.persistent_id == first.persistent_id and second.uploaded == 3 and second.published
    assert {each["name"] for each in one["files"]} == {"mine.txt", *(path.rpartition("/")[2] for path in files)}
    assert one["published"] == 2 and {version for _, _, version in state.auxiliary} == {"v1", "v2"}
    assert state.faults == []


def test_an_auxiliary_file_of_something_else_is_not_passed_over(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State(auxiliary={(7, "dpJson", "v1"): b"other"})
    with serving(state) as url, pytest.raises(InvalidValue, match="has another dpJson v1"):
        deposited(made, url, tmp_path / "notes.json")
    with serving(State()) as url, pytest.raises(RequestRefused, match="400"):
        deposited(made, url, tmp_path / "other.json", replace(PLAN, original=8))


def test_the_dataset_has_the_structure_of_the_public_example(made: tuple[Edition, Files]) -> None:
    example = json.loads((SCHEMAS / "dataverse" / "dataset-finch1.json").read_text(encoding="utf-8"))
    ours = dataset_of(made[0], "ab" * 32)
    assert list(faults_of(ours["datasetVersion"])) == []
    assert list(faults_of(example["datasetVersion"])) == []  # the checker takes the example too
    assert set(ours["datasetVersion"]) == set(example["datasetVersion"])
    theirs = {one["typeName"]: one for one in example["datasetVersion"]["metadataBlocks"]["citation"]["fields"]}
    mine = {one["typeName"]: one for one in ours["datasetVersion"]["metadataBlocks"]["citation"]["fields"]}
    for name, one in theirs.items():
        assert {key: mine[name][key] for key in ("typeClass", "multiple")} == {
            key: one[key] for key in ("typeClass", "multiple")
        }
    assert marker_of(ours["datasetVersion"]) == "ab" * 32 and marker_of(example["datasetVersion"]) == ""
    broken = json.loads(json.dumps(ours).replace('"multiple": false', '"multiple": true', 1))
    assert list(faults_of(broken["datasetVersion"])) != []


def test_variables_have_the_structure_of_the_public_example(made: tuple[Edition, Files]) -> None:
    from xml.etree import ElementTree

    example = ElementTree.parse(SCHEMAS / "dataverse" / "dct.xml").getroot()
    table = made[0].tables[0]
    book = b'<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var ID="v7" name="value"/></dataDscr></codeBook>'
    ours = ElementTree.fromstring(variables_xml(made[0], table, book, 446))
    theirs = next(one for one in example if one.tag == "var")
    (variable,) = ours
    assert ours.tag == example.tag and variable.get("ID") == "v7"
    assert {part.tag for part in variable} <= {part.tag for part in theirs}
    assert variable.find("location").attrib == {"fileid": "f446"} == theirs.find("location").attrib
    assert variable.find("labl").attrib == theirs.find("labl").attrib
    for hostile in (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"<a"):
        with pytest.raises(InvalidValue):
            variables_xml(made[0], table, hostile, 1)


def test_the_token_comes_from_where_only_its_owner_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o644)
    with pytest.raises(InvalidValue, match="can be read by others") as refusal:
        read_token(file)
    assert TOKEN not in str(refusal.value)
    file.chmod(0o600)
    assert read_token(file) == TOKEN
    monkeypatch.delenv("DATAVERSE_API_TOKEN", raising=False)
    with pytest.raises(InvalidValue, match="set DATAVERSE_API_TOKEN"):
        read_token(None)
    monkeypatch.setenv("DATAVERSE_API_TOKEN", f" {TOKEN} ")
    assert read_token(None) == TOKEN
    monkeypatch.setenv("DATAVERSE_API_TOKEN", "two words\r\nX-Evil: 1")
    with pytest.raises(InvalidValue, match="does not look like a token") as refusal:
        read_token(None)
    assert "Evil" not in str(refusal.value)
    assert TOKEN not in repr(Dataverse("http://127.0.0.1:9", TOKEN))


@pytest.mark.parametrize("url", ["http://example.org", "ftp://example.org", "https://", "https://a:b@example.org", "x"])
def test_a_token_is_not_sent_in_the_clear(url: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        Dataverse(url, TOKEN)
    assert "a:b" not in str(refusal.value)


def test_a_redirect_is_not_followed(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State(trouble={0: "302"})
    with serving(state) as url, pytest.raises(RequestRefused, match="Give the address"):
        deposited(made, url, tmp_path / "notes.json")
    assert len(state.calls) == 1


def test_notes_of_something_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"thesis": 7}')
    with pytest.raises(InvalidValue, match="not those of a deposit"):
        NotesFile(tmp_path / "notes.json").load("https://example.org")
    NotesFile(tmp_path / "own.json").save(DepositNotes("https://example.org", "doi:10.5072/A"))
    with pytest.raises(InvalidValue, match=r"deposit at https://example\.org"):
        NotesFile(tmp_path / "own.json").load("https://other.org")
    assert os.listdir(tmp_path) != []


@pytest.mark.parametrize(
    "change", [{"collection": "../admin"}, {"persistent_id": "x y"}, {"publish": "huge"}, {"original": 0}]
)
def test_a_plan_is_checked(change: dict[str, Any]) -> None:
    with pytest.raises(FarthingError):
        DepositPlan(**{"collection": "birds", **change})


def test_the_manifest_of_the_external_tool() -> None:
    tool = external_tool("https://farthing.example.org/launch")
    assert (tool["scope"], tool["types"]) == ("file", ["configure"])
    assert "apiToken" not in json.dumps(tool)  # deprecated: signed addresses instead
    assert "/access/" not in json.dumps(tool)  # no address from which rows could be read
    assert all({"name", "httpMethod", "urlTemplate", "timeOut"} == set(one) for one in tool["allowedApiCalls"])
    with pytest.raises(InvalidValue):
        external_tool("http://farthing.example.org")


def test_two_deposits_at_once_make_one_dataset(made: tuple[Edition, Files], tmp_path: Path) -> None:
    state = State()
    done: list[Deposited] = []
    with serving(state) as url:
        one = lambda: done.append(deposited(made, url, tmp_path / "notes.json"))  # noqa: E731
        threads = [threading.Thread(target=one) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(state.datasets) == 1 and state.faults == []
    assert sorted(each.uploaded for each in done) == [0, 0, len(made[1])]

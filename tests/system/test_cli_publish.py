"""`farthing publish` and `farthing verify`, as somebody at a shell meets them."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from dataverse_server import TOKEN, State, serving
from farthing.cli import main
from farthing.ledger import open_ledger
from study_people import table

PEOPLE = """\
[publication]
title = "People who do not exist"
description = "Counts."
purpose = "To test."
rationale = "Half a budget is enough."
region = "Nowhere"
licence = "CC0-1.0"
subject = ["Other"]
authors = [{ name = "Finch, Fiona" }]
contact = { name = "Finch, Fiona", email = "data@example.org" }
"""
STUDY = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
[study]
epsilon = 1.0
plan_epsilon = 0.5
ledger = "study.db"
account = "people"
[expected]
rows = 400
[[statistics]]
kind = "count"
by = "sex"
"""
pytestmark = pytest.mark.slow


@pytest.fixture
def study(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY + PEOPLE, encoding="utf-8")
    return tmp_path / "study.toml"


def run(*words: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, [str(word) for word in words])


def test_from_a_study_to_a_verified_bundle(study: Path) -> None:
    refused = run("publish", study)
    assert refused.exit_code == 2 and "has not been released yet" in refused.output
    assert not (study.parent / "study.db").exists()
    assert run("release", study, "--yes").exit_code == 0
    written = run("publish", study)
    bundle = study.parent / "study-publication.zip"
    assert written.exit_code == 0 and f"Written: {bundle}" in written.output
    key = run("publish", study, "--show-key").output.strip()
    assert key in written.output and len(key) == 64
    seen = run("verify", bundle, "--key", key)
    assert seen.exit_code == 0 and "verified" in seen.output and "WRONG" not in seen.output
    assert run("publish", study, "--out", study.parent / "folder").exit_code == 0
    assert json.loads(run("verify", study.parent / "folder", "--json").output)["ok"] is True
    with open_ledger(study.parent / "study.db") as ledger:
        assert ledger.budget("people").count == 1  # nothing was spent


def test_the_curator_finds_the_published_receipt_in_the_ledger(study: Path) -> None:
    """It names neither the request nor the analyst, and is still of one entry, as it was written."""
    run("release", study, "--yes")
    folder, place = study.parent / "folder", study.parent / "study.db"
    assert run("publish", study, "--out", folder).exit_code == 0
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["request_id"] == receipt["analyst"] == ""
    assert run("ledger", "verify", place, "--receipt", folder / "receipt.json").exit_code == 0
    for change in ({"epsilon": 0.25}, {"request_id": "other"}, {"analyst": "eve"}, {"mac": "0" * 64}, {"charges": 7}):
        (study.parent / "forged.json").write_text(json.dumps({**receipt, **change}))
        assert run("ledger", "verify", place, "--receipt", study.parent / "forged.json").exit_code != 0, change


def test_what_is_missing_is_said_and_nothing_is_written(study: Path) -> None:
    run("release", study, "--yes")
    study.write_text(STUDY + '[publication]\ntitle = "People"\n', encoding="utf-8")
    refused = run("publish", study)
    assert refused.exit_code == 2 and "must say its description, purpose" in refused.output
    study.write_text(STUDY + "[publication]\ncolour = 7\n", encoding="utf-8")
    assert "publication.colour=7: is not a field" in run("publish", study).output
    study.write_text(STUDY + PEOPLE, encoding="utf-8")
    assert "is not a release of this ledger" in run("publish", study, "--request-id", "other").output
    assert not list(study.parent.glob("*.zip"))


def test_an_edited_bundle_does_not_verify(study: Path) -> None:
    run("release", study, "--yes")
    run("publish", study)
    bundle = study.parent / "study-publication.zip"
    with zipfile.ZipFile(bundle) as held:
        files = {name: held.read(name) for name in held.namelist()}
    files["tables/01-count-by-sex.csv"] = files["tables/01-count-by-sex.csv"].replace(b"row, add", b"person, add")
    with zipfile.ZipFile(bundle, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    seen = run("verify", bundle)
    assert seen.exit_code == 1
    assert "NOT VERIFIED" in seen.output and "tables/01-count-by-sex.csv was changed" in seen.output


def test_verifying_needs_no_network(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("release", study, "--yes")
    run("publish", study)
    tried: list[object] = []
    sys.addaudithook(lambda event, words: tried.append(words) if event == "socket.connect" and looking[0] else None)
    looking = [True]
    assert run("verify", study.parent / "study-publication.zip").exit_code == 0
    looking[0] = False
    assert tried == []


def test_a_deposit_from_the_command_line(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("release", study, "--yes")
    state = State()
    with serving(state) as url:
        words = ("publish", study, "--dataverse", url, "--collection", "birds")
        monkeypatch.delenv("DATAVERSE_API_TOKEN", raising=False)
        assert "set DATAVERSE_API_TOKEN" in run(*words).output
        monkeypatch.setenv("DATAVERSE_API_TOKEN", TOKEN)
        draft = run(*words)
        assert draft.exit_code == 0 and "Deposited: doi:10.5072/FK2/B101, a draft" in draft.output, draft.output
        monkeypatch.delenv("DATAVERSE_API_TOKEN")
        (study.parent / "token").write_text(TOKEN)
        (study.parent / "token").chmod(0o600)
        again = run(*words, "--token-file", study.parent / "token", "--publish", "major")
        assert again.exit_code == 0 and "B101, published" in again.output and "uploaded" not in again.output
        assert "must be given" in run("publish", study, "--dataverse", url).output
        (study.parent / "study-deposit.json").unlink()  # as on another machine: the ledger knows
        other = run(*words, "--token-file", study.parent / "token")
        assert other.exit_code == 0 and "B101, published" in other.output and "uploaded" not in other.output
    assert state.faults == [] and len(state.datasets) == 1
    said = f"people-who-do-not-exist, version 1 (entry 5): doi:10.5072/FK2/B101 at {url}, published"
    for command in ("show", "verify"):
        shown = run("ledger", command, study.parent / "study.db")
        assert shown.exit_code == 0 and said.replace(" ", "") in "".join(shown.output.split()), shown.output
    (one,) = state.datasets.values()
    with zipfile.ZipFile(study.parent / "downloaded.zip", "w") as packed:  # as Dataverse packs all files of a dataset
        packed.writestr("MANIFEST.TXT", "")
        for each in one["files"]:
            packed.writestr(f"{each['directoryLabel']}/{each['name']}".strip("/"), each["content"])
    assert run("verify", study.parent / "downloaded.zip").exit_code == 0
    written = [path.read_bytes() for path in study.parent.iterdir() if path.is_file() and path.name != "token"]
    assert not [content for content in written if TOKEN.encode() in content]  # the ledger too
    assert TOKEN not in draft.output + again.output


def test_options_of_a_deposit_need_one(study: Path) -> None:
    assert "name the server: --dataverse URL" in run("publish", study, "--collection", "birds").output
    assert run("publish", study, "--publish", "huge").exit_code == 2
    tool = run("publish", "--tool-manifest", "https://farthing.example.org/launch")
    assert json.loads(tool.output)["toolUrl"] == "https://farthing.example.org/launch"

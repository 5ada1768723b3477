"""A publication verifies as it was signed; an edit that changes what it says is found, and a hostile one refused."""

from __future__ import annotations

import copy
import io
import json
import math
import os
import random
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farthing.ledger import Receipt
from farthing.ledger.publication_key import PublicationKey
from farthing.publication import bundle_reader
from farthing.publication.bundle import Files, json_of, signed, sources_of, write, zip_of
from farthing.publication.bundle_reader import Unreadable, json_in, read_bundle
from farthing.publication.edition import Edition
from farthing.publication.verification import verify_publication
from publications import FORM, files_in, form, release_of, study_in

pytestmark = pytest.mark.slow
KEY = PublicationKey(bytes(range(32)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Edition, Files]:
    return files_in(tmp_path_factory.mktemp("publication"))


@pytest.fixture
def bundle(made: tuple[Edition, Files], tmp_path: Path) -> Path:
    return write(made[1], made[0], tmp_path / "bundle.zip")


def resigned(made: tuple[Edition, Files], **changes: bytes) -> Files:
    """The files as a publisher would sign them who wants to deceive."""
    files = {path: content for path, content in made[1].items() if path not in ("manifest.json", "signature.json")}
    return signed(made[0], {**files, **changes}, KEY)


def check(files: Files, folder: Path) -> tuple[str, ...]:
    place = folder / "edited.zip"
    with zipfile.ZipFile(place, "w") as out:
        for path, content in files.items():
            out.writestr(path, content)
    return verify_publication(place).findings


def test_it_verifies_as_a_zip_file_and_as_a_folder(made: tuple[Edition, Files], bundle: Path, tmp_path: Path) -> None:
    for place in (bundle, write(made[1], made[0], tmp_path / "folder")):
        found = verify_publication(place)
        assert found.ok and found.findings == (), found.findings
        assert set(found.facts) == {"signature", "files", "receipt", "epsilon", "tables", "texts"}
        assert any("--key" in note for note in found.notes)
        assert verify_publication(place, found.key.upper()).ok
        other = verify_publication(place, KEY.public)
        assert "not with the one that you gave" in other.findings[0]


def test_the_publisher_who_signs_again_verifies_too(made: tuple[Edition, Files], tmp_path: Path) -> None:
    """The next tests would show nothing if signing again were found by itself."""
    assert check(resigned(made), tmp_path) == ()


def test_what_dataverse_packs_for_a_download_verifies(made: tuple[Edition, Files], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "dataverse_files.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("MANIFEST.TXT", "tables/01.csv ...")
        for path, content in made[1].items():
            out.writestr(path, content)
    assert verify_publication(tmp_path / "dataverse_files.zip").ok


def edits(made: tuple[Edition, Files], draw: random.Random) -> Iterator[tuple[str, Callable[[], Files]]]:
    """600 edits of bytes as they are found on a disk, and 400 of fields that a publisher signed again."""
    files = made[1]
    names = sorted(files)
    for number in range(600):
        name = draw.choice(names)
        yield f"{number}: bytes of {name}", lambda name=name: {**files, name: _bytes_changed(files[name], draw)}
    documents = {name: json.loads(files[name]) for name in ("release.json", "publication.json", "receipt.json")}
    texts = ["methods.md", "ddi.xml", "croissant.jsonld", "CITATION.cff", "registry.yaml", "index.html"]
    tables = [name for name in names if name.endswith(".csv")]
    for number in range(250):
        name = draw.choice(sorted(documents))
        yield (
            f"{number}: a field of {name}",
            lambda name=name: resigned(made, **{name: _field_changed(documents[name], draw, name)}),
        )
    for number in range(150):
        name = draw.choice(texts + tables)
        yield f"{number}: text of {name}", lambda name=name: resigned(made, **{name: _bytes_changed(files[name], draw)})


def _bytes_changed(content: bytes, draw: random.Random) -> bytes:
    place, how = draw.randrange(len(content)), draw.randrange(4)
    if how == 0:
        return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]
    if how == 1:
        return content[:place] + content[place + 1 :]
    if how == 2:
        return content[:place] + bytes([draw.randrange(256)]) + content[place:]
    return content[:place]


def _field_changed(document: Any, draw: random.Random, name: str) -> bytes:
    changed = copy.deepcopy(document)
    holders = list(_leaves(changed))
    holder, key = draw.choice(holders)
    value = holder[key]
    if isinstance(value, bool | list | dict) or value is None:  # lists and tables that hold nothing
        holder[key] = "no"
    elif isinstance(value, int):
        holder[key] = value + draw.choice([-1, 1])
    elif isinstance(value, float):
        holder[key] = draw.choice([value * 0.9 - 1e-6, value * 1.1 + 1e-6, math.nextafter(value, math.inf)])
    else:
        holder[key] = f"{value}x" if draw.random() < 0.5 else value[:-1] + "~"
    if name == "receipt.json":
        return (json.dumps(changed, indent=2) + "\n").encode()
    return json_of(changed)


def _leaves(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list) and value:
            yield from _leaves(value)
        else:
            yield data, key


def test_a_thousand_edits_are_found(made: tuple[Edition, Files], tmp_path: Path) -> None:
    draw, count, unseen = random.Random(22), 0, []
    for what, change in edits(made, draw):
        files = change()
        count += 1
        if files == made[1] or check(files, tmp_path) != ():
            continue
        unseen.append(what)
    assert count == 1000
    assert unseen == []


def test_bytes_of_the_zip_file_itself(made: tuple[Edition, Files], bundle: Path, tmp_path: Path) -> None:
    """An edit of the archive is found, or leaves every name and every byte of the files as they were."""
    whole, draw, place = bundle.read_bytes(), random.Random(7), tmp_path / "edited.zip"
    # The directory at the end is where an archive can lie; the rest is what the files hold.
    for number in range(300):
        at = draw.randrange(len(whole) - 6000, len(whole)) if number % 2 else draw.randrange(len(whole))
        place.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :])
        if verify_publication(place).ok:
            assert read_bundle(place) == made[1]


def _released(made: tuple[Edition, Files], **changes: Any) -> Edition:
    edition = made[0]
    return Edition({**edition.release, **changes}, edition.publication, edition.receipt)


def _made_again(edition: Edition, made: tuple[Edition, Files]) -> Files:
    """Every file of a changed release that its publisher would make again, with charts and report as they were."""
    from farthing.publication.bundle import texts_of
    from farthing.publication.published_tables import parquet_of

    kept = {path: content for path, content in made[1].items() if path.startswith("charts/") or path == "report.html"}
    tables = {f"tables/{one['file']}.parquet": parquet_of(edition, one) for one in edition.tables}
    return signed(edition, {**kept, **tables, **sources_of(edition), **texts_of(edition)}, KEY)


def test_an_epsilon_that_does_not_follow_from_the_mechanisms_is_found(
    made: tuple[Edition, Files], tmp_path: Path
) -> None:
    """Even if receipt, tables and texts all say the same, and all of it is signed."""
    half = Edition({**made[0].release, "epsilon": 0.5}, made[0].publication, replace(made[0].receipt, epsilon=0.5))
    findings = check(_made_again(half, made), tmp_path)
    assert any(one.startswith("epsilon: epsilon 0.5 is stated") for one in findings)
    nearly = made[0].epsilon * 0.999
    assert any("is stated" in one for one in check(_made_again(_released(made, epsilon=nearly), made), tmp_path))


def test_what_a_table_says_of_itself(made: tuple[Edition, Files], tmp_path: Path) -> None:
    table = made[0].tables[0]
    cell = table["cells"][0]
    for change, said in (
        ({"lower": cell["upper"] + 1}, "ends before it begins"),
        ({"value": cell["value"] + 1}, "do not add up"),
        ({"standard_error": -1.0}, "below 0"),
        ({"lower_at_once": cell["lower"] + 0.1}, "narrower than its own"),
    ):
        odd = {**table, "cells": [{**cell, **change}, *table["cells"][1:]]}
        edition = _released(made, tables=[odd, *made[0].tables[1:]])
        assert any(said in one for one in check(_made_again(edition, made), tmp_path)), said


def test_receipts_must_follow_each_other(made: tuple[Edition, Files], tmp_path: Path) -> None:
    edition = made[0]
    before = replace(edition.receipt, sequence=edition.receipt.sequence - 1, charges=1)
    good = replace(edition, earlier=(before,), publication=form(version=2))
    assert not [one for one in check(_made_again(good, made), tmp_path) if one.startswith("receipt")]
    for bad in (
        replace(before, sequence=edition.receipt.sequence),
        replace(before, ledger="other"),
        replace(before, charges=99),
        replace(before, total_nano=edition.receipt.total_nano + 1),
        replace(before, total_nano=1),
    ):
        odd = replace(edition, earlier=(bad,), publication=form(version=2))
        assert [one for one in check(_made_again(odd, made), tmp_path) if one.startswith("receipt")], bad


def test_a_new_version_carries_the_receipts_of_the_old_one(tmp_path: Path) -> None:
    study = study_in(tmp_path, epsilon=2.0)
    first = release_of(study, epsilon=0.5)
    first.publish(tmp_path / "one.zip", FORM)
    second = study.plan(*_same_statistics(), epsilon=0.5).release(fresh=True)
    second.publish(tmp_path / "two.zip", {**FORM, "version": 2}, previous=tmp_path / "one.zip")
    assert verify_publication(tmp_path / "two.zip").ok
    earlier = json_in(read_bundle(tmp_path / "two.zip")["earlier_receipts.json"])
    assert [Receipt.from_json(json.dumps(one)) for one in earlier] == [first.receipt.without_names()]
    from farthing.errors import InvalidValue

    with pytest.raises(InvalidValue, match="version = 3 under"):
        second.publish(tmp_path / "three.zip", FORM, previous=tmp_path / "two.zip")
    with pytest.raises(InvalidValue, match="does not verify"):
        second.publish(tmp_path / "three.zip", {**FORM, "version": 3}, previous=tmp_path / "study.db")
    study.close()


def _same_statistics() -> tuple[Any, ...]:
    from farthing import count, histogram, mean

    return count(by="sex"), mean("income", by="sex"), histogram("age", bins=5)


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/passwd", "a/../../b", "C:\\evil", "a\\b", "..", "a//b", "\u202egpj.exe", "x" * 400, ".hidden"],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str, made: tuple[Edition, Files], tmp_path: Path) -> None:
    assert "which no publication has" in check({**made[1], name: b"x"}, tmp_path)[0]
    assert not (tmp_path.parent / "evil").exists()


def test_a_bomb_is_refused_without_being_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", bytes(3_000_000))
        out.writestr("signature.json", bytes(3_000_000))
    monkeypatch.setattr(bundle_reader, "_MOST_ENTRY", 1_000_000)
    assert "larger than a publication can be" in verify_publication(tmp_path / "bomb.zip").findings[0]
    monkeypatch.undo()
    monkeypatch.setattr(bundle_reader, "MOST_BYTES", 5_000_000)
    assert "larger than a publication can be" in verify_publication(tmp_path / "bomb.zip").findings[0]
    monkeypatch.setattr(bundle_reader, "MOST_FILES", 1)
    assert "more than 1 files" in verify_publication(tmp_path / "bomb.zip").findings[0]


def test_links_and_doubles_and_strange_packing_are_refused(made: tuple[Edition, Files], tmp_path: Path) -> None:
    place = tmp_path / "odd.zip"
    entry = zipfile.ZipInfo("tables/link.csv")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(place, "w") as out:
        out.writestr(entry, "/etc/passwd")
    assert "is a link" in verify_publication(place).findings[0]
    with zipfile.ZipFile(place, "w") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("manifest.json", b"{}")
        out.writestr("manifest.json", b"[]")
    assert "occurs twice" in verify_publication(place).findings[0]
    with zipfile.ZipFile(place, "w", zipfile.ZIP_BZIP2) as out:
        out.writestr("manifest.json", b"{}")
    assert "unusual way" in verify_publication(place).findings[0]
    folder = tmp_path / "folder"
    write(made[1], made[0], folder)
    os.symlink("/etc", folder / "tables" / "etc")
    assert "link" in verify_publication(folder).findings[0]
    (folder / "tables" / "etc").unlink()
    os.symlink("/etc/passwd", folder / "extra.csv")
    assert "link" in verify_publication(folder).findings[0]
    (folder / "extra.csv").unlink()
    os.mkfifo(folder / "pipe.csv")
    assert "not a regular file" in verify_publication(folder).findings[0]


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a": -Infinity}',
        "1e999",
        "9" * 5000,
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        "\ufeff{}",
        "{",
        "",
    ],
    ids=lambda text: text[:12],
)
def test_json_from_a_stranger(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_in(text.encode())


@pytest.mark.parametrize("content", [b"", b"PK", b"\xff" * 1000, b"[]", b"null", b"{}", b"7", b'{"files": 7}'])
@pytest.mark.parametrize(
    "name", ["release.json", "publication.json", "receipt.json", "manifest.json", "signature.json"]
)
def test_whatever_a_file_holds_it_is_a_finding_and_no_crash(
    name: str, content: bytes, made: tuple[Edition, Files], tmp_path: Path
) -> None:
    files = (
        {**made[1], name: content} if name in ("manifest.json", "signature.json") else resigned(made, **{name: content})
    )
    assert check(files, tmp_path) != ()


@pytest.mark.parametrize(
    "change",
    [
        {
            "mechanisms": {
                "type": "composed",
                "parts": [{"event": {"type": "approx_dp", "epsilon": 0.0, "delta": 0.0}, "count": 10**30}],
            }
        },
        {"mechanisms": {"type": "os.system"}},
        {"mechanisms": None},
        {"tables": [{"file": "../../evil", "cells": []}]},
        {"tables": 7},
        {"tables": [None]},
        {"confidence": "much"},
        {"epsilon": "0"},
        {"epsilon": -1.0},
        {"delta": 1e300},
        {"released": "tomorrow"},
        {"warnings": 7},
        {"software": {"name": "farthing", "version": "9"}},
        {"unit": None},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_release_of_another_form_is_a_finding_and_no_crash(
    change: dict[str, Any], made: tuple[Edition, Files], tmp_path: Path
) -> None:
    assert check(resigned(made, **{"release.json": json_of({**made[0].release, **change})}), tmp_path) != ()


def test_a_version_that_words_things_otherwise_is_said(made: tuple[Edition, Files], tmp_path: Path) -> None:
    edition = _released(made, software={"name": "farthing", "version": "0.0.9"})
    files = _made_again(edition, made)
    assert check({**files}, tmp_path) == ()
    assert "not compared" in verify_publication(tmp_path / "edited.zip").facts["texts"]


def test_entities_of_xml_are_never_expanded(made: tuple[Edition, Files], tmp_path: Path) -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "' + b"x" * 1000 + b'">]><a>&b;&b;</a>'
    assert check(resigned(made, **{"ddi.xml": bomb}), tmp_path) == (
        "texts: ddi.xml does not say what the release says",
    )


def test_nothing_there(tmp_path: Path) -> None:
    assert "there is no file" in verify_publication(tmp_path / "none.zip").findings[0]
    assert "no manifest.json" in verify_publication(tmp_path).findings[0]
    with pytest.raises(Unreadable):
        read_bundle(tmp_path / "none.zip")
    (tmp_path / "empty.zip").write_bytes(b"")
    assert "not a zip file" in verify_publication(tmp_path / "empty.zip").findings[0]


def test_zip_of_is_a_zip_file(made: tuple[Edition, Files]) -> None:
    assert zipfile.ZipFile(io.BytesIO(zip_of(made[1], made[0]))).testzip() is None

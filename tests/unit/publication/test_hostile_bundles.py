"""A bundle that its sender signed cannot crash, fill or mislead the verifier: whatever it holds is a finding."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.ledger.publication_key import PublicationKey
from farthing.publication import verification
from farthing.publication.bundle import Files, json_of, signed
from farthing.publication.bundle_reader import Unreadable, json_in, read_bundle
from farthing.publication.edition import COLUMNS, Edition
from farthing.publication.published_tables import csv_of, is_text, parquet_of, parquet_rows
from farthing.publication.verification import PublicationCheck, verify_publication
from publications import files_in

pytestmark = pytest.mark.slow
KEY = PublicationKey(bytes(range(32)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Edition, Files]:
    return files_in(tmp_path_factory.mktemp("publication"))


def check(made: tuple[Edition, Files], folder: Path, **changes: bytes) -> PublicationCheck:
    """What is found in a bundle with other files, signed again by whoever made them."""
    files = {path: content for path, content in made[1].items() if path not in ("manifest.json", "signature.json")}
    with zipfile.ZipFile(folder / "hostile.zip", "w") as out:
        for path, content in signed(made[0], {**files, **changes}, KEY).items():
            out.writestr(path, content)
    return verify_publication(folder / "hostile.zip")


def released(made: tuple[Edition, Files], **changes: Any) -> dict[str, bytes]:
    """A release that says something else, with its tables written to fit."""
    edition = Edition({**made[0].release, **changes}, made[0].publication, made[0].receipt)
    texts = {f"tables/{one['file']}.csv": csv_of(edition, one) for one in edition.tables}
    tables = {f"tables/{one['file']}.parquet": parquet_of(edition, one) for one in edition.tables}
    return {"release.json": json_of(edition.release), **texts, **tables}


@pytest.mark.parametrize("content", [b"a" * 200_000 + b"\n", b'"' + b"a" * 300_000, b"a\0b\n", b"\xff\xfe", b""])
def test_a_csv_file_of_any_form_is_a_finding(content: bytes, made: tuple[Edition, Files], tmp_path: Path) -> None:
    name = f"tables/{made[0].tables[0]['file']}.csv"
    assert not check(made, tmp_path, **{name: content}).ok


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": "0.5"}, "epsilon must be a number"),
        ({"epsilon": "NaN"}, "epsilon must be a number"),
        ({"epsilon": True}, "epsilon must be a number"),
        ({"delta": None}, "delta must be a number"),
        ({"confidence": "0.95"}, "confidence must be a number"),
    ],
)
def test_an_amount_is_a_number_and_no_text(
    change: dict[str, Any], said: str, made: tuple[Edition, Files], tmp_path: Path
) -> None:
    content = json_of({**made[0].release, **change})
    assert said in check(made, tmp_path, **{"release.json": content}).findings[0]


def test_a_row_says_nothing_of_its_own_but_numbers(made: tuple[Edition, Files], tmp_path: Path) -> None:
    """A cell with an epsilon would show it in its row instead of that of the release."""
    table = made[0].tables[0]
    for change, wanted in (({"epsilon": 0.1}, "something else"), ({"note": "exact"}, "something else")):
        odd = {**table, "cells": [{**table["cells"][0], **change}, *table["cells"][1:]]}
        found = check(made, tmp_path, **released(made, tables=[odd, *made[0].tables[1:]]))
        assert any(wanted in one for one in found.findings), found.findings
    odd = {**table, "cells": [{**table["cells"][0], "standard_error": True}, *table["cells"][1:]]}
    content = json_of({**made[0].release, "tables": [odd, *made[0].tables[1:]]})
    found = check(made, tmp_path, **{"release.json": content})
    assert any("standard_error of" in one and "no number" in one for one in found.findings)


def test_a_name_does_not_write_to_the_terminal(made: tuple[Edition, Files], tmp_path: Path) -> None:
    name = "x\x1b[2J\r\nbundle.zip: verified\u202e"
    tables = [{**made[0].tables[0], "statistic": name, "total": 7.0}, *made[0].tables[1:]]
    found = check(made, tmp_path, **released(made, tables=tables))
    assert any("x\\x1b[2J\\r\\nbundle.zip: verified\\u202e" in one for one in found.findings)
    for one in (*found.findings, *found.facts.values()):
        assert one.isprintable()
    long = check(made, tmp_path, **{"release.json": json_of({**made[0].release, "format": "y" * 10**6})})
    assert all(len(one) < 1000 for one in long.findings)


def test_a_thousand_contradictions_are_not_all_listed(
    made: tuple[Edition, Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_MOST_SAID", 3)
    table = made[0].tables[0]
    cells = [{**cell, "standard_error": -1.0} for cell in table["cells"]] * 10
    found = check(made, tmp_path, **released(made, tables=[{**table, "cells": cells}, *made[0].tables[1:]]))
    assert len([one for one in found.findings if one.startswith("tables: ")]) == 3


def test_more_mechanisms_than_can_be_composed_in_time(
    made: tuple[Edition, Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand that differ would take an hour."""
    parts = [{"event": {"type": "laplace", "noise_multiplier": 3.0 + place}, "count": 1} for place in range(31)]
    for limit in ("_MOST_EVENTS", "_MOST_KINDS", "_MOST_TIMES"):
        monkeypatch.setattr(verification, limit, 30)
        content = json_of({**made[0].release, "mechanisms": {"type": "composed", "parts": parts}})
        found = check(made, tmp_path, **{"release.json": content})
        assert any("more mechanisms than" in one for one in found.findings), found.findings
        monkeypatch.undo()


def test_a_long_note_of_many_rows_is_not_written_out(made: tuple[Edition, Files], tmp_path: Path) -> None:
    """A megabyte of notes and ten thousand rows would be ten gigabytes of tables."""
    table = made[0].tables[0]
    for change in (
        {"about": "z" * 10**6},
        {"warnings": ["z" * 10**6]},
        {"tables": [{**table, "note": "z" * 10**6, "cells": list(table["cells"]) * 5000}]},
    ):
        release = {**made[0].release, "tables": [{**table, "cells": list(table["cells"]) * 5000}], **change}
        found = check(made, tmp_path, **{"release.json": json_of(release)})
        assert "tables are larger than its files" in found.findings[0], found.findings


def _parquet(count: int, text: str = "x", **options: Any) -> bytes:
    """A Parquet file of one text in many rows: it has few bytes, whatever the number of rows and however long it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = pa.repeat(pa.scalar(0, pa.int32()), count)
    texts, nothing = pa.DictionaryArray.from_arrays(place, pa.array([text])), pa.nulls(count, pa.float64())
    table = pa.table([texts if is_text(name) else nothing for name in COLUMNS], names=list(COLUMNS))
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **{"compression": "none", **options})
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda: _parquet(1_000_000), "another number of rows"),
        (lambda: _parquet(2, compression="gzip"), "it is packed"),
        (lambda: b"PAR1" + bytes(100) + b"PAR1", "cannot be read"),
        (lambda: b"", "cannot be read"),
    ],
    ids=["rows", "packed", "nothing", "empty"],
)
def test_a_parquet_file_that_would_fill_the_memory(
    content: Callable[[], bytes], said: str, made: tuple[Edition, Files], tmp_path: Path
) -> None:
    name = f"tables/{made[0].tables[0]['file']}.parquet"
    (finding,) = check(made, tmp_path, **{name: content()}).findings
    assert said in finding


def test_a_text_that_a_dictionary_repeats_is_there_once() -> None:
    """Twenty thousand rows of a text of a megabyte would be twenty gigabytes."""
    content = _parquet(20_000, "y" * 1_000_000)
    assert len(content) < 12_000_000
    rows = parquet_rows(content, 20_000)
    assert len({id(row["note"]) for row in rows}) == 1 and rows[-1]["value"] is None


def test_a_parquet_file_of_another_writer_is_read(made: tuple[Edition, Files], tmp_path: Path) -> None:
    """Another version of pyarrow writes other bytes: then the rows are compared."""
    import pyarrow.parquet as pq

    name = f"tables/{made[0].tables[0]['file']}.parquet"
    table, file = pq.read_table(io.BytesIO(made[1][name])), io.BytesIO()
    pq.write_table(table, file, compression="none", row_group_size=1, use_dictionary=False)
    assert file.getvalue() != made[1][name]
    assert check(made, tmp_path, **{name: file.getvalue()}).ok
    file = io.BytesIO()
    pq.write_table(table.set_column(3, "value", table.column("lower")), file, compression="none")
    assert "does not have the numbers" in check(made, tmp_path, **{name: file.getvalue()}).findings[0]


def test_a_list_of_files_without_end_is_not_read(tmp_path: Path) -> None:
    """Every entry of an archive costs hundreds of bytes of memory before anybody can count them."""
    place, size = tmp_path / "many.zip", 9_000_000
    place.write_bytes(bytes(size) + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0))
    with pytest.raises(Unreadable, match="list of files is longer"):
        read_bundle(place)


def test_entries_that_share_bytes_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "overlap.zip"
    with zipfile.ZipFile(place, "w") as out:
        out.writestr("manifest.json", b"x" * 1000)
        out.writestr("signature.json", b"y" * 1000)
        start = out.start_dir
    content = bytearray(place.read_bytes())
    second = content.index(b"PK\1\2", content.index(b"PK\1\2", start) + 1)
    content[second + 42 : second + 46] = struct.pack("<L", 10)
    place.write_bytes(bytes(content))
    with pytest.raises(Unreadable, match="begins within another file"):
        read_bundle(place)


def test_folders_and_names_that_differ_in_case(made: tuple[Edition, Files], tmp_path: Path) -> None:
    """Whoever unpacks it gets nothing that was not looked at, and no file that hides another."""
    place = tmp_path / "folders.zip"
    with zipfile.ZipFile(place, "w") as out:
        out.writestr("../evil/", b"")
    with pytest.raises(Unreadable, match="which no publication has"):
        read_bundle(place)
    assert (
        "are not those of the tables" in check(made, tmp_path, **{"Release.json": made[1]["release.json"]}).findings[0]
    )
    assert "which no publication has" in check(made, tmp_path, **{"ｒelease.json": b"{}"}).findings[0]


def test_json_is_not_nested_without_end() -> None:
    assert json_in(b"[" * 90 + b"]" * 90)
    for text in (b"[" * 150 + b"]" * 150, b'{"a":' * 150 + b"1" + b"}" * 150):
        with pytest.raises(ValueError, match="nested too deeply"):
            json_in(text)

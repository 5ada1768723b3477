"""A bundle holds everything, is valid by every schema, and is the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
import yaml
from lxml import etree

from farthing.errors import InvalidValue, NotAllowed
from farthing.publication.bundle import Files, write, zip_of
from farthing.publication.edition import COLUMNS, Edition
from farthing.publication.published_tables import csv_of
from publications import (
    CFFCONVERT,
    FORM,
    SCHEMAS,
    check_citation,
    check_croissant,
    files_in,
    form,
    release_of,
    study_in,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Edition, Files]:
    return files_in(tmp_path_factory.mktemp("publication"))


def test_it_holds_what_the_docs_promise(made: tuple[Edition, Files]) -> None:
    _, files = made
    alone = {name for name in files if "/" not in name}
    assert alone == {
        "CITATION.cff", "croissant.jsonld", "ddi.xml", "index.html", "manifest.json", "methods.md", "publication.json",
        "receipt.json", "registry.yaml", "release.json", "report.html", "signature.json",
    }  # fmt: skip
    for stem in ("01-count-by-sex", "02-mean-of-income-by-sex", "03-histogram-of-age"):
        assert {f"tables/{stem}.csv", f"tables/{stem}.parquet", f"charts/{stem}.svg", f"charts/{stem}.png"} <= set(
            files
        )


def test_every_row_of_a_table_carries_its_caveats(made: tuple[Edition, Files]) -> None:
    edition, files = made
    for table in edition.tables:
        rows = pq.read_table(io.BytesIO(files[f"tables/{table['file']}.parquet"])).to_pylist()
        assert len(rows) == len(table["cells"])
        for row in rows:
            assert tuple(row) == COLUMNS
            assert row["unit"] == "row, add-remove" and row["counts"] == "rows"
            assert row["epsilon"] == edition.epsilon and row["delta"] == 1e-9
            assert row["lower"] <= row["upper"] and row["standard_error"] > 0
            assert "any one row" in row["note"]


def test_the_manifest_names_every_file_with_its_digest(made: tuple[Edition, Files]) -> None:
    _, files = made
    manifest = json.loads(files["manifest.json"])
    named = {one["path"]: (one["bytes"], one["sha256"]) for one in manifest["files"]}
    others = {path: content for path, content in files.items() if path not in ("manifest.json", "signature.json")}
    assert named == {path: (len(content), hashlib.sha256(content).hexdigest()) for path, content in others.items()}


def test_the_codebook_is_valid_by_its_schema(made: tuple[Edition, Files]) -> None:
    schema = etree.XMLSchema(etree.parse(str(SCHEMAS / "ddi-codebook-2.5" / "ddi_codebook_2_5.xsd")))
    book = etree.fromstring(made[1]["ddi.xml"])
    assert schema.validate(book), schema.error_log
    book.find("{*}stdyDscr/{*}citation").clear()  # the schema can say no
    assert not schema.validate(book)


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the process draws
def test_mlcroissant_finds_nothing_wrong(made: tuple[Edition, Files], tmp_path: Path) -> None:
    check_croissant(made[1], tmp_path)


def test_mlcroissant_reads_the_released_numbers(made: tuple[Edition, Files], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages it brings
        import mlcroissant

        for path, content in made[1].items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_bytes(content)
        records = list(mlcroissant.Dataset(jsonld=tmp_path / "croissant.jsonld").records("01-count-by-sex"))
    values = [record["01-count-by-sex/value"] for record in records]
    assert values == [cell["value"] for cell in made[0].tables[0]["cells"]]


def test_the_citation_file_is_valid_by_its_schema(made: tuple[Edition, Files]) -> None:
    schema = json.loads((FIXTURES / "citation-file-format" / "schema-1.2.0.json").read_text(encoding="utf-8"))
    data = yaml.safe_load(made[1]["CITATION.cff"])
    jsonschema.validate(_texts(data), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({name: part for name, part in data.items() if name != "authors"}, schema)


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the process draws
def test_cffconvert_finds_nothing_wrong(made: tuple[Edition, Files], tmp_path: Path) -> None:
    """It runs with packages of its own, which `make test` puts beside the environment."""
    if not CFFCONVERT.is_dir():
        pytest.skip("cffconvert is not installed: make test installs it")
    whole = made[1]["CITATION.cff"]
    check_citation(whole, tmp_path)
    with pytest.raises(AssertionError):
        check_citation(whole.replace(b"authors:", b"writers:"), tmp_path)


def test_the_registry_record_is_valid_by_its_schema(made: tuple[Edition, Files]) -> None:
    schema = yaml.safe_load((SCHEMAS / "registry" / "deployments-schema.yaml").read_text(encoding="utf-8"))
    record = yaml.safe_load(made[1]["registry.yaml"])
    jsonschema.validate(record, schema)
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": made[0].epsilon, "delta": 1e-9}


@pytest.mark.draws(false_alarm=0, miss=0)  # another process draws nothing: the release is in the ledger
def test_the_same_release_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    release = release_of(study)
    release.publish(tmp_path / "first.zip", FORM)
    study.close()
    code = (
        "import sys; from farthing import open_ledger; from farthing.study.release import stored_release; "
        "from publications import FORM; ledger = open_ledger(sys.argv[1]); "
        "stored_release(ledger, sys.argv[2]).publish(sys.argv[3], FORM); ledger.close()"
    )
    words = [str(tmp_path / "study.db"), release.request_id, str(tmp_path / "second.zip")]
    tests = str(Path(__file__).resolve().parents[2])
    subprocess.run(
        [sys.executable, "-c", code, *words], check=True, cwd=tests, env={"PYTHONHASHSEED": "77", "PATH": ""}
    )
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_a_zip_and_a_folder_hold_the_same(made: tuple[Edition, Files], tmp_path: Path) -> None:
    edition, files = made
    folder, archive = write(files, edition, tmp_path / "out"), write(files, edition, tmp_path / "out.zip")
    with zipfile.ZipFile(archive) as held:
        assert {name: held.read(name) for name in held.namelist()} == files
        assert {one.date_time[0] for one in held.infolist()} == {edition.receipt.when.year}
    assert {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == files
    assert write(files, edition, folder) == folder  # again: nothing to do
    assert zip_of(dict(reversed(files.items())), edition) == archive.read_bytes()


def test_something_else_is_not_overwritten(made: tuple[Edition, Files], tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("mine")
    (tmp_path / "b.zip").write_text("mine")
    for place in ("thesis", "b.zip"):
        with pytest.raises(InvalidValue, match="holds something else"):
            write(made[1], made[0], tmp_path / place)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == (tmp_path / "b.zip").read_text() == "mine"
    with pytest.raises(InvalidValue, match="directory that exists"):
        write(made[1], made[0], tmp_path / "no" / "b.zip")
    with pytest.raises(InvalidValue, match="is a file"):
        write(made[1], made[0], tmp_path / "thesis" / "chapter.txt")


def test_what_is_missing_is_said_before_anything_is_written(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    release = release_of(study)
    with pytest.raises(InvalidValue, match="must say its purpose, licence, contact; write purpose"):
        release.publish(tmp_path / "out", {k: v for k, v in FORM.items() if k not in ("purpose", "licence", "contact")})
    assert not (tmp_path / "out").exists()
    from dataclasses import replace

    with pytest.raises(InvalidValue, match="came from a server"):
        replace(release, ledger=None).publish(tmp_path / "out", FORM)
    with pytest.raises(NotAllowed):
        replace(release, ledger=study.ledger.acting("bob", "analyst")).publish(tmp_path / "out", FORM)
    study.close()


def test_a_pure_release_says_so(tmp_path: Path) -> None:
    study = study_in(tmp_path, delta=0.0)
    from farthing.publication.edition import edition_of
    from farthing.publication.methods import methods_text
    from farthing.publication.registry_record import registry_record

    edition = edition_of(release_of(study), form(version=3), study.ledger)
    study.close()
    assert "pure differential privacy" in methods_text(edition)
    record = registry_record(edition)["deployment"]
    assert record["dp_variant"]["variant_name"] == "Pure DP"
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": edition.epsilon}


def test_a_label_that_a_spreadsheet_would_run_is_shown_as_text(made: tuple[Edition, Files]) -> None:
    edition = made[0]
    for label in ("=SUM(A1)", "@SUM(A1)", "\uff1dSUM(A1)", "+SUM(A1)"):
        table = {**edition.tables[0], "cells": [{**edition.tables[0]["cells"][0], "cell": label}]}
        assert f",'{label},".encode() in csv_of(edition, table)


def test_control_characters_do_not_break_the_codebook(made: tuple[Edition, Files]) -> None:
    from farthing.publication.ddi_codebook import ddi_of

    edition = made[0]
    cell = {**edition.tables[0]["cells"][0], "cell": "a\x00\x1b<b>&\ud800"}
    odd = Edition({**edition.release, "tables": [{**edition.tables[0], "cells": [cell]}]}, form(), edition.receipt)
    values = [one.text for one in etree.fromstring(ddi_of(odd)).iter("{*}catValu")]
    assert values == ["a\ufffd\ufffd<b>&\ufffd"]


def _texts(value: Any) -> Any:
    """YAML reads dates as dates; the schema is about their texts."""
    if isinstance(value, dict):
        return {name: _texts(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_texts(part) for part in value]
    return value if isinstance(value, str | int | float | bool) else str(value)

"""Publications of releases with hostile or foreign labels, withheld cells and endless intervals; and two at once."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
import yaml
from lxml import etree

import farthing as ft
from farthing.publication.bundle import Files, write
from farthing.publication.edition import Edition
from farthing.publication.publisher import publication_files
from farthing.publication.verification import verify_publication
from farthing.study import Release, Study
from farthing.study.reports.release_report import report_page
from publications import CFFCONVERT, FORM, SCHEMAS, check_citation, check_croissant, release_of, study_in

pytestmark = pytest.mark.slow
LABELS = (
    '=HYPERLINK("http://evil.example.org")',
    "<script>alert(1)</script>",
    ']]> & "quoted", with commas; and | pipes',
    "'; DROP TABLE people; --",
    "Tromsø, 北京, नमस्ते, 🐦",
    "\u202eright to left\u202c",
    "- no: yes # {a: b} [c] *d &e !f %g @h",
    "{{ template }} ${shell} %s \\u0041",
)
HOSTILE = {
    **FORM,
    "title": LABELS[1],
    "description": f"{LABELS[2]}\n\n{LABELS[4]}",
    "keywords": [LABELS[3], LABELS[4], LABELS[6]],
}


class Tags(HTMLParser):
    """The tags of a page, and what its links lead to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def published(study: Study, release: Release, folder: Path, form: dict[str, Any] = FORM) -> tuple[Edition, Files]:
    """The files, which verify, are valid by every schema, and are the same bytes again."""
    edition, files = publication_files(release, form, ledger=study.ledger, report=report_page)
    assert publication_files(release, form, ledger=study.ledger, report=report_page)[1] == files
    found = verify_publication(write(files, edition, folder / "bundle.zip"), study.ledger.publication_key().public)
    assert found.ok, found.findings
    schema = etree.XMLSchema(etree.parse(str(SCHEMAS / "ddi-codebook-2.5" / "ddi_codebook_2_5.xsd")))
    assert schema.validate(etree.fromstring(files["ddi.xml"])), schema.error_log
    registry = yaml.safe_load((SCHEMAS / "registry" / "deployments-schema.yaml").read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load(files["registry.yaml"]), registry)
    assert yaml.safe_load(files["CITATION.cff"])["title"] == form["title"]
    (folder / "tools").mkdir()
    check_croissant(files, folder / "tools")
    if CFFCONVERT.is_dir():  # if it is missing, test_bundle says so
        check_citation(files["CITATION.cff"], folder / "tools")
    described = json.loads(files["croissant.jsonld"])
    assert described["name"] and len(described["recordSet"]) == len(edition.tables)
    for page in ("index.html", "report.html"):
        tags = Tags(files[page].decode())
        assert "script" not in tags.tags and tags.handlers == []
    for table in edition.tables:
        rows = list(csv.DictReader(io.StringIO(files[f"tables/{table['file']}.csv"].decode(), newline="")))
        assert [row["cell"].removeprefix("'") for row in rows] == [cell["cell"] for cell in table["cells"]] or any(
            cell["cell"].startswith("'") for cell in table["cells"]
        )
        assert all(row["cell"][:1] not in "=+@" or not row["cell"] for row in rows)
        held = pq.read_table(io.BytesIO(files[f"tables/{table['file']}.parquet"]))
        assert held.column("value").to_pylist() == [cell["value"] for cell in table["cells"]]
        etree.fromstring(files[f"charts/{table['file']}.svg"])
    return edition, files


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_labels_that_are_code_elsewhere_are_text_everywhere(tmp_path: Path) -> None:
    rows = pyarrow.table({"place": [LABELS[at % len(LABELS)] for at in range(400)]})
    people = ft.dataset(rows, schema={"place": list(LABELS)}, rows=400)
    study = Study(people, epsilon=1.0, delta=1e-9, ledger=str(tmp_path / "study.db"), account="people")
    try:
        release = study.plan(ft.count(by="place")).release()
        edition, files = published(study, release, tmp_path, HOSTILE)
    finally:
        study.close()
    assert [cell["cell"] for cell in edition.tables[0]["cells"]] == list(LABELS)
    values = [one.text for one in etree.fromstring(files["ddi.xml"]).iter("{*}catValu")]
    assert values[: len(LABELS)] == list(LABELS)
    cells = pq.read_table(io.BytesIO(files[f"tables/{edition.tables[0]['file']}.parquet"])).column("cell").to_pylist()
    assert cells == list(LABELS)
    assert "🐦" in files["index.html"].decode() and "北京" in files["methods.md"].decode() + files["ddi.xml"].decode()


@pytest.mark.draws(false_alarm=1e-15, miss=0)  # a count of 1 that reaches 100, with noise of scale 1
def test_withheld_cells_are_empty_and_said_to_be(tmp_path: Path) -> None:
    rows = pyarrow.table({"place": ["here"] * 399 + ["there"], "age": [40] * 400})
    people = ft.dataset(rows, schema={"place": ["here", "there", "nowhere"], "age": (0, 100)}, rows=400)
    study = Study(people, epsilon=5.0, delta=1e-6, ledger=str(tmp_path / "study.db"), account="people")
    study.register()
    study.ledger.grant("people", "ada", epsilon=4.0, delta=1e-7)
    study.ledger.requests.grant_policy("people", "ada", 3.0, 1e-8, cell=100)
    with ft.open_ledger(tmp_path / "study.db", actor="ada", role="analyst") as ledger:
        theirs = Study(people, epsilon=5.0, delta=1e-6, ledger=ledger, account="people")
        plan = theirs.plan(ft.count(by="place"), epsilon=2.0)
        assert plan.withheld is not None
        name = plan.release().receipt.request_id
    try:
        edition, files = published(study, study.released(name), tmp_path)
    finally:
        study.close()
    shown = {cell["cell"]: cell["value"] for cell in edition.tables[0]["cells"]}
    assert shown["here"] is not None and shown["there"] is None and shown["nowhere"] is None
    rows_of = list(csv.DictReader(io.StringIO(files[f"tables/{edition.tables[0]['file']}.csv"].decode())))
    assert [row["value"] for row in rows_of if row["cell"] != "here"] == ["", ""]
    assert all("may be withheld" in row["note"] for row in rows_of)
    assert "ada" not in "".join(row["note"] for row in rows_of)
    assert "withheld" in files["index.html"].decode() and "may be withheld" in files["methods.md"].decode()


@pytest.mark.draws(false_alarm=1e-15, miss=0)  # 0.05 to the power of 12
def test_intervals_without_ends_have_none(tmp_path: Path) -> None:
    rows = pyarrow.table({"x": [float(at % 7) for at in range(30)], "y": [float(at % 5) for at in range(30)]})
    people = ft.dataset(rows, schema={"x": (0.0, 10.0), "y": (0.0, 10.0)}, rows=30)
    study = Study(people, epsilon=1.0, delta=1e-9, ledger=str(tmp_path / "study.db"), account="people")
    try:
        # Noise of 10,000 times the truth: an interval has both ends in one release of twenty at most.
        for attempt in range(12):
            plan = study.plan(ft.linear_regression("y", "x"), ft.count(), epsilon=0.01 + attempt / 1000)
            release = plan.release()
            if any(not np.isfinite([one["lower"], one["upper"]]).all() for one in release.records()):
                break
        edition, files = published(study, release, tmp_path)
    finally:
        study.close()
    cells = [cell for table in edition.tables for cell in table["cells"]]
    assert any(cell["lower"] is None or cell["upper"] is None for cell in cells)
    assert "∞" in files["index.html"].decode()
    for path, content in files.items():
        if path.endswith((".json", ".jsonld")):
            json.loads(content, parse_constant=pytest.fail)


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_two_who_publish_one_release_at_once_write_it_once(name: str, tmp_path: Path) -> None:
    study = study_in(tmp_path)
    try:
        release = release_of(study)
        edition, files = publication_files(release, FORM, ledger=study.ledger, report=report_page)
        for attempt in range(10):
            place = tmp_path / f"{attempt}-{name}"
            problems = at_once(lambda place=place: write(files, edition, place), 6)  # type: ignore[misc]
            assert problems == []
            assert verify_publication(place).ok
        drafts = [one.name for one in tmp_path.iterdir() if not one.name.endswith(name)]
        assert not [one for one in drafts if "bundle" in one]
    finally:
        study.close()


def at_once(act: Callable[[], object], times: int) -> list[BaseException]:
    """What goes wrong if several do the same at the same moment."""
    problems: list[BaseException] = []
    start = threading.Barrier(times)

    def one() -> None:
        start.wait()
        try:
            act()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=one) for _ in range(times)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return problems

"""A release of people who do not exist and what somebody says of it, for tests of publications."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from farthing import count, dataset, histogram, mean
from farthing.publication.bundle import Files
from farthing.publication.edition import Edition
from farthing.publication.publication_details import PublicationDetails
from farthing.publication.publisher import publication_files
from farthing.study import Release, Study
from farthing.study.reports.release_report import report_page
from study_people import SCHEMA, table

SCHEMAS = Path(__file__).resolve().parents[2] / "shared" / "data" / "publishing"
if not SCHEMAS.is_dir():
    SCHEMAS = Path(__file__).resolve().parents[1] / "shared" / "data" / "publishing"

FORM: dict[str, Any] = {
    "title": "Health of people who do not exist & others, 2026",
    "description": "Counts and a mean.\n\nFrom a survey of nobody: <b>no</b> & no.",
    "purpose": "To test what is published.",
    "rationale": "Epsilon 1 keeps every error small.",
    "region": "Norway",
    "licence": "CC-BY-4.0",
    "subject": ["Medicine, Health and Life Sciences", "Social Sciences"],
    "authors": [
        {"name": "Finch, Fiona", "affiliation": "Institute of Birds", "orcid": "0000-0002-1825-0097"},
        {"name": "Institute of Birds"},
    ],
    "contact": {"name": "Finch, Fiona", "email": "data@example.org"},
    "keywords": ["survey", "privacy"],
    "sector": "Healthcare",
    "url": "https://example.org/survey",
    "related": ["https://doi.org/10.5072/FK2/EXAMPLE"],
}


def form(**changes: Any) -> PublicationDetails:
    """What somebody says of it."""
    return PublicationDetails.of({**FORM, **changes})


def study_in(folder: Path, *, epsilon: float = 1.0, delta: float = 1e-9) -> Study:
    """A study of people who do not exist, with a ledger in a folder."""
    people = dataset(table(), schema=SCHEMA, rows=400)
    return Study(people, epsilon=epsilon, delta=delta, ledger=str(folder / "study.db"), account="patients")


def release_of(study: Study, **options: Any) -> Release:
    """A release of three statistics."""
    return study.plan(count(by="sex"), mean("income", by="sex"), histogram("age", bins=5), **options).release()


def files_in(folder: Path) -> tuple[Edition, Files]:
    """The edition and the files of a release, drawn in this folder."""
    study = study_in(folder)
    try:
        return publication_files(release_of(study), form(), ledger=study.ledger, report=report_page)
    finally:
        study.close()


CFFCONVERT = Path(sys.prefix) / "cffconvert"
"""Packages of its own, which `make test` puts beside the environment."""


def check_croissant(files: Files, folder: Path) -> None:
    """Have mlcroissant's own command say that a description is valid, without a warning."""
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    validate = "from mlcroissant.scripts.validate import main; from absl import app; app.run(main)"
    said = _run("-c", validate, "--jsonld", str(folder / "croissant.jsonld"))
    assert said.returncode == 0, said.stderr
    assert "Done." in said.stderr and "warning" not in said.stderr.lower(), said.stderr


def check_citation(content: bytes, folder: Path) -> None:
    """Have cffconvert say that a citation file is valid."""
    (folder / "CITATION.cff").write_bytes(content)
    validate = "from cffconvert.cli.cli import cli; cli()"
    said = _run("-W", "ignore", "-c", validate, "--validate", "-i", str(folder / "CITATION.cff"))
    assert said.returncode == 0, said.stdout + said.stderr
    assert "are valid according to schema version 1.2.0" in said.stdout, said.stdout + said.stderr


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    beside = {**os.environ, "PYTHONPATH": str(CFFCONVERT)} if "--validate" in words else None
    return subprocess.run([sys.executable, *words], env=beside, capture_output=True, text=True, check=False)


@cache
def cached(make: Callable[[], Any]) -> Any:
    """What something makes, once in a process."""
    return make()

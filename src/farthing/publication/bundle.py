"""A publication as files: what it holds, its manifest, its signature, and the folder or zip file that it is written to.

The bytes depend only on the release, on its `PublicationDetails`, and on the versions of farthing and of the
packages that draw charts and write Parquet: no clock is read, keys are sorted, and every entry of a zip file has the
time of the release.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farthing.errors import InvalidValue
from farthing.ledger.publication_key import PublicationKey
from farthing.plots import release_chart
from farthing.plots.chart_files import png_of_svg, svg_of
from farthing.publication.citation_file import citation_of
from farthing.publication.croissant import croissant_of
from farthing.publication.ddi_codebook import ddi_of
from farthing.publication.edition import FORMAT, Edition
from farthing.publication.landing_page import landing_page
from farthing.publication.methods import methods_text
from farthing.publication.published_tables import csv_of, parquet_of
from farthing.publication.registry_record import registry_of

MANIFEST, SIGNATURE = "manifest.json", "signature.json"
RELEASE, PEOPLE, RECEIPT, EARLIER = "release.json", "publication.json", "receipt.json", "earlier_receipts.json"
REPORT = "report.html"

Files = dict[str, bytes]

TYPES = {
    ".cff": "text/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonld": "application/ld+json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".xml": "application/xml",
    ".yaml": "text/yaml",
}
"""What a file is, by its ending."""


def json_of(data: object) -> bytes:
    """Data as JSON in the one spelling that a publication has."""
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def sources_of(edition: Edition) -> Files:
    """The files from which all others are derived."""
    files = {
        RELEASE: json_of(edition.release),
        PEOPLE: json_of(edition.publication.to_dict()),
        RECEIPT: edition.receipt.to_json().encode(),
    }
    if edition.earlier:
        files[EARLIER] = json_of([one.to_dict() for one in edition.earlier])
    return files


def texts_of(edition: Edition) -> Files:
    """The tables as CSV and everything that describes them: a function of the edition and nothing else."""
    files = {f"tables/{table['file']}.csv": csv_of(edition, table) for table in edition.tables}
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    return {
        **files,
        "index.html": landing_page(edition).encode(),
        "methods.md": methods_text(edition).encode(),
        "ddi.xml": ddi_of(edition),
        "croissant.jsonld": croissant_of(edition, digests),
        "CITATION.cff": citation_of(edition),
        "registry.yaml": registry_of(edition),
    }


def files_of(edition: Edition, report: str) -> Files:
    """Every file but the manifest and its signature; `report` is the HTML page of the release."""
    files = {**sources_of(edition), **texts_of(edition), REPORT: report.encode()}
    for table in edition.tables:
        files[f"tables/{table['file']}.parquet"] = parquet_of(edition, table)
        picture = svg_of(release_chart(_records(edition, table)))
        files[f"charts/{table['file']}.svg"] = picture.encode()
        files[f"charts/{table['file']}.png"] = png_of_svg(picture)
    return dict(sorted(files.items()))


def _records(edition: Edition, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    said = {"statistic": table["statistic"], "confidence": edition.release["confidence"]}
    return [{**cell, **said} for cell in table["cells"]]


def signed(edition: Edition, files: Files, key: PublicationKey) -> Files:
    """The files with their manifest and its signature."""
    manifest = json_of(
        {
            "format": FORMAT,
            "title": edition.publication.title,
            "version": edition.publication.version,
            "released": edition.release["released"],
            "files": [
                {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                for path, content in sorted(files.items())
            ],
        }
    )
    signature = json_of({"algorithm": "Ed25519", "public_key": key.public, "signature": key.signature(manifest).hex()})
    return {**files, MANIFEST: manifest, SIGNATURE: signature}


def zip_of(files: Mapping[str, bytes], edition: Edition) -> bytes:
    """The files as one zip file; nothing in it is compressed, for the bytes must not depend on a compressor."""
    when = edition.receipt.when
    moment = (max(1980, when.year), when.month, when.day, when.hour, when.minute, when.second)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(path, moment)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            out.writestr(entry, content)
    return archive.getvalue()


def check_place(path: str | os.PathLike[str]) -> Path:
    """The path, if a publication can be written there; refused before any file is made if not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_place(f"{folder}/bundle.zip").name
    'bundle.zip'
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise InvalidValue(
            "folder", str(path), "must be in a directory that exists", "create the directory first, or choose another"
        )
    if place.suffix != ".zip" and place.exists() and not place.is_dir():
        raise InvalidValue("folder", str(path), "is a file", "name a folder, or a file that ends in .zip")
    return place


def write(files: Mapping[str, bytes], edition: Edition, path: str | os.PathLike[str]) -> Path:
    """Write a folder, or a zip file where the path ends in .zip. What is there already must be the same.

    Args:
        files: The files by their paths.
        edition: What they are derived from.
        path: Where to.

    Returns:
        The path.

    Raises:
        InvalidValue: If something else is there, or it cannot be written.
    """
    place = check_place(path)
    try:
        if place.suffix == ".zip":
            _write_zip(zip_of(files, edition), place)
        else:
            _write_folder(files, place)
    except OSError as problem:
        rule = f"cannot be written ({problem.strerror or type(problem).__name__})"
        raise InvalidValue("folder", str(path), rule, "choose another path; nothing is lost") from None
    return place


def _write_zip(content: bytes, place: Path) -> None:
    if place.exists() and place.read_bytes() != content:
        raise InvalidValue("folder", str(place), "holds something else", "choose another path, or remove it")
    draft = _draft_of(place)
    try:
        draft.write_bytes(content)
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def _write_folder(files: Mapping[str, bytes], place: Path) -> None:
    if _is_there(files, place):
        return
    draft = _draft_of(place)
    try:
        for path, content in files.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(content)
        try:
            draft.replace(place)  # over an empty folder too
        except OSError:  # somebody else was quicker
            if not _is_there(files, place):
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _is_there(files: Mapping[str, bytes], place: Path) -> bool:
    """Whether a folder has these files already; refused if it has something else."""
    if not place.exists() or not any(place.iterdir()):
        return False
    held = {str(one.relative_to(place).as_posix()) for one in place.rglob("*") if not one.is_dir()}
    if held == set(files) and all((place / path).read_bytes() == content for path, content in files.items()):
        return True
    raise InvalidValue("folder", str(place), "holds something else", "choose another path, or empty it")


def _draft_of(place: Path) -> Path:
    """Where a file or folder is written before it takes its place; no two writers share one."""
    return place.with_name(f"{place.name}.{secrets.token_hex(8)}")

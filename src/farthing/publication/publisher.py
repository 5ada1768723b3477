"""Write the publication of a release: the one way from a release and a ledger to signed files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from farthing.errors import InvalidValue
from farthing.ledger import Ledger, Receipt
from farthing.ledger.publication_key import PublicationKey
from farthing.publication.bundle import Files, check_place, files_of, signed, write
from farthing.publication.edition import Edition, ReleaseFacts, edition_of
from farthing.publication.publication_details import PublicationDetails


def publish(
    release: ReleaseFacts,
    path: str | os.PathLike[str],
    publication: PublicationDetails | Mapping[str, Any],
    *,
    ledger: Ledger,
    report: Callable[[Any], str],
    previous: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a release as a signed publication. People call `Release.publish`.

    Args:
        release: What was released.
        path: A new folder, or a file that ends in .zip.
        publication: The details that only people know.
        ledger: The curator's ledger that it was charged to.
        report: Makes the HTML page.
        previous: The bundle of the previous version; the new one includes its receipts.

    Returns:
        The path.

    Raises:
        InvalidValue: If something is missing; nothing is written then.
        NotAllowed: If the ledger is not a curator's.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"age": [3, 4]}), schema={"age": (0, 9)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = ft.Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
    >>> publish(study.plan(ft.count()).release(), folder.name + "/out", {}, ledger=study.ledger, report=str)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: publication=None: must say its title, description, purpose, ...
    >>> study.close(); folder.cleanup()
    """
    check_place(path)
    edition, files = publication_files(release, publication, ledger=ledger, report=report, previous=previous)
    return write(files, edition, path)


def publication_files(
    release: ReleaseFacts,
    publication: PublicationDetails | Mapping[str, Any],
    *,
    ledger: Ledger,
    report: Callable[[Any], str],
    previous: str | os.PathLike[str] | None = None,
) -> tuple[Edition, Files]:
    """The edition and all of its files, signed."""
    form = publication if isinstance(publication, PublicationDetails) else PublicationDetails.of(publication)
    form.checked()
    key = ledger.publication_key()
    edition = edition_of(release, form, ledger)
    if previous is not None:
        edition = replace(edition, earlier=_earlier(previous, edition, key))
    elif form.version > 1:
        from farthing.publication.deposit_ledger import earlier_receipts

        edition = replace(edition, earlier=earlier_receipts(ledger, form, edition.receipt))
    return edition, signed(edition, files_of(edition, report(_Public(release, edition))), key)


def _earlier(path: str | os.PathLike[str], edition: Edition, key: PublicationKey) -> tuple[Receipt, ...]:
    """The receipts up to the version before, which must verify and be of the same ledger."""
    from farthing.publication.verification import verified_edition

    before = verified_edition(path, key.public)
    version, receipt = before.publication.version, before.receipt
    if not (edition.publication.version > version and receipt.sequence < edition.receipt.sequence):
        raise InvalidValue(
            "previous",
            str(path),
            f"is version {version}, of entry {receipt.sequence}: a new version has a later release and a higher number",
            f"write version = {version + 1} under [publication]",
        )
    return (*before.earlier, receipt)


class _Public:
    """A release without the code of its study, which may name paths and passwords, and without who asked for it."""

    def __init__(self, release: ReleaseFacts, edition: Edition) -> None:
        self.answers, self.receipt = release.answers, edition.receipt
        self.plan = {name: part for name, part in release.plan.items() if name in _ON_THE_PAGE}
        self.plan["title"] = edition.publication.title
        self.plan |= {name: edition.release[name] for name in ("assumptions",) if name in self.plan}
        self.warnings = release.warnings
        self.records = release.records
        self.cost = float(release.plan["cost"]["upper"])
        self.about = release.plan.get("about")
        self.counts = {one["statistic"]: str(one["counts"]) for one in edition.tables}


_ON_THE_PAGE = frozenset(
    {"dataset", "delta", "statistics", "cost", "price", "budget", "unit", "period", "lifetime", "assumptions", "about"}
)


def missing_ledger() -> InvalidValue:
    """What is said of a release that did not come from a ledger which is open here."""
    return InvalidValue(
        "ledger",
        None,
        "is needed to sign a publication, and this release came from a server",
        "publish it on the server: with farthing publish, or on the page of the release",
    )

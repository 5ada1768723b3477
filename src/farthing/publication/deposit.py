"""Deposit a publication in a Dataverse: create, upload, describe, attach, and publish on request. It can be continued.

Before every change the server is asked what is there, so that nothing is done twice: a file is recognised by its folder
and the digest in its description, a dataset by the digest of the manifest among its identifiers. What was reached is
also noted, with the persistent identifier, in the ledger (see `deposit_ledger`), and in a file beside the study or in a
server's store; no note holds a token.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import quote

from farthing.errors import InvalidValue, RequestRefused
from farthing.publication.bundle import MANIFEST, PEOPLE, RECEIPT, RELEASE, TYPES, Files
from farthing.publication.dataverse import Dataverse, Interrupted, strange
from farthing.publication.dataverse_metadata import dataset_of, marker_of, variables_xml
from farthing.publication.edition import Edition

_TRIES = 6
_LOOKS = 600
_PERSISTENT = re.compile(r"(doi|hdl|perma):[^\s/]{1,60}[/.:][^\s]{1,120}", re.IGNORECASE)

_MARK = re.compile(r"\[farthing sha256:([0-9a-f]{64})\]")

Say = Callable[[str], object]
Key = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True)
class DepositPlan:
    """How a publication is to be deposited.

    Args:
        collection: The alias of the collection.
        persistent_id: The dataset that gets a new version; by default the one that the notes have, or a new one.
        original: The number of a restricted file beside which the release is attached.
        ingest: Whether the server reads the CSV tables as tables; it then stores them in a form of its own.
        publish: "major", "minor", or nothing: a draft.
    """

    collection: str
    persistent_id: str = ""
    original: int | None = None
    ingest: bool = False
    publish: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_:.-]{1,100}", self.collection):
            raise InvalidValue("collection", self.collection, "must be the alias of a collection")
        if self.persistent_id and not _PERSISTENT.fullmatch(self.persistent_id):
            raise InvalidValue("dataset", self.persistent_id, "must look like doi:10.5072/FK2/ABCDEF")
        if self.publish not in ("", "major", "minor"):
            raise InvalidValue("publish", self.publish, "must be major or minor")
        if self.original is not None and not self.original > 0:
            raise InvalidValue("original", self.original, "must be the number of a file")


@dataclass(frozen=True)
class DepositNotes:
    """What is known of deposits of a study: where, as what, and how far.

    Args:
        server: The address of the server.
        persistent_id: The dataset; empty while it is created.
        digest: The digest of the manifest that was deposited last, or that is being created.
        state: "creating", "uploading", "done" or "published".
        attempt: A random name of whoever deposits, by which a ledger tells them apart.
    """

    server: str
    persistent_id: str = ""
    digest: str = ""
    state: str = ""
    attempt: str = ""


class NotesPlace(Protocol):
    """Where the notes of deposits are kept."""

    def load(self, server: str) -> DepositNotes:
        """The notes of a server; fresh ones where there are none."""

    def save(self, notes: DepositNotes) -> None:
        """Write down how far the deposit of these notes is."""

    def alone(self) -> AbstractContextManager[None]:
        """A block that one deposit at a time may enter: two at once would create two datasets."""


class NotesFile:
    """Notes in a file beside the study.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, server: str) -> DepositNotes:
        """The notes in the file; fresh ones where there is none.

        Raises:
            InvalidValue: If it holds something else, or is of another server.
        """
        path = self._path
        if not path.exists():
            return DepositNotes(server)
        try:
            notes = DepositNotes(**json.loads(path.read_text(encoding="utf-8")))
            if not all(isinstance(one, str) for one in asdict(notes).values()):
                raise TypeError
        except (ValueError, TypeError, OSError, RecursionError):
            raise InvalidValue("notes", str(path), "are not those of a deposit", "move the file away") from None
        if notes.server != server:
            rule = f"are of a deposit at {notes.server}"
            raise InvalidValue("notes", str(path), rule, "move the file away to deposit here as well")
        return notes

    def save(self, notes: DepositNotes) -> None:
        """Write the notes whole, or not at all."""
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        draft.write_text(json.dumps(asdict(notes), indent=1) + "\n", encoding="utf-8")
        draft.replace(self._path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other deposit runs from this folder; the folder is locked, for the file is replaced."""
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


@dataclass(frozen=True)
class Deposited:
    """The result of a deposit. Made by `deposit`.

    Args:
        persistent_id: The dataset.
        url: Its landing page.
        uploaded: How many files were uploaded now.
        published: Whether it is published.
    """

    persistent_id: str
    url: str
    uploaded: int
    published: bool


def page_of(server: str, persistent_id: str) -> str:
    """The page of a dataset.

    >>> page_of("https://demo.dataverse.org", "doi:10.5072/FK2/A")
    'https://demo.dataverse.org/dataset.xhtml?persistentId=doi:10.5072/FK2/A'
    """
    return f"{server}/dataset.xhtml?persistentId={quote(persistent_id, safe=':/')}"


def deposit(
    edition: Edition, files: Files, server: Dataverse, plan: DepositPlan, notes: NotesPlace, say: Say = lambda _: None
) -> Deposited:
    """Deposit a publication, or continue where an earlier attempt ended.

    Args:
        edition: What is published.
        files: Its files, signed.
        server: The server.
        plan: How.
        notes: Where the persistent identifier is kept.
        say: Called with each step, in words.

    Returns:
        What it came to.

    Raises:
        RequestRefused: If the server refuses, or is gone for too long; the same call continues.
    """
    with notes.alone():
        return _Depositor(edition, files, server, plan, notes, say).deposit()


class _Depositor:
    """One attempt at a deposit."""

    def __init__(
        self, edition: Edition, files: Files, server: Dataverse, plan: DepositPlan, place: NotesPlace, say: Say
    ) -> None:
        self.edition, self.files, self.server, self.plan, self.say = edition, files, server, plan, say
        self.digest = hashlib.sha256(files[MANIFEST]).hexdigest()
        self.dataset = dataset_of(edition, self.digest)
        self.place = place
        self.notes = place.load(server.url)
        self.uploaded, self.unsure = 0, False

    def deposit(self) -> Deposited:
        """Everything that a deposit does, in its order."""
        persistent_id = self._dataset()
        self._note(persistent_id=persistent_id, digest=self.digest, state="uploading")
        held = self._held(persistent_id)
        for key in [one for one in held if one not in self._keys]:  # first: of two files with one name one is renamed
            self._remove(persistent_id, key, held.pop(key))
        for path in sorted(self.files, key=lambda path: (path == MANIFEST, path)):  # it says that all others are there
            self._upload(persistent_id, path, held)
        if self.plan.original is not None:
            self._attach(self.plan.original)
        published = self._publish(persistent_id)
        self._note(state="published" if published else "done")
        return Deposited(persistent_id, page_of(self.server.url, persistent_id), self.uploaded, published)

    def _note(self, **changes: str) -> None:
        self.notes = replace(self.notes, **changes)
        self.place.save(self.notes)

    def _ensured(self, look: Callable[[], T | None], act: Callable[[], T]) -> T:
        """What `look` finds, or what `act` makes; after a call whose outcome nobody knows it is looked for again."""
        for attempt in range(_TRIES):
            present = look()
            if present is not None:
                return present
            try:
                return act()
            except Interrupted as interruption:
                if attempt == _TRIES - 1:
                    raise
                self.unsure = True
                self.server.wait(float(str(interruption.fields.get("delay", 2.0**attempt))))
        raise AssertionError("the last attempt returns or raises")

    def _dataset(self) -> str:
        """The dataset: the one that is named, the one that was made before, or a new one."""
        known = self.plan.persistent_id or self.notes.persistent_id
        if known:
            return self._taken(known)
        begun = self.notes.digest if self.notes.state == "creating" else ""
        self.unsure = self.notes.state == "creating"
        self._note(state="creating", digest=begun or self.digest)
        if begun not in ("", self.digest):  # an attempt with other files may have made it
            made = self._ensured(lambda: self._made_before(begun) or "", lambda: "")
            if made:
                return self._taken(made)
            self._note(digest=self.digest)
        return self._ensured(lambda: self._made_before(self.digest) if self.unsure else None, self._create)

    def _taken(self, known: str) -> str:
        """A dataset that is there. Before it is changed the notes say so; they refuse if somebody else is at it."""
        described = self._described(known)
        self._note(persistent_id=known, digest=self.digest, state="uploading")
        if not described:
            self._ensured(lambda: self._described(known), lambda: self._edit(known))
        return known

    def _create(self) -> str:
        created = self.server.create(self.plan.collection, self.dataset)
        self.say(f"created dataset {created}")
        return created

    def _made_before(self, digest: str) -> str | None:
        """The dataset of an attempt whose answer was lost."""
        for one in self.server.contents(self.plan.collection):
            try:
                if marker_of(self.server.version(one)) == digest:
                    self.say(f"dataset {one} was created before")
                    return one
            except RequestRefused as refusal:
                if isinstance(refusal, Interrupted) or refusal.fields.get("status") not in (401, 403, 404):
                    raise  # one that this token may not see is not ours
        return None

    def _described(self, persistent_id: str) -> bool | None:
        """True where the dataset has the metadata of this edition."""
        return True if marker_of(self.server.version(persistent_id)) == self.digest else None

    def _edit(self, persistent_id: str) -> bool:
        self.server.edit(persistent_id, self.dataset)
        self.say(f"updated the metadata of {persistent_id}")
        return True

    def _held(self, persistent_id: str) -> dict[Key, int]:
        """The files of the dataset that farthing uploaded."""
        held = {}
        try:
            for one in self.server.version(persistent_id).get("files", []):
                digest = _MARK.search(str(one.get("description", "")))
                if digest is not None:
                    held[(str(one.get("directoryLabel") or ""), digest[1])] = int(one["dataFile"]["id"])
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            raise strange("the files of a dataset") from None
        return held

    @cached_property
    def _keys(self) -> dict[Key, str]:
        """The files of this edition by what they are recognised by."""
        return {_key(path, content): path for path, content in self.files.items()}

    def _upload(self, persistent_id: str, path: str, held: dict[Key, int]) -> None:
        """Upload a file, unless the dataset has it; then what the server made of a table is described."""
        content = self.files[path]
        folder, digest = key = _key(path, content)
        ingested = self.plan.ingest and path.endswith(".csv")
        about = {
            "description": f"{self._what(path)} [farthing sha256:{digest}]",
            "directoryLabel": folder,
            "categories": ["Data" if folder == "tables" else "Documentation"],
            "restrict": "false",
            "tabIngest": "true" if ingested else "false",
        }
        name = path.rpartition("/")[2]

        def look() -> int | None:
            if self.unsure:
                held.update(self._held(persistent_id))
                self.unsure = False
            return held.get(key)

        def act() -> int:
            self._note()  # it goes on
            self._await_ingest(persistent_id)
            number = self.server.add(persistent_id, name, content, TYPES["." + name.rpartition(".")[2]], about)
            self.uploaded += 1
            self.say(f"uploaded {path}")
            return number

        held[key] = self._ensured(look, act)
        if ingested:
            self._describe(persistent_id, path, held[key])

    def _what(self, path: str) -> str:
        """What a file is, in words."""
        stem = path.rpartition("/")[2].rpartition(".")[0]
        for table in self.edition.tables:
            if table["file"] == stem:
                return f"{table['statistic']}; counts {table['counts']}; {self.edition.guarantee}"
        return _ABOUT.get(path, "part of the publication")

    def _await_ingest(self, persistent_id: str) -> None:
        """Wait until the server has read the tables that were uploaded."""
        for _ in range(_LOOKS):
            if not self.server.ingesting(persistent_id):
                return
            self.server.wait(1.0)
        raise RequestRefused("locked", f"{persistent_id} is still locked by an ingest; run the same command later.", {})

    def _describe(self, persistent_id: str, path: str, file_id: int) -> None:
        """Labels and notes for the variables of a table that the server read; it may have refused to read it."""
        self._await_ingest(persistent_id)
        codebook = self.server.codebook(file_id)
        if codebook is None:
            self.say(f"{path} was not ingested, so it has no variables to describe")
            return
        stem = path.rpartition("/")[2].rpartition(".")[0]
        (table,) = (one for one in self.edition.tables if one["file"] == stem)
        variables = variables_xml(self.edition, table, codebook, file_id)

        def act() -> bool:
            self.server.describe(file_id, variables)
            return True

        self._ensured(lambda: None, act)

    def _remove(self, persistent_id: str, key: Key, file_id: int) -> None:
        """Take out a file of an earlier version that this one does not have."""

        def act() -> bool:
            self.server.delete(file_id)
            self.say(f"removed a file of an earlier version from {key[0] or 'the top folder'}")
            return True

        self._ensured(lambda: None if key in self._held(persistent_id) else True, act)

    def _attach(self, original: int) -> None:
        """The release and its codebook beside a restricted file."""
        version = f"v{self.edition.publication.version}"
        for tag, path in (("dpJson", RELEASE), ("dpXml", "ddi.xml")):
            content, kind = self.files[path], TYPES["." + path.rpartition(".")[2]]

            def act(tag: str = tag, content: bytes = content, kind: str = kind) -> bool:
                if self.server.attach(original, tag, version, content, kind):
                    self.say(f"attached {tag} {version} to file {original}")
                elif self.server.attached(original, tag, version) != content:
                    rule = f"has another {tag} {version} already"
                    raise InvalidValue("original", original, rule, "raise version under [publication]")
                return True

            self._ensured(lambda: None, act)

    def _publish(self, persistent_id: str) -> bool:
        """Publish the draft on request; whether the dataset is published."""
        if not self.plan.publish:
            return self._is_public(persistent_id) is not None
        self._await_ingest(persistent_id)

        def act() -> bool:
            try:
                self.server.publish(persistent_id, self.plan.publish)
            except RequestRefused as refusal:
                if refusal.fields.get("status") != 409:
                    raise  # 409: it is being published, or was a moment ago
            for _ in range(_LOOKS):
                if self._is_public(persistent_id):
                    self.say(f"published {persistent_id}")
                    return True
                self.server.wait(1.0)
            raise RequestRefused("locked", f"{persistent_id} is still being published; look at its page later.", {})

        return self._ensured(lambda: self._is_public(persistent_id), act)

    def _is_public(self, persistent_id: str) -> bool | None:
        """True where the latest version is published, and no draft."""
        return True if self.server.version(persistent_id).get("versionState") == "RELEASED" else None


def _key(path: str, content: bytes) -> Key:
    return path.rpartition("/")[0], hashlib.sha256(content).hexdigest()


_ABOUT = {
    "CITATION.cff": "how to cite it",
    "croissant.jsonld": "description as Croissant 1.1",
    "ddi.xml": "description as DDI-Codebook 2.5",
    "index.html": "the landing page",
    MANIFEST: "the digest of every file",
    "methods.md": "the methods, ready for a paper",
    PEOPLE: "the details that the publisher wrote",
    RECEIPT: "the receipt of the charge",
    "registry.yaml": "a record for the registry of differential-privacy deployments",
    RELEASE: "everything that was released",
    "report.html": "the report: tables, charts, what was spent and what it means",
    "signature.json": "the signature of the manifest",
}

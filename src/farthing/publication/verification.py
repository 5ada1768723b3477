"""Whether a publication is what its publisher signed, and whether it agrees with itself. Needs no ledger and no data.

What is checked, in this order; each finding is a sentence, and any finding means that it does not verify.

files       every file that the manifest names is there with its digest, and no other
signature   the manifest was signed with the published key (Ed25519)
receipts    the receipt is of this release, and follows those of earlier versions
epsilon     the stated mechanisms cost what is stated, at most: computed again by the accountant
tables      CSV, Parquet and release.json have the same numbers; intervals and totals are what they must be
texts       methods, codebook, metadata and landing page are those of this release, byte for byte
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import islice, pairwise
from typing import Any

from farthing.errors import InvalidValue
from farthing.ledger import Receipt
from farthing.ledger.publication_key import ed25519, is_signature
from farthing.privacy import Event
from farthing.publication.bundle import (
    EARLIER,
    MANIFEST,
    PEOPLE,
    RECEIPT,
    RELEASE,
    REPORT,
    SIGNATURE,
    json_of,
    sources_of,
    texts_of,
)
from farthing.publication.bundle_reader import Unreadable, json_in, read_bundle
from farthing.publication.edition import COLUMNS, FORMAT, NUMBERS, SOFTWARE, Edition, version_of_software
from farthing.publication.methods import events_in, recomputed_epsilon
from farthing.publication.publication_details import PublicationDetails
from farthing.publication.published_tables import csv_of, parquet_of, parquet_rows

_MOST_EVENTS = 200_000
_MOST_KINDS = 2_000  # mechanisms that differ: each takes the accountant milliseconds
_MOST_TIMES = 1_000_000_000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_FILE = re.compile(r"[0-9]{2,6}-[a-z0-9-]{1,80}")
_MOST_SAID = 50
_LONGEST_SAID = 600


@dataclass(frozen=True)
class PublicationCheck:
    """The result of verifying a publication. Made by `verify_publication`.

    Args:
        findings: What is wrong, in sentences; nothing if it verifies.
        facts: What was found to be true, by subject.
        key: The public key that it was signed with.
        notes: What a reader should know besides, such as what was not checked.
    """

    findings: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A bundle names its own tables: no name may move the cursor of a terminal, or write "verified" on a new line.
        object.__setattr__(self, "findings", tuple(_on_one_line(one) for one in self.findings))
        object.__setattr__(self, "facts", {name: _on_one_line(said) for name, said in self.facts.items()})

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON-ready data."""
        return {
            "ok": self.ok,
            "findings": list(self.findings),
            "facts": dict(self.facts),
            "key": self.key,
            "notes": list(self.notes),
        }


def verify_publication(path: str | os.PathLike[str], key: str | None = None) -> PublicationCheck:
    """Verify a bundle: a zip file or a folder.

    Args:
        path: Where it is.
        key: The public key that its publisher shows, as 64 hexadecimal digits; by default the one in the bundle, which
            proves that nothing was changed after signing, but not who signed.

    Returns:
        What it came to.

    Raises:
        MissingExtra: If the extra `publish` is not installed.
    """
    ed25519()
    try:
        files = read_bundle(path)
        signed_with = _signed(files, key)
        _complete(files)
    except Unreadable as problem:
        return PublicationCheck((str(problem),))
    facts = {"signature": f"Ed25519, key {signed_with}", "files": f"{len(files) - 2:,} files, each as it was signed"}
    try:
        edition = edition_in(files)
    except Exception as problem:  # whatever goes wrong with it, it does not verify
        return PublicationCheck(
            (f"release.json, publication.json or receipt.json: {_words(problem)}",), facts, signed_with
        )
    findings: list[str] = []
    for subject, check in _CHECKS.items():
        try:
            said = list(islice(check(edition, files, facts), _MOST_SAID))
        except Exception as problem:  # whatever goes wrong with it, it does not verify
            said = [f"cannot be checked: {_words(problem)}"]
        findings += [f"{subject}: {one}" for one in said]
    return PublicationCheck(tuple(findings), facts, signed_with, tuple(_notes(edition, key)))


def verified_edition(path: str | os.PathLike[str], key: str) -> Edition:
    """The edition in a bundle that verifies under a key.

    Raises:
        InvalidValue: If it does not verify.
    """
    check = verify_publication(path, key)
    if not check.ok:
        raise InvalidValue("previous", str(path), f"does not verify: {check.findings[0]}")
    return edition_in(read_bundle(path))


def _on_one_line(text: str) -> str:
    """A sentence as it can be shown, whatever it quotes: one line of printable characters, and not too long."""
    short = text if len(text) <= _LONGEST_SAID else f"{text[:_LONGEST_SAID]}..."
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in short)


def _words(problem: BaseException) -> str:
    if isinstance(problem, KeyError):
        return f"{problem.args[0]!r} is missing"
    return str(problem)[:300] or type(problem).__name__


def _signed(files: Mapping[str, bytes], key: str | None) -> str:
    """The key that the manifest was signed with."""
    for name in (MANIFEST, SIGNATURE):
        if name not in files:
            raise Unreadable(f"there is no {name}: it is not a publication of farthing")
    try:
        signature = json_in(files[SIGNATURE])
        public, signed = signature["public_key"], signature["signature"]
        known = set(signature) == {"algorithm", "public_key", "signature"} and signature["algorithm"] == "Ed25519"
        fits = _DIGEST.fullmatch(public) and _SIGNATURE.fullmatch(signed) and json_of(signature) == files[SIGNATURE]
    except (ValueError, KeyError, TypeError):
        known = fits = False
    if not (known and fits):
        raise Unreadable("signature.json is not a signature of farthing")
    if key is not None and key.strip().lower() != public:
        raise Unreadable(f"it is signed with the key {public}, not with the one that you gave")
    if not is_signature(bytes.fromhex(public), bytes.fromhex(signed), files[MANIFEST]):
        raise Unreadable("the signature does not fit the manifest: one of them was changed")
    return str(public)


def _complete(files: Mapping[str, bytes]) -> None:
    """Every file is as the manifest says, and there is no other."""
    try:
        manifest = json_in(files[MANIFEST])
        named = {str(one["path"]): (one["bytes"], one["sha256"]) for one in manifest["files"]}
        if manifest["format"] != FORMAT or len(named) != len(manifest["files"]):
            raise Unreadable(f"the manifest is not one of {FORMAT!r}")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable("the manifest cannot be read") from None
    others = set(files) - set(named) - {MANIFEST, SIGNATURE}
    missing = sorted(set(named) - set(files))
    if others:
        raise Unreadable(f"{sorted(others)[0]} is not in the manifest: it was added later")
    if missing:
        raise Unreadable(f"{missing[0]} is missing")
    for name, (length, digest) in named.items():
        if len(files[name]) != length or hashlib.sha256(files[name]).hexdigest() != digest:
            raise Unreadable(f"{name} was changed: its checksum is not that of the manifest")


def edition_in(files: Mapping[str, bytes]) -> Edition:
    """What the files of a bundle say was released; any exception means that they say nothing."""
    release = json_in(files[RELEASE])
    if release["format"] != FORMAT or release["software"]["name"] != SOFTWARE:
        raise ValueError(f"the format must be {FORMAT!r}")
    json_in(files[RECEIPT])  # by stricter rules than those of a receipt that one keeps oneself
    receipt = Receipt.from_json(files[RECEIPT].decode("utf-8"))
    earlier = json_in(files[EARLIER]) if EARLIER in files else []
    receipts = tuple(Receipt.from_json(json_of(one).decode()) for one in earlier)
    for name in ("epsilon", "delta", "confidence"):
        if type(release[name]) not in (int, float):
            raise ValueError(f"{name} must be a number")
    edition = Edition(release, PublicationDetails.of(json_in(files[PEOPLE])).checked(), receipt, receipts)
    for name, content in sources_of(edition).items():
        if files.get(name) != content:
            raise ValueError(f"{name} is not written as farthing writes it")
    for table in edition.tables:
        if not _FILE.fullmatch(table["file"]):
            raise ValueError("a table has a file name that farthing does not use")
    if _repeated(edition) > sum(map(len, files.values())):
        raise ValueError("its tables are larger than its files")
    return edition


def _repeated(edition: Edition) -> int:
    """How long the texts are together that the files say of every table and every row, without writing them.

    A release of few bytes can have a long note and many rows, and its tables would fill any memory.
    """
    release = edition.release
    everywhere = sum(len(str(release.get(name) or "")) for name in ("unit", "about", "lifetime", "withheld"))
    everywhere += sum(len(text) for text in release["warnings"])
    length = 0
    for table in edition.tables:
        own = sum(len(str(table[name])) for name in ("statistic", "counts", "note"))
        length += (everywhere + own) * (len(table["cells"]) + 1)
    return length


Facts = dict[str, str]
Check = Callable[[Edition, Mapping[str, bytes], Facts], Iterator[str]]


def _manifest(edition: Edition, files: Mapping[str, bytes], facts: Facts) -> Iterator[str]:
    manifest = json_in(files[MANIFEST])
    said = (manifest["title"], manifest["version"], manifest["released"])
    if said != (edition.publication.title, edition.publication.version, edition.release["released"]):
        yield "its title, version or time is not that of the release"
    stems = [table["file"] for table in edition.tables]
    wanted = {f"tables/{one}.{kind}" for one in stems for kind in ("csv", "parquet")}
    wanted |= {f"charts/{one}.{kind}" for one in stems for kind in ("svg", "png")}
    alone = {REPORT, *sources_of(edition), *_TEXTS, MANIFEST, SIGNATURE}
    if len(set(stems)) != len(stems) or set(files) != wanted | alone:
        yield "the files that it names are not those of the tables of the release"


_TEXTS = ("index.html", "methods.md", "ddi.xml", "croissant.jsonld", "CITATION.cff", "registry.yaml")


def _receipts(edition: Edition, files: Mapping[str, bytes], facts: Facts) -> Iterator[str]:
    receipt, release = edition.receipt, edition.release
    if receipt.state != "released":
        yield f"its state is {receipt.state!r}, and only what was released can be published"
    if (receipt.epsilon, receipt.delta) != (edition.epsilon, edition.delta):
        yield f"it was charged epsilon {receipt.epsilon} at delta {receipt.delta}, and the release says otherwise"
    if receipt.when.isoformat() != release["released"]:
        yield "its time is not that of the release"
    if receipt.dataset != release["dataset"]:
        yield "its account is not that of the release"
    for one in (*edition.earlier, receipt):
        if not (one.sequence >= 1 and one.charges >= 1 and _DIGEST.fullmatch(one.mac)):
            yield f"entry {one.sequence} is not one that a ledger can have"
        # Plain sums are in billionths, rounded up.
        if one.total_nano >= 0 and not one.total_nano / 1e9 >= one.epsilon * (1 - 1e-9) - 1e-9:
            yield f"after entry {one.sequence} the account had spent less than the entry cost"
    for before, after in pairwise((*edition.earlier, receipt)):
        grows = after.dataset != before.dataset or (
            after.charges >= before.charges and (after.total_nano < 0 or after.total_nano >= before.total_nano >= 0)
        )
        if after.ledger != before.ledger or not after.sequence > before.sequence or not grows:
            yield f"entry {after.sequence} does not follow entry {before.sequence} of the same ledger"
    if edition.publication.version > 1 and not edition.earlier:
        facts["earlier versions"] = "their receipts are not in this publication"
    if escape(receipt.to_json()).encode() not in files[REPORT]:
        yield "the report shows another one"
    facts["receipt"] = f"entry {receipt.sequence:,} of ledger {receipt.ledger}, {edition.day}"


def _epsilon(edition: Edition, files: Mapping[str, bytes], facts: Facts) -> Iterator[str]:
    stated, delta = edition.epsilon, edition.delta
    if not (0 <= stated < math.inf and 0 <= delta < 1):
        yield "epsilon or delta is not a valid number"
        return
    event = Event.from_dict(edition.release["mechanisms"])
    parts = list(events_in(event))
    times = sum(count for _, count in parts)
    if len(parts) > _MOST_EVENTS or times > _MOST_TIMES or len({one for one, _ in parts}) > _MOST_KINDS:
        yield "there are more mechanisms than can be composed here"
        return
    computed = recomputed_epsilon(event, delta)
    # A ledger charges billionths, rounded up; the accountant's bound is within that of the optimum.
    if not computed <= stated * (1 + 1e-9) + 2e-9:
        yield f"epsilon {stated} is stated at delta {delta}, and the stated mechanisms cost {computed}"
    facts["epsilon"] = (
        f"{stated} is stated at delta {delta:g}; the accountant computes {computed:.9g} for {times:,} "
        f"measurement{'s' if times != 1 else ''}"
    )


def _tables(edition: Edition, files: Mapping[str, bytes], facts: Facts) -> Iterator[str]:
    numbers = 0
    if not 0 < edition.release["confidence"] < 1:
        yield "the confidence is not a probability"
    for table in edition.tables:
        name = table["statistic"]
        numbers += len(table["cells"])
        yield from (f"{name}: {said}" for said in _contradictions(table))
        if csv_of(edition, table) != files[f"tables/{table['file']}.csv"]:
            place = _first_other(edition, table, files)
            yield f"{name}: the CSV file does not have the numbers and notes of release.json{place}"
        content, rows = files[f"tables/{table['file']}.parquet"], edition.rows(table)
        # What is written again to the same bytes need not be read: reading a stranger's Parquet is the greater risk.
        if content != parquet_of(edition, table) and parquet_rows(content, len(rows)) != rows:
            yield f"{name}: the Parquet file does not have the numbers and notes of release.json"
    facts["tables"] = f"{len(edition.tables):,} tables, {numbers:,} numbers; CSV, Parquet and JSON agree"


def _contradictions(table: Mapping[str, Any]) -> Iterator[str]:
    """What cannot be true of the numbers of one table."""
    for cell in table["cells"]:
        if set(cell) - {"cell", *NUMBERS} or not isinstance(cell["cell"], str):
            yield f"the row of {cell['cell']!r} says something else than its numbers"
        for name in NUMBERS:
            if name in cell and not (cell[name] is None or type(cell[name]) in (int, float)):
                yield f"{name} of {cell['cell']!r} is no number"
    values = [cell["value"] for cell in table["cells"] if cell["value"] is not None]
    if math.fsum(values) != table["total"]:
        yield "its values do not add up to its total"
    for cell in table["cells"]:
        lower, upper = _ends(cell, "lower", "upper")
        if not lower <= upper:
            yield f"the interval of {cell['cell']!r} ends before it begins"
        if cell["standard_error"] is not None and not cell["standard_error"] >= 0:
            yield f"the standard error of {cell['cell']!r} is below 0"
        if "lower_at_once" in cell:
            least, most = _ends(cell, "lower_at_once", "upper_at_once")
            if not (least <= lower and upper <= most):
                yield f"the interval of {cell['cell']!r} at once is narrower than its own"


def _ends(cell: Mapping[str, Any], low: str, high: str) -> tuple[float, float]:
    """Both ends of an interval; what JSON cannot say is without end."""
    lower, upper = cell[low], cell[high]
    return (-math.inf if lower is None else float(lower), math.inf if upper is None else float(upper))


def _first_other(edition: Edition, table: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Where the CSV file differs first."""
    given = csv.reader(io.StringIO(files[f"tables/{table['file']}.csv"].decode("utf-8"), newline=""))
    wanted = csv.reader(io.StringIO(csv_of(edition, table).decode("utf-8"), newline=""))
    for number, (one, other) in enumerate(zip(given, wanted, strict=False), 1):
        if one != other:
            places = [COLUMNS[at] for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]]
            return f" (line {number}, {', '.join(places[:3]) or 'its columns'})"
    return ""


def _texts(edition: Edition, files: Mapping[str, bytes], facts: Facts) -> Iterator[str]:
    here = version_of_software()
    made = edition.release["software"]["version"]
    if f"Software: {edition.software}.".encode() not in files["methods.md"]:
        yield "methods.md names another version of farthing"
    if made != here:
        facts["texts"] = (
            f"not compared: farthing {made} wrote them, and this is farthing {here}, whose wording may differ"
        )
        return
    for name, content in texts_of(edition).items():
        if files[name] != content and not name.startswith("tables/"):
            yield f"{name} does not say what the release says"
    facts["texts"] = "methods, codebook, metadata and landing page say what the release says"


_CHECKS: dict[str, Check] = {
    "manifest": _manifest,
    "receipt": _receipts,
    "epsilon": _epsilon,
    "tables": _tables,
    "texts": _texts,
}


def _notes(edition: Edition, key: str | None) -> Iterator[str]:
    if key is None:
        yield "anybody can sign: compare the key with the one that the publisher shows, or give that one with --key"
    yield (
        "whether the ledger still holds the receipt, only its curator can check: farthing ledger verify LEDGER "
        "--receipt receipt.json"
    )
    yield f"{REPORT} and the charts are as they were signed; whether they show the same numbers was not checked"

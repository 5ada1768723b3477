"""`farthing publish` and `farthing verify`: a release as files that others can cite, and the check for everybody."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.terminal import declared_study, study_options
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

    from farthing.ledger import Ledger
    from farthing.publication.deposit import DepositPlan
    from farthing.study import Release, Study
    from farthing.study.documents.study_file import StudyFile


HELP = """\
Write a release as a signed publication: tables (CSV and Parquet), the report, a methods paragraph, charts, the receipt,
and metadata for archives (DDI-Codebook, Croissant, CITATION.cff, a record for the public registry).

The details that only you know (title, authors, contact, purpose, licence) stand in the file under [publication]; if one
is missing, nothing is written. Nothing is spent and no row is read. The same release gives the same bytes.

The publication is signed with a key that belongs to the ledger. --show-key prints the public half of this key: show it
where readers trust you.

With --dataverse and --collection the publication is deposited in a Dataverse. The dataset is created, or gets a new
version, and the files are uploaded; the dataset stays a draft unless you add --publish. The token is read from
$DATAVERSE_API_TOKEN or --token-file. If the deposit is interrupted, run the same command again: it continues, and
nothing is uploaded twice.

Exit code: 0 if the publication was written; 2 if it was refused, with the reason and what to do.
"""


@click.command("publish", help=HELP, short_help="Write a release as signed files that others can cite and verify.")
@click.argument("file", default="study.toml")
@click.option("--out", "-o", metavar="PATH", help="A new folder, or a file.zip (default: FILE-publication.zip).")
@click.option("--request-id", metavar="ID", help="Which release (default: the one that the file asks for).")
@click.option(
    "--previous", metavar="PATH", help="The bundle of the previous version; the new one includes its receipts."
)
@click.option(
    "--show-key", is_flag=True, help="Print the public key that verifies this ledger's publications, and stop."
)
@click.option("--dataverse", metavar="URL", help="Deposit it in this Dataverse.")
@click.option("--collection", metavar="ALIAS", help="The collection of the Dataverse.")
@click.option("--token-file", metavar="FILE", help="A file with the API token, which only you can read.")
@click.option(
    "--dataset", metavar="DOI", help="Add a new version to this dataset (default: to the one deposited before)."
)
@click.option(
    "--original",
    metavar="ID",
    type=click.IntRange(1),
    help="Attach the release to the restricted file with this number.",
)
@click.option("--ingest", is_flag=True, help="Let Dataverse read the CSV tables, and describe their variables.")
@click.option(
    "--publish", "kind", type=click.Choice(["major", "minor"]), help="Publish the dataset (default: a draft)."
)
@click.option(
    "--tool-manifest", metavar="URL", help="Print the manifest for farthing at URL as an external tool, and stop."
)
@study_options
def publish_command(
    file: str,
    out: str | None,
    request_id: str | None,
    previous: str | None,
    show_key: bool,
    dataverse: str | None,
    collection: str | None,
    token_file: str | None,
    tool_manifest: str | None,
    **how: Any,
) -> None:
    """Find the release in the ledger, write its publication, say what was written; deposit it if a server is named."""
    if tool_manifest is not None:
        from farthing.publication.dataverse_metadata import external_tool

        click.echo(json.dumps(external_tool(tool_manifest), indent=2))
        return
    place = _Place.checked(dataverse, collection, token_file, **how)
    asked = declared_study(file)
    if not asked.has_ledger:
        raise InvalidValue("study", file, "has not been released yet", f"run farthing release {file} first")
    study = asked.study()
    try:
        if show_key:
            click.echo(study.ledger.publication_key().public)
            return
        asked.publication.checked()
        release = released(asked, study, request_id)
        target = out or str(asked.path.with_name(f"{asked.path.stem}-publication.zip"))
        bundle = release.publish(target, asked.publication, previous)
        click.echo(f"Written: {bundle}")
        click.echo(f"Signed with the key {study.ledger.publication_key().public}: show it where readers trust you.")
        click.echo(f"To check it: farthing verify {bundle}")
        if place is not None:
            place.deposit(bundle, asked.path.with_name(f"{asked.path.stem}-deposit.json"), study.ledger)
    finally:
        study.close()


@dataclass(frozen=True)
class _Place:
    """Where and how to deposit; the token never shows in its repr."""

    url: str
    token: str = field(repr=False)
    plan: DepositPlan

    @classmethod
    def checked(cls, url: str | None, collection: str | None, token_file: str | None, **how: Any) -> _Place | None:
        """What the options say; None where nothing is to be deposited."""
        from farthing.publication.dataverse import checked_address, read_token
        from farthing.publication.deposit import DepositPlan

        if url is None:
            given = {"collection": collection, "token-file": token_file, **how}
            for name, value in given.items():
                if value:
                    raise InvalidValue(name, value, "is an option for deposits", "name the server: --dataverse URL")
            return None
        if collection is None:
            raise InvalidValue("collection", None, "must be given", "name the collection: --collection ALIAS")
        plan = DepositPlan(
            collection, how["dataset"] or "", how["original"], ingest=how["ingest"], publish=how["kind"] or ""
        )
        return cls(checked_address(url), read_token(token_file), plan)

    def deposit(self, bundle: Path, notes: Path, ledger: Ledger) -> None:
        """Deposit a bundle that was just written, and say what happens."""
        from farthing.publication.bundle_reader import read_bundle
        from farthing.publication.dataverse import Dataverse
        from farthing.publication.deposit import NotesFile, deposit
        from farthing.publication.deposit_ledger import LedgerNotes
        from farthing.publication.verification import edition_in

        files = read_bundle(bundle)
        edition, server = edition_in(files), Dataverse(self.url, self.token)
        try:
            place = LedgerNotes(ledger, edition, NotesFile(notes))
            done = deposit(edition, files, server, self.plan, place, say=lambda words: click.echo(f"  {words}"))
        finally:
            server.close()
        state = "published" if done.published else "a draft: publish it on its page, or with --publish major"
        click.echo(f"Deposited: {done.persistent_id}, {state}")
        click.echo(f"Its page: {done.url}")


def released(asked: StudyFile, study: Study, request_id: str | None) -> Release:
    """The release that a file asks for, as the ledger has it; nothing is spent."""
    for name in filter(None, (request_id, asked.request_id)):
        if study.ledger.stored(name) is not None:
            return study.released(name)
    if request_id is not None:
        raise InvalidValue(
            "request-id", request_id, "is not a release of this ledger", "farthing ledger show lists them"
        )
    earlier = asked.plan(study).earlier
    if earlier is None:
        way_out = f"run farthing release {asked.path} first, or name one with --request-id"
        raise InvalidValue("study", str(asked.path), "has not been released yet", way_out)
    return study.released(earlier.request_id)


VERIFY_HELP = """\
Verify a publication: its signature, every checksum and the receipts; that the stated epsilon follows from the stated
mechanisms (it is computed again); that the tables agree with each other; and that all texts say what the release says.

It needs no ledger, no data and no network. BUNDLE is a zip file or a folder. With --key, give the public key that the
publisher shows: without it you learn that nothing was changed after signing, but not who signed.

Exit code: 0 if the publication verifies; 1 if it does not, with every reason.
"""


@click.command("verify", help=VERIFY_HELP, short_help="Verify a publication, without its ledger or its data.")
@click.argument("bundle")
@click.option("--key", metavar="HEX", help="The public key that the publisher shows.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def verify_command(bundle: str, key: str | None, as_json: bool) -> None:
    """Check everything, and print what was found."""
    from farthing.publication.verification import verify_publication

    check = verify_publication(bundle, key)
    if as_json:
        click.echo(json.dumps(check.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(f"{bundle}: {'verified' if check.ok else 'NOT VERIFIED'}")
        for subject, said in check.facts.items():
            click.echo(f"  {subject:<10} {said}")
        for one in check.findings:
            click.echo(f"  WRONG      {one}")
        for one in check.notes:
            click.echo(f"  note       {one}")
    if not check.ok:
        raise SystemExit(1)

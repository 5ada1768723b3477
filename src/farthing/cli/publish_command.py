"""`farthing publish` and `farthing verify`: a release as files that others can cite, and the check for everybody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from farthing.cli.terminal import declared_study, study_options
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.study import Release, Study
    from farthing.study.documents.study_file import StudyFile


HELP = """\
Write a release as a signed publication: tables (CSV and Parquet), the report, a methods paragraph, charts, the receipt,
and metadata for archives (DDI-Codebook, Croissant, CITATION.cff, a record for the public registry).

What people say of it (title, authors, contact, purpose, licence) stands in the file under [publication]; what is
missing is said before anything is written. Nothing is spent and no row is read. The same release gives the same bytes.

It is signed with a key that belongs to the ledger. --show-key prints its public half: show it where readers trust you.

Exit code: 0 when it was written; 2 when it was refused, with the reason and what to do.
"""


@click.command("publish", help=HELP, short_help="Write a release as signed files that others can cite and verify.")
@click.argument("file", default="study.toml")
@click.option("--out", "-o", metavar="PATH", help="A new folder, or a file.zip (default: FILE-publication.zip).")
@click.option("--request-id", metavar="ID", help="Which release (default: the one that the file asks for).")
@click.option(
    "--previous", metavar="PATH", help="The bundle of the version before, whose receipts this one carries on."
)
@click.option("--show-key", is_flag=True, help="Print the public key of the ledger's publications, and stop.")
@study_options
def publish_command(file: str, out: str | None, request_id: str | None, previous: str | None, show_key: bool) -> None:
    """Find the release in the ledger, write its publication, say what was written."""
    asked = declared_study(file)
    if not asked.has_ledger:
        raise InvalidValue("study", file, "was not released yet", f"run farthing release {file} first")
    study = asked.study()
    try:
        if show_key:
            click.echo(study.ledger.publication_key().public)
            return
        asked.publication.checked()
        release = released(asked, study, request_id)
        place = release.publish(
            out or str(asked.path.with_name(f"{asked.path.stem}-publication.zip")), asked.publication, previous
        )
        click.echo(f"Written: {place}")
        click.echo(f"Signed with the key {study.ledger.publication_key().public}: show it where readers trust you.")
        click.echo(f"To check it: farthing verify {place}")
    finally:
        study.close()


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
        raise InvalidValue("study", str(asked.path), "was not released yet", way_out)
    return study.released(earlier.request_id)


VERIFY_HELP = """\
Verify a publication: its signature, every checksum, the receipts, that the stated epsilon follows from the stated
mechanisms (computed again), that the tables agree with themselves, and that all texts say what the release says.

It needs no ledger, no data and no network. BUNDLE is a zip file or a folder. Give the key that its publisher shows with
--key: without it you learn that nothing was changed since it was signed, and not who signed it.

Exit code: 0 if it verifies; 1 if it does not, with every reason.
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

"""`farthing check`: what a study's declaration does to the rows, for the steward who may see them."""

from __future__ import annotations

import json

import click

HELP = """\
Read the rows that a study (study.toml) declares, and say what does not fit: cells that cannot be read, are clipped,
missing or in no category of the list, rows beyond max_rows, quotes of a CSV file that do not close.

NOT PRIVATE: for the steward, who may see the rows. No plan or release uses the findings, no budget is touched, and a
server has no route to them.

Exit code: 0 if the table can be read; 1 if a file would be refused; 2 if the declaration was refused.
"""


@click.command("check", help=HELP)
@click.argument("file", default="study.toml")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def check_command(file: str, as_json: bool) -> None:
    """Read the declaration, look at the rows, print."""
    from farthing.data import check
    from farthing.data.declaration import read_declaration

    found = check(read_declaration(file))
    click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.ok:
        raise SystemExit(1)

"""The command group, and what every command shares: refusals end with code 2, an interruption with 130.

Modules that draw, prove or compute are imported inside the commands, so that `farthing --help` answers at once.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from farthing import __version__
from farthing.cli.ask_command import ask_command
from farthing.cli.attack_command import attack_command
from farthing.cli.audit_command import audit_command
from farthing.cli.compare_command import compare_command
from farthing.cli.compose_command import compose_command
from farthing.cli.count_command import count_command
from farthing.cli.demo_command import demo_command
from farthing.cli.discover_command import discover_command
from farthing.cli.init_command import init_command
from farthing.cli.ledger_command import ledger_command
from farthing.cli.monitor_command import monitor_command
from farthing.cli.play_command import play_command
from farthing.cli.publish_command import publish_command, verify_command
from farthing.cli.requests_command import requests_command
from farthing.cli.series_command import series_command
from farthing.cli.serve_command import serve_command
from farthing.cli.sql_command import sql_command
from farthing.cli.strategies_command import strategies_command
from farthing.cli.study_commands import check_command, plan_command, release_command
from farthing.cli.synth_command import synth_command
from farthing.cli.users_command import users_command
from farthing.errors import FarthingError

_SPELLINGS = (
    (r"\bbins=\{column: number\}", "--bins COLUMN=N"),
    (r"\bbins=\{'([^'{}]+)': (\d+)\}", r"--bins \1=\2"),
    (r"\bcolumns=\[\.\.\.\]", "--columns A,B"),
    (r"\bbin it first: bin\(.*\)", "name another column, or count with conditions: --where"),
)
_SESSIONS = ((r"\brequest_id\b", "--session"),)  # of commands that take a session up by its name
_PRICES = ((r"\bwith no epsilon\b", "without --epsilon"), (r"\bwith epsilon=", "with --epsilon "))
_SETTINGS = [
    "allow_host",
    "behind_proxy",
    "data",
    "host",
    "key",
    "oidc_client_id",
    "oidc_issuer",
    "oidc_secret_file",
    "port",
    "public_url",
    "tls_certificate",
    "tls_key",
    "webhook",
    "webhook_secret_file",
    "workers",
]
_SERVING = tuple((rf"^{name}=", f"--{name.replace('_', '-')}=") for name in _SETTINGS)
_SPOKEN = {
    "ask": (*_SPELLINGS, *_SESSIONS),
    "monitor": (*_SPELLINGS, *_SESSIONS),
    "series": (*_SPELLINGS, *_SESSIONS, *_PRICES),
    "serve": _SERVING,
    "synth": _SPELLINGS,
}


def in_options(refusal: str, command: str | None) -> str:
    """The refusal as somebody at a shell would follow it; unchanged for commands without such options.

    >>> in_options("cut it into cells, bins={'bmi': 20}, or leave it out: columns=[...]", "ask")
    'cut it into cells, --bins bmi=20, or leave it out: --columns A,B'
    >>> in_options("request_id=' x': must be printable", "monitor")
    "--session=' x': must be printable"
    >>> in_options("public_url='x': must be an address", "serve")
    "--public-url='x': must be an address"
    """
    for python, shell in _SPOKEN.get(command or "", ()):
        refusal = re.sub(python, shell, refusal)
    return refusal


class Refused(click.ClickException):
    """Input that breaks a rule: the message goes to stderr, the exit code is 2, there is no traceback."""

    exit_code = 2


class Commands(click.Group):
    """The group; it turns the library's refusals into messages."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except FarthingError as refusal:
            raise Refused(in_options(str(refusal), ctx.invoked_subcommand)) from None
        except KeyboardInterrupt as interruption:  # its notes say what was charged before it came
            click.echo("\n".join(["interrupted", *getattr(interruption, "__notes__", ())]), err=True)
            sys.exit(130)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["--help"], "max_content_width": 110},
    help="Differential privacy, accounted to the last farthing.",
)
@click.version_option(__version__, message="farthing %(version)s")
def main() -> None:
    """The entry point named in pyproject.toml."""


main.add_command(ask_command)
main.add_command(attack_command)
main.add_command(audit_command)
main.add_command(check_command)
main.add_command(compose_command)
main.add_command(count_command)
main.add_command(demo_command)
main.add_command(discover_command)
main.add_command(init_command)
main.add_command(ledger_command)
main.add_command(monitor_command)
main.add_command(plan_command)
main.add_command(play_command)
main.add_command(release_command)
main.add_command(compare_command)
main.add_command(publish_command)
main.add_command(requests_command)
main.add_command(serve_command)
main.add_command(series_command)
main.add_command(sql_command)
main.add_command(strategies_command)
main.add_command(synth_command)
main.add_command(users_command)
main.add_command(verify_command)

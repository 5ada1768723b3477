"""`farthing users`: the people of a server, changed in its store, whether it runs or not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import whole_number
from farthing.errors import InvalidValue, RequestRefused

if TYPE_CHECKING:
    from farthing.server.store import Store
    from farthing.server.store.user_rows import User

HELP = """\
Manage the people who may use a server: their accounts, roles, and tokens for scripts.

Works on the server's store beside the ledger, so a server can be prepared before it starts; a running server sees every
change at once. Anyone who can write to the store can do this: there is no other check.

\b
  farthing users add ada --role curator
  farthing users list
  farthing users token ada --scopes read,plan --days 30

Roles: a curator may do everything; an analyst plans, and spends what they were granted; an auditor reads.
"""
ROLES = ("curator", "analyst", "auditor")
Command = Callable[..., Any]


@click.group("users", help=HELP, short_help="Manage the people who may use a server.")
def users_command() -> None:
    """The group of commands that decide who may sign in."""


def _common(command: Command) -> Command:
    """The options that every command has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--ledger",
            "-l",
            metavar="URL",
            default="farthing.db",
            help="The server's ledger (default: farthing.db).",
        ),
    ):
        command = option(command)
    return command


_password_stdin = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it."
)


@users_command.command("add", help="Add somebody; asks for their password.")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What they may do.")
@click.option(
    "--subject",
    metavar="TEXT",
    help="Who they are at the single sign-on, such as their e-mail address; then they need no password here.",
)
@click.option("--returning", is_flag=True, help="They are the same person who had this name before and was removed.")
@_password_stdin
@_common
def add_command(
    name: str,
    role: str,
    subject: str | None,
    returning: bool,
    password_stdin: bool,
    ledger: str,
    as_json: bool,
) -> None:
    """Add a user with a role and a password."""
    from farthing.server.auth.passwords import Passwords
    from farthing.server.auth.user_rules import add_user

    password = None if subject is not None and not password_stdin else _password(password_stdin)
    with _store(ledger, make=True) as store:
        user = add_user(
            store, Passwords(), name, role, by=_me(), password=password, subject=subject, returning=returning
        )
    _say(user, as_json, f"{name} added as {role}")


@users_command.command("list", help="Everybody, their role, and how they sign in.")
@_common
def list_command(ledger: str, as_json: bool) -> None:
    """Print all users with their roles and states."""
    from farthing.server.store.user_rows import everybody

    with _store(ledger) as store, store.reading() as connection:
        users = everybody(connection)
    if as_json:
        _print_json({"users": [_facts(user) for user in users]})
        return
    if not users:
        click.echo("nobody yet; add a curator with: farthing users add NAME --role curator")
    width = max((len(user.name) for user in users), default=0)
    for user in users:
        click.echo(f"{user.name:<{width}}  {user.role:<7}  {_ways(user)}")


@users_command.command("role", help="Change somebody's role; one curator must remain.")
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
@_common
def role_command(name: str, role: str, ledger: str, as_json: bool) -> None:
    """Give a user another role; it holds from the next request on."""
    _change(ledger, as_json, name, f"{name} is {role} now", role=role)


@users_command.command("disable", help="Lock somebody out: their login sessions and tokens end at once.")
@click.argument("name")
@_common
def disable_command(name: str, ledger: str, as_json: bool) -> None:
    """Disable a user: login sessions and tokens end."""
    _change(ledger, as_json, name, f"{name} is disabled; their login sessions and tokens have ended", disabled=True)


@users_command.command("enable", help="Let somebody in again; their tokens stay revoked.")
@click.argument("name")
@_common
def enable_command(name: str, ledger: str, as_json: bool) -> None:
    """Enable a user who was disabled; their tokens stay revoked."""
    _change(ledger, as_json, name, f"{name} may sign in again", disabled=False)


@users_command.command("password", help="Set somebody's password; their login sessions end.")
@click.argument("name")
@_password_stdin
@_common
def password_command(name: str, password_stdin: bool, ledger: str, as_json: bool) -> None:
    """Set a new password, which ends every login session of the user."""
    with _store(ledger) as store:
        _user(store, name)  # before anybody types one
    password = _password(password_stdin)
    _change(ledger, as_json, name, f"{name} has a new password; their login sessions have ended", password=password)


@users_command.command("token", help="Make a token for somebody's scripts; it is shown once.")
@click.argument("name")
@click.option("--scopes", metavar="LIST", default="read", help="Some of read, plan, spend and manage (default: read).")
@click.option("--days", metavar="N", default="30", help="How long it works, at most 365 days (default: 30).")
@click.option("--label", metavar="TEXT", default="", help="What it is for.")
@_common
def token_command(name: str, scopes: str, days: str, label: str, ledger: str, as_json: bool) -> None:
    """Make an API token and print it once."""
    from farthing.server.auth.api_tokens import make_token

    scope_set = frozenset(scope for scope in scopes.replace(",", " ").split())
    if len(label) > 100 or not label.isprintable():
        raise InvalidValue("label", label, "must be at most 100 printable characters")
    with _store(ledger) as store:
        token, secret = make_token(store, _user(store, name), label, scope_set, whole_number(days, "days"), by=_me())
    if as_json:
        _print_json(
            {
                "id": token.id,
                "user": name,
                "scopes": sorted(scope_set),
                "days": int(whole_number(days, "days")),
                "token": secret,
            }
        )
        return
    click.echo(f"token {token.id} of {name} for {', '.join(sorted(scope_set))}; it is not shown again:", err=True)
    click.echo(secret)


def _change(ledger: str, as_json: bool, name: str, sentence: str, **changes: Any) -> None:
    from farthing.server.auth.passwords import Passwords
    from farthing.server.auth.user_rules import change_user

    with _store(ledger) as store:
        user = change_user(store, Passwords(), name, by=_me(), **changes)
    _say(user, as_json, sentence)


@contextmanager
def _store(ledger: str, make: bool = False) -> Iterator[Store]:
    """The store beside the ledger; `make` it if there is none, so that people can be there before the server."""
    try:
        from farthing.server.store import Store
        from farthing.server.store.store_engine import file_beside
    except ImportError as missing:
        from farthing.errors import MissingExtra

        raise MissingExtra("users of a server", missing.name or "fastapi", "server") from None
    if not make and "://" not in ledger and not file_beside(ledger).exists():
        way_out = "check --ledger, or add somebody first: farthing users add NAME --role curator"
        raise InvalidValue("ledger", ledger, "has no users yet", way_out)
    store = Store.beside(ledger)
    try:
        yield store
    finally:
        store.close()


def _user(store: Store, name: str) -> User:
    from farthing.server.auth.user_rules import known_user

    try:
        return known_user(store, name)
    except RequestRefused as refusal:
        raise RequestRefused(
            refusal.code,
            f"there is no user {name!r}; see farthing users list, or add them with farthing users add. The link that "
            "farthing serve prints adds its user only when somebody opens it.",
            refusal.fields,
        ) from None


def _password(from_stdin: bool) -> str:
    """A password that nobody sees and no list of processes shows."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt="Repeat the password", err=True))


def _me() -> str:
    """Who does it; with a blank in it, so that it is nobody's name on the server."""
    from farthing.server.auth.login_sessions import login_name

    return f"{login_name()} (command line)"


def _facts(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role,
        "disabled": user.disabled,
        "has_password": user.has_password,
        "oidc_subject": user.oidc_subject,
    }


def _ways(user: User) -> str:
    ways = [
        *(["disabled"] if user.disabled else []),
        *(["password"] if user.has_password else []),
        *([f"single sign-on as {user.oidc_subject}"] if user.oidc_subject else []),
    ]
    return ", ".join(ways) or "no password yet"


def _say(user: User, as_json: bool, sentence: str) -> None:
    if as_json:
        _print_json(_facts(user))
    else:
        click.echo(sentence)


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2))

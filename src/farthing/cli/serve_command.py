"""`farthing serve`: the page and the routes over a ledger, on this machine or for others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farthing.errors import InvalidValue, MissingExtra

if TYPE_CHECKING:
    from farthing.server.server_process import Started
    from farthing.server.settings import OidcSettings, WebhookSettings

HELP = """\
Serve the page and the REST routes over a ledger and a folder of tables.

Without options only this machine can reach it, and it prints a link that signs you in as a curator, once. To let others
in, give them accounts (farthing users add) and encrypt the connection (TLS, or a proxy that provides it).

\b
  farthing serve
  farthing serve --ledger study.db --data tables --port 9000
  farthing serve --host 0.0.0.0 --public-url https://farthing.example.org:8642 \\
      --tls-certificate server.pem --tls-key server.key
  farthing serve --ledger postgresql://farthing@db/farthing --behind-proxy --public-url https://farthing.example.org

Ctrl-C or SIGTERM stops it: it takes no new requests and finishes those it has.
"""


@click.command("serve", help=HELP, short_help="Serve the page and the REST routes.")
@click.option(
    "--ledger",
    "-l",
    metavar="URL",
    default="farthing.db",
    show_default=True,
    envvar="FARTHING_LEDGER",
    help="The ledger, made if there is none; $FARTHING_LEDGER instead keeps a password out of the process list.",
)
@click.option("--key", metavar="FILE", help="The ledger's key, if it is not where it was made.")
@click.option("--data", metavar="DIR", default=".", show_default=True, help="The folder with the tables.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", metavar="N", type=int, help="The port; 8642, or the next that is free.")
@click.option("--tls-certificate", metavar="FILE", help="A certificate in PEM form, with its chain.")
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="A TLS proxy stands in front: trust its X-Forwarded-* headers.")
@click.option("--public-url", metavar="URL", help="The address that people open, such as https://farthing.example.org.")
@click.option("--allow-host", metavar="NAME", multiple=True, help="Another host name under which it may be reached.")
@click.option("--oidc-issuer", metavar="URL", help="Sign people in at this OpenID Connect provider.")
@click.option("--oidc-client-id", metavar="ID", help="The client id at the provider.")
@click.option("--oidc-secret-file", metavar="FILE", help="The file with the client secret.")
@click.option(
    "--oidc-claim", metavar="NAME", default="email", show_default=True, help="The claim with a person's name."
)
@click.option("--oidc-name", metavar="TEXT", default="single sign-on", help="What the page calls the provider.")
@click.option("--oidc-create", is_flag=True, help="Everyone the provider knows becomes an analyst.")
@click.option("--webhook", metavar="URL", help="Report what happens to requests to this address, signed.")
@click.option("--webhook-secret-file", metavar="FILE", help="The file with the secret that signs these messages.")
@click.option("--dataverse", metavar="URL", multiple=True, help="Curators may deposit publications in this Dataverse.")
@click.option(
    "--dataverse-token-file",
    metavar="FILE",
    help="The server's own API token, for curators who give none; with one --dataverse only.",
)
@click.option(
    "--workers",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    help="Number of processes that run releases.",
)
@click.option("--metrics-open", is_flag=True, help="Let anyone read /metrics, which names nobody.")
@click.option("--open/--no-open", "open_page", default=False, show_default=True, help="Open the page in a browser.")
@click.option("--quiet", is_flag=True, help="No line per request.")
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as one line of JSON.")
def serve_command(**options: Any) -> None:
    """Read the options, then serve until stopped."""
    try:
        from farthing.server.server_process import log_on_stderr, serve
        from farthing.server.settings import PORT, Settings
    except ImportError as problem:
        raise MissingExtra("servers", str(problem.name), "server") from None

    settings = Settings(
        ledger=options["ledger"],
        data=_folder(options["data"]),
        host=options["host"],
        port=PORT if options["port"] is None else options["port"],
        public_url=options["public_url"],
        allowed_hosts=options["allow_host"],
        tls_certificate=_path(options["tls_certificate"]),
        tls_key=_path(options["tls_key"]),
        proxy=options["behind_proxy"],
        oidc=_oidc(options),
        ledger_key=_path(options["key"]),
        metrics_open=options["metrics_open"],
        workers=options["workers"],
        log_requests=not options["quiet"],
        webhook=_webhook(options),
        dataverses=options["dataverse"],
        dataverse_token_file=_token_file(options["dataverse_token_file"]),
    )

    def started(facts: Started) -> None:
        click.echo(_json(facts) if options["as_json"] else _address_lines(facts))
        sys.stdout.flush()
        if options["open_page"]:
            _open(facts)

    with log_on_stderr():
        serve(settings, exact_port=options["port"] is not None, started=started)
    if not options["as_json"]:
        click.echo("stopped")


def _folder(name: str) -> Path:
    folder = Path(name)
    if not folder.is_dir():
        raise InvalidValue("data", name, "must be a folder", "make it, or name the one with the tables")
    return folder.resolve()


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def _token_file(name: str | None) -> Path | None:
    """The file of a token, which is looked at now, so that it is not refused only when somebody deposits."""
    from farthing.publication.dataverse import read_token

    if name is not None:
        read_token(name)
    return None if name is None else Path(name).resolve()


def _oidc(options: dict[str, Any]) -> OidcSettings | None:
    from farthing.server.settings import OidcSettings

    issuer, client = options["oidc_issuer"], options["oidc_client_id"]
    if (issuer is None) != (client is None):
        name = "oidc_issuer" if client is None else "oidc_client_id"
        raise InvalidValue(name, issuer or client, "needs the other", "give --oidc-issuer and --oidc-client-id")
    if issuer is None:
        return None
    if options["public_url"] is None:
        raise InvalidValue("oidc_issuer", issuer, "needs an address to send people back to", "give --public-url too")
    return OidcSettings(
        issuer,
        client,
        _secret(options["oidc_secret_file"], "oidc_secret_file"),
        options["oidc_claim"],
        options["oidc_create"],
        options["oidc_name"],
    )


def _webhook(options: dict[str, Any]) -> WebhookSettings | None:
    from farthing.server.settings import WebhookSettings

    url, secret = options["webhook"], _secret(options["webhook_secret_file"], "webhook_secret_file")
    if (url is None) != (secret is None):
        name = "webhook" if secret is None else "webhook_secret_file"
        given = url or options["webhook_secret_file"]
        raise InvalidValue(name, given, "needs the other", "give --webhook and --webhook-secret-file")
    return None if url is None or secret is None else WebhookSettings(url, secret)


def _secret(name: str | None, option: str) -> str | None:
    if name is None:
        return None
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidValue(option, name, f"must be a file that can be read ({type(problem).__name__})") from None


def _address_lines(facts: Started) -> str:
    lines = [f"farthing is at {facts.url}"]
    if facts.login is not None:
        lines += [
            f"Open this link to sign in as {facts.user}; it works once, within ten minutes:",
            "",
            f"    {facts.login}",
            "",
        ]
    if facts.is_new:
        lines.append(
            f"Opening it adds {facts.user} as a user; `farthing users token {facts.user}` works only after that."
        )
    return "\n".join([*lines, "Ctrl-C stops it."])


def _json(facts: Started) -> str:
    return json.dumps({"url": facts.url, "login": facts.login, "user": facts.user, "pid": os.getpid()})


def _open(facts: Started) -> None:
    """Open the page. The link goes through a file that only this user may read: a list of processes shows addresses."""
    import atexit
    import html
    import tempfile
    import threading
    import webbrowser

    target = html.escape(facts.login or facts.url, quote=True)
    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="farthing-", delete=False) as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={target}"><a href="{target}">farthing</a>'
        )
    atexit.register(lambda: Path(file.name).unlink(missing_ok=True))
    threading.Thread(target=webbrowser.open, args=(Path(file.name).as_uri(),), daemon=True).start()

"""Refusals of the library in the words of a command: options instead of arguments."""

from __future__ import annotations

import re

_SPELLINGS = (
    (r"\bbins=\{column: number\}", "--bins COLUMN=N"),
    (r"\bbins=\{'([^'{}]+)': (\d+)\}", r"--bins \1=\2"),
    (r"\bcolumns=\[\.\.\.\]", "--columns A,B"),
    (r"\bbin it first: bin\(.*\)", "name another column, or count with conditions: --where"),
)
_SESSIONS = ((r"\brequest_id\b", "--session"),)  # of commands that take a session up by its name
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
    "workers",
]
_SERVING = tuple((rf"^{name}=", f"--{name.replace('_', '-')}=") for name in _SETTINGS)
_SPOKEN = {
    "ask": (*_SPELLINGS, *_SESSIONS),
    "monitor": (*_SPELLINGS, *_SESSIONS),
    "serve": _SERVING,
    "synth": _SPELLINGS,
}


def in_options(refusal: str, command: str | None) -> str:
    """The refusal as somebody at a shell would follow it; unchanged for commands without such options.

    >>> in_options("cut it into some, bins={'bmi': 20}, or leave it out: columns=[...]", "ask")
    'cut it into some, --bins bmi=20, or leave it out: --columns A,B'
    >>> in_options("request_id=' x': must be printable", "monitor")
    "--session=' x': must be printable"
    >>> in_options("public_url='x': must be an address", "serve")
    "--public-url='x': must be an address"
    """
    for python, shell in _SPOKEN.get(command or "", ()):
        refusal = re.sub(python, shell, refusal)
    return refusal

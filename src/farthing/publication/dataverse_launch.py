"""A launch from a Dataverse: which file somebody was looking at when they chose farthing there.

Dataverse opens farthing with a signed address of its own in the parameter `callback`, valid for minutes. What is at
that address says which file it is. Anybody can make such a link, so an address is asked only if it is one of an allowed
server, of exactly this call; no token is sent, and what comes back is used as text and numbers alone.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.publication.dataverse import Dataverse, is_name, strange

FILE_CALL = "describeFile"
"""What the manifest calls the address that describes the file."""
_CALLBACK = re.compile(
    r"/api/v1/files/([0-9]{1,18})/metadata/[0-9]{1,18}/toolparams/[0-9]{1,18}(\?[!$-\[\]-~]{0,2000})?"
)
_QUERY = re.compile(r"(\?[!$-\[\]-~]{0,2000})?")
_LONGEST = 6_000
_TIMEOUT = 20.0


@dataclass(frozen=True)
class Launch:
    """What a Dataverse says of the file on which farthing was launched.

    Args:
        dataverse: The address of the server.
        dataset: The persistent identifier of its dataset.
        file: Its number.
        name: What it is called; empty where the server does not say.
        restricted: Whether it is restricted; None where the server does not say.
    """

    dataverse: str
    dataset: str
    file: int
    name: str = ""
    restricted: bool | None = None


def read_launch(callback: str, allowed: Sequence[str]) -> Launch:
    """Ask an allowed server which file a launch is about.

    Args:
        callback: The parameter of that name: an address in base64.
        allowed: The addresses of the servers that may be asked.

    Returns:
        What the server says.

    Raises:
        InvalidValue: If the address is not one with which an allowed server launches a tool; nothing is asked then.
        RequestRefused: If the server refuses, or is gone.

    >>> read_launch("aHR0cHM6Ly9ldmlsLmV4YW1wbGUub3Jn", ["https://demo.dataverse.org"])
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: callback='...': must be an address with which an allowed Dataverse ...
    """
    server, path, file = _call_of(callback, allowed)
    connection = Dataverse(server, "", timeout=_TIMEOUT)
    try:
        said = connection.signed(path)
        try:
            dataset, number = said["queryParameters"]["datasetPid"], int(said["queryParameters"]["fileId"])
            calls = {one["name"]: one["signedUrl"] for one in said.get("signedUrls", [])}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise strange("a launch") from None
        if number != file or not (isinstance(dataset, str) and is_name(dataset)):
            raise strange("a launch")
        return Launch(server, dataset, file, *_described(connection, server, file, calls.get(FILE_CALL)))
    finally:
        connection.close()


def _call_of(callback: str, allowed: Sequence[str]) -> tuple[str, str, int]:
    """The server, the path with its query, and the number of the file."""
    try:
        plain = callback.replace(" ", "+").replace("-", "+").replace("_", "/")
        if len(plain) > _LONGEST:
            raise ValueError
        address = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        address = ""
    for server in allowed:
        match = _CALLBACK.fullmatch(address.removeprefix(server)) if address.startswith(server) else None
        if match is not None:
            return server, match[0], int(match[1])
    rule = "must be an address with which an allowed Dataverse launches a tool"
    raise InvalidValue("callback", "...", rule, "the server's operator allows one with --dataverse URL")


def _described(connection: Dataverse, server: str, file: int, address: Any) -> tuple[str, bool | None]:
    """The name of the file, and whether it is restricted, if the server gave the address that says so."""
    beginning = f"{server}/api/v1/files/{file}"
    if not (isinstance(address, str) and address.startswith(beginning) and _QUERY.fullmatch(address[len(beginning) :])):
        return "", None
    try:
        said = connection.signed(address.removeprefix(server))
    except RequestRefused:
        return "", None
    name, restricted = (said.get("label"), said.get("restricted")) if isinstance(said, dict) else (None, None)
    label = "".join(one for one in name if one.isprintable())[:200] if isinstance(name, str) else ""
    return label, restricted if isinstance(restricted, bool) else None

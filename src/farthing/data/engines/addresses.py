"""Addresses of servers, which may hold a password or a token and are therefore never shown whole."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from farthing.errors import InvalidValue


def split_address(url: str) -> tuple[SplitResult, int | None]:
    """The parts of an address and its port.

    >>> split_address("postgresql://reader@db.example:5432/registry")[1]
    5432
    >>> split_address("postgresql://reader:half/a-password@db.example/registry")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: url='postgresql://...': must be scheme://user:password@host:port/name; write ...
    """
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        pass  # its text quotes what stands where a port should be: perhaps the rest of a password
    scheme = url.partition(":")[0]
    raise InvalidValue(
        "url",
        f"{scheme}://...",
        "must be scheme://user:password@host:port/name",
        "write / : @ ? # in a password as %2F %3A %40 %3F %23",
    )

"""Functions of an engine by their own names, for what Ibis has no word for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from typing import Any
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


def exact_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Tuples in which a whole `Decimal` has become an `int`; nothing passes through a float.

    >>> from decimal import Decimal
    >>> exact_rows([(Decimal("9223372036854775822"), "F", None)])
    [(9223372036854775822, 'F', None)]
    """
    return [tuple(map(_exact, row)) for row in rows]


def _exact(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value


@cache
def function(name: str, kinds: tuple[str, ...], result: str) -> Callable[..., Any]:
    """The engine's function `name` for arguments of these Ibis types, as something that takes Ibis values.

    >>> import ibis
    >>> encode = function("encode", ("string",), "binary")
    >>> people = ibis.table({"name": "string"}, name="people")
    >>> "ENCODE" in ibis.to_sql(people.select(found=encode(people.name)), dialect="duckdb")
    True
    """
    import ibis

    def declared(*arguments: Any) -> None:
        """Never called: the engine has it."""

    named = [
        inspect.Parameter(f"a{place}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for place in range(len(kinds))
    ]
    declared.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    made: Callable[..., Any] = ibis.udf.scalar.builtin(declared, name=name, signature=(kinds, result))
    return made

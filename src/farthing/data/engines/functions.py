"""Functions of an engine by their own names, for what Ibis has no word for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any


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

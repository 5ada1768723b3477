"""Fills docs/api.md while mkdocs builds: every public name with its signature and docstring.

The page cannot forget a name, because it is written from the same lists that the exports test holds.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from functools import cached_property
from typing import Any

_MARK = re.compile(r"^<!-- names of ([\w.]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The hook mkdocs calls for every page; pages without a mark pass unchanged."""
    return _MARK.sub(lambda mark: names_of(mark[1]), markdown)


def modules_of(markdown: str) -> list[str]:
    """The modules whose names a page asks for, in its order."""
    return _MARK.findall(markdown)


def names_of(module_name: str) -> str:
    """One section per public name of a module."""
    module = importlib.import_module(module_name)
    return "\n\n".join(_section(name, getattr(module, name)) for name in module.__all__)


def _section(name: str, value: object) -> str:
    parts = [f"### `{name}`"]
    if inspect.isroutine(value) or inspect.isclass(value):
        parts.append(f"```text\n{name}{_signature(value)}\n```")
        parts.append(f"```text\n{inspect.getdoc(value) or ''}\n```")
        if inspect.isclass(value):
            parts.extend(_members(value))
    else:
        parts.append(f"`{value!r}`")
    return "\n\n".join(parts)


def _members(cls: type) -> list[str]:
    lines = []
    halves = [each for each in cls.__mro__[1:] if each.__module__.startswith("farthing.") and not _is_public(each)]
    members = {name: member for each in (*reversed(halves), cls) for name, member in vars(each).items()}
    for name, member in members.items():
        is_value = isinstance(member, property | cached_property)
        if name.startswith("_") or not (is_value or inspect.isroutine(member)):
            continue
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(cls, name)
        summary = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
        shown = f"`.{name}`" if is_value else f"`.{name}{_signature(function)}`"
        lines.append(textwrap.shorten(f"- {shown}: {summary}", 2000))
    return ["\n".join(lines)] if lines else []


def _is_public(cls: type) -> bool:
    """Whether a class has a section of its own."""
    package = importlib.import_module(".".join(cls.__module__.split(".")[:2]))
    return cls.__name__ in getattr(package, "__all__", ())


def _signature(value: object) -> str:
    try:
        signature = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # exceptions built in C have none to show
        return "(...)"
    signature = re.sub(r"ForwardRef\((.*?)\)", r"\1", signature.replace("'", ""))
    return signature.replace("(self)", "()").replace("(self, ", "(")

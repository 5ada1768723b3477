"""The user's own code as a target: found, imported, and refused in one line if that fails."""

from __future__ import annotations

import importlib
import operator
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farthing.errors import FarthingError, InvalidValue

WAY_OUT = "write module:function, and run in the directory of module.py"

# Errors whose text is about the code. The text of any other may quote what the module has read, so it is not repeated.
_TEXT_IS_CODE = (SyntaxError, ImportError, NameError, FarthingError)


@contextmanager
def current_directory_first() -> Iterator[None]:
    """Imports look into the current directory first, those that a target makes when it is called included."""
    before = list(sys.path)
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path[:] = before


def found(target: str) -> Any:
    """The object that a target names.

    >>> found("math:floor")(2.5)
    2
    >>> found("no_such_module:f")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: target='no_such_module:f': cannot be found (No module named 'no_such_module'); ...
    """
    module, colon, name = target.partition(":")
    if not (colon and _dotted(module) and _dotted(name)):
        way_out = "leave .py and directories out" if ".py:" in target or "/" in module else WAY_OUT
        raise InvalidValue("target", target, "must be MODULE:NAME", way_out)
    try:
        holder = importlib.import_module(module)
    except (Exception, SystemExit) as problem:
        raise _not_imported(target, module, problem) from None
    try:
        return operator.attrgetter(name)(holder)
    except AttributeError as problem:
        way_out = f"name a function or an object of {module}"
        raise InvalidValue("target", target, f"cannot be found ({problem})", way_out) from None


def _dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _not_imported(target: str, module: str, problem: BaseException) -> InvalidValue:
    if isinstance(problem, ModuleNotFoundError) and f"{module}.".startswith(f"{problem.name}."):
        way_out = "leave .py out" if module.endswith(".py") else WAY_OUT
        return InvalidValue("target", target, f"cannot be found ({problem})", way_out)
    kind = type(problem).__name__
    text = " ".join(str(getattr(problem, "msg", None) or problem).split())
    said = f"{kind}: {text.rstrip('.')}" if isinstance(problem, _TEXT_IS_CODE) and text else kind
    place = _place_of(problem)
    rule = f"cannot be imported ({f'{place}: ' if place else ''}{said})"
    if isinstance(problem, ModuleNotFoundError):
        return InvalidValue("target", target, rule, f"install {problem.name}, or correct its name")
    return InvalidValue("target", target, rule, f"python -c 'import {module}' shows all of it")


def _place_of(problem: BaseException) -> str:
    """File and line: of bad syntax, or of the innermost frame in the user's own files."""
    if isinstance(problem, SyntaxError) and problem.filename and problem.lineno:
        return _shown(problem.filename, problem.lineno)
    frames = [
        frame for frame in traceback.extract_tb(problem.__traceback__) if not frame.filename.startswith("<")
    ][1:]  # the first is the call in this file
    frames = [frame for frame in frames if Path(frame.filename).parent != Path(importlib.__file__).parent]
    own = [frame for frame in frames if _is_own(frame.filename)]
    for frame in (own or frames)[-1:]:
        return _shown(frame.filename, frame.lineno or 1)
    return ""


def _is_own(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts


def _shown(file: str, line: int) -> str:
    path = Path(file)
    short = os.path.relpath(path) if _is_own(file) else str(path)
    return f"{short}, line {line}"

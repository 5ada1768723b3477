"""The public surface is a tested list, and every name on it explains itself with an example that runs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import pytest
from public_names import INTERNAL, PUBLIC
from tree import TOP

SOURCE = TOP / "src"


@pytest.mark.parametrize("module_name", PUBLIC)
def test_a_module_exports_exactly_its_public_names(module_name: str) -> None:
    module = importlib.import_module(module_name)
    assert sorted(module.__all__) == sorted(PUBLIC[module_name])
    assert len(set(module.__all__)) == len(module.__all__)


@pytest.mark.parametrize("module_name", PUBLIC)
def test_star_import_brings_every_name(module_name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {module_name} import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(PUBLIC[module_name])


def test_no_package_is_public_by_accident() -> None:
    """Every package stands in the list of public modules, or in the list of those reached through them."""
    packages = {
        ".".join(path.parent.relative_to(SOURCE).parts) for path in (SOURCE / "farthing").rglob("__init__.py")
    }
    open_ones = {name for name in packages if not any(part.startswith("_") for part in name.split("."))}
    assert open_ones - set(PUBLIC) == INTERNAL


def _objects() -> Iterator[tuple[str, object]]:
    for module_name, names in PUBLIC.items():
        module = importlib.import_module(module_name)
        yield from ((f"{module_name}.{name}", getattr(module, name)) for name in names)


def test_every_public_name_has_a_docstring_with_an_example() -> None:
    without = [
        name
        for name, value in _objects()
        if (inspect.isroutine(value) or inspect.isclass(value)) and ">>>" not in (inspect.getdoc(value) or "")
    ]
    assert without == []


def test_every_public_method_has_a_docstring() -> None:
    without = [
        f"{name}.{attribute}"
        for name, value in _objects()
        if inspect.isclass(value)
        for attribute, member in vars(value).items()
        if not attribute.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
        if not inspect.getdoc(member.fget if isinstance(member, property) else getattr(value, attribute))
    ]
    assert without == []


def test_every_public_function_is_typed_to_the_end() -> None:
    untyped = [
        name
        for name, value in _objects()
        if inspect.isfunction(value)
        for parameter in [*inspect.signature(value).parameters.values()]
        if parameter.annotation is inspect.Parameter.empty
    ]
    assert untyped == []

"""What is public says so in `__all__`, and every public name explains itself with an example that runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from public_names import OLD_NAMES, PUBLIC, module_of, names_of
from tree import TOP

SOURCE = TOP / "src"


@pytest.mark.parametrize("module_name", [*PUBLIC, *OLD_NAMES])
def test_a_module_exports_names_that_it_has_each_once_and_in_order(module_name: str) -> None:
    names = names_of(module_name)
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(module_of(module_name), name)] == []


@pytest.mark.parametrize("module_name", [*PUBLIC, *OLD_NAMES])
def test_star_import_brings_every_name(module_name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {module_name} import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(names_of(module_name))


@pytest.mark.parametrize("module_name", PUBLIC)
def test_a_module_imports_nothing_to_the_outside_that_it_does_not_export(module_name: str) -> None:
    """A class or function that a package's face shows and `__all__` leaves out would be public by accident."""
    shown = {
        name
        for name, value in vars(module_of(module_name)).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("farthing")
    }
    assert shown <= set(names_of(module_name))


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_is_the_new_thing(old: str) -> None:
    new = ("farthing.matrix.workloads",) if old.endswith("workloads") else ("farthing.matrix", "farthing.statistics")
    things = {name: getattr(module_of(module), name) for module in new for name in names_of(module)}
    assert set(names_of(old)) == set(things)
    assert [name for name in things if name != "workloads" and getattr(module_of(old), name) is not things[name]] == []


@pytest.mark.parametrize("module_name", ["farthing", "farthing.statistics", "farthing.release"])
@pytest.mark.parametrize("name", ["quantiles", "ranges", "marginals"])
def test_a_statistic_is_a_function_although_a_package_has_its_name(module_name: str, name: str) -> None:
    assert inspect.isfunction(getattr(module_of(module_name), name))


def _objects() -> Iterator[tuple[str, object]]:
    for module_name in PUBLIC:
        module = module_of(module_name)
        yield from ((f"{module_name}.{name}", getattr(module, name)) for name in names_of(module_name))


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
        if not _is_documented(value, attribute)
    ]
    assert without == []


def _is_documented(value: type, attribute: str) -> bool:
    """Whether the class or a base of it says what an attribute is: what overrides need not say it again."""
    return any(inspect.getdoc(vars(base)[attribute]) for base in value.__mro__ if attribute in vars(base))


def test_every_public_function_is_typed_to_the_end() -> None:
    untyped = [
        name
        for name, value in _objects()
        if inspect.isfunction(value)
        for parameter in [*inspect.signature(value).parameters.values()]
        if parameter.annotation is inspect.Parameter.empty
    ]
    assert untyped == []

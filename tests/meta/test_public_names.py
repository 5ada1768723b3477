"""What is public says so in `__all__`, and every public name explains itself with an example that runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

import pytest
from public_names import EXPORTING, OLD_NAMES, PUBLIC, module_of, names_of
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


def _objects(modules: Iterable[str] = PUBLIC) -> Iterator[tuple[str, object]]:
    for module_name in modules:
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


def test_every_public_name_explains_its_parameters_and_what_it_returns() -> None:
    """In `Args:` (`Attributes:` for values that are returned, not made) and `Returns:`."""
    lacks = {name: lack for name, value in _callables() if (lack := _unexplained(value))}
    assert lacks == {}, "say what each parameter is, and what is returned"


@pytest.mark.parametrize(
    ("docstring", "lacks"),
    [
        ("A sum.", ["a", "b", "Returns"]),
        ("A sum.\n\nArgs:\n    a: One.\n\nReturns:\n    It.", ["b"]),
        ("A sum of a: and b: things.\n\nReturns:\n    It.", ["a", "b"]),
        ("A sum.\n\nArgs:\n    a: One.\n    b: Two.\n\nRaises:\n    TypeError: Never.", ["Returns"]),
        ("A sum.\n\nArgs:\n    a: One.\n    b: Two.\n\nReturns:\n    It.", []),
    ],
)
def test_what_a_docstring_lacks_is_noticed(docstring: str, lacks: list[str]) -> None:
    def added(a: int, b: int) -> int:
        return a + b

    added.__doc__ = docstring
    assert _unexplained(added) == lacks


def _callables() -> Iterator[tuple[str, object]]:
    """Every public class and function once, and the methods that a public class is the first to have."""
    seen: set[int] = set()
    for name, value in _objects((*PUBLIC, *EXPORTING)):
        if not (inspect.isclass(value) or inspect.isfunction(value)) or id(value) in seen:
            continue
        seen.add(id(value))
        yield name, value
        for attribute, member in vars(value).items() if inspect.isclass(value) else ():
            function = getattr(member, "__func__", member)
            new = not any(attribute in vars(base) for base in value.__mro__[1:])
            if new and not attribute.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{attribute}", function


def _unexplained(value: object) -> list[str]:
    """The parameters that the docstring does not explain, and "Returns" where it should say what comes back."""
    if inspect.isclass(value) and (issubclass(value, BaseException) or not inspect.signature(value).parameters):
        return []
    assert callable(value)
    signature = inspect.signature(value)
    names = [name for name in signature.parameters if name not in ("self", "cls") and not name.startswith("_")]
    sections = dict(re.findall(r"^(\w+):\n((?:    .*\n?|\n)+)", inspect.getdoc(value) or "", re.MULTILINE))
    text = sections.get("Args", "") + sections.get("Attributes", "")
    lacks = [name for name in names if not re.search(rf"^    \*{{0,2}}{name}: \S", text, re.MULTILINE)]
    returns = signature.return_annotation not in (None, "None", inspect.Signature.empty)
    if names and returns and not inspect.isclass(value) and "Returns" not in sections:
        lacks.append("Returns")
    return lacks


def test_every_public_function_is_typed_to_the_end() -> None:
    untyped = [
        name
        for name, value in _objects()
        if inspect.isfunction(value)
        for parameter in [*inspect.signature(value).parameters.values()]
        if parameter.annotation is inspect.Parameter.empty
    ]
    assert untyped == []

"""What was described, written down again: a study.toml, and lines of Python, that ask for the same plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from farthing.data import Categories, Dataset, Flags
from farthing.study.documents.python_code import asking_lines, control_line
from farthing.study.documents.study_document import Asked, entry_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def study_toml(asked: Asked, dataset: Dataset, about: Mapping[str, Any], source: str, ledger: str) -> str:
    """The study.toml that asks for this plan; `about` is what [study] says besides the ledger.

    >>> import pyarrow, farthing as ft
    >>> from farthing.study.documents.study_document import asked_of
    >>> people = ft.dataset(pyarrow.table({"age": [1]}), schema={"age": (0, 110)})
    >>> asked = asked_of([{"kind": "mean", "column": "age", "within": 2}])
    >>> print(study_toml(asked, people, {"epsilon": 1.0}, "people.csv", "study.db"))
    [dataset]
    source = "people.csv"
    <BLANKLINE>
    [schema]
    age = { range = [0, 110] }
    <BLANKLINE>
    [study]
    epsilon = 1.0
    ledger = "study.db"
    <BLANKLINE>
    [[statistics]]
    kind = "mean"
    column = "age"
    within = 2
    <BLANKLINE>
    """
    table: dict[str, Any] = {"source": source}
    if dataset.unit:
        table["unit"] = dataset.unit[0] if len(dataset.unit) == 1 else list(dataset.unit)
        table["max_rows"] = dataset.rows_per_unit
    if dataset.neighbours != "add-remove":
        table["neighbours"] = dataset.neighbours
    if dataset.rows is not None:
        table["rows"] = dataset.rows
    plan = {
        "plan_epsilon": asked.epsilon,
        "plan_reserve": asked.reserve or None,
        "plan_fit": asked.fit or None,
    }
    parts = [
        _lines("[dataset]", table),
        _lines("[schema]", {column: _column(dataset.schema[column]) for column in dataset.schema}),
        _lines("[study]", {**about, "ledger": ledger, **plan}),
    ]
    if asked.expected:
        parts.append(_lines("[expected]", asked.expected))
    for statistic, control in zip(asked.statistics, asked.controls, strict=True):
        parts.append(_lines("[[statistics]]", entry_of(statistic, control)))
    return "\n".join(parts)


def _column(domain: Any) -> dict[str, Any]:
    if isinstance(domain, Categories):
        read = {"trim": domain.trim, "lower": domain.lowered}
        return {"categories": list(domain.values), **{key: True for key, said in read.items() if said}}
    if isinstance(domain, Flags):
        return {"flags": True}
    decimal = getattr(domain, "decimal", "")
    return {"range": [domain.lower, domain.upper], **({"decimal": decimal} if decimal else {})}


def _lines(header: str, entries: Mapping[str, Any]) -> str:
    said = [f"{_key(name)} = {in_toml(value)}" for name, value in entries.items() if value is not None]
    return "\n".join([header, *said, ""])


def in_toml(value: Any) -> str:
    """A plain value as TOML writes it.

    >>> in_toml({"F": 0.5, "not said": [1, True, "a\\x7f"]})
    '{ F = 0.5, "not said" = [1, true, "a\\\\u007f"] }'
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case date():
            return value.isoformat()
        case Mapping():
            return (
                "{ " + ", ".join(f"{_key(str(key))} = {in_toml(each)}" for key, each in value.items()) + " }"
            )
        case list() | tuple():
            return "[" + ", ".join(map(in_toml, value)) + "]"
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    if isinstance(name, bool):
        return str(name).lower()
    return name if _BARE.fullmatch(name) else in_toml(name)


def client_code(asked: Asked, dataset: str, address: str) -> str:
    """Python that asks a server for this plan and releases it.

    >>> from farthing.study.documents.study_document import asked_of
    >>> print(client_code(asked_of([{"kind": "count", "weight": 2}]), "people", "http://127.0.0.1:8642"))
    import farthing as ft
    <BLANKLINE>
    client = ft.Client('http://127.0.0.1:8642', token="ft_...")
    study = client.study('people')
    plan = study.plan(
        ft.count(),
    )
    plan = plan.weight('count', 2)
    print(plan)
    # release = plan.release()  # this spends
    """
    return "\n".join(
        [
            "import farthing as ft",
            "",
            f'client = ft.Client({address!r}, token="ft_...")',
            f"study = client.study({dataset!r})",
            *plan_lines(asked),
            "print(plan)",
            "# release = plan.release()  # this spends",
        ]
    )


def released_code(dataset: str, request_id: str, address: str, asked: str) -> str:
    """Python that reads a release again from a server, which costs nothing, and as a remark how it was asked.

    >>> print(released_code("people", "ada:first", "http://127.0.0.1:8642", "plan = study.plan(ft.count())"))
    import farthing as ft
    <BLANKLINE>
    client = ft.Client('http://127.0.0.1:8642', token="ft_...")  # a token of your own
    study = client.study('people')
    release = study.released('ada:first')  # from the ledger: it costs nothing
    print(release)
    <BLANKLINE>
    # It was asked like this:
    # plan = study.plan(ft.count())
    """
    return "\n".join(
        [
            "import farthing as ft",
            "",
            f'client = ft.Client({address!r}, token="ft_...")  # a token of your own',
            f"study = client.study({dataset!r})",
            f"release = study.released({request_id!r})  # from the ledger: it costs nothing",
            "print(release)",
            "",
            "# It was asked like this:",
            *(f"# {line}".rstrip() for line in asked.splitlines()),
        ]
    )


def local_code(asked: Asked, dataset: Dataset, name: str, about: Mapping[str, Any]) -> str:
    """Python that asks for this plan beside the data, with a ledger of its own."""
    unit = ""
    if dataset.unit:
        named = dataset.unit[0] if len(dataset.unit) == 1 else list(dataset.unit)
        unit = f"    unit={named!r}, max_rows={dataset.rows_per_unit},\n"
    columns = "".join(
        f"        {column!r}: {_literal(dataset.schema[column])},\n" for column in dataset.schema
    )
    dates = "from datetime import date\n\n" if "date(" in columns else ""
    more = "" if dataset.neighbours == "add-remove" else f"    neighbours={dataset.neighbours!r},\n"
    more += "" if dataset.rows is None else f"    rows={dataset.rows},\n"
    options = ", ".join(f"{key}={value!r}" for key, value in about.items())
    return "\n".join(
        [
            f"{dates}import farthing as ft",
            "",
            f'dataset = ft.dataset(\n    "your-file.csv",\n{unit}    schema={{\n{columns}    }},\n{more})',
            f'study = ft.Study(dataset, {options}, name={name!r}, ledger="study.db")',
            *plan_lines(asked),
            "print(plan)",
            "# release = plan.release()  # this spends",
        ]
    )


def plan_lines(asked: Asked) -> list[str]:
    """`plan = study.plan(...)` and its controls."""
    requirements = asked.requirements
    if asked.fit and requirements:
        options: dict[str, Any] = {
            "require": {name: requirement.within for name, requirement in requirements.items()},
            "confidence": next(iter(requirements.values())).confidence,
        }
        return [*asking_lines("fit", asked.statistics, options, asked.expected)]
    lines = [*asking_lines("plan", asked.statistics, {"epsilon": asked.epsilon}, asked.expected)]
    given = list(zip(asked.statistics, asked.controls, strict=True))
    lines += [control_line("weight", one.name, told["weight"]) for one, told in given if "weight" in told]
    lines += [
        control_line("require", one.name, within=told["within"], confidence=told.get("confidence", 0.95))
        for one, told in given
        if "within" in told
    ]
    return [*lines, *([control_line("reserve", epsilon=asked.reserve)] if asked.reserve else [])]


def _literal(domain: Any) -> str:
    if isinstance(domain, Categories):
        read = [", trim=True"] * domain.trim + [", lower=True"] * domain.lowered
        plain = repr(list(domain.values))
        return f"ft.data.Categories({plain}{''.join(read)})" if read else plain
    if getattr(domain, "decimal", ""):
        return f"ft.data.Reals({domain.lower!r}, {domain.upper!r}, decimal={domain.decimal!r})"
    if isinstance(domain, Flags):
        return "bool"
    return repr((domain.lower, domain.upper)).replace("datetime.date(", "date(")

"""Studies as plain data: what a study.toml, or a body of JSON, says about datasets, statistics and plans.

The same entries everywhere: a statistic is an entry such as {"kind": "mean", "column": "income", "by": "sex"}, with its
`weight`, its required error (`within`, at `confidence`); a column is {"range": [0, 110]}, {"categories": [...]} or
{"flags": true}. JSON has no dates: there they are texts such as "2024-12-31".

What was read is written again by `study_toml`, and as lines of Python that ask for the same plan.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from farthing.data import Categories, Dataset, Dates, Flags, Integers, Reals
from farthing.errors import BudgetExceeded, Infeasible, InvalidValue
from farthing.planner import Problem, Requirement
from farthing.statistics import Statistic
from farthing.statistics.constructors import CONSTRUCTORS
from farthing.study.key_count_plan import key_count_plan
from farthing.study.plan import Plan
from farthing.study.plan_text import call_lines, control_line
from farthing.study.release_request import (
    Request,
    checked_weight,
    earlier_or_raise,
    earlier_release,
    fit_control,
    with_controls,
)
from farthing.study.staged_plan import in_use, staged_plan
from farthing.study.study import Study
from farthing.study.study_account import counted_rows

CONTROLS = ("weight", "within", "confidence")


@dataclass(frozen=True)
class PlanDescription:
    """What a plan is asked for: statistics with their controls, what is expected, and how much it may use.

    `epsilon` is the part of the budget that the plan may use (by default all that is left), `reserve` how much of that
    it leaves unspent. With `fit` the plan has the least epsilon at which every required error is met.
    """

    statistics: tuple[Statistic, ...]
    controls: tuple[Mapping[str, Any], ...]
    expected: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    reserve: float | None = None
    fit: bool = False

    @property
    def weights(self) -> dict[str, float]:
        """The weights that were given, by the name of the statistic."""
        return {
            statistic.name: checked_weight(control["weight"])
            for statistic, control in zip(self.statistics, self.controls, strict=True)
            if "weight" in control
        }

    @property
    def requirements(self) -> dict[str, Requirement]:
        """The errors that were required, by the name of the statistic."""
        return {
            statistic.name: Requirement(control["within"], control.get("confidence", 0.95))
            for statistic, control in zip(self.statistics, self.controls, strict=True)
            if "within" in control
        }


Reader = Callable[[Mapping[str, Any], str], tuple[Statistic, dict[str, Any]]]
"""What reads one entry: `statistic_of`, or something that remembers what it read."""


def plan_description(entries: Sequence[Mapping[str, Any]], read: Reader | None = None) -> PlanDescription:
    """The statistics that a list of entries describes; a fault is reported with its place in the list.

    >>> asked = plan_description([{"kind": "count"}, {"kind": "mean", "column": "age", "weight": 2.0, "within": 1.5}])
    >>> asked.statistics, asked.weights, asked.requirements["mean of age"].within
    ((count(), mean('age')), {'mean of age': 2.0}, 1.5)
    >>> plan_description([{"kind": "mean", "colum": "age"}])
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: statistics[0].colum='age': is not known; did you mean column.
    """
    one = read or statistic_of
    statistics = [one(entry, f"statistics[{place}]") for place, entry in enumerate(entries)]
    return PlanDescription(tuple(statistic for statistic, _ in statistics), tuple(control for _, control in statistics))


def statistic_of(entry: Mapping[str, Any], where: str = "statistic") -> tuple[Statistic, dict[str, Any]]:
    """The statistic of one entry, and its controls."""
    rest = dict(entry)
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in CONSTRUCTORS:
        known = ", ".join(CONSTRUCTORS)
        raise InvalidValue(f"{where}.kind", kind, "must be a kind of statistic", f"there are: {known}")
    control = {key: rest.pop(key) for key in CONTROLS if key in rest}
    if "confidence" in control and "within" not in control:
        raise InvalidValue(f"{where}.confidence", control["confidence"], "must be given with within")
    if kind == "linear_regression" and "column" in rest:
        rest["target"] = rest.pop("column")
    make = CONSTRUCTORS[kind]
    parameters = inspect.signature(make).parameters
    allowed = tuple(parameters)
    refuse_unknown(rest, allowed, f"{where}.", (*allowed, *CONTROLS))
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in rest:
            raise InvalidValue(f"{where}.{name}", None, f"must be given for a {kind}")
    return make(**rest), control


def entry_of(statistic: Statistic, control: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a statistic: what `statistic_of` reads.

    >>> entry_of(*statistic_of({"kind": "count", "by": "sex", "weight": 2}))
    {'kind': 'count', 'by': 'sex', 'weight': 2}
    """
    return {"kind": statistic.kind, **statistic.arguments, **control}


def expected_values(expected: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """What is expected, with the lists and tables of TOML and JSON as the columns mean them."""
    return {name: _expected_value(name, value, dataset) for name, value in expected.items()}


def _expected_value(name: str, value: Any, dataset: Dataset) -> Any:
    if name not in dataset.schema:
        return value
    domain = dataset.schema[name]
    if isinstance(value, dict) and isinstance(domain, Categories | Flags):
        known = domain.values if isinstance(domain, Categories) else (False, True)
        # Keys of such a table are texts: `true` and `3` stand for the category that is written so.
        by_text = {str(one).lower() if isinstance(one, bool) else str(one): one for one in known}
        return {by_text.get(key, key): share for key, share in value.items()}
    if isinstance(value, list) and len(value) == 2 and isinstance(domain, Integers | Reals):
        return tuple(value)  # its mean and standard deviation
    return value


def dated(statistic: Statistic, dataset: Dataset) -> Statistic:
    """The statistic with dates where JSON could only write texts: the edges of columns of dates."""
    schema = dataset.schema

    def edges(column: str, bins: Any) -> Any:
        if isinstance(bins, tuple) and column in schema and isinstance(schema[column], Dates):
            return tuple(map(_date, bins))
        return bins

    bins = tuple((column, edges(column, cut)) for column, cut in statistic.bins)
    ranges = tuple(edges(statistic.column, pair) for pair in statistic.ranges)
    if (bins, ranges) == (statistic.bins, statistic.ranges):
        return statistic
    return replace(statistic, bins=bins, ranges=ranges)


def _date(value: Any) -> Any:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):  # its reader refuses what is no date
            return date.fromisoformat(value)
    return value


def plan_of(
    study: Study,
    asked: PlanDescription,
    known: Plan | None = None,
    *,
    quick: bool = False,
    from_file: bool = False,
    again: bool = False,
) -> Plan:
    """The plan with everything that was asked of it, in one division of the budget; nothing is spent.

    `known` is an earlier plan, perhaps of the same statistics: what was read off their design is then kept, which saves
    most of the time. With `quick` the division is the best near that of `known`, for a slider that moves; what is
    released must be planned without. `from_file` has its hints written as a study.toml writes them, those of a refusal
    too. With `again`, a request that was released before is the plan that it was, whatever is left by now.
    """
    study = in_use(study, asked.statistics, asked.expected)
    if not again:
        return _plan_now(study, asked, known, quick=quick, from_file=from_file)
    request = request_of(study, asked)
    earlier = earlier_release(study, request)
    if earlier is None:
        try:
            return _plan_now(study, asked, known, quick=quick, from_file=from_file)
        except (BudgetExceeded, Infeasible, InvalidValue) as refusal:
            earlier = earlier_or_raise(study, request, refusal)
    plan = Plan.again(study, asked.statistics, asked.expected, asked.epsilon, request, earlier)
    return replace(plan, from_file=from_file)


def request_of(study: Study, asked: PlanDescription) -> Request:
    """What the release of a plan is named by: the same request in Python, in a study.toml and in JSON."""
    study = in_use(study, asked.statistics, asked.expected)
    request = Request.of(study, asked.statistics, asked.epsilon, asked.expected)
    if asked.fit:
        return request.then(*fit_control(asked.requirements))
    return with_controls(request, asked.weights, asked.requirements, asked.reserve)


def _plan_now(study: Study, asked: PlanDescription, known: Plan | None, *, quick: bool, from_file: bool) -> Plan:
    if study.declared.unknown:
        controls = request_of(study, asked).controls
        counted = key_count_plan(study, asked.statistics, asked.expected, asked.epsilon, controls)
        if counted is not None:
            return replace(counted, from_file=from_file)
    if from_file and (study.dataset.unknown or study.dataset.is_auto):
        staged = staged_plan(study, asked.statistics, asked.expected, asked.epsilon)
        if staged is not None:
            return replace(staged, from_file=True)
    start = known if known is not None and _alike(study, asked, known) else None
    design = None if start is None else start.design
    problem = study.problem(asked.statistics, asked.epsilon, asked.expected, design)
    plan = Plan.draft(study, asked.statistics, problem, asked.expected, asked.epsilon)
    plan = replace(plan, from_file=from_file)
    if asked.fit:
        if not asked.requirements:
            raise InvalidValue("fit", True, "needs a required error for every statistic", "write within = beside them")
        return plan.fitted(asked.requirements, start)
    return plan.controlled(asked.weights, asked.requirements, asked.reserve, start, quick=quick)


def _alike(study: Study, asked: PlanDescription, known: Plan) -> bool:
    """Whether both are about the same statistics of the same table, predicted from the same facts."""
    problem: Problem = known.problem
    return (
        known.study.dataset is study.dataset
        and known.asked == asked.statistics
        and dict(known.expected) == dict(asked.expected)
        and (problem.delta > 0) == (study.allowance(asked.epsilon, plan=True).delta > 0)
        and known.design.counted == counted_rows(study, asked.expected)
    )


def refuse_unknown(
    table: Mapping[str, Any], known: Sequence[str], prefix: str, choices: Sequence[str] | None = None
) -> None:
    """Refuse a key that is not known, and name the nearest that is."""
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, choices or known, n=1)
            hint = f"did you mean {near[0]}" if near else f"there are: {', '.join(choices or known)}"
            raise InvalidValue(f"{prefix}{key}", table[key], "is not known", hint)


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def study_toml(asked: PlanDescription, dataset: Dataset, about: Mapping[str, Any], source: str, ledger: str) -> str:
    """The study.toml that asks for this plan; `about` is what [study] says besides the ledger.

    >>> import pyarrow, farthing as ft
    >>> from farthing.study.documents.study_document import plan_description
    >>> people = ft.dataset(pyarrow.table({"age": [1]}), schema={"age": (0, 110)})
    >>> asked = plan_description([{"kind": "mean", "column": "age", "within": 2}])
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
    if dataset.bounds_rows:
        table["max_rows"] = dataset.rows_per_unit
    if dataset.neighbours != "add-remove":
        table["neighbours"] = dataset.neighbours
    if dataset.rows is not None:
        table["rows"] = dataset.rows
    if dataset.people is not None:
        table["people"] = dataset.people
    if dataset.probability < 1:
        table["sample"] = dataset.probability
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
        options = {"trim": domain.trim, "lower": domain.lowered}
        return {"categories": list(domain.values), **{key: True for key, value in options.items() if value}}
    if isinstance(domain, Flags):
        return {"flags": True}
    decimal = getattr(domain, "decimal", "")
    return {"range": [domain.lower, domain.upper], **({"decimal": decimal} if decimal else {})}


def _lines(header: str, entries: Mapping[str, Any]) -> str:
    lines = [f"{_key(name)} = {in_toml(value)}" for name, value in entries.items() if value is not None]
    return "\n".join([header, *lines, ""])


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
            return "{ " + ", ".join(f"{_key(str(key))} = {in_toml(each)}" for key, each in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(in_toml, value)) + "]"
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    if isinstance(name, bool):
        return str(name).lower()
    return name if _BARE.fullmatch(name) else in_toml(name)


def client_code(asked: PlanDescription, dataset: str, address: str) -> str:
    """Python that asks a server for this plan and releases it.

    >>> from farthing.study.documents.study_document import plan_description
    >>> print(client_code(plan_description([{"kind": "count", "weight": 2}]), "people", "http://127.0.0.1:8642"))
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


def local_code(
    asked: PlanDescription, dataset: Dataset, name: str, about: Mapping[str, Any], then: Sequence[str] = ()
) -> str:
    """Python that asks for this plan beside the data, with a ledger of its own; `then` is done to the study first."""
    unit = ""
    if dataset.unit:
        named = dataset.unit[0] if len(dataset.unit) == 1 else list(dataset.unit)
        bound = f", max_rows={dataset.rows_per_unit}" if dataset.bounds_rows else ""
        unit = f"    unit={named!r}{bound},\n"
    columns = "".join(f"        {column!r}: {_literal(dataset.schema[column])},\n" for column in dataset.schema)
    dates = "from datetime import date\n\n" if "date(" in columns else ""
    more = "" if dataset.neighbours == "add-remove" else f"    neighbours={dataset.neighbours!r},\n"
    more += "" if dataset.rows is None else f"    rows={dataset.rows},\n"
    more += "" if dataset.people is None else f"    people={dataset.people},\n"
    sample = "" if dataset.probability == 1 else f".sample({dataset.probability!r})"
    options = ", ".join(f"{key}={value!r}" for key, value in about.items())
    return "\n".join(
        [
            f"{dates}import farthing as ft",
            "",
            f'dataset = ft.dataset(\n    "your-file.csv",\n{unit}    schema={{\n{columns}    }},\n{more}){sample}',
            f'study = ft.Study(dataset, {options}, account={name!r}, ledger="study.db")',
            *then,
            *plan_lines(asked),
            "print(plan)",
            "# release = plan.release()  # this spends",
        ]
    )


def plan_lines(asked: PlanDescription) -> list[str]:
    """`plan = study.plan(...)` and its controls."""
    requirements = asked.requirements
    if asked.fit and requirements:
        options: dict[str, Any] = {
            "require": {name: requirement.within for name, requirement in requirements.items()},
            "confidence": next(iter(requirements.values())).confidence,
        }
        return [*call_lines("fit", asked.statistics, options, asked.expected)]
    lines = [*call_lines("plan", asked.statistics, {"epsilon": asked.epsilon}, asked.expected)]
    pairs = list(zip(asked.statistics, asked.controls, strict=True))
    lines += [control_line("weight", one.name, control["weight"]) for one, control in pairs if "weight" in control]
    lines += [
        control_line("require", one.name, within=control["within"], confidence=control.get("confidence", 0.95))
        for one, control in pairs
        if "within" in control
    ]
    return [*lines, *([control_line("reserve", epsilon=asked.reserve)] if asked.reserve else [])]


def _literal(domain: Any) -> str:
    if isinstance(domain, Categories):
        options = [", trim=True"] * domain.trim + [", lower=True"] * domain.lowered
        plain = repr(list(domain.values))
        return f"ft.data.Categories({plain}{''.join(options)})" if options else plain
    if getattr(domain, "decimal", ""):
        return f"ft.data.Reals({domain.lower!r}, {domain.upper!r}, decimal={domain.decimal!r})"
    if isinstance(domain, Flags):
        return "bool"
    return repr((domain.lower, domain.upper)).replace("datetime.date(", "date(")

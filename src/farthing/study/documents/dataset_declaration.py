"""A dataset declared in JSON: what a wizard asks for, read into a dataset, with a sentence about every column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from farthing.curator import Curator
from farthing.curator.account_words import account_news
from farthing.curator.corrections import changes_of
from farthing.curator.payers import account_name, accounts_of, refuse_other_unit, unit_of
from farthing.curator.payers import period_account as period_account
from farthing.data import Categories, Dataset, Dates, Flags, Integers, Reals, TableFacts, dataset, linked, table
from farthing.data.declaration_file import after_steps, domain_of_entry
from farthing.data.schema import Unknown
from farthing.data.sources import Source
from farthing.errors import FarthingError, InvalidValue
from farthing.ledger import Budget, Ledger
from farthing.ledger.budget import untouched_budget
from farthing.numerics.bounds import number_text

_FEW = 6  # categories that are named in a sentence
_ALONE = ("source", "columns", "max_rows", "rows", "people", "renews", "part")  # facts of a table that is not linked

Opened = Source | Mapping[str, Source]
"""The table of a declaration, opened; of linked tables, each by its name."""


def declared_sources(facts: Mapping[str, Any]) -> dict[str, str]:
    """The sources that a declaration names, by table, those of people first; under "" that of a table by itself.

    >>> declared_sources({"tables": {"visits": {"source": "visits.csv"}}})
    {'visits': 'visits.csv'}
    """
    tables = facts.get("tables")
    if tables is None:
        return {"": facts["source"]}
    parents = {key.partition(".")[0]: target.partition(".")[0] for key, target in (facts.get("keys") or {}).items()}

    def depth(name: str) -> int:
        """How many keys lead from a table to the one that names the units, as far as they do."""
        path = [name]
        while path[-1] in parents and len(path) <= len(parents):
            path.append(parents[path[-1]])
        return len(path)

    return {name: tables[name]["source"] for name in sorted(tables, key=depth)}


def opened_sources(facts: Mapping[str, Any], opened: Callable[[str], Source]) -> Opened:
    """The tables that a declaration names, each as `opened` opens it."""
    sources = {name: opened(source) for name, source in declared_sources(facts).items()}
    return sources.get("", sources)


def declared_dataset(name: str, facts: Mapping[str, Any], source: Opened) -> Dataset:
    """The dataset that was declared; it is called by its name, not by the file it comes from.

    `facts` are `unit`, `max_rows`, `neighbours`, `rows`, `people`, `sample`, `renews` (the period whose rows it is),
    `part` (one of the disjoint parts of the table, by a column and its value) and `columns`, each {"range": [0, 110]}
    (with "real": true for numbers with fractions, where the source does not say, and "decimal": "," for text),
    {"categories": [...]} (with "trim" and "lower"), {"flags": true} or {"unknown": "number"} (or "whole number",
    "date", "text": what a study is to find). `max_rows` may be "auto": to be found, too. `steps` are those of a
    study.toml; a public table that one of them joins must be given with its rows: no file is opened for it.

    Of linked tables the facts are `table` (the one that is asked about), `tables` (each with its `source`, `columns`
    and `max_rows`), `keys` and `unit`, as in a study.toml.
    """
    share = facts.get("sample")
    if not isinstance(source, Source):
        whole = after_steps(_linked(name, facts, source), _with_dates(facts.get("steps") or []))
        return whole if share is None else whole.sample(share)
    columns = facts["columns"]
    declared = dataset(
        replace(source, name=name),
        unit=facts.get("unit"),
        max_rows=facts.get("max_rows"),
        neighbours=facts.get("neighbours") or "add-remove",
        rows=facts.get("rows"),
        people=facts.get("people"),
        schema={column: _domain(column, entry, source) for column, entry in columns.items()},
    )
    terms, steps = facts.get("renews"), facts.get("steps")
    if terms is not None and steps:
        raise InvalidValue("steps", len(steps), "must be left out for an account that renews")
    declared = after_steps(declared, _with_dates(steps or []))
    if terms is not None and share is not None:
        raise InvalidValue("sample", share, "must be left out for an account that renews")
    if terms is not None:
        declared = declared.during(terms["date"], terms["every"], terms["period"])
    if facts.get("part") is not None:
        return _part_of(declared, facts["part"])
    return declared if share is None else declared.sample(share)


def _with_dates(steps: Any) -> Any:
    """Steps from JSON, which has no dates: texts among bounds and edges are dates; what is none is refused later."""

    def dated(value: Any) -> Any:
        try:
            return date.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            return value

    def cut(said: Any) -> Any:
        if not isinstance(said, Mapping):
            return said
        return {name: list(map(dated, ends)) if isinstance(ends, list) else ends for name, ends in said.items()}

    def step(asked: Any) -> Any:
        if not isinstance(asked, Mapping):
            return asked
        return {word: cut(said) if word in ("clip", "bin") else said for word, said in asked.items()}

    return [step(asked) for asked in steps] if isinstance(steps, list) else steps


def _part_of(whole: Dataset, part: Mapping[str, Any]) -> Dataset:
    """The rows of one part of a table that was divided."""
    parts = whole.split(part["by"])
    named = [rows for value, rows in parts.items() if str(value) == str(part["value"])]
    if not named:
        rule = f"must be a value of {part['by']} as the table was divided"
        raise InvalidValue("part", part["value"], rule, "divide the table again")
    return named[0]


def _linked(name: str, facts: Mapping[str, Any], sources: Mapping[str, Source]) -> Dataset:
    """The table that is asked about, among those that are linked."""
    for fact in _ALONE:
        if facts.get(fact):
            raise InvalidValue(fact, facts[fact], "must stand with each of the tables, or be left out")
    studied, unit = facts.get("table"), facts.get("unit")
    if not isinstance(studied, str) or studied not in sources:
        raise InvalidValue("table", studied, f"must be one of {', '.join(sources)}", "the table that is asked about")
    if not isinstance(unit, str):
        raise InvalidValue("unit", unit, "must be a table and a column", 'such as "persons.person_id"')
    taken = sorted(set(sources) & {"unit", "keys", "max_rows", "neighbours"})
    if taken:
        raise InvalidValue("tables", taken[0], "must be another name", "rename it")
    tables = {}
    for each, source in sources.items():
        schema = {
            column: _domain(column, entry, source)
            for column, entry in (facts["tables"][each].get("columns") or {}).items()
        }
        # The table that names the people has the dataset's name: an account that is opened for them is called like it.
        own = name if each in (studied, unit.partition(".")[0]) else each
        tables[each] = table(replace(source, name=own), schema=schema, name=own)
    bounds = {each: bound for each in sources if (bound := facts["tables"][each].get("max_rows")) is not None}
    neighbours = facts.get("neighbours") or "add-remove"
    return linked(unit=unit, keys=facts.get("keys") or {}, max_rows=bounds, neighbours=neighbours, **tables)[studied]


def _domain(column: str, entry: Any, source: Source) -> Any:
    real = entry.get("real") if isinstance(entry, Mapping) else None
    facts = {key: value for key, value in entry.items() if key != "real"} if isinstance(entry, Mapping) else entry
    bounds = facts.get("range") if isinstance(facts, Mapping) else None
    if real is not None and bounds is None:
        raise InvalidValue(f"schema.{column}", entry, "must have a range where it says real")
    if isinstance(bounds, list | tuple):
        if real is None:
            real = facts.get("decimal") is not None or _holds_fractions(column, source)
        facts = {**facts, "range": [_bound(column, bound, bool(real)) for bound in bounds]}
    return domain_of_entry(column, facts)


def table_facts(name: str, given: Any) -> tuple[str, Mapping[str, Any]]:
    """The file and the schema of one of several linked tables, made with `farthing.table`, for a server to open."""
    is_plain = isinstance(given, TableFacts) and isinstance(given.source, str) and isinstance(given.schema, Mapping)
    if not is_plain:
        rule = "must be a table with the name of a file of the server's data folder, and the literals of its schema"
        raise InvalidValue(f"tables[{name!r}]", given, rule, 'write farthing.table("visits.csv", schema={...})')
    return given.source, given.schema


def unknown_words(column: Any) -> dict[str, Any] | None:
    """An unknown column as a declaration in JSON says it; None for any other."""
    if not isinstance(column, Unknown):
        return None
    rules = {rule: given for rule in ("trim", "lower", "decimal") if (given := getattr(column, rule))}
    return {"unknown": column.kind, **rules}


def _holds_fractions(column: str, source: Source) -> bool:
    kinds = source.table.schema()
    if source.text_file or column not in kinds:
        return False
    kind = kinds[column]
    kind = kind.value_type if kind.is_array() else kind
    return bool(kind.is_floating() or (kind.is_decimal() and kind.scale != 0))


def _bound(column: str, bound: Any, real: bool) -> Any:
    if isinstance(bound, str):
        try:
            return date.fromisoformat(bound)
        except ValueError:
            raise InvalidValue(
                f"schema.{column}", bound, "must be a number or a date", "write dates as 2024-12-31"
            ) from None
    whole = isinstance(bound, int) and not isinstance(bound, bool)
    return float(bound) if real and whole and abs(bound) < 2**1000 else bound


_PLACES = ("steps", "unit", "max_rows", "neighbours", "rows", "people", "sample", "keys", "table", "tables")


@dataclass(frozen=True)
class Checked:
    """What a declaration comes to: a sentence for every column, and what is wrong with it, by place."""

    unit: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[tuple[str, str], ...] = ()


def checked_declaration(name: str, facts: Mapping[str, Any], source: Opened) -> Checked:
    """Every column by itself, then all together with the unit; no row is read.

    Columns of linked tables are named with their table: "visits.ward".
    """
    sentences: dict[str, str] = {}
    problems: list[tuple[str, str]] = []
    for place, column, entry, own in _entries(facts, source):
        try:
            alone = dataset(own, schema={column: _domain(column, entry, own)})
            sentences[place] = column_sentence(column, alone)
        except FarthingError as problem:
            problems.append((f"columns.{place}", _sentence(problem)))
    unit = ""
    if sentences and not problems:
        try:
            unit = unit_sentence(declared_dataset(name, facts, source))
        except FarthingError as problem:
            where = problem.name.partition("[")[0] if isinstance(problem, InvalidValue) else "columns"
            problems.append((where if where in _PLACES else "columns", _sentence(problem)))
    return Checked(unit, sentences, tuple(problems))


def _entries(facts: Mapping[str, Any], source: Opened) -> Iterator[tuple[str, str, Any, Source]]:
    """Every declared column: what it is called here, its name in its table, what was said of it, and the table."""
    if isinstance(source, Source):
        yield from ((column, column, entry, source) for column, entry in facts["columns"].items())
        return
    for name, own in source.items():
        for column, entry in (facts["tables"][name].get("columns") or {}).items():
            yield f"{name}.{column}", column, entry, own


def column_sentence(column: str, dataset: Dataset) -> str:
    """What becomes of the cells of a column, in one sentence."""
    if column in dataset.unknown:
        kind = dataset.unknown[column].kind
        open_fact = "its values are" if kind == "text" else "its range is"
        return f"{column} is {kind}: {open_fact} not known, and can be used once found, for a small part of the budget"
    if column not in dataset.schema:
        return f"every cell of {column} is a list: it can be used once it is taken apart"
    match dataset.schema[column]:
        case Integers(lower=lower, upper=upper):
            return (
                f"{column} outside {number_text(lower, 15)} to {number_text(upper, 15)} is moved to the nearest end; "
                "fractions are rounded down"
            )
        case Reals(lower=lower, upper=upper):
            return f"{column} outside {number_text(lower, 15)} to {number_text(upper, 15)} is moved to the nearest end"
        case Dates(lower=lower, upper=upper):
            return f"{column} before {lower} or after {upper} is moved to the nearest of the two"
        case Categories(values=values):
            named = ", ".join(map(str, values[:_FEW]))
            more = f" and {len(values) - _FEW:,} more" if len(values) > _FEW else ""
            return f"{column} is one of {named}{more}; anything else counts as missing"
        case Flags():
            return f"{column} is true or false, yes or no, or 1 or 0; anything else counts as missing"


def unit_sentence(dataset: Dataset) -> str:
    """Whom the dataset protects, in one sentence."""
    change = "replaced by another" if dataset.neighbours == "replace" else "added or removed"
    drawn = ""
    if dataset.probability < 1:
        who = "everybody" if dataset.unit else "every row"
        drawn = f" Each release reads a secret sample, drawn afresh: {who} is in it with probability "
        drawn += f"{number_text(dataset.probability, 6)}."
    if not dataset.unit:
        whether = f"whether one row was {change}"
        return f"Protects every row: the budget limits what anybody can learn about {whether}.{drawn}"
    named = " and ".join(dataset.unit)
    used = "every statistic says how much of each is used"
    if dataset.is_auto:
        used = "how many rows of each are used is to be found, for a small part of the budget"
    elif dataset.bounds_rows:
        rows = "one row" if dataset.rows_per_unit == 1 else f"{dataset.rows_per_unit:,} rows"
        used = f"at most {rows} of each are used, chosen at random"
    return (
        f"Protects everybody named by {named}: {used}, and the budget "
        f"limits what anybody can learn about whether all of somebody's rows were {change}.{drawn}"
    )


def schema_of(dataset: Dataset) -> list[dict[str, Any]]:
    """The columns as plain data: name, kind, bounds, categories."""
    columns = []
    for column in dataset.schema:
        domain = dataset.schema[column]
        lower, upper = getattr(domain, "lower", None), getattr(domain, "upper", None)
        values = list(domain.values) if isinstance(domain, Categories) else None
        if isinstance(domain, Dates):
            lower, upper = str(lower), str(upper)
        columns.append(
            {
                "name": column,
                "kind": type(domain).__name__.lower(),
                "lower": lower,
                "upper": upper,
                "categories": values,
            }
        )
    return columns


def open_budget(ledger: Ledger, dataset: Dataset, name: str, epsilon: float, delta: float) -> None:
    """Register a dataset in the ledger: whom it protects, and which table it stands for."""
    Curator(ledger).register(dataset, name, epsilon, delta)


def take_up_table(ledger: Ledger, dataset: Dataset, account: str) -> None:
    """Register the table of a dataset to an account that is open, unless it is."""
    Curator(ledger).attach(dataset, account)


def declared_account(ledger: Ledger, dataset: Dataset, account: str | None) -> str:
    """The account that pays for a dataset: the one that was named, that of its table, or a new one of its name."""
    return account_name(ledger, dataset, account)


def refuse_other_payers(ledger: Ledger, dataset: Dataset, account: str) -> None:
    """Refuse a table that belongs to another account, or to one of another unit."""
    accounts_of(ledger, dataset, account)


def account_note(ledger: Ledger, dataset: Dataset, account: str, epsilon: float, delta: float) -> str:
    """What a declaration does in the ledger, as a sentence: it opens an account, or uses one that is open."""
    accounts = accounts_of(ledger, dataset, account)
    budget = ledger.budget(account) if accounts.is_open else untouched_budget(account, epsilon, delta, unit_of(dataset))
    news = account_news(accounts, budget) or f"pays from the account {account!r}, to which the table belongs"
    return f"{news[0].upper()}{news[1:]}."


def declaration_changes(before: Dataset, after: Dataset) -> dict[str, tuple[str, str]]:
    """What another declaration of one table changes, by what was declared; refused if it changes whom it protects."""
    return changes_of(before, after)


def fits_budget(dataset: Dataset, budget: Budget) -> bool:
    """Whether the dataset protects whom the budget was set for."""
    try:
        refuse_other_unit(dataset, budget)
    except InvalidValue:
        return False
    return True


def _sentence(problem: FarthingError) -> str:
    if isinstance(problem, InvalidValue):
        return f"{problem.rule}; {problem.way_out}" if problem.way_out else problem.rule
    return str(problem)

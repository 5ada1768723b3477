"""`farthing init`: a commented study.toml from the names and types of columns; no row is read.

Of several files, the columns that link them are proposed by their names alone: `visits.person_id` leads to the table
`persons`, or to the one whose own number it seems to be.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from farthing.errors import InvalidValue

STUDY = "study.toml"
_NAMES_SOMEBODY = re.compile(
    r"(^|[^a-z])(person|people|patient|user|customer|client|member|household|family|subject|participant|respondent|"
    r"employee|student|nhs|ssn)(s|id|no|nr|num|number|key|code|uuid)?($|[^a-z])"
)
_NAMES_SOMETHING = re.compile(r"(^|[^a-z])(id|uuid|guid|key)($|[^a-z])")

HELP = f"""\
Write a commented {STUDY} for a file (CSV or Parquet, or a quoted glob), to be filled in.

Of several files, each is one table of the same people, and the keys that link them are proposed by the names of
columns: persons.csv visits.csv drugs.csv.

Only the names of the columns are looked at, and their types where the file states them (Parquet). Types of a CSV
file could only be guessed from its rows, so they are left for you to say. Bounds and categories are public facts:
write what is known about everybody, not what is found in the file.

Exit code: 0 when the file was written; 2 when it was refused.
"""

_STUDY = """
[study]
# The budget of everything that is ever released about the table. With epsilon 1, the odds of any fact about one person
# change by a factor of at most 2.72 (e^epsilon). delta is the probability that this fails: keep it far below
# 1 / number of people.
# epsilon = 1.0
# delta = 1e-9
# What this plan may use of it; by default all that is left.
# plan_epsilon = 0.25
ledger = "study.db"
# The account that pays: it protects people, in however many tables they are. By default the table's own.
ACCOUNT
# A table that grows: with `renews`, each month (or week, quarter, year) has a budget of its own, for the rows of that
# month by a column of dates. Somebody in all months is protected by less, and no bound holds for ever; plans say it.
RENEWS
# What people will find the release by; by default the names of its statistics.
# title = "table 4 of the yearbook"

[expected]
# What is known from elsewhere. It makes the predicted errors accurate and costs nothing; it is never read from a row.
# rows = 1000
# age = [45.0, 18.0]            # mean and standard deviation of a column
# sex = { F = 0.5, M = 0.5 }    # shares of its categories; of flags, those of true and false

# One [[statistics]] for each statistic; `farthing plan` shows its error before anything is spent.
# Kinds: count, sum, mean, variance, std, histogram, top, quantile, quantiles, median, cdf, contingency,
# linear_regression, count_distinct, and ranges and marginals, which can be asked further questions for free once they
# are released.
[[statistics]]
kind = "count"

# [[statistics]]
# kind = "mean"
# column = "age"
# by = "sex"
# where = "age >= 18"
# within = 0.5                  # required error, 95 times in 100; leave it out to share the budget

# [[statistics]]
# kind = "histogram"
# column = "age"
# bins = 11
# weight = 2.0                  # counts twice as much as the others

# [[statistics]]
# kind = "quantile"
# column = "age"
# probability = 0.9             # nine tenths of the rows are below

# [[statistics]]
# kind = "ranges"               # afterwards: release["ranges of age"].query("18 <= age < 65")
# column = "age"
"""


@click.command("init", help=HELP, short_help="Write a commented study.toml for a file, to be filled in.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--out", default=STUDY, show_default=True, metavar="FILE", help="Where to write.")
@click.option("--account", metavar="NAME", help="The account that protects the people in FILE (default: FILE's own).")
@click.option("--renews", metavar="PERIOD", help="Each day, week, month, quarter or year has a budget; with --date.")
@click.option("--date", metavar="COLUMN", help="With --renews: the column of dates that says in which period a row is.")
def init_command(files: tuple[str, ...], out: str, account: str | None, renews: str | None, date: str | None) -> None:
    """Read names and types, write the file."""
    from farthing.data.declaration_file import columns_of

    target = Path(out)
    tables = {file: columns_of(file) for file in files}
    columns = [column for each in tables.values() for column in each]
    if len(files) > 1 and renews is not None:
        raise InvalidValue("renews", renews, "must be left out for linked tables, whose rows have no common date")
    _check_renewal(renews, date, [name for name, _ in columns])
    renewal = None if renews is None or date is None else (renews, date)
    sources = [(os.path.relpath(file, target.parent), each) for file, each in tables.items()]
    try:
        one = study_text(*sources[0], account, renewal) if len(sources) == 1 else linked_study_text(sources, account)
        text = one.encode()
    except UnicodeEncodeError:
        raise InvalidValue("source", files[0], "must have a name that is text", "rename the file") from None
    try:
        with target.open("xb") as output:  # an older file with work in it is not overwritten
            output.write(text)
    except FileExistsError:
        raise InvalidValue("out", out, "exists already", "choose another name with --out, or move it away") from None
    except OSError as problem:
        raise InvalidValue("out", out, f"cannot be written ({problem.strerror})", "choose another") from None
    origin = f"{len(columns)} columns of {' and '.join(files)}, from their names"
    if len(columns) == 1:
        origin = f"1 column of {files[0]}, from its name"
    click.echo(f"{out}: {origin}{_and_types(columns)}; no row was read.")
    click.echo("Fill in the unit, the schema and the budget, and remove the columns that no statistic will use.")
    click.echo(f"Then: farthing plan {shlex.quote(out)}")
    click.echo(f"To see what does not fit (reads the rows; not private): farthing check {shlex.quote(out)}")


def _check_renewal(renews: str | None, date: str | None, names: list[str]) -> None:
    from farthing.privacy.periods import EVERY

    if (renews is None) != (date is None):
        raise InvalidValue("renews", renews, "must be given with --date", "such as --renews month --date admitted")
    if renews is not None and renews not in EVERY:
        raise InvalidValue("renews", renews, f"must be one of {', '.join(EVERY)}")
    if date is not None and date not in names:
        raise InvalidValue("date", date, "must be a column of the file", f"there are: {', '.join(names[:20])}")


def study_text(
    source: str,
    columns: list[tuple[str, str | None]],
    account: str | None = None,
    renewal: tuple[str, str] | None = None,
) -> str:
    """The text of a study.toml for a table, with comments where something must be declared.

    `renewal` are the period after which the budget renews, and the column of dates.
    """
    lines = [
        *_HEAD,
        "[dataset]",
        f"source = {_quoted(source)}",
        "",
        "# Whose privacy is protected? One row, unless a column names a person who may have several rows;",
        "# then at most max_rows rows of each are kept, chosen at random.",
        *_unit_lines([name for name, _ in columns]),
        "# max_rows = 1",
        "",
        '# Neighbouring tables: "add-remove" one unit, or "replace" one (then the number of rows can be public).',
        'neighbours = "add-remove"',
        "# rows = 1000",
        "",
        "[schema]",
        *_SCHEMA,
    ]
    lines.extend(_line(name, kind) for name, kind in columns)
    lines += _STEPS
    return "\n".join(lines) + "\n" + _study(account, renewal)


_HEAD = (
    "# Public facts about a private table. Nothing here was read from a row, and nothing here may be:",
    "# write what is known about everybody, not what is found in the file.",
    "",
)
_SCHEMA = (
    "# A range clips what lies outside; a value outside its categories is missing. Remove what is not needed.",
    "# [0, 110] is for whole numbers, and rounds down what has a fraction; [0.0, 110.0] for numbers with decimals,",
    "# [2000-01-01, 2025-12-31] for dates; flags are true or false, yes or no, 1 or 0.",
    '# Where nobody knows the range or the values, write { unknown = "number" }, "whole number", "date" or "text":',
    "# `farthing discover` finds them for a small part of the budget.",
)
_STEPS = (
    "",
    "# What is done to the rows before anything is asked, in this order: where, derive, clip, bin, select, explode,",
    "# join, per_unit.",
    "# [[steps]]",
    '# where = "age >= 18"',
    "# [[steps]]",
    '# per_unit = { visits = "count()" }     # one row for each person',
)


def _study(account: str | None, renewal: tuple[str, str] | None) -> str:
    every, date = renewal or ("month", "admitted")
    mark = "# " if renewal is None else ""
    renews = f"{mark}renews = {_quoted(every)}\n{mark}date = {_quoted(date)}"
    pays = '# account = "patients"' if account is None else f"account = {_quoted(account)}"
    return _STUDY.replace("ACCOUNT", pays).replace("RENEWS", renews)


def linked_study_text(sources: Sequence[tuple[str, list[tuple[str, str | None]]]], account: str | None = None) -> str:
    """The text of a study.toml for several tables, with the keys that the names of their columns propose."""
    names = _table_names([source for source, _ in sources])
    tables = dict(zip(names, (dict(columns) for _, columns in sources), strict=True))
    keys, unit = proposed_keys(tables)
    leading = [name for name in names if name not in {target.partition(".")[0] for target in keys.values()}]
    lines = [
        *_HEAD,
        "[dataset]",
        "# The table that is studied. `join` in [[steps]] brings the columns of a table that its keys lead to.",
        f"table = {_quoted(leading[-1] if leading else names[-1])}",
        "# Whose privacy is protected, in all tables: the column that names a person.",
        f"unit = {_quoted(unit)}  # guessed from its name"
        if unit
        else '# unit = "persons.person_id"  # no column has such a name',
        'neighbours = "add-remove"',
        "",
        "[keys]",
        "# Each table leads to that of the unit. Guessed from names of columns: check that a key names one row there,",
        "# and that both columns have one type (every column of a CSV file is text).",
        *(f"{_quoted(child)} = {_quoted(parent)}" for child, parent in keys.items()),
    ]
    for name in names:
        if f"{name}." not in "".join(f"{child.partition('.')[0]}." for child in keys) and not unit.startswith(
            f"{name}."
        ):
            lines.append(f'# "{name}.column" = "table.column"  # no key was found: add one, or remove [tables.{name}]')
    for name, (source, columns) in zip(names, sources, strict=True):
        linking = {unit, *keys, *keys.values()}
        bound = "# max_rows = 1  # how many rows of each person are kept; not needed if its rows are only joined"
        lines += ["", f"[tables.{name}]", f"source = {_quoted(source)}", bound]
        lines += ["", f"[tables.{name}.schema]", *(_SCHEMA if name == names[0] else ())]
        lines += [_line(column, kind) for column, kind in columns if f"{name}.{column}" not in linking]
    join = next(iter(keys.values()), "persons.id").partition(".")[0]
    lines += [*_STEPS[:3], "# [[steps]]", f"# join = {_quoted(join)}", *_STEPS[3:]]
    return "\n".join(lines) + "\n" + _study(account, None)


def _table_names(sources: Sequence[str]) -> list[str]:
    """A name for each file, that TOML and Python can write: `2024 visits.csv` is `_2024_visits`."""
    names: list[str] = []
    for source in sources:
        plain = re.sub(r"\W+", "_", Path(source).name.partition(".")[0], flags=re.ASCII).strip("_").lower() or "table"
        name = f"_{plain}" if plain[0].isdigit() else plain
        taken = {*names, "unit", "keys", "max_rows", "neighbours"}
        names.append(
            name if name not in taken else next(f"{name}_{n}" for n in range(2, 99) if f"{name}_{n}" not in taken)
        )
    return names


def proposed_keys(tables: Mapping[str, Mapping[str, str | None]]) -> tuple[dict[str, str], str]:
    """The keys that link tables, and the column that names their unit, by names and types of columns alone.

    >>> tables = {
    ...     "persons": {"person_id": None, "born": None},
    ...     "visits": {"visit_id": None, "person_id": None},
    ...     "drugs": {"visit_id": None, "drug": None},
    ... }
    >>> proposed_keys(tables)
    ({'visits.person_id': 'persons.person_id', 'drugs.visit_id': 'visits.visit_id'}, 'persons.person_id')

    A column may also have the name of the table that it leads to; the unit is in a table that leads to no other.

    >>> proposed_keys({"staff": {"staff_id": None}, "shifts": {"shift_id": None, "staff": None}})
    ({'shifts.staff': 'staff.staff_id'}, 'staff.staff_id')
    """
    homes: dict[str, str] = {}  # for each column that numbers something, the column of the table of those things
    for column in {column for columns in tables.values() for column in columns}:
        thing = _thing(column)
        for name, columns in tables.items() if thing else ():
            own = next((each for each in (column, "id") if each in columns and _is_table_of(thing, name)), None)
            if own:
                homes[column] = f"{name}.{own}"
    own_keys = {name: f"{name}.id" for name, columns in tables.items() if "id" in columns}
    own_keys |= {place.partition(".")[0]: place for place in homes.values()}
    for column in {column for columns in tables.values() for column in columns if column not in homes}:
        called = next((name for name in tables if name in own_keys and _is_table_of(_words(column), name)), None)
        if called is not None:
            homes[column] = own_keys[called]
    people = [place for column, place in homes.items() if _NAMES_SOMEBODY.search(_words(column))]
    used = [homes[column] for name, columns in tables.items() for column in columns if column in homes]
    led_to = {name: {homes[column] for column in columns if column in homes} for name, columns in tables.items()}
    roots = [place for place in homes.values() if led_to[place.partition(".")[0]] == {place}]
    unit = max(sorted(people or roots or homes.values()), key=used.count, default="")
    keys: dict[str, str] = {}
    for name, columns in tables.items():
        leads = [
            (f"{name}.{column}", homes[column])
            for column, kind in columns.items()
            if column in homes and not homes[column].startswith(f"{name}.") and not unit.startswith(f"{name}.")
            and _is_one_type(kind, tables[homes[column].partition(".")[0]][homes[column].partition(".")[2]])
        ]  # fmt: skip
        leads.sort(key=lambda pair: pair[1] != unit)  # that of the unit first
        keys |= dict(leads[:1])
    return keys, unit


def _thing(column: str) -> str:
    """What a column such as `person_id` or `visitNo` numbers."""
    match = re.fullmatch(r"(.+?)_?(id|no|nr|number|key|uuid)", _words(column))
    return match[1].strip("_") if match else ""


def _is_table_of(thing: str, table: str) -> bool:
    plural = {thing, f"{thing}s", f"{thing}es", f"{thing.removesuffix('y')}ies", *(["people"] * (thing == "person"))}
    return any(table == each or table.endswith(f"_{each}") for each in plural)


def _is_one_type(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _words(name: str) -> str:
    """A name in lower case, with a line between the words of "personID"."""
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def _unit_lines(names: list[str]) -> list[str]:
    """A unit to think about, and why; only the name of a column is known, so it stays a comment."""
    people = [name for name in names if _NAMES_SOMEBODY.search(_words(name))]
    others = [name for name in names if _NAMES_SOMETHING.search(_words(name)) and name not in people]
    if people:
        more = f" So may {_listed(people[1:])}." if people[1:] else ""
        return [
            f"# By its name, {_title(people[0])} may say whose row it is; only the name was read.{more}",
            f"# unit = {_quoted(people[0])}",
        ]
    if others:
        return [
            f"# By its name, {_listed(others)} may say whose row it is, or only number the rows: then it is no unit.",
            f"# unit = {_quoted(others[0])}",
        ]
    return [
        "# No column is proposed: none has a name like person_id. If one says whose row it is, write it here.",
        '# unit = "..."',
    ]


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - 3} more"] if len(names) > 3 else []
    *first, last = [*map(_title, names[:3]), *more]
    return f"{', '.join(first)} or {last}" if first else last


def _title(name: str) -> str:
    """On one line of a comment, whatever is in it."""
    return _quoted(name if len(name) <= 60 else name[:60] + "...")


def _line(name: str, kind: str | None) -> str:
    from farthing.data.declaration_file import ZONED

    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
    entry, hint = {
        "whole numbers": (
            "{ range = [] }",
            'whole numbers: lowest and highest, such as [0, 110]; or { unknown = "whole number" }',
        ),
        "real numbers": (
            "{ range = [] }",
            'real numbers: lowest and highest, such as [10.0, 60.0]; or { unknown = "number" }',
        ),
        "dates": ("{ range = [] }", 'dates: first and last, such as [2000-01-01, 2025-12-31]; or { unknown = "date" }'),
        ZONED: (
            "{ }",
            "times with a time zone, which no statistic can use: convert it to dates or to timestamps without a "
            "zone, or remove this line",
        ),
        "flags": ("{ flags = true }", "true or false"),
        "categories": ("{ categories = [] }", 'text: every category, such as ["F", "M"]; or { unknown = "text" }'),
        "other": ("{ }", "of a type that no statistic can use: convert it, or remove this line"),
        None: ("{ }", 'range = [0, 110], or categories = ["F", "M"], or flags = true'),
    }[kind]
    return f"{key} = {entry}  # {hint}"


def _quoted(text: str) -> str:
    """A TOML string; JSON's escapes are a part of TOML's, which asks for one more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _and_types(columns: list[tuple[str, str | None]]) -> str:
    return " and types" if any(kind is not None for _, kind in columns) else ""

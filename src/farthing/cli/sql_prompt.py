"""The prompt of `farthing sql`: statements one after another, with history and completion."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farthing.cli.charge_grammar import decimal_number
from farthing.cli.sql_statement import SqlOptions, explanation, planned_sql, released_sql, show
from farthing.errors import FarthingError
from farthing.numerics.bounds import number_text

if TYPE_CHECKING:
    from farthing.data import Dataset
    from farthing.study import Study

PROMPT, MORE = "sql> ", "...> "
SHARE = 0.1  # of the whole budget, for each statement, by default
_HISTORY = 1_000
_KEYWORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "AS",
    "DESC",
    "ASC",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "WITH",
    "UNION",
    "ALL",
    "DISTINCT",
    "FILTER",
    "ROLLUP",
    "CUBE",
    "EXPLAIN",
    "DATE",
]
_FUNCTIONS = [
    "COUNT(",
    "SUM(",
    "AVG(",
    "MEDIAN(",
    "STDDEV_POP(",
    "VAR_POP(",
    "PERCENTILE_CONT(",
    "WIDTH_BUCKET(",
    "REGR_SLOPE(",
    "REGR_INTERCEPT(",
    "FLOOR(",
    "CEIL(",
    "ROUND(",
    "ABS(",
    "YEAR(",
    "MONTH(",
    "DAY(",
    "COALESCE(",
    "NULLIF(",
    "LEAST(",
    "GREATEST(",
    "LN(",
    "SQRT(",
    "CAST(",
]
_COMMANDS = ("\\d", "\\budget", "\\epsilon", "\\help", "\\q")
_HELP = """\
A statement ends with a semicolon. Its errors and its price are shown first, and you are asked before anything is spent.
EXPLAIN SELECT ...;  everything about a plan, and the engine's SQL; spends nothing
\\d                   tables and columns, with what is declared about them
\\budget              what is left
\\epsilon 0.1         how much each statement may use from now on
\\q                   quit, as Ctrl-D does
Tab completes words, columns and categories; the arrow keys bring back what you typed."""


@dataclass
class Completer:
    """Completes keywords, functions, tables, columns and categories: public facts, all of them."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, study: Study) -> Completer:
        """What may be typed about a study."""
        from farthing.study.sql.sql_plan import table_names

        names = [*table_names(study)[:1], *study.dataset.linked_names]
        names += [column for dataset in tables_of(study).values() for column in (*dataset.schema, *dataset.unit)]
        values = [
            f"'{value}'"
            for domain in study.dataset.schema.columns.values()
            for value in getattr(domain, "values", ())
            if isinstance(value, str)
        ]
        return cls(tuple(dict.fromkeys([*names, *_KEYWORDS, *_FUNCTIONS, *values, *_COMMANDS])))

    def matches(self, start: str) -> list[str]:
        """The words that begin so, whatever their case; keywords in the case of what was typed."""
        near = [word for word in self.words if word.lower().startswith(start.lower())]
        return [word.lower() if start.islower() and word in _LOWERED else word for word in near]

    def __call__(self, start: str, number: int) -> str | None:
        """As readline asks: the match of this number, or None after the last."""
        matches = self.matches(start)
        return matches[number] if number < len(matches) else None


_LOWERED = {*_KEYWORDS, *_FUNCTIONS}


def tables_of(study: Study) -> dict[str, Dataset]:
    """The tables that a statement may name, the study's own first."""
    from farthing.study.sql.sql_plan import table_names

    own = table_names(study)[0]
    linked = [name for name in study.dataset.linked_names if name != own]
    return {own: study.dataset, **{name: study.dataset.linked_table(name) for name in linked}}


def history_file() -> Path:
    """Where statements are remembered, readable by their author alone."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "farthing" / "sql_history"


@contextmanager
def line_editor(completer: Completer) -> Iterator[None]:
    """Readline with history and completion, where Python has it."""
    try:
        import readline
    except ImportError:  # Windows: lines are read without an editor
        yield
        return
    path = history_file()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY)
    readline.set_completer(completer)
    readline.set_completer_delims(" \t\n,()=<>;")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(path)
        readline.set_completer(None)


@contextmanager
def unremembered_answers() -> Iterator[None]:
    """Keeps y and n out of the history."""
    try:
        import readline
    except ImportError:
        yield
        return
    before = readline.get_current_history_length()
    try:
        yield
    finally:
        for place in range(readline.get_current_history_length() - 1, before - 1, -1):
            readline.remove_history_item(place)


def run_prompt(options: SqlOptions) -> None:
    """Read statements until somebody has had enough."""
    study = options.asked.study()
    if options.epsilon is None:
        options = replace(options, epsilon=SHARE * study.budget.total.epsilon)
    with line_editor(Completer.of(study)):
        click.echo(f"Tables: {', '.join(tables_of(study))}. {_each(options)} \\help shows what you can type.")
        lines: list[str] = []
        while True:
            try:
                line = input(MORE if lines else PROMPT)
            except EOFError:
                click.echo()
                break
            except KeyboardInterrupt:
                click.echo()
                lines = []
                continue
            if not lines and line.strip().startswith("\\"):
                if line.strip() in ("\\q", "\\quit"):
                    break
                options = _command(line.strip(), study, options)
                continue
            lines += [line] if lines or line.strip() else []
            if lines and is_complete("\n".join(lines)):
                text, lines = "\n".join(lines), []
                with unremembered_answers():
                    _answer(text, study, options)
    study.close()


def is_complete(text: str) -> bool:
    """Whether a statement ends here: with a semicolon outside quotes.

    >>> is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete("SELECT 1")
    (True, False, False)
    """
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*", "", text)
    return bare.rstrip().endswith(";") and "'" not in bare and '"' not in bare


def _each(options: SqlOptions) -> str:
    return f"Each statement may use epsilon {number_text(options.epsilon or 0)}."


def _answer(text: str, study: Study, options: SqlOptions) -> None:
    """Plan, ask, release, show; a refusal is shown, and the prompt goes on."""
    try:
        plan = planned_sql(study, text, options)
        assert plan.script is not None
        if plan.script.explain:
            click.echo(explanation(plan))
            return
        show(released_sql(study, plan, options), options, study)
    except FarthingError as refusal:
        click.echo(str(refusal), err=True)
    except click.exceptions.Exit:  # declined: nothing was spent, as was said
        return
    except (KeyboardInterrupt, click.Abort) as interruption:
        click.echo("\n".join(["interrupted", *getattr(interruption, "__notes__", ())]), err=True)


def _command(line: str, study: Study, options: SqlOptions) -> SqlOptions:
    word, _, rest = line.partition(" ")
    try:
        if word == "\\d":
            for name, dataset in tables_of(study).items():
                click.echo(f"{name}" + (f" (unit: {', '.join(dataset.unit)})" if dataset.unit else ""))
                for column, domain in dataset.schema.columns.items():
                    click.echo(f"  {column}: {domain_text(domain)}")
        elif word == "\\budget":
            click.echo(f"{number_text(study.left)} of epsilon {number_text(study.budget.total.epsilon)} is left")
        elif word == "\\epsilon" and rest.strip():
            options = replace(options, epsilon=decimal_number(rest.strip(), "epsilon"))
            click.echo(_each(options))
        else:
            click.echo(_HELP)
    except FarthingError as refusal:
        click.echo(str(refusal), err=True)
    return options


def domain_text(domain: object) -> str:
    """What is declared about a column, in few words.

    >>> from farthing.data import Categories, Flags, Integers
    >>> domain_text(Integers(0, 110)), domain_text(Flags()), domain_text(Categories(["F", "M"]))
    ('0 to 110', 'true or false', 'F, M')
    """
    values = getattr(domain, "values", None)
    if values is not None:
        first = ", ".join(map(str, values[:8]))
        return first if len(values) <= 8 else f"{first} and {len(values) - 8:,} more"
    lower, upper = getattr(domain, "lower", None), getattr(domain, "upper", None)
    return "true or false" if lower is None else f"{lower} to {upper}"

"""A progress bar on stderr for work that takes over a second; shorter work shows nothing."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farthing.errors import FarthingError, InvalidValue

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from farthing.data import Dataset
    from farthing.ledger import Receipt
    from farthing.study import Study
    from farthing.study.documents.study_file import StudyFile


COUNT, CHECK = "c", "k"
"""What somebody answers who wants the rows counted, or checked against the declaration, first."""


def confirm_spending(
    study: Study,
    cost: float,
    question: str,
    *,
    err: bool = False,
    counting: float | None = None,
    file: str = "",
    plan: bool = False,
) -> str:
    """Say what will be spent, and go on only if somebody says yes; `err` keeps standard output for programs.

    With `counting`, the price of a count, they may also ask for that first: the answer is then `COUNT`. With `file`, in
    which the table is declared, a steward may see first whether the rows fit; what is shown then is not private.
    """
    from farthing.numerics.bounds import number_text

    left, whose = number_text(study.room if plan else study.left, 6), " and ".join(map(repr, study.accounts))
    click.echo(
        f"\nThis will spend epsilon {number_text(cost, 6)} of the {left} left for {whose}, for good.",
        err=err,
    )
    if not somebody_is_there():
        raise FarthingError("there is no terminal to ask on; add --yes.")
    letters = ["y", "n"]
    if counting is not None:
        letters.append(COUNT)
        click.echo(
            f"Or answer {COUNT}: the rows are counted first, for epsilon {number_text(counting, 6)}, and the plan is "
            "shown again.",
            err=err,
        )
    if file and study.analyst is None:  # an analyst may not see what does not fit
        letters.append(CHECK)
        click.echo(f"Or answer {CHECK} to see first what does not fit (not private): {_WRONG_DECLARATION}.", err=err)
    answer = _answer(question, letters, err)
    if answer == CHECK:
        _show_check(file)
        letters.remove(CHECK)
        answer = _answer(question, letters, err)
    if answer == "n":
        click.echo("Nothing was spent.", err=err)
        click.get_current_context().exit(1)
    return answer


_WRONG_DECLARATION = "a declaration that does not fit the rows costs as much as one that does"


def remind_to_check(file: str) -> None:
    """For whoever is not asked: say on the standard error stream what shows a wrong declaration before it is paid."""
    click.echo(f"note: {_WRONG_DECLARATION}; farthing check {file} shows beforehand what does not fit", err=True)


def _answer(question: str, letters: list[str], err: bool) -> str:
    """One of the letters; no is the default."""

    def read(text: str) -> str:
        letter = {"yes": "y", "no": "n"}.get(text.strip().lower(), text.strip().lower())
        if letter not in letters:
            raise click.UsageError(f"answer {', '.join(letters[:-1])} or {letters[-1]}")
        return letter

    choices = "/".join("N" if letter == "n" else letter for letter in letters)
    return str(click.prompt(f"{question} [{choices}]", "n", value_proc=read, show_default=False, err=err))


def _show_check(file: str) -> None:
    """On the standard error stream, whatever standard output is for: none of it may be published."""
    from farthing.data import check
    from farthing.data.declaration_file import read_declaration

    click.echo(f"\n{check(read_declaration(file))}\n", err=True)


_CHANGES = "farthing.study"  # in the context of a command: what its options change in a study.toml


def _noted(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta.setdefault(_CHANGES, {})[option.name] = value


_Command = TypeVar("_Command", bound=Callable[..., Any])


def study_options(command: _Command) -> _Command:
    """The options of every command that opens the study of a study.toml: they count instead of the file's words."""
    period = "The period that is asked about, of an account that renews, such as 2026-03 (default: the file's)."
    for name, metavar, text in (
        ("--period", "PERIOD", period),
        ("--account", "NAME", "The account that pays (default: the file's, or the table's own)."),
    ):
        option = click.option(name, metavar=metavar, help=text, expose_value=False, callback=_noted)
        command = option(command)
    return command


def declared_study(file: str, *, statistics: bool = True, split: bool = False, incomplete: bool = False) -> StudyFile:
    """The study of a file, with what the options of this command change in it."""
    from farthing.study.documents.study_file import read_study

    changes = click.get_current_context().meta.get(_CHANGES, {})
    return read_study(file, statistics=statistics, split=split, incomplete=incomplete, changes=changes)


def study_to_spend(asked: StudyFile, agreed: bool) -> Study:
    """The study with its ledger.

    Where nobody can be asked and there is no ledger yet, it has one that is thrown away: `confirm_spending` refuses,
    and nothing is left behind.
    """
    if agreed or somebody_is_there() or asked.has_ledger:
        return asked.study()
    return click.get_current_context().with_resource(asked.looked_at())


def warn_of_budget(epsilon: float, delta: float, rows: int | None = None) -> None:
    """Say on the standard error stream why a budget protects little, if it does."""
    from farthing.study.attacker_odds import budget_cautions

    for caution in budget_cautions(epsilon, delta, rows):
        click.echo(f"WARNING: {caution}", err=True)


def say_if_changed(study: Study, receipt: Receipt, fresh: str) -> None:
    """Say that stored answers are about rows that are others by now; on stderr, where nothing is published."""
    from farthing.study.release import changed_note

    note = changed_note(study, receipt, fresh)
    if note:
        click.echo(f"Note: {note}\n", err=True)


def refuse_unreadable(dataset: Dataset) -> None:
    """Refuse broken text files before anything is said of an account or asked; nothing is in the ledger then."""
    try:
        dataset.prepare()
    except FarthingError:
        click.echo("Nothing was charged.", err=True)
        raise


def say_if_same_people(study: Study, *, unasked: bool) -> None:
    """Say that a table which gets an account of its own holds another one's people; on stderr, for the steward.

    `unasked` is a release that names no account and asks nobody: it opens no second account for the same people.
    """
    from farthing.curator.same_people import NOT_PRIVATE, SAME, is_small

    if study.analyst is None and study.account_news is not None and is_small(study.dataset):
        is_new = study.curator.accounts(study.dataset, study.name, study.sampling_rate).is_new
        for overlap in study.same_people()[:1]:
            if unasked and is_new and overlap.share.value >= SAME:
                raise InvalidValue(
                    "account",
                    None,
                    f"must be named with --yes: {overlap}, and {study.name!r} would be another budget for them",
                    f"write account = {json.dumps(overlap.account)} under [study], or pass --account; if they are "
                    f"other people, name an account of their own. {NOT_PRIVATE}",
                )
            click.echo(f"Note: {overlap.advice}\n", err=True)


def somebody_is_there() -> bool:
    """Whether a question would be read by a person."""
    return sys.stdin.isatty()


PATIENCE = 1.0  # seconds before anything is shown


class Stages:
    """What is being done now, and how much of it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, description: str, *, measured: bool = False) -> None:
        """Name the next piece of work; `measured` when `share` will say how far it is."""
        if self._task is not None:
            self._progress.update(self._task, visible=False)
        self._task = self._progress.add_task(description, total=1.0 if measured else None)

    def share(self, done: float) -> None:
        """How much of the present piece is done, between 0 and 1."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)


@contextmanager
def stages(console: Console, patience: float = PATIENCE) -> Iterator[Stages]:
    """Stages shown on `console` once they have lasted `patience` seconds; nothing remains of them at the end.

    >>> from rich.console import Console
    >>> with stages(Console(stderr=True)) as work:
    ...     work.begin("reading", measured=True)
    ...     work.share(1.0)
    """
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=console, transient=True)
    if not console.is_terminal:  # a log file wants neither spinners nor cursor movements
        yield Stages(progress)
        return
    # A timer rather than a check between pieces: one long proof is a single piece.
    timer = threading.Timer(patience, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield Stages(progress)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()

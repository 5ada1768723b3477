"""`farthing release`: charge the ledger, run the plan of a study once, print the answers."""

from __future__ import annotations

import json
import os
import shlex
import warnings
from typing import TYPE_CHECKING

import click

from farthing.cli.charge_grammar import decimal_number
from farthing.cli.count_command import CountFirst, count_first, share_option
from farthing.cli.terminal import (
    COUNT,
    confirm_spending,
    remind_to_check,
    say_if_changed,
    say_if_same_people,
    study_to_spend,
)
from farthing.errors import BudgetExceeded, FarthingError, Infeasible, InvalidValue, SamePeople

if TYPE_CHECKING:
    from farthing.curator.same_people import Overlap
    from farthing.study import Plan, Release, Study
    from farthing.study.documents.study_file import StudyFile


_BEFORE = (
    "This study was released before, by an earlier version of farthing, as {}: farthing release returns those answers "
    "and spends nothing."
)

_CHECK_FIRST = "To see first what does not fit the rows (not private; for the steward): farthing check {}"

PLAN_COMMAND_HELP = """\
Show the error of every statistic of a study (study.toml) before anything is spent, and what the plan would cost.

No row is read and nothing is written: the ledger is opened to see what is left of the budget, and where there is none
yet, the release makes it.

Exit code: 0 when there is a plan; 2 when it was refused, with the reason and what to do.
"""


@click.command("plan", help=PLAN_COMMAND_HELP, short_help="Show every error of a study before anything is spent.")
@click.argument("file", default="study.toml")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option("--explain", is_flag=True, help="Also say what is measured and how each statistic comes out of it.")
@click.option("--plot", metavar="FILE", help="Draw errors and prices (svg, png or html).")
def plan_command(file: str, as_json: bool, explain: bool, plot: str | None) -> None:
    """Read the file, divide the budget, print."""
    if plot is not None:
        from farthing.cli.compose_command import _refuse_undrawable

        _refuse_undrawable(plot)

    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.documents.study_file import read_study

    asked = read_study(file)
    with asked.looked_at() as study:
        try:
            with stages(Console(stderr=True)) as work:
                work.begin("planning")
                plan = asked.plan(study)
                text = plan.to_json() if as_json else f"{plan}\n\n{plan.explain()}" if explain else str(plan)
        except (BudgetExceeded, Infeasible):
            if not _was_released(asked, study):
                raise
            _show_released(asked, study, as_json)
            return
        click.echo(text)
        if not as_json:
            click.echo(f"\nTo release it: farthing release {file}")
            if plan.earlier is None:
                click.echo(_CHECK_FIRST.format(file))
            if plan.earlier is None and _was_released(asked, study):
                click.echo(_BEFORE.format(asked.request_id), err=True)
        if plot is not None:
            from farthing.plots import save

            save(plan.plot(), plot)
            click.echo(f"Picture: {plot}", err=as_json)


def _was_released(asked: StudyFile, study: Study) -> bool:
    """Whether an earlier version released this very file: `farthing release` returns what it has."""
    stored = study.ledger.stored(asked.request_id)
    return stored is not None and stored.answer is not None


def _show_released(asked: StudyFile, study: Study, as_json: bool) -> None:
    from farthing.statistics.answer_records import plain

    release = study.released(asked.request_id)
    if as_json:
        facts = {**release.plan, "request_id": release.request_id, "released": True}
        click.echo(json.dumps(plain(facts), indent=2))
        return
    click.echo(_BEFORE.format(release.request_id))
    click.echo(f"It has: {', '.join(release)}. It was charged epsilon {release.cost:.6g} then.")


CHECK_COMMAND_HELP = """\
Read the rows that a study (study.toml) declares, and say what does not fit: cells that cannot be read, are clipped,
missing or in no category of the list, rows beyond max_rows, quotes of a CSV file that do not close. If the study's
ledger has other accounts, it also says which share of the table's people they protect already.

NOT PRIVATE: for the steward, who may see the rows. No plan or release uses the findings, no budget is touched, and a
server has no route to them.

Exit code: 0 if the table can be read; 1 if a file would be refused; 2 if the declaration was refused.
"""


@click.command(
    "check", help=CHECK_COMMAND_HELP, short_help="Read a study's rows and say what does not fit. Not private."
)
@click.argument("file", default="study.toml")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def check_command(file: str, as_json: bool) -> None:
    """Read the declaration, look at the rows, print."""
    from farthing.data import check
    from farthing.data.declaration_file import read_declaration

    report = check(read_declaration(file))
    overlaps = _overlaps(file) if report.ok else []
    if as_json:
        people = [
            {"account": each.account, "share": each.share.value, "interval": list(each.share.interval)}
            for each in overlaps
        ]
        click.echo(json.dumps({**report.to_dict(), "same_people": people}, indent=2, ensure_ascii=False))
    else:
        click.echo(str(report))
        for overlap in overlaps:
            click.echo(f"{overlap}: if they are the same people, write account = {json.dumps(overlap.account)}")
    if not report.ok:
        raise SystemExit(1)


def _overlaps(file: str) -> list[Overlap]:
    """Which accounts of the study's ledger have the people of its table; nothing where there is no ledger yet."""
    from farthing.study.documents.study_file import read_study

    try:
        asked = read_study(file, statistics=False)
        if not asked.has_ledger:
            return []
        study = asked.study()
    except FarthingError:  # a file that declares a table only, or a ledger that is not to be had: the rows are checked
        return []
    try:
        return study.same_people()
    finally:
        study.close()


HELP = """\
Release the statistics of a study (study.toml): charge the ledger, run on the engine, add noise, record, print.

What will be spent is shown and confirmed first; --yes skips the question, and is needed where there is no terminal.
Where errors depend on a number of rows that nobody knows, you can have the rows counted first, for a small share of the
budget: answer c, or pass --count-first. The plan is then shown again, for what was counted and for what is left, before
the rest is spent. With --yes nothing is counted unless --count-first is given, and then both are spent without asking.
The same study is released once: run it again and the answers come from the ledger, without spending anything. If the
table has changed since, a note says so. --fresh draws new noise and is charged again. --request-id names a release of
your own, which is answered once too.

Exit code: 0 when it was released; 1 when you declined; 2 when it was refused; 130 when interrupted. The message says
whether anything was charged: what was charged before Ctrl-C stays spent.
"""


@click.command("release", help=HELP, short_help="Release the statistics of a study: charge, run, record.")
@click.argument("file", default="study.toml")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print answers, plan and receipt as JSON; asks on a terminal before spending, else needs --yes.",
)
@click.option("--report", metavar="FILE", help="Write a self-contained HTML page.")
@click.option("--csv", "table", metavar="FILE", help="Write a tidy table.")
@click.option("--receipt", metavar="FILE", help="Write the ledger's receipt, for `farthing ledger verify`.")
@click.option("--request-id", metavar="ID", help="Name this release; the same id is answered once.")
@click.option("--fresh", is_flag=True, help="Draw new noise and pay again, even if this was released before.")
@click.option(
    "--count-first",
    is_flag=True,
    help="Where the number of rows is not known, count them first and plan again with what is left.",
)
@share_option
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def release_command(
    file: str,
    as_json: bool,
    report: str | None,
    table: str | None,
    receipt: str | None,
    request_id: str | None,
    fresh: bool,
    count_first: bool,
    share: str,
    yes: bool,
) -> None:
    """Look for a stored answer, else plan, count if that is wanted, confirm and run."""
    from farthing.study.documents.study_file import read_study

    asked = read_study(file)
    for name, path in (("report", report), ("csv", table), ("receipt", receipt)):
        if path is not None:
            refuse_unwritable(name, path)
    first = CountFirst(decimal_number(share, "share"), count_first)
    release = _released(asked, request_id, fresh, first, yes, as_json)
    if as_json:
        click.echo(release.to_json())
    else:
        _print(release)
    for path, write in (
        (report, release.report),
        (table, lambda where: _write_table(release, where)),
        (receipt, release.receipt.save),
    ):
        if path is not None:
            write(path)
            click.echo(f"Written: {path}", err=as_json)


def _released(
    asked: StudyFile, request_id: str | None, fresh: bool, first: CountFirst, agreed: bool, as_json: bool
) -> Release:
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.study_account import can_be_counted

    study = study_to_spend(asked, agreed)
    known = request_id or asked.request_id  # the second is what earlier versions called it
    if not fresh and study.ledger.stored(known) is not None:
        return _with_warning(study, study.released(known), asked)
    plan = _planned(asked, study)
    spends = plan.earlier is None or request_id is not None or fresh
    if spends and plan.earlier is not None:
        study.allowance(plan.cost.upper, plan=True)  # refused before anybody is asked
    countable = spends and plan.earlier is None and plan.assumed_rows is not None and can_be_counted(study)
    if countable and first.wanted:
        count_first(study, first.share, agreed=agreed, err=as_json)
        plan, countable = _planned(asked, study), False
        if agreed:
            click.echo(str(plan), err=as_json)
    if spends:
        say_if_same_people(study)
    if spends and not agreed:
        click.echo(str(plan), err=as_json)
        price, file = first.price(study) if countable else None, str(asked.path)
        answer = confirm_spending(study, plan.cost.upper, "Release?", err=as_json, counting=price, file=file, plan=True)
        if answer == COUNT:
            count_first(study, first.share, agreed=True, err=as_json)
            plan = _planned(asked, study)
            click.echo(str(plan), err=as_json)
            confirm_spending(study, plan.cost.upper, "Release?", err=as_json, file=file)
    elif countable and plan.opening is not None:
        click.echo(f"note: {plan.opening}", err=True)
    if spends and agreed and study.account_news is not None:  # whoever is asked reads it in the plan
        click.echo(f"note: this release {study.account_news}", err=True)
    if spends and agreed and study.analyst is None and study.budget.count == 0:
        remind_to_check(shlex.quote(str(asked.path)))
    with stages(Console(stderr=True)) as work:
        work.begin("running on the engine", measured=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamePeople)  # it was said above
            release = plan.release(request_id, progress=work.share, fresh=fresh)
    return _with_warning(study, release, asked)


def _planned(asked: StudyFile, study: Study) -> Plan:
    from rich.console import Console

    from farthing.cli.terminal import stages

    with stages(Console(stderr=True)) as work:
        work.begin("planning")
        plan = asked.plan(study)
        _ = plan.cost
    return plan


def _with_warning(study: Study, release: Release, asked: StudyFile) -> Release:
    if release.repeated:
        say_if_changed(study, release.receipt, f"farthing release {shlex.quote(str(asked.path))} --fresh")
    return release


def _print(release: Release) -> None:
    from farthing.numerics.bounds import number_text

    if release.repeated:
        click.echo("Answered from the ledger: this release was made before; nothing was spent now.\n")
    click.echo(str(release))
    paid = "paid before" if release.repeated else "spent"
    click.echo(f"\n{paid}: epsilon {number_text(release.cost, 6)}; request {release.request_id}")


def _write_table(release: Release, path: str) -> None:
    import csv

    records = release.records()
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for one in records for key in one)))
        writer.writeheader()
        writer.writerows(records)


def refuse_unwritable(name: str, path: str) -> None:
    """Before anything is spent: a release whose page cannot be written would be a sad one."""
    new = not os.path.lexists(path)
    try:
        with open(path, "a", encoding="utf-8"):
            pass
        if new:
            os.unlink(path)
    except OSError as problem:
        raise InvalidValue(name, path, f"cannot be written ({problem.strerror})", "choose another") from None

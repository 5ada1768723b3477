"""`farthing release`: charge the ledger, run the plan of a study once, print the answers."""

from __future__ import annotations

import json
import os
import shlex
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from farthing.cli.charge_grammar import decimal_number
from farthing.cli.count_command import CountFirst, count_first, share_option
from farthing.cli.part_releases import (
    discover_words,
    is_staged,
    parts_to_release,
    planned,
    print_parts,
    print_release,
    show_parts,
    write_table,
)
from farthing.cli.terminal import (
    COUNT,
    confirm_spending,
    declared_study,
    refuse_unreadable,
    remind_to_check,
    say_if_changed,
    say_if_same_people,
    study_options,
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
@study_options
def plan_command(file: str, as_json: bool, explain: bool, plot: str | None) -> None:
    """Read the file, divide the budget, print."""
    if plot is not None:
        from farthing.cli.compose_command import _refuse_undrawable

        _refuse_undrawable(plot)

    asked = declared_study(file, split=True)
    with asked.looked_at() as study:
        if asked.split is not None:
            show_parts(asked, asked.split, study, as_json=as_json, explain=explain)
            return
        try:
            plan = planned(asked, study)
            text = plan.to_json() if as_json else f"{plan}\n\n{plan.explain()}" if explain else str(plan)
        except (BudgetExceeded, Infeasible):
            if not _was_released(asked, study):
                raise
            _show_released(asked, study, as_json)
            return
        click.echo(text)
        if is_staged(plan):
            click.echo(f"\n{_FIND_FIRST.format(discover_words(plan, file))}", err=as_json)
            return
        if not as_json:
            click.echo(
                f"\n{_ASK.format(file) if _must_ask(study, plan) else f'To release it: farthing release {file}'}"
            )
            if plan.earlier is None:
                click.echo(_CHECK_FIRST.format(file))
            if plan.earlier is None and _was_released(asked, study):
                click.echo(_BEFORE.format(asked.request_id), err=True)
        if plot is not None:
            from farthing.plots import save

            save(plan.plot(), plot)
            click.echo(f"Picture: {plot}", err=as_json)


_FIND_FIRST = "To find what is unknown, and see the plan with exact errors: {}"
_ASK = 'To ask for it: farthing requests submit {} --purpose "what it is for"'


def _must_ask(study: Study, plan: Plan) -> bool:
    """Whether an analyst without a grant has neither an approval of the plan nor a policy, nor its answers."""
    if not study.by_request or plan.earlier is not None:
        return False
    requests = study.ledger.requests
    has_policy = any(policy.analyst == study.payer for policy in requests.policies(study.name))
    return not has_policy and requests.approved(study.name, study.payer, plan.request_id) is None


def _say_how_to_ask(study: Study, asked: StudyFile, plan: Plan) -> None:
    """What an analyst whose release was refused can do, and what a curator said when it was asked for last."""
    mine = [each for each in study.ledger.requests.all(study.name) if each.analyst == study.payer]
    same = [each for each in mine if each.name == plan.request_id]
    if same and same[-1].state == "declined":
        click.echo(f"note: request {same[-1].id} for this was declined: {same[-1].reason}", err=True)
    if not same or same[-1].state != "open":
        click.echo(_ASK.format(shlex.quote(str(asked.path))), err=True)


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
@study_options
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
            click.echo(f"{overlap}")
        if overlaps:
            click.echo(f"If they are the same people, {overlaps[0].way_out}")
    if not report.ok:
        raise SystemExit(1)


def _overlaps(file: str) -> list[Overlap]:
    """Which accounts of the study's ledger have the people of its table; nothing where there is no ledger yet."""
    try:
        asked = declared_study(file, statistics=False, split=True)
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
your own, which is answered once too: with the id of an earlier release it returns those answers.

With split = { by = "region", epsilon = 0.5 } under [study] it releases each of the disjoint parts, or the one that
part = "north" names: all of them together cost what one of them may. If the table has changed since it was divided,
the answers from before come back; --fresh divides it again, which is charged again.

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
@click.option(
    "--title",
    metavar="TEXT",
    help="Title under which the release is listed (default: title of the file, or its statistics).",
)
@click.option(
    "--with-version",
    is_flag=True,
    help="Say in the report which version of the table was read: that it has changed is then public.",
)
@study_options
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
    title: str | None,
    with_version: bool,
    yes: bool,
) -> None:
    """Look for a stored answer, else plan, count if that is wanted, confirm and run."""
    asked = declared_study(file, split=True)
    for name, path in (("report", report), ("csv", table), ("receipt", receipt)):
        if path is not None:
            refuse_unwritable(name, path)
    first = CountFirst(decimal_number(share, "share"), count_first)
    order = _Order(request_id, fresh, first, asked.title if title is None else title, as_json)
    if not asked.has_ledger:  # so that none is made either
        refuse_unreadable(asked.dataset)
    study, agreed = study_to_spend(asked, yes), yes
    if asked.split is not None:
        refuse_unreadable(study.dataset)
        say_if_same_people(study, unasked=yes and not asked.names_account)
        single = {"report": report, "receipt": receipt, "request-id": request_id, "count-first": count_first or None}
        given = parts_to_release(asked, asked.split, study, agreed=yes, fresh=fresh, as_json=as_json, single=single)
        parts, agreed = given.studies, given.agreed
        if given.new and request_id is None:  # nothing was released of them: the first answers are fresh ones
            order = replace(order, fresh=False)
        if len(parts) > 1:
            quiet = replace(order, is_first=False)
            releases = {
                value: _released(asked, part, quiet if place else order, agreed)
                for place, (value, part) in enumerate(parts.items())
            }
            print_parts(asked.split, study, releases, as_json, table)
            return
        (study,) = parts.values()
    release = _released(asked, study, order, agreed)
    version = study.version(release.request_id)
    if as_json:
        click.echo(release.to_json())
    else:
        print_release(release, study)
    if version is not None:  # for the steward: that a table has changed depends on its rows
        click.echo(f"note: computed from {version}", err=True)
    for path, write in (
        (report, lambda where: release.report(where, version if with_version else None)),
        (table, lambda where: write_table(release.records(), where)),
        (receipt, release.receipt.save),
    ):
        if path is not None:
            write(path)
            click.echo(f"Written: {path}", err=as_json)


@dataclass(frozen=True)
class _Order:
    """How a release is wanted."""

    request_id: str | None
    fresh: bool
    first: CountFirst
    title: str
    as_json: bool
    is_first: bool = True  # of several, with notes that are about all of them


def _released(asked: StudyFile, study: Study, order: _Order, agreed: bool) -> Release:
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.staged_plan import unknown_columns
    from farthing.study.study_account import can_be_counted

    request_id, fresh, first, as_json = order.request_id, order.fresh, order.first, order.as_json
    known = request_id or asked.request_id  # the second is what earlier versions called it
    if not fresh and study.ledger.stored(known) is not None:
        return _with_warning(study, study.released(known), asked)
    plan = planned(asked, study)
    if is_staged(plan):
        columns = unknown_columns(study.dataset, plan.asked, plan.expected)
        names = ", ".join(columns) or "max_rows"
        way_out = f"find it first, then look at the plan: {discover_words(plan, str(asked.path))}"
        raise InvalidValue("study", names, "is declared as unknown, and was not found yet", way_out)
    spends = plan.earlier is None or request_id is not None or fresh
    if spends and plan.earlier is not None:
        study.allowance(plan.cost.upper, plan=True)  # refused before anybody is asked
    if spends:
        refuse_unreadable(study.dataset)
    countable = spends and plan.earlier is None and plan.assumed_rows is not None and can_be_counted(study)
    if spends:
        say_if_same_people(study, unasked=agreed and not asked.names_account)
    if countable and first.wanted:
        count_first(study, first.share, agreed=agreed, err=as_json)
        plan, countable = planned(asked, study), False
        if agreed:
            click.echo(str(plan), err=as_json)
    if spends and not agreed:
        click.echo(str(plan), err=as_json)
        price, file = first.price(study) if countable else None, str(asked.path)
        answer = confirm_spending(study, plan.cost.upper, "Release?", err=as_json, counting=price, file=file, plan=True)
        if answer == COUNT:
            count_first(study, first.share, agreed=True, err=as_json)
            plan = planned(asked, study)
            click.echo(str(plan), err=as_json)
            confirm_spending(study, plan.cost.upper, "Release?", err=as_json, file=file)
    elif countable and plan.opening is not None:
        click.echo(f"note: {plan.opening}", err=True)
    if spends and agreed and order.is_first and study.account_news is not None:  # whoever is asked reads it in the plan
        click.echo(f"note: this release {study.account_news}", err=True)
    if spends and agreed and order.is_first and study.analyst is None and study.budget.count == 0:
        remind_to_check(shlex.quote(str(asked.path)))
    with stages(Console(stderr=True)) as work:
        work.begin("running on the engine", measured=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamePeople)  # it was said above
            try:
                release = plan.release(request_id, progress=work.share, fresh=fresh, title=order.title)
            except BudgetExceeded:
                if study.analyst is not None:
                    _say_how_to_ask(study, asked, plan)
                raise
    return _with_warning(study, release, asked)


def _with_warning(study: Study, release: Release, asked: StudyFile) -> Release:
    if release.repeated:
        say_if_changed(study, release.receipt, f"farthing release {shlex.quote(str(asked.path))} --fresh")
    return release


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

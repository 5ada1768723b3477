"""`farthing ledger`: what a ledger holds, whether it is whole, and the budgets in it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.terminal import warn_of_budget
from farthing.errors import BudgetExceeded, InvalidValue, LedgerError

if TYPE_CHECKING:
    from farthing.ledger import Entry, Ledger, Receipt, Verification
    from farthing.ledger.account_state import Holding
    from farthing.ledger.partitions import Part
    from farthing.plots import Moment


MOST = 1_000  # charges whose reading is worked out; a picture shows no more


def picture_of(ledger: Ledger, dataset: str) -> Any:
    """The burn-down chart of a dataset."""
    from farthing.plots import burn_down

    return burn_down(moments_of(ledger, dataset), dataset=dataset, delta=ledger.budget(dataset).total.delta)


def moments_of(ledger: Ledger, dataset: str) -> list[Moment]:
    """The entries about a dataset's budget; of very many charges every second, fourth ... and the last."""
    from farthing.ledger.ledger_replay import Replay, Thinning

    replay, kept = Replay(), Thinning(MOST)
    for entry in ledger.entries():
        replay.follow(entry)
        if entry.is_about(dataset) and entry.kind in ("dataset", "budget", "reserve", "charge", "refused"):
            kept.add(entry, replay.holding(dataset))
    return [_moment(entry, holding) for entry, holding in kept.all()]


def _moment(entry: Entry, holding: Holding) -> Moment:
    from farthing.accounting.event_price import epsilon_up
    from farthing.plots import Moment

    requested = None
    if entry.kind == "refused":
        nano = int(entry.body["nano"])
        requested = math.inf if nano < 0 else epsilon_up(nano)
    return Moment(
        entry.sequence,
        entry.kind,
        spent=holding.account.spent_upper,
        budget=holding.account.budget.epsilon,
        withheld=epsilon_up(holding.withheld()[0]),
        requested=requested,
        who=entry.analyst or entry.actor,
    )


HELP = """\
Show, verify and export a ledger, and change the budgets in it.

LEDGER is a file such as study.db or an address such as postgresql://user@host/name. Give it first, or with
--ledger. Every command verifies the ledger before it prints anything.

\b
  farthing ledger show study.db
  farthing ledger accounts study.db
  farthing ledger register study.db patients 'visits-*.csv'
  farthing ledger verify study.db --receipt receipt.json
  farthing ledger budget set study.db census --epsilon 1 --delta 1e-9

Exit code: 0 on success; 1 when the ledger does not verify, cannot be reached or does not allow it; 2 when the
input is refused; 130 when interrupted.
"""

Command = Callable[..., Any]
T = TypeVar("T")


class LedgerCommands(click.Group):
    """The group: what the ledger itself refuses ends with code 1, what is written wrongly with 2 as everywhere."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except (LedgerError, BudgetExceeded) as refusal:
            raise click.ClickException(str(refusal)) from None


@click.group(
    "ledger", cls=LedgerCommands, help=HELP, short_help="Show, verify and export a ledger; change its budgets."
)
def ledger_command() -> None:
    """The group of commands that read a ledger or decide about its budgets."""


@ledger_command.group("budget", help="Budgets of datasets: `farthing ledger budget set`.")
def budget_command() -> None:
    """The group of one command; a budget has no other verb on the command line."""


def _common(command: Command) -> Command:
    """The options that every command has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--key", metavar="FILE", help="The ledger's key, if it is not where it was made."),
        click.option("--ledger", "-l", "url", metavar="URL", help="The ledger."),
    ):
        command = option(command)
    return command


def _amounts(command: Command) -> Command:
    """Options of commands that set an amount."""
    for option in (
        click.option("--as", "actor", metavar="NAME", help="Who makes the change (default: your login name)."),
        click.option("--delta", metavar="D", help="Delta (default: unchanged, or 0 for what is new or freed)."),
        click.option("--epsilon", metavar="E", required=True, help="Epsilon."),
    ):
        command = option(command)
    return command


@ledger_command.command("show", help="Budgets, grants and the last entries. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER] [DATASET]")
@_common
@click.option("--entries", metavar="N", help="How many of the last entries to show (default: 10).")
@click.option("--plot", metavar="FILE", help="Draw how the budget was used up to FILE.svg, .png or .html.")
def show_command(
    words: tuple[str, ...],
    url: str | None,
    key: str | None,
    as_json: bool,
    entries: str | None,
    plot: str | None,
) -> None:
    """Print the state of one dataset or of all."""
    place, names = _places(words, url, more=("DATASET",))
    count = 10 if entries is None else whole_number(entries, "entries")
    if plot is not None:
        from farthing.cli.compose_command import _refuse_undrawable

        _refuse_undrawable(plot)
    from rich.console import Console

    from farthing.cli.ledger_table import LedgerView, ledger_json, print_ledger, without_secrets

    with _opened(place, key, "auditor") as ledger:
        datasets = [_checked_dataset(ledger, name) for name in names] or list(ledger.datasets())
        if plot is not None and len(datasets) != 1:
            way_out = f"name one of {', '.join(datasets)}" if datasets else "set a budget first"
            raise InvalidValue("plot", plot, f"can show one dataset, not {len(datasets)}", way_out)
        view = LedgerView.of(ledger, without_secrets(place), datasets, count)
        if plot is not None:
            from farthing.plots import save

            save(picture_of(ledger, datasets[0]), plot)
        if as_json:
            _print_json(ledger_json(view))
        else:
            print_ledger(view, Console())
    if plot is not None:
        click.echo(f"Picture: {plot}", err=as_json)


@ledger_command.command("accounts", help="Accounts with their tables, and whom they protect. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER]")
@_common
def accounts_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool) -> None:
    """Print accounts with their sources."""
    from farthing.cli.ledger_table import account_lines, json_of_budget

    place, _ = _places(words, url)
    with _opened(place, key, "auditor") as ledger:
        accounts, parts = ledger.accounts(), ledger.parts()
        if as_json:
            _print_json([{**json_of_budget(each), "part_of": _whole(parts, each.dataset)} for each in accounts])
            return
        for line in [line for each in accounts for line in account_lines(each, _whole(parts, each.dataset))]:
            click.echo(line)
    if not accounts:
        click.echo("no account is open yet")


def _whole(parts: Mapping[str, Part], account: str) -> str | None:
    return parts[account].account if account in parts else None


@ledger_command.command(
    "register",
    help="Register files to an account, which pays for all that is computed from them. Quote patterns: 'visits-*.csv'.",
    short_help="Register files to an account that is open.",
)
@click.argument("words", nargs=-1, metavar="[LEDGER] ACCOUNT FILE...")
@_common
@click.option("--as", "actor", metavar="NAME", help="Who makes the change (default: your login name).")
def register_command(
    words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, actor: str | None
) -> None:
    """Let an account stand for further tables; the steward hears whose people they hold already."""
    from farthing.cli.ledger_table import account_lines, json_of_budget
    from farthing.curator.registration import register_source

    place, (account, *files) = _places(words, url, ("ACCOUNT", "FILE"), several=True)
    with _opened(place, key, "curator", actor) as ledger:
        _checked_dataset(ledger, account)
        for file in files:
            _, overlaps = register_source(ledger, account, file)
            for overlap in overlaps[:1]:
                click.echo(f"Note: {overlap.advice}", err=True)
        budget = ledger.budget(account)
        if as_json:
            _print_json(json_of_budget(budget))
        else:
            click.echo("\n".join(account_lines(budget, None)))


@ledger_command.command(
    "verify",
    help="Check every entry, total and answer; with a receipt, that nothing was cut off. Reads only.",
    short_help="Check every entry, total and answer.",
)
@click.argument("words", nargs=-1, metavar="[LEDGER]")
@_common
@click.option("--receipt", metavar="FILE", multiple=True, help="A receipt to find in it; may be repeated.")
def verify_command(
    words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, receipt: tuple[str, ...]
) -> None:
    """Say whether the ledger is whole, and by the exit code too."""
    place, _ = _places(words, url)
    receipts: list[tuple[str, Receipt | None]] = [(path, _receipt_at(path)) for path in receipt]

    from farthing.cli.ledger_table import json_of_verifications, print_verifications, without_secrets

    verifications = _verified(place, key, receipts)
    if as_json:
        _print_json(json_of_verifications(without_secrets(place), verifications))
    else:
        print_verifications(without_secrets(place), verifications, click.echo)
    if not all(verification.ok for _, verification in verifications):
        click.get_current_context().exit(1)


@ledger_command.command("export", help="All entries as lines of JSON, in order. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER]")
@_common
@click.option("--out", "-o", metavar="FILE", default="-", help="Where to write (default: standard output).")
def export_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, out: str) -> None:
    """Write every entry; answers are not in entries."""
    place, _ = _places(words, url)
    with _opened(place, key, "auditor") as ledger:
        if out == "-":
            ledger.export(sys.stdout)
            return
        lines = _written(out, ledger.export)
    if as_json:
        _print_json({"file": out, "entries": lines})
    else:
        click.echo(f"{out}: {lines:,} entries")


@ledger_command.command("receipt", help="The receipt of a request, to be kept apart from the ledger. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER] REQUEST_ID")
@_common
@click.option("--out", "-o", metavar="FILE", help="Where to write (default: standard output).")
def receipt_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, out: str | None) -> None:
    """Fetch the receipt of one request, and print or save it."""
    place, (request_id,) = _places(words, url, ("REQUEST_ID",))
    with _opened(place, key, "auditor") as ledger:
        receipt = ledger.receipt(request_id)
    if receipt is None:
        raise InvalidValue("request_id", request_id, "must have been charged in this ledger")
    if out is not None:
        _written(out, receipt.save)
    if out is None or as_json:
        _print_json(json.loads(receipt.to_json()))
    else:
        click.echo(f"{out}: receipt of request {request_id}, entry {receipt.sequence}")


@budget_command.command("set", help="Set the budget of a dataset; a raise is recorded as one.")
@click.argument("words", nargs=-1, metavar="[LEDGER] DATASET")
@_common
@_amounts
@click.option("--new", is_flag=True, help="The dataset is new in this ledger; the ledger is made if there is none.")
@click.option("--unit", metavar="TEXT", default="", help="With --new: whom it protects, as in 'person, add-remove'.")
def budget_set_command(
    words: tuple[str, ...],
    url: str | None,
    key: str | None,
    as_json: bool,
    epsilon: str,
    delta: str | None,
    actor: str | None,
    new: bool,
    unit: str,
) -> None:
    """Register a dataset, or change its budget."""
    place, (dataset,) = _places(words, url, ("DATASET",))
    amount = _amount(epsilon, delta)
    if unit and not new:
        raise InvalidValue("unit", unit, "is for --new", "the unit of a dataset does not change")
    with _opened(place, key, "curator", actor, create=new) as ledger:
        if new:
            ledger.register(dataset, amount[0], amount[1] or 0.0, unit=unit)
        else:
            ledger.set_budget(_checked_dataset(ledger, dataset), *amount)
        _say(ledger, dataset, as_json, "budget of")
        total = ledger.budget(dataset).total
    warn_of_budget(total.epsilon, total.delta)


@ledger_command.command("grant", help="Allow an analyst to spend a part of a dataset's budget.")
@click.argument("words", nargs=-1, metavar="[LEDGER] DATASET ANALYST")
@_common
@_amounts
def grant_command(
    words: tuple[str, ...],
    url: str | None,
    key: str | None,
    as_json: bool,
    epsilon: str,
    delta: str | None,
    actor: str | None,
) -> None:
    """Set the grant of one analyst."""
    place, (dataset, analyst) = _places(words, url, ("DATASET", "ANALYST"))
    amount = _amount(epsilon, delta)
    with _opened(place, key, "curator", actor) as ledger:
        ledger.grant(_checked_dataset(ledger, dataset), analyst, *amount)
        _say(ledger, dataset, as_json, f"grant of {analyst} in", analyst)


@ledger_command.command("reserve", help="Set a part of a dataset's budget aside; 0 frees it.")
@click.argument("words", nargs=-1, metavar="[LEDGER] DATASET")
@_common
@_amounts
@click.option("--name", metavar="NAME", default="reserve", help="What it is for (default: 'reserve').")
def reserve_command(
    words: tuple[str, ...],
    url: str | None,
    key: str | None,
    as_json: bool,
    epsilon: str,
    delta: str | None,
    actor: str | None,
    name: str,
) -> None:
    """Set or free a reserve."""
    place, (dataset,) = _places(words, url, ("DATASET",))
    amount = _amount(epsilon, delta)
    with _opened(place, key, "curator", actor) as ledger:
        ledger.reserve(_checked_dataset(ledger, dataset), *amount, name=name)
        _say(ledger, dataset, as_json, f"{name} set aside in")


@ledger_command.command(
    "correct",
    help="Write down that a declaration was wrong; the budget stays as it is.",
    short_help="Write down that a declaration was wrong.",
)
@click.argument("words", nargs=-1, metavar="[LEDGER] ACCOUNT")
@_common
@click.option("--what", metavar="NAME", required=True, help="What was wrong: a column, or another declared fact.")
@click.option("--before", metavar="TEXT", required=True, help="How it was declared.")
@click.option("--after", metavar="TEXT", required=True, help="How it is declared from now on.")
@click.option("--reason", metavar="TEXT", required=True, help="Why; nothing that was computed from rows.")
@click.option("--as", "actor", metavar="NAME", help="Who makes the change (default: your login name).")
def correct_command(
    words: tuple[str, ...],
    url: str | None,
    key: str | None,
    as_json: bool,
    what: str,
    before: str,
    after: str,
    reason: str,
    actor: str | None,
) -> None:
    """Append the entry of a correction."""
    from farthing.curator.corrections import refuse_unknown_fact
    from farthing.ledger.budget_policy import correction_text

    place, (dataset,) = _places(words, url, ("ACCOUNT",))
    with _opened(place, key, "curator", actor) as ledger:
        was_checked = refuse_unknown_fact(ledger, _checked_dataset(ledger, dataset), what)
        entry = ledger.correct(dataset, {what: (before, after)}, reason)
    if as_json:
        _print_json(entry.to_dict())
    else:
        click.echo(f"entry {entry.sequence} of {dataset}: {correction_text(entry.body)}")
        click.echo(f"This only writes it down: change {what} in every study.toml, or in your program, too.")
    if not was_checked:
        click.echo(f"Note: that a table of {dataset} has {what} was not checked: none is beside the ledger.", err=True)


def _places(
    words: tuple[str, ...],
    url: str | None,
    needed: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
    *,
    several: bool = False,
) -> tuple[str, list[str]]:
    """The ledger and the other words; it is the first of them unless --ledger names it. The last may be `several`."""
    usage = " ".join(["LEDGER"] * (url is None) + [*needed, *(f"[{word}]" for word in more)]) + "..." * several
    rest = list(words)
    place = rest.pop(0) if url is None and rest else url
    if place is None or not len(needed) <= len(rest) or (len(rest) > len(needed) + len(more) and not several):
        raise click.UsageError(f"write {usage or 'nothing'} after the command, not {' '.join(words) or 'nothing'}")
    return place, rest


def _opened(place: str, key: str | None, role: str, actor: str | None = None, create: bool = False) -> Ledger:
    """The ledger, verified; that takes a while when it is long."""
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.ledger import open_ledger

    with stages(Console(stderr=True)) as work:
        work.begin("verifying the ledger", measured=True)

        def share(done: int, total: int) -> None:
            work.share(done / total)

        return open_ledger(place, actor=actor, role=role, key=key, create=create, progress=share)


def _verified(
    place: str, key: str | None, receipts: list[tuple[str, Receipt | None]]
) -> list[tuple[str, Verification]]:
    """What verifying came to, once for each receipt; opening verifies too, and fails if the ledger does not."""
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.errors import LedgerTampered
    from farthing.ledger import Verification

    verifications = []
    try:
        with _opened(place, key, "auditor") as ledger, stages(Console(stderr=True)) as work:
            for path, receipt in receipts:
                work.begin(f"verifying {path}", measured=True)
                verifications.append((path, ledger.verify(receipt, lambda done, total: work.share(done / total))))
            deposits = {(each.release, each.server): each.words for each in ledger.deposits.all()}
            verifications = verifications or [("", ledger.opening)]
            path, last = verifications[-1]
            return [*verifications[:-1], (path, replace(last, notes=(*last.notes, *deposits.values())))]
    except LedgerTampered as problem:
        return [("", Verification(False, 0, "", (problem.problem,), problem.sequence))]


def _checked_dataset(ledger: Ledger, dataset: str) -> str:
    import difflib

    names = list(ledger.datasets())
    if dataset not in names:
        close = difflib.get_close_matches(dataset, names, n=3) or names[:5]
        way_out = f"it has {', '.join(close)}" if close else "set a budget with --new first"
        raise InvalidValue("dataset", dataset, "must be in the ledger", way_out)
    return dataset


def _amount(epsilon: str, delta: str | None) -> tuple[float, float | None]:
    return decimal_number(epsilon, "epsilon"), None if delta is None else decimal_number(delta, "delta")


def _receipt_at(path: str) -> Receipt:
    from farthing.ledger import Receipt

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        raise InvalidValue("receipt", path, f"cannot be read ({reason})") from None
    return Receipt.from_json(text)


def _written(out: str, write: Callable[[str], T]) -> T:
    """What `write` makes of a file that is not there yet."""
    if Path(out).exists():
        raise InvalidValue("out", out, "exists already", "choose another name, or move it away")
    try:
        return write(out)
    except OSError as problem:
        raise InvalidValue("out", out, f"cannot be written ({problem.strerror})", "choose another") from None


def _say(ledger: Ledger, dataset: str, as_json: bool, what: str, analyst: str | None = None) -> None:
    """The account after a change."""
    from farthing.cli.ledger_table import budget_line, json_of_budget

    budget = ledger.budget(dataset, analyst)
    if as_json:
        _print_json(json_of_budget(budget))
    else:
        click.echo(f"{what} {dataset}: {budget_line(budget)}")


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, allow_nan=False))

"""`farthing requests`: what analysts ask for, and what curators decide, on a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.ledger_command import (
    LedgerCommands,
    _checked_dataset,
    _common,
    _opened,
    _places,
    _print_json,
)
from farthing.cli.terminal import declared_study, study_options
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.ledger import Ledger, PlanRequest, Policy
    from farthing.study import Study
    from farthing.study.documents.study_file import StudyFile

HELP = """\
Ask to release a plan, and decide about what was asked. Every step is an entry of the ledger.

\b
  farthing requests submit study.toml --purpose "table 4 of the yearbook"
  farthing requests list study.db --state open
  farthing requests show study.db 12
  farthing requests approve study.db 12 --expires 2027-03-31
  farthing requests decline study.db 12 --reason "say which regions"
  farthing requests change study.toml 12 --reason "half will do"
  farthing requests policy study.db people bob --epsilon 0.1 --per quarter --statistics count,histogram

Synthetic tables, sessions of questions and running series are asked for with --purpose of `farthing synth`, `ask` and
`series`. An approval allows exactly the plan that was asked for, once: `farthing release` of the same study.toml
releases it. On a server, use the page or farthing.Client.

Exit code: 0 when it was done; 1 when the ledger refused; 2 when something is written wrongly.
"""


@click.group("requests", cls=LedgerCommands, help=HELP, short_help="Ask to release a plan; approve or decline it.")
def requests_command() -> None:
    """The group of commands about requests and policies."""


_ACTOR = click.option("--as", "actor", metavar="NAME", help="Who decides (default: your login name).")
_EXPIRES = click.option(
    "--expires", metavar="DAY", help="The last day, such as 2027-03-31 (default: 90 days from now)."
)


@requests_command.command("list", help="Requests, oldest first. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER] [DATASET]")
@_common
@click.option("--state", metavar="STATE", help="Only those: open, approved, declined, withdrawn, used, expired.")
def list_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, state: str | None) -> None:
    """Print a line for each request."""
    place, names = _places(words, url, more=("DATASET",))
    with _opened(place, key, "auditor") as ledger:
        dataset = _checked_dataset(ledger, names[0]) if names else None
        requests = ledger.requests.all(dataset, state)
    if as_json:
        _print_json([_without_plan(request) for request in requests])
        return
    for request in requests:
        click.echo(_line(request))
    if not requests:
        click.echo("no requests")


@requests_command.command("show", help="One request, with all that a decision needs. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER] NUMBER")
@_common
def show_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool) -> None:
    """Print all that a decision needs."""
    place, (number,) = _places(words, url, ("NUMBER",))
    with _opened(place, key, "auditor") as ledger:
        request = ledger.requests.one(whole_number(number, "request"))
        if as_json:
            history = ledger.requests.history(request.analyst).to_dict()
            left = ledger.budget(request.dataset).remaining
            _print_json(
                {**request.to_dict(), "left": {"epsilon": left.epsilon, "delta": left.delta}, "history": history}
            )
            return
        for line in _details(ledger, request):
            click.echo(line)


@requests_command.command("submit", help="Ask to release the plan of a study.toml, as its analyst.")
@click.argument("file", default="study.toml")
@click.option("--purpose", metavar="TEXT", required=True, help="What the answers are for; the curator reads it.")
@click.option("--title", metavar="TEXT", default="", help="A few words to call it by (default: its statistics).")
@study_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def submit_command(file: str, purpose: str, title: str, as_json: bool) -> None:
    """Plan the file, which says analyst = and plan_epsilon =, and write the request; nothing is spent."""
    asked = declared_study(file)
    request = _planned(asked, "analyst", _analyst(asked), lambda plan: plan.submit(purpose, title))
    _say(request, as_json)


@requests_command.command("change", help="Allow another plan, that of a study.toml, in its place.")
@click.argument("file")
@click.argument("number")
@click.option("--reason", metavar="TEXT", required=True, help="Why; the analyst reads it.")
@_EXPIRES
@_ACTOR
@study_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def change_command(file: str, number: str, reason: str, expires: str | None, actor: str | None, as_json: bool) -> None:
    """Plan the file for its analyst, and approve that as a new version."""
    wanted = whole_number(number, "request")
    request = _planned(
        declared_study(file), "curator", actor, lambda plan: plan.change_request(wanted, reason, expires)
    )
    _say(request, as_json)


@requests_command.command("approve", help="Allow exactly the plan that was asked for, once.")
@click.argument("words", nargs=-1, metavar="[LEDGER] NUMBER")
@_common
@_ACTOR
@_EXPIRES
def approve_command(
    words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, actor: str | None, expires: str | None
) -> None:
    """Let the analyst charge for it, once."""
    _decide(words, url, key, as_json, actor, lambda ledger, number: ledger.requests.approve(number, expires=expires))


@requests_command.command("decline", help="Say no with a reason, or take back an approval that was not used.")
@click.argument("words", nargs=-1, metavar="[LEDGER] NUMBER")
@_common
@_ACTOR
@click.option("--reason", metavar="TEXT", required=True, help="Why; the analyst reads it.")
def decline_command(
    words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, actor: str | None, reason: str
) -> None:
    """Turn a request down, or take an approval back."""
    _decide(words, url, key, as_json, actor, lambda ledger, number: ledger.requests.decline(number, reason))


@requests_command.command("withdraw", help="Take back a request of your own.")
@click.argument("words", nargs=-1, metavar="[LEDGER] NUMBER")
@_common
@click.option("--as", "actor", metavar="NAME", help="Who asked (default: your login name).")
def withdraw_command(
    words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, actor: str | None
) -> None:
    """Act as the analyst who asked."""
    place, (number,) = _places(words, url, ("NUMBER",))
    with _opened(place, key, "analyst", actor) as ledger:
        _say(ledger.requests.withdraw(whole_number(number, "request")), as_json)


@requests_command.command(
    "policy",
    help="Let an analyst spend an amount per period without asking; epsilon 0 ends it.",
    short_help="Let an analyst spend an amount per period without asking.",
)
@click.argument("words", nargs=-1, metavar="[LEDGER] DATASET ANALYST")
@_common
@_ACTOR
@click.option("--epsilon", metavar="E", required=True, help="Largest sum of epsilons in one period.")
@click.option("--delta", metavar="D", default="0", show_default=True, help="Delta of one period.")
@click.option("--per", metavar="PERIOD", default="quarter", show_default=True, help="week, month, quarter or year.")
@click.option("--expires", metavar="DAY", help="The last day, such as 2027-12-31 (default: a year from now).")
@click.option("--statistics", metavar="KINDS", help="Only these kinds, such as count,histogram.")
@click.option("--columns", metavar="NAMES", help="Only these columns, such as age,sex.")
@click.option(
    "--cell",
    metavar="N",
    default="0",
    help="Withhold cells of fewer people, by the low end of the count that is released of each.",
)
def policy_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool, **options: Any) -> None:
    """Grant or end a policy."""
    place, (dataset, analyst) = _places(words, url, ("DATASET", "ANALYST"))
    amount = decimal_number(options["epsilon"], "epsilon"), decimal_number(options["delta"], "delta")
    with _opened(place, key, "curator", options["actor"]) as ledger:
        policy = ledger.requests.grant_policy(
            _checked_dataset(ledger, dataset),
            analyst,
            *amount,
            per=options["per"],
            expires=options["expires"],
            statistics=_listed(options["statistics"]),
            columns=_listed(options["columns"]),
            cell=whole_number(options["cell"], "cell"),
        )
        whole = ledger.budget(policy.dataset).total.delta
    if as_json:
        _print_json(policy.to_dict())
    else:
        click.echo(_policy_line(policy) if policy.epsilon else f"{dataset}: the policy of {analyst} has ended")
    if policy.epsilon and whole and not policy.delta:
        click.echo(f"note: plans of this account need a delta: add --delta {whole / 10:.2g}", err=True)


@requests_command.command("policies", help="Policies, and what is left of them in this period. Reads only.")
@click.argument("words", nargs=-1, metavar="[LEDGER] [DATASET]")
@_common
def policies_command(words: tuple[str, ...], url: str | None, key: str | None, as_json: bool) -> None:
    """Print a line for each policy."""
    place, names = _places(words, url, more=("DATASET",))
    with _opened(place, key, "auditor") as ledger:
        policies = ledger.requests.policies(_checked_dataset(ledger, names[0]) if names else None)
    if as_json:
        _print_json([policy.to_dict() for policy in policies])
        return
    for policy in policies:
        click.echo(_policy_line(policy))
    if not policies:
        click.echo("no policies")


def asked_by_analyst(asked: StudyFile, as_json: bool, act: Callable[[Study], PlanRequest]) -> None:
    """Submit what `act` asks for, as the analyst of a study.toml, and say so."""
    analyst = _analyst(asked)
    with _opened(asked.ledger_url, None, "analyst", analyst) as ledger:
        _say(act(asked.study(ledger).on_request()), as_json)


def _analyst(asked: StudyFile) -> str:
    analyst = asked.facts["study"].get("analyst")
    if not analyst:
        rule = f"must stand under [study] in {asked.path.name}: who asks"
        raise InvalidValue("analyst", None, rule, 'write analyst = "bob"')
    return str(analyst)


def _planned(asked: StudyFile, role: str, actor: str | None, act: Callable[[Any], PlanRequest]) -> PlanRequest:
    """What is done with the plan of a file, on its ledger, which stays as it is but for the entry of it."""
    with _opened(asked.ledger_url, None, role, actor) as ledger:
        return act(asked.plan(asked.study(ledger).on_request()))


def _decide(
    words: tuple[str, ...],
    url: str | None,
    key: str | None,
    as_json: bool,
    actor: str | None,
    act: Callable[[Ledger, int], PlanRequest],
) -> None:
    place, (number,) = _places(words, url, ("NUMBER",))
    with _opened(place, key, "curator", actor) as ledger:
        _say(act(ledger, whole_number(number, "request")), as_json)


def _say(request: PlanRequest, as_json: bool) -> None:
    if as_json:
        _print_json(_without_plan(request))
    else:
        click.echo(_line(request))


def _without_plan(request: PlanRequest) -> dict[str, Any]:
    return {name: value for name, value in request.to_dict().items() if name != "document"}


def _line(request: PlanRequest) -> str:
    version = f", version {request.version}" if request.version > 1 else ""
    until = f" until {request.last_day}" if request.state == "approved" else ""
    why = f" ({request.reason})" if request.reason else ""
    return (
        f"request {request.id}: {request.state}{version}{until}; {request.analyst} asks for epsilon "
        f"{request.epsilon:.6g} of {request.dataset!r}: {request.title}{why}"
    )


def _details(ledger: Ledger, request: PlanRequest) -> list[str]:
    """All that a curator looks at, in lines."""
    from farthing.study.plan_submission import plain_assumptions

    plan = request.document.get("plan", {})
    lines = [_line(request), f"purpose: {request.purpose}", ""]
    lines += [
        f"  {each['name']}: {each['shown_error']} (95%), {each['cells']} "
        f"{'number' if each['cells'] == 1 else 'numbers'}"
        for each in plan.get("statistics", ())
    ]
    lines += [f"  {line}" for line in str(request.document.get("words", "")).splitlines()]
    left = ledger.budget(request.dataset).remaining
    delta = f", delta {request.delta:.3g}" if request.delta else ""
    lines += ["", f"cost: epsilon {request.epsilon:.6g}{delta}; {left.epsilon:.6g} is left of {request.dataset}"]
    lines += [f"risk: {request.document['odds']}"] if "odds" in request.document else []
    lines += [f"assumed: {text}" for text in plain_assumptions(request.document)]
    lines += [f"history: {ledger.requests.history(request.analyst).sentence}", "steps:"]
    lines += [
        f"  {step.when:%Y-%m-%d %H:%M} {step.kind} by {step.actor}" + (f": {step.reason}" if step.reason else "")
        for step in request.steps
    ]
    return lines


def _policy_line(policy: Policy) -> str:
    delta = f", delta {policy.delta:.3g}" if policy.delta else ""
    rules = [f"epsilon {policy.epsilon:.6g}{delta} per {policy.per}", f"{policy.left:.6g} left"]
    rules += [] if policy.statistics is None else [f"only {', '.join(policy.statistics)}"]
    rules += [] if policy.columns is None else [f"only columns {', '.join(policy.columns)}"]
    rules += [f"cells of fewer than {policy.cell} people, by released counts, are withheld"] if policy.cell else []
    return f"{policy.dataset}: {policy.analyst} may spend {'; '.join(rules)}; until {policy.last_day}"


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]

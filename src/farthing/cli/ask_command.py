"""`farthing ask`: a stream of counting questions, each answered at once within a promised error."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.requests_command import asked_by_analyst
from farthing.cli.terminal import (
    confirm_spending,
    declared_study,
    say_if_changed,
    somebody_is_there,
    study_options,
    study_to_spend,
    warn_of_budget,
)
from farthing.errors import FarthingError, InvalidExpression, InvalidValue, SessionEnded

if TYPE_CHECKING:
    from farthing.adaptive.query_session import Answer, QuerySession, QuerySessionPlan
    from farthing.ledger import Receipt
    from farthing.study import Study
    from farthing.study.sessions.query_sessions import QuerySessionOptions

HELP = """\
Ask how many rows meet a condition, as often as you like, and get each answer at once.

One price is paid when the query session is opened (shown and confirmed first; --yes skips the question). Every answer
is then within ALPHA of the number of rows, for all questions together, even if they depend on earlier answers. An
answer close to the prediction is free; any other uses up one of a fixed number of updates. The same arguments resume
the session.

\b
Examples:
  farthing ask study.toml --alpha 0.01 --queries 10000 --plan
  farthing ask study.toml --alpha guaranteed --queries 200 --plan
  farthing ask study.toml --alpha 0.01 --queries 10000 --columns sex,age "sex = 'M' and age < 30" "age >= 65"
  farthing ask study.toml --alpha 0.01 --columns age,income --bins income=25 < questions.txt
  farthing ask study.toml --alpha 0.01 --columns age,income --bins income=25 --answers
  generator | farthing ask study.toml --alpha 0.01 --yes --json

With --alpha guaranteed, ALPHA is the smallest at which no conditions can use up the updates before K are answered, in
one call. That takes many rows, or few questions.

If no condition is given, conditions are read line by line, from a pipe or at a prompt; empty lines and lines that begin
with # are skipped. A condition that cannot be answered is refused, and the next one is read.

The same question gets the same answer, in this call and in later ones; --answers lists them all. Ask many new
questions in one call: free answers depend on secret noise in the memory of the process, so a call that asks something
new uses up one update at its end (unless its last new answer did). When no
update is left, only these can be asked again; other conditions get an estimate.

Exit code: 0 when all questions were answered; 1 when you declined; 2 when something was refused, or the updates ran out
and only an estimate without a promise remained; 130 when interrupted.
"""

_SAY_ROWS = "To see the plan for your rows, say about how many: --rows N, or rows = N under [expected]."
_GOODBYES = ("quit", "exit", "q")
_AT_THE_END = (
    "conditions that were asked before keep their answers (--answers lists them), others get an estimate without a "
    "promise from here on, and --session NAME opens another session, which is charged separately"
)


@click.command("ask", help=HELP, short_help="Ask counting questions, as many as you like, for one price.")
@click.argument("file", default="study.toml")
@click.argument("conditions", nargs=-1)
@click.option(
    "--alpha", metavar="A", required=True, help="The error as a fraction of the rows, such as 0.01; or guaranteed."
)
@click.option(
    "--queries",
    metavar="K",
    default="10000",
    help="How many questions the promise covers (default: 10000).",
)
@click.option("--columns", metavar="A,B", help="What questions may be about (default: all columns).")
@click.option(
    "--bins",
    metavar="COLUMN=N",
    multiple=True,
    help="Cut a column into N equal cells, or at edges: income=0,20000,50000.",
)
@click.option(
    "--rows",
    metavar="N",
    help="About how many rows there are (default: rows under [expected], else counted).",
)
@click.option("--epsilon", metavar="E", help="What the session may cost (default: all that is left).")
@click.option("--updates", metavar="C", help="How many answers to pay for (default: as many as fit).")
@click.option(
    "--known",
    metavar="ID",
    multiple=True,
    help="Begin with what an earlier release says; costs nothing. Several times for several.",
)
@click.option("--confidence", metavar="P", default="0.95", help="Confidence of the promise (default: 0.95).")
@click.option("--session", metavar="NAME", help="Name this session; a new name is charged separately.")
@click.option("--plan", "plan_only", is_flag=True, help="Show price and promise, and spend nothing.")
@click.option("--answers", is_flag=True, help="List the answers of this session; asks and spends nothing.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object per question; asks on a terminal before spending, else needs --yes.",
)
@click.option("--purpose", metavar="TEXT", help="Ask a curator to allow it, for this purpose; spends nothing.")
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def ask_command(
    file: str,
    conditions: tuple[str, ...],
    alpha: str,
    queries: str,
    columns: str | None,
    bins: tuple[str, ...],
    rows: str | None,
    epsilon: str | None,
    updates: str | None,
    known: tuple[str, ...],
    confidence: str,
    session: str | None,
    plan_only: bool,
    answers: bool,
    purpose: str | None,
    as_json: bool,
    yes: bool,
) -> None:
    """Read the arguments, show the plan, confirm, open, ask."""
    from farthing.adaptive.query_session.session_plan import GUARANTEED
    from farthing.study.sessions.query_sessions import QuerySessionOptions

    study_file = declared_study(file, statistics=False)
    guess = study_file.expected.get("rows") if rows is None else whole_number(rows, "rows")
    asked = QuerySessionOptions(
        GUARANTEED if alpha == GUARANTEED else decimal_number(alpha, "alpha"),
        whole_number(queries, "queries"),
        None if columns is None else [name.strip() for name in columns.split(",")],
        read_bins(bins),
        None if updates is None else whole_number(updates, "updates"),
        guess,
        None if epsilon is None else decimal_number(epsilon, "epsilon"),
        known=known,
        confidence=decimal_number(confidence, "confidence"),
    )
    if purpose is not None:
        from farthing.study.sessions.query_sessions import submit_session

        asked_by_analyst(study_file, as_json, lambda study: submit_session(study, asked, purpose))
        return
    if plan_only:
        with study_file.looked_at() as study:
            if as_json:  # a plan in words says it itself
                warn_of_budget(study.epsilon, study.delta, study.dataset.rows or guess)
            _show_plan(study, asked, session, as_json)
        return
    study = study_to_spend(study_file, yes)
    warn_of_budget(study.epsilon, study.delta, study.dataset.rows or guess)
    if answers:
        _show_answers(study, asked, session, as_json)
        return
    query_session = _opened(study, asked, session, agreed=yes, as_json=as_json)
    outcomes = _answer_all(query_session, conditions or _lines(as_json), as_json)
    if not as_json:
        click.echo(_rest(query_session, outcomes))
    click.get_current_context().exit(2 if outcomes["estimated"] or outcomes["refused"] else 0)


def read_bins(words: Sequence[str]) -> dict[str, Any] | None:
    """Numbers of cells, or edges, by column.

    >>> read_bins(["age=10", "bmi=10,18.5,25"]), read_bins([])
    ({'age': 10, 'bmi': [10, 18.5, 25]}, None)
    """
    bins: dict[str, Any] = {}
    for word in words:
        name, equals, cut = word.rpartition("=")
        if not equals or not name.strip() or name.strip() in bins:
            raise InvalidValue("bins", word, "must be COLUMN=N or COLUMN=EDGE,EDGE,..., each column once")
        edges = [_edge(edge.strip()) for edge in cut.split(",")]
        bins[name.strip()] = whole_number(cut.strip(), "bins") if len(edges) == 1 else edges
    return bins or None


def _edge(text: str) -> Any:
    """A whole number, a decimal or a day, as a column's bounds are written."""
    import datetime

    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        number = decimal_number(text, "bins")
    return int(number) if number.is_integer() and "." not in text else number


def _show_plan(study: Study, asked: QuerySessionOptions, session: str | None, as_json: bool) -> None:
    """Price and promise: of a session that exists, what is left of it; for a guess at the rows where there is none."""
    from farthing.study.sessions.query_sessions import plan_for_assumed_rows

    more: dict[str, Any] = {}
    if study.ledger.stored(session or asked.name(study)) is not None:
        plan = _planned(study, asked, session)
        left = _opened(study, asked, session, agreed=True, asking=False).updates_left
        more = {"opened": True, "updates_left": left}
        words = f"This session exists and is paid for; {left:,} of its {plan.updates:,} updates are left."
    else:
        try:
            plan, words = _planned(study, asked, session), ""
        except InvalidValue as unknown:
            if not _are_unknown_rows(unknown):
                raise
            plan = plan_for_assumed_rows(study, asked)
            more = {"rows_are_a_guess": True}
            words = (
                f"{plan.rows:,} rows are assumed: their number is not public, and a hundredth of epsilon goes "
                f"into counting them first.\n{_SAY_ROWS}"
            )
    if as_json:
        data = {**plan.as_dict(), "known": list(asked.known), **more}
        click.echo(json.dumps(data, indent=2, allow_nan=False))
        return
    click.echo(_plan_in_words(plan, asked))
    if words:
        click.echo(words)


def _plan_in_words(plan: QuerySessionPlan, asked: QuerySessionOptions) -> str:
    known = f"\n  known before      {', '.join(asked.known)}: improves the start, free of charge"
    return str(plan) + (known if asked.known else "")


def _show_answers(study: Study, asked: QuerySessionOptions, session: str | None, as_json: bool) -> None:
    if study.ledger.stored(session or asked.name(study)) is None:
        raise FarthingError("there is no session with these arguments yet, so there are no answers.")
    _planned(study, asked, session)  # refuses one that another process is just opening
    query_session = _opened(study, asked, session, agreed=True, asking=False)
    for question, answer in query_session.answered:
        _print(question, answer, query_session, as_json)
    if not (query_session.answered or as_json):
        click.echo("Nothing was asked in this session yet.")


def _are_unknown_rows(refusal: InvalidValue) -> bool:
    return (refusal.name, refusal.value) == ("rows", None)


def _planned(study: Study, asked: QuerySessionOptions, session: str | None) -> QuerySessionPlan:
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.sessions.query_sessions import plan_session

    with stages(Console(stderr=True)) as work:
        work.begin("planning")
        return plan_session(study, asked, session)


def _opened(
    study: Study,
    asked: QuerySessionOptions,
    session: str | None,
    *,
    agreed: bool,
    asking: bool = True,
    as_json: bool = False,
) -> QuerySession:
    from rich.console import Console

    from farthing.cli.terminal import stages
    from farthing.study.sessions.query_sessions import open_session

    if not agreed and study.ledger.stored(session or asked.name(study)) is None:
        _confirm(study, asked, session, as_json)
    with stages(Console(stderr=True)) as work:
        work.begin("opening the session", measured=True)
        earlier: list[Receipt] = []
        query_session = open_session(study, asked, session, progress=work.share, prepare=False, resumed=earlier.append)
        if asking:
            work.begin("making a first guess")
            query_session.prepare()
    if asking and earlier:
        say_if_changed(study, earlier[0], "--session with a new name")
    if asking and query_session.caution:
        click.echo(f"WARNING: {query_session.caution}", err=True)
    return query_session


def _confirm(study: Study, asked: QuerySessionOptions, session: str | None, as_json: bool) -> None:
    try:
        click.echo(_plan_in_words(_planned(study, asked, session), asked), err=as_json)
    except InvalidValue as unknown:
        if not _are_unknown_rows(unknown):
            raise
        click.echo(
            "How many rows there are is not public: a hundredth of epsilon goes into counting them first.\n"
            f"{_SAY_ROWS}",
            err=as_json,
        )
    confirm_spending(study, study.allowance(asked.epsilon).epsilon, "Open it?", err=as_json)


def _lines(as_json: bool) -> Iterator[str]:
    """Conditions from a pipe, or from somebody at a prompt."""
    there = somebody_is_there() and not as_json
    if there:
        click.echo("Ask with a condition such as age < 30; end with Ctrl-D or quit.")
    while True:
        if there:
            click.echo("? ", nl=False)
        line = sys.stdin.readline()
        if not line:
            if there:
                click.echo()
            return
        if there and line.strip().lower() in _GOODBYES:
            return
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _answer_all(query_session: QuerySession, conditions: Iterable[str], as_json: bool) -> Counter[str]:
    """Answer one after the other; how many were answered with a promise, only estimated, and refused."""
    outcomes: Counter[str] = Counter()
    for condition in conditions:
        try:
            _print(condition, query_session.ask(condition), query_session, as_json)
            outcomes["promised"] += 1
        except SessionEnded as ended:
            if not (outcomes["estimated"] or as_json):
                click.echo(str(SessionEnded("updates", ended.rounds, _AT_THE_END)), err=True)
            outcomes["estimated"] += 1
            _print(condition, query_session.estimate(condition), query_session, as_json)
        except (InvalidValue, InvalidExpression) as problem:
            outcomes["refused"] += 1
            _refuse(condition, problem, as_json)
    return outcomes


def _print(condition: str, answer: Answer, query_session: QuerySession, as_json: bool) -> None:
    left = query_session.updates_left
    if as_json:
        data = {
            "question": condition,
            "value": answer.value,
            "error": answer.error,
            "fraction": answer.fraction,
            "paid": answer.paid,
            "updates_left": left,
        }
        click.echo(json.dumps(data, allow_nan=False))
    else:
        noun = "update" if left == 1 else "updates"
        click.echo(f"{answer}; {left:,} {noun} left: {condition}")
    sys.stdout.flush()


def _refuse(condition: str, problem: FarthingError, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"question": condition, "refused": str(problem)}))
        sys.stdout.flush()
    else:
        click.echo(f"refused: {condition}\n{problem}", err=True)


def _rest(query_session: QuerySession, kinds: Counter[str]) -> str:
    plan = query_session.plan
    # A round that is running ends with this process.
    left = query_session.updates_left - query_session.running
    parts = [f"{left:,} of {plan.updates:,} updates left after this call"]
    if kinds["promised"]:
        times = f"{100 * plan.confidence:g} times in 100"
        parts.append(f"{times} every answer to {plan.queries:,} questions of this session is within its error")
    if (number := kinds["estimated"]) > 0:
        lines = "1 line is an estimate" if number == 1 else f"{number:,} lines are estimates"
        parts.append(f"{lines}, without a promise")
    return "; ".join(parts) + "."

"""`farthing monitor`: look at many counts, and say which have reached their thresholds."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.cli.session_plans import agree_to_open, show_session_plan, study_for_session
from farthing.cli.terminal import declared_study, study_options
from farthing.errors import EngineError, InvalidValue, LedgerUnavailable, SessionEnded, TableChanged

if TYPE_CHECKING:
    from farthing.adaptive.monitor import Look, Monitor

HELP = """\
Watch the counts of a study's table and report when any of them reaches a threshold.

Up to --alerts alerts are paid for, once, when the monitor is opened; looks without an alert are free, however many
series and looks there are. The same arguments resume the monitor, and without --fresh or --watch show its last look
again.

\b
Examples:
  farthing monitor study.toml --threshold 500 --by region --alerts 5 --plan
  farthing monitor study.toml --threshold 500 --by region --alerts 5 --watch 3600
  farthing monitor study.toml --threshold 500 --by region --alerts 5 --fresh
  farthing monitor study.toml --threshold 90 --threshold north=200 --by region --where "age >= 65" --alerts 3

With --watch it stays and looks again every SECONDS seconds: this is the cheap way. With --fresh each call makes one
look at the table as it is now, as a cron job does, and EVERY SUCH CALL USES UP ONE OF THE ALERTS, with or without an
alert: free looks depend on secret noise in the memory of the process, which the next process draws again and pays for.
Such a look ends with its first alert, and names the series that are left for the next one.

Exit code: 0 when there was no alert; 3 when there was; 1 when you declined; 2 when it was refused; 130 when
interrupted.
"""


@click.command("monitor", help=HELP, short_help="Watch counts and report when one reaches a threshold.")
@click.argument("file", default="study.toml")
@click.option(
    "--threshold",
    "thresholds",
    metavar="N",
    multiple=True,
    required=True,
    help="Alert at this count. NAME=N for one series or cell; may be given several times.",
)
@click.option("--alerts", metavar="C", required=True, help="How many alerts to pay for.")
@click.option(
    "--where",
    "conditions",
    metavar="CONDITION",
    multiple=True,
    help="Count these rows; several times for more.",
)
@click.option("--by", metavar="COLUMNS", help="One series for each value of a column, or of several (a,b).")
@click.option("--steps", metavar="N", default="100", help="How many looks the promised error covers (default: 100).")
@click.option("--epsilon", metavar="E", help="What all alerts together may cost (default: all that is left).")
@click.option("--confidence", metavar="P", default="0.95", help="Confidence of the error (default: 0.95).")
@click.option("--repeat", is_flag=True, help="Report a series again at every look at which it is above.")
@click.option("--watch", metavar="SECONDS", help="Stay, and look again every SECONDS seconds.")
@click.option("--looks", metavar="N", help="Stop after this many looks; with --watch.")
@click.option("--fresh", is_flag=True, help="Look at the table as it is now, which uses up one of the alerts.")
@click.option("--session", metavar="ID", help="Name this monitor; a new name is charged separately.")
@click.option("--plan", "plan_only", is_flag=True, help="Show price and error, and spend nothing.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object per look; asks on a terminal before spending, else needs --yes.",
)
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
def monitor_command(
    file: str,
    thresholds: tuple[str, ...],
    alerts: str,
    conditions: tuple[str, ...],
    by: str | None,
    steps: str,
    epsilon: str | None,
    confidence: str,
    repeat: bool,
    watch: str | None,
    looks: str | None,
    fresh: bool,
    session: str | None,
    plan_only: bool,
    as_json: bool,
    yes: bool,
) -> None:
    """Read the arguments, show the plan, confirm, open, look."""
    from farthing.study.sessions.monitor_sessions import MonitorOptions, monitor_plan, open_monitor, session_name

    asked = MonitorOptions(
        conditions,
        read_thresholds(thresholds),
        whole_number(alerts, "alerts"),
        whole_number(steps, "steps"),
        None if by is None else [name.strip() for name in by.split(",")],
        None if epsilon is None else decimal_number(epsilon, "epsilon"),
        not repeat,
        decimal_number(confidence, "confidence"),
    )
    pause, most = _pace(watch, looks)
    declared = declared_study(file, statistics=False)
    if plan_only:
        show_session_plan(declared, lambda study: monitor_plan(study, asked), as_json=as_json)
        return
    study = study_for_session(declared, yes)
    name = session or session_name(study, asked)
    agree_to_open(study, name, lambda study: monitor_plan(study, asked), agreed=yes, as_json=as_json)
    watching = open_monitor(study, asked, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableChanged)  # the line that says that a look is repeated has the way on
        alerts_given = _watch(watching, pause, most, as_json, fresh=fresh or pause is not None)
    if not as_json:
        click.echo(_rest(watching))
    click.get_current_context().exit(3 if alerts_given else 0)


def read_thresholds(words: Sequence[str]) -> Any:
    """One number for all series, or numbers by name.

    >>> read_thresholds(["500"]), read_thresholds(["90", "north=200"])
    (500, {None: 90, 'north': 200})
    """
    thresholds: dict[str | None, int] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        key = name.strip() if equals else None
        if key in thresholds or key == "":
            raise InvalidValue("threshold", word, "must be N or NAME=N, each once")
        thresholds[key] = whole_number(number.strip(), "threshold")
    return thresholds[None] if list(thresholds) == [None] else thresholds


def _pace(watch: str | None, looks: str | None) -> tuple[float | None, int | None]:
    if watch is None:
        if looks is not None:
            raise InvalidValue("looks", looks, "is for --watch only", "without it there is one look")
        return None, 1
    pause = decimal_number(watch, "watch")
    if not 0 < pause <= 10**7:
        raise InvalidValue("watch", watch, "must be a number of seconds > 0", "3600 for once an hour")
    most = None if looks is None else whole_number(looks, "looks")
    if most == 0:
        raise InvalidValue("looks", looks, "must be at least 1")
    return pause, most


def _watch(watching: Monitor, pause: float | None, most: int | None, as_json: bool, *, fresh: bool) -> int:
    """Look until there have been enough looks or no alert is left; how many alerts there were."""
    alerts = done = 0
    while True:
        try:
            step = None if fresh else watching.latest or None
            look = watching.look(single=pause is None, step=step, fresh=fresh)
        except (LedgerUnavailable, EngineError) as problem:
            if pause is None:
                raise
            # The round is still running: the next look goes on with it.
            click.echo(f"no look: {problem}", err=True)
        except SessionEnded as ended:
            if alerts:
                return alerts
            for alert in watching.alerts:
                click.echo(f"reported before: {alert}", err=as_json)
            raise SessionEnded(
                "rounds", ended.rounds, "--session NAME opens another, which is charged separately"
            ) from None
        else:
            alerts += len(look)
            _print(look, watching, as_json)
        done += 1
        if pause is None or done == most or not watching.alerts_left or not watching.watched:
            return alerts
        time.sleep(pause)


def _print(look: Look, watching: Monitor, as_json: bool) -> None:
    if as_json:
        data = {
            "look": look.step,
            "alerts": [{**asdict(alert), "estimate": alert.estimate} for alert in look],
            "error": look.error,
            "unseen": list(look.unseen),
            "repeated": look.repeated,
            "alerts_left": watching.alerts_left,
        }
        click.echo(json.dumps(data))
        return
    if look.repeated:
        click.echo("repeated: the last look as it was; --fresh looks at the table as it is now and uses up an alert")
    for alert in look:
        click.echo(f"ALERT {alert}")
    if not look:
        click.echo(f"look {look.step}: {'no alert' if watching.watched else 'every series was reported before'}")
    if look.unseen:
        why = (
            "as a call ends with its first alert; the next call with --fresh does"
            if watching.alerts_left
            else "as the last alert was given"
        )
        click.echo(f"not looked at, {why}: {', '.join(look.unseen)}")
    sys.stdout.flush()


def _rest(watching: Monitor) -> str:
    """What is left when this process ends, and with it the round that is running."""
    plan, lost = watching.plan, watching.running
    times = f"{100 * plan.confidence:g} times in 100"
    return (
        f"{watching.alerts_left - lost} of {plan.alerts} alerts left"
        + (", as the round that was running ends with this process" if lost else "")
        + f"; {times} no answer of {plan.steps:,} looks is off by more than {plan.error:,}."
    )

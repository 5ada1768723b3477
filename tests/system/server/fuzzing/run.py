"""A run: cases one after the other against one server, a tally of what came back, and a list of what was wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import requests

from system.server.fuzzing.cases import Call, Trial, operations, trials
from system.server.fuzzing.checks import faults, parsed
from system.server.fuzzing.known import Known
from system.server.fuzzing.people import LET_IN
from system.server.fuzzing.sending import Sender
from system.server.fuzzing.served import Fuzzed

_TOP_UP = 50  # cases between two looks at the budgets


@dataclass(frozen=True)
class Fault:
    """Something wrong, and the case that showed it."""

    call: Call
    words: str
    trial: str = ""

    def __str__(self) -> str:
        return f"{' '.join(self.call)}: {self.words}\n      {self.trial}"


@dataclass
class Tally:
    """What came back."""

    statuses: Counter[tuple[Call, str, int]] = field(default_factory=Counter)  # call, way, status
    successes: Counter[Call] = field(default_factory=Counter)
    admitted: Counter[Call] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    unsent: int = 0
    slowest: dict[Call, tuple[float, str]] = field(default_factory=dict)  # seconds, and what took them

    @property
    def cases(self) -> int:
        return self.statuses.total()

    def without_success(self) -> list[Call]:
        """Operations of which no case got anywhere."""
        return sorted(call for call in {call for call, _, _ in self.statuses} if not self.successes[call])

    def count(self, trial: Trial, status: int) -> None:
        """Note how a case ended; a redirection is what a success looks like to a browser."""
        self.statuses[trial.call, trial.way.name, status] += 1
        if trial.must_end == LET_IN:
            self.admitted[trial.call] += 1
            self.successes[trial.call] += 200 <= status < 400


def run(
    server: Fuzzed,
    cases: int,
    dice: random.Random,
    *,
    only: set[Call] | None = None,
    progress: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Try so many cases, of all operations unless told."""
    document = requests.get(f"{server.url}/openapi.json", timeout=600).json()
    calls = {call: each for call, each in operations(document).items() if only is None or call in only}
    known, tally, tail = Known(server.people), Tally(), Tail(server)
    sender = Sender(server.url, known)
    for number, trial in enumerate(trials(calls, cases, dice)):
        if number % _TOP_UP == _TOP_UP - 1:
            server.top_up()
        one(sender, trial, tally, server)
        tally.faults += [Fault(trial.call, each, f"(about case {number})") for each in tail.read()]
        progress(tally)
    return tally


def one(sender: Sender, trial: Trial, tally: Tally, server: Fuzzed) -> None:
    """Try one case."""
    try:
        case, request = sender.prepared(trial)
    except (requests.RequestException, UnicodeError):  # what cannot be put into a request at all
        tally.unsent += 1
        return
    asked = f"{request.method} {str(request.url)[:300]} {_body(request)[:600]!r}"
    shown = f"{trial.way.name}, {trial.intent}: {asked}"
    try:
        response = sender.send(request)
    except requests.RequestException as problem:
        tally.faults.append(Fault(trial.call, f"no answer: {type(problem).__name__}", shown))
        return
    tally.count(trial, response.status_code)
    seconds = response.elapsed.total_seconds()
    tally.slowest[trial.call] = max((seconds, shown), tally.slowest.get(trial.call, (0.0, "")))
    for words in faults(trial, case, request, response, server.canaries):
        shown_answer = f"{shown} -> {response.status_code} {response.text[:300]!r}"
        tally.faults.append(Fault(trial.call, words, shown_answer))
    if response.status_code < 300 and trial.must_end == LET_IN and trial.intent != "stray":
        told, sent = parsed(response.content), parsed(_body(request))
        user = sender.known.people.user(trial.way, *trial.call)
        sender.known.learn(trial.call, user, case.path_parameters or {}, sent, told)


def _body(request: requests.PreparedRequest) -> bytes:
    body = request.body or b""
    return body.encode() if isinstance(body, str) else bytes(body)


class Tail:
    """What was logged since the last look, and whether a secret is in it."""

    def __init__(self, server: Fuzzed) -> None:
        self._canaries = server.canaries
        self._read: dict[Path, int] = dict.fromkeys(server.logs.iterdir(), 0)

    def read(self) -> list[str]:
        """What is told by lines that are new."""
        found = []
        for file, done in self._read.items():
            with file.open("rb") as lines:
                lines.seek(done)
                new = lines.read()
            whole = new.rpartition(b"\n")[0]
            self._read[file] = done + len(whole)
            seen = self._canaries.found(whole.decode("utf-8", "replace")) if whole else set()
            for each in sorted(seen - {"secret: folder"}):
                lines_of = whole.decode("utf-8", "replace").splitlines()
                where = next((line for line in lines_of if each in self._canaries.found(line)), "")
                found.append(f"{file.name} tells {each}: {where[:300]!r}")
        return found

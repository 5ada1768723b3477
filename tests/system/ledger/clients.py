"""Clients of a ledger as processes that can be killed: `python -m system.ledger.clients` forks one for every line.

A line of the standard input is a task in JSON; the answer is the process id of a fresh fork that does it. Farthing and
its drivers are imported once, before the first fork, and no ledger is open then. A client says what happened by adding
lines to its own file, one `write` each: what is in the file was seen, whatever happened to the client afterwards.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import json
import os
import random
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from farthing.errors import BudgetExceeded, InvalidValue, LedgerUnavailable
from system.ledger.places import DATASET, Place, others_of

_PR_SET_PDEATHSIG = 1
Say = Callable[[dict[str, Any]], None]
LEDGER_CODE = str(Path(importlib.import_module("farthing.ledger").__file__ or "").parent)


def race(task: dict[str, Any], say: Say) -> None:
    """Charge as often as told, all clients from the same moment on."""
    ledger = _ledger(task)
    say({"ready": True})
    with open(task["gate"], "rb") as gate:
        fcntl.flock(gate, fcntl.LOCK_SH)
    for n in range(task["attempts"]):
        request = task["request"] if "request" in task else f"{task['lane']}-{n}"
        try:
            charge = ledger.charge(
                DATASET, task["epsilon"], request_id=request, others=task.get("others", others_of(request))
            )
        except BudgetExceeded:
            say({"refused": request})
            continue
        say({"charged": request, "sequence": charge.sequence, "repeated": charge.repeated})
        if task.get("release"):
            stored = ledger.release(charge, secrets.token_hex(8))
            say({"request": request, "answer": _answer(ledger, request), "receipt": stored.sequence})


def spend(task: dict[str, Any], say: Say) -> None:
    """Charge and answer forever; a successor begins with the request at which its predecessor died."""
    if task.get("opening"):
        _die_in_the_ledger(task["lines"])
    ledger = _ledger(task)
    if not task.get("opening"):
        _die_in_the_ledger(task.get("lines"))
    one = {"charge first": _charge_first, "release first": _release_first}[task["variant"]]
    n = task["first"]
    while True:
        request = f"{task['lane']}-{n}"
        say({"begun": n})
        try:
            one(ledger, request, task["epsilon"], say)
        except BudgetExceeded:
            say({"refused": request})
            time.sleep(0.02)
        n += 1


def persist(task: dict[str, Any], say: Say) -> None:
    """Charge and answer as often as told, each time until it works, whatever becomes of the server."""
    ledger = None
    for n in range(task["attempts"]):
        request, tries = f"{task['lane']}-{n}", 0
        while True:
            try:
                ledger = ledger or _ledger(task)
                _charge_first(ledger, request, task["epsilon"], say)
                break
            except BudgetExceeded:
                say({"refused": request})
                break
            except LedgerUnavailable:
                say({"unavailable": request})
                tries += 1
                if tries % 3 == 0 and ledger is not None:  # a handle must come back to life; a new one must work too
                    ledger.close()
                    ledger = None
                time.sleep(random.uniform(0.01, 0.1))
    say({"done": task["lane"]})


def interrupted(task: dict[str, Any], say: Say) -> None:
    """Charge as often as told while Ctrl-C comes again and again, at any moment of a charge."""
    ledger, left, armed = _ledger(task), task["interrupts"], [False]

    def interrupt(*_: Any) -> None:
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    charges = [f"first {n}" for n in range(9)]
    # The least of them: on a busy machine the others are longer than what is interrupted later.
    typical = min(
        _seconds(lambda name=name: ledger.charge(DATASET, task["epsilon"], request_id=name)) for name in charges
    )
    for n in range(task["attempts"]):
        charged = None
        while charged is None:
            try:
                armed[0] = left > 0
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.01, 1.2) * typical)
                charged = ledger.charge(DATASET, task["epsilon"], request_id=str(n))
                armed[0] = False
            except KeyboardInterrupt:
                left -= 1
                say({"interrupted": n})
            except LedgerUnavailable:
                # A handle that Ctrl-C has spoilt; the ledger is then judged by itself, and the test says so.
                armed[0] = False
                say({"reopened": n})
                ledger = _ledger(task)
        say({"charged": str(n), "sequence": charged.sequence})
    signal.setitimer(signal.ITIMER_REAL, 0)


def approve(task: dict[str, Any], say: Say) -> None:
    """Approve every request once; one that somebody else decided about is left alone."""
    ledger = _at_once(task, say)
    for number in task["requests"]:
        try:
            ledger.requests.approve(number)
            say({"approved": number})
        except InvalidValue:
            say({"decided": number})


def use(task: dict[str, Any], say: Say) -> None:
    """Charge for every request that is approved, and answer it, as the analyst who asked."""
    ledger = _at_once(task, say, actor="bob", role="analyst")
    for place, number in enumerate(task["requests"]):
        request = f"bob:{number}"
        try:
            answer = _answer(ledger, request)
            if answer is None:
                charge = ledger.charge(DATASET, task["epsilon"], request_id=request, digest=f"plan {place}")
                say({"charged": request, "sequence": charge.sequence})
                ledger.release(charge, secrets.token_hex(8))
                answer = _answer(ledger, request)
        except BudgetExceeded:
            say({"refused": request})
            continue
        say({"request": request, "answer": answer})


def _at_once(task: dict[str, Any], say: Say, **who: str) -> Any:
    """The ledger, opened before a gate is left, or before a death at some line."""
    ledger = _ledger(task, **who)
    say({"ready": True})
    if "gate" in task:
        with open(task["gate"], "rb") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
    _die_in_the_ledger(task.get("lines"))
    return ledger


def _seconds(act: Callable[..., Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def _charge_first(ledger: Any, request: str, epsilon: float, say: Say) -> None:
    """As farthing does it: nothing is said before it is recorded, and what is recorded is said again, not redrawn."""
    answer = _answer(ledger, request)
    if answer is None:
        charge = ledger.charge(DATASET, epsilon, request_id=request, others=others_of(request))
        say({"charged": request, "sequence": charge.sequence})
        ledger.release(charge, secrets.token_hex(8))
        answer = _answer(ledger, request)
    say({"request": request, "answer": answer})


def _release_first(ledger: Any, request: str, epsilon: float, say: Say) -> None:
    """The mistake that this harness exists for: the answer leaves before its charge is durable."""
    answer = secrets.token_hex(8)
    say({"request": request, "answer": answer})
    ledger.release(ledger.charge(DATASET, epsilon, request_id=request, others=others_of(request)), answer)


def _answer(ledger: Any, request: str) -> str | None:
    stored = ledger.stored(request)
    return None if stored is None else stored.answer


def _ledger(task: dict[str, Any], **who: str) -> Any:
    module, _, name = task.get("kind", "system.ledger.places:Place").partition(":")
    place: Place = getattr(importlib.import_module(module), name)(**task["place"])
    return place.open(**{"actor": f"client {task['lane']}"} | who, timeout=task.get("timeout", 600.0))


def _die_in_the_ledger(lines: int | None) -> None:
    """Die at a line of the ledger's code: by the clock alone, the few lines around a commit are rarely hit."""
    if lines is None:
        return
    left = [lines]

    def count(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(LEDGER_CODE):
            return None
        left[0] -= event == "line"
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    sys.settrace(count)


ROLES = {
    "race": race,
    "spend": spend,
    "persist": persist,
    "interrupted": interrupted,
    "approve": approve,
    "use": use,
}


def _client(task: dict[str, Any]) -> None:
    file = os.open(task["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def say(line: dict[str, Any]) -> None:
        os.write(file, json.dumps(line).encode() + b"\n")

    try:
        ROLES[task["role"]](task, say)
    except BaseException:
        say({"failure": traceback.format_exc()})


def main() -> None:
    """Fork a client for each line until there are no more lines."""
    with suppress(ImportError):  # the driver, so that no fork has to import it
        importlib.import_module("psycopg")
    importlib.import_module("sqlalchemy.dialects.sqlite")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody outlives a harness that was killed
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            random.seed(os.getpid())
            try:
                _client(json.loads(line))
            finally:
                os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()

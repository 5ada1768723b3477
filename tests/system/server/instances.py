"""Real servers on one ledger, people with tokens, and a check of everything that was answered against the ledger.

The check knows nothing of how a server works: it compares what clients were told with what the ledger holds, and is
shown to notice a server that charges a retry again.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx

from backends.processes import free_port
from farthing.ledger import Ledger
from farthing.server.auth.api_tokens import new_secret, secret_hash
from farthing.server.store import Store, now
from farthing.server.store.store_tables import tokens, users

API = "/api/v1"
YEAR = 365 * 24 * 3600 * 10**9
LONG = 300.0  # seconds; nothing waits so long unless something is broken


class Asks(Protocol):
    """What sends a request to a server: a connection to a real one, or a client of one in this process."""

    def post(self, url: str, *, json: Any, headers: dict[str, str]) -> Any: ...

    def get(self, url: str, *, headers: dict[str, str]) -> Any: ...


class Instance:
    """One server process with its workers."""

    def __init__(self, ledger: str, key: str | None, data: Path, log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("serving.py"))],
            stdin=subprocess.PIPE, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        told = {"ledger": ledger, "ledger_key": key, "data": str(data), "port": self.port}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told).encode() + b"\n")
        self.process.stdin.close()
        self.client = httpx.Client(base_url=self.url, timeout=LONG)
        self.started: set[int] = set()  # its workers, also those that outlive it

    def wait_until_up(self) -> None:
        """Until it answers."""

        def up() -> bool:
            assert self.process.poll() is None, "the server ended before it was up"
            return answers(self)

        wait_for(up)

    def workers(self) -> list[int]:
        """The process ids of its workers that live now."""
        found = [child for child in children_of(self.process.pid) if "jobs.job_worker" in command_of(child)]
        self.started.update(found)
        return found

    def kill(self) -> None:
        """As the kernel does it when memory is short: without a word."""
        self.workers()
        self.process.kill()
        self.process.wait()
        self.client.close()

    def close(self) -> None:
        """End it and everything it started; a server that was killed may have left workers."""
        self.workers()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(LONG)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for worker in self.started:
            if "jobs.job_worker" in command_of(worker):
                os.kill(worker, signal.SIGKILL)
        self.client.close()
        self._log.close()


def answers(instance: Instance) -> bool:
    """Whether it takes requests."""
    try:
        return (
            httpx.get(f"{instance.url}/healthz", timeout=LONG, verify=False).status_code == 200
        )  # no certificates to load
    except httpx.TransportError:
        return False


def is_alive(process: int) -> bool:
    """Whether there is such a process, and it is not waiting for its parent to notice that it ended."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def children_of(process: int) -> list[int]:
    """The children of a process, by /proc."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        found += [int(word) for word in task.read_text().split()]
    return found


def command_of(process: int) -> str:
    """The command line of a process; nothing for one that is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def wait_for(condition: Callable[[], bool]) -> None:
    """Look until it holds."""
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def with_token(store: Store, name: str, role: str) -> dict[str, str]:
    """An account, and the header of a token of it."""
    word = new_secret("ft_")
    scopes = {"curator": "read plan spend manage", "analyst": "read plan spend", "auditor": "read plan"}[role]
    with store.begin() as connection:
        connection.execute(
            users.insert().values(
                name=name, role=role, password_hash=None, oidc_subject=None, disabled=False, created=now()
            )
        )
        connection.execute(
            tokens.insert().values(
                id=secrets.token_hex(8), user=name, label="a test", hash=secret_hash(word), scopes=scopes,
                expires=now() + YEAR, created=now(), revoked=None,
            )
        )  # fmt: skip
    return {"Authorization": f"Bearer {word}"}


@dataclass(frozen=True)
class Told:
    """What a client was told about one request."""

    name: str
    request_id: str
    status: int
    body: dict[str, Any]

    @property
    def is_released(self) -> bool:
        return self.status == 200 and self.body["state"] == "released"


@dataclass
class History:
    """What all clients were told, and what is wrong with it."""

    told: list[Told] = field(default_factory=list)

    def note(self, name: str, response: Any, asked: dict[str, Any]) -> Told:
        """Keep one response."""
        one = Told(name, asked["request_id"], response.status_code, response.json())
        self.told.append(one)
        return one

    def problems(self, ledger: Ledger, dataset: str) -> list[str]:
        """Where clients and ledger disagree: an answer without a charge, a charge twice, two answers to one request."""
        found: list[str] = []
        answers = defaultdict(set)
        for one in self.told:
            if one.is_released:
                answers[f"{one.name}:{one.request_id}"].add(json.dumps(one.body["answers"]))
        found += [f"{request} has {len(drawn)} answers" for request, drawn in answers.items() if len(drawn) > 1]
        entries = list(ledger.entries(dataset))
        charged = [entry.request_id for entry in entries if entry.kind == "charge"]
        released = [entry.request_id for entry in entries if entry.kind == "released"]
        asked = {f"{one.name}:{one.request_id}" for one in self.told}
        found += [f"{request} was charged and nobody asked for it" for request in set(charged) - asked]
        found += [f"{request} was answered and not released" for request in set(answers) - set(released)]
        budget = ledger.budget(dataset)
        if budget.spent_upper > budget.total.epsilon:
            found.append("more is spent than there is")
        if not ledger.verify().ok:
            found.append("the ledger does not verify")
        return found


def race(clients: Sequence[Asks], people: dict[str, dict[str, str]], body: dict[str, Any], history: History) -> None:
    """Everybody asks at the same time at one server, loses the connection, and asks again at another."""
    start = threading.Barrier(len(people))

    def ask(number: int, name: str, header: dict[str, str]) -> None:
        first, second = (clients[(number + attempt) % len(clients)] for attempt in range(2))
        asked = {**body, "request_id": "the-last-of-it"}
        start.wait()
        history.note(name, first.post(f"{API}/releases", json={**asked, "wait": 0}, headers=header), asked)
        if history.note(name, answered(second, asked, header), asked).is_released:
            history.note(name, answered(first, asked, header), asked)

    threads = [threading.Thread(target=ask, args=(n, *one)) for n, one in enumerate(people.items())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def answered(client: Asks, body: dict[str, Any], header: dict[str, str]) -> Any:
    """The response once there is one that is not "wait"."""
    response = client.post(f"{API}/releases", json={**body, "wait": 30}, headers=header)
    while response.status_code == 202:
        response = client.post(f"{API}/releases", json={**body, "wait": 30}, headers=header)
    return response

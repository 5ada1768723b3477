"""A real server with real workers over the tables of a run, and everything that it and they write anywhere.

As a program it is that server: what it is told comes as a line of JSON, as in `system/server/serving.py`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from backends.processes import free_port
from dataverse_server import State
from dataverse_server import serving as dataverse
from farthing.ledger import open_ledger
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE
from farthing.server.store import Store
from system.server.fuzzing.canaries import Canaries, word
from system.server.fuzzing.people import ROLES, People
from system.server.fuzzing.tables import BUDGET, DECLARED, write_tables
from system.server.instances import children_of, is_alive, wait_for

HERE = Path(__file__).parent


@dataclass
class Fuzzed:
    """A running server, and what whoever tries it knows."""

    url: str
    root: Path  # all that is its own: ledger, key, data, temp
    logs: Path
    canaries: Canaries
    people: People
    process: subprocess.Popen[bytes]

    def top_up(self) -> None:
        """Give the datasets new budgets when they are used up, so that later cases still get somewhere."""
        ledger = open_ledger(str(self.root / "study.db"), actor="curator", role="curator", key=self.root / "ledger.key")
        try:
            for dataset in ("people", "visits"):
                budget = ledger.budget(dataset)
                if not budget.remaining.epsilon > BUDGET["epsilon"] / 4:
                    more = budget.total.epsilon + BUDGET["epsilon"]
                    ledger.set_budget(dataset, more, BUDGET["delta"])
                    ledger.grant(dataset, "analyst", more, BUDGET["delta"])
        finally:
            ledger.close()

    def traces(self) -> dict[str, str]:
        """Where a secret was found after all: in logs, in files that are left, in what the server keeps."""
        found = {}
        for file in sorted(self.root.rglob("*")):
            inside = file.relative_to(self.root)
            if not file.is_file() or inside.parts[0] == "data":
                continue
            own = {"ledger key"} if inside.name == "ledger.key" else set()  # it is where it belongs
            text = file.read_bytes().decode("utf-8", "replace")
            seen = self.canaries.found(text) - {f"secret: {each}" for each in own | {"folder"}}
            if seen:
                found[str(inside)] = ", ".join(sorted(seen)[:5])
        for file in sorted((self.root / "temp").rglob("*")):
            found.setdefault(str(file.relative_to(self.root)), "left behind")
        return found


@contextmanager
def fuzzed(base: Path, draw: random.Random, *plants: str) -> Iterator[Fuzzed]:
    """Start the server with the tables, the people and their tokens, and stop it and all its children."""
    canaries = Canaries()
    root = base / canaries.secret("folder", word(16))
    for each in (root, root / "logs", root / "temp"):
        each.mkdir()
    write_tables(root / "data", canaries, draw)
    ledger, key = str(root / "study.db"), root / "ledger.key"
    open_ledger(ledger, actor="server", role="curator", key=key).close()
    canaries.secret("ledger key", key.read_text().strip())
    people = People(Store.beside(ledger), canaries)
    people.archive_token = canaries.secret("token of a Dataverse", word(24))
    port = free_port()
    archive = ExitStack()
    people.archive = archive.enter_context(dataverse(State()))
    process = _started(root, ledger, key, port, canaries, people.archive, plants)
    url = f"http://127.0.0.1:{port}"
    workers: set[int] = set()
    try:
        wait_for(lambda: _answers(process, url))
        people.here = url
        _declare(url, people.header("curator token"))
        workers.update(children_of(process.pid))
        yield Fuzzed(url, root, root / "logs", canaries, people, process)
        workers.update(children_of(process.pid))
    finally:
        process.terminate()
        process.wait(600)
        archive.close()
        people.store.close()
        wait_for(lambda: not any(is_alive(each) for each in workers))


def _started(
    root: Path, ledger: str, key: Path, port: int, canaries: Canaries, archive: str, plants: tuple[str, ...]
) -> subprocess.Popen[bytes]:
    ways = [
        str(HERE / "loud"),
        *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*ways, str(HERE.parents[2])]),
        "TMPDIR": str(root / "temp"),
        "FARTHING_LOUD_LOG": str(root / "logs" / "debug.log"),
    }
    if "workers" in plants:
        environment["FARTHING_PLANTED_IN_WORKERS"] = canaries.key()
    with (root / "logs" / "streams.log").open("ab") as streams:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "system.server.fuzzing.served"],
            stdin=subprocess.PIPE, stdout=streams, stderr=streams, env=environment, start_new_session=True,
        )  # fmt: skip
    told = {"ledger": ledger, "ledger_key": str(key), "data": str(root / "data"), "port": port}
    told["dataverses"] = [archive]
    told["client_secret"] = canaries.secret("secret at the provider", word(24))
    told["plants"] = list(plants)
    assert process.stdin is not None
    process.stdin.write(json.dumps(told).encode() + b"\n")
    process.stdin.close()
    return process


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    assert process.poll() is None, "the server ended before it was up"
    try:
        return requests.get(f"{url}/healthz", timeout=600).status_code == 200
    except requests.ConnectionError:
        time.sleep(0.05)
        return False


def _declare(url: str, header: dict[str, str]) -> None:
    """Register the datasets and grant parts of them, by the routes that a curator has."""
    for name, words in DECLARED.items():
        made = requests.post(f"{url}/api/v1/datasets", json={"name": name, **words}, headers=header, timeout=600)
        assert made.status_code == 201, made.text
        for user in ("analyst", "expendable"):
            given = requests.put(
                f"{url}/api/v1/datasets/{name}/grants/{user}", json=BUDGET, headers=header, timeout=600
            )
            assert given.status_code == 200, given.text


def main() -> None:
    """Be the server."""
    from farthing.server.server_process import serve
    from farthing.server.settings import OidcSettings, Settings
    from system.server.fuzzing.plants import plant

    told = json.loads(sys.stdin.readline())
    # A provider that does not answer: what comes back from it is tried all the same.
    oidc = OidcSettings("http://127.0.0.1:9/realm", "farthing", told["client_secret"])
    settings = Settings(
        ledger=told["ledger"], ledger_key=Path(told["ledger_key"]), data=Path(told["data"]), port=told["port"],
        cheap_passwords=True, log_requests=True, oidc=oidc, dataverses=tuple(told["dataverses"]),
    )  # fmt: skip
    for each in told["plants"]:
        plant(each, settings.data)
    serve(settings, exact_port=True, started=lambda facts: None)


if __name__ == "__main__":
    assert set(ROLES) == set(SCOPES_OF_ROLE)
    main()

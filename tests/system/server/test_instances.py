"""Several servers on one ledger: exactly the budget is spent, and whoever is killed, nothing is lost or paid twice."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farthing.ledger import Ledger
from farthing.server.jobs.job_worker import Worker
from farthing.server.store import Store
from farthing.server.store import job_rows as rows
from system.ledger.conftest import postgres_server
from system.ledger.places import Place, postgres_place, sqlite_place
from system.server.instances import (
    API,
    History,
    Instance,
    answered,
    answers,
    command_of,
    is_alive,
    race,
    wait_for,
    with_token,
)
from unit.server.conftest import DATASET, served_in

__all__ = ["postgres_server"]  # a fixture

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]  # holds whatever the processes draw

EPSILON = 0.125
COLUMNS = {"sex": {"categories": ["F", "M"]}, "age": {"range": [0, 110]}}


class Town:
    """A ledger, a table on PostgreSQL that can be locked, people, and servers that may be killed."""

    def __init__(self, place: Place, database: str, folder: Path) -> None:
        self.place, self.database, self.folder = place, database, folder
        self.data = folder / "data"
        self.data.mkdir()
        self.ledger: Ledger = place.open(actor="test")
        self.store = Store.beside(place.url)
        self.ada = with_token(self.store, "ada", "curator")
        self._living: list[Instance] = []
        self._made: list[Instance] = []
        self._tables: list[str] = []

    def _fill(self, table: str) -> None:
        """Another table of people: all budgets that stand for one table pay for it."""
        with self.owner() as connection:
            connection.execute(
                f"CREATE TABLE {table} AS SELECT CASE n % 2 WHEN 0 THEN 'F' ELSE 'M' END AS sex, n % 90 AS age "
                "FROM generate_series(1, 500) n"
            )
        self._tables.append(table)
        lines = [f'[{table}]\nurl = "{self.database}"\ntable = "{table}"\n' for table in self._tables]
        (self.data / "sources.toml").write_text("".join(lines), encoding="utf-8")

    @contextmanager
    def owner(self) -> Iterator[Any]:
        """A connection of whoever owns the table."""
        import psycopg

        with psycopg.connect(self.database) as connection:
            yield connection

    @contextmanager
    def table_is_locked(self) -> Iterator[None]:
        """Nobody reads a row of any table while this lasts: a release stands still after it was charged."""
        with self.owner() as connection:
            connection.execute(f"LOCK TABLE {', '.join(self._tables)} IN ACCESS EXCLUSIVE MODE")
            yield
            connection.rollback()

    def declare(self, name: str, epsilon: float) -> None:
        """A dataset with a budget of its own, on a table of its own."""
        self._fill(f"people_{name}")
        body = {
            "name": name, "source": f"people_{name}", "unit": None, "max_rows": None, "neighbours": "add-remove",
            "rows": None, "columns": COLUMNS, "epsilon": epsilon, "delta": 0.0,
        }  # fmt: skip
        made = self.instances(1)[0].client.post(f"{API}/datasets", json=body, headers=self.ada)
        assert made.status_code == 201, made.text

    def analysts(self, count: int, dataset: str) -> dict[str, dict[str, str]]:
        """So many people with a grant of one release each, and their tokens."""
        found = {
            f"{dataset}-{number}": with_token(self.store, f"{dataset}-{number}", "analyst") for number in range(count)
        }
        for name in found:
            self.ledger.grant(dataset, name, EPSILON)
        return found

    def begun(self, client: Any, dataset: str, request_id: str) -> Instance:
        """Ask for a release while the table is locked; the server whose worker runs it, once it is charged."""
        asked = client.post(f"{API}/releases", json=request(dataset, request_id, wait=0), headers=self.ada)
        assert asked.status_code == 202, asked.text
        wait_for(lambda: self.ledger.stored(f"ada:{request_id}") is not None)
        job = self.job(request_id)
        (runs,) = [one for one in self._living if f"-{one.process.pid}-" in str(job.worker)]
        assert runs.workers()
        return runs

    def job(self, request_id: str) -> rows.Job:
        found = rows.job_of(self.store, f"ada:{request_id}")
        assert found is not None
        return found

    def instances(self, count: int = 2) -> list[Instance]:
        """So many servers that are up; dead ones are replaced."""
        self._living = [one for one in self._living if one.process.poll() is None]
        new = [
            Instance(self.place.url, self.place.key, self.data, self.folder / "servers.log")
            for _ in range(count - len(self._living))
        ]
        self._living += new
        self._made += new
        for one in new:
            one.wait_until_up()
        return self._living[:count]

    def close(self) -> None:
        for one in self._made:
            one.close()
        self.store.close()
        self.ledger.close()


def request(dataset: str, request_id: str, **changes: Any) -> dict[str, Any]:
    draft = {"dataset": dataset, "statistics": [{"kind": "count", "by": "sex"}], "epsilon": EPSILON}
    return {"draft": draft, "request_id": request_id, **changes}


@pytest.fixture(scope="module")
def town(postgres_server: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("town")
    place = postgres_place(postgres_server, folder)
    made = Town(place, place.url, folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def small_town(postgres_server: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The same with a ledger in a file."""
    folder = tmp_path_factory.mktemp("small-town")
    made = Town(sqlite_place(folder), postgres_place(postgres_server, folder).url, folder)
    yield made
    made.close()


def check_race(town: Town, dataset: str, servers: list[Instance], people: int, fits: int) -> None:
    town.declare(dataset, fits * EPSILON)
    analysts, history = town.analysts(people, dataset), History()
    race([one.client for one in servers], analysts, request(dataset, ""), history)
    assert history.problems(town.ledger, dataset) == []
    released = {one.name for one in history.told if one.is_released}
    refused = {one.body["error"]["code"] for one in history.told if one.status not in (200, 202)}
    budget = town.ledger.budget(dataset)
    assert (len(released), budget.count) == (fits, fits)
    assert refused == {"budget_exceeded"}
    assert (budget.spent_upper, budget.remaining.epsilon, budget.reserved) == (budget.total.epsilon, 0.0, 0.0)


def test_32_analysts_at_two_servers_spend_exactly_the_budget(town: Town) -> None:
    check_race(town, "race", town.instances(2), people=32, fits=10)


def test_a_ledger_in_a_file_is_spent_as_exactly(small_town: Town) -> None:
    check_race(small_town, "race", small_town.instances(1), people=12, fits=5)


def test_killing_a_server_in_the_middle_of_a_release_loses_nothing(town: Town) -> None:
    town.declare("killed", 1.0)
    with town.table_is_locked():
        first = town.begun(town.instances(2)[0].client, "killed", "server")
        (other,) = [one for one in town.instances(2) if one is not first]
        first.kill()
        waits = other.client.post(f"{API}/releases", json=request("killed", "server", wait=0), headers=town.ada)
        assert (waits.status_code, waits.json()["state"]) == (202, "running")
    history, asked = History(), request("killed", "server")
    for _ in range(2):
        history.note("ada", answered(other.client, asked, town.ada), asked)
    assert all(one.is_released for one in history.told)
    assert history.problems(town.ledger, "killed") == []
    assert town.ledger.budget("killed").count == 1
    (worker,) = first.started
    wait_for(lambda: not is_alive(worker))  # it has nothing left to do, and nobody who needs it


def test_killing_a_worker_forfeits_what_it_ran_and_nothing_is_drawn_again(town: Town) -> None:
    town.declare("forfeited", 1.0)
    with town.table_is_locked():
        client = town.instances(1)[0].client
        runs = town.begun(client, "forfeited", "worker")
        (worker,) = runs.workers()
        os.kill(worker, signal.SIGKILL)
        gone = answered(client, request("forfeited", "worker"), town.ada)
        assert (gone.status_code, gone.json()["error"]["code"]) == (410, "answer_forfeited")
    stored = town.ledger.stored("ada:worker")
    assert stored is not None and (stored.state, stored.answer) == ("forfeited", None)
    again = answered(client, request("forfeited", "worker"), town.ada)  # also now that the table can be read
    assert again.status_code == 410
    view = client.get(f"{API}/releases/worker", headers=town.ada).json()
    assert (view["state"], view["answers"], view["charged"]["epsilon"]) == ("forfeited", None, EPSILON)
    budget = town.ledger.budget("forfeited")
    assert (budget.count, budget.spent_upper, budget.reserved) == (1, EPSILON, 0.0)
    anew = answered(client, request("forfeited", "anew"), town.ada)  # by the worker that took its place
    assert anew.status_code == 200 and town.ledger.budget("forfeited").count == 2
    assert town.ledger.verify().ok


def test_a_lost_connection_to_the_table_is_opened_again_before_anything_is_charged(small_town: Town) -> None:
    small_town.declare("lost", 1.0)
    client = small_town.instances(1)[0].client
    for request_id in ("before", "after"):
        assert answered(client, request("lost", request_id), small_town.ada).status_code == 200
        with small_town.owner() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'farthing' "
                "AND datname = current_database() AND pid <> pg_backend_pid()"
            )
    with small_town.owner() as connection:
        connection.execute("ALTER TABLE people_lost RENAME TO nobody")
    try:
        gone = answered(client, request("lost", "gone"), small_town.ada)
    finally:
        with small_town.owner() as connection:
            connection.execute("ALTER TABLE nobody RENAME TO people_lost")
    assert (gone.status_code, gone.json()["error"]["code"]) == (424, "engine_error")
    assert "people_lost" not in gone.text and "127.0.0.1" not in gone.text
    assert small_town.ledger.budget("lost").count == 2


def test_what_a_worker_is_told_is_in_no_list_of_processes(town: Town) -> None:
    password = town.place.url.split(":")[2].split("@")[0]
    (server,) = town.instances(1)
    wait_for(lambda: bool(server.workers()))
    for process in (server.process.pid, *server.workers()):
        told = command_of(process) + Path(f"/proc/{process}/environ").read_text()
        assert "jobs.job_worker" in told or process == server.process.pid
        assert password not in told


def test_a_server_that_is_told_to_stop_finishes_first(small_town: Town) -> None:
    small_town.declare("stopped", 1.0)
    with small_town.table_is_locked():
        client = small_town.instances(1)[0].client
        runs = small_town.begun(client, "stopped", "finish")
        with client.stream("GET", f"{API}/releases/finish/events", headers=small_town.ada) as events:
            heard = events.iter_lines()
            assert "event: progress" in heard  # while it runs: nothing on the way keeps events back
            runs.process.terminate()
            assert "event: done" not in list(heard)  # the stream ends with the server, the release does not
        wait_for(lambda: not answers(runs))
        assert small_town.job("finish").state == "running"
    assert runs.process.wait(600) == 0
    assert small_town.job("finish").state == "released"
    stored = small_town.ledger.stored("ada:finish")
    assert stored is not None and stored.state == "released"
    assert small_town.ledger.budget("stopped").count == 1


@pytest.mark.parametrize("forgetful", [False, True])
def test_the_check_notices_a_server_that_takes_a_retry_for_a_new_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    from farthing.server.routes import release_routes

    honest = release_routes.submitted_release

    def each_time_anew(state: Any, who: Any, body: Any) -> Any:
        another = f"{body.request_id}-{secrets.token_hex(4)}"
        return honest(state, who, body.model_copy(update={"request_id": another}))

    if forgetful:
        monkeypatch.setattr(release_routes, "submitted_release", each_time_anew)
    served = served_in(tmp_path)
    worker = Worker(served.state, look=0.02)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        people = {name: with_token(served.state.store, name, "analyst") for name in ("carl", "dora", "eli")}
        for name in people:
            served.state.root.grant(DATASET, name, 1.0)
        history = History()
        race([served.stranger(), served.stranger()], people, request(DATASET, ""), history)
        problems = " and ".join(history.problems(served.state.root, DATASET))
    finally:
        worker.drain()
        thread.join(600)
        served.state.close()
    assert ("answers" in problems, "nobody asked for it" in problems) == (forgetful, forgetful)
    assert forgetful or problems == ""

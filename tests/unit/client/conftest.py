"""A server in this process with a worker, and the same table studied here: both speak the same words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

import farthing as ft
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import DATASET, HERE, Served, served_in

Connect = Callable[..., ft.Client]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = served_in(tmp_path_factory.mktemp("remote"))
    worker = Worker(made.state, look=0.02)
    thread = threading.Thread(target=worker.run)
    thread.start()
    yield made
    worker.drain()
    thread.join(600)
    made.state.close()


@pytest.fixture(scope="module")
def connect(served: Served) -> Connect:
    """A client of a person, whose token may do what the scopes say."""

    def connected(user: str, *scopes: str) -> ft.Client:
        tested = served.with_token(user, *(scopes or ("read", "plan", "spend")))
        token = tested.headers["Authorization"].removeprefix("Bearer ")
        return ft.Client(HERE, token, transport=tested._transport)

    return connected


@pytest.fixture(scope="module")
def local(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ft.Study]:
    """The table of the server, studied without one."""
    people = ft.dataset(
        str(served.settings.data / "people.csv"),
        schema={"age": (0, 110), "sex": ["F", "M"], "income": (0, 100_000)},
    )
    folder = tmp_path_factory.mktemp("local")
    study = ft.Study(people, 3.0, 1e-6, ledger=str(folder / "study.db"), account=DATASET)
    yield study
    study.close()

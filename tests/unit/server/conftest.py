"""One small server per module, in this process: a table, a registered dataset, three people and a stranger."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from farthing.server import Settings, create_app
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE, new_secret, secret_hash
from farthing.server.auth.login_sessions import COOKIE, csrf_of
from farthing.server.auth.permissions import Caller
from farthing.server.services.app_state import State
from farthing.server.store import now
from farthing.server.store.store_tables import declarations, logins, tokens, users

HERE = "http://127.0.0.1:8642"
HOUR = 3600 * 10**9
PEOPLE = {"ada": "curator", "bob": "analyst", "eve": "auditor"}
DATASET = "people"
DECLARATION: dict[str, Any] = {
    "name": DATASET,
    "source": "people.csv",
    "unit": None,
    "max_rows": None,
    "neighbours": "add-remove",
    "rows": None,
    "columns": {
        "age": {"range": [0, 110]},
        "sex": {"categories": ["F", "M"]},
        "income": {"range": [0, 100_000]},
    },
    "epsilon": 3.0,
    "delta": 1e-6,
}


@dataclass
class Served:
    """A server in this process."""

    app: FastAPI
    state: State
    settings: Settings
    clients: dict[str, TestClient] = field(default_factory=dict)

    def stranger(self, **headers: str) -> TestClient:
        """A client that nobody has signed in."""
        return TestClient(self.app, base_url=HERE, headers=headers, follow_redirects=False)

    def signed_in(self, user: str) -> TestClient:
        """A client with a web session of this user, as the page would have it."""
        session = new_secret()
        with self.state.store.begin() as connection:
            connection.execute(
                logins.insert().values(
                    hash=secret_hash(session),
                    user=user,
                    csrf_hash=secret_hash(csrf_of(session)),
                    expires=now() + HOUR,
                    via="session",
                )
            )
        client = self.stranger(**{"Origin": HERE, "X-CSRF-Token": csrf_of(session)})
        client.cookies.set(COOKIE, session)
        return client

    def with_token(self, user: str, *scopes: str, expires_in: int = HOUR) -> TestClient:
        """A client with a token of this user and these scopes."""
        word = new_secret("ft_")
        with self.state.store.begin() as connection:
            connection.execute(
                tokens.insert().values(
                    id=secrets.token_hex(8),
                    user=user,
                    label="a test",
                    hash=secret_hash(word),
                    scopes=" ".join(scopes),
                    expires=now() + expires_in,
                    created=now(),
                    revoked=None,
                )
            )
        return self.stranger(Authorization=f"Bearer {word}")

    def caller(self, user: str) -> Caller:
        """The user as routes see them."""
        role = PEOPLE[user]
        return Caller(user, role, SCOPES_OF_ROLE[role], "session")

    def add(self, user: str, role: str) -> None:
        """Give somebody an account without a password."""
        with self.state.store.begin() as connection:
            connection.execute(
                users.insert().values(
                    name=user, role=role, password_hash=None, oidc_subject=None, disabled=False, created=now()
                )
            )


def waited_for(client: TestClient, path: str, body: dict[str, Any]) -> Any:
    """What a request for work comes to: on a busy machine it is sent again until it is done."""
    response = client.post(path, json=body)
    while response.status_code == 202 and body.get("wait", 0) > 0:
        response = client.post(path, json=body)
    return response


def people_csv(rows: int = 60) -> str:
    """People who do not exist."""
    lines = [f"{20 + 7 * n % 60},{'FM'[n % 2]},{20_000 + 911 * n % 40_000}" for n in range(rows)]
    return "\n".join(["age,sex,income", *lines]) + "\n"


def served_in(folder: Path, **settings: Any) -> Served:
    """A server over a fresh ledger in a folder, with the dataset and the people."""
    data = folder / "data"
    data.mkdir()
    (data / "people.csv").write_text(people_csv(), encoding="utf-8")
    told = Settings(ledger=str(folder / "study.db"), data=data, cheap_passwords=True, **settings)
    app = create_app(told)
    served = Served(app, app.state.farthing, told)
    for user, role in PEOPLE.items():
        served.add(user, role)
    ada = served.state.ledger(served.caller("ada"))
    ada.register(DATASET, DECLARATION["epsilon"], DECLARATION["delta"])
    ada.grant(DATASET, "bob", 1.0, 1e-7)
    with served.state.store.begin() as connection:
        connection.execute(
            declarations.insert().values(name=DATASET, body=json.dumps(DECLARATION), created_by="ada", created=now())
        )
    return served


def once_a_module(fixture_name: str, config: pytest.Config) -> Literal["module", "function"]:
    """The scope of a server: the tests of a module share it, but a test that runs several times begins anew."""
    return "function" if config.getoption("--times") > 1 else "module"


@pytest.fixture(scope=once_a_module)
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server of this module."""
    made = served_in(tmp_path_factory.mktemp("served"))
    yield made
    made.state.close()


@pytest.fixture(scope=once_a_module)
def curator(served: Served) -> TestClient:
    """Ada's browser."""
    return served.signed_in("ada")


@pytest.fixture(scope=once_a_module)
def analyst(served: Served) -> TestClient:
    """Bob's browser."""
    return served.signed_in("bob")


@pytest.fixture(scope=once_a_module)
def auditor(served: Served) -> TestClient:
    """Eve's browser."""
    return served.signed_in("eve")


@pytest.fixture(scope=once_a_module)
def stranger(served: Served) -> TestClient:
    """Somebody who has not signed in."""
    return served.stranger()

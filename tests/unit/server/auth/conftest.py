"""A store without a server, servers with settings of their own, and one that signs people in at a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from farthing.server import OidcSettings, Settings, create_app
from farthing.server.auth.passwords import Passwords
from farthing.server.auth.user_rules import add_user
from farthing.server.store import Store
from farthing.server.store import store_tables as t
from unit.server.auth.little_provider import LittleProvider, setting

HERE = "http://127.0.0.1:8642"
Serve = Callable[..., FastAPI]
Browser = Callable[..., TestClient]


@pytest.fixture(scope="session")
def passwords() -> Passwords:
    """Argon2 with its least parameters."""
    return Passwords(cheap=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    made = Store.beside(tmp_path / "study.db")
    yield made
    made.close()


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Makes servers without people or datasets, and closes them after the module."""
    made: list[FastAPI] = []

    def new(**settings: Any) -> FastAPI:
        folder = tmp_path_factory.mktemp("server")
        told = {"ledger": str(folder / "study.db"), "data": folder, "cheap_passwords": True} | settings
        made.append(create_app(Settings(**told)))
        return made[-1]

    yield new
    for app in made:
        app.state.farthing.close()


@pytest.fixture(scope="module")
def browser() -> Browser:
    """A browser at an address; it sends its origin as browsers do, and follows nothing by itself."""

    def new(app: FastAPI, address: str = "127.0.0.1", here: str = HERE) -> TestClient:
        return TestClient(app, base_url=here, headers={"Origin": here}, client=(address, 5000), follow_redirects=False)

    return new


@pytest.fixture(scope="module")
def provider() -> Iterator[LittleProvider]:
    made = LittleProvider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def served_app(serve: Any, provider: LittleProvider) -> FastAPI:
    oidc = OidcSettings(provider.issuer, provider.client_id, provider.client_secret, name="the little one")
    return serve(oidc=oidc)  # type: ignore[no-any-return]


@pytest.fixture
def at_provider(served_app: FastAPI, provider: LittleProvider) -> Iterator[FastAPI]:
    """The server with its people as they were, and an honest provider whose document and keys are known already."""
    state = served_app.state.farthing
    with state.store.begin() as connection:
        for table in (t.users, t.logins, t.oidc_flows):
            connection.execute(table.delete())
    add_user(state.store, state.passwords, "ada", "curator", by="a test")
    add_user(state.store, state.passwords, "bob", "analyst", by="a test", subject="bob@example.org")
    provider.honest()
    yield served_app
    served_app.state.farthing = state


@pytest.fixture
def unknown(at_provider: FastAPI) -> None:
    """Nothing is known of the provider yet."""
    setting(at_provider)

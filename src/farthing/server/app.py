"""The application: every router behind the checks of http/, with one shape for every refusal."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from farthing.errors import FarthingError
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE
from farthing.server.auth.permissions import Caller, GuardedRoute, check_every
from farthing.server.http.access_log import AccessLog, Failures
from farthing.server.http.error_envelope import refused_by_farthing, refused_by_pydantic, refused_by_starlette
from farthing.server.http.origin_checks import Forwarded, OriginChecks
from farthing.server.http.request_limits import BodyLimit
from farthing.server.http.security_headers import SafeHeaders
from farthing.server.jobs.job_worker import WorkerProcesses
from farthing.server.routes import (
    accountant_routes,
    dataset_routes,
    discovery_routes,
    health_routes,
    ledger_routes,
    openapi_routes,
    page_routes,
    people_routes,
    plan_routes,
    publication_routes,
    release_routes,
    request_routes,
    row_count_routes,
    series_routes,
    session_routes,
    sign_in_routes,
    sql_routes,
    study_routes,
    synthetic_routes,
)
from farthing.server.schemas.plan_schema import Draft
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import StoredDeclaration, all_declarations
from farthing.server.services.plan_prices import priced
from farthing.server.settings import ACTOR, Settings
from farthing.study.documents.dataset_declaration import declared_sources

_FILES = (".csv", ".parquet")  # an engine elsewhere is not called before somebody wants something of it


def warm_up(state: State) -> None:
    """Price a small plan, which imports the engine and the solver; nothing is spent and no row is read."""
    server = Caller(ACTOR, "curator", SCOPES_OF_ROLE["curator"], "session")
    # Whatever goes wrong here will go wrong again, in front of somebody who can be told.
    with suppress(Exception):
        state.passwords.warm()
        for declaration in all_declarations(state.store):
            if all(each.lower().endswith(_FILES) for each in declared_sources(declaration.facts).values()):
                draft = _small_draft(declaration)
                priced(state, server, draft, proof=False)
                priced(state, server, draft, proof=True)
                return


def _small_draft(declaration: StoredDeclaration) -> Draft:
    columns: dict[str, dict[str, object]] = declaration.facts.get("columns") or {}
    means = [{"kind": "mean", "column": name} for name, says in columns.items() if "range" in says]
    return Draft.model_validate({"dataset": declaration.name, "statistics": [{"kind": "count"}, *means[:1]]})


_ROUTERS = (
    people_routes,
    sign_in_routes,
    dataset_routes,
    row_count_routes,
    discovery_routes,
    study_routes,
    plan_routes,
    sql_routes,
    release_routes,
    publication_routes,
    request_routes,
    session_routes,
    series_routes,
    synthetic_routes,
    ledger_routes,
    accountant_routes,
    health_routes,
    openapi_routes,
    page_routes,
)


def create_app(settings: Settings) -> FastAPI:
    """The application over a ledger, which it opens; it is closed when the application shuts down.

    Args:
        settings: Where the ledger and the tables are, where to listen, and who may be believed.

    Returns:
        An ASGI application, to be served by `farthing serve` or any ASGI server.

    Raises:
        LedgerError: If the ledger cannot be opened, or does not verify.
        InvalidValue: If a setting is wrong.

    >>> import pathlib, tempfile
    >>> from starlette.testclient import TestClient
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     settings = Settings(ledger=f"{folder}/study.db", data=pathlib.Path(folder), workers=0, log_requests=False)
    ...     with TestClient(create_app(settings), base_url=settings.origin) as browser:
    ...         browser.get("/healthz").json()
    {'ok': True}
    """
    routes = [route for module in _ROUTERS for route in module.router.routes]
    check_every(_calls(routes))
    state = State.open(settings, WorkerProcesses)
    app = FastAPI(
        title="farthing",
        version=version("farthing"),
        openapi_url=None,
        docs_url=None,  # its viewer is fetched from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        redirect_slashes=False,
        # The first is the outermost.
        middleware=[
            Middleware(Forwarded, settings=settings),
            Middleware(AccessLog, settings=settings, metrics=state.metrics),
            Middleware(SafeHeaders, settings=settings),
            Middleware(Failures),
            Middleware(OriginChecks, settings=settings),
            Middleware(BodyLimit, settings=settings),
        ],
        exception_handlers={
            FarthingError: refused_by_farthing,
            RequestValidationError: refused_by_pydantic,
            HTTPException: refused_by_starlette,
        },
    )
    app.router.routes.extend(routes)
    app.openapi = cache(partial(openapi_routes.described, app))  # type: ignore[method-assign]
    app.state.farthing = state
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: State = app.state.farthing
    state.workers.start()
    threading.Thread(target=warm_up, args=(state,), name="warm-up", daemon=True).start()
    try:
        yield
    finally:
        state.stopping.set()
        await run_in_threadpool(state.workers.stop)
        state.close()


def _calls(routes: list[BaseRoute]) -> Iterator[tuple[str, str]]:
    for route in routes:
        if not isinstance(route, GuardedRoute):
            raise TypeError(f"{getattr(route, 'path', route)} is not behind the guard; make its router with guarded()")
        yield from ((method, route.path) for method in route.methods or ())

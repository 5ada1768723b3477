"""The application: every router, behind the doors, with one way of saying no."""

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
from farthing.server.app_state import ACTOR, State
from farthing.server.auth.permissions import SCOPES_OF_ROLE, Caller, check_every
from farthing.server.auth.route_guard import GuardedRoute
from farthing.server.http import openapi
from farthing.server.http.access_log import AccessLog, Failures, Metrics
from farthing.server.http.error_envelope import refused_by_farthing, refused_by_pydantic, refused_by_starlette
from farthing.server.http.origin_checks import BodyLimit, Doors, Forwarded, SafeHeaders
from farthing.server.routes import (
    accountant_routes,
    dataset_routes,
    health_routes,
    ledger_routes,
    page_routes,
    people_routes,
    plan_routes,
    release_routes,
    row_count_routes,
    session_routes,
    sign_in_routes,
    study_routes,
)
from farthing.server.schemas.draft_schema import Draft
from farthing.server.services.dataset_declarations import Declaration, all_declarations
from farthing.server.services.plan_prices import priced
from farthing.server.settings import Settings

_FILES = (".csv", ".parquet")  # an engine elsewhere is not called before somebody wants something of it


def warm_up(state: State) -> None:
    """Price a small plan, which imports the engine and the solver; nothing is spent and no row is read."""
    server = Caller(ACTOR, "curator", SCOPES_OF_ROLE["curator"], "session")
    # Whatever goes wrong here will go wrong again, in front of somebody who can be told.
    with suppress(Exception):
        state.passwords.warm()
        for declaration in all_declarations(state.store):
            if str(declaration.words["source"]).lower().endswith(_FILES):
                draft = _small_draft(declaration)
                priced(state, server, draft, proof=False)
                priced(state, server, draft, proof=True)
                return


def _small_draft(declaration: Declaration) -> Draft:
    columns: dict[str, dict[str, object]] = declaration.words["columns"]
    means = [{"kind": "mean", "column": name} for name, says in columns.items() if "range" in says]
    return Draft.model_validate({"dataset": declaration.name, "statistics": [{"kind": "count"}, *means[:1]]})


_ROUTERS = (
    people_routes,
    sign_in_routes,
    dataset_routes,
    row_count_routes,
    study_routes,
    plan_routes,
    release_routes,
    session_routes,
    ledger_routes,
    accountant_routes,
    health_routes,
    openapi,
    page_routes,
)


def create_app(settings: Settings) -> FastAPI:
    """The application over a ledger, which it opens; it is closed when the application shuts down."""
    routes = [route for module in _ROUTERS for route in module.router.routes]
    check_every(_calls(routes))
    metrics = Metrics()
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
            Middleware(AccessLog, settings=settings, metrics=metrics),
            Middleware(SafeHeaders, settings=settings),
            Middleware(Failures),
            Middleware(Doors, settings=settings),
            Middleware(BodyLimit, settings=settings),
        ],
        exception_handlers={
            FarthingError: refused_by_farthing,
            RequestValidationError: refused_by_pydantic,
            HTTPException: refused_by_starlette,
        },
    )
    app.router.routes.extend(routes)
    app.openapi = cache(partial(openapi.described, app))  # type: ignore[method-assign]
    app.state.metrics = metrics
    app.state.farthing = State(settings)
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
            raise TypeError(
                f"{getattr(route, 'path', route)} is not behind the guard; make its router with guarded()"
            )
        yield from ((method, route.path) for method in route.methods or ())

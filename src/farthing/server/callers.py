"""Who makes a request, and what a route may assume about them."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from farthing.server.state import State


@dataclass(frozen=True)
class Caller:
    """Somebody who has shown who they are: by a web session, a token or a one-time link."""

    name: str
    role: str  # "curator", "analyst" or "auditor"
    scopes: frozenset[str]
    via: str  # "session", "token" or "link"


def caller(request: Request) -> Caller:
    """Who makes this request; a dependency of routes. The guard has put them there before the route runs."""
    found = request.state.caller
    assert isinstance(found, Caller), "the route is public: nobody is known here"
    return found


def the_state(request: Request) -> State:
    """What the app holds open: settings, store and ledger; a dependency of routes."""
    state = request.app.state.farthing
    assert isinstance(state, State)
    return state

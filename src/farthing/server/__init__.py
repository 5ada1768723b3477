"""REST routes, sign-in and one error envelope over studies and a ledger.

create_app   the application, for any ASGI server
Settings     its settings before it starts

The application is imported when it is first used: a worker process runs jobs and has no routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.server.settings import OidcSettings, Settings

if TYPE_CHECKING:
    from farthing.server.app import create_app

__all__ = ["OidcSettings", "Settings", "create_app"]


def __getattr__(name: str) -> Any:
    if name != "create_app":
        raise AttributeError(f"module 'farthing.server' has no attribute {name!r}")
    from farthing.server.app import create_app

    globals()[name] = create_app
    return create_app

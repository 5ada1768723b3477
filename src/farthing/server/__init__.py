"""REST routes, sign-in and one error envelope over studies and a ledger.

create_app   the application, for any ASGI server
Settings     its settings before it starts
"""

from farthing.server.app import create_app
from farthing.server.settings import OidcSettings, Settings

__all__ = ["OidcSettings", "Settings", "create_app"]

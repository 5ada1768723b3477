"""Routes about studies."""

from __future__ import annotations

from farthing.server.guard import guarded

router = guarded("studies")

"""Routes about accountant."""

from __future__ import annotations

from farthing.server.guard import guarded

router = guarded("accountant")

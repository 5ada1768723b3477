"""Routes about plans."""

from __future__ import annotations

from farthing.server.guard import guarded

router = guarded("plans")

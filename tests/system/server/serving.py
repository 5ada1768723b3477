"""A server in a process of its own: settings as a line of JSON on the standard input, then it serves until a signal."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from farthing.server.server_process import serve
from farthing.server.settings import Settings

if __name__ == "__main__":
    told = json.loads(sys.stdin.readline())
    key = told.pop("ledger_key")
    logging.basicConfig(level=logging.INFO)
    settings = Settings(
        data=Path(told.pop("data")),
        ledger_key=None if key is None else Path(key),
        cheap_passwords=True,
        log_requests=False,
        **told,
    )
    serve(settings, exact_port=True, started=lambda facts: None)

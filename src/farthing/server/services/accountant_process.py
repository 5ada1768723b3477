"""The accountant in a process of its own, where `accountant_answers` runs; stopped when an answer takes too long.

Nothing private ever comes here.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from farthing.errors import RequestRefused

SECONDS = 8.0  # that an answer may take
STARTING = 30.0  # that the process may take to begin
WAITING = 9.0  # to wait for the questions before
_log = logging.getLogger("farthing.server")
_PROGRAM = Path(__file__).with_name("accountant_answers.py")


class AccountantProcess:
    """A process that answers one question at a time; started when it is first needed."""

    def __init__(self, seconds: float = SECONDS, waiting: float = WAITING) -> None:
        self._seconds, self._waiting = seconds, waiting
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, what: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The answer; refuses what is wrong, what takes too long, and what comes while too much else waits."""
        if not self._turn.acquire(timeout=self._waiting):
            raise RequestRefused(
                "rate_limited",
                "the accountant is busy with other questions; ask again in a few seconds.",
                {"retry_after": 5},
            )
        try:
            reply = self._answer(json.dumps({"what": what, "with": dict(facts)}, allow_nan=False))
        finally:
            self._turn.release()
        if "answer" in reply:
            result: dict[str, Any] = reply["answer"]
            return result
        if "refused" in reply:
            refusal = dict(reply["refused"])
            raise RequestRefused("invalid_value", refusal.pop("message"), refusal)
        if "failed" in reply:
            _log.warning("a question about %s could not be worked out (%s)", what, reply["failed"])
            raise RequestRefused(
                "invalid_value",
                "these numbers are too far apart to compute with; use ones nearer to 1.",
            )
        raise RequestRefused(
            "too_large",
            f"this takes more than {self._seconds:g} seconds to prove; ask about fewer charges, or more similar ones, "
            "or use `farthing compose`, which has no such limit.",
        )

    def close(self) -> None:
        """End the process, if there is one."""
        with self._turn:
            self._stop()

    def _answer(self, question: str) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = _started()
            self._line(STARTING)
        line = self._line(self._seconds, question)
        reply: dict[str, Any] = json.loads(line) if line else {}
        return reply

    def _line(self, seconds: float, question: str | None = None) -> str:
        """The next line of the process; empty if it took too long and was stopped, or died of the question."""
        process = self._process
        if process is None:
            return ""
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(seconds, process.kill)
        late.daemon = True
        late.start()
        try:
            if question is not None:
                process.stdin.write(question + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            late.cancel()
        if line.endswith("\n"):
            return line
        self._stop()
        return ""

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _started() -> subprocess.Popen[str]:
    # -P: a file beside it that is named like a module must not be imported. One thread: others want the cores too.
    return subprocess.Popen(
        [sys.executable, "-P", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )

"""`farthing serve` as a process: it says where it is, lets its owner in once, and stops in good order."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]  # holds whatever the processes draw
COMMAND = [sys.executable, "-c", "from farthing.cli import main; main(prog_name='farthing')"]


class Serving:
    """One running `farthing serve`."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--json", *words],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.facts: dict[str, Any] = json.loads(line)
        self.port = int(self.facts["url"].rpartition(":")[2])

    def ask(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, and what it said."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out, err


def test_the_owner_is_let_in_once_and_nobody_else_by_another_name(tmp_path: Path) -> None:
    served = Serving(tmp_path, "--port", "0", "--workers", "0")
    try:
        path = served.facts["login"].partition(f":{served.port}")[2]
        status, headers, _ = served.ask(path)
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        status, _, body = served.ask("/api/v1/me", Cookie=cookie.partition(";")[0])
        me = json.loads(body)
        assert (status, me["role"], me["name"]) == (200, "curator", served.facts["user"])
        assert "set-cookie" not in served.ask(path)[1]
        assert served.ask("/", Host="evil")[0] == 400
        second = subprocess.run(
            [*COMMAND, "serve", "--port", str(served.port)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert second.returncode == 2
        assert f"--port={served.port}: is in use" in second.stderr
        assert "Traceback" not in second.stderr
    finally:
        code, _, err = served.stop(signal.SIGINT)
    assert code == 0
    assert "GET /login 303" in err
    assert path.partition("=")[2] not in err  # no secret is in the log
    assert cookie.partition("=")[2].partition(";")[0] not in err


def test_a_request_that_runs_is_finished_and_workers_end_too(tmp_path: Path) -> None:
    served = Serving(tmp_path, "--port", "0", "--workers", "1")
    slow = http.client.HTTPConnection("127.0.0.1", served.port, timeout=600)
    body = json.dumps({"user": "nobody", "password": "a long enough password"})
    slow.putrequest("POST", "/api/v1/login")
    slow.putheader("Content-Type", "application/json")
    slow.putheader("Content-Length", str(len(body)))
    slow.endheaders(body[:5].encode())
    assert served.ask("/healthz")[0] == 200  # the first request is in the house by now
    worker = _child_of(served.process.pid)
    ended = threading.Thread(target=served.stop)
    ended.start()
    slow.send(body[5:].encode())
    assert slow.getresponse().status == 401
    slow.close()
    ended.join(600)
    assert served.process.returncode == 0
    assert worker is None or not Path(f"/proc/{worker}").exists()


def _child_of(process: int) -> int | None:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None

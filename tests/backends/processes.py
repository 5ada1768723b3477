"""Programs, ports and processes for the servers of the tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from backends.keeper import CannotStart


def installed(find: Callable[[], Path | None], package: str) -> Path:
    """What `find` finds, after installing Debian's `package` if it must be and can be."""
    found = find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
        subprocess.run(["apt-get", "-qq", "update"], check=False, **quiet)
        install = ["apt-get", "-qq", "install", "--yes", "--no-install-recommends", package]
        subprocess.run(install, check=False, **quiet)
        found = find()
    if found is None:
        raise CannotStart(f"{package} is not installed, and only root can install it: apt-get install {package}")
    return found


def free_port() -> int:
    """A port of the loopback address that nobody listens on, and that nobody takes before it is used.

    It lies outside the range from which the system gives ports to connections and to whoever asks for any. Tests that
    choose at the same moment choose apart: each claims its port by a name, which the system frees with the process.
    """
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split())
    ports = range(10_000, first) if first > 20_000 else range(last + 1, 65_536)
    while True:
        port = ports[int.from_bytes(os.urandom(4)) % len(ports)]
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0farthing-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
        else:
            claim.detach()  # open to the end of this process
            return port


def wait_for(condition: Callable[[], bool], what: str, seconds: float, process: subprocess.Popen[bytes]) -> None:
    """Wait until `condition` holds; give up when `process` ends or the time is over."""
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise CannotStart(f"{what} ended with code {process.returncode} while starting")
        if time.monotonic() > until:
            raise CannotStart(f"{what} did not start within {seconds:.0f} seconds")
        time.sleep(0.05)


def answers(port: int) -> bool:
    """Whether somebody accepts connections at `port` of the loopback address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def end(process: subprocess.Popen[bytes], gently: signal.Signals = signal.SIGTERM, patience: float = 10) -> None:
    """End a process that leads a group of its own, and all of that group."""
    with suppress(ProcessLookupError):
        process.send_signal(gently)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

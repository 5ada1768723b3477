"""An environment for each peer, made when it is first needed: `peers.toml` says which versions go into it.

What cannot be installed is a result, with pip's last line as the reason: the report names it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).with_name("peers.toml")
FOLDER = Path(sys.prefix) / "peers"
INSTALL_SECONDS = 900.0


@dataclass(frozen=True)
class Environment:
    """Where a peer runs, or why it does not."""

    name: str
    contenders: tuple[str, ...]
    packages: tuple[str, ...]
    failure: str = ""

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return FOLDER / self.name

    @property
    def python(self) -> str:
        """The interpreter to run its workers with."""
        return str(self.folder / "bin" / "python")

    @property
    def stamp(self) -> Path:
        """The file that says what was installed."""
        return self.folder / "packages"

    @property
    def digest(self) -> str:
        """What the stamp holds when everything is."""
        return hashlib.sha256("\n".join(self.packages).encode()).hexdigest()


def wanted(pins: Path = PINS) -> list[Environment]:
    """All environments of the file, installed or not."""
    document = tomllib.loads(pins.read_text(encoding="utf-8"))
    return [Environment(name, tuple(one["contenders"]), tuple(one["packages"])) for name, one in document.items()]


def prepared(say: Callable[[str], None], pins: Path = PINS, only: str = "") -> list[Environment]:
    """All environments, or one, made where they are not there yet; one that could not be made says why."""
    return [_made(environment, say) for environment in wanted(pins) if only in ("", environment.name)]


def _made(environment: Environment, say: Callable[[str], None]) -> Environment:
    stamp = environment.stamp
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == environment.digest:
        return environment
    say(f"installing {environment.packages[0]}")
    shutil.rmtree(environment.folder, ignore_errors=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    for command in (
        [sys.executable, "-m", "venv", str(environment.folder)],
        [environment.python, "-m", "pip", "install", *quiet, *environment.packages],
    ):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return _failed(environment, type(problem).__name__)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return _failed(environment, (lines or ["pip failed"])[-1].removeprefix("ERROR: "))
    stamp.write_text(environment.digest, encoding="utf-8")
    return environment


def _failed(environment: Environment, reason: str) -> Environment:
    reason = f"not installed: {reason}"[:160]
    return Environment(environment.name, environment.contenders, environment.packages, reason)

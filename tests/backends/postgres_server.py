"""A real PostgreSQL on the loopback address: an owner who loads tables, and a reader who may only SELECT."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from backends.keeper import CannotStart
from backends.processes import answers, end, free_port, installed, wait_for

DATABASE = "registry"
# What a steward would do: nobody but the owner makes anything, temporary tables included.
_ROLES = """
CREATE ROLE owner LOGIN PASSWORD '{owner}';
CREATE ROLE reader LOGIN PASSWORD '{reader}';
CREATE DATABASE {database} OWNER owner;
\\connect {database}
REVOKE TEMPORARY, CREATE ON DATABASE {database} FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO owner;
ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA public GRANT SELECT ON TABLES TO reader;
"""
_SETTINGS = ("shared_buffers=64MB", "max_connections=100")
# Tables of a test need not survive a power cut.
_NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def programs() -> Path | None:
    """Where `initdb` and `postgres` are, the newest version first."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    found = debian[-1] if debian else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def server(directory: Path) -> PostgresServer:
    """What the keeper keeps."""
    return PostgresServer(directory)


class PostgresServer:
    """One cluster of databases in `directory`, on a port of its own; a durable one syncs, for benchmarks."""

    def __init__(self, directory: Path, *, durable: bool = False) -> None:
        self._settings = _SETTINGS if durable else (*_SETTINGS, *_NOT_DURABLE)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._facts: dict[str, Any] = {}
        self._port = 0

    def start(self) -> dict[str, Any]:
        """Make the cluster, start it, make the roles."""
        programs_at = installed(programs, "postgresql")
        data = self._directory / "data"
        passwords = {role: secrets.token_hex(12) for role in ("postgres", "owner", "reader")}
        account = _account()
        data.mkdir()
        (self._directory / "password").write_text(passwords["postgres"], encoding="utf-8")
        if account:
            shutil.chown(data, "postgres", "postgres")
            shutil.chown(self._directory / "password", "postgres", "postgres")
        made = subprocess.run(
            [programs_at / "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8",
             "--pwfile", self._directory / "password", "--locale", "C.UTF-8", "--no-sync"],
            capture_output=True, text=True, check=False, cwd="/", **account,
        )  # fmt: skip
        if made.returncode:
            raise CannotStart(f"initdb failed: {made.stderr.strip()[-300:]}")
        self._port = free_port()
        self._launch(programs_at)
        self._run(programs_at, self._port, passwords)
        self._facts |= {
            "host": "127.0.0.1", "port": self._port, "database": DATABASE,
            "passwords": passwords, "directory": str(self._directory),
        }  # fmt: skip
        return self._facts

    def _launch(self, programs_at: Path) -> None:
        data, log = self._directory / "data", self._directory / "postgres.log"
        settings = [word for setting in self._settings for word in ("-c", setting)]
        self._process = subprocess.Popen(
            [programs_at / "postgres", "-D", data, "-p", str(self._port), "-h", "127.0.0.1", "-k", "", *settings],
            stdout=log.open("wb"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True, cwd="/", **_account(),
        )  # fmt: skip
        wait_for(
            lambda: answers(self._port) and "ready to accept" in log.read_text(),
            "postgres",
            600,
            self._process,
        )
        self._facts["pid"] = self._process.pid

    def _run(self, programs_at: Path, port: int, passwords: dict[str, str]) -> None:
        script = _ROLES.format(database=DATABASE, owner=passwords["owner"], reader=passwords["reader"])
        done = subprocess.run(
            [programs_at / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"],
            input=script, capture_output=True, text=True, check=False,
            env=os.environ | {"PGPASSWORD": passwords["postgres"]},
        )  # fmt: skip
        if done.returncode:
            raise CannotStart(f"the roles could not be made: {done.stderr.strip()[-300:]}")

    def grant(self, wish: str) -> dict[str, Any]:
        """A `restart`: stopped at once, as `pg_ctl stop -m immediate` does it, and started again."""
        if wish == "restart" and self._process is not None:
            end(self._process, signal.SIGQUIT)
            self._launch(installed(programs, "postgresql"))
        return self._facts

    def stop(self) -> None:
        """Stop at once; the data are going to be removed anyway."""
        if self._process is not None:
            end(self._process, signal.SIGQUIT)


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

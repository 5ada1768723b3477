"""A process that forks takes the description of a table along, not the engine that holds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, pyarrow, signal, sys, warnings
import farthing as ft
from farthing.data import Count
from farthing.errors import EngineError
warnings.simplefilter("ignore")
table = pyarrow.table({"a": [1, 2, 3]})
people = ft.dataset(table, schema={"a": (0, 10)})
people.exact({"rows": Count()})
folder = ft.data.engines.duckdb.default_engine().backend.con.execute("select current_setting('temp_directory')")
folder = folder.fetchone()[0]
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        people.exact({"rows": Count()})
    except EngineError as refused:
        print(refused, flush=True)
    print(ft.dataset(table, schema={"a": (0, 10)}).exact({"rows": Count()})["rows"], flush=True)
    import atexit
    atexit._run_exitfuncs()
    os._exit(0)
status = os.waitpid(child, 0)[1]
print(status, os.path.isdir(folder), people.exact({"rows": Count()})["rows"])
"""


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_fork_is_refused_instead_of_waiting_for_ever(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=600, cwd=tmp_path, check=True
    )
    refused, own, parent = done.stdout.splitlines()
    assert refused == "duckdb failed (connection of another process); make the dataset after the fork."
    assert own == "3"
    assert parent == "0 True 3"

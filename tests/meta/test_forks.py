"""The plugin of `--forks`: every test runs once, what it finds is reported, and whoever dies is named."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forks

TESTS = Path(__file__).parents[1]
MANY = """
import os, pytest

@pytest.fixture(scope="module")
def opened():
    with open("opened", "a") as file:
        file.write(f"{os.getpid()}\\n")
    yield
    with open("closed", "a") as file:
        file.write(f"{os.getpid()}\\n")

@pytest.mark.parametrize("number", range(60))
def test_many(number, opened, tmp_path):
    (tmp_path / "mine").write_text(str(number))
    print(f"said by {number}")
    with open("ran", "a") as file:
        file.write(f"{number}\\n")
    assert number != 41
"""
DEADLY = """
import os, pytest, signal

@pytest.mark.parametrize("number", range(12))
def test_deadly(number):
    with open("ran", "a") as file:
        file.write(f"{number}\\n")
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 7:
        os._exit(3)
"""


def _run(folder: Path, source: str, *words: str, workers: int = 3) -> tuple[int, str, list[int]]:
    """The exit code, what was printed, and which tests ran."""
    process = _start(folder, source, *words, workers=workers)
    printed = process.communicate(timeout=600)[0]
    return process.returncode, printed, sorted(map(int, (folder / "ran").read_text(encoding="utf-8").split()))


def _start(folder: Path, source: str, *words: str, workers: int) -> subprocess.Popen[str]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n", encoding="utf-8")
    (folder / "test_it.py").write_text(source, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(TESTS)}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", "-pforks", "--forks", str(workers), *words],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_every_test_runs_once_and_its_output_is_its_own(tmp_path: Path) -> None:
    code, printed, ran = _run(tmp_path, MANY)
    assert code == 1 and ran == list(range(60))
    assert "1 failed, 59 passed" in printed and "FAILED test_it.py::test_many[41]" in printed
    assert re.findall(r"said by \d+", printed) == ["said by 41"]
    opened, closed = ((tmp_path / name).read_text(encoding="utf-8").split() for name in ("opened", "closed"))
    assert sorted(opened) == sorted(closed) and len(opened) == len(set(opened)) <= 3  # one for each process


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_test_that_takes_its_process_down_has_failed_and_the_others_run(tmp_path: Path) -> None:
    code, printed, ran = _run(tmp_path, DEADLY)
    assert code == 1 and ran == list(range(12)) and "2 failed, 10 passed" in printed
    assert "the process that ran test_it.py::test_deadly[5] ended by SIGKILL" in printed
    assert "the process that ran test_it.py::test_deadly[7] ended with 3" in printed


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_the_first_failure_ends_the_run_where_that_is_asked(tmp_path: Path) -> None:
    code, printed, _ = _run(tmp_path, "def test_a():\n    open('ran', 'w').write('1')\n    assert False\n" + MANY, "-x")
    assert code == 1 and "stopping after 1 failures" in printed


def test_linear_algebra_has_one_thread_however_numpy_was_first_imported() -> None:
    """More of them spin while they wait for each other, and ten workers have enough to do."""
    libraries = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
    threads = [
        getattr(ctypes.CDLL(library), f"scipy_openblas_get_num_threads{suffix}")()
        for library in libraries
        for suffix in ("64_", "")
        if hasattr(ctypes.CDLL(library), f"scipy_openblas_get_num_threads{suffix}")
    ]
    assert threads and set(threads) == {1}


def test_batches_of_one_file_are_handed_out_in_the_order_of_the_file() -> None:
    """Whatever is slow: a test meets only what earlier ones left of what they share."""

    def item(path: str, number: int) -> Any:
        return SimpleNamespace(
            path=path, get_closest_marker=lambda name: (name == "slow" and number % 40 == 39) or None
        )

    items = [item(f"file {file}", number) for file in range(30) for number in range(100)]
    order = [number for batch in forks.batches(items) for number in batch]
    assert sorted(order) == list(range(3_000))
    assert all(
        numbers == sorted(numbers)
        for file in range(30)
        if (numbers := [number for number in order if number // 100 == file])
    )


ENDLESS = """
import os, subprocess, time

def test_endless():
    started = subprocess.Popen(["sleep", "3600"])
    with open("started.new", "w") as file:
        file.write(f"{started.pid} {os.getsid(0)} {os.getpid()}")
    os.rename("started.new", "started")
    time.sleep(3600)
"""


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_process_behind(tmp_path: Path, how: signal.Signals) -> None:
    process = _start(tmp_path, ENDLESS, workers=1)
    facts = tmp_path / "started"
    while not facts.exists():
        assert process.poll() is None
        time.sleep(0.02)
    child, session, worker = map(int, facts.read_text(encoding="utf-8").split())
    assert session == worker != os.getsid(process.pid)
    process.send_signal(how)
    process.communicate(timeout=600)
    assert process.returncode
    until = time.monotonic() + 600
    while any(_lives(each) for each in (child, worker)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(child) and not _lives(worker)


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


TOGETHER = """
import os, pytest, time

together = [pytest.param(number, marks=pytest.mark.together("it")) for number in range(40, 120)]

@pytest.mark.parametrize("number", [*range(40), *together])
def test_some(number):
    with open("ran", "a") as file:
        file.write(f"{number}\\n")
    with open("ran in", "a") as file:
        file.write(f"{number} {os.getpid()}\\n")
    time.sleep(0.005)
"""


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_few_processes_run_what_is_marked_together(tmp_path: Path) -> None:
    code, _, ran = _run(tmp_path, TOGETHER, workers=5)
    assert code == 0 and ran == list(range(120))
    lines = [tuple(map(int, line.split())) for line in (tmp_path / "ran in").read_text(encoding="utf-8").splitlines()]
    assert len({process for number, process in lines if number >= 40}) <= forks._MOST_TOGETHER

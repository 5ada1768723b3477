"""The lock between processes: exclusive, in time, and given back by the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from farthing.errors import LedgerUnavailable
from farthing.ledger.sqlite_store import FileLock


def test_one_holds_it_and_the_other_gets_it_when_released(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "l", 600.0), FileLock(tmp_path / "l", 600.0)
    one.acquire()
    got = threading.Event()
    waiter = threading.Thread(target=lambda: (other.acquire(), got.set()))
    waiter.start()
    assert not got.wait(0.05)
    one.release()
    assert got.wait(600)
    waiter.join()
    other.release()
    one.acquire()
    one.close()
    other.acquire()
    other.close()


def test_waiting_ends_in_time_and_leaves_no_lock_behind(tmp_path: Path) -> None:
    holder, late = FileLock(tmp_path / "l", 600.0), FileLock(tmp_path / "l", 0.05)
    holder.acquire()
    for _ in range(3):
        with pytest.raises(LedgerUnavailable, match=r"another process has held the ledger for 0\.05 s"):
            late.acquire()
    holder.release()
    # The waiters left behind get the lock, close it, and are gone.
    third = FileLock(tmp_path / "l", 600.0)
    third.acquire()
    third.release()
    late._timeout = 600.0  # on a busy machine one of them may hold it for longer
    late.acquire()
    late.release()


def test_waiting_many_times_takes_one_thread_and_closing_ends_it(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "l", 600.0), FileLock(tmp_path / "l", 600.0)
    before = set(threading.enumerate())
    for _ in range(20):
        one.acquire()
        release = threading.Timer(0.005, one.release)
        release.start()
        other.acquire()
        release.join()
        other.release()
    (waiter,) = set(threading.enumerate()) - before
    one.close()
    other.close()
    waiter.join(600)
    assert not waiter.is_alive()


def test_control_c_while_waiting_leaves_no_lock_behind(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    holder, waiting = FileLock(tmp_path / "l", 600.0), FileLock(tmp_path / "l", 600.0)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            holder.acquire()
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                waiting.acquire()
            holder.release()
            waiting.acquire()
            waiting.release()
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_child_does_not_keep_a_lock_that_nobody_waits_for_any_more(tmp_path: Path) -> None:
    """The handle of an abandoned wait is inherited by a child; it must not hold the lock once the wait is over."""
    holder, late = FileLock(tmp_path / "l", 600.0), FileLock(tmp_path / "l", 0.02)
    holder.acquire()
    with pytest.raises(LedgerUnavailable):
        late.acquire()
    child = os.fork()
    if child == 0:  # pragma: no cover
        time.sleep(60)
        os._exit(0)
    try:
        holder.release()
        patient = FileLock(tmp_path / "l", 5.0)
        for _ in range(5):
            time.sleep(0.02)
            patient.acquire()
            patient.release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_killed_holder_gives_it_back(tmp_path: Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        FileLock(tmp_path / "l", 600.0).acquire()
        os.write(write, b"x")
        time.sleep(60)
        os._exit(1)
    assert os.read(read, 1) == b"x"
    lock = FileLock(tmp_path / "l", 0.05)
    with pytest.raises(LedgerUnavailable):
        lock.acquire()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    patient = FileLock(tmp_path / "l", 600.0)
    patient.acquire()
    patient.release()
    os.close(read)
    os.close(write)


# In a process of its own: one that has run other tests has threads of other libraries, and may not live to fork twice.
_HOLDER = """
import os, signal, sys, time
from pathlib import Path
from farthing.ledger.sqlite_store import FileLock

lock = FileLock(Path(sys.argv[1]), 30.0)
lock.acquire()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(600)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_child_does_not_keep_what_its_dead_parent_held(tmp_path: Path) -> None:
    """A process that holds the lock forks a child and is killed: the child must not hold the lock for it."""
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path / "l")], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    assert holder.wait() == -signal.SIGKILL
    try:
        lock = FileLock(tmp_path / "l", 5.0)
        lock.acquire()
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_a_place_without_a_directory_is_a_clean_refusal(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="cannot be opened"):
        FileLock(tmp_path / "nowhere" / "l", 1.0).acquire()

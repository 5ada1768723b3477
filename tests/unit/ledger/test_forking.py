"""A fork with a ledger open: what a child commits is in the ledger, whatever becomes of its parent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from farthing.errors import LedgerUnavailable
from farthing.ledger import open_ledger

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.draws(false_alarm=0, miss=0),  # holds whatever the processes draw
]


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_a_charge_of_a_child_outlives_the_parents_ledger_and_the_child(tmp_path: Path) -> None:
    """SQLite's locks are not inherited: the parent must not take the file for its own when it closes it."""
    ledger = open_ledger(tmp_path / "study.db")
    ledger.register("people", 1.0)
    closed, close = os.pipe()
    charged, charging = os.pipe()

    def work() -> None:
        ledger.charge("people", 0.25, request_id="before")
        os.write(charging, b"1")
        os.read(closed, 1)
        ledger.charge("people", 0.25, request_id="after")  # and dies without closing anything

    child = _forked(work)
    os.read(charged, 1)
    ledger.close()
    os.write(close, b"1")
    assert os.waitpid(child, 0)[1] == 0
    with open_ledger(tmp_path / "study.db") as ledger:
        assert [entry.request_id for entry in ledger.entries()] == ["", "", "before", "after"]
    for handle in (closed, close, charged, charging):
        os.close(handle)


@pytest.mark.slow
def test_a_child_forked_while_the_ledger_is_read_must_leave_it_alone(tmp_path: Path) -> None:
    found: list[int] = []

    def refused() -> None:
        with pytest.raises(LedgerUnavailable, match="was forked while"):
            ledger.charge("people", 0.25, request_id="child")
        with pytest.raises(LedgerUnavailable, match="was forked while"):
            open_ledger(tmp_path / "study.db")

    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
        assert ledger.verify(progress=lambda done, whole: found.append(_forked(refused))).ok
        assert [os.waitpid(child, 0)[1] for child in found] == [0]
        ledger.charge("people", 0.25, request_id="parent")
        child = _forked(lambda: ledger.charge("people", 0.25, request_id="child"))
        assert os.waitpid(child, 0)[1] == 0 and ledger.budget("people").count == 2

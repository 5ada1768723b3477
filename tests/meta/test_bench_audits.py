"""The bench's audits tell a leak from noise, whoever made it."""

from __future__ import annotations

import random

import pytest
from benchmarks import audits
from benchmarks.audits import _row


def test_a_leak_is_called_one_and_a_missing_library_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "SAMPLES", 2_000)

    def missing() -> None:
        raise ImportError("no such library")

    assert _row("a leak", lambda: lambda value: value, True).met is True
    assert _row("a leak", lambda: lambda value: value, False).met is False
    assert _row("noise", lambda: lambda value: random.random() < 0.5, False).met is True
    assert _row("nobody", missing, True).met is None  # type: ignore[arg-type]

"""The tracer of walks counts what it says: files entered by calls, and switches between packages."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path

import pytest
from benchmarks.walks import Tracer, package_of

FILES = {
    "low/first.py": "def add(): return 1\n",
    "low/second.py": "import low.first\ndef twice(): return low.first.add() + low.first.add()\n",
    "high.py": "import low.second\nnumber = low.second.twice()\ndef ask(): return low.second.twice()\n",
}


def test_calls_are_counted_in_every_thread_and_imports_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def ask() -> None:
        spec = importlib.util.spec_from_file_location("high", tmp_path / "high.py")
        assert spec is not None and spec.loader is not None
        high = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(high)
        high.ask()
        thread = threading.Thread(target=high.ask)
        thread.start()
        thread.join()

    before = sys.getprofile()
    try:
        with Tracer(tmp_path) as tracer:
            walk = tracer.walk("ask", ask)
            assert tracer.walk("nothing", lambda: None).files == ()
    finally:
        sys.setprofile(before)
        for name in ("low", "low.first", "low.second"):
            sys.modules.pop(name, None)
    assert walk.files == ("high.py", "low/second.py", "low/first.py")
    assert walk.calls == 8  # twice: ask, twice, add, add; the call of the module itself is no call
    assert walk.switches == 3  # into low, back to high for the thread, into low
    assert walk.packages == ("high", "low")


def test_a_package_is_what_stands_right_below_the_root() -> None:
    assert package_of("accounting/theorems/basic_and_advanced.py") == "accounting"
    assert package_of("errors.py") == "errors"

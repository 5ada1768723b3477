"""How many files three everyday walks lead through: `python -m benchmarks.walks [--json]`.

    plan      a mean is planned for a new study of a CSV file
    release   that plan is released: charged, run, recorded, answered
    slider    the page moves the weight of a mean whose draft was priced before, and the server prices it again

Every call of a Python function in `src/farthing` is recorded, in all threads, in the order of time. Calls made while a
module is being imported do not count. A *module* is on the way if at least one of its functions was called; a *switch*
is a call that follows a call in another package, where a package is what stands right below `farthing`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import farthing as ft

SOURCE = Path(ft.__file__).parent


@dataclass(frozen=True)
class Walk:
    """The files a piece of work led through, in the order in which they were first entered."""

    name: str
    files: tuple[str, ...]
    calls: int
    switches: int

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages of these files, in the order in which they were first entered."""
        return tuple(dict.fromkeys(map(package_of, self.files)))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "walk": self.name,
            "modules": len(self.files),
            "switches": self.switches,
            "calls": self.calls,
            "packages": list(self.packages),
            "files": list(self.files),
        }


def package_of(file: str) -> str:
    """`accounting` of `accounting/theorems/basic_and_advanced.py`, `errors` of `errors.py`."""
    return file.partition("/")[0].removesuffix(".py")


class Tracer:
    """Every call into a folder of source, in all threads that start after the tracer does."""

    def __init__(self, source: Path = SOURCE) -> None:
        self._prefix = f"{source}/"
        self._visited: list[str] | None = None
        self._imports: defaultdict[int, int] = defaultdict(int)  # how many imports a thread is inside of

    def __enter__(self) -> Tracer:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def walk(self, name: str, act: Callable[[], object]) -> Walk:
        """What `act` led through."""
        self._visited = []
        try:
            act()
        finally:
            visited, self._visited = self._visited, None
        packages = [package_of(file) for file in visited]
        switches = sum(before != after for before, after in pairwise(packages))
        return Walk(name, tuple(dict.fromkeys(visited)), len(visited), switches)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        code, visited, thread = frame.f_code, self._visited, threading.get_ident()
        if code.co_name == "<module>":
            self._imports[thread] += 1 if event == "call" else -1
        elif visited is None or event == "return" or self._imports[thread]:
            return
        elif code.co_filename.startswith(self._prefix):
            visited.append(code.co_filename.removeprefix(self._prefix))


def walks() -> list[Walk]:
    """The three walks, in this order and in this process."""
    with Tracer() as tracer, tempfile.TemporaryDirectory() as folder:
        return [*_study_walks(tracer, Path(folder)), _slider_walk(tracer, Path(folder))]


def _study_walks(tracer: Tracer, folder: Path) -> Iterator[Walk]:
    source = folder / "visitors.csv"
    source.write_text("age\n" + "".join(f"{20 + row % 50}\n" for row in range(1000)), encoding="utf-8")
    visitors = ft.dataset(source, schema={"age": (0, 110)})
    study = ft.Study(visitors, epsilon=1.0, delta=1e-9, account="people", ledger=folder / "visitors.db")
    plans = []
    yield tracer.walk("plan", lambda: plans.append(study.plan(ft.mean("age"))))
    yield tracer.walk("release", lambda: plans[0].release())


def _slider_walk(tracer: Tracer, folder: Path) -> Walk:
    from benchmarks.server import served

    with _closed(*served(folder)) as post:
        mean: dict[str, Any] = {"kind": "mean", "column": "age"}
        draft = {"dataset": "people", "statistics": [mean], "expected": {"rows": 10_000}}
        post(draft, False)
        mean["weight"] = 1.25
        return tracer.walk("slider", lambda: post(draft, False))


@contextmanager
def _closed(post: Callable[[dict[str, Any], bool], None], close: Callable[[], None]) -> Iterator[Any]:
    try:
        yield post
    finally:
        close()


def main() -> None:
    """Print the walks, as text or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description="three walks, traced")
    parser.add_argument("--json", action="store_true", help="one list of objects, with every file")
    options = parser.parse_args()
    taken = walks()
    if options.json:
        print(json.dumps([walk.as_json() for walk in taken], indent=1))
        return
    print("walk     modules  switches")
    for walk in taken:
        print(f"{walk.name:<8} {len(walk.files):7,}  {walk.switches:8,}")
    for walk in taken:
        print(f"\n{walk.name}, in the order of first entry:", *walk.files, sep="\n  ")


if __name__ == "__main__":
    main()

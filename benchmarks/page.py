"""`python -m benchmarks.page [--statistics 30] [--changes 60]`: the page in a real browser, before `farthing serve`.

Measured: how long `serve` takes until it answers, what the browser loads, and the time from a change of a slider
until the plan that answers it has been painted (the page's own `performance.measure`, named "replan"). It is moved
twice: step by step, each step after the last one was painted; and dragged, one step every 16 ms, so that steps wait for
each other and some are never painted. Run it on a quiet machine: server and browser share its cores.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

CHROMIUM = "/usr/bin/chromium"
MOST_SECONDS, MOST_MEGABYTES, MOST_MILLISECONDS = 3.0, 1.5, 100.0  # the targets
SCREENS = (
    "#/",
    "#/wizard",
    "#/dataset/people",
    "#/plan/people",
    "#/ask/people",
    "#/ledger",
    "#/learn",
    "#/people",
)
COLUMNS = {"age": [0, 110], "income": [0, 250_000], "bmi": [10, 60]}


@dataclass(frozen=True)
class Served:
    """A server of its own process."""

    url: str
    login: str
    seconds: float


@dataclass(frozen=True)
class Timings:
    """Milliseconds from change to paint, and of that the time until the server had answered."""

    name: str
    milliseconds: tuple[float, ...]
    asking: tuple[float, ...]

    def at(self, share: float) -> float:
        """The time that `share` of the changes did not exceed."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def make_table(folder: Path, rows: int = 1000) -> None:
    """People who do not exist."""
    lines = [f"{n % 90},{'FM'[n % 2]},{1000 * (n % 97)},{18 + n % 30}" for n in range(rows)]
    (folder / "people.csv").write_text("age,sex,income,bmi\n" + "\n".join(lines) + "\n", encoding="utf-8")


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """`farthing serve` on that folder, from the start of its process until it is told to stop."""
    program = str(Path(sys.executable).with_name("farthing"))
    command = [program, "serve", "--json", "--quiet", "--ledger", str(folder / "study.db"), "--data", str(folder)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            facts = json.loads(process.stdout.readline())
            with urllib.request.urlopen(facts["url"].rstrip("/") + "/healthz") as answer:
                answer.read()
            yield Served(facts["url"].rstrip("/"), facts["login"], time.perf_counter() - start)
        finally:
            process.terminate()


def draft_of(count: int) -> dict[str, Any]:
    """So many different statistics of one table."""
    entries: list[dict[str, Any]] = []
    for band in range(0, 110, 10):
        where = f"age >= {band}"
        entries += [
            {"kind": "count", "where": where, "by": "sex"},
            {"kind": "mean", "column": "income", "where": where},
            {"kind": "histogram", "column": "bmi", "bins": 5 + band // 10, "where": where},
            {"kind": "median", "column": "bmi", "where": where},
            {"kind": "std", "column": "income", "where": where},
        ]
    return {"dataset": "people", "statistics": entries[:count], "expected": {"rows": 50_000}}


def declared(page: Any) -> None:
    """The dataset, by the page's own way to the server."""
    columns: dict[str, Any] = {name: {"range": bounds} for name, bounds in COLUMNS.items()}
    body = {"name": "people", "source": "people.csv", "unit": None, "max_rows": 1, "neighbours": "add-remove",
            "rows": None, "columns": {**columns, "sex": {"categories": ["F", "M"]}}, "epsilon": 1.0,
            "delta": 1e-9}  # fmt: skip
    page.evaluate("async (body) => (await import('./static/js/api.js')).post('/datasets', body)", body)


def saved(page: Any, draft: dict[str, Any]) -> str:
    """The id of the draft on the server."""
    found = page.evaluate("async (body) => (await import('./static/js/api.js')).post('/plans', body)", draft)
    return str(found["id"])


def replans(page: Any) -> list[float]:
    """The page's own measurements so far."""
    found: list[float] = page.evaluate("performance.getEntriesByName('replan').map((entry) => entry.duration)")
    return found


def cleared(page: Any) -> None:
    """Forget what was measured."""
    page.evaluate("performance.clearMeasures('replan'); performance.clearResourceTimings()")
    page.evaluate("performance.setResourceTimingBufferSize(5000)")


def asked(page: Any) -> tuple[float, ...]:
    """How long the browser waited for each quick price."""
    found = page.evaluate(
        """performance.getEntriesByType('resource').filter((entry) => entry.name.includes('proof=false'))
           .map((entry) => entry.duration)"""
    )
    return tuple(found)


def stepped(page: Any, changes: int) -> Timings:
    """One change at a time, each after the last was painted."""
    slider = page.locator(".statistic input[type=range]").first
    slider.focus()
    cleared(page)
    for change in range(changes):
        slider.press("ArrowRight" if change % 40 < 20 else "ArrowLeft")
        while len(replans(page)) <= change:
            page.wait_for_timeout(5)
    return Timings("one step at a time", tuple(replans(page)), asked(page))


def dragged(page: Any, changes: int) -> Timings:
    """As fast as a hand drags: most steps wait for the answer to an earlier one."""
    cleared(page)
    page.evaluate(
        """(changes) => new Promise((done) => {
          const slider = document.querySelectorAll(".statistic input[type=range]")[1];
          let step = 0;
          const move = () => {
            slider.value = String(2 * Math.sin(step / 8));
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            step += 1;
            if (step < changes) setTimeout(move, 16);
            else done();
          };
          move();
        })""",
        4 * changes,
    )
    page.wait_for_timeout(1000)
    return Timings("dragged, a step every 16 ms", tuple(replans(page)), asked(page))


def main() -> None:
    """Measure, print a table."""
    from playwright.sync_api import expect, sync_playwright

    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description="the page, in a browser")
    parser.add_argument("--statistics", type=int, default=30)
    parser.add_argument("--changes", type=int, default=60)
    options = parser.parse_args()
    console = Console() if sys.stdout.isatty() else Console(width=110)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        make_table(folder)
        with served(folder) as site:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.goto(site.login)
            page.get_by_role("heading", level=1).first.wait_for()
            declared(page)
            plan = saved(page, draft_of(options.statistics))
            loaded = _weights(browser, page, site)
            page.goto(f"{site.url}/#/plan/people/{plan}")
            expect(page.locator(".error-number")).to_have_count(options.statistics, timeout=60_000)
            expect(page.locator("#plan-proof")).to_have_text(re.compile("^(proven|estimate)$"), timeout=60_000)
            timings = [stepped(page, options.changes), dragged(page, options.changes)]
            browser.close()
    console.print(_table(site, loaded, timings, options.statistics))


def _weights(browser: Any, page: Any, site: Served) -> dict[str, int]:
    """Bytes of everything that the screens load, each file once, by a browser that has seen none of it."""
    context = browser.new_context(storage_state=page.context.storage_state())
    loaded: dict[str, int] = {}

    def note(answer: Any) -> None:
        if answer.status == 200 and "/api/" not in answer.url:
            loaded[answer.url] = int(answer.headers["content-length"])

    fresh = context.new_page()
    fresh.on("response", note)
    for screen in SCREENS:
        fresh.goto(f"{site.url}/{screen}")
        fresh.get_by_role("heading", level=1).first.wait_for()
        fresh.wait_for_load_state("networkidle")
    context.close()
    return loaded


def _table(site: Served, loaded: dict[str, int], timings: list[Timings], count: int) -> Table:
    table = Table(title=f"The page, with a plan of {count} statistics")
    for head in ("what", "measured", "target"):
        table.add_column(head, justify="left" if head == "what" else "right")
    table.add_row("serve, from its process to its first answer", f"{site.seconds:.2f} s", f"< {MOST_SECONDS:g} s")
    weight = sum(loaded.values()) / 1e6
    table.add_row(f"weight of all screens, {len(loaded)} files", f"{weight:.3f} MB", f"< {MOST_MEGABYTES:g} MB")
    for one in timings:
        words = f"slider to painted plan, {one.name} ({len(one.milliseconds)} paints)"
        table.add_row(
            f"{words}, median", f"{statistics.median(one.milliseconds):.0f} ms", f"< {MOST_MILLISECONDS:g} ms"
        )
        table.add_row(f"{words}, 95 of 100", f"{one.at(0.95):.0f} ms", f"< {MOST_MILLISECONDS:g} ms")
        table.add_row("    of that, waiting for the server, median", f"{statistics.median(one.asking):.0f} ms", "")
    return table


if __name__ == "__main__":
    main()

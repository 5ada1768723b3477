"""How long the server takes to price a plan: `python -m benchmarks.server`.

One app in this process, called through its whole stack (doors, guard, models) without a network. "first" is the first
question about these statistics; "moved" another weight of one of them, as a slider sends it; "proof" the same with the
proven cost. All beside the proof of 30 statistics, which is what a slider must not wait for.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SIZES = (1, 10, 30)
MOVES = 20
TARGET = 0.060  # seconds for a moved slider of 30 statistics

_COLUMNS = {
    "age": {"range": [0, 110]},
    "sex": {"categories": ["F", "M"]},
    "region": {"categories": list("abcdefgh")},
    "income": {"range": [0, 200_000], "real": True},
    "bmi": {"range": [10, 60], "real": True},
}


def entries(count: int) -> list[dict[str, Any]]:
    """So many different statistics of one table."""
    found: list[dict[str, Any]] = [
        {"kind": "count", "by": "sex"},
        {"kind": "mean", "column": "age"},
        {"kind": "mean", "column": "income", "by": "sex"},
        {"kind": "median", "column": "income"},
        {"kind": "histogram", "column": "age", "bins": 11},
        {"kind": "histogram", "column": "region"},
        {"kind": "contingency", "columns": ["sex", "region"]},
        {"kind": "mean", "column": "bmi", "by": "region"},
        {"kind": "std", "column": "bmi"},
        {"kind": "count"},
    ]
    for place in range(count - len(found)):
        where = f"age < {20 + 3 * place}"
        found.append(
            {"kind": "count", "by": "sex", "where": where}
            if place % 3
            else {"kind": "mean", "column": "income", "where": where}
        )
    return found[:count]


def prices(sizes: tuple[int, ...] = SIZES, moves: int = MOVES) -> list[dict[str, Any]]:
    """Seconds for each number of statistics: first, moved (median and worst of many), proof."""
    with tempfile.TemporaryDirectory() as folder:
        post, close = served(Path(folder))
        try:
            post({"dataset": "people", "statistics": [{"kind": "sum", "column": "age"}]}, True)  # imports
            return [_priced(post, size, moves) for size in sizes]
        finally:
            close()


def _priced(post: Callable[[dict[str, Any], bool], None], size: int, moves: int) -> dict[str, Any]:
    asked = entries(size)
    draft = {"dataset": "people", "statistics": asked, "expected": {"rows": 10_000}}
    first = _seconds(lambda: post(draft, False))
    times = []
    for move in range(moves):
        asked[0]["weight"] = 1.0 + move / moves
        times.append(_seconds(lambda: post(draft, False)))
    proof = _seconds(lambda: post(draft, True))
    return {
        "statistics": size,
        "first": first,
        "moved": statistics.median(times),
        "worst": max(times),
        "proof": proof,
        "again": _seconds(lambda: post(draft, True)),
    }


def _seconds(act: Callable[[], None]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def served(folder: Path) -> tuple[Callable[[dict[str, Any], bool], None], Callable[[], None]]:
    """A way to post a draft to a server over a fresh ledger, as a curator with a token."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the test client about its own future
        from starlette.testclient import TestClient

    from farthing.server import Settings, create_app
    from farthing.server.auth.api_tokens import new_secret, secret_hash
    from farthing.server.store import now
    from farthing.server.store.store_tables import tokens, users

    data = folder / "data"
    data.mkdir()
    (data / "people.csv").write_text("age,sex,region,income,bmi\n30,F,a,1000,22\n", encoding="utf-8")
    app = create_app(Settings(ledger=str(folder / "study.db"), data=data, log_requests=False))
    state, word = app.state.farthing, new_secret("ft_")
    later = now() + 3600 * 10**9
    with state.store.begin() as connection:
        connection.execute(users.insert().values(name="ada", role="curator", disabled=False, created=now()))
        connection.execute(
            tokens.insert().values(
                id="bench", user="ada", label="bench", hash=secret_hash(word), scopes="read plan manage",
                expires=later, created=now(),
            )
        )  # fmt: skip
    client = TestClient(app, base_url="http://127.0.0.1:8642", headers={"Authorization": f"Bearer {word}"})
    declaration = {
        "name": "people", "source": "people.csv", "columns": _COLUMNS, "epsilon": 1.0, "delta": 1e-6,
    }  # fmt: skip
    made = client.post("/api/v1/datasets", json=declaration)
    assert made.status_code == 201, made.text

    def post(draft: dict[str, Any], proof: bool) -> None:
        answer = client.post("/api/v1/plans/price", params={"proof": proof}, json=draft)
        assert answer.status_code == 200, answer.text

    return post, state.close


def show_prices(console: Console, rows: list[dict[str, Any]]) -> None:
    """The table, each time also as a part of the longest proof."""
    longest = max(row["proof"] for row in rows)
    table = Table("statistics", "first", "moved (median)", "moved (worst)", "proof", "proof again", title="price")
    for row in rows:
        cells = [
            f"{1000 * row[name]:,.0f} ms ({row[name] / longest:.2f})"
            for name in ("first", "moved", "worst", "proof", "again")
        ]
        table.add_row(str(row["statistics"]), *cells)
    console.print(table)
    last = rows[-1]
    met = "met" if last["moved"] < TARGET else "MISSED"
    console.print(f"a slider of {last['statistics']} statistics in under {1000 * TARGET:.0f} ms: {met}")


if __name__ == "__main__":
    show_prices(Console(width=125), prices(moves=int(sys.argv[1]) if len(sys.argv) > 1 else MOVES))

"""People by a key, known and unknown, beside PipelineDP and OpenDP: `python -m benchmarks.keys --peers PYTHON`.

Two made-up tables: 20,000 people with one to six of 2,000 diagnoses, whose frequencies fall as in a directory of rare
diseases; and 6,000 people with up to fourteen of 400 products, whose frequencies fall more slowly. A person keeps at
most as many keys as one may count under (`--most`: 1, 3 and 10), so that nothing is left out and errors are those of
the tools. All tools get the same rows, the same epsilon and delta, and the same public facts: a person counts under
at most so many keys, once each. `PYTHON` is an interpreter that has pipeline-dp and opendp; each peer runs there, in
every variant it offers.

Reported for 30 releases each: how many keys are found, and the root mean squared error of counts: over the keys that
every tool finds in every release, and over those that OpenDP finds in every release. (Over all that a tool finds it
would be the worse the more small keys it finds.) `--known` counts people by keys that are public.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

RELEASES = 30
TABLES = ("diagnoses", "products")
MOST = (1, 3, 10)
BUDGETS = ((1.0, 1e-6), (0.5, 1e-8))
BASE = "OpenDP, Laplace threshold"

Rows = list[tuple[int, str]]
Releases = list[dict[str, float]]


def rows(table: str, most: int) -> Rows:
    """(person, key), each pair once, and at most so many of one person."""
    draw = np.random.default_rng(7)
    people, keys, fall = (20_000, 2_000, 1.0) if table == "diagnoses" else (6_000, 400, 0.7)
    shares = 1 / np.arange(2, keys + 2) ** fall
    many = 1 + (draw.binomial(5, 0.2, people) if table == "diagnoses" else draw.binomial(13, 0.4, people))
    chosen = draw.choice(keys, int(many.sum()), p=shares / shares.sum())
    own: dict[int, dict[str, None]] = {}
    for person, key in zip(np.repeat(np.arange(people), many).tolist(), chosen.tolist(), strict=True):
        kept = own.setdefault(person, {})
        if len(kept) < most:
            kept[f"k{key:04d}"] = None
    return sorted((person, key) for person, kept in own.items() for key in kept)


def truth(table: Rows) -> dict[str, int]:
    """How many people have each key."""
    counts: dict[str, int] = {}
    for _, key in table:
        counts[key] = counts.get(key, 0) + 1
    return counts


def always(releases: Releases) -> set[str]:
    """The keys that every release has."""
    return set.intersection(*(set(release) for release in releases)) if releases else set()


def error(releases: Releases, counts: dict[str, int], keys: set[str]) -> float:
    """The root mean squared error over some keys, where they were found."""
    errors = [release[key] - counts[key] for release in releases for key in keys if key in release]
    return math.sqrt(float(np.mean(np.square(errors)))) if errors else math.nan


def summary(every: dict[str, Releases], counts: dict[str, int]) -> list[dict[str, Any]]:
    """For each tool: keys found on average, its error on the keys that all find, and on those that OpenDP finds."""
    common = set.intersection(*map(always, every.values()))
    base = always(every.get(BASE, next(iter(every.values()))))
    lines = []
    for tool, releases in every.items():
        found = float(np.mean([sum(key in counts for key in release) for release in releases]))
        lines.append(
            {
                "tool": tool,
                "keys": found,
                "rmse": error(releases, counts, common),
                "rmse_base": error(releases, counts, base),
                "common": len(common),
            }
        )
    return lines


def visits_of(table: Rows, most: int, schema: Any) -> Any:
    """The table as a dataset."""
    import pyarrow

    import farthing as ft

    people, keys = zip(*table, strict=True)
    frame = pyarrow.table({"person": people, "key": keys})
    return ft.dataset(frame, unit="person", max_rows=most, schema={"key": schema}, name="visits")


def studied(visits: Any, most: int, budget: tuple[float, float], share: float | None = None) -> Releases:
    """A study of its own for every release: in one step, or the keys for a share of the budget and then the counts."""
    import farthing as ft

    found = []
    for _ in range(RELEASES):
        with tempfile.TemporaryDirectory() as folder:
            study = ft.Study(visits, epsilon=budget[0], delta=budget[1], ledger=f"{folder}/study.db")
            if share is not None:
                study.discover("key", epsilon=share * budget[0], delta=share * budget[1], max_keys=most).release()
            answer = study.plan(ft.count(by="key", of="people", max_cells=most)).release()
            counts = answer[next(iter(answer))]
            found.append(dict(zip(counts.labels, np.asarray(counts.values).tolist(), strict=True)))
            study.close()
    return found


def known(table: Rows, most: int, budget: tuple[float, float], keys: list[str]) -> Releases:
    """Releases of the counts of keys that are public."""
    import farthing as ft

    visits, found = visits_of(table, most, keys), []
    for _ in range(RELEASES):
        with tempfile.TemporaryDirectory() as folder:
            study = ft.Study(visits, epsilon=budget[0], delta=budget[1], ledger=f"{folder}/study.db")
            answer = study.plan(ft.count(by="key", of="people", max_cells=most)).release()
            counts = answer[next(iter(answer))]
            found.append(dict(zip(counts.labels, np.asarray(counts.raw).tolist(), strict=True)))
            study.close()
    return found


def peers(
    python: str, table: Rows, most: int, budget: tuple[float, float], public: list[str], tool: str
) -> dict[str, Any]:
    """What the peers release, in their own interpreter; of public keys where there are some."""
    with tempfile.TemporaryDirectory() as folder:
        facts: dict[str, Any] = {"table": table, "most": most, "epsilon": budget[0], "delta": budget[1]}
        facts |= {"releases": RELEASES, "tool": tool}
        (Path(folder) / "facts.json").write_text(json.dumps({**facts, "public": public}))
        names = [str(Path(folder) / name) for name in ("facts.json", "out.json")]
        subprocess.run([python, str(Path(__file__).with_name("keys_peers.py")), *names], check=True)
        return dict(json.loads((Path(folder) / "out.json").read_text()))


def compared(
    table: str, most: int, budget: tuple[float, float], python: str | None, *, is_known: bool, tool: str
) -> None:
    """One case: every tool, one line for each."""
    pairs = rows(table, most)
    counts = truth(pairs)
    public = sorted(sorted(counts, key=lambda key: -counts[key])[:200]) if is_known else []
    if is_known:
        every = {"known: farthing": known(pairs, most, budget, public)}
    else:
        import farthing as ft

        visits = visits_of(pairs, most, ft.unknown("text"))
        every = {"farthing, one step": studied(visits, most, budget)}
        if most == 3:
            every["farthing, keys first (half of the budget)"] = studied(visits, most, budget, 0.5)
    for name, releases in (peers(python, pairs, most, budget, public, tool) if python else {}).items():
        if isinstance(releases, str):
            print(f"{name}: {releases}", file=sys.stderr)
        elif releases:
            every[name] = releases
    lines = summary(every, counts)
    print(
        f"{table}: {len(counts)} keys, at most {most} a person, epsilon {budget[0]:g}, delta {budget[1]:g}, "
        f"{RELEASES} releases; {lines[0]['common']} keys found by all"
    )
    for line in sorted(lines, key=lambda line: -float(line["keys"])):
        errors = f"rmse {line['rmse']:7.2f} (all find), {line['rmse_base']:7.2f} (OpenDP finds)"
        print(f"  {line['tool']:45} keys found {line['keys']:7.1f}   {errors}", flush=True)


def main() -> None:
    """Run all cases, and print a line for each tool."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys", description=__doc__.splitlines()[0])
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has pipeline-dp and opendp")
    parser.add_argument("--table", choices=TABLES, help="only this table")
    parser.add_argument("--most", type=int, help="only so many keys of a person")
    parser.add_argument("--peer", default="", help="only this peer: OpenDP, or PipelineDP, which takes minutes a case")
    parser.add_argument("--known", action="store_true", help="count people by keys that are public")
    options = parser.parse_args()
    for table in TABLES if options.table is None else (options.table,):
        for most in MOST if options.most is None else (options.most,):
            for budget in BUDGETS:
                compared(table, most, budget, options.peers, is_known=options.known, tool=options.peer)


if __name__ == "__main__":
    main()

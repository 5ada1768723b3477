"""People by a key, known and unknown, beside PipelineDP and OpenDP: `python -m benchmarks.keys --peers PYTHON`.

20,000 made-up people have one to six of 2,000 diagnoses, whose frequencies fall as in a directory of rare diseases. All
tools get the same rows, the same epsilon and delta, and the same public facts: a person counts under at most four keys,
once each. `PYTHON` is an interpreter that has pipeline-dp and opendp; each peer runs there, in every variant it offers.

Reported for 30 releases each: how many keys are found, and the root mean squared error of the counts of those keys that
all tools surely find. For known keys, the error over all of them.
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

from benchmarks.keys_peers import capped

PEOPLE, KEYS, MOST, EPSILON, DELTA, RELEASES = 20_000, 2_000, 4, 1.0, 1e-6, 30
SURE = 60  # the most frequent keys, which every tool finds


def rows() -> list[tuple[int, str]]:
    """(person, key), each pair once."""
    draw = np.random.default_rng(7)
    shares = 1 / np.arange(2, KEYS + 2)
    many = 1 + draw.binomial(5, 0.2, PEOPLE)
    keys = draw.choice(KEYS, int(many.sum()), p=shares / shares.sum())
    people = np.repeat(np.arange(PEOPLE), many)
    return sorted({(int(person), f"k{key:04d}") for person, key in zip(people, keys, strict=True)})


def truth(table: list[tuple[int, str]]) -> dict[str, int]:
    """How many people have each key."""
    counts: dict[str, int] = {}
    for _, key in table:
        counts[key] = counts.get(key, 0) + 1
    return counts


def summary(name: str, releases: list[dict[str, float]], counts: dict[str, int], sure: list[str]) -> dict[str, Any]:
    """Keys found on average, and the error on the sure ones."""
    errors = [release[key] - counts[key] for release in releases for key in sure if key in release]
    found = float(np.mean([sum(key in counts for key in release) for release in releases]))
    return {"tool": name, "keys": found, "rmse": math.sqrt(float(np.mean(np.square(errors)))), "n": len(errors)}


def ours(table: list[tuple[int, str]], share: float) -> list[dict[str, float]]:
    """A study of its own for every release: the keys for a share of the budget, then the counts for the rest."""
    import pyarrow

    import farthing as ft

    people, keys = zip(*table, strict=True)
    frame = pyarrow.table({"person": people, "key": keys})
    visits = ft.dataset(frame, unit="person", max_rows=6, schema={"key": ft.unknown("text")}, name="visits")
    found = []
    for _ in range(RELEASES):
        with tempfile.TemporaryDirectory() as folder:
            study = ft.Study(visits, epsilon=EPSILON, delta=DELTA, ledger=f"{folder}/study.db")
            study.discover("key", epsilon=share * EPSILON, delta=share * DELTA).release()
            answer = study.plan(ft.count(by="key", of="people", max_cells=MOST)).release()
            counts = answer[next(iter(answer))]
            found.append(dict(zip(counts.labels, np.asarray(counts.values).tolist(), strict=True)))
            study.close()
    return found


def one_step(table: list[tuple[int, str]]) -> list[dict[str, float]]:
    """The mechanism whose noisy counts come with the keys; a study does not use it, because of its selected counts."""
    from farthing.mechanisms import KeySelection

    selection = KeySelection(EPSILON, DELTA, MOST, with_counts=True)
    facts = {"table": table, "most": MOST}
    return [{key: float(n) for key, n in selection.release(capped(facts)).items()} for _ in range(RELEASES)]


def known(table: list[tuple[int, str]], keys: list[str]) -> list[dict[str, float]]:
    """Releases of the counts of keys that are public."""
    import pyarrow

    import farthing as ft

    people, own = zip(*table, strict=True)
    frame = pyarrow.table({"person": people, "key": own})
    visits = ft.dataset(frame, unit="person", max_rows=6, schema={"key": keys}, name="visits")
    found = []
    for _ in range(RELEASES):
        with tempfile.TemporaryDirectory() as folder:
            study = ft.Study(visits, epsilon=EPSILON, delta=DELTA, ledger=f"{folder}/study.db")
            answer = study.plan(ft.count(by="key", of="people", max_cells=MOST)).release()
            counts = answer[next(iter(answer))]
            found.append(dict(zip(counts.labels, np.asarray(counts.raw).tolist(), strict=True)))
            study.close()
    return found


def peers(python: str, table: list[tuple[int, str]], public: list[str]) -> dict[str, Any]:
    """What the peers release, in their own interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        facts = {"table": table, "most": MOST, "epsilon": EPSILON, "delta": DELTA, "releases": RELEASES}
        (Path(folder) / "facts.json").write_text(json.dumps({**facts, "public": public}))
        names = [str(Path(folder) / name) for name in ("facts.json", "out.json")]
        subprocess.run([python, str(Path(__file__).with_name("keys_peers.py")), *names], check=True)
        return dict(json.loads((Path(folder) / "out.json").read_text()))


def main() -> None:
    """Run all, and print one line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys", description=__doc__.splitlines()[0])
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has pipeline-dp and opendp")
    options = parser.parse_args()
    table = rows()
    counts = truth(table)
    often = sorted(counts, key=lambda key: -counts[key])
    sure, public = often[:SURE], sorted(often[:200])
    lines = [summary(f"farthing, {share:.0%} for the keys", ours(table, share), counts, sure) for share in (0.5, 0.25)]
    lines.append(summary("farthing, KeySelection with counts", one_step(table), counts, sure))
    lines.append(summary("known: farthing", known(table, public), counts, public))
    for name, releases in (peers(options.peers, table, public) if options.peers else {}).items():
        if isinstance(releases, str):
            print(f"{name}: {releases}", file=sys.stderr)
        elif releases is not None:
            lines.append(summary(name, releases, counts, public if name.startswith("known") else sure))
    print(f"{len(counts)} keys, {PEOPLE:,} people, epsilon {EPSILON:g}, delta {DELTA:g}, {RELEASES} releases")
    for line in sorted(lines, key=lambda line: (str(line["tool"]).startswith("known"), line["rmse"])):
        print(f"{line['tool']:45} keys found {line['keys']:7.1f}   rmse {line['rmse']:7.2f}")


if __name__ == "__main__":
    main()

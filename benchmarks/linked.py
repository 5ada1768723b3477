"""Linked tables on DuckDB beside the query that somebody would write by hand: `python -m benchmarks.linked`.

10 million visits of 500,000 people and 10 million drugs, in Parquet files. Both count the drugs of at most ten rows a
person by ward and sex. The query by hand bounds the rows of a person as farthing does, and trusts the keys: farthing
also makes sure that a visit's number leads to one person and to one row. Each runs in a process of its own; times are
of the processor.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEOPLE = 500_000
VISITS = 10_000_000
KEPT = 10
LIMIT = "4GiB"  # of the query by hand, which does not fit in the 512 MiB that farthing gives itself, nor in 1 GiB
BY_HAND = """
SELECT ward, sex, count(*) FROM (
    SELECT person_id, ward, row_number() OVER (PARTITION BY person_id ORDER BY draw) AS place
    FROM (SELECT v.person_id, v.ward, random() AS draw FROM '{0}/drugs.parquet' d JOIN '{0}/visits.parquet' v
          ON d.visit_id = v.visit_id)
) JOIN '{0}/persons.parquet' USING (person_id) WHERE place <= {1} GROUP BY ALL
"""


def make(folder: Path, visits: int = VISITS, people: int = PEOPLE) -> None:
    """Made-up tables; nobody is in them."""
    from farthing.data import connection

    run = connection().con.execute
    tables = {
        "persons": f"SELECT range AS person_id, if(hash(range) % 2 = 0, 'F', 'M') AS sex FROM range({people})",
        "visits": f"SELECT range AS visit_id, hash(range) % {people} AS person_id, "
        f"['A', 'B', 'C'][(1 + hash(range + 7) % 3)::BIGINT] AS ward FROM range({visits})",
        "drugs": f"SELECT hash(range + 11) % {visits} AS visit_id, "
        f"['x', 'y'][(1 + hash(range + 13) % 2)::BIGINT] AS drug FROM range({visits})",
    }
    for name, query in tables.items():
        run(f"COPY (SELECT * REPLACE ({_keys(name)}) FROM ({query})) TO '{folder}/{name}.parquet'")


def _keys(name: str) -> str:
    keys = {"persons": ["person_id"], "visits": ["visit_id", "person_id"], "drugs": ["visit_id"]}[name]
    return ", ".join(f"{key}::BIGINT AS {key}" for key in keys)


def by_hand(folder: Path) -> int:
    """How many drugs there are, by the query that is written by hand."""
    from farthing.data import connection

    tables = connection(memory_limit=LIMIT).con
    tables.execute("SET enable_progress_bar = false")
    rows = tables.execute(BY_HAND.format(folder, KEPT)).fetchall()
    return sum(number for _, _, number in rows)


def by_farthing(folder: Path) -> int:
    """The same number, by linked tables."""
    import farthing as ft
    from farthing.data import Count

    tables = ft.linked(
        persons=ft.table(folder / "persons.parquet", schema={"sex": ["F", "M"]}),
        visits=ft.table(folder / "visits.parquet", schema={"ward": ["A", "B", "C"]}),
        drugs=ft.table(folder / "drugs.parquet", schema={"drug": ["x", "y"]}),
        unit="persons.person_id",
        keys={"visits.person_id": "persons.person_id", "drugs.visit_id": "visits.visit_id"},
        max_rows={"visits": KEPT, "drugs": KEPT},
    )
    drugs = tables["drugs"].join("visits").join("persons")
    return int(drugs.exact({"n": Count(by=["ward", "sex"])})["n"].sum())


def main(words: list[str]) -> None:
    """Make the tables, run both, three times in turn, and print what each took."""
    if len(words) == 2:
        way, folder = words
        start = time.process_time()
        number = {"hand": by_hand, "farthing": by_farthing}[way](Path(folder))
        took = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"rows": number, "seconds": took, "MiB": peak}))
        return
    with tempfile.TemporaryDirectory() as place:
        make(Path(place))
        taken: dict[str, list[float]] = {"hand": [], "farthing": []}
        for _ in range(3):
            for way, times in taken.items():
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.linked", way, place], check=True, capture_output=True, text=True
                )
                facts = json.loads(done.stdout)
                times.append(facts["seconds"])
                print(f"{way}: {facts['rows']:,} rows, {facts['seconds']:.1f} s, {facts['MiB']:.0f} MiB", flush=True)
        print(f"ratio: {min(taken['farthing']) / min(taken['hand']):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])

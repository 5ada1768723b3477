"""Are these the same people? `python -m benchmarks.sketches [--sizes N ...]`: overlaps estimated beside overlaps known.

Two tables of N units each, which share a known part; the seconds are those of the processor for one sketch, beside
those of counting the distinct units of the same table in plain SQL.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

SHARES = (0.0, 0.05, 0.5, 0.97, 1.0)
SIZES = (1_000, 30_000, 1_000_000, 10_000_000)


def measure(size: int, folder: Path, seed: int = 0) -> tuple[float, float, float]:
    """The largest error of any share, in points; seconds of a sketch; seconds of a count of distinct units."""
    import duckdb
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import farthing as ft
    from farthing.data.unit_sketch import UnitSketch

    def sketch(first: int, name: str) -> UnitSketch:
        ids = np.random.default_rng(seed).permutation(np.arange(first, first + size))
        pq.write_table(pa.table({"who": ids, "x": np.ones(size)}), folder / name)
        return UnitSketch.of(ft.dataset(str(folder / name), unit="who", max_rows=1, schema={"x": (0.0, 9.0)}))

    own = sketch(seed * 10**9, "own.parquet")
    errors = []
    for share in SHARES:
        other = sketch(seed * 10**9 + size - round(share * size), "other.parquet")
        errors += [abs(own.share_in(other).value - share), abs(other.share_in(own).value - share)]
    start = time.process_time()
    UnitSketch.of(ft.dataset(str(folder / "own.parquet"), unit="who", max_rows=1, schema={"x": (0.0, 9.0)}))
    middle = time.process_time()
    duckdb.execute(f"SELECT count(DISTINCT who) FROM '{folder / 'own.parquet'}'").fetchall()
    return 100 * max(errors), middle - start, time.process_time() - middle


def main() -> None:
    """Measure each size and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{'units':>12}  {'largest error':>13}  {'sketch':>8}  {'distinct':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            error, seconds, plain = measure(size, Path(folder), options.seed)
            print(f"{size:12,}  {error:6.2f} points  {seconds:6.2f} s  {plain:6.2f} s", flush=True)


if __name__ == "__main__":
    main()

"""PyDP's part of `benchmarks.bounds`, run by the interpreter that has it: FOLDER RELEASES EPSILON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def main() -> None:
    """Means of every table of the folder, as JSON; None where PyDP found no bounds."""
    from pydp.algorithms.laplacian import BoundedMean

    folder, releases, epsilon = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    said: list[list[float | None]] = []
    for file in sorted(folder.glob("*.npy"), key=lambda path: int(path.stem)):
        values = np.load(file).tolist()
        means: list[float | None] = []
        for _ in range(releases):
            try:
                means.append(BoundedMean(epsilon=epsilon, dtype="float").quick_result(values))
            except RuntimeError:
                means.append(None)
        said.append(means)
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()

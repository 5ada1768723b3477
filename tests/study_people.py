"""A small table of people who do not exist, for tests of studies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA: dict[str, Any] = {"sex": ["F", "M"], "age": (0, 110), "income": (0, 250_000)}


def table(rows: int = 400) -> pa.Table:
    """People who do not exist."""
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "sex": np.where(rng.random(rows) < 0.5, "F", "M"),
            "age": rng.integers(0, 111, rows),
            "income": rng.integers(20_000, 60_000, rows),
        }
    )

"""How a synthesis went, round by round, from noisy numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from farthing.adaptive.synthesis.transcript import Transcript


def rounds_of(
    found: Transcript, names: Sequence[str], standard_error: Callable[[int], float], total: float
) -> list[dict[str, Any]]:
    """For each chosen table: its columns, its cells, the model's error there before it, and the error of its noise.

    Both errors are total variations, as a share of all rows. The first is estimated from the noisy table: squared
    differences exceed the model's own by the variance of the noise, and that is taken off.
    """
    rounds = []
    for table in found.chosen:
        assert table.expected is not None
        error = standard_error(table.shares)
        gaps = np.abs(table.values - table.expected).astype(float)
        shrunk = np.sqrt(
            np.maximum(float(np.sum(gaps**2)) - gaps.size * error**2, 0.0) / np.sum(gaps**2).clip(1e-9)
        )
        rows = max(total, 1.0)
        rounds.append(
            {
                "columns": [names[column] for column in table.columns],
                "cells": int(table.values.size),
                "error_before": min(1.0, float(gaps.sum() * shrunk) / 2 / rows),
                "noise": min(1.0, gaps.size * error * (2 / np.pi) ** 0.5 / 2 / rows),
            }
        )
    return rounds

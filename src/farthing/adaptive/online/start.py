"""The start: noisy counts of all cells, recorded as drawn, turned into positive weights."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.online.plan import AnswererPlan
from farthing.adaptive.online.weights import UNIFORM_PART
from farthing.mechanisms.randomness import Source


def drawn_start(plan: AnswererPlan, cells: NDArray[np.int64], source: Source) -> dict[str, Any]:
    """The noisy cells, as whole numbers in text; nothing for a start from nothing."""
    if plan.opening is None:
        return {"start": "none"}
    noisy = plan.opening._answer(cells.reshape(-1), source)
    packed = zlib.compress(noisy.astype("<i8").tobytes(), level=6)
    return {"start": plan.start, "cells": base64.b64encode(packed).decode("ascii")}


def read_start(record: Mapping[str, Any]) -> NDArray[np.int64] | None:
    """The noisy cells that were recorded; None for a start from nothing."""
    if record["start"] == "none":
        return None
    return np.frombuffer(zlib.decompress(base64.b64decode(record["cells"])), dtype="<i8").astype(np.int64)


def starting_weights(
    plan: AnswererPlan, shape: tuple[int, ...], noisy: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    """Positive weights for all cells, of total at most (1 + alpha) rows, a part of them spread evenly."""
    even = np.full(shape, plan.rows / plan.cells)
    if noisy is None:
        return even
    weights = np.maximum(noisy.reshape(shape), 0).astype(np.float64)
    total = float(np.clip(noisy.sum(), 1, (1 + plan.alpha) * plan.rows))
    found = weights * (total / max(float(weights.sum()), 1.0))
    return (1 - UNIFORM_PART) * found + UNIFORM_PART * even

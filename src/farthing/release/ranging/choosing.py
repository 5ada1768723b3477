"""The strategy that measures a workload with the least error, for each kind of noise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.release.noise import Kind
from farthing.release.ranging.transforms import StrategyTransform
from farthing.release.strategies.base import Norm, Strategy
from farthing.release.strategies.optimising import kept, optimised
from farthing.release.strategies.registry import find
from farthing.release.workloads.base import Workload

Floats = NDArray[np.float64]
Loss = Callable[[StrategyTransform], float]

NAMES = ("auto", "identity", "hierarchical", "wavelet", "tree", "optimised")
"""What may be measured for ranges; `auto` takes the best that needs no time."""

NORMS: dict[Kind, Norm] = {"laplace": "l1", "gaussian": "l2"}


def transforms_for(
    workloads: Sequence[Workload],
    loss: Loss,
    kinds: Sequence[Kind],
    groups: int,
    places: NDArray[np.int64] | None,
    name: str = "auto",
) -> dict[Kind, StrategyTransform]:
    """For each kind of noise the transform of the least error.

    Strategies are made for each of `workloads` and compared by `loss`, the mean variance of what will be answered when
    every measured number has noise of variance 1. The transforms of the kinds are scaled so that their losses are about
    the same: then one number says what noise does to the answers, whichever kind a planner chooses.
    """
    found: dict[Kind, StrategyTransform] = {}
    for kind in kinds:
        tried = [
            _weighted(strategy, workload, NORMS[kind])
            for workload in workloads
            for strategy in candidates(workload, NORMS[kind], name)
        ]
        found[kind] = min(tried, key=lambda each: relative_loss(each, loss, kind))
    least = min(loss(each) for each in found.values())
    return {
        kind: replace(_heavier(each, (loss(each) / least) ** 0.5), groups=groups, places=places)
        for kind, each in found.items()
    }


def relative_loss(transform: StrategyTransform, loss: Loss, kind: Kind) -> float:
    """The loss at a sensitivity of 1: what is compared between transforms."""
    columns = transform.columns
    return loss(transform) * (columns.l1**2 if kind == "laplace" else columns.l2_squared)


def candidates(workload: Workload, norm: Norm, name: str) -> tuple[Strategy, ...]:
    """The strategies worth trying: the one that was named, else those that take no time, or were found before."""
    known = checked_name(name)
    if known == "optimised":
        return (optimised(workload, norm),)
    if known != "auto":
        return (find(known, workload, norm),)
    found = (*_quick(workload, norm), kept(workload, norm))
    return tuple(strategy for strategy in found if strategy is not None)


@lru_cache(maxsize=512)
def _weighted(strategy: Strategy, workload: Workload, norm: Norm) -> StrategyTransform:
    """Columns of one size are common, and the best weights are the same for all of them."""
    return StrategyTransform.weighted(strategy, workload, norm)


@lru_cache(maxsize=512)
def _quick(workload: Workload, norm: Norm) -> tuple[Strategy, ...]:
    return (find("identity", workload, norm), find("tree", workload, norm))


def checked_name(name: str) -> str:
    """The name of a strategy for ranges, as it is spelt here."""
    known = name.strip().lower().replace("optimized", "optimised")
    if known in NAMES or re.fullmatch(r"hierarchical-[1-9][0-9]{0,5}", known):
        return known
    raise InvalidValue(
        "strategy", name, f"must be one of {', '.join(NAMES)}", "hierarchical-16 fixes the branching"
    )


def _heavier(transform: StrategyTransform, factor: float) -> StrategyTransform:
    """All weights times a factor of at least 1, so that rounding to whole numbers changes little."""
    return replace(transform, weights=tuple(round(weight * factor) for weight in transform.weights))

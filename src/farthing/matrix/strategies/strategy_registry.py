"""Strategies by name, and which of them suit a workload."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from farthing.errors import InvalidValue
from farthing.matrix.strategies.kronecker import product_of_axes
from farthing.matrix.strategies.published_strategies import Privelet, equal_hierarchical, queries_themselves
from farthing.matrix.strategies.strategy import Norm, Strategy
from farthing.matrix.strategies.tree_strategies import (
    TreeStrategy,
    best_hierarchical,
    hierarchical,
    weighted_tree,
)
from farthing.matrix.strategies.wavelet import WaveletStrategy
from farthing.matrix.workloads.workload import Workload


@dataclass(frozen=True)
class IdentityStrategy(TreeStrategy):
    """A tree of one level over a domain of any shape.

    >>> strategy = cells_alone((3, 4))
    >>> strategy.shape, strategy.levels
    ((3, 4), (Level(name='cells', size=12, l1=1, l2_squared=1),))
    """

    domain: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the domain."""
        return self.domain


def cells_alone(shape: tuple[int, ...]) -> IdentityStrategy:
    """The identity over a domain; refused where nobody could count the cells one by one.

    >>> cells_alone((10,) * 30)
    Traceback (most recent call last):
    farthing.errors.InvalidValue: strategy='identity': has too many cells to measure each (at most 2^40).
    """
    size = math.prod(shape)
    if not size <= 2**40:
        raise InvalidValue("strategy", "identity", "has too many cells to measure each (at most 2^40)")
    return IdentityStrategy("identity", size, (1,), shape)


_SILENT_SECONDS = 1.0


class Notice:
    """Progress for people who wait: silent for a second, then one line; on a terminal it counts up and goes away.

    It reports public facts only: how far a search over strategies is.

    >>> notice = Notice("looking for a strategy")
    >>> notice(0.5)
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self._line = ""

    def __call__(self, fraction: float) -> None:
        """Say how far it is; 1.0 is the end."""
        stream = sys.stderr
        if stream is None or (not self._line and time.monotonic() - self._began < _SILENT_SECONDS):
            return
        if not stream.isatty():
            if not self._line and fraction < 1:
                self._line = f"farthing: {self._what}"
                print(self._line, file=stream, flush=True)
            return
        line = "" if fraction >= 1 else f"farthing: {self._what} ({100 * min(fraction, 1.0):.0f}%)"
        print(f"\r{line:<{len(self._line)}}", end="\r" if not line else "", file=stream, flush=True)
        self._line = line


Maker = Callable[[Workload, Norm], Strategy]

NAMES = ("identity", "hierarchical", "wavelet", "tree", "optimised", "marginals", "fourier")
"""The data-independent strategies; `hierarchical-16` fixes the branching of a hierarchy."""
PUBLISHED = ("equal-hierarchical", "privelet", "queries")
"""As in papers: equal shares (branching 2, or 16 in `equal-hierarchical-16`), Privelet, noise on every query."""
CHOOSING = ("auto", "dawa", "dawa-published")
"""Not one strategy: `auto` chooses; `dawa` and `dawa-published` pay to look at the data, the latter as in the paper."""


def checked_name(name: object) -> str:
    """A name as it is spelt here; unknown ones are refused with the list.

    >>> checked_name("Optimized"), checked_name("hierarchical-16")
    ('optimised', 'hierarchical-16')
    >>> checked_name("haar")
    Traceback (most recent call last):
    farthing.errors.InvalidValue: strategy='haar': must be one of auto, dawa, dawa-published, identity, hierarchical,
        wavelet, tree, optimised, marginals, fourier, equal-hierarchical, privelet, queries; hierarchical-16 fixes the
        branching.
    """
    text = name.strip().lower().replace("optimized", "optimised") if isinstance(name, str) else ""
    if text in CHOOSING + NAMES + PUBLISHED or _branching(text) is not None:
        return text
    rule = f"must be one of {', '.join(CHOOSING + NAMES + PUBLISHED)}"
    raise InvalidValue("strategy", name, rule, "hierarchical-16 fixes the branching")


def find(name: str, workload: Workload, norm: Norm) -> Strategy:
    """The named strategy at its best for this workload and norm; over several axes, a product of one for each.

    >>> from farthing.matrix.workloads import prefix
    >>> find("hierarchical-10", prefix(1000), "l1").levels[1].name
    'blocks of 100'
    """
    known = checked_name(name)
    if known in CHOOSING:
        raise InvalidValue("strategy", name, "must name one strategy here", f"use one of {', '.join(NAMES)}")
    if known == "identity":
        return cells_alone(workload.shape)
    if known == "optimised":
        from farthing.matrix.strategies.optimisation import optimised

        return optimised(workload, norm, progress=search_notice(workload))
    if known == "marginals":
        from farthing.matrix.strategies.marginal_strategy import marginal_strategy

        return marginal_strategy(workload, norm)
    if known == "fourier":
        from farthing.matrix.strategies.fourier import FourierStrategy

        return FourierStrategy(workload)
    if known == "queries":
        return queries_themselves(workload)
    maker = _one_axis(known)
    return maker(workload, norm) if len(workload.shape) == 1 else product_of_axes(known, workload, norm, maker)


def suitable(workload: Workload) -> tuple[str, ...]:
    """The names worth trying on a workload, without those that need to be optimised first.

    >>> from farthing.matrix.workloads import marginals, prefix
    >>> suitable(prefix(64)), suitable(marginals((2, 2, 2), way=2))
    (('identity', 'hierarchical', 'wavelet', 'tree'), ('identity', 'marginals', 'fourier'))
    """
    from farthing.matrix.strategies.marginal_strategy import marginal_tables

    if len(workload.shape) > 1 and marginal_tables(workload) is not None:
        two_valued = all(size == 2 for size in workload.shape)
        return ("identity", "marginals", "fourier") if two_valued else ("identity", "marginals")
    return ("identity", "hierarchical", "wavelet", "tree")


def search_notice(workload: Workload) -> Notice:
    """What is reported while an optimised strategy is looked for."""
    return Notice(
        f"looking for the best strategy for {workload.queries:,} queries over {workload.cells:,} cells; "
        "it is kept for the next time"
    )


def _one_axis(name: str) -> Maker:
    """What makes a strategy of this name over one axis."""
    branching = _branching(name)
    if name.startswith("equal-"):
        return lambda workload, norm: equal_hierarchical(workload.cells, branching or 2)
    if branching is not None:
        return lambda workload, norm: hierarchical(workload.cells, branching)
    makers: dict[str, Maker] = {
        "hierarchical": best_hierarchical,
        "tree": weighted_tree,
        "wavelet": lambda workload, norm: WaveletStrategy(workload.cells),
        "privelet": lambda workload, norm: Privelet(workload.cells),
    }
    return makers[name]


def _branching(name: str) -> int | None:
    """The branching that a name such as hierarchical-16 fixes."""
    kind, _, number = name.removeprefix("equal-").partition("-")
    return int(number) if kind == "hierarchical" and number.isdecimal() and 2 <= int(number) <= 2**20 else None

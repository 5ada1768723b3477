"""Strategies by name, and which of them suit a workload."""

from __future__ import annotations

from collections.abc import Callable

from farthing.errors import InvalidValue
from farthing.release.notices import Notice
from farthing.release.strategies.base import Norm, Strategy
from farthing.release.strategies.hierarchical import best_hierarchical, hierarchical
from farthing.release.strategies.identity import cells_alone
from farthing.release.strategies.kronecker import product_of_axes
from farthing.release.strategies.wavelet import WaveletStrategy
from farthing.release.strategies.weighted_tree import weighted_tree
from farthing.release.workloads.base import Workload

Maker = Callable[[Workload, Norm], Strategy]

NAMES = ("identity", "hierarchical", "wavelet", "tree", "optimised", "marginals", "fourier")
"""The data-independent strategies; `hierarchical-16` fixes the branching of a hierarchy."""
CHOOSING = ("auto", "dawa")
"""Names that are not one strategy: `auto` chooses, `dawa` looks at the data and pays for it."""


def checked_name(name: object) -> str:
    """A name as it is spelt here; unknown ones are refused with the list.

    >>> checked_name("Optimized"), checked_name("hierarchical-16")
    ('optimised', 'hierarchical-16')
    >>> checked_name("haar")
    Traceback (most recent call last):
    farthing.errors.InvalidValue: strategy='haar': must be one of auto, dawa, identity, hierarchical, wavelet,
        tree, optimised, marginals, fourier; hierarchical-16 fixes the branching.
    """
    text = name.strip().lower().replace("optimized", "optimised") if isinstance(name, str) else ""
    if text in CHOOSING + NAMES or _branching(text) is not None:
        return text
    rule = f"must be one of {', '.join(CHOOSING + NAMES)}"
    raise InvalidValue("strategy", name, rule, "hierarchical-16 fixes the branching")


def find(name: str, workload: Workload, norm: Norm) -> Strategy:
    """The named strategy at its best for this workload and norm; over several axes, a product of one for each.

    >>> from farthing.release.workloads import prefix
    >>> find("hierarchical-10", prefix(1000), "l1").levels[1].name
    'blocks of 100'
    """
    known = checked_name(name)
    if known in CHOOSING:
        raise InvalidValue("strategy", name, "must name one strategy here", f"use one of {', '.join(NAMES)}")
    if known == "identity":
        return cells_alone(workload.shape)
    if known == "optimised":
        from farthing.release.strategies.optimising import optimised

        return optimised(workload, norm, progress=search_notice(workload))
    if known == "marginals":
        from farthing.release.strategies.marginal_strategy import marginal_strategy

        return marginal_strategy(workload, norm)
    if known == "fourier":
        from farthing.release.strategies.fourier import FourierStrategy

        return FourierStrategy(workload)
    maker = _one_axis(known)
    return (
        maker(workload, norm) if len(workload.shape) == 1 else product_of_axes(known, workload, norm, maker)
    )


def suitable(workload: Workload) -> tuple[str, ...]:
    """The names worth trying on a workload, without those that need to be optimised first.

    >>> from farthing.release.workloads import marginals, prefix
    >>> suitable(prefix(64)), suitable(marginals((2, 2, 2), way=2))
    (('identity', 'hierarchical', 'wavelet', 'tree'), ('identity', 'marginals', 'fourier'))
    """
    from farthing.release.strategies.marginal_strategy import marginal_tables

    if len(workload.shape) > 1 and marginal_tables(workload) is not None:
        two_valued = all(size == 2 for size in workload.shape)
        return ("identity", "marginals", "fourier") if two_valued else ("identity", "marginals")
    return ("identity", "hierarchical", "wavelet", "tree")


def search_notice(workload: Workload) -> Notice:
    """What is told while an optimised strategy is looked for."""
    return Notice(
        f"looking for the best strategy for {workload.queries:,} queries over {workload.cells:,} cells; "
        "it is kept for the next time"
    )


def _one_axis(name: str) -> Maker:
    """What makes a strategy of this name over one axis."""
    branching = _branching(name)
    if branching is not None:
        return lambda workload, norm: hierarchical(workload.cells, branching)
    makers: dict[str, Maker] = {
        "hierarchical": best_hierarchical,
        "tree": weighted_tree,
        "wavelet": lambda workload, norm: WaveletStrategy(workload.cells),
    }
    return makers[name]


def _branching(name: str) -> int | None:
    """The branching that a name such as hierarchical-16 fixes."""
    kind, _, number = name.partition("-")
    return (
        int(number) if kind == "hierarchical" and number.isdecimal() and 2 <= int(number) <= 2**20 else None
    )

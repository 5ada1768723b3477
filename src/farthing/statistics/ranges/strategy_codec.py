"""Transforms as plain data, and back: a few numbers for a tree, the matrix in short for any other strategy."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.optimisation.p_identity_error import Windows
from farthing.matrix.strategies.optimisation.p_identity_strategy import CellsAndSums
from farthing.matrix.strategies.strategy import Strategy
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.strategies.wavelet import WaveletStrategy
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.ranges.strategy_transforms import StrategyTransform


def stored_axis(axis: CellAxis) -> dict[str, Any]:
    """An axis as JSON-ready data.

    >>> stored_axis(CellAxis("age", Integers(0, 110), (0, 18, 110)))
    {'column': 'age', 'integers': [0, 110], 'edges': [0, 18, 110]}
    """
    edges = None if axis.edges is None else [_plain(edge) for edge in axis.edges]
    return {"column": axis.column, **_domain(axis.domain), "edges": edges}


def restored_axis(form: Mapping[str, Any]) -> CellAxis:
    """The axis of `stored_axis`.

    >>> restored_axis({"column": "sex", "categories": ["F", "M"], "edges": None}).labels
    ('F', 'M')
    """
    domain = _read_domain(form)
    read = date.fromisoformat if isinstance(domain, Dates) else lambda edge: edge
    edges = None if form["edges"] is None else tuple(read(edge) for edge in form["edges"])
    return CellAxis(form["column"], domain, edges)


def _domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Categories):
        return {"categories": list(domain.values)}
    if isinstance(domain, Flags):
        return {"flags": True}
    kind = {Integers: "integers", Reals: "reals", Dates: "dates"}[type(domain)]
    return {kind: [_plain(domain.lower), _plain(domain.upper)]}


def _read_domain(form: Mapping[str, Any]) -> Domain:
    if "categories" in form:
        return Categories(tuple(form["categories"]))
    if "flags" in form:
        return Flags()
    if "integers" in form:
        return Integers(*form["integers"])
    if "reals" in form:
        return Reals(*form["reals"])
    return Dates(*map(date.fromisoformat, form["dates"]))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def stored_transform(transform: StrategyTransform) -> dict[str, Any]:
    """A transform as JSON-ready data, without the places of counted cells: a query has all cells.

    >>> stored_transform(StrategyTransform(TreeStrategy("tree", 6, (4, 1)), (3, 5)))
    {'tree': 'tree', 'cells': 6, 'sizes': [4, 1], 'weights': [3, 5], 'groups': 1}
    """
    facts = {"weights": list(transform.weights), "groups": transform.groups}
    return {**_described(transform.strategy), **facts}


def restored_transform(form: Mapping[str, Any]) -> StrategyTransform:
    """The transform of `stored_transform`.

    >>> kept = stored_transform(StrategyTransform(WaveletStrategy(4), (1, 1, 2)))
    >>> restored_transform(kept).apply([1, 2, 3, 5])
    array([11, -5, -2, -4])
    """
    return StrategyTransform(_strategy(form), tuple(form["weights"]), form["groups"])


def _described(strategy: Strategy) -> dict[str, Any]:
    if isinstance(strategy, TreeStrategy):
        return {"tree": strategy.name, "cells": strategy.size, "sizes": list(strategy.sizes)}
    if isinstance(strategy, WaveletStrategy):
        return {"wavelet": strategy.name, "cells": strategy.size}
    if isinstance(strategy, CellsAndSums):
        windows = strategy.windows
        parts = {
            "own": strategy.own,
            "starts": windows.starts,
            "stops": windows.stops,
            "sums": strategy.weights,
        }
        return {
            "cells_and_sums": strategy.name,
            "cells": strategy.cells,
            **{key: _packed(part) for key, part in parts.items()},
        }
    matrix = np.asarray(strategy.matrix)  # type: ignore[attr-defined]
    return {"matrix": strategy.name, "shape": list(matrix.shape), "entries": _packed(matrix)}


def _strategy(form: Mapping[str, Any]) -> Strategy:
    if "tree" in form:
        return TreeStrategy(form["tree"], form["cells"], tuple(form["sizes"]))
    if "wavelet" in form:
        return WaveletStrategy(form["cells"], form["wavelet"])
    if "cells_and_sums" in form:
        own, starts, stops, sums = (_unpacked(form[key]) for key in ("own", "starts", "stops", "sums"))
        return CellsAndSums(form["cells_and_sums"], own, Windows(form["cells"], starts, stops), sums)
    return MatrixStrategy(form["matrix"], _unpacked(form["entries"]).reshape(form["shape"]))


def _packed(numbers: Any) -> str:
    """Whole numbers of up to 32 bits as text."""
    return base64.b64encode(zlib.compress(np.asarray(numbers).astype("<i4").tobytes(), 9)).decode()


def _unpacked(text: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4").astype(np.int64)

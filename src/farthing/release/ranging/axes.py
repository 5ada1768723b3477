"""The cells of columns as plain data, and back: what a stored release needs in order to be asked later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.release.counting.cells import CellAxis


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

"""Which search a column needs, and what the record of one says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.adaptive.discovery.key_search import key_finding, key_search
from farthing.adaptive.discovery.row_search import row_finding
from farthing.adaptive.discovery.search import Finding, Search
from farthing.adaptive.discovery.value_search import value_finding, value_search
from farthing.data import Dataset
from farthing.errors import InvalidValue


def search_of(
    dataset: Dataset,
    name: str,
    epsilon: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    max_keys: int | None = None,
) -> Search:
    """The search that a column needs, at a price.

    Args:
        dataset: The table, in which the column is declared as unknown.
        name: The column.
        epsilon: What the search may cost.
        delta: The delta of that; a search for a range needs none.
        confidence: How often it keeps its word.
        max_keys: How many values of text one unit counts for; by default 4, or its rows where these are fewer.

    Returns:
        The search.

    Raises:
        InvalidValue: If there is no such unknown column, or a number is wrong.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"born": ["1970-01-01"]}), schema={"born": ft.unknown("date")})
    >>> search_of(people, "born", 0.1).name
    'born'
    """
    if name not in dataset.unknown:
        there = ", ".join(dataset.unknown) or "none"
        raise InvalidValue("column", name, "must be declared as unknown", f"there are: {there}")
    if dataset.unknown[name].kind == "text":
        return key_search(dataset, name, epsilon, delta, max_keys)
    return value_search(dataset, name, epsilon, confidence)


def finding_of(facts: Mapping[str, Any]) -> Finding:
    """What a search has found, from what was recorded of it.

    Args:
        facts: The record, as `Search.finish` made it.

    Returns:
        The finding.

    >>> facts = {"name": "age", "kind": "whole number", "found": True, "lower": 0, "upper": 100, "confidence": 0.95}
    >>> finding_of({**facts, "sure": 90, "units": "rows"}).domain
    Integers(lower=0, upper=100)
    """
    made = {"rows": row_finding, "text": key_finding}
    return made.get(facts["kind"], value_finding)(facts)

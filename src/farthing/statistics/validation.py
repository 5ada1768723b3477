"""A statistic against a schema: every mistake is found before anything is planned, charged or read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from farthing.data.expressions import read
from farthing.data.schema import Categories, Domain, Flags, Integers, Reals, Schema
from farthing.errors import InvalidValue
from farthing.matrix.workloads.statistic_cells import cut_of
from farthing.statistics.counts.count_queries import group_axes, refuse_too_many
from farthing.statistics.ranges.cell_conditions import PAIRS, within_bound
from farthing.statistics.statistic import COUNT_FAMILY, MARGINALS, QUANTILES, RANGES, Statistic

_WHOLE = {"count", "histogram", "contingency", "ranges", "marginals", "sum", "quantile", "quantiles"}


def checked(statistic: Statistic, schema: Schema) -> Statistic:
    """The statistic, its predicate as text, or a refusal that says what to do."""
    if not isinstance(statistic, Statistic):
        raise InvalidValue(
            "statistic", statistic, "must be a statistic", 'for example count(by="sex") or mean("income")'
        )
    for name in statistic.columns:
        _refuse_unknown(name, schema, "column")
    for name in statistic.by:
        _refuse_unknown(name, schema, "by")
        if name in statistic.columns:
            raise InvalidValue("by", name, f"must not be what {statistic.name!r} is about", "leave it out")
    if statistic.rounded and statistic.kind not in _WHOLE:
        raise InvalidValue("rounded", True, f"must be left out: a {statistic.kind} is not a whole number")
    where = statistic.where
    if where is not None:
        condition = read(where, schema)
        if not condition.is_predicate:
            raise InvalidValue("where", condition.text, "must be true or false", "compare it with something")
        where = condition.text
    groups = group_axes(statistic.by, schema)
    if statistic.kind in MARGINALS:
        for chosen in combinations(statistic.columns, statistic.way):
            cut = tuple(cut_of(name, schema[name], statistic.bins_of(name)) for name in chosen)
            refuse_too_many(f"marginal of {' and '.join(chosen)}", (*groups, *cut))
    elif statistic.kind in (*COUNT_FAMILY, *RANGES):
        if statistic.ranges and isinstance(schema[statistic.column], Categories | Flags):
            raise InvalidValue(
                "ranges", statistic.ranges[0], f"must be left out for {statistic.column!r}, which has categories",
                "without them, any of its categories can be asked for",
            )  # fmt: skip
        if statistic.ranges:
            statistic = replace(statistic, ranges=_within_bounds(statistic, schema[statistic.column]))
        own = tuple(cut_of(name, schema[name], statistic.bins_of(name)) for name in statistic.columns)
        refuse_too_many(statistic.name, (*groups, *own))
        if statistic.kind == "cdf" and not hasattr(schema[statistic.column], "lower"):
            raise InvalidValue(
                "column",
                statistic.column,
                "must hold numbers or dates for a cdf",
                "use histogram for categories",
            )
    else:
        # A flag is 0 or 1 to a sum, so that its mean is a share; it has no quantiles to speak of.
        numbers = (Integers, Reals) if statistic.kind in QUANTILES else (Integers, Reals, Flags)
        for place, name in enumerate(statistic.columns):
            if statistic.kind == "linear_regression" and place and isinstance(schema[name], Categories):
                continue  # a feature: a flag for each category but the first
            if not isinstance(schema[name], numbers):
                raise InvalidValue(
                    "column", name, f"must hold numbers for a {statistic.kind}", "count or histogram takes any column"
                )  # fmt: skip
        refuse_too_many(statistic.name, groups)
    return replace(statistic, where=where)


def _within_bounds(statistic: Statistic, domain: Domain) -> tuple[tuple[Any, Any], ...]:
    """The listed ranges, none of which ends after the column does."""
    assert not isinstance(domain, Categories | Flags)
    found = tuple(within_bound(pair, domain) for pair in statistic.ranges)
    for pair, given in zip(found, statistic.ranges, strict=True):
        try:
            good = domain.lower <= pair[0] < pair[1] <= domain.upper
        except TypeError:
            raise InvalidValue(
                "ranges", given, f"must have ends of the kind of column {statistic.column!r}", PAIRS
            ) from None
        if not good:
            raise InvalidValue(
                "ranges", given,
                f"must lie within the bounds of {statistic.column!r}, {domain.lower} to {domain.upper}", PAIRS,
            )  # fmt: skip
    if len(set(found)) != len(found):
        raise InvalidValue("ranges", statistic.ranges, "must not hold the same range twice", PAIRS)
    return found


def checked_all(statistics: Sequence[Statistic], schema: Schema) -> tuple[Statistic, ...]:
    """Statistics of one plan: each checked, no two of one name."""
    if not statistics:
        raise InvalidValue("statistics", [], "must be one or more", 'for example count() or mean("income")')
    found = tuple(checked(statistic, schema) for statistic in statistics)
    seen: set[str] = set()
    for statistic in found:
        if statistic.name in seen:
            raise InvalidValue(
                "name",
                statistic.name,
                "must not stand for two statistics of one plan",
                "give one of them name=",
            )
        seen.add(statistic.name)
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is not known: the nearest ones, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 3, 0.5)
    if near:
        return f"did you mean {' or '.join(near)}"
    return f"there are: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}"


def _refuse_unknown(name: str, schema: Schema, argument: str) -> None:
    if name not in schema:
        raise InvalidValue(argument, name, "must be a column of the schema", nearest(name, schema))

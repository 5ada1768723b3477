"""How many rows are expected in which cells: from what the steward expects, else evenly and independently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.schema import Categories, Dates, Domain, Flags, Integers
from farthing.errors import InvalidValue
from farthing.release.counting.pieces import PieceAxis
from farthing.release.counting.questions import Question, question_of
from farthing.release.counting.refinement import Refinement, own_refinement
from farthing.release.facts import Facts, assumed_size
from farthing.release.statistic import Statistic

Floats = NDArray[np.float64]

SMALLER = 0.5
"""Groups and conditions whose size is not expected are predicted for this part of an equal share of the rows."""

_FEW = 8  # categories that are shown in an example

PRESENT = 0.75
"""If nothing is expected of a column, errors are predicted for this share of the rows having a value."""


def expected_rows(facts: Facts, where: Any = None, by: Sequence[str] = ()) -> Floats:
    """The expected number of rows in every cell of `by` among rows where the predicate holds; one number without `by`.

    Taken from `facts.expected` where a count of that name is given, else from the expected columns, as if they were
    independent of each other.
    """
    question = question_of(Statistic("count", where=where, by=tuple(by)), facts.schema)
    return expected_counts(facts, question)


def expected_counts(facts: Facts, question: Question, cells: Refinement | None = None) -> Floats:
    """The expected number of rows in every cell of a question; `cells` is its own refinement, if that is at hand."""
    given = facts.expected.get(question.statistic.name)
    if given is not None and question.statistic.kind != "cdf":
        return checked_expectation(question.statistic.name, given, question.cells)
    found = cells or own_refinement(question)
    share = 0.5 if found.by_itself else 1.0  # of a condition about which nothing better is known
    grows = question.statistic.for_population and question.statistic.kind != "cdf"
    amounts = (facts.most_rows if grows else facts.rows) * share * refined_shares(facts, found)
    return _added_up(found.members[0], amounts, question.cells)


def sizes_told(facts: Facts, where: Any, by: Sequence[str]) -> bool:
    """Whether somebody told how many rows meet a condition, or lie in each group."""
    if where is None and not by:
        return True
    question = question_of(Statistic("count", where=where, by=tuple(by)), facts.schema)
    if question.statistic.name in facts.expected:
        return True
    columns = {axis.column for axis in question.axes} | set(question.plain_atoms)
    return not question.conditions and columns <= set(facts.expected)


def shares_told(facts: Facts, question: Question) -> bool:
    """Whether somebody told how the rows lie over the cells of a question."""
    columns = {axis.column for axis in question.axes} | set(question.plain_atoms)
    return not question.conditions and columns <= set(facts.expected)


def refined_shares(facts: Facts, refinement: Refinement) -> Floats:
    """The expected share of rows in every refined cell."""
    shares = np.ones(1)
    for axis in refinement.axes:
        shares = (shares[:, None] * piece_shares(facts, axis)[None, :]).reshape(-1)
    inside = refinement.merge >= 0
    return _added_up(refinement.merge[inside], shares[inside], refinement.cells)


def checked_expectation(name: str, given: Any, cells: int) -> Floats:
    """An expected value for each cell, from one number or a list of as many."""
    try:
        values = np.asarray(given, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        values = np.empty(0)
    if len(values) == 1:
        values = np.repeat(values, cells)
    if len(values) != cells or not (np.isfinite(values) & (values >= 0)).all():
        raise InvalidValue(
            f"expected[{name!r}]", given, f"must be a number >= 0, or a list of {cells:,}, one for each cell"
        )
    return values


def piece_shares(facts: Facts, axis: PieceAxis) -> Floats:
    """The expected share of rows in every piece of a column, of those that are expected to have it."""
    if axis.form == "condition":
        return np.array([0.5, 0.5, 0.0])
    domain = facts.schema[axis.source]
    if isinstance(domain, Categories | Flags):
        raw = category_shares(facts, axis.source, axis.raw)
    elif axis.form == "values":
        raw = np.diff(_shares_below(facts, axis.source, domain, axis.raw), append=1.0)
    else:
        below = _shares_below(facts, axis.source, domain, [value for value, _ in axis.raw])
        raw = np.diff(below, prepend=0.0, append=1.0)
    return _added_up(np.asarray(axis.codes), facts.present(axis.source) * np.asarray(raw), axis.size)


def category_shares(facts: Facts, name: str, values: Sequence[Any]) -> Floats:
    """The expected share of every category: from weights or public values, else all alike."""
    given = facts.expected.get(name)
    if given is None:
        return np.full(len(values), 1.0 / len(values))
    rule = "must map categories to shares, or be a list of public values"
    few = ", ".join(f"{value!r}: {1 / len(values):.3g}" for value in values[:_FEW])
    way_out = f"for example {{{few}{', ...' if len(values) > _FEW else ''}}}"
    if isinstance(facts.schema[name], Flags):
        way_out = "give the shares of true and of false, such as 0.2 and 0.8"
    if isinstance(given, Mapping):
        weights = np.array([given.get(value, 0) for value in values], dtype=float)
        strange = [value for value in given if value is not None and value not in values]
    elif isinstance(given, list):
        weights = np.array([given.count(value) for value in values], dtype=float)
        strange = []
    else:
        raise InvalidValue(f"expected[{name!r}]", given, rule, way_out)
    if strange:
        rule = "must be a category" if isinstance(facts.schema[name], Categories) else "must be true or false"
        raise InvalidValue(f"expected[{name!r}]", strange[0], rule, way_out)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InvalidValue(f"expected[{name!r}]", given, rule, way_out)
    return np.asarray(weights / weights.sum())


def _shares_below(facts: Facts, name: str, domain: Domain, values: Sequence[Any]) -> Floats:
    """The expected share of rows below each of rising values."""
    if isinstance(domain, Dates):
        days = (domain.upper - domain.lower).days + 1
        return np.array([(value - domain.lower).days / days for value in values], dtype=np.float64)
    model = facts.column(name)
    points = np.asarray(values, dtype=np.float64)
    if not isinstance(domain, Integers):
        return model.share_below(points)
    if model.assumed:  # whole numbers, all alike
        return (points - domain.lower) / (domain.upper - domain.lower + 1)
    return np.where(points > domain.lower, model.share_below(points - 0.5), 0.0)


def assumptions_of(facts: Facts, columns: Sequence[str]) -> tuple[str, ...]:
    """What is assumed about rows and columns, in words."""
    found = []
    if facts.assumed_rows is not None:
        found.append(assumed_size(facts.assumed_rows))
    elif facts.counted is not None and not facts.rows_known:
        found.append(f"the table is assumed to have {facts.counted}; say expected={{'rows': ...}}")
    for name in columns:
        if name in facts.expected:
            continue
        domain = facts.schema[name]
        how = "over its categories" if isinstance(domain, Categories | Flags) else "between its bounds"
        found.append(f"{name} is assumed to be spread evenly {how}; say expected={{{name!r}: ...}}")
    return tuple(found)


def _added_up(places: NDArray[np.int64], amounts: Floats, cells: int) -> Floats:
    return np.bincount(places, weights=amounts, minlength=cells).astype(np.float64)

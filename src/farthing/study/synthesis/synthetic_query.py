"""Questions to a synthetic table: how many rows meet a condition, and what the check vouches for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.data import Count, dataset
from farthing.data.coded_rows import CodedAxis
from farthing.data.expressions import read
from farthing.data.expressions.syntax_tree import written_constant, written_name
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression, InvalidValue
from farthing.numerics.bounds import number_text
from farthing.statistics.cells.cell_axes import Axis
from farthing.statistics.cells.cell_queries import mask_of
from farthing.study.synthesis.synthetic_quality import Quality


@dataclass(frozen=True)
class SyntheticAnswer:
    """A count in a synthetic table.

    Args:
        value: How many rows, of those that were measured.
        fraction: The same as a share of the rows.
        error: How far off the count may be; None where nobody vouches for it.

    >>> SyntheticAnswer(510.0, 0.51, 30.0), SyntheticAnswer(12.0, 0.012, None)
    (510 ± 30, 12 (not vouched for))
    """

    value: float
    fraction: float
    error: float | None

    def __repr__(self) -> str:
        error = "(not vouched for)" if self.error is None else f"± {number_text(self.error)}"
        return f"{number_text(self.value, 6)} {error}"


def synthetic_answer(
    what: str | Mapping[str, Any], table: Any, schema: Schema, axes: Sequence[CodedAxis], quality: Quality
) -> SyntheticAnswer:
    """The answer of the synthetic rows."""
    text = condition_of(what) if isinstance(what, Mapping) else what
    expression = read(text, schema)
    if not expression.is_predicate:
        raise InvalidValue("query", text, "must be true or false", "compare a column with something")
    rows = dataset(table, schema=schema)
    count = int(rows.exact({"met": Count(where=text)})["met"])  # of synthetic rows: they are public
    fraction = count / table.num_rows if table.num_rows else 0.0
    pair = quality.holding(expression.columns)
    if pair is None or pair.at_most >= 1 or not _keeps_cells_whole(text, expression.columns, axes):
        return SyntheticAnswer(fraction * quality.rows, fraction, None)
    return SyntheticAnswer(fraction * quality.rows, fraction, pair.at_most * quality.rows)


def condition_of(choices: Mapping[str, Any]) -> str:
    """A mapping of columns to values, pairs (lo, hi) or lists of values, as a condition.

    >>> condition_of({"sex": "M", "age": (18, 65), "city": ["Paris", "Rome"]})
    "sex = 'M' and 18 <= age and age < 65 and city in ('Paris', 'Rome')"
    """
    parts = []
    for column, choice in choices.items():
        name = written_name(column)
        if isinstance(choice, tuple):
            low, high = map(written_constant, choice)
            parts.append(f"{low} <= {name} and {name} < {high}")
        elif isinstance(choice, list):
            parts.append(f"{name} in ({', '.join(map(written_constant, choice))})")
        else:
            parts.append(f"{name} = {written_constant(choice)}")
    if not parts:
        raise InvalidValue("query", {}, "must name at least one column")
    return " and ".join(parts)


def _keeps_cells_whole(text: str, columns: Sequence[str], axes: Sequence[CodedAxis]) -> bool:
    """Whether every cell lies inside or outside: what is within one was made up, and is not vouched for."""
    own = [_axis(axis) for axis in axes if axis.column in columns]
    try:
        mask_of(text, own)
    except (InvalidExpression, InvalidValue):
        return False
    return True


def _axis(axis: CodedAxis) -> Axis:
    if axis.labels is None:
        return Axis(axis.column, None, axis.edges, axis.domain)
    return Axis(axis.column, (*axis.labels, None) if axis.missing else axis.labels, None, axis.domain)

"""How many different values of a column are there that nobody listed: one number, for which each unit has at most some.

Which values they are never leaves the engine. A cell is brought into a bounded domain before it is compared, as for
`farthing.data.key_counts`: text of at most 100 bytes, folded by declared rules, or whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from farthing.data.aggregates.aggregate import Aggregate, AggregateQuery, Axis, Feature
from farthing.data.key_counts import keys_of
from farthing.data.schema import Schema, Unknown
from farthing.data.stability import Sensitivity
from farthing.data.unit_rows import Base

_SUM = "s0"


@dataclass(frozen=True)
class DistinctKeys(Aggregate):
    """How many values of a column at least one unit keeps; a unit keeps at most so many, chosen at random of its own.

    Args:
        column: A column of text or whole numbers.
        most: How many different values of one unit are kept; 1 where a unit is one row.
        rules: How cells are read: which blanks and capitals do not matter.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> drugs = pyarrow.table({"person": [1, 1, 2], "drug": ["x", "y", "x"]})
    >>> drugs = dataset(drugs, unit="person", max_rows=5, schema={"drug": Unknown("text")})
    >>> drugs.exact({"drugs": DistinctKeys("drug", 2, Unknown("text"))})["drugs"].tolist()
    2
    >>> drugs.sensitivity(DistinctKeys("drug", 2, Unknown("text"))).l1
    2
    """

    column: str
    most: int
    rules: Unknown

    by: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]
    where: ClassVar[Any] = None  # type: ignore[misc]
    of_presence: ClassVar[bool] = True

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        return ()

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One number, which no row adds to by itself: `DistinctKeysQuery` has it."""
        return (Feature(("different keys", repr(self)), (), 0, 1, _nothing),)

    def sensitivity(self, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """How far neighbours differ in which `rows` units come, go or are replaced.

        Statement:
            Let every unit keep at most k of its own different values, chosen by draws that belong to it alone. Fix all
            draws. The number of different kept values then differs by at most m k between two tables that differ in m
            units, whether these come, go or are replaced by others: l0 = 1, l1 = linf = m k, l2^2 = (m k)^2. As this
            holds for all draws, noise that is made for it is private on average over them too.
        Source: if C is what all other units keep, both numbers lie between |C| and |C| + m k. A mixture, over draws
            that both neighbours share, of pairs that are (epsilon, delta)-indistinguishable is so as well.
        Assumes: a row belongs to one unit at most; two values are one only if their bytes are equal.
        Direction: upper bound; attained by m units with k values that nobody else has.
        Checked by: tests/contracts/test_distinct_key_neighbours.py

        >>> DistinctKeys("drug", 3, Unknown("text")).sensitivity(Schema({}), 2, "add-remove")
        Sensitivity(l0=1, l1=6, l2_squared=36, linf=6)
        """
        far = rows * self.most
        return Sensitivity(l0=1, l1=far, l2_squared=far**2, linf=far)


@dataclass(frozen=True)
class DistinctKeysQuery(AggregateQuery):
    """The query for one of them: it looks at the table itself, whatever the bound on rows."""

    base: Base

    looks_at_all_rows: ClassVar[bool] = True

    def expression(self, table: Any) -> Any:
        """One row with the number of different values."""
        (own,) = self.aggregates.values()
        assert isinstance(own, DistinctKeys)
        keys = keys_of(self.base, own.column, (1,) * own.most, trim=own.rules.trim, lower=own.rules.lower)
        return keys.aggregate(**{_SUM: keys.count()})


def distinct_key_queries(aggregates: Mapping[str, DistinctKeys], schema: Schema, base: Base) -> list[DistinctKeysQuery]:
    """A query for each of them."""
    return [
        DistinctKeysQuery({name: each}, (), each.features(schema), schema, base) for name, each in aggregates.items()
    ]


def _nothing(table: Any) -> Any:
    raise AssertionError("no row adds to a number of different values")

"""`dataset(...)`: a table that stays in its engine, whose rows belong to units, and what may be done with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from farthing.data.aggregates.aggregate import (
    Aggregate,
    AggregateQuery,
    aggregate_queries,
    domain_of,
    features_of,
    names_of,
)
from farthing.data.aggregates.bin_edges import checked_edges, equal_edges
from farthing.data.aggregates.distinct_keys import DistinctKeys, distinct_key_queries
from farthing.data.aggregates.unit_bounds import Bounded, bounded_queries
from farthing.data.engines.engine import Progress, columns_of
from farthing.data.expressions import read
from farthing.data.key_counts import key_query
from farthing.data.ownership import Ownership
from farthing.data.public_face import PublicFace
from farthing.data.schema import (
    Categories,
    Dates,
    Domain,
    Flags,
    Schema,
    read_domain,
    refuse_alike,
)
from farthing.data.sources import Source
from farthing.data.split_parts import Parts
from farthing.data.stability import (
    REPLACE,
    UNBOUNDED,
    Run,
    Sensitivity,
    Stability,
    Step,
    definition_of,
)
from farthing.data.steps.per_unit import PerUnit, per_unit
from farthing.data.steps.row_steps import Bin, Clip, Derive, Select, Where, changes_of, lookup, narrowed, ranged
from farthing.data.steps.stability_steps import Explode, JoinOnUnit, Sample, Union
from farthing.data.unit_rows import AUTO, fresh_key, opened_base
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count, checked_real
from farthing.privacy.periods import Periods

_MASK = "a secret key, redrawn for every run"


def dataset(
    source: Any,
    *,
    unit: str | Sequence[str] | None = None,
    max_rows: int | str | None = None,
    schema: Mapping[str, object] | Schema,
    neighbours: str = "add-remove",
    rows: int | None = None,
    name: str | None = None,
    people: int | None = None,
) -> Dataset:
    """A table with its public facts: whose rows they are, how many each unit keeps, what the columns may hold.

    No row is read here: only names and types of columns.

    Args:
        source: A path or glob of CSV or Parquet files (opened by DuckDB in this process), a list of such paths, a
            pandas, polars or Arrow table, or an Ibis table of DuckDB, Postgres or Spark.
        unit: The column, or columns, that name a person; None for one row.
        max_rows: How many rows of each unit are kept, chosen uniformly at random; needed with a `unit`, unless every
            statistic has a bound of its own, as those of people do. "auto" where nobody knows how many a unit has:
            `Study.discover` then finds a bound.
        schema: For each column its public bounds, categories or kind; `farthing.unknown(...)` where nobody knows them.
        neighbours: "add-remove" or "replace".
        rows: The number of rows, where that is public.
        name: What a ledger calls the table, its file name by default. A frame that is joined to another table, or put
            below it, must be named, because everybody whose rows are read pays from the budget of that name.
        people: The number of units, where that is public; errors of statistics about people are predicted with it.

    Returns:
        A frozen dataset that can be transformed and studied.

    Raises:
        InvalidValue: If a declared column is absent, has a type that cannot hold its domain, or an argument is wrong.

    >>> import pyarrow
    >>> table = pyarrow.table({"person": [1, 1, 2], "age": [30, 31, 45], "sex": ["F", "F", "M"]})
    >>> people = dataset(table, unit="person", max_rows=2, schema={"age": (0, 110), "sex": ["F", "M"]})
    >>> print(people.where("age >= 18").stability())
    unit: all rows with one person; neighbours add or remove one unit
    V0  pyarrow.Table    keep 2  2 rows     at most 2 rows of a unit are kept, chosen at random
    V1  where age >= 18  x 1     2 rows     every row is kept or dropped by itself
    neighbours differ in at most 2 rows
    """
    base = opened_base(source, unit, max_rows, schema, neighbours, rows, name, people=people)
    return Dataset(base, (), base.schema)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(PublicFace):
    """A frozen description of a table and of what was done to it; every transformation returns a new one.

    Make one with `farthing.dataset`.

    Attributes:
        schema: The columns and their domains after all transformations.

    >>> import pyarrow
    >>> visits = dataset(pyarrow.table({"cost": [10.0, 20.0]}), schema={"cost": (0.0, 500.0)})
    >>> cheap = visits.where("cost < 15").derive(share="cost / 500")
    >>> cheap.schema["share"]
    Reals(lower=0.0, upper=1.0)
    >>> cheap
    Dataset(pyarrow.Table, one row, columns=cost, share)
    """

    # Public facts: see `PublicFace`

    @property
    def home(self) -> Dataset:
        """The table that names the units, with nothing done to it; this one's own unless several are linked."""
        base = self._base.home
        return Dataset(base, (), base.schema)

    def linked_table(self, name: str) -> Dataset:
        """Another of the tables that keys link to this one, with nothing done to it.

        Args:
            name: Its name among the linked tables.

        Returns:
            A dataset of the same units.

        Raises:
            InvalidValue: If no table of this name is linked to this one.

        >>> import pyarrow, farthing as ft
        >>> persons = ft.table(pyarrow.table({"id": [1]}), schema={})
        >>> visits = ft.table(pyarrow.table({"who": [1]}), schema={})
        >>> both = ft.linked(persons=persons, visits=visits, unit="persons.id", keys={"visits.who": "persons.id"})
        >>> both["visits"].linked_table("persons")
        Dataset(persons, unit=id, at most 1 rows, columns=)
        """
        base = self._base.beside(name)
        return Dataset(base, (), base.schema)

    def stability(self) -> Stability:
        """How far the rows of one unit can reach after every transformation.

        Returns:
            The chain of transformations, each with its factor and the reason for it; print it.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> print(people.where("age >= 18").group_privacy(2).stability())
        unit: one row; neighbours add or remove 2 units
        V0  pyarrow.Table    1    1 row      a unit is one row
        V1  where age >= 18  x 1  1 row      every row is kept or dropped by itself
        neighbours differ in at most 2 rows (1 a unit x 2 units)
        """
        more = (self._group, self._probability, self._base.place_name)
        return Stability(self._links(), self.unit, self.neighbours, self.reach, *more)

    def sensitivity(self, aggregate: Aggregate) -> Sensitivity:
        """How far neighbours move an aggregate, in whole steps of its grid.

        Args:
            aggregate: What is computed from the rows, such as `Sum("age")`.

        Returns:
            The sensitivity in the l0, l1, l2 and l-infinity norms.

        Raises:
            InvalidValue: If the aggregate does not fit the schema.

        >>> import pyarrow
        >>> from farthing.data import Count, Sum
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.sensitivity(Sum("age"))
        Sensitivity(l0=1, l1=110, l2_squared=12100, linf=110)
        """
        aggregate_queries({"aggregate": aggregate}, self.schema)  # refuses what cannot run
        if self._counts_everybody(aggregate):
            return Sensitivity(0, 0, 0, 0)
        features_of(aggregate, self.schema)
        if isinstance(aggregate, DistinctKeys):
            self._refuse_keys(aggregate)
            return aggregate.sensitivity(self.schema, self._group, self.neighbours)
        if isinstance(aggregate, Bounded):
            self._refuse_unit_bound()
            return aggregate.sensitivity(self.schema, self._group, self.neighbours)
        return aggregate.sensitivity(self.schema, self.stability().rows, self.neighbours)

    def has_all_values(self, column: str) -> bool:
        """Whether all cells of a column of its table are in it, as they are: steps may have added columns alone.

        Args:
            column: A column of the table.

        Returns:
            False for a column that was changed or came from another table, and where rows were left out or added.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.has_all_values("age"), people.where("age > 40").has_all_values("age")
        (True, False)
        """
        added = all(isinstance(step, Derive) and column not in changes_of(step) for step in self._steps)
        return added and self._base.is_whole and self._probability == 1

    # Transformations

    def where(self, predicate: Any) -> Dataset:
        """Only the rows for which a condition is true.

        Args:
            predicate: Text such as "age >= 18", or an Ibis deferred expression.

        Returns:
            A new dataset; a unit reaches no further in it than before.

        Raises:
            InvalidExpression: If the predicate cannot be read.
            InvalidValue: If it is not true or false.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30, 12]}), schema={"age": (0, 110)})
        >>> people.where("age >= 18").stability().links[-1].title
        'where age >= 18'
        >>> people.where("age + 1")
        Traceback (most recent call last):
        farthing.errors.InvalidValue: where='age + 1': must be true or false; compare it with something.
        """
        expression = read(predicate, self.schema)
        if not expression.is_predicate:
            raise InvalidValue("where", expression.text, "must be true or false", "compare it with something")
        return self._then(Where(expression))

    def derive(self, /, **columns: Any) -> Dataset:
        """New columns from expressions.

        Args:
            **columns: For each new column its expression, whose bounds follow by interval arithmetic, or a pair of the
                expression and its bounds, into which values are clipped.

        Returns:
            A new dataset with these columns after the others.

        Raises:
            InvalidValue: If an expression cannot be read, or its bounds do not follow and were not declared.

        >>> import pyarrow
        >>> table = pyarrow.table({"weight": [80.0], "height": [1.8]})
        >>> people = dataset(table, schema={"weight": (30.0, 200.0), "height": (1.0, 2.5)})
        >>> people.derive(bmi=("weight / (height * height)", (10.0, 60.0))).schema["bmi"]
        Reals(lower=10.0, upper=60.0)
        """
        derived = []
        for name, expression in columns.items():
            declared: Domain | None = None
            if isinstance(expression, tuple):
                if len(expression) != 2:
                    raise InvalidValue(name, expression, "must be an expression, or one with its bounds")
                expression, declared = expression[0], read_domain(name, expression[1])
            derived.append((name, read(expression, self.schema, declared)))
        return self._then(Derive(tuple(derived)))

    def select(self, *columns: str) -> Dataset:
        """Only these columns.

        Args:
            *columns: Their names.

        Returns:
            A new dataset whose schema has these columns, in this order.

        Raises:
            InvalidValue: If there is no column of that name.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30], "sex": ["F"]}), schema={"age": (0, 110), "sex": ["F", "M"]})
        >>> people.select("sex")
        Dataset(pyarrow.Table, one row, columns=sex)
        """
        names = names_of(columns, "columns")
        for name in names:
            domain_of(name, self.schema)
        return self._then(Select(names))

    def clip(self, /, **bounds: tuple[Any, Any]) -> Dataset:
        """Columns moved into narrower bounds.

        Args:
            **bounds: For each column its new (lower, upper); a value outside becomes the nearer bound.

        Returns:
            A new dataset; sums of these columns need less noise.

        Raises:
            InvalidValue: If the column has no bounds, or the new ones are of another kind.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"income": [30_000]}), schema={"income": (0, 1_000_000)})
        >>> people.clip(income=(0, 100_000)).schema["income"]
        Integers(lower=0, upper=100000)
        """
        domains = []
        for name, pair in bounds.items():
            domain = domain_of(name, self.schema)
            narrower = ranged(name, domain, pair)
            domains.append((name, narrowed(domain, narrower)))
        return self._then(Clip(tuple(domains)))

    def bin(self, /, **edges: int | Sequence[Any]) -> Dataset:
        """Numbers or dates turned into categories.

        Args:
            **edges: For each column the number of equal parts, or a list of edges.

        Returns:
            A new dataset in which these columns are categories.

        Raises:
            InvalidValue: If the column is not numeric or a date, or its edges do not increase within its bounds.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30]}), schema={"age": (0, 110)})
        >>> people.bin(age=[0, 18, 65, 110]).schema["age"].values
        ('0 to 17', '18 to 64', '65 to 110')
        """
        cuts = []
        for name, parts in edges.items():
            domain = domain_of(name, self.schema)
            equal = isinstance(parts, int)
            cut: Any = equal_edges if equal else checked_edges
            cuts.append((name, cut(name, domain, parts), domain))
        return self._then(Bin(tuple(cuts)))

    def explode(self, column: str, *, limit: int) -> Dataset:
        """One row for each of the first elements of a column of lists.

        Args:
            column: A declared column of lists.
            limit: How many elements of each list are kept, >= 1; a unit reaches that many times as far.

        Returns:
            A new dataset in which `column` holds one element a row.

        Raises:
            InvalidValue: If the column holds no lists or was exploded already, or the limit is below 1.

        >>> import pyarrow
        >>> visits = dataset(pyarrow.table({"codes": [["A", "B"], ["B"]]}), schema={"codes": ["A", "B"]})
        >>> visits.explode("codes", limit=3).rows_per_unit
        3
        """
        most = checked_count(limit, "limit")
        if column not in self._lists():
            raise InvalidValue("column", column, "must be a declared column of lists that was not exploded yet")
        if not most >= 1:
            raise InvalidValue("limit", limit, "must be a whole number >= 1")
        base = self._base
        return self._then(Explode(column, most, base.declared[column], partial(base.read, column)))

    def per_unit(self, /, **columns: Any) -> Dataset:
        """One row for each unit, made of the rows that are kept of it: people instead of visits.

        Args:
            **columns: What each new column is: "count()", "count(x)", "any(condition)", "all(condition)", "min(x)",
                "max(x)", "sum(x)", "mean(x)" or "distinct(x)", where x is a column or an expression; or a pair of such
                a text and bounds, into which values are clipped. Bounds follow from those of the rows.

        Returns:
            A new dataset with these columns and no others, in which a unit has one row.

        Raises:
            InvalidValue: If the unit is one row, or a text is none of these.

        >>> import pyarrow
        >>> from farthing.data import Count, Sum
        >>> table = pyarrow.table({"person": [1, 1, 2], "icu": [False, True, False], "cost": [10, 30, 20]})
        >>> visits = dataset(table, unit="person", max_rows=5, schema={"icu": bool, "cost": (0, 100)})
        >>> people = visits.per_unit(ever_icu="any(icu)", visits="count()", most=("max(cost)", (0, 50)))
        >>> people.schema["visits"], people.schema["most"], people.rows_per_unit
        (Integers(lower=1, upper=5), Integers(lower=0, upper=50), 1)
        >>> people.exact({"ever in the ICU": Count(where="ever_icu")})["ever in the ICU"].tolist()
        1
        """
        if not self.unit:
            raise InvalidValue("unit", None, "must be a column to have one row a unit", "name whose rows they are")
        return self._then(per_unit(columns, self.schema, len(self.unit), self.rows_per_unit))

    def sample(self, probability: float) -> Dataset:
        """A secret sample: every unit is kept independently with `probability`, drawn again for every aggregate.

        An aggregate's event is then `Sampled(event, dataset.probability)`.

        Args:
            probability: The probability with which a unit is kept, above 0 and at most 1.

        Returns:
            A new dataset that reads the sample.

        Raises:
            InvalidValue: If neighbours replace a unit, or groups of units are protected: neither has a price here.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.sample(0.25).probability
        0.25
        """
        share = checked_real(probability, "probability")
        if not 0 < share <= 1:
            raise InvalidValue("probability", probability, "must be above 0 and at most 1")
        if self.neighbours == REPLACE:
            raise InvalidValue(
                "neighbours",
                self.neighbours,
                "must be add-remove for a sample",
                "amplification is priced for that",
            )
        if self._group > 1:
            raise InvalidValue("group", self._group, "must be 1 for a sample", "members are sampled one by one")
        if not self.unit and any(isinstance(step, Union) for step in self._steps):
            raise InvalidValue(
                "unit",
                None,
                "must be a column to sample a union",
                "or sample a list of files opened as one source",
            )
        exact = Fraction(share)
        return replace(self._then(Sample(exact)), _probability=self._probability * exact)

    def group_privacy(self, size: int) -> Dataset:
        """Protect any `size` units together: everything they add is bounded at once.

        Args:
            size: How many units, >= 1.

        Returns:
            A new dataset whose neighbours differ in so many units.

        Raises:
            InvalidValue: If the size is below 1, or the dataset is a sample.

        >>> import pyarrow
        >>> from farthing.data import Count
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.group_privacy(5).sensitivity(Count()).l1
        5
        """
        members = checked_count(size, "size")
        if not members >= 1:
            raise InvalidValue("size", size, "must be a whole number >= 1")
        self._refuse_sampled("group_privacy")
        return replace(self, _group=self._group * members)

    def earliest(self, column: str, since: date) -> Dataset:
        """The rows from a day on; of each unit the earliest `max_rows` are kept, where others are chosen at random.

        Which days of a unit are kept is then no matter of chance, whenever the table is read: a row that comes later
        moves none of them to a later day. Rows of one day are chosen among at random. Rows without a date leave.

        Args:
            column: A column of dates of the source, which no step has changed.
            since: The first day; what is older leaves before rows are chosen.

        Returns:
            A new dataset with the same steps; a unit reaches no further in it than before.

        Raises:
            InvalidValue: If the column is not one of dates, a step has changed it, or the dataset is a union.

        >>> import pyarrow
        >>> from datetime import date
        >>> from farthing.data import Count
        >>> days = [date(2026, 1, 5), date(2026, 2, 7), date(2025, 3, 1)]
        >>> visits = pyarrow.table({"person": [1, 1, 1], "day": days})
        >>> bounds = (date(2020, 1, 1), date(2029, 12, 31))
        >>> first = dataset(visits, unit="person", max_rows=1, schema={"day": bounds}).earliest("day", date(2026, 1, 1))
        >>> first.exact({"January": Count(where="day < date '2026-02-01'")})["January"].tolist()
        1
        """
        domain = domain_of(column, self.schema)
        if not isinstance(domain, Dates) or not isinstance(since, date):
            raise InvalidValue("column", column, "must be a column of dates, with a day to begin at")
        self._refuse_changed(column)
        return replace(self, _base=replace(self._base, earliest=(column, since)))

    def during(self, column: str, every: str, period: str | date) -> Dataset:
        """The rows of one period by a column of dates, as it stands in the table; of them `max_rows` a unit are kept.

        Rows without a date are in no period. Bounds that the schema declares for the column move no row to another one.

        Args:
            column: A column of dates of the source.
            every: "day", "week", "month", "quarter" or "year".
            period: Its name, such as "2026-03", or a day that lies in it.

        Returns:
            A new dataset with the same steps. What is computed from it depends on no row of another period.

        Raises:
            InvalidValue: If the column is not one of dates of the table itself, or the dataset is a union.

        >>> import pyarrow
        >>> from datetime import date
        >>> from farthing.data import Count
        >>> visits = pyarrow.table({"person": [1, 1], "day": [date(2026, 1, 5), date(2026, 2, 7)]})
        >>> bounds = (date(2020, 1, 1), date(2029, 12, 31))
        >>> visits = dataset(visits, unit="person", max_rows=1, schema={"day": bounds})
        >>> [visits.during("day", "month", name).exact({"n": Count()})["n"].tolist() for name in ("2026-02", "2026-03")]
        [1, 0]
        """
        if not isinstance(self._base.declared.columns.get(column), Dates) or column in self._base.lists:
            raise InvalidValue("date", column, "must be a declared column of dates of the table itself")
        self._refuse_changed(column)
        return replace(self, _base=replace(self._base, during=(column, Periods.of(every, period, 1))))

    @property
    def period(self) -> tuple[str, Periods] | None:
        """The column of dates and the one period whose rows alone are read; None where others may be, too."""
        second = any(isinstance(step, Union | JoinOnUnit) for step in self._steps)
        return None if second or len(self._base.sources) > 1 else self._base.during

    def _refuse_changed(self, column: str) -> None:
        """Refuse a column of dates that is not the table's own."""
        joined = [set(step.other.schema) for step in self._steps if isinstance(step, JoinOnUnit)]
        made = [set(step.schema(self.schema)) for step in self._steps if isinstance(step, PerUnit)]
        changed = any(column in names for names in (*map(changes_of, self._steps), *joined, *made))
        own = self._base.own
        if column not in own.declared or column in own.lists or changed:
            raise InvalidValue("column", column, "must be a column of the table itself, which no step has changed")
        if any(isinstance(step, Union) for step in self._steps):
            raise InvalidValue("dataset", self.name, "must be one table", "take a union of what has no dates yet")

    def union(self, other: Dataset) -> Dataset:
        """The rows of both datasets; a unit that is in both reaches as far as in the two together.

        Args:
            other: A dataset of the same engine with the same unit, columns and domains.

        Returns:
            A new dataset; everybody whose rows are read pays for what is released from it.

        Raises:
            InvalidValue: If the two differ in anything but their rows, or one of them is a sample.

        >>> import pyarrow
        >>> north = dataset(pyarrow.table({"age": [30]}), schema={"age": (0, 110)}, name="north")
        >>> south = dataset(pyarrow.table({"age": [45]}), schema={"age": (0, 110)}, name="south")
        >>> north.union(south).rows_per_unit
        2
        """
        self._refuse_unlike(other, "union")
        if other.schema != self.schema:
            raise InvalidValue("other", list(other.schema), "must have the same columns and domains", "use select")
        return self._then(Union(other))

    def join(self, other: Any, *, on: str | Sequence[str] | None = None, how: str = "inner", **schema: Any) -> Dataset:
        """Another dataset on the unit, or a public table on columns whose values stand there once.

        Args:
            other: A `Dataset`, of which each row meets the rows of the same unit; the name of a table that this one is
                linked to by keys (`farthing.linked`); or a public table (a frame, an Arrow table, a list of
                dictionaries), of which the other columns are looked up.
            on: The columns by which a public table is looked up; left out for a dataset.
            how: "inner" drops rows without a match, "left" keeps them with missing cells.
            **schema: The domains of a public table's columns, where they cannot be read from it.

        Returns:
            A new dataset with the columns of both.

        Raises:
            InvalidValue: If the two do not fit together.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"town": ["A", "B"]}), schema={"town": ["A", "B"]})
        >>> people.join([{"town": "A", "coast": True}, {"town": "B", "coast": False}], on="town")
        Dataset(pyarrow.Table, one row, columns=town, coast)
        """
        if how not in ("inner", "left"):
            raise InvalidValue("how", how, "must be inner or left")
        if isinstance(other, str) and on is None and not schema:
            return self._join_linked(other, keep=how == "left")
        if not isinstance(other, Dataset):
            return self._then(lookup(other, on, self.schema, keep=how == "left", declared=schema))
        if on is not None or schema:
            raise InvalidValue("on", on, "must be left out: datasets are joined on the unit")
        if not self.unit:
            raise InvalidValue("unit", None, "must be a column to join two datasets", "name the unit in both")
        self._refuse_unlike(other, "join")
        both = [name for name in other.schema if name in self.schema]
        if both:
            raise InvalidValue("other", both, "must not have columns of the same name", "use select or derive")
        return self._then(JoinOnUnit(other, keep=how == "left"))

    def _join_linked(self, name: str, *, keep: bool) -> Dataset:
        """The columns of a table that this one's rows lead to; else each row beside each that its unit has there."""
        base = self._base.joined(name, keep, changed=bool(self._steps))
        if base is None:
            other = self._base.beside(name)
            return self.join(Dataset(other, (), other.schema), how="left" if keep else "inner")
        if self._steps:
            first = self._steps[0].link(1).title
            way_out = f"write .join({name!r}) before {first!r}"
            raise InvalidValue("other", name, "must be joined before other steps, because its key is not kept", way_out)
        return replace(self, _base=base, schema=base.schema)

    def split(self, by: str) -> Parts[Dataset]:
        """Disjoint parts, one for each value of a public column.

        Args:
            by: A column of categories or flags.

        Returns:
            A mapping from each value to the dataset of its rows: see `Parts`.

        Raises:
            InvalidValue: If the column has no list of values, or the dataset is a sample.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"sex": ["F", "M"]}), schema={"sex": ["F", "M"]})
        >>> list(people.split(by="sex"))
        ['F', 'M']
        """
        domain = domain_of(by, self.schema, "by")
        if isinstance(domain, Categories):
            values: tuple[Any, ...] = domain.values
        elif isinstance(domain, Flags):
            values = (False, True)
        else:
            raise InvalidValue("by", by, "must be a column of categories or flags", f"bin it first: bin({by}=10)")
        self._refuse_sampled("split")
        return Parts(self, by, {value: self.where(_equals(by, value)) for value in values})

    def part_definition(self, by: str) -> list[Any]:
        """What decides in which part of `split` a row of the table is: how one column is read and cut.

        Args:
            by: The column of the parts.

        Returns:
            The same for every dataset of the table that divides it into the same parts.

        Raises:
            InvalidValue: If `by` is no column of the table.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"sex": ["F", "M"]}), schema={"sex": ["F", "M"]})
        >>> people.part_definition("sex") == people.split("sex")["F"].part_definition("sex")
        True
        """
        base = self._base
        if by not in base.declared:
            raise InvalidValue("by", by, "must be a column of the table", "divide it before anything is derived")
        return [by, repr(base.declared[by]), sorted(base.unit), base.neighbours, *map(definition_of, self._cut)]

    def is_divisible(self) -> bool:
        """Whether nothing was done to the rows of the source but to cut columns into bins.

        Returns:
            True if its parts are parts of the table.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.bin(age=[18, 65]).is_divisible(), people.where("age > 18").is_divisible()
        (True, False)
        """
        return len(self._cut) == len(self._steps) and self._base.own is self._base

    def is_within(self, by: str, value: str) -> bool:
        """Whether every row of it is in one part of `split`.

        Args:
            by: The column of the parts.
            value: The value of the part, as text.

        Returns:
            True only where the part was chosen before anything else was done to the rows, and no other table is read.

        >>> import pyarrow
        >>> people = dataset(pyarrow.table({"sex": ["F", "M"]}), schema={"sex": ["F", "M"]})
        >>> women = people.split("sex")["F"]
        >>> [each.is_within("sex", "F") for each in (women, women.where("sex = 'M'"), people.where("sex <> 'M'"))]
        [True, True, False]
        """
        second = any(isinstance(step, Union | JoinOnUnit) for step in self._steps)
        if self.is_divisible() or second or self._base.own is not self._base:
            return False  # a second table may be the whole of the first
        schema = self._base.schema
        for step in self._cut:
            schema = step.schema(schema)
        parts = replace(self, _steps=self._cut, schema=schema).split(by)
        first = definition_of(self._steps[len(self._cut)])
        return any(str(each) == value and definition_of(part._steps[-1]) == first for each, part in parts.items())

    @property
    def _cut(self) -> tuple[Step, ...]:
        """The steps that cut columns into bins, before any other."""
        return tuple(takewhile(lambda step: isinstance(step, Bin), self._steps))

    # What leaves the engine

    def explain(self, aggregates: Mapping[str, Aggregate] | Aggregate) -> str:
        """The SQL that would run, with nothing run: the key of a sample is not in it.

        Args:
            aggregates: One aggregate, or several by name.

        Returns:
            One statement for each query, below the names of its aggregates.

        Raises:
            InvalidValue: If an aggregate does not fit the schema.

        >>> import pyarrow
        >>> from farthing.data import Count
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.explain(Count()).splitlines()[0]
        '-- aggregate'
        """
        named = aggregates if isinstance(aggregates, Mapping) else {"aggregate": aggregates}
        texts = []
        for query in self._queries(named):
            names = ", ".join(query.aggregates)
            texts.append(f"-- {names}\n{self._sql(query, _MASK, pretty=True)}")
        return "\n\n".join(texts)

    def exact(
        self, aggregates: Mapping[str, Aggregate], progress: Progress | None = None, *, one_sample: bool = False
    ) -> dict[str, np.ndarray[Any, Any]]:
        """RAW integers of the private rows, without any noise: for mechanisms only, never for people.

        Args:
            aggregates: What is computed, by name.
            progress: Called with a share between 0 and 1 while the engine runs.
            one_sample: Whether all of them read the same sample, so that they are one sampled event; by default each
                draws its own.

        Returns:
            One array for each aggregate, in the shape of its cells; of Python integers where 64 bits could be too few.

        Raises:
            InvalidValue: If an aggregate does not fit the schema, or one sample cannot serve all of them.
            EngineError: If the engine fails, or a text file changed while it was read.

        >>> import pyarrow
        >>> from farthing.data import Sum
        >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
        >>> people.exact({"years": Sum("age")})["years"].tolist()
        75
        """
        if not isinstance(aggregates, Mapping):
            raise InvalidValue("aggregates", aggregates, "must be a mapping", 'name it: {"people": Count()}')
        if one_sample:
            self.refuse_several_samples(aggregates)
        parts = self._queries(aggregates, apart=not one_sample)
        self.prepare()
        answers: dict[str, np.ndarray[Any, Any]] = {}
        key = fresh_key()
        for number, query in enumerate(parts):
            sql = self._sql(query, key if one_sample else fresh_key())
            share = None if progress is None else _part_of(progress, number, len(parts))
            answers.update(query.answers(columns_of(self._base.source.engine, sql, query.bits, share)))
        self.confirm()
        return {name: answers[name] for name in aggregates}

    def refuse_several_samples(self, aggregates: Mapping[str, Aggregate]) -> None:
        """Refuse aggregates that one sample cannot serve; it depends on public facts alone.

        A key keeps the same units in every query. Rows without a unit have no name that two queries could share, so
        there one query must do.

        Args:
            aggregates: What is to be read from one sample, by name.

        Raises:
            InvalidValue: If rows have no unit, are sampled, and need more than one query.
        """
        if self._probability < 1 and not self.unit and len(self._queries(aggregates, apart=False)) > 1:
            raise InvalidValue(
                "unit",
                None,
                "must be a column, so that several tables of counts can be read from one sample",
                "name the unit, or ask for fewer cells at once",
            )

    def prepare(self) -> None:
        """Read changed CSV files to their end and refuse broken ones (`csv_files`), before a curator charges."""
        for source in self.sources():
            source.prepare()

    def confirm(self) -> None:
        """Refuse what a query has read if its text files are not those that `prepare` looked at."""
        for source in self.sources():
            source.confirm()

    # Inside

    def sources(self) -> list[Source]:
        """Every private table that is read: its own, and those of the datasets that were joined or added; each once."""
        others = [step.other for step in self._steps if isinstance(step, Union | JoinOnUnit)]
        kept: list[Source] = []
        for source in (*self._base.sources, *(each for other in others for each in other.sources())):
            if not any(each is source or _is_same_frame(each, source) for each in kept):
                kept.append(source)
        return kept

    def linked_sources(self) -> tuple[Source, ...]:
        """Every table that keys link to this one, read or not, its own included: all hold rows of the same units."""
        return self._base.linked_sources

    def linked_beside(self) -> list[Source]:
        """Every table that keys link to the datasets that were joined or added, read or not."""
        others = [step.other for step in self._steps if isinstance(step, Union | JoinOnUnit)]
        return [each for other in others for each in (*other.linked_sources(), *other.linked_beside())]

    def owners(self) -> list[Ownership]:
        """How every table that is read, or linked to one that is, says whose its rows are."""
        others = [step.other for step in self._steps if isinstance(step, Union | JoinOnUnit)]
        return [*self._base.owners, *(each for other in others for each in other.owners())]

    def table(self, run: Run) -> Any:
        """The Ibis table after all steps.

        Args:
            run: What holds for one query: the sample, its key, and the columns that are wanted.

        Returns:
            A table with those columns, and with those of the unit.
        """
        needed = [set(run.columns)]
        for step in reversed(self._steps):
            needed.append(step.needs(needed[-1]))
        # The sample is that of the query, not of this dataset: a union or join opens other tables for the same units.
        limits = {step.column: step.limit for step in self._steps if isinstance(step, Explode)}
        table = self._base.table(run, needed.pop(), limits)
        for step in self._steps:
            table = step.apply(table, run.with_columns(needed.pop()))
        return table

    def __repr__(self) -> str:
        rows = "any number of" if self.reach >= UNBOUNDED else f"at most {self.reach}"
        whose = "one row" if not self.unit else f"unit={', '.join(self.unit)}, {rows} rows"
        return f"Dataset({self.name}, {whose}, columns={', '.join(self.schema)})"

    def read_together(self, aggregates: Mapping[str, Aggregate]) -> list[set[str]]:
        """The names of aggregates that add up the same rows: those of one query, where rows are chosen at random.

        Args:
            aggregates: All that `exact` is asked for with `one_sample`, in the same order.

        Returns:
            All names in one set where no row is chosen at random, else a set for each query: each chooses anew.
        """
        if not self.unit and self._probability == 1:
            return [set(aggregates)]
        return [set(query.aggregates) for query in self._queries(aggregates, apart=False)]

    def _queries(self, aggregates: Mapping[str, Aggregate], *, apart: bool = True) -> list[AggregateQuery]:
        # Two aggregates on one sample would be one sampled event; priced as two, each needs a sample of its own.
        own = {name: each for name, each in aggregates.items() if isinstance(each, Bounded)}
        keys = {name: each for name, each in aggregates.items() if isinstance(each, DistinctKeys)}
        others = {name: each for name, each in aggregates.items() if name not in own and name not in keys}
        if own:
            self._refuse_unit_bound()
        for each in keys.values():
            self._refuse_keys(each)
        if others or (own and not self.shows_all_rows) or not aggregates:
            _ = self.rows_per_unit  # refused before anything is read
        alone = apart and self._probability < 1
        queries = aggregate_queries(others, self.schema, apart=alone)
        queries += bounded_queries(own, self.schema, apart=alone)
        return [*queries, *distinct_key_queries(keys, self.schema, self._base)]

    def _sql(self, query: AggregateQuery, key: str, *, pretty: bool = False) -> str:
        all_rows = query.looks_at_all_rows and self.shows_all_rows
        run = Run(key, self._probability, frozenset(query.columns), all_rows)
        return self._base.source.engine.sql(query.expression(self.table(run)), pretty=pretty)

    def _then(self, step: Step) -> Dataset:
        after = step.schema(self.schema)
        # A column that was filtered by and then left out is still there, where its other spelling would find it.
        refuse_alike([*self._names(), *after])
        for name in after:
            if name in self._lists() and not isinstance(step, Explode):
                raise InvalidValue("column", name, "is the name of a column of lists", "choose another name")
        return replace(self, _steps=(*self._steps, step), schema=after)

    def _names(self) -> Iterator[str]:
        """Every name that a column had on the way here."""
        yield from self._base.declared
        schema = self._base.schema
        for step in self._steps:
            schema = step.schema(schema)
            yield from schema

    def _lists(self) -> list[str]:
        exploded = {step.column for step in self._steps if isinstance(step, Explode)}
        return [name for name in self._base.lists if name not in exploded]

    def _counts_everybody(self, aggregate: Aggregate) -> bool:
        """Replacing rows leaves their number as it is; `rows` says that it is public."""
        from farthing.data.aggregates.counts_and_sums import Count

        plain = isinstance(aggregate, Count) and not aggregate.by and aggregate.where is aggregate.column is None
        # A malformed line of a text file is dropped, so there the number of rows may move after all.
        fixed = self.rows is not None and not self._base.source.text_file
        return plain and self.neighbours == REPLACE and not self.unit and fixed

    def _refuse_unit_bound(self) -> None:
        if not self.unit:
            raise InvalidValue(
                "unit",
                None,
                "must be a column to count people, or to bound what each adds to a statistic",
                "name the column of people; where the unit is one row, rows are people: leave of= and the bounds out",
            )

    def _refuse_keys(self, aggregate: DistinctKeys) -> None:
        """Refuse to count values that nobody listed elsewhere than in the table itself."""
        if not self.has_all_values(aggregate.column):
            raise InvalidValue(
                "column",
                aggregate.column,
                "must be in the table itself, without steps, joins or a sample, for nobody listed its values",
                "count them before other steps, or find the values first with discover()",
            )
        if not self.unit and aggregate.most != 1:
            raise InvalidValue("most", aggregate.most, "must be 1 where the unit is one row", "name the unit")
        key_query(self, aggregate.column, (1,))  # refused by the type of the column

    def _refuse_unlike(self, other: Dataset, what: str) -> None:
        if not isinstance(other, Dataset):
            raise InvalidValue("other", type(other), f"must be a dataset to {what}")
        self._base.refuse_unlike(other._base, {"group_privacy": (self._group, other._group)})
        if other.is_auto:  # one search looks at the rows of one table
            raise InvalidValue(
                "max_rows",
                AUTO,
                f"must be a number in the second table of a {what}, here {other.name!r}",
                f"find it in a study of {other.name!r} alone with discover(), and pass max_rows= as it was found; or "
                "leave it out and give every statistic a bound of its own",
            )
        self._refuse_sampled(what)
        other._refuse_sampled(what)

    def _refuse_sampled(self, what: str) -> None:
        if self._probability < 1:
            raise InvalidValue("sample", float(self._probability), f"must come after {what}", f"{what} first")


def _is_same_frame(one: Source, other: Source) -> bool:
    return one.frame is not None and one.frame is other.frame


def _part_of(progress: Progress, number: int, parts: int) -> Progress:
    return lambda share: progress((number + share) / parts)


def _equals(name: str, value: Any) -> str:
    if isinstance(value, str):
        text = "'" + value.replace("'", "''") + "'"
    else:
        text = str(value).lower()
    quoted = '"' + name.replace('"', '""') + '"'
    return f"{quoted} = {text}"

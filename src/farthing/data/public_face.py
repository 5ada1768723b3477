"""What is public about a dataset: its unit, its bounds, and what was declared of it and done to it. No row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farthing.data.linked_rows import LinkedBase
from farthing.data.schema import Categories, Domain, Flags, Schema, Unknown
from farthing.data.stability import UNBOUNDED, LeftOut, Link, Step, definition_of, refuse_unbounded
from farthing.data.steps.per_unit import PerUnit
from farthing.data.steps.stability_steps import Explode, JoinOnUnit, SecondTable, Union
from farthing.data.unit_rows import Base
from farthing.numerics.bounds import rounded_up
from farthing.numerics.notebook_tables import html_table


@dataclass(frozen=True, eq=False, repr=False)
class PublicFace:
    """The public facts of a dataset, by name: see `Dataset`."""

    _base: Base
    _steps: tuple[Step, ...]
    schema: Schema
    _group: int = 1
    _probability: Fraction = Fraction(1)

    @property
    def name(self) -> str:
        """What the source is called."""
        return self._base.source.name

    @property
    def table_name(self) -> str:
        """What the table is called among those that keys link; by itself, what its source is called."""
        return self._base.place_name or self.name

    @property
    def unit(self) -> tuple[str, ...]:
        """The columns that name a unit; none when the unit is one row."""
        return self._base.unit

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The names of all columns of the table that names the units, declared or not."""
        source = self._base.home.source
        return (*source.columns, *source.left_out)

    @property
    def neighbours(self) -> str:
        """Which tables are neighbours: "add-remove" or "replace" one unit."""
        return self._base.neighbours

    @property
    def engine(self) -> str:
        """The name of the engine that holds the table."""
        return "duckdb" if self._base.source.text_file else self._base.source.engine.name

    @property
    def rows(self) -> int | None:
        """The number of rows where it is public and no step changes it."""
        fixed = all(not step.drops and not isinstance(step, Union) for step in self._steps)
        fixed = fixed and not self._base.facts
        return self._base.rows if fixed else None

    @property
    def table_rows(self) -> int | None:
        """The number of rows of the table itself, before any step, where that is public."""
        return None if self._base.facts else self._base.rows

    @property
    def people(self) -> int | None:
        """The number of units where it is public and all of them are here."""
        changed = any((step.drops and not isinstance(step, PerUnit)) or isinstance(step, Union) for step in self._steps)
        return None if changed or self._base.facts else self._base.people

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit after all steps; refused where only statistics bound them."""
        return refuse_unbounded(self.reach, self._base.place_name)

    @property
    def reach(self) -> int:
        """The same, and a number beyond all tables where only statistics bound them."""
        return self._links()[-1].rows

    @property
    def bounds_rows(self) -> bool:
        """Whether `max_rows` was given with a unit, so that rows of a unit may be left out."""
        return bool(self.unit) and self._base.max_rows < UNBOUNDED

    @property
    def shows_all_rows(self) -> bool:
        """Whether aggregates with a bound of their own look at all rows of a unit.

        Not where rows were chosen for a reason (`earliest`), made into one (`per_unit`), or multiplied by a join: there
        `max_rows` holds first.
        """
        others = [step.other for step in self._steps if isinstance(step, Union)]
        own = self._base.earliest is None and not any(isinstance(step, PerUnit | JoinOnUnit) for step in self._steps)
        return own and all(getattr(other, "shows_all_rows", False) for other in others)

    @property
    def unknown(self) -> Mapping[str, Unknown]:
        """The columns of the table whose range or values nobody knows yet."""
        return self._base.declared.unknown

    def origin(self, column: str) -> tuple[str, str]:
        """The linked table that a column of the table came from, "" where there is one table, and its name there.

        Args:
            column: What it is called here.

        Returns:
            The names of the table and of its column.

        >>> import pyarrow, farthing as ft
        >>> persons = ft.table(pyarrow.table({"id": [1], "cost": [2]}), schema={"cost": (0, 9)})
        >>> visits = ft.table(pyarrow.table({"who": [1], "cost": [2]}), schema={"cost": (0, 9)})
        >>> both = ft.linked(persons=persons, visits=visits, unit="persons.id", keys={"visits.who": "persons.id"})
        >>> both["visits"].join("persons").origin("persons_cost")
        ('persons', 'cost')
        """
        return self._base.origin(column)

    @property
    def schemas_beside(self) -> Mapping[str, Schema]:
        """What was declared of the other linked tables, by their names, unless their columns are joined along keys."""
        return self._base.schemas_beside

    @property
    def linked_names(self) -> tuple[str, ...]:
        """The names of all tables that keys link to this one, its own included; none where there is one table."""
        return tuple(self._base.tables.members) if isinstance(self._base, LinkedBase) else ()

    def key_columns(self, name: str) -> set[tuple[str, str]]:
        """Along which columns a linked table is joined: pairs of a column here, with its table, and one there.

        Args:
            name: The other table.

        Returns:
            The pairs; none where no key leads from one to the other.

        >>> import pyarrow, farthing as ft
        >>> persons = ft.table(pyarrow.table({"id": [1]}), schema={})
        >>> visits = ft.table(pyarrow.table({"who": [1]}), schema={})
        >>> both = ft.linked(persons=persons, visits=visits, unit="persons.id", keys={"visits.who": "persons.id"})
        >>> both["visits"].key_columns("persons"), both["persons"].key_columns("visits")
        ({('visits.who', 'id')}, {('persons.id', 'who')})
        """
        return self._base.key_columns(name) if isinstance(self._base, LinkedBase) else set()

    @property
    def bound(self) -> int:
        """How many rows of a unit the table itself keeps, before any step."""
        return self._base.max_rows

    @property
    def is_auto(self) -> bool:
        """Whether nobody knows yet how many rows of a unit to keep."""
        return self._base.is_auto

    @property
    def left_out(self) -> LeftOut | None:
        """The share of the table's rows that `max_rows` leaves out, where a study has found it."""
        return self._base.left_out

    def units_above(self, rows: int) -> tuple[int | None, int, int | None] | None:
        """How many units have more than so many rows of the table, as far as that is public or a study has found it.

        Args:
            rows: A number of rows; no step may make several of one.

        Returns:
            About how many, the most that there may be, and the number of rows beyond which units are not in these
            numbers; the first is None where only the size of the table says anything, the last where all are in them.
            None where nothing useful is known.

        >>> import pyarrow, farthing as ft
        >>> visits = pyarrow.table({"who": [1, 1, 2]})
        >>> visits = ft.dataset(visits, unit="who", max_rows=1, rows=3, people=2, schema={"who": (0, 9)})
        >>> visits.units_above(1), visits.units_above(2)
        ((None, 1, None), (None, 0, None))
        """
        base = self._base
        if any(isinstance(step, Union | JoinOnUnit | Explode) for step in self._steps) or not base.is_whole:
            return None
        people = None if base.facts else base.people
        most = math.inf if self.table_rows is None else self.table_rows // (rows + 1)
        if people is not None and self.table_rows is not None:  # each of the others has a row at least
            most = min(most, max(0, (self.table_rows - people) // rows))
        if base.unit_sizes is not None:
            about, highest, is_whole = base.unit_sizes.units_above(rows, people)
            return about, int(min(highest, most)), None if is_whole or most <= highest else base.unit_sizes.most
        useful = most < (math.inf if people is None else people)
        return (None, int(most), None) if useful else None

    @property
    def inner_joins(self) -> tuple[str, ...]:
        """The joined private tables in which a unit must have a row: rows of other units are left out."""
        steps = [step for step in self._steps if isinstance(step, JoinOnUnit) and not step.keep]
        return (*self._base.inner_joins, *(_called(step.other) for step in steps))

    @property
    def rows_made_into_one(self) -> int | None:
        """The most rows that `per_unit` made one row of; None where it was not asked for."""
        links = self._links()
        made = [links[place].rows for place, step in enumerate(self._steps) if isinstance(step, PerUnit)]
        return made[0] if made else None

    @property
    def probability(self) -> float:
        """The probability of `sample`, rounded up, for `Sampled`; 1 without one."""
        return 1.0 if self._probability == 1 else rounded_up(self._probability)

    def _repr_html_(self) -> str:
        rows = [[name, _in_words(self.schema[name])] for name in self.schema]
        rows += [[name, "not known yet"] for name in self.schema.unknown]
        unit = "one row" if not self.unit else f"all rows with one {', '.join(self.unit)}"
        most = "" if not self.unit or self.reach >= UNBOUNDED else f"; at most {self.reach} rows of each"
        return html_table(["column", "declared"], rows, title=self.name, notes=[f"the budget protects {unit}{most}"])

    @property
    def definition(self) -> list[Any]:
        """Everything that was declared about it, in any order, and done to it; neither its folder nor its rows.

        Two tables under one name have two definitions.
        """
        base = self._base
        declared = sorted([name, repr(base.declared[name])] for name in base.declared)
        declared += sorted([name, repr(kind)] for name, kind in base.declared.unknown.items())
        most = base.max_rows if base.max_rows < UNBOUNDED else None
        facts = [base.source.declared, sorted(base.unit), most, base.neighbours, base.rows, declared]
        people = [] if base.people is None else [["people", base.people]]
        return [*facts, *self.steps_done, *people]

    @property
    def steps_done(self) -> list[Any]:
        """What was done to the rows of the source, and which of them are read at all, as plain data."""
        done = [definition_of(step) for step in self._steps]
        return [done, self._group, str(self._probability), *self._base.facts]

    @property
    def is_untransformed(self) -> bool:
        """Whether nothing was done to the rows of the source."""
        return not self._steps and not self._base.facts

    @property
    def is_whole_table(self) -> bool:
        """Whether it is one table as it was declared: all of its rows, and no other table's; others may be linked."""
        return not self._steps and self._base.is_whole

    def _links(self) -> tuple[Link, ...]:
        links = self._base.links
        for step in self._steps:
            links = (*links, step.link(links[-1].rows))
        return links


def _in_words(domain: Domain) -> str:
    """What is declared about a column, for people."""
    if isinstance(domain, Categories):
        first = ", ".join(map(str, domain.values[:8]))
        return first if len(domain.values) <= 8 else f"{first} and {len(domain.values) - 8:,} more"
    return "true or false" if isinstance(domain, Flags) else f"{domain.lower} to {domain.upper}"


def _called(other: SecondTable) -> str:
    """What people call a joined table: its name among the linked ones, if it is one of them."""
    return (isinstance(other, PublicFace) and other._base.place_name) or other.name

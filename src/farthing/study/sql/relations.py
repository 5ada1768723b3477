"""What stands in FROM, as a dataset: tables, joins along keys, and queries that filter, derive or group by person.

A relation is a dataset with columns that are expressions over it and a condition on its rows. Nothing is computed, and
nothing but public facts is looked at.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.data import Dataset
from farthing.data.expressions.syntax_tree import Node, column, constant, written
from farthing.errors import FarthingError, InvalidSQL, InvalidValue
from farthing.study.sql.row_expressions import RowExpressions, checked, conjunction, refuse_no_condition
from farthing.study.sql.statements import fault, position_of, refuse_other_parts

_CLAUSES = ("expressions", "from_", "where", "joins", "with_", "group", "having", "order", "limit", "offset")
MOST_TABLES = 64
_NESTED = ("a query in FROM must keep, leave out or derive rows, or have one row a person",)


@dataclass(frozen=True)
class Relation:
    """Rows: a dataset, what each visible column is in it, and which rows count.

    `columns` are trees over the columns of the dataset. `tables` are the names by which they may be qualified, each
    with the columns it has. `unit` are the names of columns that say whose a row is, where they can be counted.
    """

    dataset: Dataset
    columns: Mapping[str, Node]
    where: tuple[Node, ...] = ()
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unit: tuple[str, ...] = ()
    is_table: bool = False  # nothing was done to it but joins
    one_row_a_unit: bool = False
    tables_read: int = 1  # below one another

    def called(self, name: str) -> Relation:
        """The same under another name."""
        return replace(self, tables={name: {each: each for each in (*self.columns, *self.unit)}})

    @property
    def condition(self) -> Node | None:
        """Which rows count; None for all."""
        return conjunction(list(self.where))

    def rows(self) -> Dataset:
        """A dataset with exactly these rows and columns."""
        dataset, condition = self.dataset, self.condition
        if condition is not None:
            dataset = dataset.where(written(condition))
        derived = {
            name: written(node)
            for name, node in self.columns.items()
            if not (node.operator == "column" and node.value == name)
        }
        if derived:
            dataset = dataset.derive(**derived)
        return dataset.select(*self.columns) if list(dataset.schema) != list(self.columns) else dataset


@dataclass(frozen=True)
class Source:
    """The tables that a statement may name: the study's own under its names, and those that keys link to it."""

    dataset: Dataset
    names: tuple[str, ...]

    def relation(self, text: str, tree: Any) -> Relation:
        """The table of a name."""
        name = str(tree.this.this)
        if name.lower() in [each.lower() for each in self.names]:
            return table_relation(self.dataset, tree.alias or name)
        linked = {each.lower(): each for each in self.dataset.linked_names}
        if name.lower() in linked:
            return table_relation(self.dataset.linked_table(linked[name.lower()]), tree.alias or name)
        known = list(dict.fromkeys([*self.names, *self.dataset.linked_names]))
        near = difflib.get_close_matches(name, known, 1)
        way_out = f"did you mean {written_table(near[0])}" if near else f"FROM {written_table(known[0])}"
        raise fault(text, tree, f"there is no table {name[:60]!r}", way_out)


def written_table(name: str) -> str:
    """A table's name as it stands in SQL."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def table_relation(dataset: Dataset, name: str) -> Relation:
    """A dataset as it stands, under a name."""
    columns = {each: column(each) for each in dataset.schema}
    unit = tuple(each for each in dataset.unit if each not in columns)
    relation = Relation(dataset, columns, unit=unit, is_table=not dataset.steps_done[0])
    names = {each: each for each in (*columns, *unit)}
    return replace(relation, tables={name: names})


@dataclass(frozen=True)
class FromClause:
    """Reads FROM, JOIN and WITH of one SELECT; `named` are the queries that WITH gave a name."""

    text: str
    source: Source
    named: Mapping[str, Relation] = field(default_factory=dict)

    def with_named(self, select: Any) -> FromClause:
        """The same with the queries that a SELECT names first."""
        clause = select.args.get("with_")
        if clause is None:
            return self
        refuse_other_parts(self.text, clause, "expressions")
        inner = self
        for each in clause.expressions:
            refuse_other_parts(self.text, each, "this", "alias", "materialized")
            relation = inner.query(each.this, each.alias, _names_of_columns(self.text, each))
            inner = replace(inner, named={**inner.named, each.alias.lower(): relation})
        return inner

    def relation(self, select: Any) -> Relation:
        """What a SELECT reads, without its own WHERE."""
        clause = select.args.get("from_")
        if clause is None:
            raise fault(self.text, select, "there is no FROM", "write SELECT ... FROM " + self.source.names[0])
        refuse_other_parts(self.text, clause, "this")
        relation = self.one(clause.this)
        for join in select.args.get("joins") or []:
            relation = self.joined(relation, join)
        return relation

    def one(self, tree: Any) -> Relation:
        """A table, a query with a name, or one in parentheses."""
        if tree.key == "table":
            refuse_other_parts(self.text, tree, "this", "alias", "joins")
            if tree.args.get("joins"):
                raise fault(self.text, tree, "joins in parentheses are not understood", "join one table after another")
            if tree.this.key != "identifier":
                rule, way_out = (
                    "FROM takes the name of a table; functions that read files are not supported",
                    f"FROM {self.source.names[0]}",
                )
                raise fault(self.text, tree, rule, way_out)
            renamed = _names_of_columns(self.text, tree)
            if renamed:
                raise fault(self.text, tree, "columns are not renamed here", "write SELECT a AS b in a sub-query")
            name = str(tree.this.this)
            if name.lower() in self.named:
                return self.named[name.lower()].called(tree.alias or name)
            return self.source.relation(self.text, tree)
        if tree.key == "subquery":
            refuse_other_parts(self.text, tree, "this", "alias")
            return self.query(tree.this, tree.alias, _names_of_columns(self.text, tree))
        if tree.key in ("select", "union"):
            return self.query(tree, "", ())
        raise fault(self.text, tree, "this is not a table", f"FROM {written_table(self.source.names[0])}")

    # Queries inside FROM

    def query(self, tree: Any, name: str, renamed: tuple[str, ...]) -> Relation:
        """Rows of a query that stands in FROM."""
        if tree.key == "subquery":
            refuse_other_parts(self.text, tree, "this")
            return self.query(tree.this, name, renamed)
        if renamed:
            raise fault(self.text, tree, "columns are not renamed here", "write SELECT a AS b inside")
        if tree.key == "union":
            relation = self.union(tree)
        elif tree.key == "select":
            relation = self.select(tree)
        else:
            raise fault(self.text, tree, f"{tree.key.upper()} is not understood here", "write SELECT, or UNION ALL")
        return relation.called(name or "")

    def union(self, tree: Any) -> Relation:
        """The rows of both: a person who is in both counts in both, and costs more noise."""
        refuse_other_parts(self.text, tree, "this", "expression", "with_", *refused_distinct(self.text, tree))
        inner = self.with_named(tree)
        left, right = (inner.query(side, "", ()) for side in (tree.this, tree.expression))
        if left.one_row_a_unit or right.one_row_a_unit:
            rule = "queries with one row a person cannot be parts of a UNION ALL"
            raise fault(self.text, tree, rule, "UNION ALL the rows first, then GROUP BY person")
        if list(left.columns) != list(right.columns):
            rule = f"both sides must have the same columns, in the same order: {', '.join(left.columns)}"
            raise fault(self.text, tree.expression, rule, "name them alike with AS")
        tables_read = left.tables_read + right.tables_read
        if tables_read > MOST_TABLES:  # each WITH may double them
            raise fault(self.text, tree, f"more than {MOST_TABLES} tables in UNION ALL", "ask in several parts")
        dataset = self._tried(tree, lambda: left.rows().union(right.rows()))
        columns = {each: column(each) for each in dataset.schema}
        return Relation(dataset, columns, unit=left.unit, tables_read=tables_read)

    def select(self, tree: Any) -> Relation:
        """Rows kept, left out or derived; or one row a person."""
        refuse_other_parts(self.text, tree, *_CLAUSES)
        inner = self.with_named(tree)
        for name in ("order", "limit", "offset"):
            if tree.args.get(name) is not None:
                rule = f"{name.upper()} in a sub-query would let one person's rows affect another's"
                raise fault(self.text, tree.args[name], rule, "write it at the end of the statement")
        below = inner.filtered(inner.relation(tree), tree)
        if tree.args.get("group") is not None or any(_has_aggregate(each) for each in tree.expressions):
            return inner.per_unit(below, tree)
        if tree.args.get("having") is not None:
            raise fault(self.text, tree.args["having"], "HAVING needs GROUP BY", "write WHERE")
        columns: dict[str, Node] = {}
        unit: list[str] = []
        rows = self.rows_of(below)
        for item in tree.expressions:
            if item.key == "star":
                refuse_other_parts(self.text, item)
                columns.update(below.columns)
                unit += below.unit
                continue
            body, name = _item(item)
            if body.key == "column" and str(body.this.this) in below.unit and name == str(body.this.this):
                unit.append(name)
                continue
            if not name:
                raise fault(self.text, item, "a column that is computed needs a name", "write AS and a name")
            node = rows.node(body)
            checked(node, below.dataset.schema, self.text)
            if name.lower() in [each.lower() for each in columns]:
                raise fault(self.text, item, f"there are two columns {name!r}", "give one of them another name")
            columns[name] = node
        return replace(below, columns=columns, unit=tuple(dict.fromkeys(unit)), is_table=False)

    def filtered(self, relation: Relation, select: Any) -> Relation:
        """With the WHERE of a SELECT."""
        clause = select.args.get("where")
        if clause is None:
            return relation
        refuse_other_parts(self.text, clause, "this")
        node = self.rows_of(relation).node(clause.this)
        refuse_no_condition(node, relation.dataset.schema, self.text, clause.this)
        return replace(relation, where=(*relation.where, node))

    def rows_of(self, relation: Relation) -> RowExpressions:
        """The translator of expressions about one row of a relation."""
        return RowExpressions(self.text, lambda tree: resolved(self.text, relation, tree))

    def per_unit(self, below: Relation, tree: Any) -> Relation:
        """GROUP BY the unit: one row a person, made of that person's rows alone."""
        group = tree.args.get("group")
        unit = below.dataset.unit
        if below.one_row_a_unit:
            raise fault(self.text, tree, "this query has one row a person already", "GROUP BY at the end")
        place = tree if group is None else group
        way_out = f"GROUP BY {', '.join(unit)} in it, which makes one row a person" if unit else "GROUP BY at the end"
        if group is None:
            raise fault(self.text, place, f"{_NESTED[0]}", way_out)
        refuse_other_parts(self.text, group, "expressions")
        keys = [_plain_name(each) for each in group.expressions]
        if not unit or sorted(key.lower() for key in keys) != sorted(each.lower() for each in unit):
            raise fault(self.text, place, f"{_NESTED[0]}", way_out)
        functions = UnitFunctions(self.text, self.rows_of(below))
        columns: dict[str, Any] = {}
        for item in tree.expressions:
            body, name = _item(item)
            if body.key == "column" and str(body.this.this).lower() in [key.lower() for key in keys]:
                continue
            called = name or body.sql().lower()
            if called.lower() in [each.lower() for each in columns]:
                raise fault(self.text, item, f"there are two columns {called[:60]!r}", "give one of them another name")
            columns[called] = functions.one(body)
        having = tree.args.get("having")
        conditions: tuple[Node, ...] = ()
        hidden: dict[str, str] = {}
        if having is not None:
            refuse_other_parts(self.text, having, "this")
            conditions = (self._of_people(having.this, functions, columns, hidden),)
        if not columns and not hidden:
            hidden["count()"] = "count()"
        dataset = below.dataset
        if below.condition is not None:
            dataset = dataset.where(written(below.condition))
        made = self._tried(tree, lambda: dataset.per_unit(**columns, **hidden))
        for node in conditions:
            refuse_no_condition(node, made.schema, self.text, having.this)
        visible = {name: column(name) for name in columns}
        return Relation(made, visible, conditions, unit=tuple(unit), one_row_a_unit=True, tables_read=below.tables_read)

    def _of_people(
        self, tree: Any, functions: UnitFunctions, columns: Mapping[str, str], hidden: dict[str, str]
    ) -> Node:
        """HAVING of one row a person, over its columns; what is not among them is added to the hidden ones."""

        def stand_in(aggregate: Any) -> Node:
            function = functions.one(aggregate)
            name = next((each for each, other in {**columns, **hidden}.items() if other == function), None)
            if name is None:
                name = function
                while name.lower() in [each.lower() for each in {**columns, **hidden}]:
                    name += " (hidden)"
                hidden[name] = function
            return column(name, position_of(aggregate))

        def by_name(each: Any) -> Node:
            name = str(each.this.this)
            if name in columns:
                return column(name, position_of(each))
            raise fault(
                self.text,
                each,
                f"{name[:60]!r} is not a column of this query, which has one row a person",
                "name it with AS",
            )

        return RowExpressions(self.text, by_name, stand_in).node(tree)

    # Joins

    def joined(self, relation: Relation, join: Any) -> Relation:
        """With the columns of a table that keys link to this one."""
        refuse_other_parts(self.text, join, "this", "on", "using", "side", "kind")
        side, kind = (str(join.args.get(each) or "").upper() for each in ("side", "kind"))
        if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
            rule = f"{' '.join(filter(None, (side, kind)))} JOIN is not understood"
            raise fault(self.text, join, rule, "use JOIN or LEFT JOIN, along a key that was declared")
        table = join.this
        if table.key != "table" or table.this.key != "identifier" or str(table.this.this).lower() in self.named:
            rule = "only tables are joined, along keys that were declared"
            raise fault(self.text, join, rule, "filter after the join, in WHERE")
        refuse_other_parts(self.text, table, "this", "alias")
        linked = {each.lower(): each for each in relation.dataset.linked_names}
        name = linked.get(str(table.this.this).lower())
        if name is None:
            known = ", ".join(relation.dataset.linked_names)
            way_out = f"linked tables: {known}" if known else "declare both tables and their key: farthing.linked(...)"
            raise fault(self.text, table, f"no key leads to {str(table.this.this)[:60]!r}", way_out)
        if not relation.is_table or relation.where:
            rule = "joins come before anything else that is done to a table"
            raise fault(self.text, join, rule, "write FROM one table JOIN the other, then WHERE")
        self._refuse_other_key(relation, join, name, table.alias or name)
        dataset = self._tried(join, lambda: relation.dataset.join(name, how="left" if side == "LEFT" else "inner"))
        columns = {each: column(each) for each in dataset.schema}
        new = {}
        for each in dataset.schema:
            if each not in relation.columns:
                place, own = dataset.origin(each)
                new[own if place == name else each] = each
        tables = {**relation.tables, (table.alias or name): new}
        return replace(relation, dataset=dataset, columns=columns, tables=tables)

    def _refuse_other_key(self, relation: Relation, join: Any, name: str, alias: str) -> None:
        """The two columns that ON or USING names must be those that were declared to link the tables."""
        pairs = relation.dataset.key_columns(name)
        using, on = join.args.get("using"), join.args.get("on")
        keys = " or ".join(f"ON {left} = {name}.{right}" for left, right in sorted(pairs))
        way_out = f"write {keys}"
        if using:
            asked = [str(each.this) for each in using]
            if len(asked) != 1 or not any(asked[0] == right == left.split(".")[-1] for left, right in pairs):
                raise fault(self.text, using[0], "tables are joined along the key that was declared", way_out)
            return
        if on is None:
            raise fault(self.text, join, "a join needs its key", way_out)
        if on.key != "eq" or any(each.key != "column" for each in (on.this, on.expression)):
            raise fault(self.text, on, "tables are joined along the key that was declared", way_out)
        sides = [(str(each.table), str(each.this.this)) for each in (on.this, on.expression)]
        for one, other in (sides, sides[::-1]):
            if other[0] == alias and any(other[1] == right and left.split(".")[-1] == one[1] for left, right in pairs):
                return
        raise fault(self.text, on, "tables are joined along the key that was declared", way_out)

    def _tried(self, tree: Any, make: Any) -> Dataset:
        """A step of the dataset, whose refusal is shown where the statement asks for it."""
        try:
            made: Dataset = make()
        except InvalidSQL:
            raise
        except InvalidValue as refusal:
            raise fault(self.text, tree, f"{refusal.name} {refusal.rule}", refusal.way_out) from None
        except FarthingError as refusal:
            raise fault(
                self.text, tree, getattr(refusal, "rule", str(refusal)), getattr(refusal, "way_out", "")
            ) from None
        return made


_UNIT_FUNCTIONS = {"sum": "sum", "avg": "mean", "min": "min", "max": "max", "logicalor": "any", "logicaland": "all"}


@dataclass(frozen=True)
class UnitFunctions:
    """Aggregates over one person's rows, as the texts that `Dataset.per_unit` reads."""

    text: str
    rows: RowExpressions

    def one(self, tree: Any) -> str:
        """The text of one of them."""
        if tree.key == "filter":
            refuse_other_parts(self.text, tree, "this", "expression")
            test = self.rows.node(tree.expression.this)
            inner = tree.this
            if inner.key == "count" and inner.this is not None and inner.this.key == "star":
                return f"sum({written(Node('case', (test, constant(1), constant(0))))})"
            if inner.key in ("sum", "min", "max", "avg"):
                value = self.rows.node(inner.this)
                return f"{_UNIT_FUNCTIONS[inner.key]}({written(Node('case', (test, value, constant(None))))})"
        if tree.key == "count":
            refuse_other_parts(self.text, tree, "this", "big_int")
            if tree.this is None:
                raise fault(self.text, tree, "COUNT needs to know what it counts", "write COUNT(*)")
            if tree.this.key == "star":
                return "count()"
            if tree.this.key == "distinct":
                refuse_other_parts(self.text, tree.this, "expressions")
                if len(tree.this.expressions) == 1:
                    return f"distinct({written(self.rows.node(tree.this.expressions[0]))})"
            else:
                return f"count({written(self.rows.node(tree.this))})"
        if tree.key == "countif":
            refuse_other_parts(self.text, tree, "this")
            return f"sum({written(Node('case', (self.rows.node(tree.this), constant(1), constant(0))))})"
        if tree.key in _UNIT_FUNCTIONS:
            refuse_other_parts(self.text, tree, "this")
            if tree.this is not None and tree.this.key != "distinct":
                return f"{_UNIT_FUNCTIONS[tree.key]}({written(self.rows.node(tree.this))})"
        rule = (
            "a column of one row a person must be COUNT, SUM, AVG, MIN, MAX, BOOL_OR or BOOL_AND of that person's rows"
        )
        raise fault(self.text, tree, rule, "compute the rest in the outer SELECT")


def resolved(text: str, relation: Relation, tree: Any) -> Node:
    """The column that a name stands for."""
    name, table = str(tree.this.this), str(tree.table or "")
    quoted = bool(tree.this.args.get("quoted"))
    columns: Mapping[str, str] = {each: each for each in (*relation.columns, *relation.unit)}
    if table:
        named = [each for each in relation.tables if each == table or each.lower() == table.lower()]
        if not named:
            known = ", ".join(each for each in relation.tables if each)
            raise fault(text, tree, f"there is no table {table[:60]!r} here", f"there are: {known}" if known else "")
        columns = relation.tables[named[0]]
    exact = name if name in columns else None
    if exact is None and not quoted:
        alike = [each for each in columns if each.lower() == name.lower()]
        exact = alike[0] if len(alike) == 1 else None
    if exact is None:
        if name in relation.dataset.schema.unknown:
            rule = f"the column {name!r} was declared as unknown, and was not found yet"
            raise fault(text, tree, rule, f"find it first: study.discover({name!r}).release(), or farthing discover")
        near = difflib.get_close_matches(name, list(columns), 1)
        way_out = f"did you mean {near[0]}" if near else f"there are: {', '.join(list(columns)[:8])}"
        raise fault(text, tree, f"there is no column {name[:60]!r}", way_out)
    called = columns[exact]
    if called in relation.unit and called not in relation.columns:
        rule = f"{called!r} says whose a row is, and no number about it is released"
        raise fault(text, tree, rule, f"COUNT(DISTINCT {called}) counts people")
    node = relation.columns[called]
    return replace(node, position=position_of(tree))


def refused_distinct(text: str, union: Any) -> tuple[str, ...]:
    """UNION without ALL would compare rows; the names of the parts that UNION ALL may have."""
    if union.args.get("distinct"):
        raise fault(text, union, "UNION would show which rows are alike", "write UNION ALL")
    return ("distinct", "by_name") if not union.args.get("by_name") else ("distinct",)


def _has_aggregate(tree: Any) -> bool:
    from farthing.study.sql.row_expressions import AGGREGATES

    return any(each.key in AGGREGATES for each in tree.walk())


def _item(item: Any) -> tuple[Any, str]:
    """One expression of a SELECT, and its name: as AS says, or that of the column."""
    if item.key == "alias":
        return item.this, str(item.alias)
    return item, str(item.this.this) if item.key == "column" and item.this.key == "identifier" else ""


def _plain_name(tree: Any) -> str:
    return str(tree.this.this) if tree.key == "column" else ""


def _names_of_columns(text: str, tree: Any) -> tuple[str, ...]:
    alias = tree.args.get("alias")
    columns = alias.args.get("columns") if alias is not None and alias.key == "tablealias" else None
    return tuple(str(each) for each in columns or ())

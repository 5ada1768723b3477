"""Aggregates of SQL as statistics: which constructor each one calls, and which of its numbers is the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.data.expressions.syntax_tree import Node, constant, written
from farthing.data.expressions.value_ranges import OutOfRange, domain_of_range
from farthing.data.schema import Domain
from farthing.errors import InvalidSQL
from farthing.statistics import Statistic, constructors
from farthing.study.sql.relations import Relation, resolved
from farthing.study.sql.row_expressions import (
    RowExpressions,
    checked,
    conjunction,
    number_of,
    refuse_no_condition,
)
from farthing.study.sql.statements import fault, position_of, refuse_other_parts

Make = Callable[[list[str]], Statistic]
_LONGEST_NAME = 60
_SAMPLE = "is that of the table's own rows (divided by n, not n - 1)"

# What is known of other engines, and what is nearest to it here.
_NOT_HERE: Mapping[str, tuple[str, str]] = {
    "min": ("the least value is one person's", "PERCENTILE_CONT(0.01) WITHIN GROUP (ORDER BY x) comes close"),
    "max": ("the greatest value is one person's", "PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY x) comes close"),
    "anyvalue": ("any one value is one person's", "MEDIAN(x), or COUNT(*) by groups"),
    "first": ("a first value is one person's", "MEDIAN(x), or COUNT(*) by groups"),
    "last": ("a last value is one person's", "MEDIAN(x), or COUNT(*) by groups"),
    "mode": ("MODE is not supported", "COUNT(*) ... GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1"),
    "arrayagg": ("lists of values are rows", "COUNT(*) ... GROUP BY x"),
    "groupconcat": ("lists of values are rows", "COUNT(*) ... GROUP BY x"),
    "logicalor": ("whether any row is so would show one person", "COUNT(*) FILTER (WHERE ...)"),
    "logicaland": ("whether all rows are so would show one person", "COUNT(*) FILTER (WHERE NOT ...)"),
    "corr": ("CORR is not supported", "REGR_SLOPE(y, x), or ft.linear_regression"),
    "covarpop": ("COVAR_POP is not supported", "REGR_SLOPE(y, x), or ft.linear_regression"),
    "covarsamp": ("COVAR_SAMP is not supported", "REGR_SLOPE(y, x), or ft.linear_regression"),
    "grouping": ("GROUPING is not supported", "a key of a total is NULL in the result"),
}
_MOMENTS = {
    "avg": constructors.mean, "sum": constructors.sum, "stddevpop": constructors.std, "stddev": constructors.std,
    "stddevsamp": constructors.std, "variancepop": constructors.variance, "variance": constructors.variance,
}  # fmt: skip
_SAMPLED = ("stddev", "stddevsamp", "variance")
_KEYS = (
    "count", "countif", "approxdistinct", "median", "withingroup", "percentilecont", "quantile", "approxquantile",
    "regrslope", "regrintercept", *_MOMENTS,
)  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a SELECT: how its statistic is made for columns of groups, and which of its numbers it is."""

    make: Make
    position: int | None
    pick: Any = None  # the last part of a label, where the statistic has several numbers for each group
    note: str = ""


@dataclass
class Derivations:
    """The columns that have to be derived first, each under a name that says what it is."""

    names: dict[str, str] = field(default_factory=dict)  # from the text of an expression to the column's name

    def column(self, relation: Relation, node: Node, text: str, wanted: str = "") -> str:
        """The column that holds an expression: itself, or a new one."""
        meaning = checked(node, relation.dataset.schema, text)
        if node.operator == "column":
            return str(node.value)
        derived = written(node)
        if derived not in self.names:
            if not meaning.arguments:
                rule, way_out = "a constant is the same on every row", "name a column of the table"
                raise InvalidSQL(text, node.position, rule, way_out)
            taken = {each.lower() for each in (*relation.dataset.schema, *relation.dataset.unit, *self.names.values())}
            name = wanted or (derived if len(derived) <= _LONGEST_NAME else f"expression {len(self.names) + 1}")
            while name.lower() in taken:
                name += " (derived)"
            self.names[derived] = name
        return self.names[derived]


def domain_of(relation: Relation, node: Node, text: str) -> Domain:
    """What an expression may be."""
    meaning = checked(node, relation.dataset.schema, text)
    if node.operator == "column":
        return relation.dataset.schema[str(node.value)]
    try:
        return domain_of_range(meaning.range)
    except OutOfRange as refusal:
        raise InvalidSQL(text, node.position, *refusal.args) from None


@dataclass(frozen=True)
class Aggregates:
    """Reads the aggregates of one SELECT."""

    text: str
    relation: Relation
    derivations: Derivations
    max_cells: Callable[[list[str]], int | None]

    @property
    def rows(self) -> RowExpressions:
        """The translator of expressions about one row."""
        return RowExpressions(self.text, lambda tree: resolved(self.text, self.relation, tree))

    def one(self, tree: Any) -> Aggregate:
        """The statistic of one aggregate."""
        position = position_of(tree)
        if tree.key == "filter":
            refuse_other_parts(self.text, tree, "this", "expression")
            refuse_other_parts(self.text, tree.expression, "this")
            test = self.condition(tree.expression.this)
            return self.read(tree.this, position, (test,))
        return self.read(tree, position, ())

    def condition(self, tree: Any) -> Node:
        """A condition on one row."""
        node = self.rows.node(tree)
        refuse_no_condition(node, self.relation.dataset.schema, self.text, tree)
        return node

    def read(self, tree: Any, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        """The same under further conditions."""
        if tree.key == "ignorenulls":
            tree = tree.this
        if tree.key not in _KEYS:
            name = tree.sql_name() if hasattr(tree, "sql_name") else tree.key
            known = "COUNT, SUM, AVG, MEDIAN, PERCENTILE_CONT, STDDEV_POP, VAR_POP, REGR_SLOPE"
            raise fault(self.text, tree, *_NOT_HERE.get(tree.key, (f"{name} is not supported", f"use {known}")))
        if tree.key in _MOMENTS:
            return self.moment(tree, position, tests)
        if tree.key in ("count", "countif", "approxdistinct"):
            return self.counted(tree, position, tests)
        if tree.key in ("regrslope", "regrintercept"):
            return self.regression(tree, position, tests)
        return self.quantile(tree, position, tests)

    def where(self, tests: tuple[Node, ...]) -> str | None:
        """The condition of the SELECT and these, as text."""
        whole = conjunction([*self.relation.where, *tests])
        return None if whole is None else written(whole)

    def counted(self, tree: Any, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        refuse_other_parts(self.text, tree, "this", "big_int")
        if tree.key == "countif":
            return self.count(position, (*tests, self.condition(tree.this)))
        if tree.key == "approxdistinct":
            return self.distinct(tree.this, position, tests)
        if tree.this is None:
            raise fault(self.text, tree, "COUNT needs to know what it counts", "write COUNT(*)")
        if tree.this.key == "star":
            refuse_other_parts(self.text, tree.this)
            return self.count(position, tests)
        if tree.this.key == "distinct":
            refuse_other_parts(self.text, tree.this, "expressions")
            return self.people_or_values(tree.this.expressions, tree, position, tests)
        case = self.only_case(tree.this)
        if case is not None and case[1].operator == "constant" and case[2] == constant(None):
            return self.count(position, (*tests, case[0]))  # COUNT(CASE WHEN test THEN 1 END)
        node = self.rows.node(tree.this)
        if node.operator == "constant" and node.value is not None:
            return self.count(position, tests)
        checked(node, self.relation.dataset.schema, self.text)
        present = Node("not", (Node("is null", (node,), None, node.position),), None, node.position)
        return self.count(position, (*tests, present))

    def count(self, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        where = self.where(tests)
        return Aggregate(lambda by: constructors.count(where=where, by=by or None), position)

    def people_or_values(
        self, columns: list[Any], tree: Any, position: int | None, tests: tuple[Node, ...]
    ) -> Aggregate:
        unit = [each.lower() for each in self.relation.dataset.unit]
        names = [str(each.this.this).lower() if each.key == "column" else "" for each in columns]
        taken = {
            name.lower()
            for name, node in self.relation.columns.items()
            if not (node.operator == "column" and str(node.value).lower() == name.lower())
        }  # by what a sub-query has called like the unit
        if unit and sorted(names) == sorted(unit) and not taken & set(names):
            for each in columns:
                self.refuse_other_table(each)
            return self.people(position, tests)
        if len(columns) != 1:
            raise fault(self.text, tree, "COUNT(DISTINCT ...) counts the values of one column", "name one")
        return self.distinct(columns[0], position, tests)

    def refuse_other_table(self, tree: Any) -> None:
        """A qualifier must be that of a table which is read."""
        table = str(tree.table or "")
        if table and table.lower() not in [each.lower() for each in self.relation.tables]:
            raise fault(self.text, tree, f"there is no table {table[:60]!r} here")

    def people(self, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        where = self.where(tests)
        if self.relation.one_row_a_unit:  # a row is a person
            return self.count(position, tests)

        def make(by: list[str]) -> Statistic:
            return constructors.count(where=where, by=by or None, of="people", max_cells=self.max_cells(by))

        return Aggregate(make, position)

    def distinct(self, tree: Any, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        name, where = self.derivations.column(self.relation, self.rows.node(tree), self.text), self.where(tests)
        return Aggregate(lambda by: constructors.count_distinct(name, where=where, by=by or None), position)

    def moment(self, tree: Any, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        refuse_other_parts(self.text, tree, "this")
        if tree.this.key == "distinct":
            raise fault(self.text, tree.this, "DISTINCT is for counting, not for adding", "COUNT(DISTINCT x)")
        case = self.only_case(tree.this)
        make: Any = _MOMENTS[tree.key]
        if case is not None and tree.key == "sum":
            test, value, otherwise = case
            if value == constant(1) and otherwise.value in (None, 0):  # SUM(CASE WHEN test THEN 1 ELSE 0 END)
                return self.count(position, (*tests, test))
        if case is not None and case[2] == constant(None):  # AVG(CASE WHEN test THEN x END)
            test, node, _ = case
            tests = (*tests, test)
        else:
            node = self.rows.node(tree.this)
        name, where = self.derivations.column(self.relation, node, self.text), self.where(tests)
        note = f"{tree.sql_name()} {_SAMPLE}" if tree.key in _SAMPLED else ""
        return Aggregate(lambda by: make(name, where=where, by=by or None), position, note=note)

    def only_case(self, tree: Any) -> tuple[Node, Node, Node] | None:
        """The parts of a CASE with one branch: its condition, its value, and what stands for all others."""
        while tree.key == "paren":
            tree = tree.this
        if tree.key not in ("case", "if"):
            return None
        node = self.rows.node(tree)
        if node.operator != "case" or len(node.arguments) != 3:
            return None
        checked(node, self.relation.dataset.schema, self.text)
        test, value, otherwise = node.arguments
        if otherwise.operator != "constant" or (value.operator == "constant" and value.value is None):
            return None
        return test, Node(value.operator, value.arguments, value.value), Node("constant", (), otherwise.value)

    def quantile(self, tree: Any, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        subject, share = self.quantile_parts(tree)
        name, where = self.derivations.column(self.relation, self.rows.node(subject), self.text), self.where(tests)
        return Aggregate(lambda by: constructors.quantile(name, share, where=where, by=by or None), position)

    def quantile_parts(self, tree: Any) -> tuple[Any, float]:
        """What is ordered, and the share of the rows below the number that is asked for."""
        if tree.key == "median":
            refuse_other_parts(self.text, tree, "this")
            return tree.this, 0.5
        if tree.key == "withingroup":
            refuse_other_parts(self.text, tree, "this", "expression")
            function, order = tree.this, tree.expression
            if function.key not in ("percentilecont", "percentiledisc"):
                rule = "WITHIN GROUP belongs to PERCENTILE_CONT"
                raise fault(self.text, tree, rule, "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)")
            refuse_other_parts(self.text, function, "this")
            refuse_other_parts(self.text, order, "expressions")
            (first, *more) = order.expressions
            refuse_other_parts(self.text, first, "this", "desc", "nulls_first")
            if more:
                raise fault(self.text, more[0], "a quantile is of one column", "ORDER BY it alone")
            share = self.share(function.this)
            return first.this, round(1 - share, 12) if first.args.get("desc") else share
        refuse_other_parts(self.text, tree, "this", "expression", "quantile")
        share = tree.args.get("quantile") or tree.args.get("expression")
        if share is None:
            raise fault(self.text, tree, "a quantile needs a share", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)")
        return tree.this, self.share(share)

    def share(self, tree: Any) -> float:
        if tree.key != "literal" or tree.is_string:
            raise fault(self.text, tree, "the share of a quantile must be one number", "for example 0.9")
        number = float(number_of(self.text, tree))
        if not 0 < number < 1:
            rule = "the share of a quantile must be above 0 and below 1"
            raise fault(self.text, tree, rule, "0.01 is near the least value, 0.99 near the greatest")
        return number

    def regression(self, tree: Any, position: int | None, tests: tuple[Node, ...]) -> Aggregate:
        refuse_other_parts(self.text, tree, "this", "expression")
        target, feature = (
            self.derivations.column(self.relation, self.rows.node(each), self.text)
            for each in (tree.this, tree.expression)
        )
        where, pick = self.where(tests), feature if tree.key == "regrslope" else "intercept"

        def make(by: list[str]) -> Statistic:
            return constructors.linear_regression(target, feature, where=where, by=by or None)

        return Aggregate(make, position, pick)

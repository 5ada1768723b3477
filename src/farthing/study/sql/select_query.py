"""SQL to statistics: SELECT, GROUP BY, HAVING, ORDER BY. Nothing is read, and nothing here sees a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from farthing.data import Dates, Reals
from farthing.data.expressions.syntax_tree import Meaning, Node, column, written
from farthing.data.schema import Domain, Schema
from farthing.errors import FarthingError, InvalidSQL, InvalidValue
from farthing.study.sql.aggregates import Aggregate, Aggregates, Derivations, domain_of
from farthing.study.sql.relations import FromClause, Relation, Source, refused_distinct, resolved
from farthing.study.sql.row_expressions import AGGREGATES, RowExpressions, checked, refuse_no_condition
from farthing.study.sql.statements import Statement, fault, number_of_rows, position_of, refuse_other_parts
from farthing.study.sql.table_query import (
    GroupKey,
    Measured,
    Ordering,
    OutputColumn,
    SelectQuery,
    TableQuery,
    cells_of,
)

MOST_CELLS = 1_000
MOST_SETS = 64
_CLAUSES = ("expressions", "from_", "where", "joins", "with_", "group", "having", "order", "limit", "offset")
_VALUE = Reals(-1e15, 1e15)  # what a released number may be, for checking what is computed from it


@dataclass
class Compiler:
    """Reads the statements of one text; what they derive is derived once for all of them."""

    text: str
    source: Source
    people_cells: int | None = None
    derivations: Derivations = field(default_factory=Derivations)

    def table(self, statement: Statement) -> TableQuery:
        """The statistics of one statement, and its rows."""
        try:
            return self._table(statement.tree, FromClause(self.text, self.source))
        except RecursionError:
            raise InvalidSQL(self.text, None, "operations are nested too deep", "name inner parts with WITH") from None

    def _table(self, tree: Any, clause: FromClause) -> TableQuery:
        while tree.key == "subquery":
            refuse_other_parts(self.text, tree, "this")
            tree = tree.this
        if tree.key == "select":
            return TableQuery((self.select(tree, clause),))
        if tree.key != "union":
            raise fault(self.text, tree, f"{tree.key.upper()} is not understood", "write SELECT, or UNION ALL")
        rest = refused_distinct(self.text, tree)
        refuse_other_parts(self.text, tree, "this", "expression", "with_", "order", "limit", "offset", *rest)
        inner = clause.with_named(tree)
        left, right = self._table(tree.this, inner), self._table(tree.expression, inner)
        for side, part in ((left, tree.this), (right, tree.expression)):
            if side.order or side.limit is not None or any(p.order or p.limit is not None for p in side.parts):
                raise fault(self.text, part, "ORDER BY and LIMIT stand at the end", "leave them out of the parts")
        first, other = left.parts[0].columns, right.parts[0].columns
        if len(first) != len(other):
            rule = f"both sides must have as many columns: {len(first)} and {len(other)}"
            raise fault(self.text, tree.expression, rule, "add NULL AS name where one has none")
        names = [each.name for each in first]
        order = tuple(self._order_of_table(each, names) for each in _ordered(tree))
        return TableQuery((*left.parts, *right.parts), order, self.rows(tree, "limit"), self.rows(tree, "offset") or 0)

    def _order_of_table(self, tree: Any, names: Sequence[str]) -> tuple[int, bool, bool]:
        refuse_other_parts(self.text, tree, "this", "desc", "nulls_first")
        place = _ordinal(tree.this)
        if place is None and tree.this.key == "column" and str(tree.this.this.this) in names:
            place = names.index(str(tree.this.this.this)) + 1
        if place is None or not 1 <= place <= len(names):
            raise fault(self.text, tree, "here ORDER BY names a column of the result", f"there are: {', '.join(names)}")
        return place - 1, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first"))

    def rows(self, tree: Any, name: str) -> int | None:
        """What LIMIT or OFFSET says; None where it is not there."""
        clause = tree.args.get(name)
        if clause is None:
            return None
        refuse_other_parts(self.text, clause, "expression", "offset")
        return number_of_rows(self.text, clause.expression, name)

    def select(self, tree: Any, clause: FromClause) -> SelectQuery:
        """The statistics of one SELECT, and its rows."""
        refuse_other_parts(self.text, tree, *_CLAUSES)
        inner = clause.with_named(tree)
        relation = inner.filtered(inner.relation(tree), tree)
        return Selection(self, tree, relation, inner).query()


@dataclass
class Selection:
    """One SELECT while it is read."""

    compiler: Compiler
    tree: Any
    relation: Relation
    clause: FromClause
    keys: list[GroupKey] = field(default_factory=list)
    aggregates: list[tuple[str, Aggregate]] = field(default_factory=list)
    outputs: dict[str, Node] = field(default_factory=dict)
    selecting: bool = True

    @property
    def text(self) -> str:
        """What was written, all of it: positions count from its beginning."""
        return self.compiler.text

    def query(self) -> SelectQuery:
        """Groups first, then what is selected, then what orders and filters the released numbers."""
        sets = self.read_groups()
        items = [self.output(item) for item in self.tree.expressions]
        self.selecting = False  # HAVING and ORDER BY prefer the names of the result to those of columns
        if not self.aggregates and self.tree.args.get("having") is None:
            raise self.without_statistics()
        having = self.tree.args.get("having")
        condition = None if having is None else self.condition(having)
        order = [self.ordering(each) for each in _ordered(self.tree)]
        schema = self.schema()
        columns = [self.finished(item, name, node, schema) for item, name, node in items]
        measured = tuple(
            Measured(tuple(each.make(self.columns_of(one)) for one in sets), each.position, each.pick, each.note)
            for each in self.made(sets)
        )
        return SelectQuery(
            self.relation.dataset,
            tuple(self.keys),
            sets,
            measured,
            tuple(columns),
            None if condition is None else self.true_or_false(condition, schema, having),
            tuple(Ordering(checked(node, schema, self.text), *how) for node, *how in order),
            self.compiler.rows(self.tree, "limit"),
            self.compiler.rows(self.tree, "offset") or 0,
        )

    def made(self, sets: Sequence[tuple[int, ...]]) -> Iterator[Aggregate]:
        """The aggregates, whose statistics are tried here so that a refusal shows its place."""
        for _, aggregate in self.aggregates:
            try:
                for one in sets:
                    aggregate.make(self.columns_of(one))
            except InvalidSQL:
                raise
            except FarthingError as refusal:
                raise said_of_statistic(self.text, aggregate.position, refusal) from None
            yield aggregate

    def columns_of(self, one: tuple[int, ...]) -> list[str]:
        """The columns of a set of keys."""
        return [self.keys[place].column for place in one]

    def without_statistics(self) -> InvalidSQL:
        """Why a SELECT without aggregates is refused."""
        first = next(iter(self.tree.expressions), self.tree)
        if self.tree.args.get("group") is not None:
            return fault(self.text, first, "there is nothing to measure", "add COUNT(*)")
        return fault(self.text, first, "rows never leave the table", "ask for COUNT(*), SUM, AVG, MEDIAN or others")

    # GROUP BY

    def read_groups(self) -> tuple[tuple[int, ...], ...]:
        """The keys, and the sets of them by which rows are grouped: several with ROLLUP, CUBE, GROUPING SETS."""
        group = self.tree.args.get("group")
        if group is None:
            return ((),)
        refuse_other_parts(self.text, group, "expressions", "all", "rollup", "cube")
        sets: list[tuple[int, ...]] = [()]
        listed = list(group.expressions)
        if group.args.get("all"):
            listed = [each for each in self.tree.expressions if not _has_aggregate(each) and not _is_constant(each)]
        marked = [*(group.args.get("rollup") or []), *(group.args.get("cube") or [])]
        if marked:  # GROUP BY a, b WITH ROLLUP
            keys = list(dict.fromkeys(self.key(each) for each in listed))
            if group.args.get("cube") and 2 ** len(keys) > MOST_SETS:
                raise self._too_many_sets(group)
            return self._checked_sets(_rolled(keys) if group.args.get("rollup") else _cubed(keys), group)
        for each in listed:
            # Checked as they grow: a short text can ask for more sets than there is room for.
            sets = list(self._checked_sets([one + other for one in sets for other in self._sets_of(each)], group))
        return self._checked_sets(sets, group)

    def _sets_of(self, tree: Any) -> list[tuple[int, ...]]:
        if tree.key in ("rollup", "cube"):
            refuse_other_parts(self.text, tree, "expressions")
            keys = list(dict.fromkeys(self.key(each) for each in tree.expressions))
            if tree.key == "cube" and 2 ** len(keys) > MOST_SETS:
                raise self._too_many_sets(tree)
            return _rolled(keys) if tree.key == "rollup" else _cubed(keys)
        if tree.key == "groupingsets":
            refuse_other_parts(self.text, tree, "expressions")
            return [one for each in tree.expressions for one in self._sets_of(each)]
        if tree.key == "tuple":
            refuse_other_parts(self.text, tree, "expressions")
            return [tuple(self.key(each) for each in tree.expressions)]
        if tree.key == "paren":
            return self._sets_of(tree.this)
        return [(self.key(tree),)]

    def _checked_sets(self, sets: Sequence[tuple[int, ...]], group: Any) -> tuple[tuple[int, ...], ...]:
        distinct = tuple(dict.fromkeys(tuple(sorted(set(one))) for one in sets))
        if len(distinct) > MOST_SETS:
            raise self._too_many_sets(group)
        return distinct

    def _too_many_sets(self, tree: Any) -> InvalidSQL:
        return fault(self.text, tree, f"more than {MOST_SETS} sets of groups", "name fewer columns")

    def key(self, tree: Any) -> int:
        """One key: a column, an expression, a name or a number of what is selected."""
        tree, wanted = self._selected(tree)
        if tree.key == "star" or _has_aggregate(tree):
            raise fault(self.text, tree, "groups are made by columns, not by statistics", "name a column")
        sql = tree.sql()
        for place, known in enumerate(self.keys):
            if known.sql == sql:
                return place
        if tree.key == "column" and self._is_unit(tree):
            rule = f"groups of one {tree.this.this} each would show one person each"
            raise fault(self.text, tree, rule, "GROUP BY it in a sub-query: one row a person; or COUNT(DISTINCT ...)")
        rows = RowExpressions(self.text, lambda each: resolved(self.text, self.relation, each))
        node, scale, shift = _affine(rows.node(tree))
        domain = domain_of(self.relation, node, self.text)
        self._refuse_many(node, domain, tree)
        plain = (scale, shift) == (1, 0)
        name = self.compiler.derivations.column(self.relation, node, self.text, wanted if plain else "")
        own = wanted or (str(tree.this.this) if tree.key == "column" else "")
        self.keys.append(GroupKey(name, domain, sql, own, scale, shift))
        return len(self.keys) - 1

    def _is_unit(self, tree: Any) -> bool:
        name = str(tree.this.this).lower()
        return name in [each.lower() for each in self.relation.unit] and name not in self.relation.columns

    def _selected(self, tree: Any) -> tuple[Any, str]:
        """What an alias or an ordinal stands for, and its name."""
        place = _ordinal(tree)
        if place is not None:
            if not 1 <= place <= len(self.tree.expressions):
                raise fault(self.text, tree, f"there is no column {place} in SELECT", "name the column")
            item = self.tree.expressions[place - 1]
            return (item.this, str(item.alias)) if item.key == "alias" else (item, "")
        if tree.key == "column" and not tree.table:
            name = str(tree.this.this).lower()
            is_column = name in [each.lower() for each in (*self.relation.columns, *self.relation.unit)]
            for item in self.tree.expressions:
                if item.key == "alias" and str(item.alias).lower() == name and not is_column:
                    return item.this, str(item.alias)
        for item in self.tree.expressions:  # the same expression, named in SELECT
            if item.key == "alias" and item.this.sql() == tree.sql() and tree.key != "column":
                return tree, str(item.alias)
        return tree, ""

    def _refuse_many(self, node: Node, domain: Domain, tree: Any) -> None:
        """Groups come from the schema: there must be a list of values, or few whole numbers or days."""
        cells = cells_of(domain)
        if cells is not None and cells <= MOST_CELLS:
            return
        text = written(node)
        low, high = getattr(domain, "lower", 0), getattr(domain, "upper", 1)
        if isinstance(domain, Dates):
            way_out = f"GROUP BY YEAR({text}), MONTH({text})"
        else:
            way_out = f"GROUP BY WIDTH_BUCKET({text}, {low:g}, {high:g}, 10), or CASE WHEN {text} < ... THEN ... END"
        many = "endless" if cells is None else f"{cells:,}"
        raise fault(self.text, tree, f"{text[:60]} has {many} values, and a group for each is too many", way_out)

    # SELECT

    def output(self, item: Any) -> tuple[Any, str, Node]:
        """One column of the result."""
        body = item.this if item.key == "alias" else item
        node = self.released(body)
        name = str(item.alias) if item.key == "alias" else ""
        if not name:
            name = str(body.this.this) if body.key == "column" and body.this.key == "identifier" else body.sql()
        if name in self.outputs:
            number = 2
            while f"{name}_{number}" in self.outputs:
                number += 1
            name = f"{name}_{number}"
        self.outputs[name] = node
        return body, name, node

    def released(self, tree: Any) -> Node:
        """What is computed from keys and released numbers."""
        return _Released(self.text, self.name_of_key, self.aggregate, self).node(tree)

    def aggregate(self, tree: Any) -> Node:
        """The released number of an aggregate, which is measured once however often it is named."""
        sql = tree.sql()
        for place, (known, _) in enumerate(self.aggregates):
            if known == sql:
                return column(f"a{place}", position_of(tree))
        aggregates = Aggregates(self.text, self.relation, self.compiler.derivations, self.people_cells)
        self.aggregates.append((sql, aggregates.one(tree)))
        return column(f"a{len(self.aggregates) - 1}", position_of(tree))

    def people_cells(self, by: list[str]) -> int | None:
        """In how many groups one person may count: in all of them, unless somebody says otherwise."""
        if not by:
            return None
        if self.compiler.people_cells is not None:
            return self.compiler.people_cells
        cells = 1
        for key in self.keys:
            if key.column in by:
                cells *= cells_of(key.domain) or 1
        return cells

    def name_of_key(self, tree: Any) -> Node:
        """The key, or the column of the result, that a name stands for."""
        name = str(tree.this.this)
        for place, key in enumerate(self.keys):
            if key.name.lower() == name.lower() or (key.sql.lower() == tree.sql().lower()):
                return column(f"k{place}", position_of(tree))
        alike = [each for each in self.outputs if each.lower() == name.lower()]
        is_column = name.lower() in [each.lower() for each in (*self.relation.columns, *self.relation.unit)]
        if alike and not tree.table and not (self.selecting and is_column):
            return self.outputs[alike[0]]
        if self._is_unit(tree):
            resolved(self.text, self.relation, tree)
        node = resolved(self.text, self.relation, tree)
        for place, key in enumerate(self.keys):
            if written(node) == key.column:
                return column(f"k{place}", position_of(tree))
        if self.tree.args.get("group") is None and not self.aggregates:
            raise fault(
                self.text, tree, "rows never leave the table", f"ask for AVG({name}), MEDIAN({name}) or COUNT(*)"
            )
        way_out = f"add {name} to GROUP BY, or take AVG({name})"
        raise fault(self.text, tree, f"{name[:60]!r} is neither in GROUP BY nor in an aggregate", way_out)

    def schema(self) -> Schema:
        """What keys and released numbers may be."""
        domains: dict[str, Domain] = {f"a{place}": _VALUE for place in range(len(self.aggregates))}
        for place, key in enumerate(self.keys):
            plain = (key.scale, key.shift) == (1, 0)
            domains[f"k{place}"] = key.domain if plain else _VALUE
        return Schema(domains)

    def finished(self, body: Any, name: str, node: Node, schema: Schema) -> OutputColumn:
        """One column of the result: a key, a released number, or what is computed from released numbers."""
        meaning = checked(node, schema, self.text)
        numbers = sorted({str(part.value) for part in meaning.walk() if part.operator == "column"})
        measured = [each for each in numbers if each.startswith("a")]
        if not measured:
            return OutputColumn(name, meaning, written(node))
        if len(measured) > 1 and _is_combination(node) and not any(each.pick for _, each in self.aggregates):
            return OutputColumn(name, meaning, written(node), combined=node)
        if len(measured) > 1:
            rule = "several released numbers may be added, subtracted, multiplied and divided"
            raise fault(self.text, body, rule, "select them, and compute the rest from the result")
        if not _is_line(node, measured[0]):
            rule = "a released number may be multiplied, shifted and rounded"
            raise fault(self.text, body, rule, "select it as it is, and compute the rest from the result")
        return OutputColumn(name, meaning, written(node), int(measured[0][1:]))

    # HAVING and ORDER BY

    def condition(self, clause: Any) -> Node:
        """What HAVING asks of released numbers."""
        refuse_other_parts(self.text, clause, "this")
        return self.released(clause.this)

    def true_or_false(self, node: Node, schema: Schema, clause: Any) -> Meaning:
        """What a tree means, refused unless HAVING could decide by it."""
        refuse_no_condition(node, schema, self.text, clause.this)
        return checked(node, schema, self.text)

    def ordering(self, tree: Any) -> tuple[Node, bool, bool]:
        """One part of ORDER BY."""
        refuse_other_parts(self.text, tree, "this", "desc", "nulls_first")
        place = _ordinal(tree.this)
        if place is not None:
            if not 1 <= place <= len(self.outputs):
                raise fault(self.text, tree, f"there is no column {place} in SELECT", "name the column")
            node = list(self.outputs.values())[place - 1]
        else:
            node = self.released(tree.this)
        return node, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first"))


@dataclass(frozen=True)
class _Released(RowExpressions):
    """What is said about keys and released numbers: an expression that is a key stands for it."""

    selection: Selection | None = None

    def node(self, tree: Any) -> Node:
        assert self.selection is not None
        sql = tree.sql() if self.selection.keys and tree is not None else ""
        for place, key in enumerate(self.selection.keys):
            if key.sql == sql:
                return column(f"k{place}", position_of(tree))
        return super().node(tree)


def said_of_statistic(text: str, position: int | None, refusal: FarthingError) -> InvalidSQL:
    """The refusal of a statistic, shown at the aggregate that asked for it."""
    if isinstance(refusal, InvalidValue):
        return InvalidSQL(text, position, f"{refusal.name} {refusal.rule}", refusal.way_out)
    rule = getattr(refusal, "rule", str(refusal).rstrip("."))
    return InvalidSQL(text, position, rule, getattr(refusal, "way_out", ""))


def _affine(node: Node) -> tuple[Node, float, float]:
    """An expression as (inner, scale, shift): groups of FLOOR(age / 10) * 10 are those of FLOOR(age / 10)."""
    if node.operator in ("*", "+", "-") and len(node.arguments) == 2:
        left, right = node.arguments
        if right.operator != "constant" and left.operator == "constant" and node.operator != "-":
            left, right = right, left
        number = right.value
        if right.operator == "constant" and type(number) in {int, float} and _counts(left):
            inner, scale, shift = _affine(left)
            assert isinstance(number, int | float)
            if node.operator == "*" and number != 0:
                return inner, scale * number, shift * number
            if node.operator != "*":
                return inner, scale, shift + (number if node.operator == "+" else -number)
    return node, 1, 0


def _counts(node: Node) -> bool:
    """Whether a part is rounded, so that multiplying it makes no new groups."""
    if node.operator in ("*", "+", "-"):
        return any(_counts(each) for each in node.arguments)
    return node.operator in ("floor", "ceil", "round", "//")


def _is_line(node: Node, name: str) -> bool:
    """Whether a tree is a line, rounded perhaps, in one column: its interval is then that between its ends."""
    inside = [each for each in node.arguments if _mentions(each, name)]
    if node.operator == "column":
        return True
    if len(inside) != 1 or any(_mentions_any(each) for each in node.arguments if each is not inside[0]):
        return False
    if node.operator in ("+", "-", "*", "negative", "round", "floor", "ceil"):
        return _is_line(inside[0], name)
    return node.operator == "/" and inside[0] is node.arguments[0] and _is_line(inside[0], name)


def _is_combination(node: Node) -> bool:
    """Whether a tree is arithmetic on released numbers and constants, whose error follows from theirs."""
    if node.operator == "column":
        return str(node.value).startswith("a")
    if node.operator == "constant":
        return type(node.value) in {int, float}
    return node.operator in ("+", "-", "*", "/", "negative") and all(map(_is_combination, node.arguments))


def _mentions(node: Node, name: str) -> bool:
    return node.value == name if node.operator == "column" else any(_mentions(each, name) for each in node.arguments)


def _mentions_any(node: Node) -> bool:
    return node.operator == "column" or any(map(_mentions_any, node.arguments))


def _rolled(keys: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(keys[:end]) for end in range(len(keys), -1, -1)]


def _cubed(keys: Sequence[int]) -> list[tuple[int, ...]]:
    return [one for size in range(len(keys), -1, -1) for one in combinations(keys, size)]


def _ordinal(tree: Any) -> int | None:
    return int(tree.this) if tree.key == "literal" and not tree.is_string and str(tree.this).isdecimal() else None


def _ordered(tree: Any) -> list[Any]:
    clause = tree.args.get("order")
    return [] if clause is None else list(clause.expressions)


def _has_aggregate(tree: Any) -> bool:
    return any(each.key in AGGREGATES for each in tree.walk())


def _is_constant(tree: Any) -> bool:
    return not any(each.key == "column" for each in tree.walk())

"""SQL about one row to the tree of farthing's own expressions, which checks it: see `data/expressions`.

A rule for each construct, by the `key` of SQLGlot's node. What has no rule is refused where it stands. Positions are
those of the statement, so that a fault which the expression's own check finds is shown there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.data.expressions.expression import check
from farthing.data.expressions.parser import FUNCTIONS, SYNONYMS, read_date, unknown_function
from farthing.data.expressions.syntax_tree import Meaning, Node, constant, written
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression, InvalidSQL
from farthing.study.sql.statements import fault, position_of, refuse_other_parts

Resolve = Callable[[Any], Node]

_INFIX = {
    "eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mod": "%",
}  # fmt: skip
_ONE = {"abs": "abs", "sign": "sign", "sqrt": "sqrt", "ln": "ln", "exp": "exp", "floor": "floor", "ceil": "ceil",
        "year": "year", "month": "month", "day": "day", "lower": "lower", "upper": "upper",
        "length": "length"}  # fmt: skip
_TARGETS = {"int": "integer", "bigint": "integer", "double": "double", "float": "double", "decimal": "double"}

AGGREGATES = frozenset(
    {
        "count", "countif", "sum", "avg", "stddev", "stddevpop", "stddevsamp", "variance", "variancepop", "median",
        "withingroup", "percentilecont", "percentiledisc", "quantile", "approxquantile", "approxdistinct", "min", "max",
        "logicalor", "logicaland", "corr", "covarpop", "covarsamp", "regrslope", "regrintercept", "mode", "anyvalue",
        "first", "last", "arrayagg", "groupconcat", "stringagg", "filter", "arrayuniqueagg", "list",
        "argmax", "argmin", "ignorenulls", "bitwiseandagg", "bitwiseoragg", "skewness", "kurtosis", "grouping", "hll",
    }
)  # fmt: skip

_WINDOW = ("an expression sees one row at a time", "leave OVER out and GROUP BY")
_QUERY = ("a sub-query cannot stand here", "name it in FROM, or with WITH, and filter there")
_AGGREGATE = ("a statistic of many rows cannot stand here", "select it, or ask about it in HAVING")
_PATTERN = ("patterns are matched by LIKE only", "use LIKE '%...%', which is tried on the declared categories")
_TEXT = ("new text cannot be made from text", "use CASE WHEN ... THEN ... END for new categories")
_CLOCK = ("the result must depend on the row alone", "write the date, for example DATE '2026-01-31'")
_RANDOM = ("the result must depend on the row alone", "study dataset.sample(0.1) for random rows")
_LIST = ("lists and structures are not understood", "use IN (...)")
_PARAMETER = ("parameters are not understood", "write the value itself")
_REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("window", "rownumber", "lag", "lead", "rank", "denserank", "ntile"), _WINDOW),
    **dict.fromkeys(("subquery", "select", "exists", "any", "all", "union"), _QUERY),
    **dict.fromkeys(("ilike", "similarto", "regexplike", "regexpilike", "glob", "escape", "regexpextract"), _PATTERN),
    **dict.fromkeys(("dpipe", "concat", "concatws", "substring", "trim", "replace", "md5", "sha2", "chr"), _TEXT),
    **dict.fromkeys(("currentdate", "currenttimestamp", "currenttime", "localtimestamp"), _CLOCK),
    **dict.fromkeys(("rand", "randn", "uuid"), _RANDOM),
    **dict.fromkeys(("array", "struct", "bracket", "tuple", "map", "explode", "unnest", "lambda"), _LIST),
    **dict.fromkeys(("placeholder", "parameter", "sessionparameter"), _PARAMETER),
    "interval": ("a span of time cannot be added", "compare with a date, or with days_between(first, last)"),
    "trycast": ("TRY_CAST is not understood", "cells that cannot be read are missing already"),
    "star": ("rows never leave the table", "ask for COUNT(*), SUM, AVG, MEDIAN or another statistic"),
    "trunc": ("TRUNC is not supported", "use FLOOR(x)"),
    "timestamptrunc": ("DATE_TRUNC is not supported", "GROUP BY YEAR(d), MONTH(d)"),
    "datetrunc": ("DATE_TRUNC is not supported", "GROUP BY YEAR(d), MONTH(d)"),
    "nullsafeeq": ("IS NOT DISTINCT FROM is not supported", "use = and IS NULL"),
    "nullsafeneq": ("IS DISTINCT FROM is not supported", "use <> and IS NULL"),
    "decode": ("DECODE is not supported", "use CASE WHEN ... THEN ... END"),
    "columns": ("columns are named one by one", "list them"),
    "positionalcolumn": ("columns are named, not numbered", "write the column's name"),
}


def conjunction(parts: list[Node]) -> Node | None:
    """Conditions joined by and, as one; None where there are none."""
    if not parts:
        return None
    flat: list[Node] = []
    for part in parts:
        flat += part.arguments if part.operator == "and" else [part]
    return flat[0] if len(flat) == 1 else Node("and", tuple(flat), None, flat[0].position)


def checked(node: Node, schema: Schema, text: str) -> Meaning:
    """What a tree means on rows of a schema; its faults are shown in the statement."""
    try:
        return check(node, schema, text)
    except InvalidExpression as error:
        raise InvalidSQL(text, error.position, error.rule, error.way_out, column=error.column) from None


def refuse_no_condition(node: Node, schema: Schema, text: str, place: Any) -> None:
    """Refuse what is not true or false."""
    from farthing.data.expressions.value_ranges import Flag

    if not isinstance(checked(node, schema, text).range, Flag):
        raise fault(text, place, f"{written(node)[:60]} is not a condition", "compare it with something")


@dataclass(frozen=True)
class RowExpressions:
    """Translates what is said about one row; `resolve` looks up columns, `aggregate` what stands for many rows."""

    text: str
    resolve: Resolve
    aggregate: Resolve | None = None

    def node(self, tree: Any) -> Node:
        """The tree of one expression."""
        if tree is None:  # of "f(x, )" and the like
            raise InvalidSQL(self.text, None, "an argument is missing", "write it, or leave out the comma before it")
        rule = _RULES.get(tree.key)
        if rule is not None:
            return rule(self, tree)
        if tree.key in _INFIX:
            return self._infix(tree)
        if tree.key in _ONE:
            refuse_other_parts(self.text, tree, "this")
            return self._made(_ONE[tree.key], tree, tree.this)
        if tree.key in AGGREGATES:
            if self.aggregate is not None:
                return self.aggregate(tree)
            raise fault(self.text, tree, *_AGGREGATE)
        name = str(tree.sql_name()) if hasattr(tree, "sql_name") else tree.key
        raise fault(self.text, tree, *(_REFUSED.get(tree.key) or _not_listed(name)))

    def _made(self, operator: str, tree: Any, *arguments: Any) -> Node:
        return Node(operator, tuple(map(self.node, arguments)), None, position_of(tree))

    def _infix(self, tree: Any) -> Node:
        known = ("this", "expression", "typed", "safe") if tree.key == "div" else ("this", "expression")
        refuse_other_parts(self.text, tree, *known)
        return self._made(_INFIX[tree.key], tree, tree.this, tree.expression)

    def column(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "table")
        if tree.this.key == "star":
            raise fault(self.text, tree, *_REFUSED["star"])
        return self.resolve(tree)

    def literal(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "is_string")
        if tree.is_string:
            return constant(tree.this, position_of(tree))
        return constant(number_of(self.text, tree), position_of(tree))

    def negative(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this")
        inner = self.node(tree.this)
        if inner.operator == "constant" and type(inner.value) in {int, float} and inner.value > 0:  # type: ignore[operator]
            return constant(-inner.value, position_of(tree))  # type: ignore[operator]
        return Node("negative", (inner,), None, position_of(tree))

    def inner(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this")
        return self.node(tree.this)

    def joined(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression")
        parts: list[Node] = []
        for side in (tree.this, tree.expression):
            part = self.node(side)
            parts += part.arguments if part.operator == tree.key else (part,)
        return Node(tree.key, tuple(parts), None, parts[0].position)

    def negation(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this")
        return self._made("not", tree, tree.this)

    def identity(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression")
        if tree.expression.key == "null":
            return self._made("is null", tree, tree.this)
        if tree.expression.key == "boolean":
            part = self._made("coalesce", tree, tree.this)
            wanted = bool(tree.expression.this)
            known = Node("coalesce", (*part.arguments, constant(not wanted)), None, part.position)
            return known if wanted else Node("not", (known,), None, part.position)
        raise fault(self.text, tree, "IS takes NULL, TRUE or FALSE", "use =")

    def membership(self, tree: Any) -> Node:
        if tree.args.get("query") is not None:
            raise fault(self.text, tree.args["query"], *_QUERY)
        refuse_other_parts(self.text, tree, "this", "expressions")
        return self._made("in", tree, tree.this, *tree.expressions)

    def between(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "low", "high")
        return self._made("between", tree, tree.this, tree.args["low"], tree.args["high"])

    def like(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression", "negate")
        node = self._made("like", tree, tree.this, tree.expression)
        return Node("not", (node,), None, node.position) if tree.args.get("negate") else node

    def power(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression")
        return self._made("power", tree, tree.this, tree.expression)

    def logarithm(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression")
        if tree.expression is None:
            rule = "LOG has a different base on each engine"
            raise fault(self.text, tree, rule, "write LN(x), LOG10(x) or LOG(2, x)")
        return self._made("log", tree, tree.this, tree.expression)

    def rounded(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "decimals")
        digits = tree.args.get("decimals")
        return self._made("round", tree, *([tree.this] if digits is None else [tree.this, digits]))

    def several(self, tree: Any) -> Node:
        # SQL engines skip what is missing; here a missing operand makes the result missing, as docs/sql.md says.
        refuse_other_parts(self.text, tree, "this", "expressions", "ignore_nulls")
        return self._made(tree.key, tree, tree.this, *tree.expressions)

    def nullif(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression")
        return self._made("nullif", tree, tree.this, tree.expression)

    def case(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "ifs", "default")
        parts: list[Node] = []
        subject = None if tree.this is None else self.node(tree.this)  # once: each may hold another
        for branch in tree.args["ifs"]:
            refuse_other_parts(self.text, branch, "this", "true")
            test = self.node(branch.this)
            if subject is not None:
                test = Node("=", (subject, test), None, test.position)
            parts += [test, self.node(branch.args["true"])]
        default = tree.args.get("default")
        parts.append(constant(None) if default is None else self.node(default))
        return Node("case", tuple(parts), None, position_of(tree))

    def choice(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "true", "false")
        default = tree.args.get("false")
        otherwise = constant(None) if default is None else self.node(default)
        return Node("case", (self.node(tree.this), self.node(tree.args["true"]), otherwise), None, position_of(tree))

    def cast(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "to")
        target = str(tree.args["to"].this.value).lower()
        if target == "date" and tree.this.key == "literal" and tree.this.is_string:
            position = position_of(tree)
            return constant(_day(self.text, tree.this.this, position), position)
        if target not in _TARGETS:
            rule = "a cast makes an integer or a double"
            raise fault(self.text, tree, rule, "write CAST(x AS INTEGER), or CASE WHEN for new categories")
        inner = self.node(tree.this)
        return Node("cast", (inner,), _TARGETS[target], position_of(tree))

    def part_of_date(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression")
        part = str(tree.this.this).lower()
        if part not in ("year", "month", "day"):
            raise fault(self.text, tree, f"EXTRACT({part[:20].upper()} ...) is not supported", "use YEAR, MONTH or DAY")
        return self._made(part, tree, tree.expression)

    def days(self, tree: Any) -> Node:
        refuse_other_parts(self.text, tree, "this", "expression", "unit", "date_part_boundary")
        unit = tree.args.get("unit")
        if unit is None or str(unit.this).lower() != "day":
            raise fault(self.text, tree, "DATE_DIFF counts days only", "write DATE_DIFF('day', first, last)")
        return self._made("days_between", tree, tree.expression, tree.this)

    def bucket(self, tree: Any) -> Node:
        """WIDTH_BUCKET as the standard has it: 0 below the least, one more than the buckets from the upper end on."""
        refuse_other_parts(self.text, tree, "this", "min_value", "max_value", "num_buckets")
        low, high = (self._constant(tree.args.get(name)) for name in ("min_value", "max_value"))
        parts = self._constant(tree.args.get("num_buckets"))
        if not (isinstance(parts, int) and 1 <= parts <= 1_000 and low < high):
            rule = "WIDTH_BUCKET needs a lower end below the upper one, and 1 to 1,000 buckets"
            raise fault(self.text, tree, rule, "for example WIDTH_BUCKET(age, 0, 110, 11)")
        position = position_of(tree)
        value = self.node(tree.this)
        moved = value if low == 0 else Node("-", (value, constant(low)), None, position)
        share = Node("/", (Node("*", (moved, constant(parts)), None, position), constant(high - low)), None, position)
        cut = Node("clip", (share, constant(-1), constant(parts)), None, position)
        return Node("+", (Node("floor", (cut,), None, position), constant(1)), None, position)

    def _constant(self, tree: Any) -> Any:
        node = self.node(tree)
        if node.operator != "constant" or type(node.value) not in {int, float}:
            raise fault(self.text, tree, "must be a number", "write the number itself")
        return node.value

    def called(self, tree: Any) -> Node:
        name = SYNONYMS.get(str(tree.this).lower(), str(tree.this).lower())
        if name == "date_part" and len(tree.expressions) == 2 and tree.expressions[0].key == "literal":
            part = str(tree.expressions[0].this).lower()
            if part in ("year", "month", "day"):
                return self._made(part, tree, tree.expressions[1])
        if name not in FUNCTIONS:
            raise fault(self.text, tree, *_not_listed(name))
        fewest, most = FUNCTIONS[name]
        if not fewest <= len(tree.expressions) <= most:
            raise fault(self.text, tree, f"{name} takes {fewest} to {most} arguments, not {len(tree.expressions)}")
        return self._made(name, tree, *tree.expressions)


def number_of(text: str, tree: Any) -> int | float:
    """The number that a literal writes."""
    try:
        number = int(tree.this) if tree.this.isdecimal() and tree.this.isascii() else float(tree.this)
    except ValueError:
        raise fault(text, tree, "is not a number", "write it as 1000, 2.5 or 1e-3") from None
    if len(tree.this) > 40:
        raise fault(text, tree, "a number has at most 40 characters")
    return number


def _day(text: str, spelling: str, position: int | None) -> Any:
    try:
        return read_date(text, spelling, position)
    except InvalidExpression as error:
        raise InvalidSQL(text, position, error.rule, error.way_out) from None


def _not_listed(name: str) -> tuple[str, str]:
    return unknown_function(name.lower())


def _constant_rule(value: Any) -> Callable[[RowExpressions, Any], Node]:
    return lambda self, tree: constant(value, position_of(tree))


_RULES: Mapping[str, Callable[[RowExpressions, Any], Node]] = {
    "column": RowExpressions.column,
    "literal": RowExpressions.literal,
    "null": _constant_rule(None),
    "boolean": lambda self, tree: constant(bool(tree.this), position_of(tree)),
    "neg": RowExpressions.negative,
    "paren": RowExpressions.inner,
    "and": RowExpressions.joined,
    "or": RowExpressions.joined,
    "not": RowExpressions.negation,
    "is": RowExpressions.identity,
    "in": RowExpressions.membership,
    "between": RowExpressions.between,
    "like": RowExpressions.like,
    "pow": RowExpressions.power,
    "log": RowExpressions.logarithm,
    "round": RowExpressions.rounded,
    "least": RowExpressions.several,
    "greatest": RowExpressions.several,
    "coalesce": RowExpressions.several,
    "nullif": RowExpressions.nullif,
    "case": RowExpressions.case,
    "if": RowExpressions.choice,
    "cast": RowExpressions.cast,
    "extract": RowExpressions.part_of_date,
    "datediff": RowExpressions.days,
    "widthbucket": RowExpressions.bucket,
    "anonymous": RowExpressions.called,
}

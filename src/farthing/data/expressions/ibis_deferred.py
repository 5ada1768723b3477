"""Ibis deferred expressions (`_.bmi < 25`) to the same tree that text becomes.

The expression is resolved on an empty table that has the columns and types of the schema and no rows, and its
operations are translated one by one from a closed list.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from farthing.data.expressions.parser import DEEPEST, TARGETS, unknown_function
from farthing.data.expressions.syntax_tree import Node, column, constant
from farthing.data.schema import Categories, Dates, Domain, Integers, Reals, Schema
from farthing.errors import InvalidExpression

_BINARY = {
    "Equals": "=", "NotEquals": "<>", "Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">=",
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "FloorDivide": "//", "Modulus": "%",
    "Power": "power",
}  # fmt: skip
_UNARY = {
    "Not": "not", "Negate": "negative", "IsNull": "is null", "Abs": "abs", "Floor": "floor", "Ceil": "ceil",
    "Sign": "sign", "Sqrt": "sqrt", "Ln": "ln", "Log10": "log10", "Log2": "log2", "Exp": "exp",
    "ExtractYear": "year", "ExtractMonth": "month", "ExtractDay": "day",
    "Lowercase": "lower", "Uppercase": "upper", "StringLength": "length",
}  # fmt: skip
_MANY = {"Least": "least", "Greatest": "greatest", "Coalesce": "coalesce"}


def node_of_deferred(source: object, schema: Schema) -> tuple[str, Node]:
    """A text for messages and the tree of `source`."""
    from ibis.common.deferred import Deferred

    if not isinstance(source, Deferred):
        raise InvalidExpression(
            "",
            None,
            f"must be text or an Ibis deferred expression, not {type(source).__name__}",
            'for example "age < 25" or ibis._.age < 25',
        )
    import ibis

    text = repr(source)[:200]
    table = ibis.table({name: _type(domain) for name, domain in schema.columns.items()}, name="rows")
    try:
        operation = source.resolve(table).op()
    except InvalidExpression:
        raise
    except Exception as error:  # whatever Ibis or a lambda raises; there are no rows that it could quote
        raise InvalidExpression(
            text,
            None,
            f"Ibis cannot apply it to the columns of the schema ({type(error).__name__})",
            "check the names and kinds of the columns",
        ) from None
    return text, _Translation(text, table.op()).node(operation, 0)


class _Translation:
    def __init__(self, text: str, table: Any) -> None:
        self.text = text
        self.table = table

    def node(self, operation: Any, depth: int) -> Node:
        if depth > 3 * DEEPEST:
            raise InvalidExpression(self.text, None, "nested too deep", "derive a column for an inner part of it")
        name = type(operation).__name__

        def inner(argument: Any) -> Node:
            return self.node(argument, depth + 1)

        if name == "Field" and operation.rel == self.table:
            return column(operation.name)
        if name == "Literal":
            return constant(self.constant(operation.value))
        if name in {"And", "Or"}:
            return _joined(name.lower(), inner(operation.left), inner(operation.right))
        if name in _BINARY:
            return Node(_BINARY[name], tuple(inner(argument) for argument in operation.args[:2]))
        if name in _UNARY:
            return _signed(Node(_UNARY[name], (inner(operation.args[0]),)))
        if name in _MANY:
            return Node(_MANY[name], tuple(inner(argument) for argument in operation.arg))
        if name in _SPECIAL:
            return _SPECIAL[name](self, operation, inner)
        rule, way_out = unknown_function(name.lower())
        raise InvalidExpression(self.text, None, rule.replace(name.lower(), name), way_out)

    def constant(self, value: object) -> object:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, float | Decimal):
            return float(value)
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value
        raise InvalidExpression(
            self.text,
            None,
            f"a constant of type {type(value).__name__} is not understood",
            "use a number, text or date",
        )

    def cast(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        target = TARGETS.get(str(operation.to))
        if target is None and operation.to.is_date():
            return inner(operation.arg)  # text beside a date is read as a date
        if target is None:
            raise InvalidExpression(self.text, None, "a cast makes an integer or a double", "cast to int64 or float64")
        return Node("cast", (inner(operation.arg),), target)

    def delta(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        unit = getattr(getattr(operation, "unit", getattr(operation, "part", None)), "value", "")
        if str(unit).lower() not in {"d", "day"}:
            raise InvalidExpression(self.text, None, "dates are compared in days", "use delta(..., unit='day')")
        return Node("days_between", (inner(operation.right), inner(operation.left)))

    def round(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        digits = () if operation.digits is None else (inner(operation.digits),)
        return Node("round", (inner(operation.arg), *digits))

    def log(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        if operation.base is None:
            return Node("ln", (inner(operation.arg),))
        return Node("log", (inner(operation.base), inner(operation.arg)))

    def clip(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        node = inner(operation.arg)
        if operation.lower is not None:
            node = Node("greatest", (node, inner(operation.lower)))
        return node if operation.upper is None else Node("least", (node, inner(operation.upper)))

    def searched_case(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        pairs = zip(operation.cases, operation.results, strict=True)
        parts = [inner(part) for pair in pairs for part in pair]
        return Node("case", (*parts, inner(operation.default)))

    def simple_case(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        base = inner(operation.base)
        parts: list[Node] = []
        for test, result in zip(operation.cases, operation.results, strict=True):
            parts += [Node("=", (base, inner(test))), inner(result)]
        return Node("case", (*parts, inner(operation.default)))

    def if_else(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        return Node("case", tuple(inner(argument) for argument in operation.args))

    def like(self, operation: Any, inner: Callable[[Any], Node]) -> Node:
        if getattr(operation, "escape", None) is not None:
            raise InvalidExpression(self.text, None, "escape is not understood", "use isin for such categories")
        return Node("like", (inner(operation.arg), inner(operation.pattern)))


_SPECIAL: dict[str, Callable[[_Translation, Any, Callable[[Any], Node]], Node]] = {
    "NotNull": lambda _, operation, inner: Node("not", (Node("is null", (inner(operation.arg),)),)),
    "Between": lambda _, operation, inner: Node("between", tuple(inner(argument) for argument in operation.args)),
    "InValues": lambda _, operation, inner: Node(
        "in", (inner(operation.value), *(inner(option) for option in operation.options))
    ),
    "NullIf": lambda _, operation, inner: Node("nullif", tuple(inner(argument) for argument in operation.args)),
    "Cast": _Translation.cast,
    "DateDelta": _Translation.delta,
    "Round": _Translation.round,
    "Log": _Translation.log,
    "Clip": _Translation.clip,
    "SearchedCase": _Translation.searched_case,
    "SimpleCase": _Translation.simple_case,
    "IfElse": _Translation.if_else,
    "StringSQLLike": _Translation.like,
}


def _joined(word: str, left: Node, right: Node) -> Node:
    parts = [part for side in (left, right) for part in (side.arguments if side.operator == word else (side,))]
    return Node(word, tuple(parts))


def _signed(node: Node) -> Node:
    """-5 as a constant, as the parser reads it."""
    (inner,) = node.arguments
    if node.operator == "negative" and type(inner.value) in {int, float} and inner.value > 0:  # type: ignore[operator]
        return constant(-inner.value)  # type: ignore[operator]
    return node


def _type(domain: Domain) -> str:
    if isinstance(domain, Categories):
        first = domain.values[0]
        return "boolean" if isinstance(first, bool) else "int64" if isinstance(first, int) else "string"
    return {Integers: "int64", Reals: "float64", Dates: "date"}.get(type(domain), "boolean")

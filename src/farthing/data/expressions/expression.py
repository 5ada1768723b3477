"""Expressions: read once, then frozen, typed and total.

From what an expression says to what it means: columns looked up, kinds checked, ranges propagated.

Every rule either returns a part that is total (it has a value or is missing on every row, on every engine) or refuses
the expression where the fault stands. Nothing here sees a row.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.data.expressions import text_functions, value_ranges
from farthing.data.expressions.arithmetic import NUMERIC_RULES, Coercion, clipped, name_of_kind
from farthing.data.expressions.ibis_compiler import compiled, read_cell
from farthing.data.expressions.ibis_deferred import node_of_deferred
from farthing.data.expressions.parser import REASONS, parse
from farthing.data.expressions.row_evaluation import Value, evaluate
from farthing.data.expressions.syntax_tree import (
    COLUMN,
    CONSTANT,
    DEEPEST_MEANING,
    HEAVIEST,
    Meaning,
    Node,
    meaning,
    written,
)
from farthing.data.expressions.value_ranges import Day, Flag, Label, Nothing, OutOfRange, Range, Real, Whole
from farthing.data.schema import Domain, Flags, Integers, Reals, Schema, not_found_yet
from farthing.errors import InvalidExpression, InvalidValue

_ORDER = {"<", "<=", ">", ">="}


def check(node: Node, schema: Schema, text: str) -> Meaning:
    """The meaning of `node` for rows of `schema`, or an InvalidExpression that points into `text`."""
    return _Checker(schema, text).check(node)


class _Checker(Coercion):
    def __init__(self, schema: Schema, text: str) -> None:
        super().__init__(text)
        self.schema = schema

    def check(self, node: Node, above: int = 0) -> Meaning:
        if above > DEEPEST_MEANING:
            raise self.fault(
                node, f"more than {DEEPEST_MEANING} operations inside one another", "derive a column first"
            )
        if node.operator == COLUMN:
            return self.column(node)
        try:
            if node.operator == CONSTANT:
                return meaning(CONSTANT, (), value_ranges.range_of_constant(node.value), node.value)
            arguments = [self.check(argument, above + 1) for argument in node.arguments]
            result = self.rule(node)(node, arguments)
        except OutOfRange as error:
            raise self.fault(node, *error.args) from None
        if result.depth > DEEPEST_MEANING or result.weight > HEAVIEST:
            raise self.fault(node, "the expression becomes too long when it is written out", "derive a column first")
        return folded(result)

    def rule(self, node: Node) -> Callable[[Node, list[Meaning]], Meaning]:
        if node.operator in _ORDER | {"=", "<>"}:
            return self.comparison
        if node.operator in NUMERIC_RULES:
            return self.numeric
        rules: dict[str, Callable[[Node, list[Meaning]], Meaning]] = {
            "and": self.logical, "or": self.logical, "not": self.logical, "is null": self.is_null,
            "in": self.membership, "between": self.between, "like": self.like,
            "case": self.case, "coalesce": self.coalesce, "nullif": self.nullif,
            "lower": self.text_function, "upper": self.text_function, "length": self.text_function,
            "year": self.part_of_date, "month": self.part_of_date, "day": self.part_of_date,
            "days_between": self.days_between, "cast": self.cast,
        }  # fmt: skip
        return rules[node.operator]

    # Columns

    def column(self, node: Node) -> Meaning:
        name = str(node.value)
        if name not in self.schema:
            raise self.unknown_column(node, name)
        return meaning(COLUMN, (), value_ranges.range_of_domain(self.schema[name]), name)

    def unknown_column(self, node: Node, name: str) -> InvalidExpression:
        if name.lower() in REASONS:
            return self.fault(node, *REASONS[name.lower()])
        if name in self.schema.unknown:
            refusal = not_found_yet(name)
            return self.fault(node, f"the column {name[:60]!r} {refusal.rule}", refusal.way_out, column=name)
        names = list(self.schema)
        near = [other for other in names if other.lower() == name.lower()]
        near = near or difflib.get_close_matches(name, names, 1)
        known = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
        way_out = f"did you mean {near[0]}" if near else f"the schema has {known}; text is written in single quotes"
        return self.fault(node, f"there is no column {name[:60]!r}", way_out, column=name)

    # Logic

    def logical(self, node: Node, arguments: list[Meaning]) -> Meaning:
        for part, argument in zip(arguments, node.arguments, strict=True):
            if not isinstance(part.range, Flag):
                raise self.fault(
                    argument,
                    f"{node.operator} joins conditions, not {name_of_kind(part)}",
                    "compare it with something",
                )
        return balanced(node.operator, arguments)

    def is_null(self, node: Node, arguments: list[Meaning]) -> Meaning:
        return meaning("is null", tuple(arguments), Flag())

    def case(self, node: Node, arguments: list[Meaning]) -> Meaning:
        tests, results = arguments[:-1:2], [*arguments[1:-1:2], arguments[-1]]
        for part, argument in zip(tests, node.arguments[:-1:2], strict=True):
            if not isinstance(part.range, Flag):
                raise self.fault(argument, f"when needs a condition, not {name_of_kind(part)}")
        results = self.alike(node, results, [*node.arguments[1:-1:2], node.arguments[-1]])
        values = value_ranges.hull([part.range for part in results])
        pairs = [part for pair in zip(tests, results, strict=False) for part in pair]
        return meaning("case", (*pairs, results[-1]), values)

    def coalesce(self, node: Node, arguments: list[Meaning]) -> Meaning:
        parts = self.alike(node, arguments, list(node.arguments))
        return meaning("coalesce", tuple(parts), value_ranges.hull([part.range for part in parts]))

    def nullif(self, node: Node, arguments: list[Meaning]) -> Meaning:
        left, right = self.alike(node, arguments, list(node.arguments), missing=False)
        self.known_labels(node, left, right)
        return meaning("nullif", (left, right), left.range)

    # Comparisons

    def comparison(self, node: Node, arguments: list[Meaning]) -> Meaning:
        left, right = self.alike(node, arguments, list(node.arguments), missing=False)
        if isinstance(left.range, Label) and node.operator in _ORDER:
            return self.order_of_labels(node, left, right)
        if isinstance(left.range, Flag) and node.operator in _ORDER:
            raise self.fault(node, "true and false have no order", "compare them with = or <>")
        self.known_labels(node, left, right)
        return meaning(node.operator, (left, right), Flag())

    def order_of_labels(self, node: Node, left: Meaning, right: Meaning) -> Meaning:
        """Engines sort text by different alphabets, so the order is decided here, by code point."""
        if right.operator == CONSTANT:
            return text_functions.compared(left, node.operator, str(right.value))
        if left.operator == CONSTANT:
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[node.operator]
            return text_functions.compared(right, flipped, str(left.value))
        raise self.fault(node, "two columns of text cannot be ordered", "compare each with a category")

    def membership(self, node: Node, arguments: list[Meaning]) -> Meaning:
        for part, argument in zip(arguments[1:], node.arguments[1:], strict=True):
            if part.operator != CONSTANT:
                raise self.fault(argument, "in (...) lists constants only", "join comparisons with or")
        subject, *options = self.alike(node, arguments, list(node.arguments), missing=False)
        for option in options:
            self.known_labels(node, subject, option)
        distinct = {option.value: option for option in options}
        return meaning("in", (subject, *distinct.values()), Flag())

    def between(self, node: Node, arguments: list[Meaning]) -> Meaning:
        parts = self.alike(node, arguments, list(node.arguments), missing=False)
        if isinstance(parts[0].range, Label | Flag):
            raise self.fault(node, f"{name_of_kind(parts[0])} cannot be used with between", "use in (...)")
        return meaning("between", tuple(parts), Flag())

    def like(self, node: Node, arguments: list[Meaning]) -> Meaning:
        subject, pattern = arguments
        if not isinstance(subject.range, Label):
            raise self.fault(node, f"like needs categories of text, not {name_of_kind(subject)}")
        if pattern.operator != CONSTANT or not isinstance(pattern.value, str):
            raise self.fault(node.arguments[1], "a pattern is a text between quotes", "for example like 'north%'")
        return text_functions.pattern_match(subject, pattern.value)

    # Text, dates, numbers, casts

    def text_function(self, node: Node, arguments: list[Meaning]) -> Meaning:
        if not isinstance(arguments[0].range, Label):
            raise self.fault(node, f"{node.operator} needs categories of text, not {name_of_kind(arguments[0])}")
        return text_functions.changed(arguments[0], node.operator)

    def part_of_date(self, node: Node, arguments: list[Meaning]) -> Meaning:
        part = self.as_day(node.arguments[0], arguments[0])
        assert isinstance(part.range, Day)
        span = {"year": (part.range.lower.year, part.range.upper.year), "month": (1, 12), "day": (1, 31)}
        return meaning(node.operator, (part,), Whole(*span[node.operator]))

    def days_between(self, node: Node, arguments: list[Meaning]) -> Meaning:
        first, last = (self.as_day(argument, part) for argument, part in zip(node.arguments, arguments, strict=True))
        assert isinstance(first.range, Day) and isinstance(last.range, Day)
        low = (last.range.lower - first.range.upper).days
        high = (last.range.upper - first.range.lower).days
        return meaning("days between", (first, last), Whole(low, high))

    def numeric(self, node: Node, arguments: list[Meaning]) -> Meaning:
        if node.operator == "-" and any(isinstance(part.range, Day) for part in arguments):
            raise self.fault(node, "dates are not subtracted", "write days_between(first, last)")
        for part, argument in zip(arguments, node.arguments, strict=True):
            self.demand_number(node, part, argument)
        return NUMERIC_RULES[node.operator](self, node, arguments)

    def cast(self, node: Node, arguments: list[Meaning]) -> Meaning:
        (part,) = arguments
        if isinstance(part.range, Flag):
            part = meaning("number", (part,), Whole(0, 1))
        if not isinstance(part.range, Whole | Real):
            raise self.fault(node, f"{name_of_kind(part)} is not cast to a number", "use case when ... then ... end")
        if node.value == "double":
            return self.real(part)
        return part if isinstance(part.range, Whole) else NUMERIC_RULES["round"](self, node, [part])


def balanced(operator: str, parts: list[Meaning]) -> Meaning:
    """A long chain of and/or as a tree of small depth, which means the same."""
    if operator == "not" or len(parts) == 2:
        return meaning(operator, tuple(parts), Flag())
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return meaning(operator, (balanced(operator, parts[:half]), balanced(operator, parts[half:])), Flag())


def folded(part: Meaning) -> Meaning:
    """A part without columns as the constant it is, so that no engine computes it in its own way."""
    if part.operator == CONSTANT or not part.arguments:
        return part
    if any(argument.operator != CONSTANT for argument in part.arguments):
        return part
    value = evaluate(part, {})
    value_range: Range = part.range
    if value is not None and not isinstance(value_range, Nothing):
        value_range = value_ranges.range_of_constant(value) if not isinstance(value_range, Real) else value_range
    if isinstance(value_range, Real) and isinstance(value, float):
        value_range = Real(value, value, value_range.grain)
    return meaning(CONSTANT, (), value_range, value)


@dataclass(frozen=True, slots=True)
class Expression:
    """A predicate or a derived value that has a result, or is missing, on every row of every engine.

    Args:
        text: The expression, written out.
        domain: What its result may be.
        schema: The columns it may use.
        meaning: The checked tree that engines are handed.

    >>> from farthing.data.schema import Schema
    >>> schema = Schema.read({"sex": ["F", "M"], "weight": (30.0, 250.0), "height": (1.0, 2.5)})
    >>> bmi = read("weight / (height*height)", schema)
    >>> bmi.text, bmi.domain
    ('weight / (height * height)', Reals(lower=4.8, upper=250.0))
    >>> bmi.columns
    ('height', 'weight')
    >>> bmi.value({"weight": 80.0, "height": 2.0})
    20.0
    """

    text: str
    domain: Domain
    schema: Schema
    meaning: Meaning

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are used, sorted.

        >>> read("b > a", Schema.read({"a": (0, 1), "b": (0, 1)})).columns
        ('a', 'b')
        """
        return tuple(sorted({str(part.value) for part in self.meaning.walk() if part.operator == COLUMN}))

    @property
    def is_predicate(self) -> bool:
        """Whether the result is true or false.

        >>> read("a > 0", Schema.read({"a": (0, 1)})).is_predicate
        True
        """
        return isinstance(self.domain, Flags)

    def to_ibis(self, table: Any, *, cells_read: bool = False) -> Any:
        """The expression as a value of an Ibis table that has its columns.

        Args:
            table: The table. Its raw cells are read by the rules of the schema first.
            cells_read: Says that the cells lie in their domains or are missing already; reading twice changes nothing
                and costs time.

        Returns:
            An Ibis value.

        >>> import ibis
        >>> table = ibis.table({"a": "int64"}, name="t")
        >>> value = read("a + 1", Schema.read({"a": (0, 9)})).to_ibis(table, cells_read=True)
        >>> str(value.type())
        'int64'
        """
        return compiled(self.meaning, table, self.schema, cells_read=cells_read)

    def value(self, row: Mapping[str, object]) -> Value:
        """The same on one raw row in plain Python: slow, obvious, and what engines are tested against.

        Args:
            row: The raw cells by column.

        Returns:
            The value, or None where it is missing.

        >>> read("a / 0", Schema.read({"a": (0, 9)}), Reals(0.0, 1.0)).value({"a": 3}) is None
        True
        """
        cells = {name: read_cell(row[name], self.schema[name]) for name in self.columns}
        return evaluate(self.meaning, cells)

    def __str__(self) -> str:
        return self.text


def read(source: object, schema: Schema, declared: Domain | None = None) -> Expression:
    """The expression that a text or an Ibis deferred expression describes.

    Args:
        source: Text such as "age >= 18", or an Ibis deferred expression.
        schema: The columns that it may use.
        declared: Bounds for a numeric result, which is clipped to them. By default bounds are propagated from those of
            the columns, and a result that could become too large is refused.

    Returns:
        The expression, checked: it has a value or is missing on every row.

    Raises:
        InvalidExpression: If it cannot be read, with the place of the fault.

    >>> schema = Schema.read({"sex": ["F", "M"], "age": (0, 110)})
    >>> read("sex = 'F' and age >= 18", schema).domain
    Flags()
    >>> import ibis
    >>> read(ibis._.age * 2, schema).text
    'age * 2'
    >>> read("sex = 'X'", schema)
    Traceback (most recent call last):
    farthing.errors.InvalidExpression: expression, character 5: 'X' is not among the categories; they are 'F', 'M'.
        sex = 'X'
            ^
    """
    if not isinstance(source, str):
        return _read(*node_of_deferred(source, schema), schema, declared)
    key = "expression", source, type(declared), declared
    expression: Expression = schema.remembered(key, lambda: _read(source, parse(source), schema, declared))
    return expression


def _read(text: str, node: Node, schema: Schema, declared: Domain | None) -> Expression:
    result = check(node, schema, text)
    try:
        domain, result = _result(result, schema, declared, text)
    except (OutOfRange, InvalidValue) as error:
        rule, way_out = error.args if isinstance(error, OutOfRange) else (error.rule, error.way_out)
        raise InvalidExpression(text, None, rule, way_out) from None
    return Expression(written(node), domain, schema, result)


def _result(result: Meaning, schema: Schema, declared: Domain | None, text: str) -> tuple[Domain, Meaning]:
    """The domain of the whole, and the meaning clipped to it where bounds are declared."""
    if declared is None:
        # A column by itself keeps the domain it was declared with.
        named = schema[str(result.value)] if result.operator == COLUMN else None
        return named or value_ranges.domain_of_range(result.range), result
    if not (isinstance(declared, Integers | Reals) and isinstance(result.range, Whole | Real)):
        raise InvalidExpression(
            text,
            None,
            f"bounds of kind {type(declared).__name__} do not fit the result",
            "declare a pair of numbers for a number, and nothing for anything else",
        )
    if isinstance(result.range, Whole) and isinstance(declared, Integers):
        return declared, clipped(result, declared.lower, declared.upper)
    bounds = Reals(declared.lower, declared.upper)
    return bounds, clipped(Coercion(text).real(result), bounds.lower, bounds.upper)

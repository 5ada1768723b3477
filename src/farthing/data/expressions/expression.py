"""Expressions: read once, then frozen, typed and total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farthing.data.expressions import value_ranges
from farthing.data.expressions.arithmetic import Coercion, clipped
from farthing.data.expressions.ibis_compiler import compiled
from farthing.data.expressions.ibis_deferred import node_of_deferred
from farthing.data.expressions.parser import parse
from farthing.data.expressions.raw_cells import read_cell
from farthing.data.expressions.row_evaluation import Value, evaluate
from farthing.data.expressions.syntax_tree import COLUMN, written
from farthing.data.expressions.type_check import check
from farthing.data.expressions.typed_tree import Meaning
from farthing.data.expressions.value_ranges import OutOfRange, Real, Whole
from farthing.data.schema import Domain, Flags, Integers, Reals, Schema
from farthing.errors import InvalidExpression, InvalidValue


@dataclass(frozen=True, slots=True)
class Expression:
    """A predicate or a derived value that has a result, or is missing, on every row of every engine.

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
        """The expression as a value of an Ibis `table` that has its columns.

        Raw cells are read by the rules of the schema first. Say `cells_read=True` for a table whose cells lie in
        their domains or are missing already; reading twice changes nothing and costs time.

        >>> import ibis
        >>> table = ibis.table({"a": "int64"}, name="t")
        >>> value = read("a + 1", Schema.read({"a": (0, 9)})).to_ibis(table, cells_read=True)
        >>> str(value.type())
        'int64'
        """
        return compiled(self.meaning, table, self.schema, cells_read=cells_read)

    def value(self, row: Mapping[str, object]) -> Value:
        """The same on one raw row in plain Python: slow, obvious, and what engines are tested against.

        >>> read("a / 0", Schema.read({"a": (0, 9)}), Reals(0.0, 1.0)).value({"a": 3}) is None
        True
        """
        cells = {name: read_cell(row[name], self.schema[name]) for name in self.columns}
        return evaluate(self.meaning, cells)

    def __str__(self) -> str:
        return self.text


def read(source: object, schema: Schema, declared: Domain | None = None) -> Expression:
    """The expression that a text or an Ibis deferred expression describes.

    `declared` gives bounds for a numeric result; it is clipped to them. Without it, bounds are propagated from those
    of the columns, and a result that could become too large is refused.

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
    if isinstance(source, str):
        text, node = source, parse(source)
    else:
        text, node = node_of_deferred(source, schema)
    found = check(node, schema, text)
    try:
        domain, found = _result(found, schema, declared, text)
    except (OutOfRange, InvalidValue) as error:
        rule, way_out = error.args if isinstance(error, OutOfRange) else (error.rule, error.way_out)
        raise InvalidExpression(text, None, rule, way_out) from None
    return Expression(written(node), domain, schema, found)


def _result(found: Meaning, schema: Schema, declared: Domain | None, text: str) -> tuple[Domain, Meaning]:
    """The domain of the whole, and the meaning clipped to it where bounds are declared."""
    if declared is None:
        # A column by itself keeps the domain it was declared with.
        named = schema[str(found.value)] if found.operator == COLUMN else None
        return named or value_ranges.domain_of_range(found.range), found
    if not (isinstance(declared, Integers | Reals) and isinstance(found.range, Whole | Real)):
        raise InvalidExpression(
            text, None, f"bounds of kind {type(declared).__name__} do not fit the result",
            "declare a pair of numbers for a number, and nothing for anything else",
        )  # fmt: skip
    if isinstance(found.range, Whole) and isinstance(declared, Integers):
        return declared, clipped(found, declared.lower, declared.upper)
    bounds = Reals(declared.lower, declared.upper)
    return bounds, clipped(Coercion(text).real(found), bounds.lower, bounds.upper)

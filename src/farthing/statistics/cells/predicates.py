"""Conditions as and, or, not over atoms: three-valued, as SQL has them, and evaluated on whole arrays of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.expression import check, read
from farthing.data.expressions.ibis_deferred import node_of_deferred
from farthing.data.expressions.parser import parse
from farthing.data.expressions.row_evaluation import evaluate
from farthing.data.expressions.syntax_tree import COLUMN, Meaning, Node, written
from farthing.data.schema import Schema
from farthing.errors import InvalidValue

Truths = NDArray[np.int8]

FALSE, UNKNOWN, TRUE = 0, 1, 2
"""Truth in this order: and is the minimum, or the maximum, not the mirror image."""


@dataclass(frozen=True)
class Atom:
    """A condition without and, or, not at its top. Two atoms of one text are the same."""

    text: str
    columns: tuple[str, ...] = field(compare=False)
    meaning: Meaning = field(compare=False, repr=False)

    def truth(self, value: Any = None) -> int:
        """Its truth when its one column holds `value`."""
        return {False: FALSE, None: UNKNOWN, True: TRUE}[
            evaluate(self.meaning, dict.fromkeys(self.columns, value))  # type: ignore[index]
        ]


@dataclass(frozen=True)
class Formula:
    """An atom, or `operator` over other formulas."""

    operator: str
    parts: tuple[Formula, ...] = ()
    atom: Atom | None = None

    def atoms(self) -> Iterator[Atom]:
        """Every atom, from left to right."""
        if self.atom is not None:
            yield self.atom
        for part in self.parts:
            yield from part.atoms()

    def truth(self, truth_of: Callable[[Atom], Truths]) -> Truths:
        """The truth in every cell, given that of the atoms; arrays are broadcast against each other."""
        if self.atom is not None:
            return truth_of(self.atom)
        truths = [part.truth(truth_of) for part in self.parts]
        if self.operator == "not":
            return (TRUE - truths[0]).astype(np.int8)
        joined = np.minimum if self.operator == "and" else np.maximum
        value = truths[0]
        for truth in truths[1:]:
            value = joined(value, truth)
        return value


def formula_of(where: Any, schema: Schema) -> Formula | None:
    """The formula of a predicate: text or an Ibis deferred expression; None for every row.

    >>> schema = Schema.read({"sex": ["F", "M"], "bmi": (10.0, 60.0)})
    >>> [atom.text for atom in formula_of("sex = 'M' and not bmi < 25", schema).atoms()]
    ["sex = 'M'", 'bmi < 25']
    """
    if where is None:
        return None
    whole = read(where, schema)  # refuses at the place of the fault, in the text that was given
    if not whole.is_predicate:
        raise InvalidValue("where", whole.text, "must be true or false", "compare it with something")
    if not isinstance(where, str):
        return formula_of_node(node_of_deferred(where, schema)[1], schema)
    formula: Formula = schema.remembered(("formula", where), lambda: formula_of_node(parse(where), schema))
    return formula


def formula_of_node(node: Node, schema: Schema) -> Formula:
    """The formula of a tree that has been checked already."""
    if node.operator in {"and", "or", "not"}:
        return Formula(node.operator, tuple(formula_of_node(part, schema) for part in node.arguments))
    text = written(node)
    meaning = check(node, schema, text)
    names = {str(part.value) for part in meaning.walk() if part.operator == COLUMN}
    return Formula("atom", (), Atom(text, tuple(sorted(names)), meaning))

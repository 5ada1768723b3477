"""Kinds brought together: whole numbers with real ones, dates with dates written as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from farthing.data.expressions import ranges
from farthing.data.expressions.meaning import Meaning, meaning
from farthing.data.expressions.parsing import read_date
from farthing.data.expressions.ranges import Day, Flag, Label, Nothing, Real, Whole
from farthing.data.expressions.tree import CONSTANT, Node
from farthing.errors import InvalidExpression

_NAMES = {
    Flag: "a condition",
    Whole: "a number",
    Real: "a number",
    Day: "a date",
    Label: "text",
    Nothing: "null",
}


def name_of_kind(part: Meaning) -> str:
    """What a part is, for a message."""
    return _NAMES[type(part.range)]


def nearest_label(text: str, labels: Iterable[str]) -> str | None:
    """The label most like a text, whatever its capitals; None where there is none like it.

    >>> nearest_label("male", ("Female", "Male")), nearest_label("x", ("Female", "Male"))
    ('Male', None)
    """
    folded: dict[str, str] = {}
    for label in labels:
        folded.setdefault(str(label).casefold(), label)
    near = difflib.get_close_matches(text.casefold(), list(folded), 1, 0.5)
    return folded[near[0]] if near else None


class Coercion:
    """Rules about kinds, with the text to point into when one is broken."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fault(self, node: Node, rule: str, way_out: str = "") -> InvalidExpression:
        """The refusal of `node`, pointing at it."""
        return InvalidExpression(self.text, node.position, rule, way_out)

    def alike(
        self, node: Node, parts: list[Meaning], said: list[Node], *, missing: bool = True
    ) -> list[Meaning]:
        """`parts` as one kind, or a refusal; null passes where `missing` is allowed."""
        for part, where in zip(parts, said, strict=True):
            if isinstance(part.range, Nothing) and not missing:
                raise self.fault(where, "a comparison with null is never true", "write x is null")
        if any(isinstance(part.range, Day) for part in parts):
            parts = [self.perhaps_day(where, part) for part, where in zip(parts, said, strict=True)]
        if any(isinstance(part.range, Real) for part in parts):
            parts = [self.real(part) if isinstance(part.range, Whole) else part for part in parts]
        kinds = {type(part.range): part for part in parts if not isinstance(part.range, Nothing)}
        if len(kinds) > 1:
            names = sorted({name_of_kind(part) for part in kinds.values()})
            raise self.fault(
                node, f"{' and '.join(names)} do not go together here", "make both sides of one kind"
            )
        return parts

    def real(self, part: Meaning) -> Meaning:
        """Whole numbers as doubles."""
        if isinstance(part.range, Real):
            return part
        assert isinstance(part.range, Whole)
        if part.operator == CONSTANT:
            value = None if part.value is None else float(part.value)  # type: ignore[arg-type]
            return meaning(CONSTANT, (), ranges.as_real(part.range), value)
        return meaning("real", (part,), ranges.as_real(part.range))

    def perhaps_day(self, said: Node, part: Meaning) -> Meaning:
        """A text constant beside a date is a date."""
        if part.operator == CONSTANT and isinstance(part.value, str):
            day = read_date(self.text, part.value, said.position)
            return meaning(CONSTANT, (), Day(day, day), day)
        return part

    def as_day(self, said: Node, part: Meaning) -> Meaning:
        """A date, or a refusal."""
        part = self.perhaps_day(said, part)
        if not isinstance(part.range, Day):
            raise self.fault(said, f"a date is expected here, not {name_of_kind(part)}")
        return part

    def demand_number(self, node: Node, part: Meaning, said: Node) -> None:
        """Refuse what is not a number."""
        if isinstance(part.range, Whole | Real):
            return
        way_out = "write cast(... as integer) for 0 and 1" if isinstance(part.range, Flag) else ""
        raise self.fault(said, f"{node.operator} asks for numbers, not {name_of_kind(part)}", way_out)

    def known_labels(self, node: Node, left: Meaning, right: Meaning) -> None:
        """Refuse a category that the other side cannot hold: it is a slip of the pen, and would count nobody."""
        for part, other in ((left, right), (right, left)):
            if part.operator != CONSTANT or other.operator == CONSTANT or not isinstance(other.range, Label):
                continue
            if part.value not in other.range.values:
                near = nearest_label(str(part.value), other.range.values)
                shown = ", ".join(repr(value) for value in other.range.values[:8])
                raise self.fault(
                    node,
                    f"{str(part.value)[:60]!r} is not among the categories",
                    f"did you mean {near!r}" if near is not None else f"they are {shown}",
                )

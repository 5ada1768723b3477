"""The rules of arithmetic: which operator a user's word becomes, and the range of its values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable

from farthing.data.expressions import value_ranges
from farthing.data.expressions.parser import read_date
from farthing.data.expressions.syntax_tree import CONSTANT, Meaning, Node, meaning
from farthing.data.expressions.value_ranges import (
    Day,
    Flag,
    Label,
    Nothing,
    Number,
    OutOfRange,
    Real,
    Whole,
    half_away,
)
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

    def fault(self, node: Node, rule: str, way_out: str = "", *, column: str | None = None) -> InvalidExpression:
        """The refusal of `node`, pointing at it."""
        return InvalidExpression(self.text, node.position, rule, way_out, column=column)

    def alike(self, node: Node, parts: list[Meaning], nodes: list[Node], *, missing: bool = True) -> list[Meaning]:
        """`parts` as one kind, or a refusal; null passes where `missing` is allowed."""
        for part, where in zip(parts, nodes, strict=True):
            if isinstance(part.range, Nothing) and not missing:
                raise self.fault(where, "a comparison with null is never true", "write x is null")
        if any(isinstance(part.range, Day) for part in parts):
            parts = [self.perhaps_day(where, part) for part, where in zip(parts, nodes, strict=True)]
        if any(isinstance(part.range, Real) for part in parts):
            parts = [self.real(part) if isinstance(part.range, Whole) else part for part in parts]
        kinds = {type(part.range): part for part in parts if not isinstance(part.range, Nothing)}
        if len(kinds) > 1:
            names = sorted({name_of_kind(part) for part in kinds.values()})
            way_out = "make both sides of one kind"
            if "a condition" in names:  # most often `icu = 1`, of a column of flags
                way_out = "a flag or a condition is true or false: write it alone, or after not for the opposite"
            raise self.fault(node, f"{' and '.join(names)} do not go together here", way_out)
        return parts

    def real(self, part: Meaning) -> Meaning:
        """A part that is a whole number turned into a double; a real one as it is."""
        if isinstance(part.range, Real):
            return part
        assert isinstance(part.range, Whole)
        if part.operator == CONSTANT:
            value = None if part.value is None else float(part.value)  # type: ignore[arg-type]
            return meaning(CONSTANT, (), value_ranges.as_real(part.range), value)
        return meaning("real", (part,), value_ranges.as_real(part.range))

    def perhaps_day(self, node: Node, part: Meaning) -> Meaning:
        """A text constant beside a date is a date."""
        if part.operator == CONSTANT and isinstance(part.value, str):
            day = read_date(self.text, part.value, node.position)
            return meaning(CONSTANT, (), Day(day, day), day)
        return part

    def as_day(self, node: Node, part: Meaning) -> Meaning:
        """A date, or a refusal."""
        part = self.perhaps_day(node, part)
        if not isinstance(part.range, Day):
            raise self.fault(node, f"a date is expected here, not {name_of_kind(part)}")
        return part

    def demand_number(self, node: Node, part: Meaning, argument: Node) -> None:
        """Refuse what is not a number."""
        if isinstance(part.range, Whole | Real):
            return
        way_out = "write cast(... as integer) for 0 and 1" if isinstance(part.range, Flag) else ""
        raise self.fault(argument, f"{node.operator} needs numbers, not {name_of_kind(part)}", way_out)

    def known_labels(self, node: Node, left: Meaning, right: Meaning) -> None:
        """Refuse a category that the other side cannot hold: it is a slip of the pen, and would count nobody."""
        for part, other in ((left, right), (right, left)):
            if part.operator != CONSTANT or other.operator == CONSTANT or not isinstance(other.range, Label):
                continue
            if part.value not in other.range.values:
                near = nearest_label(str(part.value), other.range.values)
                categories = ", ".join(repr(value) for value in other.range.values[:8])
                raise self.fault(
                    node,
                    f"{str(part.value)[:60]!r} is not among the categories",
                    f"did you mean {near!r}" if near is not None else f"they are {categories}",
                )


Rule = Callable[[Coercion, Node, list[Meaning]], Meaning]

LONGEST_TABLE = 1_000
"""ln, exp and sqrt of whole numbers with at most so many values are written out, and agree on every engine."""

HIGHEST_POWER = 8
MOST_DIGITS = 9


def _number(part: Meaning) -> Number:
    assert isinstance(part.range, Whole | Real)
    return part.range


def _arithmetic(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    a, b = rules.alike(node, arguments, list(node.arguments), missing=False)
    if node.operator == "+":
        values = value_ranges.added(_number(a), _number(b))
    elif node.operator == "-":
        values = value_ranges.added(_number(a), value_ranges.negated(_number(b)))
    else:
        values = value_ranges.multiplied(_number(a), _number(b))
    return meaning(node.operator, (a, b), values)


def _division(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    a, b = (rules.real(part) for part in arguments)
    return meaning("/", (a, b), value_ranges.divided(_number(a), _number(b)))


def _floor_division(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    a, b = arguments
    if isinstance(a.range, Whole) and isinstance(b.range, Whole):
        return meaning("//", (a, b), value_ranges.floor_divided(a.range, b.range))
    return _floor(rules, node, [_division(rules, node, arguments)])


def _remainder(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    a, b = arguments
    if isinstance(a.range, Whole) and isinstance(b.range, Whole):
        return meaning("%", (a, b), value_ranges.remainder(a.range, b.range))
    # x - y * floor(x / y) in doubles, where rounding may leave the remainder just outside [0, y]: hence the clip.
    a, b = rules.real(a), rules.real(b)
    whole = rules.real(_floor(rules, node, [_division(rules, node, [a, b])]))
    product = meaning("*", (b, whole), value_ranges.multiplied(_number(b), _number(whole)))
    rest = meaning("-", (a, product), value_ranges.added(_number(a), value_ranges.negated(_number(product))))
    divisor = _number(b)
    return clipped(rest, min(0.0, float(divisor.lower)), max(0.0, float(divisor.upper)))


def _negative(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    return meaning("negative", tuple(arguments), value_ranges.negated(_number(arguments[0])))


def _absolute(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    return meaning("absolute", tuple(arguments), value_ranges.absolute(_number(arguments[0])))


def _sign(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    values = _number(arguments[0])
    return meaning("sign", tuple(arguments), Whole(_sign_of(values.lower), _sign_of(values.upper)))


def _sign_of(value: float) -> int:
    return (value > 0) - (value < 0)


def _floor(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    return _to_whole("floor", arguments[0], math.floor)


def _ceiling(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    return _to_whole("ceiling", arguments[0], math.ceil)


def _to_whole(operator: str, part: Meaning, rounded: Callable[[float], int]) -> Meaning:
    if isinstance(part.range, Whole):
        return part
    assert isinstance(part.range, Real)
    value_ranges.floored(part.range)
    return meaning(operator, (part,), Whole(rounded(part.range.lower), rounded(part.range.upper)))


def _round(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    part, *more = arguments
    if not more or more[0].value == 0:
        return _to_whole("round", part, half_away)
    digits = more[0]
    if digits.operator != CONSTANT or not isinstance(digits.value, int) or not 0 <= digits.value <= MOST_DIGITS:
        raise rules.fault(node.arguments[1], f"the number of digits is a constant from 0 to {MOST_DIGITS}")
    if isinstance(part.range, Whole):
        return part
    scale = meaning(CONSTANT, (), value_ranges.range_of_constant(float(10**digits.value)), float(10**digits.value))
    scaled = meaning("*", (part, scale), value_ranges.multiplied(_number(part), _number(scale)))
    whole = rules.real(_to_whole("round", scaled, half_away))
    return meaning("/", (whole, scale), value_ranges.divided(_number(whole), _number(scale)))


def _function(name: str, of_range: Callable[[Real], Real], of_value: Callable[[float], float], lowest: float) -> Rule:
    """sqrt, ln or exp: a table where the whole numbers are few, the engine's own function elsewhere."""

    def rule(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
        (part,) = arguments
        values = of_range(value_ranges.as_real(_number(part)))
        if isinstance(part.range, Whole) and part.range.upper - part.range.lower < LONGEST_TABLE:
            if part.operator == CONSTANT:
                return meaning(name, (rules.real(part),), values)
            inputs = range(part.range.lower, part.range.upper + 1)
            pairs = tuple((n, of_value(float(n))) for n in inputs if n >= lowest)
            if pairs:
                results = [result for _, result in pairs]
                return meaning("table", (part,), Real(min(results), max(results), values.grain), pairs)
        return meaning(name, (rules.real(part),), values)

    return rule


def _logarithm_to(base: float | None) -> Rule:
    def rule(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
        number = base
        if number is None:
            given = arguments[0]
            if given.operator != CONSTANT or not isinstance(given.value, int | float) or not given.value > 1:
                raise rules.fault(node.arguments[0], "the base of a logarithm is a constant above 1")
            number = float(given.value)
        top = NUMERIC_RULES["ln"](rules, node, arguments[-1:])
        bottom = meaning(CONSTANT, (), value_ranges.range_of_constant(math.log(number)), math.log(number))
        return meaning("/", (top, bottom), value_ranges.divided(_number(top), _number(bottom)))

    return rule


def _power(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    base, exponent = arguments
    times = exponent.value
    if exponent.operator != CONSTANT or not isinstance(times, int) or not 1 <= times <= HIGHEST_POWER:
        raise rules.fault(
            node.arguments[1],
            f"a power is a whole constant from 1 to {HIGHEST_POWER}",
            "write exp(y * ln(x))",
        )
    product = base
    for _ in range(times - 1):
        product = meaning("*", (product, base), value_ranges.multiplied(_number(product), _number(base)))
    if times % 2 == 0 and _number(base).lower <= 0 <= _number(base).upper:
        # Corners alone cannot see that both factors have one sign.
        size = value_ranges.absolute(_number(product))
        values = Whole(0, size.upper) if isinstance(size, Whole) else Real(0.0, size.upper, size.grain)
        return meaning("*", product.arguments, values)
    return product


def _extreme(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    first, *rest = rules.alike(node, arguments, list(node.arguments), missing=False)
    pick = min if node.operator == "least" else max
    for part in rest:
        a, b = _number(first), _number(part)
        lower, upper = pick(a.lower, b.lower), pick(a.upper, b.upper)
        values: Number
        if isinstance(a, Real) and isinstance(b, Real):
            values = Real(lower, upper, min(a.grain, b.grain))
        else:
            values = Whole(int(lower), int(upper))
        first = meaning(node.operator, (first, part), values)
    return first


def _clip(rules: Coercion, node: Node, arguments: list[Meaning]) -> Meaning:
    part, low, high = rules.alike(node, arguments, list(node.arguments), missing=False)
    for bound, argument in zip((low, high), node.arguments[1:], strict=True):
        if bound.operator != CONSTANT or bound.value is None:
            raise rules.fault(argument, "a bound is a constant")
    if not low.value <= high.value:  # type: ignore[operator]
        raise rules.fault(node, "the lower bound must not exceed the upper one", "swap the two bounds")
    return clipped(part, low.value, high.value)  # type: ignore[arg-type]


def clipped(part: Meaning, lower: float, upper: float) -> Meaning:
    """`part` between two constants; as it is where it cannot leave them."""
    values = _number(part)
    if lower <= values.lower and values.upper <= upper:
        return part
    low, high = min(max(values.lower, lower), upper), max(min(values.upper, upper), lower)
    if isinstance(values, Whole):
        return meaning("clip", (part,), Whole(int(low), int(high)), (int(lower), int(upper)))
    grains = [values.grain, *(_grain_of(bound) for bound in (lower, upper))]
    return meaning("clip", (part,), Real(float(low), float(high), min(grains)), (float(lower), float(upper)))


def _grain_of(bound: float) -> int:
    value_range = value_ranges.range_of_constant(float(bound))
    if not isinstance(value_range, Real):
        raise OutOfRange("a bound is a number")
    return value_range.grain


NUMERIC_RULES: dict[str, Rule] = {
    "+": _arithmetic, "-": _arithmetic, "*": _arithmetic, "/": _division, "//": _floor_division, "%": _remainder,
    "negative": _negative, "abs": _absolute, "sign": _sign, "floor": _floor, "ceil": _ceiling, "round": _round,
    "sqrt": _function("sqrt", value_ranges.square_root, math.sqrt, 0),
    "ln": _function("ln", value_ranges.logarithm, math.log, 1),
    "exp": _function("exp", value_ranges.exponential, math.exp, -math.inf),
    "log10": _logarithm_to(10.0), "log2": _logarithm_to(2.0), "log": _logarithm_to(None),
    "power": _power, "least": _extreme, "greatest": _extreme, "clip": _clip,
}  # fmt: skip

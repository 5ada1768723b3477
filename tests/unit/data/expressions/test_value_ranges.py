"""Bounds of a result: propagated, declared, or the reason why there are none."""

from __future__ import annotations

import dataclasses
import datetime
import math
import random
from decimal import Decimal

import ibis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.data.expressions import read, read_cell, read_column
from farthing.data.expressions.row_evaluation import evaluate
from farthing.data.expressions.text_functions import matches
from farthing.data.expressions.value_ranges import (
    Day,
    Flag,
    Label,
    Nothing,
    Range,
    Real,
    Whole,
    divided,
    half_away,
    multiplied,
)
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema
from farthing.errors import FarthingError, InvalidExpression, InvalidValue
from unit.data.expressions import random_expressions

DAY = datetime.date
SCHEMA = Schema.read(
    {
        "weight": (30.0, 250.0), "height": (0.0, 2.5), "age": (0, 110), "debt": (-50, 70), "score": (-10.0, 10.0),
        "big": (0, 2**61), "sex": ["F", "M"], "on": bool, "born": (DAY(1950, 1, 1), DAY(2020, 12, 31)),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("age + debt", Integers(-50, 180)), ("age - debt", Integers(-70, 160)), ("age * debt", Integers(-5500, 7700)),
        ("debt * debt", Integers(-3500, 4900)), ("power(debt, 2)", Integers(0, 4900)), ("-debt", Integers(-70, 50)),
        ("abs(debt)", Integers(0, 70)), ("age // 7", Integers(0, 15)), ("debt // (-7)", Integers(-10, 7)),
        ("age % 7", Integers(0, 6)), ("debt % -7", Integers(-6, 0)), ("debt // age", Integers(-50, 70)),
        ("weight / 2", Reals(15.0, 125.0)), ("weight / greatest(height, 0.5)", Reals(12.0, 500.0)),
        ("height * height", Reals(0.0, 6.25)), ("sqrt(weight - 30)", Reals(0.0, math.sqrt(220.0))),
        ("round(score)", Integers(-10, 10)), ("floor(weight / 7)", Integers(4, 35)), ("sign(weight)", Integers(1, 1)),
        ("least(age, 50)", Integers(0, 50)), ("greatest(age, 50)", Integers(50, 110)),
        ("clip(age, 5, 9)", Integers(5, 9)),
        ("clip(age, 200, 300)", Integers(200, 200)), ("coalesce(age, -1)", Integers(-1, 110)),
        ("case when on then age else 0.5 end", Reals(0.0, 110.0)), ("age < 3", Flags()), ("on", Flags()),
        ("case when on then 'a' when age < 3 then sex else null end", Categories(("a", "F", "M"))),
        ("upper(coalesce(sex, 'm'))", Categories(("F", "M"))), ("year(born)", Integers(1950, 2020)),
        ("coalesce(born, '2021-01-01')", Dates(DAY(1950, 1, 1), DAY(2021, 1, 1))), ("sex", Categories(("F", "M"))),
        ("days_between('2000-01-01', born)", Integers(-18262, 7670)), ("3", Integers(3, 3)),
        ("1 / 4", Reals(0.25, 0.25)),
        ("ln(age)", Reals(0.0, math.log(110))), ("height % 1", Reals(0.0, 1.0)), ("1 = 1", Flags()),
    ],
)  # fmt: skip
def test_bounds_are_propagated(text: str, domain: Domain) -> None:
    assert read(text, SCHEMA).domain == domain


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("weight / height", "the result could be as large as"), ("1 / score", "the result could be as large as"),
        ("exp(weight)", "the result could be as large as"), ("big * 2", "64 bits"), ("big + big", "64 bits"),
        ("big // 3", "below 2^51"), ("floor(exp(weight))", "below 2^53"), ("exp(weight * 3)", "from -600 to 600"),
        ("null", "always missing"), ("coalesce(null, null)", "always missing"), ("age * 0", "always zero"),
    ],
)  # fmt: skip
def test_a_result_without_bounds_is_refused_with_a_way_out(text: str, rule: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        read(text, SCHEMA)
    assert rule in caught.value.rule and caught.value.way_out


def test_declared_bounds_take_the_place_of_propagated_ones() -> None:
    ratio = read("weight / height", SCHEMA, Reals(10.0, 60.0))
    assert ratio.domain == Reals(10.0, 60.0)
    values = [ratio.value({"weight": 80.0, "height": height}) for height in (2.0, 1.0, 1e-5, 0.0, None)]
    assert values == [40.0, 60.0, 60.0, None, None]
    assert read("age", SCHEMA, Integers(18, 65)).value({"age": 3}) == 18
    assert read("age", SCHEMA, Integers(-5, 500)).domain == Integers(-5, 500)
    assert read("age", SCHEMA, Reals(0.5, 1.5)).value({"age": 3}) == 1.5
    assert read("weight / 2", SCHEMA, Integers(10, 60)).domain == Reals(10.0, 60.0)


@pytest.mark.parametrize(("text", "declared"), [("sex", Integers(0, 1)), ("age", Flags()), ("on", Reals(0.0, 1.0))])
def test_bounds_are_declared_for_numbers_only(text: str, declared: Domain) -> None:
    with pytest.raises(InvalidExpression, match="do not fit the result"):
        read(text, SCHEMA, declared)


def holds(values: Range, value: object) -> bool:
    if isinstance(values, Flag):
        return isinstance(value, bool)
    if isinstance(values, Label):
        return value in values.values
    if isinstance(values, Nothing):
        return value is None
    if isinstance(values, Real) and isinstance(value, float):
        return values.lower <= value <= values.upper and value.as_integer_ratio()[1].bit_length() - 1 <= -values.grain
    kind = datetime.date if isinstance(values, Day) else int
    return type(value) is kind and values.lower <= value <= values.upper  # type: ignore[union-attr,operator]


RAW = random_expressions.raw_rows(60, 11)


@pytest.mark.slow
@given(st.one_of(random_expressions.numbers(3), random_expressions.conditions(3)))
@settings(max_examples=150)
def test_every_part_of_an_expression_stays_in_its_range(text: str) -> None:
    """The proof that nothing overflows rests on this, so it is asked of the parts and not only of the whole."""
    try:
        expression = read(text, random_expressions.SCHEMA, None)
    except InvalidExpression:
        return
    for raw in RAW:
        row = {name: read_cell(raw[name], random_expressions.SCHEMA[name]) for name in expression.columns}
        for part in expression.meaning.walk():
            value = evaluate(part, row)
            assert value is None or holds(part.range, value), part


def test_products_and_quotients_stay_between_their_corners() -> None:
    source = random.Random(4)
    for _ in range(300):
        a, b = (
            sorted(source.randint(-9, 9) for _ in range(2)),
            sorted(source.randint(-9, 9) for _ in range(2)),
        )
        left, right = Whole(*a), Whole(*b)
        quotient = divided(left, right)
        product = None if [0, 0] in (a, b) else multiplied(left, right)
        for x in range(a[0], a[1] + 1):
            for y in range(b[0], b[1] + 1):
                assert product is None or product.lower <= x * y <= product.upper
                assert y == 0 or quotient.lower <= x / y <= quotient.upper


def test_a_grain_is_never_coarser_than_what_arithmetic_makes() -> None:
    """Nonzero results of chains on the smallest cells stay multiples of the claimed power of two."""
    tiny = 2.0**-60
    cells = [tiny, math.nextafter(tiny, 1.0), 1.0, 0.1, 3.7, 10.0, math.nextafter(10.0, 0.0)]
    for text in ["score * score", "score - height", "(score - height) * score", "score / weight", "sqrt(height)",
                 "score * score * score - height * height", "height / 3 / 7 - score",
                 "1 / weight - 1 / 30"]:  # fmt: skip
        found = read(text, SCHEMA).meaning.range
        assert isinstance(found, Real)
        for a in cells:
            for b in cells:
                value = read(text, SCHEMA).value({"score": a, "height": b, "weight": 30 + a})
                assert isinstance(value, float)
                assert value.as_integer_ratio()[1].bit_length() - 1 <= -found.grain


def test_an_expression_is_frozen_hashable_and_can_be_stored() -> None:
    expression = read("age + 1", SCHEMA)
    assert expression == read("age+1", SCHEMA) and hash(expression) == hash(read("age+1", SCHEMA))
    assert expression != read("age + 2", SCHEMA)
    with pytest.raises(dataclasses.FrozenInstanceError):
        expression.text = "age"  # type: ignore[misc]
    error = InvalidExpression("a", 0, "b", "c")
    assert isinstance(error, FarthingError) and isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.5, 1), (-0.5, -1), (1.5, 2), (2.5, 3), (-2.5, -3), (0.25, 0), (-0.25, 0), (7.0, 7)],
)
def test_halves_go_away_from_zero(value: float, rounded: int) -> None:
    assert half_away(value) == rounded


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        ("abc", "abc", True), ("abc", "a%", True), ("abc", "%c", True), ("abc", "a%c", True), ("abc", "%b%", True),
        ("abc", "_b_", True), ("abc", "_", False), ("", "%", True), ("", "", True), ("", "_", False),
        ("a", "%%", True),
        ("aa", "a%a", True), ("a", "a%a", False), ("abab", "%ab", True), ("a.c", "a_c", True), ("abc", "a.c", False),
        ("日本", "_本", True), ("aXbXc", "a%b%c", True), ("ab", "a%b%b", False), ("a\nb", "a%b", True),
        ("a" * 1000, "%a" * 400 + "b", False),
    ],
)  # fmt: skip
def test_like(value: str, pattern: str, expected: bool) -> None:
    assert matches(value, pattern) is expected


@pytest.mark.parametrize(
    ("kind", "domain"),
    [
        ("string", Integers(0, 1)), ("string", Reals(0.0, 1.0)), ("boolean", Integers(0, 1)), ("int64", Flags()),
        ("int64", Categories(("a",))), ("string", Categories((1,))),
        ("string", Dates(DAY(2000, 1, 1), DAY(2001, 1, 1))),
        ("time", Dates(DAY(2000, 1, 1), DAY(2001, 1, 1))), ("int64", Categories((True,))),
        ("array<int64>", Integers(0, 1)),
    ],
)  # fmt: skip
def test_a_column_of_the_wrong_type_is_refused_by_its_type(kind: str, domain: Domain) -> None:
    column = ibis.table({"c": kind}, name="t").c
    with pytest.raises(InvalidValue, match="'c'"):
        read_column(column, domain)


@pytest.mark.parametrize(
    ("cell", "domain", "expected"),
    [
        (Decimal("2.7"), Integers(0, 9), 2), (Decimal("NaN"), Reals(0.0, 1.0), None), (2.0, Categories((1, 2)), 2),
        (1.5, Categories((1, 2)), None), (-0.5, Integers(-3, 9), -1), (-0.0, Reals(0.0, 1.0), 0.0),
        (datetime.datetime(2000, 5, 5, 23, 59), Dates(DAY(2000, 1, 1), DAY(2001, 1, 1)), DAY(2000, 5, 5)),
        (10**400, Integers(0, 9), 9), (10**400, Reals(0.0, 9.5), 9.5), (1e-19, Reals(0.0, 1.0), 0.0),
    ],
)  # fmt: skip
def test_a_cell_is_read_by_its_domain(cell: object, domain: Domain, expected: object) -> None:
    assert read_cell(cell, domain) == expected

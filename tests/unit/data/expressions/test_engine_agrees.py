"""DuckDB computes what the plain definition says, on every kind of bad cell, and never fails."""

from __future__ import annotations

import datetime
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from farthing.data.expressions import Expression, read
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.errors import InvalidExpression
from unit.data.expressions.random_expressions import SCHEMA, Engine, conditions, numbers, raw_rows


@cache
def engine(rows: int, seed: int) -> Engine:
    return Engine(raw_rows(rows, seed))


def attempted(text: str) -> Expression:
    """The expression; what could become too large is refused without a look at rows, and is no case for us."""
    try:
        return read(text, SCHEMA)
    except InvalidExpression:
        try:
            return read(text, SCHEMA, Reals(-1e6, 1e6))
        except InvalidExpression:
            assume(False)
            raise


def lies_in(value: object, domain: Domain) -> bool:
    if isinstance(domain, Flags):
        return isinstance(value, bool)
    if isinstance(domain, Categories):
        return value in domain.values
    if isinstance(domain, Integers):
        return type(value) is int and domain.lower <= value <= domain.upper
    kind = datetime.date if isinstance(domain, Dates) else float
    return type(value) is kind and domain.lower <= value <= domain.upper  # type: ignore[operator]


def check(text: str, rows: Engine) -> None:
    expression = attempted(text)
    expected = [expression.value(row) for row in rows.rows]
    assert rows.values(expression) == expected, expression.text
    assert all(value is None or lies_in(value, expression.domain) for value in expected)


@pytest.mark.slow
@given(numbers(3))
@settings(max_examples=40)
def test_numbers_are_the_same_to_the_last_bit(text: str) -> None:
    check(text, engine(120, 1))


@pytest.mark.slow
@given(conditions(3))
@settings(max_examples=40)
def test_conditions_are_the_same(text: str) -> None:
    check(text, engine(120, 2))


@pytest.mark.slow
@given(st.one_of(numbers(2), conditions(2)))
@settings(max_examples=20)
def test_raw_cells_may_be_read_on_the_way(text: str) -> None:
    rows, expression = engine(120, 2), attempted(text)
    assert rows.values(expression, raw=True) == [expression.value(row) for row in rows.rows]


@pytest.mark.slow
@given(st.one_of(numbers(3), conditions(3), numbers(5)), st.integers(3, 6))
@settings(max_examples=180)  # a fault in one expression of 36 is missed by one run in 150
def test_many_rows_and_deep_expressions_are_the_same(text: str, seed: int) -> None:
    # Time goes by rows, faults by expressions. A cell takes one of some thirty kinds of value: of 180 rows a given one
    # is absent with probability e^-6, of all four tables with e^-24, and a fifth of the pairs of two columns are there.
    check(text, engine(180, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCHEMA))
def test_a_raw_cell_is_read_alike_by_engine_and_definition(name: str) -> None:
    rows = engine(1000, 7)
    expression = read(name if not isinstance(SCHEMA[name], Flags) else f"{name} = true", SCHEMA)
    assert rows.values(expression, raw=True) == [expression.value(row) for row in rows.rows]


@given(numbers(3))
@settings(max_examples=40)
def test_the_normalised_text_means_the_same(text: str) -> None:
    expression = attempted(text)
    again = attempted(expression.text)
    assert again.text == expression.text and again.meaning == expression.meaning


@pytest.mark.slow
@pytest.mark.parametrize("text", ["ln(y)", "exp(x)", "log10(z)", "log(3, abs(x) + 1)", "exp(-z) / (1 + exp(-z))"])
def test_logarithms_of_real_numbers_agree_but_for_the_last_digits(text: str) -> None:
    rows, expression = engine(1000, 8), read(text, SCHEMA)
    expected = [expression.value(row) for row in rows.rows]
    assert rows.values(expression) == [None if value is None else pytest.approx(value, rel=1e-14) for value in expected]
    assert all(value is None or lies_in(value, expression.domain) for value in expected)

"""A schema is read from plain literals, refuses what cannot be meant, and never changes afterwards."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from farthing.data.schema import (
    LARGEST_INTEGER,
    LONGEST_CATEGORY,
    MOST_CATEGORIES,
    Categories,
    Dates,
    Flags,
    Integers,
    Reals,
    Schema,
    read_domain,
)
from farthing.errors import InvalidValue

DAY = datetime.date(2000, 1, 1)
LATER = datetime.date(2001, 1, 1)


@pytest.mark.parametrize(
    ("literal", "domain"),
    [
        (["F", "M"], Categories(("F", "M"))),
        ([1, 2, 3], Categories((1, 2, 3))),
        ([False, True], Categories((False, True))),
        (["日本", "naïve", "it's", ""], Categories(("日本", "naïve", "it's", ""))),
        ((0, 110), Integers(0, 110)),
        ((5, 5), Integers(5, 5)),
        ((np.int32(1), np.int64(2)), Integers(1, 2)),
        ((-LARGEST_INTEGER, LARGEST_INTEGER), Integers(-LARGEST_INTEGER, LARGEST_INTEGER)),
        ((10.0, 60.0), Reals(10.0, 60.0)),
        ((10, 60.0), Reals(10.0, 60.0)),
        ((np.float32(0.5), 1), Reals(0.5, 1.0)),
        ((Fraction(1, 2), 1), Reals(0.5, 1.0)),
        ((DAY, LATER), Dates(DAY, LATER)),
        (bool, Flags()),
        (Integers(1, 2), Integers(1, 2)),
    ],
)
def test_a_literal_is_read_as_its_domain(literal: object, domain: object) -> None:
    assert read_domain("c", literal) == domain
    assert type(read_domain("c", literal)) is type(domain)


@pytest.mark.parametrize(
    ("literal", "rule"),
    [
        ((110, 0), "lower must not exceed upper"),
        ((60.0, 10.0), "lower must not exceed upper"),
        ((LATER, DAY), "lower must not exceed upper"),
        ((float("nan"), 1.0), "must be two numbers or two dates"),
        ((0.0, float("inf")), "finite number within 2^53"),
        ((-float("inf"), 0.0), "finite number within 2^53"),
        ((0.0, 1e300), "finite number within 2^53"),
        ((0.0, 1e-30), "at least 2^-60"),
        ((-5e-324, 1.0), "at least 2^-60"),
        ((0, 2**62), "within 2^62"),
        ((-(2**63), 0), "within 2^62"),
        ((True, False), "must be two numbers or two dates"),
        ((0, "9"), "must be two numbers or two dates"),
        ((Decimal(1), Decimal(2)), "must be two numbers or two dates"),
        ((DAY, 3), "must be a date without a time"),
        ((DAY, datetime.datetime(2001, 1, 1)), "must be a date without a time"),
        ((1, 2, 3), "must be a list of categories"),
        ({"a", "b"}, "must be a list of categories"),
        ("FM", "must be a list of categories"),
        (float, "must be a list of categories"),
        (None, "must be a list of categories"),
        ([], "between 1 and"),
        (["a"] * (MOST_CATEGORIES + 1), "between 1 and"),
        (["a", "b", "a"], "twice"),
        ([1, 2, 1], "twice"),
        (["é", "e\u0301"], "twice"),
        (["a", 1], "one kind"),
        ([1, True], "one kind"),
        ([1.5], "text, a whole number"),
        ([None], "text, a whole number"),
        ([2**62], "text, a whole number"),
        (["a\0"], "every engine can hold"),
        (["\ud800"], "every engine can hold"),
        (["a" * (LONGEST_CATEGORY + 1)], "characters long"),
    ],
)
def test_a_literal_that_cannot_be_meant_is_refused_by_name(literal: object, rule: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Schema.read({"c": literal})
    assert rule in str(caught.value)
    assert str(caught.value).startswith("schema['c']=")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("columns", [{}, [("a", bool)], None, {"": bool}, {3: bool}, {"a\n": bool}, {"a" * 256: bool}])
def test_a_schema_without_proper_columns_is_refused(columns: object) -> None:
    with pytest.raises(InvalidValue):
        Schema.read(columns)  # type: ignore[arg-type]


def test_a_schema_wants_domains_where_read_wants_literals() -> None:
    with pytest.raises(InvalidValue, match=r"use Schema\.read"):
        Schema({"a": (0, 1)})  # type: ignore[dict-item]


def test_a_schema_does_not_change_when_the_mapping_does() -> None:
    literals: dict[str, object] = {"a": (0, 1)}
    schema = Schema.read(literals)
    literals["b"] = bool
    assert list(schema) == ["a"]
    with pytest.raises(TypeError):
        schema.columns["b"] = Flags()  # type: ignore[index]


def test_equal_schemas_hash_alike_and_a_new_column_makes_another() -> None:
    one, two = Schema.read({"a": (0, 1)}), Schema.read({"a": (0, 1)})
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one.with_column("b", Flags()) != one and "b" not in one
    assert Schema.read(one) is one
    left, right = Schema.read({"a": bool, "b": (0, 1)}), Schema.read({"b": (0, 1), "a": bool})
    assert left == right and hash(left) == hash(right)


def test_minus_zero_is_zero() -> None:
    assert str(Reals(-0.0, 1.0).lower) == "0.0"


def test_what_a_schema_remembers_is_made_once_for_it_alone_and_not_without_end() -> None:
    one, two = Schema.read({"a": (0, 1)}), Schema.read({"a": (0, 1)})
    made = one.remembered("key", lambda: ["first"])
    assert one.remembered("key", lambda: ["second"]) is made
    assert two.remembered("key", lambda: ["other"]) == ["other"]  # equal, but perhaps of other types: 1 is True
    with pytest.raises(ZeroDivisionError):
        one.remembered("failed", lambda: 1 / 0)
    assert one.remembered("failed", lambda: "made") == "made"
    for number in range(5_000):
        one.remembered(number, lambda: "small")
    assert one.remembered("key", lambda: ["anew"]) == ["anew"]

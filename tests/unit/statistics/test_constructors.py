"""Statistics as values: their names, their code, and what is refused before anything is planned."""

from __future__ import annotations

import datetime

import ibis
import numpy as np
import pytest

from farthing.data import Schema
from farthing.errors import FarthingError, InvalidExpression, InvalidValue
from farthing.statistics import constructors as st
from farthing.statistics.constructors import CONSTRUCTORS, Statistic
from farthing.statistics.design import checked, checked_all

SCHEMA = Schema.read(
    {
        "sex": ["F", "M"],
        "age": (0, 110),
        "bmi": (10.0, 60.0),
        "income": (0, 250_000),
        "smoker": bool,
        "day": (datetime.date(2020, 1, 1), datetime.date(2024, 12, 31)),
        "street": [f"s{number}" for number in range(4_000)],
    }
)

NAMES = [
    (st.count(), "count"),
    (st.count(by="sex"), "count by sex"),
    (st.count(where="bmi<25"), "count where bmi < 25"),
    (st.count(where=ibis._.bmi < 25), "count where bmi < 25"),
    (st.sum("income"), "sum of income"),
    (st.mean("income", by=["sex", "smoker"]), "mean of income by sex and smoker"),
    (st.variance("age"), "variance of age"),
    (st.std("age"), "std of age"),
    (st.histogram("age", 11), "histogram of age"),
    (st.quantile("income", 0.9), "0.9-quantile of income"),
    (st.quantiles("income", [0.1, 0.9]), "quantiles of income"),
    (st.median("bmi", by="sex"), "median of bmi by sex"),
    (st.cdf("age", 11), "cdf of age"),
    (st.contingency(["sex", "age"], {"age": 11}), "contingency of sex and age"),
    (st.linear_regression("bmi", ["age", "income"]), "regression of bmi on age and income"),
]


@pytest.mark.parametrize(("statistic", "name"), NAMES, ids=[name for _, name in NAMES])
def test_default_names_are_plain_words(statistic: Statistic, name: str) -> None:
    assert statistic.name == name
    assert checked(statistic, SCHEMA).name == name


@pytest.mark.parametrize("statistic", [one for one, _ in NAMES], ids=[name for _, name in NAMES])
def test_a_statistic_shows_the_code_that_makes_it(statistic: Statistic) -> None:
    plain = checked(statistic, SCHEMA)
    assert eval(repr(plain), dict(CONSTRUCTORS)) == plain
    renamed = CONSTRUCTORS[plain.kind](**{**plain.arguments, "name": "mine"})
    assert renamed.name == "mine" and "name='mine'" in repr(renamed)


def test_a_name_that_is_given_is_kept() -> None:
    assert st.count(name="people").name == "people"
    assert "name" not in st.count().arguments


def test_bins_of_arrays_are_plain_numbers() -> None:
    assert st.histogram("age", np.array([0, 50, 110])).bins_of("age") == (0, 50, 110)
    assert st.histogram("age", np.int64(5)).bins_of("age") == 5


def _refused(make: object) -> str:
    with pytest.raises(FarthingError) as caught:
        checked(make(), SCHEMA)  # type: ignore[operator]
    assert isinstance(caught.value, InvalidValue | InvalidExpression)
    return str(caught.value)


MISTAKES = {
    "unknown column": (lambda: st.mean("incme"), "did you mean income"),
    "unknown group": (lambda: st.count(by="sexe"), "did you mean sex"),
    "unknown column in where": (lambda: st.count(where="bmj < 3"), "did you mean bmi"),
    "where that is a number": (lambda: st.count(where="bmi + 1"), "compare it with something"),
    "where that is no text": (lambda: st.count(where=3), "must be text"),
    "broken where": (lambda: st.count(where="bmi <"), "ends too early"),
    "empty group list": (lambda: st.count(by=[]), "leave it out"),
    "the same group twice": (lambda: st.count(by=["sex", "sex"]), "each once"),
    "group of real numbers": (lambda: st.count(by="bmi"), "dataset.bin(bmi=10)"),
    "its own column as group": (lambda: st.histogram("sex", by="sex"), "leave it out"),
    "reversed bins": (lambda: st.histogram("age", [65, 18, 0]), "increasing"),
    "bins of two kinds": (lambda: st.histogram("age", [0, "x"]), "increasing"),
    "no edges": (lambda: st.histogram("age", []), "increasing edges"),
    "no bins for reals": (lambda: st.histogram("bmi"), "bins=20"),
    "no bins for many numbers": (lambda: st.histogram("income"), "bins=20"),
    "zero bins": (lambda: st.histogram("age", 0), "number of equal parts"),
    "bins as true": (lambda: st.histogram("age", True), "number of equal parts"),
    "more bins than values": (lambda: st.histogram("age", 200), "leave it out"),
    "far too many bins": (lambda: st.histogram("bmi", 10**7), "fewer, wider bins"),
    "bins of categories": (lambda: st.histogram("sex", 3), "left out"),
    "edges outside the bounds": (lambda: st.histogram("age", [0, 500]), "within the bounds"),
    "ten million cells": (lambda: st.contingency(["street", "smoker", "day"]), "bins"),
    "sixteen million cells": (lambda: st.count(by=["street", "day"]), "fewer columns"),
    "bins of a table as a number": (lambda: st.contingency(["sex", "age"], 10), "which column"),
    "bins of another column": (lambda: st.contingency(["sex", "age"], {"bmi": 10}), "sex and age"),
    "no columns": (lambda: st.contingency([]), "at least one"),
    "quantile beyond one": (lambda: st.quantile("age", 1.2), "between 0 and 1"),
    "quantile in per cent": (lambda: st.quantile("age", 90), "write 0.9"),
    "quantile beyond 1": (lambda: st.quantile("age", 1.2), "0.5 is the median"),
    "quantile of nothing": (lambda: st.quantile("age", float("nan")), "between 0 and 1"),
    "falling quantiles": (lambda: st.quantiles("age", [0.9, 0.1]), "increasing"),
    "no quantiles": (lambda: st.quantiles("age", []), "increasing"),
    "mean of categories": (lambda: st.mean("sex"), "must hold numbers"),
    "cdf of categories": (lambda: st.cdf("sex"), "numbers or dates"),
    "rounded mean": (lambda: st.mean("age", rounded=True), "not a whole number"),
    "target among features": (lambda: st.linear_regression("age", ["age"]), "without the target"),
    "no features": (lambda: st.linear_regression("age", []), "one column or more"),
    "a column that is no name": (lambda: st.mean(3), "name of one column"),  # type: ignore[arg-type]
    "a flag that is none": (lambda: st.count(rounded="yes"), "True or False"),  # type: ignore[arg-type]
    "a name that is none": (lambda: st.count(name=""), "must be text"),
    "a name of two lines": (lambda: st.count(name="a\nb"), "printable"),
    "no statistic at all": (lambda: "count", "must be a statistic"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_a_way_out(mistake: str) -> None:
    make, words = MISTAKES[mistake]
    assert words in _refused(make)


def test_two_statistics_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidValue, match="give one of them name="):
        checked_all([st.count(), st.count()], SCHEMA)
    assert len(checked_all([st.count(), st.count(name="people")], SCHEMA)) == 2


def test_a_plan_without_statistics_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one or more"):
        checked_all([], SCHEMA)


def test_a_predicate_becomes_text() -> None:
    found = checked(st.count(where=(ibis._.bmi < 25) & (ibis._.sex == "M")), SCHEMA)
    assert found.where == "bmi < 25 and sex = 'M'"

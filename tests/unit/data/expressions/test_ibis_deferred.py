"""An Ibis deferred expression means what its text means, and brings nothing along that text could not."""

from __future__ import annotations

import datetime
from typing import Any

import ibis
import pytest
from ibis import _

from farthing.data.expressions import read
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression

SCHEMA = Schema.read(
    {
        "sex": ["F", "M"], "age": (0, 110), "bmi": (10.0, 60.0), "smoker": bool, "code": [1, 2, 4],
        "born": (datetime.date(1950, 1, 1), datetime.date(2020, 12, 31)),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("deferred", "text"),
    [
        (_.bmi < 25, "bmi < 25"),
        ((_.sex == "F") & (_.age >= 18) & ~_.smoker, "sex = 'F' and age >= 18 and not smoker"),
        ((_.age + 1) * 2 - _.age % 3, "(age + 1) * 2 - age % 3"),
        (_.age // 3 / 2, "age // 3 / 2"),
        (-_.bmi + 3, "-bmi + 3"),
        (_.age - (-5), "age - (-5)"),
        (_.sex.isin(["F", "M"]), "sex in ('F', 'M')"),
        (_.age.between(3, 5) | _.age.isnull(), "age between 3 and 5 or age is null"),
        (_.bmi.notnull(), "bmi is not null"),
        (_.born < "2000-01-01", "born < '2000-01-01'"),
        (_.born < datetime.date(2000, 1, 1), "born < date '2000-01-01'"),
        (_.born.year() + _.born.month() * _.born.day(), "year(born) + month(born) * day(born)"),
        (_.born.delta("2021-01-01", unit="day"), "days_between('2021-01-01', born)"),
        (
            _.bmi.sqrt() + _.age.abs() + _.bmi.floor() + _.bmi.ceil(),
            "sqrt(bmi) + abs(age) + floor(bmi) + ceil(bmi)",
        ),
        (
            _.bmi.ln() + _.bmi.log2() + _.bmi.log10() + _.bmi.log(3),
            "ln(bmi) + log2(bmi) + log10(bmi) + log(3, bmi)",
        ),
        ((_.bmi / 60).exp(), "exp(bmi / 60)"),
        (_.bmi.round(), "round(bmi)"),
        (_.bmi.round(2), "round(bmi, 2)"),
        (_.bmi**2, "power(bmi, 2)"),
        (_.bmi.clip(20, 30), "least(greatest(bmi, 20), 30)"),
        (ibis.least(_.age, 7), "least(age, 7)"),
        (ibis.coalesce(_.age, _.code, 7), "coalesce(age, code, 7)"),
        (_.age.nullif(3), "nullif(age, 3)"),
        (_.age.cast("float64"), "cast(age as double)"),
        (_.bmi.cast("int64"), "cast(bmi as integer)"),
        (
            ibis.cases((_.age < 18, "child"), else_="adult"),
            "case when age < 18 then 'child' else 'adult' end",
        ),
        (_.smoker.ifelse(1, 2), "case when smoker then 1 else 2 end"),
        (_.sex.cases(("F", 1), else_=0), "case sex when 'F' then 1 else 0 end"),
        (_.sex.like("F%"), "sex like 'F%'"),
        (_.sex.lower() == "f", "lower(sex) = 'f'"),
        (_.sex.length() + 1, "length(sex) + 1"),
        (_["age"] + 1, "age + 1"),
    ],
    ids=str,
)
def test_a_deferred_expression_means_what_its_text_means(deferred: Any, text: str) -> None:
    found, written = read(deferred, SCHEMA), read(text, SCHEMA)
    assert found.meaning == written.meaning
    assert found.domain == written.domain
    assert read(found.text, SCHEMA).meaning == written.meaning


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (_.salary < 3, "cannot apply it to the columns"),
        (_.sex + 1 < 3, "cannot apply it to the columns"),
        (_.sex == "X", "not among the categories"),
        (_.age.mean() < 3, "Mean"),
        (_.age < _.age.max(), "Max"),
        (_.sex.re_search("(a+)+$"), "RegexSearch"),
        (_.sex.cast("int64") < 3, "text is not cast"),
        (_.age.cast("string") == "3", "a cast makes an integer or a double"),
        (_.age < ibis.random(), "RandomScalar"),
        (_.born < ibis.now(), "TimestampNow"),
        (_.age.lag() < 3, "one row at a time"),
        (_.sex.upper().substr(1) == "X", "Substring"),
        (_.bmi < float("nan"), "a number must be 0 or between"),
        (_.bmi < float("inf"), "a number must be 0 or between"),
        (_.bmi.isnan(), "IsNan"),
        (_.age < 2**62, "could leave 64 bits"),
        (_.count() > 3, "CountStar"),
        (_.age.isin(ibis.table({"k": "int64"}, name="other").k), "InSubquery"),
        (_.age == ibis.table({"k": "int64"}, name="other").k.max(), "Max"),
        (_.age < ibis.table({"age": "int64"}, name="other").age, "Field"),
        (_.filter(_.age < 3), "cannot apply|not supported"),
        (3, "must be text or an Ibis deferred"),
        (None, "must be text or an Ibis deferred"),
        (lambda row: row, "must be text or an Ibis deferred"),
        (ibis.table({"age": "int64"}, name="rows").age < 3, "must be text or an Ibis deferred"),
    ],
)
def test_what_text_could_not_say_is_refused(source: object, rule: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        read(source, SCHEMA)
    assert any(part in caught.value.rule for part in rule.split("|")), caught.value.rule
    assert caught.value.position is None


def test_a_function_written_by_a_user_is_refused() -> None:
    @ibis.udf.scalar.python
    def leak(value: int) -> int:
        return value

    with pytest.raises(InvalidExpression):
        read(leak(_.age) > 3, SCHEMA)


def test_a_very_deep_deferred_expression_is_refused_or_read() -> None:
    deferred = _.age
    for _step in range(300):
        deferred = deferred + 1
    with pytest.raises(InvalidExpression):
        read(deferred, SCHEMA)

"""Questions about cells: every text against the same condition tried on one row of every cell."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.data.expressions.parser import parse
from farthing.data.schema import Flags, Integers
from farthing.errors import FarthingError, InvalidExpression, InvalidValue
from farthing.matrix.workloads import (
    all_ranges,
    conjunctions,
    identity,
    marginals,
    prefix,
    product,
    total,
    union,
)
from farthing.matrix.workloads.condition_language import language
from farthing.statistics.cells.cell_queries import Axis, mask_of, vector_of

AGE = Axis("age", edges=(0, 10, 25, 65, 110))
SEX = Axis("sex", labels=("F", "M"))
BMI = Axis("bmi", edges=(10.0, 18.5, 25.0, 60.0))
DAY = Axis("day", edges=tuple(datetime.date(2026, month, 1) for month in (1, 2, 3)))


@pytest.mark.parametrize(
    "workload",
    [
        prefix(6), all_ranges(5), total(4), identity(2, 3), marginals((2, 3, 2), way=2, up_to=True),
        conjunctions({"a b": 2, "c": 3}, 2), product(all_ranges(3), total(2), prefix(2)),
        union(prefix(4, column="age"), total(4)),
    ],
    ids=lambda workload: type(workload).__name__,
)  # fmt: skip
def test_every_label_asks_for_its_own_query(workload) -> None:  # type: ignore[no-untyped-def]
    asked = [
        language().coefficients(workload.label(i), workload.columns, workload.shape) for i in range(workload.queries)
    ]
    assert np.array_equal(asked, workload.matrix())


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_text_agrees_with_trying_every_value(data: st.DataObject) -> None:
    """Whole numbers in cells of one value, joined by and, or, not in any way."""
    symbol = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])
    values = st.integers(-2, 9)
    plain = st.builds("{} {} {}".format, st.sampled_from("ab"), symbol, values)
    chain = st.builds("{} <= {} < {}".format, values, st.sampled_from("ab"), values)
    listed = st.builds("{} in ({}, {})".format, st.sampled_from("ab"), values, values)
    odd = st.builds("{} % 3 = {}".format, st.sampled_from("ab"), st.integers(0, 2))
    both = st.builds("a {} b".format, symbol)
    text = data.draw(
        st.recursive(
            st.one_of(plain, chain, listed, odd, both),
            lambda inner: st.one_of(
                st.builds("({} and {})".format, inner, inner),
                st.builds("({} or {})".format, inner, inner),
                st.builds("not {}".format, inner),
            ),
            max_leaves=3,
        )
    )
    found = mask_of(text, [Axis("a", range(6)), Axis("b", range(3, 8))])
    python = text.replace(" = ", " == ").replace("<>", "!=")
    tried = [[float(eval(python, {"a": a, "b": b})) for b in range(3, 8)] for a in range(6)]
    assert np.array_equal(np.broadcast_to(found, (6, 5)), tried)


def test_conditions_on_ranges_and_names() -> None:
    assert vector_of("age >= 25 and sex = 'M'", [AGE, SEX]).tolist() == [0, 0, 0, 0, 0, 1, 0, 1]
    assert vector_of("not (sex = 'M' or age < 65)", [AGE, SEX]).tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    assert vector_of("18.5 <= bmi < 25", [BMI]).tolist() == [0, 1, 0]
    assert vector_of("bmi <= 60", [BMI]).tolist() == [1, 1, 1]
    assert vector_of("bmi >= 18.5 and bmi < 18.5", [BMI]).tolist() == [0, 0, 0]
    assert vector_of("age <= 24", [AGE]).tolist() == [1, 1, 0, 0]  # the same as age < 25 in whole numbers
    assert vector_of("age between 10 and 64", [AGE]).tolist() == [0, 1, 1, 0]
    assert vector_of("day >= date '2026-02-01'", [DAY]).tolist() == [0, 1]
    assert vector_of("sex in ('F', 'M')", [SEX]).tolist() == [1, 1]
    assert vector_of("all rows", [AGE]).tolist() == [1] * 4
    assert vector_of("age is null", [AGE]).tolist() == [0] * 4
    assert vector_of("x < 3", [Axis("x", (1.5, 2.5, 3.5))]).tolist() == [1, 1, 0]
    assert vector_of("x", [Axis("x", (False, True))]).tolist() == [0, 1]
    halves = Axis("age", edges=(0, 27.5, 55), declared=Integers(0, 55))
    assert vector_of("age < 28", [halves]).tolist() == [1, 0]


def test_mappings_pairs_and_vectors_ask_the_same() -> None:
    assert vector_of({"age": (10, 65), "sex": "M"}, [AGE, SEX]).tolist() == [0, 0, 0, 1, 0, 1, 0, 0]
    assert vector_of({"bmi": (25.0, 60.0)}, [BMI]).tolist() == [0, 0, 1]  # the last cell by its two edges
    assert vector_of({"sex": ["F", "M"]}, [SEX]).tolist() == [1, 1]
    assert vector_of({}, [SEX]).tolist() == [1, 1]
    assert vector_of((2, 5), [Axis("x", range(6))]).tolist() == [0, 0, 1, 1, 1, 0]
    assert vector_of([0.5, -1.0], [SEX]).tolist() == [0.5, -1.0]
    assert vector_of({"x": np.int64(3)}, [Axis("x", range(6))]).tolist() == [0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "age < 30",
            "cuts through the cell 25 <= age < 65; its edges are 25 and 65, write age < 25 or age < 65",
        ),
        ("age = 5", "cuts through the cell 0 <= age < 10; its edges are 0 and 10, write age < 10"),
        ("age >= 30", "its edges are 25 and 65, write age >= 25 or age >= 65"),
        ("age > 70", "its edges are 65 and 110, write age >= 65"),
        ("age < 110", "cuts through the cell 65 <= age <= 110; .* write age < 65 or age <= 110"),
        ("bmi <= 18.5", "cuts through the cell 18.5 <= bmi < 25.0"),
        ("day < date '2026-02-14'", "cuts through the cell date '2026-02-01' <= day"),
        ("sex = 'X'", "not among the categories"),
        ("agee < 3", "did you mean age"),
        ("age + 1", "true or false"),
        ("age < bmi", "several columns"),
        ("bmi * 2 < 50", "cell by cell"),
    ],
)
def test_what_the_cells_cannot_say_is_refused_with_a_way_out(text: str, message: str) -> None:
    with pytest.raises(InvalidExpression, match=message):
        vector_of(text, [AGE, SEX, BMI, DAY])


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"age": (10, 30)}, "pair lo < hi of its edges; they are 0, 10, 25, 65, 110"),
        ({"age": 10}, "pair of edges"),
        ({"sex": "X"}, "one of its values; they are 'F', 'M'"),
        ({"sex": {"is": "F"}}, "one of its values"),
        ({"sex": [["F"]]}, "one of its values"),
        ({"sex": ("F", "M")}, "has no order"),
        ({"height": 3}, "must be a column; they are age, sex"),
        ({"age": ("a", "b")}, "pair lo < hi"),
        ([1.0, 2.0], "8 numbers; the columns are age, sex"),
        (object(), "8 numbers"),
        ([1j] * 8, "8 numbers"),
        ([10**400] * 8, "8 numbers"),
        ([float("nan")] * 8, "finite"),
    ],
)
def test_wrong_choices_are_refused(question: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        vector_of(question, [AGE, SEX])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["all", "All"])
def test_a_column_is_meant_before_everything(name: str) -> None:
    flag, other = Axis(name, (False, True), None, Flags()), Axis("b", range(2))
    assert vector_of(name, [flag, other]).tolist() == [0, 0, 1, 1]
    assert vector_of("all", [other]).tolist() == vector_of("All rows", [other]).tolist() == [1, 1]


def test_a_pair_is_the_condition_it_stands_for_also_beyond_the_ends() -> None:
    cells = [Axis("x", range(6))]
    for low, high in [(-1, 3), (3, 20), (0, 7), (20, 30)]:
        assert np.array_equal(vector_of((low, high), cells), vector_of(f"{low} <= x < {high}", cells))
    assert vector_of((25, 200), [AGE]).tolist() == vector_of("25 <= age < 200", [AGE]).tolist() == [0, 0, 1, 1]
    for pair in [(3, 3), (4, 2), (float("nan"), 3), (3, datetime.date(2026, 1, 1))]:
        with pytest.raises(InvalidValue, match="pair lo < hi"):
            vector_of(pair, cells)
    for wrong in [(12, 200), (110, 200), (datetime.date(1900, 1, 1), datetime.date(2026, 1, 1))]:
        with pytest.raises(InvalidValue, match="pair lo < hi of its edges"):
            vector_of(wrong, [AGE])
    with pytest.raises(InvalidValue, match="pair lo < hi of its edges"):
        vector_of((3, 5), [DAY])


def test_a_million_cells_are_asked_at_once() -> None:
    found = vector_of("10 <= x < 1000 or x >= 1048575", [Axis("x", range(2**20))])
    assert found.sum() == 991 and found[10] == found[-1] == 1 and found[1000] == 0
    with pytest.raises(FarthingError, match="cell by cell"):
        vector_of("x % 2 = 0", [Axis("x", range(2**20))])
    with pytest.raises(InvalidValue, match="fewer columns"):
        mask_of("a < 5 or b < 5", [Axis("a", range(2**20)), Axis("b", range(2**20))])


def test_axes_are_checked() -> None:
    for wrong in (
        lambda: Axis("a"),
        lambda: Axis("a", (1, 1)),
        lambda: Axis("a", edges=(1, 1)),
        lambda: Axis("a", ()),
    ):
        with pytest.raises(InvalidValue):
            wrong()
    assert vector_of("a >= 5", [Axis("a", (1, 5, 9))]).tolist() == [0, 1, 1]
    assert vector_of("a >= 5", [Axis("a", (1, None, 9))]).tolist() == [0, 0, 1]


def test_comparisons_chain_only_where_that_is_asked_for() -> None:
    assert str(parse("1 <= a < 3", chains=True)) == "1 <= a and a < 3"
    assert str(parse("1 <= a < b <= 3", chains=True)) == "1 <= a and a < b and b <= 3"
    with pytest.raises(InvalidExpression, match="do not chain"):
        parse("1 <= a < 3")
    with pytest.raises(InvalidExpression, match="do not chain"):
        parse("1 <= a = 3", chains=True)

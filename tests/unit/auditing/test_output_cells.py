"""Whatever a mechanism returns becomes columns in which equal outputs look equal and different ones different."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.auditing.output_cells import ABSENT, WHOLE, Raised, joined, label, outputs_of

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.lists(ANYTHING, min_size=1, max_size=6))
def test_any_outputs_can_be_read(answers: list[object]) -> None:
    read = outputs_of(answers)
    assert read.count == len(answers)
    assert all(len(column) == len(answers) for column in read.columns.values())


@pytest.mark.slow
@given(ANYTHING)
def test_equal_outputs_have_equal_cells(answer: object) -> None:
    read = outputs_of([answer, None, answer])
    for field in read.columns:
        assert read.cells(field)[0] == read.cells(field)[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1.0, 1),
        (0.0, -0.0),
        (None, "None"),
        ("a", b"a"),
        (float("nan"), None),
        ([1, 2], [2, 1]),
        ([1, 2], (1, 2)),
        ([], None),
        ({"a": 1}, {"a": 2}),
        ({"a"}, {"b"}),
        ({"a"}, set()),
        (10**400, 10**400 + 1),
        (2**60, 2**60 + 1),
        (Raised("KeyError", "x"), Raised("ValueError", "x")),
        (Raised("KeyError", "x"), Raised("KeyError", "y")),
        (Raised("KeyError", "x"), "KeyError"),
    ],
)
def test_different_outputs_differ_in_some_field(one: object, other: object) -> None:
    read = outputs_of([one, other, None])
    assert any(column[0] != column[1] for column in read.columns.values())


def test_an_array_and_the_same_lists_are_read_alike() -> None:
    rows = [[1.0, 2.5, -3.0], [0.0, 1.5, 2.0]]
    as_array, as_lists = outputs_of(np.array(rows)), outputs_of(rows)
    for field in set(as_array.columns) - {WHOLE}:
        assert as_array.values(field).tolist() == as_lists.values(field).tolist(), field


def test_nan_is_a_label_that_no_tail_holds() -> None:
    read = outputs_of(np.array([np.nan, -np.nan, np.inf, 1.0]))
    cells, values = read.cells(WHOLE), read.values(WHOLE)
    assert cells[0] == cells[1] == label("nan")
    assert (values >= 0).tolist() == [False, False, True, True]


def test_rows_of_arrays_have_fingerprints_that_tell_them_apart() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [np.nan, 0.0], [0.0, np.nan]])
    prints = outputs_of(rows).cells(WHOLE)
    assert prints[0] == prints[2]
    assert len(set(prints.tolist())) == 4


def test_joining_fills_fields_that_one_part_never_had() -> None:
    both = joined([outputs_of([{"a": 1}]), outputs_of([{"b": 2}])])
    assert both.cells("key 'a'")[1] == ABSENT and both.values("key 'a'")[0] == 1.0
    assert both.count == 2


def test_odd_objects_are_read_by_what_they_show() -> None:
    @dataclass(frozen=True)
    class Answer:
        above: bool
        gap: float

    class Loud:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    read = outputs_of([Answer(True, 0.5), Fraction(1, 4), Loud(), object()])
    assert read.values("key 'gap'")[0] == 0.5
    assert read.values(WHOLE)[1] == 0.25
    assert read.names[int(read.cells(WHOLE)[2])] == "Loud whose repr raises RuntimeError"
    assert read.names[int(read.cells(WHOLE)[3])] == "<object object>"  # without its address


def test_long_outputs_stay_small() -> None:
    read = outputs_of([list(range(10_000)), list(range(10_001))])
    assert len(read.columns) < 100
    assert read.cells(WHOLE)[0] != read.cells(WHOLE)[1]
    assert len(outputs_of([{str(i): i for i in range(10_000)}]).columns) <= 256

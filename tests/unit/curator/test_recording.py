"""What is recorded is what is answered, number for number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.curator.questions import answers_of, text_of
from farthing.errors import InvalidData


@pytest.mark.slow
@given(st.lists(st.integers(-(2**80), 2**80), max_size=20))
def test_whole_numbers_of_any_size_come_back(numbers: list[int]) -> None:
    found = answers_of(text_of({"x": np.array(numbers, dtype=object)}))["x"]
    assert found.tolist() == numbers
    assert found.dtype == (np.int64 if all(-(2**63) <= n < 2**63 for n in numbers) else object)


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (0,), (0, 3)])
def test_shapes_come_back(shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    found = answers_of(text_of({"x": array}))["x"]
    assert found.shape == shape and np.array_equal(found, array)


@pytest.mark.parametrize(
    "value", [1.5, np.array([1.0]), np.array([True]), "3", None, np.array([1, 2.5], dtype=object), True]
)
def test_anything_but_whole_numbers_is_refused_without_being_shown(value: Any) -> None:
    with pytest.raises(InvalidData) as refusal:
        text_of({"x": value})
    assert str(refusal.value).startswith("answer: must be whole numbers;")


def test_names_keep_their_order_and_their_letters() -> None:
    names = ["b", "a", 'quoted "name"', "Größe"]
    assert list(answers_of(text_of(dict.fromkeys(names, 1)))) == names

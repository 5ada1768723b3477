"""Values that nobody listed are shown in the order in which people look for them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from farthing.inference import Answer
from farthing.inference.label_order import in_natural_order, natural_key


def by_text(labels: tuple[object, ...], numbers: list[float]) -> Answer:
    values = np.array(numbers)
    return Answer.within(
        "n", values, values / 10, lambda level: (values - level, values + level), labels, raw=values + 0.5, note="found"
    )


@given(st.lists(st.text(alphabet="a0129.-+٣ ", max_size=9), unique=True))
def test_no_two_values_have_the_same_place_and_no_text_fails(texts: list[str]) -> None:
    key, backwards = natural_key(texts), texts[::-1]
    assert len({repr(key(text)) for text in texts}) == len(texts)
    assert sorted(texts, key=key) == sorted(backwards, key=key)


def test_very_long_digits_are_numbers_too() -> None:
    long, longer = "9" * 5_000, "1" + "0" * 5_000
    for prefix in ("", "id "):
        texts = [prefix + longer, prefix + long, prefix + "7"]
        assert sorted(texts, key=natural_key(texts)) == [prefix + "7", prefix + long, prefix + longer]


def test_all_of_a_cell_moves_together() -> None:
    moved = in_natural_order(by_text(("1", "10", "2"), [1.0, 10.0, 2.0]).counting("people (one per who)"))
    assert moved.labels == ("1", "2", "10") and moved.note == "found" and moved.counts == "people (one per who)"
    for numbers, at in ((moved.values, 0.0), (moved.raw, 0.5), (moved.lower, -0.95), (moved.upper, 0.95)):
        np.testing.assert_allclose(numbers, np.array([1.0, 2.0, 10.0]) + at)
    np.testing.assert_allclose(moved.standard_errors, [0.1, 0.2, 1.0])
    np.testing.assert_allclose(moved.at(0.5).upper, [1.5, 2.5, 10.5])
    assert in_natural_order(moved) is moved


def test_an_order_that_somebody_chose_stays() -> None:
    chosen = by_text(("10", "9", "1"), [1.0, 2.0, 3.0])
    assert in_natural_order(chosen) is chosen
    pairs = by_text((("z", "1"), ("z", "10"), ("z", "2"), ("a", "1"), ("a", "10"), ("a", "2")), [0.0, 1, 2, 3, 4, 5])
    assert in_natural_order(pairs).labels == (("z", "1"), ("z", "2"), ("z", "10"), ("a", "1"), ("a", "2"), ("a", "10"))
    whole = by_text((), [3.0])
    assert in_natural_order(whole) is whole

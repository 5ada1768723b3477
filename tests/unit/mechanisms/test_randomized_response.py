"""Randomized response refuses what it should, without showing it, and takes columns of any shape it promises."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.randomized_response import RandomizedResponse

SECRET = "malaria"


@pytest.mark.parametrize("epsilon", [0, -1, 50.1, math.nan, math.inf, True, "1", None])
def test_a_bad_epsilon_is_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidValue, match="epsilon="):
        RandomizedResponse(epsilon)


@pytest.mark.parametrize("categories", [(), (1,), (1, 1), "ab", (1, "a"), (1.5, 2.5), (None, None), 3, {1, 2}])
def test_bad_categories_are_refused(categories: Any) -> None:
    with pytest.raises(InvalidValue, match="categories="):
        RandomizedResponse(1.0, categories)


@pytest.mark.parametrize("probability", [0.5, 0.2, 1, 0, -1, 2.0, math.nan, "a half", "1/0", None, True])
def test_a_bad_warner_probability_is_refused(probability: Any) -> None:
    with pytest.raises(InvalidValue, match="probability="):
        RandomizedResponse.warner(probability)


def test_a_warner_probability_too_near_one_is_refused_like_its_epsilon() -> None:
    with pytest.raises(InvalidValue, match="epsilon="):
        RandomizedResponse.warner(1 - Fraction(1, 10**30))


HOSTILE: list[Any] = [
    None, SECRET, [None], [SECRET], [1.0], [math.nan], [2], [True], np.array([1.0]), np.array([math.nan]),
    np.array([2]), np.array([True]), np.array([[0, 1]]), np.array([SECRET]), {0: 1}, {0, 1}, 1, [[0], [1, 0]],
    np.ma.array([0, 1], mask=[True, False]), iter([0, 1]), [2**63], [-(2**63)], np.array([None, 0], dtype=object),
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=lambda bad: type(bad).__name__)
def test_bad_columns_are_refused_and_never_shown(value: Any) -> None:
    mechanism = RandomizedResponse(1.0)
    for act in (mechanism.release_many, lambda column: mechanism.proportion(column, 1)):
        with pytest.raises(InvalidData) as refused:
            act(value)
        assert SECRET not in str(refused.value)
        assert refused.value.__cause__ is None


@pytest.mark.parametrize("value", [None, SECRET, 2, -1, 1.0, math.nan, True, [0], np.array([0]), 2**63])
def test_bad_values_are_refused_and_never_shown(value: Any) -> None:
    with pytest.raises(InvalidData) as refused:
        RandomizedResponse(1.0).release(value)
    assert SECRET not in str(refused.value)


def test_values_and_columns_of_every_promised_kind_are_taken() -> None:
    bits, words, flags = (
        RandomizedResponse(1.0),
        RandomizedResponse(1.0, ("a", "b")),
        RandomizedResponse(1.0, (False, True)),
    )
    assert bits.release(1) in (0, 1) and type(bits.release(np.int8(1))) is int
    assert words.release("a") in ("a", "b") and flags.release(True) in (True, False)
    for column in ([0, 1], (0, 1), np.array([0, 1]), np.array([0, 1], dtype=np.uint8), [np.int64(0), 1]):
        assert set(bits.release_many(column).tolist()) <= {0, 1}
    assert set(words.release_many(np.array(["a", "b"])).tolist()) <= {"a", "b"}
    assert flags.release_many([True, False]).dtype == bool
    for empty in ([], np.array([], dtype=int)):
        assert len(bits.release_many(empty)) == 0
    with pytest.raises(InvalidData, match="at least one"):
        bits.proportion([], 1)


def test_columns_of_other_libraries_are_taken() -> None:
    import pandas
    import polars

    for series in (pandas.Series(["a", "b", "a"]), polars.Series(["a", "b", "a"])):
        assert len(RandomizedResponse(1.0, ("a", "b")).release_many(series)) == 3
    assert len(RandomizedResponse(1.0).release_many(pandas.Series([0, 1]))) == 2


def test_a_category_that_is_none_of_them_is_refused() -> None:
    for category in (2, "1", True, None):
        with pytest.raises(InvalidValue, match="category="):
            RandomizedResponse(1.0).proportion([0, 1], category)
    for share, reports in ((-0.1, 5), (math.nan, 5)):
        with pytest.raises(InvalidValue, match="proportion="):
            RandomizedResponse(1.0).variance(share, reports)
    with pytest.raises(InvalidValue, match="reports="):
        RandomizedResponse(1.0).variance(0.5, 0)
    with pytest.raises(InvalidValue, match="confidence="):
        RandomizedResponse(1.0).proportion([0, 1], 1).interval(1.0)


@pytest.mark.parametrize(
    "mechanism",
    [RandomizedResponse(0.5), RandomizedResponse(2.0, ("a", "b", "c")), RandomizedResponse.warner("2/3")],
)
def test_the_repr_makes_it_again_and_it_is_frozen(mechanism: RandomizedResponse) -> None:
    assert eval(repr(mechanism), {"RandomizedResponse": RandomizedResponse}) == mechanism
    with pytest.raises(AttributeError):
        mechanism.epsilon = 3.0  # type: ignore[misc]


def test_epsilon_follows_from_warners_probability_whatever_is_claimed() -> None:
    mechanism = RandomizedResponse.warner(0.75)
    assert mechanism.epsilon > 1.0986 and RandomizedResponse(0.1, _warner=Fraction(3, 4)).epsilon == mechanism.epsilon


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("members", [0, 3, 7, 10])
def test_standard_deviations_are_those_of_all_coins_and_of_all_draws(k: int, members: int) -> None:
    """Beside sums over all numbers of true and false reports, and over all samples of ten people."""
    mechanism = RandomizedResponse(1.3, tuple(range(k)))
    p = mechanism.truth_probability
    q = (1 - p) / (k - 1)

    def moments(inside: int, n: int = 10) -> tuple[float, float]:
        mean = square = 0.0
        for true in range(inside + 1):
            for false in range(n - inside + 1):
                chance = math.comb(inside, true) * p**true * (1 - p) ** (inside - true)
                chance *= math.comb(n - inside, false) * q**false * (1 - q) ** (n - inside - false)
                value = ((true + false) / n - q) / (p - q)
                mean, square = mean + chance * value, square + chance * value**2
        return mean, square

    fixed, sample = mechanism.standard_deviations(members / 10, 10)
    mean, square = moments(members)
    assert mean == pytest.approx(members / 10) and fixed**2 == pytest.approx(square - mean**2)
    s = members / 10
    drawn = [(math.comb(10, j) * s**j * (1 - s) ** (10 - j), moments(j)) for j in range(11)]
    total = sum(chance * one[0] for chance, one in drawn), sum(chance * one[1] for chance, one in drawn)
    assert sample**2 == pytest.approx(total[1] - total[0] ** 2) and fixed <= sample
    with pytest.raises(InvalidValue, match="proportion"):
        mechanism.standard_deviations(1.5, 10)

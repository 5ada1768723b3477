"""What `compose` takes and what it refuses: with the value, the rule and the way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise

REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (([float("nan")],), "charges[0]=nan: must be a finite number >= 0"),
    (([0.1, float("inf")],), "charges[1]=inf"),
    (([-0.1],), "charges[0]=-0.1: must be a finite number >= 0"),
    (([1e7],), "at most 1e6"),
    (([True],), "charges[0]=True"),
    (([np.True_],), "charges[0]"),
    ((["0.1"],), "charges[0]='0.1'"),
    (([None],), "charges[0]=None"),
    (([1j],), "charges[0]=1j"),
    (("0.1",), "must be a sequence"),
    ((0.1,), "must be a sequence"),
    ((LaplaceNoise(1.0),), "must be a sequence"),
    (({"a": 1},), "must be a sequence"),
    ((np.array([True, False]),), "real numbers"),
    ((np.array(["a"]),), "real numbers"),
    ((np.zeros((2, 3)),), "must be (k,) or (k, 2)"),
    ((np.ma.masked_array([0.1, 0.2], [True, False]),), "must be a sequence"),
    (([(0.1, 1.0)],), "must be >= 0 and < 1"),
    (([(0.1, -1e-9)],), "must be >= 0 and < 1"),
    (([(0.1, 1e-9, 3)],), "must be a pair"),
    (([0.1, 0.2], [1e-9]), "len(deltas)=1: must equal the number of charges, 2"),
    (([0.1], [float("nan")]), "deltas[0]=nan"),
    (([0.1], [1.0]), "deltas[0]=1.0: must be >= 0 and < 1"),
    (([0.1], ["x"]), "deltas[0]='x'"),
    (([(0.1, 0.0)], [1e-9]), "deltas"),
    (([], [0.1]), "len(deltas)=1"),
    (([0.1], None, [-1]), "counts[0]=-1.0: must be a whole number >= 0"),
    (([0.1], None, [1.5]), "counts[0]=1.5: must be a whole number >= 0"),
    (([0.1], None, [1, 2]), "len(counts)=2"),
    (([0.1], None, [True]), "counts[0]=True"),
    (([0.1], None, 2**62), "below 2^53"),
    (([0.1] * 3, None, 2**52), "2^53 charges in total"),
    (([GaussianNoise(1.0)], None, [float("nan")]), "counts[0]=nan"),
    (([LaplaceNoise(1e-9)],), "noise_multiplier=1e-09: must be at least 1e-6"),
]


@pytest.mark.parametrize(("arguments", "part"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_bad_input_is_refused_with_value_and_rule(arguments: tuple[Any, ...], part: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        ft.compose(*arguments)
    assert part in str(caught.value)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, ft.FarthingError)


@pytest.mark.parametrize("delta", [float("nan"), -1e-9, 1.0, 2.0, True, "1e-6", None])
def test_bad_delta_is_refused(delta: Any) -> None:
    with pytest.raises(InvalidValue, match="delta"):
        ft.compose([0.1]).epsilon_at(delta)


@pytest.mark.parametrize("epsilon", [float("nan"), -0.1, float("inf"), "1"])
def test_bad_epsilon_is_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidValue, match="epsilon"):
        ft.compose([0.1]).delta_at(epsilon)


@pytest.mark.parametrize("alpha", [1.0, 0.5, float("nan"), float("inf")])
def test_bad_order_is_refused(alpha: float) -> None:
    with pytest.raises(InvalidValue, match="alpha"):
        ft.compose([0.1]).renyi_at(alpha)


def test_equal_lists_in_every_form_cost_the_same() -> None:
    answer = ft.compose([0.25, 0.5, 0.5]).epsilon_at(1e-6)
    forms: list[Any] = [
        (0.25, 0.5, 0.5),
        np.array([0.25, 0.5, 0.5]),
        np.array([0.25, 0.5, 0.5], dtype=np.float32),
        np.array([[0.25, 0.0], [0.5, 0.0], [0.5, 0.0]]),
        [(0.25, 0.0), [0.5, 0.0], np.array([0.5, 0.0])],
        [ApproxDP(0.25), 0.5, (0.5, 0)],
        iter([0.25, 0.5, 0.5]),
        np.array([0.25, ApproxDP(0.5), 0.5], dtype=object),
    ]
    for form in forms:
        assert ft.compose(form).epsilon_at(1e-6) == answer
    assert ft.compose([0.25, 0.5], counts=[1, 2]).epsilon_at(1e-6) == answer
    assert ft.compose([0.25, 0.5, 9.0], counts=np.array([1, 2, 0])).epsilon_at(1e-6) == answer
    assert ft.compose([0.25, 0.5, 0.5], deltas=0.0).epsilon_at(1e-6) == answer


def test_nothing_costs_nothing() -> None:
    for empty in ([], (), np.zeros(0), [0.0] * 5, [0.3]):
        counts = [0] if len(empty) == 1 else None
        assert ft.compose(empty, counts=counts).epsilon_at(0.0).upper == 0.0


def test_a_long_chain_of_additions_stays_right() -> None:
    composition = ft.compose([])
    for _ in range(100):
        composition = composition.plus([0.1])
    assert composition.k == 100
    bounds = composition.epsilon_at(1e-6)
    assert bounds.lower <= 4.774567588108 <= bounds.upper

"""Selections and quantiles refuse bad parameters with their value, and bad data without it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.exponential import ExponentialMechanism, TopK
from farthing.mechanisms.many_quantiles import Quantiles
from farthing.mechanisms.mechanism import Mechanism
from farthing.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax
from farthing.mechanisms.quantiles import Quantile

SELECTIONS: list[Callable[..., Any]] = [
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    lambda *args, **named: ReportNoisyMax(*args, gap=True, **named),
    lambda *args, **named: TopK(2, *args, **named),
]
MECHANISMS: list[Mechanism] = [
    *(make(1.0) for make in SELECTIONS),
    *(make(1.0, 0.5, grid=0.25) for make in SELECTIONS),
    Quantile(0.5, 1.0, 0, 10, 0.5),
    Quantiles((0.1, 0.5), 1.0, 0, 10, 0.5),
]
SECRET = 918273645


@pytest.mark.parametrize("epsilon", [0, -1, 50.1, math.nan, math.inf, True, "1", None])
@pytest.mark.parametrize(
    "make", [*SELECTIONS, lambda e: Quantile(0.5, e, 0, 1, 1), lambda e: Quantiles([0.5], e, 0, 1, 1)]
)
def test_a_bad_epsilon_is_refused(make: Callable[..., Any], epsilon: Any) -> None:
    with pytest.raises(InvalidValue, match="epsilon="):
        make(epsilon)


@pytest.mark.parametrize("make", SELECTIONS)
def test_a_bad_sensitivity_grid_or_flag_is_refused(make: Callable[..., Any]) -> None:
    for sensitivity in (0, -1, 1.5, math.nan, "1", None, True):
        with pytest.raises(InvalidValue, match="sensitivity="):
            make(1.0, sensitivity)
    for sensitivity in (0.0, -1.0, math.inf, math.nan, "1"):
        with pytest.raises(InvalidValue, match="sensitivity="):
            make(1.0, sensitivity, grid=0.5)
    for grid in (0.0, 0.1, 3, -0.5, math.inf, math.nan, "0.5"):
        with pytest.raises(InvalidValue, match="grid="):
            make(1.0, 1.0, grid=grid)
    with pytest.raises(InvalidValue, match="monotone="):
        make(1.0, 1, "yes")


def test_a_bad_k_gap_or_question_is_refused() -> None:
    for k in (0, -1, 1.5, True):
        with pytest.raises(InvalidValue, match="k="):
            TopK(k, 1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="gap="):
        ReportNoisyMax(1.0, gap=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="at least k=3"):
        TopK(3, 1.0).error(0.9, 2)
    for confidence in (0, 1, -0.5, math.nan, "0.9"):
        with pytest.raises(InvalidValue, match="confidence="):
            ExponentialMechanism(1.0).error(confidence, 3)  # type: ignore[arg-type]
        with pytest.raises(InvalidValue, match="confidence="):
            Quantile(0.5, 1.0, 0, 1, 1).error(confidence)  # type: ignore[arg-type]
    for candidates in (0, -1, 2.5):
        with pytest.raises(InvalidValue, match="candidates="):
            PermuteAndFlip(1.0).error(0.9, candidates)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"probability": -0.1}, "probability"),
        ({"probability": math.nan}, "probability"),
        ({"lower": math.inf}, "lower"),
        ({"upper": -1}, "upper"),
        ({"upper": math.nan}, "upper"),
        ({"grid": 0}, "grid"),
        ({"grid": -1}, "grid"),
        ({"grid": 1e-300}, "grid"),
        ({"lower": 0.1, "upper": 0.2, "grid": 1}, "grid"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": 1.5}, "max_rows"),
        ({"neighbours": "swap"}, "neighbours"),
    ],
)
def test_a_bad_parameter_of_a_quantile_is_refused(changed: dict[str, Any], name: str) -> None:
    good: dict[str, Any] = {"probability": 0.5, "epsilon": 1.0, "lower": 0, "upper": 10, "grid": 1}
    with pytest.raises(InvalidValue, match=f"{name}="):
        Quantile(**good | changed)
    if name != "probability":
        many = {"probabilities": [0.5], **good} | changed
        del many["probability"]
        with pytest.raises(InvalidValue, match=f"{name}="):
            Quantiles(**many)


@pytest.mark.parametrize("probabilities", [[], [0.5, 0.5], [0.7, 0.2], [1.1], "0.5", 0.5, [math.nan]])
def test_probabilities_must_increase_within_0_and_1(probabilities: Any) -> None:
    with pytest.raises(InvalidValue, match="probabilities="):
        Quantiles(probabilities, 1.0, 0, 10, 1)


HOSTILE: list[Any] = [
    None,
    str(SECRET),
    [None, SECRET, SECRET],
    [str(SECRET)] * 3,
    np.array([[SECRET, 1], [2, 3]]),
    np.array([True, False, True]),
    np.array([SECRET + 0.5j, 1, 2]),
    {"score": SECRET},
    SECRET,
    [[SECRET], [1, 2]],
    np.ma.array([SECRET, 1, 2], mask=[True, False, False]),
]


NOT_FINITE: list[Any] = [
    np.array([SECRET, math.nan, 1.0]),
    np.array([SECRET, math.inf, 1.0]),
    [SECRET, -math.inf, 1],
    [SECRET, math.nan, 1],
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_bad_data_is_refused_and_never_shown(mechanism: Mechanism) -> None:
    rows = isinstance(mechanism, Quantile | Quantiles)
    for value in HOSTILE if rows else HOSTILE + NOT_FINITE:
        with pytest.raises(InvalidData) as refused:
            mechanism.release(value)
        assert str(SECRET) not in str(refused.value)
        assert refused.value.__cause__ is None


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_missing_rows_are_left_out_and_infinite_ones_clamped(relation: Any) -> None:
    """A refusal of a single row would tell that it is there."""
    for mechanism in (
        Quantile(0.5, 1.0, 0, 10, 0.5, neighbours=relation),
        Quantiles((0.1, 0.5), 1.0, 0, 10, 0.5, neighbours=relation),
    ):
        assert mechanism._points([math.nan, -math.inf, 3.2, math.inf, math.nan]).tolist() == [0, 6, 20]
        for value in NOT_FINITE:
            mechanism.release(value)


def test_scores_are_whole_without_a_grid_and_there_are_enough_of_them() -> None:
    for make in SELECTIONS:
        for value in ([0.5, 1.0, 2.0], np.array([1.0, 2.0, 3.0]), [True, False, True], []):
            with pytest.raises(InvalidData):
                make(1.0).release(value)
        with pytest.raises(InvalidData):
            make(1.0, 0.5, grid=0.5).release([])
    with pytest.raises(InvalidData, match="at least 2"):
        TopK(2, 1.0).release([1])
    with pytest.raises(InvalidData, match="at least 2"):
        ReportNoisyMax(1.0, gap=True).release([1])


def test_an_empty_column_is_an_answer_like_any_other() -> None:
    assert 0 <= Quantile(0.5, 1.0, 0, 10, 0.5).release([]) <= 10
    assert len(Quantiles((0.1, 0.5), 1.0, 0, 10, 0.5).release(np.array([]))) == 2


def test_tiny_negative_scores_are_rounded_down_even_when_the_quotient_underflows() -> None:
    from farthing.mechanisms.selection_scores import score_steps

    steps = score_steps([-5e-324, 5e-324, -0.0, 1e308, -1e308], 2.0**40, 1)
    assert steps.tolist() == [-1, 0, 0, 2**62, -(2**62)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_mechanisms_are_frozen_and_their_repr_makes_them_again(mechanism: Mechanism) -> None:
    with pytest.raises(FrozenInstanceError):
        mechanism.epsilon = 2.0  # type: ignore[attr-defined]
    names = {
        kind.__name__: kind
        for kind in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, TopK, Quantile, Quantiles)
    }
    assert eval(repr(mechanism), names) == mechanism
    assert hash(mechanism) == hash(eval(repr(mechanism), names))


def test_a_margin_beyond_the_doubles_is_the_largest_double_and_no_error() -> None:
    mechanism = ReportNoisyMax(1.0, 2.0**1000, grid=2.0**1000, gap=True)
    assert mechanism.release([1.7e308, -1.7e308]) == (0, sys.float_info.max)

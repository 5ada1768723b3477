"""Events are frozen facts: checked when made, equal by value, stored under stable tags."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon, checked_real
from strategies import events

NOISES = [LaplaceNoise, GaussianNoise, DiscreteLaplaceNoise, DiscreteGaussianNoise]
NOT_REAL: list[Any] = [
    True,
    np.True_,
    "1",
    b"1",
    None,
    1j,
    [1.0],
    (1.0,),
    {},
    object(),
    np.array([1.0]),
    np.str_("1"),
]


@pytest.mark.slow
@given(events())
def test_an_event_survives_being_stored_as_json(event: Event) -> None:
    stored = json.loads(json.dumps(event.to_dict()))
    assert Event.from_dict(stored) == event
    assert hash(Event.from_dict(stored)) == hash(event)


def test_tags_are_fixed_because_ledgers_hold_them() -> None:
    sampled = Sampled(GaussianNoise(2.0), 0.5).to_dict()
    assert sampled == {
        "type": "sampled",
        "event": {"type": "gaussian", "noise_multiplier": 2.0},
        "probability": 0.5,
    }
    assert ApproxDP(1.0, 1e-9).to_dict() == {"type": "approx_dp", "epsilon": 1.0, "delta": 1e-9}
    tags = {event.to_dict()["type"] for event in (RandomizedResponse(1.0), *(kind(1.0) for kind in NOISES))}
    assert tags == {"randomized_response", "laplace", "gaussian", "discrete_laplace", "discrete_gaussian"}


@pytest.mark.parametrize("tag", ["os.system", "Laplace", "", None, 3, ["laplace"]])
def test_an_unknown_tag_is_refused_and_nothing_is_looked_up(tag: Any) -> None:
    with pytest.raises(InvalidValue, match=r"type=.*: must be one of approx_dp"):
        Event.from_dict({"type": tag, "noise_multiplier": 1.0})


@pytest.mark.slow
@given(events())
def test_events_are_frozen(event: Event) -> None:
    name = dataclasses.fields(event)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, name, 0.0)
    with pytest.raises((AttributeError, TypeError)):
        event.unheard_of = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf, *NOT_REAL])
def test_a_bad_noise_multiplier_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(InvalidValue) as refusal:
        kind(value)
    assert refusal.value.name == "noise_multiplier" and refusal.value.rule.startswith("must be")


@pytest.mark.parametrize("kind", [DiscreteLaplaceNoise, DiscreteGaussianNoise])
@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, math.nan, *NOT_REAL])
def test_a_sensitivity_is_a_positive_whole_number(kind: Any, value: Any) -> None:
    with pytest.raises(InvalidValue, match=r"l[12]_sensitivity"):
        kind(1.0, value)


@pytest.mark.parametrize("kind", [ApproxDP, RandomizedResponse])
@pytest.mark.parametrize("value", [-1e-300, math.nan, math.inf, 10**400, *NOT_REAL])
def test_a_bad_epsilon_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(InvalidValue, match="epsilon="):
        kind(value)


@pytest.mark.parametrize("value", [-1e-300, 1.0, 2.0, math.nan, math.inf, *NOT_REAL])
def test_a_bad_delta_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue, match="delta="):
        ApproxDP(1.0, value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, *NOT_REAL])
def test_a_bad_probability_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue, match="probability="):
        Sampled(LaplaceNoise(1.0), value)


@pytest.mark.parametrize("inner", [1.0, None, LaplaceNoise, Sampled(LaplaceNoise(1.0), 0.5)])
def test_only_a_plain_event_can_be_sampled(inner: Any) -> None:
    with pytest.raises(InvalidValue, match="event="):
        Sampled(inner, 0.5)


@pytest.mark.parametrize("value", [1, 1.0, Fraction(1), np.float32(1), np.int8(1), np.uint64(1), np.array(1.0)])
def test_every_kind_of_real_number_is_taken_as_the_same_double(value: Any) -> None:
    assert checked_real(value, "x") == checked_epsilon(value) == 1.0
    assert LaplaceNoise(value) == LaplaceNoise(1.0) and type(LaplaceNoise(value).noise_multiplier) is float
    assert ApproxDP(value).to_dict() == {"type": "approx_dp", "epsilon": 1.0, "delta": 0.0}


def test_the_edges_of_the_ranges_are_inside() -> None:
    assert checked_epsilon(0) == 0.0 and checked_delta(0) == 0.0
    assert checked_delta(math.nextafter(1, 0)) < 1
    assert Sampled(LaplaceNoise(1.0), 0).probability == 0 and Sampled(LaplaceNoise(1.0), 1).probability == 1


@pytest.mark.parametrize("value", [0, 3, np.int64(3), np.uint8(3), np.array(3), 10**30])
def test_counts_are_whole_numbers(value: Any) -> None:
    assert checked_count(value) == int(value) and type(checked_count(value)) is int


@pytest.mark.parametrize("value", [-1, 1.5, 3.0, math.nan, *NOT_REAL])
def test_anything_else_is_no_count(value: Any) -> None:
    with pytest.raises(InvalidValue, match="must be a whole number >= 0"):
        checked_count(value)


def test_composed_events_are_flat_and_survive_storage() -> None:
    inner = Composed(((ApproxDP(0.5), 2), (GaussianNoise(4.0), 1)))
    outer = Composed(((inner, 3), (LaplaceNoise(2.0), 0)))
    assert outer.parts == ((ApproxDP(0.5), 6), (GaussianNoise(4.0), 3), (LaplaceNoise(2.0), 0))
    assert Event.from_dict(json.loads(json.dumps(outer.to_dict()))) == outer


@pytest.mark.parametrize("parts", [[1], ((1, 2),), ((ApproxDP(1), -1),), ((ApproxDP(1), 1.5),), ((ApproxDP(1),),)])
def test_composed_events_refuse_what_is_no_pair_of_event_and_count(parts: Any) -> None:
    with pytest.raises(InvalidValue):
        Composed(parts)


def test_composed_events_are_not_sampled_part_by_part() -> None:
    with pytest.raises(InvalidValue, match="one sample serves all parts"):
        Sampled(Composed(((ApproxDP(0.5), 2),)), 0.5)

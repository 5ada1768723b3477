"""The odometer's face: frozen, never refusing, refusing nonsense."""

from __future__ import annotations

import math

import pytest

from farthing.accounting.filters import Odometer
from farthing.errors import InvalidValue
from farthing.privacy import DiscreteGaussianNoise, GaussianNoise, LaplaceNoise, RandomizedResponse, Sampled


def test_charging_returns_a_new_odometer() -> None:
    meter = Odometer(1e-6)
    after = meter.charge(0.5)
    assert (meter.epsilon, meter.count) == (0.0, 0)
    assert (after.epsilon, after.count) == (0.5, 1)
    with pytest.raises(AttributeError):
        after.count = 0  # type: ignore[misc]


def test_k_at_once_equals_k_one_by_one_in_any_order() -> None:
    one = Odometer(1e-6).charge(0.1, 3).charge(LaplaceNoise(5.0), 2)
    other = Odometer(1e-6)
    for charge in (LaplaceNoise(5.0), 0.1, 0.1, LaplaceNoise(5.0), 0.1):
        other = other.charge(charge)
    assert one == other
    assert one.epsilon == other.epsilon


def test_every_kind_of_event_is_metered() -> None:
    meter = Odometer(1e-6)
    readings = [0.0]
    for charge in (
        RandomizedResponse(0.1), GaussianNoise(5.0), DiscreteGaussianNoise(5.0), Sampled(GaussianNoise(1.0), 0.01),
        Sampled(LaplaceNoise(1.0), 0.01), (0.1, 1e-9),
    ):  # fmt: skip
        meter = meter.charge(charge)
        readings.append(meter.epsilon)
    assert readings == sorted(readings)
    assert readings[-1] < 5
    assert meter.leaked == 1e-9
    assert repr(meter).startswith("Odometer(delta=1e-06; 6 charged, epsilon=")


def test_many_small_charges_read_far_below_their_sum() -> None:
    assert Odometer(1e-9).charge(0.01, 10_000).epsilon < 10


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan, True, "x"])
def test_bad_deltas_are_refused(delta: object) -> None:
    with pytest.raises(InvalidValue, match="delta="):
        Odometer(delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("charge", [math.nan, -1.0, True, "a", (1.0,)])
def test_bad_charges_are_refused(charge: object) -> None:
    with pytest.raises(InvalidValue):
        Odometer(1e-6).charge(charge)  # type: ignore[arg-type]


def test_bad_counts_and_leaks_are_refused() -> None:
    with pytest.raises(InvalidValue, match="count="):
        Odometer(1e-6).charge(0.1, -1)
    with pytest.raises(InvalidValue, match="leak="):
        Odometer(1e-6, leak=1e-6)

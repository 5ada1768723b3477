"""Noise on numbers: shapes, saturation, refusals, and errors in the units of the value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.accounting import calibrate, compose
from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace, additive
from farthing.mechanisms.additive import with_noise
from farthing.numerics.bounds import rounded_down, rounded_up
from farthing.privacy import DiscreteLaplaceNoise

BOTH = [DiscreteLaplace(1.0), DiscreteGaussian(1.0)]
BOTH_REAL = [DiscreteLaplace(1.0, 2.0, grid=0.25), DiscreteGaussian(1.0, 2.0, grid=0.25)]


@pytest.mark.parametrize("mechanism", BOTH, ids=repr)
def test_a_number_gives_a_number_and_an_array_an_array(mechanism: Any) -> None:
    assert type(mechanism.release(5)) is int
    assert type(mechanism.release(np.int32(5))) is int
    assert mechanism.release([5]).shape == (1,)
    wide = type(mechanism)(1.0, 1, cells=6)
    noisy = wide.release(np.zeros((2, 3), dtype=np.int16))
    assert noisy.shape == (2, 3) and noisy.dtype == np.int64


@pytest.mark.parametrize("mechanism", BOTH_REAL, ids=repr)
def test_real_answers_lie_on_the_grid(mechanism: Any) -> None:
    answers = [mechanism.release(1 / 3) for _ in range(200)]
    assert all(type(answer) is float and (answer / 0.25).is_integer() for answer in answers)
    assert len(set(answers)) > 5


@pytest.mark.parametrize("mechanism", [*BOTH, *BOTH_REAL], ids=repr)
def test_every_release_is_a_fresh_draw(mechanism: Any) -> None:
    assert len({mechanism.release(0) for _ in range(200)}) > 3


@pytest.mark.parametrize("mechanism", BOTH, ids=repr)
@pytest.mark.parametrize("value", [2**62, 2**63 - 1, 2**64, 10**30, -(2**63), -(10**30)])
def test_huge_values_saturate_and_never_wrap(mechanism: Any, value: int) -> None:
    answer = mechanism.release(value)
    assert abs(abs(answer) - 2**62) < 2000 and (answer > 0) == (value > 0)


@pytest.mark.slow
@given(
    st.integers(-(2**62), 2**62) | st.sampled_from([2**62, -(2**62), 0, 1]),
    st.integers(-(2**70), 2**70) | st.integers(-3, 3).flatmap(lambda n: st.sampled_from([2**62 + n, n - 2**62])),
)
def test_only_the_sum_is_clamped_never_the_noise(value: int, noise: int) -> None:
    """Clamped noise ends at another place for each value, and an answer there would tell the value."""
    cut = np.array([min(max(noise, 1 - 2**63), 2**63 - 1)])  # as the sampler gives it
    most = 2**62 - 1
    assert with_noise(np.array([value]), cut).tolist() == [min(max(value + noise, -most), most)]


def test_noise_too_large_to_draw_ends_at_one_place_for_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    for sign in (1, -1):
        huge = np.array([sign * (2**63 - 1)])
        monkeypatch.setattr(additive, "discrete_laplace_noise", lambda scale, size, source, huge=huge: huge)
        answers = {DiscreteLaplace(2.0**-56).release(value) for value in (-(2**62), -1, 0, 1, 2**62)}
        assert answers == {sign * (2**62 - 1)}


@pytest.mark.parametrize("mechanism", BOTH_REAL, ids=repr)
def test_huge_reals_saturate_on_the_grid(mechanism: Any) -> None:
    assert mechanism.release(1e308) == pytest.approx(2**60)
    assert mechanism.release(-1e308) == pytest.approx(-(2**60))
    assert abs(mechanism.release(5e-324)) < 200


BAD_VALUES = [
    None,
    "7351",
    [None],
    math.nan,
    math.inf,
    -math.inf,
    True,
    [True],
    1j,
    {"a": 7351},
    object(),
    [[1], [2, 3]],
]
BAD_VALUES += [np.array(["7351"]), np.datetime64("2020-01-01"), np.ma.masked_array([1], [True])]


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize("mechanism", [*BOTH, *BOTH_REAL], ids=repr)
def test_values_of_the_wrong_kind_are_refused_without_being_shown(mechanism: Any, value: Any) -> None:
    with pytest.raises(InvalidData) as refusal:
        mechanism.release(value)
    assert "7351" not in str(refusal.value) and refusal.value.__cause__ is None
    assert not hasattr(refusal.value, "value")


@pytest.mark.parametrize("mechanism", BOTH, ids=repr)
@pytest.mark.parametrize("value", [7351.0, 7351.5, [1, 7351.5], np.float32(1)])
def test_counts_are_whole_numbers(mechanism: Any, value: Any) -> None:
    with pytest.raises(InvalidData, match="whole numbers") as refusal:
        mechanism.release(value)
    assert "7351" not in str(refusal.value)


def test_the_number_of_cells_is_public_and_must_match() -> None:
    with pytest.raises(InvalidData, match="exactly 3"):
        DiscreteLaplace(1.0, cells=3).release([1, 2])
    with pytest.raises(InvalidData, match="exactly 1"):
        DiscreteGaussian(1.0).release([])


@pytest.mark.parametrize("epsilon", [0, 0.0, -1.0, 50.01, 1e9, math.nan, math.inf, None, "1", True, 1j])
def test_epsilon_is_above_zero_and_at_most_fifty(epsilon: Any) -> None:
    with pytest.raises(InvalidValue, match="epsilon"):
        DiscreteLaplace(epsilon)


@pytest.mark.parametrize("multiplier", [0, -1.0, 0.001, 1e13, math.nan, math.inf, None, "1"])
def test_noise_multipliers_out_of_range_are_refused(multiplier: Any) -> None:
    with pytest.raises(InvalidValue, match="noise_multiplier"):
        DiscreteGaussian(multiplier)


@pytest.mark.parametrize("scale", [0, -2.0, math.nan, math.inf, None])
def test_scales_are_finite_and_above_zero(scale: Any) -> None:
    with pytest.raises(InvalidValue, match="scale"):
        DiscreteLaplace.of_scale(scale)
    with pytest.raises(InvalidValue, match="rho"):
        DiscreteGaussian.of_rho(scale)


@pytest.mark.parametrize("rho", [1e4, 1e308, 1.7e308, 5e-324])
def test_a_rho_out_of_reach_is_refused_at_once(rho: float) -> None:
    with pytest.raises(InvalidValue, match="noise_multiplier"):
        DiscreteGaussian.of_rho(rho)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (DiscreteLaplace, {"l1_sensitivity": 0}),
        (DiscreteLaplace, {"l1_sensitivity": 1.5}),
        (DiscreteLaplace, {"l1_sensitivity": math.nan}),
        (DiscreteLaplace, {"l1_sensitivity": -1}),
        (DiscreteLaplace, {"l1_sensitivity": 2**54}),
        (DiscreteLaplace, {"grid": 0.3}),
        (DiscreteLaplace, {"l1_sensitivity": 1.0, "grid": 2.0**-60}),
        (DiscreteLaplace, {"cells": 0}),
        (DiscreteLaplace, {"cells": 1.5}),
        (DiscreteLaplace, {"cells": 2**41}),
        (DiscreteGaussian, {"l2_sensitivity": 0.5}),
        (DiscreteGaussian, {"l2_sensitivity": math.inf}),
        (DiscreteGaussian, {"grid": -1.0}),
    ],
)
def test_other_parameters_out_of_range_are_refused(make: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        make(1.0, **arguments)


def test_errors_and_variances_are_in_the_units_of_the_value() -> None:
    whole, real = DiscreteLaplace(0.5), DiscreteLaplace(0.5, 1.0, grid=0.125)
    assert real.scale == whole.scale == 2.0
    assert real.variance == pytest.approx(2 * 2.0**2, rel=0.01) and whole.variance == pytest.approx(7.835, rel=1e-3)
    assert real.error(0.95) == pytest.approx(whole.error(0.95), abs=0.5)
    assert real.error(0.95) - real.distribution.error(0.95) * 0.125 == 0.0625  # half a step of rounding
    assert DiscreteLaplace(0.5, cells=100).error(0.95, every_cell=True) > whole.error(0.95)


def test_the_sensitivity_of_a_grid_counts_its_rounding() -> None:
    assert DiscreteLaplace(1.0, 1.0, grid=1.0, cells=10).event == DiscreteLaplaceNoise(1.0, 10)
    assert DiscreteLaplace(1.0, 1.0, grid=2.0**-10).scale == 1.0
    assert DiscreteLaplace(1.0, 1.0, grid=2.0**-10, cells=10).scale == pytest.approx(1 + 9 / 1024)


def test_calibrated_gaussian_noise_meets_its_budget() -> None:
    found = calibrate(lambda m: [DiscreteGaussian(m).event], epsilon=1.0, delta=1e-6, tolerance=1e-4)
    mechanism = DiscreteGaussian(found.parameter)
    assert 0.99 < compose([mechanism.event]).epsilon_at(1e-6).upper <= 1.0


def test_rounding_goes_the_safe_way() -> None:
    third = Fraction(1, 3)
    assert Fraction(rounded_down(third)) <= third <= Fraction(rounded_up(third))
    assert rounded_down(Fraction(1, 2)) == rounded_up(Fraction(1, 2)) == 0.5


def test_a_sensitivity_that_a_double_would_round_down_is_refused_or_rounded_up() -> None:
    with pytest.raises(InvalidValue, match="2\\^53"):
        DiscreteLaplace(1.0, l1_sensitivity=2**53 + 1)
    third = Fraction(1, 3)
    assert DiscreteLaplace(1.0, l1_sensitivity=third, grid=2.0**-10).l1_sensitivity >= third  # type: ignore[arg-type]

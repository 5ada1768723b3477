"""OpenDP's sampler behind our signature: scales rounded up, refusals, and a plain word when it is missing."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.mechanisms.samplers import opendp_samplers


@pytest.mark.parametrize("size", [0, 1, 10])
@pytest.mark.draws(false_alarm=0, miss=0)  # not the numbers themselves
def test_as_many_numbers_as_asked_for(size: int) -> None:
    for noise in (
        opendp_samplers.discrete_laplace_noise(Fraction(5), size),
        opendp_samplers.discrete_gaussian_noise(Fraction(5), size),
    ):
        assert noise.shape == (size,)
        assert noise.dtype == np.int64


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(1, 10), Fraction(10**17 + 1, 7), Fraction(2), Fraction(1, 2)]
)
def test_the_scale_handed_over_is_never_too_small(value: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[float] = []
    monkeypatch.setattr(opendp_samplers, "_drawn", lambda make, metric, scale, size: handed.append(scale))
    opendp_samplers.discrete_laplace_noise(value, 1)
    opendp_samplers.discrete_gaussian_noise(value, 1)
    assert Fraction(handed[0]) >= value > Fraction(math.nextafter(handed[0], 0))
    assert Fraction(handed[1]) ** 2 >= value
    assert handed[1] == pytest.approx(math.sqrt(value), rel=1e-15)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_scales_outside_their_range_are_refused(bad: Fraction) -> None:
    with pytest.raises(InvalidValue, match=r"scale=.*must be > 0"):
        opendp_samplers.discrete_laplace_noise(bad, 1)
    with pytest.raises(InvalidValue, match=r"variance=.*must be > 0"):
        opendp_samplers.discrete_gaussian_noise(bad, 1)


@pytest.mark.draws(false_alarm=0, miss=0)  # not the numbers themselves
def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidValue, match="size=-1: must be >= 0"):
        opendp_samplers.discrete_laplace_noise(Fraction(1), -1)


@pytest.mark.draws(false_alarm=0, miss=0)  # not the numbers themselves
def test_without_opendp_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"pip install 'farthing\[opendp\]'"):
        opendp_samplers.discrete_laplace_noise(Fraction(1), 1)

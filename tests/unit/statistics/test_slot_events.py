"""Slots: what their noise is priced as."""

from __future__ import annotations

import pytest

from farthing.accounting import compose
from farthing.data import Count
from farthing.data.stability import Sensitivity
from farthing.privacy import Composed, DiscreteGaussianNoise, GaussianNoise
from farthing.statistics.measurements import Noise, Slot


def _slot(moved: int) -> Slot:
    return Slot("sum", Count(), Sensitivity(l0=1, l1=moved, l2_squared=moved**2, linf=moved), 1)


def test_narrow_gaussian_noise_on_one_number_is_priced_exactly() -> None:
    assert _slot(1).event(Noise("gaussian", 29.0)) == DiscreteGaussianNoise(29.0, 1)


@pytest.mark.parametrize(("moved", "multiplier"), [(1, 30.0), (3, 12.5), (1, 400.0)])
def test_wide_gaussian_noise_costs_a_hair_more_than_its_own_law(moved: int, multiplier: float) -> None:
    event = _slot(moved).event(Noise("gaussian", multiplier))
    assert isinstance(event, Composed) and isinstance(event.parts[0][0], GaussianNoise)
    exact = compose([DiscreteGaussianNoise(multiplier, moved)]).epsilon_at(1e-9)
    priced = compose([event]).epsilon_at(1e-9)
    assert exact.lower <= priced.upper <= 1.0025 * exact.upper


def test_a_histogram_that_a_unit_moves_by_one_is_priced_as_one_number() -> None:
    histogram = Slot("cells", Count(), Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), 40)
    assert histogram.event(Noise("gaussian", 50.0)) == _slot(1).event(Noise("gaussian", 50.0))
    assert histogram.event(Noise("gaussian", 20.0)) == DiscreteGaussianNoise(20.0, 1)


def test_many_wide_widths_are_priced_without_lattices() -> None:
    events = [_slot(1000 + k).event(Noise("gaussian", 20.0 + k)) for k in range(30)]
    assert compose(events).engine_at(1e-9).name != "grid"

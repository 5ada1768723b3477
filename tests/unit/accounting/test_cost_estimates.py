"""Estimates agree with what is proven, and decide what is worth proving."""

from __future__ import annotations

from typing import Any

import pytest

from farthing.accounting import compose
from farthing.accounting.algorithms.grid_algorithm import GridComposition
from farthing.accounting.charges import read_charges
from farthing.accounting.cost_estimates import composed_cost, losses_of
from farthing.privacy import (
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
)

NOISES: list[Event] = [
    GaussianNoise(9.0),
    DiscreteGaussianNoise(40.0, 1),
    LaplaceNoise(12.0),
    DiscreteLaplaceNoise(15.0, 2),
    DiscreteLaplaceNoise(15.0, 2),
]


def test_an_estimate_of_charges_is_what_is_proven_of_them() -> None:
    losses = losses_of(read_charges(NOISES, None, None))
    assert losses is not None
    proven = compose(NOISES).epsilon_at(1e-9)
    assert proven.proven
    assert composed_cost(losses, 1e-9).epsilon == pytest.approx(proven.upper, rel=1e-5)


@pytest.mark.parametrize("other", [RandomizedResponse(0.5), 0.25])
def test_charges_of_other_kinds_have_no_estimate(other: Event | float) -> None:
    assert losses_of(read_charges([*NOISES, other], None, None)) is None


def test_beside_choices_one_curve_is_composed_and_it_is_the_cheaper_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were composed for an estimate, and the cheaper one once more for the proof."""
    priced, epsilon_bounds = list[GridComposition](), GridComposition.epsilon_bounds

    def counted(grid: GridComposition, delta: float) -> Any:
        priced.append(grid)
        return epsilon_bounds(grid, delta)

    monkeypatch.setattr(GridComposition, "epsilon_bounds", counted)
    charges = [*NOISES, *[BoundedRange(0.02)] * 12]
    both = compose(charges)
    upper = both.epsilon_upper(1e-9)
    assert len(priced) <= 1
    as_noise, as_ranges = both._noise.epsilon_at(1e-9, True).upper, both._above.epsilon_at(1e-9, True).upper
    assert upper == min(as_noise, as_ranges) < max(as_noise, as_ranges)

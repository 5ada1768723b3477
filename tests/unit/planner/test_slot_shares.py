"""Every slot at its own minimum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farthing.accounting.cost_estimates import laplace_log_moment, range_log_moment
from farthing.planner.design_arrays import EXPONENTIAL, GAUSSIAN, LAPLACE, Divider, Model, Shares
from planner_designs import ChoiceOutput, HandDesign, choice, counts, mixed


def _divider(design: HandDesign, pure: bool = False) -> Divider:
    model = Model.of(design)
    n = len(model.names)
    return Divider(model, Shares(np.zeros(n, dtype=np.int64), np.ones(n)), np.ones(n, dtype=bool), pure)


@pytest.mark.parametrize("price", [1e-6, 1e-2, 30.0])
@pytest.mark.parametrize("saddle", [0.5, 20.0, 1e6, math.inf])
def test_no_other_noise_of_a_slot_is_better(saddle: float, price: float) -> None:
    design = counts([3.0, 50.0, 800.0, 9.0], [1, 2, 50, 10**6])
    divider = _divider(design)
    model = divider.model
    found = divider.shares(np.ones(4), saddle, price)
    epsilons = np.exp(np.linspace(math.log(1e-7), math.log(50.0), 40_001))
    for place in range(4):
        importance = float(model.driving[place, place])
        scale = float(model.l1[place]) / epsilons
        with np.errstate(over="ignore"):
            variance = 0.5 / np.sinh(np.minimum(0.5 / scale, 300.0)) ** 2
        divergence = (
            epsilons
            if math.isinf(saddle)
            else (laplace_log_moment(saddle, epsilons, float(model.steps[place])) / saddle)
        )
        best = float(np.min(importance * variance + price * divergence))
        if math.isfinite(saddle):
            tau = float(model.l2[place]) / np.exp(
                np.linspace(math.log(1e-6), math.log(model.most[place, GAUSSIAN]), 40_001)
            )
            wide = np.where(tau >= model.wide[place], model.narrowing[place], 0.0)
            gaussian = importance * (tau**2 + wide) + price * (saddle + 1) * (model.l2[place] / tau) ** 2 / 2
            best = min(best, float(np.min(gaussian)))
        strength, kind = float(found.strengths[place]), int(found.kinds[place])
        own = importance * float(model.variances(found.kinds, found.strengths)[place])
        if kind == GAUSSIAN:
            own += price * (saddle + 1) * strength**2 / 2
        elif math.isinf(saddle):
            own += price * strength
        else:
            own += price * float(laplace_log_moment(saddle, strength, float(model.steps[place]))) / saddle
        assert own <= best * (1 + 1e-6)


def test_choices_are_at_the_bottom_of_their_curve() -> None:
    slot = choice("median", 3)
    design = HandDesign((slot,), (ChoiceOutput("median", (slot,), np.ones(1), 2.0),))
    divider = _divider(design)
    found = divider.shares(np.ones(1), 30.0, 0.4)
    epsilons = np.exp(np.linspace(-4, 3, 20_001))
    objective = (2.0 / epsilons) ** 2 + 0.01 + 0.4 * 3 * range_log_moment(30.0, epsilons / 3) / 30.0
    assert found.kinds[0] == EXPONENTIAL
    assert math.isclose(float(found.strengths[0]), float(epsilons[np.argmin(objective)]), rel_tol=0.01)


def test_pure_epsilons_follow_the_cube_root() -> None:
    references = np.array([10.0, 100.0, 1000.0])
    found = _divider(counts(list(references), [1000] * 3), pure=True).shares(np.ones(3), math.inf, 1e4)
    assert (found.kinds == LAPLACE).all()
    shares = found.strengths / found.strengths[0]
    assert np.allclose(shares, (references[0] / references) ** (2 / 3), rtol=1e-4)


def test_gaussian_noise_follows_the_fourth_root() -> None:
    references = np.array([10.0, 100.0, 1000.0])
    found = _divider(counts(list(references), [1000] * 3, kinds=("gaussian",))).shares(np.ones(3), 30.0, 1e4)
    assert (found.kinds == GAUSSIAN).all()
    assert np.allclose(found.strengths / found.strengths[0], (references[0] / references) ** 0.5)


def test_what_is_fixed_stays() -> None:
    divider = _divider(mixed())
    fixed = divider.without_gaussian
    assert fixed is not None and fixed.all_gaussian is not None
    assert not (fixed.shares(np.ones(6), 30.0, 1.0).kinds == GAUSSIAN).any()
    gaussian = fixed.all_gaussian.shares(np.ones(6), 30.0, 1.0).kinds
    assert (gaussian == [GAUSSIAN] * 4 + [EXPONENTIAL] * 2).all()


def test_a_table_of_a_curve_is_close_between_its_points() -> None:
    from farthing.planner.design_arrays import curve_at

    model = Model.of(mixed())
    slot, table = model.curves[4]
    assert model.names[slot] == "median"
    for epsilon in (0.0123, 0.5, 7.0):
        assert math.isclose(curve_at(table, epsilon), ((0.5 / epsilon) ** 2 + 0.01) / 2500, rel_tol=2e-3)

"""The same plan under the theorems, in numbers and honest words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from farthing.accounting import compose
from farthing.accounting.filters import ClockFilter
from farthing.planner import Allocation, Problem, TheoremPrices, adaptivity_sentence, allocate, own_epsilon
from farthing.statistics.measurements import Noise
from planner_designs import counts, mixed


def test_few_statistics_gain_nothing_from_composition_and_it_says_so() -> None:
    price = allocate(Problem(counts([100.0, 200.0, 50.0]), 1.0, 1e-9)).price
    assert price.basic == pytest.approx(1.0, rel=1e-5)
    assert price.optimal == pytest.approx(1.0, rel=1e-5) and price.kov <= price.basic < price.advanced
    assert "gains nothing yet" in price.sentence and "exact curves" not in price.sentence


def test_a_gain_of_own_curves_alone_does_not_contradict_itself() -> None:
    price = TheoremPrices(basic=1.53, advanced=6.0, kov=1.53, optimal=1.53, own=1.0, delta=1e-9, count=4)
    assert price.sentence == (
        "Composing black boxes optimally would gain nothing here (epsilon = 1.53, the plain sum of 4 measurements); "
        "because the noise is known, its exact curves bring it to 1: 1.53 times less."
    )


def test_sixty_statistics_gain_and_own_curves_gain_more() -> None:
    price = allocate(Problem(counts([100.0] * 60), 1.0, 1e-9)).price
    assert price.own <= 1.0 < 1.5 * price.own < price.optimal <= price.kov <= price.basic
    assert "the mechanisms' exact curves bring it to 1," in price.sentence
    assert set(price.to_dict()) == {"basic", "advanced", "kov", "optimal", "own"}


def test_gaussian_noise_is_a_black_box_with_its_share_of_half_the_delta() -> None:
    found = allocate(Problem(counts([100.0] * 2, [1000] * 2, kinds=("gaussian",)), 1.0, 1e-6))
    each = compose([found.measured.parts[0][0]]).epsilon_at(0.25e-6).upper  # type: ignore[attr-defined]
    assert found.price.basic == pytest.approx(2 * each, rel=1e-9)
    assert found.price.advanced < math.inf


def test_without_delta_every_theorem_says_the_sum() -> None:
    price = allocate(Problem(mixed(), 1.0)).price
    for value in (price.basic, price.advanced, price.kov, price.optimal, price.own):
        assert value == pytest.approx(1.0, rel=1e-6)
    assert "at delta = 0" in price.sentence


def test_one_measurement_is_nothing_to_compose() -> None:
    for kinds in (("laplace",), ("gaussian",)):
        price = allocate(Problem(counts([100.0], kinds=kinds), 1.0, 1e-9)).price
        assert price.sentence == "With 1 measurement there is nothing to compose."


@pytest.mark.slow
def test_deciding_as_you_go_costs_what_a_clock_that_admits_it_costs() -> None:
    """The slow twin charges a clock with one measurement after the other."""
    for design in (counts([100.0] * 40), mixed()):
        found = allocate(Problem(design, 1.0, 1e-9))

        def admitted(epsilon: float, found: Allocation = found) -> bool:
            # Discrete noise of Gaussian type leaks 1e-33 or so.
            clock = ClockFilter(epsilon, 1e-9, leak=1e-20, equal_charges=False)
            for slot in found.problem.design.slots:
                event = slot.event(found.noises[slot.name])
                if not clock.admits(event):
                    return False
                clock = clock.charge(event)
            return True

        assert found.cost.lower <= found.adaptive_cost < 1.1 * found.cost.upper
        assert admitted(found.adaptive_cost * (1 + 1e-9)) and not admitted(found.adaptive_cost * 0.999)


@pytest.mark.slow
def test_deciding_as_you_go_costs_nothing_at_delta_0_and_goes_with_sampling() -> None:
    pure = allocate(Problem(counts([100.0] * 5), 1.0))
    assert pure.adaptive_cost == pytest.approx(pure.cost.upper, rel=1e-9)
    sampled = allocate(Problem(counts([100.0] * 40), 1.0, 1e-9, sampling_rate=0.1))
    assert sampled.cost.lower <= sampled.adaptive_cost < 1.1 * sampled.cost.upper
    assert adaptivity_sentence(1.0, math.inf, 5) == "" == adaptivity_sentence(1.0, 1.0, 1)


def test_sampling_is_in_every_number() -> None:
    problem = Problem(counts([100.0] * 5), 1.0, 1e-9)
    price = allocate(replace(problem, sampling_rate=0.1)).price
    inner = math.log1p(math.expm1(1.0) / 0.1)
    assert price.basic == pytest.approx(math.log1p(0.1 * math.expm1(inner)), rel=1e-3)
    assert price.own <= 1.0


def test_own_epsilon_of_one_noise_is_its_own() -> None:
    assert own_epsilon([Noise("laplace", 0.5)], 0.0) == 0.5
    assert own_epsilon([Noise("exponential", 0.5)], 0.0) == pytest.approx(0.5)
    assert own_epsilon([Noise("gaussian", 4.0)], 1e-6) == pytest.approx(1.0607, rel=1e-4)

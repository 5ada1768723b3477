"""allocate: within the budget, close to all of it, and close to the best that a slow search finds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.accounting import compose, sampled_approx_dp
from farthing.accounting.cost_estimates import composed_cost
from farthing.errors import Infeasible
from farthing.planner import Allocation, Problem, Requirement, allocate, fit
from farthing.planner.allocation_search import search_of
from farthing.privacy import ApproxDP, Event, Sampled
from farthing.statistics.measurements import Noise
from planner_designs import HandDesign, HandOutput, counts, mixed, slot

SPREAD = [float(10 * 1.7**k) for k in range(9)]
DESIGNS: dict[str, tuple[HandDesign, float, float]] = {
    "one count, no delta": (counts([100.0]), 1.0, 0.0),
    "one count": (counts([100.0]), 1.0, 1e-9),
    "three counts": (counts([30.0, 100.0, 900.0]), 1.0, 1e-9),
    "nine of several sensitivities": (counts(SPREAD, [1, 2, 3, 5, 60, 1000, 1, 1, 10**6]), 2.0, 1e-6),
    "forty counts": (counts(SPREAD * 4 + SPREAD[:4]), 1.0, 1e-9),
    "forty counts, no delta": (counts(SPREAD * 4 + SPREAD[:4]), 1.0, 0.0),
    "all kinds": (mixed(), 1.0, 1e-9),
    "all kinds, no delta": (mixed(), 1.0, 0.0),
    "a large epsilon": (counts(SPREAD), 30.0, 1e-6),
    "a small epsilon": (counts(SPREAD), 0.001, 1e-12),
    "Laplace noise only": (counts(SPREAD * 3, kinds=("laplace",)), 1.0, 1e-6),
    "Gaussian noise only": (counts([100.0, 5.0], kinds=("gaussian",)), 1.0, 1e-6),
    "a delta that is too large": (counts(SPREAD), 0.5, 0.01),
}


@pytest.mark.parametrize(("design", "epsilon", "delta"), DESIGNS.values(), ids=DESIGNS.keys())
def test_the_proven_cost_is_within_the_budget_and_close_to_it(design: HandDesign, epsilon: float, delta: float) -> None:
    found = allocate(Problem(design, epsilon, delta))
    assert set(found.noises) == {each.name for each in design.slots}
    assert found.cost.proven and (1 - 2e-4) * epsilon <= found.cost.upper <= epsilon
    assert math.isclose(found.estimate, found.cost.upper, rel_tol=5e-4)  # narrow noise: the search takes it for smooth
    assert found.fits


def _slowly_best(found: Allocation) -> float:
    """The least objective over all kinds, by a general optimiser: the slow twin."""
    from scipy.optimize import minimize

    model, epsilon, delta = found.model, found.problem.epsilon, found.problem.delta
    floors = search_of(found.problem, model).floors
    n, best = len(model.names), math.inf
    for kinds in itertools.product((0, 1), repeat=n):
        chosen = np.array(kinds)

        def objective(u: Any, chosen: Any = chosen) -> float:
            return float(np.log(model.errors(chosen, np.exp(u)) + floors).mean())

        def room(u: Any, chosen: Any = chosen) -> float:
            return math.log(epsilon / composed_cost(model.losses(chosen, np.exp(u)), delta).epsilon)

        u = np.full(n, math.log(epsilon / n))
        for _ in range(20):
            u = u + room(u)
        u = minimize(
            objective,
            u,
            constraints=[{"type": "ineq", "fun": room}],
            method="SLSQP",
            options={"maxiter": 60, "ftol": 1e-7},
        ).x
        best = min(best, math.exp(objective(u + min(room(u), 0.0))))
    return best


SMALL = [
    ([30.0, 60.0], [1, 1], 1.0, 1e-3),
]
MORE = [
    ([20.0, 50.0, 400.0], [1, 1, 1], 1.0, 1e-3),
    ([20.0, 50.0, 400.0], [1, 5, 1000], 3.0, 1e-6),
    ([8.0, 300.0, 90.0, 20.0], [1, 1, 1, 5], 1.0, 1e-2),
    ([8.0, 300.0, 90.0, 20.0], [1, 1, 1, 1], 0.3, 1e-3),
]


@pytest.mark.slow
@pytest.mark.parametrize(("references", "moved", "epsilon", "delta"), SMALL)
def test_no_slow_search_finds_much_better(
    references: list[float], moved: list[int], epsilon: float, delta: float
) -> None:
    found = allocate(Problem(counts(references, moved), epsilon, delta))
    assert found.objective <= 1.001 * _slowly_best(found)


@pytest.mark.slow
@pytest.mark.parametrize(("references", "moved", "epsilon", "delta"), MORE)
def test_no_slow_search_finds_much_better_among_more_kinds(
    references: list[float], moved: list[int], epsilon: float, delta: float
) -> None:
    found = allocate(Problem(counts(references, moved), epsilon, delta))
    # The slow search knows no even shares: where they bind, they cost a little.
    assert found.objective <= 1.003 * _slowly_best(found)


def _one_output(importance: np.ndarray[Any, Any], moved: int, kinds: Any = ("laplace", "gaussian")) -> HandDesign:
    """One output that reads several slots, each of which matters by so much."""
    slots = tuple(slot(f"s{place}", moved, kinds=kinds) for place in range(len(importance)))
    own = {one.name: np.array([matters]) for one, matters in zip(slots, importance.tolist(), strict=True)}
    return HandDesign(slots, (HandOutput("whole", slots, np.ones(1), own),))


def test_without_delta_statistics_share_evenly_and_measurements_of_one_by_the_cube_root_law() -> None:
    apart = allocate(Problem(counts([10.0, 100.0, 1000.0, 1000.0], [1000] * 4), 1.0))
    assert np.allclose([noise.parameter for noise in apart.noises.values()], 0.25, rtol=1e-5)
    assert apart.order == math.inf
    importance = np.array([100.0, 1.0, 0.2, 0.2])
    together = allocate(Problem(_one_output(importance, 1000), 1.0))
    expected = np.cbrt(importance) / np.cbrt(importance).sum()
    assert np.allclose([noise.parameter for noise in together.noises.values()], expected, rtol=1e-4)


def test_gaussian_noise_alone_has_its_closed_form() -> None:
    from farthing.accounting import calibrate
    from farthing.privacy import GaussianNoise

    alone = calibrate(lambda m: [GaussianNoise(m)], 1.0, 1e-6).parameter
    apart = allocate(Problem(counts([10.0, 100.0, 1000.0], [10**5] * 3, kinds=("gaussian",)), 1.0, 1e-6))
    assert np.allclose([noise.parameter for noise in apart.noises.values()], alone * math.sqrt(3), rtol=1e-4)
    importance = np.array([100.0, 1.0, 0.2])
    together = allocate(Problem(_one_output(importance, 10**5, ("gaussian",)), 1.0, 1e-6))
    shares = np.sqrt(importance) / np.sqrt(importance).sum()  # of mu squared
    multipliers = [noise.parameter for noise in together.noises.values()]
    assert np.allclose(multipliers, alone / np.sqrt(shares), rtol=1e-3)


EVEN = {
    "counts of very unlike sizes": (counts([1.0, 10.0, 1e6]), 1.0, 1e-9),
    "all kinds": (mixed(), 1.0, 1e-9),
    "all kinds, no delta": (mixed(), 1.0, 0.0),
    "forty counts": (counts(SPREAD * 4 + SPREAD[:4]), 1.0, 1e-9),
    "a small epsilon": (counts(SPREAD), 0.001, 1e-12),
    "a large epsilon": (mixed(), 20.0, 1e-6),
}


@pytest.mark.slow
@pytest.mark.parametrize(("design", "epsilon", "delta"), EVEN.values(), ids=EVEN.keys())
def test_no_statistic_is_worse_off_than_with_an_even_share(design: HandDesign, epsilon: float, delta: float) -> None:
    found = allocate(Problem(design, epsilon, delta))
    assert min(found.even_share.values()) > 0.99
    # The even share is what `allocate` gives a statistic that has its part of the budget to itself.
    for output in design.outputs:
        own = HandDesign(output.slots, (output,))
        count = len(design.outputs)
        alone = allocate(Problem(own, epsilon / count, delta / count))
        even = found.even_share[output.name] * found.distributions[output.name].standard_error
        assert even == pytest.approx(alone.distributions[output.name].standard_error, rel=0.02)


def test_a_hopeless_statistic_takes_nothing_from_the_others() -> None:
    sound, hopeless = counts([1000.0, 1000.0]), counts([1000.0, 1e-6])
    errors = [_errors(allocate(Problem(design, 1.0, 1e-9)))["o0"] for design in (sound, hopeless)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)


def test_shared_measurements_leave_more_for_everybody() -> None:
    total = slot("total")
    both = tuple(HandOutput(name, (total,), np.ones(1), {"total": np.ones(1)}) for name in ("one", "other"))
    found = allocate(Problem(HandDesign((total,), both), 1.0))
    assert all(ratio == pytest.approx(2.0, rel=0.05) for ratio in found.even_share.values())


def _errors(found: Allocation) -> dict[str, float]:
    return {name: distribution.standard_error for name, distribution in found.distributions.items()}


def test_sixty_statistics_gain_half_over_an_even_division() -> None:
    found = allocate(Problem(counts([1000.0] * 60), 1.0, 1e-9))
    even = math.sqrt(2) * 60
    assert all(error <= even / 1.5 for error in _errors(found).values())


@pytest.mark.slow
def test_weight_buys_exactness_from_the_others() -> None:
    problem = Problem(mixed(), 1.0, 1e-9)
    before = _errors(allocate(problem))
    after = _errors(allocate(replace(problem, weights={"total": 50.0})))
    assert after["total"] < 0.7 * before["total"]
    assert all(after[name] > before[name] for name in ("histogram", "median", "quartiles"))


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_start() -> None:
    problem = Problem(mixed(), 1.0, 1e-9)
    first = allocate(problem)
    far = allocate(replace(problem, weights={"total": 1e6}), first)
    assert far.model is first.model
    assert allocate(problem, far).noises == first.noises
    assert allocate(replace(problem, design=mixed()), far).noises == first.noises


@pytest.mark.slow
def test_held_noise_stays_and_the_rest_shares_what_is_left() -> None:
    problem = Problem(counts(SPREAD), 1.0, 1e-6)
    held = {"s0": Noise("laplace", 0.4), "s5": Noise("gaussian", 70.0)}
    found = allocate(replace(problem, held=held))
    assert {name: found.noises[name] for name in held} == held
    assert 1 - 1e-5 <= found.cost.upper <= 1.0
    again = allocate(replace(problem, held={"s3": allocate(problem).noises["s3"]}))
    assert again.objective == pytest.approx(allocate(problem).objective, rel=1e-3)


@pytest.mark.slow
def test_what_is_reserved_is_left_unspent() -> None:
    found = allocate(Problem(counts(SPREAD), 1.0, 1e-6, reserved=0.4))
    assert 0.6 * (1 - 3e-5) <= found.cost.upper <= 0.6


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_secret_sample_allows_less_noise_at_the_same_cost(delta: float) -> None:
    problem = Problem(counts(SPREAD), 1.0, delta)
    sampled = allocate(replace(problem, sampling_rate=0.1))
    assert 1 - 1e-5 <= sampled.cost.upper <= 1.0 and sampled.cost.lower <= sampled.cost.upper
    whole = ApproxDP(sampled.inner_cost.upper, sampled.problem.inner_delta)
    assert sampled.event == Sampled(whole, 0.1) and 0.1 * whole.delta <= delta
    assert sampled.cost.upper == sampled_approx_dp(whole.epsilon, whole.delta, 0.1).epsilon
    assert sampled.inner_cost.upper == pytest.approx(math.log1p(math.expm1(1.0) / 0.1), rel=1e-5)
    assert sampled.objective < 0.2 * allocate(problem).objective


def test_a_slot_that_an_output_reads_is_measured_even_where_the_first_order_is_zero() -> None:
    total, number = slot("sum", 1000), slot("number")
    mean = HandOutput("mean", (total, number), np.ones(1), {"sum": np.array([1e-8]), "number": np.zeros(1)})
    found = allocate(Problem(HandDesign((total, number), (mean,)), 1.0))
    assert found.noises["number"].parameter > 0.05 * found.noises["sum"].parameter


def test_held_noise_beyond_the_budget_is_named() -> None:
    with pytest.raises(Infeasible, match=r"held for 'o1' alone costs epsilon=1.5, .* hold less") as refused:
        allocate(Problem(counts([9.0, 90.0]), 1.0, 1e-6, held={"s1": Noise("laplace", 1.5)}))
    assert refused.value.blocking == ("o1",) and refused.value.epsilon == pytest.approx(1.5)


def test_coarse_gaussian_noise_is_proven_at_once() -> None:
    found = allocate(Problem(counts([1.0, 2.0], kinds=("gaussian",)), 12.0, 1e-6))
    assert found.fits and found.cost.upper <= 12.0


@pytest.mark.slow
def test_what_the_search_believes_is_proven_before_it_is_shown() -> None:
    """Ten counts with discrete Gaussian noise are believed to cost 1 - 1e-6, and were proven to cost 1.0000238."""
    for number in (10, 16, 21):
        found = allocate(Problem(counts([100.0] * number, kinds=("gaussian",)), 1.0, 1e-6))
        assert found.fits and 1 - 2e-4 <= found.cost.upper <= 1.0


@pytest.mark.parametrize("epsilon", [1.0005e-6, 1 / 3, 2 / 3 + 1e-10])
def test_a_cost_fits_in_whole_billionths_as_a_ledger_counts_them(epsilon: float) -> None:
    problem = Problem(counts([100.0, 20.0]), epsilon)
    found = allocate(problem)
    assert math.ceil(Fraction(found.cost.upper) * 10**9) <= math.floor(Fraction(epsilon) * 10**9)
    fitted = fit(replace(problem, requirements={name: Requirement(1e9 * epsilon**-1) for name in ("o0", "o1")}))
    assert fitted.fits


@pytest.mark.slow
def test_what_a_ledger_would_refuse_is_made_cheaper() -> None:
    problem = Problem(counts([100.0, 20.0]), 1.0, 1e-6)
    asked: list[float] = []

    def usage(event: Event, delta: float) -> float:
        asked.append(compose([event]).epsilon_at(delta).upper)
        return asked[-1] / 0.9

    found = allocate(problem, usage=usage)
    assert 0.7 <= found.cost.upper <= 0.9 and len(asked) < 12
    free = replace(problem, requirements={"o0": Requirement(allocate(problem).distributions["o0"].error(0.95))})
    kept = allocate(free, usage=usage)
    assert kept.cost.upper <= 0.9 and kept.distributions["o0"].error(0.95) <= free.requirements["o0"].within


TINY = list(itertools.product((1e-9, 1e-6, 1e-3), (1e-40, 1e-9, 1e-3, 0.1), (1, 3, 14)))


@pytest.mark.parametrize(("epsilon", "delta", "number"), TINY)
def test_a_delta_that_dwarfs_epsilon_is_planned_all_the_same(epsilon: float, delta: float, number: int) -> None:
    """At (1e-6, 1e-3) the polish divided by a cost of 0, and other corners were refused at no cost at all."""
    found = allocate(Problem(counts([100.0] * number), epsilon, delta))
    assert found.fits
    assert all(
        math.isfinite(distribution.standard_error) and distribution.standard_error > 0
        for distribution in found.distributions.values()
    )
    assert found.objective <= 1.01 * allocate(Problem(counts([100.0] * number), epsilon)).objective


def test_a_budget_beyond_what_mechanisms_can_spend_is_left_unspent() -> None:
    found = allocate(Problem(counts([1.0, 2.0]), 200.0))
    assert found.cost.upper <= 100.0 + 1e-6


@pytest.mark.slow
def test_a_sliver_beside_what_is_held_is_found() -> None:
    held = {"s0": Noise("laplace", 0.9999)}
    found = allocate(Problem(counts([9.0, 90.0, 30.0]), 1.0, 1e-4, held=held))
    assert 1 - 2e-4 <= found.cost.upper <= 1.0


def test_too_little_epsilon_for_the_weakest_noise_blames_nobody() -> None:
    with pytest.raises(Infeasible, match=r"as much noise as there is, cost epsilon=2.001e-06") as refused:
        allocate(Problem(mixed(), 1e-9))
    assert refused.value.blocking == ()


@pytest.mark.slow
def test_a_plan_that_the_ledger_refuses_is_not_tried_over_and_over() -> None:
    """Each offer of more epsilon led to the same cheapest plan, at ever smaller targets: it took half a minute."""
    asked = []

    def usage(event: object, delta: float) -> float:
        asked.append(event)
        return math.inf

    wanted = {"o0": Requirement(20.0), "o1": Requirement(30.0)}
    with pytest.raises(Infeasible) as refused:
        allocate(Problem(counts([30.0] * 2), 1.0, 1e-9, requirements=wanted), usage=usage)
    assert refused.value.epsilon == math.inf and len(asked) <= 18  # it was 279

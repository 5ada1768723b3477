"""BasicFilter, FullyAdaptiveFilter and RenyiFilter against every adaptive strategy over a menu of questions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from adaptive_adversary import Adversary, NaturalFilter, hockey_stick, optimal_delta
from farthing.accounting.filters import BasicFilter, Filter, FullyAdaptiveFilter, RenyiFilter
from farthing.privacy import GaussianNoise, LaplaceNoise, RandomizedResponse

PURE = ((1, 0.0), (5, 0.0), (10, 0.0))
COARSE = ((3, 0.0), (7, 0.0), (10, 0.0), (20, 0.0))
LEAKY = ((3, 0.02), (7, 0.0), (10, 0.05))
FILTERS = (BasicFilter, FullyAdaptiveFilter, RenyiFilter)


@pytest.mark.parametrize("make", FILTERS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "menu"),
    [
        (1.0, 0.1, PURE),
        (1.5, 0.3, COARSE),
        (2.5, 0.05, COARSE),
        (0.3, 0.5, PURE),
        (2.0, 0.2, LEAKY),
        (1.0, 0.5, LEAKY),
    ],
)
def test_no_adaptive_strategy_exceeds_delta(
    make: type[Filter], epsilon: float, delta: float, menu: tuple[tuple[int, float], ...]
) -> None:
    assert Adversary(menu, epsilon).delta(make(epsilon, delta)) <= delta * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("make", [FullyAdaptiveFilter, RenyiFilter])
@pytest.mark.parametrize("leak", [0.0, 0.1, 0.29])
@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.3), (3.0, 0.3)])
def test_no_deep_adaptive_strategy_exceeds_delta(make: type, leak: float, epsilon: float, delta: float) -> None:
    menu = ((2, 0.0), (3, 0.03), (8, 0.0), (15, 0.02))
    assert Adversary(menu, epsilon).delta(make(epsilon, delta, leak=leak)) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 5.5, 60.0])
def test_renyi_filter_is_sound_at_any_order(alpha: float) -> None:
    budget = RenyiFilter(1.5, 0.3, leak=0.05, alpha=alpha)
    assert Adversary((*COARSE, (2, 0.02)), 1.5).delta(budget) <= 0.3


def test_basic_filter_is_tight() -> None:
    """With plain sums the worst strategy uses up the whole delta by leaks and nothing by luck."""
    worst = Adversary(((5, 0.1),), 1.0).delta(BasicFilter(1.0, 0.2))
    assert worst == pytest.approx(1 - 0.9**2, rel=1e-12)  # two leaks, the only slack is sum against product
    assert Adversary(PURE, 1.0).delta(BasicFilter(1.0)) == 0.0


@pytest.mark.slow
def test_looseness_of_the_other_filters_is_what_the_docs_say() -> None:
    """Against small questions the worst strategy reaches a tenth of slack or more: loose, not absurdly so."""
    adversary = Adversary(((2, 0.0), (3, 0.0)), 2.0)
    reached = {make: adversary.delta(make(2.0, 0.1, leak=0)) / 0.1 for make in (FullyAdaptiveFilter, RenyiFilter)}
    assert 0.01 < reached[FullyAdaptiveFilter] < reached[RenyiFilter] < 1
    assert reached[RenyiFilter] > 0.1


def test_recursion_finds_what_enumerating_transcripts_gives() -> None:
    adversary = Adversary(LEAKY, 0.7)
    budget = RenyiFilter(0.7, 0.5)
    strategy = adversary.strategy(budget)
    assert strategy is not None
    transcripts = list(strategy.transcripts())
    assert math.fsum(p for _, p, _ in transcripts) == pytest.approx(1)
    assert math.fsum(q for _, _, q in transcripts) == pytest.approx(1)
    assert hockey_stick(transcripts, 0.7) == pytest.approx(adversary.delta(budget), rel=1e-12)


@dataclass(frozen=True, repr=False)
class GenerousFilter(RenyiFilter):
    """A planted fault: forgets what the conversion from Renyi costs."""

    def _fits(self) -> bool:
        return self._divergence <= 1.0 and self._leak_sum <= self._leak_budget()


def test_a_filter_that_forgets_the_conversion_is_caught() -> None:
    assert Adversary(COARSE, 1.0).delta(GenerousFilter(1.0, 0.05)) > 0.05


def test_the_natural_filter_is_not_a_filter() -> None:
    """Three questions at most: after 0.7, either one of 1.0 or two of 0.7, depending on the first answer."""
    limit = 0.3414
    assert optimal_delta((0.7, 1.0), 0.5) <= limit
    assert optimal_delta((0.7, 0.7, 0.7), 0.5) <= limit
    natural = NaturalFilter(0.5, limit)
    adversary = Adversary(((7, 0.0), (10, 0.0)), 0.5)
    assert adversary.delta(natural) == pytest.approx(0.36821, abs=1e-5)
    strategy = adversary.strategy(natural)
    assert strategy is not None and strategy.question == (7, 0.0)
    assert strategy.after_truth is not None and strategy.after_truth.question == (10, 0.0)
    assert strategy.after_lie is not None and strategy.after_lie.question == (7, 0.0)
    assert hockey_stick(list(strategy.transcripts()), 0.5) > 1.07 * limit


@pytest.mark.parametrize("make", FILTERS)
def test_the_real_filters_hold_where_the_natural_one_fails(make: type[Filter]) -> None:
    assert Adversary(((7, 0.0), (10, 0.0)), 0.5).delta(make(0.5, 0.3414)) <= 0.3414


@pytest.mark.parametrize("make", FILTERS)
def test_a_larger_budget_admits_at_least_as_much(make: type[Filter]) -> None:
    small, wide, deep = make(1.0, 1e-6), make(1.1, 1e-6), make(1.0, 1e-5)
    for charge in (0.01, 0.05, 0.3, (0.01, 1e-8)):
        most = _most(small, charge)
        assert wide.admits(charge, most)
        assert deep.admits(charge, most)


@pytest.mark.parametrize("make", FILTERS)
def test_degenerate_budgets_and_charges(make: type[Filter]) -> None:
    nothing = make(0.0, 1e-6)
    assert nothing.admits(0.0) and nothing.admits(0.0, count=10**9) and nothing.admits(5.0, count=0)
    assert not nothing.admits(0.001)
    tiny = make(1.0, 1e-300)
    assert tiny.admits(0.5) and not tiny.admits((0.5, 1e-299))


def test_fully_adaptive_filter_admits_exactly_what_the_formula_says() -> None:
    for epsilon, delta, charge in [(1.0, 1e-6, 0.01), (3.0, 1e-9, 0.02), (0.5, 1e-3, 0.004)]:
        budget = FullyAdaptiveFilter(epsilon, delta, leak=0)
        most = _most(budget, charge)

        def formula(k: int, charge: float = charge, delta: float = delta) -> float:
            variance = k * charge**2
            return math.sqrt(2 * math.log(1 / delta) * variance) + variance / 2

        assert most > epsilon / charge  # a regime where it beats plain sums
        assert formula(most) <= epsilon < formula(most + 1)


def test_renyi_filter_is_the_tightest_for_many_small_charges() -> None:
    for charge in (0.01, LaplaceNoise(100.0), RandomizedResponse(0.01), GaussianNoise(100.0)):
        fully, renyi = FullyAdaptiveFilter(1.0, 1e-6, leak=0), RenyiFilter(1.0, 1e-6, leak=0)
        assert _most(renyi, charge) > 1.3 * _most(fully, charge)


def _most(budget: Filter, charge: object) -> int:
    """The largest count that is admitted."""
    high = 1
    while budget.admits(charge, high):  # type: ignore[arg-type]
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if budget.admits(charge, middle) else (low, middle)  # type: ignore[arg-type]
    return low

"""What somebody in every period is protected by: the accountant's composition of the periods' budgets, and no less."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from farthing.accounting import compose
from farthing.accounting.theorems import kov_homogeneous_bound
from farthing.errors import InvalidValue
from farthing.ledger.lifetime import IN_A_YEAR, lifetime, lifetime_words
from farthing.privacy import ApproxDP
from farthing.privacy.periods import EVERY
from farthing.privacy.units import Renewal, Unit


def delta_twin(epsilon: float, delta: float, periods: int, whole: float) -> float:
    """The exact region by its sum over all outcomes of so many randomised responses that may also tell all."""
    ratio = Fraction(math.exp(epsilon))
    low = 1 / (1 + ratio)
    excess = Fraction(0)
    for wrong in range(periods + 1):
        one = (1 - low) ** (periods - wrong) * low**wrong
        other = (1 - low) ** wrong * low ** (periods - wrong)
        excess += math.comb(periods, wrong) * max(Fraction(0), one - Fraction(math.exp(whole)) * other)
    kept = (1 - Fraction(delta)) ** periods
    return float(1 - kept + kept * excess)


@pytest.mark.parametrize(("epsilon", "delta", "periods"), [(0.1, 1e-9, 60), (1.0, 1e-6, 12), (0.5, 1e-3, 3)])
def test_lifetime_is_what_the_accountant_says_of_all_budgets(epsilon: float, delta: float, periods: int) -> None:
    """Sound and tight: equal to `compose`, within the twin's region, at most the sum and the closed form."""
    whole = lifetime(epsilon, delta, periods)
    assert whole.delta == 2 * periods * delta
    assert whole.epsilon == compose([ApproxDP(epsilon, delta)] * periods).epsilon_at(whole.delta).upper
    assert delta_twin(epsilon, delta, periods, whole.epsilon) <= whole.delta * (1 + 1e-9)
    assert delta_twin(epsilon, delta, periods, whole.epsilon * (1 - 1e-4)) > whole.delta
    assert whole.epsilon <= kov_homogeneous_bound(epsilon, periods, whole.delta, delta)
    assert whole.epsilon <= periods * epsilon * (1 + 1e-12)


def test_lifetime_grows_with_every_period_and_budget_and_falls_with_delta() -> None:
    found = [lifetime(0.1, 1e-9, periods, 1e-6).epsilon for periods in (1, 12, 60, 120)]
    assert found == sorted(found) and found[0] == pytest.approx(0.1, rel=1e-4)
    assert found[-1] < 0.55 * 120 * 0.1  # not multiplied
    assert lifetime(0.2, 1e-9, 12).epsilon > lifetime(0.1, 1e-9, 12).epsilon
    assert lifetime(0.1, 1e-9, 60, 1e-5).epsilon < lifetime(0.1, 1e-9, 60, 1e-7).epsilon


def test_lifetime_at_the_ends() -> None:
    assert lifetime(0.5, 1e-9, 0) == ApproxDP(0.0)
    assert lifetime(0.5, 0.0, 3).epsilon == pytest.approx(1.5) and lifetime(0.5, 0.0, 3).delta == 0.0
    assert 1 > lifetime(1.0, 0.2, 12).delta > 1 - 1e-9  # which says nothing
    with pytest.raises(InvalidValue, match="must be above the deltas of 12 periods"):
        lifetime(0.1, 1e-3, 12, at=1e-3)
    with pytest.raises(InvalidValue):
        lifetime(0.5, 0.0, -1)


def test_every_account_that_renews_says_so_in_words() -> None:
    for every in EVERY:
        words = lifetime_words(Unit(("person",), renewal=Renewal(every, "day")), ApproxDP(0.01, 1e-12))
        assert "is protected by epsilon" in words and "no bound holds for ever" in words and every in IN_A_YEAR
    assert lifetime_words(Unit(("person",)), ApproxDP(0.01)) == lifetime_words(None, ApproxDP(0.01)) == ""

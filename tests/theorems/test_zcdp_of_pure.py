"""Pure DP as concentrated DP, beside the divergence of the worst pure mechanism."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.accounting.theorems import renyi_of_pure_composition, zcdp_of_pure
from farthing.errors import InvalidValue
from strategies import epsilons


@pytest.mark.slow
@given(epsilons(), st.floats(1.01, 1e4))
def test_the_worst_pure_mechanism_is_concentrated_at_every_order(epsilon: float, alpha: float) -> None:
    assert renyi_of_pure_composition([epsilon], alpha) <= alpha * zcdp_of_pure(epsilon) * (1 + 1e-9)


def test_no_smaller_rho_would_do_for_small_epsilons() -> None:
    epsilon = 1e-3
    reached = max(renyi_of_pure_composition([epsilon], a) / a for a in (1.01, 1.1, 2.0, 5.0))
    assert reached == pytest.approx(zcdp_of_pure(epsilon), rel=1e-4)


@given(st.floats(0, 1e150))
def test_the_square_is_rounded_up_and_grows(epsilon: float) -> None:
    rho = zcdp_of_pure(epsilon)
    assert Fraction(rho) >= Fraction(epsilon) ** 2 / 2
    assert rho == 0 or Fraction(math.nextafter(rho, 0)) < Fraction(epsilon) ** 2 / 2
    assert zcdp_of_pure(math.nextafter(epsilon, math.inf)) >= rho


def test_rho_at_the_edges() -> None:
    assert zcdp_of_pure(0.0) == 0
    assert zcdp_of_pure(1e-200) > 0
    assert zcdp_of_pure(1e200) == math.inf
    with pytest.raises(InvalidValue, match="epsilon=nan"):
        zcdp_of_pure(math.nan)

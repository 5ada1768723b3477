"""Account: filters side by side against every adaptive strategy over a menu of leaky randomized responses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from adaptive_adversary import Adversary
from farthing.ledger.account import Account

PURE = ((1, 0.0), (5, 0.0), (10, 0.0))
COARSE = ((3, 0.0), (7, 0.0), (10, 0.0), (20, 0.0))
LEAKY = ((3, 0.02), (7, 0.0), (10, 0.05))


@dataclass(frozen=True)
class Spending:
    """An account as the adversary meets it: asked with (epsilon, delta) pairs, and charged with them."""

    account: Account

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Spending:
        return cls(Account.of(epsilon, delta))

    def admits(self, charge: tuple[float, float]) -> bool:
        return self.account.admits(self.account.priced(charge))

    def charge(self, charge: tuple[float, float]) -> Spending:
        return replace(self, account=self.account.after(self.account.priced(charge)))


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
    epsilon: float, delta: float, menu: tuple[tuple[int, float], ...]
) -> None:
    assert Adversary(menu, epsilon).delta(Spending.of(epsilon, delta)) <= delta * (1 + 1e-12)

"""An account as the strongest adaptive analyst meets it: asked with (epsilon, delta) pairs, and charged with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adaptive_adversary import Strategy
from farthing.ledger.account import Account

Menu = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Spending:
    """The account of an analyst."""

    account: Account

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Spending:
        return cls(Account.of(epsilon, delta))

    def admits(self, charge: tuple[float, float]) -> bool:
        return self.account.admits(self.account.priced(charge))

    def charge(self, charge: tuple[float, float]) -> Spending:
        after = self.account.after(self.account.priced(charge))
        if not after._clock_fits():  # under one budget it never does again, and so states meet
            after = replace(after, clock_units=None)
        return replace(self, account=after)


def admitted(tree: Strategy | None, spending: Spending) -> bool:
    """Whether every question of a strategy is admitted on every path."""
    if tree is None:
        return True
    asked = round(tree.question[0] * 0.1, 12), tree.question[1]
    if not spending.admits(asked):
        return False
    after = spending.charge(asked)
    return admitted(tree.after_truth, after) and admitted(tree.after_lie, after)

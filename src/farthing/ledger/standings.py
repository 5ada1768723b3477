"""How an account stands in the middle of a replay: plain sums now, everything else when somebody asks.

Most charges cost what the one before cost. Adding up their divergences one by one is most of the work of reading a
ledger again; so many times the same price is added at once.
"""

from __future__ import annotations

from farthing.ledger.holdings import Holding
from farthing.ledger.prices import Price


class Standing:
    """The account of one dataset or analyst after the entries so far, last changed by entry `sequence`.

    >>> from farthing.ledger.account import Account
    >>> account = Account.of(1.0)
    >>> standing = Standing(2, Holding(account))
    >>> for n in range(3, 13):
    ...     standing.charge(n, account.priced(0.1), "")
    >>> standing.sequence, standing.holding.account.sum_nano, standing.holding.waiting
    (12, 1000000000, 10)
    """

    __slots__ = ("_answered", "_answered_nano", "_holding", "_price", "_times", "sequence")

    def __init__(self, sequence: int, holding: Holding) -> None:
        self.sequence = sequence
        self._holding = holding
        self._price: Price | None = None
        self._times = 0
        self._answered, self._answered_nano = 0, 0

    @property
    def holding(self) -> Holding:
        """The whole state."""
        held = self._holding
        if self._price is not None:
            held = held.charged_many(self._price, self._times)
            self._price, self._times = None, 0
        if self._answered:
            held = held.settled_many(self._answered, self._answered_nano)
            self._answered, self._answered_nano = 0, 0
        self._holding = held
        return held

    def change(self, sequence: int, holding: Holding) -> None:
        """Another state altogether."""
        self.sequence, self._holding = sequence, holding
        self._price, self._times, self._answered, self._answered_nano = None, 0, 0, 0

    def charge(self, sequence: int, price: Price, reserve: str) -> None:
        """One more charge."""
        if price is self._price and not reserve:
            self._times += 1
        elif reserve or self._holding.account.untouched:  # which changes more than sums
            self.change(sequence, self.holding.charged(price, reserve))
        else:
            self._holding = self.holding
            self._price, self._times = price, 1
        self.sequence = sequence

    def settle(self, sequence: int, nano: int) -> None:
        """One charge that waited is answered or forfeited."""
        self._answered += 1
        self._answered_nano += max(0, nano)
        self.sequence = sequence

    def sums(self) -> str:
        """What `Holding.sums` says."""
        price = self._price
        if price is None:
            return self._holding.sums()
        account, times = self._holding.account, self._times
        nano = account.sum_nano
        plain = -1 if nano is None or price.epsilon_nano is None else nano + times * price.epsilon_nano
        return (
            f'{{"count":{account.count + times},"leak_units":{account.leak_units + times * price.leak_units},'
            f'"sum_nano":{plain},"sum_units":{account.sum_units + times * price.delta_units},"whole":"'
        )

    def text(self) -> str:
        """What `Holding.text` says."""
        return self.holding.text()

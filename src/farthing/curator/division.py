"""Disjoint parts of a table, fixed once: what dividing it costs, and the accounts of its parts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.curator.payers import Accounts, partition_facts, reach_of, unit_of, versioned_source
from farthing.data.table_identity import fingerprint_of
from farthing.errors import InvalidValue
from farthing.ledger.budget import as_stored
from farthing.ledger.partitions import Part, partition_digest, partition_id, reserved_for_parts
from farthing.numerics.bounds import number_text
from farthing.privacy import ApproxDP

if TYPE_CHECKING:
    from farthing.curator.curator import Curator
    from farthing.data import Dataset
    from farthing.ledger import Ledger


@dataclass(frozen=True)
class Division:
    """How a column divides a table, and what that costs. Made by `Study.split_plan`.

    Args:
        account: The account of the whole table, which pays.
        by: The column.
        values: Its values; each has a part.
        budget: The epsilon and delta of each part.
        cost: What the account is charged for all parts together.
        is_paid: Whether the table, as it is now, was divided like this before: then it costs nothing.
        number: Which of the partitions by this column it is.
        reach: In how many parts neighbouring tables may differ.
        digest: The fingerprint of the partition.
        before: The number of the same partition of the table as it was before it changed; None if there is none, or
            if it is paid.

    >>> print(Division("people", "sex", ("F", "M"), ApproxDP(0.5), ApproxDP(0.5), False, 1, 1, "ab"))
    divides 'people' by sex into 2 disjoint parts, each with epsilon 0.5: all of them together cost epsilon 0.5
    """

    account: str
    by: str
    values: tuple[Any, ...]
    budget: ApproxDP
    cost: ApproxDP
    is_paid: bool
    number: int
    reach: int
    digest: str
    before: int | None = None

    @property
    def request_id(self) -> str:
        """What its charge is called in the ledger."""
        return partition_id(self.account, self.by, self.number)

    @property
    def parts(self) -> dict[Any, Part]:
        """The parts by the value of the column."""
        facts = (self.number, self.reach, self.digest)
        return {value: Part(self.account, self.by, str(value), *facts) for value in self.values}

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data.

        Returns:
            The facts by name, with the account of each part.

        >>> whole = Division("people", "sex", ("F", "M"), ApproxDP(0.5), ApproxDP(0.5), False, 1, 1, "ab")
        >>> whole.to_dict()["parts"]
        {'F': 'people / sex = F', 'M': 'people / sex = M'}
        """
        return {
            "account": self.account,
            "by": self.by,
            "parts": {str(value): part.name for value, part in self.parts.items()},
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "cost": {"epsilon": self.cost.epsilon, "delta": self.cost.delta},
            "paid": self.is_paid,
            "request_id": self.request_id,
        }

    def __str__(self) -> str:
        parts = f"{len(self.values):,} disjoint parts, each with {_amount(self.budget)}"
        if self.is_paid:
            return f"{self.account!r} was divided by {self.by} into {parts}; that was paid for, and costs nothing now"
        return f"divides {self.account!r} by {self.by} into {parts}: all of them together cost {_amount(self.cost)}"


def division_of(
    curator: Curator, dataset: Dataset, by: str, account: str, epsilon: float, delta: float = 0.0
) -> Division:
    """How a column would divide a table, and at what price; nothing is charged.

    Args:
        curator: The door to its rows.
        dataset: The table with its public facts; nothing was done to it, except that columns were cut into bins.
        by: A column of categories or flags, which divides it.
        account: The account that pays.
        epsilon: The epsilon of each part.
        delta: The delta of each part.

    Returns:
        The division.

    Raises:
        InvalidValue: If rows of one unit may be in several parts, or changes of the table cannot be detected.
    """
    values, reach, table = tuple(dataset.split(by)), reach_of(dataset, by), fingerprint_of(dataset)
    accounts = curator.accounts(dataset, account)
    if not dataset.is_divisible() or accounts.others or accounts.part is not None:
        raise InvalidValue("dataset", dataset.name, "must be a table of one account, as it is", "split it first")
    if table is None or curator.analyst is not None or curator.ledger.role == "analyst":
        rule = "must be a file or a frame, divided by its curator: a part is one of a table that does not change"
        raise InvalidValue("dataset", dataset.name, rule, "ask for statistics by the column in one plan")
    budget = as_stored(epsilon, delta)
    digest = partition_digest(partition_facts(dataset, by, budget))
    number, is_paid, before = _number(curator.ledger, account, by, digest, table)
    cost = reserved_for_parts(budget.epsilon, budget.delta, reach)
    return Division(account, by, values, budget, cost, is_paid, number, reach, digest, before)


def divide(curator: Curator, dataset: Dataset, division: Division) -> dict[Any, str]:
    """Divide a table into disjoint parts, once and for all; what all of them may cost is charged now.

    Args:
        curator: The door to its rows, of a curator.
        dataset: The table with its public facts.
        division: What `division_of` it said.

    Returns:
        The account of each part, by the value of the column.

    Raises:
        BudgetExceeded: If the account does not have what the parts may cost.
        NotAllowed: If the ledger was not opened by a curator.
    """
    accounts: Accounts = curator.attach(dataset, division.account)
    dataset.prepare()
    charge = curator.ledger.charge(
        division.account,
        division.cost,
        request_id=division.request_id,
        digest=division.digest,
        table=fingerprint_of(dataset) or "",
        source=versioned_source(dataset, accounts),
    )
    if charge.state == "reserved":
        answer = {"partition": division.by, "parts": [str(value) for value in division.values]}
        curator.ledger.release(charge, json.dumps(answer))
    for part in division.parts.values():
        curator.ledger.open_part(part, division.budget.epsilon, division.budget.delta, unit_of(dataset))
    return {value: part.name for value, part in division.parts.items()}


def _number(ledger: Ledger, account: str, by: str, digest: str, table: str) -> tuple[int, bool, int | None]:
    """That of the same partition of the same table, which was paid for, or of the next one; and the last of another."""
    number, before = 1, None
    while (stored := ledger.stored(request_id := partition_id(account, by, number))) is not None:
        if stored.charge.dataset == account and ledger.digest(request_id) == digest:
            if ledger.table_changed(request_id, table) is False:
                return number, True, None
            before = number
        number += 1
    return number, False, before


def _amount(amount: ApproxDP) -> str:
    delta = f", delta {amount.delta:g}" if amount.delta else ""
    return f"epsilon {number_text(amount.epsilon, 6)}{delta}"

"""Disjoint parts of a table of a server: what dividing it costs, and the study of each part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farthing.client.http_connection import Connection, part
from farthing.privacy import ApproxDP


@dataclass(frozen=True)
class RemoteDivision:
    """How a column divides a table, and what that costs, under the names of a local division.

    >>> view = {"by": "sex", "budget": {"epsilon": 0.5, "delta": 0.0}, "cost": {"epsilon": 0.5, "delta": 0.0},
    ...         "paid": False, "changed": False, "request_id": "partition 1 of people by sex",
    ...         "sentence": "Divides 'people' by sex.", "parts": [{"value": "F", "dataset": "people sex F"}]}
    >>> division = RemoteDivision(view)
    >>> division.values, division.cost.epsilon, division.is_paid
    (('F',), 0.5, False)
    """

    view: Mapping[str, Any]

    @property
    def by(self) -> str:
        """The column whose values the parts are."""
        return str(self.view["by"])

    @property
    def values(self) -> tuple[Any, ...]:
        """Its values; each has a part."""
        return tuple(line["value"] for line in self.view["parts"])

    @property
    def budget(self) -> ApproxDP:
        """The epsilon and delta of each part."""
        return ApproxDP(self.view["budget"]["epsilon"], self.view["budget"]["delta"])

    @property
    def cost(self) -> ApproxDP:
        """What all parts together cost now: the maximum, or nothing if that was paid before."""
        return ApproxDP(self.view["cost"]["epsilon"], self.view["cost"]["delta"])

    @property
    def is_paid(self) -> bool:
        """Whether the table, as it is now, was divided like this before."""
        return bool(self.view["paid"])

    @property
    def is_changed(self) -> bool:
        """Whether it was divided like this before it changed: dividing it again is charged again."""
        return bool(self.view["changed"])

    @property
    def request_id(self) -> str:
        """What its charge is called in the ledger."""
        return str(self.view["request_id"])

    @property
    def datasets(self) -> dict[Any, str]:
        """What the server calls each part, by the value of the column."""
        return {line["value"]: str(line["dataset"]) for line in self.view["parts"]}

    def to_dict(self) -> dict[str, Any]:
        """The division as the server sent it, JSON-ready."""
        return dict(self.view)

    def __str__(self) -> str:
        return str(self.view["sentence"])


def division_at(connection: Connection, dataset: str, by: str, epsilon: float, delta: float) -> RemoteDivision:
    """What dividing a table would cost; nothing is charged."""
    words = {"by": by, "epsilon": epsilon, "delta": delta}
    return RemoteDivision(connection.post(f"/datasets/{part(dataset)}/parts/price", words))


def divided_at(
    connection: Connection, dataset: str, by: str, epsilon: float, delta: float, fresh: bool
) -> RemoteDivision:
    """The table, divided now if it was not before."""
    words = {"by": by, "epsilon": epsilon, "delta": delta, "fresh": fresh}
    return RemoteDivision(connection.post(f"/datasets/{part(dataset)}/parts", words))

"""Disjoint parts of an account, fixed in advance: what all of them cost is reserved as one charge, each has its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from unicodedata import normalize

from farthing.errors import InvalidValue
from farthing.ledger.account import Account
from farthing.ledger.tamper_evidence import canonical, fingerprint
from farthing.privacy.events import ApproxDP

PARTITION = "partition:"  # how the digest of its charge begins


def reserved_for_parts(epsilon: float, delta: float, reach: int) -> ApproxDP:
    """What an account is charged for a partition whose parts each have a budget of (epsilon, delta).

    Statement:
        Let the table be D, and let parts P_1, ..., P_m be fixed before any answer. Let M_i answer questions about the
        rows of D in P_i only, adaptively, and let it be (epsilon, delta)-DP as an interactive mechanism: a filter holds
        it to that. If two neighbouring tables differ in at most `reach` parts, everything that all M_i answer together,
        in any order and each question depending on all answers, is (reach * epsilon, reach * delta)-DP.
    Source: The M_i of parts in which the two tables agree are the same mechanism on both, so that whoever attacks can
        play them alone; at most `reach` are left, and interactive mechanisms run side by side compose like others
        (Vadhan & Zhang, arXiv:2207.08335v3, for f-DP; Lyu, arXiv:2207.09397v2, for (epsilon, delta)-DP), here by
        plain sums.
    Assumes: The table and its parts do not depend on any answer: parallel composition fails for delta > 0 if they do
        (Henzinger, Safavi & Vadhan, arXiv:2411.03299v4). So the partition is of one version of the table, and another
        version needs a new one.
    Direction: Charged as it stands, rounded up; the parts' budgets are rounded down.
    Checked by: tests/theorems/test_disjoint_parts.py

    >>> reserved_for_parts(0.5, 0.0, 2)
    ApproxDP(epsilon=1.0, delta=0.0)
    """
    if not reach >= 1:
        raise InvalidValue("reach", reach, "must be at least 1")
    return ApproxDP(reach * epsilon, reach * delta)


@dataclass(frozen=True, slots=True)
class Part:
    """One part: of which account, by which column, which value; the `number` of the partition and its fingerprint.

    >>> part = Part("people", "region", "north", 1, 1, "ab")
    >>> part.name, part.request_id, Part.from_dict(part.to_dict()) == part
    ('people / region = north', 'partition 1 of people by region', True)
    """

    account: str
    by: str
    value: str
    number: int
    reach: int
    partition: str

    @property
    def name(self) -> str:
        """The name of its own account."""
        again = f" ({self.number})" if self.number > 1 else ""
        return normalize("NFC", f"{self.account} / {self.by} = {self.value}{again}")

    @property
    def request_id(self) -> str:
        """The request under which the whole partition was charged."""
        return partition_id(self.account, self.by, self.number)

    def to_dict(self) -> dict[str, Any]:
        """As a state keeps it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Part:
        """The part that `to_dict` wrote."""
        texts = (data["account"], data["by"], data["value"], data["partition"])
        if not all(isinstance(text, str) for text in texts) or set(data) != set(cls.__slots__):
            raise InvalidValue("part", data, "must be a part as Part.to_dict writes it")
        return cls(*texts[:3], int(data["number"]), int(data["reach"]), texts[3])

    def is_paid_by(self, dataset: str, body: Mapping[str, Any], account: Account) -> bool:
        """Whether a charge to `dataset` of this body reserved what an account of this part has."""
        nano, units = int(body["nano"]), int(body["units"])
        paid = nano >= self.reach * account.epsilon_nano and units >= self.reach * account.delta_units
        return dataset == self.account and body["digest"] == self.partition and self.reach >= 1 and paid


def partition_id(account: str, by: str, number: int) -> str:
    """What a partition is called in the ledger.

    >>> partition_id("people", "region", 2)
    'partition 2 of people by region'
    """
    return normalize("NFC", f"partition {number} of {account} by {by}")


def partition_answer(text: str) -> dict[str, Any]:
    """What was recorded as the answer of a partition: its column and its parts; nothing for other texts.

    >>> partition_answer('{"partition":"sex","parts":["F","M"]}')["parts"], partition_answer("41")
    (['F', 'M'], {})
    """
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    is_one = isinstance(data, dict) and set(data) == {"partition", "parts"} and isinstance(data["parts"], list)
    return data if is_one else {}


def partition_digest(description: Mapping[str, Any]) -> str:
    """The fingerprint of a partition: of its column, its parts and their budgets.

    >>> partition_digest({"by": "region"}).startswith("partition:")
    True
    """
    return PARTITION + fingerprint(canonical(description))

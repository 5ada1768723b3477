"""The chart of claims: all of them are drawn, and none that cannot be an accuracy."""

from __future__ import annotations

import pytest

from farthing.errors import InvalidValue
from farthing.plots import holdout_claims


def test_every_claim_is_in_a_bar() -> None:
    chart = holdout_claims([0.62, 0.621, 0.63], [0.5, 0.49]).to_dict()
    rows = chart["layer"][0]["data"]["values"]
    counts = {
        name: sum(row["count"] for row in rows if row["analyst"] == name)
        for name in ("naive reuse", "reusable holdout")
    }
    assert counts == {"naive reuse": 3, "reusable holdout": 2}
    assert all(row["to"] - row["from"] == 1 / 128 for row in rows)


@pytest.mark.parametrize("claims", [[], [1.2], [float("nan")]])
def test_what_is_no_accuracy_is_refused(claims: list[float]) -> None:
    with pytest.raises(InvalidValue, match="naive reuse"):
        holdout_claims(claims, [0.5])

"""The chart of a stream of online answers."""

from __future__ import annotations

import pytest

from farthing.adaptive.query_session import Step
from farthing.errors import InvalidValue
from farthing.plots.convergence_charts import MOST_POINTS, convergence


@pytest.mark.slow
def test_every_paid_answer_is_drawn_however_long_the_stream() -> None:
    paid = {7, 4_001, 9_998}
    steps = [
        Step(n, 10, 40 if n in paid else 100, n in paid, sum(p <= n for p in paid), 70 * (n in paid))
        for n in range(1, 10_001)
    ]
    chart = convergence(steps, updates=5, rows=1000).to_dict()
    corrections, promised = (layer["data"]["values"] for layer in chart["vconcat"][0]["layer"])
    assert {row["question"]: row["correction"] for row in corrections} == dict.fromkeys(paid, 7)
    rows = promised
    assert {row["question"] for row in rows if row["kind"] == "paid"} == paid
    assert len(rows) <= MOST_POINTS + len(paid) + 1
    assert rows[0]["promised"] == 10 and rows[-1]["updates"] == 3
    assert chart["title"]["text"] == "10,000 questions used up 3 of 5 updates"


@pytest.mark.slow
def test_a_history_is_enough() -> None:
    chart = convergence([Step(1, 10, 100, False, 0), Step(2, 90, 40, True, 1, 130)]).to_dict()
    assert chart["title"]["text"] == "2 questions used up 1 update"
    assert [row["promised"] for row in chart["vconcat"][0]["layer"][1]["data"]["values"]] == [100, 40]


def test_a_stream_without_answers_is_refused() -> None:
    with pytest.raises(InvalidValue, match="at least one answer"):
        convergence([], updates=3, rows=10)

"""The chart of a stream of online answers."""

from __future__ import annotations

import pytest

from farthing.adaptive.online import Step
from farthing.errors import InvalidValue
from farthing.plots.convergence import MOST_POINTS, convergence


def test_every_paid_answer_is_drawn_however_long_the_stream() -> None:
    paid = {7, 4_001, 9_998}
    steps = [
        Step(n, 10, 40 if n in paid else 100, n in paid, sum(p <= n for p in paid)) for n in range(1, 10_001)
    ]
    chart = convergence(steps, updates=5, rows=1000).to_dict()
    rows = chart["vconcat"][0]["data"]["values"]
    assert {row["question"] for row in rows if row["kind"] == "paid"} == paid
    assert len(rows) <= MOST_POINTS + len(paid) + 1
    assert rows[0]["percent"] == 10 and rows[-1]["updates"] == 3
    assert chart["title"]["text"] == "10,000 questions used up 3 of 5 updates"


def test_a_stream_without_answers_is_refused() -> None:
    with pytest.raises(InvalidValue, match="at least one answer"):
        convergence([], updates=3, rows=10)

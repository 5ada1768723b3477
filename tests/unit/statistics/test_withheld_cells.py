"""Cells of few people: the released count decides, to the last unit, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import dataset
from farthing.inference import Answer
from farthing.statistics import count, mean, ranges
from farthing.statistics.withheld_cells import companion, people_in, withheld

VISITS = dataset(
    pyarrow.table({"id": ["a", "b"], "sex": ["F", "M"]}), unit="id", max_rows=4, schema={"sex": ["F", "M"]}
)


class Told:
    """What an output says of itself, without a plan."""

    def __init__(self, statistic: Any, labels: tuple[str, ...]) -> None:
        self.statistic, self.labels = statistic, labels


def answer(name: str, values: list[float], margin: float) -> Answer:
    numbers = np.array(values)
    ends = (numbers - margin, numbers + margin)
    return Answer.within(name, numbers, margin / 2, lambda _: ends, ("F", "M"))


COUNT, MEAN = count(by="sex"), mean("income", by="sex")
OUTPUTS: Any = [Told(MEAN, ("F", "M")), Told(COUNT, ("F", "M"))]


@pytest.mark.parametrize(("low", "shown"), [(19.999, False), (20.0, True), (float("nan"), False)])
def test_the_low_end_of_the_count_decides_about_every_number_of_a_cell(low: float, shown: bool) -> None:
    answers = [answer("mean", [5.0, 6.0], 1.0), answer("count", [low + 3.0, 500.0], 3.0)]
    kept = withheld(answers, OUTPUTS, 20, (1, 1))
    assert [np.isfinite(each.values).tolist() for each in kept] == [[shown, True]] * 2
    if low < 20:
        assert not np.isfinite([kept[0].lower[0], kept[0].upper[0], kept[0].raw[0]]).any()
        assert kept[0].values[1] == 6.0 and kept[0].upper[1] == 7.0 and "below 20 people" in kept[0].note


def test_rows_are_divided_by_the_most_that_one_person_adds() -> None:
    assert (people_in(COUNT, VISITS), people_in(count(by="sex", of="people", max_cells=1), VISITS)) == (4, 1)
    answers = [answer("mean", [5.0, 6.0], 1.0), answer("count", [80.0, 83.0], 3.0)]
    kept = withheld(answers, OUTPUTS, 20, (4, 4))
    assert np.isfinite(kept[1].values).tolist() == [False, True]


def test_a_number_without_a_count_of_its_cell_has_no_companion() -> None:
    other: Any = [Told(MEAN, ("F", "M")), Told(count(by="region"), ("F", "M")), Told(ranges("age"), ())]
    assert companion(MEAN, other) is None and companion(other[2].statistic, other) is None
    assert companion(MEAN, OUTPUTS) == 1 and companion(COUNT, OUTPUTS) == 1
    hidden = withheld([answer("mean", [5.0, 6.0], 1.0)], other[:1], 1, (1,))
    assert np.isnan(hidden[0].values).all()

"""The most frequent values: in order, with intervals that hold whichever came out on top, in every door."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.inference.answers import level_at_once
from farthing.statistics.counts.top_values import ranked
from farthing.study.documents.study_document import entry_of, statistic_of

NAMES = [f"d{number}" for number in range(6)]


def study(folder: Path) -> ft.Study:
    cells = np.repeat(NAMES, [10, 4_000, 30, 9_000, 2_000, 20]).tolist()
    people = ft.dataset(pa.table({"diagnosis": cells}), schema={"diagnosis": NAMES}, name="people")
    return ft.Study(people, epsilon=1.0, ledger=folder / "study.db")


def test_the_largest_come_first_and_are_kept_by_the_ledger(tmp_path: Path) -> None:
    """The counts are a thousand apart, and noise of epsilon 1 is not."""
    own = study(tmp_path)
    plan = own.plan(ft.top("diagnosis", 3))
    release = plan.release()
    answer = release["top 3 of diagnosis"]
    assert answer.labels == ("d3", "d1", "d4")
    assert list(answer.values) == sorted(answer.values, reverse=True)
    assert own.released(release.request_id)["top 3 of diagnosis"].labels == answer.labels
    assert [record["cell"] for record in release.records()] == ["d3", "d1", "d4"]
    assert "whichever are shown" in answer.note
    halves = np.asarray(answer.upper) - np.asarray(answer.values)
    assert halves.max() <= plan["top 3 of diagnosis"].error() + 1e-9
    assert "all 6 values, and so those shown, are within" in plan["top 3 of diagnosis"].sentence
    assert plan["top 3 of diagnosis"].error() == plan["top 3 of diagnosis"].error(at_once=True)
    own.close()


def test_intervals_are_those_of_all_values_together() -> None:
    distribution = ErrorDistribution([Term("laplace", 3.0)])
    counts = Answer.around("counts", [5.0, 9.0, 9.0, 1.0], distribution, tuple("abcd"))
    best = ranked(counts, 2, independent=True)
    assert best.labels == ("b", "c")
    level = level_at_once(0.95, 4, independent=True)
    assert np.asarray(best.upper) == pytest.approx(np.asarray(counts.at(level).upper)[[1, 2]])
    assert ranked(counts, 9, independent=True).labels == ("b", "c", "a", "d")


@pytest.mark.parametrize(("true", "most"), [((9, 9, 9, 9), 1), ((9, 9, 9, 9), 3), ((5, 9, 8, 9), 2)])
def test_what_is_shown_is_covered_as_often_as_stated_by_enumeration(true: tuple[int, ...], most: int) -> None:
    """All ways that noise can fall on four counts, up to a mass of 1e-7 that counts as missed."""
    scale, reach = 1.0, 18
    ball = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(ball) / scale) * np.tanh(0.5 / scale)
    noise = np.stack(np.meshgrid(*[ball] * len(true), indexing="ij"), axis=-1).reshape(-1, len(true))
    chance = np.prod(mass[noise + reach], axis=1)
    assert 0 <= 1 - chance.sum() < 1e-7
    counts = Answer.around("counts", true, ErrorDistribution([Term("laplace", scale)]), tuple("abcd"))
    (half,) = set((np.asarray(ranked(counts, most, independent=True).upper) - sorted(true)[::-1][:most]).tolist())
    shown = np.argsort(-(noise + true), axis=1, kind="stable")[:, :most]
    for row in range(0, len(noise), len(noise) // 40):  # the order is that of what is released
        drawn = Answer.around("counts", noise[row] + true, ErrorDistribution([Term("laplace", scale)]), tuple("abcd"))
        assert ranked(drawn, most, independent=True).labels == tuple("abcd"[place] for place in shown[row])

    def covered(width: float) -> float:
        missed = np.abs(np.take_along_axis(noise, shown, axis=1)).max(axis=1) > width
        return float(chance[~missed].sum())

    assert covered(half) >= 0.95
    if true == (9, 9, 9, 9):  # where noise alone decides, the interval of one count by itself would not do
        assert covered(float(np.asarray(counts.upper)[0] - 9)) < 0.95


def test_no_error_can_be_required_of_what_is_chosen_by_its_noise(tmp_path: Path) -> None:
    own = study(tmp_path)
    asked = ft.top("diagnosis", 3)
    with pytest.raises(InvalidValue, match=r"must not be the most frequent values; require it of histogram"):
        own.plan(asked).require(asked.name, within=10)
    with pytest.raises(InvalidValue, match="must not be the most frequent values"):
        own.fit(asked, require={asked.name: 10})
    assert own.plan(asked, ft.count()).require("count", within=30)["count"].error() <= 30
    own.close()


def test_the_words_of_a_study_file_lead_there_and_back() -> None:
    asked, controls = statistic_of({"kind": "top", "column": "diagnosis", "most": 3, "where": "age > 1", "weight": 2})
    assert asked == ft.top("diagnosis", 3, where="age > 1")
    assert entry_of(asked, controls) == {
        "kind": "top",
        "column": "diagnosis",
        "most": 3,
        "where": "age > 1",
        "weight": 2,
    }
    assert statistic_of({"kind": "top", "column": "diagnosis"})[0] == ft.top("diagnosis")


@pytest.mark.parametrize("most", [0, -1, 2.5, True, "3", 10_001])
def test_a_number_of_values_that_cannot_be_is_refused(most: object) -> None:
    with pytest.raises(InvalidValue, match="must be a whole number from 1 to 10,000"):
        ft.top("diagnosis", most)  # type: ignore[arg-type]

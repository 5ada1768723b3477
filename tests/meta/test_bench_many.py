"""The bench of many statistics asks for as many different ones as it says."""

from __future__ import annotations

import pytest
from benchmarks.many import HERE as SOURCE
from benchmarks.many import KINDS, PARTS, asked, in_fresh_process, measure, schema

from farthing.data.schema import Schema
from farthing.statistics.design import checked_all


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_made_of_different_statistics_of_the_table(kind: str) -> None:
    statistics = checked_all(asked(kind, 40), Schema.read(schema()))
    assert len({statistic.name for statistic in statistics}) == 40
    assert len({statistic.kind for statistic in statistics}) == (1 if kind != "mixture" else 6)


def test_a_plan_what_is_asked_of_it_and_its_release_are_measured() -> None:
    seconds = measure("counts", 2)
    assert tuple(seconds) == PARTS
    assert all(part > 0 for part in seconds.values())


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the process draws
def test_a_version_is_measured_in_a_process_of_its_own() -> None:
    assert set(in_fresh_process(SOURCE, "means", 2)) == set(PARTS)

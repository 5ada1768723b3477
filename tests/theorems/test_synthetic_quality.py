"""What a synthetic table is vouched for: the distance of its counts, its noise, and a number of rows that is off."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from farthing.adaptive.synthesis import synthesis_plan
from farthing.adaptive.synthesis.synthesis_transcript import Transcript
from farthing.adaptive.synthesis_validation import checked_synthesis
from farthing.data import Sensitivity
from farthing.data.coded_rows import CodedAxis
from farthing.data.schema import Integers
from farthing.study.synthesis.synthetic_quality import MarginalQuality, Quality, _slack, apart
from sources import TestSource


def test_no_count_and_no_share_is_further_off_than_distance_and_rows_allow() -> None:
    random = np.random.default_rng(1)
    tight = 0
    for _ in range(500):
        private, made = random.integers(0, random.integers(1, 20), (2, 6)) + np.array([[1], [0]])
        n, m = private.sum(), made.sum()
        apart = private - made
        bound = (np.abs(apart).sum() + abs(n - m)) / 2
        assert max(apart[apart > 0].sum(), -apart[apart < 0].sum()) == bound
        if m > 0:
            assert m * np.abs(private / n - made / m).sum() / 2 <= bound + 1e-9
            tight += bound > np.abs(apart).sum() / 2  # without |n - m| it would be too small
    assert tight > 100


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0, 5.0])
def test_both_noises_together_exceed_the_root_of_their_squares_no_more_often(ratio: float) -> None:
    """d + |n - m| exceeds the noisy d by |E| - N; twice the tail of one Gaussian is the most."""
    beta = 0.01
    reach = NormalDist().inv_cdf(1 - beta / 2)
    random = np.random.default_rng(2)
    noise, rows = random.normal(0, 1, 400_000), random.normal(0, ratio, 400_000)
    exceeded = np.mean(np.abs(rows) - noise > math.hypot(reach, reach * ratio))
    assert exceeded <= beta + 5 * math.sqrt(beta / 400_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sensitivity", [Sensitivity(1, 1, 1, 1), pytest.param(Sensitivity(2, 2, 2, 1), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_the_number_of_rows_is_off_by_as_much_as_is_said(sensitivity: Sensitivity, delta: float) -> None:
    """Mean square of 60 numbers, each a sum of many noises: 5 deviations are 0.91 with Gaussian tails."""
    plan = synthesis_plan((600,), 1.0, delta, sensitivity=sensitivity)
    rows = np.full((5000, 1), 7)
    errors = []
    for seed in range(60):
        alone = plan.alone(Transcript.read(plan.draw(rows, source=TestSource(seed))))
        errors.append((alone.total - 5000) / alone.total_deviation)
    assert 0.4 < np.mean(np.square(errors)) < 1.95


@pytest.mark.slow
def test_the_slack_allows_for_both() -> None:
    axes = [CodedAxis("age", Integers(0, 99)), CodedAxis("children", Integers(0, 9))]
    question = checked_synthesis(axes, Sensitivity(1, 1, 1, 1), 1.0, 1e-9)
    found = Transcript.read(question.plan.draw(np.zeros((900, 2), dtype=np.int64), source=TestSource(1)))
    rows = question.plan.alone(found).total_deviation
    assert _slack(question, found) == pytest.approx(math.hypot(question.noise.error(0.99), 2.5758 * rows), 1e-4)


@pytest.mark.parametrize("sizes", [(3, 4), (3000, 4000)])  # counted in an array, and by the cells that hold a row
def test_a_table_of_another_size_is_no_further_off_than_both_distances(sizes: tuple[int, int]) -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        private, checked, made = (
            np.column_stack([random.integers(0, 3, count), random.integers(0, 4, count)])
            for count in random.integers(1, 200, 3)
        )
        for columns in ((0,), (1,), (0, 1)):
            known, added = apart(private, checked, columns, sizes), apart(checked, made, columns, sizes)
            assert apart(private, made, columns, sizes) <= known + added + 1e-12
            cells = {tuple(row) for part in (checked, made) for row in part[:, columns].tolist()}
            shares = [
                abs(np.mean((checked[:, columns] == cell).all(1)) - np.mean((made[:, columns] == cell).all(1)))
                for cell in cells
            ]
            assert added == pytest.approx(sum(shares) / 2)
    assert apart(private, private[:0], (0,), sizes) == 1.0  # of no rows nothing is known


@pytest.mark.slow
def test_what_vouches_for_a_count_is_chosen_without_regard_to_the_noise() -> None:
    """A column with 30 others that never vary: each pair errs as the column does, and the least of 31 is too small."""
    random = np.random.default_rng(3)
    too_small = 0
    for _ in range(2_000):
        told = 0.2 + NormalDist().inv_cdf(0.99) * 0.01 + random.normal(0, 0.01, 31)
        alone = MarginalQuality(("a",), 0.2, float(told[0]), measured=True)
        pairs = [MarginalQuality(("a", f"b{n}"), 0.2, float(one), measured=False) for n, one in enumerate(told[1:])]
        held = Quality((*pairs, alone), (), 1000.0, 10.0).holding(["a"])
        assert held is alone
        too_small += held.at_most < 0.2
    assert too_small <= 20 + 5 * math.sqrt(20)


def test_a_condition_on_no_column_is_vouched_for_by_the_same_numbers_whatever_they_are() -> None:
    one, two = (
        MarginalQuality(("a",), 0.2, 0.3, measured=True),
        MarginalQuality(("b",), 0.1, 0.2, measured=True),
    )
    assert Quality((one, two), (), 1000.0, 10.0).holding([]) is one
    assert Quality((one, two), (), 1000.0, 10.0).holding(["a", "b"]) is None

"""A required error of a cdf holds on average over releases: what its intervals reach is what is promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import dataset
from farthing.statistics import cdf, count
from farthing.statistics.counts.cumulative_shares import CdfOutput
from farthing.statistics.counts.share_reach import Spreads
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise
from farthing.statistics.ranges.cdf_outputs import StrategyCdfOutput

ROWS = 300
RELEASES = 300


@pytest.mark.parametrize(
    ("asked", "kind", "parameter"),
    [
        (cdf("x", bins=4), "laplace", 0.3),
        (cdf("x", bins=4), "laplace", 2.0),
        (cdf("x", bins=10, for_population=True), "gaussian", 4.0),
        (cdf("x", bins=64), "laplace", 0.4),
        pytest.param(cdf("x", bins=4, by="g"), "laplace", 0.5, marks=pytest.mark.slow),
        pytest.param(cdf("x", bins=10), "gaussian", 8.0, marks=pytest.mark.slow),
        pytest.param(cdf("x", bins=64), "gaussian", 6.0, marks=pytest.mark.slow),
    ],
)
def test_intervals_of_a_cdf_reach_as_far_on_average_as_promised(asked: Any, kind: Any, parameter: float) -> None:
    """The worst cell to a hundredth, any to three. By the first order of the noise they reached up to 10% further."""
    values = np.repeat(np.linspace(0.5, 99.5, ROWS // 3), 3)
    groups = np.resize(["a", "a", "b"], ROWS)
    people = dataset(pyarrow.table({"x": values, "g": groups}), schema={"x": (0.0, 100.0), "g": ["a", "b"]}, rows=ROWS)
    expected = {"rows": ROWS, "x": values.tolist(), "g": {"a": 2 / 3, "b": 1 / 3}}
    design = design_of([asked], people, expected)
    (output,) = design.outputs
    assert isinstance(output, CdfOutput | StrategyCdfOutput)
    noises = {slot.name: Noise(kind, parameter) for slot in design.slots}
    promised = output.promised(noises).errors(0.95)
    reach = _reach(people, design, noises)
    most = 5 * reach.std(axis=0) / np.sqrt(RELEASES)  # standard errors of the mean
    assert np.all(reach.mean(axis=0) <= 1.03 * promised + most)
    assert reach.mean(axis=0).max() <= 1.01 * promised.max() + most.max()
    assert promised.max() <= 1.04 * reach.mean(axis=0).max() + most.max()  # no more is asked for than is needed
    assert np.all(promised >= output.predicted(noises).errors(0.95))


def test_more_is_promised_than_the_first_order_where_rows_are_few() -> None:
    """As where nothing is expected: there it is the worst that shares can be, and as much more than that."""
    people = dataset(pyarrow.table({"x": [0.0]}), schema={"x": (0.0, 100.0)}, rows=100)
    for expected in ({"rows": 100}, {"rows": 100, "x": list(range(100))}):
        design = design_of([cdf("x", bins=4)], people, expected)
        (output,) = design.outputs
        noises = {slot.name: Noise("laplace", 1.0) for slot in design.slots}
        assert output.promised(noises).worst(0.95) > 1.05 * output.predicted(noises).worst(0.95)


@pytest.mark.slow
def test_a_cdf_beside_a_count_reaches_as_far_as_promised() -> None:
    """What a count says of the whole is used: then the noise of its total is another."""
    values = np.random.default_rng(3).uniform(0.0, 100.0, ROWS)
    people = dataset(pyarrow.table({"x": values}), schema={"x": (0.0, 100.0)}, rows=ROWS)
    design = design_of([cdf("x", bins=64), count()], people, {"rows": ROWS, "x": values.tolist()})
    output = next(one for one in design.outputs if one.statistic.kind == "cdf")
    noises = {slot.name: Noise("gaussian", 6.0) for slot in design.slots}
    reach = _reach(people, design, noises)
    promised = output.promised(noises).errors(0.95)
    most = 5 * reach.std(axis=0) / np.sqrt(RELEASES)
    assert np.all(reach.mean(axis=0) <= 1.03 * promised + most)


def test_noise_is_respread_as_totals_are_known_better() -> None:
    """Variances and covariances with the whole become the other ones, and the last total stays the whole."""
    own = Spreads(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.full(3, 3.0))
    other = Spreads(np.array([0.8, 0.9, 0.5]), np.array([0.1, 0.3, 0.5]), np.full(3, 0.5))
    noise = np.cumsum(np.random.default_rng(1).normal(size=(200_000, 1, 3)), axis=2)
    moved = own.respread(noise, other)[:, 0, :]
    covariance = np.cov(moved.T)
    assert np.diag(covariance) == pytest.approx(other.own, rel=0.03)
    assert covariance[2] == pytest.approx(other.both, rel=0.06)


def _reach(people: Any, design: Any, noises: Any) -> Any:
    """How far the intervals of the first output reach in many releases, one a row."""
    output = next(one for one in design.outputs if one.statistic.kind == "cdf")
    exact = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    rows = []
    for _ in range(RELEASES):
        measured = {slot.name: slot.measure(exact[slot.name], noises[slot.name]) for slot in design.slots}
        answer = output.answer(measured, noises)
        rows.append(np.maximum(answer.values - answer.lower, answer.upper - answer.values))
    return np.array(rows).reshape(RELEASES, -1)

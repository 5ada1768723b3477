"""The error that is predicted for an optimised strategy is the error that is measured."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.release.strategies.optimising.making import optimised
from farthing.release.strategies.pricing import priced
from farthing.release.workloads import Workload, all_ranges, prefix
from sources import TestSource

TRIALS = 500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "epsilon", "delta"),
    [(prefix(64), 0.1, 0.0), (all_ranges(64), 1.0, 0.0), (prefix(64), 1.0, 1e-9)],
    ids=["prefix", "all ranges", "Gaussian prefix"],
)
def test_measured_errors_are_the_predicted_ones(workload: Workload, epsilon: float, delta: float) -> None:
    norm, kind = ("l2", "gaussian") if delta else ("l1", "laplace")
    strategy = optimised(workload, norm)  # type: ignore[arg-type]
    one = priced(strategy, workload, epsilon, delta, kind)  # type: ignore[arg-type]
    predicted = one.total_variance(workload)
    cells = np.arange(64) * 3
    source = TestSource(7)
    truth = workload.answers(cells)
    errors = [
        float(np.sum((workload.answers(one.estimator.estimate(one.measure(cells, source))) - truth) ** 2))
        for _ in range(TRIALS)
    ]
    spread = float(np.std(errors)) / np.sqrt(TRIALS)
    # Five standard errors: a false alarm in a million.
    assert abs(np.mean(errors) - predicted) <= 5 * spread
    for scale in (0.9, 1.1):  # noise of the wrong scale would be seen
        assert abs(scale**2 * np.mean(errors) - predicted) > 5 * scale**2 * spread

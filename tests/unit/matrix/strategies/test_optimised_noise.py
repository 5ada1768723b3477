"""The errors that are predicted for an optimised strategy are the errors that are measured."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.matrix.strategies.optimisation.workload_optimum import optimised
from farthing.matrix.strategies.strategy import Norm
from farthing.matrix.strategies.strategy_noise import NoiseKind, priced
from farthing.matrix.workloads import Workload, all_ranges, prefix
from sources import TestSource

TRIALS = 500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "epsilon", "delta", "norm", "kind"),
    [
        (prefix(64), 0.1, 0.0, "l1", "laplace"),
        (all_ranges(64), 1.0, 0.0, "l1", "laplace"),
        (prefix(64), 1.0, 1e-9, "l2", "gaussian"),
    ],
    ids=["prefix", "all ranges", "Gaussian prefix"],
)
def test_measured_errors_have_the_predicted_covariance(
    workload: Workload, epsilon: float, delta: float, norm: Norm, kind: NoiseKind
) -> None:
    """Errors in units of their covariance: 64 directions a trial tell more than one sum of squared errors."""
    one = priced(optimised(workload, norm), workload, epsilon, delta, kind)
    cells, source = np.arange(64) * 3, TestSource(7)
    errors = np.array([one.estimator.estimate(one.measure(cells, source)) - cells for _ in range(TRIALS)])
    covariance = one.estimator.covariance()
    scores = np.einsum("ti,ij,tj->t", errors, np.linalg.inv(covariance), errors) / 64
    spread = float(np.std(scores)) / np.sqrt(TRIALS)
    # Five standard errors: a false alarm in a million.
    assert abs(np.mean(scores) - 1.0) <= 5 * spread
    for scale in (0.9, 1.1):  # noise of the wrong scale would be seen
        assert abs(scale**2 * np.mean(scores) - 1.0) > 5 * scale**2 * spread
    assert one.total_variance(workload) == pytest.approx(np.sum(covariance * workload.gram()), rel=1e-9)

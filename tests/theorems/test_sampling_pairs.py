"""Pairs of single events: sampled losses, discrete noises, what lies beyond a cut, and the errors they state."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.accounting.algorithms import dominating_pairs as grid_discrete
from farthing.accounting.algorithms.dominating_pairs import discrete_gaussian, discrete_laplace, loss_pair
from farthing.accounting.algorithms.grid_pairs import (
    Density,
    LossPair,
    gaussian_tails,
    sampled_loss,
    share_of_signal,
    unsampled_loss,
)
from farthing.privacy import (
    ApproxDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)
from theorems.grid_twin import divergence, outcomes

DIRECTIONS = ["remove", "add"]
PROBABILITIES = [1e-300, 1e-9, 0.01, 0.5, 1 - 1e-12]


def exact_sampled_loss(u: float, probability: float, direction: str) -> mp.mpf:
    q = mp.mpf(probability)
    return mp.log(1 - q + q * mp.exp(u)) if direction == "remove" else -mp.log(1 - q + q * mp.exp(-mp.mpf(u)))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_sampled_loss_is_right_to_its_last_digits(probability: float, direction: str) -> None:
    u = np.array([-2000.0, -720.0, -40.0, -1.0, -1e-9, 0.0, 1e-12, 0.3, 25.0, 690.0, 701.0, 5000.0])
    computed = sampled_loss(u, probability, direction)  # type: ignore[arg-type]
    with mp.workdps(400):
        for argument, value in zip(u.tolist(), computed.tolist(), strict=True):
            truth = exact_sampled_loss(argument, probability, direction)
            assert abs(value - truth) <= 1e-14 * abs(truth) + 1e-320


@pytest.mark.slow
@given(st.floats(-300.0, 300.0), st.floats(1e-6, 1.0), st.sampled_from(DIRECTIONS))
def test_sampling_shrinks_losses_and_can_be_undone(u: float, probability: float, direction: str) -> None:
    loss = sampled_loss(np.array([u]), probability, direction)  # type: ignore[arg-type]
    assert min(u, 0.0) - 1e-12 <= loss[0] <= max(u, 0.0) + 1e-12
    # Undoing is ill-conditioned where the loss is flat, so it is judged by where it leads.
    back = unsampled_loss(loss, probability, direction)  # type: ignore[arg-type]
    again = sampled_loss(np.maximum(np.minimum(back, 1e3), -1e3), probability, direction)  # type: ignore[arg-type]
    assert again[0] == pytest.approx(loss[0], rel=1e-9, abs=1e-9)


@pytest.mark.slow
@given(st.floats(-30.0, 30.0), st.floats(0.01, 1.0), st.sampled_from(DIRECTIONS))
def test_the_share_of_signal_is_the_slope_of_the_loss(u: float, probability: float, direction: str) -> None:
    points = np.array([u - 1e-4, u, u + 1e-4])
    loss = sampled_loss(points, probability, direction)  # type: ignore[arg-type]
    share = share_of_signal(points[1:2], loss[1:2], probability, direction)  # type: ignore[arg-type]
    assert (loss[2] - loss[0]) / 2e-4 == pytest.approx(share[0], rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "event",
    [
        RandomizedResponse(0.9),
        ApproxDP(0.4, 0.02),
        DiscreteLaplaceNoise(1.1, 4),
        DiscreteGaussianNoise(0.8, 3),
        Sampled(RandomizedResponse(2.0), 0.25),
        Sampled(ApproxDP(1.0, 0.1), 0.25),
        Sampled(DiscreteLaplaceNoise(0.5, 3), 0.9),
        Sampled(DiscreteGaussianNoise(0.7), 0.1),
    ],
    ids=repr,
)
def test_atoms_have_the_masses_and_losses_of_their_outcomes(event: Event, direction: str) -> None:
    pair = loss_pair(event, direction, 80.0)  # type: ignore[arg-type]
    for epsilon in (-2.0, -0.3, 0.0, 0.2, 0.6, 1.0):
        truth = float(divergence(outcomes(event, direction), epsilon))
        gain = np.exp(pair.atoms.log_p) * -np.expm1(np.minimum(epsilon - pair.atoms.loss, 0.0))
        assert np.sum(gain) + math.exp(pair.log_infinite) == pytest.approx(truth, rel=1e-12, abs=1e-18)
    assert pair.atoms.loss == pytest.approx(pair.atoms.log_p - pair.atoms.log_q, abs=1e-11)
    assert np.max(pair.atoms.loss) <= pair.largest_loss


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.7, 1 - 1e-12, 1.0])
@pytest.mark.parametrize(
    "event", [GaussianNoise(0.7), GaussianNoise(0.05), GaussianNoise(50.0), LaplaceNoise(0.3)], ids=repr
)
def test_densities_and_losses_are_within_the_errors_they_state(
    event: Event, probability: float, direction: str
) -> None:
    density = loss_pair(Sampled(event, probability), direction, 700.0).density  # type: ignore[arg-type]
    assert density is not None
    y = np.linspace(density.low, density.high, 41)
    log_p, log_q = density.log_p_and_q(y)
    loss, error, loss_error = density.loss(y), density.error(y), density.loss_error(y)
    with mp.workdps(60):
        parameter = 1 / mp.mpf(event.noise_multiplier)  # type: ignore[attr-defined]
        for i, point in enumerate(y.tolist()):
            x = mp.mpf(point)
            if density.kind == "gaussian":
                plain_p, plain_q = (-((x - m) ** 2) / 2 - mp.log(2 * mp.pi) / 2 for m in (parameter, mp.mpf(0)))
            else:
                x = x * parameter / mp.mpf(density.scale)  # the coordinate is a share of the largest loss
                plain_p, plain_q = ((sign * x - parameter) / 2 - mp.log(4) for sign in (1, -1))
            truth = exact_sampled_loss(plain_p - plain_q, probability, direction)
            true_p, true_q = (plain_q + truth, plain_q) if direction == "remove" else (plain_p, plain_p - truth)
            assert abs(loss[i] - truth) <= loss_error[i]
            assert abs(log_p[i] - true_p) <= error[i] and abs(log_q[i] - true_q) <= error[i]
    assert np.max(error) < 1e-9  # generous, but not so generous that nothing could fail


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("probability", [0.01, 1.0])
@pytest.mark.parametrize("mu", [0.02, 1.0, 6.0])
def test_tails_bound_what_lies_beyond(mu: float, probability: float, direction: str) -> None:
    lowest = 0.0 if direction == "remove" and probability < 1 else mu
    for z in (0.0, 0.5, 3.0, 9.0):
        above, below = gaussian_tails(mu, lowest - z, mu + z, probability, direction)  # type: ignore[arg-type]
        parts = [(probability, mu), (1 - probability, 0.0)] if direction == "remove" else [(1.0, mu)]
        with mp.workdps(30):
            beyond = mp.fsum(w * mp.erfc((mu + z - m) / mp.sqrt(2)) / 2 for w, m in parts)
            under = mp.fsum(w * mp.erfc((m - lowest + z) / mp.sqrt(2)) / 2 for w, m in parts)
            assert mp.log(beyond) <= above <= mp.log(beyond) + 6
            assert mp.log(under) <= below


def test_tails_bound_discrete_noise_too() -> None:
    for deviation in (0.3, 1.0, 7.0):
        for last in (1, 3, 20):
            with mp.workdps(30):
                mass = [mp.exp(-((k / mp.mpf(deviation)) ** 2) / 2) for k in range(400)]
                beyond = mp.fsum(mass[last + 1 :]) / (2 * mp.fsum(mass) - 1)
                above, _ = gaussian_tails(0.0, -1.0, last / deviation, 1.0, "remove")
                assert beyond <= mp.exp(above)


def curve(pair: LossPair, epsilon: float) -> float:
    gains = np.exp(pair.atoms.log_p) * -np.expm1(np.minimum(epsilon - pair.atoms.loss, 0.0))
    return float(np.sum(gains))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("probability", [1.0, 0.2])
def test_runs_of_discrete_laplace_enclose_all_of_its_outcomes(
    monkeypatch: pytest.MonkeyPatch, probability: float, direction: str
) -> None:
    """The merged and the spread pair of `discrete_laplace` on either side of the full one, at every epsilon."""
    whole = discrete_laplace(1.3, 997, probability, direction)  # type: ignore[arg-type]
    monkeypatch.setattr(grid_discrete, "MOST_ATOMS", 500)
    monkeypatch.setattr(grid_discrete, "MOST_RUNS", 60)
    runs = discrete_laplace(1.3, 997, probability, direction)  # type: ignore[arg-type]
    assert runs.dominating is not None and len(runs.atoms.loss) == 62
    for pair in (runs, runs.dominating):
        assert float(np.sum(np.exp(pair.atoms.log_p))) == pytest.approx(1.0, abs=1e-13)
        assert float(np.sum(np.exp(pair.atoms.log_q))) == pytest.approx(1.0, abs=1e-13)
    gaps = []
    for epsilon in np.linspace(-1.4, 1.4, 301).tolist():
        low, truth, high = curve(runs, epsilon), curve(whole, epsilon), curve(runs.dominating, epsilon)
        assert low <= truth + 1e-15 and truth <= high + 1e-15
        gaps.append(high - low)
    assert 0 < max(gaps) < 1e-3


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("probability", [1.0, 0.2])
def test_the_sandwich_holds_a_discrete_gaussian(
    monkeypatch: pytest.MonkeyPatch, probability: float, direction: str
) -> None:
    multiplier, sensitivity = 1.5, 20
    whole = discrete_gaussian(multiplier, sensitivity, probability, direction, 60.0)  # type: ignore[arg-type]
    monkeypatch.setattr(grid_discrete, "MOST_ATOMS", 10)
    sandwiched = discrete_gaussian(multiplier, sensitivity, probability, direction, 60.0)  # type: ignore[arg-type]
    density = sandwiched.density
    assert density is not None and density.lattice == pytest.approx(1 / 30)
    a, b = density.sandwich()
    deviation = mp.mpf(multiplier) * sensitivity
    with mp.workdps(30):
        total = mp.fsum(mp.exp(-((k / deviation) ** 2) / 2) for k in range(-1500, 1501))
        for k in range(math.floor(density.low * 30), math.ceil(density.high * 30) + 1, 31):
            discrete = mp.exp(-((k / deviation) ** 2) / 2) / total
            rounded = mp.quad(
                lambda t: mp.exp(-((t / deviation) ** 2) / 2) / (deviation * mp.sqrt(2 * mp.pi)),
                [k - 0.5, k + 0.5],
            )
            assert -b <= mp.log(discrete / rounded) <= a
    assert 0 < a < b < 0.05
    assert replace(density, lattice=0.0).sandwich() == (0.0, 0.0)
    assert len(whole.atoms.loss) > 500


def test_a_sampled_event_is_not_its_own_mirror_image() -> None:
    remove, add = (loss_pair(Sampled(RandomizedResponse(1.0), 0.1), d, 50.0) for d in ("remove", "add"))
    assert remove.largest_loss > 2 * add.largest_loss


def test_a_density_cut_too_early_would_be_noticed() -> None:
    density = Density("gaussian", 1.0, -9.0, 3.0)
    above, _ = gaussian_tails(1.0, -9.0, 3.0, 1.0, "remove")
    assert above > -3.0 and density.high == 3.0

"""calibrate: the answer is proven, nearly least, and refusals say why."""

from __future__ import annotations

import math
from typing import Any

import pytest
from mpmath import mp, mpf

from farthing.accounting import compose
from farthing.accounting.calibration import Calibration, calibrate
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise, RandomizedResponse

NOISY = [
    ("ten Gaussians", lambda m: [GaussianNoise(m)] * 10, 1.0, 1e-6),
    ("one Gaussian, tiny delta", lambda m: [GaussianNoise(m)], 0.5, 1e-30),
    ("Laplace, no delta", lambda m: [LaplaceNoise(m)] * 3, 1.0, 0.0),
    ("a mixture", lambda m: [GaussianNoise(m), LaplaceNoise(2 * m), 0.1, (0.1, 1e-9)], 1.0, 1e-6),
    ("a large epsilon", lambda m: [GaussianNoise(m)] * 5, 200.0, 1e-6),
    ("a small epsilon", lambda m: [GaussianNoise(m)] * 5, 1e-4, 1e-9),
]
SPENDING = [
    ("a hundred queries", lambda e: [e] * 100, 1.0, 1e-6),
    ("no delta", lambda e: [e] * 7, 0.7, 0.0),
    ("with counts", lambda e: compose([e, 2 * e], counts=[500, 500]), 2.0, 1e-9),
    ("a black box beside", lambda e: [ApproxDP(e, 1e-9), RandomizedResponse(e), 0.2], 1.0, 1e-6),
]


@pytest.mark.parametrize(("make", "epsilon", "delta"), [c[1:] for c in NOISY], ids=[c[0] for c in NOISY])
def test_noise_is_proven_enough_and_a_little_less_is_too_little(make: Any, epsilon: float, delta: float) -> None:
    found = calibrate(make, epsilon, delta)
    again = compose(make(found.parameter)).epsilon_at(delta)
    assert again.proven and again.upper <= epsilon
    assert again.upper == found.cost.upper
    assert compose(make(found.parameter * (1 - 1e-6))).epsilon_at(delta).lower > epsilon


@pytest.mark.parametrize(("make", "epsilon", "delta"), [c[1:] for c in SPENDING], ids=[c[0] for c in SPENDING])
def test_epsilon_per_query_is_proven_small_enough_and_a_little_more_is_too_much(
    make: Any, epsilon: float, delta: float
) -> None:
    found = calibrate(make, epsilon, delta, direction="epsilon")
    assert found.cost.proven and found.cost.upper <= epsilon
    beyond = make(found.parameter * (1 + 1e-6))
    beyond = beyond if hasattr(beyond, "epsilon_at") else compose(beyond)
    assert beyond.epsilon_at(delta).lower > epsilon


def test_one_gaussian_agrees_with_its_closed_form() -> None:
    """delta(epsilon) = Phi(1/(2m) - epsilon m) - e^epsilon Phi(-1/(2m) - epsilon m)."""
    epsilon, delta = 1.0, 1e-6
    m = mpf(calibrate(lambda m: [GaussianNoise(m)], epsilon, delta).parameter)
    reached = mp.ncdf(1 / (2 * m) - epsilon * m) - mp.exp(epsilon) * mp.ncdf(-1 / (2 * m) - epsilon * m)
    assert reached <= delta
    assert float(reached) == pytest.approx(delta, rel=1e-7)


def test_more_budget_needs_less_noise() -> None:
    def needed(epsilon: float, delta: float) -> float:
        return calibrate(lambda m: [GaussianNoise(m)] * 3, epsilon, delta).parameter

    assert needed(2.0, 1e-6) < needed(1.0, 1e-6) < needed(1.0, 1e-9)


def test_a_result_is_a_frozen_number_with_its_proof() -> None:
    found = calibrate(lambda m: [LaplaceNoise(m)], 0.5, 0.0)
    assert float(found) == found.parameter == pytest.approx(2.0, rel=1e-8)
    assert isinstance(found, Calibration) and isinstance(found.cost, Bounds)
    with pytest.raises(AttributeError):
        found.parameter = 1.0  # type: ignore[misc]


def test_few_evaluations_are_needed_and_each_is_reported() -> None:
    seen: list[tuple[int, float, float]] = []
    found = calibrate(lambda m: [GaussianNoise(m)] * 10, 1.0, 1e-6, progress=lambda *call: seen.append(call))
    assert [call[0] for call in seen] == list(range(1, found.evaluations + 1))
    assert found.evaluations <= 25
    assert all(parameter > 0 and cost > 0 for _, parameter, cost in seen)


def test_bracket_is_kept_and_its_ends_can_be_the_answer() -> None:
    asked: list[float] = []

    def make(m: float) -> list[Any]:
        asked.append(m)
        return [GaussianNoise(m)]

    inside = calibrate(make, 1.0, 1e-6, bracket=(1.0, 50.0))
    assert inside.parameter == pytest.approx(4.2246789, rel=1e-6)
    assert min(asked) >= 1.0 and max(asked) <= 50.0
    assert calibrate(make, 1.0, 1e-6, bracket=(10.0, 100.0)).parameter == 10.0
    assert calibrate(lambda e: [e], 5.0, 1e-6, direction="epsilon", bracket=(0.1, 2.0)).parameter == 2.0
    with pytest.raises(InvalidValue, match=r"epsilon=1.0: must be at least the cost at parameter=2, 2.25"):
        calibrate(make, 1.0, 1e-6, bracket=(0.1, 2.0))


def test_a_leak_beyond_delta_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"delta=1e-06: must be at least what the charges leak by themselves, 1e-05"):
        calibrate(lambda m: [GaussianNoise(m), (0.1, 1e-5)], 1.0, 1e-6)


def test_a_fixed_cost_beyond_epsilon_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"epsilon=1.0: must be at least the cost at parameter=.*, 3;"):
        calibrate(lambda m: [LaplaceNoise(m), 3.0], 1.0, 0.0)
    with pytest.raises(InvalidValue, match=r"epsilon=1.0: must be at least the cost"):
        calibrate(lambda m: [GaussianNoise(m)], 1.0, 0.0)  # no Gaussian is pure


@pytest.mark.parametrize(
    ("make", "direction", "other"),
    [(lambda e: [e] * 10, "noise", "epsilon"), (lambda m: [GaussianNoise(m)] * 10, "epsilon", "noise")],
)
def test_the_wrong_direction_is_noticed(make: Any, direction: Any, other: str) -> None:
    with pytest.raises(InvalidValue, match=f'pass direction="{other}"'):
        calibrate(make, 1.0, 1e-6, direction=direction)


def test_a_function_that_is_not_monotone_is_noticed() -> None:
    with pytest.raises(InvalidValue, match="must cost less the larger its parameter"):
        calibrate(lambda m: [LaplaceNoise(m if m < 3 else 0.5)], 0.1, 0.0)


def test_charges_that_cost_nothing_are_noticed() -> None:
    with pytest.raises(InvalidValue, match="must cost more than epsilon=1 for some parameter"):
        calibrate(lambda m: [], 1.0, 1e-6)
    assert calibrate(lambda m: [], 1.0, 1e-6, bracket=(0.5, 2.0)).parameter == 0.5


def test_estimates_are_never_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """With estimates that are 1% too low the answer still stands on its proof, and near the true one."""
    from farthing.accounting.compose import Composition

    honest = Composition.epsilon_at

    def rosy(self: Composition, delta: float, proof: bool = True) -> Bounds:
        bounds = honest(self, delta, proof)
        if proof:
            return bounds
        return Bounds(bounds.lower * 0.99, bounds.upper * 0.99, bounds.estimate * 0.99, proven=False)

    true = calibrate(lambda m: [GaussianNoise(m)] * 3, 1.0, 1e-6)
    monkeypatch.setattr(Composition, "epsilon_at", rosy)
    found = calibrate(lambda m: [GaussianNoise(m)] * 3, 1.0, 1e-6)
    assert found.cost.proven and found.cost.upper <= 1.0
    assert found.parameter == pytest.approx(true.parameter, rel=1e-6)


def test_a_cost_that_is_not_proven_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    from farthing.accounting.compose import Composition

    monkeypatch.setattr(Composition, "epsilon_at", lambda *_, **__: Bounds(0.5, 0.5, proven=False))
    with pytest.raises(InvalidValue):
        calibrate(lambda m: [GaussianNoise(m)], 1.0, 1e-6, bracket=(1.0, 2.0))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": math.nan}, "epsilon="),
        ({"epsilon": 0.0}, "epsilon="),
        ({"epsilon": -1.0}, "epsilon="),
        ({"epsilon": math.inf}, "epsilon="),
        ({"delta": 1.0}, "delta="),
        ({"delta": math.nan}, "delta="),
        ({"direction": "up"}, "direction="),
        ({"bracket": (2.0, 1.0)}, "bracket="),
        ({"bracket": (0.0, 1.0)}, "bracket="),
        ({"bracket": (1.0, math.inf)}, "bracket="),
        ({"bracket": (1.0, math.nan)}, "bracket="),
        ({"bracket": 3.0}, "bracket="),
        ({"tolerance": 0.0}, "tolerance="),
        ({"tolerance": math.nan}, "tolerance="),
        ({"make_charges": [1.0]}, "make_charges="),
        ({"make_charges": lambda m: [math.nan]}, "nan"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], name: str) -> None:
    call: dict[str, Any] = {"make_charges": lambda m: [GaussianNoise(m)], "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(InvalidValue, match=name):
        calibrate(**{**call, **arguments})

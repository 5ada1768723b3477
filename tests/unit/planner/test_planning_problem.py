"""Problems: what cannot be planned is refused with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from farthing.errors import InvalidValue
from farthing.planner import Problem, Requirement, allocate
from farthing.statistics.measurements import Noise
from planner_designs import HandDesign, counts

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.0}, "epsilon=0.0: must be > 0 to plan with; .* ask the owner"),
    ({"epsilon": float("nan")}, "epsilon=nan"),
    ({"epsilon": -1.0}, "epsilon=-1.0"),
    ({"delta": 1.0}, "delta=1.0"),
    ({"delta": 0.5}, "delta=0.5: must be at most 0.1 to plan with; .* 1e-9"),
    ({"reserved": 1.0}, "reserve=1.0: must be below the epsilon of the plan, 1; reserve less"),
    ({"reserved": -0.1}, "reserve=-0.1"),
    ({"weights": {"o7": 2.0}}, "statistic='o7': must be one of the plan; nearest: 'o"),
    ({"weights": {"o0": 0.0}}, "weight=0.0: .*leave out"),
    ({"weights": {"o0": float("nan")}}, "weight=nan"),
    ({"requirements": {"nobody": Requirement(1.0)}}, "statistic='nobody'"),
    ({"held": {"s9": Noise("laplace", 1.0)}}, "slot='s9'"),
    (
        {"held": {"s0": Noise("laplace", 0.1), "s1": Noise("laplace", 0.1)}},
        "must leave at least one statistic free; .* release the plan as it is, or hold fewer",
    ),
    ({"sampling_rate": 0.0}, "sampling_rate=0.0: must be > 0 and at most 1"),
    ({"sampling_rate": 10}, "sampling_rate=10"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[message[:24] for _, message in REFUSED])
def test_careless_problems_are_refused_with_the_way_out(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Problem(counts([10.0, 20.0]), **{"epsilon": 1.0, **given})


def test_a_design_without_measurements_is_refused() -> None:
    with pytest.raises(InvalidValue, match="at least one"):
        Problem(HandDesign((), ()), 1.0)


@pytest.mark.parametrize(("within", "confidence"), [(0.0, 0.95), (float("inf"), 0.95), (1.0, 95), (1.0, 0)])
def test_careless_requirements_are_refused(within: float, confidence: float) -> None:
    with pytest.raises(InvalidValue):
        Requirement(within, confidence)


def test_without_delta_gaussian_noise_is_refused_by_name() -> None:
    with pytest.raises(InvalidValue, match=r"must be > 0 for the Gaussian noise of 's0'; .* 1e-9"):
        allocate(Problem(counts([10.0, 20.0]), 1.0, held={"s0": Noise("gaussian", 9.0)}))
    with pytest.raises(InvalidValue, match="Gaussian noise of 's0'"):
        allocate(Problem(counts([10.0], kinds=("gaussian",)), 1.0))


def test_held_noise_of_a_kind_the_slot_has_not_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must be one of laplace"):
        allocate(Problem(counts([9.0, 9.0], kinds=("laplace",)), 1.0, 1e-6, held={"s0": Noise("gaussian", 9.0)}))

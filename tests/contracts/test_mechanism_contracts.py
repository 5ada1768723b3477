"""What every mechanism keeps to: events that compose, frozen parameters, no seeds, refusals that show nothing."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import math
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import farthing.mechanisms as mechanisms
from farthing.accounting import compose
from farthing.errors import FarthingError, InvalidData, InvalidValue
from farthing.mechanisms import Mechanism
from farthing.privacy import Event

SECRET = 918_273_645  # a value no message may hold

CALM = mechanisms.SmoothStatistic(17, lambda t: t + 1)

# name: (make, a good value)
TABLE: dict[str, tuple[Callable[[float], Any], Any]] = {
    "DiscreteLaplace": (lambda e: mechanisms.DiscreteLaplace(e), 3),
    "DiscreteLaplace vector": (lambda e: mechanisms.DiscreteLaplace(e, 2, cells=3), [1, 2, 3]),
    "DiscreteLaplace reals": (lambda e: mechanisms.DiscreteLaplace(e, 2.5, grid=0.5, cells=2), [1.0, 2.5]),
    "DiscreteGaussian": (lambda e: mechanisms.DiscreteGaussian(1 / e), 3),
    "DiscreteGaussian vector": (lambda e: mechanisms.DiscreteGaussian(9 / e, 2, cells=3), [1, 2, 3]),
    "BoundedSum": (lambda e: mechanisms.BoundedSum(e, 0, 10), [1, 2, 30]),
    "BoundedSum reals": (lambda e: mechanisms.BoundedSum(e, -1.0, 10.0, grid=0.5), [1.0, math.nan, 1e300]),
    "RandomizedResponse": (lambda e: mechanisms.RandomizedResponse(e), 1),
    "RandomizedResponse of three": (lambda e: mechanisms.RandomizedResponse(e, ("a", "b", "c")), "b"),
    "ExponentialMechanism": (lambda e: mechanisms.ExponentialMechanism(e), [1, 5, 2]),
    "ReportNoisyMax": (lambda e: mechanisms.ReportNoisyMax(e), [1, 5, 2]),
    "PermuteAndFlip": (lambda e: mechanisms.PermuteAndFlip(e), [1, 5, 2]),
    "TopK": (lambda e: mechanisms.TopK(2, e), [1, 5, 2]),
    "Quantile": (lambda e: mechanisms.Quantile(0.5, e, 0, 100, grid=1), [1, 5, 2]),
    "Quantiles": (lambda e: mechanisms.Quantiles((0.25, 0.5), e, 0, 100, grid=1), [1, 5, 2]),
    "AboveThreshold": (lambda e: mechanisms.AboveThreshold(e, threshold=3), [1, 5, 2]),
    "SparseVector": (lambda e: mechanisms.SparseVector(e, threshold=3, positives=2), [1, 5, 2]),
    "SmoothMedian": (lambda e: mechanisms.SmoothMedian(e, 0, 100), [1, 5, 2]),
    "SmoothMedian with delta": (lambda e: mechanisms.SmoothMedian(e, 0, 100, delta=1e-6), [1, 5, 2]),
    "SmoothSensitivity": (lambda e: mechanisms.SmoothSensitivity(e, 100), CALM),
    "KeySelection": (lambda e: mechanisms.KeySelection(e, 1e-6), {"a": 3, "b": 500}),
    "WeightedKeySelection": (lambda e: mechanisms.WeightedKeySelection(e, 1e-6, 3), {"a": 3, "b": 5_000_000}),
}
CASES = pytest.mark.parametrize(("make", "value"), TABLE.values(), ids=TABLE.keys())


def test_every_public_mechanism_stands_in_the_table() -> None:
    classes = {
        cls
        for cls in vars(mechanisms).values()
        if inspect.isclass(cls) and issubclass(cls, Mechanism) and not inspect.isabstract(cls)
    }
    assert classes - {type(make(1.0)) for make, _ in TABLE.values()} == set()


@CASES
def test_the_event_composes_and_survives_storage(make: Callable[[float], Any], value: Any) -> None:
    event = make(1.0).event
    assert Event.from_dict(json.loads(json.dumps(event.to_dict()))) == event
    bounds = compose([event, event]).epsilon_at(1e-5)
    assert 0 < bounds.upper < math.inf


@CASES
def test_more_epsilon_costs_more(make: Callable[[float], Any], value: Any) -> None:
    costs = [compose([make(epsilon).event]).epsilon_at(1e-5).upper for epsilon in (0.25, 0.5, 1.0, 3.0)]
    assert costs == sorted(costs) and costs[0] < costs[-1]


@CASES
def test_a_mechanism_is_frozen_equal_by_value_and_can_travel(make: Callable[[float], Any], value: Any) -> None:
    mechanism = make(1.0)
    assert make(1.0) == mechanism != make(0.5) and hash(make(1.0)) == hash(mechanism)
    assert copy.deepcopy(mechanism) == mechanism == pickle.loads(pickle.dumps(mechanism))
    for field in dataclasses.fields(mechanism):
        with pytest.raises((AttributeError, TypeError)):
            setattr(mechanism, field.name, 0)
    assert type(mechanism).__name__ in repr(mechanism)


@CASES
def test_releases_are_fresh_and_do_not_touch_the_value(make: Callable[[float], Any], value: Any) -> None:
    kept = copy.deepcopy(value)
    mechanism = make(0.5)
    answers = {repr(mechanism.release(value)) for _ in range(60)}
    assert len(answers) > 1 or "KeySelection" in repr(mechanism)
    assert repr(value) == repr(kept)


def test_no_public_signature_takes_a_seed_or_a_source() -> None:
    forbidden = {"seed", "source", "random_state", "rng", "random", "generator"}
    for name in mechanisms.__all__:
        thing = getattr(mechanisms, name)
        for member_name, member in inspect.getmembers(thing, callable):
            # Sessions are handed out by `start`, never made by users: only what users make has a public __init__.
            made_by_users = member_name == "__init__" and issubclass(thing, Mechanism)
            if member_name.startswith("_") and not made_by_users:
                continue
            try:
                names = set(inspect.signature(member).parameters)
            except (TypeError, ValueError):
                continue
            assert not names & forbidden, (name, member_name)


@CASES
@pytest.mark.parametrize(
    "bad",
    [None, math.nan, math.inf, "918273645", [None], [math.nan], object(), 1j, b"9"],
    ids=lambda bad: type(bad).__name__,
)
def test_a_bad_value_is_refused_and_never_shown(make: Callable[[float], Any], value: Any, bad: Any) -> None:
    mechanism = make(1.0)
    try:
        mechanism.release(bad)
    except InvalidData as refusal:
        assert str(SECRET) not in str(refusal)
        assert (refusal.__cause__ is None and refusal.__suppress_context__) or refusal.__context__ is None
    else:
        # Of real rows a missing one is left out, for a refusal would tell of it; everything else is refused.
        assert ("BoundedSum" in repr(mechanism) and isinstance(bad, list | float)) or (
            "Quantile" in repr(mechanism) and bad == [math.nan]
        )


@CASES
@pytest.mark.parametrize("epsilon", [0, -1.0, 51.0, math.nan, math.inf, None, "1"])
def test_a_bad_epsilon_is_refused(make: Callable[[float], Any], value: Any, epsilon: Any) -> None:
    with pytest.raises((InvalidValue, ZeroDivisionError, TypeError)) as refusal:
        made = make(epsilon)
        if type(made).__name__ == "DiscreteGaussian":  # the table turns epsilon into a multiplier
            raise InvalidValue("noise_multiplier", epsilon, "is a multiplier here")
    assert isinstance(refusal.value, FarthingError) or type(epsilon) is not float


@CASES
def test_threads_may_share_a_mechanism(make: Callable[[float], Any], value: Any) -> None:
    mechanism, start = make(1.0), threading.Barrier(4)

    def one() -> str:
        start.wait()
        return repr([mechanism.release(value) for _ in range(20)])

    with ThreadPoolExecutor(4) as pool:
        answers = [future.result() for future in [pool.submit(one) for _ in range(4)]]
    assert len(set(answers)) > 1 or "KeySelection" in repr(mechanism)


def test_numpy_seeds_change_nothing() -> None:
    mechanism = mechanisms.DiscreteLaplace(0.01, cells=1000)
    draws = []
    for _ in range(2):
        np.random.seed(1)
        draws.append(mechanism.release(np.zeros(1000, dtype=np.int64)).tolist())
    assert draws[0] != draws[1]

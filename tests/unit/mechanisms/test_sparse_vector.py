"""Threshold sessions: when they stop, what they refuse, and that nothing of their noise gets out."""

from __future__ import annotations

import copy
import inspect
import math
import os
import pickle
import random
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from farthing.accounting import compose
from farthing.errors import BudgetExceeded, FarthingError, InvalidData, InvalidValue
from farthing.mechanisms import threshold_session
from farthing.mechanisms.sparse_vector import AboveThreshold, SparseVector
from farthing.mechanisms.threshold_session import Above, Below


class Scripted:
    """A repeatable stream of bytes, for tests only."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def take(self, count: int, /) -> bytes:
        return self._random.randbytes(count)


def test_a_session_stops_after_its_last_positive_and_says_so() -> None:
    session = SparseVector(1.0, positives=2).start(threshold=0)
    assert not session.ask(-(10**6)) and not session.stopped
    assert session.ask(10**6) and session.positives_left == 1
    assert session.ask(10**6) and session.stopped
    for value in (10**6, -(10**6)):
        with pytest.raises(BudgetExceeded, match="last positive"):
            session.ask(value)


def test_a_stream_is_answered_up_to_the_last_positive() -> None:
    mechanism = SparseVector(1.0, positives=2)
    far = 10**6
    assert mechanism.release([-far, far, -far, far, far]) == [Below(), Above(), Below(), Above()]
    assert mechanism.release([-far] * 3) == [Below()] * 3
    assert mechanism.release([]) == []


@pytest.mark.slow
def test_gaps_follow_the_law_of_the_difference_of_two_noises() -> None:
    """Chi-square at alpha 1e-6; an epsilon ten percent off either way is rejected."""
    mechanism = AboveThreshold(0.8, with_gap=True)
    source, far = Scripted(4), 10**6
    noise = [mechanism._answer([far], source)[0].gap - far for _ in range(10_000)]
    assert abs(np.mean(noise)) < 0.5 + 5 * mechanism.standard_error / math.sqrt(10_000)
    assert np.var(noise) == pytest.approx(mechanism.variance, rel=0.1)

    def p_value(claim: AboveThreshold) -> float:
        first, second = (float(rate) for rate in claim._rates)
        n = np.arange(600)
        threshold, question = (np.exp(-r * n) * -math.expm1(-r) for r in (first, second))
        distribution = np.convolve(question, threshold[::-1])  # place 599 is a difference of zero
        edges = list(range(-12, 21))
        places = np.arange(len(distribution)) - 599 - claim._offset
        groups = np.digitize(places, edges)
        means = np.bincount(groups, weights=distribution, minlength=len(edges) + 1) * len(noise)
        seen = np.bincount(np.digitize(noise, edges), minlength=len(edges) + 1)
        return float(stats.chisquare(seen, means * seen.sum() / means.sum()).pvalue)

    assert p_value(mechanism) > 1e-6
    assert p_value(AboveThreshold(0.8 / 0.9, with_gap=True)) < 1e-6
    assert p_value(AboveThreshold(0.8 / 1.1, with_gap=True)) < 1e-6


def test_one_threshold_noise_serves_all_positives_unless_a_fresh_one_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for fresh, expected in ((False, 1), (True, 4)):
        mechanism = SparseVector(1.0, positives=4, fresh_threshold=fresh)
        asked: list[object] = []

        def counted(rate: object, bits: object, asked: list[object] = asked) -> int:
            asked.append(rate)
            return 0

        monkeypatch.setattr(threshold_session, "geometric", counted)
        mechanism._answer([10**6] * 9, Scripted(0))
        assert Counter(asked) == {mechanism._rates[0]: expected, mechanism._rates[1]: 4}


def test_a_fresh_threshold_composes_to_less_than_its_sum() -> None:
    mechanism = SparseVector(10.0, positives=100, fresh_threshold=True)
    assert compose([mechanism.event]).epsilon_at(1e-6).upper < 5.3
    assert compose([SparseVector(10.0, positives=100).event]).epsilon_at(1e-6).upper == pytest.approx(10.0)
    assert SparseVector(1.0, positives=1, fresh_threshold=True).event == AboveThreshold(1.0).event


def test_threads_share_one_allowance() -> None:
    session = SparseVector(1.0, positives=7).start(threshold=0)
    given, refused = [], []

    def worker() -> None:
        for _ in range(20):
            try:
                given.append(session.ask(10**6))
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 7 and len(refused) == 8 * 20 - 7


def test_a_session_cannot_be_duplicated() -> None:
    session = AboveThreshold(1.0).start()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied or pickled"):
            duplicate(session)
    assert repr(session) == "ThresholdSession(positives_left=1)"


def test_another_process_cannot_go_on_with_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AboveThreshold(1.0).start()
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(FarthingError, match="process that started it"):
        session.ask(1)


@pytest.mark.parametrize(
    "hostile",
    [None, "12345", 12345.5, math.nan, math.inf, True, [12345], np.array([1.5]), {}, object(), 1 + 2j],
)
def test_a_hostile_value_is_refused_unseen_and_costs_nothing(hostile: object) -> None:
    session = AboveThreshold(1.0).start()
    with pytest.raises(InvalidData) as caught:
        session.ask(hostile)
    assert "12345" not in str(caught.value)
    assert session.positives_left == 1 and session.ask(10**6)


@pytest.mark.parametrize("hostile", [None, 5, [1, None], [1.5], [[1, 2]], "12", [True, False], [1, "x"], {1: 2}])
def test_a_hostile_stream_is_refused(hostile: object) -> None:
    with pytest.raises(InvalidData):
        AboveThreshold(1.0).release(hostile)


@pytest.mark.parametrize("hostile", [None, math.nan, math.inf, "1.5", True, [1.0, math.nan]])
def test_hostile_reals_are_refused_on_a_grid(hostile: object) -> None:
    with pytest.raises(InvalidData):
        AboveThreshold(1.0, grid=0.25).start().ask(hostile)


def test_extreme_values_saturate() -> None:
    mechanism = SparseVector(1.0, positives=4)
    values = [10**400, -(10**400), 2**63, np.iinfo(np.int64).min]
    assert [bool(answer) for answer in mechanism.release(values)] == [True, False, True, False]
    real = SparseVector(1.0, positives=4, grid=2.0**-10)
    assert [bool(a) for a in real.release([1e308, -1e308, 5e-324 + 1e5])] == [True, False, True]


def test_a_grid_measures_everything_in_the_units_of_the_data() -> None:
    """Sensitivity 1 on a grid of 1/1024 is 1024 steps: the same noise as for whole numbers, finer."""
    coarse, fine = AboveThreshold(1.0), AboveThreshold(1.0, grid=2.0**-10)
    assert fine._steps == 1024
    assert fine.variance == pytest.approx(coarse.variance, rel=0.02)
    assert abs(fine.error(0.95, 10) - coarse.error(0.95, 10)) <= 1
    assert AboveThreshold(1.0, l1_sensitivity=0.3, grid=0.25)._steps == 2
    gap = AboveThreshold(1.0, with_gap=True, grid=0.25).start(threshold=0.5).ask(1000.0).gap
    assert gap is not None and (gap * 4).is_integer()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 0}, "epsilon"), ({"epsilon": math.nan}, "epsilon"), ({"epsilon": 50.1}, "epsilon"),
        ({"l1_sensitivity": 0}, "l1_sensitivity"), ({"l1_sensitivity": 1.5}, "l1_sensitivity"),
        ({"l1_sensitivity": math.nan, "grid": 0.5}, "l1_sensitivity"), ({"grid": 0.3}, "grid"),
        ({"grid": math.inf}, "grid"), ({"threshold": math.nan}, "threshold"), ({"threshold": 0.5}, "threshold"),
        ({"threshold": None}, "threshold"), ({"monotone": 1}, "monotone"), ({"with_gap": "yes"}, "with_gap"),
        ({"positives": 0}, "positives"), ({"positives": True}, "positives"), ({"positives": 2**21}, "positives"),
        ({"fresh_threshold": None}, "fresh_threshold"), ({"epsilon": 1e-310}, "epsilon"),
        ({"epsilon": 5e-324}, "epsilon"),
        ({"l1_sensitivity": 1.0, "grid": 2.0**-1074}, "epsilon"),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(parameters: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        SparseVector(**{"epsilon": 1.0, **parameters})  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize(("confidence", "queries"), [(0.0, 1), (1.0, 1), (math.nan, 1), (0.9, 0), (0.9, 1.5)])
def test_an_error_needs_a_confidence_and_a_number_of_questions(confidence: float, queries: float) -> None:
    with pytest.raises(InvalidValue):
        AboveThreshold(1.0).error(confidence, queries)  # type: ignore[arg-type]


def test_mechanisms_are_frozen_and_no_signature_takes_randomness() -> None:
    mechanism = SparseVector(1.0, positives=3)
    assert eval(repr(mechanism)) == mechanism
    with pytest.raises(AttributeError):
        mechanism.epsilon = 9.0  # type: ignore[misc]
    for public in (SparseVector, AboveThreshold, mechanism.start, mechanism.release):
        assert not {"seed", "source", "random_state", "rng"} & set(inspect.signature(public).parameters)


@pytest.mark.parametrize("kind", [int, float, np.int32, np.int64, np.uint16, np.float32, np.array])
def test_a_sensitivity_of_any_number_type_is_a_plain_number_inside(kind: type) -> None:
    """A fraction made of int64 keeps int64: 2^14 in steps of 2^-60 would wrap around to 0."""
    mechanism = AboveThreshold(1.0, l1_sensitivity=kind(2**14), grid=2.0**-60)
    assert mechanism._steps == 2**74 and type(mechanism.l1_sensitivity) is float
    assert mechanism._rates == AboveThreshold(1.0, l1_sensitivity=2**14, grid=2.0**-60)._rates


def test_a_gap_beyond_the_doubles_is_the_largest_double_and_no_error() -> None:
    mechanism = AboveThreshold(1.0, 2.0**1000, threshold=-1e308, with_gap=True, grid=2.0**990)
    assert mechanism.release([1.7e308]) == [Above(gap=sys.float_info.max)]

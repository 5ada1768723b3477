"""`answer_workload`: what it refuses, what it promises, what can be asked afterwards."""

from __future__ import annotations

import json
import math
import pickle
import traceback

import numpy as np
import pytest

from farthing.accounting import compose
from farthing.errors import InvalidData, InvalidExpression, InvalidValue
from farthing.matrix import WorkloadAnswers, answer_workload, workloads
from farthing.matrix.data_dependent.strategy_choice import PILOT_PART, SHAPE_PART
from farthing.matrix.strategies.strategy_registry import find
from farthing.matrix.strategies.tree_strategies import hierarchical
from farthing.matrix.strategy_candidates import Candidate, Candidates
from farthing.matrix.workload_answers import _answer_workload
from farthing.privacy import Event
from sources import TestSource

AGES = np.random.default_rng(1).poisson(20, 64)
SECRET = 123_457


def answered(strategy: object = "tree", seed: int = 1, **settings: object) -> WorkloadAnswers:
    workload = settings.pop("workload", workloads.prefix(64, column="age"))
    histogram = settings.pop("histogram", AGES)
    given = {"epsilon": 1.0, "strategy": strategy, "source": TestSource(seed)} | settings
    return _answer_workload(histogram, workload, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "histogram",
    [
        np.full(64, SECRET + 0.5),
        np.full(64, np.nan),
        np.full(63, SECRET),
        np.full((2, 32), SECRET),
        np.full(64, -SECRET),
        np.array([SECRET] * 63 + ["x"], dtype=object),
        [True] * 64,
        {"a": SECRET},
        None,
        "123457",
        np.ma.masked_array(np.full(64, SECRET), mask=[True] * 64),
    ],
    ids=["real", "nan", "short", "shape", "negative", "object", "truth", "mapping", "none", "text", "masked"],
)
def test_a_wrong_histogram_is_refused_without_a_number_of_it(histogram: object) -> None:
    with pytest.raises(InvalidData) as caught:
        answer_workload(histogram, workloads.prefix(64), epsilon=1.0, strategy="identity")  # type: ignore[arg-type]
    told = "".join(traceback.format_exception(caught.value, chain=True)[-1:]) + repr(vars(caught.value))
    assert "123457" not in told and "123,457" not in told and "nan" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 1000.0, True, None, "1"])
def test_an_epsilon_that_is_none_is_refused(epsilon: object) -> None:
    with pytest.raises(InvalidValue, match="epsilon"):
        answer_workload(AGES, workloads.prefix(64), epsilon=epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"strategy": "haar"}, "must be one of auto"),
        ({"strategy": 7}, "must be one of auto"),
        ({"strategy": "hierarchical-1"}, "must be one of auto"),
        ({"strategy": hierarchical(32, 2)}, "must be over 64 cells"),
        ({"confidence": 1.0}, "confidence"),
        ({"nonnegative": "yes"}, "nonnegative"),
        ({"integers": 1}, "integers"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings: dict[str, object], told: str) -> None:
    given = {"epsilon": 1.0, "strategy": "identity"} | settings
    with pytest.raises(InvalidValue, match=told):
        answer_workload(AGES, workloads.prefix(64), **given)  # type: ignore[arg-type]


def test_a_workload_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must be a workload"):
        answer_workload(AGES, [(0, 3)], epsilon=1.0)  # type: ignore[arg-type]


def test_nothing_private_is_looked_at_before_the_settings_are_right() -> None:
    class Untouchable:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise AssertionError("looked")

    with pytest.raises(InvalidValue):
        answer_workload(Untouchable(), workloads.prefix(4), epsilon=0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["identity", "hierarchical", "wavelet", "tree", hierarchical(64, 4)])
def test_answers_errors_and_cost_belong_together(strategy: object) -> None:
    found = answered(strategy)
    assert np.allclose(found.answers, np.cumsum(found.estimate))
    assert found.rmse == pytest.approx(math.sqrt(np.mean(found.standard_errors**2)))
    assert found.cost.upper <= 1.0
    assert compose([found.event]).epsilon_at(0.0).upper <= 1.0
    assert np.max(np.abs(found.answers - np.cumsum(AGES)) / found.standard_errors) < 8
    assert found.candidates.chosen.rmse == pytest.approx(found.rmse)


def test_with_a_delta_the_cost_is_at_that_delta() -> None:
    found = answered("wavelet", epsilon=0.1, delta=1e-6)
    assert found.delta == 1e-6
    assert 0.09 < found.cost.upper <= 0.1
    assert "(Gaussian noise)" in found.candidates[0].why
    assert found.standard_errors.shape == (64,)
    assert found.query("age < 10").standard_errors == pytest.approx(found.standard_errors[9], rel=1e-6)


def test_the_same_source_gives_the_same_answers_and_another_does_not() -> None:
    assert np.array_equal(answered(seed=3).answers, answered(seed=3).answers)
    assert not np.array_equal(answered(seed=3).answers, answered(seed=4).answers)


def test_nonnegative_cells_and_whole_ones_on_request() -> None:
    sparse = np.zeros(64, dtype=int)
    sparse[5] = 40
    raw = answered("tree", histogram=sparse, epsilon=0.2)
    settled = answered("tree", histogram=sparse, epsilon=0.2, nonnegative=True)
    whole = answered("tree", histogram=sparse, epsilon=0.2, nonnegative=True, integers=True)
    assert raw.estimate.min() < 0 <= settled.estimate.min()
    assert whole.estimate.dtype == np.int64 and whole.estimate.min() >= 0
    assert abs(whole.estimate.sum() - settled.estimate.sum()) <= 0.5
    assert np.sum((settled.answers - np.cumsum(sparse)) ** 2) <= np.sum((raw.answers - np.cumsum(sparse)) ** 2)


def test_auto_takes_the_least_error_and_says_what_it_weighed() -> None:
    found = answered("auto", workload=workloads.all_ranges(16, column="age"), histogram=AGES[:16])
    assert found.estimate.min() >= 0
    rows = [one for one in found.candidates if one.rmse is not None]
    assert [one.rmse for one in rows] == sorted(one.rmse for one in rows)  # type: ignore[type-var]
    assert rows[0].chosen and rows[0].why.startswith("least expected error")
    assert {"identity", "hierarchical", "wavelet", "tree"} <= {one.strategy for one in found.candidates}
    assert "Expected error of a query" in found.explain() and "times the error" in found.explain()


def test_any_further_question_is_free_and_has_its_own_error() -> None:
    found = answered("tree")
    one = found.query("10 <= age < 25")
    assert one.values == pytest.approx(found.estimate[10:25].sum())
    assert found.query((10, 25)).values == found.query({"age": (10, 25)}).values == one.values
    vector = np.zeros(64)
    vector[10:25] = 1
    assert found.query(vector).standard_errors == one.standard_errors
    assert one.standard_errors == pytest.approx(math.sqrt(found.estimator.variance(vector)), rel=1e-6)
    assert one.lower <= one.values <= one.upper and one.lower >= 0
    assert found.query("10 <= age < 25", confidence=0.5).upper < one.upper
    with pytest.raises((InvalidValue, InvalidExpression)):
        found.query("income < 3")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["identity", "tree", "wavelet"])
def test_intervals_hold_as_often_as_they_say(strategy: str) -> None:
    """80% intervals of one cell and of a range: fewer than 94 or more than 141 of 150 is less likely than one in a
    million (binomial), and intervals half as wide would hold in some 83."""
    answers = [answered(strategy, seed, epsilon=0.3, confidence=0.8) for seed in range(150)]
    for question, truth in (("age = 7", AGES[7]), ("10 <= age < 40", AGES[10:40].sum())):
        ends = [(one.lower, one.upper) for one in (answer.query(question) for answer in answers)]
        inside = sum(low <= truth <= high for low, high in ends)
        assert 94 <= inside <= 141, (question, inside)


@pytest.mark.slow
def test_several_axes_are_answered_through_products() -> None:
    workload = workloads.product(workloads.prefix(16, column="age"), workloads.identity(3, column="sex"))
    table = np.random.default_rng(0).poisson(30, (16, 3))
    for strategy in ("identity", "tree", "auto"):
        found = answered(strategy, workload=workload, histogram=table)
        assert found.estimate.shape == (16, 3)
        assert np.max(np.abs(found.answers - workload.answers(table)) / found.standard_errors) < 8
        asked = found.query("age < 4 and sex = 1")
        assert asked.values == pytest.approx(found.estimate[:4, 1].sum())


def test_marginals_are_weighed_for_what_they_are() -> None:
    workload = workloads.marginals((2, 2, 2, 2), way=2)
    found = answered("auto", workload=workload, histogram=np.full((2, 2, 2, 2), 50), epsilon=0.5)
    assert {"identity", "marginals", "fourier"} <= {one.strategy for one in found.candidates}
    assert found.answers.shape == (24,)


def test_everything_can_be_written_down() -> None:
    found = answered("tree", integers=True)
    told = json.loads(found.to_json())
    assert told["strategy"] == "tree" and len(told["answers"]) == 64
    assert Event.from_dict(told["event"]) == found.event
    assert told["answers"][3]["query"] == "age < 4"
    frame = found.to_frame()
    assert list(frame.columns) == ["query", "answer", "standard_error"] and len(frame) == len(found) == 64
    assert "age < 8" in repr(found) and "... and 56 more" in repr(found)
    assert found.plot().to_dict()["title"].startswith("64 answers through tree")


def test_a_union_is_told_in_errors_of_its_queries_whatever_its_weights() -> None:
    parts = workloads.prefix(64), workloads.total(64)
    weighted = answered("identity", workload=workloads.union(*parts, weights=(1.0, 100.0)))
    plain = answered("identity", workload=workloads.union(*parts))
    assert weighted.rmse == pytest.approx(plain.rmse)
    assert weighted.rmse == pytest.approx(math.sqrt(np.mean(weighted.standard_errors**2)))


def test_a_query_that_was_not_measured_is_refused_not_guessed() -> None:
    found = answered("tree", workload=workloads.total(64))
    assert found.query("all rows").standard_errors < 2
    with pytest.raises(InvalidValue, match="did not measure"):
        found.query("x < 3")


def test_candidates_print_as_a_table() -> None:
    table = Candidates([Candidate("a", 1.5, "best", True), Candidate("b", None, "no")])
    assert str(table).splitlines()[1].startswith("* a")
    assert pickle.loads(pickle.dumps(table)) == table


def test_counts_written_as_doubles_are_counts() -> None:
    found = answer_workload(np.array([3.0, 0.0, 5.0]), workloads.prefix(3), epsilon=50.0, strategy="identity")
    assert found.answers.tolist() == [3.0, 3.0, 8.0]


@pytest.mark.parametrize("size", [2.0**53 - 1, 2.0**53, 2.0**80])
def test_no_count_is_too_large_for_an_answer(size: float) -> None:
    """A refusal from some count on would tell neighbours apart."""
    found = answer_workload(np.array([size, 0.0]), workloads.prefix(2), epsilon=50.0, strategy="identity")
    assert found.answers.tolist() == [min(size, 2.0**53)] * 2


def test_a_branching_is_written_in_digits() -> None:
    with pytest.raises(InvalidValue, match="must be one of"):
        answer_workload([1, 2], workloads.prefix(2), epsilon=1.0, strategy="hierarchical-²")


@pytest.mark.parametrize("strategy", ["tree", "hierarchical"])
@pytest.mark.parametrize(("n", "pairs"), [(100, [(0, 50), (50, 100)]), (1024, [(10, 500)])])
def test_ranges_of_whole_blocks_need_no_finer_level(strategy: str, n: int, pairs: list[tuple[int, int]]) -> None:
    found = answered(strategy, workload=workloads.ranges(n, pairs), histogram=np.full(n, 40), epsilon=20.0)
    truth = np.array([40.0 * (high - low) for low, high in pairs])
    assert np.all(np.abs(found.answers - truth) <= 1e-6 + 30 * found.standard_errors)
    assert found.rmse < answered("identity", workload=found.workload, histogram=np.full(n, 40)).rmse


@pytest.mark.parametrize("n", [1, 4, 16])
def test_an_optimised_strategy_is_no_worse_than_cells_or_a_tree(n: int) -> None:
    workload = workloads.all_ranges(n)
    found = answered("optimised", workload=workload, histogram=[1] * n)
    plain = [answered(name, workload=workload, histogram=[1] * n).rmse for name in ("identity", "tree")]
    assert found.rmse <= min(plain) * (1 + 1e-9)
    if n == 16:
        assert found.strategy == "tree" and "no search does better than tree" in found.explain()


@pytest.mark.slow
def test_a_strategy_handed_over_gets_the_noise_it_was_made_for() -> None:
    workload = workloads.marginals((3, 4, 5, 2), way=2)
    cells = np.ones((3, 4, 5, 2), dtype=int)
    for norm, name in (("l1", "Laplace"), ("l2", "Gaussian")):
        strategy = find("marginals", workload, norm)  # type: ignore[arg-type]
        found = answered(strategy, workload=workload, histogram=cells, delta=1e-9)
        assert name in repr(found.event) and found.cost.upper <= 1.0
        pure = answered(strategy, workload=workload, histogram=cells)
        assert "Laplace" in repr(pure.event)


@pytest.mark.slow
def test_what_plus_minus_means_is_said_and_what_the_look_cost() -> None:
    found = answered("auto", workload=workloads.prefix(256), histogram=[3] * 256, epsilon=0.1, confidence=0.9)
    assert "± is one standard error; query(...) gives an interval of 90%" in repr(found)
    first, note = str(found.query((3, 20))).splitlines()
    assert first.endswith("(90%)") and "outside the interval" in note  # buckets may hide a spike
    part = PILOT_PART + (0 if found.strategy == "refined" else SHAPE_PART)
    assert f"Of epsilon = 0.1, {0.1 * float(part):.4g} went to a noisy number of rows" in found.explain()
    joined = answered("dawa", workload=workloads.prefix(256), histogram=[3] * 256, epsilon=0.1)
    assert "Of epsilon = 0.1, 0.025 went to choosing" in joined.explain()
    assert answered("tree").look == ""


def test_too_many_answers_are_refused_with_the_question_that_is_not() -> None:
    with pytest.raises(InvalidValue, match=r"found\.query\(\(lo, hi\)\) answers any one"):
        workloads.all_ranges(2**20).answers(np.ones(2**20))

"""The auditor itself: its bounds hold as often as they say, come close, and survive whatever a mechanism returns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing import audit, compose
from farthing.auditing import AuditReport
from farthing.auditing.audit import LEAST_SAMPLES
from farthing.auditing.mechanism_targets import WholeSession
from farthing.auditing.self_test import LEAST_ERROR, Check, Outcome, all_checks, examine
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, DiscreteLaplaceNoise, GaussianNoise


def integer_laplace(seed: int, scale: float = 1.0) -> Any:
    """A batch of discrete Laplace noise from an explicit seed."""
    generator, stop = np.random.default_rng(seed), -math.expm1(-1 / scale)

    def batch(value: int, count: int) -> NDArray[np.int64]:
        return value + generator.geometric(stop, count) - generator.geometric(stop, count)

    return batch


def audited(batch: Any, claim: Any, neighbours: Any = (0, 1), **options: Any) -> AuditReport:
    return audit(batch, claim, neighbours, batch=batch, workers=1, **options)


@pytest.mark.slow
def test_a_bound_exceeds_the_truth_no_more_often_than_its_confidence_allows() -> None:
    """At confidence 0.9, 200 audits may exceed the truth 20 times; 43 or more has a chance below 1e-6."""
    wrong = sum(
        audited(integer_laplace(seed), 1.0, samples=1_000, confidence=0.9).epsilon_lower > 1.0 for seed in range(200)
    )
    assert wrong < 43


def test_an_unfair_auditor_would_fail_the_same_check() -> None:
    """Power: choosing the event on the samples that judge it exceeds the truth far more often."""
    wrong = 0
    for seed in range(200):
        draw = integer_laplace(seed)
        first, second = draw(0, 1000), draw(1, 1000)
        ratios = [(np.mean(second >= t) + 1e-9) / (np.mean(first >= t) + 1e-9) for t in range(1, 6)]
        wrong += math.log(max(ratios)) > 1.0
    assert wrong > 43


@pytest.mark.slow
def test_a_million_samples_come_within_five_percent() -> None:
    report = audited(integer_laplace(1), DiscreteLaplaceNoise(1.0), samples=1_000_000)
    assert 0.95 < report.epsilon_lower <= 1.0
    assert not report.violation
    assert 1.0 < report.detectable < 1.05


@pytest.mark.parametrize("seed", range(5))
def test_noise_a_tenth_too_small_is_caught_with_sixty_thousand_samples(seed: int) -> None:
    report = audited(integer_laplace(seed, 0.9), 1.0, samples=60_000, confidence=0.99)
    assert report.violation and report.epsilon_lower > 1.0
    assert not audited(integer_laplace(seed, 1.0), 1.0, samples=60_000, confidence=0.9999999).violation


@pytest.mark.slow
def test_a_gaussian_claim_is_compared_as_a_curve() -> None:
    generator = np.random.default_rng(7)

    def gaussian(value: float, count: int) -> NDArray[np.float64]:
        return np.round(value + generator.normal(0, 1, count), 2)

    claim = GaussianNoise(1.0)
    assert not audited(gaussian, claim, samples=100_000, confidence=0.999999).violation
    worse = audited(gaussian, GaussianNoise(1.2), samples=100_000, confidence=0.999)
    assert worse.violation and worse.epsilon_lower > worse.claimed_epsilon
    assert not audited(gaussian, compose([claim, 0.1]), samples=20_000, confidence=0.999999).violation


@pytest.mark.slow
def test_a_leak_of_delta_is_seen() -> None:
    """With probability 0.05 the table itself comes out; a delta of 0.01 was claimed."""
    generator = np.random.default_rng(3)

    def leaky(value: int, count: int) -> list[Any]:
        leaks = generator.random(count) < 0.05
        return [value if leak else None for leak in leaks]

    assert audited(leaky, (0.5, 0.01), samples=20_000, confidence=0.999).violation
    assert not audited(leaky, (0.5, 0.05), samples=20_000, confidence=0.999999).violation


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (ValueError("no such row"), KeyError("no such row"), "exception"),
        (ValueError("age 41"), ValueError("age 42"), "text of the exception"),
        (math.nan, 1.0, ""),
        ({"a": 1}, {"a": 1, "b": 1}, "key"),
        ([1, 2], [1, 2, 3], ""),
        ("yes", "no", "the output is one of"),
        (b"0", None, ""),
        ({1, 2}, {1}, ""),
        (10**400, 10**401, ""),
        (2**70, 2**70 + 1, ""),
        (np.arange(1000), np.arange(1000)[::-1], ""),
        ((1, [2, {"x": 3}]), (1, [2, {"x": 4}]), ""),
    ],
)
def test_every_kind_of_output_gives_a_leak_away(first: object, second: object, said: str) -> None:
    def tell(value: int) -> object:
        answer = first if value == 0 else second
        if isinstance(answer, Exception):
            raise answer
        return answer

    if isinstance(first, Exception):  # an audit of nothing but exceptions is refused, so one call in ten answers
        calls = iter(range(10**9))
        report = audit(lambda value: 0 if next(calls) % 10 == 0 else tell(value), 1.0, (0, 1), samples=2_000, workers=1)
    else:
        report = audit(tell, 1.0, (0, 1), samples=2_000, workers=1)
    assert report.violation, report
    assert said in report.event


def test_identical_neighbours_and_constant_outputs_show_nothing() -> None:
    assert audited(integer_laplace(0), 0.0, (5, 5), samples=20_000, confidence=0.9999999).violation is False
    report = audit(lambda _: object(), 0.0, (0, 1), samples=1_000, workers=1)
    assert not report.violation and report.epsilon_lower == 0


def test_the_pair_that_leaks_is_found_among_others_and_in_either_direction() -> None:
    def first_only(value: int, count: int) -> NDArray[np.int64]:
        return np.asarray(integer_laplace(value)(5 if value == 3 else 0, count))

    for pair in ((0, 3), (3, 0)):
        report = audited(first_only, 1.0, [(0, 1), pair, (1, 2)], samples=20_000, confidence=0.999)
        assert report.violation and report.neighbours == pair


def test_a_report_speaks_plainly_and_never_vouches() -> None:
    good, bad = (
        audited(integer_laplace(0), 1.0, samples=20_000),
        audited(integer_laplace(0), 0.1, samples=20_000),
    )
    for report in (good, bad):
        assert "private" not in str(report).lower()
        assert report.samples == 20_000 and report.seconds > 0
        data = report.to_dict()
        assert data["violation"] == report.violation and data["event"] == report.event
    assert str(good).startswith("No contradiction") and "no proof" in str(good)
    assert str(bad).startswith("The claim (epsilon = 0.1) is contradicted")
    with pytest.raises(AttributeError):
        good.violation = True  # type: ignore[misc]


def test_the_region_holds_error_rates_and_the_bound_is_among_the_worse() -> None:
    report = audited(integer_laplace(0), 1.0, samples=100_000)
    assert all(0 <= rate <= 1 for point in report.region for rate in point)
    alarms, missed = report.bound
    assert any(a <= alarms and m <= missed for a, m in report.region)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"samples": 0}, "samples"),
        ({"samples": 99}, "samples"),
        ({"samples": True}, "samples"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"workers": 0}, "workers"),
        ({"batch": 3}, "batch"),
        ({"batch": lambda value, count: [value]}, "batch"),
        ({"claim": -1.0}, "charges[0]"),
        ({"claim": "epsilon"}, "claim"),
        ({"claim": None}, "claim"),
        ({"neighbours": 3}, "neighbours"),
        ({"neighbours": []}, "neighbours"),
        ({"neighbours": [0, 1]}, "neighbours"),
        ({"mechanism": 3}, "mechanism"),
        ({"mechanism": lambda value: value.no_such_thing}, "mechanism"),
    ],
)
def test_what_cannot_be_audited_is_refused(options: dict[str, Any], name: str) -> None:
    arguments: dict[str, Any] = {"mechanism": lambda v: v, "claim": 1.0, "neighbours": (0, 1), **options}
    with pytest.raises(InvalidValue) as refusal:
        audit(**arguments)
    assert refusal.value.name == name


def test_progress_is_told_up_to_the_end() -> None:
    shares: list[float] = []
    audited(integer_laplace(0), 1.0, samples=10_000, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_a_claim_of_nothing_is_contradicted_by_anything() -> None:
    assert audited(integer_laplace(0), ApproxDP(0.0), samples=20_000, confidence=0.999).violation
    assert audited(integer_laplace(0), [], samples=20_000, confidence=0.999).violation


PLANTED = [check for check in all_checks() if check.kind == "planted bug"]


def test_there_are_bugs_of_many_kinds() -> None:
    assert len(PLANTED) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("check", PLANTED, ids=lambda check: check.name)
def test_every_planted_bug_is_caught(check: Check) -> None:
    """At the confidence that each has in a run of all of them."""
    [outcome] = examine([check], confidence=1 - 0.001 / len(all_checks()))
    assert outcome.verdict == "caught"


def test_an_auditor_that_sees_nothing_would_miss_the_planted_bugs() -> None:
    """A self-test that cannot fail is worthless: if it takes 100 samples for enough, the subtle bugs are missed."""
    [check] = [check for check in all_checks() if "x 0.9" in check.name]
    [outcome] = examine([replace(check, samples=100)])
    assert (outcome.good, outcome.shortfall, outcome.verdict) == (False, "", "MISSED")


def test_a_planted_bug_without_the_samples_it_needs_is_not_called_missed() -> None:
    [check] = [check for check in all_checks() if "x 0.9" in check.name]
    [outcome] = examine([check], samples=100)
    assert not outcome.report.violation
    assert outcome.good and outcome.shortfall == outcome.verdict == "needs 60,000 samples"
    [outcome] = examine([replace(check, samples=1_000)], confidence=1 - 1e-12)
    assert outcome.good and outcome.verdict == "needs less confidence"


def test_a_planted_bug_that_fewer_samples_show_is_caught() -> None:
    [check] = [check for check in all_checks() if check.name == "integer wrap-around"]
    [outcome] = examine([check], samples=check.samples // 4)
    assert outcome.good and outcome.verdict == "caught"


def test_the_whole_examination_leaves_each_check_an_error_at_which_bugs_are_judged() -> None:
    assert 0.001 / len(all_checks()) > LEAST_ERROR


def test_a_mechanism_that_breaks_its_event_is_called_out() -> None:
    [check] = [check for check in all_checks() if check.name == "discrete Laplace"]
    [outcome] = examine([replace(check, batch=integer_laplace(0, 0.5), samples=40_000)])
    assert isinstance(outcome, Outcome)
    assert (outcome.good, outcome.verdict) == (False, "CONTRADICTED")


def test_every_mechanism_of_farthing_is_examined() -> None:
    from farthing import mechanisms
    from farthing.mechanisms import Mechanism

    examined = {type(check.mechanism) for check in all_checks() if check.kind == "mechanism"}
    if any(check.name.startswith("key discovery") for check in all_checks()):  # with the bound on keys before it
        examined.add(mechanisms.WeightedKeySelection)
    public = {
        value
        for name in mechanisms.__all__
        if isinstance(value := getattr(mechanisms, name), type)
        and issubclass(value, Mechanism)
        and value is not Mechanism
    }
    assert public <= examined


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", [check for check in all_checks() if check.kind == "mechanism"], ids=lambda check: check.name
)
def test_no_mechanism_of_farthing_is_contradicted(check: Check) -> None:
    """At a confidence that is wrong once in 1e10 runs; whole sessions take a while each, so there are fewer of them."""
    [outcome] = examine([check], confidence=1 - 1e-10, samples=_samples(check))
    assert outcome.good


def _samples(check: Check) -> int:
    """A tenth of what a check takes, or the least where that shows nothing.

    An event that never came in n samples may have a rate of log(1e10) / n: where exp(epsilon) times that is above 1, no
    session of a pure claim can be contradicted, and it is seen only that it can be audited. The faults of those have
    tests of their own, in test_adaptive_sessions.py.
    """
    wanted = max(150, min(check.samples // 10, 2_000))
    if not isinstance(check.mechanism, WholeSession):
        return wanted
    epsilon = compose([check.claim]).epsilon_at(0.0).upper
    if epsilon == math.inf:  # a claim with a delta: an output that only one side has is enough
        return wanted
    return wanted if wanted > math.exp(epsilon) * math.log(1e10) else LEAST_SAMPLES


def test_only_sessions_that_so_few_samples_cannot_contradict_are_cut_short() -> None:
    cut = [check for check in all_checks() if check.kind == "mechanism" and _samples(check) == LEAST_SAMPLES]
    assert {check.name for check in cut} == {
        "query session, noisy start",
        "reusable holdout, two corrections",
        "synthesis",
    }

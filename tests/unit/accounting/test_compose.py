"""A composition as a value: engines and reasons, Renyi divergences, digits kept, bad input in every place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import Bounds, compose
from farthing.accounting.compose import Composition
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)
from strategies import epsilon_lists, epsilons, pairs, target_deltas

# --- the upper end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize(
    "charges",
    [
        [],
        [0.1, (0.2, 1e-12)],
        [LaplaceNoise(2.0), GaussianNoise(4.0)],
        [BoundedRange(0.1), BoundedRange(0.1), BoundedRange(0.1), GaussianNoise(4.0)],
    ],
    ids=["nothing", "pairs", "noise", "choices"],
)
def test_the_upper_end_alone_is_that_of_both_ends_whichever_is_asked_first(charges: list[Any], delta: float) -> None:
    first, second = compose(charges), compose(charges)
    upper = first.epsilon_upper(delta)
    assert upper == second.epsilon_at(delta).upper == first.epsilon_at(delta).upper == second.epsilon_upper(delta)


def test_the_upper_end_of_a_leak_beyond_delta_is_infinite() -> None:
    assert math.isinf(compose([(1.0, 1e-5)]).epsilon_upper(1e-6))
    with pytest.raises(InvalidValue, match="delta"):
        compose([1.0]).epsilon_upper(math.nan)


# --- engines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charges", "delta", "name"),
    [
        ([], 1e-6, "closed form"),
        ([(0.1, 1e-3)], 1e-6, "closed form"),
        ([0.1, 0.2], 0.0, "closed form"),
        ([0.1, 0.25, math.pi], 0.5, "atoms"),
        ([0.1] * 100, 1e-6, "lattice"),
        (np.round(np.random.default_rng(12).uniform(0.01, 0.5, 300), 2), 1e-6, "lattice"),
        (np.random.default_rng(12).uniform(0.01, 0.5, 300), 1e-6, "contour"),
        ([LaplaceNoise(2.0)] * 5, 1e-3, "contour"),
        ([GaussianNoise(2.0)], 1e-6, "gaussian"),
        ([DiscreteLaplaceNoise(4.0)] * 60, 1e-6, "lattice"),
        ([DiscreteGaussianNoise(4.0)], 1e-6, "grid"),
        ([Sampled(GaussianNoise(1.0), 0.1)], 1e-6, "grid"),
    ],
)
def test_the_engine_and_its_reason_are_told(charges: Any, delta: float, name: str) -> None:
    composition = compose(charges)
    choice = composition.engine_at(delta)
    assert choice.name == name and choice.reason.endswith(".")
    told = composition.explain(delta)
    assert f"the engine is {name}: {choice.reason}" in told
    assert told.startswith(f"{composition.k:,} charge")


def test_an_explanation_counts_and_names_what_is_composed() -> None:
    told = compose([(0.1, 1e-9)] * 3 + [LaplaceNoise(1.0), GaussianNoise(2.0), GaussianNoise(3.0)]).explain(1e-6)
    assert "6 charges" in told and "3 x (epsilon, delta) mechanisms (1 distinct epsilon)" in told
    assert "1 x Laplace noise" in told and "2 x Gaussian noise" in told
    assert "1e-06" in told and "0.000" not in told
    assert compose([0.1]).explain().startswith("1 charge: ")
    assert compose([]).explain().startswith("0 charges: nothing.")


# --- a value -----------------------------------------------------------------------------------------------------


def test_a_composition_cannot_be_changed() -> None:
    composition = compose([0.1, 0.2])
    for name in ("loss", "k", "pricing", "unheard_of"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            setattr(composition, name, 1)


@pytest.mark.parametrize("size", [3, 60])
def test_arrays_changed_afterwards_change_nothing(size: int) -> None:
    values, leaked, counts = (
        np.random.default_rng(12).uniform(0.1, 0.2, size),
        np.full(size, 1e-12),
        np.full(size, 2),
    )
    given, untouched = (values, leaked, counts), tuple(part.copy() for part in (values, leaked, counts))
    composition, twin = compose(*given), compose(*untouched)
    listed = [[0.1, 1e-9], [0.2, 0.0]]
    from_list = compose(listed)
    for part in given:
        part[:] = 0
    listed[0][0] = 5.0
    assert composition.epsilon_at(1e-6) == twin.epsilon_at(1e-6)
    assert composition.k == 2 * size
    assert from_list.epsilon_at(1e-6) == compose([(0.1, 1e-9), (0.2, 0.0)]).epsilon_at(1e-6)


@pytest.mark.slow
def test_asking_leaves_no_trace() -> None:
    values = np.random.default_rng(12).uniform(0.01, 0.3, 120)
    asked, fresh = compose(values), compose(values)
    asked.epsilon_at(1e-3)
    asked.delta_at(2.0)
    asked.epsilon_at(1e-30, proof=False)
    assert asked.epsilon_at(1e-9) == fresh.epsilon_at(1e-9)
    assert asked.plus([0.1]).epsilon_at(1e-9, proof=False) == fresh.plus([0.1]).epsilon_at(1e-9, proof=False)


@pytest.mark.slow
@settings(max_examples=30)
@given(pairs(max_size=4, min_size=1), target_deltas(0.5))
def test_every_order_of_few_charges_gives_one_answer(charges: list[tuple[float, float]], delta: float) -> None:
    answers = [compose(list(order)).epsilon_at(delta) for order in permutations(charges)]
    assert max(bounds.lower for bounds in answers) <= min(bounds.upper for bounds in answers)
    assert len({bounds.upper == math.inf for bounds in answers}) == 1
    if answers[0].upper < math.inf:
        assert max(b.upper for b in answers) - min(b.upper for b in answers) <= 1e-12 * (1 + answers[0].upper)


@pytest.mark.slow
@settings(max_examples=40)
@given(pairs(max_size=4), pairs(max_size=4), pairs(max_size=4), target_deltas(0.5))
def test_merging_is_associative(a: list[Any], b: list[Any], c: list[Any], delta: float) -> None:
    left = compose(a).merge(compose(b)).merge(compose(c))
    right = compose(a).merge(compose(b).merge(compose(c)))
    plus, whole = compose(a).plus(b).plus(c), compose([*a, *b, *c])
    answers = [each.epsilon_at(delta) for each in (left, right, plus, whole)]
    assert {each.k for each in (left, right, plus, whole)} == {len(a) + len(b) + len(c)}
    assert max(bounds.lower for bounds in answers) <= min(bounds.upper for bounds in answers)


@pytest.mark.slow
@settings(max_examples=60)
@given(epsilon_lists(max_size=10), epsilons(), target_deltas(0.5))
def test_more_and_larger_charges_never_cost_less(values: list[float], more: float, delta: float) -> None:
    base = compose(values).epsilon_at(delta)
    for other in (compose(values).plus([more]), compose([e + more for e in values]), compose([*values, 0.0])):
        assert other.epsilon_at(delta).upper >= base.lower
        assert other.epsilon_at(delta).estimate >= base.estimate - 1e-10
        assert other.delta_at(1.0).upper >= compose(values).delta_at(1.0).lower
    assert compose(values).epsilon_at(delta / 2).upper >= base.lower


@pytest.mark.slow
@pytest.mark.parametrize(
    "charges",
    [
        [0.3] * 5,
        np.random.default_rng(12).uniform(0.05, 0.9, 9),
        np.full(200, 0.05),
        np.random.default_rng(12).uniform(0.01, 0.4, 150),
        [GaussianNoise(1.5)] * 2,
    ],
    ids=["few", "atoms", "lattice", "contour", "gaussian"],
)
def test_epsilon_and_delta_undo_each_other(charges: Any) -> None:
    composition = compose(charges)
    for delta in (0.05, 1e-5, 1e-12):
        epsilon = composition.epsilon_at(delta)
        assert composition.delta_at(epsilon.upper).lower <= delta
        assert composition.delta_at(epsilon.lower).upper >= delta
        assert composition.delta_at(epsilon.estimate).estimate == pytest.approx(delta, rel=1e-4)


# --- Renyi divergences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.001, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("alpha", [1.0001, 1.5, 2.0, 10.0, 500.0])
def test_the_divergence_of_a_response_is_its_definition(epsilon: float, alpha: float) -> None:
    """log(p^a q^(1-a) + q^a p^(1-a)) / (a - 1), written so that nothing overflows."""
    p = 1 / (1 + math.exp(-epsilon))
    first = epsilon * (alpha - 1) + math.log(p)
    second = -epsilon * alpha + math.log(p)
    exact = (first + math.log1p(math.exp(second - first))) / (alpha - 1)
    bounds = compose([epsilon]).renyi_at(alpha)
    assert bounds.estimate == pytest.approx(exact, rel=1e-9, abs=1e-11)
    assert bounds.lower <= bounds.estimate <= bounds.upper and bounds.proven
    assert compose([epsilon], counts=[7]).renyi_at(alpha).estimate == pytest.approx(7 * bounds.estimate, rel=1e-12)


def test_the_divergence_runs_from_the_mean_loss_to_the_largest() -> None:
    composition = compose([0.5, 1.25])
    mean = sum(e * math.tanh(e / 2) for e in (0.5, 1.25))
    assert composition.renyi_at(1 + 1e-7).estimate == pytest.approx(mean, rel=1e-6)
    assert composition.renyi_at(1e9).estimate == pytest.approx(1.75, rel=1e-7)
    orders = [composition.renyi_at(1 + 10.0**k).upper for k in range(-3, 6)]
    assert orders == sorted(orders) and orders[-1] <= 1.75 * (1 + 1e-12)


def test_divergences_of_noise_have_their_closed_forms() -> None:
    """Gaussian: alpha / (2 s^2). Laplace: Mironov, arXiv:1702.07476, Proposition 6."""
    alpha, b = 3.0, 2.0
    assert compose([GaussianNoise(b)]).renyi_at(alpha).estimate == pytest.approx(alpha / (2 * b * b))
    up, down = alpha / (2 * alpha - 1), (alpha - 1) / (2 * alpha - 1)
    exact = math.log(up * math.exp((alpha - 1) / b) + down * math.exp(-alpha / b)) / (alpha - 1)
    assert compose([LaplaceNoise(b)]).renyi_at(alpha).estimate == pytest.approx(exact, rel=1e-12)
    both = compose([GaussianNoise(b), LaplaceNoise(b)]).renyi_at(alpha)
    assert both.estimate == pytest.approx(exact + alpha / (2 * b * b), rel=1e-12)


def test_any_leak_makes_the_divergence_infinite() -> None:
    assert compose([0.1, (0.1, 1e-300)]).renyi_at(2.0) == Bounds(math.inf, math.inf)


# --- widths and digits -------------------------------------------------------------------------------------------


def priced(composition: Composition, *deltas: float) -> list[Bounds]:
    found = [composition.epsilon_at(delta) for delta in deltas]
    for bounds in found:
        assert bounds.proven and 0 < bounds.lower <= bounds.estimate <= bounds.upper
    return found


def widest(found: list[Bounds]) -> float:
    return max(bounds.width for bounds in found)


DELTAS = (1e-9, 1e-30, 2.0**-100, 1e-300)


@pytest.mark.parametrize("count", [1, 12, 26, pytest.param(40, marks=pytest.mark.slow)])
def test_up_to_forty_reals_are_known_to_nine_digits(count: int) -> None:
    assert widest(priced(compose(np.random.default_rng(12).uniform(0.001, 5, count)), *DELTAS)) <= 1e-9


@pytest.mark.parametrize(
    ("count", "digits"),
    [(41, 1), (60, 2), (100, 3), (300, 4), (1000, 2), (10_000, 3)]
    + [pytest.param(*case, marks=pytest.mark.slow) for case in ((41, 6), (60, 4), (100, 6), (1000, 6), (10_000, 6))],
)
def test_decimals_are_known_to_nine_digits(count: int, digits: int) -> None:
    whole = np.random.default_rng(12).integers(1, max(2, 10**digits // 2), count)
    composition = compose(whole / 10**digits)
    found = priced(composition, 1e-9, 1e-30)
    assert widest(found) <= 1e-9
    quick = composition.epsilon_at(1e-9, proof=False)
    # An estimate claims no more than its margin; between atoms and lattices (41 distinct, six digits) that is 1e-5.
    assert abs(quick.estimate - found[0].estimate) <= max(1e-9, quick.width / 2)


@pytest.mark.parametrize(
    ("epsilon", "count"),
    [(1.0, 41), (0.001, 1000), (0.1, 10_000), (1.0, 10**6), (0.001, 10**6), (math.pi / 40, 10**5)],
)
def test_equal_charges_are_known_to_nine_digits(epsilon: float, count: int) -> None:
    composition = compose([epsilon], counts=[count])
    *found, smallest = priced(composition, *DELTAS)
    assert widest(found) <= 1e-9
    # At 1e-300 a million ones cost 470,000: 1e-9 would be 17 units in the last place.
    assert smallest.width <= max(1e-9, 2.0**-47 * smallest.upper)


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, 1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_any_reals_are_known_to_six_digits(count: int) -> None:
    composition = compose(np.random.default_rng(12).uniform(0.01, 0.5, count))
    found = priced(composition, *DELTAS)
    assert widest(found) <= 1e-6
    assert abs(composition.epsilon_at(1e-9, proof=False).estimate - found[0].estimate) <= 1e-10


@pytest.mark.slow
def test_a_million_reals_are_known_to_five_digits() -> None:
    composition = compose(np.random.default_rng(12).uniform(0.0001, 0.01, 10**6))
    proven, quick = composition.epsilon_at(1e-9), composition.epsilon_at(1e-9, proof=False)
    assert proven.width <= 1e-5
    assert abs(quick.estimate - proven.estimate) <= 1e-9 and quick.lower <= proven.upper and proven.lower <= quick.upper


def test_small_deltas_are_neither_zero_nor_lost() -> None:
    composition = compose([0.1], counts=[100])
    for x in (5.0, 8.0, 9.9):
        bounds = composition.delta_at(x)
        assert bounds.lower > 0 and bounds.width <= 1e-9 * bounds.upper
    assert compose([1.0], counts=[1000]).delta_at(980.0).upper > 0


# --- bad input, everywhere ---------------------------------------------------------------------------------------

BAD: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -1.0,
    True,
    np.True_,
    "1",
    b"1",
    None,
    1j,
    [1.0],
    {},
    object(),
]


@pytest.mark.parametrize(
    "ask",
    [
        lambda bad: compose([bad]),
        lambda bad: compose([0.1, bad]),
        lambda bad: compose([(bad, 0.0)]),
        lambda bad: compose([(0.1, bad)]),
        lambda bad: compose([0.1], counts=[bad]),
        lambda bad: compose([RandomizedResponse(0.1)], counts=[bad]),
        lambda bad: compose([0.1]).plus([bad]),
        lambda bad: compose([0.1]).epsilon_at(bad),
        lambda bad: compose([0.1]).epsilon_at(bad, proof=False),
        lambda bad: compose([0.1]).delta_at(bad),
        lambda bad: compose([0.1]).renyi_at(bad),
        lambda bad: compose([0.1]).engine_at(bad),
        lambda bad: compose([0.1]).explain(bad),
        lambda bad: compose([0.1]).merge(bad),
    ],
    ids=lambda _: "",
)
@pytest.mark.parametrize("bad", BAD, ids=[type(bad).__name__ for bad in BAD])
def test_bad_values_are_refused_wherever_they_are_put(ask: Callable[[Any], Any], bad: Any) -> None:
    with pytest.raises(InvalidValue) as refusal:
        ask(bad)
    assert "must " in refusal.value.rule and f"{refusal.value.name}=" in str(refusal.value)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    "charges",
    [
        *(bad for bad in BAD if not isinstance(bad, list)),
        np.array(0.1),
        np.array(0.1, dtype=object),
        np.zeros((2, 2, 2)),
        np.zeros((2, 3)),
        np.array([True]),
        np.array(["0.1"]),
        np.array([1j]),
        np.array([None], dtype=object),
        np.array([1], dtype="M8[s]"),
        np.zeros(2, dtype=[("a", float)]),
        np.ma.array([0.1, 0.2], mask=[0, 1]),
        [[0.1, 0.2], [0.1]],
        [[[0.1, 0.2]]],
        [()],
        [10**400],
        [0.1, 10**400],
        [Fraction(10**400)],
        ["a"],
        ApproxDP,
        ApproxDP(0.1),
    ],
    ids=lambda charges: type(charges).__name__,
)
def test_what_is_no_list_of_charges_is_refused(charges: Any) -> None:
    with pytest.raises(InvalidValue, match="charges"):
        compose(charges)


@pytest.mark.parametrize("name", ["deltas", "counts"])
@pytest.mark.parametrize(
    "beside",
    [
        [0, 0, 0],
        [0],
        [],
        [[0], [0]],
        [[0], [0, 0]],
        np.zeros((2, 1)),
        ["a", "b"],
        [None, None],
        [True, False],
        np.array([True, False]),
        "00",
        b"00",
        True,
        {0: 0, 1: 1},
        10**400,
        [10**400, 0],
        [1j, 0],
        object(),
        np.array(["a", "b"]),
        np.ma.array([0, 0], mask=[0, 1]),
        math.nan,
        -1,
        1.5,
        2**70,
    ],
    ids=lambda beside: type(beside).__name__,
)
def test_what_does_not_fit_beside_the_charges_is_refused(name: str, beside: Any) -> None:
    with pytest.raises(InvalidValue, match=name):
        compose([0.1, 0.2], **{name: beside})


def test_leaks_must_be_below_one_and_total_counts_below_two_to_the_53() -> None:
    for bad in (1, 1.0, [0.0, 1.0], np.array([1.0, 0.0])):
        with pytest.raises(InvalidValue, match="must be >= 0 and < 1"):
            compose([0.1, 0.2], bad)
    for bad in (2**53, [2**52, 2**52], [2**53, 0]):
        with pytest.raises(InvalidValue, match="2\\^53"):
            compose([0.1, 0.2], counts=bad)
    many = compose([0.1], counts=[2**52])
    with pytest.raises(InvalidValue, match="2\\^53"):
        many.merge(many)


@pytest.mark.parametrize(
    "charges",
    [
        [np.float64(0.5), 0.25],
        [np.float32(0.5), np.float16(0.25)],
        [Fraction(1, 2), Fraction(1, 4)],
        np.array([0.5, 0.25], dtype=np.float16),
        np.array([0.5, 0.25], dtype=np.longdouble),
        np.array([0.5, 0.25], dtype=object),
        (value for value in (0.5, 0.25)),
        [RandomizedResponse(0.5), DiscreteLaplaceNoise(4.0)],
        [Sampled(RandomizedResponse(0.5), 1.0), ApproxDP(0.25), Sampled(LaplaceNoise(1.0), 0.0)],
    ],
    ids=range(9),
)
def test_every_honest_form_is_taken(charges: Any) -> None:
    expected, found = compose([0.5, 0.25]).epsilon_at(1e-3), compose(charges).epsilon_at(1e-3)
    assert found.estimate == pytest.approx(expected.estimate, abs=1e-13)
    assert found.lower <= expected.upper and expected.lower <= found.upper
    assert compose(np.array([3, 2])).k == compose(np.array([3, 2], dtype=np.uint8)).k == 2


@settings(max_examples=20)
@given(st.lists(st.tuples(epsilons(), st.integers(0, 6)), max_size=6), target_deltas(0.5))
def test_counts_are_repetitions(items: list[tuple[float, int]], delta: float) -> None:
    counted = compose([e for e, _ in items], counts=[n for _, n in items])
    listed = compose([e for e, n in items for _ in range(n)])
    one, other = counted.epsilon_at(delta), listed.epsilon_at(delta)
    assert counted.k == listed.k and one.lower <= other.upper and other.lower <= one.upper

"""Key selection: parameters, hostile counts, order, and the coin that is really thrown."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from farthing.accounting import compose
from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.key_selection import KeySelection, delta_per_key


class Scripted:
    """A repeatable stream of bytes, for tests only."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def take(self, count: int, /) -> bytes:
        return self._random.randbytes(count)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["optimal", "truncated_geometric", "laplace"])
def test_the_observed_share_of_kept_keys_follows_the_stated_probability(rule: str) -> None:
    """alpha = 1e-6, and an epsilon ten percent off either way is rejected."""
    selection = KeySelection(0.8, 1e-3, rule=rule)  # type: ignore[arg-type]
    source, trials = Scripted(1), 4000
    units = [5, 7, 8, 9, 11]
    kept = dict.fromkeys(units, 0)
    for _ in range(trials):
        for key in selection._answer({n: n for n in units}, source):
            kept[key] += 1

    def p_value(claim: KeySelection) -> float:
        parts = [(kept[n], trials * claim.keep_probability(n)) for n in units]
        chi = sum((seen - mean) ** 2 / mean + (mean - seen) ** 2 / (trials - mean) for seen, mean in parts)
        return float(stats.chi2.sf(chi, len(units)))

    assert p_value(selection) > 1e-6
    for factor in (0.9, 1.1):
        assert p_value(KeySelection(0.8 * factor, 1e-3, rule=rule)) < 1e-6  # type: ignore[arg-type]


@pytest.mark.slow
def test_counts_come_with_the_keys_and_have_the_law_of_the_noise() -> None:
    selection = KeySelection(0.7, 1e-6, with_counts=True)
    assert selection.rule == "truncated_geometric"
    assert selection.threshold is not None
    source = Scripted(2)
    noise = [selection._answer({"a": 1000}, source)["a"] - 1000 for _ in range(6000)]
    reach = selection.threshold - 1
    assert max(map(abs, noise)) <= reach
    edges = [-math.inf, *range(-6, 7), math.inf]
    seen = [sum(a <= n < b for n in noise) for a, b in itertools.pairwise(edges)]

    def p_value(rate: float) -> float:
        mass = {j: math.exp(-rate * abs(j)) for j in range(-reach, reach + 1)}
        total = sum(mass.values())
        means = [6000 * sum(m for j, m in mass.items() if a <= j < b) / total for a, b in itertools.pairwise(edges)]
        return float(stats.chisquare(seen, np.array(means) * sum(seen) / sum(means)).pvalue)

    assert p_value(0.7) > 1e-6
    assert p_value(0.7 / 0.9) < 1e-6
    assert p_value(0.7 / 1.1) < 1e-6


@pytest.mark.parametrize("rule", ["optimal", "truncated_geometric", "laplace"])
def test_needed_is_the_first_count_that_reaches_the_probability(rule: str) -> None:
    selection = KeySelection(0.3, 1e-5, max_keys_per_unit=2, rule=rule)  # type: ignore[arg-type]
    for probability in (1e-9, 1e-5, 0.05, 0.5, 0.95, 0.999999):
        needed = selection.needed(probability)
        assert selection.keep_probability(needed) >= probability > selection.keep_probability(needed - 1)


def test_the_optimal_rule_keeps_at_least_as_often_as_the_others() -> None:
    best = KeySelection(0.5, 1e-6)
    others = [KeySelection(0.5, 1e-6, rule=rule) for rule in ("truncated_geometric", "laplace")]
    for units in range(80):
        assert all(best.keep_probability(units) >= other.keep_probability(units) - 1e-15 for other in others)
    assert best.needed(0.5) < others[1].needed(0.5)


def test_certainty_is_reached_or_refused() -> None:
    assert KeySelection(1.0, 1e-6).keep_probability(28) == 1.0
    truncated = KeySelection(1.0, 1e-6, rule="truncated_geometric")
    assert truncated.keep_probability(truncated.needed(1.0)) == 1.0
    with pytest.raises(InvalidValue, match="noise is unbounded"):
        KeySelection(1.0, 1e-6, rule="laplace").needed(1.0)


def test_order_of_the_input_does_not_show() -> None:
    selection = KeySelection(1.0, 1e-6)
    names = [f"key {i}" for i in range(20)]
    forward = selection.release(dict.fromkeys(names, 10**6))
    backward = selection.release(dict.fromkeys(reversed(names), 10**6))
    assert forward == backward == tuple(sorted(names))
    mixed = ["b", 3, 1.5, None, ("x", 2), ("x", 1), True, datetime.date(2020, 1, 1), b"raw", np.int64(9)]
    seen = {selection.release(dict.fromkeys(order, 10**6)) for order in (mixed, mixed[::-1])}
    assert len(seen) == 1
    numbers = [np.int64(i) for i in (5, 3, 4)]
    assert selection.release(dict.fromkeys(numbers, 10**6)) == (3, 4, 5)
    with_counts = KeySelection(1.0, 1e-6, with_counts=True)
    assert list(with_counts.release(dict.fromkeys(reversed(names), 10**6))) == sorted(names)


def test_keys_without_a_public_order_come_shuffled() -> None:
    """Subsets are ordered in part only and a repr may show an address: neither may decide the order."""
    selection, source = KeySelection(1.0, 1e-6), Scripted(3)
    keys = [frozenset({i}) for i in range(3)]
    orders = [selection._answer(dict.fromkeys(keys, 10**6), source) for _ in range(3000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-6
    assert len(selection.release({math.nan: 10**6, "x": 10**6})) == 2


def test_different_keys_of_the_same_rank_come_shuffled() -> None:
    """Sorting is stable: a nanosecond, which NumPy hands over as a bare integer, would keep its place beside it."""
    selection, source = KeySelection(1.0, 1e-6), Scripted(5)
    keys = [5, np.datetime64(5, "ns")]
    orders = [selection._answer(dict.fromkeys(keys, 10**6), source)[0] is keys[0] for _ in range(3000)]
    assert stats.binomtest(sum(orders), 3000).pvalue > 1e-6


def test_very_many_keys_per_unit_do_not_need_an_exact_power() -> None:
    selection = KeySelection(1.0, 1e-6, max_keys_per_unit=2**20, rule="laplace")
    share = Fraction(selection.keep_probability(1))
    assert share == 0 or share <= Fraction(1e-6) / 2**20
    assert delta_per_key(1e-300, 2**20) * 2**20 == pytest.approx(1e-300, rel=1e-15)


@pytest.mark.parametrize(
    "hostile",
    [
        None, [1, 2], "abc", 3, {"secret key": -1}, {"secret key": 1.0}, {"secret key": math.nan},
        {"secret key": math.inf}, {"secret key": True}, {"secret key": None}, {"secret key": "7"},
        {"secret key": np.float64(3)}, {"secret key": np.array([1, 2])}, {"secret key": Fraction(1, 2)},
    ],
)  # fmt: skip
def test_hostile_counts_are_refused_without_being_shown(hostile: object) -> None:
    with pytest.raises(InvalidData) as caught:
        KeySelection(1.0, 1e-6).release(hostile)
    assert "secret" not in str(caught.value) and "nan" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_odd_but_honest_counts_are_taken() -> None:
    selection = KeySelection(1.0, 1e-6)
    assert selection.release({}) == ()
    assert selection.release({"none": 0, "zero": np.int64(0)}) == ()
    assert selection.release({"many": 10**40, "some": np.uint8(200)}) == ("many", "some")
    assert KeySelection(1.0, 1e-6, with_counts=True).release({"many": 10**40})["many"] > 10**39


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"), ({"epsilon": math.nan}, "epsilon"), ({"epsilon": 51.0}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon"), ({"delta": 0.0}, "delta"), ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"), ({"max_keys_per_unit": 0}, "max_keys_per_unit"),
        ({"max_keys_per_unit": True}, "max_keys_per_unit"), ({"max_keys_per_unit": 1.5}, "max_keys_per_unit"),
        ({"with_counts": 1}, "with_counts"), ({"rule": "gaussian"}, "rule"),
        ({"rule": "optimal", "with_counts": True}, "rule"),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(parameters: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        KeySelection(**{"epsilon": 1.0, "delta": 1e-6, **parameters})  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize("units", [-1, 1.5, True, math.nan])
def test_units_must_be_whole(units: object) -> None:
    with pytest.raises(InvalidValue, match="units="):
        KeySelection(1.0, 1e-6).keep_probability(units)  # type: ignore[arg-type]


@pytest.mark.parametrize("probability", [0.0, 1.5, math.nan, -1])
def test_a_wish_must_be_a_probability(probability: float) -> None:
    with pytest.raises(InvalidValue, match="probability="):
        KeySelection(1.0, 1e-6).needed(probability)


def test_the_event_composes_and_the_value_is_frozen() -> None:
    selection = KeySelection(0.5, 1e-7, max_keys_per_unit=3)
    assert compose([selection.event]).epsilon_at(1e-7).upper == pytest.approx(0.5)
    assert eval(repr(selection)) == selection
    with pytest.raises(AttributeError):
        selection.epsilon = 9.0  # type: ignore[misc]

"""`Quantiles`: its tree, the law of two quantiles against a second program, its epsilon and its error in rank."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

import numpy as np
import pytest

from farthing import compose
from farthing.mechanisms import many_quantiles
from farthing.mechanisms.many_quantiles import Quantiles
from farthing.privacy import ApproxDP
from theorems.selection_twins import SLACK, Seeded, log_ratios, number
from theorems.test_quantiles import loss, quantile_distribution

THIRDS = (0.25, 0.75)


def pair_distribution(rows: tuple[int, ...], mechanism: Quantiles, last: int) -> dict[tuple[int, int], object]:
    """The law of two quantiles without tie bits: the upper one from all rows, the lower one from those below it."""
    upper, lower = list(mechanism._nodes())
    assert (upper.middle, lower.middle) == (1, 0)
    distribution = {}
    for high, p in enumerate(
        quantile_distribution(rows, mechanism._place(upper), mechanism._rate(upper), range(last + 1))
    ):
        left = [x for x in rows if x < high]
        second = quantile_distribution(left, mechanism._place(lower), mechanism._rate(lower), range(high + 1))
        distribution |= {(low, high): p * q for low, q in enumerate(second)}
    return distribution


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_neighbours_exceed_epsilon(relation: str) -> None:
    mechanism = Quantiles(THIRDS, 0.8, 0, 2, 1, neighbours=relation)  # type: ignore[arg-type]
    points, most = range(3), 0
    for n in range(5):
        for rows in combinations_with_replacement(points, n):
            distribution = pair_distribution(rows, mechanism, 2)
            if relation == "add-remove":
                around = [(*rows, x) for x in points]
            else:
                around = [(*rows[:i], x, *rows[i + 1 :]) for i in range(n) for x in points]
            for others in around:
                ratios = log_ratios(distribution.values(), pair_distribution(others, mechanism, 2).values())
                most = max(most, *map(abs, ratios))
    assert number(0.8) * 0.2 <= most <= number(0.8) + SLACK


@pytest.mark.slow
def test_the_law_is_exact_given_the_tie_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tie bits the distribution can be listed; the code is the same for any number of them."""
    from theorems.selection_twins import counted, rejected

    monkeypatch.setattr(many_quantiles, "_TIE_BITS", 0)
    monkeypatch.setattr(Quantiles, "_split_ties", staticmethod(lambda points, source: np.sort(points)), raising=True)
    mechanism = Quantiles(THIRDS, 6.0, 0, 6, 1)
    rows, source = (0, 1, 1, 4, 4, 6), Seeded(1)
    observed = counted(lambda: tuple(int(x) for x in mechanism._answer(list(rows), source)), 6_000)
    assert not rejected(observed, pair_distribution(rows, mechanism, 6))
    weaker = Quantiles(THIRDS, 4.8, 0, 6, 1)
    assert rejected(observed, pair_distribution(rows, weaker, 6))


@pytest.mark.parametrize("many", [1, 2, 3, 4, 7, 8, 20])
def test_the_tree_has_so_many_levels_and_every_choice_comes_after_its_ends(many: int) -> None:
    mechanism = Quantiles([(i + 1) / (many + 1) for i in range(many)], 1.0, 0, 9, 1)
    seen = {-1, many}
    depths = []
    for node in mechanism._nodes():
        assert {node.left, node.right} <= seen and node.left < node.middle < node.right
        assert 0 < mechanism._place(node) < 1
        seen.add(node.middle)
        depths.append(node.depth)
    assert seen == set(range(-1, many + 1))
    assert max(depths) + 1 == mechanism.levels == int(np.log2(many)) + 1


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_every_level_spends_its_share(relation: str) -> None:
    """A row that joins or leaves moves the losses of one choice; a replaced one those of two, below the first."""
    mechanism = Quantiles((0.1, 0.2, 0.5, 0.9), 1.2, 0, 9, 1, max_rows=3, neighbours=relation)  # type: ignore[arg-type]
    for node in mechanism._nodes():
        place = mechanism._place(node)
        moved = max(place, 1 - place)
        if relation == "replace":
            moved = Fraction(1) if node.depth == 0 else 2 * moved
        assert 2 * moved * mechanism._rate(node) * 3 == Fraction(1.2) / 3


def test_answers_are_in_order_and_within_their_error_on_columns_with_ties() -> None:
    generator = Random(5)
    ages = [min(int(generator.expovariate(0.05)), 90) for _ in range(3000)]
    for rows in (ages, [0] * 2000 + ages[:500], [7] * 3000, []):
        mechanism = Quantiles((0.1, 0.25, 0.5, 0.75, 0.9), 2.0, 0, 90, 1)
        answers = mechanism._answer(np.array(rows, dtype=float), Seeded(6))
        assert answers == sorted(answers)
        for answer, place in zip(answers, mechanism.probabilities, strict=True):
            missed = loss(rows, int(answer), Fraction(str(place)))
            assert missed <= mechanism.error(0.999) + 10


@pytest.mark.slow
def test_the_event_costs_epsilon_and_less_at_a_delta() -> None:
    mechanism = Quantiles([i / 100 for i in range(1, 100)], 2.0, 0, 90, 1)
    assert mechanism.levels == 7
    price = compose([mechanism.event])
    assert 2.0 <= price.epsilon_at(0.0).upper <= 2.0 * (1 + 1e-12)
    assert price.epsilon_at(1e-3).upper < compose([ApproxDP(2.0 / 7)], counts=[7]).epsilon_at(1e-3).lower


def test_one_quantile_of_many_is_the_single_one_with_tie_bits() -> None:
    mechanism = Quantiles([0.5], 1.0, 0, 9, 1)
    assert mechanism.levels == 1
    assert mechanism.release([5] * 1000) == [5.0]

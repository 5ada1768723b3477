"""`CountedQuantile`: the length of the interval of losses by enumeration, its law, and that it is `Quantile`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import mpmath
import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.mechanisms import counted_quantiles, ranked_intervals
from farthing.mechanisms.counted_quantiles import CountedQuantile, CountedQuantiles
from farthing.mechanisms.quantile_tree import place_in
from farthing.mechanisms.quantiles import Quantile, decimal
from farthing.mechanisms.ranked_intervals import RankedPoints
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.privacy import BoundedRange, Composed
from theorems.selection_twins import SLACK, Seeded, log_ratios, number, rejected
from theorems.test_quantiles import quantile_distribution

pytestmark = pytest.mark.slow

POINTS = range(3)
PLACES = list(product(range(2), POINTS))

Rows = tuple[tuple[int, int], ...]
"""(group, point) of each row."""


def joint_distribution(rows: Rows, mechanism: CountedQuantile) -> list[Any]:
    q = decimal(mechanism.probability)
    distributions = [
        quantile_distribution([point for own, point in rows if own == group], q, mechanism.rate, POINTS)
        for group in range(mechanism.groups)
    ]
    return [a * b for a in distributions[0] for b in distributions[1]]


def tables(most: int) -> Iterator[Rows]:
    for n in range(most + 1):
        yield from combinations_with_replacement(PLACES, n)


def widest(mechanism: CountedQuantile, pairs: Iterable[tuple[Rows, Rows]]) -> object:
    found = number(0)
    for rows, others in pairs:
        losses = log_ratios(joint_distribution(rows, mechanism), joint_distribution(others, mechanism))
        assert max(map(abs, losses)) <= number(mechanism.epsilon) + SLACK  # no more than the range in any case
        found = max(found, max(losses) - min(losses))
    return found


@pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
def test_a_row_that_joins_one_of_two_groups_moves_the_losses_within_epsilon(probability: float) -> None:
    mechanism = CountedQuantile(probability, 0.8, points=3, groups=2)
    length = widest(mechanism, ((rows, (*rows, place)) for rows in tables(2) for place in PLACES))
    assert length <= number(0.8) + SLACK
    if probability == 0.5:
        assert length >= number(0.8) * 0.99


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_a_row_replaced_by_one_of_another_group_moves_the_losses_within_epsilon(probability: float) -> None:
    mechanism = CountedQuantile(probability, 0.8, points=3, groups=2, neighbours="replace")
    pairs = (
        (rows, (*rows[:place], other, *rows[place + 1 :]))
        for rows in tables(2)
        for place in range(len(rows))
        for other in PLACES
    )
    length = widest(mechanism, pairs)
    assert length <= number(0.8) + SLACK
    if probability == 0.5:
        assert length >= number(0.8) * 0.99


def test_rows_of_one_unit_in_two_groups_move_the_losses_within_epsilon_together() -> None:
    mechanism = CountedQuantile(0.5, 0.8, points=3, groups=2, max_rows=2)
    joining = list(combinations_with_replacement(PLACES, 2))
    length = widest(mechanism, ((rows, (*rows, *unit)) for rows in tables(2) for unit in joining))
    assert number(0.8) * 0.99 <= length <= number(0.8) + SLACK


def test_a_replaced_row_between_groups_would_exceed_the_rate_of_one_group() -> None:
    """Why several groups pay twice: with the rate that is enough inside one group the bound does not hold."""
    alone = CountedQuantile(0.9, 0.8, points=3, neighbours="replace")
    together = CountedQuantile(0.9, 0.8, points=3, groups=2, neighbours="replace")
    assert together.rate / alone.rate == Fraction(5, 9)
    careless = CountedQuantile(0.9, 0.8 * 9 / 5, points=3, groups=2, neighbours="replace")
    often = [0] * 16 + [1] * 3  # point 0 is below the wanted rank, point 2 above it
    rows = tuple((group, point) for group in range(2) for point in often)
    moved = widest(careless, [((*rows, (0, 2)), (*rows, (1, 2)))])
    assert number(0.8) * 1.75 < moved < number(0.8) * 1.81  # as far as it can be, at the wrong rate
    assert widest(together, [((*rows, (0, 2)), (*rows, (1, 2)))]) <= number(0.8) + SLACK


@pytest.mark.parametrize("probability", [0.0, 0.25])
def test_the_law_of_each_group_is_exact(probability: float) -> None:
    mechanism = CountedQuantile(probability, 1.5, points=12, groups=3)
    groups: list[list[int]] = [[], [3, 3, 9, 0, 3, 11], [1, 2, 8] * 3]
    counts = np.array([np.bincount(np.array(rows, dtype=int), minlength=12) for rows in groups])
    source = Seeded(1)
    answers = [mechanism._answer(counts, source) for _ in range(1_000)]
    for group, rows in enumerate(groups):
        observed = Counter(int(answer[group]) for answer in answers)
        distribution = quantile_distribution(rows, decimal(probability), mechanism.rate, range(12))
        assert not rejected(observed, dict(enumerate(distribution)))


def test_counts_and_rows_give_the_same_answer_from_the_same_bits() -> None:
    rows = np.array([3, 3, 9, 0, 3, 11, 700])
    by_rows = Quantile(0.3, 0.5, 0, 999, 1)
    by_counts = CountedQuantile(0.3, 0.5, points=1000)
    assert by_rows.rate == by_counts.rate
    counts = np.bincount(rows, minlength=1000)
    for seed in range(20):
        assert by_counts._answer(counts, Seeded(seed))[0] == by_rows._answer(rows, Seeded(seed))


def test_ten_million_rows_are_as_cheap_as_ten() -> None:
    counts = np.full(1000, 10_000)
    point = CountedQuantile(0.5, 0.1, points=1000)._answer(counts, Seeded(1))[0]
    assert abs(point - 500) <= 1


def test_quantiles_that_are_close_are_single_ones_with_their_share_of_epsilon() -> None:
    several = CountedQuantiles((0.49, 0.5, 0.51), 0.75, points=50, groups=2, max_rows=3)
    assert several.event == Composed(((BoundedRange(0.25), 3),))
    counts = np.arange(100).reshape(2, 50)
    for place, probability in enumerate(several.probabilities):
        single = CountedQuantile(probability, 0.25, points=50, groups=2, max_rows=3)
        assert several.rates[place] == single.rate and not several.followed[place]
    alone = CountedQuantiles((0.3,), 0.5, points=50, groups=2)
    by_itself = CountedQuantile(0.3, 0.5, points=50, groups=2)
    for seed in range(20):
        assert alone._answer(counts, Seeded(seed))[:, 0].tolist() == by_itself._answer(counts, Seeded(seed)).tolist()
    for bad in ((), (0.5, 0.25), (0.5, 0.5)):
        with pytest.raises(InvalidValue, match=r"^probabilities="):
            CountedQuantiles(bad, 1.0, 5)


def test_a_tree_pays_for_its_levels_and_each_choice_for_what_a_row_moves_it_by() -> None:
    quartiles = CountedQuantiles((0.25, 0.5, 0.75), 0.5, points=50, max_rows=2)
    assert quartiles.event == Composed(((BoundedRange(0.25), 2),))
    assert quartiles.rates == (Fraction(1, 8),) * 3 and quartiles.followed == (False, True, False)
    assert quartiles.passed_on.tolist() == [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]]
    uneven = CountedQuantiles((0.25, 0.5, 0.75), 0.75, points=50, weights=(2, 1))
    assert uneven.event == Composed(((BoundedRange(0.5), 1), (BoundedRange(0.25), 1)))
    assert uneven.rates == (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    for bad in ((1,), (1, 0)):
        with pytest.raises(InvalidValue, match=r"^weights="):
            CountedQuantiles((0.25, 0.5, 0.75), 0.75, points=50, weights=bad)
    replaced = CountedQuantiles((0.25, 0.5, 0.75), 0.5, points=50, neighbours="replace")
    assert replaced.rates == (Fraction(1, 8),) * 3  # a replaced row moves the median by 1 and leaves and joins halves
    apart = CountedQuantiles((0.25, 0.5, 0.75), 0.5, points=50, groups=2, neighbours="replace")
    assert apart.rates == (Fraction(1, 8),) * 3


Column = tuple[int, ...]


def parts_below(rows: Column, place: int, splits: int) -> Fraction:
    """Rows below a place, each of them spread evenly over the places of its point."""
    return sum((Fraction(min(max(place - splits * row, 0), splits), splits) for row in rows), Fraction(0))


def tree_distribution(rows: Column, mechanism: CountedQuantiles, splits: int) -> dict[tuple[int, ...], list[Any]]:
    """For all places and points chosen, in the order of the tree: the probability of each, given those before."""
    end, many = splits * mechanism.points, len(mechanism.probabilities)
    laws: dict[tuple[int, ...], list[Any]] = {(): []}
    for number_of, node in enumerate(mechanism.nodes):
        longer = {}
        for chosen, before in laws.items():
            known = {-1: 0, many: end} | {mechanism.nodes[k].middle: place for k, place in enumerate(chosen)}
            low, high = known[node.left], known[node.right]
            last = min(high, end - 1)
            left = parts_below(rows, low, splits)
            target = left + place_in([decimal(q) for q in mechanism.probabilities], node) * (
                parts_below(rows, high, splits) - left
            )
            if mechanism.followed[node.middle]:
                among = range(low, last + 1)
                losses = [abs(parts_below(rows, place, splits) - target) for place in among]
            else:
                among = range(low // splits, last // splits + 1)
                ends = [
                    [parts_below(rows, min(max(splits * y, low), high), splits) for y in (point, point + 1)]
                    for point in among
                ]
                losses = [max(first - target, target - final, Fraction(0)) for first, final in ends]
            rate = mechanism.rates[node.middle]
            weights = [mpmath.exp(-number(rate * loss)) for loss in losses]
            total = mpmath.fsum(weights)
            for place, weight in zip(among, weights, strict=True):
                longer[*chosen, place] = [*before, weight / total]
        assert all(len(chosen) == number_of + 1 for chosen in longer)
        laws = longer
    return laws


def neighbours_of(rows: Column, relation: str, unit: int) -> Iterator[Column]:
    if relation == "add-remove":
        for joining in combinations_with_replacement(range(3), unit):
            yield (*rows, *joining)
    else:
        for place in range(len(rows)):
            yield from ((*rows[:place], x, *rows[place + 1 :]) for x in range(3))


@pytest.mark.parametrize(
    ("probabilities", "relation", "unit", "weights"),
    [
        ((0.25, 0.5, 0.75), "add-remove", 1, (3, 1)),
        ((0.25, 0.5, 0.75), "add-remove", 2, ()),
        ((0.25, 0.5, 0.75), "replace", 1, ()),
        ((0.5, 0.9), "add-remove", 1, ()),
    ],
)
def test_every_level_of_a_tree_moves_the_losses_within_its_epsilon(
    probabilities: tuple[float, ...], relation: Any, unit: int, weights: tuple[int, ...]
) -> None:
    """By all places and points, two to a point; what is released, points, tells less. Both orders of neighbours."""
    mechanism = CountedQuantiles(probabilities, 0.8, points=3, max_rows=unit, neighbours=relation, weights=weights)
    levels = [node.depth for node in mechanism.nodes]
    assert len(set(levels)) == 2 and levels == sorted(levels)
    widest, most = [number(0), number(0)], number(0)
    for n in range(4):
        for rows in combinations_with_replacement(range(3), n):
            law = tree_distribution(rows, mechanism, 2)
            for others in neighbours_of(rows, relation, unit):
                other = tree_distribution(others, mechanism, 2)
                assert law.keys() == other.keys()
                ranges: dict[tuple[int, ...], list[Any]] = {}
                for chosen, chances in law.items():
                    logs = [mpmath.log(p / q) for p, q in zip(chances, other[chosen], strict=True)]
                    most = max(most, abs(mpmath.fsum(logs)))
                    for level in set(levels):  # given what was chosen above, all choices of a level together
                        above = tuple(place for place, depth in zip(chosen, levels, strict=True) if depth < level)
                        own = mpmath.fsum(log for log, depth in zip(logs, levels, strict=True) if depth == level)
                        ranges.setdefault((level, *above), []).append(own)
                for (level, *_), losses in ranges.items():
                    widest[level] = max(widest[level], max(losses) - min(losses))
    for epsilon, found in zip(mechanism.epsilons, widest, strict=True):
        assert number(epsilon) * 0.85 <= found <= number(epsilon) + SLACK
    assert most <= number(0.8) + SLACK


def test_the_law_of_a_tree_is_exact_and_a_tenth_more_or_less_noise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2 places to a point the distribution can be listed; the code is the same for any number of them."""
    for module in (ranked_intervals, counted_quantiles):
        monkeypatch.setattr(module, "SPLITS", 2)
    rows, probabilities, source = (0, 1, 1, 1, 3, 3, 4, 4, 4, 4, 6), (0.25, 0.5, 0.75), Seeded(1)
    counts = np.bincount(np.array(rows), minlength=8)
    mechanism = CountedQuantiles(probabilities, 2.2, points=8)
    observed = Counter(tuple(mechanism._answer(counts, source)[0].tolist()) for _ in range(8_000))

    def law_at(epsilon: float) -> Counter[tuple[int, ...]]:
        law: Counter[tuple[int, ...]] = Counter()
        other = CountedQuantiles(probabilities, epsilon, points=8)
        for chosen, chances in tree_distribution(rows, other, 2).items():
            by_place = {node.middle: place for node, place in zip(other.nodes, chosen, strict=True)}
            law[by_place[0], by_place[1] // 2, by_place[2]] += mpmath.fprod(chances)
        return law

    said = law_at(2.2)
    assert not rejected(observed, said)

    def by_likelihood(found: Counter[tuple[int, ...]]) -> Counter[int]:
        """How likely an answer is said to be, in powers of two: all that a wrong epsilon would change."""
        levels: Counter[int] = Counter()
        for answer, many in found.items():
            levels[int(mpmath.log(said[answer], 2))] += many
        return levels

    for epsilon, wrong in ((2.2, False), (1.98, True), (2.42, True)):
        assert rejected(by_likelihood(observed), by_likelihood(law_at(epsilon)), 1e-9) == wrong


@pytest.mark.parametrize("wanted", [Fraction(0), Fraction(1, 3), Fraction(9, 10)])
def test_places_between_two_others_are_weighed_one_by_one(wanted: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked_intervals, "SPLITS", 4)
    counts = np.array([0, 7, 0, 0, 30, 1, 0, 2])
    rows = tuple(np.repeat(np.arange(8), counts).tolist())
    low, high, rate, bits = 6, 29, Fraction(1, 3), Bits(Seeded(2))
    column = RankedPoints.of(counts)
    assert [column.rank_at(place) for place in range(32)] == [4 * parts_below(rows, place, 4) for place in range(32)]
    left, right = parts_below(rows, low, 4), parts_below(rows, high, 4)
    target = left + wanted * (right - left)
    weights = [mpmath.exp(-number(rate * abs(parts_below(rows, place, 4) - target))) for place in range(low, high + 1)]
    law = {low + place: weight / mpmath.fsum(weights) for place, weight in enumerate(weights)}
    observed = Counter(column.drawn_place(low, high, high, wanted, rate, bits) for _ in range(4_000))
    assert not rejected(observed, law)


def test_the_nearest_place_has_gap_zero_and_further_limits_only_add_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `choose_label` asks of groups, where points hold more rows than they have places."""
    draws = np.random.default_rng(5)
    seen: list[Any] = []

    def looked_at(rate: Fraction, groups: Any, candidates: int, bits: Bits) -> int:
        near = [groups(limit) for limit in (1, 1_000, 10**9)]
        for (inside, outside), (more, _) in pairwise(near):
            assert more[: len(inside)] == inside and outside >= 0
        gaps = [group[0] for group in near[-1][0]]
        assert gaps == sorted(gaps) and gaps[0] == 0
        seen.append(near[-1][0][0][2])
        return int(near[-1][0][0][2])

    monkeypatch.setattr(ranked_intervals, "SPLITS", 4)
    monkeypatch.setattr(ranked_intervals, "choose_label", looked_at)
    monkeypatch.setattr(ranked_intervals, "chosen_step", lambda *_: 0)
    for _ in range(400):
        rows = RankedPoints.of(draws.integers(0, 60, 5) * draws.integers(0, 2, 5))
        low, high = sorted(draws.integers(0, 21, 2).tolist())
        wanted = Fraction(int(draws.integers(0, 101)), 100)
        place = rows.drawn_place(low, high, min(high, 19), wanted, Fraction(1, 9), Bits(Seeded(1))) if low < 20 else 0
        target = rows.rank_at(low) + wanted * (rows.rank_at(high) - rows.rank_at(low))
        offered = [abs(rows.rank_at(other) - target) for other in range(low, min(high, 19) + 1)]
        assert low >= 20 or abs(rows.rank_at(place) - target) == min(offered)
    assert len(seen) > 300


def test_a_million_rows_at_one_point_are_split_where_the_quantile_lies() -> None:
    counts = np.zeros(100, dtype=np.int64)
    counts[[10, 40, 90]] = 1_000, 10**6, 1_000
    deciles = CountedQuantiles(tuple(k / 10 for k in range(1, 10)), 0.5, points=100)
    assert deciles._answer(counts, Seeded(1))[0].tolist() == [40] * 9


def test_the_error_in_rank_is_that_of_one_group() -> None:
    assert CountedQuantile(0.5, 1.0, points=121).error(0.95) == Quantile(0.5, 1.0, 0, 120, 1).error(0.95)
    assert CountedQuantile(0.5, 1.0, points=121).rate == Fraction(1)


@pytest.mark.parametrize(
    ("name", "bad"), [("probability", 1.2), ("epsilon", 0.0), ("points", 0), ("groups", 0), ("max_rows", 0)]
)
def test_parameters_out_of_range_are_refused_by_name(name: str, bad: float) -> None:
    good = {"probability": 0.5, "epsilon": 1.0, "points": 5}
    with pytest.raises(InvalidValue, match=f"^{name}="):
        CountedQuantile(**{**good, name: bad})  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"^neighbours="):
        CountedQuantile(0.5, 1.0, 5, neighbours="both")  # type: ignore[arg-type]

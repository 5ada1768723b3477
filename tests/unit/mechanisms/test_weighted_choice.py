"""`choose_label`: the same distribution as a plain choice, whatever it leaves out at first."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.weighted_choice import Ballot, Group, choose_label, chosen_step
from theorems.selection_twins import Seeded, counted, exponential_distribution, rejected


class Scripted:
    """Bytes as written, then the same byte forever."""

    def __init__(self, script: bytes, then: int) -> None:
        self._script, self._then = script, then

    def take(self, count: int, /) -> bytes:
        taken, self._script = self._script[:count], self._script[count:]
        return taken + bytes([self._then]) * (count - len(taken))


def _listed(all_groups: list[Group]):  # type: ignore[no-untyped-def]
    def groups(limit: int) -> tuple[list[Group], int]:
        asked.append(limit)
        inside = [group for group in all_groups if group[0] <= limit]
        return inside, sum(count for gap, count, *_ in all_groups if gap > limit)

    asked: list[int] = []
    return groups, asked


def test_counts_weigh_and_labels_come_back() -> None:
    groups, _ = _listed([(0, 1, 70, 0), (2, 5, 80, 0), (3, 2, 90, 0)])
    bits = Bits(Seeded(1))
    observed = counted(lambda: choose_label(Fraction(1, 2), groups, 8, bits), 4_000)
    each = exponential_distribution([0] + [-2] * 5 + [-3] * 2, Fraction(1, 2))
    assert not rejected(observed, {70: each[0], 80: sum(each[1:6]), 90: sum(each[6:])})
    assert rejected(observed, {70: each[0] + each[6], 80: sum(each[1:6]), 90: each[7]})


def test_the_first_bits_decide_almost_always_and_what_is_far_is_not_asked_for() -> None:
    groups, asked = _listed([(0, 1, 0, 0), (10**30, 10**6, 1, 0)])
    assert {choose_label(Fraction(1), groups, 10**6 + 1, Bits(Seeded(seed))) for seed in range(20)} == {0}
    assert len(asked) == 20 and max(asked) < 1000


def test_a_draw_at_the_very_end_asks_for_more_until_it_is_decided() -> None:
    """32 ones might lie in what was left out, so more bits are drawn; the next ones are zeros, and that decides."""
    groups, asked = _listed([(0, 1, 0, 0), (200, 1, 1, 0)])
    assert choose_label(Fraction(1), groups, 2, Bits(Scripted(b"\xff" * 4, 0))) == 0
    assert len(asked) == 2 and asked[0] < 200
    # e^-200 is about 2^-288.5: forty bytes of ones do reach it.
    assert choose_label(Fraction(1), groups, 2, Bits(Scripted(b"\xff" * 40, 0xFF))) == 1


def test_a_draw_on_the_border_of_two_groups_is_decided_by_more_bits() -> None:
    """Two equal halves meet at 1/2, where no number of balls can tell; the prefix 10000... lies right of it."""
    groups, _ = _listed([(0, 1, 0, 0), (0, 1, 1, 0)])
    lower_first = bytes(3) + b"\x80"  # words are little-endian: the leading bit comes in the last byte
    assert choose_label(Fraction(1), groups, 2, Bits(Scripted(lower_first, 0x55))) == 1
    assert choose_label(Fraction(1), groups, 2, Bits(Scripted(b"\xff" * 3 + b"\x7f", 0x55))) == 0


def test_a_group_that_has_no_one_left_is_never_drawn() -> None:
    """All bits one is the end of the line: the last candidate left, not the last group there was."""
    ballot = Ballot(np.array([0, 1, 1, 2], dtype=np.uint64))
    assert [ballot._members[-1], ballot.draw(Fraction(1), Bits(Scripted(b"", 0xFF)))] == [3, 3]
    assert ballot._groups(1000) == ([(0, 1, 0, 0), (1, 2, 1, 0)], 0)
    taken = Ballot(np.array([5, 0, 0, 9], dtype=np.uint64))
    assert sorted(taken.draw(Fraction(1, 3), Bits(Seeded(seed))) for seed in range(4)) == [0, 1, 2, 3]


@pytest.mark.slow
def test_rising_gaps_weigh_their_sum_and_each_its_own() -> None:
    rate, bits = Fraction(1, 3), Bits(Seeded(4))
    groups, _ = _listed([(0, 20, 0, 2), (1, 3, 1, 0), (2, 1, 2, 9)])
    each = exponential_distribution([*(-2 * k for k in range(20)), -1, -1, -1, -2], rate)
    observed = counted(lambda: choose_label(rate, groups, 24, bits), 4_000)
    assert not rejected(observed, {0: sum(each[:20]), 1: sum(each[20:23]), 2: each[23]})
    steps = exponential_distribution([-2 * k for k in range(20)], rate)
    drawn = counted(lambda: chosen_step(rate, 2, 20, bits), 4_000)
    assert not rejected(drawn, dict(enumerate(steps)))
    assert rejected(drawn, dict(enumerate(exponential_distribution([-2 * k for k in range(20)], rate * 11 / 10))))
    even = counted(lambda: chosen_step(rate, 0, 6, bits), 2_000)
    assert not rejected(even, dict.fromkeys(range(6), Fraction(1, 6)))

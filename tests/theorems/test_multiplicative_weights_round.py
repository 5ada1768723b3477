"""The two-sided round beside its definition: all transcripts, all neighbours on small domains."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest

from farthing.adaptive.query_session import session_rounds
from farthing.adaptive.query_session.session_rounds import Exceedance, TwoSidedThreshold
from sources import TestSource

TINY = 1e-9
Transcript = tuple[tuple[int, int] | None, ...]


def probability(round_: TwoSidedThreshold, values: tuple[int, ...], transcript: Transcript) -> float:
    """The sides share nothing but the values: one sum over the noise of each threshold."""
    first, second = (float(rate) for rate in round_.rates)
    r = np.arange(math.ceil(40 / first), dtype=np.float64)
    mass = np.exp(-first * r) * -math.expm1(-first)
    sides = {1: mass.copy(), -1: mass.copy()}
    for value, answer in zip(values, transcript, strict=True):
        for side in (1, -1):
            needed = round_.threshold + r - side * value
            if answer is not None and answer[0] == side:
                n = needed + answer[1]
                exactly = np.exp(-second * np.maximum(n, 0)) * -math.expm1(-second)
                sides[side] *= np.where(n >= 0, exactly, 0)
                break
            sides[side] *= 1 - np.exp(-second * np.maximum(needed, 0))
    return math.fsum(sides[1]) * math.fsum(sides[-1])


def transcripts(length: int, gaps: range) -> list[Transcript]:
    """All near, or a far answer at some place and nothing after it."""
    ends = [(None,) * k + ((side, gap),) for k in range(length) for side in (1, -1) for gap in gaps]
    return [(None,) * length, *ends]


def worst_loss(round_: TwoSidedThreshold, moves: list[tuple[int, ...]], length: int) -> float:
    """The largest |ln P / Q| over small tables, all streams of questions about them, and all transcripts."""
    cells = len(moves[0])
    masks = [mask for mask in itertools.product((0, 1), repeat=cells) if any(mask)]

    @functools.cache
    def distribution(values: tuple[int, ...], transcript: Transcript) -> float:
        return probability(round_, values[: len(transcript)], transcript)

    worst = 0.0
    table = (1, 2, 3)[:cells]
    for questions in itertools.product(masks, repeat=length):
        for move in moves:
            other = tuple(a + b for a, b in zip(table, move, strict=True))
            # What is subtracted is public: the same for both tables.
            one, two = (tuple(int(np.dot(mask, rows)) - 2 for mask in questions) for rows in (table, other))
            for transcript in transcripts(length, range(3)):
                p, q = distribution(one, transcript), distribution(two, transcript)
                worst = max(worst, abs(math.log(p / q)))
    return worst


@pytest.mark.parametrize(
    ("sensitivity", "moves"),
    [(1, [(1, 0), (0, 1), (-1, 0)]), (2, [(1, -1), (2, 0), (-1, 1), (1, 1), (0, -2)])],
)
def test_no_stream_of_three_tells_more_than_epsilon(sensitivity: int, moves: list[tuple[int, ...]]) -> None:
    round_ = TwoSidedThreshold(1.5, 1, sensitivity, threshold_parts=2**15)
    worst = worst_loss(round_, moves, 3)
    assert 0.6 * 1.5 < worst <= 1.5 + TINY


def test_the_bound_is_reached_in_the_limit_and_noise_a_tenth_too_small_breaks_it() -> None:
    """A row more in many near questions, and not in the one that is far."""
    near, value = 400, 99  # the threshold of the other side is far away
    loss = {}
    for scale in (1.0, 1.1):
        round_ = TwoSidedThreshold(scale, 100, 1, threshold_parts=2**15)
        transcript: Transcript = (None,) * near + ((1, 0),)
        one = (value,) * near + (value,)
        two = (value + 1,) * near + (value,)  # the last question does not count the cell that grew
        loss[scale] = math.log(probability(round_, one, transcript) / probability(round_, two, transcript))
    assert 0.95 < loss[1.0] <= 1.0 + TINY < loss[1.1]


def test_the_budget_is_spent_exactly() -> None:
    for sensitivity, parts in itertools.product((1, 3, 7), (1, 30_000, 65_535)):
        first, second = TwoSidedThreshold(0.7, 10, sensitivity, parts).rates
        assert float((first + second) * sensitivity) == 0.7


@pytest.mark.slow
def test_the_code_has_the_law_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw of the noises up to a window is fed to the real round, and its transcripts are weighed."""
    round_ = TwoSidedThreshold(9.0, 1, 1, threshold_parts=2**15)
    values, window = (0, -1), 5
    distribution: Counter[Transcript] = Counter()
    for draws in itertools.product(range(window), repeat=6):
        left = list(draws)
        monkeypatch.setattr(session_rounds, "geometric", lambda rate, bits, left=left: left.pop(0))
        asking = round_._start(TestSource(0))
        answers: list[tuple[int, int] | None] = []
        for value in values:
            far = asking.ask(value)
            answers.append(None if far is None else (far.side, far.gap))
            if far is not None:
                break
        # The thresholds' noise comes first; draws that were not needed are summed over.
        distribution[tuple(answers)] += math.prod(math.exp(-4.5 * draw) * -math.expm1(-4.5) for draw in draws)
    assert len(distribution) > 8
    for transcript, found in distribution.items():
        assert found == pytest.approx(probability(round_, values[: len(transcript)], transcript), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (0.9, False), (1.1, False)])
def test_sampled_rounds_have_the_stated_noise_and_no_other(scale: float, accepted: bool) -> None:
    """The chance that a single question is far, over 12,000 rounds; false alarm below 1e-6."""
    stated = TwoSidedThreshold(2.0, 2)
    drawn, source = TwoSidedThreshold(2.0 * scale, 2), TestSource(8)
    count = 12_000
    found = sum(drawn._start(source).ask(0) is not None for _ in range(count))
    chance = 1 - probability(stated, (0,), (None,))
    distance = abs(found - count * chance) / math.sqrt(count * chance * (1 - chance))
    assert (distance < 4.9) is accepted


def test_a_round_that_is_over_or_copied_gives_nothing_more() -> None:
    asking = TwoSidedThreshold(1.0, 0).start()
    assert isinstance(asking.ask(500), Exceedance)
    with pytest.raises(Exception, match="is over"):
        asking.ask(0)
    with pytest.raises(TypeError, match="cannot be copied"):
        asking.__reduce__()

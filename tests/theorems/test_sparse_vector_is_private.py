"""SparseVector beside its definition: all transcripts, all neighbours on small domains, both directions."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from farthing.mechanisms import threshold_session
from farthing.mechanisms.sparse_vector import AboveThreshold, SparseVector
from farthing.mechanisms.threshold_session import Above, Below
from theorems.threshold_twin import Transcript, Twin

TINY = 1e-9


def twin_of(mechanism: AboveThreshold) -> Twin:
    first, second = mechanism._rates
    shows = "gap" if mechanism.with_gap else "nothing"
    return Twin(float(first), float(second), mechanism.positives, shows)


def test_the_budget_of_every_variant_is_spent_exactly() -> None:
    """threshold rate x D + question rate x (shifts) x c x D = epsilon, by fractions."""
    for positives, monotone, steps, fresh in itertools.product((1, 2, 50), (False, True), (1, 7), (False, True)):
        mechanism = SparseVector(
            1.3, l1_sensitivity=steps, monotone=monotone, positives=positives, fresh_threshold=fresh
        )
        first, second = mechanism._rates
        rounds = positives if fresh else 1
        each = first * steps + second * (1 if monotone else 2) * (positives // rounds) * steps
        assert float(each * rounds) == 1.3


@pytest.mark.slow
@pytest.mark.parametrize("with_gap", [False, True])
@pytest.mark.parametrize("positives", [1, 2])
def test_the_code_has_the_law_of_the_twin(with_gap: bool, positives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw of the noises up to a window is fed to the real session, and its transcripts are weighed."""
    mechanism = SparseVector(8.0, positives=positives, with_gap=with_gap, threshold=1)
    rates, window, values = mechanism._rates, 20, [0, 2]
    distribution: dict[Transcript, float] = defaultdict(float)
    for draws in itertools.product(range(window), repeat=3):
        asked: list[object] = []

        def scripted(rate: object, bits: object, draws: tuple[int, ...] = draws, asked: list[object] = asked) -> int:
            asked.append(rate)
            return draws[len(asked) - 1]

        monkeypatch.setattr(threshold_session, "geometric", scripted)
        answers = mechanism._answer(values, _Silent())
        assert asked == [rates[0], *[rates[1]] * len(answers)]
        weight = math.prod(
            math.exp(-float(rate) * n) * -math.expm1(-float(rate))
            for rate, n in zip([rates[0], rates[1], rates[1]], draws, strict=True)
        )
        distribution[tuple(_plain(answer) for answer in answers)] += weight
    twin = twin_of(mechanism)
    moved = [value - 1 - mechanism._offset for value in values]
    assert distribution
    for transcript, probability in distribution.items():
        # Draws beyond the window are missing from the enumeration only.
        assert probability == pytest.approx(twin.probability(moved, transcript), abs=2e-6)


def _plain(answer: Above | Below) -> object:
    if isinstance(answer, Below):
        return "below"
    return "above" if answer.gap is None else answer.gap


class _Silent:
    def take(self, count: int, /) -> bytes:
        return bytes(count)


def worst_loss(twin: Twin, length: int, moves: list[tuple[int, ...]], shown: range = range(0)) -> float:
    """The largest |ln P / Q| over streams of small values, allowed moves and all transcripts."""
    transcripts = list(twin.transcripts(length, shown))
    assert transcripts

    @functools.cache
    def distribution(values: tuple[int, ...]) -> np.ndarray:
        return np.array([twin.probability(values, transcript) for transcript in transcripts])

    worst = 0.0
    for values in itertools.product((-1, 1), repeat=length):
        for move in moves:
            other = tuple(value + step for value, step in zip(values, move, strict=True))
            p, q = distribution(values), distribution(other)
            both = (p > 0) & (q > 0)
            worst = max(worst, float(np.abs(np.log(p[both] / q[both])).max()))
            if not both[(p > 0) | (q > 0)].all():
                return math.inf
    return worst


ANY = list(itertools.product((-1, 0, 1), repeat=3))
UP = list(itertools.product((0, 1), repeat=3))


@pytest.mark.parametrize("positives", [1, 2, 3])
@pytest.mark.parametrize(("monotone", "moves"), [(False, ANY), (True, UP)])
def test_no_stream_of_three_tells_more_than_epsilon(
    positives: int, monotone: bool, moves: list[tuple[int, ...]]
) -> None:
    mechanism = SparseVector(1.0, positives=positives, monotone=monotone)
    worst = worst_loss(twin_of(mechanism), 3, moves)
    assert 0.5 < worst <= 1.0 + TINY


@pytest.mark.parametrize("positives", [1, 2])
@pytest.mark.parametrize(("monotone", "moves"), [(False, ANY), (True, UP)])
def test_the_gap_is_free(positives: int, monotone: bool, moves: list[tuple[int, ...]]) -> None:
    mechanism = SparseVector(1.0, positives=positives, monotone=monotone, with_gap=True)
    few = moves[::3] if len(moves) > 8 else moves
    worst = worst_loss(twin_of(mechanism), 3, few, range(3))
    assert 0.5 < worst <= 1.0 + TINY


def test_a_monotone_mechanism_on_other_moves_is_caught() -> None:
    mechanism = SparseVector(1.0, positives=3, monotone=True)
    assert worst_loss(twin_of(mechanism), 3, ANY) > 1.2


@pytest.mark.parametrize("with_gap", [False, True])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("positives", [1, 3])
def test_long_streams_reach_epsilon_and_never_pass_it(positives: int, monotone: bool, with_gap: bool) -> None:
    """Many questions just below move up, the last few move down (or stay): the bound is tight."""
    mechanism = SparseVector(1.0, positives=positives, monotone=monotone, with_gap=with_gap)
    twin = twin_of(mechanism)
    answer: object = 60 if with_gap else "above"
    losses = []
    for length in (1, 10, 100):
        low = 0 if with_gap else -300
        one = [*[-1] * length, *[low] * positives]
        other = [*[0] * length, *[low - (not monotone)] * positives]
        transcript = (*["below"] * length, *[answer] * positives)
        losses.append(twin.loss(one, other, transcript))
        assert twin.loss(other, one, transcript) <= 1.0 + TINY
    assert all(a <= b + TINY for a, b in itertools.pairwise(losses))
    assert 0.99 < losses[-1] <= 1.0 + TINY


def test_off_by_one_sensitivity_is_caught() -> None:
    """Power: noise for moves of one, values that move by two."""
    twin = twin_of(AboveThreshold(1.0))
    assert worst_loss(twin, 2, [(2, -2)]) > 1.0


EPSILON = 1.0
HALF = EPSILON / 2


class TestBrokenVariants:
    """Each passes for "epsilon-DP" somewhere; the loss of one transcript shows otherwise."""

    def test_showing_the_noisy_value_itself(self) -> None:
        """Lyu, Su & Li, Algorithm 3: value + N is shown, which gives the threshold's noise away."""
        twin = Twin(HALF, HALF / 2, 1, "value")
        one, other = [-1] * 40 + [0], [0] * 40 + [0]
        loss = twin.loss(one, other, ("below",) * 40 + (0,))
        assert loss > 5 * EPSILON

    def test_noise_that_forgets_the_number_of_positives(self) -> None:
        """Algorithm 4: noise for one positive, c of them given."""
        twin = Twin(HALF, HALF / 2, 8)
        loss = twin.loss([-300] * 8, [-301] * 8, ("above",) * 8)
        assert loss > 1.5 * EPSILON
        twin = Twin(HALF, HALF / 2, 8)
        one, other = [-1] * 200 + [-300] * 8, [0] * 200 + [-301] * 8
        assert twin.loss(one, other, ("below",) * 200 + ("above",) * 8) > 4 * EPSILON

    def test_questions_without_noise(self) -> None:
        """Algorithm 5: no noise on the questions, no end of positives: some transcripts become impossible."""
        twin = Twin(HALF, None, 2)
        assert twin.loss([0, 1], [1, 0], ("below", "above")) == math.inf

    def test_positives_without_end(self) -> None:
        """Algorithm 6: noise on both, positives never counted."""
        twin = Twin(HALF, HALF, 400)
        assert twin.loss([-3] * 40, [-4] * 40, ("above",) * 40) > 5 * EPSILON

    def test_the_right_variant_passes_where_they_fail(self) -> None:
        twin = twin_of(SparseVector(EPSILON, positives=8))
        one, other = [-1] * 200 + [-300] * 8, [0] * 200 + [-301] * 8
        assert twin.loss(one, other, ("below",) * 200 + ("above",) * 8) <= EPSILON + TINY

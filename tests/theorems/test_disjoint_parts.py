"""Parts that are asked side by side, each within its budget, beside the enumeration of all transcripts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidValue
from farthing.ledger.partitions import reserved_for_parts
from farthing.privacy import ApproxDP

Transcript = tuple[tuple[int, int], ...]
Next = Callable[[Transcript], tuple[int, float] | None]


def answers(bit: int, epsilon: float, delta: float) -> dict[int, float]:
    """The worst (epsilon, delta) mechanism on a bit: it tells the bit with probability delta, else flips it."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    honest = {bit: (1 - delta) * right, 1 - bit: (1 - delta) * (1 - right)}
    return {**honest, 2 + bit: delta} if delta else honest


def transcripts(bits: list[int], delta: float, ask: Next) -> Iterator[tuple[Transcript, float]]:
    """All that somebody may see who asks parts in turn, each question depending on all answers, and how likely."""
    waiting: list[tuple[Transcript, float]] = [((), 1.0)]
    while waiting:
        seen, chance = waiting.pop()
        question = ask(seen)
        if question is None:
            yield seen, chance
            continue
        part, epsilon = question
        for answer, share in answers(bits[part], epsilon, delta).items():
            waiting.append(((*seen, (part, answer)), chance * share))


def divergence(one: list[int], other: list[int], delta: float, ask: Next, epsilon: float) -> float:
    """The hockey-stick divergence at `epsilon` between what is seen of two tables."""
    chances = dict(transcripts(other, delta, ask))
    return sum(
        max(0.0, chance - math.exp(epsilon) * chances.get(seen, 0.0)) for seen, chance in transcripts(one, delta, ask)
    )


def strategy(seed: int, parts: int, epsilon: float, delta: float, questions: int) -> Next:
    """Somebody who asks some part for some of what its filter has left, by all that was seen."""

    def ask(seen: Transcript) -> tuple[int, float] | None:
        chance = random.Random(f"{seed}{seen}")
        spent = [0.0] * parts
        for place, (part, _) in enumerate(seen):
            spent[part] += _share(seed, seen[:place], epsilon, spent[part], delta)
        if len(seen) == questions:
            return None
        part = chance.randrange(parts)
        share = _share(seed, seen, epsilon, spent[part], delta)
        return (part, share) if share > 0 and not (delta and any(p == part for p, _ in seen)) else None

    return ask


def _share(seed: int, seen: Transcript, epsilon: float, spent: float, delta: float) -> float:
    """A part of what is left; all of it where delta can be paid once only."""
    return epsilon - spent if delta else (epsilon - spent) * random.Random(f"{seed}share{seen}").choice((0.5, 1.0))


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05]), st.integers(1, 2), st.floats(0.1, 1.5))
def test_reserved_for_parts_holds_for_every_transcript(seed: int, delta: float, reach: int, epsilon: float) -> None:
    one, other = [0, 0, 0], [1] * reach + [0] * (3 - reach)
    total = reserved_for_parts(epsilon, delta, reach)
    ask = strategy(seed, 3, epsilon, delta, 4)
    for pair in ((one, other), (other, one)):
        assert divergence(*pair, delta, ask, total.epsilon) <= total.delta + 1e-12


def test_nothing_smaller_would_do() -> None:
    def ask(seen: Transcript) -> tuple[int, float] | None:
        return (len(seen), 0.5) if len(seen) < 3 else None

    assert divergence([0, 0, 0], [1, 1, 0], 0.0, ask, 0.99) > 1e-4  # two parts cost more than 2 * 0.495
    assert divergence([0, 0, 0], [1, 0, 0], 0.0, ask, 0.49) > 1e-4


def test_a_table_chosen_after_answers_is_why_parts_are_fixed_in_advance() -> None:
    """A unit that moves to another part in a later table is in both: the charge for one part does not hold."""

    def ask(seen: Transcript) -> tuple[int, float] | None:
        return (len(seen), 0.5) if len(seen) < 2 else None

    total = reserved_for_parts(0.5, 0.0, 1)
    assert divergence([0, 0], [1, 1], 0.0, ask, total.epsilon) > 0.1


def test_more_parts_or_larger_ones_are_never_cheaper_and_none_is_refused() -> None:
    for reach in (1, 2, 3):
        small, large = reserved_for_parts(0.1, 1e-9, reach), reserved_for_parts(0.2, 1e-8, reach + 1)
        assert small.epsilon < large.epsilon and small.delta < large.delta
    assert reserved_for_parts(0.0, 0.0, 1) == ApproxDP(0.0) and reserved_for_parts(1.0, 0.0, 1) == ApproxDP(1.0)
    for reach in (0, -1, math.nan):
        with pytest.raises(InvalidValue, match="must be at least 1"):
            reserved_for_parts(1.0, 0.0, reach)  # type: ignore[arg-type]

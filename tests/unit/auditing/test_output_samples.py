"""Processes of their own draw what one process would, and never the same stream twice."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from farthing.auditing import audit
from farthing.auditing.output_cells import WHOLE, joined
from farthing.auditing.output_samples import PILOT, Sampler, WorkerLost, batch_of

# Two of 800 numbers of 53 bits are equal with probability 4e-11; everything else here holds whatever is drawn.
pytestmark = pytest.mark.draws(false_alarm=1e-10, miss=0)


def drawn_values(mechanism: Any, workers: int | None, count: int = 400) -> list[list[float]]:
    """Two draws of both sides, one after the other: training and holdout of an audit."""
    with Sampler(batch_of(mechanism), [(0.0, 10.0)], workers) as sampler:
        sampler.pilot(count)
        sampler.check_streams(0)
        seen: list[list[float]] = []
        for _ in range(2):
            parts: tuple[list[Any], list[Any]] = ([], [])
            for side, outputs in sampler.draw(0, count):
                parts[side].append(outputs)
            seen += [joined(part).values(WHOLE).tolist() for part in parts]
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_draw_has_the_right_size_and_side(workers: int) -> None:
    seen = drawn_values(lambda value: value, workers)
    assert [len(part) for part in seen] == [400] * 4
    assert [set(part) for part in seen] == [{0.0}, {10.0}, {0.0}, {10.0}]


def copied(generator: np.random.Generator) -> Any:
    return lambda value: float(generator.random())


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(lambda value: float(np.random.random()), id="NumPy's global generator"),
        pytest.param(lambda value: random.random(), id="Python's global generator"),
        pytest.param(copied(np.random.default_rng(5)), id="a generator that a fork copies"),
        pytest.param(lambda value: int.from_bytes(os.urandom(8), "big") / 2**64, id="the system's"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_no_side_draws_the_same_numbers_twice(mechanism: Any, workers: int) -> None:
    seen = drawn_values(mechanism, workers)
    for side in (0, 1):
        both = seen[side] + seen[2 + side]  # training and holdout
        assert len(set(both)) == len(both)


@pytest.mark.slow
def test_copies_of_one_stream_are_sent_home() -> None:
    own = np.random.default_rng(5)  # a generator that a fork copies
    with Sampler(batch_of(lambda value: float(own.random())), [(0, 1)], 6) as sampler:
        sampler.pilot(100)
        assert [len(team) for team in sampler._teams] == [3, 3]
        sampler.check_streams(0)
        assert [len(team) for team in sampler._teams] == [1, 1]
    with Sampler(batch_of(lambda value: random.random()), [(0, 1)], 6) as sampler:
        sampler.pilot(100)
        sampler.check_streams(0)
        assert [len(team) for team in sampler._teams] == [3, 3]


@pytest.mark.slow
def test_closures_and_exceptions_pass_through_processes() -> None:
    secret = object()

    def mechanism(value: int) -> object:
        assert secret is not None
        if random.random() < 0.5:
            raise LookupError(str(value))
        return {"value": value}

    report = audit(mechanism, 1.0, (0, 1), samples=2_000, workers=2)
    assert report.violation


@pytest.mark.slow
def test_a_process_that_dies_is_reported() -> None:
    here = os.getpid()

    def mechanism(value: int) -> int:
        if os.getpid() != here:
            os._exit(3)
        return value

    with pytest.raises(WorkerLost, match="workers=1"):
        audit(mechanism, 1.0, (0, 1), samples=1_000, workers=2)


def test_objects_that_release_are_called_by_their_method() -> None:
    class Releasing:
        def release(self, value: int) -> int:
            return value + 1

    class Many(Releasing):
        def release_many(self, value: int, count: int) -> list[int]:
            return [value + 2] * count

    class Column(Releasing):
        def release_many(self, values: list[int]) -> list[int]:
            return values

    assert batch_of(Releasing())(1, 2) == [2, 2]
    assert batch_of(Many())(1, 2) == [3, 3]
    assert batch_of(Column())(1, 2) == [2, 2]  # another meaning of the same name


def test_quick_batches_are_drawn_in_large_pieces() -> None:
    with Sampler(lambda value, count: np.zeros(count), [(0, 1)], 1) as sampler:
        sampler.pilot(50_000)
        assert sampler._chunk > 1000 * PILOT

"""What freedom costs when charges differ: `python -m benchmarks.clock_streams [--streams N] [--stress N]`.

A stream is a list of charges between 0.001 and 0.05, in steps of 0.001, in random order; in mixed streams about half
are Gaussian noise of multiplier 1/charge. How many of them fit a budget

    by Renyi divergences, by the clock with plain sums, by `StreamFilter` and by a ledger, which all allow anything
        else at any time;
    if the stream is known, but the analyst may leave it at any time for Gaussian noise, as much as the clock has left
        then (as long as it has paid for all so far), found by dynamic programming over the losses;
    if the stream is fixed in advance.

The second is more than any filter can admit that keeps all promises of the clock. Doubles, for the picture only.

With --stress, so many drawn budgets and streams of every kind of charge instead: what an account and a `ClockFilter`
admit, one by one, must never be more than could have been fixed in advance. (Without bounded range: `compose` has a
pair for it that dominates all, and a clock may know better.)
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy.special import ndtr

from farthing.accounting.compose import compose
from farthing.accounting.filters import ClockFilter, RenyiFilter, StreamFilter
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.ledger.account import Account
from farthing.privacy import ApproxDP, DiscreteLaplaceNoise, Event, GaussianNoise, LaplaceNoise, Sampled

Floats = NDArray[np.float64]
STEP = 0.001
REACH = 2500  # losses from -2.5 to 2.5
BUDGETS = ((1.0, 1e-9), (1.0, 1e-6))


def drawn_stream(draw: random.Random, mixed: bool, count: int = 150) -> list[Event]:
    """Charges in random order."""
    sizes = [draw.randint(1, 50) * STEP for _ in range(count)]
    return [GaussianNoise(1 / e) if mixed and draw.random() < 0.5 else ApproxDP(round(e, 3)) for e in sizes]


def losses_of(event: Event) -> tuple[NDArray[np.int64], Floats]:
    """Losses in steps, and their probabilities; Gaussian losses are rounded to the lattice so that both sum to 1."""
    if isinstance(event, ApproxDP):
        steps = round(event.epsilon / STEP)
        truth = 1 / (1 + np.exp(-event.epsilon))
        return np.array([steps, -steps]), np.array([truth, 1 - truth])
    assert isinstance(event, GaussianNoise)
    square = event.noise_multiplier**-2
    index = np.arange(-round(9 * square**0.5 / STEP) - 2, round(9 * square**0.5 / STEP) + 3)
    weights = np.exp(-((index * STEP) ** 2) / (2 * square))  # e^(-l/2) dP is even: Q sums to 1 as P does
    p = weights * np.exp(index * STEP / 2)
    return index, p / p.sum()


def curve(x: Floats, s: float) -> Floats:
    """V(x, s)."""
    if s <= 0:
        return np.maximum(0.0, -np.expm1(-x))
    root = s**0.5
    return np.asarray(ndtr((x + s / 2) / root) - np.exp(-x) * ndtr((x - s / 2) / root))


def reached(stream: list[Event], clocks: list[float], epsilon: float) -> float:
    """The most that an analyst reaches who may leave the stream after n charges for Gaussian noise of clocks[n]."""
    x: Floats = np.arange(-REACH, REACH + 1, dtype=np.float64) * STEP - epsilon
    value = np.maximum(0.0, -np.expm1(-x))
    for n in reversed(range(len(stream))):
        steps, chances = losses_of(stream[n])
        moved = np.zeros_like(value)
        for step, chance in zip(steps, chances, strict=True):
            moved += chance * np.interp(np.arange(len(value)) + step, np.arange(len(value)), value)
        value = (
            np.maximum(moved, curve(x, clocks[n]))
            if n < len(clocks)
            else np.maximum(moved, np.maximum(0, -np.expm1(-x)))
        )
    return float(value[REACH])


def admitted(budget: Any, stream: list[Event]) -> int:
    """How many charges of a stream a filter or an account admits."""
    for count, event in enumerate(stream):
        if isinstance(budget, Account):
            after = budget.admitted(budget.priced(event))
        else:
            after = budget.charge(event) if budget.admits(event) else None
        if after is None:
            return count
        budget = after
    return len(stream)


def counts(stream: list[Event], epsilon: float, delta: float) -> tuple[int, ...]:
    """How many charges fit by Renyi, the clock, in streams and in a ledger; with the stream known; fixed in advance."""
    whole = (
        RenyiFilter(epsilon, delta, leak=0),
        ClockFilter(epsilon, delta, leak=0, equal_charges=False),
        StreamFilter(epsilon, delta, leak=0),
        Account.of(epsilon, delta),
    )
    return *(admitted(budget, stream) for budget in whole), *freedom(stream, epsilon, delta)


def freedom(stream: list[Event], epsilon: float, delta: float) -> tuple[int, int]:
    """With the stream known, and fixed in advance."""
    budget = ClockFilter(epsilon, delta, leak=0, equal_charges=False)
    clocks: list[float] = []
    for event in stream:
        assert budget._clock is not None
        clocks.append(budget._clock / CLOCK_UNITS)
        after = budget._after(event, 1)
        if after._clock is None:
            break
        budget = after
    known = fixed = len(clocks) - 1
    while reached(stream[: known + 1], clocks, epsilon) <= delta:
        known += 1
    while compose(stream[: fixed + 1]).epsilon_at(delta).upper <= epsilon:
        fixed += 1
    return known, fixed


def drawn_charge(draw: random.Random, typical: float) -> Event:
    """A charge of some kind, whose epsilon (or one over its noise) is about the typical one or far below it."""
    size = float(f"{typical * draw.choice([1, 1, 0.3, 0.05]) * draw.uniform(0.2, 1.5):.3g}")
    kinds: tuple[Event, ...] = (
        ApproxDP(size),
        ApproxDP(size, draw.choice([0.0, 1e-14])),
        GaussianNoise(1 / size),
        LaplaceNoise(1 / size),
        DiscreteLaplaceNoise(1 / size),
        Sampled(GaussianNoise(1 / max(size, 0.05)), draw.choice([0.01, 0.1])),
    )
    return draw.choice(kinds)


def stress(number: int, seed: int) -> Iterator[float]:
    """The epsilon that was surely reached, over the budget's, in so many drawn budgets and streams."""
    draw = random.Random(seed)
    for _ in range(number):
        epsilon, delta = round(draw.uniform(0.2, 5), 2), float(f"{10 ** draw.uniform(-12, -2):.2g}")
        menu = [drawn_charge(draw, epsilon / draw.choice([3, 10, 40])) for _ in range(draw.randint(1, 4))]
        stream = [draw.choice(menu) for _ in range(400)]
        for budget in (Account.of(epsilon, delta), ClockFilter(epsilon, delta, leak=delta / 32)):
            admits = stream[: admitted(budget, stream)]
            yield compose(admits).epsilon_at(delta).lower / epsilon if admits else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stress", type=int, default=0)
    options = parser.parse_args()
    if options.stress:
        found = sorted(stress(options.stress, options.seed))
        Console().print(
            f"{len(found):,} streams: the budget's epsilon is used to {found[len(found) // 2]:.4f} in the "
            f"median and to {found[-1]:.6f} at most"
        )
        if not found[-1] <= 1:
            raise SystemExit("more was admitted than could have been fixed in advance")
        return
    for epsilon, delta in BUDGETS:
        for mixed in (False, True):
            draw = random.Random(options.seed)
            table = [counts(drawn_stream(draw, mixed), epsilon, delta) for _ in range(options.streams)]
            means = [f"{sum(column) / len(table):.1f}" for column in zip(*table, strict=True)]
            named = zip(("Renyi", "clock", "streams", "ledger", "known stream", "fixed"), means, strict=True)
            text = ", ".join(f"{name} {mean}" for name, mean in named)
            Console().print(f"({epsilon:g}, {delta:g}){', half Gaussian' if mixed else ''}: {text}", width=200)


if __name__ == "__main__":
    main()

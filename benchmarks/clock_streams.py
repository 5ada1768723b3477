"""What freedom costs when charges differ: `python -m benchmarks.clock_streams [--streams N]`.

A stream is a list of charges between 0.001 and 0.05, in steps of 0.001, in random order; in mixed streams about half
are Gaussian noise of multiplier 1/charge. How many of them fit a budget

    by Renyi divergences, by the clock with plain sums, by `StreamFilter` and by a ledger, which all allow anything
        else at any time;
    if the stream is known, but the analyst may leave it at any time for Gaussian noise, as much as the clock has left
        then (as long as it has paid for all so far), found by dynamic programming over the losses;
    if the stream is fixed in advance.

The second is more than any filter can admit that keeps all promises of the clock. Doubles, for the picture only.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy.special import ndtr

from farthing.accounting.compose import compose
from farthing.accounting.filters import ClockFilter, RenyiFilter, StreamFilter
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.ledger.account import Account
from farthing.privacy import ApproxDP, Event, GaussianNoise

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
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

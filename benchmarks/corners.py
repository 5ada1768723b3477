"""The slowest compositions that a random search finds: `python -m benchmarks.corners [--cases N] [--seed N]`.

Each case draws how many epsilons, between which bounds, with how many decimals and at which delta; the seconds are
those of the processor. `--json` prints every case, so that two versions can be compared case by case.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from farthing.accounting import compose


@dataclass(frozen=True)
class Corner:
    """One drawn composition, and what its proof took."""

    name: str
    delta: float
    seconds: float
    lower: float
    upper: float
    engine: str


def named() -> Iterator[tuple[str, list[float], float]]:
    """The two that were the slowest when this was written, in every run."""
    draw = random.Random(3)
    yield "60 six-digit decimals in 0..1", [draw.randrange(1, 10**6) / 10**6 for _ in range(60)], 0.1
    yield "228 reals in 1..8", [draw.uniform(1, 8) for _ in range(228)], 0.5


def drawn(seed: int, cases: int) -> Iterator[tuple[str, list[float], float]]:
    """Epsilons and a delta, `cases` times."""
    draw = random.Random(seed)
    for _ in range(cases):
        k = round(10 ** draw.uniform(1.3, 3.2))
        low = 10 ** draw.uniform(-3, 0.6)
        high = min(low * 10 ** draw.uniform(0, 2.5), 12.0)
        digits = draw.choice([2, 3, 4, 5, 6, 7, 8, None, None, None])
        powers = draw.choice([(-20.0, -4.0), (-4.0, -0.05), (-1.5, -0.05)])
        delta = 10 ** draw.uniform(*powers)
        epsilons = [draw.uniform(min(low, high), high) for _ in range(k)]
        if digits is not None:
            epsilons = [max(round(epsilon, digits), 10.0**-digits) for epsilon in epsilons]
        kind = "reals" if digits is None else f"{digits}-digit decimals"
        yield f"{k} {kind} in {low:.2g}..{high:.2g}", epsilons, delta


def measured(name: str, epsilons: list[float], delta: float) -> Corner:
    """One proof, with the seconds of the processor that it took."""
    composition = compose(epsilons)
    start = time.process_time()
    bounds = composition.epsilon_at(delta)
    seconds = time.process_time() - start
    return Corner(name, delta, seconds, bounds.lower, bounds.upper, composition.engine_at(delta).name)


def main() -> None:
    """Search, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corners", description="slow compositions")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", action="store_true", help="one line for every case, in the order of drawing")
    options = parser.parse_args()
    found = []
    for case in (*named(), *drawn(options.seed, options.cases)):
        found.append(measured(*case))
        if options.json:
            print(json.dumps(asdict(found[-1])), flush=True)
    if options.json:
        return
    slowest = [*found[:2], *sorted(found[2:], key=lambda corner: -corner.seconds)[:8]]
    for corner in slowest:
        width = corner.upper - corner.lower
        print(f"{corner.seconds:6.2f} s  {width:.1e} wide  {corner.engine:8}  {corner.name} at {corner.delta:.2g}")
    print(f"{sum(corner.seconds for corner in found):6.2f} s  all {len(found)}")


if __name__ == "__main__":
    main()

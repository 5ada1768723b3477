"""Cells of integer noise per second: the vector sampler beside OpenDP's and beside drawing one number at a time.

The same distributions, drawn the way their users draw them: a whole vector in one call, imports done. The first call
pays for tables; the best of a few calls is the speed. Seconds are those of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.race import ask
from benchmarks.targets import Target

DISTRIBUTIONS = ("Laplace", "Gaussian")
SCALES = (1, 100, 1_000_000)
JUDGED = 100  # the slow ones draw big vectors at this scale only
SAMPLERS = {"vector": "farthing, vector", "opendp": "OpenDP", "scalar": "farthing, scalar"}
FEW = 1_000
COLUMNS = ("noise", "sampler", "cells", "first, cpu s", "best, cpu s", "cells a second")


@dataclass(frozen=True)
class Speed:
    """One measurement; `seconds` is None when it did not finish."""

    distribution: str
    scale: int
    sampler: str
    size: int
    first_seconds: float | None
    seconds: float | None
    failure: str = ""

    def row(self) -> tuple[str, ...]:
        """The measurement as text."""
        noise = f"{self.distribution}, {'scale' if self.distribution == 'Laplace' else 'std. dev.'} {self.scale:,}"
        if self.seconds is None or self.first_seconds is None:
            return (noise, SAMPLERS[self.sampler], f"{self.size:,}", "", "", "failed")
        speed = f"{self.size / self.seconds:,.0f}"
        times = (f"{self.first_seconds:.3g}", f"{self.seconds:.3g}")
        return (noise, SAMPLERS[self.sampler], f"{self.size:,}", *times, speed)


def drawing(distribution: str, scale: int, sampler: str, size: int) -> Callable[[], Any]:
    """A call that draws one vector."""
    parameter = Fraction(scale) if distribution == "Laplace" else Fraction(scale) ** 2
    if sampler == "vector":
        from farthing.mechanisms import samplers
        from farthing.mechanisms.randomness import SYSTEM

        vector = samplers.discrete_laplace_noise if distribution == "Laplace" else samplers.discrete_gaussian_noise
        return lambda: vector(parameter, size, SYSTEM)
    if sampler == "opendp":
        from farthing.mechanisms.samplers import opendp_samplers

        peer = (
            opendp_samplers.discrete_laplace_noise
            if distribution == "Laplace"
            else opendp_samplers.discrete_gaussian_noise
        )
        peer(parameter, 1)  # its library is loaded at the first call
        return lambda: peer(parameter, size)
    from farthing.mechanisms.randomness import SYSTEM
    from farthing.mechanisms.samplers import single_draws

    single = single_draws.discrete_laplace if distribution == "Laplace" else single_draws.discrete_gaussian

    def one_by_one() -> list[int]:
        bits = single_draws.Bits(SYSTEM, block=4096)
        return [single(parameter, bits) for _ in range(size)]

    return one_by_one


def speeds(quick: bool, cap: float, say: Callable[[str], None]) -> Iterator[Speed]:
    """Every sampler on every distribution, few cells and many."""
    most = 100_000 if quick else 1_000_000
    for distribution in DISTRIBUTIONS:
        for scale in SCALES:
            for sampler in SAMPLERS:
                for size in (FEW, min(most, 100_000) if sampler == "scalar" else most):
                    if size > FEW and sampler != "vector" and scale != JUDGED:
                        continue
                    say(f"{size:,} cells of {distribution} noise, scale {scale:,}: {SAMPLERS[sampler]}")
                    task: dict[str, Any] = {
                        "distribution": distribution,
                        "scale": scale,
                        "sampler": sampler,
                        "size": size,
                    }
                    data = ask(3 * cap, what="sampling", **task)
                    times = data.get("first_seconds"), data.get("seconds")
                    yield Speed(distribution, scale, sampler, size, *times, data.get("failure", ""))


def sampler_targets(measured: list[Speed]) -> list[Target]:
    """The promise: the same distribution as OpenDP's, at least five times as fast on big vectors."""
    rows = []
    for distribution in DISTRIBUTIONS:
        mine, peer = (
            [
                s
                for s in measured
                if (s.distribution, s.scale, s.sampler) == (distribution, JUDGED, sampler) and s.size > FEW
            ]
            for sampler in ("vector", "opendp")
        )
        done = mine and peer and mine[0].seconds and peer[0].seconds
        ratio = peer[0].seconds / mine[0].seconds if done else None  # type: ignore[operator]
        size = f"{mine[0].size:,} cells: " if mine else ""
        what = f"{size}discrete {distribution} noise faster than OpenDP's"
        text = "did not finish" if ratio is None else f"{ratio:,.3g}×"
        rows.append(Target(what, "at least 5×", text, None if ratio is None else ratio >= 5))
    return rows


def show_speeds(console: Console, measured: list[Speed]) -> None:
    """One table of all measurements."""
    title = "Noise for vectors, in one run"
    table = Table(*COLUMNS, title=title, title_justify="left", title_style="bold")
    for i, column in enumerate(table.columns):
        column.justify, column.no_wrap = ("left" if i < 2 else "right"), True
    for speed in measured:
        table.add_row(*speed.row(), style="green" if speed.sampler == "vector" else None)
    console.print(table)
    for speed in measured:
        if speed.failure:
            console.print(f"  {', '.join(speed.row()[:3])} cells: {speed.failure}", style="dim", highlight=False)

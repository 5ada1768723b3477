"""The last total of a running series beside separate releases at the same price: `python -m benchmarks.growing`."""

from __future__ import annotations

from farthing.adaptive.monitor import Series
from farthing.adaptive.running_series import RunningSeriesPlan, plan_running_series
from farthing.privacy.periods import Periods

STEPS = (("month", 12), ("month", 60), ("month", 120), ("day", 365), ("day", 1_095))


def plan(every: str, steps: int, epsilon: float = 1.0, delta: float = 1e-9) -> RunningSeriesPlan:
    """A series of one row a person, to which rows are only added."""
    periods = Periods.of(every, "2020-01", steps)
    return plan_running_series([Series("all", "all")], periods, epsilon=epsilon, delta=delta, append_only=True)


def lines() -> list[str]:
    """A row for each number of steps, as docs/growing.md has them."""
    rows = []
    for every, steps in STEPS:
        series = plan(every, steps)
        last, repeated = float(series.total_errors[-1]), float(series.repeated_errors[-1])
        assert series.summed_errors is not None
        summed = float(series.summed_errors[-1])
        ratios = f"{repeated:,.0f} ({last / repeated:.2f}) | {summed:,.0f} ({last / summed:.2f})"
        rows.append(f"| {steps:,} {every}s | {last:,.1f} ({series.strategy}) | {ratios} |")
    return rows


def main() -> None:
    """Print the table."""
    print("\n".join(lines()))


if __name__ == "__main__":
    main()

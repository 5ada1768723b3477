"""Promises beside what was delivered: `python -m benchmarks.promises [--quick] [--json] [--releases N] [--only WORD]`.

Every kind of statistic on every example table is planned twice, with everything expected as it truly is and with
nothing expected but the number of rows, and each plan is released 400 times. Said is, for each:

- coverage: how often the 95% interval of the release held the truth, in all cells; the band is 93 to 98%. The upper end
  is 1% above what is attainable where that is more, by exact computation: noise of whole steps jumps over 95%, an
  interval of counts cannot miss a count below it that would be negative, a truth that lies on the bound of what is
  possible cannot be missed on that side, and ranks jump by as many rows as share a value or a step of the grid;
- RMS: the root mean squared error over the plan's standard error, at most 1.1; and at least 0.9 when everything was
  expected rightly and counts and shares are taken as the noise left them (`raw`). Moved to where they must lie, to no
  count below 0 and their noisy total, they are better than predicted: of sparse tables several times. That is no fault;
- bias: the mean error of the total of a table of counts, in standard errors of that mean; below 3.

Every plan gets the same number of releases, and nothing is drawn again. Of 400 intervals that each hold the truth with
95%, fewer than 93% do so by chance in one plan in thirty; so there are three verdicts. `kept` is inside the band.
`broken` is outside by more than chance: a test of the band's end rejects it, at one in a thousand for the whole table
(168 plans of three figures, z = 4.8); cells of one release count as one draw. `in doubt` is what lies between. More
`--releases` tell which it is.

The releases are drawn below the ledger, from the engine's exact numbers, which are added up once.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import farthing as ft
from benchmarks.promise_tables import KINDS, Example, Floats, Kind, examples
from farthing.inference import ErrorDistribution, Term
from farthing.inference.answers import SymmetricInterval
from farthing.inference.noise_sums import tail_of_sum
from farthing.statistics.measurements import Noise
from farthing.statistics.moments.mean_outputs import MomentOutput
from farthing.statistics.quantiles.quantile_intervals import NoisyRanks
from farthing.statistics.quantiles.quantile_outputs import QuantileOutput
from farthing.statistics.ranges.strategy_slots import StrategySlot
from farthing.study import Plan

RELEASES, QUICK = 400, 60
EPSILON, DELTA = 1.0, 1e-9
LEAST, MOST, OFF, BIAS = 0.93, 0.98, 0.10, 3.0
_LIKELY = 0.999  # of the choices of a quantile that are looked at, by probability; the others miss nothing
CHANCE = 4.8  # standard errors: 168 plans of three figures exceed it once in a thousand tables


@dataclass(frozen=True)
class Delivered:
    """One kind on one table: what was promised over what came out."""

    table: str
    kind: str
    told: bool
    releases: int
    coverage: float
    attainable: float
    rms: float
    raw: float
    bias: float | None
    spreads: tuple[float, float, float]  # standard errors of coverage, and of rms and raw squared

    @property
    def deviations(self) -> dict[str, float]:
        """Which figures lie outside their bands, in words, and by how many of their standard errors."""
        coverage, rms, raw = (max(spread, 1e-9) for spread in self.spreads)
        most = max(MOST, self.attainable + 0.01)
        # Of a share near a limit p the standard error is that of p, however few were seen to miss it.
        low, high = (max(coverage, (p * (1 - p) / self.releases) ** 0.5) for p in (LEAST, min(most, 0.999)))
        found = {
            f"coverage {self.coverage:.1%}": (LEAST - self.coverage) / low,
            f"coverage {self.coverage:.1%} of {self.attainable:.1%} attainable": (self.coverage - most) / high,
            f"RMS {self.rms:.2f} of predicted": (self.rms**2 - (1 + OFF) ** 2) / rms,
        }
        if self.told:
            found[f"raw RMS {self.raw:.2f} of predicted"] = max(
                (self.raw**2 - (1 + OFF) ** 2) / raw, ((1 - OFF) ** 2 - self.raw**2) / raw
            )
        outside = {words: size for words, size in found.items() if not size <= 0}
        if self.bias is not None and not abs(self.bias) < BIAS:
            outside[f"total off by {self.bias:.1f} standard errors"] = abs(self.bias)
        return outside

    @property
    def faults(self) -> tuple[str, ...]:
        """Which promises are broken, by more than chance leaves open."""
        return tuple(words for words, size in self.deviations.items() if not size <= CHANCE)

    @property
    def verdict(self) -> str:
        """Kept, in doubt or broken, and by what."""
        words = "; ".join(self.deviations)
        return f"{'broken' if self.faults else 'in doubt'}: {words}" if words else "kept"


@dataclass(frozen=True)
class Answers:
    """Many releases of one statistic: of each its cells, their 95% intervals, and the cells as the noise left them."""

    values: Floats
    lower: Floats
    upper: Floats
    raw: Floats


def expected_of(example: Example, kind: Kind) -> dict[str, Any]:
    """Everything about the table as it truly is, as a steward would say it."""
    group, flag, band = (example.columns[name] for name in ("group", "flag", "band"))
    own = np.asarray(example.columns["x"], dtype=float)
    there = ~np.isnan(own)
    found: dict[str, Any] = {
        "rows": example.rows,
        "group": {one: float(np.mean(group == one)) for one in example.groups},
        "flag": {False: float(np.mean(~flag)), True: float(np.mean(flag))},
        "band": [float(value) for value in band],
        "x": [float(value) if known else None for value, known in zip(own, there, strict=True)],
    }
    if kind.name == "regression":
        found["y"] = [float(value) for value in example.columns["y"]]
    if kind.name in ("count by", "histogram", "contingency", "mean by") and kind.truth is not None:
        found[kind.ask(example).name] = kind.truth(example).tolist()
    return found


def delivered(example: Example, kind: Kind, *, told: bool, releases: int) -> Delivered:
    """Plan once, release many times."""
    statistic = kind.ask(example)
    with tempfile.TemporaryDirectory() as folder:
        study = ft.Study(
            example.dataset, epsilon=EPSILON, delta=DELTA, ledger=Path(folder) / "study.db", account="table"
        )
        plan = study.plan(statistic, expected=expected_of(example, kind) if told else {"rows": example.rows})
        answers, truth = released(plan, kind.truth and kind.truth(example), releases)
        attainable = attainable_coverage(plan, truth, kind.bounds and kind.bounds(example))
        found = compared(example, kind, told, plan, answers, truth, attainable)
        study.close()
    return found


def compared(
    example: Example, kind: Kind, told: bool, plan: Plan, answers: Answers, truth: Floats, attainable: float
) -> Delivered:
    """What came out, beside what was promised."""
    promised = np.asarray(plan.statistics[0].distribution.standard_errors, dtype=float)
    errors, plain = answers.values - truth, answers.raw - truth
    inside = (answers.lower <= truth + 1e-9) & (truth - 1e-9 <= answers.upper)
    squares = [np.mean(each**2, axis=1) / np.mean(promised**2) for each in (errors, plain)]
    rms, raw = (float(np.sqrt(np.mean(each))) for each in squares)
    spreads = [float(np.std(each) / len(errors) ** 0.5) for each in (inside.mean(axis=1), *squares)]
    totals = errors.sum(axis=1)
    spread = float(totals.std() / len(totals) ** 0.5)
    bias = float(totals.mean() / spread) if kind.adds_up and spread > 0 else None
    return Delivered(
        example.name, kind.name, told, len(errors), float(inside.mean()), attainable, rms, raw, bias,
        (spreads[0], spreads[1], spreads[2]),
    )  # fmt: skip


def released(plan: Plan, truth: Floats | None, releases: int) -> tuple[Answers, Floats]:
    """Answers of a plan of one statistic, each with noise of its own, and what they should be."""
    measurements, (output,) = plan.measurements, plan.design.outputs
    noises, exact = measurements.noises, measurements.exact(plan.study.dataset)
    if truth is None:
        plain = {
            slot.name: slot.transforms[noises[slot.name].kind].apply(slot.own(exact))
            for slot in measurements.slots
            if isinstance(slot, StrategySlot)
        }
        truth = np.atleast_1d(output.answer(plain, noises).values)
    measured = [measurements.measure(exact) for _ in range(releases)]
    if isinstance(output, MomentOutput):
        return answers_of_moments(output, measured, noises), truth
    found = [output.answer(one, noises) for one in measured]
    parts = [[getattr(one, name) for one in found] for name in ("values", "lower", "upper", "raw")]
    return Answers(*(np.array(part, dtype=float).reshape(releases, -1) for part in parts)), truth


def wide_moments(output: MomentOutput, releases: int) -> MomentOutput:
    """An output whose cells are those of many releases: each is a function of its own measurements only."""
    shared = output.shared
    rows, mean, variance = (np.tile(part, releases) for part in (shared.rows, output.mean, output.variance))
    first = len(shared.rows) * np.arange(releases)[:, None]
    members = np.where(shared.members >= 0, shared.members + first, -1).reshape(-1)
    wide = replace(shared, rows=rows, members=members)
    return replace(output, shared=wide, mean=mean, variance=variance, labels=())


def answers_of_moments(
    output: MomentOutput, measured: Sequence[Mapping[str, Any]], noises: Mapping[str, Noise]
) -> Answers:
    """The same answers, as the cells of one output: their intervals are solved for together, ten times as fast.

    The first release is answered by itself as well: one that comes out otherwise is an error here. Ends of intervals
    are solved for to about a hundred-thousandth of their width.
    """
    many = len(measured)
    together = {name: np.concatenate([one[name] for one in measured]) for name in measured[0]}
    values, _, interval = wide_moments(output, many).estimate(together, noises)
    raw = interval.centre if isinstance(interval, SymmetricInterval) else values
    found = Answers(*(part.reshape(many, -1) for part in (values, *interval(0.95), raw)))
    alone = output.answer(measured[0], noises)
    solved = 1e-4 * np.max(np.asarray(alone.upper, dtype=float) - alone.lower)
    for name in ("values", "lower", "upper", "raw"):
        room = solved if name in ("lower", "upper") else 1e-12
        if not np.allclose(getattr(found, name)[0], getattr(alone, name), rtol=1e-12, atol=room):
            raise RuntimeError(f"{output.name}: {name} of a release depend on what else is released")
    return found


def attainable_coverage(plan: Plan, truth: Floats, bounds: tuple[float, float] | None = None) -> float:
    """What the interval must hold on average: whole numbers step over 95%; a truth on a bound is missed on one side.

    Only a truth on the bound itself: one beside it is missed by an interval that was cut to nothing at the bound. Where
    there is no error, nothing is missed.
    """
    (statistic,) = plan.statistics
    if isinstance(statistic.output, QuantileOutput):
        return attainable_of_quantile(plan, statistic.output)
    distribution, errors = statistic.distribution, np.asarray(statistic.errors(0.95))
    if bounds is not None:
        deviations = np.asarray(distribution.standard_errors)
        missed = sum(0.025 * (np.abs(truth - bound) > 1e-12 * (bounds[1] - bounds[0])) for bound in bounds)
        return float(np.mean(np.where(deviations > 0, 1 - missed, 1.0)))
    if (
        statistic.output.statistic.kind not in ("count", "histogram", "contingency")
        or type(distribution) is not ft.inference.ErrorDistribution
    ):
        return 0.95
    tails = np.array([tail_of_sum(distribution.cell(place).terms, float(errors[place])) for place in range(len(truth))])
    return float(np.mean(np.where(truth - errors <= 0, 1 - tails / 2, 1 - tails)))


def attainable_of_quantile(plan: Plan, output: QuantileOutput) -> float:
    """What the interval of one quantile holds on average: the share of its tests that reject what is true, exactly.

    A test at the end of a cell must hold for tables in which just q N rows lie at or below it, where it rejects in 5 of
    100 releases. In this table the rank at the one that decides is some rows away from q N, so that it rejects less
    often; how much less follows from the noise. Weighed are the points that the choice falls on, by their probability.
    """
    slot, q = output.slot, output.slot.probabilities[0]
    mechanism = slot.mechanism(plan.measurements.noises[slot.name])
    upto = np.cumsum(plan.measurements.exact(plan.study.dataset)[slot.name])
    wanted, below = q * upto[-1], np.append(0, upto[:-1])
    chances = np.exp(-float(mechanism.choosing.rates[0]) * np.maximum(0, np.maximum(below - wanted, wanted - upto)))
    chances /= chances.sum()
    likely = np.argsort(-chances)
    likely = likely[: 1 + int(np.searchsorted(np.cumsum(chances[likely]), _LIKELY))]
    truth, missed = int(np.searchsorted(upto, wanted)), 0.0
    scale = mechanism.counting().scale
    for point in likely[likely != truth].tolist():
        last = mechanism.last_points(np.array([point]))
        errors = NoisyRanks(last, np.zeros(len(last), dtype=np.int64), scale).rank_errors(q, 0.95)
        place = np.flatnonzero(last[:-1] < truth)[-1] if point < truth else np.flatnonzero(last[:-1] >= truth)[0]
        away = float(errors[place]) + abs(float(upto[last[place]]) - wanted)
        missed += chances[point] * _rank_tail(len(last), int(place) + 1, scale, q, round(away, 1)) / 2
    return 1 - missed


@cache
def _rank_tail(cells: int, below: int, scale: float, q: float, away: float) -> float:
    """How often the noise of a rank is that far off, on either side: of counts below it and of those above."""
    terms = [Term("laplace", scale, 1 - q, below), Term("laplace", scale, q, cells - below)]
    return tail_of_sum(ErrorDistribution(terms, 1).cell(0).terms, away)


def promises(releases: int, only: str = "") -> Iterator[Delivered]:
    """All of them, one after the other."""
    for example in examples():
        for kind in KINDS:
            if only and only not in f"{example.name} {kind.name}":
                continue
            for told in (True, False):
                yield delivered(example, kind, told=told, releases=releases)


def main() -> None:
    """Run, print as it goes, end with what was broken; the exit code says whether anything was."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promises", description="promised and delivered")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} releases instead of {RELEASES}")
    parser.add_argument("--releases", type=int, help="how many releases of each plan")
    parser.add_argument("--only", default="", help="only tables and kinds with these words, such as 'tiny mean'")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each")
    options = parser.parse_args()
    releases = options.releases or (QUICK if options.quick else RELEASES)
    console = Console(width=130)
    shown = Table(
        "table", "statistic", "expected", "releases", "coverage", "attainable", "RMS / predicted", "raw",
        "bias of the total", "",
    )  # fmt: skip
    broken = doubted = 0
    found = promises(releases, options.only)
    for one in found if options.json else track(found, "releasing", 2 * len(examples()) * len(KINDS), console=console):
        broken += bool(one.faults)
        doubted += bool(one.deviations) and not one.faults
        if options.json:
            print(json.dumps({**asdict(one), "verdict": one.verdict, "faults": one.faults}), flush=True)
        shown.add_row(
            one.table, one.kind, "as it is" if one.told else "left out", f"{one.releases:,}", f"{one.coverage:.1%}",
            f"{one.attainable:.1%}",
            f"{one.rms:.2f}", f"{one.raw:.2f}", "" if one.bias is None else f"{one.bias:+.1f}",
            one.verdict,
        )  # fmt: skip
    if not options.json:
        console.print(shown)
        console.print(
            "raw: as the noise left them; cells of sparse tables that were moved to where they must lie are better "
            "than predicted"
        )
        console.print(f"{broken} of {shown.row_count} are broken, {doubted} in doubt")
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()

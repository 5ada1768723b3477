"""`farthing strategies`: which strategy answers a workload best, before there is any data."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import decimal_number, whole_number
from farthing.errors import InvalidValue
from farthing.numerics.bounds import as_typed
from farthing.privacy.events import checked_delta, checked_epsilon

if TYPE_CHECKING:
    from farthing.matrix.strategy_candidates import Candidates
    from farthing.matrix.workloads.workload import Workload

KINDS = ("prefix", "all-ranges", "identity", "total", "marginals")
_MOST_COLUMNS = 64
_MOST_CELLS = 2**22

HELP = """\
Compare the strategies that answer a workload: the expected error of a query, and which of them wins.

WORKLOAD is prefix (all x < i: a cumulative histogram), all-ranges, identity (every cell), total or marginals. N is the
number of cells, or sizes such as 64x64 for a product over several columns; marginals take the sizes of their columns
and --way.

\b
Examples:
  farthing strategies prefix 1024 --epsilon 0.1
  farthing strategies all-ranges 64x64 --delta 1e-9
  farthing strategies marginals 2x5x10x16 --way 2

No data is needed and nothing is spent: errors follow from the noise. An optimised strategy takes up to a minute the
first time and is kept on disk for the next (see FARTHING_CACHE); --quick leaves it out.

Exit code: 0 with a table; 2 when the input is refused; 130 when interrupted.
"""


@click.command("strategies", help=HELP, short_help="Compare the strategies that answer a workload.")
@click.argument("workload")
@click.argument("n")
@click.option("--epsilon", metavar="E", default="1", help="The epsilon of everything together (default: 1).")
@click.option("--delta", metavar="D", default="0", help="The delta (default: 0, which allows Laplace noise only).")
@click.option("--way", metavar="K", help="How many columns each marginal has (default: 2).")
@click.option("--quick", is_flag=True, help="Leave out what has to be optimised first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def strategies_command(
    workload: str, n: str, epsilon: str, delta: str, way: str | None, quick: bool, as_json: bool
) -> None:
    """Check the arguments, weigh the strategies one by one, print the table."""
    budget = checked_epsilon(decimal_number(epsilon, "epsilon"))
    if not 0 < budget <= 50:
        raise InvalidValue("epsilon", budget, "must be > 0 and at most 50")
    leak = checked_delta(decimal_number(delta, "delta"))
    asked = read_workload(workload, n, way)

    from rich.console import Console

    from farthing.cli.terminal import stages

    with stages(Console(stderr=True)) as work:
        table = weighed_strategies(asked, budget, leak, quick=quick, work=work)
    if as_json:
        click.echo(json.dumps(table.as_data(), indent=2, allow_nan=False))
        return
    click.echo(str(table))


def read_workload(kind: str, n: str, way: str | None) -> Workload:
    """The workload that two words describe.

    >>> read_workload("prefix", "1024", None).queries, read_workload("marginals", "2x3x4", "2").queries
    (1024, 26)
    """
    from farthing.matrix import workloads

    if kind not in KINDS:
        raise InvalidValue("workload", kind, f"must be one of {', '.join(KINDS)}")
    sizes = [whole_number(size, "n") for size in n.lower().split("x")]
    if not all(1 <= size <= 2**20 for size in sizes) or len(sizes) > _MOST_COLUMNS:
        raise InvalidValue("n", n, "must be cells, from 1 to 1,048,576", "such as 1024, or 64x64")
    if way is not None and kind != "marginals":
        raise InvalidValue("way", way, "is for marginals only", "leave it out")
    if kind != "marginals" and not math.prod(sizes) <= _MOST_CELLS:
        raise InvalidValue("n", n, f"must be at most {_MOST_CELLS:,} cells together", "use fewer or wider cells")
    if kind == "marginals":
        return workloads.marginals(tuple(sizes), way=2 if way is None else whole_number(way, "way"))
    makers: dict[str, Any] = {
        "prefix": workloads.prefix,
        "all-ranges": workloads.all_ranges,
        "identity": workloads.identity,
        "total": workloads.total,
    }
    parts = [makers[kind](size) for size in sizes]
    return parts[0] if len(parts) == 1 else workloads.product(*parts)


@dataclass(frozen=True)
class StrategyTable:
    """What was weighed, and how long each strategy took to be found."""

    workload: Workload
    epsilon: float
    delta: float
    candidates: Candidates
    seconds: dict[str, float]

    def __str__(self) -> str:
        from farthing.matrix.data_dependent.strategy_choice import suits_choice

        shape = " x ".join(f"{size:,}" for size in self.workload.shape)
        lines = [
            f"{self.workload.queries:,} queries over {shape} cells at epsilon = {as_typed(self.epsilon)}, "
            f"delta = {as_typed(self.delta)}",
            "",
        ]
        rows = [("", "strategy", "expected RMSE", "seconds", "why")]
        rows += [
            (
                "*" if one.chosen else "",
                one.strategy,
                "-" if one.rmse is None or not math.isfinite(one.rmse) else f"{one.rmse:,.4g}",
                f"{self.seconds[one.strategy]:.2f}",
                one.why,
            )
            for one in self.candidates
        ]
        widths = [max(len(row[place]) for row in rows) for place in range(5)]
        for row in rows:
            cells = [
                cell.rjust(width) if place in (2, 3) else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines += [
            "",
            "RMSE: the root mean squared error of a query, in rows. * has the least; it is the same for all data.",
        ]
        if suits_choice(self.workload):
            lines.append(
                'With rows at hand, answer_workload(strategy="auto") spends a few percent of epsilon on a look at '
                "them: if they are\nmany and uneven it takes the best fixed strategy, else it measures neighbouring "
                "cells together."
            )
        return "\n".join(lines)

    def as_data(self) -> dict[str, Any]:
        """The table for programs; an error that is not known is null."""
        return {
            "shape": list(self.workload.shape),
            "queries": self.workload.queries,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "candidates": [
                {
                    "strategy": one.strategy,
                    "rmse": one.rmse if one.rmse is not None and math.isfinite(one.rmse) else None,
                    "seconds": round(self.seconds[one.strategy], 4),
                    "why": one.why,
                    "chosen": one.chosen,
                }
                for one in self.candidates
            ],
        }


def weighed_strategies(workload: Workload, epsilon: float, delta: float, *, quick: bool, work: Any) -> StrategyTable:
    """Every strategy that suits the workload, one after the other, with its time."""
    from farthing.matrix.strategies.marginal_strategy import marginal_tables
    from farthing.matrix.strategies.strategy_registry import suitable
    from farthing.matrix.strategy_candidates import StrategyPrices, optimised_at_best, prices_of_strategies, table_of

    names = [name for name in suitable(workload) if name != "optimised"]
    strategies: dict[str, Any] = {}
    refused: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name in names if quick else [*names, "optimised"]:
        work.begin(f"weighing {name}", measured=name == "optimised")
        start = time.perf_counter()
        if name == "optimised":
            if len(workload.shape) > 1 and marginal_tables(workload) is not None:
                refused[name] = "not looked for: marginals have a strategy of their own"
            else:
                try:
                    strategies[name] = optimised_at_best(workload, epsilon, delta, work.share)
                except InvalidValue as error:
                    refused[name] = error.rule
        else:
            one = prices_of_strategies(workload, epsilon, delta, [name])
            strategies |= one.prices
            refused |= one.refused
        seconds[name] = time.perf_counter() - start
    if not strategies:
        raise InvalidValue("workload", workload.cells, "suits no strategy", "; ".join(refused.values()))
    best = min(strategies, key=lambda name: strategies[name].total_variance(workload))
    table = table_of(StrategyPrices(strategies, refused), workload, best)
    return StrategyTable(workload, epsilon, delta, table, seconds)

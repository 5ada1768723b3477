"""The accountant's story, chapter by chapter, on charges made up for the purpose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.accounting import compose
from farthing.accounting.filters import BasicFilter, Filter, FullyAdaptiveFilter, RenyiFilter
from farthing.accounting.theorems import kov_heterogeneous_bound, table
from farthing.cli.numbers import interval, shown, shown_down, shown_up
from farthing.numerics import Bounds
from farthing.plots import epsilon_against_delta, epsilon_against_k, theorem_bars, tradeoff_curve
from farthing.privacy import GaussianNoise, LaplaceNoise

DELTA = 1e-6
SEED = 1913  # charges only: randomness that protects people is never seeded


@dataclass(frozen=True)
class Chapter:
    """A claim, the numbers that show it, what they mean, and a chart where one helps."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    moral: str
    chart: Any = None


def chapters() -> Iterator[Chapter]:
    """The story in order; each chapter is computed when it is asked for."""
    yield _sums_and_the_optimum()
    yield _a_thousand_different_charges()
    yield _tiny_deltas()
    yield _noise_that_is_known()
    yield _charges_chosen_on_the_way()


def _sums_and_the_optimum() -> Chapter:
    optimal = compose([0.1], counts=[100]).epsilon_at(DELTA)
    rows = [row for row in table([0.1], [0.0], [100], DELTA) if row.applies]
    lines = [("optimal", shown_up(optimal.upper), "")]
    lines += [
        (row.name, shown_up(row.epsilon), shown(max(0.0, row.epsilon - optimal.upper), 3)) for row in rows
    ]
    return Chapter(
        "One hundred statistics of epsilon 0.1 do not cost 10",
        ("theorem", "epsilon", "waste"),
        tuple(lines),
        f"At delta = {shown(DELTA)} the optimum lies {_proven(optimal)}. The sum of epsilons charges "
        f"{shown(10 / optimal.upper, 3)} times as much for the same statistics.",
        theorem_bars(rows, optimal),
    )


def _a_thousand_different_charges() -> Chapter:
    epsilons = np.random.default_rng(SEED).uniform(0.005, 0.1, 1000)
    start = time.perf_counter()
    composition = compose(epsilons)
    optimal = composition.epsilon_at(DELTA)
    seconds = time.perf_counter() - start
    closed = kov_heterogeneous_bound(epsilons, DELTA)
    return Chapter(
        "A thousand different epsilons: a proof, not a guess",
        ("what", "epsilon"),
        (
            ("sum", shown_up(float(epsilons.sum()))),
            ("KOV closed form", shown_up(closed)),
            ("optimal, upper bound", shown_up(optimal.upper, 10)),
            ("optimal, lower bound", shown_down(optimal.lower, 10)),
        ),
        f"The exact optimum is #P-hard in general; the interval is {shown(optimal.width, 2)} wide, proven with "
        f"floating-point error included, in {shown(seconds, 2)} s by the {composition.engine_at(DELTA).name} engine.",
        epsilon_against_k(),
    )


def _tiny_deltas() -> Chapter:
    composition = compose([0.1], counts=[100])
    deltas = (("1e-6", 1e-6), ("1e-9", 1e-9), ("1e-15", 1e-15), ("2^-100", 2.0**-100), ("1e-300", 1e-300))
    answers = [(name, composition.epsilon_at(delta)) for name, delta in deltas]
    return Chapter(
        "No delta is too small",
        ("delta", "epsilon", "width of the proven interval"),
        tuple((name, shown_up(bounds.upper, 10), shown(bounds.width, 2)) for name, bounds in answers),
        "Relative accuracy holds at every delta; methods built on plain FFTs stop near 1e-15.",
        epsilon_against_delta(),
    )


def _noise_that_is_known() -> Chapter:
    rows = []
    for name, event, count in (
        ("Laplace, b = 1", LaplaceNoise(1.0), 10),
        ("Laplace, b = 10", LaplaceNoise(10.0), 100),
    ):
        own = compose([event], counts=[count]).epsilon_at(DELTA)
        worst = compose([1 / event.noise_multiplier], counts=[count]).epsilon_at(DELTA)
        rows.append(_known_row(f"{count} x {name}", count / event.noise_multiplier, worst, own))
    gaussian, count = GaussianNoise(10.0), 100
    share = DELTA / (
        2 * count
    )  # half of delta, split evenly, buys each answer an (epsilon, delta) of its own
    each = compose([gaussian]).epsilon_at(share).upper
    worst = compose([each], [share], [count]).epsilon_at(DELTA)
    own_curve = compose([gaussian], counts=[count])
    rows.append(_known_row("100 x Gaussian, multiplier 10", count * each, worst, own_curve.epsilon_at(DELTA)))
    return Chapter(
        "Noise that is known costs less than the worst of its class",
        ("noise", "sum", "worst of class", "own curve", "saved"),
        tuple(rows),
        "For ten statistics at epsilon 1 even the optimum of the class saves nothing over the sum: "
        "the saving comes from knowing the noise.",
        tradeoff_curve(own_curve),
    )


def _charges_chosen_on_the_way() -> Chapter:
    budget, delta = 1.0, DELTA
    makers: tuple[tuple[str, Callable[[], Filter]], ...] = (
        ("basic sums", lambda: BasicFilter(budget, delta)),
        ("fully adaptive", lambda: FullyAdaptiveFilter(budget, delta, leak=0.0)),
        ("Renyi", lambda: RenyiFilter(budget, delta, leak=0.0)),
    )
    rows = [(name, f"{_answered(make()):,}") for name, make in makers]
    return Chapter(
        "When epsilons depend on earlier answers, only a filter may be trusted",
        ("filter", f"answers before epsilon {shown(budget)}, delta {shown(delta)} is spent"),
        tuple(rows),
        "The next epsilon was 0.005 or 0.01, whichever the last noisy answer suggested. A refused charge changes "
        "nothing. The optimum above is for parameters fixed in advance and is not a theorem here.",
    )


def _answered(budget: Filter) -> int:
    """How many answers an analyst gets who looks closer whenever the last answer was above zero."""
    rng = np.random.default_rng(SEED)
    epsilon = 0.005
    while budget.admits(epsilon):
        budget = budget.charge(epsilon)
        epsilon = 0.01 if rng.laplace(scale=1 / epsilon) > 0 else 0.005
    return budget.count


def _known_row(name: str, total: float, worst: Bounds, own: Bounds) -> tuple[str, ...]:
    saved = 100 * (1 - own.upper / worst.upper)
    return name, shown(total, 4), shown_up(worst.upper, 4), shown_up(own.upper, 4), f"{shown(saved, 2)} %"


def _proven(bounds: Bounds) -> str:
    return f"in {interval(bounds.lower, bounds.upper)}"

"""Draw the pictures of the gallery: `python docs/gallery/make.py` from the top of the repository.

The pictures are committed, so that the pages can be read without drawing anything; run this after changing a chart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adaptive_runs import answered, synthesised
from noise_claims import claims
from range_strategies import rows

from attacks import recovered
from farthing import compose
from farthing.accounting.theorems import table
from farthing.plots import (
    adaptive_charges,
    compare_regions,
    convergence,
    epsilon_against_delta,
    epsilon_against_k,
    error_growth,
    heterogeneous_gap,
    holdout_claims,
    privacy_regions,
    save,
    share_recovered,
    synthesis_rounds,
    theorem_bars,
    tradeoff_curve,
)
from farthing.privacy import GaussianNoise

HERE = Path(__file__).parent

PICTURES: dict[str, Callable[[], Any]] = {
    "privacy-regions": privacy_regions,
    "compare-regions": compare_regions,
    "epsilon-against-k": epsilon_against_k,
    "epsilon-against-delta": epsilon_against_delta,
    "adaptive-charges": adaptive_charges,
    "heterogeneous-gap": heterogeneous_gap,
    "holdout-claims": lambda: holdout_claims(**claims()),
    "theorem-bars": lambda: theorem_bars(
        table([0.1, 0.05], [0.0, 1e-9], [100, 20], 1e-6),
        compose([0.1, 0.05], [0.0, 1e-9], [100, 20]).epsilon_at(1e-6),
    ),
    "range-strategies": lambda: error_growth(rows()),
    "convergence": lambda: convergence(**answered()),
    "synthesis-rounds": lambda: synthesis_rounds(synthesised()),
    "share-recovered": lambda: share_recovered(**recovered()),
    "tradeoff-curve": lambda: tradeoff_curve(compose([GaussianNoise(4.0)], counts=[10])),
}


def draw(folder: Path = HERE) -> None:
    for name, make in PICTURES.items():
        print(save(make(), folder / f"{name}.svg").name)


if __name__ == "__main__":
    draw()

"""A peer of `benchmarks.mixed` that answers tables of two columns through one graphical model: OpenDP with mbi.

Its users release all wanted tables with Gaussian noise and an even share each, and fit one model to them; every table
is then read off the model. The fit takes long, so few releases are made: a table has many cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.mixed_tables import CATEGORIES, SIX, Asked, People, pairs


def opendp_model(
    people: People, number: int, epsilon: float, delta: float, rho: Callable[[Any, float, float], float]
) -> Callable[[Asked], Callable[[], Any] | None]:
    """OpenDP's contingency table of six columns by its `Fixed` algorithm over all pairs, under zCDP."""
    import opendp.prelude as prelude
    import polars

    dp: Any = prelude
    dp.enable_features("contrib")
    frame = polars.LazyFrame({name: people.columns[name].astype(np.int64) for name in SIX})
    keys = {name: list(range(len(CATEGORIES[name]))) for name in SIX}
    queries = [dp.mbi.Count(by=asked.by) for asked in pairs()]
    made: list[Any] = []
    turns: Counter[str] = Counter()

    def release() -> Any:
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=people.most_rows),
            privacy_loss=dp.loss_of(rho=rho(dp, epsilon, delta)),
            split_evenly_over=1,
        )
        return context.query().contingency_table(keys=keys, algorithm=dp.mbi.Fixed(queries=queries)).release()

    def contender(asked: Asked) -> Callable[[], Any] | None:
        if asked.kind != "marginal":
            return None
        sizes = [slice(len(CATEGORIES[name])) for name in asked.by]  # beyond them: the rows without a value

        def draw() -> Any:
            turn = turns[asked.name]
            turns[asked.name] += 1
            if turn == len(made):
                made.append(release())
            return np.asarray(made[turn].project(asked.by))[*sizes]

        return draw

    return contender

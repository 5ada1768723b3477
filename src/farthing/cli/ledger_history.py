"""How a budget came to be what it is: the ledger read from its first entry, as moments that can be drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.ledger import Entry, Ledger
    from farthing.ledger.holdings import Holding
    from farthing.plots import Moment

MOST = 1_000  # charges whose reading is worked out; a picture shows no more


def picture_of(ledger: Ledger, dataset: str) -> Any:
    """The burn-down chart of a dataset."""
    from farthing.plots import burn_down

    return burn_down(moments_of(ledger, dataset), dataset=dataset, delta=ledger.budget(dataset).total.delta)


def moments_of(ledger: Ledger, dataset: str) -> list[Moment]:
    """The entries that a dataset's budget tells about; of very many charges every second, fourth ... and the last."""
    from farthing.ledger.history import Thinning
    from farthing.ledger.replay import Replay

    replay, kept = Replay(), Thinning(MOST)
    for entry in ledger.entries():
        replay.follow(entry)
        if entry.is_about(dataset) and entry.kind not in ("grant", "released", "forfeited", "source"):
            kept.add(entry, replay.holding(dataset))
    return [_moment(entry, holding) for entry, holding in kept.all()]


def _moment(entry: Entry, holding: Holding) -> Moment:
    from farthing.ledger.amounts import epsilon_up
    from farthing.plots import Moment

    requested = None
    if entry.kind == "refused":
        nano = int(entry.body["nano"])
        requested = math.inf if nano < 0 else epsilon_up(nano)
    return Moment(
        entry.sequence,
        entry.kind,
        spent=holding.account.spent_upper,
        budget=holding.account.budget.epsilon,
        withheld=epsilon_up(holding.withheld()[0]),
        requested=requested,
        who=entry.analyst or entry.actor,
    )

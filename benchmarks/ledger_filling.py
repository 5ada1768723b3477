"""Many charges at once, for benchmarks only: the entries that `Ledger.charge` would have written, a batch at a time.

Nobody is answered meanwhile, so one sync to disk for thousands of charges is enough. The ledger verifies afterwards
like any other, because the same values and the same chain make the entries.
"""

from __future__ import annotations

import time
from typing import Any

BATCH = 20_000


def fill(ledger: Any, charges: int, budget: tuple[float, float], epsilon: float) -> int:
    """Fill a ledger up to so many charges; the number of its entries then."""
    if "people" not in ledger.datasets():
        ledger.register("people", *budget)
    present = ledger.budget("people").count
    if present < charges and ledger.stored("fill-0") is None:
        # One of the ledger's own: it is the pattern of all others.
        ledger.charge("people", epsilon, request_id="fill-0")
        present += 1
    while present < charges:
        present += _batch(ledger, min(BATCH, charges - present), present)
    entries: int = ledger._memory.sequence
    return entries


def _batch(ledger: Any, many: int, present: int) -> int:
    from farthing.ledger.charge_prices import ChargePrice
    from farthing.ledger.entries import APPEND, totals_of
    from farthing.ledger.ledger_change import Question
    from farthing.ledger.ledger_tables import HEAD

    chain = ledger._chain

    def fill_batch(tx: Any) -> None:
        pattern, holding = tx.charge(), tx.whole()
        price, body = ChargePrice.from_dict(pattern.body["price"]), pattern.body_text
        rows: list[tuple[Any, ...]] = []
        for n in range(many - 1):
            holding = holding.charged(price)
            totals = totals_of({"": (holding, holding.text())})
            fields = (
                tx.last[0] + 1, "charge", "people", "", "bench", "curator", time.time_ns(),
                f"fill-{present + n}", body, totals, tx.last[1],
            )  # fmt: skip
            mac = chain.entry(fields)
            rows.append((*fields, mac))
            tx.last = (fields[0], mac)
        store = ledger._store
        store._writer.connection.connection.dbapi_connection.cursor().executemany(store.sql(APPEND), rows)
        # The last one goes the ledger's own way, which keeps the account; only the head moves further than usual.
        tx.append(
            "charge",
            "people",
            body,
            request_id=f"fill-{present + many - 1}",
            keep={("people", ""): holding.charged(price)},
        )
        if rows:
            run = store._writer.run
            run(store.sql(f"UPDATE {HEAD} SET sequence = ?, mac = ? WHERE one = 1"), tx.last)

    ledger._append(Question("people", request_id="fill-0"), fill_batch)
    return many

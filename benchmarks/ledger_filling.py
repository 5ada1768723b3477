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
    from farthing.ledger.chain import canonical
    from farthing.ledger.prices import Price
    from farthing.ledger.tables import COLUMNS, ENTRIES, HEAD

    chain, sql = ledger._chain, ledger._store.sql
    with ledger._writing() as tx:
        pattern, holding = tx.charge_of("fill-0"), tx.holding("people")
        assert pattern is not None and holding is not None
        body = {name: value for name, value in pattern.body.items() if name != "after"}
        price = Price.from_dict(body["price"])
        sequence, mac = tx.last
        rows: list[tuple[Any, ...]] = []
        for n in range(many - 1):
            holding = holding.charged(price)
            text = canonical({**body, "after": {"": holding.written()[1]}})
            sequence += 1
            request = f"fill-{present + n}"
            fields = (sequence, "charge", "people", "", "bench", "curator", time.time_ns(), request, text)
            rows.append((*fields, mac, chain.entry(mac, fields)))
            mac = rows[-1][-1]
        if rows:
            marks = ", ".join("?" * len(COLUMNS))
            statement = sql(f"INSERT INTO {ENTRIES} ({', '.join(COLUMNS)}) VALUES ({marks})")
            ledger._store._writer.sqlalchemy.connection.cursor().executemany(statement, rows)
            move = sql(f"UPDATE {HEAD} SET sequence = ?, mac = ?, seal = ? WHERE one = 1")
            tx._run(move, (sequence, mac, chain.head(sequence, mac)))
            tx.last = (sequence, mac)
        # The last one goes the ledger's own way, which keeps the account.
        request = f"fill-{present + many - 1}"
        tx.append("charge", "people", body, request_id=request, keep={"": holding.charged(price)})
    return many

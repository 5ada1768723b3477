"""The shape of the tables: a trigger or a rule that somebody added could undo what a charge writes.

The first entry holds a fingerprint of every table, index and trigger. Guards that are gone are no harm by themselves
(the marks find what they should have kept from happening); anything new or altered is.
"""

from __future__ import annotations

from farthing.errors import LedgerTampered
from farthing.ledger.chain import fingerprint
from farthing.ledger.store import Run, Store


def shape_of(store: Store, run: Run) -> dict[str, str]:
    """What stands on the ledger's tables, by kind and name, each with a fingerprint of its definition."""
    found = {
        f"{kind} {name}": fingerprint(str(text)) for kind, name, text in run(store.list_shape).fetchall()
    }
    return dict(sorted(found.items()))


def check_shape(store: Store, run: Run, made: object) -> list[str]:
    """Refuse tables whose shape is not the one that the first entry holds; the guards that are gone."""
    if not isinstance(made, dict):
        raise LedgerTampered("the first entry cannot be read", sequence=1)
    found = shape_of(store, run)
    wrong = [what for what, mark in found.items() if made.get(what) != mark]
    gone = [what for what in made if what not in found and not what.startswith("trigger ")]
    if wrong or gone:
        raise LedgerTampered(f"the {(wrong + gone)[0]} is not as it was made")
    return [what for what in made if what not in found]

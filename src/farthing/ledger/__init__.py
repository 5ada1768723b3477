"""Append-only charges, budgets, recovery: what was spent, kept so that nobody can overdraw it.

open_ledger   open or make a ledger: a file, or a PostgreSQL server
Ledger        register, charge, release, budget, entries, verify
Budget        how a budget stands
Charge        a durable charge, made before anything is computed
Entry         one line of the ledger
Stored        what is known of a request: charge, state, answer
Receipt       proof that an entry was in the ledger
Verification  whether the ledger is the one that was written
PlanRequest   a plan that somebody asks to release, and what became of it
Policy        what an analyst may spend without asking
"""

from farthing.ledger.budget import Budget
from farthing.ledger.entries import Charge, Entry, Receipt, Stored
from farthing.ledger.ledger import Ledger
from farthing.ledger.ledger_access import open_ledger
from farthing.ledger.request_records import PlanRequest, Policy
from farthing.ledger.verification import Verification

__all__ = [
    "Budget",
    "Charge",
    "Entry",
    "Ledger",
    "PlanRequest",
    "Policy",
    "Receipt",
    "Stored",
    "Verification",
    "open_ledger",
]
